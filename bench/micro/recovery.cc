/*
 * How long pm_open() takes on a container of 1 GiB whose last transaction touched 100 pages and
 * was ended by SIGKILL. The file is still in memory, as after a process crash. Recovery must also
 * prove that the last commit is whole, so what that one wrote matters: as many pages, or all.
 */
#include "harness/clock.h"
#include "harness/random.h"
#include "harness/sample.h"
#include "micro/container.h"
#include "micro/micro.h"

#include <csignal>
#include <cstring>
#include <optional>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace bench
{
namespace
{

constexpr size_t page_size = 4096;
constexpr size_t size = 1 << 30;
constexpr uint32_t touched = 100;

/** Calls use(page) for 100 pages; the killed transaction touches those of `seed` 0. */
template <class Use> void each_touched(char *base, uint64_t seed, Use &&use)
{
    Random random(seed);
    for (uint32_t i = 0; i < touched; i++)
        use(base + page_size * random.below(size / page_size));
}

void run_victim(std::string name, std::string directory, std::string mode)
{
    char program[] = "/proc/self/exe";
    char *argv[] = {program, name.data(), directory.data(), mode.data(), nullptr};
    pid_t pid;
    int status;
    if ((errno = posix_spawn(&pid, program, nullptr, nullptr, argv, environ)) != 0)
        fail("posix_spawn");
    if (waitpid(pid, &status, 0) != pid)
        fail("waitpid");
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        throw std::runtime_error("the victim did not die by SIGKILL");
}

/** Fill the container, commit, do `small_commits` of 100 pages, change 100 more, and die. */
[[noreturn]] void change_and_die(const std::string &directory, const Mode &mode,
                                 uint64_t small_commits)
{
    Container container(directory, mode);
    char *base = static_cast<char *>(container.allocate(size));
    memset(base, 1, size);
    container.set_root(base);
    container.commit();
    for (uint64_t seed = 1; seed <= small_commits; seed++) {
        each_touched(base, seed, [](char *page) { page[1]++; });
        container.commit();
    }
    each_touched(base, 0, [](char *page) { page[0] = 2; });
    raise(SIGKILL);
    abort();
}

void measure(const char *victim, const char *commits_before, const std::string &directory,
             const Mode &mode)
{
    run_victim(victim, directory, mode.name);

    std::optional<Container> container;
    double by_clock = elapsed_ns([&] { container.emplace(directory, mode, 0); });
    struct pm_stats stats = container->stats();
    each_touched(static_cast<char *>(pm_getroot(*container)), 0, [](const char *page) {
        if (page[0] != 1)
            throw std::runtime_error("recovery restored the wrong state");
    });
    container.reset();
    Container::remove(directory, mode);

    auto report = [&](const char *what, double value, const char *unit) {
        emit({"recovery", {commits_before, what}, mode.name, value, unit});
    };
    report("pm_open() by the clock", by_clock, "ns");
    report("pm_stats.recovery_ns", static_cast<double>(stats.recovery_ns), "ns");
    report("pages restored", static_cast<double>(stats.recovered_pages), "pages");
}

} // namespace

void recovery_victim(const std::string &directory, const Mode &mode)
{
    change_and_die(directory, mode, 10);
}

void recovery_victim_of_large_commit(const std::string &directory, const Mode &mode)
{
    change_and_die(directory, mode, 0);
}

void recovery(const std::string &directory)
{
    for (const Mode &mode : modes) {
        measure("recovery-victim", "of 100 pages", directory, mode);
        measure("recovery-victim-of-large-commit", "of 1 GiB", directory, mode);
    }
}

} // namespace bench
