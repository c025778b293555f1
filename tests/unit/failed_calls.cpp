// Calls that let the file grow, mark lines there, and fail: again and again in one transaction. Each leaves void
// entries in the list of marks.
#include "common/fixture.hpp"

#include <cerrno>
#include <cstring>

namespace
{

constexpr uint64_t SEGMENT = 64 << 10, SEGMENTS = 60;

// Marks that a container of this size has room for: a line of 64 bytes each, and 65,536.
constexpr uint64_t MARKS_MAX = SEGMENTS * SEGMENT / 64 + 65536;

} // namespace

TEST_CASE("calls that fail again and again in one transaction change nothing")
{
    test::Directory directory;
    const std::string path = directory / "c.pm", copy = directory / "copy.pm";
    pm_options options = test::options(PM_CREATE | PM_MOVABLE | PM_ANNOUNCED);
    options.tracker = PM_TRACKER_STORES;
    options.segment_size = SEGMENT;
    options.max_size = SEGMENTS * SEGMENT;
    test::Container c = test::open(path, options);
    constexpr size_t BYTES = 7680;
    auto *words = static_cast<uint64_t *>(pm_calloc(c.get(), 1, BYTES));
    REQUIRE(words);
    REQUIRE_OK(pm_setroot(c.get(), words, 0));
    REQUIRE_OK(pm_mark_pointers(words, 8)); // the copy needs a map where it goes, for which there is no room
    REQUIRE_OK(pm_dirty(words, BYTES));
    words[7] = reinterpret_cast<uint64_t>(words);
    for (auto now = test::stats(c.get());
         now.segments_free > 0 || now.file_bytes < (SEGMENTS - 3) * SEGMENT; now = test::stats(c.get()))
        REQUIRE(pm_malloc(c.get(), SEGMENT));
    REQUIRE_OK(pm_commit(c.get()));

    uint64_t failures = 0; // each marks 56 lines that are not on whole pages
    for (; failures < 6 * MARKS_MAX / 56; failures++)
        if (pm_realloc(words, 3 * SEGMENT - 64) || errno != ENOSPC)
            break;
    REQUIRE(failures == 6 * MARKS_MAX / 56);
    for (uint64_t value = 1; value <= 40; value++) {
        REQUIRE_OK(pm_dirty(words + 100, 4096));
        for (int i = 100; i < 612; i++)
            words[i] = value * 1000 + (uint64_t)i;
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_check(c.get()));
    }
    test::write_file(copy, test::read_file(path));
    c.reset();
    c = test::open(copy, test::options(PM_ACCEPT_COPY));
    words = static_cast<uint64_t *>(pm_getroot(c.get()));
    for (int i = 100; i < 612; i++)
        REQUIRE(words[i] == 40'000 + (uint64_t)i);
    REQUIRE_OK(pm_check(c.get()));
}
