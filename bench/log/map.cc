/*
 * Memory that the log engine's map takes, in percent of the contents. Values are allocated in turn. With
 * options.private_max parts of the map are absent until they are needed. The map has three parts: where each line
 * is, deltas, and a bit for each line that is left.
 */
#include "harness/random.h"
#include "harness/sample.h"
#include "harness/status.h"
#include "log/log_memory.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <libpm.h>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string.h>
#include <vector>

namespace bench
{
namespace
{

constexpr uint64_t MiB = 1 << 20, TOGETHER = 1000;

struct Setting {
    std::string path;
    uint64_t mebibytes, bytes, private_mebibytes;
    uint64_t count() const { return mebibytes * MiB / bytes; }
};

void check(bool holds, const char *what)
{
    if (!holds)
        throw std::runtime_error(std::string(what) + ": " + pm_errormsg());
}

class Subject
{
  public:
    explicit Subject(const Setting &setting) : setting_(setting), c_(open(PM_CREATE))
    {
        char **values = static_cast<char **>(pm_calloc(c_, setting.count(), sizeof *values));
        check(values && pm_setroot(c_, values, 0) == 0, "pm_calloc");
        for_each([&](uint64_t i) {
            char *value = static_cast<char *>(pm_malloc(c_, setting.bytes));
            check(value && pm_dirty(&values[i], sizeof *values) == 0, "pm_malloc");
            check(pm_dirty(value, setting.bytes) == 0, "pm_dirty");
            memset(value, (int)i, setting.bytes);
            values[i] = value;
        });
        check(pm_close(c_) == 0, "pm_close");
        c_ = open(0);
    }
    ~Subject() { pm_close(c_); }
    Subject(const Subject &) = delete;

    /** A thousandth of all values: what a program has in use for a while. */
    void read_some()
    {
        Random random(1);
        for (uint64_t i = 0; i < setting_.count() / 1000; i++)
            (void)*static_cast<volatile char *>(value(random.below(setting_.count())));
    }

    /** In random order, so that the values no longer lie in the file as they do in memory. */
    void store_again()
    {
        std::vector<uint64_t> order(setting_.count());
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
        for_each([&](uint64_t i) {
            check(pm_dirty(value(order[i]), setting_.bytes) == 0, "pm_dirty");
            memset(value(order[i]), (int)i + 1, setting_.bytes);
        });
    }

    /** So each value has a delta. */
    void store_words()
    {
        for_each([&](uint64_t i) {
            auto *word = reinterpret_cast<volatile uint64_t *>(value(i));
            check(pm_dirty(value(i), sizeof *word) == 0, "pm_dirty");
            *word = *word + 1;
        });
    }

    void report(const char *when) const
    {
        struct log_memory memory;
        check(log_memory_of(c_, &memory) == 0, "mincore");
        emit({"map",
              {std::to_string(setting_.bytes), when},
              setting_.private_mebibytes ? "private_max" : "default",
              100 * memory.map / static_cast<double>(setting_.mebibytes * MiB),
              "%",
              setting_.count()});
    }

  private:
    pm_container *open(unsigned flags) const
    {
        pm_options options{};
        options.size = sizeof options;
        options.flags = flags | PM_ANNOUNCED;
        options.engine = PM_ENGINE_LOG;
        options.tracker = PM_TRACKER_STORES;
        options.private_max = setting_.private_mebibytes * MiB;
        pm_container *c = pm_open(setting_.path.c_str(), &options);
        check(c, "pm_open");
        return c;
    }

    char *value(uint64_t i) const { return static_cast<char **>(pm_getroot(c_))[i]; }

    template <class Work> void for_each(Work work)
    {
        for (uint64_t i = 0; i < setting_.count(); i++) {
            work(i);
            if (i % TOGETHER == TOGETHER - 1)
                check(pm_commit(c_) == 0, "pm_commit");
        }
        check(pm_commit(c_) == 0, "pm_commit");
    }

    const Setting &setting_;
    pm_container *c_;
};

void measure(const Setting &setting)
{
    Subject subject(setting);
    subject.report("opened");
    subject.read_some();
    subject.report("some are read");
    subject.store_again();
    subject.report("each is stored again, in random order");
    subject.store_words();
    subject.report("a word of each is stored");
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Setting setting{};
    CLI::App app("Tell what memory the map of a log container takes");
    app.add_option("mebibytes", setting.mebibytes, "of values")->required();
    app.add_option("bytes", setting.bytes, "of a value")->required();
    app.add_option("private_max", setting.private_mebibytes, "mebibytes; 0: unbounded")->required();
    app.add_option("path", setting.path, "file to create")->required();
    CLI11_PARSE(app, argc, argv);
    return bench::status_of([&] { bench::measure(setting); });
}
