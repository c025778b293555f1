// A program to crash, and its own check, for `pm crash`: what the LSM store does in its container.
//
//     lsm_crash FILE store            puts, deletions and batches on a store whose container is FILE
//     lsm_crash FILE list             a list is filled as a memtable moves there, and freed
//     lsm_crash FILE pieces           tables and edits of a manifest come and go
//     lsm_crash FILE merge            two lists are merged by pointer, and what nobody needs is freed
//     lsm_crash --check FILE CASE     does it have what it was said to have, or the next step?
#include "lsm/lsm.hpp"
#include "lsm/persistent.hpp"

#include "common/mode.hpp"
#include "promised.hpp"

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>

namespace
{

void said(size_t step)
{
    printf("made %zu\n", step);
    fflush(stdout);
}

void demand(bool holds, const std::string &what)
{
    if (!holds)
        throw std::runtime_error(what);
}

// ---- A store

constexpr uint64_t container_bytes = 16 << 20;

lsm::Options options_of(const std::string &path)
{
    lsm::Options options;
    options.create = true;
    options.memtables = lsm::Memtables::persistent_only;
    options.container = path;
    options.container_bytes = container_bytes;
    options.persistent_bytes = 256 << 10;
    options.engine = test::engine_option();
    return options;
}

std::string directory_of(const std::string &path)
{
    return std::filesystem::absolute(path).string() + ".store";
}

using Model = std::map<std::string, std::string>;

constexpr size_t steps = 12;

// Step `i`, of a store and of a model: a batch at each third, a deletion at each fourth, else a put.
void make(size_t i, lsm::Store *store, Model &model)
{
    const std::string value = std::to_string(i) + std::string(i * 97 % 700, 'v');
    lsm::Batch batch;
    const size_t count = i % 3 == 0 ? 4 : 1;
    for (size_t k = 0; k < count; k++) {
        const std::string key = "key" + std::to_string((i + k) % 5);
        if (i % 4 == 3) {
            batch.remove(key);
            model.erase(key);
        } else {
            batch.put(key, value);
            model[key] = value;
        }
    }
    if (store)
        store->write(batch, {.sync = true});
}

void run_store(const std::string &path)
{
    std::filesystem::remove_all(directory_of(path)); // of another container
    auto store = lsm::Store::open(directory_of(path), options_of(path));
    Model model;
    for (size_t i = 0; i < steps; i++) {
        said(i);
        make(i, store.get(), model);
    }
    said(steps);
}

void check_store(const std::string &path)
{
    const long made = promised();
    std::unique_ptr<lsm::Store> store;
    try {
        store = lsm::Store::open(directory_of(path), options_of(path));
    } catch (const lsm::Error &error) {
        if (made < 0) // the crash was earlier than the store
            return;
        throw;
    }
    Model found, allowed;
    auto at = store->iterator();
    for (at->seek_to_first(); at->valid(); at->next())
        found.emplace(at->key(), at->value());
    for (size_t i = 0; i < static_cast<size_t>(std::max(made, 0L)); i++)
        make(i, nullptr, allowed);
    if (found == allowed)
        return;
    make(static_cast<size_t>(made), nullptr, allowed);
    demand(found == allowed, "the pairs are not those of " + std::to_string(made) + " steps, nor of one more");
}

// ---- A list

constexpr uint64_t nodes = 250, nodes_a_step = 100;

std::string number(uint64_t i)
{
    return std::to_string(1000 + i);
}

void run_list(const std::string &path)
{
    const lsm::Options creation = options_of(path);
    lsm::Container container(path, &creation);
    said(0);
    auto list = container.begin(1, 0);
    for (uint64_t i = 0; i < nodes;) {
        lsm::Container::Hold hold(container);
        for (const uint64_t end = std::min(i + nodes_a_step, nodes); i < end; i++)
            list->add(i + 1, lsm::Kind::value, number(i), std::string(i % 300, 'v'));
        list->commit(i == nodes ? nodes : 0, false);
    }
    said(1);
    list->set_unneeded();
    list.reset();
    while (container.free_some())
        ;
    said(2);
}

// NULL: the crash was earlier than the container.
std::unique_ptr<lsm::Container> opened(const std::string &path, long made)
{
    try {
        return std::make_unique<lsm::Container>(path, nullptr);
    } catch (const lsm::Error &) {
        if (made < 0)
            return nullptr;
        throw;
    }
}

// The nodes are a beginning of all, or, once it was full, an end.
void check_list(const std::string &path)
{
    const long made = promised();
    const auto container = opened(path, made);
    if (!container)
        return;
    const auto lists = container->memtables();
    demand(lists.size() <= 1 && (made < 2 || lists.empty()), "there is a list too many");
    if (lists.empty())
        return;
    auto at = lists[0]->cursor();
    at->seek_to_first();
    uint64_t first = 0, count = 0;
    if (at->valid())
        first = std::stoull(std::string(lsm::user_key(at->key()))) - 1000;
    for (; at->valid(); at->next(), count++)
        demand(lsm::user_key(at->key()) == number(first + count) &&
                   at->value().size() == (first + count) % 300,
               "node " + std::to_string(count) + " is wrong");
    const bool complete = lists[0]->last() == nodes;
    demand(complete ? count == 0 || first + count == nodes : first == 0 && count < nodes,
           "nodes are missing: " + std::to_string(count) + " from " + std::to_string(first) + " on");
    demand(made < 1 || complete, "the list is not complete");
}

// ---- Two lists

bool is_old(uint64_t i)
{
    return i % 2 == 0;
}

bool is_new(uint64_t i)
{
    return i % 3 == 0;
}

std::shared_ptr<lsm::PersistentMemtable> filled(lsm::Container &container, lsm::Sequence first,
                                                bool (*has)(uint64_t), const char *value)
{
    auto list = container.begin(first, 0);
    lsm::Container::Hold hold(container);
    for (uint64_t i = 0; i < nodes; i++)
        if (has(i))
            list->add(first + i, lsm::Kind::value, number(i), value);
    list->commit(first + nodes, false);
    return list;
}

void run_merge(const std::string &path)
{
    const lsm::Options creation = options_of(path);
    lsm::Container container(path, &creation);
    said(0);
    auto older = filled(container, 1, is_old, "old"), newer = filled(container, 1000, is_new, "new");
    said(1);
    auto grave = container.begin(1, 0);
    while (!older->take_some(*newer, *grave, lsm::sequence_max))
        ;
    said(2);
    for (auto *list : {&newer, &grave}) {
        (*list)->set_unneeded();
        list->reset();
    }
    while (container.free_some())
        ;
    said(3);
}

// Lists that are complete come from new to old. All pairs are in one of them.
void check_merge(const std::string &path)
{
    const long made = promised();
    const auto container = opened(path, made);
    if (made < 1)
        return;
    const auto lists = container->memtables();
    demand(made < 3 || lists.size() == 1, "there is a list too many");
    for (uint64_t i = 0; i < nodes; i++) {
        std::optional<lsm::Memtable::Found> found;
        for (const auto &list : lists)
            if (!found && list->first() <= list->last())
                found = list->get(number(i), lsm::sequence_max);
        const std::string wanted = is_new(i) ? "new" : is_old(i) ? "old" : "";
        demand((found ? found->value : "") == wanted, "pair " + number(i) + " is wrong");
    }
}

// ---- Tables and edits, as `key_lsm` has them: each table is named by an edit after it is there

std::string table_text(uint64_t number)
{
    return std::string(1000 * number, static_cast<char>('a' + number));
}

void run_pieces(const std::string &path)
{
    const lsm::Options creation = options_of(path);
    lsm::Container container(path, &creation);
    said(0);
    container.begin_edits("1");
    for (uint64_t number = 1; number <= 5; number++) {
        container.add_table(number, table_text(number));
        container.append_edit(std::to_string(number));
    }
    said(1);
    container.begin_edits("24");
    for (const uint64_t number : {1, 5, 3})
        container.drop_table(number);
    while (container.free_some())
        ;
    said(2);
}

// The edits are some of the first ones, or the one that came in their place. What they name is there.
void check_pieces(const std::string &path)
{
    const long made = promised();
    const auto container = opened(path, made);
    if (!container)
        return;
    std::string edits;
    for (const std::string_view edit : container->edits())
        edits += edit;
    const bool is_second = edits == "24";
    demand(is_second || std::string("112345").starts_with(edits), "the edits are " + edits);
    demand(made < 1 || is_second || edits == "112345", "edits are missing");
    demand(made < 2 || (is_second && container->tables().size() == 2), "tables were not dropped");
    if (!is_second && !edits.empty())
        edits.erase(0, 1);
    for (const char number : edits)
        demand(container->table(static_cast<uint64_t>(number - '0')) ==
                   table_text(static_cast<uint64_t>(number - '0')),
               std::string("table ") + number + " is wrong");
    container->check();
}

} // namespace

int main(int argc, char **argv)
{
    try {
        const bool checks = argc == 4 && std::string(argv[1]) == "--check";
        if (argc != 3 && !checks) {
            std::cerr << "usage: lsm_crash [--check] FILE store|list|pieces|merge\n";
            return 2;
        }
        const std::string path = argv[argc - 2];
        if (std::string(argv[argc - 1]) == "store")
            checks ? check_store(path) : run_store(path);
        else if (std::string(argv[argc - 1]) == "list")
            checks ? check_list(path) : run_list(path);
        else if (std::string(argv[argc - 1]) == "pieces")
            checks ? check_pieces(path) : run_pieces(path);
        else
            checks ? check_merge(path) : run_merge(path);
    } catch (const std::exception &error) {
        std::cout << "lsm_crash: " << error.what() << '\n';
        return 1;
    }
    return 0;
}
