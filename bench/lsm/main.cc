/*
 * The workloads of LevelDB's db_bench, with its names and options, and those of YCSB, on one store. Every
 * thread does `num` operations, or works for `duration` seconds. Printed for each workload: the mean and the
 * percentiles of an operation, and the longest.
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
 *     ycsba ... ycsbf       the mixes of YCSB, on the pairs of a fillseq
 *     wait                  open the store, and wait until its background has nothing to do
 *     open                  open the store, and get one key: one operation
 *     die                   end by SIGKILL, for `open` in a further run
 */
#include "harness/random.h"
#include "harness/sample.h"
#include "harness/ycsb.h"
#include "lsm/peer.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <filesystem>
#include <fstream>
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
    double duration = 1e9, read_duration = 1e9;
    unsigned threads = 1;
    bool json = false, sync = false;
    std::vector<std::string> samples; // table and row, for the driver
    std::string column;
};

constexpr size_t key_size = 16;
constexpr uint64_t sync_share = 100, scan_length = 10, ycsb_scan_max = 100;

std::string key_of(uint64_t number, const char *prefix = "")
{
    char key[key_size + 8];
    snprintf(key, sizeof key, "%s%0*" PRIu64, prefix, static_cast<int>(key_size - strlen(prefix)),
             number);
    return key;
}

/* Bytes that this process has given to write(2) and its kin. */
uint64_t bytes_written()
{
    std::ifstream io("/proc/self/io");
    std::string word;
    uint64_t bytes = 0;
    while (io >> word >> bytes)
        if (word == "wchar:")
            return bytes;
    return 0;
}

/* Return when this process has written nothing for a second. */
void wait_for_background()
{
    for (uint64_t before = UINT64_MAX, now; (now = bytes_written()) != before; before = now)
        std::this_thread::sleep_for(std::chrono::seconds(1));
}

float microseconds(steady_clock::time_point start)
{
    return std::chrono::duration<float, std::micro>(steady_clock::now() - start).count();
}

std::string &thread_value()
{
    thread_local std::string value;
    return value;
}

/* One workload, as it runs. */
class Run
{
  public:
    Run(const Arguments &a, std::string name)
        : a_(a), name_(std::move(name)), value_(a.value_size, 'v'), inserted_(a.num)
    {
        for (size_t i = 0; i < value_.size(); i++)
            value_[i] = static_cast<char>(bench::scramble(i));
        const bool fresh = name_.starts_with("fill");
        if (fresh && !a.peer.use_existing_db)
            for (const std::string &old : {a.peer.db, a.peer.container, a.peer.fast_directory})
                std::filesystem::remove_all(old);
        if (name_.starts_with("ycsb")) {
            zipfian_.emplace(a.num);
            mix_ = bench::workload_e;
            for (const bench::Workload &workload : bench::workloads)
                if (tolower(workload.name) == name_.back())
                    mix_ = workload;
        }
        start_ = steady_clock::now();
        peer_ = bench::Peer::open(a.peer);
    }

    nlohmann::json measure()
    {
        std::vector<std::vector<float>> took(a_.threads);
        if (name_ == "open") {
            found_ += peer_->get(key_of(a_.num / 2), thread_value());
            took[0].push_back(microseconds(start_));
            return figures(took[0], took[0][0] * 1e-6, 0);
        }
        std::vector<std::thread> threads;
        std::thread writer, watcher(&Run::show_progress, this);
        if (name_ == "readwhilewriting")
            writer = std::thread([this] {
                for (uint64_t i = 0; !over_; i++)
                    peer_->put(key_of(bench::scramble(~i) % a_.num), value_, false);
            });
        const uint64_t written = bytes_written();
        start_ = steady_clock::now();
        for (unsigned t = 0; t < a_.threads; t++)
            threads.emplace_back([this, t, &took] { work(t, took[t]); });
        for (std::thread &t : threads)
            t.join();
        const double seconds = std::chrono::duration<double>(steady_clock::now() - start_).count();
        const uint64_t bytes = bytes_written() - written + peer_->log_bytes();
        over_ = true;
        if (writer.joinable())
            writer.join();
        watcher.join();
        std::vector<float> all;
        for (const auto &part : took)
            all.insert(all.end(), part.begin(), part.end());
        return figures(all, seconds, static_cast<double>(bytes));
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
        const double most = name_.starts_with("fill") ? a_.duration : a_.read_duration;
        bench::Random random(thread + 1);
        took.reserve(count);
        for (uint64_t i = 0; i < count; i++) {
            auto start = steady_clock::now();
            if (start - start_ > std::chrono::duration<double>(most))
                return;
            if (zipfian_)
                ycsb_step(random);
            else
                step(thread * count + i);
            took.push_back(microseconds(start));
            done_.fetch_add(1, std::memory_order_relaxed);
        }
    }

    void step(uint64_t i)
    {
        const uint64_t random = bench::scramble(i + 1) % a_.num;
        if (name_ == "fillseq")
            peer_->put(key_of(i), value_, a_.sync);
        else if (name_ == "fillrandom" || name_ == "overwrite" || name_ == "fillsync")
            peer_->put(key_of(random), value_, a_.sync || name_ == "fillsync");
        else if (name_ == "readrandom" || name_ == "readwhilewriting")
            found_ += peer_->get(key_of(random), thread_value());
        else if (name_ == "readmissing")
            found_ += peer_->get(key_of(random, "."), thread_value());
        else if (name_ == "seekrandom")
            found_ += peer_->scan(key_of(random), scan_length) > 0;
        else
            peer_->remove(key_of(random));
    }

    void ycsb_step(bench::Random &random)
    {
        const uint64_t dice = random.below(100);
        if (dice < mix_.inserts) {
            peer_->put(key_of(inserted_++), value_, a_.sync);
            return;
        }
        const uint64_t key = choose(mix_, *zipfian_, inserted_, random);
        if (mix_.scans) {
            found_ += peer_->scan(key_of(key), 1 + random.below(ycsb_scan_max)) > 0;
            return;
        }
        const bool reads = dice < mix_.inserts + mix_.reads;
        if (reads || mix_.modifies)
            found_ += peer_->get(key_of(key), thread_value());
        if (!reads)
            peer_->put(key_of(key), value_, a_.sync);
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

    nlohmann::json figures(std::vector<float> &took, double seconds, double bytes) const
    {
        std::sort(took.begin(), took.end());
        const auto at = [&](double share) {
            return took.empty() ? 0.0F
                                : took[std::min(took.size() - 1,
                                                static_cast<size_t>(
                                                    share * static_cast<double>(took.size())))];
        };
        const double operations = static_cast<double>(std::max<size_t>(took.size(), 1));
        return {{"peer", bench::Peer::name()},
                {"benchmark", name_},
                {"operations", took.size()},
                {"found", found_.load()},
                {"mean", seconds * 1e6 * a_.threads / operations},
                {"p50", at(0.5)},
                {"p99", at(0.99)},
                {"p99.9", at(0.999)},
                {"longest", took.empty() ? 0.0F : took.back()},
                {"bytes written", bytes / operations},
                {"merging", 100 * peer_->merging_seconds() / seconds}};
    }

    const Arguments &a_;
    std::string name_, value_;
    std::optional<bench::Zipfian> zipfian_; // of YCSB
    bench::Workload mix_{};
    std::atomic<uint64_t> inserted_; // keys, of YCSB
    steady_clock::time_point start_;
    std::unique_ptr<bench::Peer> peer_;
    std::atomic<uint64_t> done_{0}, found_{0};
    std::atomic<bool> over_{false};
};

constexpr const char *shown[] = {"mean", "p50", "p99", "p99.9", "longest"};

void print(const Arguments &a, const nlohmann::json &r)
{
    const auto name = r["benchmark"].get<std::string>();
    const auto operations = r["operations"].get<uint64_t>();
    if (a.json) {
        printf("%s\n", r.dump().c_str());
    } else if (!a.samples.empty()) {
        for (const char *figure :
             {"mean", "p50", "p99", "p99.9", "longest", "bytes written", "merging"}) {
            std::vector<std::string> row(a.samples.begin() + 1, a.samples.end());
            row.push_back(name);
            row.push_back(figure);
            const bool is_bytes = figure == std::string("bytes written"),
                       is_share = figure == std::string("merging");
            if ((is_bytes || is_share) && name == "open")
                continue;
            bench::emit({a.samples[0], row, a.column, r[figure].get<double>(),
                         is_bytes   ? "B"
                         : is_share ? "%"
                                    : "µs",
                         operations});
        }
    } else {
        printf("%-17s", name.c_str());
        for (const char *figure : shown)
            printf(" %10.2f", r[figure].get<double>());
        printf(" %10" PRIu64 "\n", operations);
    }
    fflush(stdout);
}

std::vector<std::string> names_in(const std::string &list)
{
    const std::vector<std::string> known = {"fillseq",   "fillrandom",   "fillsync",
                                            "overwrite", "readrandom",   "readmissing",
                                            "readseq",   "seekrandom",   "readwhilewriting",
                                            "open",      "deleterandom", "die",
                                            "wait",      "ycsba",        "ycsbb",
                                            "ycsbc",     "ycsbd",        "ycsbe",
                                            "ycsbf"};
    std::vector<std::string> names = CLI::detail::split(list, ',');
    for (const std::string &name : names)
        if (std::find(known.begin(), known.end(), name) == known.end()) {
            fprintf(stderr, "there is no workload %s; there are: %s\n", name.c_str(),
                    CLI::detail::join(known, ", ").c_str());
            exit(2);
        }
    return names;
}

} // namespace

int main(int count, char **values)
{
    Arguments a;
    CLI::App app("The workloads of db_bench and YCSB on one LSM store; times are in microseconds.");
    app.add_option("--db", a.peer.db, "directory of the store; `fill` workloads delete it first")
        ->required();
    app.add_option("--benchmarks", a.benchmarks, "workloads, with commas between");
    app.add_option("--num", a.num, "operations of each thread, and keys")
        ->check(CLI::PositiveNumber);
    app.add_option("--duration", a.duration, "most seconds of a workload");
    app.add_option("--read_duration", a.read_duration, "the same for workloads that do not fill");
    app.add_option("--value_size", a.value_size, "bytes");
    app.add_option("--threads", a.threads)->check(CLI::Range(1, 64));
    app.add_flag("--sync", a.sync, "let every put survive a power failure");
    app.add_option("--write_buffer_size", a.peer.write_buffer_size, "bytes of a memtable");
    app.add_option("--cache_size", a.peer.cache_size, "bytes of blocks in memory");
    app.add_option("--bloom_bits", a.peer.bloom_bits, "a key; 0: no filters");
    app.add_option("--memtables", a.peer.memtables,
                   "of our store: dram, immutable, mutable, nosst, merging or keylsm")
        ->check(CLI::IsMember({"dram", "immutable", "mutable", "nosst", "merging", "keylsm"}));
    app.add_option("--container", a.peer.container, "path of its memtables in persistent memory");
    app.add_option("--persistent_bytes", a.peer.persistent_bytes, "of such a memtable");
    app.add_option("--engine", a.peer.engine, "of libpm, for a new container")
        ->check(CLI::IsMember({"redo", "log"}));
    app.add_option("--fast_directory", a.peer.fast_directory, "of its tables of upper levels");
    app.add_option("--fast_levels", a.peer.fast_levels, "how many levels those are");
    app.add_option("--read_workers", a.peer.read_workers, "threads that help its gets");
    app.add_flag("--use_existing_db", a.peer.use_existing_db,
                 "let `fill` workloads go on in the store that is there");
    app.add_flag("--json", a.json, "print a JSON object a line, and no table");
    app.add_option("--samples", a.samples, "table and row: print samples for the driver");
    app.add_option("--column", a.column, "of the samples")->take_last();
    CLI11_PARSE(app, count, values);

    const std::vector<std::string> names = names_in(a.benchmarks);
    if (!a.json && a.samples.empty()) {
        printf("%-17s", bench::Peer::name());
        for (const char *figure : shown)
            printf(" %10s", figure);
        printf(" %10s\n", "operations");
    }
    try {
        std::unique_ptr<Run> run;
        for (const std::string &name : names) {
            if (name == "die")
                raise(SIGKILL); // the store is still open
            run.reset();
            run = std::make_unique<Run>(a, name);
            if (name == "wait")
                wait_for_background();
            else
                print(a, run->measure());
        }
    } catch (const std::exception &error) {
        fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
