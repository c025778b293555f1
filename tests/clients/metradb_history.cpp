// A program for `pm crash`: a history of transactions on a METRADB container, and its own check.
//
//     metradb_history FILE COUNT       do COUNT transactions, and say so after each
//     metradb_history --check FILE     the pairs are exactly those of the transactions that were said
//                                      to be done, or of one more
//
// The history is always the same, so that what a container should hold can be computed.
#include "common/mode.hpp"

#include <metradb.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace
{

using Model = std::map<std::string, std::string>;

struct Change {
    std::string key;
    std::optional<std::string> value; // none: the key is deleted
};

Change put(int key, int version)
{
    // Larger than a page too, so that values are torn if any are. Few sizes, for each takes a segment
    // of the container, and so time.
    static constexpr size_t sizes[] = {0, 40, 5000};
    size_t size = sizes[(key + version) % 3];
    return {"key" + std::to_string(10 + key), std::string(size, static_cast<char>('a' + version))};
}

// The i-th transaction, from 1 on: by turns a new pair, another value for an old one, a batch, a
// deletion.
std::vector<Change> transaction(int i)
{
    switch (i % 4) {
    case 1:
        return {put(i, i)};
    case 2:
        return {put(i - 1, i)};
    case 3:
        return {put(0, i), put(i, i), put(i - 2, i), put(0, i + 1), {put(i - 1, i)}};
    default:
        return {{put(i - 3, 0).key, std::nullopt}};
    }
}

[[noreturn]] void fail(const char *what)
{
    printf("%s: %s\n", what, metradb_errormsg());
    exit(2);
}

metradb_bytes bytes(const std::string &text)
{
    return metradb_ref(text.data(), text.size());
}

bool change(metradb *db, const std::vector<Change> &changes)
{
    if (!changes[0].value)
        return metradb_delete(db, bytes(changes[0].key)) == 1;
    if (changes.size() == 1)
        return metradb_put(db, bytes(changes[0].key), bytes(*changes[0].value)) >= 0;
    std::vector<metradb_pair> pairs;
    for (const Change &c : changes)
        pairs.push_back({bytes(c.key), bytes(*c.value)});
    return metradb_put_many(db, pairs.data(), pairs.size()) == 0;
}

metradb *create(const char *path)
{
    metradb_options o{};
    o.flags = METRADB_CREATE;
    o.key_size = 5;
    o.buckets = 3;
    o.engine = test::engine_option();
    return metradb_open(path, &o);
}

int run(const char *path, int count)
{
    metradb *db = create(path);
    if (!db)
        fail("open");
    for (int i = 1; i <= count; i++) {
        if (!change(db, transaction(i + 1)) || metradb_abort(db) != 0)
            fail("abort");
        if (!change(db, transaction(i)) || metradb_commit(db) != 0)
            fail("commit");
        printf("done %d\n", i);
    }
    if (metradb_close(db) != 0)
        fail("close");
    return 0;
}

Model after(int transactions)
{
    Model model;
    for (int i = 1; i <= transactions; i++)
        for (const Change &c : transaction(i))
            if (c.value)
                model[c.key] = *c.value;
            else
                model.erase(c.key);
    return model;
}

Model contents(const metradb *db)
{
    Model found;
    metradb_cursor cursor{};
    metradb_pair pair;
    while (metradb_next(db, &cursor, &pair))
        found.emplace(std::string(static_cast<const char *>(pair.key.data), pair.key.size),
                      std::string(static_cast<const char *>(pair.value.data), pair.value.size));
    return found;
}

// How many transactions the program had said were done.
int promised()
{
    int number = 0;
    if (const char *path = getenv("LIBPM_CRASH_OUTPUT")) {
        std::ifstream output(path);
        std::string word;
        while (output >> word >> number)
            ;
    }
    return number;
}

int check(const char *path)
{
    int least = promised();
    metradb *db = metradb_open(path, nullptr);
    if (!db && errno == ENODATA && least == 0) { // it can be removed, and created to the end
        const std::string copy = std::string(path) + ".copy";
        std::filesystem::copy_file(path, copy);
        if (metradb_remove(copy.c_str()) != 0 || !(db = create(path)))
            fail("unfinished");
    }
    if (!db || metradb_check(db) != 0)
        fail("check");
    Model found = contents(db);
    metradb_close(db);
    if (found == after(least) || found == after(least + 1))
        return 0;
    printf("the pairs are not those of %d transactions, nor of one more\n", least);
    return 1;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--check") == 0) /* it may have come that far, or less */
        return check(argv[2]);
    if (argc == 3)
        return run(argv[1], atoi(argv[2]));
    fprintf(stderr, "usage: metradb_history FILE COUNT, or metradb_history --check FILE COUNT\n");
    return 2;
}
