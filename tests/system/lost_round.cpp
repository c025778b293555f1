// Power failures that take some of a round of several commits (redo 12 to 14; docs/model shows how
// each was found). What the file would be is put together from what it was before the round and
// after it, in sectors, any of which may have been written and any not.
#include "common/file_medium.hpp"
#include "common/format.hpp"
#include "common/process.hpp"

using test::page_word;

namespace
{

constexpr uint64_t SECTOR = 512, LINE = 64;
constexpr uint64_t ONE_LINE_RECORD = 192; // head, run, line: padded to whole lines

// Where the segments of the log are.
std::vector<uint64_t> log_segments(const std::string &file, uint64_t segment_size)
{
    std::vector<uint64_t> found;
    for (uint64_t i = 0; i < file.size() / segment_size; i++) {
        uint64_t word;
        memcpy(&word, &file[FORMAT_TABLE + i * sizeof word], sizeof word);
        if (segment_kind(word) == SEGMENT_LOG)
            found.push_back(i * segment_size);
    }
    return found;
}

struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm", lost = directory / "lost.pm",
                next = directory / "next.pm";

    // The container as a power failure has left it, and after a recovery.
    test::Container after(const std::string &file, const std::string &at)
    {
        test::write_file(at, file);
        return test::open(at, test::small(0));
    }
};

} // namespace

// Records that fill a segment each, in a log of three. The seventh and eighth are of one round, and
// the ninth is torn: it must not have taken the place of the seventh while no record says that the
// seventh is durable, or recovery would end with the sixth.
TEST_CASE_METHOD(Fixture, "a record that is overwritten is known to be durable", "[redo]")
{
    constexpr uint64_t FULL = ((64 << 10) - sizeof(redo_part) - sizeof(uint64_t)) / LINE,
                       PAGES = 16;
    pm_options three = test::small();
    three.max_size = 3 * 8 * (64 << 10); // the log takes an eighth
    test::Container c = test::open_with_pages(path, 3 * PAGES, three);
    auto commit = [&](uint64_t range, uint64_t value) {
        char *at = (char *)&page_word(c.get(), range * PAGES);
        REQUIRE_OK(pm_dirty(at, FULL * LINE));
        for (uint64_t i = 0; i < FULL; i++)
            memcpy(at + i * LINE, &value, sizeof value);
        pm_ticket ticket = pm_commit_async(c.get());
        REQUIRE(ticket.container);
        return ticket;
    };
    for (uint64_t i = 1; i <= 6; i++)
        REQUIRE_OK(pm_wait(commit(i % 3, i)));
    commit(0, 7);
    commit(1, 8);
    std::string before = test::read_file(path);
    commit(2, 9);
    std::string file = test::read_file(path);
    c.reset();
    unsigned torn = 0;
    for (uint64_t segment : log_segments(file, 64 << 10))
        if (memcmp(&file[segment], &before[segment], SECTOR) != 0) {
            memcpy(&file[segment], &before[segment], SECTOR);
            torn++;
        }
    REQUIRE(torn == 1);
    test::Container recovered = after(file, lost);
    REQUIRE(page_word(recovered.get(), 0) == 7);
    REQUIRE(page_word(recovered.get(), PAGES) == 8);
    REQUIRE(page_word(recovered.get(), 2 * PAGES) == 5);
}

// The first record of a round is lost, and so nothing shows what of the round lies behind it in the
// log. A commit after the recovery ends where one of these records begins; it must not continue the
// new one.
TEST_CASE_METHOD(Fixture, "records behind a lost one are void after the recovery", "[redo]")
{
    constexpr uint64_t RECORDS = 20;
    test::Container c = test::open_with_pages(path, 100, test::small());
    std::string before = test::read_file(path);
    for (uint64_t i = 0; i < RECORDS; i++) {
        page_word(c.get(), i) = i + 1;
        REQUIRE(pm_commit_async(c.get()).container);
    }
    std::string file = test::read_file(path);
    c.reset();
    // A round may be as long as it likes, so every distance to the epoch after the recovery is
    // tried: that is where the new record has to end.
    uint64_t log = log_segments(file, 64 << 10).at(0);
    REQUIRE(memcmp(&file[log], &before[log], SECTOR) != 0);
    memcpy(&file[log], &before[log], SECTOR);
    for (uint64_t behind = 3; behind < RECORDS; behind++) {
        test::Container recovered = after(file, lost);
        REQUIRE(page_word(recovered.get(), 0) == 0);
        uint64_t lines = (behind * ONE_LINE_RECORD - ONE_LINE_RECORD) / LINE + 1;
        char *page = (char *)&page_word(recovered.get(), 50);
        REQUIRE_OK(pm_dirty(page, lines * LINE));
        for (uint64_t i = 0; i < lines; i++)
            page[i * LINE] = 1;
        REQUIRE_OK(pm_commit(recovered.get()));
        std::string crashed = test::read_file(lost);
        recovered.reset();
        test::Container again = after(crashed, next);
        CAPTURE(behind);
        REQUIRE(page_word(again.get(), 50) == 1);
        for (uint64_t i = 0; i < RECORDS; i++)
            REQUIRE(page_word(again.get(), i) == 0);
    }
}
