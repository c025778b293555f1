/*
 * The backend: everything between libpm and the operating system's files and memory. The layers
 * above are plain logic over three things it offers:
 *
 *   medium   makes ranges of home durable: write back lines, copy past the cache, fence
 *   map      the one place where memory is mapped, so that every mapping gets MADV_DONTFORK
 *   file     allocation of blocks (never a sparse hole: a store must not meet SIGBUS)
 *
 * Functions marked [handler] are async-signal-safe and return a negative errno value on failure.
 */
#ifndef PM_BACKEND_H
#define PM_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a medium has done. Changed only under the container's page lock; but rounds and fences on a
 * file by who is syncing. */
struct medium_counts {
    uint64_t rounds;        /* batches ended by medium_fence() */
    uint64_t fences;        /* store fences executed */
    uint64_t lines_flushed; /* cache lines written back or carried home */
    uint64_t bytes_copied;  /* bytes copied past the cache, but for those carried home */
};

struct medium;
struct tables;
struct write_queue;

/* How one kind of memory becomes durable. All [handler]; those that can fail return -errno. */
struct medium_ops {
    const char *name;
    bool power_safe; /* what was written back before a fence survives power failure */
    void (*write_back)(struct medium *medium, const void *address, size_t size);
    int (*publish)(struct medium *medium, const void *address, size_t size);
    int (*copy)(struct medium *medium, void *to, const void *from, size_t size);
    int (*fence)(struct medium *medium);
    int (*settle)(struct medium *medium);
    int (*sync_length)(struct medium *medium);
};

struct medium {
    const struct medium_ops *ops;
    struct medium_counts counts;
    int fd;
    char *home;
    struct write_queue *queue; /* of medium_file only */
    int failed; /* of medium_file: -errno of the first sync that failed, 0 if none has. Every later
                   one fails too, for the kernel says it only once. Atomic */
};

static inline int medium_failed(const struct medium *medium)
{
    return __atomic_load_n(&medium->failed, __ATOMIC_ACQUIRE);
}

extern const struct medium_ops medium_pmem; /* cache-line write-back and sfence, by libpmem */
extern const struct medium_ops
    medium_file; /* private home, write(2), write-back queue, fdatasync */
extern const struct medium_ops medium_cache; /* page cache: stores survive the process only */

/* Which medium `fd`, mapped shared at `home`, is: medium_pmem, or medium_cache for an ordinary
 * file. `synchronous`: the mapping has MAP_SYNC. NULL with errno. */
const struct medium_ops *medium_of(int fd, const void *home, size_t size, bool synchronous);

/* Queue the lines of [address, address + size) for write-back: in this round, or on medium_file
 * whenever queue_write() gets to them. [handler] */
void medium_write_back(struct medium *medium, const void *address, size_t size);

/* As medium_write_back(), but always in this round, and these bytes only. [handler] -errno */
int medium_publish(struct medium *medium, const void *address, size_t size);

/* Copy past the cache; durable with the next fence. [handler] -errno: some of it may be there */
int medium_copy(struct medium *medium, void *to, const void *from, size_t size);

/* Bring home a line that the log has: past the cache, durable with the next fence; or on medium_file into
 * its copy, and queued for write-back. [handler] */
void medium_carry_line(struct medium *medium, void *to, const void *from);

/* End the round: when it returns 0, all that was queued for it is durable. [handler] -errno */
int medium_fence(struct medium *medium);

/*
 * The same for everything that was ever written back, the write-back queue included; and on
 * medium_cache too it waits for the file. For recovery and close. -errno
 */
int medium_settle(struct medium *medium);

/* Force the file's new length to the medium, where the next round needs it. [handler] -errno */
int medium_sync_length(struct medium *medium);

/* ---- the write-back queue of medium_file: see file.c ---------------------------------------- */

/*
 * Turn an ordinary file's medium into medium_file. Home must be mapped privately, at
 * `medium->home`, up to `max_size`. Its tables are taken from `tables`, which must outlive it. -errno
 */
int queue_create(struct medium *medium, struct tables *tables, uint64_t max_size);
void queue_destroy(struct medium *medium);

/* Home changes from now on belong to this epoch. */
void queue_set_epoch(struct medium *medium, uint64_t epoch);

/* Home was changed in place, in space that is free: remember that its page is a copy. */
void queue_touch(struct medium *medium, const void *address, size_t size);

/*
 * Write up to `pages` queued pages to the file, oldest first, but none that has changed after epoch
 * `durable`. Returns how many, or -errno.
 */
int64_t queue_write(struct medium *medium, uint64_t pages, uint64_t durable);

/* All changes up to this epoch are in the file (though perhaps not durable yet). Any thread. */
uint64_t queue_floor(const struct medium *medium);

uint64_t queue_pages(const struct medium *medium);

/* Whether the page at `address` is queued. */
bool queue_holds(const struct medium *medium, const void *address);

/* Give back the memory of private copies in [address, address + size), none of which is queued. */
void queue_forget(struct medium *medium, void *address, size_t size);

/*
 * Reserve `size` bytes of address space that nothing can touch; at `address` and nowhere else if
 * that is not NULL. MAP_FAILED with errno.
 */
void *map_reserve(void *address, size_t size);

/* Turn [address, address + size) back into untouchable reserved space. [handler] */
int map_reserve_again(void *address, size_t size);

/* Reserved space that may be used at once and costs memory only where it was written; it is never
 * locked (mlockall(2)). The same is true of those below. */
void *map_table(size_t size);

/* The same at an address, and nowhere else. -errno */
int map_table_at(void *address, size_t size);

/* Such tables, all given back at once. One thread at a time. */
struct tables {
    char *start;
    size_t size, taken;
};

int tables_open(struct tables *tables, size_t size); /* -errno */
void tables_close(struct tables *tables);            /* whether open or not */

/* The next, at the start of a page. There must be so much left. */
void *tables_take(struct tables *tables, size_t size);

/* Zeroed memory that a child of fork(2) has too: in the place of what was reserved, -errno; or
 * anywhere, NULL with errno. */
int map_inherited(void *address, size_t size);
void *map_inherited_table(size_t size);

/* Make a part of such a table zero, and give its memory back. -errno */
int map_clear_table(void *address, size_t size);

/* What a mapping of the container's file is for. */
enum map_kind {
    MAP_VIEW_SHARED, /* the application's: read-only until a page is opened */
    MAP_HOME_SHARED, /* the library's: writable */
    MAP_COPY,        /* private and writable: changes stay in this process */
    MAP_VIEW_MEMORY, /* the application's, of memory made for it: untouchable until a page is made */
};

/* Whether mappings of `fd` can have MAP_SYNC: DAX, where a fence is all that durability needs. */
bool map_is_synchronous(int fd);

/*
 * Map `size` bytes of `fd` from `offset` at `address`, inside reserved space; with MAP_SYNC where
 * `synchronous`. (Trying it here and falling back would leave a hole for a moment, into which
 * another thread could map something.) [handler]
 */
int map_file(enum map_kind kind, void *address, size_t size, int fd, uint64_t offset,
             bool synchronous);

/*
 * Enter the pages of a new, writable, shared mapping into the page table at once, instead of by one
 * minor fault a page when each is first stored to: a quarter of what a first store costs. A hint;
 * kernels before 5.14 ignore it. Makes every page dirty, so not for a medium with write-back.
 * [handler]
 */
void map_populate(const struct medium *medium, void *address, size_t size);

/* Write all of it, whatever interrupts. -errno: some of it may be there. [handler] */
int file_write(int fd, const void *from, size_t size, uint64_t offset);

/* fsync(2), whatever interrupts. -errno [handler] */
int file_sync(int fd);

/*
 * Allocate the blocks of [from, to), the file's end being at `from`. On failure the file is
 * as long as before. [handler] -errno
 */
int file_allocate(int fd, uint64_t from, uint64_t to);

/* Allocate the blocks that [0, size) of a file lacks. On failure it has the holes that it had. -errno */
int file_fill(int fd, uint64_t size);

/* Make a hole of all in [0, size) that nobody has written, as what was just filled. */
void file_punch_unwritten(int fd, uint64_t size);

/* Take back what lies beyond; if that fails, it stays unused. [handler] -errno */
int file_give_back(int fd, uint64_t from);

#endif
