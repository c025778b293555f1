// A container changes hands between the engines, at every opening: closed cleanly or left by a dead
// process, on persistent memory and on an ordinary file. Whichever engine wrote the log, the other
// recovers from it.
#include "common/process.hpp"

#include <cstring>
#include <filesystem>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace
{

pm_options how(const std::string &engine, bool create = false)
{
    pm_options o = test::small(PM_UNSAFE_POWER | (create ? (unsigned)PM_CREATE : 0u));
    o.engine = engine == "undo" ? PM_ENGINE_UNDO : PM_ENGINE_REDO;
    o.tracker = PM_TRACKER_FAULTS;
    if (engine == "redo" && test::stores())
        o.tracker = PM_TRACKER_STORES;
    return o;
}

// Objects of round n: every word of them is n.
struct Root {
    uint64_t round;
    uint64_t *objects[40]; // NULL: none
    uint64_t words[40];
};

Root *root_of(pm_container *c)
{
    return static_cast<Root *>(pm_getroot(c));
}

// One transaction: changes some objects, frees some, makes some.
void run_round(pm_container *c)
{
    Root *root = root_of(c);
    uint64_t n = ++root->round;
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t *&object = root->objects[i];
        if ((i + n) % 3 == 0) {
            CHILD_REQUIRE(pm_free(object) == 0);
            object = nullptr;
        }
        if (!object && (i + n) % 4 != 0) {
            root->words[i] = 10 + (n * 37 + i * 997) % (i % 8 == 0 ? 30000 : 1500);
            object = static_cast<uint64_t *>(pm_malloc(c, root->words[i] * 8));
            CHILD_REQUIRE(object);
        }
        for (uint64_t k = 0; object && k < root->words[i]; k++)
            object[k] = n;
    }
}

std::string wrong(pm_container *c)
{
    Root *root = root_of(c);
    for (uint64_t i = 0; i < 40; i++)
        for (uint64_t k = 0; root->objects[i] && k < root->words[i]; k++)
            if (root->objects[i][k] != root->round)
                return "object " + std::to_string(i) + ", word " + std::to_string(k) + ": " +
                       std::to_string(root->objects[i][k]) + " in round " +
                       std::to_string(root->round);
    return "";
}

} // namespace

// arguments: path, engine, rounds to run, how to end
CHILD_PROCESS(runs_rounds)
{
    pm_options options = how(arguments[1]);
    pm_container *c = pm_open(arguments[0].c_str(), &options);
    CHILD_REQUIRE(c);
    CHILD_REQUIRE(std::string(test::stats(c).engine) == arguments[1]);
    CHILD_REQUIRE(wrong(c).empty());
    for (uint64_t i = 0, n = std::stoul(arguments[2]); i < n; i++) {
        run_round(c);
        CHILD_REQUIRE(pm_commit(c) == 0);
    }
    if (arguments[3] == "close")
        CHILD_REQUIRE(pm_close(c) == 0);
    if (arguments[3] == "die in a transaction")
        run_round(c);
    _exit(0);
}

TEST_CASE("engines take turns", "[redo]")
{
    std::string parent = GENERATE(as<std::string>(), "/dev/shm", "/var/tmp");
    test::Directory directory(parent);
    std::string path = directory / "c.pm";
    {
        pm_options options = how(GENERATE(as<std::string>(), "undo", "redo"), true);
        test::Container c = test::open(path, options);
        void *root = pm_calloc(c.get(), 1, sizeof(Root));
        REQUIRE(root);
        REQUIRE_OK(pm_setroot(c.get(), root, 0));
        REQUIRE_OK(pm_commit(c.get()));
    }
    const std::string engines[] = {"undo", "redo"};
    const std::string ends[] = {"close", "die", "die in a transaction"};
    uint64_t rounds = 0, step = 0;
    for (const std::string &end : ends)
        for (const std::string &next_end : ends)
            for (const std::string &engine : engines)
                for (uint64_t count : {0, 1, 2, 5}) {
                    const std::string &how_it_ends = step++ % 2 ? end : next_end;
                    INFO(engine << ", " << count << " rounds, then " << how_it_ends);
                    REQUIRE_CLEAN(test::run("runs_rounds",
                                            {path, engine, std::to_string(count), how_it_ends}));
                    rounds += count;
                    std::string reader = engines[step / 3 % 2]; // the same, or the other
                    test::Container c = test::open(path, how(reader));
                    REQUIRE(root_of(c.get())->round == rounds);
                    REQUIRE(wrong(c.get()) == "");
                    REQUIRE_OK(pm_check(c.get()));
                }
}

TEST_CASE("a container that a dead redo process left is read without writing", "[redo]")
{
    test::Directory directory("/var/tmp");
    std::string path = directory / "c.pm";
    {
        test::Container c = test::open(path, how("redo", true));
        void *root = pm_calloc(c.get(), 1, sizeof(Root));
        REQUIRE(root);
        REQUIRE_OK(pm_setroot(c.get(), root, 0));
        REQUIRE_OK(pm_commit(c.get()));
    }
    for (std::string end : {"die", "die in a transaction"}) {
        REQUIRE_CLEAN(test::run("runs_rounds", {path, "redo", "7", end}));
        std::string before = test::read_file(path);
        pm_options reading = test::options(PM_READONLY);
        {
            test::Container c = test::open(path, reading);
            REQUIRE(test::stats(c.get()).recovered);
            REQUIRE(root_of(c.get())->round == (end == "die" ? 7 : 14));
            REQUIRE(wrong(c.get()) == "");
            REQUIRE_OK(pm_check(c.get()));
            REQUIRE(pm_commit(c.get()) == -1);
            REQUIRE(test::failed_with(EROFS));
            test::Container second;
        }
        REQUIRE(test::read_file(path) == before);
    }
}
