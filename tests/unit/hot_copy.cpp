// A copy that was made while a program had the container open for writing is refused, unless the
// program accepts it; the original never is. What the file system says of files is as a test wants it.
#include "common/format.hpp"
#include "common/process.hpp"

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace fs = std::filesystem;
using test::failed_with;

namespace
{

// 0: what the system says.
struct Said {
    long file_system = 0;
    uint64_t inode = 0, birth = 0; // birth: nanoseconds; NO_BIRTH: that there is none
} said;

constexpr uint64_t NO_BIRTH = 1;
bool mapping_fails;

} // namespace

extern "C" {
struct container;

int __real_fstatfs(int fd, struct statfs *fs);
int __real_statx(int fd, const char *path, int flags, unsigned mask, struct statx *st);
int __real_container_map_rest(struct container *c);

int __wrap_fstatfs(int fd, struct statfs *fs)
{
    int result = __real_fstatfs(fd, fs);
    if (said.file_system != 0)
        fs->f_type = said.file_system;
    return result;
}

int __wrap_statx(int fd, const char *path, int flags, unsigned mask, struct statx *st)
{
    int result = __real_statx(fd, path, flags, mask, st);
    if (said.inode != 0)
        st->stx_ino = said.inode;
    if (said.birth != 0) {
        st->stx_mask |= STATX_BTIME;
        st->stx_btime = {(int64_t)(said.birth / 1000000000), (uint32_t)(said.birth % 1000000000), 0};
    }
    if (said.birth == NO_BIRTH)
        st->stx_mask &= ~(unsigned)STATX_BTIME;
    return result;
}

int __wrap_container_map_rest(struct container *c)
{
    if (!mapping_fails)
        return __real_container_map_rest(c);
    errno = ENOMEM;
    return -1;
}
}

namespace
{

uint64_t mark_of_file(const std::string &path)
{
    return test::read_word(path, FORMAT_MARK);
}

// In a child.
void commit(pm_container *c, uint64_t value)
{
    auto *root = static_cast<uint64_t *>(pm_getroot(c));
    if (!root) {
        root = static_cast<uint64_t *>(pm_calloc(c, 1, 100000));
        CHILD_REQUIRE(root && pm_setroot(c, root, 0) == 0);
    }
    for (size_t i = 0; i < 100000 / sizeof *root; i += 100)
        root[i] = value;
    CHILD_REQUIRE(pm_commit(c) == 0);
}

pm_container *try_open(const std::string &path, unsigned flags = 0)
{
    pm_options how = test::options(flags | PM_UNSAFE_POWER);
    return pm_open(path.c_str(), &how);
}

// Whether the file at `path` is one that a test closes at once.
bool opens(const std::string &path, unsigned flags = 0)
{
    pm_container *c = try_open(path, flags);
    REQUIRE((c || failed_with(ENOTUNIQ, {path.c_str(), "pm_copy()", "PM_ACCEPT_COPY"})));
    if (c)
        REQUIRE_OK(pm_close(c));
    return c;
}

struct Fixture {
    test::Directory directory{GENERATE("/dev/shm", "/var/tmp")};
    std::string path = directory / "c.pm", copy = directory / "copy.pm";
    void take() const { fs::copy_file(path, copy, fs::copy_options::overwrite_existing); }
};

} // namespace

// arguments[0]: a container to commit to until the end.
CHILD_PROCESS(commits_until_it_is_killed)
{
    pm_options how = test::small(PM_CREATE | PM_UNSAFE_POWER);
    pm_container *c = pm_open(arguments[0].c_str(), &how);
    CHILD_REQUIRE(c);
    commit(c, 0);
    test::say("open");
    for (uint64_t i = 1;; i++)
        commit(c, i);
}

CHILD_PROCESS(dies_as_soon_as_it_is_open)
{
    pm_options how = test::small(PM_CREATE | PM_UNSAFE_POWER);
    CHILD_REQUIRE(pm_open(arguments[0].c_str(), &how));
    _exit(0);
}

TEST_CASE_METHOD(Fixture, "copies of a container that a program writes are all refused")
{
    test::Process writer("commits_until_it_is_killed", {path});
    REQUIRE(writer.read_line() == "open");
    for (int i = 0; i < 25; i++) {
        take();
        for (unsigned flags : {0u, (unsigned)PM_READONLY, (unsigned)PM_CREATE})
            REQUIRE_FALSE(opens(copy, flags));
    }
    writer.kill(SIGKILL);
    writer.wait();
    take(); // the writer is gone, and so it is whole; but nobody can see that
    REQUIRE_FALSE(opens(copy));
    REQUIRE(opens(copy, PM_ACCEPT_COPY | PM_READONLY));
    REQUIRE_FALSE(opens(copy));
    REQUIRE(opens(copy, PM_ACCEPT_COPY));
    REQUIRE(opens(copy)); // has been closed
    REQUIRE(opens(path, PM_READONLY)); // the original is recovered as ever
    REQUIRE(opens(path));
    take();
    REQUIRE(opens(copy));
}

TEST_CASE_METHOD(Fixture, "the mark is there before the first store, and goes with a failed open")
{
    REQUIRE_CLEAN(test::run("dies_as_soon_as_it_is_open", {path}));
    REQUIRE(mark_of_file(path) & MARK_OPEN);
    take();
    REQUIRE_FALSE(opens(copy));
    REQUIRE(opens(path));
    REQUIRE(mark_of_file(path) == MARK_CLOSED);
    mapping_fails = true;
    pm_container *c = try_open(path);
    mapping_fails = false;
    REQUIRE_FALSE(c);
    take();
    REQUIRE(opens(copy));
    {
        test::Container written(try_open(path));
        REQUIRE(written);
        REQUIRE(pm_malloc(written.get(), 100));
        REQUIRE_OK(pm_commit(written.get()));
        REQUIRE(mark_of_file(path) & MARK_OPEN);
    }
    REQUIRE(mark_of_file(path) == MARK_CLOSED);
    take();
    REQUIRE(opens(copy));
    {
        test::Container open(try_open(path, PM_READONLY)); // changes nothing
        REQUIRE(open);
        REQUIRE(mark_of_file(path) == MARK_CLOSED);
        take();
    }
    REQUIRE(opens(copy));
}

TEST_CASE_METHOD(Fixture, "an accepted copy becomes a container of its own")
{
    REQUIRE_CLEAN(test::run("dies_as_soon_as_it_is_open", {path}));
    take();
    pm_container *c = try_open(copy, PM_ACCEPT_COPY);
    REQUIRE(c);
    REQUIRE(mark_of_file(copy) & MARK_OPEN);
    REQUIRE(mark_of_file(copy) != mark_of_file(path));
    std::string another = directory / "another.pm";
    fs::copy_file(copy, another);
    REQUIRE_FALSE(opens(another));
    REQUIRE_OK(pm_close(c));
}

TEST_CASE_METHOD(Fixture, "an accepted copy that cannot be opened must be accepted again")
{
    REQUIRE_CLEAN(test::run("dies_as_soon_as_it_is_open", {path}));
    take();
    const uint64_t mark = mark_of_file(copy);
    mapping_fails = true;
    pm_container *c = try_open(copy, PM_ACCEPT_COPY);
    mapping_fails = false;
    REQUIRE_FALSE(c);
    REQUIRE(mark_of_file(copy) == mark);
    REQUIRE_FALSE(opens(copy));
    REQUIRE(opens(copy, PM_ACCEPT_COPY));
    REQUIRE(opens(copy));
}

// (Format version 2 had none: tests/hostile/format2.cpp.)
TEST_CASE_METHOD(Fixture, "a container whose mark is lost is refused")
{
    REQUIRE_CLEAN(test::run("dies_as_soon_as_it_is_open", {path}));
    take();
    for (uint64_t neither : {MARK_NONE, seal(2), UINT64_MAX}) {
        test::patch_file(copy, FORMAT_MARK, &neither, sizeof neither);
        REQUIRE_FALSE(try_open(copy));
        REQUIRE(failed_with(EBADMSG, {"offset 8216", "damaged"}));
    }
}

namespace
{

struct Place {
    long file_system;
    uint64_t inode, birth;
};

// Whether a file that was marked open in one place is taken for itself in another.
bool is_recognised(Place then, Place now)
{
    test::Directory directory;
    std::string path = directory / "c.pm", copy = directory / "copy.pm";
    pm_options how = test::small(PM_CREATE | PM_UNSAFE_POWER);
    said = {then.file_system, then.inode, then.birth};
    test::Container c = test::open(path, how);
    fs::copy_file(path, copy); // of another inode and birth, whatever is said of it
    said = {now.file_system, now.inode, now.birth};
    c.reset();
    bool recognised = opens(copy);
    said = {};
    return recognised;
}

} // namespace

TEST_CASE("what must be the same depends on what lasts")
{
    const long ext4 = EXT4_SUPER_MAGIC, xfs = 0x58465342, fuse = 0x65735546, nfs = NFS_SUPER_MAGIC,
               overlay = OVERLAYFS_SUPER_MAGIC;
    // After a boot a device may have another number, of which nothing is known here.
    REQUIRE(is_recognised({ext4, 12, 1000}, {ext4, 12, 1000}));
    REQUIRE(is_recognised({ext4, 12, NO_BIRTH}, {ext4, 12, NO_BIRTH}));
    REQUIRE(is_recognised({ext4, 12, 1000}, {ext4, 12, NO_BIRTH})); // an older kernel
    // The first file of two new file systems may well have one number; a birth takes a clock's tick.
    REQUIRE_FALSE(is_recognised({ext4, 12, 1000}, {ext4, 12, 2000}));
    REQUIRE_FALSE(is_recognised({ext4, 12, 1000}, {ext4, 13, 1000}));
    REQUIRE_FALSE(is_recognised({ext4, 12, NO_BIRTH}, {ext4, 13, NO_BIRTH}));
    REQUIRE_FALSE(is_recognised({ext4, 12, 1000}, {xfs, 131, 2000}));
    for (long loose : {fuse, nfs, overlay}) {
        CAPTURE(loose);
        // Either may be another after a remount; a server's inode number may be seen there, too.
        REQUIRE(is_recognised({loose, 12, 1000}, {loose, 13, 1000}));
        REQUIRE(is_recognised({loose, 12, 1000}, {loose, 12, 2000}));
        REQUIRE(is_recognised({ext4, 12, 1000}, {loose, 13, 1000}));
        REQUIRE(is_recognised({loose, 12, 1000}, {ext4, 13, 1000}));
        // Without a time of birth a new number says nothing.
        REQUIRE(is_recognised({loose, 12, NO_BIRTH}, {loose, 13, NO_BIRTH}));
        REQUIRE(is_recognised({loose, 12, NO_BIRTH}, {ext4, 13, 1000}));
        REQUIRE_FALSE(is_recognised({loose, 12, 1000}, {loose, 13, 2000}));
        REQUIRE_FALSE(is_recognised({ext4, 12, 1000}, {loose, 13, 2000}));
        REQUIRE_FALSE(is_recognised({loose, 12, 1000}, {ext4, 13, 2000}));
    }
}
