// SIGKILL at random moments. The state found afterwards must be exactly the one after the last
// commit that returned, or after the one that was under way.
//
// LIBPM_SEED repeats a failing run; LIBPM_KILLS sets the kills of each structure.
#include "common/fixture.hpp"
#include "crash/spawn.hpp"
#include "crash/workload.hpp"

#include <csignal>
#include <filesystem>
#include <random>
#include <sys/vfs.h>

namespace
{

struct Campaign {
    std::string worker = WORKER_PLAIN;
    std::string structure;
    std::vector<std::string> modes;
    std::string directory = "/dev/shm";
    unsigned kills;
    uint64_t seed;
    uint64_t unacknowledged = 1; // commits that may be there although they have not returned
};

struct Verdict {
    std::string violation; // empty: none
    unsigned kills = 0;
    uint64_t commits = 0, recoveries = 0, pages = 0;
};

// What is wrong with the container after a kill, given the commits that must be there.
std::string judge(const std::string &path, const Campaign &campaign, crash::Model &model,
                  uint64_t acknowledged, uint64_t &found, Verdict &verdict)
{
    pm_options options = test::options(PM_UNSAFE_POWER);
    test::Container c(pm_open(path.c_str(), &options));
    if (!c)
        return std::string("it does not open: ") + pm_errormsg();
    struct pm_stats stats = test::stats(c.get());
    if (stats.engine != test::engine())
        return "it is opened by the other engine";
    verdict.recoveries += stats.recovered;
    verdict.pages += stats.recovered_pages;
    auto *root = static_cast<crash::Root *>(pm_getroot(c.get()));
    if (!root)
        return "the root is gone";
    found = root->transactions;
    if (found < acknowledged || found > acknowledged + campaign.unacknowledged)
        return "it is at transaction " + std::to_string(found) + ", but " +
               std::to_string(acknowledged) + " commits returned";
    if (pm_check(c.get()) != 0)
        return pm_errormsg();
    model.advance_to(found);
    return model.compare(crash::ops_by_name(campaign.structure), *root);
}

Verdict run(const Campaign &campaign)
{
    test::Directory directory(campaign.directory);
    std::string path = directory / "container";
    std::vector<std::string> command = {campaign.worker + crash::suffix(), path, campaign.structure,
                                        std::to_string(campaign.seed)};
    command.insert(command.end(), campaign.modes.begin(), campaign.modes.end());
    std::mt19937_64 random(campaign.seed);
    crash::Model model(campaign.seed);
    Verdict verdict;
    uint64_t acknowledged = 0;
    while (verdict.kills < campaign.kills) {
        // At every second kill something has been committed, however slow the machine is.
        uint64_t first = verdict.kills % 2 == 0 ? 2 : 0;
        crash::Outcome outcome = crash::run_and_kill(command, first, random() % 30000);
        if (!test::killed(outcome.status, SIGKILL)) {
            verdict.violation = "the worker ended by itself";
            return verdict;
        }
        verdict.kills++;
        verdict.commits += outcome.commits;
        acknowledged += outcome.commits;
        verdict.violation = judge(path, campaign, model, acknowledged, acknowledged, verdict);
        if (!verdict.violation.empty())
            return verdict;
    }
    return verdict;
}

void require_no_violation(const Campaign &campaign)
{
    Verdict verdict = run(campaign);
    WARN(campaign.structure << ": " << verdict.kills << " kills, " << verdict.commits
                            << " commits returned, " << verdict.recoveries << " recoveries of "
                            << verdict.pages << " pages");
    INFO("repeat with LIBPM_SEED=" << campaign.seed << " LIBPM_KILLS=" << campaign.kills);
    CHECK(verdict.violation == "");
    REQUIRE(verdict.kills == campaign.kills);
    // Else nothing was proved.
    REQUIRE(verdict.commits >= campaign.kills);
    REQUIRE(verdict.recoveries >= campaign.kills / 2);
}

} // namespace

TEST_CASE("structures survive SIGKILL at any moment", "[crash]")
{
    Campaign campaign;
    campaign.structure = GENERATE("rbtree", "btree", "skiplist", "hashmap");
    campaign.kills = (unsigned)crash::from_environment("LIBPM_KILLS", 100);
    campaign.seed = crash::from_environment("LIBPM_SEED", std::random_device{}());
    campaign.modes = {"rollback"};
    require_no_violation(campaign);
}

TEST_CASE("so they do when threads may store during commits", "[crash][faults]")
{
    Campaign campaign;
    campaign.structure = GENERATE("rbtree", "hashmap");
    campaign.kills = (unsigned)crash::from_environment("LIBPM_KILLS", 100) / 4;
    campaign.seed = crash::from_environment("LIBPM_SEED", std::random_device{}());
    campaign.modes = {"concurrent", "rollback"};
    require_no_violation(campaign);
}

TEST_CASE("and on an ordinary file", "[crash]")
{
    Campaign campaign;
    campaign.structure = "btree";
    campaign.directory = std::filesystem::current_path();
    struct statfs fs;
    REQUIRE(statfs(campaign.directory.c_str(), &fs) == 0);
    REQUIRE(fs.f_type != 0x01021994); // tmpfs would be pmem
    campaign.kills = (unsigned)crash::from_environment("LIBPM_KILLS", 100) / 4;
    campaign.seed = crash::from_environment("LIBPM_SEED", std::random_device{}());
    campaign.modes = {"file"};
    require_no_violation(campaign);
}

TEST_CASE("commits that nobody waited for may be lost, but the last ones only", "[crash][private]")
{
    Campaign campaign;
    campaign.structure = "rbtree";
    if (GENERATE(true, false))
        campaign.directory = std::filesystem::current_path();
    campaign.kills = (unsigned)crash::from_environment("LIBPM_KILLS", 100) / 4;
    campaign.seed = crash::from_environment("LIBPM_SEED", std::random_device{}());
    campaign.modes = {"async"};
    campaign.unacknowledged = crash::ASYNC_COMMITS;
    require_no_violation(campaign);
}

TEST_CASE("this suite notices commits without a record", "[crash][redo]")
{
    Campaign campaign;
    campaign.structure = GENERATE("rbtree", "hashmap");
    campaign.worker = WORKER_NO_RECORD;
    campaign.directory = std::filesystem::current_path(); // where home lags behind
    campaign.kills = 20;
    campaign.seed = 1;
    Verdict verdict = run(campaign);
    INFO("after " << verdict.kills << " kills");
    REQUIRE(verdict.violation != "");
}

TEST_CASE("this suite notices a handler that takes no pre-images", "[crash][undo]")
{
    Campaign campaign;
    campaign.worker = WORKER_NO_IMAGES;
    campaign.structure = GENERATE("rbtree", "btree", "skiplist", "hashmap");
    campaign.kills = 50;
    campaign.seed = 1;
    Verdict verdict = run(campaign);
    INFO("after " << verdict.kills << " kills");
    REQUIRE(verdict.violation != "");
}
