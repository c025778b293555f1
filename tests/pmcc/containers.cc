// Containers of the C++ library, with all that they allocate, in a container of a program that discovers
// nothing. libstdc++ links their nodes, and its stores must be announced. A process changes them at random, a
// few changes to a commit, and is killed. Then they are compared with a model, which repeats the changes.
// LIBPM_AUDIT=1 names what was not announced.
#include "runtime/containers.h"

#include <array>
#include <cassert>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <libpm.h>
#include <list>
#include <map>
#include <random>
#include <set>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#ifdef NDEBUG
#error these tests are made of assertions
#endif

// What src/runtime/containers.c knows of libstdc++. Its members are protected or nameless elsewhere.
using TreeNode = std::_Rb_tree_node_base;
using ListNode = std::__detail::_List_node_base;
using Policy = std::__detail::_Prime_rehash_policy;
static_assert(sizeof(tree_node) == sizeof(TreeNode) && int(TREE_RED) == int(std::_S_red));
static_assert(sizeof(TreeNode::_M_color) == sizeof(tree_node::colour));
static_assert(offsetof(tree_node, colour) == offsetof(TreeNode, _M_color));
static_assert(offsetof(tree_node, parent) == offsetof(TreeNode, _M_parent));
static_assert(offsetof(tree_node, left) == offsetof(TreeNode, _M_left));
static_assert(offsetof(tree_node, right) == offsetof(TreeNode, _M_right));
static_assert(sizeof(list_node) == sizeof(ListNode));
static_assert(offsetof(list_node, next) == offsetof(ListNode, _M_next));
static_assert(offsetof(list_node, previous) == offsetof(ListNode, _M_prev));
static_assert(sizeof(rehash_policy) == sizeof(Policy));
static_assert(offsetof(rehash_policy, next_resize) == offsetof(Policy, _M_next_resize));

namespace
{

pm_container *container; // where Allocator allocates

template <class T> struct Allocator {
    using value_type = T;
    Allocator() = default;
    template <class U> Allocator(const Allocator<U> &) {}
    T *allocate(size_t n)
    {
        void *p = pm_malloc(container, n * sizeof(T));
        assert(p);
        return static_cast<T *>(p);
    }
    void deallocate(T *p, size_t) { assert(pm_free(p) == 0); }
    bool operator==(const Allocator &) const { return true; }
};

using Random = std::minstd_rand;

size_t below(Random &random, size_t bound)
{
    return random() % bound;
}

template <template <class> class A> struct Data {
    using String = std::basic_string<char, std::char_traits<char>, A<char>>;
    struct Hash {
        size_t operator()(const String &text) const
        {
            return std::hash<std::string_view>()(std::string_view(text.data(), text.size()));
        }
    };

    long commits = 0;
    std::map<int, String, std::less<int>, A<std::pair<const int, String>>> map;
    std::set<int, std::less<int>, A<int>> set;
    std::multimap<int, int, std::less<int>, A<std::pair<const int, int>>> multimap;
    std::list<int, A<int>> lists[2];
    std::unordered_map<String, int, Hash, std::equal_to<String>, A<std::pair<const String, int>>>
        table;
    std::unordered_multiset<int, std::hash<int>, std::equal_to<int>, A<int>> bag;
    std::deque<String, A<String>> deque;
    std::vector<int, A<int>> vector;
    String string;

    String text(Random &random)
    {
        return String(1 + below(random, 40), char('a' + below(random, 26)));
    }

    void change_tree(Random &random)
    {
        int key = int(below(random, 400));
        switch (below(random, 6)) {
        case 0:
            map.erase(key);
            break;
        case 1:
            map[key] = text(random);
            break;
        case 2:
            set.insert(key);
            break;
        case 3:
            set.erase(set.lower_bound(key), set.lower_bound(key + 3));
            break;
        case 4:
            multimap.insert({key, int(below(random, 9))});
            break;
        default:
            multimap.erase(key);
        }
    }

    void change_list(Random &random)
    {
        size_t which = below(random, 2);
        auto &list = lists[which], &other = lists[!which];
        int number = int(below(random, 1000));
        switch (below(random, 8)) {
        case 0:
            list.push_front(number);
            break;
        case 1:
            list.push_back(number);
            break;
        case 2:
            if (!list.empty())
                list.pop_front();
            break;
        case 3:
            list.remove(number % 50);
            break;
        case 4:
            list.splice(list.begin(), other);
            break;
        case 5:
            list.reverse();
            break;
        case 6:
            list.sort();
            break;
        default:
            list.swap(other);
        }
    }

    void change_table(Random &random)
    {
        switch (below(random, 6)) {
        case 0:
        case 1:
            table[text(random)] = int(random());
            break;
        case 2:
            table.erase(text(random));
            break;
        case 3:
            bag.insert(int(below(random, 99)));
            break;
        case 4:
            bag.erase(int(below(random, 99)));
            break;
        default:
            if (below(random, 9) == 0)
                bag.rehash(below(random, 200));
        }
    }

    void change_row(Random &random)
    {
        switch (below(random, 7)) {
        case 0:
            deque.push_back(text(random));
            break;
        case 1:
            deque.push_front(text(random));
            break;
        case 2:
            if (!deque.empty())
                deque.pop_front();
            break;
        case 3:
            vector.push_back(int(random()));
            break;
        case 4:
            string += text(random);
            break;
        case 5:
            string.replace(0, string.size() / 3, text(random));
            break;
        default:
            if (vector.size() > 100)
                vector.clear();
        }
    }

    void change(Random &random)
    {
        switch (below(random, 4)) {
        case 0:
            return change_tree(random);
        case 1:
            return change_list(random);
        case 2:
            return change_table(random);
        default:
            return change_row(random);
        }
    }
};

template <class T> using StdAllocator = std::allocator<T>;
using Kept = Data<Allocator>;
using Model = Data<StdAllocator>;

// What a transaction does, by its number.
template <class D> void transaction(D &data, unsigned seed)
{
    Random random(seed + unsigned(data.commits) * 7919 + 1);
    for (size_t i = 0, n = 1 + below(random, 4); i < n; i++)
        data.change(random);
    data.commits++;
}

bool is_same(int a, int b)
{
    return a == b;
}
bool is_same(const Kept::String &a, const Model::String &b)
{
    return std::string_view(a.data(), a.size()) == b;
}
template <class A, class B, class C, class D>
bool is_same(const std::pair<A, B> &a, const std::pair<C, D> &b)
{
    return is_same(a.first, b.first) && is_same(a.second, b.second);
}

template <class A, class B> void compare(const A &a, const B &b)
{
    auto i = a.begin();
    assert(a.size() == b.size());
    for (const auto &element : b)
        assert(is_same(*i++, element));
    assert(i == a.end());
}

void compare(const Kept &kept, const Model &model)
{
    compare(kept.map, model.map);
    compare(kept.set, model.set);
    compare(kept.multimap, model.multimap);
    for (int i = 0; i < 2; i++) {
        compare(kept.lists[i], model.lists[i]);
        assert(std::equal(kept.lists[i].rbegin(), kept.lists[i].rend(), model.lists[i].rbegin()));
    }
    assert(kept.table.size() == model.table.size() && kept.bag.size() == model.bag.size());
    for (const auto &[text, number] : model.table) {
        auto found = kept.table.find(Kept::String(text.data(), text.size()));
        assert(found != kept.table.end() && found->second == number);
    }
    for (int i = 0; i < 99; i++)
        assert(kept.bag.count(i) == model.bag.count(i));
    compare(kept.deque, model.deque);
    compare(kept.vector, model.vector);
    assert(is_same(kept.string, model.string));
}

pm_container *open_container(const char *path, unsigned flags)
{
    pm_options options = {};
    options.size = sizeof options;
    options.flags = PM_CREATE | flags;
    options.tracker = PM_TRACKER_STORES;
    options.max_size = 64 << 20;
    options.segment_size = 64 << 10;
    pm_container *c = pm_open(path, &options);
    if (!c)
        fprintf(stderr, "%s\n", pm_errormsg());
    assert(c);
    return c;
}

void commit()
{
    int result = pm_commit(container);
    if (result != 0)
        fprintf(stderr, "%s\n", pm_errormsg());
    assert(result == 0);
}

// The process that is killed, before a commit or after it.
[[noreturn]] void run(const char *path, unsigned flags, unsigned seed, unsigned round)
{
    container = open_container(path, flags);
    auto *data = static_cast<Kept *>(pm_getroot(container));
    if (!data) {
        data = new (pm_malloc(container, sizeof *data)) Kept;
        assert(pm_setroot(container, data, 0) == 0);
        commit();
    }
    Random random(round);
    for (size_t i = 20 + below(random, 80); i > 0; i--) {
        transaction(*data, seed);
        commit();
    }
    transaction(*data, seed);
    raise(SIGKILL);
    abort();
}

void try_once(const std::string &path, unsigned flags, unsigned seed)
{
    Model model;
    for (unsigned round = 0; round < 6; round++) {
        std::array<std::string, 5> words = {"run", path, std::to_string(flags), std::to_string(seed),
                                            std::to_string(round)};
        char *arguments[7] = {const_cast<char *>("containers")};
        for (size_t i = 0; i < words.size(); i++)
            arguments[i + 1] = words[i].data();
        pid_t pid;
        int status;
        assert(posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments, environ) == 0);
        assert(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        pm_container *c = container = open_container(path.c_str(), flags);
        auto *data = static_cast<Kept *>(pm_getroot(c));
        while (model.commits < data->commits)
            transaction(model, seed);
        compare(*data, model);
        if (flags & PM_MOVABLE) {
            assert(pm_close(c) == 0);
            std::string copy = path + "-copy";
            assert(system(("cp " + path + " " + copy).c_str()) == 0);
            pm_container *original = open_container(path.c_str(), flags);
            c = container = open_container(copy.c_str(), flags);
            assert(pm_getroot(c) != pm_getroot(original));
            compare(*static_cast<Kept *>(pm_getroot(c)), model); // elsewhere
            assert(pm_close(original) == 0 && unlink(copy.c_str()) == 0);
        }
        assert(pm_check(c) == 0 && pm_close(c) == 0);
    }
    unlink(path.c_str());
}

// Insert and erase one element to a commit, in a tree so large that there is every way to mend it.
void mend_a_tree(const std::string &path, unsigned seed)
{
    constexpr size_t keys = 2000, turns = 4000;
    std::set<int> model;
    Random random(seed);
    container = open_container(path.c_str(), 0);
    using Set = std::set<int, std::less<int>, Allocator<int>>;
    auto *set = new (pm_malloc(container, sizeof(Set))) Set;
    assert(pm_setroot(container, set, 0) == 0);
    for (size_t i = 0; i < turns; i++) {
        int key = int(below(random, keys));
        if (set->erase(key) == 0)
            set->insert(key);
        if (model.erase(key) == 0)
            model.insert(key);
        commit();
    }
    assert(pm_close(container) == 0);
    container = open_container(path.c_str(), 0);
    compare(*static_cast<Set *>(pm_getroot(container)), model);
    assert(pm_close(container) == 0);
    unlink(path.c_str());
}

} // namespace

int main(int count, char **arguments)
{
    assert(setenv("LIBPM_AUDIT", "1", 1) == 0);
    if (count == 6)
        run(arguments[2], unsigned(atoi(arguments[3])), unsigned(atoi(arguments[4])),
            unsigned(atoi(arguments[5])));
    std::string path = "/dev/shm/libpm-containers-" + std::to_string(getpid());
    for (unsigned seed = 1; seed <= 3; seed++) {
        try_once(path, 0, seed);
        try_once(path, PM_MOVABLE, seed);
        mend_a_tree(path, seed);
    }
    return 0;
}
