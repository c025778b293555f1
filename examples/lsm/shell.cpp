// lsm: a store from the command line, or in a pipe. See lsm.1.
#include "common/lines.hpp"
#include "lsm/lsm.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <iterator>

namespace
{

using Words = std::vector<std::string>;

enum Status { done = 0, not_found = 1, misused = 2, failed = 3 };

constexpr size_t batch_bytes = 1 << 20;

std::string standard_input()
{
    return {std::istreambuf_iterator<char>(std::cin), {}};
}

// A line `key, tab, value` puts, and a line `key` deletes. They are written by the megabyte, or all at once.
void batch(lsm::Store &store, bool whole)
{
    lsm::Batch batch;
    text::Lines lines;
    for (Words fields; lines.next(fields);) {
        if (fields.size() > 2)
            lines.refuse("neither KEY, a tab, VALUE, nor KEY");
        fields.size() == 2 ? batch.put(fields[0], fields[1]) : batch.remove(fields[0]);
        if (!whole && batch.bytes() >= batch_bytes) {
            store.write(batch);
            batch.clear();
        }
    }
    store.write(batch, {.sync = true});
}

void scan(lsm::Store &store, const std::string &from, const std::optional<std::string> &to,
          uint64_t limit)
{
    auto at = store.iterator();
    for (at->seek(from); at->valid() && limit > 0 && (!to || at->key() < *to); at->next(), limit--)
        text::print_line({at->key(), at->value()});
}

Status get(lsm::Store &store, const std::string &key)
{
    auto value = store.get(key);
    if (!value)
        return not_found;
    std::cout << *value << '\n';
    return done;
}

} // namespace

int main(int count, char **values)
{
    CLI::App app("A log-structured merge store in a directory.");
    std::string directory, memtables, container, fast, key, from;
    unsigned fast_levels = 0;
    std::optional<std::string> value, to;
    uint64_t limit = UINT64_MAX;
    bool whole = false;
    app.add_option("DIRECTORY", directory, "of the store; `put` and `batch` make it")->required();
    app.add_option(
           "--memtables", memtables,
           "where memtables lie from now on: dram, immutable, mutable, nosst, merging or keylsm")
        ->check(CLI::IsMember({"dram", "immutable", "mutable", "nosst", "merging", "keylsm"}));
    app.add_option("--container", container, "path of a new container, for memtables");
    app.add_option("--fast-directory", fast, "where tables of upper levels go, from now on");
    app.add_option("--fast-levels", fast_levels, "how many levels those are")
        ->check(CLI::Range(0U, lsm::levels));
    app.require_subcommand(1);
    const auto command = [&](const char *name, const char *what) {
        return app.add_subcommand(name, what);
    };
    auto *on_get = command("get", "print the value of a key; status 1 if there is none");
    on_get->add_option("KEY", key)->required();
    auto *on_put = command("put", "store a pair; without a value, that is standard input");
    on_put->add_option("KEY", key)->required();
    on_put->add_option("VALUE", value);
    auto *on_delete = command("delete", "delete a key");
    on_delete->add_option("KEY", key)->required();
    auto *on_batch = command("batch", "read lines: KEY, a tab, VALUE puts; KEY deletes");
    on_batch->add_flag("--whole", whole, "all of it happens at once, or nothing");
    auto *on_scan = command("scan", "print pairs in order: KEY, a tab, VALUE");
    on_scan->add_option("FROM", from, "the first key");
    on_scan->add_option("TO", to, "the key behind the last");
    on_scan->add_option("--limit", limit, "print at most so many");
    auto *on_stats = command(
        "stats",
        "print for each level: number, tables, bytes; and for each memtable: where it is, bytes");
    auto *on_compact = command("compact", "merge everything into the lowest level");
    auto *on_collect = command("collect", "collect the garbage of files of values");
    auto *on_check =
        command("check", "read every table, check the container, and report what is damaged");
    std::ios::sync_with_stdio(true); // text::print_line() uses stdio
    try {
        app.parse(count, values);
    } catch (const CLI::ParseError &error) {
        return app.exit(error) ? misused : done;
    }

    try {
        lsm::Options options;
        options.create = on_put->parsed() || on_batch->parsed();
        options.memtables = lsm::memtables_of(memtables).value_or(lsm::Memtables::as_before);
        options.container = container;
        options.fast_directory = fast;
        options.fast_levels = fast_levels;
        auto store = lsm::Store::open(directory, options);
        Status status = done;
        if (on_get->parsed())
            status = get(*store, key);
        else if (on_put->parsed())
            store->put(key, value ? *value : standard_input(), {.sync = true});
        else if (on_delete->parsed())
            store->remove(key, {.sync = true});
        else if (on_batch->parsed())
            batch(*store, whole);
        else if (on_scan->parsed())
            scan(*store, from, to, limit);
        else if (on_stats->parsed())
            std::cout << *store->property("levels") << *store->property("memtables");
        else if (on_compact->parsed())
            store->compact();
        else if (on_collect->parsed())
            store->collect();
        else if (on_check->parsed())
            store->check();
        std::cout.flush();
        if (!std::cout || ferror(stdout))
            throw std::runtime_error("cannot write to standard output");
        return status;
    } catch (const std::exception &error) {
        std::cerr << "lsm: " << error.what() << '\n';
        return failed;
    }
}
