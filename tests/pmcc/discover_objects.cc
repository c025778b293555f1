// What a C++ program has besides: exceptions, and the standard library's templates.
#include "discover.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace
{

struct Node {
    explicit Node(int n) : number(n), name("a name that is too long for a short string") {}
    Node(const Node &) = delete;
    virtual ~Node() = default;
    virtual int value() const { return number; }

    int number;
    std::string name, brief = "brief";
    std::unique_ptr<Node> next;
    std::vector<Node *> others;
};

struct Doubled : Node {
    using Node::Node;
    int value() const override { return 2 * number; }
};

std::unique_ptr<Node> make_nodes(int n)
{
    std::unique_ptr<Node> first;
    for (int i = n - 1; i >= 0; i--) {
        auto node = i % 2 ? std::make_unique<Doubled>(i) : std::make_unique<Node>(i);
        for (Node *other = first.get(); other; other = other->next.get())
            node->others.push_back(other);
        node->next = std::move(first);
        first = std::move(node);
    }
    return first;
}

void check_nodes(pm_container *c, const Node *node, int n)
{
    for (int i = 0; i < n; i++, node = node->next.get()) {
        assert(pm_contains(c, node) && node->value() == (i % 2 ? 2 * i : i));
        assert(pm_contains(c, node->name.data()) && node->name.find("a name that") == 0);
        assert(node->brief == "brief" && pm_contains(c, node->brief.data()));
        assert(node->others.size() == size_t(n - 1 - i));
        const Node *other = node->next.get();
        for (const Node *pointer : node->others) {
            assert(pointer == other);
            other = other->next.get();
        }
    }
    assert(!node);
}

[[gnu::noinline]] void commit_and_throw(pm_container *c, void *root, Node *node)
{
    std::unique_ptr<Node> owned = std::make_unique<Node>(77);
    keep_all(c, root);
    assert(pm_contains(c, node) && !pm_contains(c, owned.get()));
    throw std::runtime_error(node->name);
}

/* Commits while the stack is being unwound. */
struct CommitsAtEnd {
    pm_container *c;
    Node *node;
    ~CommitsAtEnd()
    {
        node->others.push_back(nullptr);
        keep_changes(c);
        node->others.pop_back();
    }
};

std::vector<Node *> index_of_all;
thread_local std::optional<std::vector<Node *>> thread_index;

} // namespace

CASE(finds_objects)
{
    pm_container *c = fresh(0);
    Node *first = make_nodes(10).release();
    for (Node *node = first; node; node = node->next.get())
        index_of_all.push_back(node);
    thread_index = index_of_all;
    std::vector<Node *> local = index_of_all;
    keep_all(c, first);
    check_nodes(c, first, 10);
    assert(index_of_all[0] == first && index_of_all == local && *thread_index == local);
    assert(!pm_contains(c, index_of_all.data()));
    c = again(c);
    check_nodes(c, static_cast<Node *>(pm_getroot(c)), 10);
    assert(pm_close(c) == 0);
    index_of_all.clear();
    thread_index.reset();
}

CASE(commits_between_throw_and_catch)
{
    pm_container *c = fresh(0);
    Node *first = make_nodes(5).release(), *third = first->next->next.get();
    try {
        CommitsAtEnd at_end{c, third};
        commit_and_throw(c, first, third);
        assert(false);
    } catch (const std::runtime_error &error) {
        assert(pm_contains(c, third) && error.what() == third->name);
        third->name = "a new name that is as long as the one before it";
        keep_changes(c);
        assert(pm_contains(c, third->name.data()));
        third->name = "a name that comes after all others that there were";
    }
    keep_changes(c);
    assert(third == first->next->next.get());
    check_nodes(c, first, 5);
    assert(pm_close(c) == 0);
}

CASE(grows_and_shrinks_afterwards)
{
    pm_container *c = fresh(0);
    auto *words = new std::vector<std::string>;
    keep_all(c, words);
    for (int i = 0; i < 500; i++) {
        words->push_back("word number " + std::to_string(i) + " of all");
        std::string_view last = words->back();
        if (i % 7 == 0)
            keep_changes(c);
        assert(last == words->back());
    }
    keep_changes(c);
    c = again(c);
    words = static_cast<std::vector<std::string> *>(pm_getroot(c));
    for (int i = 0; i < 500; i++)
        assert((*words)[i] == "word number " + std::to_string(i) + " of all");
    words->clear();
    words->shrink_to_fit();
    keep_changes(c);
    assert(pm_close(c) == 0);
}

/* Where the bits are there was a pointer to what has moved then, as free memory is linked, too. */
CASE(keeps_bits_in_memory_that_was_used_before)
{
    struct Cell {
        Cell *next;
    };
    struct Kept {
        std::vector<bool> bits[16];
        Cell *cells;
    };
    pm_container *c = fresh(0);
    auto *kept = new Kept{};
    const long n = number(6);
    for (std::vector<bool> &bits : kept->bits) {
        for (long i = 0; i < n; i++)
            bits.push_back(false);
        kept->cells = new Cell{kept->cells};
    }
    keep_all(c, kept);
    kept = static_cast<Kept *>(pm_getroot(c));
    for (const std::vector<bool> &bits : kept->bits)
        assert(std::count(bits.begin(), bits.end(), false) == n);
    assert(pm_close(c) == 0);
}

CASE(finds_tables_and_queues)
{
    using Table = std::unordered_map<std::string, std::deque<std::string>>;
    pm_container *c = fresh(0);
    auto *table = new Table;
    auto key = [](int i) { return "a key that is not short: " + std::to_string(i); };
    auto value = [](int i) { return "a value that is not short: " + std::to_string(i); };
    for (int i = 0; i < 600; i++) {
        (*table)[key(i)].push_back(value(i));
        if (i == 300)
            keep_all(c, table);
        else if (i > 300 && i % 50 == 0)
            keep_changes(c);
    }
    keep_changes(c);
    c = again(c);
    table = static_cast<Table *>(pm_getroot(c));
    assert(table->size() == 600);
    for (int i = 0; i < 600; i++)
        assert(table->at(key(i)).front() == value(i));
    assert(pm_close(c) == 0);
}
