/*
 * The log (dlog) holds page images and commit records. See container/format.h for the bytes. It has two
 * halves. While epoch e is open, half e % 2 holds record e - 1 and the images of e. The commit of e
 * writes record e and images of e + 1 into the other half, over the contents of epoch e - 1 (U2). So
 * nothing that recovery might still need is overwritten: if the commit's round is torn, half e % 2 is
 * whole.
 *
 * Invariants
 *  L1  Each half keeps its first segment for ever. Other segments come and go at the half's end.
 *  L2  A half's segments are ordered by the order in their table words; a new segment has the greatest.
 *  L3  The epoch that the half serves now uses the slots below `next`, the record first.
 */
#ifndef PM_TXN_LOG_H
#define PM_TXN_LOG_H

#include "container/container.h"

struct log_half {
    uint32_t *segments; /* by order; room for segments_max; at first zeros behind `count` */
    uint32_t count;
    uint32_t order;  /* the order of the next segment */
    uint32_t next;   /* first unused slot */
    uint32_t peak;   /* segments that recent epochs needed, decaying */
    uint32_t mapped; /* slots below this number are in the kernel's page table */
};

struct log {
    struct container *c;
    uint32_t segment_slots; /* slots of one segment */
    struct log_half half[2];
};

/* log_open() makes the log's tables. log_load() reads the halves from home's segment table, and runs
 * again whenever the table changes; -EBADMSG if a half has no segment. */
void log_open(struct log *log, struct container *c);
int log_load(struct log *log);

/* Begin anew. The log must be void. */
void log_restart(struct log *log);

static inline uint32_t log_capacity(const struct log *log, unsigned half)
{
    return log->half[half].count * log->segment_slots;
}

/* Segments of the whole log. */
static inline uint32_t log_segments(const struct log *log)
{
    return log->half[0].count + log->half[1].count;
}

struct log_descriptor *log_descriptor(const struct log *log, unsigned half, uint32_t slot);
char *log_slot(const struct log *log, unsigned half, uint32_t slot);

/*
 * Write an image: at the start of `epoch`, `page` has these contents with this checksum. The image is
 * durable after the round. [handler]
 */
void log_write_image(struct log *log, uint32_t slot, uint64_t epoch, uint32_t page,
                     const void *contents, uint64_t sum);

/* Slots that a record of `bytes` bytes needs. */
static inline uint32_t log_record_slots(uint64_t bytes)
{
    return (uint32_t)divide_up(bytes, PM_PAGE);
}

static inline uint64_t log_record_bytes(uint64_t clears, uint64_t words, uint64_t pages)
{
    return sizeof(struct log_record) + clears * sizeof(struct record_clear) +
           words * sizeof(struct record_word) + pages * sizeof(struct record_page);
}

/* The three arrays of a record. Its counts have been set or checked. */
static inline const struct record_clear *record_clears(const struct log_record *r)
{
    return (const struct record_clear *)(r + 1);
}

static inline const struct record_word *record_words(const struct log_record *r)
{
    return (const struct record_word *)(record_clears(r) + r->clears);
}

static inline const struct record_page *record_pages(const struct log_record *r)
{
    return (const struct record_page *)(record_words(r) + r->words);
}

/* Write a record's bytes to the first slots of a half. log_read_record() reads them. */
void log_write_record(struct log *log, unsigned half, const void *record, uint64_t bytes);
void log_read_record(const struct log *log, unsigned half, void *record, uint64_t bytes);

#endif
