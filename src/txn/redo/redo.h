/*
 * The redo engine: the view is a private copy, so nothing that the program stores reaches home before
 * commit. Until then libpm logs nothing, and a fault copies nothing. Commit finds the cache lines that
 * differ from home, appends them as one record, makes the record durable, and carries the lines home.
 *
 *   txn_open --> recovery --> EPOCH e OPEN --- commit: record e ----> lines and words applied home;
 *                  |           ^    |          pmem: one fence        cold pages closed;
 *                  |           |    |          file: no wait here     e becomes e + 1
 *                  |           +----+ rollback: home's lines back
 *                  +-- replay, base epoch
 *
 * pmem: home is the medium; lines are copied home past the cache, and the next round fences them.
 * file: home is a copy in memory (backend/file.c). wait() makes all records written so far durable by one
 * fdatasync. The queue writes home's pages to the file before the log's old end is reused.
 *
 * The rules (docs/internals/redo.md) and where they are kept:
 *
 *  R1  home is written by commit only; what is fresh                      commit.c, ../view/changes.c
 *  R2  when a record holds                                                recovery.c
 *  R3  replay newest first, each word once, only an unbroken run          recovery.c
 *  R4  log is reused when its lines are home and fenced by a later round  log.c
 *  R5  what is relied on is made durable first; base epoch                recovery.c, ../recovery.c
 *  R6  on a file: sectors for lines, fdatasync for the fence              ../../backend/file.c
 *  R7  a fresh line counts though it equals home                          ../view/changes.c
 *  R8  replay begins with the segment table                               recovery.c
 *  R9  log is claimed, fresh ranges are written, when all is durable      log.c, commit.c
 * R10  a record's parts are chained                                       log.c, recovery.c
 * R11  a record follows one with fresh ranges when that is durable        commit.c
 * R12  log is reused when it is recorded that its epochs are durable      ../rounds.c, log.c
 * R13  a round has a bounded number of records, and the base is above all recovery.c, commit.c
 * R14  a queued page is cleared when all is durable                      ../view/pages.c
 * R15  what was fenced is noted, and recovery refuses a log without it    ../rounds.c, recovery.c
 *
 * The private view is in txn/view/.
 */
#ifndef PM_TXN_REDO_REDO_H
#define PM_TXN_REDO_REDO_H

#include "address/translation.h"
#include "txn/txn.h"

#include <assert.h>
#include <string.h>

struct range {
    uint64_t offset, bytes;
};

/* At most this many records are written without a fence between them. */
#define ROUND_MAX 1024

/* A commit with more words writes them all back at once. */
#define UNWRITTEN_MAX 256

/* Where the next record goes, and which log segments are void. */
struct redo_log {
    uint32_t segment;
    uint64_t end;            /* bytes of `segment` in use */
    uint64_t *newest;        /* for each segment of the container: newest epoch in it; 0: none */
    uint64_t since_write;    /* bytes logged since queue pages were last written */
    uint32_t peak;           /* segments that recent commits needed, decaying */
    char *stage;             /* a part while it is built */
    char *put, *full;        /* where the part's next byte goes, and where the part ends */
    uint64_t total, written; /* bytes of the stream: in all, and written in parts so far */
    struct redo_part head;   /* head of the next part */
    uint32_t first_segment;  /* segment where the record being written began */
    uint64_t first_end;
    uint64_t first_part; /* where the record being written begins, in the file */
    uint64_t stale;      /* where a record begins that could not be written, until it is erased; 0: none */
    int error; /* the first error met while writing the record */
};

struct redo {
    /* Words of home that the last commit stored and did not write back, if there were not too many. */
    struct range unwritten[UNWRITTEN_MAX];
    uint32_t unwritten_count;
    struct redo_log log;
    uint64_t newest_fresh; /* epoch of the newest record with fresh ranges */
};

/* The engine's state of a container that it has open. */
static inline struct redo *redo_of(const struct txn *t)
{
    return t->own;
}

/* recover() of struct engine. */
int redo_recover(struct txn *t, uint64_t base, struct recovered *found);

/* ---- redo.c ---------------------------------------------------------------------------------- */

/* True if home is a copy in memory. The queue then writes its pages to the file. */
static inline bool redo_on_file(const struct txn *t)
{
    return t->c->medium.queue;
}

/* reserve() of struct engine. */
int redo_reserve(struct txn *t, uint64_t pages, uint64_t extra_pages, uint64_t extra_words);

/* ---- log.c ----------------------------------------------------------------------------------- */

/* -1 with a message if memory runs out. */
int redo_log_load(struct txn *t);
void redo_log_unload(struct txn *t);

/* Make room for a record whose stream has `total` bytes. -errno: with ENOSPC all is as it was.
 * redo_log_shrink() then gives back segments that recent records did not need, and returns how many: each
 * adds a word to the record. */
int redo_log_reserve(struct txn *t, uint64_t total);
uint32_t redo_log_shrink(struct txn *t, uint64_t total);

/* Undo the last redo_log_shrink(), because its commit failed. */
void redo_log_unshrink(struct txn *t);

/*
 * On a file: write all of home to the file, and void the whole log. No record says that the newest epochs
 * are durable (R12), so the base epoch says so. The current segment is begun anew, because a walk of it
 * would end at the first void part. -errno
 */
int redo_log_drain(struct txn *t);

/* Write a record in three steps: begin with the header's counts and total, put the stream piece by piece,
 * end. No piece may be empty. */
void redo_log_begin(struct txn *t, const struct redo_part *head);
static inline void redo_log_put(struct txn *t, const void *bytes, uint64_t size);
/* 0, or -errno. After an error nothing of the record counts, unless redo_log_retract() fails, too. */
int redo_log_end(struct txn *t);

/* retract() of struct engine. */
int redo_log_retract(struct txn *t);

/* On a file: write old pages of home to the file, so that log can be reused. -errno */
int redo_log_trickle(struct txn *t);

/* Bytes of the stream of a record with these counts. */
static inline uint64_t redo_stream_bytes(uint64_t clears, uint64_t words, uint64_t fresh,
                                         uint64_t runs, uint64_t lines)
{
    return clears * sizeof(struct record_clear) + words * sizeof(struct record_word) +
           fresh * sizeof(struct redo_fresh) + runs * sizeof(uint64_t) + lines * PM_LINE;
}

/* Called by redo_log_put(): redo_log_flush() writes a part that is full. redo_log_fill() takes a piece
 * that does not fit into the part. */
void redo_log_flush(struct txn *t);
void redo_log_fill(struct txn *t, const void *bytes, uint64_t size);

/* Inline, so that a piece of a size known to the compiler takes a few instructions. */
static inline void redo_log_put(struct txn *t, const void *bytes, uint64_t size)
{
    struct redo_log *log = &redo_of(t)->log;
    assert(size > 0); /* an empty piece might write a part twice */
    if (size > (uint64_t)(log->full - log->put)) {
        redo_log_fill(t, bytes, size);
        return;
    }
    memcpy(log->put, bytes, size);
    log->put += size;
    if (log->put == log->full)
        redo_log_flush(t);
}

/* The largest part, header included. It fits into the smallest segment. */
#define REDO_PART_MAX FORMAT_SEGMENT_MIN

/* Checksum of a part that stands at `offset` in the file; its checksum field must be zero. */
uint64_t redo_part_sum(const struct container *c, const struct redo_part *part, uint64_t offset);

/* ---- commit.c -------------------------------------------------------------------------------- */

int redo_commit(struct txn *t);

/* Write back the words of home that the last commit left in the cache only. */
void redo_write_back(struct txn *t);

#endif
