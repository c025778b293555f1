// pm_compact() under the log engine. The file becomes as short as its contents allow, and what was freed does
// not come back. A compaction that fails loses nothing. The simulator has a crash at each of its steps.
#include "common/format.hpp"
#include "common/full_disk.hpp"
#include "unit/page_state.h"

extern "C" {
#include "container/format_log.h"
}

#include <cerrno>
#include <cstring>
#include <filesystem>

using test::disk_is_full;

namespace
{

constexpr uint64_t KiB = 1 << 10, MiB = 1 << 20, CHUNK = 64 * KiB, LINE = 64, PAGE = 4 * KiB;

struct Subject {
    test::Directory directory;
    const std::string path = directory / "c.pm", other = directory / "other.pm";
    const uint64_t kept;
    test::Container c = test::open(path, test::small(PM_CREATE | PM_MOVABLE));

    // An object of `kept_bytes`, and a larger one whose pieces are in the same chunks, and in others. Then the
    // larger one is freed.
    Subject(uint64_t kept_bytes, uint64_t freed_bytes) : kept(kept_bytes)
    {
        auto *stays = static_cast<char *>(kept ? pm_malloc(c.get(), kept) : nullptr);
        auto *goes = static_cast<char *>(pm_malloc(c.get(), freed_bytes));
        REQUIRE((goes && (stays || !kept)));
        REQUIRE_OK(pm_setroot(c.get(), stays, 0));
        for (char round = 1; round <= 2; round++)
            for (uint64_t at = 0; at < freed_bytes; at += PAGE) {
                memset(goes + at, 'x', PAGE);
                goes[at] = round;
                for (uint64_t line = at; line < std::min(at + PAGE, kept); line += LINE)
                    stays[line] = (char)(line / LINE % 100 + round);
                REQUIRE_OK(pm_commit(c.get()));
            }
        REQUIRE_OK(pm_free(goes));
        REQUIRE_OK(pm_commit(c.get()));
    }
    void holds_in(pm_container *container) const
    {
        const auto *stays = static_cast<const char *>(pm_getroot(container));
        for (uint64_t line = 0; line < kept; line += LINE)
            if (stays[line] != (char)(line / LINE % 100 + 2))
                FAIL("line " << line / LINE);
        REQUIRE_OK(pm_check(container));
    }
    // Now, as a crash would leave it to a reader and to a writer, and after a close.
    void holds()
    {
        holds_in(c.get());
        REQUIRE(lost_chunks(c.get()) == 0);
        const std::string crashed = test::read_file(path);
        for (unsigned flags : {(unsigned)PM_READONLY, 0u, (unsigned)PM_READONLY}) {
            if (flags == PM_READONLY && !std::filesystem::exists(other))
                test::write_file(other, crashed);
            holds_in(test::open(other, test::options(flags | PM_ACCEPT_COPY)).get());
        }
        std::filesystem::remove(other);
        c.reset();
        c = test::open(path, test::options(PM_MOVABLE));
        holds_in(c.get());
    }
    int compact() { return pm_compact(c.get(), nullptr, nullptr, nullptr); }
    uint64_t file_bytes() const { return std::filesystem::file_size(path); }
};

} // namespace

TEST_CASE("the file of a compacted container is little longer than its contents")
{
    const uint64_t kept = GENERATE(as<uint64_t>(), 0, LINE, 100 * KiB, 3 * MiB);
    INFO(kept << " bytes are kept");
    Subject subject(kept, 6 * MiB);
    REQUIRE(subject.file_bytes() > 6 * MiB);
    REQUIRE_OK(subject.compact());
    const uint64_t bytes = subject.file_bytes();
    CHECK(bytes <= kept * 9 / 8 + 6 * CHUNK);
    subject.holds();

    // What is short stays as it is.
    const uint64_t logged = test::stats(subject.c.get()).bytes_logged;
    REQUIRE_OK(subject.compact());
    CHECK(subject.file_bytes() == bytes);
    CHECK(test::stats(subject.c.get()).bytes_logged - logged < CHUNK);

    // The freed object's bytes are nowhere. So zeros are there again, and the same bytes are logged again.
    const char fill = GENERATE('\0', 'x');
    void *stays = pm_getroot(subject.c.get());
    auto *again = static_cast<char *>(pm_malloc(subject.c.get(), 6 * MiB));
    REQUIRE(again);
    memset(again, fill, 6 * MiB);
    REQUIRE_OK(pm_setroot(subject.c.get(), again, 0));
    if (stays)
        REQUIRE_OK(pm_free(stays));
    REQUIRE_OK(pm_commit(subject.c.get()));
    subject.c.reset();
    subject.c = test::open(subject.path, test::options());
    again = static_cast<char *>(pm_getroot(subject.c.get()));
    const bool same = again[0] == fill && memcmp(again, again + 1, 6 * MiB - 1) == 0;
    CHECK(same);
}

TEST_CASE("a container without anything stays as it is")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    const test::Container c = test::open(path, test::small(PM_CREATE | PM_MOVABLE));
    const uint64_t bytes = std::filesystem::file_size(path);
    REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
    CHECK(std::filesystem::file_size(path) <= bytes + 3 * CHUNK);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("room that a file had from the beginning is given back")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    pm_options how = test::small(PM_CREATE | PM_MOVABLE);
    how.initial_size = 8 * MiB;
    const test::Container c = test::open(path, how);
    REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
    CHECK(std::filesystem::file_size(path) <= 4 * CHUNK);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a compaction needs no room on a full disk")
{
    const uint64_t kept = GENERATE(as<uint64_t>(), 0, 4 * MiB);
    Subject subject(kept, 5 * MiB);
    const uint64_t before = subject.file_bytes();
    disk_is_full = true;
    const int result = subject.compact();
    const int commits = pm_commit(subject.c.get());
    disk_is_full = false;
    REQUIRE_OK(result);
    REQUIRE_OK(commits);
    CHECK(subject.file_bytes() < before);
    CHECK(subject.file_bytes() <= kept * 9 / 8 + 6 * CHUNK);
    subject.holds();
}

TEST_CASE("a compaction finds that the log has rotted, and forgets nothing")
{
    const uint64_t field = GENERATE(offsetof(log_part, table) + 1, offsetof(log_part, lines) + 1);
    Subject subject(MiB, 6 * MiB);
    for (char part = 1; part <= 3; part += 2) { // of all lines, then of each third one
        for (uint64_t line = 0; line < subject.kept; line += part * LINE)
            memset(static_cast<char *>(pm_getroot(subject.c.get())) + line + 1, part, LINE - 1);
        REQUIRE_OK(pm_commit(subject.c.get()));
    }
    uint32_t chunk = (uint32_t)(subject.file_bytes() / CHUNK) - 1,
             live; // in each part are live lines
    while ((live = live_lines(subject.c.get(), chunk)) < CHUNK / LINE / 2 ||
           live > CHUNK / LINE * 4 / 5)
        chunk--;
    auto flip = [&] { test::flip_bit(subject.path, chunk * CHUNK + LINE + field, 6); };
    flip();
    REQUIRE(subject.compact() == -1);
    REQUIRE(test::failed_with(EBADMSG, {subject.path.c_str(), "backup"}));
    flip();
    subject.holds();
    REQUIRE_OK(subject.compact());
    subject.holds();
}
