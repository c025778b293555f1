/*
 * The slow paths of marks. They find the container of an address and call its tracker. An address in the
 * volatile heap belongs to discovery (discovery/cards.h). mark_entry.S calls these functions, and
 * announce.h has its own.
 */
#include "container/container.h"
#include "discovery/cards.h"
#include "discovery/heap.h"
#include "runtime/announce.h"
#include "track/track.h"

void runtime_mark(const void *address);
void runtime_mark_range(const void *address, size_t size);
void runtime_mark_data(const void *address, size_t size);
void runtime_mark_pieces(const void *address, size_t size);
void runtime_mark_copy(const void *address, const void *from, size_t size);
uint64_t runtime_kinds(const void *from, size_t size);

/* A range in the terms of the transaction layer. */
struct place {
    struct txn *t;
    uint64_t offset, bytes;
};

void runtime_mark(const void *address)
{
    if (heap_contains(address)) {
        cards_mark(address, 1);
        return;
    }
    struct container *c = arena_find(address);
    if (c && c->upper && container_holds(c, address))
        track_mark(c->upper, (uint64_t)((const char *)address - c->base) / PM_LINE, MARK_AHEAD);
}

/* Mark a range of a container; `bytes` is 0 if there is no container. */
static struct place mark(const void *address, size_t size, enum mark_time when)
{
    struct container *c = arena_find(address);
    if (!c || !c->upper || size == 0 || !container_holds(c, address))
        return (struct place){0};
    uint64_t offset = (uint64_t)((const char *)address - c->base);
    struct place place = {c->upper, offset, min_u64(size, c->max_size - offset)};
    track_mark_range(place.t, place.offset, place.bytes, when);
    return place;
}

static void mark_lines(const void *address, size_t size, enum mark_time when)
{
    if (heap_contains(address))
        cards_mark(address, size);
    else
        mark(address, size, when);
}

static void mark_data(const void *address, size_t size, enum mark_time when)
{
    if (heap_contains(address)) {
        cards_mark(address, size);
        cards_set_kind(address, size, KIND_DATA);
        return;
    }
    struct place place = mark(address, size, when);
    if (place.bytes)
        track_set_kind(place.t, place.offset, place.bytes, KIND_DATA);
}

static void mark_copy(const void *address, const void *from, size_t size, enum mark_time when)
{
    if (heap_contains(address)) {
        cards_mark(address, size);
        cards_copy_kinds(address, from, size);
        return;
    }
    struct place place = mark(address, size, when);
    if (place.bytes)
        track_copy_kinds(place.t, place.offset, from, place.bytes);
}

void runtime_mark_range(const void *address, size_t size)
{
    mark_lines(address, size, MARK_AHEAD);
}

void runtime_mark_data(const void *address, size_t size)
{
    mark_data(address, size, MARK_AHEAD);
}

void runtime_mark_pieces(const void *address, size_t size)
{
    if (heap_contains(address)) {
        cards_mark(address, size);
        cards_set_kind(address, size, KIND_PIECED);
        return;
    }
    struct place place = mark(address, size, MARK_AHEAD);
    if (place.bytes)
        track_set_kind(place.t, place.offset, place.bytes, KIND_PIECED);
}

void runtime_mark_copy(const void *address, const void *from, size_t size)
{
    mark_copy(address, from, size, MARK_AHEAD);
}

void runtime_announce_range(const void *address, size_t size)
{
    mark_lines(address, size, MARK_WHENEVER);
}

void runtime_announce_data(const void *address, size_t size)
{
    mark_data(address, size, MARK_WHENEVER);
}

void runtime_announce_copy(const void *address, const void *from, size_t size)
{
    mark_copy(address, from, size, MARK_WHENEVER);
}

uint64_t runtime_kinds(const void *from, size_t size)
{
    return track_kinds_at(from, size / sizeof(uint64_t));
}
