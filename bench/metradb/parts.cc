/*
 * Where the time of a METRADB operation goes. The linker sends calls between the parts of this
 * program through the functions below (--wrap), which charge the time since the last such moment to
 * the part that was running; so the parts add up to the whole. What taking the time costs is
 * measured, and taken off the two parts at whose border it was taken.
 *
 *     bench_metradb_parts DIRECTORY PAIRS BYTES
 */
#include "harness/sample.h"
#include "harness/status.h"
#include "metradb/round.h"

#include <CLI/CLI.hpp>
#include <array>
#include <metradb.h>
#include <x86intrin.h>

namespace bench
{
namespace
{

enum Part {
    rest,
    hash_table,
    copying,
    allocation,
    pointers,
    announcing,
    opening,
    finding,
    logging,
    home,
    lock
};
constexpr std::array part_names = {
    "rest",          "hash table",         "copying",       "allocation",
    "pointer map",   "announcing stores",  "opening pages", "finding what changed",
    "log and fence", "record, lines home", "lock"};

/** Ticks of the processor's clock, by part. */
class Meter
{
  public:
    Part enter(Part part)
    {
        Part before = now_;
        turn(part);
        return before;
    }
    void leave(Part before) { turn(before); }
    Part now() const { return now_; }

    void clear()
    {
        *this = Meter();
        since_ = __rdtsc();
    }
    uint64_t ticks(Part part) const { return ticks_[part]; }
    uint64_t turns(Part part) const { return turns_[part]; }

  private:
    void turn(Part part)
    {
        uint64_t time = __rdtsc();
        ticks_[now_] += time - since_;
        turns_[now_]++;
        turns_[part]++;
        since_ = time;
        now_ = part;
    }

    Part now_ = rest;
    uint64_t since_ = 0;
    std::array<uint64_t, part_names.size()> ticks_{}, turns_{};
};

Meter meter;

class In
{
  public:
    explicit In(Part part) : before_(meter.enter(part)) {}
    In(const In &) = delete;
    ~In() { meter.leave(before_); }

  private:
    Part before_;
};

/** Ticks that one turn from a part to another takes. */
double turn_ticks()
{
    constexpr int times = 1'000'000;
    meter.clear();
    uint64_t start = __rdtsc();
    for (int i = 0; i < times; i++)
        In in(hash_table);
    return static_cast<double>(__rdtsc() - start) / (2.0 * times);
}

void measure(Store &store, Operation operation)
{
    const auto order = store.order(operation);
    const double turn = turn_ticks();
    meter.clear();
    store.run(operation, order);
    meter.leave(rest);
    std::array<double, part_names.size()> ticks;
    double all = 0;
    for (size_t i = 0; i < ticks.size(); i++) {
        Part part = static_cast<Part>(i);
        double taking_time = turn / 2 * static_cast<double>(meter.turns(part));
        ticks[i] = std::max(0.0, static_cast<double>(meter.ticks(part)) - taking_time);
        all += ticks[i];
    }
    for (size_t i = 0; i < ticks.size(); i++)
        emit({"metradb_parts",
              {part_names[i]},
              operation_names[operation],
              100 * ticks[i] / all,
              "%",
              order.size()});
}

void run(const std::string &directory, uint32_t pairs, size_t bytes)
{
    Store store(store_metradb, directory + "/store", pairs, bytes);
    for (Operation operation : round_of_operations)
        measure(store, operation);
}

} // namespace
} // namespace bench

/* ---- the borders ------------------------------------------------------------------------------ */

using bench::In;

// Calls of NAME come here; the function itself is __real_NAME. CMakeLists.txt has the list of them.
#define BORDER(part, result, name, parameters, arguments)                                          \
    extern "C" result __real_##name parameters;                                                    \
    extern "C" result __wrap_##name parameters;                                                    \
    extern "C" result __wrap_##name parameters                                                     \
    {                                                                                              \
        In in(part);                                                                               \
        return __real_##name arguments;                                                            \
    }

struct txn;
struct medium;
struct lock;

BORDER(bench::hash_table, int, metradb_put, (metradb * db, metradb_bytes key, metradb_bytes value),
       (db, key, value))
BORDER(bench::hash_table, int, metradb_get,
       (const metradb *db, metradb_bytes key, metradb_bytes *value), (db, key, value))
BORDER(bench::hash_table, int, metradb_delete, (metradb * db, metradb_bytes key), (db, key))
BORDER(bench::allocation, void *, pm_malloc, (pm_container * c, size_t size), (c, size))
BORDER(bench::allocation, int, pm_free, (void *p), (p))
BORDER(bench::pointers, int, pm_mark_pointers, (void *first, size_t count), (first, count))
BORDER(bench::pointers, int, track_map_kinds, (txn * t), (t))
BORDER(bench::announcing, int, pm_dirty, (const void *p, size_t size), (p, size))
BORDER(bench::opening, int, view_open_page, (txn * t, uint32_t page), (t, page))
BORDER(bench::opening, int, view_open_marked, (txn * t, uint32_t page), (t, page))
BORDER(bench::home, int, redo_commit, (txn * t), (t))
BORDER(bench::finding, void, view_collect, (txn * t), (t))
BORDER(bench::logging, int, redo_log_reserve, (txn * t, uint64_t total), (t, total))
BORDER(bench::logging, int, redo_log_end, (txn * t), (t))
BORDER(bench::logging, int, medium_fence, (medium * m), (m))
BORDER(bench::lock, void, lock_acquire_masked, (lock * l, sigset_t *saved), (l, saved))
BORDER(bench::lock, void, lock_release_masked, (lock * l, const sigset_t *saved), (l, saved))

// A value on its way to its place; or a record on its way to the log.
extern "C" int __real_medium_copy(medium *m, void *to, const void *from, uint64_t size);
extern "C" int __wrap_medium_copy(medium *m, void *to, const void *from, uint64_t size);
extern "C" int __wrap_medium_copy(medium *m, void *to, const void *from, uint64_t size)
{
    In in(bench::meter.now() == bench::logging ? bench::logging : bench::copying);
    return __real_medium_copy(m, to, from, size);
}

// What memcpy() is called in the store.
extern "C" void *parts_memcpy(void *to, const void *from, size_t size);
extern "C" void *parts_memcpy(void *to, const void *from, size_t size)
{
    In in(bench::copying);
    return memcpy(to, from, size);
}

int main(int argc, char **argv)
{
    std::string directory;
    uint32_t pairs;
    size_t bytes;
    CLI::App app("Where the time of a METRADB operation goes");
    app.add_option("directory", directory, "for a file")->required();
    app.add_option("pairs", pairs)->required();
    app.add_option("bytes", bytes, "of a value")->required();
    CLI11_PARSE(app, argc, argv);
    return bench::status_of([&] { bench::run(directory, pairs, bytes); });
}
