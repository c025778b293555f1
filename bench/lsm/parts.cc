/*
 * Where the time of a put and of a get goes, in our LSM store. The linker sends calls between its parts
 * through the functions below (--wrap, by their mangled names). They charge the time to the part that was
 * running, if the calling thread is the one that puts and gets.
 *
 *     bench_lsm_parts MODE DIRECTORY CONTAINER OPERATIONS BYTES
 */
#include "harness/random.h"
#include "harness/sample.h"

#include <lsm/lsm.hpp>
#include <lsm/memtable.hpp>

#include <array>
#include <chrono>
#include <cinttypes>
#include <sstream>
#include <x86intrin.h>

namespace
{

enum Part { rest, log_part, memtable, commit, parts };
constexpr std::array<const char *, parts> names = {"rest", "log", "memtable", "commit"};

thread_local bool is_measured = false;
Part now = rest;
uint64_t since;
std::array<uint64_t, parts> ticks;

class In
{
  public:
    explicit In(Part part) : before_(now) { turn(part); }
    ~In() { turn(before_); }
    In(const In &) = delete;

    static void turn(Part part)
    {
        if (!is_measured)
            return;
        const uint64_t time = __rdtsc();
        ticks[now] += time - since;
        since = time;
        now = part;
    }

  private:
    Part before_;
};

} // namespace

#define BORDER(part, result, name, symbol, parameters, arguments)                                  \
    result real_##name parameters asm("__real_" symbol);                                           \
    result wrap_##name parameters asm("__wrap_" symbol);                                           \
    result wrap_##name parameters                                                                  \
    {                                                                                              \
        In in(part);                                                                               \
        return real_##name arguments;                                                              \
    }

using Text = std::string_view;
using Found = std::optional<lsm::Memtable::Found>;

BORDER(log_part, void, append, "_ZN3lsm3Log6appendESt17basic_string_viewIcSt11char_traitsIcEE",
       (void *log, Text record), (log, record))
BORDER(memtable, void, add,
       "_ZN3lsm8Memtable3addEmNS_4KindESt17basic_string_viewIcSt11char_traitsIcEES5_",
       (void *table, lsm::Sequence sequence, lsm::Kind kind, Text key, Text value),
       (table, sequence, kind, key, value))
BORDER(memtable, void *, make,
       "_ZN3lsm8Memtable4makeESt17basic_string_viewIcSt11char_traitsIcEES4_",
       (void *table, Text key, Text value), (table, key, value))
BORDER(memtable, bool, link, "_ZN3lsm8Memtable4linkEPNS0_4NodeE", (void *table, void *node),
       (table, node))
BORDER(memtable, Found, get, "_ZNK3lsm8Memtable3getESt17basic_string_viewIcSt11char_traitsIcEEm",
       (const void *table, Text key, lsm::Sequence sequence), (table, key, sequence))
BORDER(commit, int, commit, "pm_commit", (void *container), (container))

namespace
{

double stalled_ns(lsm::Store &store)
{
    std::istringstream text(*store.property("stalls"));
    double count = 0, longest = 0, all = 0;
    text >> count >> longest >> all;
    return all * 1e3;
}

std::string key_of(uint64_t number)
{
    char key[24];
    snprintf(key, sizeof key, "%016" PRIu64, number);
    return key;
}

/* Measure `count` calls of operate(i). */
template <class Operate>
void measure(const std::string &mode, const char *operation, uint64_t count, lsm::Store &store,
             Operate operate)
{
    ticks = {};
    const double stalled = stalled_ns(store);
    const auto start = std::chrono::steady_clock::now();
    is_measured = true;
    since = __rdtsc();
    for (uint64_t i = 0; i < count; i++)
        operate(bench::scramble(i + 1) % count);
    In::turn(rest);
    is_measured = false;
    const std::chrono::duration<double, std::nano> ns = std::chrono::steady_clock::now() - start;
    const double waited = stalled_ns(store) - stalled;
    double all = 0;
    for (const uint64_t t : ticks)
        all += static_cast<double>(t);
    const auto emit = [&](const char *part, double its_ns) {
        bench::emit({"lsm_parts",
                     {operation, part},
                     mode,
                     its_ns / static_cast<double>(count),
                     "ns",
                     count});
    };
    for (size_t i = 0; i < parts; i++)
        emit(names[i], ns.count() * static_cast<double>(ticks[i]) / all - (i == rest ? waited : 0));
    emit("waiting for the background", waited);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: bench_lsm_parts MODE DIRECTORY CONTAINER OPERATIONS BYTES\n");
        return 2;
    }
    const std::string mode = argv[1];
    const uint64_t count = std::stoull(argv[4]);
    const std::string value(std::stoull(argv[5]), 'v');
    lsm::Options options;
    options.create = true;
    options.memtables = *lsm::memtables_of(mode);
    options.container = argv[3];
    if (options.memtables == lsm::Memtables::persistent_only)
        options.persistent_bytes = count * (value.size() + value.size() / 4 + 100);
    auto store = lsm::Store::open(argv[2], options);
    measure(mode, "put", count, *store, [&](uint64_t i) { store->put(key_of(i), value); });
    measure(mode, "get", count, *store, [&](uint64_t i) { store->get(key_of(i)); });
}
