/*
 * Objects come and go for a long time: does the file grow on and on, does memory, do commits become slower? Each
 * commit frees one of 40,000 objects, chosen at random, and allocates another one of random size: 85 MiB in all.
 * Times are of the processor.
 */
#include "harness/clock.h"
#include "harness/memory.h"
#include "harness/sample.h"
#include "harness/status.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <libpm.h>
#include <random>
#include <vector>

namespace bench
{
namespace
{

constexpr uint64_t MiB = 1 << 20, OBJECTS = 40000, LEAST = 64, MOST = 4400;
constexpr int REPORTS = 6;

/** How often commits took so long, in steps of 100 ns up to 10 ms. A list of all times would take hundreds of
 * megabytes in an hour, and memory is measured here. */
class Times
{
  public:
    void add(double ns) { counts_[std::min<size_t>((size_t)(ns / STEP), STEPS - 1)]++, all_++; }
    uint64_t all() const { return all_; }
    /** What `thousandths` of the times do not exceed. */
    double quantile(uint64_t thousandths) const
    {
        uint64_t below = 0;
        size_t step = 0;
        while (step < STEPS - 1 && (below += counts_[step]) * 1000 <= all_ * thousandths)
            step++;
        return (double)(step + 1) * STEP;
    }

  private:
    static constexpr size_t STEP = 100, STEPS = 100000;
    std::vector<uint32_t> counts_ = std::vector<uint32_t>(STEPS);
    uint64_t all_ = 0;
};

struct Setting {
    std::string engine, path;
    uint64_t seconds, private_mebibytes;
    unsigned live_percent = 0;
};

void check(bool holds, const char *what)
{
    if (!holds)
        throw std::runtime_error(std::string(what) + ": " + pm_errormsg());
}

class Churn
{
  public:
    explicit Churn(const Setting &setting) : sizes_(OBJECTS)
    {
        pm_options options{};
        options.size = sizeof options;
        options.flags = PM_CREATE | PM_ANNOUNCED;
        options.engine = setting.engine == "log" ? PM_ENGINE_LOG : PM_ENGINE_REDO;
        options.tracker = PM_TRACKER_STORES;
        options.private_max = setting.private_mebibytes * MiB;
        options.live_percent = setting.live_percent;
        c_ = pm_open(setting.path.c_str(), &options);
        check(c_, "pm_open");
        objects_ = static_cast<char **>(pm_calloc(c_, OBJECTS, sizeof *objects_));
        check(objects_ && pm_setroot(c_, objects_, 0) == 0, "pm_calloc");
        for (uint64_t i = 0; i < OBJECTS; i++) {
            allocate(i);
            if (i % 100 == 99)
                check(pm_commit(c_) == 0, "pm_commit");
        }
    }
    ~Churn() { pm_close(c_); }
    Churn(const Churn &) = delete;

    /** Replace an object; the time of it and of its commit. */
    double replace()
    {
        return processor_ns([&] {
            const uint64_t i = random_() % OBJECTS;
            check(pm_free(objects_[i]) == 0, "pm_free");
            live_ -= sizes_[i];
            allocate(i);
            check(pm_commit(c_) == 0, "pm_commit");
        });
    }
    uint64_t live() const { return live_; }

  private:
    void allocate(uint64_t i)
    {
        sizes_[i] = LEAST + random_() % (MOST - LEAST);
        char *object = static_cast<char *>(pm_malloc(c_, sizes_[i]));
        check(object && pm_dirty(object, sizes_[i]) == 0 && pm_dirty(&objects_[i], 8) == 0,
              "pm_malloc");
        memset(object, (int)random_(), sizes_[i]);
        objects_[i] = object;
        live_ += sizes_[i];
    }

    pm_container *c_;
    char **objects_;
    std::vector<uint64_t> sizes_;
    uint64_t live_ = 0;
    std::mt19937_64 random_{1};
};

void measure(const Setting &setting)
{
    Churn churn(setting);
    const std::string bound =
        setting.private_mebibytes ? ", " + std::to_string(setting.private_mebibytes) + " MiB" : "";
    for (int part = 1; part <= REPORTS; part++) {
        Times times;
        const auto end = std::chrono::steady_clock::now() +
                         std::chrono::milliseconds(setting.seconds * 1000 / REPORTS);
        while (std::chrono::steady_clock::now() < end)
            times.add(churn.replace());
        const auto report = [&](const char *what, double value, const char *unit) {
            emit({"churn",
                  {what, std::to_string(part)},
                  setting.engine + bound,
                  value,
                  unit,
                  times.all()});
        };
        report("p50", times.quantile(500), "ns");
        report("p99", times.quantile(990), "ns");
        report("p99.9", times.quantile(999), "ns");
        report("live", (double)churn.live() / MiB, "MiB");
        report("file", (double)std::filesystem::file_size(setting.path) / MiB, "MiB");
        report("memory", (home_bytes() + status_bytes("RssAnon:")) / MiB, "MiB");
        std::cout.flush();
    }
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Setting setting{};
    CLI::App app("Let objects come and go");
    app.add_option("engine", setting.engine)->required()->check(CLI::IsMember({"log", "redo"}));
    app.add_option("seconds", setting.seconds)->required();
    app.add_option("private_max", setting.private_mebibytes, "mebibytes; 0: the default")
        ->required();
    app.add_option("path", setting.path, "file to create")->required();
    app.add_option("--live-percent", setting.live_percent, "how much of the file should be live");
    CLI11_PARSE(app, argc, argv);
    return bench::status_of([&] { bench::measure(setting); });
}
