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

std::string container_path(const std::string &directory)
{
    return directory + "/container";
}

/** Calls use(page) for 100 pages; the killed transaction touches those of `seed` 0. */
template <class Use> void each_touched(char *base, uint64_t seed, Use &&use)
{
    Random random(seed);
    for (uint32_t i = 0; i < touched; i++)
        use(base + page_size * random.below(size / page_size));
}

void run_victim(const char *name, std::string directory)
{
    char program[] = "/proc/self/exe";
    std::string word = name;
    char *argv[] = {program, word.data(), directory.data(), nullptr};
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
[[noreturn]] void change_and_die(const std::string &directory, uint64_t small_commits)
{
    Container container(container_path(directory));
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

void measure(const char *victim, const char *commits_before, const std::string &directory)
{
    run_victim(victim, directory);

    std::optional<Container> container;
    double by_clock = elapsed_ns([&] { container.emplace(container_path(directory), 0); });
    struct pm_stats stats = container->stats();
    each_touched(static_cast<char *>(pm_getroot(*container)), 0, [](const char *page) {
        if (page[0] != 1)
            throw std::runtime_error("recovery restored the wrong state");
    });
    container.reset();
    if (pm_delete(container_path(directory).c_str()) != 0)
        throw std::runtime_error(pm_errormsg());

    auto report = [&](const char *what, double value, const char *unit) {
        emit({"recovery", {commits_before, what}, "libpm", value, unit});
    };
    report("pm_open() by the clock", by_clock, "ns");
    report("pm_stats.recovery_ns", static_cast<double>(stats.recovery_ns), "ns");
    report("pages restored", static_cast<double>(stats.recovered_pages), "pages");
}

} // namespace

void recovery_victim(const std::string &directory)
{
    change_and_die(directory, 10);
}

void recovery_victim_of_large_commit(const std::string &directory)
{
    change_and_die(directory, 0);
}

void recovery(const std::string &directory)
{
    measure("recovery-victim", "of 100 pages", directory);
    measure("recovery-victim-of-large-commit", "of 1 GiB", directory);
}

} // namespace bench
