/*
 * The allocator's public functions, and its steps of a commit. A small object takes a slot of the first slab
 * in its class's list. A slab without a free slot leaves the list. If the list is empty, a segment becomes a
 * new slab. A large object takes a run of segments. Then the file may have to grow. A slot of an existing
 * slab costs a few words of the shadow.
 *
 * allocator_begin_commit() gives empty slabs back. Under undo it also tells the transaction which pages get
 * their first object, and which lose their last. Both are linear in the slabs and the part of the segment
 * table that the transaction has changed.
 */
#include "allocator/allocator.h"

#include "allocator/classes.h"
#include "allocator/slab.h"
#include "base/error.h"
#include "container/contents.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Rebuild the lists from the segment table, lowest segments first. */
static void rebuild_lists(struct allocator *a)
{
    for (uint32_t i = 0; i < a->classes; i++)
        a->first[i] = SLAB_NONE;
    a->touched = NULL;
    for (uint32_t i = atomic_load(&a->c->segments); i-- > 0;) {
        uint64_t word = table_word(shadow_table(a->c), i);
        if (segment_kind(word) != SEGMENT_SLAB)
            continue;
        struct slab *s = &a->slabs[i];
        *s = (struct slab){.segment = i};
        s->shape.object_size = segment_argument(word) * FORMAT_GRANULARITY_MIN;
        slab_list(a, s);
    }
}

int allocator_open(struct allocator *a, struct txn *t)
{
    *a = (struct allocator){.t = t, .c = t->c, .classes = class_count(t->c)};
    a->slabs = tables_take(&a->c->tables, a->c->segments_max * sizeof *a->slabs);
    a->first = malloc(a->classes * sizeof *a->first);
    if (!a->first)
        return pm__fail_system(ENOMEM, "%s: no memory for the allocator's tables", a->c->path);
    rebuild_lists(a);
    t->upcalls = (struct txn_upcalls){a, slab_line_liveness, slab_page_liveness};
    return 0;
}

void allocator_close(struct allocator *a)
{
    free(a->first);
}

static int no_space(const struct allocator *a, uint64_t size, int error)
{
    if (txn_check_medium(a->t) != 0) /* perhaps it was this call that met the error */
        return -1;
    return container_fail_at(a->c, container_bytes(a->c), error,
                             "no room for an object of %" PRIu64 " bytes", size);
}

/* Offset of a new object in a slab, or 0. */
static uint64_t allocate_small(struct allocator *a, uint32_t class, uint32_t object_size)
{
    while (a->first[class] != SLAB_NONE) {
        struct slab *s = slab_of(a, a->first[class]);
        uint32_t slot = slab_take(a, s);
        if (slot != SLOT_FULL)
            return slot_offset(a, s, slot);
        slab_unlist(a, s);
    }
    int error;
    struct slab *s = slab_create(a, object_size, &error);
    if (!s) {
        no_space(a, object_size, error);
        return 0;
    }
    return slot_offset(a, s, slab_take(a, s));
}

static uint64_t allocate_large(struct allocator *a, uint64_t size)
{
    uint64_t count = divide_up(size, a->c->segment_size);
    int64_t first =
        count > a->c->segments_max
            ? container_exceeds_max(a->c)
            : segments_take(a->t, (uint32_t)count, segment_word(SEGMENT_LARGE, count), 0);
    if (first < 0) {
        no_space(a, size, (int)-first);
        return 0;
    }
    return (uint64_t)first << a->c->segment_shift;
}

/* The class whose objects all have at least `size` bytes and are all aligned. */
static uint32_t aligned_class(const struct allocator *a, uint64_t size, uint64_t alignment,
                              uint32_t *object_size)
{
    if (alignment > PM_PAGE)
        return CLASS_LARGE;
    uint32_t class;
    do {
        size = align_up(size, alignment);
        class = class_of(a->c, size, object_size);
        size = (uint64_t)*object_size + 1;
    } while (class != CLASS_LARGE && (*object_size & (alignment - 1)) != 0);
    return class;
}

void *allocator_allocate_locked(struct allocator *a, size_t size, size_t alignment)
{
    if (size == 0)
        size = 1;
    if (size > a->c->max_size)
        return no_space(a, size, -container_exceeds_max(a->c)), NULL;
    uint32_t object_size = 0;
    uint32_t class = aligned_class(a, size, alignment, &object_size);
    uint64_t offset =
        class == CLASS_LARGE ? allocate_large(a, size) : allocate_small(a, class, object_size);
    if (offset && class != CLASS_LARGE) /* the pages of a new large object are closed */
        track_new_object(a->t, offset, size, object_size);
    return offset ? a->c->base + offset : NULL;
}

void *allocator_allocate(struct allocator *a, size_t size, size_t alignment)
{
    lock_acquire(&a->lock);
    void *p = allocator_allocate_locked(a, size, alignment);
    lock_release(&a->lock);
    return p;
}

static int bad_pointer(const struct allocator *a, const void *p, const char *why)
{
    return pm__fail_at(a->c->path, (uint64_t)((const char *)p - a->c->base), EINVAL, "%p is %s", p,
                       why);
}

int find_object(struct allocator *a, const void *p, struct object *object)
{
    uint64_t offset = (uint64_t)((const char *)p - a->c->base);
    uint64_t segment = offset >> a->c->segment_shift;
    if (segment >= atomic_load(&a->c->segments))
        return bad_pointer(a, p, "beyond the end of the container");
    uint64_t word = table_word(shadow_table(a->c), segment);
    *object = (struct object){.segment = (uint32_t)segment};
    switch (segment_kind(word)) {
    case SEGMENT_LARGE:
        object->size = (uint64_t)segment_argument(word) << a->c->segment_shift;
        if (offset != segment_offset(a, object->segment))
            return bad_pointer(a, p, "inside an object, not its start");
        return 0;
    case SEGMENT_MORE:
        return bad_pointer(a, p, "inside an object, not its start");
    case SEGMENT_SLAB:
        object->slab = slab_of(a, object->segment);
        object->slot = slab_slot_at(a, object->slab, offset);
        object->size = object->slab->shape.object_size;
        if (object->slot == SLOT_FULL)
            return bad_pointer(a, p, "not the start of an object");
        if (!slab_uses(a, object->slab, object->slot))
            return bad_pointer(a, p, "not allocated, or freed already");
        return 0;
    default:
        return bad_pointer(a, p, "not in an allocated segment, or freed already");
    }
}

uint64_t allocator_root_offset(const struct allocator *a)
{
    return seal_payload(*shadow_word(a->c, a->t->root.offset));
}

char *allocator_root_object(struct allocator *a, uint64_t *size)
{
    lock_acquire(&a->lock);
    uint64_t offset = allocator_root_offset(a);
    *size = seal_payload(*shadow_word(a->c, a->t->root.offset + sizeof(uint64_t)));
    lock_release(&a->lock);
    return offset ? a->c->base + offset : NULL;
}

static const char *root(const struct allocator *a)
{
    uint64_t offset = allocator_root_offset(a);
    return offset ? a->c->base + offset : NULL;
}

void allocator_move_root(struct allocator *a, uint64_t offset)
{
    if (offset != allocator_root_offset(a))
        journal_set(&a->t->journal, &a->t->root, 0, seal(offset));
}

static void set_root(struct allocator *a, uint64_t offset, uint64_t size)
{
    journal_set(&a->t->journal, &a->t->root, 0, seal(offset));
    journal_set(&a->t->journal, &a->t->root, 1, seal(size));
}

void forget_pointers(struct allocator *a, uint64_t offset, uint64_t bytes)
{
    pointer_map_clear(&a->t->map, &a->t->journal, offset, bytes);
    track_set_kind(a->t, offset, bytes, KIND_NONE);
}

int allocator_free_locked(struct allocator *a, const void *p)
{
    struct object object = {.size = 0};
    if (find_object(a, p, &object) != 0)
        return -1;
    if (p == root(a))
        set_root(a, 0, 0);
    forget_pointers(a, (uint64_t)((const char *)p - a->c->base), object.size);
    if (object.slab)
        slab_put(a, object.slab, object.slot);
    else
        segments_release(a->t, object.segment, (uint32_t)(object.size >> a->c->segment_shift));
    return 0;
}

int allocator_free(struct allocator *a, const void *p)
{
    lock_acquire(&a->lock);
    int result = allocator_free_locked(a, p);
    lock_release(&a->lock);
    return result;
}

size_t allocator_usable(struct allocator *a, const void *p)
{
    struct object object = {.size = 0};
    return find_object(a, p, &object) == 0 ? object.size : 0;
}

bool allocator_object_at(const struct allocator *a, const void *p, uint64_t *start, uint64_t *size)
{
    struct contents open = contents_open(a->c);
    return contents_find(&open, (uint64_t)((const char *)p - a->c->base), start, size);
}

/* Note the pages of a segment whose every page lives or dies with this commit. */
static void note_segment(struct allocator *a, uint32_t segment, bool live)
{
    if (!a->t->engine->in_place)
        return;
    uint32_t n = pages_per_segment(a->c);
    for (uint32_t page = segment * n; page < (segment + 1) * n; page++)
        if (txn_page_is_fresh(a->t, page) == live)
            txn_note(a->t, page, live);
}

/* Forget slabs that were made and given back in this transaction: the commit must not clear them. If the
 * commit fails, another owner may take the segment. */
static void forget_new_and_gone(struct allocator *a)
{
    journal_forget_new_obsolete(&a->t->journal);
    struct slab **link = &a->touched;
    while (*link) {
        struct slab *s = *link;
        if (s->bitmap.obsolete && s->bitmap.clear) {
            *link = s->next_touched;
            *s = (struct slab){.segment = s->segment};
        } else {
            link = &s->next_touched;
        }
    }
}

/* Note what changes with this commit. An empty slab goes back to the container if another slab of its class
 * has room. Otherwise the slab stays, because it would soon be wanted again. */
static void note_changes(struct allocator *a)
{
    const uint64_t *home = home_table(a->c), *shadow = shadow_table(a->c);
    for (struct slab *s = a->touched; s; s = s->next_touched) {
        uint64_t word = shadow[s->segment];
        if (segment_kind(word) != SEGMENT_SLAB)
            continue;
        if (slab_is_empty(a, s) && !slab_is_alone(a, s)) {
            slab_give_back(a, s);
        } else {
            slab_note_pages(a, s);
        }
    }
    forget_new_and_gone(a);
    for (uint32_t i = a->t->table.low; i < a->t->table.high; i++) {
        uint64_t before = table_word(home, i), after = table_word(shadow, i);
        if (before == after)
            continue;
        if (segment_is_data(before))
            note_segment(a, i, false);
        else if (segment_is_data(after) && segment_kind(after) != SEGMENT_SLAB)
            note_segment(a, i, true);
    }
}

void allocator_undo_locked(struct allocator *a, struct allocator_call call)
{
    int error = errno;
    txn_unmake_maps(a->t, call.maps_made);
    for (struct slab *s = a->touched; s; s = s->next_touched) {
        bool is_there = segment_kind(table_word(shadow_table(a->c), s->segment)) == SEGMENT_SLAB;
        if (s->bitmap.clear && is_there && slab_is_empty(a, s))
            slab_give_back(a, s);
    }
    forget_new_and_gone(a);
    txn_undo_growth(a->t, call.txn);
    errno = error;
}

void allocator_undo_call(struct allocator *a, struct allocator_call call)
{
    lock_acquire(&a->lock);
    call.maps_made = a->t->map.made; /* what is there now is another thread's: see allocator.h */
    allocator_undo_locked(a, call);
    lock_release(&a->lock);
}

void allocator_begin_commit(struct allocator *a)
{
    lock_acquire(&a->lock);
    a->commit = allocator_begin_call(a);
    note_changes(a);
}

uint64_t allocator_end_commit(struct allocator *a, int result)
{
    if (result == 0) {
        for (struct slab *s = a->touched; s; s = s->next_touched) {
            s->touched = false;
            if (!s->listed) /* full, or gone: home has the same bits, so give the shadow's copy back */
                journal_trim(&a->t->journal, &s->bitmap);
        }
        a->touched = NULL;
    } else {
        allocator_undo_locked(a, a->commit);
    }
    txn_drop_notes(a->t);
    uint64_t committed = a->t->epoch - 1;
    lock_release(&a->lock);
    return committed;
}

int allocator_rollback(struct allocator *a)
{
    lock_acquire(&a->lock);
    int result = txn_rollback(a->t);
    if (result == 0) {
        a->rollbacks++;
        rebuild_lists(a);
    }
    lock_release(&a->lock);
    return result;
}

/* Clearing frees the segments of objects, and of the maps of their pointers. */
static bool is_cleared(uint64_t word)
{
    return segment_is_data(word) || segment_kind(word) == SEGMENT_MAP;
}

int allocator_clear(struct allocator *a)
{
    /* Objects of the open transaction die either way. So roll them back, and free the rest on top. */
    int result = txn_rollback(a->t);
    if (result == 0) {
        for (uint32_t i = 0, n = atomic_load(&a->c->segments); i < n; i++)
            if (is_cleared(table_word(shadow_table(a->c), i)))
                segments_release(a->t, i, 1);
        set_root(a, 0, 0);
        rebuild_lists(a);
        txn_find_maps(a->t);
    }
    return result;
}

int allocator_reserve(struct allocator *a, uint64_t bytes)
{
    uint64_t per_segment = pages_per_segment(a->c), pages = 0, words = 0;
    for (struct slab *s = a->touched; s; s = s->next_touched) {
        pages += per_segment; /* all its pages may become live */
        words++;              /* its segment may be given back */
    }
    const uint64_t *home = home_table(a->c), *shadow = shadow_table(a->c);
    for (uint32_t i = a->t->table.low; i < a->t->table.high; i++)
        pages += table_word(home, i) != table_word(shadow, i) ? per_segment : 0;
    int error = bytes > a->c->max_size ? container_exceeds_max(a->c)
                                       : txn_reserve(a->t, divide_up(bytes, PM_PAGE), pages, words);
    if (error != 0 && txn_check_medium(a->t) == 0)
        return container_fail_at(a->c, container_bytes(a->c), -error,
                                 "no space to reserve log for %" PRIu64 " bytes in one transaction",
                                 bytes);
    return error == 0 ? 0 : -1;
}

int allocator_set_root(struct allocator *a, const void *p, size_t size)
{
    struct object object = {.size = 0};
    uint64_t offset = 0;
    lock_acquire(&a->lock);
    int result = 0;
    if (p) {
        offset = (uint64_t)((const char *)p - a->c->base);
        result = find_object(a, p, &object);
    }
    if (result == 0 && size > object.size)
        result = pm__fail_at(a->c->path, offset, EINVAL,
                             "a root of %zu bytes in an object of %" PRIu64, size, object.size);
    if (result == 0)
        set_root(a, offset, size ? size : object.size);
    lock_release(&a->lock);
    return result;
}

void allocator_replace_root(struct allocator *a, const void *from, const void *to)
{
    struct object object;
    if (from == root(a) && find_object(a, to, &object) == 0)
        set_root(a, (uint64_t)((const char *)to - a->c->base), object.size);
}

void *allocator_root(struct allocator *a)
{
    lock_acquire(&a->lock);
    void *p = (void *)root(a);
    lock_release(&a->lock);
    return p;
}

bool allocator_next_object(const struct allocator *a, uint64_t *offset, uint64_t *size)
{
    struct contents open = contents_open(a->c);
    return contents_next(&open, offset, size);
}
