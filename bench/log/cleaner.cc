/*
 * What the cleaner of the log engine costs. Values of 128 bytes are stored to, in turn, at random, or most
 * updates to a small part of them. Each commit is fenced. The file has more or less room:
 *
 *   roomy    from the beginning so much that nothing is ever cleaned.
 *   grows    as by default.
 *   70       the file cannot grow, and the contents take 70 % of it.
 *
 * Times are of the processor, which does nothing but this.
 */
#include "harness/clock.h"
#include "harness/sample.h"
#include "harness/status.h"
#include "log/full_disk.h"
#include "log/skewed.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <libpm.h>
#include <stdexcept>

namespace bench
{
namespace
{

constexpr uint64_t VALUE = 128, LINE = 64, MiB = 1 << 20;

struct Setting {
    std::string engine, pattern, file, path;
    uint64_t mebibytes, batch, segment = MiB;
};

void check(bool holds, const char *what)
{
    if (!holds)
        throw std::runtime_error(std::string(what) + ": " + pm_errormsg());
}

bool is_percent(const std::string &file)
{
    return std::isdigit(file[0]) != 0;
}

/** Which value is next. */
class Choice
{
  public:
    Choice(std::string pattern, uint64_t count)
        : pattern_(std::move(pattern)), count_(count), skewed_(count)
    {
    }

    uint64_t operator()()
    {
        if (pattern_ == "in turn")
            return next_++ % count_;
        if (pattern_ == "at random")
            return random_.below(count_);
        return skewed_(random_);
    }

  private:
    std::string pattern_;
    uint64_t count_, next_ = 0;
    Random random_{1};
    Skewed skewed_;
};

class Subject
{
  public:
    explicit Subject(const Setting &setting)
        : setting_(setting), bytes_(setting.mebibytes * MiB),
          choice_(setting.pattern, bytes_ / VALUE)
    {
        c_ = open(PM_CREATE);
        check(c_, "pm_open");
        values_ = static_cast<char *>(pm_malloc(c_, bytes_));
        check(values_ && pm_setroot(c_, values_, 0) == 0, "pm_malloc");
        for (uint64_t at = 0; at < bytes_; at += MiB) { // no record is large
            check(pm_dirty(values_ + at, MiB) == 0, "pm_dirty");
            memset(values_ + at, 1, MiB);
            check(pm_commit(c_) == 0, "pm_commit");
        }
        if (is_percent(setting.file))
            full_disk(bytes_ * 100 / std::stoul(setting.file));
    }
    ~Subject() { pm_close(c_); }

    /** Close the container, and tell how long it takes to open it again. */
    double reopen()
    {
        check(pm_close(c_) == 0, "pm_close");
        c_ = nullptr;
        return processor_ns([&] {
            c_ = open(0);
            check(c_, "pm_open");
        });
    }

    Subject(const Subject &) = delete;

    void commit()
    {
        for (uint64_t i = 0; i < setting_.batch; i++) {
            char *value = values_ + choice_() * VALUE;
            check(pm_dirty(value, VALUE) == 0, "pm_dirty");
            memset(value, (int)++stored_, VALUE);
            memcpy(value, &stored_, sizeof stored_); // so that it differs
            memcpy(value + LINE, &stored_, sizeof stored_);
        }
        check(pm_commit(c_) == 0, "pm_commit");
    }
    uint64_t written() const
    {
        struct pm_stats stats{};
        stats.size = sizeof stats;
        check(pm_stats(c_, &stats) == 0, "pm_stats");
        return stats.bytes_logged + stats.lines_flushed * LINE;
    }
    uint64_t values() const { return bytes_ / VALUE; }

  private:
    pm_container *open(unsigned flags) const
    {
        pm_options options{};
        options.size = sizeof options;
        options.flags = flags | PM_ANNOUNCED;
        options.engine = setting_.engine == "log" ? PM_ENGINE_LOG : PM_ENGINE_REDO;
        options.tracker = PM_TRACKER_STORES;
        options.max_size = 64 * bytes_;
        options.segment_size = setting_.segment;
        if (setting_.file == "roomy")
            options.initial_size = 16 * bytes_;
        return pm_open(setting_.path.c_str(), &options);
    }

    const Setting &setting_;
    uint64_t bytes_, stored_ = 0;
    Choice choice_;
    pm_container *c_;
    char *values_;
};

void measure(const Setting &setting)
{
    Subject subject(setting);
    const uint64_t commits = subject.values() / setting.batch;
    for (uint64_t i = 0; i < 2 * commits; i++) // until as much is dead as there will be
        subject.commit();
    std::vector<double> times;
    times.reserve(commits);
    const uint64_t before = subject.written();
    for (uint64_t i = 0; i < commits; i++)
        times.push_back(processor_ns([&] { subject.commit(); }));
    const auto values = static_cast<double>(commits * setting.batch);
    const auto bytes = static_cast<double>(subject.written() - before);
    double sum = 0;
    for (double time : times)
        sum += time;
    std::ranges::sort(times);
    const std::vector<std::string> row = {setting.pattern, std::to_string(setting.batch)};
    std::string peer = setting.engine == "redo" ? "redo" : setting.file;
    if (is_percent(setting.file))
        peer += setting.segment < MiB ? " %, 64 KiB" : " %";
    const double contents = static_cast<double>(setting.mebibytes * MiB);
    const auto file = static_cast<double>(std::filesystem::file_size(setting.path));
    emit({"cleaner", row, peer, sum / values, "ns", commits});
    emit({"cleaner_slow", row, peer, times[times.size() * 9999 / 10000], "ns", commits});
    emit({"cleaner_p999", row, peer, times[times.size() * 999 / 1000], "ns", commits});
    emit({"cleaner_written", row, peer, bytes / values, "B", commits});
    emit({"cleaner_file", row, peer, file / contents, "×", commits});
    emit({"cleaner_open", row, peer, subject.reopen(), "ns", 1});
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Setting setting{};
    CLI::App app("Measure what cleaning costs");
    app.add_option("engine", setting.engine)->required()->check(CLI::IsMember({"log", "redo"}));
    app.add_option("pattern", setting.pattern)
        ->required()
        ->check(CLI::IsMember({"in turn", "at random", "90/15"}));
    app.add_option("file", setting.file,
                   "its room: `roomy`, `grows`, or how many percent are in use")
        ->required();
    app.add_option("mebibytes", setting.mebibytes, "of values")->required();
    app.add_option("batch", setting.batch, "values stored to in each commit")->required();
    app.add_option("path", setting.path, "file to create")->required();
    app.add_option("--segment", setting.segment,
                   "segment_size of the container, and so of the chunks");
    CLI11_PARSE(app, argc, argv);
    return bench::status_of([&] { bench::measure(setting); });
}
