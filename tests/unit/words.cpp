// Sealed words and the arithmetic on bits, against slow and obvious versions of themselves.
#include "common/fixture.hpp"
#include "common/format.hpp"

extern "C" {
#include "allocator/bitmap.h"
#include "base/reciprocal.h"
}

#include <random>

TEST_CASE("every flipped bit of a sealed word shows")
{
    std::mt19937_64 random(1);
    std::vector<uint64_t> payloads = {0, 1, (UINT64_C(1) << SEAL_BITS) - 1};
    for (unsigned bit = 0; bit < SEAL_BITS; bit++)
        payloads.push_back(UINT64_C(1) << bit);
    for (int i = 0; i < 20000; i++)
        payloads.push_back(random() >> (8 + random() % 56));
    for (uint64_t payload : payloads) {
        uint64_t word = seal(payload);
        if (!seal_is_valid(word) || seal_payload(word) != payload)
            FAIL("payload " << payload);
        for (unsigned bit = 0; bit < 64; bit++)
            if (seal_is_valid(word ^ UINT64_C(1) << bit))
                FAIL("payload " << payload << ", bit " << bit);
    }
    REQUIRE(seal(0) == 0);
    // What the argument in seal.h rests on.
    for (unsigned low = 0; low + 8 <= 64; low++) {
        uint64_t eight = UINT64_C(0x9E3779B97F4A7C15) >> low & 0xFF;
        REQUIRE(eight != 0);
        REQUIRE(eight != 0xFF);
    }
}

TEST_CASE("segment words give back what they were made of")
{
    for (uint32_t argument : {0u, 1u, 255u, 1u << 26, UINT32_MAX}) {
        REQUIRE(segment_kind(segment_word(SEGMENT_LARGE, argument)) == SEGMENT_LARGE);
        REQUIRE(segment_argument(segment_word(SEGMENT_LARGE, argument)) == argument);
        for (unsigned half : {0u, 1u}) {
            uint64_t word = segment_log_word(half, argument);
            REQUIRE(segment_kind(word) == SEGMENT_LOG);
            REQUIRE(segment_argument(word) == argument);
            REQUIRE(segment_log_half(word) == half);
            REQUIRE(seal_is_valid(word));
        }
    }
    REQUIRE(segment_word(SEGMENT_FREE, 0) == 0);
}

TEST_CASE("slots of a bitmap's words")
{
    std::mt19937 random(2);
    for (uint64_t first = 0; first <= 200; first += 1 + random() % 3)
        for (uint64_t end = first; end <= 200; end += 1 + random() % 3)
            for (uint32_t word = 0; word < 4; word++) {
                uint64_t expected = 0;
                for (uint64_t bit = 0; bit < BITMAP_SLOTS; bit++)
                    if (word * BITMAP_SLOTS + bit >= first && word * BITMAP_SLOTS + bit < end)
                        expected |= UINT64_C(1) << bit;
                if (bitmap_mask(word, first, end) != expected)
                    FAIL("word " << word << " of [" << first << ", " << end << ")");
            }
}

TEST_CASE("questions about ranges of slots, with one in use or one not")
{
    std::mt19937 random(3);
    constexpr uint32_t slots = 3 * BITMAP_SLOTS;
    for (uint32_t odd = 0; odd < slots; odd++) {
        uint64_t used[3] = {}, unused[3];
        used[odd / BITMAP_SLOTS] = UINT64_C(1) << odd % BITMAP_SLOTS;
        for (int i = 0; i < 3; i++) {
            unused[i] = seal(seal_payload(~used[i]));
            used[i] = seal(used[i]);
        }
        for (uint32_t slot = 0; slot < slots; slot++)
            if (bitmap_has(used, slot) != (slot == odd))
                FAIL("slot " << slot << ", where " << odd << " is in use");
        for (uint32_t first = 0; first < slots; first++)
            for (uint32_t end = first; end <= slots; end += 1 + random() % 17) {
                INFO("slots " << first << " to " << end << ", and " << odd);
                bool within = odd >= first && odd < end;
                if (bitmap_any(used, first, end) != within)
                    FAIL("any");
                if (bitmap_all(unused, first, end) == within)
                    FAIL("all");
                bool few = end > first && first / BITMAP_SLOTS == (end - 1) / BITMAP_SLOTS;
                if (few && bitmap_any_of_few(used, first, end - first) != within)
                    FAIL("any of few");
            }
    }
}

TEST_CASE("arithmetic")
{
    REQUIRE(align_up(0, 4096) == 0);
    REQUIRE(align_up(1, 4096) == 4096);
    REQUIRE(align_up(4096, 4096) == 4096);
    REQUIRE(align_down(4095, 4096) == 0);
    REQUIRE(divide_up(0, 3) == 0);
    REQUIRE(divide_up(3, 3) == 1);
    REQUIRE(divide_up(4, 3) == 2);
    REQUIRE_FALSE(is_power_of_two(0));
    REQUIRE(is_power_of_two(1));
    REQUIRE_FALSE(is_power_of_two(6));
    REQUIRE(is_power_of_two(UINT64_C(1) << 63));
}

TEST_CASE("slabs use their segment, and stay in it")
{
    for (uint64_t segment = FORMAT_SEGMENT_MIN; segment <= FORMAT_SEGMENT_MAX; segment *= 4)
        for (uint32_t size = 16; size <= segment / 2; size += size < 4096 ? 16 : size / 16 * 16) {
            struct slab_shape shape = slab_shape(segment, size);
            INFO("segment " << segment << ", objects of " << size);
            REQUIRE(shape.objects > 0);
            REQUIRE(shape.header_bytes % PM_PAGE == 0);
            REQUIRE(shape.header_bytes / 8 >= bitmap_words(shape.objects));
            REQUIRE(shape.header_bytes + (uint64_t)shape.objects * size <= segment);
            REQUIRE(shape.header_bytes + (uint64_t)(shape.objects + 1) * size > segment);
        }
}

TEST_CASE("the log uses its segments, and stays in them")
{
    for (uint64_t segment = FORMAT_SEGMENT_MIN; segment <= FORMAT_SEGMENT_MAX; segment *= 2) {
        uint64_t slots = log_segment_slots(segment), first = log_segment_first_slot(segment);
        REQUIRE(slots > 0);
        REQUIRE(first % PM_PAGE == 0);
        REQUIRE(slots * sizeof(log_descriptor) <= first);
        REQUIRE(first + slots * PM_PAGE == segment);
        // One slot more would not leave room for its descriptor.
        REQUIRE((slots + 1) * sizeof(log_descriptor) + (slots + 1) * PM_PAGE + PM_PAGE > segment);
    }
}

TEST_CASE("a multiplication divides all granules of the largest segment as a division does")
{
    constexpr uint32_t end = 1u << 26;
    std::mt19937_64 random(1);
    for (uint32_t divisor = 1; divisor <= 70000; divisor += divisor < 5000 ? 1 : 97) {
        const reciprocal by = reciprocal_of(divisor);
        for (uint32_t i = 0; i < 40; i++) {
            // The last multiples, where an error is largest, and some others.
            const uint32_t multiples = (end - 1) / divisor;
            const uint32_t m = i < 20 ? multiples - std::min(multiples, i)
                                      : static_cast<uint32_t>(random() % (multiples + 1));
            for (const uint32_t dividend : {m * divisor, m * divisor + divisor - 1})
                if (dividend < end && divide(dividend, by) != dividend / divisor)
                    FAIL(dividend << " / " << divisor);
        }
        if (divide(end - 1, by) != (end - 1) / divisor)
            FAIL(end - 1 << " / " << divisor);
    }
}
