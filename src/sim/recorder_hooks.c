/* The library's calls come to the recorder here: libpm-sim.so is linked with --wrap for each function
 * below. */
#define _GNU_SOURCE
#include "allocator/allocator.h"
#include "sim/recorder.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Declare a function and its replacement, with the type that its header declares. */
#define WRAPPED(name) __typeof__(name) __real_##name, __wrap_##name

/* ---- persistent memory, or what stands in for it --------------------------------------------- */

static void event(const struct medium *m, enum stream_event event, const void *address, size_t size)
{
    recorder_event(m->fd, event, (uint64_t)((const char *)address - m->file), size);
}

static void write_back(struct medium *m, const void *address, size_t size)
{
    event(m, EVENT_WRITE_BACK, address, size);
}

static int publish(struct medium *m, const void *address, size_t size)
{
    event(m, EVENT_WRITE_BACK, address, size);
    return 0;
}

static int copy(struct medium *m, void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
    event(m, EVENT_COPY, to, size);
    return 0;
}

static int fence(struct medium *m)
{
    m->counts.fences++;
    recorder_event(m->fd, EVENT_FENCE, 0, 0);
    return 0;
}

static int sync_length(struct medium *m)
{
    recorder_event(m->fd, EVENT_SYNC, 0, 0);
    return 0;
}

static const struct medium_ops recorded_pmem = {"pmem", true,  write_back, publish,
                                                copy,   fence, fence,      sync_length};

/* ---- containers ------------------------------------------------------------------------------ */

WRAPPED(container_open);
WRAPPED(container_delete);

int __wrap_container_open(struct container *c, const char *path,
                          const struct container_options *options)
{
    if (__real_container_open(c, path, options) != 0)
        return -1;
    if (!c->readonly)
        c->medium.ops = recorder_open(c) ? &recorded_pmem : &medium_cache;
    return 0;
}

int __wrap_container_delete(const char *path)
{
    char absolute[PATH_MAX];
    bool there = realpath(path, absolute);
    int result = __real_container_delete(path);
    if (result == 0 && there)
        recorder_deleted(absolute);
    return result;
}

/* ---- commits --------------------------------------------------------------------------------- */

WRAPPED(allocator_end_commit);
WRAPPED(txn_wait);

uint64_t __wrap_allocator_end_commit(struct allocator *a, int result)
{
    uint64_t committed = __real_allocator_end_commit(a, result);
    if (result == 0)
        recorder_note(a->c->fd, a->c->medium.ops->power_safe ? STREAM_COMMITTED : STREAM_UNSAFE,
                      committed);
    return committed;
}

int __wrap_txn_wait(struct txn *t, uint64_t epoch)
{
    int result = __real_txn_wait(t, epoch);
    if (result == 0)
        recorder_note(t->c->fd, STREAM_DURABLE, epoch);
    return result;
}

/* ---- system calls ---------------------------------------------------------------------------- */

WRAPPED(ftruncate);
WRAPPED(fallocate);
WRAPPED(pwrite);
WRAPPED(fsync);
WRAPPED(fdatasync);
WRAPPED(close);

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    ssize_t n = __real_pwrite(fd, bytes, size, offset);
    if (n > 0)
        recorder_event(fd, EVENT_WRITE, (uint64_t)offset, (uint64_t)n);
    return n;
}

/* Do not sync: the tool decides which writes are durable, and waiting for the disk would only take time. */
int __wrap_fdatasync(int fd)
{
    if (!recorder_has(fd))
        return __real_fdatasync(fd);
    recorder_event(fd, EVENT_SYNC, 0, 0);
    return 0;
}

int __wrap_fsync(int fd)
{
    return recorder_has(fd) ? __wrap_fdatasync(fd) : __real_fsync(fd);
}

int __wrap_ftruncate(int fd, off_t size)
{
    int result = __real_ftruncate(fd, size);
    if (result == 0)
        recorder_event(fd, EVENT_RESIZE, 0, (uint64_t)size);
    return result;
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t size)
{
    int result = __real_fallocate(fd, mode, offset, size);
    if (result == 0)
        recorder_event(fd, EVENT_RESIZE, 0, (uint64_t)(offset + size));
    return result;
}

int __wrap_close(int fd)
{
    recorder_forget(fd);
    return __real_close(fd);
}
