/*
 * Takes the first free run that is large enough, from one list, the last freed run first. If there is none,
 * it takes addresses behind all spans that were ever used. A run that is given back is joined with its free
 * neighbours at once.
 */
#include "discovery/spans.h"

struct span *spans;
static uint32_t end = SPANS_FIRST;
static uint32_t free_runs; /* list of free runs */

uint32_t spans_end(void)
{
    return end;
}

static void unlink_run(uint32_t run)
{
    uint32_t next = spans[run].next, previous = spans[run].previous;
    if (next)
        spans[next].previous = previous;
    if (previous)
        spans[previous].next = next;
    else
        free_runs = next;
}

static void link_run(uint32_t first, uint32_t count)
{
    uint32_t last = first + count - 1;
    spans[last] = (struct span){.use = SPAN_FREE, .first = first};
    spans[first] =
        (struct span){.use = SPAN_FREE, .first = first, .count = count, .next = free_runs};
    if (free_runs)
        spans[free_runs].previous = first;
    free_runs = first;
}

void spans_give(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        spans[i].use = SPAN_FREE;
    if (spans[first - 1].use == SPAN_FREE) {
        uint32_t before = spans[first - 1].first;
        unlink_run(before);
        count += first - before;
        first = before;
    }
    if (first + count < end && spans[first + count].use == SPAN_FREE) {
        uint32_t after = first + count;
        unlink_run(after);
        count += spans[after].count;
    }
    link_run(first, count);
}

/* Cut `count` spans out of a free run. The spans before and behind stay free. */
static uint32_t cut(uint32_t run, uint32_t from, uint32_t count)
{
    uint32_t run_end = run + spans[run].count;
    unlink_run(run);
    if (from > run)
        link_run(run, from - run);
    if (from + count < run_end)
        link_run(from + count, run_end - from - count);
    return from;
}

uint32_t spans_take(uint32_t count, uint32_t alignment)
{
    for (uint32_t run = free_runs; run; run = spans[run].next) {
        uint32_t from = (uint32_t)align_up(run, alignment);
        if (from + count <= run + spans[run].count)
            return cut(run, from, count);
    }
    uint32_t from = (uint32_t)align_up(end, alignment);
    if (from >= SPANS || count > SPANS - from)
        return 0;
    if (from > end) {
        uint32_t skipped = end;
        end = from;
        spans_give(skipped, from - skipped);
    }
    end = from + count;
    return from;
}
