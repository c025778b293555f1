// Containers whose nodes libstdc++ links: changed at random between commits, then opened again and
// compared with models that are arrays. Few changes to each commit, so that a link whose store was
// not announced is not kept by another store to its line.
#include "discover.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <list>
#include <map>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace
{

constexpr int keys = 700, commits = 2000, changes = 8, commits_between_openings = 20;

using Random = std::minstd_rand;

int below(Random &random, size_t bound)
{
    return int(random() % bound);
}

// The number of black nodes on each path down; the same on all, and none red below red.
int black_height(const std::_Rb_tree_node_base *node)
{
    if (!node)
        return 0;
    for (const std::_Rb_tree_node_base *child : {node->_M_left, node->_M_right})
        assert(!child || (child->_M_parent == node &&
                          (node->_M_color == std::_S_black || child->_M_color == std::_S_black)));
    int height = black_height(node->_M_left);
    assert(height == black_height(node->_M_right));
    return height + (node->_M_color == std::_S_black);
}

// The header, its links to the first, the last and the root, and all nodes.
template <class Tree> void check_tree(pm_container *c, const Tree &tree)
{
    const std::_Rb_tree_node_base *header = tree.end()._M_node;
    assert(size_t(std::distance(tree.begin(), tree.end())) == tree.size());
    assert(size_t(std::distance(tree.rbegin(), tree.rend())) == tree.size());
    if (!tree.empty())
        assert(header->_M_parent->_M_parent == header);
    black_height(header->_M_parent);
    for (auto i = tree.begin(); i != tree.end(); ++i)
        assert(pm_contains(c, i._M_node));
}

std::string name_of(int key)
{
    return "the name, which is not short, of " + std::to_string(10000 + key);
}

struct Trees {
    std::map<int, std::string> map;
    std::set<std::string> set;
    std::multimap<int, int> multimap;
};

struct TreesModel {
    std::array<bool, keys> in_map{}, in_set{};
    std::array<int, keys> in_multimap{}; // how many

    void change(Trees &trees, Random &random)
    {
        int key = below(random, keys);
        switch (below(random, 4)) {
        case 0:
            if ((in_map[key] = !in_map[key]))
                trees.map.emplace(key, name_of(key));
            else
                assert(trees.map.erase(key) == 1);
            break;
        case 1:
            if ((in_set[key] = !in_set[key]))
                trees.set.insert(name_of(key));
            else
                assert(trees.set.erase(name_of(key)) == 1);
            break;
        case 2: // the first or the last, which the header leads to
            if (!trees.multimap.empty()) {
                auto end = key % 2 ? trees.multimap.begin() : std::prev(trees.multimap.end());
                in_multimap[end->first]--;
                trees.multimap.erase(end);
            }
            break;
        default:
            if (in_multimap[key] < 3)
                trees.multimap.emplace(key, in_multimap[key]++);
            else {
                assert(trees.multimap.erase(key) == 3);
                in_multimap[key] = 0;
            }
        }
    }

    void check(pm_container *c, const Trees &trees) const
    {
        check_tree(c, trees.map);
        check_tree(c, trees.set);
        check_tree(c, trees.multimap);
        size_t in_all = 0;
        for (int key = 0; key < keys; key++) {
            auto found = trees.map.find(key);
            assert((found != trees.map.end()) == in_map[key]);
            assert(!in_map[key] || found->second == name_of(key));
            assert(trees.set.count(name_of(key)) == in_set[key]);
            assert(int(trees.multimap.count(key)) == in_multimap[key]);
            in_all += in_multimap[key];
        }
        assert(trees.map.size() == size_t(std::count(in_map.begin(), in_map.end(), true)));
        assert(trees.set.size() == size_t(std::count(in_set.begin(), in_set.end(), true)));
        assert(trees.multimap.size() == in_all);
    }
};

struct Lists {
    std::list<int> one, other;
};

using Model = std::vector<int>;

void check_list(pm_container *c, const std::list<int> &list, const Model &model)
{
    assert(list.size() == model.size());
    assert(std::equal(list.begin(), list.end(), model.begin(), model.end()));
    assert(std::equal(list.rbegin(), list.rend(), model.rbegin(), model.rend()));
    for (const int &element : list)
        assert(pm_contains(c, &element));
}

struct ListsModel {
    Model one, other;

    void change(Lists &lists, Random &random)
    {
        switch (below(random, 12)) {
        case 0:
            lists.one.swap(lists.other);
            one.swap(other);
            break;
        case 1:
            lists.one.reverse();
            std::reverse(one.begin(), one.end());
            break;
        case 2:
            lists.other.sort();
            std::sort(other.begin(), other.end());
            break;
        case 3: { // half of the one somewhere into the other
            int n = int(one.size() / 2), at = below(random, other.size() + 1);
            lists.other.splice(std::next(lists.other.begin(), at), lists.one, lists.one.begin(),
                               std::next(lists.one.begin(), n));
            other.insert(other.begin() + at, one.begin(), one.begin() + n);
            one.erase(one.begin(), one.begin() + n);
            break;
        }
        case 4:
        case 5:
        case 6:
            if (!one.empty()) {
                int at = below(random, one.size());
                lists.one.erase(std::next(lists.one.begin(), at));
                one.erase(one.begin() + at);
            }
            break;
        default: {
            int at = below(random, one.size() + 1), n = below(random, 1000);
            lists.one.insert(std::next(lists.one.begin(), at), n);
            one.insert(one.begin() + at, n);
        }
        }
    }

    void check(pm_container *c, const Lists &lists) const
    {
        check_list(c, lists.one, one);
        check_list(c, lists.other, other);
    }
};

// `changes_each` changes between commits.
template <class Kept, class Model>
void change_and_compare(Kept *kept, Model model, int changes_each)
{
    pm_container *c = fresh(0);
    Random random;
    keep_all(c, kept);
    for (int commit = 1; commit <= commits; commit++) {
        for (int i = 0; i < changes_each; i++)
            model.change(*kept, random);
        keep_changes(c);
        if (commit % commits_between_openings == 0) {
            c = again(c);
            kept = static_cast<Kept *>(pm_getroot(c));
            model.check(c, *kept);
        }
    }
    assert(pm_close(c) == 0);
}

} // namespace

CASE(finds_trees)
{
    change_and_compare(new Trees, TreesModel(), 1);
    change_and_compare(new Trees, TreesModel(), changes);
}

CASE(finds_lists)
{
    change_and_compare(new Lists, ListsModel(), 1);
    change_and_compare(new Lists, ListsModel(), changes);
}

CASE(redirects_iterators)
{
    struct Both {
        std::map<int, std::string> map;
        std::list<int> list;
    };
    pm_container *c = fresh(0);
    auto *both = new Both;
    keep_all(c, both);
    for (int key = 0; key < 200; key++) {
        auto in_map = both->map.emplace(key, name_of(key)).first;
        auto in_list = both->list.insert(both->list.end(), key);
        int *element = &*in_list;
        auto end = both->map.end();
        keep_changes(c);
        assert(element == &*in_list && pm_contains(c, element) && *element == key);
        assert(in_map->second == name_of(key) && in_map == std::prev(end));
        assert(std::next(in_map) == end && std::next(in_list) == both->list.end());
        if (key % 3 == 0) {
            both->map.erase(in_map);
            both->list.erase(in_list);
        }
    }
    both->map.clear();
    both->list.clear();
    keep_changes(c);
    c = again(c);
    both = static_cast<Both *>(pm_getroot(c));
    assert(both->map.empty() && both->list.empty());
    both->map.emplace(1, name_of(1));
    both->list.push_back(1);
    assert(both->map.begin()->first == both->list.front());
    assert(pm_close(c) == 0);
}

// When a table is to grow is noted by the library, on a line where there may be no other store: so the
// tables lie at all places of a line, and every commit looks for stores that escaped.
CASE(finds_tables)
{
    using Tables = std::array<std::unordered_map<int, int>, 16>;
    constexpr int keys = 150;
    setenv("LIBPM_AUDIT", "1", 1);
    pm_container *c = fresh(0);
    keep_all(c, new Tables);
    for (int key = 0; key < keys; key++)
        for (auto &table : *static_cast<Tables *>(pm_getroot(c))) {
            table[key] = -key;
            keep_changes(c);
        }
    c = again(c);
    for (const auto &table : *static_cast<Tables *>(pm_getroot(c))) {
        assert(table.size() == size_t(keys));
        for (int key = 0; key < keys; key++)
            assert(table.at(key) == -key);
    }
    assert(pm_close(c) == 0);
    unsetenv("LIBPM_AUDIT");
}
