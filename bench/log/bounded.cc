/*
 * A log container whose memory is bounded (options.private_max), beside one that is in memory as a whole. How
 * long does it take to open, what memory does home take, and how long do the first accesses to pages take? The
 * third time it is opened from a checkpoint.
 *
 * Values of 128 bytes, allocated in turn. "random": pages in random order, each once, so each is missed.
 *
 * With --stored 3 each value was stored to three times on average, in random order, 20 a commit. Then the lines of
 * a page are scattered in the file. With --cold the file leaves the page cache before each opening, and only a
 * sample of pages is loaded from.
 *
 * With --behind a process stores to values, and dies when the log has so many mebibytes behind the last
 * checkpoint. How long does the next opening take?
 *
 * With --large the container is larger than memory: values of 4 KiB, a sample of them is read, and stored to
 * with a commit each, beside a read(2) of a page of the same file. Run it where memory is limited.
 */
#include "harness/clock.h"
#include "harness/memory.h"
#include "harness/sample.h"
#include "harness/status.h"

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <filesystem>
#include <libpm.h>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench
{
namespace
{

constexpr uint64_t MiB = 1 << 20, PAGE = 4096, SAMPLE = 1000;

struct Setting {
    std::string path;
    uint64_t mebibytes, private_mebibytes;
    uint64_t stored = 0, behind = 0;
    bool cold = false, large = false;
    std::string order = "random";
    uint64_t value() const { return large ? PAGE : 128; }
    uint64_t count() const { return mebibytes * MiB / value(); }
};

void check(bool holds, const char *what)
{
    if (!holds)
        throw std::runtime_error(std::string(what) + ": " + pm_errormsg());
}

/** `announced`: the program announces its stores, and no checkpoint is due before the close. */
pm_container *open(const Setting &setting, unsigned flags, bool bounded, bool announced = false)
{
    pm_options options{};
    options.size = sizeof options;
    options.flags = flags;
    options.engine = PM_ENGINE_LOG;
    if (setting.large) { // the allocator needs a page for each segment
        options.max_size = std::max(64 * 1024 * MiB, 2 * setting.mebibytes * MiB);
        options.segment_size = 16 * MiB;
    }
    if (announced) {
        options.flags |= PM_ANNOUNCED;
        options.tracker = PM_TRACKER_STORES;
        options.checkpoint_bytes = UINT64_MAX / 2;
    }
    if (bounded)
        options.private_max = setting.private_mebibytes * MiB;
    pm_container *c = pm_open(setting.path.c_str(), &options);
    check(c, "pm_open");
    return c;
}

void make(const Setting &setting)
{
    const uint64_t count = setting.count();
    pm_container *c = open(setting, PM_CREATE | PM_EXCLUSIVE, true);
    char **values = static_cast<char **>(pm_malloc(c, count * sizeof *values));
    check(values && pm_setroot(c, values, 0) == 0, "pm_malloc");
    for (uint64_t i = 0; i < count; i++) {
        values[i] = static_cast<char *>(pm_malloc(c, setting.value()));
        check(values[i], "pm_malloc");
        memset(values[i], (int)i + 1, setting.value());
        if (i % 1000 == 999)
            check(pm_commit(c) == 0, "pm_commit");
    }
    check(pm_commit(c) == 0 && pm_close(c) == 0, "pm_close");
}

/** Store to values in random order, each as a whole. */
void scatter(const Setting &setting)
{
    const uint64_t count = setting.count(), together = 20;
    pm_container *c = open(setting, 0, false);
    char **values = static_cast<char **>(pm_getroot(c));
    std::mt19937_64 random(1);
    for (uint64_t i = 0; i < setting.stored * count; i++) {
        char *value = values[random() % count];
        check(pm_dirty(value, setting.value()) == 0, "pm_dirty");
        memset(value, value[0] + 1, setting.value());
        if (i % together == together - 1) // nobody waits for the disk
            check(pm_commit_async(c).container != nullptr, "pm_commit_async");
    }
    check(pm_commit(c) == 0 && pm_close(c) == 0, "pm_close");
}

void leave_cache(const Setting &setting)
{
    const int file = ::open(setting.path.c_str(), O_RDONLY | O_CLOEXEC);
    check(file >= 0 && fsync(file) == 0 && posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0,
          "posix_fadvise");
    close(file);
}

/** Time a load from each page, in the order of `pages`. */
double touch(const std::vector<const volatile char *> &pages)
{
    const double ns = elapsed_ns([&] {
        for (const volatile char *page : pages)
            (void)*page;
    });
    return ns / (double)pages.size();
}

std::vector<const volatile char *> pages_of(char *const *values, uint64_t count)
{
    std::vector<const volatile char *> pages;
    for (uint64_t i = 0; i < count; i++)
        if (pages.empty() || ((uintptr_t)pages.back() ^ (uintptr_t)values[i]) >= PAGE)
            pages.push_back(values[i]);
    return pages;
}

void measure(const Setting &setting, bool bounded, const char *peer)
{
    const uint64_t count = setting.count();
    const auto report = [&](const char *what, double value, const char *unit, uint64_t operations) {
        emit({"bounded", {what}, peer, value, unit, operations});
    };
    const auto report_loads = [&](const char *order, const auto &pages) {
        double ns = 0;
        const double processor = processor_ns([&] { ns = touch(pages); });
        report((std::string("load from a page, ") + order).c_str(), ns, "ns", pages.size());
        report((std::string("of the processor, ") + order).c_str(),
               processor / (double)pages.size(), "ns", pages.size());
    };
    pm_container *c = nullptr;
    if (setting.cold)
        leave_cache(setting);
    report("pm_open", elapsed_ns([&] { c = open(setting, 0, bounded); }), "ns", 1);
    report("memory of home then", home_bytes(), "bytes", 1);
    auto pages = pages_of(static_cast<char **>(pm_getroot(c)), count);
    if (!setting.cold)
        report_loads("in order", pages);
    std::shuffle(pages.begin(), pages.end(), std::mt19937(1));
    if (setting.cold)
        pages.resize(std::min<size_t>(pages.size(), SAMPLE));
    report_loads("random", pages);
    report("memory of home in the end", home_bytes(), "bytes", 1);
    check(pm_close(c) == 0, "pm_close");
}

struct pm_stats stats_of(pm_container *c)
{
    struct pm_stats stats{};
    stats.size = sizeof stats;
    check(pm_stats(c, &stats) == 0, "pm_stats");
    return stats;
}

/** Store to values, one a commit, until the log has so many bytes more. */
void store_behind_checkpoint(const Setting &setting)
{
    constexpr uint64_t some = 1000; // commits: pm_stats() takes long
    pm_container *c = open(setting, 0, true, true);
    char **values = static_cast<char **>(pm_getroot(c));
    std::mt19937_64 random(1);
    const uint64_t end = stats_of(c).bytes_logged + setting.behind * MiB;
    for (uint64_t i = 0; i % some != 0 || stats_of(c).bytes_logged < end; i++) {
        char *value = values[(setting.order == "random" ? random() : i) % setting.count()];
        check(pm_dirty(value, setting.value()) == 0, "pm_dirty");
        for (uint64_t at = 0; at < setting.value(); at++)
            value[at]++;
        check(pm_commit(c) == 0, "pm_commit");
    }
}

void measure_crash(const Setting &setting)
{
    const pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) // libpm does not work in a child of a process that has used it
        _exit(status_of([&] {
            make(setting);
            store_behind_checkpoint(setting);
        }));
    int status = 0;
    check(waitpid(child, &status, 0) == child && status == 0, "the process that dies");
    const auto report = [&](const char *what, double value, const char *unit) {
        emit({"crash", {setting.order, what}, "bounded", value, unit, 1});
    };
    pm_container *c = nullptr;
    double processor = 0;
    report("pm_open",
           elapsed_ns([&] { processor = processor_ns([&] { c = open(setting, 0, true); }); }),
           "ns");
    report("pm_open, of the processor", processor, "ns");
    const struct pm_stats stats = stats_of(c);
    check(stats.recovered, "the container was closed");
    report("bytes of log that it reads", (double)stats.recovery_bytes, "bytes");
    report("memory of home then", home_bytes(), "bytes");
    check(pm_close(c) == 0, "pm_close");
}

void measure_large(const Setting &setting)
{
    const auto report = [&](const char *what, double value, const char *unit, uint64_t operations) {
        emit({"larger than memory", {what}, "checkpoint", value, unit, operations});
    };
    std::mt19937_64 random(1);
    pm_container *c = nullptr;
    report("pm_open", elapsed_ns([&] { c = open(setting, 0, true); }), "ns", 1);
    char **values = static_cast<char **>(pm_getroot(c));
    const double loads = elapsed_ns([&] {
        for (uint64_t i = 0; i < SAMPLE; i++) {
            const uint64_t at = random() % setting.count();
            check(values[at][0] == (char)(at + 1), "another value");
        }
    });
    report("load from a value, random", loads / SAMPLE, "ns", SAMPLE);
    const double updates = elapsed_ns([&] {
        for (uint64_t i = 0; i < SAMPLE; i++) {
            const uint64_t at = random() % setting.count();
            check(pm_dirty(values[at] + 1, 1) == 0, "pm_dirty");
            values[at][1]++;
            check(pm_commit(c) == 0, "pm_commit");
        }
    });
    report("store to a value and commit, random", updates / SAMPLE, "ns", SAMPLE);
    report("memory of home in the end", home_bytes(), "bytes", 1);
    report("anonymous memory in the end", status_bytes("RssAnon:"), "bytes", 1);
    report("page tables in the end", status_bytes("VmPTE:"), "bytes", 1);
    check(pm_close(c) == 0, "pm_close");
    const int file = ::open(setting.path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat st{};
    check(file >= 0 && fstat(file, &st) == 0, "open");
    char page[PAGE];
    const double reads = elapsed_ns([&] {
        for (uint64_t i = 0; i < SAMPLE; i++)
            check(pread(file, page, PAGE,
                        (off_t)(random() % ((uint64_t)st.st_size / PAGE) * PAGE)) == (ssize_t)PAGE,
                  "pread");
    });
    close(file);
    report("pread of a page of the file, random", reads / SAMPLE, "ns", SAMPLE);
    report("bytes of the file", (double)st.st_size, "bytes", 1);
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Setting setting{};
    CLI::App app("Time a log container whose memory is bounded");
    app.add_option("mebibytes", setting.mebibytes, "of values")->required();
    app.add_option("private_max", setting.private_mebibytes, "mebibytes")->required();
    app.add_option("path", setting.path, "file to create")->required();
    auto *stored = app.add_option("--stored", setting.stored,
                                  "times that each value was stored to, on average");
    auto *cold = app.add_flag("--cold", setting.cold, "the file is not in the page cache");
    auto *large = app.add_flag("--large", setting.large, "larger than memory");
    app.add_option("--behind", setting.behind, "mebibytes of log behind a checkpoint, and a crash")
        ->excludes(stored, cold, large);
    app.add_option("--order", setting.order, "of the stores before the crash")
        ->check(CLI::IsMember({"random", "together"}));
    CLI11_PARSE(app, argc, argv);
    return bench::status_of([&] {
        if (setting.behind == 0)
            bench::make(setting);
        if (setting.stored > 0)
            bench::scatter(setting);
        if (setting.behind > 0) {
            bench::measure_crash(setting);
        } else if (setting.large) {
            bench::measure_large(setting);
        } else {
            bench::measure(setting, false, "whole");
            bench::measure(setting, true,
                           "bounded"); // reads the whole log, too, and leaves a checkpoint
            bench::measure(setting, true, "checkpoint");
        }
        bench::check(pm_delete(setting.path.c_str()) == 0, "pm_delete");
    });
}
