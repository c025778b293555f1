/*
 * For each container it has a mapping of the file, and a copy of what was seen last. Each takes 1 GiB of
 * addresses. An event takes the lock with signals masked. It compares, writes the units that differ, and
 * then writes the event itself, by writev(2).
 *
 * If something fails, the program ends with status 125: a recording with a gap would mislead the search.
 */
#define _GNU_SOURCE
#include "sim/recorder.h"

#include "base/bits.h"
#include "base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Contents are compared in blocks of this size. */
#define BLOCK 4096
/* One process may have this many containers open at once. */
#define FILES_MAX 64

struct file {
    int fd;        /* the library's descriptor */
    uint32_t unit; /* bytes of a unit: a line or a sector */
    uint64_t size; /* the present size */
    char *map;     /* the file, shared with everybody; NULL: this place is free */
    char *seen;    /* the file's contents at the last look */
};

static struct lock lock; /* guards the following variables, and the order of records */
static struct file files[FILES_MAX];
static int stream = -1, output = -1;
static pid_t process;

static _Noreturn void die(const char *what)
{
    dprintf(STDERR_FILENO, "pm crash: cannot record this program: %s: %s\n", what, strerror(errno));
    _exit(125);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put(struct stream_record r, const void *payload)
{
    if (stream < 0)
        return;
    r.process = (uint32_t)process;
    struct iovec parts[] = {{&r, sizeof r}, {(void *)payload, r.size}};
    for (int i = 0; i < 2;) {
        ssize_t n = writev(stream, parts + i, 2 - i);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            die("cannot write the recording");
        for (; i < 2 && (size_t)n >= parts[i].iov_len; i++)
            n -= (ssize_t)parts[i].iov_len;
        if (i < 2) {
            parts[i].iov_base = (char *)parts[i].iov_base + n;
            parts[i].iov_len -= (size_t)n;
        }
    }
}

static uint32_t number_of(const struct file *f)
{
    return (uint32_t)(f - files);
}

static void put_range(enum stream_kind kind, const struct file *f, uint64_t from, uint64_t to)
{
    put(
        (struct stream_record){
            .kind = kind, .file = number_of(f), .offset = from, .size = (uint32_t)(to - from)},
        f->seen + from);
}

static void put_event(const struct file *f, enum stream_event event, uint64_t offset,
                      uint64_t length)
{
    struct stat st = {0};
    if (output >= 0 && fstat(output, &st) != 0)
        die("cannot see what was printed");
    put((struct stream_record){.kind = STREAM_EVENT,
                               .file = number_of(f),
                               .value = event,
                               .offset = offset,
                               .length = length,
                               .output = (uint64_t)st.st_size},
        NULL);
}

/* ---- looking --------------------------------------------------------------------------------- */

static bool differs(const struct file *f, uint64_t at, uint64_t size)
{
    return memcmp(f->map + at, f->seen + at, size) != 0;
}

/* Other threads may be storing meanwhile. So each unit is read once, and recorded as it was read. */
static void look(struct file *f, uint64_t offset, uint64_t size)
{
    uint64_t end = min_u64(align_up(offset + size, f->unit), f->size);
    uint64_t run = UINT64_MAX; /* start of the changed units before `at` */
    for (uint64_t at = align_down(offset, f->unit); at < end; at += f->unit) {
        if (differs(f, at, f->unit)) {
            memcpy(f->seen + at, f->map + at, f->unit);
            run = min_u64(run, at);
        } else if (run != UINT64_MAX) {
            put_range(STREAM_CHANGE, f, run, at);
            run = UINT64_MAX;
        }
    }
    if (run != UINT64_MAX)
        put_range(STREAM_CHANGE, f, run, end);
}

static void look_everywhere(void)
{
    for (struct file *f = files; f < files + FILES_MAX; f++)
        for (uint64_t at = 0; f->map && at < f->size; at += BLOCK)
            if (differs(f, at, min_u64(BLOCK, f->size - at)))
                look(f, at, BLOCK);
}

/* If the file grows again, the part that is cut off reads as zeros. */
static void resize(struct file *f, uint64_t size)
{
    if (size > STREAM_FILE_MAX) {
        errno = EFBIG;
        die("a container beyond 1 GiB");
    }
    for (uint64_t at = size; at < f->size; at += f->unit) {
        static const char zeros[STREAM_UNIT_MAX];
        if (memcmp(f->seen + at, zeros, f->unit) == 0)
            continue;
        memset(f->seen + at, 0, f->unit);
        put_range(STREAM_CHANGE, f, at, at + f->unit);
    }
    f->size = size;
}

/* ---- files ----------------------------------------------------------------------------------- */

static struct file *find(int fd)
{
    for (struct file *f = files; f < files + FILES_MAX; f++)
        if (f->map && f->fd == fd)
            return f;
    return NULL;
}

static struct file *free_place(void)
{
    for (struct file *f = files; f < files + FILES_MAX; f++)
        if (!f->map)
            return f;
    errno = ENFILE;
    die("it has more than 64 containers open");
}

static void *reserve(int fd, int flags)
{
    void *p = mmap(NULL, STREAM_FILE_MAX, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);
    if (p == MAP_FAILED || madvise(p, STREAM_FILE_MAX, MADV_DONTFORK) != 0)
        die("no address space to look at a container");
    return p;
}

static void put_open(const struct file *f, const struct container *c, bool pmem)
{
    char path[PATH_MAX];
    if (!realpath(c->path, path))
        die(c->path);
    uint64_t flags = (c->created ? STREAM_CREATED : 0) | (pmem ? STREAM_PMEM : 0);
    put((struct stream_record){.kind = STREAM_OPEN,
                               .file = number_of(f),
                               .offset = f->size,
                               .value = flags,
                               .size = (uint32_t)strlen(path)},
        path);
    static const char zeros[BLOCK];
    for (uint64_t at = 0; at < f->size; at += BLOCK) {
        uint64_t end = min_u64(at + BLOCK, f->size);
        if (memcmp(f->seen + at, zeros, end - at) != 0)
            put_range(STREAM_CONTENTS, f, at, end);
    }
}

static bool is_pmem(const struct container *c)
{
    const char *forced = secure_getenv(STREAM_MEDIUM);
    return forced && forced[0] ? strcmp(forced, "pmem") == 0 : c->medium.ops->power_safe;
}

bool recorder_open(const struct container *c)
{
    sigset_t saved;
    struct stat st;
    bool pmem = is_pmem(c);
    if (fstat(c->fd, &st) != 0)
        die(c->path);
    /* If a file is cut short inside a unit, its size is rounded up to the unit's end. */
    uint64_t size = align_up((uint64_t)st.st_size, STREAM_UNIT_MAX);
    if (size > STREAM_FILE_MAX) {
        errno = EFBIG;
        die("a container beyond 1 GiB");
    }
    lock_acquire_masked(&lock, &saved);
    process = getpid(); /* also set in a child of fork(2), if the child is the first to use libpm */
    struct file *f = free_place();
    *f = (struct file){c->fd, pmem ? PM_LINE : STREAM_UNIT_MAX, size, reserve(c->fd, MAP_SHARED),
                       reserve(-1, MAP_PRIVATE | MAP_ANONYMOUS)};
    memcpy(f->seen, f->map, f->size);
    put_open(f, c, pmem);
    put_event(f, EVENT_OPEN, 0, 0);
    lock_release_masked(&lock, &saved);
    return pmem;
}

void recorder_forget(int fd)
{
    sigset_t saved;
    if (getpid() != process)
        return; /* a child of fork(2) closes inherited files; its lock may be held for ever */
    lock_acquire_masked(&lock, &saved);
    struct file *f = find(fd);
    if (f) {
        munmap(f->map, STREAM_FILE_MAX);
        munmap(f->seen, STREAM_FILE_MAX);
        f->map = NULL;
    }
    lock_release_masked(&lock, &saved);
}

bool recorder_has(int fd)
{
    sigset_t saved;
    lock_acquire_masked(&lock, &saved);
    bool has = find(fd);
    lock_release_masked(&lock, &saved);
    return has;
}

/* ---- events ---------------------------------------------------------------------------------- */

void recorder_event(int fd, enum stream_event event, uint64_t offset, uint64_t length)
{
    sigset_t saved;
    int error = errno;
    lock_acquire_masked(&lock, &saved);
    struct file *f = find(fd);
    if (f && (event != EVENT_RESIZE || length != f->size)) {
        if (event == EVENT_RESIZE)
            resize(f, length);
        else if (event == EVENT_FENCE || event == EVENT_SYNC)
            look_everywhere();
        else
            look(f, offset, length);
        put_event(f, event, offset, length);
    }
    lock_release_masked(&lock, &saved);
    errno = error;
}

void recorder_note(int fd, enum stream_kind kind, uint64_t epoch)
{
    sigset_t saved;
    lock_acquire_masked(&lock, &saved);
    struct file *f = find(fd);
    if (f)
        put((struct stream_record){.kind = kind, .file = number_of(f), .value = epoch}, NULL);
    lock_release_masked(&lock, &saved);
}

void recorder_deleted(const char *path)
{
    sigset_t saved;
    lock_acquire_masked(&lock, &saved);
    put((struct stream_record){.kind = STREAM_DELETED, .size = (uint32_t)strlen(path)}, path);
    lock_release_masked(&lock, &saved);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* Open a file with a descriptor above the numbers that programs like to choose themselves. */
static int open_high(const char *directory, const char *name, int flags)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, flags | O_CLOEXEC);
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 200);
    if (high < 0)
        die(path);
    close(fd);
    return high;
}

__attribute__((constructor)) static void start(void)
{
    const char *directory = secure_getenv(STREAM_DIRECTORY);
    if (!directory)
        return;
    process = getpid();
    stream = open_high(directory, STREAM_FILE, O_WRONLY | O_APPEND);
    output = open_high(directory, STREAM_OUTPUT, O_RDONLY);
    put((struct stream_record){.kind = STREAM_START}, NULL);
    /* Line-buffered, as on a terminal: a printed line is known before the next event. */
    setvbuf(stdout, NULL, _IOLBF, 0);
}
