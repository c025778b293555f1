/*
 * The backend: everything between libpm and the operating system's files and memory. It offers three
 * things, and the layers above are plain logic over them:
 *
 *     medium   makes ranges of home durable: write back lines, copy past the cache, fence
 *     map      the one place where memory is mapped, so that every mapping gets MADV_DONTFORK
 *     file     allocation of blocks (never a sparse hole: a store must not meet SIGBUS)
 *
 * Functions marked [handler] are async-signal-safe and return a negative errno value on failure.
 */
#ifndef PM_BACKEND_H
#define PM_BACKEND_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counters of a medium. Changed only under the container's page lock, with one exception: on a file the
 * thread that syncs changes rounds and fences. */
struct medium_counts {
    uint64_t rounds;        /* ended by medium_fence() or medium_settle() */
    uint64_t fences;        /* store fences executed */
    uint64_t lines_flushed; /* cache lines written back or carried home */
    uint64_t bytes_copied;  /* bytes copied past the cache, without the lines carried home */
};

struct medium;
struct tables;
struct write_queue;

/* How one kind of memory becomes durable. All [handler]; functions that can fail return -errno. */
struct medium_ops {
    const char *name;
    bool power_safe; /* lines written back before a fence survive power failure */
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
    char *file; /* where it is mapped */
    struct write_queue *queue; /* of medium_file only */
    pthread_mutex_t syncing; /* held for an fdatasync(2) */
    int failed; /* of a file: -errno of the first sync that failed, 0 if none has. Every later
                   sync fails too, because the kernel reports an error only once. Atomic */
};

static inline int medium_failed(const struct medium *medium)
{
    return __atomic_load_n(&medium->failed, __ATOMIC_ACQUIRE);
}

extern const struct medium_ops medium_pmem; /* cache-line write-back and sfence, by libpmem */
extern const struct medium_ops
    medium_file; /* private home, write(2), write-back queue, fdatasync */
extern const struct medium_ops medium_append; /* write(2) and fdatasync: the log engine's file */
extern const struct medium_ops medium_cache; /* page cache: stores survive the process only */

/* The medium of `fd`, mapped shared at `home`: medium_pmem, or medium_cache for an ordinary file.
 * `synchronous`: the mapping has MAP_SYNC. NULL with errno. */
const struct medium_ops *medium_of(int fd, const void *home, size_t size, bool synchronous);

/* Queue the lines of [address, address + size) for write-back in this round. On medium_file
 * queue_write() writes them in a later round. [handler] */
void medium_write_back(struct medium *medium, const void *address, size_t size);

/* As medium_write_back(), but always in this round, and these bytes only. [handler] -errno */
int medium_publish(struct medium *medium, const void *address, size_t size);

/*
 * For recovery: publish bytes that the file has already, but perhaps in the cache only. After a sync that
 * failed the kernel calls such pages clean, though the disk does not have them. So no later sync writes them.
 * -errno. See Rebello et al., "Can Applications Recover from fsync Failures?", USENIX ATC 2020.
 */
int medium_rewrite(struct medium *medium, const void *address, size_t size);

/* Store a word to the mapped file, and publish it. -errno */
int medium_publish_word(struct medium *medium, uint64_t *at, uint64_t word);

/* Copy past the cache; durable with the next fence. [handler] -errno: some of it may be there */
int medium_copy(struct medium *medium, void *to, const void *from, size_t size);

/* Bring home a line that the log has. On pmem it is copied past the cache, and durable with the next
 * fence. On medium_file it is copied into the private home, and queued for write-back. [handler] */
void medium_carry_line(struct medium *medium, void *to, const void *from);

/* End the round: when it returns 0, everything queued for the round is durable. [handler] -errno */
int medium_fence(struct medium *medium);

/*
 * Make everything durable that was ever written back, the write-back queue included. On medium_cache
 * too, this waits for the file. For recovery and close. -errno
 */
int medium_settle(struct medium *medium);

/* Force the file's new length to the medium, where the next round needs it. [handler] -errno */
int medium_sync_length(struct medium *medium);

/* ---- the write-back queue of medium_file: see file.c ---------------------------------------- */

/*
 * Turn an ordinary file's medium into medium_file. Home must be mapped privately, at
 * `medium->file`, up to `max_size`. Its tables are taken from `tables`, which must outlive it. -errno
 */
int queue_create(struct medium *medium, struct tables *tables, uint64_t max_size);
void queue_destroy(struct medium *medium);

/* From now on, changes to home belong to this epoch. */
void queue_set_epoch(struct medium *medium, uint64_t epoch);

/* Home was changed in place, in free space: remember that its page is a copy. */
void queue_touch(struct medium *medium, const void *address, size_t size);

/*
 * Write up to `pages` queued pages to the file, oldest first, but no page that has changed after epoch
 * `durable`. Returns the number of pages, or -errno.
 */
int64_t queue_write(struct medium *medium, uint64_t pages, uint64_t durable);

/* All changes up to this epoch are in the file (though perhaps not durable yet). Any thread. */
uint64_t queue_floor(const struct medium *medium);

uint64_t queue_pages(const struct medium *medium);

/* Whether the page at `address` is queued. */
bool queue_holds(const struct medium *medium, const void *address);

/* Give back the memory of private copies in [address, address + size). No page of it may be queued. */
void queue_forget(struct medium *medium, void *address, size_t size);

/*
 * Reserve `size` bytes of address space that nothing can touch. If `address` is not NULL: there, and
 * nowhere else. MAP_FAILED with errno.
 */
void *map_reserve(void *address, size_t size);

/* Turn [address, address + size) back into untouchable reserved space. [handler] */
int map_reserve_again(void *address, size_t size);

/* Reserve space that may be used at once, and costs memory only where it was written. It is never locked
 * (mlockall(2)). The same is true of the tables below. */
void *map_table(size_t size);

/* The same at an address, and nowhere else. -errno */
int map_table_at(void *address, size_t size);

/* Tables in one mapping, all given back at once. One thread at a time. */
struct tables {
    char *start;
    size_t size, taken;
};

int tables_open(struct tables *tables, size_t size); /* -errno */
void tables_close(struct tables *tables);            /* whether open or not */

/* Take the next `size` bytes, from the start of a page on. The caller makes sure that they are left. */
void *tables_take(struct tables *tables, size_t size);

/* Zeroed memory that a child of fork(2) has too. map_inherited() puts it in place of reserved space,
 * -errno. map_inherited_table() puts it anywhere, NULL with errno. */
int map_inherited(void *address, size_t size);
void *map_inherited_table(size_t size);

/* Make a part of map_inherited()'s memory zero, and give its memory back. -errno */
int map_clear_table(void *address, size_t size);

/* The purpose of a mapping of the container's file. */
enum map_kind {
    MAP_VIEW_SHARED, /* the application's: read-only until a page is opened */
    MAP_HOME_SHARED, /* the library's: writable */
    MAP_HOME_ABSENT, /* the same, to be watched (absent.c): locking memory must not fill it */
    MAP_COPY,        /* private and writable: changes stay in this process */
    MAP_VIEW_COPY,   /* the application's, private: read-only until a page is opened */
    MAP_VIEW_MEMORY, /* the application's, in memory of its own: untouchable until a page is made */
};

/* Whether mappings of `fd` can have MAP_SYNC. This is the case on DAX, where a fence makes data durable. */
bool map_is_synchronous(int fd);

/*
 * Map `size` bytes of `fd` from `offset` at `address`, inside reserved space. If `synchronous`, with
 * MAP_SYNC. (Trying MAP_SYNC here and falling back would leave a hole for a moment. Another thread could
 * map something into the hole.) [handler]
 */
int map_file(enum map_kind kind, void *address, size_t size, int fd, uint64_t offset,
             bool synchronous);

/* Hints to the kernel about mapped memory, in this order [handler]:
 *  - Accesses come at random. So it reads no neighbours of a page.
 *  - These bytes are read soon.
 *  - A huge page would bring much that nobody needs. */
void map_read_singly(void *address, size_t size);
void map_fetch(void *address, size_t size);
void map_small_pages(void *address, size_t size);

/* ---- absent.c: pages of a file in memory that are filled at their first access ------------------ */

/* A descriptor that watches for such accesses. -errno: the kernel does not let us */
int absent_open(void);

/* From now on the first access to a page of the mapping that its file does not have raises SIGBUS, with
 * si_code BUS_ADRERR. Another mapping in this place is not watched. [handler] -errno */
int absent_watch(int watcher, void *address, size_t size);

/* Give whole pages of one shared mapping, which is watched, to the file behind it, and so to all mappings.
 * Pages that the file has stay as they are. [handler] -errno */
int absent_fill(int watcher, void *to, const void *contents, size_t size);

/*
 * Enter the pages of a new, writable, shared mapping into the page table at once. Otherwise the first
 * store to each page takes a minor fault, a quarter of the cost of a first store. A hint: kernels before
 * 5.14 ignore it. It makes every page dirty, so it is not for a medium with write-back. [handler]
 */
void map_populate(const struct medium *medium, void *address, size_t size);

/* Write all `size` bytes, even if signals interrupt. -errno: some bytes may be there. [handler] */
int file_write(int fd, const void *from, size_t size, uint64_t offset);

/* fdatasync(2) of a medium's file, as its fence(). One thread syncs at a time. After a sync that failed every
 * other fails too, because the kernel reports an error of write-back to one sync only. -errno */
int medium_sync_file(struct medium *medium);

/* fsync(2), even if signals interrupt. -errno [handler] */
int file_sync(int fd);

/*
 * Allocate the blocks of [from, to). `from` is the file's end. On failure the file is as long as before.
 * [handler] -errno
 */
int file_allocate(int fd, uint64_t from, uint64_t to);

/* Allocate the blocks that are missing in [0, size) of a file. On failure it has its old holes. -errno */
int file_fill(int fd, uint64_t size);

/* Make a hole of all blocks in [0, size) that nobody has written, for instance after file_fill(). */
void file_punch_unwritten(int fd, uint64_t size);

/* Give back the blocks of [from, to), which reads as zero then. A hint. */
void file_punch(int fd, uint64_t from, uint64_t to);

/* Cut off the file at `from`. On failure the rest stays, unused. [handler] -errno */
int file_give_back(int fd, uint64_t from);

#endif
