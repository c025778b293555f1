/*
 * The workloads of LevelDB's db_bench, with its names and options, on one store. Every thread does `num`
 * operations. Printed for each workload: the mean and the percentiles of an operation, and the longest.
 *
 *     lsm_bench --db DIRECTORY --benchmarks fillseq,readrandom --num 100000 --value_size 1024
 *
 *     fillseq, fillrandom   puts into a new store, in order of keys, or in random order
 *     fillsync              the same in random order, each put with a sync; a hundredth of `num`
 *     overwrite             puts to keys that are there
 *     readrandom            gets of keys that are there; readmissing: of keys that are not
 *     readseq               one walk through all
 *     readwhilewriting      readrandom, while one more thread overwrites
 *     seekrandom            seek and read ten pairs
 *     deleterandom          deletions
 */
#include "harness/random.h"
#include "lsm/peer.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <filesystem>
#include <thread>
#include <vector>

namespace
{

using std::chrono::steady_clock;

struct Arguments {
    bench::PeerOptions peer;
    std::string benchmarks =
        "fillseq,fillsync,fillrandom,overwrite,readrandom,readmissing,readseq,seekrandom";
    uint64_t num = 100000, value_size = 100;
    unsigned threads = 1;
    bool json = false;
};

constexpr size_t key_size = 16;
constexpr uint64_t sync_share = 100, scan_length = 10;

std::string key_of(uint64_t number, const char *prefix = "")
{
    char key[key_size + 8];
    snprintf(key, sizeof key, "%s%0*" PRIu64, prefix, static_cast<int>(key_size - strlen(prefix)),
             number);
    return key;
}

/* One workload, as it runs. */
class Run
{
  public:
    Run(const Arguments &a, std::string name)
        : a_(a), name_(std::move(name)), value_(a.value_size, 'v')
    {
        for (size_t i = 0; i < value_.size(); i++)
            value_[i] = static_cast<char>(bench::scramble(i));
        const bool fresh = name_.starts_with("fill");
        if (fresh && !a.peer.use_existing_db)
            for (const std::string &old : {a.peer.db, a.peer.container, a.peer.fast_directory})
                std::filesystem::remove_all(old);
        peer_ = bench::Peer::open(a.peer);
    }

    nlohmann::json measure()
    {
        std::vector<std::vector<float>> took(a_.threads);
        std::vector<std::thread> threads;
        std::thread writer, watcher(&Run::show_progress, this);
        if (name_ == "readwhilewriting")
            writer = std::thread([this] {
                for (uint64_t i = 0; !over_; i++)
                    peer_->put(key_of(bench::scramble(~i) % a_.num), value_, false);
            });
        const auto start = steady_clock::now();
        for (unsigned t = 0; t < a_.threads; t++)
            threads.emplace_back([this, t, &took] { work(t, took[t]); });
        for (std::thread &t : threads)
            t.join();
        const double seconds = std::chrono::duration<double>(steady_clock::now() - start).count();
        over_ = true;
        if (writer.joinable())
            writer.join();
        watcher.join();
        std::vector<float> all;
        for (const auto &part : took)
            all.insert(all.end(), part.begin(), part.end());
        return figures(all, seconds);
    }

  private:
    void work(unsigned thread, std::vector<float> &took)
    {
        const uint64_t count =
            name_ == "fillsync" ? std::max<uint64_t>(a_.num / sync_share, 1) : a_.num;
        if (name_ == "readseq") {
            auto start = steady_clock::now();
            uint64_t n = peer_->scan("", UINT64_MAX);
            float each = microseconds(start) / static_cast<float>(std::max<uint64_t>(n, 1));
            took.assign(n, each);
            done_ += n;
            return;
        }
        took.reserve(count);
        for (uint64_t i = 0; i < count; i++) {
            auto start = steady_clock::now();
            step(thread * count + i);
            took.push_back(microseconds(start));
            done_.fetch_add(1, std::memory_order_relaxed);
        }
    }

    void step(uint64_t i)
    {
        const uint64_t random = bench::scramble(i + 1) % a_.num;
        if (name_ == "fillseq")
            peer_->put(key_of(i), value_, false);
        else if (name_ == "fillrandom" || name_ == "overwrite" || name_ == "fillsync")
            peer_->put(key_of(random), value_, name_ == "fillsync");
        else if (name_ == "readrandom" || name_ == "readwhilewriting")
            found_ += peer_->get(key_of(random), thread_value());
        else if (name_ == "readmissing")
            found_ += peer_->get(key_of(random, "."), thread_value());
        else if (name_ == "seekrandom")
            found_ += peer_->scan(key_of(random), scan_length) > 0;
        else
            peer_->remove(key_of(random));
    }

    static std::string &thread_value()
    {
        thread_local std::string value;
        return value;
    }

    static float microseconds(steady_clock::time_point start)
    {
        return std::chrono::duration<float, std::micro>(steady_clock::now() - start).count();
    }

    void show_progress()
    {
        const bool is_terminal = isatty(STDERR_FILENO);
        while (!over_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            if (is_terminal)
                fprintf(stderr, "\r%-17s %" PRIu64 " operations ", name_.c_str(), done_.load());
        }
        if (is_terminal)
            fprintf(stderr, "\r%60s\r", "");
    }

    nlohmann::json figures(std::vector<float> &took, double seconds) const
    {
        std::sort(took.begin(), took.end());
        const auto at = [&](double share) {
            return took.empty() ? 0.0F
                                : took[std::min(took.size() - 1,
                                                static_cast<size_t>(
                                                    share * static_cast<double>(took.size())))];
        };
        const double operations = static_cast<double>(took.size());
        return {{"peer", bench::Peer::name()},
                {"benchmark", name_},
                {"operations", took.size()},
                {"found", found_.load()},
                {"micros_per_op", seconds * 1e6 * a_.threads / std::max(operations, 1.0)},
                {"p50", at(0.5)},
                {"p99", at(0.99)},
                {"p999", at(0.999)},
                {"max", took.empty() ? 0.0F : took.back()}};
    }

    const Arguments &a_;
    std::string name_, value_;
    std::unique_ptr<bench::Peer> peer_;
    std::atomic<uint64_t> done_{0}, found_{0};
    std::atomic<bool> over_{false};
};

void print(const nlohmann::json &r)
{
    printf("%-17s %10.2f %10.2f %10.2f %10.1f %12.1f %10" PRIu64 "\n",
           r["benchmark"].get<std::string>().c_str(), r["micros_per_op"].get<double>(),
           r["p50"].get<double>(), r["p99"].get<double>(), r["p999"].get<double>(),
           r["max"].get<double>(), r["operations"].get<uint64_t>());
    fflush(stdout);
}

} // namespace

int main(int count, char **values)
{
    Arguments a;
    CLI::App app("The workloads of db_bench on one LSM store; times are in microseconds.");
    const std::vector<std::string> known = {
        "fillseq",     "fillrandom", "fillsync",         "overwrite",  "readrandom",
        "readmissing", "readseq",    "readwhilewriting", "seekrandom", "deleterandom"};
    app.add_option("--db", a.peer.db, "directory of the store; `fill` workloads delete it first")
        ->required();
    app.add_option("--benchmarks", a.benchmarks, "workloads, with commas between");
    app.add_option("--num", a.num, "operations of each thread, and keys")
        ->check(CLI::PositiveNumber);
    app.add_option("--value_size", a.value_size, "bytes");
    app.add_option("--threads", a.threads)->check(CLI::Range(1, 64));
    app.add_option("--write_buffer_size", a.peer.write_buffer_size, "bytes of a memtable");
    app.add_option("--cache_size", a.peer.cache_size, "bytes of blocks in memory");
    app.add_option("--bloom_bits", a.peer.bloom_bits, "a key; 0: no filters");
    app.add_option("--memtables", a.peer.memtables,
                   "of our store: dram, immutable, mutable or nosst")
        ->check(CLI::IsMember({"dram", "immutable", "mutable", "nosst"}));
    app.add_option("--container", a.peer.container, "path of its memtables in persistent memory");
    app.add_option("--persistent_bytes", a.peer.persistent_bytes, "of such a memtable");
    app.add_option("--fast_directory", a.peer.fast_directory, "of its tables of upper levels");
    app.add_option("--fast_levels", a.peer.fast_levels, "how many levels those are");
    app.add_option("--read_workers", a.peer.read_workers, "threads that help its gets");
    app.add_flag("--use_existing_db", a.peer.use_existing_db,
                 "let `fill` workloads go on in the store that is there");
    app.add_flag("--json", a.json, "print a JSON object a line, and no table");
    CLI11_PARSE(app, count, values);

    std::vector<std::string> names;
    for (const std::string &name : CLI::detail::split(a.benchmarks, ','))
        if (std::find(known.begin(), known.end(), name) == known.end()) {
            fprintf(stderr, "there is no workload %s; there are: %s\n", name.c_str(),
                    CLI::detail::join(known, ", ").c_str());
            return 2;
        } else {
            names.push_back(name);
        }
    if (!a.json)
        printf("%-17s %10s %10s %10s %10s %12s %10s\n", bench::Peer::name(), "mean", "p50", "p99",
               "p99.9", "longest", "operations");
    try {
        for (const std::string &name : names) {
            const nlohmann::json result = Run(a, name).measure();
            if (a.json)
                printf("%s\n", result.dump().c_str());
            else
                print(result);
        }
    } catch (const std::exception &error) {
        fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
