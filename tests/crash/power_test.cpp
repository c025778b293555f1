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

// One container through a chain of failures, the later ones in or soon after the recovery from
// the one before.
class Chain
{
  public:
    Chain(const std::string &structure, uint64_t seed)
        : structure_(structure), random_(seed), workload_(random_()), file_(directory_ / "0")
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
        crash::Outcome o =
            crash::run({WORKER_POWER, file_, structure_, std::to_string(workload_), "rollback"});
        if (!WIFEXITED(o.status) || WEXITSTATUS(o.status) != crash::POWER_FAILED)
            return "the worker ended by itself";
        if (o.ready) {
            if (o.found != acknowledged_ && o.found != acknowledged_ + 1)
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
        pm_options options = test::options();
        test::Container c(pm_open(file_.c_str(), &options));
        if (!c)
            return std::string("it does not open: ") + pm_errormsg();
        if (pm_check(c.get()) != 0)
            return pm_errormsg();
        auto *root = static_cast<crash::Root *>(pm_getroot(c.get()));
        if (!root) // the very first commit, of the empty structure, had not returned
            return acknowledged_ == 0 ? "" : "the root is gone";
        uint64_t found = root->transactions;
        if (found != acknowledged_ && found != acknowledged_ + 1)
            return "it is at transaction " + std::to_string(found) + ", but " +
                   std::to_string(acknowledged_) + " commits returned";
        crash::Model model(workload_);
        model.advance_to(found);
        return model.compare(crash::ops_by_name(structure_), *root);
    }

    uint64_t commits() const { return commits_; }
    uint64_t before_ready() const { return before_ready_; }

  private:
    test::Directory directory_;
    std::string structure_;
    std::mt19937_64 random_;
    uint64_t workload_;
    std::string file_, image_ = "-";
    unsigned runs_ = 0;
    uint64_t acknowledged_ = 0, commits_ = 0, before_ready_ = 0;
};

} // namespace

TEST_CASE("structures survive power failure at any event", "[crash]")
{
    std::string structure = GENERATE("rbtree", "btree", "skiplist", "hashmap");
    uint64_t seed = crash::from_environment("LIBPM_SEED", std::random_device{}());
    uint64_t chains = crash::from_environment("LIBPM_FAILURES", 100);
    std::mt19937_64 random(seed);
    uint64_t failures = 0, before_ready = 0, commits = 0;
    for (uint64_t i = 0; i < chains; i++) {
        INFO("repeat with LIBPM_SEED=" << seed << " LIBPM_FAILURES=" << chains << ", chain " << i);
        Chain chain(structure, random());
        unsigned more = random() % 5;
        REQUIRE(chain.fail(1 + random() % 12000) == "");
        for (unsigned run = 0; run < more; run++) {
            // Recovery has some hundred events, the first transaction after it as many.
            static const unsigned spans[] = {40, 400, 1500, 1500};
            REQUIRE(chain.fail(1 + random() % spans[random() % 4]) == "");
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
