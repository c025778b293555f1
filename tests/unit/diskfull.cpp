// A full disk: a small tmpfs of the test's own, in a mount namespace of its own. Needs to be root.
#include "common/process.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

using test::failed_with;
using test::page_word;

namespace
{

const uint64_t DISK = 32 << 20;

// Mount a tmpfs of DISK bytes over the directory, for this process and its children only.
void mount_small_disk(const std::string &directory)
{
    if (unshare(CLONE_NEWNS) != 0)
        throw std::runtime_error(std::string("unshare: ") + strerror(errno) +
                                 "; this test must run as root");
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", directory.c_str(), "tmpfs", 0, ("size=" + std::to_string(DISK)).c_str()) != 0)
        throw std::runtime_error(std::string("mount: ") + strerror(errno));
}

uint64_t free_bytes(const std::string &directory)
{
    struct statvfs fs;
    CHILD_REQUIRE(statvfs(directory.c_str(), &fs) == 0);
    return fs.f_bavail * fs.f_bsize;
}

// Leave so many bytes free on the disk.
void fill(const std::string &directory, uint64_t leave)
{
    int fd = open((directory + "/filler").c_str(), O_RDWR | O_CREAT, 0600);
    CHILD_REQUIRE(fd >= 0);
    struct stat st;
    CHILD_REQUIRE(fstat(fd, &st) == 0);
    uint64_t size = (uint64_t)st.st_size, available = free_bytes(directory) + size;
    CHILD_REQUIRE(available >= leave);
    CHILD_REQUIRE(ftruncate(fd, 0) == 0);
    if (available > leave)
        CHILD_REQUIRE(fallocate(fd, 0, 0, (off_t)(available - leave)) == 0);
    close(fd);
    CHILD_REQUIRE(free_bytes(directory) <= leave);
}

void unfill(const std::string &directory)
{
    CHILD_REQUIRE(unlink((directory + "/filler").c_str()) == 0);
}

// Every second page, from the back, so that no fault opens a neighbour.
void store(pm_container *c, uint64_t from, uint64_t to, uint64_t value)
{
    for (uint64_t i = from; i < to; i++)
        page_word(c, 2 * (149 - i)) = value;
}

bool holds(pm_container *c, uint64_t count, uint64_t value)
{
    for (uint64_t i = 0; i < 150; i++)
        if (page_word(c, 2 * (149 - i)) != (i < count ? value : 0))
            return false;
    return true;
}

} // namespace

CHILD_PROCESS(allocates_on_a_full_disk)
{
    const std::string &directory = arguments[0], path = directory + "/c.pm";
    mount_small_disk(directory);
    test::Container c = test::open(path, test::small());
    std::vector<char *> objects;
    size_t size = std::stoul(arguments[1]);
    char *p;
    while ((p = static_cast<char *>(pm_malloc(c.get(), size)))) {
        memset(p, 5, size);
        objects.push_back(p);
        if (objects.size() % (1 + 200000 / size) == 0 && free_bytes(directory) > DISK / 4)
            CHILD_REQUIRE(pm_commit(c.get()) == 0);
    }
    CHILD_REQUIRE(failed_with(ENOSPC, {path.c_str()}));
    CHILD_REQUIRE(objects.size() * size > DISK / 2);
    CHILD_REQUIRE(free_bytes(directory) < 2 * 65536 + size);
    CHILD_REQUIRE(!pm_calloc(c.get(), 1, size + 200000) && failed_with(ENOSPC));
    CHILD_REQUIRE(!pm_realloc(objects[0], size + 200000) && failed_with(ENOSPC));
    CHILD_REQUIRE(pm_check(c.get()) == 0);
    // The commit may need a little more for its record: then it says so, and can be had later.
    if (pm_commit(c.get()) != 0) {
        CHILD_REQUIRE(failed_with(ENOSPC, {path.c_str()}));
        CHILD_REQUIRE(pm_check(c.get()) == 0);
        CHILD_REQUIRE(pm_rollback(c.get()) == 0);
        while (!objects.empty() && pm_usable_size(objects.back()) == 0)
            objects.pop_back();
    }
    CHILD_REQUIRE(!objects.empty());
    for (char *o : objects)
        CHILD_REQUIRE(o[0] == 5 && o[size - 1] == 5);
    c.reset();
    c = test::open(path, test::options()); // needs no space
    CHILD_REQUIRE(pm_check(c.get()) == 0);
    for (char *o : objects)
        CHILD_REQUIRE(o[0] == 5 && o[size - 1] == 5 && pm_usable_size(o) >= size);
    // What is freed inside the container can be used again.
    for (size_t i = 0; i < objects.size(); i += 8)
        CHILD_REQUIRE(pm_free(objects[i]) == 0);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    CHILD_REQUIRE(pm_malloc(c.get(), size) != nullptr);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
}

CHILD_PROCESS(space_comes_back)
{
    const std::string &directory = arguments[0], path = directory + "/c.pm";
    mount_small_disk(directory);
    test::Container c = test::open(path, test::small());
    fill(directory, 0);
    while (pm_malloc(c.get(), 100000))
        ;
    CHILD_REQUIRE(failed_with(ENOSPC));
    unfill(directory);
    char *p = static_cast<char *>(pm_malloc(c.get(), 1000000));
    CHILD_REQUIRE(p);
    memset(p, 1, 1000000);
    CHILD_REQUIRE(pm_commit(c.get()) == 0 && pm_check(c.get()) == 0);
}

CHILD_PROCESS(commits_on_a_full_disk)
{
    const std::string &directory = arguments[0], path = directory + "/c.pm";
    mount_small_disk(directory);
    pm_options small = test::small();
    std::vector<void *> objects;
    // A record of many words: small objects, each of its own bitmap word.
    test::Container c = test::open(path, small);
    char *kept = static_cast<char *>(pm_calloc(c.get(), 1, 100));
    CHILD_REQUIRE(kept && pm_setroot(c.get(), kept, 0) == 0 && pm_commit(c.get()) == 0);
    while (true) {
        void *p = pm_malloc(c.get(), 65536);
        if (!p)
            break;
        objects.push_back(p);
    }
    kept[0] = 1;
    fill(directory, 0);
    // 100 segments of 16 pages to list, three slots a log segment would hold; none is left.
    bool failed = pm_commit(c.get()) != 0;
    if (failed) {
        CHILD_REQUIRE(failed_with(ENOSPC, {path.c_str()}));
        CHILD_REQUIRE(pm_check(c.get()) == 0 && kept[0] == 1);
    }
    test::say(failed ? "failed" : "succeeded");
    if (arguments[1] == "space") {
        if (free_bytes(directory) == 0)
            unfill(directory);
        // The disk was filled by the container itself: give up a part of the transaction.
        for (size_t i = 0; i < objects.size() / 2; i++)
            CHILD_REQUIRE(pm_free(objects[i]) == 0);
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
        CHILD_REQUIRE(kept[0] == 1);
    } else if (arguments[1] == "rollback") {
        CHILD_REQUIRE(pm_rollback(c.get()) == 0);
        CHILD_REQUIRE(kept[0] == (failed ? 0 : 1));
    } // else close
    CHILD_REQUIRE(pm_check(c.get()) == 0);
    c.reset();
    c = test::open(path, test::options());
    bool committed = !failed || arguments[1] == "space";
    CHILD_REQUIRE(*static_cast<char *>(pm_getroot(c.get())) == (committed ? 1 : 0));
    CHILD_REQUIRE(pm_check(c.get()) == 0);
}

CHILD_PROCESS(stores_until_it_dies)
{
    test::Container c = test::open(arguments[0] + "/c.pm", test::options());
    store(c.get(), 0, 10, 1);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    fill(arguments[0], 0);
    while (pm_malloc(c.get(), 65536)) // and so the free segments of the file
        ;
    test::say("storing");
    for (uint64_t i = 3000; i > 0; i -= 2) // more than the log ever held
        page_word(c.get(), i - 2) = 2;
    test::say("survived");
}

CHILD_PROCESS(fault_on_a_full_disk)
{
    const std::string &directory = arguments[0], path = directory + "/c.pm";
    mount_small_disk(directory);
    test::open_with_pages(path, 3000, test::small());
    test::Ended ended = test::run("stores_until_it_dies", {directory});
    CHILD_REQUIRE(ended.output == "storing\n");
    CHILD_REQUIRE(test::killed(ended.status, SIGABRT));
    CHILD_REQUIRE(ended.errors.find("libpm: " + path + ": offset ") == 0);
    CHILD_REQUIRE(ended.errors.find("pm_reserve") != std::string::npos);
    // The disk is as full as before, and the last commit stands.
    CHILD_REQUIRE(free_bytes(directory) < 65536);
    test::Container c = test::open(path, test::options());
    CHILD_REQUIRE(test::stats(c.get()).recovered);
    CHILD_REQUIRE(holds(c.get(), 10, 1));
    for (uint64_t i = 300; i < 3000; i++)
        CHILD_REQUIRE(page_word(c.get(), i) == 0);
    CHILD_REQUIRE(pm_check(c.get()) == 0);
}

CHILD_PROCESS(reserves_on_a_full_disk)
{
    const std::string &directory = arguments[0], path = directory + "/c.pm";
    mount_small_disk(directory);
    test::Container c = test::open_with_pages(path, 300, test::small());
    // Not enough space: said beforehand, and nothing is lost.
    fill(directory, 70000);
    CHILD_REQUIRE(pm_reserve(c.get(), 150 * 4096) == -1);
    CHILD_REQUIRE(failed_with(ENOSPC, {path.c_str()}));
    CHILD_REQUIRE(pm_dirty(pm_getroot(c.get()), 300 * 4096) == -1);
    CHILD_REQUIRE(failed_with(ENOSPC, {path.c_str()}));
    CHILD_REQUIRE(pm_check(c.get()) == 0);
    store(c.get(), 0, 10, 1); // fits
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    // Enough: then the disk may fill up, the stores and the commit succeed.
    unfill(directory);
    for (uint64_t round = 2; round < 8; round++) {
        CHILD_REQUIRE(pm_reserve(c.get(), 150 * 4096) == 0);
        fill(directory, 0);
        store(c.get(), 0, 150, round);
        if (round % 3 == 0) {
            CHILD_REQUIRE(pm_rollback(c.get()) == 0);
            CHILD_REQUIRE(holds(c.get(), 150, round - 1));
            store(c.get(), 0, 150, round);
        }
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
        CHILD_REQUIRE(holds(c.get(), 150, round));
        unfill(directory);
    }
    CHILD_REQUIRE(pm_check(c.get()) == 0);
}

// Reserve so many pages that the log is full to its last slot, and store to just so many, but such
// that a part of the stores run on from page to page.
CHILD_PROCESS(reserves_exactly)
{
    const std::string &directory = arguments[0], path = directory + "/c.pm";
    mount_small_disk(directory);
    test::Container c = test::open_with_pages(path, 300, test::small());
    uint64_t log = test::stats(c.get()).segments_log, pages = 0;
    // As many as fit into three more segments, found by asking.
    while (test::stats(c.get()).segments_log < log + 4)
        CHILD_REQUIRE(pm_reserve(c.get(), ++pages * 4096) == 0);
    c.reset();
    c = test::open(path, test::options());
    pages--;
    CHILD_REQUIRE(pm_reserve(c.get(), pages * 4096) == 0);
    while (pm_malloc(c.get(), 65536)) // whatever is free in the file
        if (free_bytes(directory) > 0)
            fill(directory, 0);
    CHILD_REQUIRE(pm_reserve(c.get(), pages * 4096) == 0);
    if (arguments[1] == "scattered") {
        store(c.get(), 0, pages, 1);
    } else {
        uint64_t stored = 0;
        for (uint64_t segment = 0; segment < 18 && stored < pages; segment++)
            for (uint64_t i = 0; i < 8 && stored < pages; i++, stored++)
                page_word(c.get(), segment * 16 + i) = 1;
        CHILD_REQUIRE(stored == pages);
    }
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
}

// The same with a reservation that a commit must be able to use: allocation comes in between.
CHILD_PROCESS(reserves_after_allocating)
{
    const std::string &directory = arguments[0], path = directory + "/c.pm";
    mount_small_disk(directory);
    test::Container c = test::open_with_pages(path, 300, test::small());
    std::vector<char *> objects;
    for (int i = 0; i < 3000; i++)
        objects.push_back(static_cast<char *>(pm_malloc(c.get(), 500)));
    CHILD_REQUIRE(objects.back() && pm_malloc(c.get(), 500000));
    CHILD_REQUIRE(pm_reserve(c.get(), 100 * 4096) == 0);
    fill(directory, 0);
    for (char *o : objects)
        memset(o, 1, 500);
    store(c.get(), 0, 100, 1);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    CHILD_REQUIRE(holds(c.get(), 100, 1));
    CHILD_REQUIRE(pm_check(c.get()) == 0);
}

CHILD_PROCESS(creates_on_a_full_disk)
{
    const std::string &directory = arguments[0], path = directory + "/c.pm";
    mount_small_disk(directory);
    for (uint64_t leave : {0, 4096, 100000, 190000}) {
        fill(directory, leave);
        pm_options options = test::small();
        CHILD_REQUIRE(!pm_open(path.c_str(), &options));
        CHILD_REQUIRE(failed_with(ENOSPC, {path.c_str()}));
        CHILD_REQUIRE(access(path.c_str(), F_OK) != 0);
        CHILD_REQUIRE(free_bytes(directory) == leave / 4096 * 4096);
    }
    unfill(directory);
    test::open(path, test::small());
}

namespace
{

struct Fixture {
    test::Directory directory;
    test::Ended run(const char *child, const std::string &argument = "")
    {
        return test::run(child, {directory.path(), argument});
    }
};

} // namespace

TEST_CASE_METHOD(Fixture, "growth on a full disk: a clean error, all that was committed intact")
{
    for (const char *size : {"100", "4096", "30000", "65536", "200000"}) {
        INFO("objects of " << size);
        REQUIRE_CLEAN(run("allocates_on_a_full_disk", size));
    }
    REQUIRE_CLEAN(run("space_comes_back"));
}

TEST_CASE_METHOD(Fixture, "a commit that finds the disk full can be had later, or rolled back")
{
    for (const char *what : {"space", "rollback", "close"}) {
        INFO(what);
        test::Ended ended = run("commits_on_a_full_disk", what);
        INFO(ended.errors);
        REQUIRE(test::exited(ended.status));
        REQUIRE(ended.output == "failed\n");
    }
}

TEST_CASE_METHOD(Fixture, "a fault on a full disk: a message, abort, and the last commit stands")
{
    REQUIRE_CLEAN(run("fault_on_a_full_disk"));
}

TEST_CASE_METHOD(Fixture, "pm_reserve tells beforehand, or makes stores and commit succeed")
{
    REQUIRE_CLEAN(run("reserves_on_a_full_disk"));
    REQUIRE_CLEAN(run("reserves_after_allocating"));
}

TEST_CASE_METHOD(Fixture, "a reservation is not spent on pages that nobody stored to")
{
    REQUIRE_CLEAN(run("reserves_exactly", "scattered"));
    REQUIRE_CLEAN(run("reserves_exactly", "in runs"));
}

TEST_CASE_METHOD(Fixture, "creation on a full disk leaves nothing behind")
{
    REQUIRE_CLEAN(run("creates_on_a_full_disk"));
}
