// Logs that are filled exactly, one less, one more: where most recovery bugs of others sat.
#include "common/format.hpp"
#include "common/process.hpp"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

using test::page_word;

namespace
{

const uint64_t SEGMENT = 64 << 10;
const uint64_t SLOTS = log_segment_slots(SEGMENT);
const uint64_t PAGES = 1200;

pm_options how()
{
    pm_options o = test::small();
    o.max_size = 256 << 20;
    return o;
}

// Every second page, and from the back, so that no fault opens a neighbour.
uint64_t nth_page(uint64_t i)
{
    return 2 * ((PAGES / 2 - 1) - i);
}

void store(pm_container *c, uint64_t count, uint64_t value)
{
    for (uint64_t i = 0; i < count; i++)
        page_word(c, nth_page(i)) = value;
}

// The first `first` pages have `value`, up to `second` they have `other`, all others 0.
bool holds(pm_container *c, uint64_t first, uint64_t value, uint64_t second, uint64_t other)
{
    for (uint64_t i = 0; i < PAGES / 2; i++)
        if (page_word(c, nth_page(i)) != (i < first ? value : i < second ? other : 0))
            return false;
    return true;
}

// A record of n entries of 16 bytes after its header.
uint64_t entries_of_slots(uint64_t slots)
{
    return (slots * PM_PAGE - sizeof(log_record)) / 16;
}

} // namespace

// Store 1 to a number of pages, commit; store 2 to another number of them, do what is said, die.
CHILD_PROCESS(dies_at_a_boundary)
{
    uint64_t first = std::stoul(arguments[1]), second = std::stoul(arguments[2]);
    pm_container *c = pm_open(arguments[0].c_str(), nullptr);
    CHILD_REQUIRE(c);
    if (first > 0) {
        store(c, first, 1);
        CHILD_REQUIRE(pm_commit(c) == 0);
    }
    store(c, second, 2);
    if (arguments[3] == "commit")
        CHILD_REQUIRE(pm_commit(c) == 0);
    if (arguments[3] == "rollback")
        CHILD_REQUIRE(pm_rollback(c) == 0);
    if (arguments[3] == "rollback and commit") {
        CHILD_REQUIRE(pm_rollback(c) == 0);
        page_word(c, 1) = 3;
        CHILD_REQUIRE(pm_commit(c) == 0);
        page_word(c, 1) = 0;
        CHILD_REQUIRE(pm_commit(c) == 0);
    }
    _exit(0);
}

TEST_CASE("the log grows when a transaction has one page more than it holds, and not before")
{
    test::Directory directory;
    test::Container c = test::open_with_pages(directory / "c.pm", PAGES, how());
    // A new session has nothing in its half of the log, not even a record.
    uint64_t log = test::stats(c.get()).segments_log, capacity = 0;
    while (test::stats(c.get()).segments_log == log)
        page_word(c.get(), nth_page(capacity++)) = 1;
    REQUIRE((capacity - 1) % SLOTS == 0);
    log++;
    for (uint64_t i = 1; i < SLOTS; i++)
        page_word(c.get(), nth_page(capacity++)) = 1;
    REQUIRE(test::stats(c.get()).segments_log == log);
    page_word(c.get(), nth_page(capacity++)) = 1;
    REQUIRE(test::stats(c.get()).segments_log == log + 1);
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(holds(c.get(), 0, 0, 0, 0));
}

TEST_CASE("transactions around the capacity of the log, committed and rolled back")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    for (uint64_t pages = 1; pages <= 3 * SLOTS + 2; pages++) {
        INFO(pages << " pages, " << SLOTS << " slots a segment");
        test::Container c = test::open_with_pages(path, PAGES, how());
        store(c.get(), pages, 1);
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(holds(c.get(), 0, 0, 0, 0));
        store(c.get(), pages, 2);
        REQUIRE_OK(pm_commit(c.get()));
        store(c.get(), pages + 1, 3);
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(holds(c.get(), pages, 2, 0, 0));
        store(c.get(), pages + 1, 4);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_check(c.get()));
        c.reset();
        c = test::open(path, test::options());
        REQUIRE(holds(c.get(), pages + 1, 4, 0, 0));
        c.reset();
        REQUIRE_OK(pm_delete(path.c_str()));
    }
}

TEST_CASE("crashes around the capacity of the log")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    std::vector<uint64_t> edges = {1};
    for (uint64_t segments = 1; segments <= 3; segments++)
        for (uint64_t n :
             {segments * SLOTS - 2, segments * SLOTS - 1, segments * SLOTS, segments * SLOTS + 1})
            edges.push_back(n);
    const char *ends[] = {"die", "commit", "rollback", "rollback and commit"};
    for (uint64_t first : {uint64_t{0}, uint64_t{3}, SLOTS - 1, 2 * SLOTS})
        for (uint64_t second : edges)
            for (std::string end : ends) {
                INFO(first << " pages, then " << second << ", then " << end);
                test::open_with_pages(path, PAGES, how());
                REQUIRE_CLEAN(test::run("dies_at_a_boundary", {path, std::to_string(first),
                                                               std::to_string(second), end}));
                test::Container c = test::open(path, test::options());
                REQUIRE(test::stats(c.get()).recovered);
                REQUIRE_OK(pm_check(c.get()));
                if (end == "commit")
                    REQUIRE(holds(c.get(), second, 2, first, 1));
                else
                    REQUIRE(holds(c.get(), first, 1, 0, 0));
                c.reset();
                REQUIRE_OK(pm_delete(path.c_str()));
            }
}

TEST_CASE("records that fill their slots exactly, one entry less, one more")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    for (uint64_t slots : {1, 2}) {
        uint64_t exact = entries_of_slots(slots);
        REQUIRE(exact < PAGES / 2);
        for (uint64_t pages : {exact - 1, exact, exact + 1}) {
            INFO(pages << " pages in the record");
            test::open_with_pages(path, PAGES, how());
            {
                test::Container c = test::open(path, test::options());
                store(c.get(), pages, 1);
                struct pm_stats before = test::stats(c.get());
                REQUIRE_OK(pm_commit(c.get()));
                struct pm_stats after = test::stats(c.get());
                // Each page's next image, and a record that lists each and says nothing more.
                uint64_t images = after.pages_ahead - before.pages_ahead;
                REQUIRE(after.bytes_logged - before.bytes_logged ==
                        images * (PM_PAGE + sizeof(log_descriptor)) + sizeof(log_record) +
                            pages * sizeof(record_page));
            }
            REQUIRE_CLEAN(
                test::run("dies_at_a_boundary", {path, "0", std::to_string(pages), "commit"}));
            test::Container c = test::open(path, test::options());
            REQUIRE(test::stats(c.get()).recovered);
            REQUIRE(holds(c.get(), pages, 2, 0, 0));
            REQUIRE_OK(pm_check(c.get()));
            c.reset();
            REQUIRE_OK(pm_delete(path.c_str()));
        }
    }
}

// Commit so many table words in one record, and die. Each large object of one segment is one word;
// its pages are listed too, so free ones are used: freeing lists none.
CHILD_PROCESS(dies_after_a_record_of_words)
{
    uint64_t frees = std::stoul(arguments[1]);
    pm_options o = how();
    pm_container *c = pm_open(arguments[0].c_str(), &o);
    CHILD_REQUIRE(c);
    std::vector<void *> objects;
    for (uint64_t i = 0; i < 600; i++) {
        objects.push_back(pm_malloc(c, SEGMENT));
        CHILD_REQUIRE(objects.back());
    }
    CHILD_REQUIRE(pm_setroot(c, objects[0], 0) == 0 && pm_commit(c) == 0);
    for (int i = 0; i < 40; i++) { // until the log has shrunk, and no record gives up segments
        *static_cast<int *>(objects[0]) = i + 1;
        CHILD_REQUIRE(pm_commit(c) == 0);
    }
    for (uint64_t i = 1; i <= frees; i++)
        CHILD_REQUIRE(pm_free(objects[i]) == 0);
    struct pm_stats before = test::stats(c);
    CHILD_REQUIRE(pm_commit(c) == 0);
    struct pm_stats after = test::stats(c);
    uint64_t images = after.pages_ahead - before.pages_ahead;
    uint64_t record =
        after.bytes_logged - before.bytes_logged - images * (PM_PAGE + sizeof(log_descriptor));
    test::say(std::to_string((record - sizeof(log_record)) / 16).c_str());
    _exit(0);
}

TEST_CASE("records of words that fill their slots exactly, one less, one more")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    std::vector<uint64_t> seen;
    for (uint64_t slots : {1, 2}) {
        uint64_t exact = entries_of_slots(slots);
        for (uint64_t frees = exact - 3; frees <= exact + 2; frees++) {
            INFO(frees << " words");
            test::Ended ended =
                test::run("dies_after_a_record_of_words", {path, std::to_string(frees)});
            INFO(ended.errors);
            REQUIRE(test::exited(ended.status));
            seen.push_back(std::stoul(ended.output));
            test::Container c = test::open(path, test::options());
            struct pm_stats stats = test::stats(c.get());
            REQUIRE(stats.recovered);
            REQUIRE(stats.segments_data == 600 - frees);
            REQUIRE(*static_cast<int *>(pm_getroot(c.get())) == 40);
            REQUIRE_OK(pm_check(c.get()));
            c.reset();
            REQUIRE_OK(pm_delete(path.c_str()));
        }
        // Whatever else was in the record, these sizes were among them.
        for (uint64_t entries : {exact - 1, exact, exact + 1})
            REQUIRE(std::find(seen.begin(), seen.end(), entries) != seen.end());
    }
}

TEST_CASE("a big transaction, then small ones: the log shrinks again")
{
    test::Directory directory;
    test::Container c = test::open_with_pages(directory / "c.pm", 4000, how());
    uint64_t log = test::stats(c.get()).segments_log;
    for (uint64_t i = 0; i < 4000; i++)
        page_word(c.get(), i) = 1;
    uint64_t big = test::stats(c.get()).segments_log;
    REQUIRE(big >= 4000 / SLOTS);
    REQUIRE_OK(pm_commit(c.get()));
    for (uint64_t i = 0; i < 100; i++) {
        page_word(c.get(), 0) = i + 2;
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(test::stats(c.get()).segments_log <= big + 200); // hot pages, written ahead
    }
    struct pm_stats after = test::stats(c.get());
    REQUIRE(after.segments_log <= log + 4);
    REQUIRE(after.segments_free > big - log - 4);
    REQUIRE_OK(pm_check(c.get()));
    // The segments serve others now.
    uint64_t bytes = after.file_bytes;
    for (uint64_t i = 0; i < big - log - 4; i++)
        REQUIRE(pm_malloc(c.get(), SEGMENT));
    REQUIRE(test::stats(c.get()).file_bytes == bytes);
}
