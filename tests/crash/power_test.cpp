// The power fails at random events, and again inside the recovery that follows.
//
// LIBPM_SEED repeats a failing run; LIBPM_FAILURES sets the failures of each structure.
#include "common/fixture.hpp"
#include "crash/power.hpp"
#include "crash/spawn.hpp"
#include "crash/workload.hpp"

#include <cstdlib>
#include <random>
#include <sys/wait.h>

namespace
{

uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? std::stoull(text) : otherwise;
}

std::string judge(const std::string &path, const std::string &structure, uint64_t seed,
                  uint64_t acknowledged)
{
    pm_options options = test::options();
    test::Container c(pm_open(path.c_str(), &options));
    if (!c)
        return std::string("it does not open: ") + pm_errormsg();
    if (pm_check(c.get()) != 0)
        return pm_errormsg();
    auto *root = static_cast<crash::Root *>(pm_getroot(c.get()));
    if (!root) // the very first commit, of the empty structure, had not returned
        return acknowledged == 0 ? "" : "the root is gone";
    uint64_t found = root->transactions;
    if (found != acknowledged && found != acknowledged + 1)
        return "it is at transaction " + std::to_string(found) + ", but " +
               std::to_string(acknowledged) + " commits returned";
    crash::Model model(seed);
    model.advance_to(found);
    return model.compare(crash::ops_by_name(structure), *root);
}

} // namespace

TEST_CASE("structures survive power failure at any event", "[crash]")
{
    std::string structure = GENERATE("rbtree", "btree", "skiplist", "hashmap");
    uint64_t seed = from_environment("LIBPM_SEED", std::random_device{}());
    uint64_t failures = from_environment("LIBPM_FAILURES", 150);
    std::mt19937_64 random(seed);
    uint64_t failed = 0, inside_recovery = 0, commits = 0;
    for (uint64_t i = 0; i < failures; i++) {
        INFO("repeat with LIBPM_SEED=" << seed << " LIBPM_FAILURES=" << failures << ", failure "
                                       << i);
        test::Directory directory;
        std::string live = directory / "live", image = directory / "image";
        uint64_t workload = random();
        auto fail_at = [&](const std::string &from, const std::string &to, uint64_t event) {
            std::string power = to + " " + std::to_string(event) + " " + std::to_string(random());
            setenv("LIBPM_POWER", power.c_str(), 1);
            return crash::run(
                {WORKER_POWER, from, structure, std::to_string(workload), "rollback"});
        };
        crash::Outcome outcome = fail_at(live, image, 1 + random() % 12000);
        REQUIRE(WIFEXITED(outcome.status));
        REQUIRE(WEXITSTATUS(outcome.status) == crash::POWER_FAILED);
        failed++;
        commits += outcome.commits;
        // The second failure is early: nearly always before the recovery is done.
        for (unsigned again = random() % 3; again > 0; again--) {
            std::string next = directory / ("image" + std::to_string(again));
            crash::Outcome second = fail_at(image, next, 1 + random() % 40);
            REQUIRE(WEXITSTATUS(second.status) == crash::POWER_FAILED);
            if (second.commits > 0)
                break; // it recovered and went on; `image` is still as it was before
            inside_recovery += !second.ready;
            image = next;
        }
        REQUIRE(judge(image, structure, workload, outcome.commits) == "");
    }
    WARN(structure << ": " << failed << " power failures, " << inside_recovery
                   << " more inside a recovery, " << commits << " commits returned");
    REQUIRE(commits > failures);
    REQUIRE(inside_recovery > 0);
}
