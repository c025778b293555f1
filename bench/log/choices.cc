/*
 * Two choices of the log engine. The map of lines is flat, and has no ordered pieces for each page. Checksums are
 * XXH3, and not CRC32C in hardware.
 *
 * The paper (Hu et al., section 3.2) finds a page by an index, and its pieces in a skip list. Here std::map
 * stands for the list: also a search among the pieces of one page.
 */
#include "harness/clock.h"
#include "harness/sample.h"
#include "harness/status.h"

#include <CLI/CLI.hpp>
#include <map>
#include <nmmintrin.h>
#include <random>
#include <string.h>

extern "C" {
#include "base/checksum.h"
}

namespace bench
{
namespace
{

constexpr uint64_t PAGE_LINES = 64;

/** The CRC of whole words, three at a time, since the instruction takes three cycles. */
uint64_t crc32c(const uint64_t *words, uint64_t count)
{
    uint64_t a = 0, b = 0, c = 0;
    for (; count >= 3; count -= 3, words += 3) {
        a = _mm_crc32_u64(a, words[0]);
        b = _mm_crc32_u64(b, words[1]);
        c = _mm_crc32_u64(c, words[2]);
    }
    for (; count > 0; count--)
        a = _mm_crc32_u64(a, *words++);
    return a ^ b << 16 ^ c << 32;
}

/** Let random lines have new places, as commits do: nanoseconds for each. */
template <typename Place> double move_lines(const std::vector<uint32_t> &lines, Place place)
{
    uint64_t sum = 0;
    const double ns = elapsed_ns([&] {
        for (uint32_t i = 0; i < lines.size(); i++)
            sum += place(lines[i], i);
    });
    if (sum == 1)
        throw std::runtime_error("unlikely");
    return ns / (double)lines.size();
}

void measure_map(uint64_t count)
{
    std::vector<uint32_t> flat(count), lines(4 * count);
    std::vector<std::map<uint32_t, uint32_t>> pages(count / PAGE_LINES);
    std::mt19937 random(1);
    for (uint32_t &line : lines)
        line = (uint32_t)(random() % count);
    const std::vector<std::string> row = {"a line gets a new place", std::to_string(count)};
    for (int turn = 0; turn < 2; turn++) { // the first one makes the pieces
        const double in_flat = move_lines(lines, [&](uint32_t line, uint32_t place) {
            return std::exchange(flat[line], place);
        });
        const double in_pages = move_lines(lines, [&](uint32_t line, uint32_t place) {
            return std::exchange(pages[line / PAGE_LINES][line % PAGE_LINES], place);
        });
        if (turn == 0)
            continue;
        emit({"choices", row, "flat", in_flat, "ns", lines.size()});
        emit({"choices", row, "ordered", in_pages, "ns", lines.size()});
    }
}

void measure_checksum(uint64_t bytes)
{
    constexpr uint64_t TIMES = 1 << 20;
    std::vector<uint64_t> record(bytes / sizeof(uint64_t), 7);
    const std::vector<std::string> row = {"checksum of a record, bytes", std::to_string(bytes)};
    uint64_t sum = 0;
    const double xxh3 = elapsed_ns([&] {
        for (uint64_t i = 0; i < TIMES; i++)
            sum += record[0] = checksum(record.data(), bytes, 0);
    });
    const double crc = elapsed_ns([&] {
        for (uint64_t i = 0; i < TIMES; i++)
            sum += record[0] = crc32c(record.data(), record.size());
    });
    if (sum == 1)
        throw std::runtime_error("unlikely");
    emit({"choices", row, "xxh3", xxh3 / TIMES, "ns", TIMES});
    emit({"choices", row, "crc32c", crc / TIMES, "ns", TIMES});
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    CLI::App app("Time what the log engine chose, beside what it did not");
    CLI11_PARSE(app, argc, argv);
    return bench::status_of([&] {
        for (uint64_t lines : {1u << 14, 1u << 18, 1u << 22})
            bench::measure_map(lines);
        for (uint64_t bytes : {256u, 512u, 4096u, 65536u})
            bench::measure_checksum(bytes);
    });
}
