/*
 * A straightforward redo log by hand: volatile memory, and at each commit a record of as many bytes as
 * redo/stores writes, made of as many lines as fit: compare each with home, put them into a record
 * with a checksum, write back what the last commit left in home's cache lines, copy the record past
 * the cache, one fence, store the lines home.
 *
 * The lines are not the structure's, but of an array that stays in the cache while commits are small.
 * Nobody has to find out which they are, nothing is allocated on the medium, and there is no recovery.
 * (redo/stores writes home's lines of bitmaps too, which are a few bytes in its record.)
 */
#include "structures/peer.h"
#include "structures/ring.h"
#include "structures/store.h"

#include <libpmem.h>
#include <string.h>
#include <xxh_x86dispatch.h>

#define LINES_MAX   (RING_BYTES / RING_LINE)
#define LINES_SMALL ((size_t)1024) /* that commits of no more lines use in turn */

struct record {
    uint64_t commit, lines, checksum, unused[5];
};

const char *const peer_name = "by hand";
const size_t peer_preload_batch = 1000;

static char *home, *view, *stage;
static size_t first, count; /* lines of the last commit */
static uint64_t commits;

pm_container *store_open(const char *path)
{
    home = ring_open(path, LINES_MAX * RING_LINE, &stage);
    view = aligned_alloc(RING_LINE, LINES_MAX * RING_LINE);
    if (!view)
        peer_fail("the lines", "out of memory");
    memset(view, 0, LINES_MAX * RING_LINE);
    return NULL;
}

/* As a library would, and not by a call a line. */
static bool differs(const char *a, const char *b)
{
    typedef uint64_t words8 __attribute__((vector_size(RING_LINE), aligned(RING_LINE)));
    words8 d = *(const words8 *)a ^ *(const words8 *)b;
    return (d[0] | d[1] | d[2] | d[3] | d[4] | d[5] | d[6] | d[7]) != 0;
}

/* The next lines are the commit's, and have changed. */
static void change_lines(size_t lines)
{
    first += count;
    count = lines;
    if (first + count > (count <= LINES_SMALL ? LINES_SMALL : LINES_MAX))
        first = 0;
    commits++;
    for (size_t line = first; line < first + count; line++)
        memcpy(view + line * RING_LINE, &commits, sizeof commits);
}

/* Header, numbers of lines, their contents. */
static void make_record(size_t bytes)
{
    struct record *record = (struct record *)stage;
    uint64_t *numbers = (uint64_t *)(record + 1);
    char *contents = (char *)(numbers + count);
    uint64_t n = 0;
    for (size_t line = first; line < first + count; line++) {
        if (!differs(view + line * RING_LINE, home + line * RING_LINE))
            continue;
        memcpy(contents + n * RING_LINE, view + line * RING_LINE, RING_LINE);
        numbers[n++] = line;
    }
    *record = (struct record){.commit = commits, .lines = n};
    record->checksum = XXH3_64bits(stage, bytes);
}

void store_commit(pm_container *c)
{
    (void)c;
    size_t bytes = ring_bytes(), last_first = first, last_count = count;
    if (bytes == 0) /* not timed */
        return;
    change_lines((bytes - sizeof(struct record)) / (sizeof(uint64_t) + RING_LINE));
    make_record(bytes);
    pmem_flush(home + last_first * RING_LINE, last_count * RING_LINE);
    ring_append(stage, bytes);
    pmem_drain();
    memcpy(home + first * RING_LINE, view + first * RING_LINE, count * RING_LINE);
}

void store_close(pm_container *c)
{
    (void)c;
    ring_close();
    free(view);
}
