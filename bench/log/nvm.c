#include "log/nvm.h"

#include <time.h>
#include <x86intrin.h>

enum { LINE = 64, FENCE_NS = 500 };
static const double line_ns = LINE; /* 1 GB/s */

static double ticks_per_ns; /* 0: no delay */
static bool while_working;
static uint64_t lines;   /* on their way */
static uint64_t idle_at; /* ticks: when the medium has taken all lines that drain */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static double measure_ticks(void)
{
    enum { MEASURED_NS = 20000000 };
    const uint64_t from = now_ns(), ticks = __rdtsc();
    uint64_t to;
    while ((to = now_ns()) - from < MEASURED_NS)
        ;
    return (double)(__rdtsc() - ticks) / (double)(to - from);
}

void nvm_start(bool drains)
{
    while_working = drains;
    lines = 0;
    ticks_per_ns = measure_ticks();
}

static uint64_t ticks_of(double ns)
{
    return (uint64_t)(ns * ticks_per_ns);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void nvm_store(const void *start, size_t bytes)
{
    if (ticks_per_ns == 0 || bytes == 0)
        return;
    const uintptr_t at = (uintptr_t)start;
    const uint64_t stored = (at + bytes - 1) / LINE - at / LINE + 1;
    lines += stored;
    if (while_working)
        idle_at = later(idle_at, __rdtsc()) + ticks_of((double)stored * line_ns);
}

void nvm_fence(void)
{
    if (lines == 0)
        return;
    const uint64_t now = __rdtsc(), latency = ticks_of(FENCE_NS);
    const uint64_t end = while_working ? later(idle_at, now) + latency
                                       : now + latency + ticks_of((double)lines * line_ns);
    lines = 0;
    while (__rdtsc() < end)
        _mm_pause();
}
