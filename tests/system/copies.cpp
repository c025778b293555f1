// pm_copy(): containers of each kind, its callback, its failures. crash/copy.cpp shows that copies are
// whole beside commits of other threads.
#include "common/format.hpp"
#include "common/process.hpp"
#include "system/disk.hpp"
#include "unit/linked.hpp"
#include "unit/mapped.hpp"

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <filesystem>
#include <fstream>
#include <functional>
#include <libpm.hpp>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace fs = std::filesystem;
using test::failed_with;

namespace
{

std::vector<std::string> steps; // that make a file durable and name it
bool reflinks;                  // the file system shares blocks
unsigned reflinked;
std::function<int()> sync_directory; // in place of fsync(2), if there is one

} // namespace

extern "C" {

int __real_fsync(int fd);
int __real_linkat(int fd, const char *from, int to_fd, const char *to, int flags);
int __real_ioctl(int fd, unsigned long request, ...);

int __wrap_fsync(int fd)
{
    struct stat st;
    const bool is_directory = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    steps.push_back(is_directory ? "directory" : "file");
    return is_directory && sync_directory ? sync_directory() : __real_fsync(fd);
}

int __wrap_linkat(int fd, const char *from, int to_fd, const char *to, int flags)
{
    steps.push_back("name");
    return __real_linkat(fd, from, to_fd, to, flags);
}

// What the kernel would do, by copying.
int __wrap_ioctl(int fd, unsigned long request, ...)
{
    va_list more;
    va_start(more, request);
    int from = va_arg(more, int);
    va_end(more);
    if (request != FICLONE || !reflinks) {
        errno = EOPNOTSUPP;
        return -1;
    }
    reflinked++;
    char block[4096];
    for (off_t at = 0;; at += (off_t)sizeof block) {
        ssize_t n = pread(from, block, sizeof block, at);
        if (n <= 0)
            return (int)n;
        if (pwrite(fd, block, (size_t)n, at) != n)
            return -1;
    }
}
}

namespace
{

constexpr size_t LARGE = 1 << 20;

using Callback = std::function<bool(uint64_t done, uint64_t total)>; // false: stop

int copy(pm_container *c, const std::string &to, Callback callback = nullptr)
{
    auto tell = [](void *context, uint64_t done, uint64_t total) {
        return (*static_cast<Callback *>(context))(done, total) ? 0 : 1;
    };
    return callback ? pm_copy(c, to.c_str(), tell, &callback)
                    : pm_copy(c, to.c_str(), nullptr, nullptr);
}

struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm", to = directory / "copy.pm";
    test::Container c = test::open(path, movable(PM_CREATE));

    static pm_options movable(unsigned flags = 0) { return test::small(flags | PM_MOVABLE); }

    Fixture()
    {
        linked::recorded = test::stores();
        linked::build(c.get(), 1000);
        REQUIRE_OK(pm_commit(c.get()));
    }

    void *allocate(size_t bytes, int filled_with)
    {
        void *p = pm_malloc(c.get(), bytes);
        REQUIRE(p);
        if (filled_with >= 0)
            memset(p, filled_with, bytes);
        return p;
    }
    void commit() { REQUIRE_OK(pm_commit(c.get())); }
    void require_nothing_left(size_t files = 1) const
    {
        size_t found = 0;
        for (const auto &entry : fs::directory_iterator(directory.path()))
            found += entry.exists();
        REQUIRE(found == files);
    }
    // The copy, where the original had been.
    test::Container open_copy()
    {
        c.reset();
        test::Container copied = test::open(to, movable());
        REQUIRE_OK(pm_check(copied.get()));
        REQUIRE_FALSE(test::stats(copied.get()).recovered);
        return copied;
    }
};

} // namespace

TEST_CASE_METHOD(Fixture,
                 "a copy has the last commit, is durable before it has a name, and is whole")
{
    linked::push(c.get()); // not committed
    steps.clear();
    REQUIRE_OK(copy(c.get(), to));
    REQUIRE(steps == std::vector<std::string>{"file", "name", "directory"});
    REQUIRE(fs::file_size(to) == fs::file_size(path));
    struct stat st;
    REQUIRE(stat(to.c_str(), &st) == 0);
    REQUIRE((uint64_t)st.st_blocks * 512 >= (uint64_t)st.st_size); // no holes
    commit();
    test::Container copied = open_copy();
    REQUIRE(linked::root(copied.get())->count == 1000);
    linked::require(copied.get(), 1000);
}

TEST_CASE_METHOD(Fixture, "the open transaction's stores, allocations and frees are not in a copy")
{
    constexpr size_t BYTES = 8 * LARGE; // more pages than a copy has room for at first
    char *kept = static_cast<char *>(allocate(BYTES, 1));
    REQUIRE_OK(pm_setroot(c.get(), kept, 0));
    commit();
    memset(kept, 2, BYTES);
    commit();
    memset(kept + 5000, 3, BYTES / 2);
    allocate(LARGE, 4);
    REQUIRE_OK(copy(c.get(), to));
    memset(kept, 5, 100);
    std::string second = to + "2";
    REQUIRE_OK(copy(c.get(), second));
    REQUIRE_OK(pm_rollback(c.get()));
    c.reset();
    for (const std::string &file : {to, second}) {
        test::Container copied = test::open(file, movable());
        REQUIRE_OK(pm_check(copied.get()));
        const char *p = static_cast<const char *>(pm_getroot(copied.get()));
        REQUIRE((std::string(p, BYTES) == std::string(BYTES, 2)));
    }
}

TEST_CASE_METHOD(Fixture, "the callback may allocate, store, commit and roll back")
{
    char *large = static_cast<char *>(allocate(LARGE, 1));
    REQUIRE_OK(pm_setroot(c.get(), large, 0));
    commit();
    uint64_t calls = 0, last = 0, size = test::stats(c.get()).file_bytes;
    REQUIRE_OK(copy(c.get(), to, [&](uint64_t done, uint64_t total) {
        REQUIRE(done >= last);
        REQUIRE(done <= total);
        last = done;
        if (calls++ > 20)
            return true;
        large[calls * 4096] = (char)(calls + 10); // before and behind what has been copied
        large[calls] = (char)(calls + 10);
        allocate(300000, 5); // the file grows
        commit();
        memset(large, 9, LARGE);
        REQUIRE_OK(pm_rollback(c.get()));
        return true;
    }));
    REQUIRE(calls > 20);
    REQUIRE(last > size);
    REQUIRE(fs::file_size(to) == fs::file_size(path));
    test::Container copied = open_copy();
    const char *p = static_cast<const char *>(pm_getroot(copied.get()));
    for (size_t i = 0; i < LARGE; i++) {
        bool first = i > 0 && i <= 21, others = i % 4096 == 0 && i > 0 && i <= 21 * 4096;
        int expected = first ? (int)i + 10 : others ? (int)(i / 4096) + 10 : 1;
        if (p[i] != expected)
            FAIL("byte " << i << " is " << (int)p[i]);
    }
}

TEST_CASE_METHOD(Fixture,
                 "a file that grows after the last pass is copied with its length and its blocks")
{
    bool grown = false;
    REQUIRE_OK(copy(c.get(), to, [&](uint64_t done, uint64_t total) {
        if (done == total && !grown) {
            grown = true;
            allocate(LARGE / 4 * 3, -1); // too few pages for another pass
            commit();
        }
        return true;
    }));
    REQUIRE(grown);
    struct stat st;
    REQUIRE(stat(to.c_str(), &st) == 0);
    REQUIRE((uint64_t)st.st_size == fs::file_size(path));
    REQUIRE(st.st_blocks * 512 >= st.st_size);
    open_copy();
}

TEST_CASE_METHOD(Fixture,
                 "a run of lines that ends just behind a page's start is in a copy to its end")
{
    constexpr size_t PAGE = 4096, LINE = 64;
    char *large = static_cast<char *>(allocate(LARGE, 1));
    REQUIRE_OK(pm_setroot(c.get(), large, 0));
    commit();
    char *start = large + (PAGE - (uintptr_t)large % PAGE);
    struct Run {
        char *at;
        size_t bytes;
    };
    const Run runs[] = {{start + 10 * PAGE - LINE, 2 * LINE}, {start + 20 * PAGE - LINE, 3 * LINE}};
    bool stored = false;
    REQUIRE_OK(copy(c.get(), to, [&](uint64_t done, uint64_t total) {
        if (done == total && !stored) { // the copy has passed these pages
            stored = true;
            for (const Run &run : runs)
                memset(run.at, 2, run.bytes);
            commit();
        }
        return true;
    }));
    REQUIRE(stored);
    test::Container copied = open_copy();
    REQUIRE(pm_getroot(copied.get()) == large);
    for (const Run &run : runs)
        REQUIRE(std::string(run.at, run.bytes) == std::string(run.bytes, 2));
}

TEST_CASE_METHOD(Fixture, "a copy ends, however many pages the callback commits at each call")
{
    constexpr size_t PAGES = 4096, PAGE = 4096;
    int committed = GENERATE(1, 10, 50, 400);
    char *large = static_cast<char *>(allocate(PAGES * PAGE, 1));
    REQUIRE_OK(pm_setroot(c.get(), large, 0));
    commit();
    uint64_t calls = 0, limit = 0;
    unsigned random = 1;
    REQUIRE_OK(copy(c.get(), to, [&](uint64_t, uint64_t total) {
        limit = total / (64 << 10) + 8 * (total / (1 << 20) + 1); // all segments, and eight passes
        for (int i = 0; i < committed; i++) {
            random = random * 1103515245 + 12345;
            large[(random >> 8) % PAGES * PAGE]++;
        }
        commit();
        return ++calls <= limit;
    }));
    CAPTURE(committed, calls, limit);
    REQUIRE(calls <= limit);
    std::string last(large, PAGES * PAGE);
    test::Container copied = open_copy();
    // The copy lacks at most what the last call committed, which came after the copying.
    const char *p = static_cast<const char *>(pm_getroot(copied.get()));
    size_t others = 0;
    for (size_t i = 0; i < PAGES; i++)
        others += p[i * PAGE] != last[i * PAGE];
    REQUIRE(others <= (size_t)committed);
}

TEST_CASE_METHOD(Fixture, "what an object had before anybody stored to it is in the copy too")
{
    void *before = allocate(LARGE, 7);
    commit();
    REQUIRE_OK(pm_free(before));
    commit();
    char *p = nullptr;
    std::string contents;
    REQUIRE_OK(copy(c.get(), to, [&](uint64_t done, uint64_t total) {
        if (!p && done == total) { // its segments were free when the copy passed them
            p = static_cast<char *>(allocate(LARGE, -1));
            REQUIRE_OK(pm_setroot(c.get(), p, 0));
            commit();
            contents.assign(p, LARGE);
        }
        return true;
    }));
    REQUIRE(contents.find(7) != std::string::npos);
    test::Container copied = open_copy();
    REQUIRE(pm_getroot(copied.get()) == p);
    REQUIRE((std::string(p, LARGE) == contents)); // too much to print
}

TEST_CASE_METHOD(Fixture, "what is free is not written to the copy")
{
    const auto written = [] { // by this process, in bytes
        std::ifstream io("/proc/self/io");
        std::string name;
        uint64_t bytes = 0;
        while (io >> name >> bytes && name != "wchar:")
            ;
        REQUIRE(name == "wchar:");
        return bytes;
    };
    void *const large = allocate(8 * LARGE, 1);
    commit();
    REQUIRE_OK(pm_free(large));
    commit();
    for (int i = 0; i < 8; i++) { // until the chunks that are dead now are void, and fenced
        allocate(64, i);
        commit();
    }
    REQUIRE(fs::file_size(path) >= 8 * LARGE);
    const uint64_t before = written();
    REQUIRE_OK(copy(c.get(), to));
    CHECK(written() - before < 2 * LARGE);
    linked::require(open_copy().get(), 1000);
}

TEST_CASE_METHOD(
    Fixture, "what was handed over before the copy began is in it when it is committed meanwhile",
    "[handed]")
{
    const std::string value(LARGE, 'v');
    pm_options how = movable(PM_CREATE);
    how.segment_size = 1 << 20; // the log's chunks are large enough for values
    c = test::open(path + ".large", how);
    void *p = pm_put(c.get(), value.data(), value.size());
    REQUIRE(p);
    REQUIRE_OK(pm_setroot(c.get(), p, 0));
    bool committed = false;
    REQUIRE_OK(copy(c.get(), to, [&](uint64_t done, uint64_t total) {
        if (done == total && !std::exchange(committed, true))
            commit();
        return true;
    }));
    REQUIRE(committed);
    test::Container copied = open_copy();
    REQUIRE(pm_getroot(copied.get()) == p);
    REQUIRE((std::string(static_cast<char *>(p), LARGE) == value));
}

TEST_CASE_METHOD(Fixture, "a copy that is stopped, at whatever call, leaves nothing")
{
    allocate(3 * LARGE, 1);
    commit();
    uint64_t calls = 0;
    auto count = [&](uint64_t, uint64_t) { return ++calls > 0; };
    REQUIRE_OK(copy(c.get(), to, count));
    REQUIRE(calls > 3 * LARGE / (64 << 10)); // a segment is less than a MiB
    fs::remove(to);
    for (uint64_t stop : {uint64_t{1}, uint64_t{2}, calls / 2, calls - 1, calls}) {
        uint64_t call = 0;
        REQUIRE(copy(c.get(), to, [&](uint64_t, uint64_t) { return ++call != stop; }) == -1);
        REQUIRE(failed_with(ECANCELED, {path.c_str(), to.c_str(), "stopped"}));
        REQUIRE(call == stop);
        require_nothing_left();
    }
    REQUIRE_OK(copy(c.get(), to));
    linked::require(open_copy().get(), 1000);
}

TEST_CASE_METHOD(Fixture, "what would disturb a copy is refused meanwhile")
{
    unsigned calls = 0, last_calls = 0;
    REQUIRE_OK(copy(c.get(), to, [&](uint64_t done, uint64_t total) {
        last_calls += done == total;
        if (calls++ > 0 && done != total)
            return true;
        REQUIRE(copy(c.get(), to + "2") == -1);
        REQUIRE(failed_with(EBUSY, {path.c_str(), "pm_copy()"}));
        REQUIRE(pm_compact(c.get(), nullptr, nullptr, nullptr) == -1);
        REQUIRE(failed_with(EBUSY, {path.c_str(), "pm_copy()"}));
        REQUIRE(pm_close(c.get()) == -1);
        REQUIRE(failed_with(EBUSY, {path.c_str(), "pm_copy()"}));
        return true;
    }));
    REQUIRE(last_calls > 0);
    require_nothing_left(2);
    REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
    REQUIRE_OK(copy(c.get(), to + "2"));
    linked::require(open_copy().get(), 1000);
}

TEST_CASE_METHOD(Fixture, "no file is replaced, and what is wrong is named")
{
    REQUIRE(pm_copy(c.get(), nullptr, nullptr, nullptr) == -1);
    REQUIRE(failed_with(EINVAL, {path.c_str()}));
    REQUIRE(pm_copy(nullptr, to.c_str(), nullptr, nullptr) == -1);
    REQUIRE(failed_with(EINVAL));
    fs::create_symlink("nowhere", directory / "link");
    test::write_file(directory / "other", "other");
    for (const std::string &there : {path, directory / "other", directory / "link"}) {
        REQUIRE(copy(c.get(), there) == -1);
        REQUIRE(failed_with(EEXIST, {there.c_str(), "another name"}));
    }
    // It comes only while the copy is made.
    REQUIRE(copy(c.get(), to, [&](uint64_t, uint64_t) {
                test::write_file(to, "other");
                return true;
            }) == -1);
    REQUIRE(failed_with(EEXIST, {to.c_str()}));
    REQUIRE(test::read_file(to) == "other");
    REQUIRE(copy(c.get(), directory / "none/copy") == -1);
    REQUIRE(failed_with(ENOENT, {path.c_str(), "none/copy"}));
    require_nothing_left(3 + 1 - 1); // the link leads nowhere
}

TEST_CASE_METHOD(Fixture,
                 "nobody can open a copy whose name is not durable, and which may go again")
{
    sync_directory = [&] {
        pm_options options = test::options();
        REQUIRE(pm_open(to.c_str(), &options) == nullptr);
        REQUIRE(failed_with(EBUSY, {to.c_str()}));
        errno = EIO;
        return -1;
    };
    const int result = copy(c.get(), to);
    sync_directory = nullptr;
    REQUIRE(result == -1);
    REQUIRE(failed_with(EIO, {to.c_str()}));
    require_nothing_left();
}

TEST_CASE_METHOD(Fixture, "a child that was forked during a copy does not keep it locked")
{
    pid_t child = -1;
    REQUIRE_OK(copy(c.get(), to, [&](uint64_t, uint64_t) {
        if (child < 0 && (child = fork()) == 0) {
            alarm(60);
            pause();
        }
        return true;
    }));
    REQUIRE(child > 0);
    linked::require(open_copy().get(), 1000);
    REQUIRE(kill(child, SIGKILL) == 0);
    REQUIRE(waitpid(child, nullptr, 0) == child);
}

TEST_CASE_METHOD(Fixture, "a copy has the permissions of its original")
{
    mode_t before = umask(022);
    REQUIRE(chmod(path.c_str(), 0660) == 0);
    int result = copy(c.get(), to);
    umask(before);
    REQUIRE_OK(result);
    struct stat st;
    REQUIRE(stat(to.c_str(), &st) == 0);
    REQUIRE((st.st_mode & 07777) == 0640);
}

TEST_CASE_METHOD(Fixture, "on a full disk nothing is left")
{
    test::Disk disk(3 << 20);
    allocate(4 * LARGE, 1);
    commit();
    uint64_t room = disk.free_bytes();
    REQUIRE(copy(c.get(), disk / "copy.pm") == -1);
    REQUIRE(failed_with(ENOSPC, {path.c_str(), (disk / "copy.pm").c_str(), "free disk space"}));
    REQUIRE(disk.free_bytes() == room);
    REQUIRE_FALSE(fs::exists(disk / "copy.pm"));
    // It becomes full when there is more to copy than there was at first.
    test::Disk other(7 << 20);
    room = other.free_bytes();
    bool grown = false;
    REQUIRE(copy(c.get(), other / "copy.pm", [&](uint64_t, uint64_t) {
                if (!grown)
                    allocate(4 * LARGE, 1);
                commit();
                return grown = true;
            }) == -1);
    REQUIRE(failed_with(ENOSPC));
    REQUIRE(other.free_bytes() == room);
}

CHILD_PROCESS(leaves_a_transaction_open)
{
    linked::recorded = test::stores();
    pm_options how = Fixture::movable(PM_CREATE);
    pm_container *c = pm_open(arguments[0].c_str(), &how);
    CHILD_REQUIRE(c);
    linked::build(c, 500);
    CHILD_REQUIRE(pm_commit(c) == 0);
    linked::push(c);
    CHILD_REQUIRE(pm_commit(c) == 0);
    linked::push(c);
    _exit(0);
}

TEST_CASE("read-only containers are copied, those too whose writer had died")
{
    test::Directory directory;
    std::string path = directory / "c.pm", to = directory / "copy.pm";
    REQUIRE_CLEAN(test::run("leaves_a_transaction_open", {path}));
    std::string bytes = test::read_file(path);
    pm_options how = Fixture::movable(PM_READONLY), writing = Fixture::movable();
    reflinks = true;
    reflinked = 0;
    {
        test::Container c = test::open(path, how);
        REQUIRE(test::stats(c.get()).recovered);
        REQUIRE_OK(copy(c.get(), to));
        REQUIRE(reflinked == 0); // the file is not what is shown
    }
    REQUIRE(test::read_file(path) == bytes);
    {
        test::Container c = test::open(to, writing);
        REQUIRE_FALSE(test::stats(c.get()).recovered);
        linked::require(c.get(), 501);
    }
    {
        test::Container c = test::open(to, how), beside = test::open(to, how);
        REQUIRE_OK(copy(c.get(), to + "2"));
        REQUIRE(reflinked == 1);
        REQUIRE_OK(copy(beside.get(), to + "3")); // lies at other addresses
    }
    reflinks = false;
    for (const std::string &file : {to + "2", to + "3"}) {
        test::Container c = test::open(file, writing);
        REQUIRE_FALSE(test::stats(c.get()).recovered);
        linked::require(c.get(), 501);
        REQUIRE_OK(pm_check(c.get()));
    }
}

TEST_CASE_METHOD(Fixture,
                 "a container that is open at other addresses is copied as it is on the medium")
{
    std::string moved = directory / "moved.pm";
    REQUIRE_OK(copy(c.get(), moved));
    test::Container other = test::open(moved, movable());
    REQUIRE(test::stats(other.get()).moved);
    linked::push(other.get());
    REQUIRE_OK(pm_commit(other.get()));
    REQUIRE_OK(copy(other.get(), to));
    linked::push(other.get());
    const char *base = test::base_of(c.get());
    other.reset();
    test::Container copied = open_copy();
    REQUIRE(test::base_of(copied.get()) == base);
    linked::require(copied.get(), 1001);
}

TEST_CASE_METHOD(Fixture, "in C++")
{
    c.reset();
    {
        pm::container object(path, {.flags = PM_MOVABLE, .foreign_pointers = PM_FOREIGN_IGNORE});
        object.copy(to);
        uint64_t calls = 0;
        object.copy(to + "2", [&](uint64_t, uint64_t) { return ++calls > 0; });
        REQUIRE(calls > 0);
        REQUIRE_THROWS_AS(object.copy(to), pm::error);
        REQUIRE_THROWS_AS(object.copy(to + "3", [](uint64_t, uint64_t) { return false; }),
                          pm::error);
    }
    linked::require(open_copy().get(), 1000);
}
