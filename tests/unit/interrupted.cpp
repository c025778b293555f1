// A process killed at each step that a recovery takes on the medium, and the recovery after that.
// Linked with --wrap for the medium's operations, so that the n-th can be made the last.
#include "common/format.hpp"
#include "common/process.hpp"
#include "unit/linked.hpp"

#include <algorithm>
#include <cstring>
#include <unistd.h>

using test::page_word;

namespace
{

int steps;
int fatal_step; // die before this one; 0: none
bool watching;

void step()
{
    if (watching && ++steps == fatal_step)
        _exit(42);
}

const uint64_t SEGMENT = 64 << 10;
const uint64_t PAGES = 100;

} // namespace

extern "C" {

struct medium;
void __real_medium_write_back(struct medium *medium, const void *address, size_t size);
int __real_medium_rewrite(struct medium *medium, const void *address, size_t size);
int __real_medium_publish(struct medium *medium, const void *address, size_t size);
int __real_medium_copy(struct medium *medium, void *to, const void *from, size_t size);
void __real_medium_carry_line(struct medium *medium, void *to, const void *from);
int __real_medium_fence(struct medium *medium);
int __real_medium_settle(struct medium *medium);

void __wrap_medium_write_back(struct medium *medium, const void *address, size_t size)
{
    step();
    __real_medium_write_back(medium, address, size);
}

int __wrap_medium_rewrite(struct medium *medium, const void *address, size_t size)
{
    step();
    return __real_medium_rewrite(medium, address, size);
}

int __wrap_medium_publish(struct medium *medium, const void *address, size_t size)
{
    step();
    return __real_medium_publish(medium, address, size);
}

int __wrap_medium_copy(struct medium *medium, void *to, const void *from, size_t size)
{
    step();
    return __real_medium_copy(medium, to, from, size);
}

void __wrap_medium_carry_line(struct medium *medium, void *to, const void *from)
{
    step();
    __real_medium_carry_line(medium, to, from);
}

int __wrap_medium_fence(struct medium *medium)
{
    step();
    return __real_medium_fence(medium);
}

int __wrap_medium_settle(struct medium *medium)
{
    step();
    return __real_medium_settle(medium);
}
}

// Recover, and die at a step; or else check and say how many there were. Where another container is
// named, that one is opened first, so that its addresses are taken.
CHILD_PROCESS(recovers)
{
    pm_options first = test::options(PM_MOVABLE);
    if (!arguments[2].empty())
        CHILD_REQUIRE(pm_open(arguments[2].c_str(), &first));
    fatal_step = std::stoi(arguments[1]);
    watching = true;
    pm_options how = test::options(PM_MOVABLE | PM_RELOCATE | PM_ACCEPT_COPY);
    pm_container *c = pm_open(arguments[0].c_str(), &how);
    watching = false;
    CHILD_REQUIRE(c);
    test::say(std::to_string(steps).c_str());
    _exit(0);
}

namespace
{

// From the crashed container `path`: interrupt its recovery at every step, then recover, and demand
// what `right` says. `every`: of the steps but the last twenty, look at each so-manieth only.
template <typename Right>
void interrupt_everywhere(const test::Directory &directory, const std::string &path, int every,
                          Right right, const std::string &beside = "")
{
    std::string crashed = test::read_file(path), copy = directory / "copy.pm";
    int steps = 1;
    for (int at = 0; at <= steps;
         at = at + 20 < steps ? std::min(at + every, steps - 20) : at + 1) {
        INFO("interrupted at step " << at << " of " << steps);
        test::write_file(copy, crashed);
        test::Ended ended = test::run("recovers", {copy, std::to_string(at), beside});
        INFO(ended.errors);
        REQUIRE(test::exited(ended.status, at == 0 ? 0 : 42));
        if (at == 0)
            steps = std::stoi(ended.output);
        {
            test::Container c = test::open(copy, test::options(PM_MOVABLE | PM_RELOCATE | PM_ACCEPT_COPY));
            REQUIRE_OK(pm_check(c.get()));
            right(c.get());
            // And the container lives on.
            void *p = pm_malloc(c.get(), 1000);
            REQUIRE(p);
            memset(p, 1, 1000);
            REQUIRE_OK(pm_commit(c.get()));
            REQUIRE_OK(pm_check(c.get()));
        }
        REQUIRE_OK(pm_delete(copy.c_str()));
    }
    REQUIRE(steps > 10);
}

} // namespace

// Two commits and an open transaction, with objects of all kinds coming and going; dies at a step
// of the last commit, or after it.
CHILD_PROCESS(commits_and_dies)
{
    test::Container c = test::open_with_pages(arguments[0], PAGES, test::small());
    std::vector<void *> objects;
    for (uint64_t round = 1; round <= 4; round++) {
        bool last = round == 4;
        for (uint64_t i = 0; i < 20; i++)
            page_word(c.get(), (i * 7 + (last ? 1 : 0)) % PAGES) = round;
        for (size_t size : {50, 5000, 100000}) {
            objects.push_back(pm_malloc(c.get(), size));
            CHILD_REQUIRE(objects.back());
            memset(objects.back(), (int)round, size);
        }
        if (round >= 2)
            for (int i = 0; i < 3; i++) {
                CHILD_REQUIRE(pm_free(objects.front()) == 0);
                objects.erase(objects.begin());
            }
        if (last && arguments[1] != "0") {
            fatal_step = std::stoi(arguments[1]);
            watching = true;
        }
        if (!last || arguments[2] == "commit")
            CHILD_REQUIRE(pm_commit(c.get()) == 0);
    }
    test::say("done");
    _exit(0);
}

namespace
{

// The round that a container of commits_and_dies is at, 0 if it is in between.
uint64_t state_of(pm_container *c)
{
    for (uint64_t round : {3, 4}) {
        bool is = test::stats(c).segments_data > 0;
        for (uint64_t page = 0; page < PAGES; page++) {
            uint64_t expected = 0;
            for (uint64_t i = 0; i < 20; i++) {
                if (i * 7 % PAGES == page)
                    expected = 3;
                if (round == 4 && (i * 7 + 1) % PAGES == page)
                    expected = 4;
            }
            // A page of both is of the later.
            for (uint64_t i = 0; i < 20 && round == 4; i++)
                if ((i * 7 + 1) % PAGES == page)
                    expected = 4;
            is = is && page_word(c, page) == expected;
        }
        if (is)
            return round;
    }
    return 0;
}

} // namespace

TEST_CASE("a kill at each step of a commit: the state before or after")
{
    test::Directory directory;
    bool died = true, before = false, after = false;
    for (int at = 1; died; at++) {
        std::string path = directory / std::to_string(at);
        test::Ended ended = test::run("commits_and_dies", {path, std::to_string(at), "commit"});
        INFO("at step " << at << ": " << ended.errors);
        died = test::exited(ended.status, 42);
        if (!died)
            REQUIRE(test::exited(ended.status));
        test::Container c = test::open(path, test::options());
        REQUIRE_OK(pm_check(c.get()));
        uint64_t state = state_of(c.get());
        REQUIRE(state != 0);
        before |= state == 3;
        after |= state == 4;
        if (!died)
            REQUIRE(state == 4);
        c.reset();
        REQUIRE_OK(pm_delete(path.c_str()));
    }
    REQUIRE(before);
    REQUIRE(after);
}

TEST_CASE("a kill at each step of a recovery")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    SECTION("of an open transaction")
    {
        REQUIRE_CLEAN(test::run("commits_and_dies", {path, "0", "die"}));
        interrupt_everywhere(directory, path, 1,
                             [](pm_container *c) { REQUIRE(state_of(c) == 3); });
    }
    SECTION("right after a commit")
    {
        REQUIRE_CLEAN(test::run("commits_and_dies", {path, "0", "commit"}));
        interrupt_everywhere(directory, path, 1,
                             [](pm_container *c) { REQUIRE(state_of(c) == 4); });
    }
    SECTION("of a torn commit")
    {
        test::Ended ended = test::run("commits_and_dies", {path, test::engine() == "log" ? "1" : "20", "commit"});
        REQUIRE(test::exited(ended.status, 42));
        uint64_t state;
        {
            std::string copy = directory / "state.pm";
            test::write_file(copy, test::read_file(path));
            state = state_of(test::open(copy, test::options(PM_ACCEPT_COPY)).get());
        }
        REQUIRE(state != 0);
        interrupt_everywhere(directory, path, 1,
                             [&](pm_container *c) { REQUIRE(state_of(c) == state); });
    }
}

// Epoch e - 1 frees a segment, and the record of e is so long that the log takes that segment for
// it. Recovery repeats the words of e - 1, of which one says that the segment is free.
CHILD_PROCESS(log_takes_a_freed_segment)
{
    const uint64_t pages = 1000; // of an object
    pm_options how = test::small();
    how.max_size = 256 << 20;
    how.concurrent_stores = true; // at first, so that no page stays hot and the log stays short
    pm_container *c = pm_open(arguments[0].c_str(), &how);
    CHILD_REQUIRE(c);
    void *victim = pm_malloc(c, SEGMENT); // lower than all that comes later
    CHILD_REQUIRE(victim);
    std::vector<void *> objects;
    for (int i = 0; i < 10; i++) {
        objects.push_back(pm_calloc(c, pages, 4096));
        CHILD_REQUIRE(objects.back());
        CHILD_REQUIRE(pm_setroot(c, objects[0], 0) == 0 && pm_commit(c) == 0);
    }
    CHILD_REQUIRE(pm_close(c) == 0);
    c = test::open(arguments[0], test::options()).release();

    // Open all pages of some objects, so that the record lists them; change one, so that few stay
    // hot.
    auto touch = [&](size_t count, uint64_t value) {
        for (size_t i = 0; i < count; i++)
            CHILD_REQUIRE(pm_dirty(objects[i], pages * 4096) == 0);
        page_word(c, 0) = value;
    };
    auto log_half = [&](unsigned half) {
        uint64_t count = 0;
        for (uint64_t i = 0; i < how.max_size / SEGMENT; i++) {
            uint64_t word = test::read_word(arguments[0], FORMAT_TABLE + 8 * i);
            count += segment_kind(word) == SEGMENT_LOG && segment_log_half(word) == half;
        }
        return count;
    };
    touch(10, 1);
    unsigned images = test::stats(c).epoch % 2; // this half gets long, the other need not
    CHILD_REQUIRE(pm_commit(c) == 0);
    // Small commits, until the other half has shrunk, but not yet that of the images.
    for (uint64_t i = 2; log_half(!images) > 2 || test::stats(c).epoch % 2 == images; i++) {
        CHILD_REQUIRE(i < 20);
        page_word(c, 0) = i;
        CHILD_REQUIRE(pm_commit(c) == 0);
    }
    CHILD_REQUIRE(pm_free(victim) == 0 && pm_commit(c) == 0); // e - 1
    CHILD_REQUIRE(log_half(images) * log_segment_slots(SEGMENT) > 8 * pages + 100);
    touch(8, 1000);
    CHILD_REQUIRE(pm_commit(c) == 0); // e
    uint64_t offset = (uint64_t)victim & ((uint64_t{1} << 30) - 1);
    uint64_t word = test::read_word(arguments[0], FORMAT_TABLE + offset / SEGMENT * 8);
    CHILD_REQUIRE(segment_kind(word) == SEGMENT_LOG && segment_log_half(word) != images);
    _exit(0);
}

// Epoch e - 1 makes slabs, and e gives the segment of one back. Then the log takes it for images of e + 1.
// Recovery repeats what e - 1 did, which was to clear the slab's bitmap.
CHILD_PROCESS(log_takes_the_segment_of_a_slab)
{
    test::Container c = test::open_with_pages(arguments[0], PAGES, test::small());
    auto segment_of = [](void *p) { return ((uint64_t)p & ((uint64_t{1} << 30) - 1)) / SEGMENT; };
    void *first = pm_malloc(c.get(), 10000), *victim;
    do {
        victim = pm_malloc(c.get(), 10000);
        CHILD_REQUIRE(first && victim);
    } while (segment_of(victim) == segment_of(first));
    CHILD_REQUIRE(pm_free(first) == 0); // the last slab with room would not be given back
    CHILD_REQUIRE(pm_commit(c.get()) == 0);                         // e - 1
    CHILD_REQUIRE(pm_free(victim) == 0 && pm_commit(c.get()) == 0); // e
    for (uint64_t page = 0; page < PAGES; page++)
        page_word(c.get(), page) = 1;
    uint64_t word = test::read_word(arguments[0], FORMAT_TABLE + segment_of(victim) * 8);
    CHILD_REQUIRE(segment_kind(word) == SEGMENT_LOG);
    _exit(0);
}

// The same under redo: a record so long that the log takes, for a part of it, the segment that the
// transaction before has freed.
CHILD_PROCESS(redo_log_takes_a_freed_segment)
{
    const uint64_t pages = 300;
    test::Container c = test::open_with_pages(arguments[0], pages, test::small());
    void *victim = pm_calloc(c.get(), 1, SEGMENT);
    CHILD_REQUIRE(victim);
    for (uint64_t line = 0; line < SEGMENT / 8; line++)
        static_cast<uint64_t *>(victim)[line] = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    static_cast<uint64_t *>(victim)[0] = 2; // replay must not bring this back, nor what follows
    page_word(c.get(), 0) = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    CHILD_REQUIRE(pm_free(victim) == 0 && pm_commit(c.get()) == 0); // e - 1
    for (uint64_t line = 0; line < pages * 64; line++)
        (&page_word(c.get(), 0))[line * 8] = 1000;
    CHILD_REQUIRE(pm_commit(c.get()) == 0); // e
    uint64_t offset = (uint64_t)victim & ((uint64_t{1} << 30) - 1);
    uint64_t word = test::read_word(arguments[0], FORMAT_TABLE + offset / SEGMENT * 8);
    CHILD_REQUIRE(segment_kind(word) == SEGMENT_LOG);
    _exit(0);
}

TEST_CASE("a kill in a replay whose log lies where the transaction before had freed a segment",
          "[redo]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("redo_log_takes_a_freed_segment", {path}));
    interrupt_everywhere(directory, path, 5, [](pm_container *c) {
        for (uint64_t line = 0; line < 300 * 64; line++)
            if ((&page_word(c, 0))[line * 8] != 1000)
                FAIL("line " << line << ": a commit is lost");
    });
}

TEST_CASE("a kill in a recovery whose log lies where the transaction before had freed a segment",
          "[undo]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("log_takes_a_freed_segment", {path}));
    interrupt_everywhere(directory, path, 4001, [](pm_container *c) {
        for (uint64_t i = 0; i < 1000; i++)
            if (page_word(c, i) != (i == 0 ? 1000 : 0))
                FAIL("page " << i << " has " << page_word(c, i) << ": a commit is lost");
    });
}

TEST_CASE("a kill in a recovery whose log lies where a slab has come and gone", "[undo]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("log_takes_the_segment_of_a_slab", {path}));
    interrupt_everywhere(directory, path, 10, [](pm_container *c) {
        for (uint64_t page = 0; page < PAGES; page++)
            if (page_word(c, page) != 0)
                FAIL("page " << page << " has what was not committed");
    });
}

TEST_CASE("a move to other addresses interrupted at each step")
{
    test::Directory directory;
    std::string path = directory / "c.pm", original = directory / "original.pm";
    {
        test::Container c = test::open(path, test::small(PM_CREATE | PM_MOVABLE));
        linked::build(c.get(), 100);
        REQUIRE_OK(pm_commit(c.get()));
    }
    std::string here = directory / "here.pm", there = directory / "there.pm";
    for (const std::string &name : {original, here, there})
        test::write_file(name, test::read_file(path));
    // Interrupted moves are completed where they were going to; or, if by then others are there and
    // where they came from, they go on to a third place.
    std::vector<test::Container> others;
    if (GENERATE(false, true)) {
        others.push_back(test::open(here, test::options(PM_MOVABLE)));
        others.push_back(test::open(there, test::options(PM_MOVABLE)));
    }
    interrupt_everywhere(
        directory, path, 1, [&](pm_container *c) { linked::require(c, 100); }, original);
}

// arguments: path, step
CHILD_PROCESS(vouches_for_nothing)
{
    fatal_step = std::stoi(arguments[1]);
    watching = true;
    pm_options how = test::options();
    pm_container *c = pm_open(arguments[0].c_str(), &how);
    watching = false;
    CHILD_REQUIRE(c);
    _exit(0);
}

TEST_CASE("a kill at each step of the first opening that vouches for nothing")
{
    bool died = true;
    for (int at = 1; died; at++) {
        test::Directory directory;
        const std::string path = directory / "c.pm";
        {
            test::Container c =
                test::open_with_pages(path, 2, test::small(PM_CREATE | PM_MOVABLE));
            page_word(c.get(), 1) = 7;
            REQUIRE_OK(pm_commit(c.get()));
        }
        const test::Ended ended = test::run("vouches_for_nothing", {path, std::to_string(at)});
        INFO("step " << at << ": " << ended.errors);
        died = test::exited(ended.status, 42);
        REQUIRE((died || test::exited(ended.status, 0)));
        const test::Container c = test::open(path, test::options());
        REQUIRE(page_word(c.get(), 1) == 7);
    }
}
