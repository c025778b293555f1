// The power fails at random events, and again inside the recovery that follows: on pmem by lines,
// on an ordinary file by sectors.
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

struct Medium {
    std::string worker;
    std::vector<std::string> modes;
    unsigned first;          // events until the first failure, at most
    unsigned later[4];       // until the next ones: one of these at most
    uint64_t unacknowledged; // commits that may be there although they have not returned
    unsigned share;          // of the chains; files take longer
    bool coarse = false;     // LIBPM_POWER_COARSE
};

const Medium pmem = {WORKER_POWER, {"rollback"}, 12000, {40, 400, 1500, 1500}, 1, 1};
// Under the log engine the file grows with each commit, and each recovery reads all of it. So the first failure
// comes soon, and there are fewer chains. LIBPM_FAILURES=500 runs as many as elsewhere.
const Medium pmem_log = {WORKER_POWER, {"rollback"}, 1500, {40, 400, 1500, 1500}, 1, 5};
// Failures mostly between a record and its fence.
const Medium pmem_coarse = {WORKER_POWER, {"rollback"}, 60, {2, 4, 10, 30}, 1, 1, true};
// Records run over several segments, and each use the log's last ones again.
const Medium pmem_large = {
    WORKER_POWER, {"rollback", "large"}, 100, {4, 10, 30, 60}, crash::LARGE_TRANSACTIONS, 2, true};
const Medium file = {WORKER_FILE_POWER, {"rollback"}, 300, {4, 10, 30, 60}, 1, 4};
const Medium file_async = {WORKER_FILE_POWER, {"rollback", "async"}, 300,
                           {4, 10, 30, 60},   crash::ASYNC_COMMITS,  4};
// The log is so small that home's pages go to the file all the time.
const Medium file_tight = {WORKER_FILE_POWER,
                           {"large", "async", "tight"},
                           250,
                           {10, 60, 150, 250},
                           crash::LARGE_TRANSACTIONS *crash::ASYNC_COMMITS,
                           4};

// One container through a chain of failures, the later ones in or soon after the recovery from
// the one before.
class Chain
{
  public:
    Chain(const Medium &medium, const std::string &structure, uint64_t seed)
        : medium_(medium), structure_(structure), random_(seed), workload_(random_()),
          file_(directory_ / "0")
    {
    }

    // Run until the next failure. Empty, or what is wrong already.
    std::string fail(uint64_t event)
    {
        std::string next = directory_ / std::to_string(++runs_);
        std::string kind = random_() % 3 ? "power" : "process";
        std::string power = next + " " + std::to_string(event) + " " + std::to_string(random_()) +
                            " " + kind + " " + image_;
        setenv("LIBPM_POWER", power.c_str(), 1);
        setenv("LIBPM_POWER_COARSE", medium_.coarse ? "1" : "0", 1);
        std::vector<std::string> command = {medium_.worker + crash::suffix(), file_, structure_,
                                            std::to_string(workload_), "image"};
        command.insert(command.end(), medium_.modes.begin(), medium_.modes.end());
        crash::Outcome o = crash::run(command);
        if (!WIFEXITED(o.status) || WEXITSTATUS(o.status) != crash::POWER_FAILED)
            return "the worker ended by itself";
        if (o.ready) {
            if (!may_be(o.found))
                return "transactions " + std::to_string(o.found) + " were found after " +
                       std::to_string(acknowledged_);
            acknowledged_ = o.found + o.commits;
            commits_ += o.commits;
        } else {
            before_ready_++;
        }
        file_ = next;
        image_ = kind == "process" ? next + ".image" : "-";
        return "";
    }

    // What is wrong with the container now; empty if nothing.
    std::string judge() const
    {
        pm_options options = test::options(PM_ACCEPT_COPY);
        test::Container c(pm_open(file_.c_str(), &options));
        if (!c)
            return std::string("it does not open: ") + pm_errormsg();
        if (pm_check(c.get()) != 0)
            return pm_errormsg();
        auto *root = static_cast<crash::Root *>(pm_getroot(c.get()));
        if (!root) // the very first commit, of the empty structure, had not returned
            return acknowledged_ == 0 ? "" : "the root is gone";
        uint64_t found = root->transactions;
        if (!may_be(found))
            return "it is at transaction " + std::to_string(found) + ", but " +
                   std::to_string(acknowledged_) + " commits returned";
        crash::Model model(workload_);
        model.advance_to(found);
        return model.compare(crash::ops_by_name(structure_), *root);
    }

    uint64_t commits() const { return commits_; }
    uint64_t before_ready() const { return before_ready_; }

  private:
    bool may_be(uint64_t found) const
    {
        return found >= acknowledged_ && found <= acknowledged_ + medium_.unacknowledged;
    }

    const Medium &medium_;
    test::Directory directory_;
    std::string structure_;
    std::mt19937_64 random_;
    uint64_t workload_;
    std::string file_, image_ = "-";
    unsigned runs_ = 0;
    uint64_t acknowledged_ = 0, commits_ = 0, before_ready_ = 0;
};

void require_no_violation(const Medium &medium, const std::string &structure)
{
    uint64_t seed = crash::from_environment("LIBPM_SEED", std::random_device{}());
    uint64_t chains = crash::from_environment("LIBPM_FAILURES", 100) / medium.share;
    std::mt19937_64 random(seed);
    uint64_t failures = 0, before_ready = 0, commits = 0;
    const uint64_t most = 20 * chains; // of few chains, none may fail in a recovery
    for (uint64_t i = 0; i < chains || (before_ready == 0 && i < most); i++) {
        INFO("repeat with LIBPM_SEED=" << seed << " LIBPM_FAILURES=" << chains * medium.share
                                       << ", chain " << i);
        Chain chain(medium, structure, random());
        unsigned more = random() % 5;
        REQUIRE(chain.fail(1 + random() % medium.first) == "");
        for (unsigned run = 0; run < more; run++) {
            // Recovery has some hundred events on pmem, the first transaction after it as many.
            unsigned span = medium.later[random() % 4];
            REQUIRE(chain.fail(1 + random() % span) == "");
        }
        REQUIRE(chain.judge() == "");
        failures += 1 + more;
        before_ready += chain.before_ready();
        commits += chain.commits();
    }
    WARN(structure << ": " << failures << " failures of power or process, " << before_ready
                   << " of them before a recovery was over, " << commits << " commits returned");
    REQUIRE(commits > chains);
    REQUIRE(before_ready > 0);
}

// A violation within so many chains.
bool notices(Medium medium, const std::string &worker)
{
    medium.worker = worker;
    std::mt19937_64 random(1);
    for (int i = 0; i < 100; i++) {
        Chain chain(medium, "rbtree", random());
        for (unsigned run = 0; run < 4; run++)
            if (chain.fail(1 + random() % (medium.first / 2)) != "")
                return true;
        if (chain.judge() != "")
            return true;
    }
    return false;
}

} // namespace

TEST_CASE("structures survive power failure at any event", "[crash]")
{
    require_no_violation(test::engine() == "log" ? pmem_log : pmem,
                         GENERATE("rbtree", "btree", "skiplist", "hashmap"));
}

TEST_CASE("so they do at the end of commits", "[crash]")
{
    require_no_violation(pmem_coarse, "rbtree");
}

TEST_CASE("so they do when records run over several segments", "[crash][private]")
{
    require_no_violation(pmem_large, "btree");
}

TEST_CASE("so they do on an ordinary file", "[crash][private]")
{
    require_no_violation(file, GENERATE("rbtree", "btree", "hashmap"));
}

TEST_CASE("and so does what was waited for", "[crash][private]")
{
    require_no_violation(file_async, "skiplist");
    require_no_violation(file_tight, "btree");
}

TEST_CASE("this suite notices commits that do not fence", "[crash]")
{
    REQUIRE(notices(pmem, WORKER_NO_FENCE));
}

TEST_CASE("this suite notices commits that do not wait for the file", "[crash][private]")
{
    REQUIRE(notices(file, WORKER_NO_SYNC));
}
