// A full disk: an error where a call can return one, the end of the process where a store cannot,
// and never the loss of what was committed.
#include "common/format.hpp"
#include "common/process.hpp"
#include "system/disk.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>

using test::failed_with;

namespace
{

constexpr uint64_t SEGMENT = 64 << 10; // of test::small()
constexpr uint64_t MiB = 1 << 20;

struct Node {
    Node *next;
    uint64_t number;
    uint64_t filling[600];
};

// Put a node in front of the list at the root; false when there is no space. No list is longer
// than its first node says.
bool push(pm_container *c)
{
    Node *first = static_cast<Node *>(pm_getroot(c));
    Node *node = static_cast<Node *>(pm_malloc(c, sizeof *node));
    if (!node)
        return false;
    node->next = first;
    node->number = first ? first->number + 1 : 1;
    for (uint64_t &word : node->filling)
        word = node->number;
    if (pm_setroot(c, node, 0) != 0)
        throw std::runtime_error(pm_errormsg());
    return true;
}

// Length of the list, or UINT64_MAX if it is damaged.
uint64_t length(pm_container *c)
{
    uint64_t count = 0;
    Node *node = static_cast<Node *>(pm_getroot(c));
    for (uint64_t number = node ? node->number : 0; node; node = node->next, number--, count++)
        for (uint64_t word : node->filling)
            if (node->number != number || word != number)
                return UINT64_MAX;
    return count;
}

// Take all segments of the file that are free, and the disk's last ones, so that only the log's
// own spare room is left. Part of the open transaction.
void exhaust(pm_container *c)
{
    while (pm_malloc(c, SEGMENT))
        ;
    if (errno != ENOSPC)
        throw std::runtime_error(pm_errormsg());
}

bool container_has_free_segments(pm_container *c)
{
    return test::stats(c).segments_free > 0;
}

// Every page of the root object begins with `value`.
bool pages_hold(pm_container *c, uint64_t pages, uint64_t value)
{
    for (uint64_t i = 0; i < pages; i++)
        if (test::page_word(c, i) != value)
            return false;
    return true;
}

// Whose root is so large that the log has no room left for all of it.
test::Container open_with_large_root(const std::string &path)
{
    pm_options options = test::small();
    options.max_size = 8 * MiB;
    return test::open_with_pages(path, 1280, options);
}

} // namespace

TEST_CASE("pm_malloc on a full disk", "[disk]")
{
    test::Disk disk(4 * MiB);
    std::string path = disk / "c.pm";
    disk.fill(3 * MiB);
    test::Container c = test::open(path, test::small());
    uint64_t committed = 0;
    while (push(c.get())) {
        REQUIRE_OK(pm_commit(c.get()));
        committed++;
    }
    REQUIRE(failed_with(ENOSPC, {path.c_str(), "free"}));
    REQUIRE(committed > 400);
    REQUIRE(disk.free_bytes() < SEGMENT);
    REQUIRE(length(c.get()) == committed);
    SECTION("it goes on when there is space again")
    {
        disk.free(MiB / 2);
        REQUIRE(push(c.get()));
        REQUIRE_OK(pm_commit(c.get()));
        committed++;
        SECTION("after a full disk once more")
        {
            while (push(c.get()))
                committed++;
            REQUIRE_OK(pm_commit(c.get()));
        }
    }
    SECTION("what else there is to call works")
    {
        REQUIRE_OK(pm_commit(c.get())); // nothing to do
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE_FALSE(pm_malloc(c.get(), 10 * SEGMENT));
        REQUIRE(failed_with(ENOSPC));
        REQUIRE_FALSE(pm_calloc(c.get(), 10, SEGMENT));
        REQUIRE(failed_with(ENOSPC));
        Node *first = static_cast<Node *>(pm_getroot(c.get()));
        REQUIRE_FALSE(pm_realloc(first, 10 * SEGMENT));
        REQUIRE(failed_with(ENOSPC));
        REQUIRE(pm_reserve(c.get(), 100 * MiB) == -1);
        REQUIRE(failed_with(ENOSPC));
    }
    SECTION("what is freed can be used, after a commit")
    {
        for (int i = 0; i < 50; i++) {
            Node *first = static_cast<Node *>(pm_getroot(c.get()));
            REQUIRE_OK(pm_setroot(c.get(), first->next, 0));
            REQUIRE_OK(pm_free(first));
        }
        REQUIRE_OK(pm_commit(c.get()));
        for (int i = 0; i < 50; i++)
            REQUIRE(push(c.get()));
        REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE(length(c.get()) == committed);
    REQUIRE_OK(pm_check(c.get()));
    c.reset();
    c = test::open(path, test::options());
    REQUIRE(length(c.get()) == committed);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a container cannot be created on a full disk", "[disk]")
{
    test::Disk disk(MiB);
    std::string path = disk / "c.pm";
    uint64_t room = GENERATE(as<uint64_t>(), 0, 4096, 3 * SEGMENT - 4096);
    disk.fill(room);
    pm_options options = test::small();
    REQUIRE_FALSE(pm_open(path.c_str(), &options));
    REQUIRE(failed_with(ENOSPC, {path.c_str()}));
    REQUIRE_FALSE(std::filesystem::exists(path));
    REQUIRE(disk.free_bytes() == room); // all that was taken is given back
    disk.free_all();
    REQUIRE(length(test::open(path, options).get()) == 0);
}

// The record of this transaction is longer than the log has room for: under undo it lists 20 MiB of
// pages; under redo it has a line of each, which was committed before.
TEST_CASE("pm_commit on a full disk", "[disk]")
{
    const uint64_t large = 20 * MiB;
    pm_options options = test::small();
    options.concurrent_stores = test::concurrently();
    test::Disk disk(32 * MiB);
    std::string path = disk / "c.pm";
    test::Container c = test::open(path, options);
    for (int i = 0; i < 10; i++)
        REQUIRE(push(c.get()));
    char *p = nullptr;
    if (test::mode() != "undo")
        REQUIRE((p = static_cast<char *>(pm_calloc(c.get(), 1, large))));
    REQUIRE_OK(pm_commit(c.get()));
    uint64_t epoch = test::stats(c.get()).epoch;

    if (!p)
        REQUIRE((p = static_cast<char *>(pm_malloc(c.get(), large))));
    for (uint64_t i = 0; i < large; i += 4096)
        p[i] = 'a';
    disk.fill();
    exhaust(c.get());
    Node *first = static_cast<Node *>(pm_getroot(c.get())); // from the last commit
    first->next->filling[0] = 77;
    first->filling[1] = (uintptr_t)p;
    for (int i = 0; i < 3; i++) {
        REQUIRE(pm_commit(c.get()) == -1);
        REQUIRE(failed_with(ENOSPC, {path.c_str(), "roll back"}));
        REQUIRE(test::stats(c.get()).epoch == epoch);
        first->filling[2] = (uint64_t)i; // stores go on between the attempts
        p[i] = 'b';
    }
    SECTION("after which there is space, and it succeeds")
    {
        disk.free(MiB);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(test::stats(c.get()).epoch == epoch + 1);
        REQUIRE_OK(pm_check(c.get()));
        c.reset();
        c = test::open(path, options);
        first = static_cast<Node *>(pm_getroot(c.get()));
        REQUIRE(first->number == 10);
        REQUIRE(first->next->filling[0] == 77);
        REQUIRE(first->filling[2] == 2);
        REQUIRE(first->filling[1] == (uintptr_t)p);
        REQUIRE(std::string(p, 4) == std::string("bbb\0", 4));
        for (uint64_t i = 4096; i < large; i += 4096)
            REQUIRE(p[i] == 'a');
    }
    SECTION("and is rolled back")
    {
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(length(c.get()) == 10);
        REQUIRE_OK(pm_check(c.get()));
        REQUIRE(push(c.get())); // where the large object was
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(length(c.get()) == 11);
        c.reset();
        REQUIRE(length(test::open(path, options).get()) == 11);
    }
    SECTION("and is closed")
    {
        c.reset();
        REQUIRE(length(test::open(path, options).get()) == 10);
    }
    if (c)
        REQUIRE_OK(pm_check(c.get()));
}

// arguments: path, pages. The disk is full.
CHILD_PROCESS(stores_without_reserve)
{
    pm_options options = test::small();
    pm_container *c = pm_open(arguments[0].c_str(), &options);
    CHILD_REQUIRE(c);
    exhaust(c);
    uint64_t pages = std::stoul(arguments[1]);
    for (uint64_t i = 0; i < pages; i++)
        test::page_word(c, i * 7919 % pages) = 2; // in no order that invites fault-around
    CHILD_REQUIRE(!"stored to more pages than the log can hold");
}

TEST_CASE("disk full during a fault, nothing reserved", "[undo][disk]")
{
    const uint64_t pages = 300;
    test::Disk disk(4 * MiB);
    std::string path = disk / "c.pm";
    {
        test::Container c = test::open_with_pages(path, pages, test::small());
        for (uint64_t i = 0; i < pages; i++)
            test::page_word(c.get(), i) = 1;
        REQUIRE_OK(pm_commit(c.get()));
        // What this log needed is given back by and by; only then can it run out.
        for (int i = 0; i < 40; i++) {
            test::page_word(c.get(), 0) = 2 + (uint64_t)i;
            REQUIRE_OK(pm_commit(c.get()));
        }
        test::page_word(c.get(), 0) = 1;
        REQUIRE_OK(pm_commit(c.get()));
    }
    disk.fill();
    test::Ended ended = test::run("stores_without_reserve", {path, std::to_string(pages)});
    INFO(ended.errors);
    REQUIRE(test::killed(ended.status, SIGABRT));
    for (const char *word : {path.c_str(), "offset", "last commit stands", "pm_reserve"})
        REQUIRE(ended.errors.find(word) != std::string::npos);
    SECTION("recovered while the disk is still full") {}
    SECTION("recovered when there is space")
    {
        disk.free_all();
    }
    test::Container c = test::open(path, test::options());
    REQUIRE(test::stats(c.get()).recovered);
    REQUIRE(pages_hold(c.get(), pages, 1));
    REQUIRE_OK(pm_check(c.get()));
}

namespace
{

// So many objects, or bits of a bitmap, that a commit record of them needs several segments.
constexpr int MANY = 150000;

// What the transaction has done before it reserves.
void prepare(pm_container *c, const std::string &how, std::vector<void *> &small)
{
    auto all_there = [](void *p) {
        if (!p)
            throw std::runtime_error(pm_errormsg());
        return p;
    };
    if (how == "large objects")
        for (int i = 0; i < 16; i++)
            memset(all_there(pm_malloc(c, MiB)), 'l', MiB);
    if (how == "small objects")
        for (int i = 0; i < MANY; i++)
            memset(all_there(pm_malloc(c, 48)), 's', 48);
    if (how == "sizes of all kinds")
        for (size_t size = 16; size < 40000; size += size / 8 / 16 * 16 + 16)
            memset(all_there(pm_malloc(c, size)), 'k', size);
    if (how == "frees")
        for (size_t i = 0; i < small.size(); i++)
            if (i % 3 != 0 && pm_free(small[i]) != 0)
                throw std::runtime_error(pm_errormsg());
    if (how == "all freed")
        for (void *p : small)
            if (pm_free(p) != 0)
                throw std::runtime_error(pm_errormsg());
    if (how == "everything cleared" && pm_clear(c) != 0)
        throw std::runtime_error(pm_errormsg());
}

} // namespace

// arguments: pages, what was done before, concurrent stores. With one more segment of space each
// time, until the reservation succeeds: that one has the least it can live on.
CHILD_PROCESS(reserves_and_stores)
{
    const uint64_t pages = std::stoul(arguments[0]);
    const std::string &how = arguments[1];
    pm_options options = test::small();
    options.concurrent_stores = arguments[2] == "1";
    unsigned successes = 0, refusals = 0;
    for (uint64_t room = 0; successes < 2; room += SEGMENT) {
        CHILD_REQUIRE(room < 28 * MiB); // no reservation asks for as much
        test::Disk disk(28 * MiB);
        std::string path = disk / "c.pm";
        std::vector<void *> small;
        {
            test::Container c = test::open_with_pages(path, pages, options);
            for (int i = 0; i < (how.ends_with("d") || how == "frees" ? MANY : 1000); i++)
                small.push_back(pm_calloc(c.get(), 1, 48));
            CHILD_REQUIRE(pm_commit(c.get()) == 0);
        }
        test::Container c(pm_open(path.c_str(), &options));
        CHILD_REQUIRE(c);
        char *data = static_cast<char *>(pm_getroot(c.get()));
        prepare(c.get(), how, small);
        disk.fill();
        exhaust(c.get());
        disk.free(room);
        int reserved = pm_reserve(c.get(), pages * 4096);
        disk.fill();
        if (how == "everything cleared") // no pages to store to; the commit is what counts
            data = nullptr;
        if (reserved != 0) {
            CHILD_REQUIRE(failed_with(ENOSPC, {path.c_str()}));
            CHILD_REQUIRE(pm_rollback(c.get()) == 0);
            CHILD_REQUIRE(pages_hold(c.get(), pages, 0));
            refusals++;
        } else {
            for (uint64_t i = 0; data && i < pages; i++)
                *(uint64_t *)(data + i * 7919 % pages * 4096) = 5;
            CHILD_REQUIRE(pm_commit(c.get()) == 0);
            successes++;
        }
        CHILD_REQUIRE(pm_check(c.get()) == 0);
        c.reset();
        c.reset(pm_open(path.c_str(), &options));
        CHILD_REQUIRE(c);
        CHILD_REQUIRE(pm_check(c.get()) == 0);
        if (data || reserved != 0)
            CHILD_REQUIRE(pages_hold(c.get(), pages, reserved == 0 ? 5 : 0));
        else
            CHILD_REQUIRE(!pm_getroot(c.get()));
    }
    fprintf(stderr, "%u refusals, %u successes\n", refusals, successes);
    CHILD_REQUIRE(pages < 100 || refusals > 0); // else the disk was never scarce
}

TEST_CASE("what pm_reserve promised holds on a full disk", "[disk]")
{
    std::string pages = GENERATE(as<std::string>(), "1", "14", "300");
    std::string how = GENERATE(as<std::string>(), "nothing", "large objects", "small objects",
                               "sizes of all kinds", "frees", "all freed", "everything cleared");
    bool undo = test::mode() == "undo"; // redo reserves the same for both
    std::string concurrent = undo ? GENERATE(as<std::string>(), "0", "1") : "0";
    INFO(pages << " pages, after " << how << ", concurrent stores " << concurrent);
    test::Ended ended = test::run("reserves_and_stores", {pages, how, concurrent});
    INFO("wait status " << ended.status << ": " << ended.errors);
    CHECK(test::exited(ended.status));
}

// Stores that come in pairs of pages, which look as if they went on: what the handler opens ahead
// of them must not be at the expense of what is reserved.
CHILD_PROCESS(reserves_and_stores_in_runs)
{
    const uint64_t runs = 60, run = std::stoul(arguments[0]), distance = 8;
    test::Disk disk(8 * MiB);
    std::string path = disk / "c.pm";
    test::Container c = test::open_with_pages(path, runs * distance, test::small());
    disk.fill();
    exhaust(c.get());
    while (pm_reserve(c.get(), runs * run * 4096) != 0)
        disk.free(SEGMENT);
    disk.fill();
    for (uint64_t i = 0; i < runs; i++)
        for (uint64_t j = 0; j < run; j++)
            test::page_word(c.get(), i * distance + j) = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
}

TEST_CASE("what pm_reserve promised holds for stores to runs of pages", "[disk]")
{
    for (const char *run : {"1", "2", "3", "4"}) {
        INFO(run << " pages each");
        test::Ended ended = test::run("reserves_and_stores_in_runs", {run});
        INFO("wait status " << ended.status << ": " << ended.errors);
        CHECK(test::exited(ended.status));
    }
}

// The record of a transaction that takes so many segments nearly fills two segments of the log;
// with each page more it is 16 bytes longer, until it needs a third.
CHILD_PROCESS(reserves_to_the_byte)
{
    const uint64_t segments = 421;
    for (uint64_t pages = 1; pages <= 12; pages++) {
        test::Disk disk(40 * MiB);
        test::Container c = test::open_with_pages(disk / "c.pm", pages, test::small());
        uint64_t before = test::stats(c.get()).segments_data;
        while (container_has_free_segments(c.get()))
            CHILD_REQUIRE(pm_malloc(c.get(), SEGMENT));
        uint64_t taken = test::stats(c.get()).segments_data - before;
        CHILD_REQUIRE(pm_malloc(c.get(), (segments - taken) * SEGMENT)); // grows by no more
        disk.fill();
        while (pm_reserve(c.get(), pages * 4096) != 0) {
            CHILD_REQUIRE(failed_with(ENOSPC));
            disk.free(SEGMENT);
        }
        disk.fill();
        for (uint64_t i = pages; i-- > 0;) // downwards, so that no fault opens more than its page
            test::page_word(c.get(), i) = 1;
        if (pm_commit(c.get()) != 0)
            fprintf(stderr, "%lu pages: %s\n", pages, pm_errormsg());
    }
}

TEST_CASE("what pm_reserve promised holds to the last byte", "[disk]")
{
    test::Ended ended = test::run("reserves_to_the_byte");
    INFO(ended.errors);
    REQUIRE(test::exited(ended.status));
    REQUIRE(ended.errors == "");
}

TEST_CASE("what cannot be logged at the maximum size is not the disk's fault")
{
    test::Directory directory;
    test::Container c = open_with_large_root(directory / "c.pm");
    void *root = pm_getroot(c.get());
    if (test::mode() == "undo") {
        REQUIRE(pm_dirty(root, 5 * MiB) == -1);
    } else {
        memset(root, 2, 5 * MiB);
        REQUIRE(pm_commit(c.get()) == -1);
    }
    REQUIRE(failed_with(ENOSPC, {"max_size of 8388608 bytes", "free objects", "create"}));
    REQUIRE(std::string(pm_errormsg()).find("disk") == std::string::npos);
    REQUIRE_OK(pm_rollback(c.get()));
}

CHILD_PROCESS(stores_beyond_max_size)
{
    test::Container c = open_with_large_root(arguments[0]);
    memset(pm_getroot(c.get()), 2, 5 * MiB);
}

TEST_CASE("a store that cannot be logged at the maximum size ends the process", "[undo]")
{
    test::Directory directory;
    test::Ended ended = test::run("stores_beyond_max_size", {directory / "c.pm"});
    REQUIRE(test::killed(ended.status, SIGABRT));
    INFO(ended.errors);
    REQUIRE(ended.errors.find("max_size leaves no room") != std::string::npos);
    REQUIRE(ended.errors.find("last commit stands") != std::string::npos);
}

// arguments: path. Stores to a page apart, and then to pages one behind the other. Prints a line after each store.
CHILD_PROCESS(stores_to_page_after_page)
{
    const test::Container c = test::open(arguments[0], test::options());
    test::page_word(c.get(), 40) = 1;
    test::say("stored");
    for (uint64_t page = 0; page < 40; page++) {
        test::page_word(c.get(), page) = 1;
        test::say("stored");
    }
}

// If stores run on from page to page, one fault opens 2, 4, 8 pages. If the log has room for fewer pages, the
// fault opens one.
TEST_CASE("stores that run on from page to page can use the log's last room", "[undo]")
{
    constexpr uint64_t DATA = 3 * SEGMENT;
    test::Directory directory;
    const std::string path = directory / "c.pm";
    pm_options how = test::small();
    how.max_size = 8 * SEGMENT;
    {
        const test::Container c = test::open(path, how);
        void *p = pm_malloc(c.get(), DATA);
        REQUIRE(p);
        memset(p, 0, DATA);
        REQUIRE_OK(pm_setroot(c.get(), p, 0));
        while (pm_malloc(c.get(), SEGMENT)) // so that the log cannot grow
            ;
        REQUIRE_OK(pm_commit(c.get()));
    }
    const test::Ended ended = test::run("stores_to_page_after_page", {path});
    INFO(ended.errors);
    REQUIRE(test::killed(ended.status, SIGABRT));
    REQUIRE(ended.errors.find("max_size leaves no room") != std::string::npos);
    // The faults open 1, 1, 2 and 4 pages. The next fault finds room for fewer than 8 pages.
    const uint32_t room = log_segment_slots(SEGMENT);
    REQUIRE(room - 8 < 8);
    REQUIRE(std::count(ended.output.begin(), ended.output.end(), '\n') == room);
}

TEST_CASE("the container's maximum size is as a full disk")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options options = test::small();
    options.max_size = 2 * MiB;
    test::Container c = test::open(path, options);
    uint64_t committed = 0;
    while (push(c.get())) {
        REQUIRE_OK(pm_commit(c.get()));
        committed++;
    }
    REQUIRE(failed_with(ENOSPC, {path.c_str(), "max_size of 2097152 bytes", "create"}));
    REQUIRE(test::stats(c.get()).file_bytes == options.max_size);
    REQUIRE(std::filesystem::file_size(path) == options.max_size);
    REQUIRE(committed > 300);
    for (uint64_t bytes : {MiB, UINT64_MAX}) {
        REQUIRE(pm_reserve(c.get(), bytes) == -1);
        REQUIRE(failed_with(ENOSPC, {"max_size of 2097152 bytes", "create"}));
    }
    for (uint64_t bytes : {2 * MiB, UINT64_MAX}) {
        REQUIRE(pm_malloc(c.get(), bytes) == nullptr);
        REQUIRE(failed_with(ENOSPC, {"max_size of 2097152 bytes", "create"}));
    }
    REQUIRE(length(c.get()) == committed);
    c.reset();
    c = test::open(path, options);
    REQUIRE(length(c.get()) == committed);
    REQUIRE_OK(pm_clear(c.get()));
    REQUIRE_OK(pm_commit(c.get()));
    while (push(c.get()))
        ;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
}
