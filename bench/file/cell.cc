/*
 * One cell of the comparison on ordinary files: one database, one size of values, one number of
 * puts per commit. Every other put is an update of a random key, the others insert new ones. With --updates
 * none inserts. After 10^5 keys have been loaded, or --keys:
 *   - one thread commits; counted are the bytes written from opening to closing, whatever the
 *     database puts off until then included, and the waits for the medium;
 *   - two threads commit, each to keys of its own.
 * Disks change their speed by factors from one moment to the next, virtual ones even more so. So
 * right before and after it is measured how fast the bare disk is, and commits are also reported
 * relative to that.
 *
 * In the end the database must hold exactly what was put.
 */
#include "file/bare.h"
#include "file/database.h"
#include "file/written.h"
#include "harness/clock.h"
#include "harness/random.h"
#include "harness/sample.h"

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>

namespace bench
{
namespace
{

constexpr size_t threads_max = 2;
constexpr size_t loaded_together = 50'000; // keys
constexpr size_t warm_up = 20;             // commits
constexpr std::chrono::milliseconds time_max{500};

struct Setting {
    DatabaseOptions database;
    size_t puts, commits, keys = 100'000;
    bool updates = false;
    size_t seconds = 10; // of updates, at most
};

/** What one thread puts: the keys are its own, and each put of a key has another value. */
class Writer
{
  public:
    Writer(size_t number, size_t value_size, bool updates)
        : number_(number), value_size_(value_size), updates_(updates), choice_(number)
    {
    }

    /** The next `count` puts, valid until the call after; insertions only when `fresh`. */
    std::span<const Put> next(size_t count, bool fresh = false)
    {
        values_.resize(count * value_size_);
        puts_.clear();
        for (size_t i = 0; i < count; i++) {
            bool insert = fresh || (!updates_ && choice_.below(2));
            size_t index = insert ? versions_.size() : choice_.below(versions_.size());
            if (insert)
                versions_.push_back(0);
            versions_[index]++;
            char *value = values_.data() + i * value_size_;
            fill(value, index);
            puts_.push_back({key(index), value});
        }
        return puts_;
    }

    void verify(Database &database) const
    {
        std::vector<char> expected(value_size_), found(value_size_);
        for (size_t index = 0; index < versions_.size(); index++) {
            fill(expected.data(), index);
            if (!database.get(key(index), found.data()) || found != expected)
                throw std::runtime_error("a value is missing or wrong");
        }
    }

    size_t keys() const { return versions_.size(); }

  private:
    uint64_t key(size_t index) const { return scramble(1 + index * threads_max + number_); }

    void fill(char *value, size_t index) const
    {
        Random random(key(index) + versions_[index]);
        for (size_t at = 0; at < value_size_; at += sizeof(uint64_t)) {
            uint64_t word = random();
            memcpy(value + at, &word, std::min(sizeof word, value_size_ - at));
        }
    }

    size_t number_, value_size_;
    bool updates_;
    Random choice_;
    std::vector<uint32_t> versions_; // by index: how often the key was put
    std::vector<char> values_;
    std::vector<Put> puts_;
};

/** Commits by all writers, a thread each, up to the number or the time; how many and how fast. */
struct Run {
    uint64_t commits = 0;
    double ns = 0;

    Run(Database &database, std::span<Writer> writers, const Setting &setting, size_t commits_max)
    {
        std::atomic<size_t> started = 0;
        std::vector<std::exception_ptr> errors(writers.size());
        const std::chrono::seconds time_max_of_updates(setting.seconds);
        auto deadline =
            std::chrono::steady_clock::now() + (setting.updates ? time_max_of_updates : time_max);
        auto work = [&](size_t i) {
            try {
                while (started++ < commits_max && std::chrono::steady_clock::now() < deadline) {
                    database.put(writers[i].next(setting.puts));
                    std::atomic_ref(commits)++;
                }
            } catch (...) {
                errors[i] = std::current_exception();
            }
        };
        ns = elapsed_ns([&] {
            std::vector<std::jthread> others;
            for (size_t i = 1; i < writers.size(); i++)
                others.emplace_back(work, i);
            work(0);
        });
        for (const std::exception_ptr &error : errors)
            if (error)
                std::rethrow_exception(error);
    }

    double per_second() const { return 1e9 * static_cast<double>(commits) / ns; }
};

class Cell
{
  public:
    explicit Cell(const Setting &setting)
        : setting_(setting), name_(database_name),
          case_{std::to_string(setting.database.value_size) + " B", std::to_string(setting.puts)}
    {
        if (setting.database.group)
            name_ += ", group";
        for (size_t i = 0; i < threads_max; i++)
            writers_.emplace_back(i, setting.database.value_size, setting.updates);
    }

    void measure()
    {
        load();
        auto before = bytes_written(setting_.database.directory);
        uint64_t commits = run(1);
        auto after = bytes_written(setting_.database.directory);
        if (before && after)
            report_written(static_cast<double>(*after - *before), commits);
        if (!setting_.updates)
            run(threads_max);
        verify();
    }

  private:
    void load()
    {
        auto database = open_database(setting_.database);
        for (Writer &writer : writers_)
            while (writer.keys() < setting_.keys / threads_max)
                database->put(writer.next(
                    std::min(loaded_together, setting_.keys / threads_max - writer.keys()), true));
    }

    /** Opens, commits, closes; returns the commits, those of the warm-up included. */
    uint64_t run(size_t threads)
    {
        auto database = open_database(setting_.database);
        std::span writers = std::span(writers_).first(threads);
        Run cold(*database, writers, setting_, warm_up);
        auto rounds_before = database->rounds();
        double bare_ns = bare_.write_ns();
        Run warm(*database, writers, setting_, setting_.commits);
        bare_ns = (bare_ns + bare_.write_ns()) / 2;
        auto rounds_after = database->rounds();
        if (setting_.updates)
            return cold.commits + warm.commits;

        report("file", {std::to_string(threads)}, warm.per_second(), "/s", warm.commits);
        emit({"file_threads",
              {name_, case_[0], case_[1]},
              std::to_string(threads) + (threads == 1 ? " thread" : " threads"),
              warm.per_second(),
              "/s",
              warm.commits});
        report("file_bare", {std::to_string(threads)}, warm.per_second() * bare_ns / 1e9, "×",
               warm.commits);
        if (rounds_before && rounds_after)
            report("file_rounds", {std::to_string(threads)},
                   static_cast<double>(*rounds_after - *rounds_before) /
                       static_cast<double>(warm.commits),
                   "rounds", warm.commits);
        return cold.commits + warm.commits;
    }

    void report_written(double bytes, uint64_t commits) const
    {
        const auto puts = static_cast<double>(commits * setting_.puts);
        const double put = static_cast<double>(sizeof(uint64_t) + setting_.database.value_size);
        if (setting_.updates)
            emit({"file_updates",
                  {case_[0], case_[1], std::to_string(setting_.keys)},
                  name_,
                  bytes / static_cast<double>(commits),
                  "B",
                  commits});
        else
            report("file_written", {}, bytes / (puts * put), "×", commits);
    }

    void report(const char *table, std::vector<std::string> row, double value, const char *unit,
                uint64_t operations) const
    {
        row.insert(row.begin(), case_.begin(), case_.end());
        emit({table, row, name_, value, unit, operations});
    }

    void verify()
    {
        auto database = open_database(setting_.database);
        size_t keys = 0;
        for (const Writer &writer : writers_) {
            writer.verify(*database);
            keys += writer.keys();
        }
        if (database->size() != keys)
            throw std::runtime_error("the number of keys is wrong");
    }

    Setting setting_;
    std::string name_;              // column of the tables
    std::vector<std::string> case_; // first labels of the rows
    std::vector<Writer> writers_;
    BareDisk bare_{setting_.database.directory};
};

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Setting setting{};
    CLI::App app("Time durable commits of one database on a file system");
    app.add_option("directory", setting.database.directory, "an empty directory for it")
        ->required();
    app.add_option("value-size", setting.database.value_size, "bytes")->required();
    app.add_option("puts", setting.puts, "of each commit")->required();
    app.add_option("commits", setting.commits, "by all threads together")->required();
    app.add_option("--keys", setting.keys, "that are loaded first");
    app.add_flag("--updates", setting.updates,
                 "no inserts, more time, and only bytes are reported");
    app.add_option("--seconds", setting.seconds, "that updates take at most; default 10");
    app.add_flag("--group", setting.database.group, "let threads share waits for the medium");
    CLI11_PARSE(app, argc, argv);
    try {
        bench::Cell(setting).measure();
    } catch (const std::exception &error) {
        std::cerr << bench::database_name << ": " << error.what() << '\n';
        return 1;
    }
}
