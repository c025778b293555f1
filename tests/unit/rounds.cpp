// "One round and one fence per commit, at most one per fault" is a count, not a claim.
#include "common/process.hpp"

#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

using test::page_word;

namespace
{

struct Fixture {
    static constexpr uint64_t PAGES = 3000;
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options how = [] {
        pm_options o = test::options(PM_CREATE); // segments of 1 MiB
        o.max_size = 1 << 30;
        return o;
    }();
    test::Container c = test::open_with_pages(path, PAGES, how);

    struct pm_stats stats() { return test::stats(c.get()); }
    volatile uint64_t &word(uint64_t page) { return page_word(c.get(), page); }
    bool undo = test::mode() == "undo";

    // Commit, and demand exactly one round and one fence.
    void commit_in_one_round()
    {
        struct pm_stats before = stats();
        REQUIRE_OK(pm_commit(c.get()));
        struct pm_stats after = stats();
        REQUIRE(after.rounds == before.rounds + 1);
        REQUIRE(after.fences == before.fences + 1);
        REQUIRE(after.commits == before.commits + 1);
        REQUIRE(after.faults == before.faults);
    }
    void commit_without_round()
    {
        struct pm_stats before = stats();
        REQUIRE_OK(pm_commit(c.get()));
        struct pm_stats after = stats();
        REQUIRE(after.rounds == before.rounds);
        REQUIRE(after.fences == before.fences);
        REQUIRE(after.lines_flushed == before.lines_flushed);
        REQUIRE(after.bytes_logged == before.bytes_logged);
        REQUIRE(after.commits == before.commits);
        REQUIRE(after.epoch == before.epoch);
    }
    // Rounds since then come from faults alone, at most one each, and from pm_calloc's stores, which
    // log their pages without one.
    void only_faults_since(const struct pm_stats &before, uint64_t callocs = 0)
    {
        struct pm_stats after = stats();
        REQUIRE(after.rounds - before.rounds <= after.faults - before.faults + callocs);
        REQUIRE(after.fences - before.fences == after.rounds - before.rounds);
        REQUIRE(after.commits == before.commits);
    }
};

} // namespace

TEST_CASE_METHOD(Fixture,
                 "in memory an asynchronous commit is durable at once, and its ticket done")
{
    std::vector<pm_ticket> tickets;
    for (uint64_t i = 1; i <= 3; i++) {
        struct pm_stats before = stats();
        word(7) = i;
        tickets.push_back(pm_commit_async(c.get()));
        REQUIRE(tickets.back().container == c.get());
        REQUIRE(stats().commits == before.commits + 1);
        const uint64_t faults = undo ? stats().faults - before.faults : 0; // with a fence each
        REQUIRE(stats().fences == before.fences + faults + 1);
    }
    struct pm_stats before = stats();
    for (pm_ticket ticket : tickets)
        REQUIRE_OK(pm_wait(ticket));
    REQUIRE(stats().fences == before.fences);
    REQUIRE(stats().rounds == before.rounds);
    REQUIRE(pm_wait({nullptr, 1}) == -1);
    REQUIRE(test::failed_with(EINVAL, {"ticket"}));
}

TEST_CASE_METHOD(Fixture, "one round for each commit, however much it holds")
{
    std::mt19937 random(1);
    std::vector<void *> all;
    for (int objects : {1, 10, 1000, 1, 1000, 10}) {
        struct pm_stats before = stats();
        for (int i = 0; i < objects; i++) {
            size_t size = 1 + random() % 3000;
            all.push_back(pm_calloc(c.get(), 1, size));
            REQUIRE(all.back());
        }
        only_faults_since(before, (uint64_t)objects);
        commit_in_one_round();
    }
    for (int pages : {1, 10, 1000}) {
        struct pm_stats before = stats();
        for (int i = 0; i < pages; i++)
            word(random() % PAGES) = random();
        only_faults_since(before);
        REQUIRE((stats().rounds > before.rounds) == undo); // redo has no round before the commit's
        commit_in_one_round();
    }
    for (int frees : {1, 10, 1000}) {
        struct pm_stats before = stats();
        for (int i = 0; i < frees; i++) {
            REQUIRE_OK(pm_free(all.back()));
            all.pop_back();
        }
        REQUIRE(stats().rounds == before.rounds); // nor does pm_free fence
        commit_in_one_round();
    }
    REQUIRE_OK(pm_setroot(c.get(), nullptr, 0));
    commit_in_one_round();
    REQUIRE_OK(pm_clear(c.get()));
    commit_in_one_round();
}

TEST_CASE_METHOD(Fixture, "allocation fences nothing, in fresh segments not even the stores do")
{
    for (size_t size : {16, 64, 1000, 100000, 3000000}) {
        struct pm_stats before = stats();
        for (size_t bytes = 0; bytes < 8 << 20; bytes += size) {
            char *p = static_cast<char *>(pm_malloc(c.get(), size));
            REQUIRE(p);
            memset(p, 1, size);
        }
        struct pm_stats after = stats();
        REQUIRE(after.rounds == before.rounds);
        REQUIRE(after.pages_logged == before.pages_logged); // no image
        REQUIRE(after.bytes_logged == before.bytes_logged);
        commit_in_one_round();
    }
}

TEST_CASE_METHOD(Fixture, "pages of a slab that hold nothing committed cost no image")
{
    // One object keeps the slab alive over a reopen; all other pages of it are free.
    void *p = pm_malloc(c.get(), 64);
    REQUIRE(p);
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, test::options());
    struct pm_stats before = stats();
    for (int i = 0; i < 10000; i++) {
        void *q = pm_malloc(c.get(), 64);
        REQUIRE(q);
        memset(q, 1, 64);
    }
    struct pm_stats after = stats();
    REQUIRE(after.segments_data == before.segments_data);
    REQUIRE(after.pages_logged <= before.pages_logged + 1); // the first object's page
    if (undo)
        REQUIRE(after.faults <= before.faults + 2);
    commit_in_one_round();
}

TEST_CASE_METHOD(Fixture, "a commit with nothing changed is none")
{
    commit_without_round();
    SECTION("stored, but with the value that was there")
    {
        for (uint64_t i = 0; i < 100; i++)
            word(3 * i) = 0;
        commit_without_round();
        for (uint64_t i = 0; i < 100; i++)
            word(3 * i) = i;
        commit_in_one_round();
        for (uint64_t i = 0; i < 100; i++)
            word(3 * i) = i; // hot now
        commit_without_round();
    }
    SECTION("stored and taken back")
    {
        word(5) = 1;
        word(5) = 0;
        commit_without_round();
    }
    SECTION("read only")
    {
        for (uint64_t i = 0; i < PAGES; i++)
            REQUIRE(word(i) == 0);
        REQUIRE(stats().faults == 0);
        commit_without_round();
    }
    SECTION("allocated and freed, in a slab that was there")
    {
        void *kept = pm_malloc(c.get(), 100);
        REQUIRE(kept);
        commit_in_one_round();
        void *p = pm_malloc(c.get(), 100);
        memset(p, 1, 100);
        REQUIRE_OK(pm_free(p));
        // The bytes of a free slot on a live page did change; nothing else did.
        struct pm_stats before = stats();
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(stats().rounds - before.rounds <= 1);
    }
    SECTION("a large object allocated and freed")
    {
        void *p = pm_malloc(c.get(), 3 << 20);
        memset(p, 1, 3 << 20);
        REQUIRE_OK(pm_free(p));
        commit_without_round();
    }
    SECTION("rolled back")
    {
        word(5) = 1;
        REQUIRE(pm_malloc(c.get(), 100));
        REQUIRE_OK(pm_rollback(c.get()));
        commit_without_round();
    }
    SECTION("the root set to what it is")
    {
        REQUIRE_OK(pm_setroot(c.get(), pm_getroot(c.get()), 0));
        commit_without_round();
    }
    commit_without_round();
}

TEST_CASE_METHOD(Fixture, "lines are carried home once, by the commit that changes them", "[redo]")
{
    for (uint64_t lines : {1, 255, 256, 257, 1000}) {
        CAPTURE(lines);
        struct pm_stats before = stats();
        for (uint64_t i = 0; i < lines; i++)
            word(i) = lines; // a line of each page, so that none is beside another
        commit_in_one_round();
        REQUIRE(stats().lines_flushed - before.lines_flushed == lines);
    }
}

TEST_CASE_METHOD(
    Fixture, "words that home got are written back once: by the next commit, or at once if many",
    "[redo]")
{
    const uint64_t deferred_most = 256; // UNWRITTEN_MAX
    const uint64_t per_word = 56;       // BITMAP_SLOTS
    const uint64_t words_of_line = 8;
    std::vector<void *> objects((deferred_most + 1) * per_word);
    for (void *&object : objects)
        REQUIRE((object = pm_malloc(c.get(), 48))); // of a slab of their own, one behind the other
    REQUIRE_OK(pm_commit(c.get()));
    auto flushed_by = [&](auto change) {
        struct pm_stats before = stats();
        change();
        commit_in_one_round();
        return stats().lines_flushed - before.lines_flushed;
    };
    auto store = [&] { word(0) = word(0) + 1; };
    flushed_by(store);
    uint64_t slot = 0;
    for (uint64_t words : {UINT64_C(1), deferred_most - 1, deferred_most, deferred_most + 1}) {
        CAPTURE(words);
        uint64_t lines = (words + words_of_line - 1) / words_of_line;
        bool deferred = words <= deferred_most;
        auto free_one_of_each = [&] {
            for (uint64_t i = 0; i < words; i++)
                REQUIRE_OK(pm_free(objects[i * per_word + slot]));
        };
        REQUIRE(flushed_by(free_one_of_each) == (deferred ? 0 : lines));
        REQUIRE(flushed_by(store) == 1 + (deferred ? lines : 0));
        slot++;
    }
}

TEST_CASE_METHOD(Fixture, "at most one round for each fault, and one fault for each page")
{
    std::mt19937 random(2);
    struct pm_stats before = stats();
    for (uint64_t i = 0; i < 20000; i++)
        word(random() % PAGES) = i;
    only_faults_since(before);
    REQUIRE(stats().faults <= PAGES);
    REQUIRE(stats().pages_logged <= PAGES);
    commit_in_one_round();
}

TEST_CASE_METHOD(Fixture, "stores that run on need fewer faults than pages")
{
    struct pm_stats before = stats();
    for (uint64_t i = 100; i < 1100; i++)
        word(i) = i;
    struct pm_stats after = stats();
    REQUIRE(after.faults - before.faults < 1000 / 8);
    REQUIRE(after.pages_logged - before.pages_logged < 1000 + 100);
    only_faults_since(before);
    commit_in_one_round();

    SECTION("scattered stores open no neighbours")
    {
        before = stats();
        for (uint64_t i = 0; i < 300; i++)
            word(1200 + (i * 7919) % 1800 / 2 * 2) = i + 1;
        after = stats();
        REQUIRE(after.pages_logged - before.pages_logged <= after.faults - before.faults + 20);
    }
}

TEST_CASE_METHOD(Fixture, "a page stored to again and again costs one fault in all", "[faults]")
{
    word(50) = 1;
    REQUIRE_OK(pm_commit(c.get()));
    struct pm_stats before = stats();
    for (uint64_t i = 2; i < 500; i++) {
        word(50) = i;
        commit_in_one_round();
    }
    struct pm_stats after = stats();
    REQUIRE(after.faults == before.faults);
    REQUIRE(after.pages_ahead - before.pages_ahead == (undo ? 498 : 0));
    REQUIRE(after.lines_logged - before.lines_logged == (undo ? 0 : 498));
    REQUIRE(after.pages_open == 1);

    SECTION("and is protected again when it was idle long enough")
    {
        // At most 16 idle commits, says commit's rule; two pages take turns, so as to commit.
        for (uint64_t i = 0; i < 40; i++) {
            word(1000) = i + 1;
            REQUIRE_OK(pm_commit(c.get()));
        }
        REQUIRE(stats().pages_open == 1);
        before = stats();
        word(50) = 1;
        REQUIRE(stats().faults == before.faults + 1);
    }
    SECTION("but stays open over a short pause")
    {
        for (uint64_t i = 0; i < 5; i++) {
            word(1000) = i + 1;
            REQUIRE_OK(pm_commit(c.get()));
        }
        before = stats();
        word(50) = 1;
        REQUIRE(stats().faults == before.faults);
    }
    SECTION("and a rollback brings back its last committed contents")
    {
        word(50) = 12345;
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(word(50) == 499);
        word(50) = 12346;
        commit_in_one_round();
        word(50) = 12347;
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(word(50) == 12346);
    }
}

TEST_CASE_METHOD(Fixture, "a page touched once is soon protected again", "[faults]")
{
    word(50) = 1;
    REQUIRE_OK(pm_commit(c.get()));
    for (uint64_t i = 0; i < 3; i++) {
        word(1000) = i + 1;
        REQUIRE_OK(pm_commit(c.get()));
    }
    struct pm_stats before = stats();
    word(50) = 2;
    REQUIRE(stats().faults == before.faults + 1);
}

TEST_CASE("with concurrent stores a commit is one round as well", "[faults]")
{
    test::Directory directory;
    pm_options how = test::small();
    how.concurrent_stores = true;
    test::Container c = test::open_with_pages(directory / "c.pm", 200, how);
    for (uint64_t round = 1; round < 20; round++) {
        struct pm_stats before = test::stats(c.get());
        for (uint64_t i = 0; i < 10; i++)
            page_word(c.get(), (i * 37 + round) % 200) = round;
        struct pm_stats middle = test::stats(c.get());
        REQUIRE(middle.faults - before.faults == 10); // none stays open
        REQUIRE(middle.rounds - before.rounds <= 10);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(test::stats(c.get()).rounds == middle.rounds + 1);
        REQUIRE(test::stats(c.get()).fences == middle.fences + 1);
        REQUIRE(test::stats(c.get()).pages_open == 0);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(test::stats(c.get()).rounds == middle.rounds + 1);
    }
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a close needs no recovery and two rounds")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open_with_pages(path, 200, test::small());
    REQUIRE_FALSE(test::stats(c.get()).recovered);
    page_word(c.get(), 3) = 1;
    REQUIRE_OK(pm_commit(c.get()));
    page_word(c.get(), 3) = 2;
    c.reset();
    c = test::open(path, test::options());
    REQUIRE_FALSE(test::stats(c.get()).recovered);
    REQUIRE(test::stats(c.get()).recovery_ns == 0);
    REQUIRE(page_word(c.get(), 3) == 1);
}
