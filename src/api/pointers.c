/* Telling libpm where pointers are. */
#include "api/api.h"

#include "base/cancel.h"
#include "base/error.h"
#include "discovery/cards.h"
#include "discovery/heap.h"

#include <errno.h>
#include <string.h>

static uint64_t offset_in(const pm_container *c, const void *p)
{
    return (uint64_t)((const char *)p - c->container.base);
}

/* Whether `count` words at `p` are of one object in use; the lock is held. -1 with a message. */
static int check_words(pm_container *c, const void *p, size_t count)
{
    uint64_t offset = offset_in(c, p);
    if (offset % sizeof(void *) != 0)
        return pm__fail_at(c->container.path, offset, EINVAL,
                           "a pointer must be aligned to 8 bytes");
    uint64_t start, size;
    if (!allocator_object_at(&c->allocator, p, &start, &size))
        return pm__fail_at(c->container.path, offset, EINVAL, "%p is in no object", p);
    if (count > (start + size - offset) / sizeof(void *))
        return pm__fail_at(c->container.path, offset, EINVAL,
                           "%zu pointers there go beyond their object", count);
    return 0;
}

/* In a translated container, home's value of a word changes when the word is mapped or unmapped. And where no
 * code tells kinds, a commit judges the pointers of the pages that were stored to. So the commit must look at
 * the word, though nobody has stored to it. -1 with a message. */
static int announce_if_judged(pm_container *c, uint64_t offset, uint64_t bytes)
{
    bool is_judged = c->container.translated || c->txn.looks;
    int error = is_judged ? track_dirty(&c->txn, offset, bytes) : 0;
    return error == 0
               ? 0
               : container_fail_at(&c->container, offset, -error, "cannot open the page");
}

/* Map the words at once, and keep the commit from taking them for data. */
static int map_words(pm_container *c, uint64_t offset, uint64_t count)
{
    uint64_t bytes = count * sizeof(void *);
    if (pointers_make_maps(&c->allocator, offset, bytes) != 0 ||
        announce_if_judged(c, offset, bytes) != 0 ||
        pointers_set(&c->allocator, offset, count) != 0)
        return -1;
    if (c->txn.tracker.kinds)
        track_mark_range(&c->txn, offset, bytes, MARK_WHENEVER);
    track_set_kind(&c->txn, offset, bytes, KIND_POINTER);
    return 0;
}

int pm_mark_pointers(void *first, size_t count)
{
    DEFER_CANCELLATION;
    pm_container *c = owner_of(first);
    if (!c || api_enter_writing(c) != 0)
        return -1;
    lock_acquire(&c->allocator.lock);
    struct allocator_call call = allocator_begin_call(&c->allocator);
    int result = check_words(c, first, count);
    if (result == 0)
        result = map_words(c, offset_in(c, first), count);
    if (result != 0)
        allocator_undo_locked(&c->allocator, call);
    lock_release(&c->allocator.lock);
    return result;
}

int pm_mark_pointer(void *field)
{
    return pm_mark_pointers(field, 1);
}

/* The container that has all of these bytes, or NULL with a message. */
static pm_container *owner_of_range(const void *p, size_t bytes)
{
    pm_container *c = owner_of(p);
    if (!c || bytes <= c->container.max_size - offset_in(c, p))
        return c;
    return pm__fail_null_at(c->container.path, offset_in(c, p), EINVAL,
                            "%zu bytes there go beyond the container", bytes);
}

static int announce_mapped(pm_container *c, uint64_t offset, uint64_t bytes)
{
    uint64_t end = offset + bytes;
    int result = 0;
    offset = align_down(offset, sizeof(void *));
    while (c->container.translated && result == 0 &&
           (offset = pointers_next(&c->allocator, offset, end)) < end) {
        result = announce_if_judged(c, offset, sizeof(void *));
        offset += sizeof(void *);
    }
    return result;
}

int pm_mark_data(void *ptr, size_t bytes)
{
    DEFER_CANCELLATION;
    if (heap_contains(ptr)) {
        if (bytes > 0 && !cards_have(ptr, bytes))
            return pm__fail(EINVAL, "%zu bytes at %p go beyond the heap of the program", bytes, ptr);
        cards_set_kind(ptr, bytes, KIND_DATA);
        return 0;
    }
    pm_container *c = owner_of_range(ptr, bytes);
    if (!c || api_enter_writing(c) != 0)
        return -1;
    if (bytes == 0)
        return 0;
    lock_acquire(&c->allocator.lock);
    int result = announce_mapped(c, offset_in(c, ptr), bytes);
    if (result == 0) {
        pointer_map_clear(&c->txn.map, &c->txn.journal, offset_in(c, ptr), bytes);
        track_set_kind(&c->txn, offset_in(c, ptr), bytes, KIND_DATA);
    }
    lock_release(&c->allocator.lock);
    return result;
}

void **pm_next_pointer(const void *from, const void *end)
{
    DEFER_CANCELLATION;
    pm_container *c = owner_of_range(from, (size_t)((uintptr_t)end - (uintptr_t)from));
    if (!c)
        return NULL;
    /* A pointer that begins before `from` is not in the range. */
    uint64_t first = align_up(offset_in(c, from), sizeof(void *)), last = offset_in(c, end);
    lock_acquire(&c->allocator.lock);
    uint64_t offset = pointers_next(&c->allocator, first, last);
    lock_release(&c->allocator.lock);
    return offset < last ? (void **)(c->container.base + offset) : NULL;
}

/* Map the pointers of `count` structs; the lock is held. */
static int map_type(pm_container *c, const char *p, const struct pm_type *type, size_t count)
{
    for (size_t i = 0; i < count; i++, p += type->size)
        for (size_t k = 0; k < type->fields; k++) {
            const struct pm_field *f = &type->field[k];
            if (map_words(c, offset_in(c, p) + f->offset, f->count) != 0)
                return -1;
        }
    return 0;
}

static int check_type(const pm_container *c, const struct pm_type *type)
{
    bool good = type && type->size % sizeof(void *) == 0 && (type->fields == 0 || type->field);
    for (size_t k = 0; good && k < type->fields; k++)
        good = type->field[k].offset % sizeof(void *) == 0 && type->field[k].offset <= type->size &&
               type->field[k].count <= (type->size - type->field[k].offset) / sizeof(void *);
    if (good)
        return 0;
    return pm__fail(EINVAL,
                    "%s: the type has a field that is not an aligned pointer within it; "
                    "use PM_TYPE()",
                    c->container.path);
}

void *pm_malloc_typed(pm_container *c, const struct pm_type *type, size_t count)
{
    DEFER_CANCELLATION;
    if (api_enter_writing(c) != 0 || check_type(c, type) != 0)
        return NULL;
    lock_acquire(&c->allocator.lock);
    struct allocator_call call = allocator_begin_call(&c->allocator);
    void *p = api_calloc(c, count, type->size);
    if (p && map_type(c, p, type, count) != 0)
        p = api_give_back(c, p, call);
    lock_release(&c->allocator.lock);
    return p;
}
