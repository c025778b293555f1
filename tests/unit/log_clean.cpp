// The cleaner of the log engine: the file stays small while parts of its chunks die, on a full disk too, and
// nothing is lost. log_full.cpp has the full disk.
#include "common/fixture.hpp"
#include "common/full_disk.hpp"
#include "hostile/log_file.hpp"
#include "unit/page_state.h"
#include "unit/unchanged.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <vector>

using test::disk_is_full;
using test::grows_by_least;

namespace
{

constexpr uint64_t LINE = 64, MiB = 1 << 20;

struct Subject {
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c;
    std::vector<uint64_t> model;

    // Announced stores do not fault, for tests that make hundreds of thousands.
    explicit Subject(uint64_t bytes, bool announced = false, unsigned live_percent = 0)
        : model(bytes / sizeof(uint64_t)), announced_(announced)
    {
        pm_options how = test::small(PM_CREATE | (announced ? (unsigned)PM_ANNOUNCED : 0u));
        if (announced)
            how.tracker = PM_TRACKER_STORES;
        how.max_size = 64 * MiB;
        how.live_percent = live_percent;
        c = test::open(path, how);
        void *p = pm_malloc(c.get(), bytes);
        REQUIRE(p);
        REQUIRE_OK(pm_setroot(c.get(), p, 0));
        for (uint64_t i = 0; i < model.size(); i++)
            store(i, i + 1);
        REQUIRE_OK(pm_commit(c.get()));
    }
    void store(uint64_t word, uint64_t value)
    {
        auto *at = static_cast<uint64_t *>(pm_getroot(c.get())) + word;
        if (announced_ && pm_dirty(at, sizeof *at) != 0)
            FAIL(pm_errormsg());
        *static_cast<volatile uint64_t *>(at) = model[word] = value;
    }
    // All words of a line change, so the commit logs the line as a whole.
    void store_line(uint64_t line, uint64_t value)
    {
        for (uint64_t word = 0; word < LINE / sizeof(uint64_t); word++)
            store(line * LINE / sizeof(uint64_t) + word, value + word);
    }
    void holds_in(pm_container *other) const
    {
        const bool same =
            memcmp(pm_getroot(other), model.data(), model.size() * sizeof(uint64_t)) == 0;
        REQUIRE(same);
        REQUIRE_OK(pm_check(other));
        REQUIRE(lost_chunks(other) == 0);
    }
    uint64_t file_bytes() const { return std::filesystem::file_size(path); }

  private:
    bool announced_;
};

// What the cleaner logs, in the commit that fails behind it.
uint64_t logged_again;
bool fails;

bool cleans = true, counts_all;

} // namespace

extern "C" {

struct txn;
struct record_runs;
int __real_log_plan(struct txn *t, struct record_runs *runs);
void __real_log_clean(struct txn *t, uint64_t lines);

static bool cleaning;

void __wrap_log_clean(struct txn *t, uint64_t lines)
{
    cleaning = true;
    if (cleans)
        __real_log_clean(t, lines);
    cleaning = false;
}

int __wrap_log_plan(struct txn *t, struct record_runs *runs)
{
    logged_again += cleaning || counts_all;
    return fails && !cleaning ? -ENOMEM : __real_log_plan(t, runs);
}
}

TEST_CASE("a commit that fails behind the cleaner leaves a container that can be closed")
{
    const uint64_t bytes = MiB, lines = bytes / LINE;
    Subject subject(bytes);
    std::mt19937_64 random(1);
    auto change = [&] { // more lines than a small commit has, which is not planned
        for (int i = 0; i < 32; i++)
            subject.store_line(random() % lines, random());
    };
    for (logged_again = 0; logged_again == 0;) {
        change();
        REQUIRE_OK(pm_commit(subject.c.get()));
    }
    for (int i = 0; i < 200; i++) {
        change();
        logged_again = 0;
        fails = true;
        REQUIRE(pm_commit(subject.c.get()) == -1);
        fails = false;
        if (logged_again > 0)
            break;
        REQUIRE_OK(pm_commit(subject.c.get()));
    }
    REQUIRE(logged_again > 0);
    const bool commits = GENERATE(false, true);
    if (commits)
        REQUIRE_OK(pm_commit(subject.c.get()));
    subject.c.reset();
    subject.c = test::open(subject.path, test::options());
    if (commits)
        subject.holds_in(subject.c.get());
    REQUIRE_OK(pm_check(subject.c.get()));
}

TEST_CASE("a file in which lines are stored to at random stays small")
{
    const uint64_t bytes = 4 * MiB, lines = bytes / LINE;
    const uint64_t each = GENERATE(as<uint64_t>(), 1, 30, 2000); // lines of a commit
    const bool reserves = GENERATE(false, true), few = GENERATE(false, true);
    if (reserves && each == 1)
        return; // a reservation is of whole pages
    CAPTURE(each, reserves, few);
    Subject subject(bytes, !reserves);
    std::mt19937_64 random(each);
    const uint64_t commits = 3 * lines / each;
    for (uint64_t i = 0; i < commits; i++) {
        if (reserves)
            REQUIRE_OK(pm_reserve(subject.c.get(), each * 4096));
        for (uint64_t k = 0; k < each; k++)
            subject.store(random() % (few ? lines / 8 : lines) * 8, random());
        if (pm_commit(subject.c.get()) != 0)
            FAIL(pm_errormsg());
    }
    // A file that grows does so by an eighth. What the last commits have freed cannot be filled yet.
    CHECK(subject.file_bytes() <=
          bytes * 3 + 20 * each * LINE + (reserves ? each * 4096 * 3 / 2 : 0));
    subject.holds_in(subject.c.get());
    subject.c.reset();
    subject.c = test::open(subject.path, test::options());
    subject.holds_in(subject.c.get());
}

TEST_CASE("lines that are stored to again and again do not make the cleaner move others")
{
    const uint64_t lines = 4 * MiB / LINE, hot = lines / 16, commits = 2 * lines;
    Subject subject(4 * MiB, true);
    std::mt19937_64 random(1);
    const uint64_t before = test::stats(subject.c.get()).bytes_logged;
    for (uint64_t i = 0; i < commits; i++) { // a cold line for each seven hot ones
        for (uint64_t k = 0; k < 8; k++)
            subject.store(random() % (k < 7 ? hot : lines) * 8, random());
        REQUIRE_OK(pm_commit(subject.c.get()));
    }
    const uint64_t logged = test::stats(subject.c.get()).bytes_logged - before;
    CHECK(logged / commits < 1050); // 640 by the program; 1140 if all records went to the same chunk
    subject.holds_in(subject.c.get());
}

TEST_CASE("on a full disk the program goes on in what is left of the cleaner's chunk")
{
    Subject subject(MiB);
    void *fresh = pm_malloc(subject.c.get(), 4 * MiB);
    REQUIRE(fresh);
    REQUIRE_OK(pm_commit(subject.c.get()));
    std::mt19937_64 random(1);
    for (int i = 0; i < 20000; i++) {
        subject.store(random() % (MiB / LINE) * 8, random());
        REQUIRE_OK(pm_commit(subject.c.get()));
    }
    disk_is_full = true;
    uint64_t stored = 0;
    do {
        static_cast<volatile uint64_t *>(fresh)[stored++ * 8] = 1; // this line has no piece yet
    } while (pm_commit(subject.c.get()) == 0);
    disk_is_full = false;
    CHECK(stored > 19500); // 19,100 if that chunk stayed as it is
    subject.holds_in(subject.c.get());
}

TEST_CASE("commits go on on a full disk, of whose room the contents take 80 percent")
{
    const uint64_t values = 4 * MiB / (2 * LINE);
    Subject subject(4 * MiB);
    std::mt19937_64 random(1);
    auto change = [&] {
        const uint64_t at = random() % values * 16, number = random();
        subject.store(at, number);
        subject.store(at + 8, number);
    };
    grows_by_least = true;
    for (uint64_t i = 0; i < 3 * values; i++) {
        disk_is_full =
            subject.file_bytes() >= 5 * MiB + MiB / 16; // and a second chunk of the reserve
        change();
        REQUIRE_OK(pm_commit(subject.c.get()));
    }
    REQUIRE(disk_is_full);
    disk_is_full = grows_by_least = false;
    CHECK(subject.file_bytes() <= 5 * MiB + MiB / 16);
    subject.holds_in(subject.c.get());
    subject.c.reset();
    subject.c = test::open(subject.path, test::options());
    subject.holds_in(subject.c.get());
}

namespace
{

struct Full {
    uint64_t stopped = 0; // commits in which a whole chunk was cleaned
    uint64_t logged = 0;
};

// Values of two lines change on a disk of which they take 70 percent. `skewed`: nine of ten changes are of 15
// percent of the values.
Full change_on_full_disk(Subject &subject, bool skewed)
{
    const uint64_t bytes = subject.model.size() * sizeof(uint64_t), values = bytes / (2 * LINE);
    std::mt19937_64 random(1);
    Full all;
    grows_by_least = true;
    for (uint64_t i = 0; i < 5 * values; i++) {
        disk_is_full = subject.file_bytes() >= bytes * 10 / 7;
        const uint64_t hot = values * 15 / 100, number = random();
        const uint64_t value = i < values          ? i // so that all parts are small
                               : !skewed           ? random() % values
                               : random() % 10 < 9 ? random() % hot
                                                   : hot + random() % (values - hot);
        for (uint64_t line : {2 * value, 2 * value + 1})
            subject.store_line(line, number);
        const uint64_t before = test::stats(subject.c.get()).bytes_logged;
        REQUIRE_OK(pm_commit(subject.c.get()));
        const uint64_t logged = test::stats(subject.c.get()).bytes_logged - before;
        if (i < 3 * values)
            continue;
        all.stopped += logged > 16 * 1024;
        all.logged += logged;
    }
    REQUIRE(disk_is_full);
    all.logged /= 2 * values;
    disk_is_full = grows_by_least = false;
    return all;
}

} // namespace

TEST_CASE("on a full disk commits clean in steps, and not whole chunks")
{
    Subject subject(4 * MiB, true);
    const Full all = change_on_full_disk(subject, GENERATE(false, true));
    CHECK(all.stopped <= 10); // it was hundreds when each of them cleaned a chunk
    subject.holds_in(subject.c.get());
}

// The file grows by an eighth, some ten chunks at once. The disk becomes full after any number of them.
TEST_CASE("commits clean in steps also while the disk becomes full", "[becomes]")
{
    const uint64_t bytes = 4 * MiB, lines = bytes / LINE, chunk = MiB / 16;
    const bool skewed = GENERATE(false, true);
    Subject subject(bytes, true);
    std::mt19937_64 random(1);
    test::disk_has = GENERATE(range(12, 24));
    uint64_t most = 0, before = test::stats(subject.c.get()).bytes_logged;
    for (uint64_t left = 4 * chunk; left > 0;) {
        const bool hot = skewed && random() % 10 < 9;
        subject.store_line(random() % (hot ? lines * 15 / 100 : lines), before);
        REQUIRE_OK(pm_commit(subject.c.get()));
        const uint64_t now = test::stats(subject.c.get()).bytes_logged, logged = now - before;
        most = std::max(most, logged);
        before = now;
        left -= test::disk_has == 0 ? std::min(left, logged) : 0;
    }
    test::disk_has = UINT32_MAX;
    CHECK(most < 16 * 1024); // of a whole chunk half and more is live
    subject.holds_in(subject.c.get());
}

TEST_CASE("a commit cleans a step also where much was stored together", "[steps]")
{
    Subject subject(4 * MiB, true); // one commit stores all, so parts have up to 64 KiB
    const uint64_t lines = 4 * MiB / LINE;
    std::mt19937_64 random(1);
    uint64_t most = 0, before = test::stats(subject.c.get()).bytes_logged;
    const uint64_t first = before;
    for (uint64_t i = 0; i < 2 * lines; i++) {
        subject.store_line(random() % lines, random());
        REQUIRE_OK(pm_commit(subject.c.get()));
        const uint64_t now = test::stats(subject.c.get()).bytes_logged;
        most = std::max(most, now - before);
        before = now;
    }
    CHECK(most < 12 * 1024);                               // 34,112 if a step took whole parts
    CHECK(before - first > 2 * lines * (2 * LINE + LINE)); // the cleaner works
    subject.holds_in(subject.c.get());
}

TEST_CASE("on a full disk commits clean in steps also where lines and their deltas are all live",
          "[folded]")
{
    Subject subject(4 * MiB, true);
    const uint64_t values = 4 * MiB / (2 * LINE);
    int stopped = 0;
    grows_by_least = true;
    for (uint64_t i = 0; i < 4 * values; i++) {
        disk_is_full = subject.file_bytes() >= 5 * MiB;
        for (uint64_t line : {i % values * 2, i % values * 2 + 1})
            if (i < values) // so that all parts are small
                subject.store_line(line, i);
            else
                subject.store(line * 8, i);
        const uint64_t before = test::stats(subject.c.get()).bytes_logged;
        REQUIRE_OK(pm_commit(subject.c.get()));
        const uint64_t logged = test::stats(subject.c.get()).bytes_logged - before;
        stopped += i >= 2 * values && logged > 32 * 1024;
    }
    REQUIRE(disk_is_full);
    disk_is_full = grows_by_least = false;
    CHECK(stopped <= 10);
    subject.holds_in(subject.c.get());
}

TEST_CASE("on a full disk nothing is folded for deltas that are soon dead anyway", "[folded]")
{
    grows_by_least = true;
    Subject subject(8 * MiB, true, 90);
    const uint64_t lines = 8 * MiB / LINE, hot = 8000, together = 400;
    for (uint64_t odd : {0, 1}) // lines that lie alone: no chunk is a good victim
        for (uint64_t line = odd; line < lines; line += 2) {
            subject.store_line(line, line);
            if (line / 2 % together == 0)
                REQUIRE_OK(pm_commit(subject.c.get()));
        }
    auto *more = static_cast<char *>(pm_malloc(subject.c.get(), 8 * MiB)); // until no chunk is free
    REQUIRE(more);
    for (const uint64_t before = subject.file_bytes(); subject.file_bytes() == before;) {
        for (uint64_t i = 0; i < together; i++, more += 2 * LINE) {
            REQUIRE_OK(pm_dirty(more, LINE));
            memset(more, 1, LINE);
        }
        REQUIRE_OK(pm_commit(subject.c.get()));
    }
    const uint64_t most = subject.file_bytes() + 3 * MiB / 16;
    uint64_t before = 0;
    for (uint64_t i = 0; i < 30 * hot; i++) {
        disk_is_full = subject.file_bytes() >= most;
        subject.store(i % hot * 8, i);
        if (i % together == together - 1)
            REQUIRE_OK(pm_commit(subject.c.get()));
        if (i == 15 * hot)
            before = test::stats(subject.c.get()).bytes_logged;
    }
    const uint64_t logged = (test::stats(subject.c.get()).bytes_logged - before) / (15 * hot);
    REQUIRE(disk_is_full);
    disk_is_full = grows_by_least = false;
    CHECK(logged < 40); // 54 if lines are folded at once
    subject.holds_in(subject.c.get());
}

TEST_CASE("lines that change seldom are cleaned early, and others late")
{
    Subject subject(4 * MiB, true);
    CHECK(change_on_full_disk(subject, true).logged <
          450); // 556 if the age of a chunk did not matter
    subject.holds_in(subject.c.get());
}

TEST_CASE("a file grows again when a disk that was full has room")
{
    Subject subject(4 * MiB, true);
    change_on_full_disk(subject, false);
    const uint64_t lines = 4 * MiB / LINE, before = subject.file_bytes();
    std::mt19937_64 random(1);
    for (uint64_t i = 0; i < 2 * lines; i++) {
        subject.store_line(random() % lines, random());
        REQUIRE_OK(pm_commit(subject.c.get()));
    }
    CHECK(subject.file_bytes() > before + 2 * MiB);
    subject.holds_in(subject.c.get());
}

TEST_CASE("of a shorter file more is live")
{
    const uint64_t bytes = 4 * MiB, lines = bytes / LINE;
    const unsigned percent = GENERATE(25u, 50u, 80u);
    CAPTURE(percent);
    Subject subject(bytes, true, percent);
    std::mt19937_64 random(1);
    for (uint64_t i = 0; i < 16 * lines; i++) {
        subject.store_line(random() % lines, random());
        REQUIRE_OK(pm_commit(subject.c.get()));
    }
    // A commit of a line logs two. Idle chunks come on top: a hundredth for each four percent that are dead.
    const double used = 100.0 / percent, expected = used * (1 + (100 - percent) / 400.0);
    CHECK(subject.file_bytes() == Approx(expected * bytes).epsilon(0.1));
    subject.holds_in(subject.c.get());
}

TEST_CASE("a reservation takes chunks that are dead before the file grows")
{
    Subject subject(MiB);
    for (uint64_t i = 0; i < subject.model.size(); i++)
        subject.store(i, i + 2);
    REQUIRE_OK(pm_commit(subject.c.get()));
    subject.c.reset();
    subject.c = test::open(subject.path, test::options());
    disk_is_full = true;
    const int result = pm_reserve(subject.c.get(), MiB / 2);
    disk_is_full = false;
    REQUIRE_OK(result);
    subject.holds_in(subject.c.get());
}

// A reservation may clean while a transaction is open, and it takes the contents from home.
TEST_CASE(
    "what the cleaner logs again is as it was committed, though new bytes have been handed over")
{
    const uint64_t bytes = MiB, lines = bytes / LINE;
    Subject subject(bytes);
    std::mt19937_64 random(1);
    cleans = false;
    for (uint64_t i = 0; i < 2 * lines; i++) {
        subject.store_line(random() % lines, random());
        if (i % 64 == 63)
            REQUIRE_OK(pm_commit(subject.c.get()));
    }
    cleans = true;
    REQUIRE_OK(pm_commit(subject.c.get()));
    subject.c.reset();
    subject.c = test::open(subject.path, test::options());
    const std::string other(bytes, 'x');
    const uint64_t before = logged_again;
    counts_all = true;
    REQUIRE_OK(pm_write(pm_getroot(subject.c.get()), other.data(), other.size()));
    REQUIRE_OK(pm_reserve(subject.c.get(), MiB));
    counts_all = false;
    REQUIRE(logged_again > before);
    const std::string crashed = test::read_file(subject.path);
    subject.c.reset();
    test::write_file(subject.path, crashed);
    subject.c = test::open(subject.path, test::options(PM_ACCEPT_COPY));
    subject.holds_in(subject.c.get());
}

TEST_CASE("a reservation that counts cache lines has room for as many runs")
{
    const uint64_t bytes = 8 * MiB, lines = bytes / LINE;
    test::Directory directory;
    pm_options how = test::small(PM_CREATE | PM_ANNOUNCED);
    how.tracker = PM_TRACKER_STORES;
    test::Container c = test::open(directory / "c.pm", how);
    auto *words = static_cast<volatile uint64_t *>(pm_malloc(c.get(), bytes));
    REQUIRE(words);
    auto store = [&](uint64_t line, uint64_t value) {
        REQUIRE_OK(pm_dirty(const_cast<uint64_t *>(&words[line * 8]), LINE));
        words[line * 8] = value;
    };
    for (uint64_t line = 0; line < lines; line++) // so that no chunk is dead
        store(line, 1);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_reserve(c.get(), lines / 2 * LINE));
    for (uint64_t line = 0; line < lines; line += 2)
        store(line, 2);
    disk_is_full = true;
    const int result = pm_commit(c.get());
    disk_is_full = false;
    REQUIRE_OK(result);
}

// New pointer maps take the place of an object that was freed. The log has the object's lines, so the record
// must have them as zeros.
TEST_CASE("a reservation counts lines of new metadata that the log has older pieces of")
{
    const uint64_t bytes = 32 * MiB, words = bytes / sizeof(void *);
    test::Directory directory;
    grows_by_least = true;
    test::Container c = test::open(directory / "c.pm", test::small(PM_CREATE));
    void *freed = pm_malloc(c.get(), MiB);
    auto **pointers = static_cast<void **>(pm_malloc(c.get(), bytes));
    REQUIRE(freed);
    REQUIRE(pointers);
    memset(freed, 1, MiB);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_free(freed));
    REQUIRE_OK(pm_commit(c.get()));
    for (uint64_t i = 0; i < words; i += words / 32) // a map has the pointers of 3.5 MiB
        REQUIRE_OK(pm_mark_pointers(pointers + i, 1));
    REQUIRE_OK(pm_reserve(c.get(), LINE));
    disk_is_full = true;
    const int result = pm_commit(c.get());
    disk_is_full = grows_by_least = false;
    REQUIRE_OK(result);
}

TEST_CASE("a reservation counts lines of an object that nobody stored to, where another one was")
{
    test::Directory directory;
    grows_by_least = true;
    test::Container c = test::open(directory / "c.pm", test::small(PM_CREATE));
    for (int i = 0; i < 2; i++) {
        void *object = pm_malloc(c.get(), MiB);
        REQUIRE(object);
        if (i == 0) {
            memset(object, 1, MiB);
            REQUIRE_OK(pm_commit(c.get()));
            REQUIRE_OK(pm_free(object));
            REQUIRE_OK(pm_commit(c.get()));
        }
    }
    REQUIRE_OK(pm_reserve(c.get(), LINE));
    disk_is_full = true;
    const int result = pm_commit(c.get());
    disk_is_full = grows_by_least = false;
    REQUIRE_OK(result);
    CHECK(test::stats(c.get()).bytes_logged > 2 * MiB);
}

TEST_CASE("a file that is relocated again and again stays small")
{
    constexpr uint64_t WORDS = 20'000;
    test::Directory directory;
    auto path = [&](int i) { return directory / ("c." + std::to_string(i)); };
    pm_options how = test::small(PM_CREATE | PM_MOVABLE);
    test::Container c = test::open(path(0), how);
    auto **words = static_cast<void **>(pm_malloc(c.get(), WORDS * sizeof(void *)));
    REQUIRE(words);
    for (uint64_t i = 0; i < WORDS; i++)
        words[i] = words + i;
    REQUIRE_OK(pm_setroot(c.get(), words, 0));
    REQUIRE_OK(pm_mark_pointers(words, WORDS));
    REQUIRE_OK(pm_commit(c.get()));
    for (int i = 1; i <= 8; i++) { // each copy finds its addresses taken by the last one
        REQUIRE_OK(pm_copy(c.get(), path(i).c_str(), nullptr, nullptr));
        test::Container moved = test::open(path(i), test::options(PM_MOVABLE | PM_RELOCATE));
        words = static_cast<void **>(pm_getroot(moved.get()));
        REQUIRE(words[WORDS - 1] == words + WORDS - 1);
        c = std::move(moved);
    }
    CHECK(std::filesystem::file_size(path(8)) <= 4 * WORDS * sizeof(void *) + MiB / 16);
}

TEST_CASE(
    "the cleaner goes on after the program itself has emptied the chunk that was being cleaned")
{
    const uint64_t bytes = MiB, lines = bytes / LINE;
    const uint64_t seed = 1;
    Subject subject(bytes);
    std::mt19937_64 random(seed);
    for (int round = 0; round < 20; round++) {
        logged_again = 0;
        for (uint64_t i = 0; i < 4 * lines && logged_again < 1 + random() % 3; i++) {
            subject.store_line(random() % lines, random());
            REQUIRE_OK(pm_commit(subject.c.get()));
        }
        const uint64_t count = random() % (3 * lines), each = 1 + random() % 200;
        for (uint64_t i = 0; i < count; i++) { // in order: whole chunks die
            subject.store_line(i % lines, random());
            if (i % each == 0)
                REQUIRE_OK(pm_commit(subject.c.get()));
        }
        REQUIRE_OK(pm_commit(subject.c.get()));
    }
    for (uint64_t i = 0; i < 4 * lines; i++) {
        subject.store_line(random() % lines, random());
        REQUIRE_OK(pm_commit(subject.c.get()));
    }
    CHECK(subject.file_bytes() <= bytes * 3 + 200 * LINE);
    subject.holds_in(subject.c.get());
}

// A chunk of the cleaner that is full stays open until the cleaner's next record. If all its lines die before,
// this record finds the chunk dead.
TEST_CASE("a chunk of the cleaner that dies while it is full and open is not lost")
{
    const uint64_t bytes = MiB, lines = bytes / LINE;
    Subject subject(bytes);
    pm_container *c = subject.c.get();
    std::mt19937_64 random(1);
    auto clean_into_another = [&](uint32_t chunk) {
        for (uint64_t i = 0; i < lines && cleaners_chunk(c) == chunk; i++) {
            for (int n = 0; n < 10; n++)
                subject.store_line(random() % lines, random());
            REQUIRE_OK(pm_commit(c));
        }
        REQUIRE(cleaners_chunk(c) != chunk);
    };
    auto store_to_all = [&] {
        cleans = false;
        for (uint64_t i = 0; i < lines; i++) {
            subject.store_line(i, random());
            if (i % 64 == 63)
                REQUIRE_OK(pm_commit(c));
        }
        cleans = true;
    };
    clean_into_another(0);
    uint32_t dead = 0;
    for (int round = 0; round < 10; round++) {
        const uint32_t chunk = cleaners_chunk(c);
        REQUIRE(live_lines(c, chunk) > 0);
        store_to_all();
        if (live_lines(c, chunk) == 0) { // no line of metadata is there
            fill_chunk(c, chunk);
            dead++;
        }
        clean_into_another(chunk);
        REQUIRE(lost_chunks(c) == 0);
    }
    REQUIRE(dead > 0);
    store_to_all(); // so that the chunks are void, and pm_check() does not read them to their end
    subject.holds_in(c);
}

// The cleaner makes some room first, by records of its own. So the commit comes in a later epoch than what it
// frees.
TEST_CASE("on a full disk a commit that frees takes of the reserve when the cleaner has made too "
          "little room")
{
    constexpr size_t FREED = 48 << 10;
    const uint64_t bytes = MiB, lines = bytes / LINE;
    for (uint64_t changed : {1500, 1620, 1740}) {
        grows_by_least = true;
        Subject subject(bytes, true);
        pm_container *c = subject.c.get();
        std::mt19937_64 random(changed);
        void *p = pm_malloc(c, FREED);
        REQUIRE(p);
        REQUIRE_OK(pm_dirty(p, FREED));
        memset(p, 1, FREED);
        REQUIRE_OK(pm_commit(c));
        for (int commit = 0; commit < 300; commit++) {
            disk_is_full = subject.file_bytes() >= bytes * 11 / 8;
            for (int i = 0; i < 61; i++)
                subject.store(random() % lines * LINE / sizeof(uint64_t), random());
            REQUIRE_OK(pm_commit(c));
        }
        REQUIRE(disk_is_full);
        for (uint64_t i = 0; i < changed; i++)
            subject.store_line(random() % lines, random());
        REQUIRE_OK(pm_free(p));
        REQUIRE_OK(pm_commit(c));
        disk_is_full = grows_by_least = false;
        subject.holds_in(c);
    }
}

// A writer would void chunks and clean. Who only reads must not, whatever the last writer has left.
TEST_CASE("a file that should be cleaned keeps every byte while it is read")
{
    enum { CLOSED, DIED, TORN };
    const auto left = GENERATE(as<int>(), CLOSED, DIED, TORN);
    const bool full = GENERATE(false, true);
    CAPTURE(left, full);
    const uint64_t bytes = MiB, lines = bytes / LINE;
    Subject subject(bytes);
    std::mt19937_64 random(1);
    auto change = [&] {
        for (int i = 0; i < 40; i++)
            subject.store_line(random() % lines, random());
    };
    cleans = full; // else most of the file is dead
    for (int i = 0; i < 1500; i++) {
        disk_is_full = full && subject.file_bytes() >= bytes * 11 / 8;
        change();
        REQUIRE_OK(pm_commit(subject.c.get()));
    }
    cleans = true;
    CHECK((subject.file_bytes() < 2 * bytes) == full);
    const std::string before = test::read_file(subject.path);
    const std::vector<uint64_t> model = subject.model;
    change(); // not committed, or torn
    if (left == TORN)
        REQUIRE_OK(pm_commit(subject.c.get()));
    std::string after = test::read_file(subject.path);
    if (left == TORN) { // the record lacks a line, and the note of it is not durable yet
        const uint64_t end = hostile::LogFile(after).newest().back().end();
        memset(&after[end - LINE], 0, LINE);
        after.replace(FORMAT_STATE, PM_PAGE, before, FORMAT_STATE, PM_PAGE);
    }
    if (left == CLOSED)
        REQUIRE_OK(pm_rollback(subject.c.get()));
    subject.model = model;
    subject.c.reset();
    disk_is_full = false;
    if (left != CLOSED)
        test::write_file(subject.path, after);
    const test::Unchanged file(subject.path);
    for (int again = 0; again < 2; again++) {
        test::Container c = test::open(subject.path, test::options(PM_READONLY));
        REQUIRE(test::stats(c.get()).recovered == (left != CLOSED));
        subject.holds_in(c.get());
        c.reset();
        file.require();
    }
    const test::Container c = test::open(subject.path, test::options()); // the writer finds the same
    subject.holds_in(c.get());
}

// The child has the cleaner's notes, too. It must do nothing with them, and the parent goes on cleaning.
TEST_CASE("a process forks while a chunk is half cleaned")
{
    const uint64_t bytes = MiB, lines = bytes / LINE;
    Subject subject(bytes);
    pm_container *c = subject.c.get();
    std::mt19937_64 random(1);
    auto commit = [&] {
        for (int i = 0; i < 20; i++)
            subject.store_line(random() % lines, random());
        REQUIRE_OK(pm_commit(c));
    };
    uint32_t last = 0;
    for (int chunk = 0; chunk < 5; chunk++) { // of the cleaner
        for (int i = 0; half_cleaned_chunk(c) == 0 || half_cleaned_chunk(c) == last; i++) {
            REQUIRE(i < 10000);
            commit();
        }
        const uint32_t victim = last = half_cleaned_chunk(c);
        const uint32_t live = live_lines(c, victim);
        REQUIRE(live > 0);
        subject.store_line(0, random()); // in an open transaction
        const test::Unchanged file(subject.path);
        const int status = test::in_child([&] {
            CHILD_REQUIRE(pm_commit(c) == -1 && errno == ECHILD);
            CHILD_REQUIRE(pm_reserve(c, MiB) == -1 && errno == ECHILD);
            CHILD_REQUIRE(pm_rollback(c) == -1 && errno == ECHILD);
            CHILD_REQUIRE(pm_close(c) == -1 && errno == ECHILD);
        });
        REQUIRE(test::exited(status));
        file.require();
        REQUIRE(half_cleaned_chunk(c) == victim);
        REQUIRE(live_lines(c, victim) == live);
        REQUIRE_OK(pm_commit(c));
        subject.holds_in(c);
    }
    const std::string died = test::read_file(subject.path);
    subject.c.reset();
    test::write_file(subject.path, died);
    subject.c = test::open(subject.path, test::options());
    subject.holds_in(subject.c.get());
}
