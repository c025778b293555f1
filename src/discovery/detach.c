/*
 * Finds the objects that only one object leads to. First it collects the *members*: all objects that this
 * object leads to, directly or through others. Then it collects the *kept* members. Other objects of the
 * container lead to them, or kept members do. The other members are copied to the heap, pointers to them
 * are redirected, and their old memory is freed.
 */
#define _GNU_SOURCE
#include "discovery/detach.h"

#include "base/error.h"
#include "discovery/cards.h"
#include "discovery/check.h"
#include "discovery/exclusions.h"
#include "discovery/heap.h"
#include "discovery/references.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

struct member {
    uint64_t start, size; /* place in the file */
    char *to;             /* copy on the heap; NULL: not copied yet */
    bool kept;
};

struct detaching {
    struct discovery *d;
    struct allocator *a;
    struct vector members;
    struct vector kept; /* uint64_t: indices of kept members, in the order found */
    uint32_t
        *index; /* per granule of the file: 1 plus the number of the member that starts there */
    uint64_t index_bytes;
};

static struct member *member(const struct detaching *s, uint64_t i)
{
    return (struct member *)s->members.items + i;
}

static int no_memory(const struct detaching *s)
{
    return pm__fail(ENOMEM, "%s: no memory to detach objects; none is", s->a->c->path);
}

/* The object to which a value leads. A pointer just past an object leads to it, unless another object
 * begins there. */
static bool object_of(const struct detaching *s, uint64_t value, uint64_t *start, uint64_t *size)
{
    const char *p = (const char *)value;
    if (!container_holds(s->a->c, p))
        return false;
    if (allocator_object_at(s->a, p, start, size))
        return true;
    return container_holds(s->a->c, p - 1) && allocator_object_at(s->a, p - 1, start, size) &&
           s->a->c->base + *start + *size == p;
}

/* The index of the member to which a value leads; the number of members if it leads to no member. */
static uint64_t member_of(const struct detaching *s, uint64_t value)
{
    uint64_t start, size;
    if (!object_of(s, value, &start, &size))
        return s->members.count;
    uint32_t number = s->index[start / FORMAT_GRANULARITY_MIN];
    return number ? number - 1 : s->members.count;
}

/* Called for each pointer of an object. If it returns another value than 0, the walk ends. */
typedef int visitor(struct detaching *s, uint64_t *word);

/* base/marks.h, P4: nobody can tell whether a pieced word is a pointer, so fail if it leads to an object. */
static int refuse_pieced(struct detaching *s, uint64_t *word)
{
    uint64_t start, size, offset = (uint64_t)((char *)word - s->a->c->base);
    if (!object_of(s, *word, &start, &size))
        return 0;
    return track_refuse_pieced(s->a->t, offset);
}

static int visit_pointers(struct detaching *s, uint64_t start, uint64_t size, visitor *visit)
{
    uint64_t *words = (uint64_t *)(s->a->c->base + start);
    int result = 0;
    for (uint64_t i = 0, end = size / sizeof(uint64_t); i < end && result == 0;
         i += PM_LINE_WORDS) {
        uint64_t all = track_kinds_at(words + i, min_u64(PM_LINE_WORDS, end - i));
        uint64_t kinds = (all & KIND_MAY_POINT * KIND_EACH) | kinds_pieced(all);
        for (uint64_t k = i; kinds && result == 0; kinds >>= 8, k++)
            if (kinds & KIND_MAY_POINT)
                result = visit(s, words + k);
            else if (kinds & UINT8_MAX)
                result = refuse_pieced(s, words + k);
    }
    return result;
}

static int add_member(struct detaching *s, uint64_t start, uint64_t size)
{
    struct member *m = s->members.count < UINT32_MAX ? vector_push(&s->members, sizeof *m) : NULL;
    if (!m)
        return no_memory(s);
    *m = (struct member){.start = start, .size = size};
    s->index[start / FORMAT_GRANULARITY_MIN] = (uint32_t)s->members.count;
    return 0;
}

static int add_what_it_leads_to(struct detaching *s, uint64_t *word)
{
    uint64_t start, size;
    if (!object_of(s, *word, &start, &size) ||
        s->index[start / FORMAT_GRANULARITY_MIN] || (exclusions_any() && exclusions_have(word)))
        return 0;
    return add_member(s, start, size);
}

/* `word` is a pointer of an object that stays in the container: keep its target. */
static int keep_what_it_leads_to(struct detaching *s, uint64_t *word)
{
    uint64_t i = member_of(s, *word);
    if (i == 0) {
        char object[OBJECT_TEXT];
        uint64_t offset = (uint64_t)((char *)word - s->a->c->base);
        contents_describe(s->a->t->c, offset, " in ", object);
        return pm__fail_at(s->a->c->path, offset, EINVAL,
                           "the pointer there%s leads to the object that is to be detached; store "
                           "NULL first, or something else",
                           object);
    }
    if (i == s->members.count || member(s, i)->kept)
        return 0;
    uint64_t *kept = vector_push(&s->kept, sizeof *kept);
    if (!kept)
        return no_memory(s);
    *kept = i;
    member(s, i)->kept = true;
    return 0;
}

static int keep_what_others_lead_to(struct detaching *s)
{
    uint64_t size, root = allocator_root_offset(s->a);
    uint64_t is_root = root ? (uint64_t)s->a->c->base + root : 0;
    int result = 0;
    if (member_of(s, is_root) == 0)
        return pm__fail(EINVAL, "%s: the root leads to the object that is to be detached",
                        s->a->c->path);
    if (is_root)
        result = keep_what_it_leads_to(s, &is_root);
    for (uint64_t at = 0; result == 0 && allocator_next_object(s->a, &at, &size); at += size)
        if (s->index[at / FORMAT_GRANULARITY_MIN] == 0)
            result = visit_pointers(s, at, size, keep_what_it_leads_to);
    for (uint64_t i = 0; i < s->kept.count && result == 0; i++) {
        const struct member *m = member(s, ((uint64_t *)s->kept.items)[i]);
        result = visit_pointers(s, m->start, m->size, keep_what_it_leads_to);
    }
    return result;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* The alignment of a member's copy. The allocator does not know which alignment the program asked for.
 * But the object's place and size are multiples of it. */
static uint64_t alignment_of(const struct detaching *s, const struct member *m)
{
    uint64_t both = m->start | m->size | s->a->c->segment_size;
    return both & -both;
}

static int copy_all(struct detaching *s)
{
    for (uint64_t i = 0; i < s->members.count; i++) {
        struct member *m = member(s, i);
        if (m->kept)
            continue;
        const char *from = s->a->c->base + m->start;
        char *to = heap_allocate_aligned(alignment_of(s, m), m->size);
        if (!to)
            return no_memory(s);
        m->to = to;
        memcpy(to, from, m->size);
        cards_mark(to, m->size);
        for (uint64_t at = 0; at + sizeof(uint64_t) <= m->size; at += sizeof(uint64_t))
            cards_set_kind(to + at, sizeof(uint64_t), (uint8_t)track_kinds_at(from + at, 1));
    }
    return 0;
}

static void drop_copies(struct detaching *s)
{
    for (uint64_t i = 0; i < s->members.count; i++)
        if (member(s, i)->to)
            heap_free(member(s, i)->to);
}

/* Also reads the stack between the variables that a sanitizer knows. */
__attribute__((no_sanitize("address"))) static void redirect_range(void *context,
                                                                   struct roots_range range)
{
    const struct detaching *s = context;
    for (uint64_t *word = range.first; word < range.end; word++) {
        uint64_t i =
            container_holds(s->a->c, (void *)*word) ? member_of(s, *word) : s->members.count;
        if (i < s->members.count && member(s, i)->to)
            *word = (uint64_t)member(s, i)->to +
                    (*word - (uint64_t)s->a->c->base - member(s, i)->start);
    }
}

/* Check a line of the heap for pieced words that lead to a member. `left` words of the object remain from
 * `words` on. */
static int check_pieced(struct detaching *s, const uint64_t *words, uint64_t kinds, uint64_t left)
{
    for (uint64_t i = 0; i < min_u64(left, PM_LINE_WORDS); i++, kinds >>= 8)
        if (kind_is_pieced((uint8_t)kinds) && container_holds(s->a->c, (void *)words[i]) &&
            member_of(s, words[i]) < s->members.count)
            return pm__fail(EINVAL,
                            "%s: the word %#" PRIx64 " at %p, on the heap, was stored in pieces of "
                            "less than 8 bytes, and leads to what is detached: if it is a pointer, "
                            "copy it as one, or by memcpy(); if not, call pm_mark_data() of it",
                            s->a->c->path, words[i], (void *)(words + i));
    return 0;
}

static int check_heap(struct detaching *s)
{
    int result = 0;
    for (struct heap_object object = {.start = NULL}; result == 0 && heap_next(&object);) {
        uint64_t words = object.size / sizeof(uint64_t);
        for (uint64_t i = 0; i < words && result == 0; i += PM_LINE_WORDS) {
            uint64_t kinds;
            memcpy(&kinds, kinds_of(object.start) + i, sizeof kinds);
            if (kinds_pieced(kinds)) /* without pieced words the memory need not be there */
                result = check_pieced(s, (uint64_t *)object.start + i, kinds, words - i);
        }
    }
    return result;
}

static void redirect_heap(struct detaching *s)
{
    for (struct heap_object object = {.start = NULL}; heap_next(&object);) {
        const uint8_t *kinds = kinds_of(object.start);
        for (uint64_t i = 0; i < object.size / sizeof(uint64_t); i++) {
            uint64_t *word = (uint64_t *)object.start + i;
            if (kinds[i] & KIND_MAY_POINT && container_holds(s->a->c, (void *)*word)) {
                redirect_range(s, (struct roots_range){word, word + 1});
                references_renew(word, sizeof *word);
            }
        }
    }
}

/* Fields on the heap have been redirected with it, and no field of this container leads to what leaves it. */
static void redirect_excluded(void *context, uint64_t *field)
{
    struct detaching *s = context;
    if (!heap_contains(field) && !container_holds(s->a->c, field))
        redirect_range(s, (struct roots_range){field, field + 1});
}

/* The registers of the program's functions are saved in this frame, and restored from here. */
static __attribute__((noinline)) void redirect(struct detaching *s, struct roots_range stack)
{
    __builtin_unwind_init();
    __asm__ volatile("mov %%rsp, %0" : "=r"(stack.first));
    redirect_heap(s);
    exclusions_each(redirect_excluded, s);
    roots_variables(redirect_range, s);
    redirect_range(s, stack);
}

static void free_originals(struct detaching *s)
{
    for (uint64_t i = 0; i < s->members.count; i++) {
        const struct member *m = member(s, i);
        if (!m->to)
            continue;
        char *from = s->a->c->base + m->start;
        exclusions_move(from, m->size, m->to);
        exclusions_retarget(s->a->c, from, m->size + 1, m->to); /* and its end */
        allocator_free(s->a, from);
    }
}

/* The caller holds the allocator's lock. */
static int gather(struct detaching *s, const void *object)
{
    uint64_t start, size;
    if (!allocator_object_at(s->a, object, &start, &size) || s->a->c->base + start != object)
        return pm__fail(EINVAL, "%s: %p is not the start of an object", s->a->c->path, object);
    int result = add_member(s, start, size);
    for (uint64_t i = 0; i < s->members.count && result == 0; i++)
        result = visit_pointers(s, member(s, i)->start, member(s, i)->size, add_what_it_leads_to);
    if (result == 0)
        result = keep_what_others_lead_to(s);
    if (result == 0)
        result = copy_all(s);
    return result == 0 ? check_heap(s) : result;
}

void *discovery_detach(struct discovery *d, struct frame program, void *object)
{
    struct detaching s = {.d = d, .a = d->a};
    struct roots_range stack;
    void *detached = NULL;
    if (check_alone(d, program, &stack) != 0)
        return NULL;
    if (pointers_check_tables(s.a) != 0) /* a pointer missing in a damaged map would dangle */
        return NULL;
    s.index_bytes = container_bytes(s.a->c) / FORMAT_GRANULARITY_MIN * sizeof *s.index;
    s.index = map_table(s.index_bytes);
    if (s.index == MAP_FAILED) {
        no_memory(&s);
        return NULL;
    }
    lock_acquire(&s.a->lock);
    bool gathered = gather(&s, object) == 0;
    if (gathered)
        redirect(&s, stack);
    else
        drop_copies(&s);
    lock_release(&s.a->lock);
    if (gathered) {
        free_originals(&s);
        detached = member(&s, 0)->to;
    }
    munmap(s.index, s.index_bytes);
    vector_free(&s.members);
    vector_free(&s.kept);
    return detached;
}
