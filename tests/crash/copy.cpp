// pm_copy() beside commits. A program runs transactions, and rolls some back. Meanwhile it copies its
// container again and again, in another thread or in the same. Each copy has exactly one commit's state.
// That commit had returned when the copy began, or began before the copy returned.
//
// LIBPM_SEED repeats a failing run; LIBPM_COPIES sets the copies of each case. `test_crash_copy
// --child tells_how_long_commits_wait /dev/shm 10` measures the pause.
#include "common/format.hpp"
#include "common/process.hpp"
#include "crash/spawn.hpp"
#include "crash/workload.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <linux/magic.h>
#include <optional>
#include <random>
#include <sstream>
#include <sys/vfs.h>
#include <thread>

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// How long a thread that sets `timed` has held a lock.
static thread_local bool timed;
static thread_local Clock::time_point taken;
static thread_local double longest_us;

static double microseconds_since(Clock::time_point start)
{
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

extern "C" {
struct lock;

void __real_lock_acquire_masked(struct lock *lock, sigset_t *saved);
void __real_lock_release_masked(struct lock *lock, const sigset_t *saved);

void __wrap_lock_acquire_masked(struct lock *lock, sigset_t *saved)
{
    __real_lock_acquire_masked(lock, saved);
    if (timed)
        taken = Clock::now();
}

void __wrap_lock_release_masked(struct lock *lock, const sigset_t *saved)
{
    if (timed)
        longest_us = std::max(longest_us, microseconds_since(taken));
    __real_lock_release_masked(lock, saved);
}
}

namespace
{

class Program
{
  public:
    // `modes`: words as those of worker.cpp, and `elsewhere`: at other addresses.
    Program(const std::string &path, const std::string &structure, uint64_t seed,
            const std::string &modes)
        : path_(path), ops_(crash::ops_by_name(structure)), seed_(seed), modes_(modes)
    {
        pm_options how = test::options(PM_CREATE | PM_UNSAFE_POWER);
        how.segment_size = 64 << 10;
        how.max_size = 256 << 20;
        how.concurrent_stores = has("concurrent");
        how.private_max = 4 << 20; // pages come and go
        c_ = pm_open(path.c_str(), &how);
        CHILD_REQUIRE(c_);
        root_ = static_cast<crash::Root *>(pm_calloc(c_, 1, sizeof *root_));
        CHILD_REQUIRE(root_ && pm_setroot(c_, root_, 0) == 0);
        CHILD_REQUIRE((root_->map = ops_.create(c_)) && pm_commit(c_) == 0);
        for (int i = 0; i < 20; i++)
            transact();
    }

    void transact()
    {
        uint64_t number = root_->transactions;
        if (number % 3 == 0) {
            crash::run_transaction(ops_, c_, root_, seed_ + 1, number); // any other
            CHILD_REQUIRE(pm_rollback(c_) == 0);
        }
        crash::run_transaction(ops_, c_, root_, seed_, number);
        begun_ = number + 1;
        CHILD_REQUIRE(pm_commit(c_) == 0);
        returned_ = number + 1;
    }

    // Leave something uncommitted, until settle().
    void disturb() { crash::run_transaction(ops_, c_, root_, seed_ + 2, root_->transactions); }
    void settle() { CHILD_REQUIRE(pm_rollback(c_) == 0); }

    // Says where the copy is and what it may hold.
    void copy(unsigned number, pm_progress *progress, void *context)
    {
        std::string to = path_ + "." + std::to_string(number);
        uint64_t low = returned_;
        if (pm_copy(c_, to.c_str(), progress, context) != 0)
            test::say(pm_errormsg());
        test::say((to + " " + std::to_string(low) + " " + std::to_string(begun_)).c_str());
    }

    // For some calls of a copy's callback, which come with each segment.
    bool is_next() { return calls_++ % 32 == 0; }

    bool has(const char *mode) const { return modes_.find(mode) != std::string::npos; }
    void close() { CHILD_REQUIRE(pm_close(c_) == 0); }

  private:
    std::string path_;
    const map_ops &ops_;
    uint64_t seed_;
    std::string modes_;
    pm_container *c_;
    crash::Root *root_;
    uint64_t calls_ = 0;
    std::atomic<uint64_t> begun_ = 0, returned_ = 0;
};

} // namespace

// arguments: path, structure, seed, modes, copies. Both threads run until all copies are made.
CHILD_PROCESS(copies_beside_commits)
{
    Program p(arguments[0], arguments[1], std::stoull(arguments[2]), arguments[3]);
    std::atomic<bool> done = false;
    std::thread copier([&] {
        for (unsigned i = 0; i < std::stoul(arguments[4]); i++)
            p.copy(i, nullptr, nullptr);
        done = true;
    });
    while (!done)
        p.transact();
    copier.join();
    p.close();
}

// The same in one thread: commits, rollbacks, and an open transaction at the end.
CHILD_PROCESS(commits_beside_copies)
{
    Program p(arguments[0], arguments[1], std::stoull(arguments[2]), arguments[3]);
    auto progress = [](void *program, uint64_t done, uint64_t total) {
        Program *q = static_cast<Program *>(program);
        if (done > total)
            return 1;
        if (done < total && !q->is_next())
            return 0;
        q->settle();
        if (done < total)
            q->transact();
        q->disturb();
        return 0;
    };
    for (unsigned i = 0; i < std::stoul(arguments[4]); i++) {
        p.copy(i, progress, &p);
        p.settle();
        p.transact();
    }
    p.close();
}

namespace
{

// Commits of `pages` random pages of a container of 256 MiB, one after another, for as long as a copy
// takes. The median over some copies, for others use the machine too.
void tell_pause(const std::string &parent, unsigned pages)
{
    constexpr uint64_t COPIES = 9, PAGES = 64 << 10;
    test::Directory directory(parent);
    pm_options how = test::options(PM_CREATE | PM_UNSAFE_POWER);
    how.max_size = 1 << 30;
    test::Container c = test::open_with_pages(directory / "c", PAGES, how);
    std::mt19937_64 random(1);
    std::vector<double> pauses, copies, alone, beside;
    auto commit = [&] {
        for (unsigned i = 0; i < pages; i++)
            test::page_word(c.get(), random() % PAGES) = random();
        auto start = Clock::now();
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
        return microseconds_since(start);
    };
    for (unsigned i = 0; i < COPIES; i++) {
        std::atomic<bool> done = false;
        std::string to = directory / std::to_string(i);
        std::thread copier([&] {
            timed = true;
            auto start = Clock::now();
            if (pm_copy(c.get(), to.c_str(), nullptr, nullptr) == 0)
                copies.push_back(microseconds_since(start));
            pauses.push_back(longest_us);
            done = true;
        });
        double most = 0;
        unsigned commits = 0;
        for (; !done; commits++)
            most = std::max(most, commit());
        copier.join();
        beside.push_back(most);
        for (most = 0; commits > 0; commits--)
            most = std::max(most, commit());
        alone.push_back(most);
        fs::remove(to);
    }
    CHILD_REQUIRE(copies.size() == COPIES);
    auto median = [](std::vector<double> all) {
        std::sort(all.begin(), all.end());
        return all[all.size() / 2];
    };
    printf("%s, %s, %u pages a commit: pause %.0f us, longest commit %.0f us beside a copy, %.0f "
           "us alone; a copy takes %.0f ms\n",
           test::mode().c_str(), parent.c_str(), pages, median(pauses), median(beside),
           median(alone), median(copies) / 1000);
}

} // namespace

// Not a test: a measurement, to be asked for. arguments: directory, pages a commit.
CHILD_PROCESS(tells_how_long_commits_wait)
{
    tell_pause(arguments[0], (unsigned)std::stoul(arguments[1]));
    fflush(stdout);
}

namespace
{

uint64_t objects_in(pm_container *c)
{
    uint64_t count = 0;
    for (void *p = nullptr; (p = pm_next_object(c, p, nullptr));)
        count++;
    return count;
}

// The same transactions, and nothing else.
class Reference
{
  public:
    Reference(const std::string &structure, uint64_t seed)
        : ops_(crash::ops_by_name(structure)), seed_(seed), model_(seed)
    {
        pm_options how = test::options(PM_CREATE);
        how.segment_size = 64 << 10;
        how.max_size = 256 << 20;
        c_ = test::open(directory_ / "reference", how);
        REQUIRE(lies_where(directory_ / "reference"));
        root_ = static_cast<crash::Root *>(pm_calloc(c_.get(), 1, sizeof *root_));
        REQUIRE(root_);
        root_->map = ops_.create(c_.get());
        REQUIRE(root_->map);
    }

    bool lies_where(const std::string &path) const
    {
        const uint64_t base = test::read_word(path, FORMAT_STATE + offsetof(format_state, base));
        return (uint64_t)test::stats(c_.get()).base == seal_payload(base);
    }

    // What is wrong with the copy; empty if nothing. Copies come in the order of their states.
    std::string judge(const std::string &path, uint64_t low, uint64_t high)
    {
        if (test::read_word(path, FORMAT_MARK) != MARK_CLOSED)
            return "it is not marked closed";
        for (unsigned flags : {(unsigned)PM_READONLY, 0u}) {
            pm_options how = test::options(flags | PM_UNSAFE_POWER);
            test::Container c(pm_open(path.c_str(), &how));
            if (!c || pm_check(c.get()) != 0)
                return pm_errormsg();
            if (test::stats(c.get()).recovered)
                return "it had to be recovered";
            auto *root = static_cast<crash::Root *>(pm_getroot(c.get()));
            if (!root)
                return "the root is gone";
            uint64_t found = root->transactions;
            if (found < low || found > high)
                return "it is at transaction " + std::to_string(found);
            while (root_->transactions < found)
                crash::run_transaction(ops_, c_.get(), root_, seed_, root_->transactions);
            model_.advance_to(found);
            std::string difference = model_.compare(ops_, *root);
            if (!difference.empty())
                return difference;
            if (objects_in(c.get()) != objects_in(c_.get()))
                return "it has " + std::to_string(objects_in(c.get())) + " objects, not " +
                       std::to_string(objects_in(c_.get()));
            if (flags & PM_READONLY)
                continue;
            crash::run_transaction(ops_, c.get(), root, 1, found); // it is as good as any other
            if (pm_commit(c.get()) != 0 || pm_check(c.get()) != 0)
                return pm_errormsg();
        }
        return "";
    }

  private:
    test::Directory directory_;
    const map_ops &ops_;
    uint64_t seed_;
    crash::Model model_;
    test::Container c_;
    crash::Root *root_;
};

void require_whole_copies(const char *child, const std::string &modes, const std::string &parent)
{
    uint64_t seed = crash::from_environment("LIBPM_SEED", std::random_device{}());
    unsigned copies = (unsigned)crash::from_environment("LIBPM_COPIES", 8), found = 0;
    std::string structure = GENERATE("rbtree", "hashmap");
    INFO("repeat with LIBPM_SEED=" << seed << ", " << structure);
    test::Directory directory(parent);
    test::Ended ended = test::run(
        child, {directory / "c", structure, std::to_string(seed), modes, std::to_string(copies)});
    INFO(ended.output << ended.errors);
    REQUIRE(test::exited(ended.status));
    std::optional<Reference> reference;
    do // until it has other addresses than the copies, which have their original's
        reference.emplace(structure, seed);
    while (reference->lies_where(directory / "c.0"));
    std::istringstream lines(ended.output);
    std::string path;
    uint64_t low, high;
    while (lines >> path >> low >> high) {
        found++;
        INFO(path << " of " << low << " to " << high);
        REQUIRE(reference->judge(path, low, high) == "");
    }
    REQUIRE(found == copies);
    for (const auto &entry : fs::directory_iterator(directory.path()))
        REQUIRE(entry.path().string().find(".new-") == std::string::npos);
}

std::string ordinary()
{
    struct statfs fs;
    REQUIRE(statfs(".", &fs) == 0);
    REQUIRE(fs.f_type != TMPFS_MAGIC);
    return fs::current_path();
}

} // namespace

TEST_CASE("copies beside the commits of another thread: memory that persists", "[crash]")
{
    require_whole_copies("copies_beside_commits", "", "/dev/shm");
}

TEST_CASE("copies beside the commits of another thread: an ordinary file", "[crash]")
{
    require_whole_copies("copies_beside_commits", "", ordinary());
}

TEST_CASE("copies where threads may store during commits", "[crash][faults]")
{
    require_whole_copies("copies_beside_commits", "concurrent", "/dev/shm");
}

TEST_CASE("commits, rollbacks and open transactions beside a copy, in one thread", "[crash]")
{
    require_whole_copies("commits_beside_copies", "", GENERATE("/dev/shm", "."));
}
