// What this machine is not: one with larger pages, with an old kernel, with a file system whose files
// are persistent memory. Its calls of the kernel answer as theirs would.
#include "common/process.hpp"

extern "C" {
#include "base/bits.h"
#include "base/marks.h"
}

#include <cerrno>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using test::failed_with;

namespace
{

struct Machine {
    long page_size;   // 0: as here
    bool old_kernel;  // ignores MAP_FIXED_NOREPLACE as any unknown flag, and refuses late advice
    bool dax;         // MAP_SYNC succeeds
    bool unmappable;  // files cannot be mapped shared: in user space, with direct_io
    bool no_memory;   // for marks that are to be cleared; and they are locked
    int asynchronous; // shared mappings of files without MAP_SYNC so far
} machine;

} // namespace

extern "C" {

long __real_sysconf(int name);
int __real_madvise(void *address, size_t size, int advice);
void *__real_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset);

long __wrap_sysconf(int name)
{
    return name == _SC_PAGESIZE && machine.page_size ? machine.page_size : __real_sysconf(name);
}

int __wrap_madvise(void *address, size_t size, int advice)
{
    bool unknown = machine.old_kernel && advice > MADV_COLD;
    bool refused =
        machine.no_memory && (uintptr_t)address >= MARKS_TABLE && advice == MADV_DONTNEED;
    if (!unknown && !refused)
        return __real_madvise(address, size, advice);
    errno = EINVAL;
    return -1;
}

// Memory has no name in a directory.
static bool is_memory(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (machine.no_memory && (uintptr_t)address >= MARKS_TABLE) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    if (machine.old_kernel)
        flags &= ~MAP_FIXED_NOREPLACE;
    if (machine.unmappable && fd >= 0 && flags & MAP_SHARED) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    machine.asynchronous += fd >= 0 && !is_memory(fd) && flags & MAP_SHARED && !(flags & MAP_SYNC);
    if (machine.dax)
        flags &= ~MAP_SYNC;
    return __real_mmap(address, size, protection, flags, fd, offset);
}
}

TEST_CASE("a system with larger pages is refused")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options options = test::small();
    machine.page_size = 16384;
    pm_container *c = pm_open(path.c_str(), &options);
    machine.page_size = 0;
    REQUIRE_FALSE(c);
    REQUIRE(failed_with(ENOTSUP, {path.c_str(), "16384"}));
    REQUIRE_FALSE(std::filesystem::exists(path));
}

// arguments: path, address that is taken, kernel
CHILD_PROCESS(finds_addresses_taken)
{
    machine.old_kernel = arguments[2] == "old";
    void *wanted = reinterpret_cast<void *>(std::stoul(arguments[1]));
    void *taken = __real_mmap(wanted, PM_PAGE, PROT_READ,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHILD_REQUIRE(taken == wanted);
    pm_options options = test::small();
    CHILD_REQUIRE(!pm_open(arguments[0].c_str(), &options));
    CHILD_REQUIRE(failed_with(EEXIST, {arguments[0].c_str(), "something else"}));
    CHILD_REQUIRE(pm_delete(arguments[0].c_str()) == -1);
    CHILD_REQUIRE(failed_with(EEXIST, {arguments[0].c_str(), "something else"}));
    CHILD_REQUIRE(munmap(taken, PM_PAGE) == 0);
    CHILD_REQUIRE(pm_close(pm_open(arguments[0].c_str(), &options)) == 0);
}

TEST_CASE("something else lies where containers or marks would")
{
    test::Directory directory;
    uint64_t taken = GENERATE(as<uint64_t>(), ARENA_HINT, ARENA_HINT + ARENA_SIZE - PM_PAGE,
                              MARKS_TABLE, MARKS_TABLE + MARKS_SIZE - PM_PAGE, KINDS_TABLE,
                              KINDS_TABLE + KINDS_SIZE - PM_PAGE);
    std::string kernel = GENERATE(as<std::string>(), "new", "old");
    INFO("at " << taken << ", " << kernel << " kernel");
    REQUIRE_CLEAN(
        test::run("finds_addresses_taken", {directory / "c.pm", std::to_string(taken), kernel}));
}

TEST_CASE("a store leaves errno alone, whatever the kernel says to what it takes")
{
    test::Directory directory;
    test::Container c = test::open_with_pages(directory / "c.pm", 400, test::small());
    machine.old_kernel = true;
    errno = EDOM;
    for (uint64_t page = 0; page < 400; page++) // in sequence, so that several are opened at once
        test::page_word(c.get(), page) = 1;
    int after = errno;
    machine.old_kernel = false;
    REQUIRE(after == EDOM);
}

TEST_CASE("a file system with DAX: all is mapped with MAP_SYNC, and is pmem")
{
    test::Directory directory("/var/tmp");
    std::string path = directory / "c.pm";
    machine = {};
    machine.dax = true;
    {
        test::Container c = test::open_with_pages(path, 10, test::small());
        struct pm_stats stats = test::stats(c.get());
        REQUIRE(std::string(stats.medium) == "pmem");
        REQUIRE(stats.power_safe);
        test::page_word(c.get(), 1) = 1;
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(pm_malloc(c.get(), 1 << 20)); // the file grows
        REQUIRE_OK(pm_commit(c.get()));
    }
    test::Container c = test::open(path, test::options());
    REQUIRE(test::page_word(c.get(), 1) == 1);
    REQUIRE(machine.asynchronous == 0);
    machine.dax = false;
}

TEST_CASE("a file system that maps no files is named as the reason")
{
    test::Directory directory;
    pm_options options = test::small();
    machine = {};
    machine.unmappable = true;
    REQUIRE_FALSE(pm_open((directory / "c.pm").c_str(), &options));
    machine.unmappable = false;
    REQUIRE(failed_with(ENODEV, {"c.pm", "direct_io"}));
    REQUIRE(std::filesystem::is_empty(directory.path()));
}

CHILD_PROCESS(cannot_clear_marks)
{
    pm_options options = test::small();
    pm_container *c = pm_open(arguments[0].c_str(), &options);
    CHILD_REQUIRE(c);
    machine.no_memory = true;
    CHILD_REQUIRE(pm_close(c) == 0);
    machine.no_memory = false;
    // Whoever comes next would find its lines marked.
    CHILD_REQUIRE(!pm_open(arguments[0].c_str(), &options));
    CHILD_REQUIRE(failed_with(EADDRINUSE, {arguments[0].c_str()}));
}

TEST_CASE("addresses whose marks cannot be cleared are not used again")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("cannot_clear_marks", {directory / "c.pm"}));
}
