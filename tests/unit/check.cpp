// pm_check() against damage that happens while the container is open: whatever it compares, one
// test makes differ. Another program writes to the file, so to say: home is that file, and so is
// the shadow where no transaction has copied its page.
#include "common/fixture.hpp"
#include "common/format.hpp"

#include "page_state.h"

#include <cerrno>
#include <cstring>

using test::failed_with;

namespace
{

constexpr uint64_t ROOT_OFFSET = FORMAT_STATE + offsetof(format_state, root_offset);
constexpr uint64_t ROOT_SIZE = FORMAT_STATE + offsetof(format_state, root_size);

struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c;
    void *root = nullptr;

    Fixture()
    {
        c = test::open(path, test::small());
        void *large = pm_malloc(c.get(), 200000);
        root = pm_malloc(c.get(), 100);
        REQUIRE((large && root));
        REQUIRE_OK(pm_setroot(c.get(), root, 0));
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_free(large));
        REQUIRE_OK(pm_commit(c.get()));
        reopen();
    }

    void reopen()
    {
        c.reset();
        c = test::open(path, test::options());
        root = pm_getroot(c.get());
    }

    uint64_t segments() { return test::read_file(path).size() >> 16; }

    uint64_t table_word(uint64_t segment) { return FORMAT_TABLE + 8 * segment; }

    // The first segment of a kind.
    uint64_t segment_of(enum segment_kind kind)
    {
        for (uint64_t i = 0; i < segments(); i++)
            if (segment_kind(test::read_word(path, table_word(i))) == kind)
                return i;
        throw std::runtime_error("no segment of that kind");
    }

    // With another word in the file, pm_check() says so; with the old one it is content again.
    void requires_word(uint64_t offset, uint64_t value, const char *words)
    {
        uint64_t old = test::read_word(path, offset);
        INFO("offset " << offset << ", which is to say: " << words);
        REQUIRE(old != value);
        REQUIRE_OK(pm_check(c.get()));
        test::patch_file(path, offset, &value, sizeof value);
        REQUIRE(pm_check(c.get()) == -1);
        INFO(pm_errormsg());
        REQUIRE(failed_with(EBADMSG, {words, path.c_str()}));
        test::patch_file(path, offset, &old, sizeof old);
        REQUIRE_OK(pm_check(c.get()));
    }
};

// A word of a bitmap with more bits set.
uint64_t with_bits(uint64_t word, uint64_t bits)
{
    return seal(seal_payload(word) | bits);
}

} // namespace

TEST_CASE_METHOD(Fixture, "pm_check finds words of the state that no seal fits", "[home]")
{
    requires_word(FORMAT_STATE, 1, "a word about epochs is damaged");
    requires_word(FORMAT_MARK, 1, "who has the file open is damaged");
    requires_word(ROOT_OFFSET, 1, "the root's words are damaged");
    requires_word(ROOT_SIZE, 1, "the root's words are damaged");
    requires_word(table_word(segment_of(SEGMENT_SLAB)), 1, "is damaged");
}

TEST_CASE_METHOD(Fixture, "pm_check finds a root that is no object, or a smaller one", "[home]")
{
    uint64_t offset = seal_payload(test::read_word(path, ROOT_OFFSET));
    requires_word(ROOT_OFFSET, seal(offset + 16), "the root is no object");
    requires_word(ROOT_SIZE, seal(pm_usable_size(root) + 1), "larger than its object");
}

TEST_CASE_METHOD(Fixture, "pm_check finds a segment of the log that the log does not have", "[home]")
{
    requires_word(table_word(segment_of(SEGMENT_FREE)), segment_log_word(1, 7),
                  "the log's segments are not those of the table");
}

TEST_CASE_METHOD(Fixture, "pm_check finds words that changed outside any transaction", "[home]")
{
    uint64_t slab = segment_of(SEGMENT_SLAB), bitmap = slab << 16;
    // So that table and bitmap have copies in the shadow.
    REQUIRE(pm_malloc(c.get(), 100000));
    REQUIRE(pm_malloc(c.get(), 100));
    REQUIRE_OK(pm_commit(c.get()));
    requires_word(table_word(slab), segment_word(SEGMENT_SLAB, 64), "outside any transaction");
    requires_word(bitmap, with_bits(test::read_word(path, bitmap), 1 << 20),
                  "a bitmap has changed outside any transaction");
}

TEST_CASE_METHOD(Fixture, "pm_check finds slots beyond a slab, and room that nobody would find", "[home]")
{
    uint64_t slab = segment_of(SEGMENT_SLAB), bitmap = slab << 16;
    size_t size = pm_usable_size(root);
    uint32_t objects = slab_shape(64 << 10, (uint32_t)size).objects;
    uint64_t last = bitmap + objects / BITMAP_SLOTS * 8;
    requires_word(last,
                  with_bits(test::read_word(path, last), UINT64_C(1) << objects % BITMAP_SLOTS),
                  "a bitmap claims slots beyond its slab");
    for (uint32_t i = 1; i <= objects; i++) // one too many: the first slab is in no list then
        REQUIRE(pm_malloc(c.get(), size));
    REQUIRE_OK(pm_commit(c.get()));
    requires_word(bitmap, seal(seal_payload(test::read_word(path, bitmap)) & ~UINT64_C(1)),
                  "a slab with room is in no list");
}

TEST_CASE_METHOD(Fixture, "pm_check finds an object on a page that would not be logged", "[undo]")
{
    // A page each.
    void *first = pm_malloc(c.get(), 4096);
    REQUIRE(first);
    REQUIRE_OK(pm_commit(c.get()));
    uint64_t offset = (uint64_t)(static_cast<char *>(first) - static_cast<char *>(root)) +
                      seal_payload(test::read_word(path, ROOT_OFFSET));
    uint64_t bitmap = offset >> 16 << 16;
    REQUIRE(pm_malloc(c.get(), 4096)); // the transaction has changed this word
    requires_word(bitmap, with_bits(test::read_word(path, bitmap), 1 << 10),
                  "a live page would not be logged");
}

// Nothing but a bug does that.
TEST_CASE_METHOD(Fixture, "pm_check finds states of pages that contradict each other", "[home]")
{
    const uint32_t page = (uint32_t)segment_of(SEGMENT_SLAB) * 16 + 1;
    for (enum contradiction what : {LOGGED_BUT_NOT_LISTED, OPEN_WITHOUT_REASON,
                                    LISTED_BUT_NOT_IN_THE_LIST, IN_THE_LIST_BUT_NOT_LISTED}) {
        INFO("contradiction " << what);
        if (what == OPEN_WITHOUT_REASON && test::stores())
            continue; // a mark opens the neighbours of a page too
        contradict(c.get(), page, what);
        REQUIRE(pm_check(c.get()) == -1);
        REQUIRE(failed_with(EBADMSG, {path.c_str(), "page states"}));
        agree(c.get(), page);
        REQUIRE_OK(pm_check(c.get()));
    }
}

TEST_CASE_METHOD(Fixture, "pm_check finds headers that were exchanged or destroyed")
{
    const std::string whole = test::read_file(path).substr(0, FORMAT_STATE);
    format_header header;
    memcpy(&header, whole.data(), sizeof header);
    strcpy(header.layout, "another");
    header.checksum = checksum(&header, offsetof(format_header, checksum), header.version);
    for (uint64_t copy : {FORMAT_HEADER_A, FORMAT_HEADER_B})
        test::patch_file(path, copy, &header, sizeof header);
    REQUIRE(pm_check(c.get()) == -1);
    REQUIRE(failed_with(EBADMSG, {"the header has changed while open"}));
    header.max_size++;
    for (uint64_t copy : {FORMAT_HEADER_A, FORMAT_HEADER_B})
        test::patch_file(path, copy, &header, sizeof header);
    REQUIRE(pm_check(c.get()) == -1);
    REQUIRE(failed_with(EBADMSG, {"both copies of the header are damaged"}));
    test::patch_file(path, 0, whole.data(), whole.size());
    REQUIRE_OK(pm_check(c.get()));
}
