// A crash, or an error, at each system call of creation. Linked with --wrap for each of them, so
// that the n-th can be made the last.
#include "common/process.hpp"

#include <cerrno>
#include <cstdarg>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using test::failed_with;

namespace
{

int calls;            // so far
int fatal_call;       // die before this one; 0: none
int failing_call;     // this one fails
int failing_error;    // with this
bool without_tmpfile; // the file system has no O_TMPFILE
bool watching;

// Whether the call that is about to be made shall fail.
bool step(const char *what)
{
    if (!watching)
        return false;
    calls++;
    if (calls == fatal_call) {
        test::say(what);
        _exit(42);
    }
    if (calls != failing_call)
        return false;
    test::say(what);
    errno = failing_error;
    return true;
}

} // namespace

extern "C" {

int __real_open(const char *path, int flags, ...);
int __real_fallocate(int fd, int mode, off_t offset, off_t length);
int __real_ftruncate(int fd, off_t length);
ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t offset);
int __real_fsync(int fd);
int __real_linkat(int, const char *, int, const char *, int);
int __real_renameat2(int, const char *, int, const char *, unsigned);

int __wrap_open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = va_arg(arguments, mode_t); // garbage if there is none, and then not used
    va_end(arguments);
    if (step("open"))
        return -1;
    if (watching && without_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return __real_open(path, flags, mode);
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t length)
{
    return step("fallocate") ? -1 : __real_fallocate(fd, mode, offset, length);
}

int __wrap_ftruncate(int fd, off_t length)
{
    return step("ftruncate") ? -1 : __real_ftruncate(fd, length);
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    return step("pwrite") ? -1 : __real_pwrite(fd, bytes, size, offset);
}

int __wrap_fsync(int fd)
{
    return step("fsync") ? -1 : __real_fsync(fd);
}

int __wrap_linkat(int a, const char *from, int b, const char *to, int flags)
{
    return step("linkat") ? -1 : __real_linkat(a, from, b, to, flags);
}

int __wrap_renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    return step("renameat2") ? -1 : __real_renameat2(a, from, b, to, flags);
}
}

// path, "tmpfile" or "name", call, "die" or an errno
CHILD_PROCESS(creates)
{
    pm_options options = test::small(PM_CREATE | PM_EXCLUSIVE);
    options.layout = "creation/1";
    without_tmpfile = arguments[1] == "name";
    if (arguments[3] == "die") {
        fatal_call = std::stoi(arguments[2]);
    } else {
        failing_call = std::stoi(arguments[2]);
        failing_error = std::stoi(arguments[3]);
    }
    watching = true;
    pm_container *c = pm_open(arguments[0].c_str(), &options);
    int error = errno;
    watching = false;
    if (!c) {
        fprintf(stderr, "%s\n", pm_errormsg());
        errno = error;
        CHILD_REQUIRE(failed_with(failing_error, {arguments[0].c_str()}));
        _exit(43);
    }
    CHILD_REQUIRE(pm_malloc(c, 100) && pm_commit(c) == 0 && pm_check(c) == 0);
    CHILD_REQUIRE(pm_close(c) == 0);
}

namespace
{

std::vector<std::string> files_in(const std::string &directory)
{
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(directory))
        names.push_back(entry.path().filename());
    return names;
}

// If there is a file at the path, it is a whole and empty container.
bool whole_or_nothing(const std::string &path)
{
    if (!std::filesystem::exists(path))
        return true;
    pm_options options = test::options();
    options.layout = "creation/1";
    test::Container c = test::open(path, options);
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE_FALSE(pm_getroot(c.get()));
    REQUIRE(test::stats(c.get()).segments_data == 0);
    return false;
}

} // namespace

TEST_CASE("a crash at each step of creation")
{
    std::string way = GENERATE("tmpfile", "name");
    INFO(way);
    bool crashed = true, published = false;
    std::string steps;
    for (int call = 1; crashed; call++) {
        INFO("at call " << call << ", after" << steps);
        REQUIRE(call < 100);
        test::Directory directory;
        std::string path = directory / "c.pm";
        test::Ended ended = test::run("creates", {path, way, std::to_string(call), "die"});
        INFO(ended.errors);
        crashed = test::exited(ended.status, 42);
        if (!crashed)
            REQUIRE(test::exited(ended.status));
        steps += " " + ended.output;
        bool litter = false;
        for (const std::string &name : files_in(directory.path())) {
            // Without O_TMPFILE a crash may leave the temporary file, under a name of its own.
            bool temporary = way == "name" && name.rfind("c.pm.new-", 0) == 0;
            REQUIRE((name == "c.pm" || temporary));
            litter |= temporary;
        }
        if (!crashed)
            REQUIRE_FALSE(litter);
        else if (!whole_or_nothing(path))
            published = true;
        // And the next attempt is not troubled by it.
        if (std::filesystem::exists(path))
            REQUIRE_OK(pm_delete(path.c_str()));
        REQUIRE_CLEAN(test::run("creates", {path, way, "0", "die"}));
        REQUIRE(files_in(directory.path()).size() == (litter ? 2 : 1));
    }
    REQUIRE(published); // the last steps came after the name
    // All that creation does was seen.
    for (const char *step : {"open", "ftruncate", "fallocate", "pwrite", "fsync"})
        REQUIRE(steps.find(step) != std::string::npos);
    REQUIRE(steps.find(way == "tmpfile" ? "linkat" : "renameat2") != std::string::npos);
}

TEST_CASE("an error at each step of creation")
{
    std::string way = GENERATE("tmpfile", "name");
    int error = GENERATE(ENOSPC, EIO);
    INFO(way << ", errno " << error);
    bool failed = true;
    std::string steps;
    for (int call = 1; failed; call++) {
        INFO("at call " << call << ", after" << steps);
        REQUIRE(call < 100);
        test::Directory directory;
        std::string path = directory / "c.pm";
        test::Ended ended =
            test::run("creates", {path, way, std::to_string(call), std::to_string(error)});
        INFO(ended.errors);
        failed = test::exited(ended.status, 43);
        if (!failed)
            REQUIRE(test::exited(ended.status));
        steps += " " + ended.output;
        for (const std::string &name : files_in(directory.path()))
            REQUIRE(name == "c.pm"); // no litter, as there was no crash
        if (failed)
            whole_or_nothing(path);
        if (std::filesystem::exists(path))
            REQUIRE_OK(pm_delete(path.c_str()));
        REQUIRE_CLEAN(test::run("creates", {path, way, "0", "die"}));
    }
}

TEST_CASE("a file system without fallocate gets zeros")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    // Find the call, then let it say what such file systems say.
    for (int call = 1; call < 20; call++) {
        test::Ended ended = test::run(
            "creates", {path, "tmpfile", std::to_string(call), std::to_string(EOPNOTSUPP)});
        if (ended.output == "fallocate\n") {
            INFO(ended.errors);
            REQUIRE(test::exited(ended.status));
            struct stat st;
            REQUIRE(stat(path.c_str(), &st) == 0);
            REQUIRE(st.st_blocks * 512 >= st.st_size); // no holes
            return;
        }
        if (std::filesystem::exists(path))
            REQUIRE_OK(pm_delete(path.c_str()));
    }
    FAIL("no fallocate");
}
