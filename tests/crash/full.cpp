// A container of the log engine on a disk that is nearly full, and SIGKILL. A child inserts, changes and frees
// objects of all sizes, so that they take 70 to 98 % of what the file may have. The disk is often full then, and
// the cleaner always at work. The parent kills the child, in its opening too. Another child opens the container,
// and compares it with a model. It must have the last commit that was waited for, or a later one, and no mixture.
//
// LIBPM_SECONDS is the time for each of two directories. LIBPM_SEED repeats all but the moments of the kills.
#include "crash/full.hpp"
#include "common/fixture.hpp"
#include "crash/spawn.hpp"

#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <random>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;
using full::Life;
using full::Model;
using full::Shared;

static uint64_t file_bytes_max; // then the disk is full

extern "C" int __real_file_allocate(int fd, uint64_t from, uint64_t to);
extern "C" int __wrap_file_allocate(int fd, uint64_t from, uint64_t to)
{
    struct stat st;
    const bool has_name = fstat(fd, &st) == 0 && st.st_nlink > 0; // libpm's memory has none
    return to > file_bytes_max && has_name ? -ENOSPC : __real_file_allocate(fd, from, to);
}

namespace
{

using Clock = std::chrono::steady_clock;

// Containers in a directory, one after the other, until the time is over.
class Campaign
{
  public:
    Campaign(const std::string &parent, uint64_t seed)
        : parent_(parent), seed_(seed), directory_(parent)
    {
        void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        shared_ = static_cast<Shared *>(memory);
        shared_->least = 100;
    }
    ~Campaign() { munmap(shared_, sizeof(Shared)); }
    Campaign(const Campaign &) = delete;

    void run_until(Clock::time_point end)
    {
        while (Clock::now() < end)
            live(end);
    }
    void tell() const
    {
        const Shared &s = *shared_;
        printf("%s in %s, seed %lu: %lu containers, %lu rounds, %lu kills, %lu commits, "
               "%lu of them with 70 %% in use or more, %lu to %lu %% in use, %lu rollbacks, "
               "%lu times ENOSPC, %lu openings, %lu compactions, %lu copies, violations none\n",
               test::mode().c_str(), parent_.c_str(), seed_, lives_, rounds_, kills_, +s.commits,
               +s.commits_at_70, std::min(+s.least, +s.most), +s.most, +s.rollbacks, +s.full,
               +s.openings, +s.compactions, +s.copies);
        fflush(stdout);
    }
    const Shared &shared() const { return *shared_; }
    uint64_t kills() const { return kills_; }

  private:
    // A container, and some forty kills.
    void live(Clock::time_point end)
    {
        const uint64_t seed = seed_ + lives_++;
        const Life life(seed);
        Model model(life.slots);
        std::mt19937_64 random(seed);
        fs::remove(path_);
        file_bytes_max = life.file_max;
        shared_->begun = shared_->awaited = 0;
        shared_->was_filled = false;
        for (uint64_t left = 1 + random() % 80; left > 0 && Clock::now() < end; left--) {
            shared_->changes = 0;
            // Some end by themselves. They show calls that never return.
            run(full::work, life, model, random(), random() % 8 == 0 ? 0 : delay(random));
            copy_to(killed_);
            for (uint64_t times = random() % 4 == 0 ? 1 + random() % 3 : 0; times > 0; times--)
                run(full::judge, life, model, random(), delay(random) / 8);
            run(full::judge, life, model, random(), 0);
            shared_->replay(model, shared_->found);
            shared_->begun = shared_->awaited = shared_->found;
            rounds_++;
        }
    }

    // Microseconds. Short ones are as frequent as long ones.
    static uint64_t delay(std::mt19937_64 &random)
    {
        return (uint64_t)std::exp2(std::uniform_real_distribution(8.0, 19.0)(random));
    }

    // A child does `what`, and is killed after so many microseconds; 0: it is not.
    void run(decltype(full::work) what, const Life &life, const Model &model, uint64_t seed,
             uint64_t kill_after)
    {
        fflush(nullptr);
        const pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            alarm(120);
            what(*shared_, path_, life, model, seed);
            _exit(0);
        }
        if (kill_after > 0) {
            usleep((useconds_t)kill_after);
            kill(child, SIGKILL);
        }
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        const bool killed = kill_after > 0 && test::killed(status, SIGKILL);
        kills_ += killed;
        if (killed || test::exited(status))
            return;
        const std::string kept = parent_ + "/crash_full-" + std::to_string(seed_);
        copy_to(kept);
        std::error_code none_yet;
        fs::rename(killed_, kept + ".killed", none_yet);
        FAIL(shared_->violation << " (wait status " << status << ", round " << rounds_
                                << "); the container is now " << kept << ", and was " << kept
                                << ".killed after the last kill; repeat with LIBPM_SEED="
                                << seed_ + lives_ - 1);
    }
    void copy_to(const std::string &other) const
    {
        std::error_code none_yet;
        fs::copy_file(path_, other, fs::copy_options::overwrite_existing, none_yet);
    }

    const std::string parent_;
    const uint64_t seed_;
    test::Directory directory_;
    const std::string path_ = directory_ / "full.pm", killed_ = directory_ / "killed.pm";
    Shared *shared_;
    uint64_t lives_ = 0, rounds_ = 0, kills_ = 0;
};

} // namespace

TEST_CASE("a container that is nearly full survives SIGKILL", "[crash]")
{
    const std::string parent = GENERATE("/dev/shm", "");
    Campaign campaign(parent.empty() ? fs::current_path().string() : parent,
                      crash::from_environment("LIBPM_SEED", std::random_device{}()));
    const std::chrono::seconds time(crash::from_environment("LIBPM_SECONDS", 2));
    const auto proves = [&] { return campaign.kills() > 0 && campaign.shared().commits > 10; };
    for (int turn = 0; turn < 10 && !proves(); turn++) // on a busy machine
        campaign.run_until(Clock::now() + time);
    campaign.tell();
    // Else nothing was proved.
    CHECK(campaign.kills() > 0);
    CHECK(campaign.shared().commits > 10);
    if (time >= std::chrono::minutes(1)) {
        CHECK(campaign.shared().commits_at_70 > 0);
        CHECK(campaign.shared().full > 10);
    }
}
