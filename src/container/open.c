/*
 * Opening: find the file, lock it, judge its header, take its place in the arena, map home. The log is
 * the business of the transaction layer, between container_open() and container_map_rest().
 */
#define _GNU_SOURCE
#include "container/container.h"

#include "base/error.h"
#include "container/create.h"
#include "container/descriptor.h"
#include "container/file_lock.h"
#include "container/header.h"
#include "container/identity.h"
#include "container/new_file.h"
#include "container/place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* -1; errno stays. */
static int close_after_error(int fd)
{
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Open and lock the file now at `path`; create it if the options say so. */
static int open_locked(const char *path, const struct container_options *options, bool *created)
{
    enum { ATTEMPTS = 16 }; /* other processes may create and delete it meanwhile */
    *created = false;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        int access = options->readonly ? O_RDONLY : O_RDWR;
        int fd =
            descriptor_of_its_own(TEMP_FAILURE_RETRY(open(path, access | O_CLOEXEC | O_NONBLOCK)));
        if (fd < 0 && errno == ENOENT && options->create && !options->readonly) {
            fd = container_create(path, options);
            if (fd >= 0 || errno != EEXIST) { /* else another process was faster: open its file */
                *created = fd >= 0;
                return fd;
            }
            continue;
        }
        if (fd < 0)
            return pm__fail_system(errno, "%s: cannot open", path);
        struct stat st;
        if (fstat(fd, &st) != 0) {
            pm__fail_system(errno, "%s: cannot read its status", path);
            return close_after_error(fd);
        }
        if (!S_ISREG(st.st_mode)) {
            pm__fail(EBADMSG, "%s: not a regular file", path);
            return close_after_error(fd);
        }
        if (options->create && options->exclusive) {
            pm__fail(EEXIST, "%s: exists already", path);
            return close_after_error(fd);
        }
        if (file_lock(fd, path, options->readonly) != 0)
            return close_after_error(fd);
        if (file_is_at(fd, path))
            return fd;
        close(fd); /* deleted, or replaced, between open and lock */
    }
    return pm__fail(ENOENT, "%s: comes and goes, or is a symbolic link to nothing", path);
}

/* Check that nobody else may write the file. The check uses the open file, so nobody can exchange it
 * meanwhile. If the file has an ACL, the group's bits are the most that the ACL allows to anybody but the
 * owner. */
static int check_owner(const struct container *c, const struct stat *st)
{
    if (st->st_uid != geteuid())
        return pm__fail(EPERM,
                        "%s: owned by user %u, and this process runs as user %u, which "
                        "options.check_owner refuses; chown it if you trust what is in it",
                        c->path, (unsigned)st->st_uid, (unsigned)geteuid());
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return pm__fail(EPERM,
                        "%s: has mode %04o, so others than its owner may write it, which "
                        "options.check_owner refuses; chmod go-w if you trust what is in it, and "
                        "have options.mode or the umask create it so",
                        c->path, (unsigned)st->st_mode & 07777);
    return 0;
}

/* A copy may be sparse; backend/blocks.c says why a container may not be. But a few forged bytes can
 * claim 4 TiB, and must not fill the disk. */
static int fill_holes(struct container *c, const struct stat *st, uint64_t holes_max)
{
    enum { BLOCK = 512 };
    uint64_t size = min_u64((uint64_t)st->st_size, c->is_log ? LOG_FILE_MAX : c->header.max_size);
    uint64_t present = (uint64_t)st->st_blocks * BLOCK, behind = (uint64_t)st->st_size - size;
    present -= min_u64(present, behind); /* counts as if all bytes behind were there */
    if (present >= size)
        return 0;
    if (size - present > holes_max)
        return pm__fail(
            EFBIG,
            "%s: %" PRIu64 " of its %" PRIu64 " bytes are holes, as in a sparse copy, and "
            "options.holes_max lets pm_open() fill %" PRIu64 "; if you trust the file raise "
            "holes_max, or copy it with cp --sparse=never; PM_READONLY fills none",
            c->path, size - present, size, holes_max);
    int error = file_fill(c->fd, size);
    if (error != 0)
        return pm__fail_system(-error, "%s: no space for the holes of this sparse copy", c->path);
    c->filled = size;
    return 0;
}

static int check_file(struct container *c, const struct container_options *options)
{
    struct stat st;
    if (fstat(c->fd, &st) != 0)
        return pm__fail_system(errno, "%s: cannot read its status", c->path);
    if ((uint64_t)sysconf(_SC_PAGESIZE) != PM_PAGE)
        return pm__fail(ENOTSUP, "%s: this system has pages of %ld bytes; libpm needs %" PRIu64,
                        c->path, sysconf(_SC_PAGESIZE), PM_PAGE);
    if (options->check_owner && check_owner(c, &st) != 0)
        return -1;
    uint64_t damaged;
    if (header_read(c->fd, c->path, &c->header, &damaged) != 0)
        return -1;
    if (identity_check(c, options->accept_copy) != 0)
        return -1;
    const struct format_header *h = &c->header;
    c->is_log = h->version >= FORMAT_LOG_OLDEST;
    uint64_t least = c->is_log ? log_chunk_size(h->segment_size)
                               : (h->meta_segments + 2) * h->segment_size;
    if ((uint64_t)st.st_size < least)
        return pm__fail_at(c->path, st.st_size, EBADMSG,
                           "truncated, a container of this shape has at least %" PRIu64
                           " bytes; restore "
                           "the file from a backup",
                           least);
    char layout[sizeof h->layout];
    memcpy(layout, h->layout, sizeof layout);
    pm__make_printable(layout);
    if (options->layout && strcmp(options->layout, h->layout) != 0)
        return pm__fail(EMEDIUMTYPE,
                        "%s: offset %zu: holds data of layout \"%s\", not \"%s\"; open it with "
                        "the program that wrote it",
                        c->path, offsetof(struct format_header, layout), layout, options->layout);
    if (!options->readonly && fill_holes(c, &st, options->holes_max) != 0)
        return -1;
    if (damaged != UINT64_MAX && !options->readonly) {
        int error = header_write(c->fd, h, damaged);
        if (error == 0)
            error = file_sync(c->fd);
        if (error != 0)
            return pm__fail_system_at(c->path, damaged, -error,
                                      "cannot mend this copy of the header");
    }
    c->max_size = h->max_size;
    c->segment_size = h->segment_size;
    c->segment_shift = (uint32_t)__builtin_ctzll(h->segment_size);
    c->segments_max = (uint32_t)(h->max_size / h->segment_size);
    c->granularity = h->granularity;
    c->meta_segments = h->meta_segments;
    c->seed = h->id[0] ^ h->id[1];
    c->chunk_size = log_chunk_size(h->segment_size);
    c->chunks = (uint32_t)(min_u64((uint64_t)st.st_size, LOG_FILE_MAX) / c->chunk_size);
    c->log_max = max_u64(log_file_max(h->max_size), c->chunks * c->chunk_size);
    uint64_t segments = c->is_log ? h->meta_segments : (uint64_t)st.st_size / h->segment_size;
    atomic_store(&c->segments, (uint32_t)min_u64(segments, c->segments_max));
    return place_read(c);
}

/*
 * Map all of a container's space privately, including the space for growth, and protect it. Before a
 * private mapping is protected, store to it once. Then all its pieces share one anon_vma. Later
 * protecting single pages cuts the mapping into pieces, and the kernel can join only pieces that share
 * an anon_vma.
 */
static int map_private(struct container *c, char *address)
{
    int error = map_file(MAP_COPY, address, c->max_size, c->home_fd, 0, false);
    if (error == 0) {
        *(volatile char *)address = *(volatile char *)address;
        error = mprotect(address, c->max_size, PROT_NONE) == 0 ? 0 : -errno;
    }
    return error;
}

/* Open [offset, offset + size) of a private mapping: there is a file behind it now. [handler] */
static int unveil(char *address, uint64_t offset, uint64_t size, int protection)
{
    return mprotect(address + offset, size, protection) == 0 ? 0 : -errno;
}

static int map_home_from(struct container *c, uint64_t offset, uint64_t size)
{
    return c->medium.queue
               ? unveil(c->home, offset, size, PROT_READ | PROT_WRITE)
               : map_file(MAP_HOME_SHARED, c->home + offset, size, c->home_fd, offset,
                          c->synchronous && !c->is_log);
}

/* Map the file's bytes from `offset` on into shadow and view. [handler] */
static int map_shadow_and_view(struct container *c, uint64_t offset, uint64_t size)
{
    int error = map_file(MAP_COPY, c->shadow + offset, size, c->home_fd, offset, false);
    if (error == 0 && !c->translated)
        error = c->private_view ? unveil(c->base, offset, size, PROT_READ)
                                : map_file(MAP_VIEW_SHARED, c->base + offset, size, c->fd, offset,
                                           c->synchronous);
    if (error == 0)
        error = container_watch(c, c->shadow + offset, size);
    if (error == 0 && !c->translated)
        error = container_watch(c, c->base + offset, size);
    return error;
}

static char *reserve(struct container *c, uint64_t size)
{
    void *p = map_reserve(NULL, size);
    if (p != MAP_FAILED)
        return p;
    pm__fail_system(ENOMEM, "%s: cannot reserve %" PRIu64 " bytes of address space", c->path, size);
    return NULL;
}

/*
 * If a process died while it grew the file, the new length may be in the cache only. Rounds make lines
 * durable, not lengths. So sync the length before anything can refer to the new space. (On an ordinary
 * file recovery ends by an fdatasync(2), which syncs the length too.)
 */
static int make_length_durable(struct container *c)
{
    int error = c->readonly ? 0 : medium_sync_length(&c->medium);
    return error == 0 ? 0 : pm__fail_system(-error, "%s: cannot make its length durable", c->path);
}

/* If the container lies elsewhere, or has a log for a home, libpm makes a file in memory and writes to it.
 * Ask first whether the limit of file sizes allows `bytes`: beyond the limit such a write is a signal. */
static bool is_beyond_limit(uint64_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes;
}

/* Give home memory up to its `to`-th byte, from `from` on. [handler] -errno */
static int make_memory(struct container *c, uint64_t from, uint64_t to)
{
    if (is_beyond_limit(to))
        return -EFBIG;
    if (TEMP_FAILURE_RETRY(ftruncate(c->home_fd, (off_t)to)) != 0)
        return -errno;
    enum map_kind kind = c->watcher >= 0 ? MAP_HOME_ABSENT : MAP_HOME_SHARED;
    int error = map_file(kind, c->home + from, to - from, c->home_fd, from, false);
    return error == 0 ? container_watch(c, c->home + from, to - from) : error;
}

/* Home's memory is to be bounded. If the kernel does not let us, home is whole, and the program is told. */
static void open_watcher(struct container *c)
{
    c->watcher = descriptor_of_its_own(absent_open());
    if (c->watcher >= 0)
        return;
    (void)pm__fail_because(
        -c->watcher, strerror(-c->watcher),
        "%s: options.private_max cannot bound what memory has of the last commit, because "
        "userfaultfd(2) fails: allow it, or leave private_max 0",
        c->path);
    pm__warn();
    c->watcher = -1;
}

/* Log containers: home is memory, and nothing is in it but the words that a new container has. The file is
 * mapped besides. */
static int map_log(struct container *c, bool bounded)
{
    if (!(c->home = reserve(c, c->max_size)) ||
        !(c->shadow = c->readonly ? c->home : reserve(c, c->max_size)) ||
        !(c->file = reserve(c, container_file_max(c))))
        return -1;
    c->private_view = true;
    c->home_fd = descriptor_of_its_own(memfd_create("libpm home", MFD_CLOEXEC));
    if (bounded)
        open_watcher(c);
    int error = c->home_fd < 0 ? -errno : 0;
    if (error == 0 && c->watcher >= 0) /* the metadata is there from the beginning */
        error = file_allocate(c->home_fd, 0, container_bytes(c));
    if (error == 0)
        error = make_memory(c, 0, container_bytes(c));
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot map room in memory for its contents", c->path);
    error = map_file(c->readonly ? MAP_COPY : MAP_HOME_SHARED, c->file, container_file_bytes(c), c->fd, 0,
                     c->synchronous);
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot map", c->path);
    for (uint32_t i = 0; i < c->meta_segments; i++)
        home_table(c)[i] = segment_word(SEGMENT_META, 0);
    return 0;
}

static int map_one_for_all(struct container *c)
{
    enum map_kind kind = c->readonly ? MAP_COPY : MAP_HOME_SHARED;
    if (c->readonly) {
        c->home = c->shadow = c->translated ? reserve(c, c->max_size) : c->base;
        if (!c->home)
            return -1;
    } else if (!(c->home = reserve(c, c->max_size)) || !(c->shadow = reserve(c, c->max_size))) {
        return -1;
    }
    c->file = c->home;
    int error = map_file(kind, c->home, container_bytes(c), c->fd, 0, c->synchronous);
    return error == 0 ? 0 : pm__fail_system(-error, "%s: cannot map", c->path);
}

static int map_home(struct container *c, const struct container_options *options)
{
    if (place_take(c, options) != 0)
        return -1;
    /* The last container here may have failed to give the addresses back. */
    int error = map_reserve_again(c->base, c->max_size);
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot map", c->path);
    c->home_fd = c->fd;
    c->synchronous = !c->readonly && map_is_synchronous(c->fd);
    if ((c->is_log ? map_log(c, options->bounded) : map_one_for_all(c)) != 0)
        return -1;
    c->medium.fd = c->readonly ? -1 : c->fd;
    c->medium.file = c->file;
    c->medium.ops = c->readonly ? &medium_cache /* a private copy: nothing to make durable */
                                : medium_of(c->fd, c->file, container_file_bytes(c), c->synchronous);
    if (!c->medium.ops)
        return pm__fail_system(errno, "%s: cannot tell what file system it is on", c->path);
    return make_length_durable(c);
}

int container_make_private(struct container *c)
{
    int error = 0;
    c->private_view = true;
    if (!c->medium.ops->power_safe && c->is_log) {
        c->medium.ops = &medium_append;
        /* Words that are stored here are written by write(2), which can fail. */
        error = map_file(MAP_COPY, c->file, c->chunk_size, c->fd, 0, false);
    } else if (!c->medium.ops->power_safe) {
        error = map_private(c, c->home);
        if (error == 0)
            error = queue_create(&c->medium, &c->tables, c->max_size);
        if (error == 0)
            error = map_home_from(c, 0, container_bytes(c));
    }
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot map", c->path);
    return 0;
}

int container_open(struct container *c, const char *path, const struct container_options *options)
{
    *c = (struct container){.fd = -1,
                            .home_fd = -1,
                            .view_fd = -1,
                            .watcher = -1,
                            .readonly = options->readonly,
                            .vouched = options->movable,
                            .checkpoint_bytes = options->checkpoint_bytes,
                            .medium.syncing = PTHREAD_MUTEX_INITIALIZER,
                            .path = strdup(path)};
    if (!c->path)
        return pm__fail_system(ENOMEM, "%s: no memory to open it", path);
    if ((c->fd = open_locked(path, options, &c->created)) < 0 || check_file(c, options) != 0 ||
        map_home(c, options) != 0 || (!c->readonly && name_resolve(c, options->path_error) != 0)) {
        int error = errno;
        container_discard(c);
        errno = error;
        return -1;
    }
    if (c->created && options->initial_size && !c->is_log)
        map_populate(&c->medium, c->home, container_bytes(c)); /* as for each part by which it grows */
    return 0;
}

/* Make memory for the view, without any page yet. It grows by the pages that are written. No other page
 * is touched. */
static int map_memory(struct container *c)
{
    c->view_fd = descriptor_of_its_own(memfd_create("libpm view", MFD_CLOEXEC));
    if (c->view_fd < 0)
        return -errno;
    return map_file(MAP_VIEW_MEMORY, c->base, c->max_size, c->view_fd, 0, false);
}

int container_map_rest(struct container *c)
{
    if (c->translated && is_beyond_limit(container_bytes(c)))
        return pm__fail_because(
            EFBIG, "File too large; raise the limit of file sizes: ulimit -f unlimited",
            "%s: cannot map: its pointers mean other addresses, so its view is a file in "
            "memory, of up to %" PRIu64 " bytes",
            c->path, container_bytes(c));
    int error = c->translated ? map_memory(c) : c->private_view ? map_private(c, c->base) : 0;
    if (error == 0 && !c->readonly)
        error = map_shadow_and_view(c, 0, container_bytes(c));
    else if (error == 0 && !c->translated)
        error = unveil(c->base, 0, container_bytes(c), PROT_READ);
    if (error == 0 && c->readonly && !c->translated)
        error = container_watch(c, c->base, container_bytes(c));
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot map", c->path);
    return 0;
}

void container_discard(struct container *c)
{
    const char *path = c->name.path ? c->name.path : c->path; /* resolved, unless that failed */
    bool is_there = file_is_at(c->fd, path); /* or somebody has put another file there */
    if (c->created && is_there)
        unlink(path);
    else if (c->filled > 0) /* no new file has holes */
        file_punch_unwritten(c->fd, c->filled);
    container_close(c);
}

void container_close(struct container *c)
{
    if (c->base) {
        map_reserve_again(c->base, c->max_size);
        arena_give_back((uintptr_t)c->base, c->max_size);
    }
    if (c->file && c->file != c->home)
        munmap(c->file, container_file_max(c));
    if (c->home && c->home != c->base)
        munmap(c->home, c->max_size);
    if (c->shadow && c->shadow != c->home)
        munmap(c->shadow, c->max_size);
    queue_destroy(&c->medium);
    tables_close(&c->tables);
    if (c->view_fd >= 0)
        close(c->view_fd);
    if (c->watcher >= 0)
        close(c->watcher);
    if (c->home_fd >= 0 && c->home_fd != c->fd)
        close(c->home_fd);
    if (c->fd >= 0) {
        file_unlock(c->fd);
        close(c->fd);
    }
    free(c->name.path);
    free(c->path);
    *c = (struct container){.fd = -1, .home_fd = -1, .view_fd = -1, .watcher = -1};
}

/* Add `size` bytes to the file, which ends at `from`, and map them. On failure they are gone. */
static int append(struct container *c, uint64_t from, uint64_t size)
{
    if (c->is_log) {
        int error = make_memory(c, from, from + size);
        return error == 0 ? map_shadow_and_view(c, from, size) : error;
    }
    int error = file_allocate(c->fd, from, from + size);
    if (error != 0)
        return error;
    /* Before anything can refer to the new space: nothing orders the new length and the next round's
     * writes. */
    error = medium_sync_length(&c->medium);
    if (error == 0)
        error = map_home_from(c, from, size);
    if (error == 0)
        error = map_shadow_and_view(c, from, size);
    if (error != 0)
        (void)file_give_back(c->fd, from);
    return error;
}

/* Append `wanted` units at `from`, or if there is not so much room then `count`. The number, or -errno. */
static int append_some(struct container *c, int (*append)(struct container *, uint64_t, uint64_t),
                       uint64_t from, uint64_t unit, uint32_t count, uint32_t wanted)
{
    int error = append(c, from, wanted * unit);
    if ((error == -ENOSPC || error == -EDQUOT || error == -EFBIG) && wanted > count) {
        wanted = count;
        error = append(c, from, wanted * unit);
    }
    if (error != 0)
        return error;
    atomic_store_explicit(&c->name.due, true, memory_order_relaxed);
    return (int)wanted;
}

int container_grow(struct container *c, uint32_t count, uint32_t wanted)
{
    uint32_t segments = atomic_load(&c->segments), room = c->segments_max - segments;
    if (count > room)
        return container_exceeds_max(c);
    atomic_store_explicit(&c->at_max, false, memory_order_relaxed);
    uint64_t from = container_bytes(c);
    int grown = append_some(c, append, from, c->segment_size, count, (uint32_t)min_u64(wanted, room));
    if (grown < 0)
        return grown;
    if (!c->is_log)
        map_populate(&c->medium, c->home + from, (uint64_t)grown << c->segment_shift);
    atomic_store_explicit(&c->segments, segments + (uint32_t)grown, memory_order_release);
    return grown;
}

int container_grow_home(struct container *c, uint32_t count)
{
    uint32_t segments = atomic_load(&c->segments);
    uint64_t from = container_bytes(c), size = (uint64_t)count << c->segment_shift;
    int error = make_memory(c, from, from + size);
    if (error == 0)
        atomic_store(&c->segments, segments + count);
    return error;
}

/* Add chunks at the file's end, and map them. On failure they are gone. */
static int append_chunks(struct container *c, uint64_t from, uint64_t size)
{
    int error =
        from + size <= container_file_max(c) ? file_allocate(c->fd, from, from + size) : -EFBIG;
    if (error != 0)
        return error;
    error = medium_sync_length(&c->medium);
    if (error == 0)
        error = map_file(MAP_HOME_SHARED, c->file + from, size, c->fd, from, c->synchronous);
    if (error != 0)
        (void)file_give_back(c->fd, from);
    return error;
}

int container_grow_chunks(struct container *c, uint32_t count, uint32_t wanted)
{
    uint64_t from = container_file_bytes(c);
    int grown = append_some(c, append_chunks, from, c->chunk_size, count, wanted);
    if (grown < 0)
        return grown;
    map_populate(&c->medium, c->file + from, (uint32_t)grown * c->chunk_size);
    c->chunks += (uint32_t)grown;
    return grown;
}

bool container_has_room(const struct container *c, uint32_t count)
{
    uint64_t bytes = count * c->chunk_size, end = container_file_bytes(c) + bytes;
    struct statfs fs;
    if (end > container_file_max(c) || is_beyond_limit(end))
        return false;
    bool tells = TEMP_FAILURE_RETRY(fstatfs(c->fd, &fs)) == 0 && fs.f_blocks > 0;
    if (!tells) /* as a tmpfs without a limit */
        return true;
    uint64_t blocks = geteuid() == 0 ? fs.f_bfree : fs.f_bavail; /* some may be reserved for root */
    return blocks >= divide_up(bytes, (uint64_t)fs.f_frsize);
}

const char *container_reason(struct container *c, int error, char text[REASON_TEXT])
{
    if (error != ENOSPC)
        return NULL;
    if (!atomic_exchange(&c->at_max, false))
        return "No space left on device; free objects and commit, or free disk space";
    snprintf(text, REASON_TEXT,
             "the container's max_size of %" PRIu64
             " bytes leaves no room; free objects and commit, or "
             "create it with a larger max_size",
             c->max_size);
    return text;
}

int container_damaged(const struct container *c, uint64_t offset, const char *what)
{
    return pm__fail_at(c->path, offset, EBADMSG, "%s; restore the file from a backup", what);
}

int container_delete(const char *path)
{
    struct container_options options = {.create = false};
    bool created;
    int fd = open_locked(path, &options, &created);
    if (fd < 0)
        return -1;
    struct format_header header;
    uint64_t damaged;
    char *file = NULL; /* without symbolic links, for they stay */
    int result = header_read(fd, path, &header, &damaged), directory = -1;
    if (result == 0 && !(file = realpath(path, NULL)))
        result = pm__fail_system(errno, "%s: cannot resolve", path);
    if (result == 0)
        result = directory = directory_open(file); /* before it is too late to fail */
    if (result >= 0 && unlink(file) != 0)
        result = pm__fail_system(errno, "%s: cannot delete", path);
    if (result >= 0) {
        result = directory_sync(path, directory);
        directory = -1;
    }
    int error = errno;
    if (directory >= 0)
        close(directory);
    free(file);
    close(fd);
    errno = error;
    return result;
}
