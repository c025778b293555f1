#include "mock_heap.h"

#include "base/marks.h"
#include "runtime/heap.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HEAP_BYTES  ((size_t)4 << 20)
#define OBJECTS_MAX 10000

static const struct pm__roots *roots;
static char log_of_calls[4096];
static int allocations_left = INT_MAX;

static struct object {
    char *start; /* NULL when freed */
    size_t size;
} objects[OBJECTS_MAX];
static size_t object_count;
static char *next; /* free from here on; nothing is used twice */

enum { ANNOUNCED = 1, AS_COPY = 2 };
static char announced[HEAP_BYTES];

static void reserve(uint64_t address, size_t bytes)
{
    void *got = mmap((void *)address, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    assert(got == (void *)address);
}

/* ---- the heap -------------------------------------------------------------------------------- */

static bool is_in_heap(const void *p)
{
    return (uintptr_t)p - ARENA_HINT < HEAP_BYTES;
}

static struct object *find(const void *p)
{
    for (size_t i = 0; i < object_count; i++)
        if (p && objects[i].start == p)
            return &objects[i];
    return NULL;
}

static void note(const char *call)
{
    assert(strlen(log_of_calls) + strlen(call) + 2 < sizeof log_of_calls);
    if (log_of_calls[0])
        strcat(log_of_calls, " ");
    strcat(log_of_calls, call);
}

static void *allocate(size_t alignment, size_t size)
{
    if (!next) {
        reserve(ARENA_HINT, HEAP_BYTES);
        reserve(MARKS_TABLE, HEAP_BYTES >> MARKS_LINE_SHIFT);
        next = (char *)ARENA_HINT;
    }
    char *p = (char *)(((uintptr_t)next + alignment - 1) & ~(alignment - 1));
    if (allocations_left <= 0 || size > HEAP_BYTES) {
        errno = ENOMEM;
        return NULL;
    }
    allocations_left--;
    next = p + size + 1;
    assert(is_in_heap(next) && object_count < OBJECTS_MAX);
    objects[object_count++] = (struct object){p, size};
    return memset(p, 0xa5, size);
}

static void release(void *p)
{
    if (!is_in_heap(p)) {
        free(p);
        return;
    }
    assert(is_mocked(p));
    find(p)->start = NULL;
}

void *pm__malloc(size_t size)
{
    note("malloc");
    return allocate(16, size);
}

void *pm__calloc(size_t count, size_t size)
{
    note("calloc");
    void *p = allocate(16, count * size);
    return p ? memset(p, 0, count * size) : NULL;
}

void *pm__aligned_alloc(size_t alignment, size_t size)
{
    note("aligned_alloc");
    return allocate(alignment, size);
}

void *pm__memalign(size_t alignment, size_t size)
{
    note("memalign");
    return allocate(alignment, size);
}

int pm__posix_memalign(void **result, size_t alignment, size_t size)
{
    note("posix_memalign");
    *result = allocate(alignment, size);
    return *result ? 0 : ENOMEM;
}

void *pm__realloc(void *p, size_t size)
{
    note("realloc");
    if (p && !is_in_heap(p))
        return realloc(p, size);
    void *q = allocate(16, size);
    if (p && q) {
        size_t old = find(p)->size;
        memcpy(q, p, old < size ? old : size);
        release(p);
    }
    return q;
}

void *pm__reallocarray(void *p, size_t count, size_t size)
{
    note("array");
    return pm__realloc(p, count * size);
}

void pm__free(void *p)
{
    note("free");
    release(p);
}

size_t pm__malloc_usable_size(void *p)
{
    note("usable_size");
    return find(p)->size;
}

/* ---- roots ----------------------------------------------------------------------------------- */

void pm__register(const struct pm__roots *registered)
{
    assert(!roots);
    roots = registered;
}

void pm__unregister(const struct pm__roots *registered)
{
    assert(roots == registered);
    roots = NULL;
}

int count_global(const void *p, size_t size)
{
    int count = 0;
    for (const struct pm__global *g = roots->globals; g < roots->globals_end; g++)
        count += g->address == p && g->size == size;
    return count;
}

int count_local(const void *p, size_t size)
{
    int count = 0;
    for (const struct pm__local *l = roots->locals; l < roots->locals_end; l++)
        count += l->address() == p && l->size == size;
    return count;
}

int count_function(void (*function)(void), bool is_main)
{
    int count = 0;
    for (const struct pm__function *f = roots->functions; f < roots->functions_end; f++)
        count += f->start == (void *)function && f->flags == (is_main ? PM__FUNCTION_MAIN : 0);
    return count;
}

/* ---- marks ----------------------------------------------------------------------------------- */

void runtime_mark(const void *p);
void runtime_mark_range(const void *p, size_t n);
void runtime_mark_data(const void *p, size_t n);
void runtime_mark_pieces(const void *p, size_t n);
void runtime_mark_copy(const void *p, const void *from, size_t n);
uint64_t runtime_kinds(const void *from, size_t n);
void runtime_announce_range(const void *p, size_t n);
void runtime_announce_data(const void *p, size_t n);
void runtime_announce_copy(const void *p, const void *from, size_t n);

static void announce(const void *p, size_t n, char how)
{
    assert(is_in_heap(p) && is_in_heap((const char *)p + n));
    for (size_t i = 0; i < n; i++)
        announced[(uintptr_t)p - ARENA_HINT + i] |= how;
}

void runtime_mark(const void *p)
{
    (void)p;
}
void runtime_mark_range(const void *p, size_t n)
{
    (void)p, (void)n;
}
void runtime_mark_data(const void *p, size_t n)
{
    announce(p, n, ANNOUNCED);
}
void runtime_mark_pieces(const void *p, size_t n)
{
    announce(p, n, ANNOUNCED);
}
void runtime_mark_copy(const void *p, const void *from, size_t n)
{
    (void)from;
    announce(p, n, ANNOUNCED | AS_COPY);
}
void runtime_announce_range(const void *p, size_t n)
{
    runtime_mark_range(p, n);
}
void runtime_announce_data(const void *p, size_t n)
{
    runtime_mark_data(p, n);
}
void runtime_announce_copy(const void *p, const void *from, size_t n)
{
    runtime_mark_copy(p, from, n);
}
uint64_t runtime_kinds(const void *from, size_t n)
{
    (void)from, (void)n;
    return 0;
}

/* ---- the tests' side ------------------------------------------------------------------------- */

void *keep(void *p)
{
    static void *volatile kept;
    kept = p;
    return kept;
}

bool is_mocked(const void *p)
{
    return find(p) != NULL;
}

size_t live_objects(void)
{
    size_t live = 0;
    for (size_t i = 0; i < object_count; i++)
        live += objects[i].start != NULL;
    return live;
}

void forget_calls(void)
{
    log_of_calls[0] = 0;
    memset(announced, 0, sizeof announced);
}

const char *calls(void)
{
    return log_of_calls;
}

bool is_announced(const void *p, size_t n, bool as_copy)
{
    for (size_t i = 0; i < n; i++)
        if (!(announced[(uintptr_t)p - ARENA_HINT + i] & (as_copy ? AS_COPY : ANNOUNCED)))
            return false;
    return true;
}

void fail_after(int allocations)
{
    allocations_left = allocations;
}
