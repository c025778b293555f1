#include "faults/injector.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace faults
{

const std::vector<Call> calls = {
#define CALL(name, result, parameters, arguments, failure, words, ...)                             \
    {#name, words, {__VA_ARGS__}},
#define CALL_BY_HAND(name, words, ...) {#name, words, {__VA_ARGS__}},
#include "faults/calls.def"
#undef CALL
#undef CALL_BY_HAND
};

namespace
{

enum Index {
#define CALL(name, ...)         CALL_##name,
#define CALL_BY_HAND(name, ...) CALL_##name,
#include "faults/calls.def"
#undef CALL
#undef CALL_BY_HAND
    CALLS
};

uint64_t made[CALLS];
const char *window; // nullptr: closed
int armed_call = CALLS;
Fault armed;
Place the_place;
bool has_fired;

// Whether this call is the one. In the fault handler too, hence no more than write(2).
bool fails(Index call)
{
    if (!window || ++made[call] != armed.count || call != armed_call)
        return false;
    has_fired = true;
    char text[128];
    int n = snprintf(text, sizeof text, "fault in %s\n", window);
    if (write(STDERR_FILENO, text, (size_t)n) != n)
        _exit(95);
    errno = armed.error;
    return true;
}

} // namespace

void arm(const Fault &fault, const Place &place)
{
    armed = fault;
    the_place = place;
    for (int i = 0; i < CALLS; i++)
        if (fault.call == calls[(size_t)i].name)
            armed_call = i;
    if (armed_call == CALLS && !fault.call.empty())
        throw std::invalid_argument("no call " + fault.call);
}

bool fired()
{
    return has_fired;
}

std::map<std::string, uint64_t> counts()
{
    std::map<std::string, uint64_t> all;
    for (int i = 0; i < CALLS; i++)
        all[calls[(size_t)i].name] = made[i];
    return all;
}

Window::Window(const char *what)
{
    window = what;
}

Window::~Window()
{
    window = nullptr;
}

std::string error_name(int error)
{
    return error == SHORT ? "SHORT" : strerrorname_np(error);
}

int error_named(const std::string &name)
{
    for (const Call &call : calls)
        for (int error : call.errors)
            if (name == error_name(error))
                return error;
    throw std::invalid_argument("no error " + name);
}

} // namespace faults

using namespace faults;

extern "C" {

#define CALL(name, result, parameters, arguments, failure, ...)                                    \
    result __real_##name parameters;                                                               \
    result __wrap_##name parameters                                                                \
    {                                                                                              \
        return fails(CALL_##name) ? failure : __real_##name arguments;                             \
    }
#define CALL_BY_HAND(...)
#include "faults/calls.def"

int __real_open(const char *path, int flags, mode_t mode);
int __real_close(int fd);
int __real_fstatfs(int fd, struct statfs *fs);
int __real_fallocate(int fd, int mode, off_t from, off_t size);
ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t at);

int __wrap_open(const char *path, int flags, mode_t mode)
{
    if (fails(CALL_open))
        return -1;
    if (the_place.old && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return __real_open(path, flags, mode);
}

// Linux closes the descriptor whatever it then says.
int __wrap_close(int fd)
{
    bool failed = fails(CALL_close);
    int result = __real_close(fd);
    if (!failed)
        return result;
    errno = armed.error;
    return -1;
}

int __wrap_fstatfs(int fd, struct statfs *fs)
{
    if (fails(CALL_fstatfs))
        return -1;
    int result = __real_fstatfs(fd, fs);
    if (the_place.ordinary)
        fs->f_type = EXT4_SUPER_MAGIC;
    return result;
}

int __wrap_fallocate(int fd, int mode, off_t from, off_t size)
{
    if (fails(CALL_fallocate))
        return -1;
    if (the_place.old) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return __real_fallocate(fd, mode, from, size);
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t at)
{
    if (!fails(CALL_pwrite))
        return __real_pwrite(fd, bytes, size, at);
    return armed.error == SHORT ? __real_pwrite(fd, bytes, size / 2, at) : -1;
}

} // extern "C"
