// Power failures that take some of a round of several commits (R12 to R14; docs/model shows how
// each was found). What the file would be is put together from what it was before the round and
// after it, in sectors, any of which may have been written and any not.
#include "common/file_medium.hpp"
#include "common/format.hpp"
#include "common/process.hpp"

#include <algorithm>
#include <cerrno>

using test::page_word;

namespace
{

constexpr uint64_t SECTOR = 512, LINE = 64, PAGE = 4096;
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

// Where pages differ, but for the log's.
std::vector<uint64_t> changed_pages(const std::string &before, const std::string &after)
{
    std::vector<uint64_t> logs = log_segments(after, 64 << 10), found;
    for (uint64_t page = 0; page < before.size(); page += PAGE)
        if (memcmp(&before[page], &after[page], PAGE) != 0 &&
            std::count(logs.begin(), logs.end(), page / (64 << 10) * (64 << 10)) == 0)
            found.push_back(page);
    return found;
}

// Records that fill a segment of the log each, of lines of a range of the root's pages.
constexpr uint64_t FULL = ((64 << 10) - sizeof(redo_part) - sizeof(uint64_t)) / LINE, PAGES = 16;

pm_ticket commit_full(pm_container *c, uint64_t range, uint64_t value)
{
    char *at = (char *)&page_word(c, range * PAGES);
    REQUIRE_OK(pm_dirty(at, FULL * LINE));
    for (uint64_t i = 0; i < FULL; i++)
        memcpy(at + i * LINE, &value, sizeof value);
    pm_ticket ticket = pm_commit_async(c);
    REQUIRE(ticket.container);
    return ticket;
}

struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm", lost = directory / "lost.pm",
                next = directory / "next.pm";

    // The container as a power failure has left it, and after a recovery.
    test::Container after(const std::string &file, const std::string &at)
    {
        test::write_file(at, file);
        return test::open(at, test::small(PM_ACCEPT_COPY));
    }
};

} // namespace

// In a log of three segments. The seventh and eighth are of one round, and
// the ninth is torn: it must not have taken the place of the seventh while no record says that the
// seventh is durable, or recovery would end with the sixth.
TEST_CASE_METHOD(Fixture, "a record that is overwritten is known to be durable", "[redo]")
{
    pm_options three = test::small();
    three.max_size = 3 * 8 * (64 << 10); // the log takes an eighth
    test::Container c = test::open_with_pages(path, 3 * PAGES, three);
    for (uint64_t i = 1; i <= 6; i++)
        REQUIRE_OK(pm_wait(commit_full(c.get(), i % 3, i)));
    commit_full(c.get(), 0, 7);
    commit_full(c.get(), 1, 8);
    std::string before = test::read_file(path);
    commit_full(c.get(), 2, 9);
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

// As above, but here other threads make the records durable, and pages too, before a record says so. While
// the last but one of these records is written, the one before becomes durable.
TEST_CASE_METHOD(Fixture,
                 "a record that is overwritten is known to be durable, whoever has waited for it",
                 "[redo]")
{
    pm_options three = test::small();
    three.max_size = 3 * 8 * (64 << 10);
    for (uint64_t n = 5; n <= 10; n++) {
        CAPTURE(n);
        test::Container c = test::open_with_pages(path, 3 * PAGES, three);
        for (uint64_t i = 1; i <= n; i++)
            REQUIRE_OK(pm_wait(commit_full(c.get(), i % 3, i)));
        const pm_ticket one = commit_full(c.get(), (n + 1) % 3, n + 1);
        int waited = -1;
        test::file_medium.during_write = [&] { waited = pm_wait(one); };
        const pm_ticket two = commit_full(c.get(), (n + 2) % 3, n + 2);
        REQUIRE(waited == 0);
        REQUIRE_OK(pm_wait(two));
        std::string before = test::read_file(path);
        commit_full(c.get(), n % 3, n + 3);
        std::string file = test::read_file(path);
        c.reset();
        for (uint64_t segment : log_segments(file, 64 << 10))
            if (memcmp(&file[segment], &before[segment], SECTOR) != 0)
                memcpy(&file[segment], &before[segment], SECTOR);
        test::Container recovered = after(file, lost);
        for (uint64_t i = n; i <= n + 2; i++)
            REQUIRE(page_word(recovered.get(), i % 3 * PAGES) == i);
        recovered.reset();
        REQUIRE_OK(pm_delete(lost.c_str()));
        REQUIRE_OK(pm_delete(path.c_str()));
    }
}

// In a log of three segments. While the seventh commit is synced, another thread commits the eighth,
// which writes pages of older commits to the file. This sync may have missed those pages. So the ninth
// must not take the place of a record that has them: a power failure may lose the pages and keep the
// ninth.
TEST_CASE_METHOD(Fixture, "pages that are written during a sync are not durable with it", "[redo]")
{
    constexpr uint64_t RANGES = 5; // so that the last five commits are all there is
    pm_options three = test::small();
    three.max_size = 3 * 8 * (64 << 10); // the log takes an eighth
    test::Container c = test::open_with_pages(path, RANGES * PAGES, three);
    for (uint64_t i = 1; i <= 6; i++)
        REQUIRE_OK(pm_wait(commit_full(c.get(), i % RANGES, i)));
    pm_ticket seventh = commit_full(c.get(), 7 % RANGES, 7);
    std::string before;
    std::vector<uint64_t> written; // pages
    test::file_medium.during_sync = [&] {
        before = test::read_file(path);
        commit_full(c.get(), 8 % RANGES, 8);
        written = changed_pages(before, test::read_file(path));
    };
    REQUIRE_OK(pm_wait(seventh));
    REQUIRE(written.size() == PAGES);
    uint64_t syncs = test::file_medium.syncs;
    commit_full(c.get(), 9 % RANGES, 9);
    bool synced = test::file_medium.syncs > syncs; // so that there was no need of an older record
    std::string file = test::read_file(path);
    c.reset();
    for (uint64_t page : written)
        if (!synced)
            memcpy(&file[page], &before[page], PAGE);
    test::Container recovered = after(file, lost);
    for (uint64_t i = 5; i <= 9; i++)
        for (uint64_t page = 0; page + 1 < PAGES; page++) {
            CAPTURE(i, page);
            REQUIRE(page_word(recovered.get(), i % RANGES * PAGES + page) == i);
        }
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

// An object is freed, and a slab made in its segment and rolled back, before the freeing is
// durable. The object's first page is in the queue then, and goes to the
// file with the last commit; what of the log is not durable is lost.
TEST_CASE_METHOD(Fixture, "what was freed stays whole until that is durable", "[redo]")
{
    constexpr size_t OBJECT = 60000;
    pm_options six = test::small();
    six.max_size = 6 * 8 * (64 << 10);
    test::Container c = test::open_with_pages(path, 3 * PAGES, six);
    char *object = static_cast<char *>(pm_malloc(c.get(), OBJECT));
    REQUIRE(object);
    REQUIRE_OK(pm_dirty(object, OBJECT));
    memset(object, 'x', OBJECT);
    REQUIRE_OK(pm_commit(c.get()));
    for (uint64_t i = 1; i <= 4; i++)
        REQUIRE_OK(pm_wait(commit_full(c.get(), i % 3, i)));
    REQUIRE_OK(pm_dirty(object + 2048, 1));
    object[2048] = 'y'; // so the page is queued
    REQUIRE_OK(pm_commit(c.get()));
    std::string before = test::read_file(path);
    uint64_t offset = (uint64_t)(object - (char *)pm_getroot(c.get()));

    REQUIRE_OK(pm_free(object));
    REQUIRE(pm_commit_async(c.get()).container);
    uint64_t syncs = test::file_medium.syncs;
    char *small = static_cast<char *>(pm_malloc(c.get(), 16));
    REQUIRE(small > object);
    REQUIRE(small < object + OBJECT);
    if (test::file_medium.syncs > syncs)
        before = test::read_file(path);
    REQUIRE_OK(pm_rollback(c.get()));
    syncs = test::file_medium.syncs;
    commit_full(c.get(), 5 % 3, 5);
    REQUIRE(test::file_medium.syncs == syncs);
    std::string file = test::read_file(path);
    c.reset();
    for (uint64_t segment : log_segments(before, 64 << 10))
        memcpy(&file[segment], &before[segment], 64 << 10);
    test::Container recovered = after(file, lost);
    object = (char *)pm_getroot(recovered.get()) + offset;
    REQUIRE_OK(pm_check(recovered.get()));
    bool freed = pm_malloc(recovered.get(), OBJECT) == object;
    REQUIRE((freed || (object[2048] == 'y' && std::count(object, object + 2048, 'x') == 2048)));
}

namespace
{

template <typename T> T at(const std::string &file, uint64_t offset)
{
    T found;
    memcpy(&found, &file[offset], sizeof found);
    return found;
}

// The newest record in the log's first segment: its epoch, and its offset in the file.
struct Newest {
    uint64_t epoch = 0, offset = 0;
};

Newest newest_record(const std::string &file)
{
    Newest newest;
    uint64_t offset = log_segments(file, 64 << 10).at(0);
    for (redo_part part = at<redo_part>(file, offset); part.epoch > newest.epoch;
         part = at<redo_part>(file, offset)) {
        newest = {part.epoch, offset};
        offset += (sizeof part + part.bytes + LINE - 1) / LINE * LINE;
    }
    return newest;
}

} // namespace

// pm_close() first makes home and the guard durable. Then it voids the log by the base epoch, in a second
// round. After a crash between the two the log still counts. Only the guard has the epoch of its last record.
TEST_CASE_METHOD(Fixture, "after a crash of pm_close, the guard tells that a record is damaged",
                 "[redo]")
{
    constexpr uint64_t COMMITS = 5;
    test::Container c = test::open_with_pages(path, 1, test::small());
    for (uint64_t i = 1; i <= COMMITS; i++) {
        page_word(c.get(), 0) = i;
        REQUIRE_OK(pm_commit(c.get()));
    }
    const Newest newest = newest_record(test::read_file(path));
    REQUIRE(newest.epoch > 1);
    std::string file; // at the first sync that makes the guard durable
    std::function<void()> look = [&] {
        file = test::read_file(path);
        if (seal_payload(at<format_guard>(file, FORMAT_GUARD).epoch) < newest.epoch)
            test::file_medium.during_sync = look;
    };
    test::file_medium.during_sync = look;
    c.reset();
    REQUIRE_FALSE(test::file_medium.during_sync);
    const auto state = at<format_state>(file, FORMAT_STATE);
    REQUIRE((seal_payload(state.base_epoch) & ~BASE_REDO) < newest.epoch);
    REQUIRE(seal_payload(state.fenced_epoch) < newest.epoch);
    REQUIRE(page_word(after(file, lost).get(), 0) == COMMITS);

    file[newest.offset + sizeof(redo_part)] ^= 1;
    test::write_file(lost, file);
    const pm_options how = test::small(PM_ACCEPT_COPY);
    REQUIRE_FALSE(test::Container(pm_open(lost.c_str(), &how)));
    const std::string words = "epoch " + std::to_string(newest.epoch) +
                              " was committed, but only " + std::to_string(newest.epoch - 1) +
                              " can be restored";
    REQUIRE(test::failed_with(EBADMSG, {words.c_str()}));
}
