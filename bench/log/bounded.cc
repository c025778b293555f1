/*
 * A log container whose memory is bounded (options.private_max), beside one that is in memory as a whole. How
 * long does it take to open, what memory does home take, and how long do the first accesses to pages take? The
 * third time it is opened from a checkpoint.
 *
 * Values of 128 bytes, allocated in turn. "random": pages in random order, each once, so each is missed.
 */
#include "harness/clock.h"
#include "harness/sample.h"
#include "harness/status.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <libpm.h>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string.h>
#include <sys/stat.h>

namespace bench
{
namespace
{

constexpr uint64_t MiB = 1 << 20, VALUE = 128, PAGE = 4096;

struct Setting {
    std::string path;
    uint64_t mebibytes, private_mebibytes;
};

void check(bool holds, const char *what)
{
    if (!holds)
        throw std::runtime_error(std::string(what) + ": " + pm_errormsg());
}

pm_container *open(const Setting &setting, unsigned flags, bool bounded)
{
    pm_options options{};
    options.size = sizeof options;
    options.flags = flags;
    options.engine = PM_ENGINE_LOG;
    if (bounded)
        options.private_max = setting.private_mebibytes * MiB;
    pm_container *c = pm_open(setting.path.c_str(), &options);
    check(c, "pm_open");
    return c;
}

void make(const Setting &setting)
{
    const uint64_t count = setting.mebibytes * MiB / VALUE;
    pm_container *c = open(setting, PM_CREATE | PM_EXCLUSIVE, true);
    char **values = static_cast<char **>(pm_malloc(c, count * sizeof *values));
    check(values && pm_setroot(c, values, 0) == 0, "pm_malloc");
    for (uint64_t i = 0; i < count; i++) {
        values[i] = static_cast<char *>(pm_malloc(c, VALUE));
        check(values[i], "pm_malloc");
        memset(values[i], (int)i + 1, VALUE);
        if (i % 1000 == 999)
            check(pm_commit(c) == 0, "pm_commit");
    }
    check(pm_commit(c) == 0 && pm_close(c) == 0, "pm_close");
}

/** Bytes of the file in memory that is home. */
double home_bytes()
{
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        const std::string name = std::filesystem::read_symlink(entry.path(), error).string();
        struct stat st{};
        if (name.find("libpm home") != std::string::npos && stat(entry.path().c_str(), &st) == 0)
            return (double)st.st_blocks * 512;
    }
    throw std::runtime_error("home is not there");
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
    const uint64_t count = setting.mebibytes * MiB / VALUE;
    const auto report = [&](const char *what, double value, const char *unit, uint64_t operations) {
        emit({"bounded", {what}, peer, value, unit, operations});
    };
    pm_container *c = nullptr;
    report("pm_open", elapsed_ns([&] { c = open(setting, 0, bounded); }), "ns", 1);
    report("memory of home then", home_bytes(), "bytes", 1);
    auto pages = pages_of(static_cast<char **>(pm_getroot(c)), count);
    report("load from a page, in order", touch(pages), "ns", pages.size());
    std::shuffle(pages.begin(), pages.end(), std::mt19937(1));
    report("load from a page, random", touch(pages), "ns", pages.size());
    report("memory of home in the end", home_bytes(), "bytes", 1);
    check(pm_close(c) == 0, "pm_close");
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
    CLI11_PARSE(app, argc, argv);
    return bench::status_of([&] {
        bench::make(setting);
        bench::measure(setting, false, "whole");
        bench::measure(setting, true, "bounded"); // reads the whole log, too, and leaves a checkpoint
        bench::measure(setting, true, "checkpoint");
        bench::check(pm_delete(setting.path.c_str()) == 0, "pm_delete");
    });
}
