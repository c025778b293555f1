// Flipped bits in what has a check: never more than an error, and often less.
#include "common/format.hpp"
#include "common/process.hpp"

#include <cerrno>
#include <filesystem>

using test::failed_with;

namespace
{

struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm";
    std::string whole;
    Fixture()
    {
        {
            pm_options options = test::small();
            options.layout = "header/1";
            test::Container c = test::open(path, options);
            void *p = pm_calloc(c.get(), 1, 100);
            void *large = pm_malloc(c.get(), 200000);
            REQUIRE((p && large));
            REQUIRE_OK(pm_setroot(c.get(), p, 60));
            REQUIRE_OK(pm_commit(c.get()));
        }
        whole = test::read_file(path);
    }
    void flip(uint64_t byte, unsigned bit) { test::flip_bit(path, byte, bit); }
    void restore(uint64_t byte) { test::patch_file(path, byte, whole.data() + byte, 1); }
    test::Container open(unsigned flags = 0)
    {
        pm_options options = test::options(flags);
        return test::Container(pm_open(path.c_str(), &options));
    }
};

// Whether the flipped bit makes the version one that this library does not read.
bool makes_version(uint64_t byte, unsigned bit)
{
    uint64_t first = offsetof(format_header, version), version = test::engine() == "log" ? FORMAT_VERSION_LOG : FORMAT_VERSION;
    if (byte < first || byte >= first + sizeof(uint32_t))
        return false;
    version ^= UINT64_C(1) << (8 * (byte - first) + bit);
    return version < FORMAT_VERSION_OLDEST || version > FORMAT_VERSION_LOG;
}

} // namespace

TEST_CASE_METHOD(Fixture, "a flipped bit in one header copy: opens from the other, which mends it")
{
    for (uint64_t copy : {FORMAT_HEADER_A, FORMAT_HEADER_B})
        for (uint64_t byte = 0; byte < sizeof(format_header); byte++) {
            unsigned bit = (unsigned)(byte * 5 + copy / 4096) % 8;
            INFO("copy at " << copy << ", byte " << byte << ", bit " << bit);
            flip(copy + byte, bit);
            test::Container c = open();
            REQUIRE(c);
            REQUIRE_OK(pm_check(c.get()));
            c.reset();
            // The page after them has the base epoch, which each opening raises.
            REQUIRE(test::read_file(path).substr(0, 2 * 4096) == whole.substr(0, 2 * 4096));
        }
}

TEST_CASE_METHOD(Fixture, "a flipped bit in one header copy: a reader leaves it, pm_check tells")
{
    for (uint64_t copy : {FORMAT_HEADER_A, FORMAT_HEADER_B}) {
        flip(copy + 80, 3);
        std::string damaged = test::read_file(path);
        test::Container c = open(PM_READONLY);
        REQUIRE(c);
        REQUIRE(pm_getroot(c.get()));
        REQUIRE(pm_check(c.get()) == -1);
        REQUIRE(failed_with(EBADMSG, {std::to_string(copy).c_str()}));
        c.reset();
        REQUIRE(test::read_file(path) == damaged);
        restore(copy + 80);
    }
    // The same under a writer that has it open.
    test::Container c = open();
    flip(100, 0);
    REQUIRE(pm_check(c.get()) == -1);
    REQUIRE(failed_with(EBADMSG, {path.c_str()}));
}

TEST_CASE_METHOD(Fixture, "a flipped bit in both header copies")
{
    for (uint64_t byte = 0; byte < sizeof(format_header); byte++)
        for (unsigned bit = 0; bit < 8; bit++) {
            INFO("byte " << byte << ", bit " << bit);
            flip(FORMAT_HEADER_A + byte, bit);
            flip(FORMAT_HEADER_B + byte, bit);
            for (unsigned flags : {0u, (unsigned)PM_READONLY}) {
                REQUIRE_FALSE(open(flags));
                REQUIRE(failed_with(makes_version(byte, bit) ? ENOTSUP : EBADMSG, {path.c_str()}));
            }
            restore(FORMAT_HEADER_A + byte);
            restore(FORMAT_HEADER_B + byte);
        }
    // Different bits are no better.
    flip(FORMAT_HEADER_A + 20, 1);
    flip(FORMAT_HEADER_B + 150, 7);
    REQUIRE_FALSE(open());
    REQUIRE(failed_with(EBADMSG));
}

TEST_CASE_METHOD(Fixture, "a flipped bit in the segment table or the base epoch", "[home]")
{
    std::vector<uint64_t> words = {FORMAT_STATE};
    for (uint64_t i = 0; i < 12; i++)
        words.push_back(FORMAT_TABLE + 8 * i);
    words.push_back(FORMAT_TABLE + 8 * 700);
    words.push_back(FORMAT_TABLE + 8 * 1023);
    for (uint64_t word : words)
        for (uint64_t bit = 0; bit < 64; bit++) {
            INFO("word at " << word << ", bit " << bit);
            flip(word + bit / 8, bit % 8);
            for (unsigned flags : {0u, (unsigned)PM_READONLY}) {
                REQUIRE_FALSE(open(flags));
                REQUIRE(failed_with(EBADMSG, {path.c_str()}));
            }
            restore(word + bit / 8);
        }
    REQUIRE(open());
}

TEST_CASE_METHOD(Fixture, "a flipped bit in the root's words never gives a wrong root", "[home]")
{
    int handed_out = 0; // to a program that does not check
    for (uint64_t word : {FORMAT_STATE + offsetof(format_state, root_offset),
                          FORMAT_STATE + offsetof(format_state, root_size)})
        for (uint64_t bit = 0; bit < 64; bit++) {
            INFO("word at " << word << ", bit " << bit);
            flip(word + bit / 8, bit % 8);
            test::Container c = open(PM_READONLY);
            if (c) {
                REQUIRE(pm_check(c.get()) == -1);
                REQUIRE(failed_with(EBADMSG, {path.c_str()}));
                handed_out += pm_getroot(c.get()) != nullptr;
            } else {
                REQUIRE(failed_with(EBADMSG, {path.c_str()}));
            }
            restore(word + bit / 8);
        }
    CHECK(handed_out == 0);
}

TEST_CASE_METHOD(Fixture, "the log's segments gone from the table", "[home]")
{
    // Sealed, and each for itself possible; but a half of the log must have a segment.
    for (unsigned half : {0u, 1u}) {
        const uint64_t word = 0;
        for (uint64_t i = 0; i < 1024; i++) {
            uint64_t offset = FORMAT_TABLE + 8 * i, was = test::read_word(path, offset);
            if (segment_kind(was) == SEGMENT_LOG && segment_log_half(was) == half)
                test::patch_file(path, offset, &word, sizeof word);
        }
        REQUIRE_FALSE(open());
        REQUIRE(failed_with(EBADMSG, {path.c_str(), "log"}));
        test::write_file(path, whole);
    }
    REQUIRE(open());
}

TEST_CASE_METHOD(Fixture, "table words that are sealed but make no sense together", "[home]")
{
    const uint64_t words[] = {
        segment_word(SEGMENT_META, 0),
        segment_word(SEGMENT_MORE, 1),
        segment_word(SEGMENT_MORE, 3),
        segment_word(SEGMENT_SLAB, 0),
        segment_word(SEGMENT_SLAB, 1 << 20),
        segment_word(SEGMENT_LARGE, 0),
        segment_word(SEGMENT_LARGE, 1 << 20),
        segment_word((enum segment_kind)7, 0),
        segment_word((enum segment_kind)15, 7),
        seal(UINT64_C(1) << 55),
        segment_word(SEGMENT_MAP, format_map_groups(1024)),
    };
    for (uint64_t i : {0, 3, 4, 6, 9, 1023})
        for (uint64_t word : words) {
            uint64_t offset = FORMAT_TABLE + 8 * i;
            if (word == test::read_word(path, offset))
                continue;
            INFO("segment " << i << ", word " << std::hex << word);
            test::patch_file(path, offset, &word, sizeof word);
            REQUIRE_FALSE(open());
            REQUIRE(failed_with(EBADMSG, {path.c_str()}));
            test::patch_file(path, offset, whole.data() + offset, sizeof word);
        }
    REQUIRE(open());
}

TEST_CASE_METHOD(Fixture, "a bit set beyond the end of a bitmap", "[home]")
{
    // Find the slab, and the last bits of its bitmap's last word.
    for (uint64_t i = 3; i < 12; i++) {
        uint64_t word = test::read_word(path, FORMAT_TABLE + 8 * i);
        if (segment_kind(word) != SEGMENT_SLAB)
            continue;
        struct slab_shape shape =
            slab_shape(64 << 10, segment_argument(word) * FORMAT_GRANULARITY_MIN);
        uint32_t last = bitmap_words(shape.objects) - 1, end = shape.objects % BITMAP_SLOTS;
        REQUIRE(end != 0);
        uint64_t offset = i * (64 << 10) + last * sizeof(uint64_t);
        uint64_t beyond = seal(seal_payload(test::read_word(path, offset)) | UINT64_C(1) << end);
        test::patch_file(path, offset, &beyond, sizeof beyond);
        test::Container c = open(); // costs linear time to see, so only pm_check does
        REQUIRE(c);
        REQUIRE(pm_check(c.get()) == -1);
        REQUIRE(failed_with(EBADMSG, {path.c_str(), "bitmap"}));
        return;
    }
    FAIL("no slab");
}
