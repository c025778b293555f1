/*
 * A thread allocates from its cache, which has a list of free objects for each size, and takes no lock. An
 * empty list is filled from the spans under the heap's lock. A list that is too long gives half of its
 * objects back. A small span without an object goes back to spans.c, and a large object goes there at once.
 *
 * A table has a byte for each granule of 16 bytes: it says whether an object begins there, and its slack.
 * Small objects are cleared when they are allocated. Large objects give their memory back to the system when
 * they are freed.
 *
 * If the heap cannot start for lack of address space, a warning says so, and every allocation fails.
 */
#define _GNU_SOURCE
#include "discovery/heap.h"

#include "backend/backend.h"
#include "base/fork.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/panic.h"
#include "container/container.h"
#include "discovery/cards.h"
#include "discovery/spans.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Sizes: multiples of 16 up to 1 KiB, then four sizes a doubling. */
#define FINE_SIZES (1024 / HEAP_GRANULE)
#define SIZES      (FINE_SIZES + 4 * 5 + 1)

/* The most bytes of one size that a thread keeps. Half of them move from or to the spans at once. */
#define KEPT_BYTES (UINT64_C(32) << 10)
#define KEPT_MAX   128
#define KEPT_MIN   4

struct cache {
    struct bin {
        void *list;
        uint32_t count, max;
    } bins[SIZES];
};

static struct lock heap_lock; /* guards spans and `rooms` */
static uint32_t rooms[SIZES]; /* lists of spans with room, one a size */
static uint8_t size_of_granules[HEAP_SMALL_MAX / HEAP_GRANULE + 1];
static uint16_t granules_of_size[SIZES];
static uint8_t *live; /* per granule: 0, or bytes of slack of the object that starts there, at most 127 */
static pthread_key_t cache_key;
static _Thread_local struct cache *cache;

/* Further meanings of a byte of `live`: */
#define ALIGNED 1   /* the whole byte: a trailer ends the object's memory */
#define MOVES   128 /* one bit: the object is moving */

/* Size and alignment that were asked for, of an aligned small object. */
struct trailer {
    uint32_t size, alignment;
};
static_assert(sizeof(struct trailer) <= HEAP_SLACK && ALIGNED < HEAP_SLACK,
              "a trailer is within the slack, and told from it");

static inline struct trailer *trailer_of(char *start, uint64_t bytes)
{
    return (struct trailer *)(start + bytes) - 1;
}

static inline uint8_t *live_at(const void *start)
{
    return live + ((uintptr_t)start - VOLATILE_BASE) / HEAP_GRANULE;
}

/* ---- once, and once a thread ----------------------------------------------------------------- */

static void choose_sizes(void)
{
    uint32_t size = 1, granules = 1;
    for (uint32_t wanted = 0; wanted <= HEAP_SMALL_MAX / HEAP_GRANULE; wanted++) {
        if (wanted > granules) {
            size++;
            uint32_t power = granules < FINE_SIZES ? 1 : (1u << (31 - __builtin_clz(granules))) / 4;
            granules += power;
        }
        size_of_granules[wanted] = (uint8_t)size;
        granules_of_size[size] = (uint16_t)granules;
    }
}

static void give_back_cache(void *);

/* Keep memory in a child of fork(2). The child goes on with its copy of the heap, and of the heap's part
 * of the tables. */
static int inherit(uintptr_t address, uint64_t size)
{
    return madvise((void *)address, size, MADV_DOFORK) == 0 ? 0 : -errno;
}

static int map_heap(void)
{
    if (arena_reserve("the volatile heap") != 0 || !arena_take_volatile())
        return -ENOMEM;
    int error = map_inherited((void *)VOLATILE_BASE, VOLATILE_SIZE);
    if (error == 0)
        error =
            inherit((uintptr_t)mark_of((void *)VOLATILE_BASE), VOLATILE_SIZE >> MARKS_LINE_SHIFT);
    if (error == 0)
        error =
            inherit((uintptr_t)kinds_of((void *)VOLATILE_BASE), VOLATILE_SIZE >> KINDS_WORD_SHIFT);
    return error;
}

static bool is_on;

/* If this fails, every allocation fails, so print why. */
static void start(void)
{
    spans = map_inherited_table(SPANS * sizeof *spans);
    live = map_inherited_table(VOLATILE_SIZE / HEAP_GRANULE);
    choose_sizes();
    is_on = spans && live && cards_start() && map_heap() == 0 &&
            pthread_key_create(&cache_key, give_back_cache) == 0;
    fork_take(FORK_HEAP, &heap_lock);
    if (!is_on) {
        pm__fail(ENOMEM, "no address space for the heap of `pmcc --discover`, which needs some 75 "
                         "TiB; raise ulimit -v, -d or -s, or set vm.overcommit_memory to 1");
        pm__warn();
    }
}

static struct cache *make_cache(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
    struct cache *k = is_on ? calloc(1, sizeof *k) : NULL;
    if (!k || pthread_setspecific(cache_key, k) != 0) {
        free(k);
        errno = ENOMEM;
        return NULL;
    }
    for (uint32_t i = 1; i < SIZES; i++) {
        uint64_t fits = KEPT_BYTES / (granules_of_size[i] * HEAP_GRANULE);
        k->bins[i].max = (uint32_t)max_u64(KEPT_MIN, min_u64(fits, KEPT_MAX));
    }
    return cache = k;
}

/* ---- small objects --------------------------------------------------------------------------- */

static void enter_room(struct span *s, uint32_t span, uint32_t size)
{
    s->has_room = true;
    s->previous = 0;
    s->next = rooms[size];
    if (s->next)
        spans[s->next].previous = span;
    rooms[size] = span;
}

static void leave_room(struct span *s, uint32_t size)
{
    s->has_room = false;
    if (s->next)
        spans[s->next].previous = s->previous;
    if (s->previous)
        spans[s->previous].next = s->next;
    else
        rooms[size] = s->next;
}

static uint32_t add_span(uint32_t size)
{
    uint32_t span = spans_take(1, 1), granules = granules_of_size[size];
    if (span == 0)
        return 0;
    spans[span] = (struct span){.use = SPAN_SMALL,
                                .first = span,
                                .count = 1,
                                .granules = granules,
                                .inverse = (1u << 24) / granules + 1};
    enter_room(&spans[span], span, size);
    return span;
}

/* Take an object from a span. If it was the last, the span leaves the list of spans with room. */
static void *take_object(uint32_t span, uint32_t size)
{
    struct span *s = &spans[span];
    void *p = s->list;
    if (p) {
        s->list = *(void **)p;
    } else {
        p = span_start(span) + (uint64_t)s->carved * HEAP_GRANULE;
        s->carved += s->granules;
    }
    s->out++;
    if (!s->list && s->carved + s->granules > HEAP_SPAN / HEAP_GRANULE)
        leave_room(s, size);
    return p;
}

/* Fill the bin to half its maximum with objects from the spans. */
static bool fill(struct bin *bin, uint32_t size)
{
    lock_acquire(&heap_lock);
    for (uint32_t n = divide_up(bin->max, 2); n > 0; n--) {
        uint32_t span = rooms[size] ? rooms[size] : add_span(size);
        if (span == 0)
            break;
        void *p = take_object(span, size);
        *(void **)p = bin->list;
        bin->list = p;
        bin->count++;
    }
    lock_release(&heap_lock);
    return bin->list;
}

static void put_object(void *p, uint32_t size)
{
    uint32_t span = span_of(p);
    struct span *s = &spans[span];
    *(void **)p = s->list;
    s->list = p;
    if (!s->has_room)
        enter_room(s, span, size);
    if (--s->out == 0) {
        leave_room(s, size);
        memset(span_start(span), 0, HEAP_SPAN); /* a large object may use this memory next */
        spans_give(span, 1);
    }
}

/* Give back all objects of a bin except `kept`. */
static void drain(struct bin *bin, uint32_t size, uint32_t kept)
{
    lock_acquire(&heap_lock);
    while (bin->count > kept) {
        void *p = bin->list;
        bin->list = *(void **)p;
        bin->count--;
        put_object(p, size);
    }
    lock_release(&heap_lock);
}

static void give_back_cache(void *context)
{
    struct cache *k = context;
    for (uint32_t size = 1; size < SIZES; size++)
        drain(&k->bins[size], size, 0);
    free(k);
    cache = NULL; /* a later allocation makes another cache, and then this function is called again */
}

/* Clear `each` bytes a granule. Most objects have few granules, and a loop costs less for them than a
 * call. */
static inline void clear(void *p, uint32_t granules, size_t each)
{
    if (granules > 8) {
        memset(p, 0, granules * each);
        return;
    }
    for (uint32_t i = 0; i < granules; i++)
        memset((char *)p + i * each, 0, each);
}

static void *allocate_small(uint32_t granules, size_t size)
{
    struct cache *k = cache ? cache : make_cache();
    if (!k)
        return NULL;
    uint32_t i = size_of_granules[granules];
    struct bin *bin = &k->bins[i];
    if (!bin->list && !fill(bin, i)) {
        errno = ENOMEM;
        return NULL;
    }
    void *p = bin->list;
    bin->list = *(void **)p;
    bin->count--;
    clear(p, granules_of_size[i], HEAP_GRANULE);
    *live_at(p) = (uint8_t)min_u64(granules_of_size[i] * HEAP_GRANULE - size, MOVES - 1);
    return p;
}

static bool free_small(const struct span *s, void *p)
{
    uint8_t *is_live = live_at(p);
    if ((uintptr_t)p % HEAP_GRANULE || *is_live == 0)
        return false;
    *is_live = 0;
    clear(kinds_of(p), s->granules, HEAP_GRANULE >> KINDS_WORD_SHIFT); /* KIND_NONE */
    uint32_t size = size_of_granules[s->granules];
    struct cache *k = cache ? cache : make_cache();
    if (!k) { /* no memory: free(3) cannot fail */
        lock_acquire(&heap_lock);
        put_object(p, size);
        lock_release(&heap_lock);
        return true;
    }
    struct bin *bin = &k->bins[size];
    *(void **)p = bin->list;
    bin->list = p;
    if (++bin->count > bin->max)
        drain(bin, size, bin->max / 2);
    return true;
}

/* ---- large ones ------------------------------------------------------------------------------ */

static void *allocate_large(size_t size, size_t alignment)
{
    if ((!cache && !make_cache()) || size > VOLATILE_SIZE / 2 || alignment > VOLATILE_SIZE / 4) {
        errno = ENOMEM;
        return NULL;
    }
    uint32_t count = (uint32_t)divide_up(size + HEAP_SLACK, HEAP_SPAN);
    uint32_t apart = (uint32_t)max_u64(alignment >> HEAP_SPAN_SHIFT, 1);
    lock_acquire(&heap_lock);
    uint32_t first = spans_take(count, apart);
    for (uint32_t i = first; first && i < first + count; i++)
        spans[i] = (struct span){.use = SPAN_LARGE, .first = first};
    if (first) {
        spans[first].count = count;
        spans[first].bytes = size;
        spans[first].alignment = alignment;
    }
    lock_release(&heap_lock);
    if (first == 0)
        errno = ENOMEM;
    return first ? span_start(first) : NULL;
}

static bool free_large(struct span *s, void *p)
{
    uint32_t first = span_of(p), count = s->count;
    if (s->first != first || p != span_start(first))
        return false;
    uint64_t bytes = (uint64_t)count << HEAP_SPAN_SHIFT;
    /* The kernel refuses this for locked memory. */
    if (madvise(kinds_of(p), bytes >> KINDS_WORD_SHIFT, MADV_DONTNEED) != 0)
        memset(kinds_of(p), KIND_NONE, bytes >> KINDS_WORD_SHIFT);
    if (madvise(p, bytes, MADV_DONTNEED) != 0)
        memset(p, 0, bytes);
    lock_acquire(&heap_lock);
    spans_give(first, count);
    lock_release(&heap_lock);
    return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

void *heap_allocate(size_t size)
{
    if (size <= HEAP_SMALL_MAX - HEAP_SLACK)
        return allocate_small((uint32_t)((size + HEAP_SLACK + HEAP_GRANULE - 1) / HEAP_GRANULE),
                              size);
    return allocate_large(size, HEAP_GRANULE);
}

void *heap_allocate_aligned(size_t alignment, size_t size)
{
    if (alignment <= HEAP_GRANULE)
        return heap_allocate(size);
    uint64_t bytes = HEAP_SMALL_MAX;
    if (size <= HEAP_SMALL_MAX - HEAP_SLACK && alignment <= HEAP_SMALL_MAX / 2) {
        /* Each power of two is a size, and objects of such a size lie at its multiples. */
        bytes = alignment;
        while (bytes < size + HEAP_SLACK)
            bytes *= 2;
        char *p = allocate_small((uint32_t)(bytes / HEAP_GRANULE), size);
        if (p) {
            *trailer_of(p, bytes) = (struct trailer){(uint32_t)size, (uint32_t)alignment};
            *live_at(p) = ALIGNED;
        }
        return p;
    }
    return allocate_large(size, alignment);
}

void heap_free(void *p)
{
    struct span *s = spans ? &spans[span_of(p)] : NULL;
    bool was_one = s && ((s->use == SPAN_SMALL && free_small(s, p)) ||
                         (s->use == SPAN_LARGE && free_large(s, p)));
    if (!was_one)
        panic_address("free()", p, HEAP_NO_OBJECT);
}

enum heap_state heap_find(const void *address, struct heap_object *object)
{
    const struct span *s = spans ? &spans[span_of(address)] : NULL;
    if (!s || s->use == SPAN_NEVER)
        return HEAP_NONE;
    if (s->use == SPAN_FREE)
        return HEAP_FREE;
    if (s->use == SPAN_LARGE) {
        s = &spans[s->first];
        *object = (struct heap_object){span_start(s->first), s->bytes, s->alignment, s->moving > 0};
        return HEAP_LIVE;
    }
    uint64_t granule = (uint64_t)span_index(s, address) * s->granules;
    char *start = span_start(s->first) + granule * HEAP_GRANULE;
    if (granule >= s->carved)
        return HEAP_NONE;
    uint8_t is_live = *live_at(start), slack = is_live & (MOVES - 1);
    uint64_t bytes = s->granules * (uint64_t)HEAP_GRANULE;
    *object = (struct heap_object){start, bytes - slack, HEAP_GRANULE, is_live & MOVES};
    if (slack == ALIGNED) {
        object->size = trailer_of(start, bytes)->size;
        object->alignment = trailer_of(start, bytes)->alignment;
    }
    return is_live ? HEAP_LIVE : HEAP_FREE;
}

void heap_set_moves(const struct heap_object *object, bool moves)
{
    struct span *s = &spans[span_of(object->start)];
    uint8_t *is_live = live_at(object->start);
    s->moving += moves ? 1 : UINT32_MAX; /* minus one */
    if (s->use != SPAN_LARGE)
        *is_live = (uint8_t)((*is_live & (MOVES - 1)) | (moves ? MOVES : 0));
}

bool heap_find_moving(const void *address, struct heap_object *object)
{
    if (!spans || !heap_contains(address))
        return false;
    const struct span *s = &spans[span_of(address)];
    if ((s->use == SPAN_LARGE ? spans[s->first].moving : s->moving) == 0)
        return false;
    return heap_find(address, object) == HEAP_LIVE && object->moves;
}

bool heap_next(struct heap_object *object)
{
    const char *address = object->start ? object->start + 1 : span_start(SPANS_FIRST);
    uint32_t span = span_of(address), end = spans ? spans_end() : 0;
    while (span < end) {
        const struct span *s = &spans[span];
        uint32_t next = span + 1;
        if (s->use == SPAN_LARGE || (s->use == SPAN_FREE && s->first == span && s->count > 0))
            next = s->first + spans[s->first].count;
        if (s->use == SPAN_LARGE && address <= span_start(s->first))
            return heap_find(span_start(s->first), object) == HEAP_LIVE;
        if (s->use == SPAN_SMALL) {
            const uint64_t size = s->granules * (uint64_t)HEAP_GRANULE;
            uint64_t i = divide_up((uint64_t)(address - span_start(span)), size);
            for (; i * s->granules < s->carved; i++)
                if (heap_find(span_start(span) + i * size, object) == HEAP_LIVE)
                    return true;
        }
        address = span_start(span = next);
    }
    return false;
}
