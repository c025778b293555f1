#include "arena.h"

#include "base/marks.h"
#include "subject.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace test
{
namespace
{

constexpr size_t line_size = size_t{1} << MARKS_LINE_SHIFT;
constexpr size_t line_count = arena_bytes / line_size;

/* What happened to each line between two commits, over both runs. */
using Lines = std::set<size_t>;
struct Interval {
    Lines changed, marked, escaped;
};

std::vector<Interval> intervals;
size_t interval; // the index of the present one
std::array<char, arena_bytes> snapshot;
std::string fault;
size_t calls;

unsigned char *table()
{
    return reinterpret_cast<unsigned char *>(MARKS_TABLE);
}

void reserve(uint64_t address, size_t bytes)
{
    void *wanted = reinterpret_cast<void *>(address);
    if (mmap(wanted, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != wanted) {
        perror("mmap of the arena");
        abort();
    }
}

void set_mark(uintptr_t address)
{
    size_t line = (address - ARENA_HINT) >> MARKS_LINE_SHIFT;
    if (address < ARENA_HINT || line >= line_count)
        fault = "marked memory that does not exist";
    else
        table()[line] = 1;
}

/* Compare, and begin anew. */
void end_interval()
{
    if (intervals.size() <= interval)
        intervals.resize(interval + 1);
    for (size_t line = 0; line < line_count; line++) {
        const size_t at = line * line_size;
        bool is_marked = table()[line];
        bool is_changed = memcmp(arena_begin() + at, snapshot.data() + at, line_size) != 0;
        if (is_marked)
            intervals[interval].marked.insert(line);
        if (is_changed)
            intervals[interval].changed.insert(line);
        if (is_changed && !is_marked)
            intervals[interval].escaped.insert(line);
    }
    interval++;
    memcpy(snapshot.data(), arena_begin(), arena_bytes);
    memset(table(), 0, line_count);
}

} // namespace

std::vector<Subject> &subjects()
{
    static std::vector<Subject> all;
    return all;
}

char *arena_begin()
{
    return reinterpret_cast<char *>(ARENA_HINT);
}

void make_arena()
{
    reserve(ARENA_HINT, arena_bytes);
    reserve(MARKS_TABLE, 4096);
}

size_t mark_calls()
{
    return calls;
}

Outcome observe(const Subject &subject, size_t offset, long n)
{
    intervals.clear();
    fault.clear();
    for (int content : {0x15, 0x6a}) {
        memset(arena_begin(), content, arena_bytes);
        memcpy(snapshot.data(), arena_begin(), arena_bytes);
        memset(table(), 0, line_count);
        interval = 0;
        subject.function(arena_begin() + offset, n);
        end_interval();
    }
    Outcome outcome;
    for (const Interval &i : intervals) {
        outcome.escaped.insert(i.escaped.begin(), i.escaped.end());
        for (size_t line : i.marked)
            if (!i.changed.contains(line))
                outcome.needless.insert(line);
    }
    outcome.fault = fault;
    return outcome;
}

} // namespace test

using namespace test;

extern "C" void runtime_mark(const void *address)
{
    calls++;
    if (table()[(reinterpret_cast<uintptr_t>(address) - ARENA_HINT) >> MARKS_LINE_SHIFT])
        fault = "pm__mark() of a line marked already";
    set_mark(reinterpret_cast<uintptr_t>(address));
}

extern "C" void runtime_mark_range(const void *address, size_t size)
{
    auto first = reinterpret_cast<uintptr_t>(address);
    calls++;
    if (first - ARENA_HINT >= ARENA_SIZE || size == 0)
        return;
    if (size > arena_bytes) {
        fault = "marked memory that does not exist";
        return;
    }
    for (uintptr_t line = first & ~(line_size - 1); line < first + size; line += line_size)
        set_mark(line);
}

/* What marks say of kinds is for the tests of pointers. */
extern "C" void runtime_mark_data(const void *address, size_t size)
{
    runtime_mark_range(address, size);
}

extern "C" void runtime_mark_pieces(const void *address, size_t size)
{
    runtime_mark_range(address, size);
}

extern "C" void runtime_mark_copy(const void *address, const void *, size_t size)
{
    runtime_mark_range(address, size);
}

extern "C" void runtime_announce_range(const void *address, size_t size)
{
    runtime_mark_range(address, size);
}

extern "C" void runtime_announce_data(const void *address, size_t size)
{
    runtime_mark_range(address, size);
}

extern "C" void runtime_announce_copy(const void *address, const void *, size_t size)
{
    runtime_mark_range(address, size);
}

extern "C" uint64_t runtime_kinds(const void *, size_t)
{
    return 0;
}

void add_subject(const char *name, subject *function, int exact)
{
    subjects().push_back({name, function, exact != 0});
}

void commit()
{
    end_interval();
}
