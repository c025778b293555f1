/*
 * A container: one file, its place in the arena, and its mappings. This layer opens, creates, locks, grows
 * and closes. It knows the format but not transactions.
 *
 * A writable container is mapped three times, each at max_size bytes of reserved space:
 *
 *   base (view)   in the arena, shared, read-only until a page is opened: the application's
 *   home          elsewhere, shared, writable: the library's. A stray store of the application
 *                 finds no writable metadata in the arena, and the library never faults
 *   shadow        elsewhere, private: journaled words as the open transaction has them. Unchanged
 *                 words are read through to home for free, and only changed pages cost memory
 *
 * Under the log engine the file has no home. Home is memory, made at open from what the log says, and view
 * and shadow are private copies of it.
 *
 * Under the redo engine the view is a private copy. The program stores to the copy, and a commit carries
 * the changes home. On an ordinary file home is private too, see backend/file.c. A read-only container has
 * one private copy for all three. If a container lies at other addresses than its pointers mean, and is not
 * relocated, its view is memory of its own (address/translation.h).
 *
 * Invariants
 *  C1  All mapped pieces have blocks: [0, segments * segment_size) of the file is allocated.
 *  C2  `segments` grows under the caller's lock. It shrinks under all locks, while nobody else uses the
 *      container.
 *  C3  The arena's slots of an open container, and no others, point to it.
 */
#ifndef PM_CONTAINER_H
#define PM_CONTAINER_H

#include "backend/backend.h"
#include "base/marks.h"
#include "container/format_log.h"
#include "container/name.h"
#include "container/sums.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/types.h>

struct txn;

struct container {
    char *base; /* the view */
    char *home;
    char *file; /* the file as it is: home, but under the log engine */
    char *shadow;
    uint64_t max_size;     /* bytes reserved */
    uint64_t segment_size; /* bytes */
    uint32_t segment_shift;
    uint32_t segments_max;
    _Atomic uint32_t segments; /* in the file now */
    _Atomic bool at_max;       /* the -ENOSPC not reported yet was for max_size, not for the disk */
    uint32_t granularity;
    uint32_t meta_segments;
    uint64_t pointers_base;   /* home's pointers mean this base; until the layers above relocate the
                                 container, it may differ from `base` */
    uint64_t pointers_target; /* not 0: a relocation to there has not been completed */
    uint64_t pointers_moved;  /* count: relocated on the medium, or translated for the view */
    uint64_t seed;            /* of every checksum in this container */
    uint64_t mark_open;       /* the state page's mark of a writer of this very file */
    uint64_t mark_failed;     /* the mark that pm_open() leaves if it fails after recovery */
    int fd;
    int home_fd; /* what home, shadow and view are mapped from: fd, or under the log engine memory */
    bool is_log; /* a container of the log engine (container/format_log.h) */
    uint64_t chunk_size; /* of a log container; bytes */
    _Atomic uint32_t chunks; /* in its file, the first included */
    uint64_t log_max;        /* bytes that its file may have */
    bool readonly;
    enum movable movable;
    bool vouched; /* the program says that all pointers it stores are in the map */
    bool created; /* this very pm_open() created the file, and deletes it if it fails */
    uint64_t
        filled; /* this pm_open() has filled the holes up to here; it empties them if it fails */
    bool synchronous; /* mapped with MAP_SYNC */
    bool private_view;
    bool
        relocates; /* home's pointers are to be relocated to the view's addresses, in this opening */
    bool translated; /* the view lies elsewhere: its pages are translated one by one */
    int view_fd;     /* if translated: of the view's memory */
    int watcher; /* home's memory is bounded: watches for pages that it does not have (backend/absent.c);
                        -1: it has all of them */
    uint64_t checkpoint_bytes; /* as options.checkpoint_bytes */
    bool (*fill)(struct txn *filler, uint64_t offset); /* then: give it such a page. [handler] */
    struct txn *filler;
    struct medium medium;
    struct tables
        tables;        /* of all layers; the api layer opens them, container_close() closes them */
    char *path;        /* as given; owned */
    struct name name;  /* a writer's */
    struct txn *upper; /* the transaction layer's state; NULL: accesses are not served */
    bool (*serve)(struct txn *upper, const void *address, bool store); /* its part of the handler */
    struct format_header header;
};

/* How to open. The api layer makes this from pm_options, checked and with defaults filled in. */
struct container_options {
    bool create, exclusive, readonly;
    bool movable;       /* the program vouches that all pointers it stores are in the map */
    bool relocate;      /* home's pointers are to mean the addresses where the container will lie */
    bool log;           /* a new file is for the log engine */
    bool translated;    /* the view has other addresses than home's pointers mean in any case */
    bool accept_copy;   /* accept a copy of a container that somebody had open */
    bool bounded;       /* a log container's home is to be filled as it is accessed */
    uint64_t checkpoint_bytes; /* of log, between checkpoints; 0: as libpm likes */
    bool path_error;    /* if the file is no longer at its path: fail instead of warning */
    const char *layout; /* or NULL */
    mode_t mode;
    bool check_owner;   /* refuse a file that others may write */
    uint64_t holes_max; /* bytes of a sparse file that may be filled */
    uint64_t max_size, segment_size;
    uint64_t initial_size; /* of a new file; whole segments, or 0 */
    uint32_t granularity;
};

/*
 * Open or create; the arena has been reserved. On success home is mapped and, when writable, the
 * medium is known; recovery may work on home now. Errors as pm_open(). container_map_rest()
 * completes it.
 */
int container_open(struct container *c, const char *path, const struct container_options *options);

/*
 * Between container_open() and container_map_rest(): let the view be private, and on an ordinary
 * file home too. -1
 */
int container_make_private(struct container *c);

/* Map view and shadow. Faults are served as soon as `upper` is set. */
int container_map_rest(struct container *c);

/* Unmap, unlock, forget. Never fails; the contents are the upper layers' business. */
void container_close(struct container *c);

/* The same after a failure of pm_open(): if pm_open() created the file, delete it. If another file is at its
 * path by now, both files stay. */
void container_discard(struct container *c);

int container_delete(const char *path);

/* -1, with EBADMSG and a message that names the place and the remedy. */
int container_damaged(const struct container *c, uint64_t offset, const char *what);

/*
 * Append between `count` and `wanted` segments to the file and map them. Returns their number, or a
 * negative errno: -ENOSPC when max_size or the disk is exhausted. The caller serialises. [handler]
 */
int container_grow(struct container *c, uint32_t count, uint32_t wanted);

/* If home's memory is bounded, watch a new mapping of it. [handler] -errno */
static inline int container_watch(const struct container *c, void *address, size_t size)
{
    return c->watcher >= 0 ? absent_watch(c->watcher, address, size) : 0;
}

/* Recovery of a log container: give home memory for `count` more segments. -errno */
int container_grow_home(struct container *c, uint32_t count);

/* The same for the chunks of a log container's file. Page lock. -errno: the file is as long as before */
int container_grow_chunks(struct container *c, uint32_t count, uint32_t wanted);

/* Whether there is room for so many chunks more, as far as the kernel says without giving it. A quota of the
 * user may leave less. */
bool container_has_room(const struct container *c, uint32_t count);

/* Cut a log container's file down to `chunks` chunks. Those behind are void, and nobody uses them. -errno:
 * the file may be as long as before, but what is behind stays unused */
int container_cut_chunks(struct container *c, uint32_t chunks);

static inline uint32_t pages_per_segment(const struct container *c)
{
    return (uint32_t)(c->segment_size >> PM_PAGE_SHIFT);
}

/* Return -ENOSPC because max_size is exhausted, and note the reason for container_fail(). [handler] */
static inline int container_exceeds_max(struct container *c)
{
    atomic_store_explicit(&c->at_max, true, memory_order_relaxed);
    return -ENOSPC;
}

/* The reason for ENOSPC and the remedy; may be in `text`. NULL for other errors. Once for each error. */
enum { REASON_TEXT = 160 };
const char *container_reason(struct container *c, int error, char text[REASON_TEXT]);

/* pm__fail_system() where the container may have had to grow: at max_size a free disk does not help. */
#define container_fail(c, error, ...)                                                              \
    pm__fail_because(error, container_reason(c, error, (char[REASON_TEXT]){0}), __VA_ARGS__)

/* The same about a place in the file. */
#define container_fail_at(c, offset, error, ...)                                                   \
    pm__fail_because_at((c)->path, offset, error,                                                  \
                        container_reason(c, error, (char[REASON_TEXT]){0}), __VA_ARGS__)

/*
 * Cut the file down to its first `segments` segments. Nothing in home, shadow or log refers to the other
 * segments, their pages are closed, and nobody else uses the container. If the view is memory of its own,
 * the caller hides the view's part. After a failure (-errno) the file may be as long as before. The other
 * segments then stay unused until the file grows or is opened again.
 */
int container_shrink(struct container *c, uint32_t segments);

/* Verify both header copies on the medium, for pm_check(). */
int container_check_headers(struct container *c);

/* Make both header copies say FORMAT_VERSION, one after the other. The new parts of this version are on
 * the medium already. -errno: perhaps one of the copies says so. */
int container_upgrade(struct container *c);

/* ---- the arena ----------------------------------------------------------------------------- */

/*
 * One range of address space per process, reserved once, at the same place in every run if the place is
 * free. So "is this address in a container?" is a subtraction and a comparison. The handler finds the
 * container by one look into a table of slots.
 */
#define ARENA_SLOT_SHIFT 30

extern uintptr_t arena_base; /* 0 before arena_reserve() */

/* -1 with a message, which names `path`. */
int arena_reserve(const char *path);

static inline bool arena_contains(const void *address)
{
    return (uintptr_t)address - arena_base < ARENA_SIZE;
}

/* The open container whose slots hold `address`, or NULL. Wait-free. [handler] */
struct container *arena_find(const void *address);

/* Whether some container, open or closed by now, has had this address of the arena. [handler] */
bool arena_was_used(const void *address);

/* The same for an address in a container's view, home, shadow, or mapping of the file; sets its offset
 * there. Slow, but for the view. [handler] */
struct container *arena_find_any(const void *address, uint64_t *offset);

/* Take the slots of [base, base + size), whole ones of the arena; false if any is taken. */
bool arena_take(uint64_t base, uint64_t size, struct container *owner);

/* Take free slots outside [base, base + size), searching as arena_choose() does. Returns their address,
 * or 0 if there are none. */
uint64_t arena_take_elsewhere(uint64_t base, uint64_t size, uint64_t random,
                              struct container *owner);
void arena_give_back(uint64_t base, uint64_t size);

/* A free base for `size` bytes, beginning the search at a place chosen by `random`; 0 if none. */
uint64_t arena_choose(uint64_t size, uint64_t random);

/* Take the end of the arena for the volatile heap, once. False if a container is there. */
bool arena_take_volatile(void);

/* In a child of fork(2): close every container's descriptor and make the whole arena untouchable, but
 * for the volatile heap.
 */
void arena_abandon(void);

static inline bool container_holds(const struct container *c, const void *p)
{
    return (uintptr_t)p - (uintptr_t)c->base < c->max_size;
}

/* Whether a pointer of this value leads into the container, or just past its end. A pointer behind the
 * last object may be just past the end. */
static inline bool container_is_led_into(const struct container *c, uint64_t value)
{
    return value - (uintptr_t)c->base <= c->max_size;
}

static inline uint64_t container_bytes(const struct container *c)
{
    return (uint64_t)atomic_load_explicit(&c->segments, memory_order_acquire) << c->segment_shift;
}

/* Bytes of the file in use. */
static inline uint64_t container_file_bytes(const struct container *c)
{
    return c->is_log ? atomic_load_explicit(&c->chunks, memory_order_acquire) * c->chunk_size
                     : container_bytes(c);
}

/* The most bytes that the file may ever have. */
static inline uint64_t container_file_max(const struct container *c)
{
    return c->is_log ? c->log_max : c->max_size;
}

static inline uint64_t *home_word(const struct container *c, uint64_t offset)
{
    return (uint64_t *)(c->home + offset);
}

static inline uint64_t *shadow_word(const struct container *c, uint64_t offset)
{
    return (uint64_t *)(c->shadow + offset);
}

/* The state page and its guard: words that are changed in place. */
static inline struct format_state *file_state(const struct container *c)
{
    return (struct format_state *)(c->file + FORMAT_STATE);
}

static inline struct format_guard *file_guard(const struct container *c)
{
    return (struct format_guard *)(c->file + FORMAT_GUARD);
}

/* The segment table: as committed (home), and as the open transaction has it (shadow). */
static inline uint64_t *home_table(const struct container *c)
{
    return home_word(c, FORMAT_TABLE);
}

/* A word of either table, for callers without the page lock. The log may be taking a free segment
 * meanwhile. Every other change is made under the allocator's lock as well. */
static inline uint64_t table_word(const uint64_t *table, uint64_t segment)
{
    return __atomic_load_n(&table[segment], __ATOMIC_RELAXED);
}

/* Whether `offset` in the file is that of a word of the segment table. */
static inline bool is_table_word(const struct container *c, uint64_t offset)
{
    return offset >= FORMAT_TABLE && offset < FORMAT_TABLE + c->segments_max * sizeof(uint64_t);
}

static inline uint64_t *shadow_table(const struct container *c)
{
    return shadow_word(c, FORMAT_TABLE);
}

#endif
