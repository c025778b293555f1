/*
 * The list of moves is also the queue of the breadth-first search. While an object moves, its first word
 * holds its number in this list. So one load tells the new address of any target.
 *
 * Gathering changes only the copies, the first words, and words that lead to freed memory. Redirecting notes
 * the old value of each word that it changes outside of the copies. closure_undo() puts all of these back,
 * the last first, and frees the copies.
 */
#include "discovery/check.h"
#include "discovery/closure.h"

#include "address/foreign.h"
#include "base/error.h"
#include "discovery/exclusions.h"
#include "discovery/references.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static struct container *container_of(const struct discovery *d)
{
    return d->a->c;
}

static uint64_t offset_of(const struct discovery *d, const void *p)
{
    return (uint64_t)((const char *)p - container_of(d)->base);
}

/* A word of the container that leads to the heap. */
static uint64_t *word_at(const struct discovery *d, uint64_t i)
{
    return (uint64_t *)(container_of(d)->base + ((uint64_t *)d->words.items)[i]);
}

static int no_memory(const struct discovery *d)
{
    return pm__fail(ENOMEM, "%s: no memory to note what moves; nothing has", container_of(d)->path);
}

/* For code that also reads the stack between the variables that a sanitizer knows. */
#define ON_ANY_STACK __attribute__((no_sanitize("address")))

/* Change a word, and note its old value for closure_undo(). */
ON_ANY_STACK static int change_word(struct discovery *d, uint64_t *word, uint64_t value)
{
    struct change *c = vector_push(&d->changes, sizeof *c);
    if (!c)
        return no_memory(d);
    *c = (struct change){word, *word};
    *word = value;
    return 0;
}

/* ---- gather ---------------------------------------------------------------------------------- */

/* The owner of a pointer to something that cannot move: the word that leads there. */
struct owner {
    const uint64_t *word;    /* NULL: the new root leads there */
    const struct move *move; /* the moving object that has the word; NULL: the container has it */
};

/* Ends the message about a pieced word: base/marks.h, P4. */
#define PIECED                                                                                     \
    "was stored in pieces of less than 8 bytes, and leads to a malloc'ed object: if it is a "      \
    "pointer, copy it as one, or by memcpy(); if not, call pm_mark_data() of it"

#define ROOT_FREED "leads to memory that has been freed; set another root"

static int refuse(const struct discovery *d, struct owner o, uint64_t value, const char *what)
{
    char object[OBJECT_TEXT] = "";
    if (!o.word)
        return pm__fail(EINVAL, "%s: the new root %#" PRIx64 " %s", container_of(d)->path, value,
                        what);
    uint64_t offset = offset_of(d, o.word);
    if (!o.move) {
        contents_describe(d->a->t->c, offset, " in ", object);
        return pm__fail_at(container_of(d)->path, offset, EINVAL, "the pointer %#" PRIx64 "%s %s",
                           value, object, what);
    }
    return pm__fail(EINVAL,
                    "%s: the pointer %#" PRIx64 " at byte %" PRIu64 " of the object of %" PRIu64
                    " bytes at %p, to which the container leads, %s",
                    container_of(d)->path, value, (uint64_t)((const char *)o.word - o.move->to),
                    o.move->from.size, (void *)o.move->from.start, what);
}

/* Note that an object moves, and make its copy. */
static int add(struct discovery *d, struct heap_object *object)
{
    struct txn *t = d->a->t;
    if (d->moves.count == 0 && check_threads(d) != 0) /* they would see the number in the first word */
        return -1;
    struct move *m = vector_push(&d->moves, sizeof *m);
    if (!m)
        return no_memory(d);
    uint64_t size = max_u64(object->size, 1);
    char *to = allocator_allocate(d->a, size, object->alignment);
    if (!to) {
        d->moves.count--;
        return -1;
    }
    track_mark_range(t, offset_of(d, to), size, MARK_AHEAD);
    memcpy(to, object->start, object->size);
    for (uint64_t i = 0; i < divide_up(size, sizeof(uint64_t)); i++)
        kinds_of(to)[i] = kinds_of(object->start)[i] & (uint8_t)~KIND_REMEMBERED;
    *m = (struct move){*object, to, *(uint64_t *)object->start};
    *(uint64_t *)object->start = d->moves.count - 1;
    heap_set_moves(object, true);
    object->moves = true;
    return 0;
}

/* Check a pointer that leads neither to the heap nor into the container. */
static int check_foreign(struct discovery *d, struct owner o, uint64_t value)
{
    struct txn *t = d->a->t;
    if (container_is_led_into(t->c, value))
        return 0;
    if (modules_may_adopt(&t->modules, value))
        return t->foreign.refuse_modules ? refuse(d, o, value, FOREIGN_REFUSED) : 0;
    if (t->foreign.policy != FOREIGN_ERROR || !foreign_is_mapped(value))
        return 0;
    return refuse(d, o, value,
                  "leads to what cannot move there: the stack, memory that pmcc's code has not "
                  "allocated, or another container; store something else, or pm_exclude() it");
}

/* Treat a pointer to the heap that leads to no object. Only a word of KIND_POINTER comes here: a word
 * that may be a number is never replaced. */
static int check_freed(struct discovery *d, struct owner o, uint64_t *value, bool was_object)
{
    if (!o.word)
        return refuse(d, o, *value, ROOT_FREED);
    if (d->refuse_freed)
        return refuse(d, o, *value,
                      was_object
                          ? "leads to memory that has been freed; set the pointer to NULL when you "
                            "free what it leads to, or open with freed_pointers = PM_FREED_DATA"
                          : "leads to no object of the heap; store something else, or open with "
                            "freed_pointers = PM_FREED_DATA");
    *value = foreign_freed(*value);
    d->freed++;
    return 0;
}

/* Redirect one pointer: if its target moves, `*result` gets the target's new address. `word` is in a
 * copy, or in the container. */
static int follow(struct discovery *d, struct owner o, uint64_t *word, uint8_t kind,
                  uint64_t *result)
{
    struct heap_object object;
    uint64_t value = *word;
    *result = value;
    if (!heap_contains((void *)value))
        return kind == KIND_POINTER ? check_foreign(d, o, value) : 0;
    enum heap_state state = heap_find((void *)value, &object);
    if (state != HEAP_LIVE)
        return kind == KIND_POINTER ? check_freed(d, o, result, state == HEAP_FREE) : 0;
    if (kind_is_pieced(kind))
        return refuse(d, o, value, PIECED);
    if (object.alignment > container_of(d)->segment_size)
        return refuse(d, o, value,
                      "leads to an object that asked for a larger alignment than objects of a container can "
                      "have, which is its segment_size; create it with larger segments, or ask for less");
    if (!object.moves && add(d, &object) != 0)
        return -1;
    *result = moved_value(d, value, &object);
    return 0;
}

static int gather_from(struct discovery *d, uint64_t i)
{
    uint64_t words = divide_up(move_at(d, i)->from.size, sizeof(uint64_t));
    const uint8_t *kinds = kinds_of(move_at(d, i)->from.start);
    for (uint64_t k = 0; k < words; k++) {
        uint8_t kind = kinds[k] & (uint8_t)~KIND_REMEMBERED;
        if (!(kind & KIND_MAY_POINT) && !kind_is_pieced(kind))
            continue;
        const struct move *m = move_at(d, i);
        uint64_t *word = (uint64_t *)m->to + k;
        if (exclusions_any() && exclusions_have((uint64_t *)m->from.start + k))
            continue;
        if (follow(d, (struct owner){word, m}, word, kind, word) != 0)
            return -1;
    }
    return 0;
}

/* The kind of a word of the container. If the word is mapped, and only code that tells no kinds has
 * stored to it, it is a declared pointer. */
static uint8_t kind_of(const struct discovery *d, const uint64_t *word)
{
    bool declared = *kinds_of(word) == KIND_NONE &&
                    mapped_at(mapped_place_at(&d->a->t->map, offset_of(d, word))) & 1;
    return declared ? KIND_POINTER : (uint8_t)track_kinds_at(word, 1);
}

/* Gather the target of a word of the container. The word itself is redirected later, when all moving
 * objects are known. */
static int gather_from_container(struct discovery *d, uint64_t *word)
{
    uint64_t to;
    if (follow(d, (struct owner){.word = word}, word, kind_of(d, word), &to) != 0)
        return -1;
    return foreign_is_freed(to) ? change_word(d, word, to) : 0;
}

int discovery_gather(struct discovery *d)
{
    uint64_t ignored, root = (uint64_t)d->root;
    int result = 0;
    for (uint64_t i = 0; i < d->words.count && result == 0; i++)
        result = gather_from_container(d, word_at(d, i));
    if (result == 0 && root && d->root_freed)
        result = refuse(d, (struct owner){.word = NULL}, root, ROOT_FREED);
    else if (result == 0 && root)
        result = follow(d, (struct owner){.word = NULL}, &root, KIND_POINTER, &ignored);
    for (uint64_t i = 0; i < d->moves.count && result == 0; i++)
        result = gather_from(d, i);
    return result;
}

/* ---- redirect -------------------------------------------------------------------------------- */

struct redirection {
    struct discovery *d;
    int result;
};

ON_ANY_STACK static void change(struct redirection *r, uint64_t *word,
                                const struct heap_object *object)
{
    if (r->result == 0)
        r->result = change_word(r->d, word, moved_value(r->d, *word, object));
}

ON_ANY_STACK static void change_if_led_to_moving(struct redirection *r, uint64_t *word)
{
    struct heap_object object;
    if (heap_find_moving((void *)*word, &object))
        change(r, word, &object);
}

/* Redirect a word of the heap. Words of moving objects are skipped, because their copies are right
 * already. */
static bool redirect_reference(void *context, uint64_t *word, const struct heap_object *object)
{
    struct redirection *r = context;
    struct heap_object owner;
    if (heap_find_moving(word, &owner))
        return true;
    if (!kind_is_pieced(*kinds_of(word)))
        change(r, word, object);
    else if (r->result == 0)
        r->result = pm__fail(EINVAL, "%s: the word %#" PRIx64 " at %p, on the heap, " PIECED,
                             container_of(r->d)->path, *word, (void *)word);
    return r->result == 0;
}

/* Redirect an excluded field outside the heap. Discovery does not follow such a field, but the field's
 * target may move for other reasons. */
static void redirect_excluded(void *context, uint64_t *field)
{
    if (!heap_contains(field))
        change_if_led_to_moving(context, field);
}

ON_ANY_STACK static void redirect_range(void *context, struct roots_range range)
{
    for (uint64_t *word = range.first; word < range.end; word++)
        change_if_led_to_moving(context, word);
}

int closure_redirect(struct discovery *d, const struct roots_range *stack)
{
    struct redirection r = {d, 0};
    for (uint64_t i = 0; i < d->moves.count && exclusions_any(); i++)
        exclusions_move(move_at(d, i)->from.start, move_at(d, i)->from.size, move_at(d, i)->to);
    for (uint64_t i = 0; i < d->words.count; i++)
        change_if_led_to_moving(&r, word_at(d, i));
    exclusions_each(redirect_excluded, &r);
    if (!references_refresh(redirect_reference, &r) && r.result == 0)
        r.result = no_memory(d);
    for (uint64_t i = 0; i < d->moves.count && r.result == 0; i++) {
        struct heap_object object = move_at(d, i)->from;
        references_of(&object, redirect_reference, &r);
    }
    roots_variables(redirect_range, &r);
    redirect_range(&r, *stack);
    return r.result;
}

/* ---- and afterwards -------------------------------------------------------------------------- */

ON_ANY_STACK void closure_undo(struct discovery *d)
{
    for (uint64_t i = d->changes.count; i-- > 0;) {
        struct change c = ((struct change *)d->changes.items)[i];
        *c.word = c.old;
        if (heap_contains(c.word))
            references_renew(c.word, sizeof *c.word);
    }
    for (uint64_t i = d->moves.count; i-- > 0;) {
        const struct move *m = move_at(d, i);
        exclusions_move(m->to, m->from.size, m->from.start);
        *(uint64_t *)m->from.start = m->first;
        heap_set_moves(&m->from, false);
        references_renew(m->from.start, m->from.size);
        allocator_free(d->a, m->to);
    }
}

void closure_release(struct discovery *d)
{
    for (uint64_t i = 0; i < d->moves.count; i++) {
        const struct move *m = move_at(d, i);
        exclusions_retarget(container_of(d), m->from.start, m->from.size + 1, m->to); /* and its end */
        references_forget(&m->from);
        heap_set_moves(&m->from, false);
        heap_free(m->from.start);
    }
}
