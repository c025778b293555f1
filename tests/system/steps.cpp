#include "system/steps.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace
{

int the_nth, the_count, the_error;
steps::At the_way;
steps::Lacks the_lacks;
bool armed;
const char *the_last = "";
std::vector<std::string> the_calls;

enum class Step { proceed, fail, tear };

Step next(const char *name)
{
    if (armed)
        the_calls.push_back(name);
    if (!armed || ++the_count != the_nth)
        return Step::proceed;
    the_last = name;
    switch (the_way) {
    case steps::At::dies:
        _exit(steps::EXIT_STATUS);
    case steps::At::tears:
        return Step::tear;
    case steps::At::fails:
        errno = the_error;
        return Step::fail;
    }
    return Step::proceed;
}

bool is_in_proc(const char *path)
{
    return strncmp(path, "/proc/", strlen("/proc/")) == 0;
}

// As the kernel sees a second name on many file systems in user space. It has the contents that were
// there, but not what is written through the first from now on.
int copy(const char *from, const char *to)
{
    std::error_code error;
    std::filesystem::copy_file(from, to, error);
    errno = error.value();
    return error ? -1 : 0;
}

bool lacks_proc_for(const char *path)
{
    bool lacks = the_lacks.proc && is_in_proc(path);
    if (lacks)
        errno = ENOENT;
    return lacks;
}

[[noreturn]] void die()
{
    _exit(steps::EXIT_STATUS);
}

} // namespace

void steps::arm(int nth, At at, int error)
{
    the_nth = nth;
    the_way = at;
    the_error = error;
    the_count = 0;
    the_calls.clear();
    armed = true;
}

void steps::lack(Lacks lacks)
{
    the_lacks = lacks;
}

int steps::count()
{
    return the_count;
}

const char *steps::name_of_last()
{
    return the_last;
}

const std::vector<std::string> &steps::calls()
{
    return the_calls;
}

extern "C" {

int __real_open(const char *path, int flags, ...);
int __real_ftruncate(int fd, off_t length);
int __real_fallocate(int fd, int mode, off_t offset, off_t length);
ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t offset);
int __real_fsync(int fd);
int __real_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int __real_stat(const char *path, struct stat *st);
int __real_unlink(const char *path);
int __real_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags);

int __wrap_open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    if ((flags & O_TMPFILE) == O_TMPFILE && the_lacks.nameless) {
        errno = EOPNOTSUPP;
        return -1;
    }
    switch (next("open")) {
    case Step::fail:
        return -1;
    case Step::tear: // the name is there, the process is not
        __real_open(path, flags, mode);
        die();
    default:
        return __real_open(path, flags, mode);
    }
}

int __wrap_ftruncate(int fd, off_t length)
{
    switch (next("ftruncate")) {
    case Step::fail:
        return -1;
    case Step::tear:
        die();
    default:
        return __real_ftruncate(fd, length);
    }
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t length)
{
    if (the_lacks.fallocate) {
        errno = EOPNOTSUPP;
        return -1;
    }
    switch (next("fallocate")) {
    case Step::fail:
        return -1;
    case Step::tear: // not at a page's boundary even
        if (__real_fallocate(fd, mode, offset, length / 2 + 100) != 0)
            perror("fallocate");
        die();
    default:
        return __real_fallocate(fd, mode, offset, length);
    }
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    switch (next("pwrite")) {
    case Step::fail:
        return -1;
    case Step::tear:
        if (__real_pwrite(fd, bytes, size / 2 / 8 * 8, offset) < 0)
            perror("pwrite");
        die();
    default:
        return __real_pwrite(fd, bytes, size, offset);
    }
}

int __wrap_fsync(int fd)
{
    struct stat st;
    const bool is_directory = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    switch (next(is_directory ? "fsync directory" : "fsync")) {
    case Step::fail:
        return -1;
    case Step::tear:
        die();
    default:
        return __real_fsync(fd);
    }
}

int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    if (lacks_proc_for(from))
        return -1;
    switch (next("linkat")) {
    case Step::fail:
        return -1;
    case Step::tear:
        die();
    default:
        return the_lacks.links && !is_in_proc(from)
                   ? copy(from, to)
                   : __real_linkat(from_fd, from, to_fd, to, flags);
    }
}

int __wrap_stat(const char *path, struct stat *st)
{
    return lacks_proc_for(path) ? -1 : __real_stat(path, st);
}

int __wrap_unlink(const char *path)
{
    if (the_way == steps::At::fails) // nobody is told
        return __real_unlink(path);
    if (next("unlink") == Step::tear)
        die();
    return __real_unlink(path);
}

int __wrap_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    if (the_lacks.noreplace) {
        errno = EINVAL;
        return -1;
    }
    switch (next("renameat2")) {
    case Step::fail:
        return -1;
    case Step::tear:
        die();
    default:
        return __real_renameat2(from_fd, from, to_fd, to, flags);
    }
}

} // extern "C"
