/*
 * What marks cost: a program that never touches a container, compiled with and without them, and a
 * store to a line that is marked already. For the second a piece of the arena and of the table of
 * marks is mapped by hand, since no commit takes part. Each sample is the fastest of several turns,
 * with both variants side by side.
 */
#include "base/marks.h"
#include "harness/clock.h"
#include "harness/random.h"
#include "harness/sample.h"
#include "marks/loops.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace
{

constexpr int turns = 41;

void *map(uint64_t address, size_t bytes)
{
    void *wanted = reinterpret_cast<void *>(address);
    if (mmap(wanted, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != wanted)
        throw std::runtime_error("the arena's place is taken");
    return wanted;
}

template <class Plain, class Marked>
void compare(const std::string &table, const std::string &row, uint64_t operations, Plain &&plain,
             Marked &&marked)
{
    double best_plain = std::numeric_limits<double>::max(), best_marked = best_plain;
    for (int turn = 0; turn < turns; turn++) {
        best_plain = std::min(best_plain, bench::elapsed_ns(plain));
        best_marked = std::min(best_marked, bench::elapsed_ns(marked));
    }
    auto count = static_cast<double>(operations);
    bench::emit({table, {row}, "clang", best_plain / count, "ns", operations});
    bench::emit({table, {row}, "pmcc", best_marked / count, "ns", operations});
    bench::emit({table, {row}, "difference", (best_marked - best_plain) / count, "ns", operations});
    bench::emit({table, {row}, "ratio", 100 * best_marked / best_plain, "%", operations});
}

/* Words as in a text: few are frequent. */
std::string make_text(size_t words)
{
    bench::Random random(1);
    std::string text;
    for (size_t i = 0; i < words; i++) {
        uint64_t word = bench::scramble(random.below(1 + random.below(20000)));
        for (size_t letter = 0; letter < 3 + word % 8; letter++)
            text += static_cast<char>('a' + (word >> (5 * letter)) % 26);
        text += ' ';
    }
    return text;
}

void empty_marks()
{
    constexpr size_t lines = 64, count = 1 << 20;
    auto *to = static_cast<uint64_t *>(map(ARENA_HINT, lines * 64));
    auto *table = static_cast<unsigned char *>(map(MARKS_TABLE, lines));
    std::fill_n(table, lines, 1);
    compare(
        "marks", "a store to a marked line", count, [&] { store_lines(to, lines, count); },
        [&] { marked_store_lines(to, lines, count); });
}

void foreign_memory()
{
    constexpr size_t count = 1 << 16; // 256 KiB: in the caches
    std::vector<uint32_t> to(count), places = bench::permutation(count, 7);
    compare(
        "marks", "scattered stores to the heap", count,
        [&] { scatter(to.data(), places.data(), count); },
        [&] { marked_scatter(to.data(), places.data(), count); });
    compare(
        "marks", "an array filled", count, [&] { fill(to.data(), count, 3); },
        [&] { marked_fill(to.data(), count, 3); });
    std::string text = make_text(200000);
    uint64_t sum = 0;
    compare(
        "marks", "words counted, sorted, printed", 200000,
        [&] { sum += word_count(text.data(), text.size()); },
        [&] { sum -= marked_word_count(text.data(), text.size()); });
    if (sum != 0)
        throw std::runtime_error("the two variants do not agree");
}

} // namespace

int main()
{
    foreign_memory();
    empty_marks();
}
