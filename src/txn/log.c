/*
 * Turns slots of the log into addresses. Each half is an array of segments in their order, so a slot's
 * segment is a division away. log_load() finds the segments by a pass over the segment table, and sorts
 * them.
 *
 * Nothing here fences. medium_copy() takes images and records to the log, and the caller's round makes them
 * durable.
 */
#define _GNU_SOURCE
#include "txn/log.h"

#include "base/checksum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_order(const void *a, const void *b, void *table)
{
    uint32_t x = segment_argument(((const uint64_t *)table)[*(const uint32_t *)a]);
    uint32_t y = segment_argument(((const uint64_t *)table)[*(const uint32_t *)b]);
    return (x > y) - (x < y);
}

void log_open(struct log *log, struct container *c)
{
    *log = (struct log){.c = c, .segment_slots = log_segment_slots(c->segment_size)};
    for (int h = 0; h < 2; h++)
        log->half[h].segments = tables_take(&c->tables, c->segments_max * sizeof(uint32_t));
}

int log_load(struct log *log)
{
    uint64_t *table = home_table(log->c);
    uint32_t segments = atomic_load(&log->c->segments);
    for (int h = 0; h < 2; h++) {
        struct log_half *half = &log->half[h];
        memset(half->segments, 0, half->count * sizeof *half->segments);
        *half = (struct log_half){.segments = half->segments};
    }
    for (uint32_t i = 0; i < segments; i++)
        if (segment_kind(table[i]) == SEGMENT_LOG) {
            struct log_half *half = &log->half[segment_log_half(table[i])];
            half->segments[half->count++] = i;
        }
    for (int h = 0; h < 2; h++) {
        struct log_half *half = &log->half[h];
        if (half->count == 0)
            return -EBADMSG;
        qsort_r(half->segments, half->count, sizeof *half->segments, compare_order, table);
        half->order = segment_argument(table[half->segments[half->count - 1]]) + 1;
        half->peak = half->count;
    }
    return 0;
}

void log_restart(struct log *log)
{
    for (int h = 0; h < 2; h++) {
        log->half[h].next = log->half[h].mapped = 0;
        log->half[h].peak = log->half[h].count;
    }
}

static char *segment_of_slot(const struct log *log, unsigned half, uint32_t slot)
{
    uint64_t segment = log->half[half].segments[slot / log->segment_slots];
    return log->c->home + (segment << log->c->segment_shift);
}

struct log_descriptor *log_descriptor(const struct log *log, unsigned half, uint32_t slot)
{
    return (struct log_descriptor *)segment_of_slot(log, half, slot) + slot % log->segment_slots;
}

char *log_slot(const struct log *log, unsigned half, uint32_t slot)
{
    return segment_of_slot(log, half, slot) + log_segment_first_slot(log->c->segment_size) +
           (slot % log->segment_slots) * PM_PAGE;
}

/* Enter the slots from `slot` on into the kernel's page table, a batch ahead. Otherwise each slot would
 * cost a minor fault, a quarter of the cost of a first store. */
static void map_ahead(struct log *log, struct log_half *half, unsigned which, uint32_t slot)
{
    enum { BATCH = 64 };
    uint32_t left = log->segment_slots - slot % log->segment_slots;
    uint32_t count = left < BATCH ? left : BATCH;
    map_populate(&log->c->medium, log_slot(log, which, slot), (size_t)count << PM_PAGE_SHIFT);
    half->mapped = slot + count;
}

void log_write_image(struct log *log, uint32_t slot, uint64_t epoch, uint32_t page,
                     const void *contents, uint64_t sum)
{
    struct medium *medium = &log->c->medium;
    struct log_descriptor descriptor = {
        .epoch = epoch, .page = page, .sum = checksum_mix(sum, epoch, page)};
    struct log_half *half = &log->half[epoch % 2];
    if (slot >= half->mapped)
        map_ahead(log, half, epoch % 2, slot);
    medium_copy(medium, log_slot(log, epoch % 2, slot), contents, PM_PAGE);
    medium_copy(medium, log_descriptor(log, epoch % 2, slot), &descriptor, sizeof descriptor);
}

void log_write_record(struct log *log, unsigned half, const void *record, uint64_t bytes)
{
    for (uint32_t slot = 0; bytes > 0; slot++) {
        uint64_t n = min_u64(bytes, PM_PAGE);
        medium_copy(&log->c->medium, log_slot(log, half, slot), record, n);
        record = (const char *)record + n;
        bytes -= n;
    }
}

void log_read_record(const struct log *log, unsigned half, void *record, uint64_t bytes)
{
    for (uint32_t slot = 0; bytes > 0; slot++) {
        uint64_t n = min_u64(bytes, PM_PAGE);
        memcpy(record, log_slot(log, half, slot), n);
        record = (char *)record + n;
        bytes -= n;
    }
}
