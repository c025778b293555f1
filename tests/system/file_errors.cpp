// Errors of an ordinary file's medium under the redo engine. A write that fails fails the commit,
// which can be tried again. A failed fdatasync leaves nobody knowing what is on the medium, so the
// container is read-only from then on.
#include "common/file_medium.hpp"
#include "common/process.hpp"

#include <cerrno>
#include <filesystem>
#include <set>
#include <unistd.h>
#include <vector>

using test::failed_with;
using test::file_medium;
using test::page_word;

namespace
{

constexpr uint64_t PAGES = 600;

void reset()
{
    file_medium = {};
}

void sync_fails(uint64_t from = 1, bool once = false)
{
    file_medium = {};
    file_medium.sync_fails = from;
    file_medium.sync_error = EIO;
    file_medium.once = once;
}

void write_fails(uint64_t from, int error)
{
    file_medium = {};
    file_medium.write_fails = from;
    file_medium.write_error = (uint64_t)error;
}

// The first words of the first `pages` pages.
void store(pm_container *c, uint64_t value, uint64_t pages = PAGES)
{
    for (uint64_t page = 0; page < pages; page++)
        for (uint64_t line = 0; line < 8; line++)
            std::fill_n(&page_word(c, page) + line * 8, 5, value);
}

// The value that all of them have; UINT64_MAX if they differ.
uint64_t value_of(pm_container *c, uint64_t pages = PAGES)
{
    uint64_t value = page_word(c, 0);
    for (uint64_t page = 0; page < pages; page++)
        for (uint64_t line = 0; line < 8; line++)
            if ((&page_word(c, page))[line * 8] != value)
                return UINT64_MAX;
    return value;
}

struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = start();

    test::Container start()
    {
        reset();
        return test::open_with_pages(path, PAGES, test::small());
    }
    ~Fixture() { reset(); }

    void is_read_only()
    {
        auto refused = [&](bool failed) { return failed && failed_with(EIO, {path.c_str()}); };
        void *root = pm_getroot(c.get());
        REQUIRE(root);
        REQUIRE(refused(pm_commit(c.get()) == -1));
        REQUIRE(refused(!pm_commit_async(c.get()).container));
        REQUIRE(refused(!pm_malloc(c.get(), 16)));
        REQUIRE(refused(!pm_calloc(c.get(), 1, 16)));
        REQUIRE(refused(!pm_realloc(root, 16)));
        REQUIRE(refused(pm_free(root) == -1));
        REQUIRE(refused(pm_setroot(c.get(), nullptr, 0) == -1));
        REQUIRE(refused(pm_clear(c.get()) == -1));
        REQUIRE(refused(pm_reserve(c.get(), 1) == -1));
        REQUIRE(refused(pm_dirty(root, 1) == -1));
        REQUIRE_OK(pm_check(c.get()));
    }
    // Close, which says that not all is well, and open again.
    void reopen_after_error()
    {
        REQUIRE(pm_close(c.release()) == -1);
        REQUIRE(failed_with(EIO, {path.c_str()}));
        reset();
        c = test::open(path, test::options());
        REQUIRE(test::stats(c.get()).recovered);
        REQUIRE_OK(pm_check(c.get()));
    }
};

} // namespace

TEST_CASE_METHOD(Fixture, "fdatasync fails: read-only from then on", "[private]")
{
    store(c.get(), 1);
    REQUIRE_OK(pm_commit(c.get()));
    SECTION("in a commit")
    {
        store(c.get(), 2);
        sync_fails(1, true); // the next would succeed, and prove nothing
        REQUIRE(pm_commit(c.get()) == -1);
        REQUIRE(failed_with(EIO, {path.c_str()}));
        is_read_only();
        REQUIRE(value_of(c.get()) == 2); // for reading
        reopen_after_error();
        uint64_t value = value_of(c.get());
        REQUIRE((value == 1 || value == 2));
    }
    SECTION("while waiting")
    {
        constexpr uint64_t FEW = 5; // pages: so that no commit has to wait for room in the log
        store(c.get(), 2, FEW);
        pm_ticket done = pm_commit_async(c.get());
        REQUIRE(done.container);
        REQUIRE_OK(pm_wait(done));
        store(c.get(), 3, FEW);
        pm_ticket first = pm_commit_async(c.get());
        store(c.get(), 4, FEW);
        pm_ticket second = pm_commit_async(c.get());
        REQUIRE((first.container && second.container));
        sync_fails(1, true);
        REQUIRE(pm_wait(second) == -1);
        REQUIRE(failed_with(EIO, {path.c_str()}));
        REQUIRE(pm_wait(first) == -1);
        REQUIRE(failed_with(EIO));
        REQUIRE_OK(pm_wait(done)); // that one is durable
        is_read_only();
        reopen_after_error();
        uint64_t value = value_of(c.get(), FEW);
        REQUIRE((value >= 2 && value <= 4));
        store(c.get(), value);
    }
    SECTION("where the log is drained")
    {
        if (test::engine() == "log") // whose log is never drained
            return;
        // More than the log may take, until home's pages must follow.
        sync_fails(UINT64_MAX);
        uint64_t acknowledged = 1, value = 1;
        uint64_t ahead = GENERATE(2, 3); // not that of the commit itself
        for (int fails_at = 0; fails_at < 400; fails_at++) {
            file_medium.sync_fails = file_medium.syncs + ahead;
            store(c.get(), ++value);
            if (pm_commit(c.get()) != 0)
                break;
            acknowledged = value;
        }
        REQUIRE(failed_with(EIO, {path.c_str()}));
        file_medium.sync_fails = 0; // the kernel reports an error once
        is_read_only();
        reopen_after_error();
        REQUIRE((value_of(c.get()) == acknowledged || value_of(c.get()) == acknowledged + 1));
    }
    // It lives on.
    uint64_t next = value_of(c.get()) + 1;
    store(c.get(), next);
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, test::options());
    REQUIRE(value_of(c.get()) == next);
}

TEST_CASE_METHOD(Fixture, "fdatasync fails in recovery or in closing", "[private]")
{
    store(c.get(), 1);
    REQUIRE_OK(pm_commit(c.get()));
    sync_fails();
    reopen_after_error();
    REQUIRE(value_of(c.get()) == 1);
    store(c.get(), 2);
    REQUIRE_OK(pm_commit(c.get()));
    sync_fails();
    REQUIRE(pm_close(c.release()) == -1);
    pm_options options = test::options();
    for (uint64_t at = 1; at <= 2; at++) {
        sync_fails(at);
        REQUIRE_FALSE(pm_open(path.c_str(), &options));
        REQUIRE(failed_with(EIO, {path.c_str()}));
    }
    reset();
    c = test::open(path, test::options());
    REQUIRE(value_of(c.get()) == 2);
}

// Commits of all pages until one drains the log, which takes two syncs besides its own. Returns how
// many came before it.
static uint64_t commits_until_drained(pm_container *c)
{
    for (uint64_t before = 0;; before++) {
        reset();
        store(c, before + 1);
        REQUIRE_OK(pm_commit(c));
        if (file_medium.syncs > 2)
            return before;
    }
}

TEST_CASE_METHOD(Fixture, "the first fdatasync of draining the log fails", "[redo]")
{
    uint64_t before = commits_until_drained(c.get());
    REQUIRE(before > 0);
    c.reset();
    REQUIRE_OK(pm_delete(path.c_str()));
    c = start();
    for (uint64_t i = 0; i < before; i++) {
        store(c.get(), i + 1);
        REQUIRE_OK(pm_commit(c.get()));
    }
    store(c.get(), before + 1);
    sync_fails();
    REQUIRE(pm_commit(c.get()) == -1);
    REQUIRE(failed_with(EIO, {path.c_str()}));
    is_read_only();
    reopen_after_error();
    REQUIRE(value_of(c.get()) == before);
}

TEST_CASE_METHOD(Fixture, "fdatasync fails in an allocation", "[redo]")
{
    void *object = pm_malloc(c.get(), 64 << 10);
    REQUIRE(object);
    SECTION("that makes the file grow, for a map of pointers")
    {
        while (test::stats(c.get()).segments_free > 0)
            REQUIRE(pm_malloc(c.get(), 64 << 10));
        REQUIRE_OK(pm_commit(c.get()));
        sync_fails();
        REQUIRE(pm_mark_pointer(object) == -1);
    }
    SECTION("of a slab where a page waits for the file")
    {
        *static_cast<volatile char *>(object) = 1;
        REQUIRE_OK(pm_commit(c.get()));
        *static_cast<volatile char *>(object) = 2;
        REQUIRE(pm_commit_async(c.get()).container);
        REQUIRE_OK(pm_free(object));
        REQUIRE(pm_commit_async(c.get()).container);
        sync_fails();
        REQUIRE_FALSE(pm_malloc(c.get(), 3000));
    }
    REQUIRE(failed_with(EIO, {path.c_str()}));
    is_read_only();
    reopen_after_error();
}

TEST_CASE_METHOD(Fixture, "a commit that fails gives back nothing yet, and then all", "[redo]")
{
    constexpr size_t SIZE = 5000; // a dozen to a slab
    std::vector<void *> objects;
    for (int i = 0; i < 20; i++)
        REQUIRE((objects.emplace_back(pm_malloc(c.get(), SIZE)), objects.back()));
    REQUIRE_OK(pm_commit(c.get()));
    uint64_t slabs = test::stats(c.get()).segments_data;
    for (size_t i = 5; i < objects.size(); i++) // of the second slab all
        REQUIRE_OK(pm_free(objects[i]));
    write_fails(1, ENOSPC);
    for (int again = 0; again < 2; again++) {
        REQUIRE(pm_commit(c.get()) == -1);
        REQUIRE(failed_with(ENOSPC, {path.c_str()}));
        REQUIRE_OK(pm_check(c.get()));
    }
    reset();
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(test::stats(c.get()).segments_data == slabs - 1);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a commit that fails does not make the log smaller", "[redo]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options how = test::small();
    how.max_size = 12 << 20; // whose share for the log is soon used up
    reset();
    test::Container c = test::open_with_pages(path, PAGES, how);
    for (uint64_t word = 0; word < PAGES * 512; word++)
        (&page_word(c.get(), 0))[word] = 1;
    REQUIRE_OK(pm_commit(c.get()));
    const uint64_t most = test::stats(c.get()).segments_log;
    for (uint64_t value = 2; test::stats(c.get()).segments_log + 5 > most; value++) {
        REQUIRE(value < 1000);
        store(c.get(), value, 40);
        uint64_t before = test::stats(c.get()).segments_log;
        for (uint64_t at = 1; write_fails(at, ENOSPC), pm_commit(c.get()) != 0; at++) {
            REQUIRE(failed_with(ENOSPC, {path.c_str()}));
            REQUIRE(test::stats(c.get()).segments_log >= before);
            REQUIRE_OK(pm_check(c.get()));
        }
        reset();
        REQUIRE_OK(pm_check(c.get()));
    }
    c.reset();
    c = test::open(path, test::options());
    REQUIRE(value_of(c.get(), 40) > 2);
}

TEST_CASE("a write or a sync fails in a move to other addresses", "[private]")
{
    test::Directory directory;
    std::string path = directory / "c.pm", copy = directory / "copy.pm";
    pm_options movable = test::small(PM_CREATE | PM_MOVABLE);
    reset();
    {
        test::Container c = test::open(path, movable);
        auto **root = static_cast<void **>(pm_calloc(c.get(), 1, 8));
        REQUIRE(root);
        *root = root;
        REQUIRE_OK(pm_mark_pointer(root));
        REQUIRE_OK(pm_setroot(c.get(), root, 0));
        REQUIRE_OK(pm_commit(c.get()));
    }
    std::filesystem::copy_file(path, copy);
    test::Container c = test::open(path, movable);
    bool syncs = GENERATE(false, true), moves = false;
    uint64_t failures = 0;
    movable.flags = PM_MOVABLE | PM_RELOCATE;
    for (uint64_t at = 1; !moves; at++) {
        INFO((syncs ? "sync " : "write ") << at);
        if (syncs)
            sync_fails(at);
        else
            write_fails(at, EIO);
        test::Container moved(pm_open(copy.c_str(), &movable));
        moves = moved != nullptr;
        if (!moves) {
            REQUIRE(failed_with(EIO, {copy.c_str()}));
            failures += std::string(pm_errormsg()).find("move its pointers") != std::string::npos;
            continue;
        }
        reset();
        auto **root = static_cast<void **>(pm_getroot(moved.get()));
        REQUIRE(*root == root);
        REQUIRE(root != pm_getroot(c.get()));
        REQUIRE_OK(pm_check(moved.get()));
    }
    REQUIRE(failures >= 3); // once its record is whole, the next attempt has less to do
}

// arguments: path, write that fails, errno, what is done then. Value 1 is committed before.
CHILD_PROCESS(meets_a_failing_write)
{
    pm_container *c = test::open(arguments[0], test::options()).release();
    store(c, 1);
    CHILD_REQUIRE(pm_commit(c) == 0);
    store(c, 2);
    void *fresh = pm_calloc(c, 1, 100000); // whole pages, written straight home
    CHILD_REQUIRE(fresh);
    int error = std::stoi(arguments[2]);
    write_fails(std::stoul(arguments[1]), error);
    if (pm_commit(c) == 0) {
        test::say("no such write");
        _exit(0);
    }
    CHILD_REQUIRE(failed_with(error, {arguments[0].c_str()}));
    CHILD_REQUIRE(pm_commit(c) == -1); // still
    reset();
    const std::string &then = arguments[3];
    if (then == "retry")
        CHILD_REQUIRE(pm_commit(c) == 0);
    if (then == "add and retry") {
        page_word(c, 0) = 3;
        CHILD_REQUIRE(pm_free(fresh) == 0 && pm_commit(c) == 0);
        page_word(c, 0) = 2;
        CHILD_REQUIRE(pm_commit(c) == 0);
    }
    if (then == "roll back" || then == "roll back and commit") {
        CHILD_REQUIRE(pm_rollback(c) == 0);
        CHILD_REQUIRE(value_of(c) == 1);
    }
    if (then == "roll back and commit") {
        store(c, 3, 100); // shorter
        CHILD_REQUIRE(pm_commit(c) == 0);
        store(c, 3);
        CHILD_REQUIRE(pm_commit(c) == 0);
    }
    CHILD_REQUIRE(pm_check(c) == 0);
    _exit(0);
}

TEST_CASE("a write fails in a record of several parts; then a crash", "[private]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    int error = GENERATE(ENOSPC, EIO);
    for (std::string then : {"die", "retry", "add and retry", "roll back", "roll back and commit"})
        for (uint64_t at = 1;; at++) {
            INFO("write " << at << " fails with " << error << ", then " << then);
            test::open_with_pages(path, PAGES, test::small());
            test::Ended ended = test::run("meets_a_failing_write",
                                          {path, std::to_string(at), std::to_string(error), then});
            INFO(ended.errors);
            REQUIRE(test::exited(ended.status));
            test::Container c = test::open(path, test::options());
            REQUIRE(test::stats(c.get()).recovered);
            uint64_t expected = then == "retry" || then == "add and retry" ? 2
                                : then == "roll back and commit"           ? 3
                                                                           : 1;
            if (!ended.output.empty())
                expected = 2;
            REQUIRE(value_of(c.get()) == expected);
            REQUIRE_OK(pm_check(c.get()));
            c.reset();
            REQUIRE_OK(pm_delete(path.c_str()));
            if (!ended.output.empty()) {
                REQUIRE(at > 5);
                break;
            }
        }
}

// arguments: path, event
CHILD_PROCESS(dies_between_writes)
{
    pm_container *c = test::open(arguments[0], test::options()).release();
    file_medium = {};
    file_medium.dies_at = std::stoul(arguments[1]);
    for (uint64_t value = 1; value <= 6; value++) {
        store(c, value);
        CHILD_REQUIRE(pm_malloc(c, value * 10000));
        CHILD_REQUIRE(pm_commit(c) == 0);
        test::say("committed");
    }
    CHILD_REQUIRE(pm_close(c) == 0);
}

TEST_CASE("a kill before each write and sync of commits and a close", "[private]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    for (uint64_t at = 1;; at++) {
        INFO("at event " << at);
        test::open_with_pages(path, PAGES, test::small());
        test::Ended ended = test::run("dies_between_writes", {path, std::to_string(at)});
        INFO(ended.errors);
        uint64_t acknowledged =
            (uint64_t)std::count(ended.output.begin(), ended.output.end(), '\n');
        bool died = test::exited(ended.status, test::MEDIUM_DIED);
        REQUIRE((died || test::exited(ended.status)));
        test::Container c = test::open(path, test::options());
        uint64_t value = value_of(c.get());
        REQUIRE((value == acknowledged || value == acknowledged + 1));
        REQUIRE_OK(pm_check(c.get()));
        c.reset();
        REQUIRE_OK(pm_delete(path.c_str()));
        if (!died) {
            REQUIRE(at > 50);
            break;
        }
    }
}

// The allocator gives back its copy of a full slab's bitmap, where home's can be read instead. On a file the
// pages behind it are older than home.
TEST_CASE("slabs that a commit has filled have their objects in the next one, too", "[redo]")
{
    constexpr int OBJECTS = 400; // six slabs and some more
    reset();
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small());
    std::vector<void *> objects;
    for (int i = 0; i < OBJECTS; i++) {
        objects.push_back(pm_malloc(c.get(), 1000));
        REQUIRE(objects.back());
    }
    REQUIRE_OK(pm_commit(c.get()));
    for (int i = 0; i < OBJECTS; i += 2)
        REQUIRE_OK(pm_free(objects[(size_t)i]));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
    std::set<void *> live;
    for (int i = 0; i < OBJECTS; i++) {
        if (i % 2 == 0)
            objects[(size_t)i] = pm_malloc(c.get(), 1000);
        REQUIRE(objects[(size_t)i]);
        REQUIRE(live.insert(objects[(size_t)i]).second);
    }
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
}
