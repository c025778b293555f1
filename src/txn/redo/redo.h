/*
 * The redo engine: the view is a private copy, so nothing that the program stores reaches home
 * before commit, nothing is logged meanwhile, and a fault copies nothing. Commit finds the cache
 * lines that differ from home, appends them as one record, makes the record durable, and carries
 * them home.
 *
 *   txn_open --> recovery --> EPOCH e OPEN --- commit: record e ----> lines and words applied home;
 *                  |           ^    |          pmem: one fence        cold pages closed;
 *                  |           |    |          file: no wait here     e becomes e + 1
 *                  |           +----+ rollback: home's lines back
 *                  +-- replay, base epoch
 *
 * pmem: home is the medium; the next commit's round writes back the lines and fences them.
 * file: home is a copy in memory (backend/file.c); wait() makes all records written so far durable
 * by one fdatasync, and the queue takes home's pages to the file before the log's old end is
 * reused.
 *
 * The rules (docs/internals/redo.md) and where they are kept:
 *
 *  R1  home is written by commit only; what is fresh                      commit.c, changes.c
 *  R2  when a record holds                                                recovery.c
 *  R3  replay newest first, each word once, only an unbroken run          recovery.c
 *  R4  log is reused when its lines are home and fenced by a later round  log.c
 *  R5  what is relied on is made durable first; base epoch                recovery.c, ../recovery.c
 *  R6  on a file: sectors for lines, fdatasync for the fence              ../../backend/file.c
 *  R7  a fresh line counts though it equals home                          changes.c
 *  R8  replay begins with the segment table                               recovery.c
 *  R9  log is claimed, fresh ranges are written, when all is durable      log.c, commit.c
 * R10  a record's parts are chained                                       log.c, recovery.c
 * R11  a record follows one with fresh ranges when that is durable        commit.c
 * R12  log is reused when it is recorded that its epochs are durable      redo.c, log.c
 * R13  a round has a bounded number of records, and the base is above all recovery.c, commit.c
 * R14  a queued page is cleared when all is durable                      view.c
 * R15  what was fenced is noted, and recovery refuses a log without it    commit.c, recovery.c
 *
 * Invariants
 *  I1  Outside marked lines and LISTED pages the view equals home, free space included (but under
 *      `faults` not the free space that the open transaction stored to). Of a moved container that
 *      holds for what is FIXED, as moved.h says it.
 *  I2  A page of the view that is not PRIVATE is read through to the file, and equals home; or is
 *      the moved container's own.
 *  I3  A line whose byte in the table of marks is set is in `marked`, or its page is LISTED; under
 *      `stores` only. Entries whose line's byte is not set are void: of marks that a signal's handler
 *      left, or of earlier transactions. A line may be there twice.
 *  I4  An image is what home has in the line. It is taken from the view, before the line's first
 *      store (I1): so commit finds what has changed without reading home, which mostly is in no
 *      cache, and need not be brought into it. (A commit that fails may have written home's fresh
 *      pages: on a file, where those are LISTED and compared with home. And a store that escaped
 *      before the line's mark is in the image, but not in home: audit.c.)
 */
#ifndef PM_TXN_REDO_REDO_H
#define PM_TXN_REDO_REDO_H

#include "txn/moved.h"
#include "txn/txn.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

/* What a commit has found: tables with room for every line of the container, or every segment. */
struct changes {
    uint64_t *runs; /* redo_run(), of lines to log */
    uint64_t run_count;
    uint64_t lines; /* in all runs */
    struct redo_fresh *fresh;
    uint64_t fresh_count;
    struct record_clear *clears; /* one a segment at most */
};

struct range {
    uint64_t offset, bytes;
};

/* A line's words, compared and copied as a whole. */
typedef uint64_t line_image __attribute__((vector_size(PM_LINE)));

/* Marked lines of which images are kept, at most: 4 MiB of them. */
#define IMAGES_MAX (UINT64_C(1) << 16)

/* Records that are written without a fence between them, at most. */
#define ROUND_MAX 1024

/* A larger commit writes all back at once. */
#define UNWRITTEN_MAX 256

/* Where the next record goes, and which segments of the log are void. */
struct redo_log {
    uint32_t segment;
    uint64_t end;            /* bytes of it in use */
    uint64_t *newest;        /* per segment of the container: newest epoch in it; 0: nothing */
    uint64_t since_write;    /* bytes logged since queue pages were last written */
    uint32_t peak;           /* segments that recent commits needed, decaying */
    char *stage;             /* a part as it is being made, */
    char *put, *full;        /* where its next byte goes, and where it will end */
    uint64_t total, written; /* bytes of the stream: in all, in parts */
    struct redo_part head;   /* of the next part */
    uint32_t first_segment;  /* where the record being written began */
    uint64_t first_end;
    int error; /* the first that writing it met */
};

struct redo {
    bool audit;
    uint64_t *marked; /* lines marked in this transaction */
    _Atomic uint64_t marked_count;
    line_image *images; /* of the first IMAGES_MAX of them, */
    bool *imaged;       /* if this says that there is one: I4 */
    struct changes changes;
    /* Of home's words: what the last commit stored there, if it was not too much. */
    struct range unwritten[UNWRITTEN_MAX];
    uint32_t unwritten_count;
    struct redo_log log;
    uint64_t private_max; /* pages of the view that may have copies */
    uint32_t hand;        /* of the clock that evicts them */
    uint32_t opens;       /* runs of pages opened since maps were last merged */
    uint32_t audit_hand;  /* the page looked at last */
    uint64_t escaped;
    uint64_t newest_fresh; /* epoch of the newest record with fresh ranges */

    /* Durability. Written under the page lock or by the one thread that is syncing. */
    _Atomic uint64_t committed; /* newest epoch whose record is written */
    _Atomic uint64_t durable;   /* newest epoch that no crash undoes */
    _Atomic uint64_t proved;    /* newest epoch that a record, or the base, says is durable */
    _Atomic uint64_t home;      /* log of epochs up to it is no longer needed */
    pthread_mutex_t sync_lock;  /* guards what follows */
    pthread_cond_t synced;
    _Atomic bool syncing;
    _Atomic uint32_t arrived; /* threads that wait for the next round; counted under the lock */
    uint32_t company;         /* that it may expect */
    uint64_t round_ns;        /* what the last one took */
};

/* ---- redo.c ---------------------------------------------------------------------------------- */

/* The byte of a line of the file in the table of marks. */
static inline uint8_t *redo_mark(const struct txn *t, uint64_t line)
{
    return mark_of(t->c->base + line * PM_LINE);
}

/* The byte that says that a line is marked. */
static inline uint8_t redo_marked(const struct txn *t)
{
    return t->kinds ? MARK_LINE | MARK_KINDS : MARK_LINE;
}

/* Whether an entry of `marked` is of this transaction: I3. */
static inline bool redo_is_marked(const struct txn *t, uint64_t line)
{
    return *redo_mark(t, line) != 0;
}

/* The kinds of a line's words. */
static inline uint8_t *redo_kinds(const struct txn *t, uint64_t line)
{
    return kinds_of(t->c->base + line * PM_LINE);
}

/* A line of the view as home has it; in a moved container it is made in `image`. */
static inline const char *redo_line(const struct txn *t, uint64_t line, char image[PM_LINE])
{
    return t->moved ? moved_line(t, line, image) : t->c->base + line * PM_LINE;
}

static inline bool line_images_differ(const void *a, const void *b)
{
    line_image d = *(const line_image *)a ^ *(const line_image *)b;
    return (d[0] | d[1] | d[2] | d[3] | d[4] | d[5] | d[6] | d[7]) != 0;
}

/* Whether a line of the view is not what home has. About 3 ns for lines in the cache. */
static inline bool redo_line_differs(const struct txn *t, uint64_t line)
{
    _Alignas(PM_LINE) char image[PM_LINE];
    return line_images_differ(redo_line(t, line, image), t->c->home + line * PM_LINE);
}

/* Whether home is a copy in memory, that the queue takes to the file. */
static inline bool redo_on_file(const struct txn *t)
{
    return t->c->medium.queue;
}

/* Wait until the record of `epoch` is durable; on pmem it is. 0, or -errno, which is sticky. Any
 * thread, with the page lock or without. */
int redo_sync(struct txn *t, uint64_t epoch);

/* On a file: one round more, whatever is durable already. */
int redo_fence(struct txn *t);

/* ---- view.c: pages of the private view ------------------------------------------------------- */

/* Open pages for a store to `page`: at least that one. `compare`: list them all, for nobody marks
 * what is stored there. Page lock. [handler] -errno */
int redo_open(struct txn *t, uint32_t page, bool compare);

/*
 * Have the page compared as a whole at commit. It is open or will be when it is stored to.
 * `announced`: marks say what is stored there, so that it need not be closed afterwards to see
 * more.
 */
void redo_list(struct txn *t, uint32_t page, bool announced);

/* Open a range of the view, so that it can be restored. -errno */
int redo_open_range(struct txn *t, uint64_t offset, uint64_t bytes);

/* Make a range of the view what home has, whether its pages are open or not. -errno */
int redo_restore(struct txn *t, uint64_t offset, uint64_t bytes);

/* Pages of segments taken for data: the view becomes home. Page lock. -errno */
int redo_adopt(struct txn *t, uint32_t first, uint32_t count, uint32_t header);

/* Close pages that marks have opened, when there are too many for the kernel's maps. Nothing is
 * changed and uncommitted. Page lock. */
void redo_merge_maps(struct txn *t);

/* Give copies back until `private_max` holds. Nothing is changed and uncommitted. Page lock. */
void redo_evict(struct txn *t);

/* ---- changes.c ------------------------------------------------------------------------------- */

/* Fill in `changes`, but for clears. Page lock, and the allocator's. */
void redo_collect(struct txn *t);

/* Forget marks, those of listed pages too: the view is home, or a commit has found what is not. */
void redo_clear_marks(struct txn *t);

/* For struct engine. */
void redo_forget(struct txn *t, uint32_t page);

/* ---- kinds.c --------------------------------------------------------------------------------- */

/* Make the pointer map what the transaction has stored: before a commit, without the page lock. 0,
 * or -1 with a message. */
int redo_map_pointers(struct txn *t);

/* ---- audit.c --------------------------------------------------------------------------------- */

/*
 * Compare open pages with home: one every so many commits, all under LIBPM_AUDIT, and images too. -1 with
 * EFAULT and a message if a store escaped. All that escaped are marked now, and no image is left.
 */
int redo_audit(struct txn *t);

/* Under LIBPM_AUDIT: compare images with home before they are given up. If a store escaped, redo_audit()
 * fails. */
void redo_audit_images(struct txn *t);

/* ---- log.c ----------------------------------------------------------------------------------- */

/* -1 with a message. */
int redo_log_load(struct txn *t);
void redo_log_unload(struct txn *t);

/* Make room for a record whose stream has `total` bytes, and then give back segments that recent
 * records did not need: how many, each a word more to record. -errno: ENOSPC leaves all as it was.
 */
int redo_log_reserve(struct txn *t, uint64_t total);
uint32_t redo_log_shrink(struct txn *t, uint64_t total);

/* Take back what the last shrinking gave: its commit failed. */
void redo_log_unshrink(struct txn *t);

/*
 * On a file: take all of home there, and void the whole log. No record says that the newest epochs
 * are durable (R12), so the base epoch says it. The segment in use is begun anew, for a walk of
 * it would end at what the base made void. -errno
 */
int redo_log_drain(struct txn *t);

/* Write a record: begin with its header's counts and total, put the stream piece by piece, none of
 * them empty, end. */
void redo_log_begin(struct txn *t, const struct redo_part *head);
static inline void redo_log_put(struct txn *t, const void *bytes, uint64_t size);
/* 0, or -errno: then nothing of it counts, and the next record goes to the same place. */
int redo_log_end(struct txn *t);

/* On a file: bring old pages of home to the file, so that log can be reused. -errno */
int redo_log_trickle(struct txn *t);

/* Bytes of a record's stream. */
static inline uint64_t redo_stream_bytes(uint64_t clears, uint64_t words, uint64_t fresh,
                                         uint64_t runs, uint64_t lines)
{
    return clears * sizeof(struct record_clear) + words * sizeof(struct record_word) +
           fresh * sizeof(struct redo_fresh) + runs * sizeof(uint64_t) + lines * PM_LINE;
}

/* Of redo_log_put(): write a part that is full; a piece with which one is more than full. */
void redo_log_flush(struct txn *t);
void redo_log_fill(struct txn *t, const void *bytes, uint64_t size);

/* Inline, so that a piece whose size the compiler knows takes a few instructions. */
static inline void redo_log_put(struct txn *t, const void *bytes, uint64_t size)
{
    struct redo_log *log = &t->redo->log;
    assert(size > 0); /* or a part might be written twice */
    if (size > (uint64_t)(log->full - log->put)) {
        redo_log_fill(t, bytes, size);
        return;
    }
    memcpy(log->put, bytes, size);
    log->put += size;
    if (log->put == log->full)
        redo_log_flush(t);
}

/* The largest part, header included: it fits the smallest segment. */
#define REDO_PART_MAX FORMAT_SEGMENT_MIN

/* Checksum of a part that stands at `offset` in the file; its checksum field must be zero. */
uint64_t redo_part_sum(const struct container *c, const struct redo_part *part, uint64_t offset);

/* ---- commit.c -------------------------------------------------------------------------------- */

int redo_commit(struct txn *t);

/* Close listed pages, but not hot ones, which stay listed, nor those that marks speak for. A page
 * that the kernel does not let us close stays listed too: so nothing stored to it is missed. The list
 * is sorted, and its entries say what has changed. */
void redo_cool_pages(struct txn *t);

/* Write back the words that the last commit left in home's cache lines only. */
void redo_write_back(struct txn *t);

#endif
