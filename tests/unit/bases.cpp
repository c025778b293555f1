// The examples' structures, written by code that pmcc compiled, which records where their pointers
// are. Copies of a container that are open together lie at other addresses each; there they are walked
// whole and changed, whether they have been moved on the medium or are for where they were.
#include "common/fixture.hpp"
#include "common/map.h"
#include "programs/programs.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

namespace
{

using Pairs = std::map<uint64_t, uint64_t>;

Pairs pairs(const map_ops &ops, const void *map)
{
    Pairs all;
    ops.walk(
        map,
        [](uint64_t key, uint64_t value, void *to) {
            static_cast<Pairs *>(to)->emplace(key, value);
            return 0;
        },
        &all);
    return all;
}

void change(pm_container *c, const map_ops &ops, Pairs &expected, std::mt19937_64 &random)
{
    void *map = pm_getroot(c);
    for (int i = 0; i < 300; i++) {
        uint64_t key = random() % 2000, value = random();
        if (random() % 3) {
            REQUIRE(ops.insert(c, map, key, value) >= 0);
            expected[key] = value;
        } else {
            REQUIRE(ops.remove(c, map, key) >= 0);
            expected.erase(key);
        }
    }
    REQUIRE_OK(pm_commit(c));
}

struct Program {
    int (*main)(int argc, char **argv);
    long (*count)(void *root);
    std::vector<std::string> arguments; // behind the container's name
    long counted;                       // when it has run with them once,
    long again;                         // and twice
};

void run(const Program &program, const std::string &path)
{
    std::vector<std::string> words = {"program", path};
    words.insert(words.end(), program.arguments.begin(), program.arguments.end());
    std::vector<char *> argv;
    for (std::string &word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    REQUIRE(program.main(static_cast<int>(words.size()), argv.data()) == 0);
}

std::string text(const std::string &path)
{
    std::ofstream out(path);
    for (int i = 0; i < 2000; i++)
        out << char('a' + i % 26) << char('a' + i % 25) << char('a' + i % 7)
            << (i % 9 ? ' ' : '\n');
    return path;
}

} // namespace

TEST_CASE("every structure is whole at seventy addresses at once")
{
    const unsigned relocated = GENERATE(0u, (unsigned)PM_RELOCATE);
    const pm_options how = test::small(PM_CREATE | PM_MOVABLE | relocated);
    for (const map_ops *ops : map_ops_all) {
        INFO(ops->name);
        test::Directory directory;
        const std::string path = directory / "original";
        std::mt19937_64 random(1);
        Pairs before;
        {
            test::Container c = test::open(path, how);
            void *map = ops->create(c.get());
            REQUIRE(map);
            REQUIRE_OK(pm_setroot(c.get(), map, 0));
            for (int i = 0; i < 10; i++)
                change(c.get(), *ops, before, random);
        }
        std::vector<test::Container> open;
        std::vector<Pairs> expected;
        std::set<const void *> bases;
        for (int i = 0; i < 70; i++) {
            std::string copy = directory / std::to_string(i);
            std::filesystem::copy_file(path, copy);
            open.push_back(test::open(copy, how));
            expected.push_back(before);
            struct pm_stats stats = test::stats(open.back().get());
            REQUIRE(bases.insert(stats.base).second);
            REQUIRE((stats.pointers_moved > 0) == (i > 0 && relocated));
            for (int times = 0; times < 2; times++) { // as it came, and as it becomes
                pm_container *c = open.back().get();
                REQUIRE_OK(pm_check(c));
                REQUIRE(ops->check(pm_getroot(c)) == nullptr);
                REQUIRE(pairs(*ops, pm_getroot(c)) == expected.back());
                change(c, *ops, expected.back(), random);
            }
        }
        open.clear();
        for (size_t i = 0; i < expected.size(); i++) { // where they are at home now
            test::Container c = test::open(directory / std::to_string(i), how);
            REQUIRE(test::stats(c.get()).pointers_moved == 0);
            REQUIRE(pairs(*ops, pm_getroot(c.get())) == expected[i]);
        }
    }
}

TEST_CASE(
    "the programs' containers are whole at twenty addresses at once, and the programs go on there",
    "[redo]")
{
    const unsigned relocated = GENERATE(0u, (unsigned)PM_RELOCATE);
    test::Directory texts;
    const pm_options how = test::small(PM_MOVABLE | relocated);
    const Program programs[] = {
        {ledger_main, ledger_postings, {"100"}, 100, 200},
        {wordindex_main, wordindex_words, {text(texts / "text")}, 2000, 2000}};
    for (const Program &program : programs) {
        test::Directory directory;
        const std::string path = directory / "original";
        run(program, path);
        std::vector<test::Container> open;
        std::set<const void *> bases;
        for (int i = 0; i < 20; i++) {
            std::filesystem::copy_file(path, directory / std::to_string(i));
            open.push_back(test::open(directory / std::to_string(i), how));
            pm_container *c = open.back().get();
            struct pm_stats stats = test::stats(c);
            REQUIRE(bases.insert(stats.base).second);
            REQUIRE((stats.pointers_moved > 0) == (i > 0 && relocated));
            REQUIRE_OK(pm_check(c));
            REQUIRE(program.count(pm_getroot(c)) == program.counted);
        }
        open.pop_back();
        run(program, directory / "19"); // where it is not at home, unless it was made to be
        test::Container c = test::open(directory / "19", how);
        REQUIRE(program.count(pm_getroot(c.get())) == program.again);
    }
}
