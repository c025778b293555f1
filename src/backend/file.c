/*
 * An ordinary file under the redo engine. Home in memory is a *private* copy, with the state of the last
 * commit. The file has the log, and home as of some earlier commit. So the kernel never writes back
 * uncommitted data. fdatasync(2) finds only the pages that libpm wrote to the file on purpose: log, fresh
 * pages, and now and then pages of the queue.
 *
 *     store to home, write_back    the page is a copy, and goes to the queue's end unless queued
 *     copy, publish                written to the file at once; also to the copy, if there is a copy
 *     queue_write()                oldest pages first, so that the log can be reused from its old end
 *     fence                        fdatasync
 *
 * Invariants
 *  Q1  A page that is not COPIED is read through to the file.
 *  Q2  A page of home that is not QUEUED equals the file's, but for free space.
 *  Q3  The queue is in order of `since`, the epoch that first changed the page after it was last
 *      written; `changed` is the newest. A page goes to the file only when all its changes are durable
 *      in the log.
 *
 * The container's page lock serialises all calls but queue_floor() and the fence.
 */
#define _GNU_SOURCE
#include "backend/backend.h"

#include "base/bits.h"
#include "base/cancel.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { QUEUED = 1, COPIED = 2 };

/* Pages that are adjacent in file and queue go out in one write(2), at most this many. */
#define WRITE_PAGES_MAX 64
/* The queue moves down if this many entries before its head, and more than it holds, are unused. */
#define COMPACT_MIN 4096

struct queue_entry {
    uint64_t page;
    uint64_t since;
};

struct write_queue {
    uint64_t pages_max;
    uint64_t epoch;            /* changes belong to this epoch now */
    uint8_t *states;           /* one a page */
    uint64_t *changed;         /* newest epoch that changed a queued page */
    struct queue_entry *queue; /* [head, tail) */
    uint64_t head, tail;
    _Atomic uint64_t floor;
};

static uint64_t page_of(const struct medium *medium, const void *address)
{
    return (uint64_t)((const char *)address - medium->file) >> PM_PAGE_SHIFT;
}

static uint64_t last_page(const struct medium *medium, const void *address, size_t size)
{
    return page_of(medium, (const char *)address + size - 1);
}

static int write_file(const struct medium *medium, const void *from, size_t size, uint64_t offset)
{
    return file_write(medium->fd, from, size, offset);
}

static void set_floor(struct write_queue *q)
{
    uint64_t first = q->head < q->tail ? q->queue[q->head].since : q->epoch;
    atomic_store_explicit(&q->floor, first - 1, memory_order_release);
}

static void push(struct write_queue *q, uint64_t page)
{
    uint64_t count = q->tail - q->head;
    if (q->tail == q->pages_max || q->head > count + COMPACT_MIN) { /* each page is there once */
        memmove(q->queue, q->queue + q->head, count * sizeof *q->queue);
        q->tail = count;
        q->head = 0;
    }
    q->queue[q->tail++] = (struct queue_entry){page, q->epoch};
}

static void file_write_back(struct medium *medium, const void *address, size_t size)
{
    struct write_queue *q = medium->queue;
    for (uint64_t page = page_of(medium, address); page <= last_page(medium, address, size);
         page++) {
        if (!(q->states[page] & QUEUED))
            push(q, page);
        q->states[page] = QUEUED | COPIED;
        q->changed[page] = q->epoch;
    }
    set_floor(q);
}

static int file_publish(struct medium *medium, const void *address, size_t size)
{
    queue_touch(medium, address, size);
    return write_file(medium, address, size, (uint64_t)((const char *)address - medium->file));
}

/* Write the file's new bytes to the private copies in the range too, where there are any. */
static void update_copies(struct medium *medium, char *to, const char *from, size_t size)
{
    while (size > 0) {
        size_t n = min_u64(size, PM_PAGE - (uint64_t)(to - medium->file) % PM_PAGE);
        if (medium->queue->states[page_of(medium, to)] & COPIED)
            memcpy(to, from, n);
        to += n;
        from += n;
        size -= n;
    }
}

static int file_copy(struct medium *medium, void *to, const void *from, size_t size)
{
    update_copies(medium, to, from, size);
    return write_file(medium, from, size, (uint64_t)((char *)to - medium->file));
}

static int file_settle(struct medium *medium)
{
    int64_t written = queue_write(medium, UINT64_MAX, UINT64_MAX);
    return written < 0 ? (int)written : medium_sync_file(medium);
}

const struct medium_ops medium_file = {
    .name = "file",
    .power_safe = true,
    .write_back = file_write_back,
    .publish = file_publish,
    .copy = file_copy,
    .fence = medium_sync_file,
    .settle = file_settle,
    .sync_length = medium_sync_file, /* fdatasync(2) makes the length durable too */
};

int queue_create(struct medium *medium, struct tables *tables, uint64_t max_size)
{
    struct write_queue *q = malloc(sizeof *q);
    if (!q)
        return -ENOMEM;
    uint64_t n = max_size >> PM_PAGE_SHIFT;
    *q = (struct write_queue){.pages_max = n,
                              .states = tables_take(tables, n),
                              .changed = tables_take(tables, n * sizeof *q->changed),
                              .queue = tables_take(tables, n * sizeof *q->queue)};
    medium->queue = q;
    medium->ops = &medium_file;
    return 0;
}

void queue_destroy(struct medium *medium)
{
    struct write_queue *q = medium->queue;
    if (!q)
        return;
    free(q);
    medium->queue = NULL;
}

void queue_set_epoch(struct medium *medium, uint64_t epoch)
{
    medium->queue->epoch = epoch;
    set_floor(medium->queue);
}

void queue_touch(struct medium *medium, const void *address, size_t size)
{
    for (uint64_t page = page_of(medium, address); page <= last_page(medium, address, size); page++)
        medium->queue->states[page] |= COPIED;
}

/* The number of pages from the queue's head on that can go out in one write. */
static uint64_t run_at_head(const struct write_queue *q, uint64_t most, uint64_t durable)
{
    const struct queue_entry *e = &q->queue[q->head];
    uint64_t n = 0, left = q->tail - q->head;
    while (n < left && n < most && e[n].page == e[0].page + n && q->changed[e[n].page] <= durable)
        n++;
    return n;
}

int64_t queue_write(struct medium *medium, uint64_t pages, uint64_t durable)
{
    struct write_queue *q = medium->queue;
    uint64_t written = 0;
    int error = 0;
    while (q->head < q->tail && written < pages) {
        uint64_t n = run_at_head(q, min_u64(pages - written, WRITE_PAGES_MAX), durable);
        if (n == 0)
            break;
        uint64_t offset = q->queue[q->head].page << PM_PAGE_SHIFT;
        error = write_file(medium, medium->file + offset, n << PM_PAGE_SHIFT, offset);
        if (error != 0)
            break;
        for (uint64_t i = 0; i < n; i++)
            q->states[q->queue[q->head++].page] &= (uint8_t)~QUEUED;
        written += n;
    }
    if (q->head == q->tail)
        q->head = q->tail = 0;
    medium->counts.lines_flushed += written * (PM_PAGE / PM_LINE);
    set_floor(q);
    return error != 0 ? error : (int64_t)written;
}

uint64_t queue_floor(const struct medium *medium)
{
    return atomic_load_explicit(&medium->queue->floor, memory_order_acquire);
}

uint64_t queue_pages(const struct medium *medium)
{
    return medium->queue->tail - medium->queue->head;
}

bool queue_holds(const struct medium *medium, const void *address)
{
    return medium->queue->states[page_of(medium, address)] & QUEUED;
}

void queue_forget(struct medium *medium, void *address, size_t size)
{
    uint64_t first = page_of(medium, address), last = last_page(medium, address, size);
    if (madvise(address, size, MADV_DONTNEED) != 0)
        return; /* they stay copies, and libpm keeps them up to date as copies */
    for (uint64_t page = first; page <= last; page++)
        medium->queue->states[page] = 0;
}
