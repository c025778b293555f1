#define _GNU_SOURCE
#include "failing.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* FAILING(name, result, parameters, arguments, what it returns when it fails) */
#define ALL_CALLS                                                                                  \
    FAILING(mmap, void *, (void *at, size_t size, int prot, int flags, int fd, off_t from),        \
            (at, size, prot, flags, fd, from), MAP_FAILED)                                         \
    FAILING(madvise, int, (void *at, size_t size, int advice), (at, size, advice), -1)             \
    FAILING(calloc, void *, (size_t count, size_t size), (count, size), NULL)                      \
    FAILING(realloc, void *, (void *p, size_t size), (p, size), NULL)                              \
    FAILING(open, int, (const char *path, int flags, mode_t mode), (path, flags, mode), -1)        \
    FAILING(opendir, DIR *, (const char *path), (path), NULL)                                      \
    FAILING(read, ssize_t, (int fd, void *to, size_t size), (fd, to, size), -1)                    \
    FAILING(stat, int, (const char *path, struct stat *st), (path, st), -1)                        \
    FAILING(pthread_key_create, int, (pthread_key_t * key, void (*destroy)(void *)),               \
            (key, destroy), ENOMEM)                                                                \
    FAILING(pthread_setspecific, int, (pthread_key_t key, const void *value), (key, value),        \
            ENOMEM)                                                                                \
    FAILING(pthread_getattr_np, int, (pthread_t thread, pthread_attr_t * attributes),              \
            (thread, attributes), ENOMEM)

enum {
#define FAILING(name, ...) CALL_##name,
    ALL_CALLS
#undef FAILING
        CALLS
};

static const char *const names[] = {
#define FAILING(name, ...) #name,
    ALL_CALLS
#undef FAILING
};

static bool is_open;
static unsigned failing = CALLS;
static uint64_t left; /* calls of it until one fails */
static bool throughout, failed;

void set_window(bool open)
{
    is_open = open;
    throughout = throughout && !failed;
}

bool has_failed(void)
{
    return failed;
}

static bool fails(unsigned call)
{
    if (!is_open || call != failing)
        return false;
    if (left > 0) {
        left--;
        return false;
    }
    if (failed && !throughout)
        return false;
    errno = ENOMEM;
    return failed = true;
}

#define FAILING(name, result, parameters, arguments, failure)                                      \
    result __real_##name parameters;                                                               \
    result __wrap_##name parameters;                                                               \
    result __wrap_##name parameters                                                                \
    {                                                                                              \
        return fails(CALL_##name) ? failure : __real_##name arguments;                             \
    }
ALL_CALLS
#undef FAILING

const char *call_name(unsigned call)
{
    return call < CALLS ? names[call] : NULL;
}

void fail(unsigned call, uint64_t after, bool others)
{
    failing = call;
    left = after;
    throughout = others;
}

int foreign_call(int (*function)(void *), void *argument)
{
    int result = function(argument);
    __asm__ volatile(""); /* else this function's frame would be that one's */
    return result;
}
