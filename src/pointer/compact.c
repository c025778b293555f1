/*
 * The steps of a compaction, over the plan of allocator/compact.c. A binary search of the moves finds the
 * new place of a pointer's target. A table with a byte for each segment spares this search for segments that
 * nothing leaves.
 *
 * prepare() holds the allocator's lock, and the commit takes it again. A step that fails is rolled back, and
 * the plan's cursor with it. If the log had no room, a quarter of the objects is tried next. The table of
 * moves is address space for a million objects and a slab; it takes memory where it is used.
 */
#include "pointer/compact.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Most objects of the first step, and of any step. */
#define STEP_FIRST 64
#define STEP_MAX   (UINT32_C(1) << 20)
/* Bytes a step should log besides the moved objects: a share of the file, but no less than STEP_LOG. */
#define STEP_LOG       (UINT64_C(16) << 20)
#define STEP_LOG_SHARE 8

struct step {
    struct allocator *a;
    const struct compact_caller *caller;
    struct compaction plan;
    struct move *moves; /* in order of `from` */
    uint32_t count;
    uint8_t *emptied; /* per segment, and one behind: pointers there may lead to a moved object */
    uint64_t pointers;
};

static struct container *container_of(const struct step *s)
{
    return s->a->c;
}

static uint32_t segment_at(const struct step *s, uint64_t offset)
{
    return (uint32_t)(offset >> container_of(s)->segment_shift);
}

static size_t moves_bytes(const struct step *s)
{
    const struct container *c = container_of(s);
    uint64_t run = c->segment_size / c->granularity + c->segments_max; /* a slab, and all large */
    return (STEP_MAX + run) * sizeof *s->moves;
}

/* ---- one step -------------------------------------------------------------------------------- */

static int compare_moves(const void *a, const void *b)
{
    const struct move *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static int cannot_access(const struct step *s, uint64_t offset, int error)
{
    if (txn_check_medium(s->a->t) != 0)
        return -1;
    return container_fail_at(container_of(s), offset, -error,
                             "cannot make room in the log, or open the page, to compact it");
}

/* Announce libpm's own stores into the view, or loads: this file is not compiled with pmcc. */
static int announce(struct step *s, uint64_t offset, uint64_t bytes)
{
    int error = track_dirty(s->a->t, offset, bytes);
    return error == 0 ? 0 : cannot_access(s, offset, error);
}

static int touch(struct step *s, uint64_t offset, uint64_t bytes)
{
    int error = txn_touch(s->a->t, offset, bytes);
    return error == 0 ? 0 : cannot_access(s, offset, error);
}

/* Page by page: if memory is short, a page that was read may be gone when the next page is there. */
static int copy(struct step *s, const struct move *m)
{
    char *base = container_of(s)->base;
    if (announce(s, m->to, m->bytes) != 0)
        return -1;
    for (uint64_t at = m->from, end = m->from + m->bytes, n; at < end; at += n) {
        n = min_u64(end, align_up(at + 1, PM_PAGE)) - at;
        if (touch(s, at, n) != 0)
            return -1;
        memcpy(base + m->to + (at - m->from), base + at, n);
    }
    track_copy_kinds(s->a->t, m->to, base + m->from, m->bytes);
    return pointers_copy(s->a, m->to, m->from, m->bytes);
}

static int copy_all(struct step *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (copy(s, &s->moves[i]) != 0)
            return -1;
    return 0;
}

/* The last move from `offset` or before it. */
static const struct move *move_before(const struct step *s, uint64_t offset)
{
    uint32_t low = 0, high = s->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (s->moves[middle].from <= offset)
            low = middle;
        else
            high = middle;
    }
    return &s->moves[low];
}

/* The new place of a byte that was at `offset`, or of an object that ended there. */
static uint64_t redirected(const struct step *s, uint64_t offset)
{
    if (offset > container_bytes(container_of(s)) || !s->emptied[segment_at(s, offset)])
        return offset;
    const struct move *m = move_before(s, offset);
    return offset - m->from <= m->bytes ? offset - m->from + m->to : offset;
}

static int redirect(struct step *s, uint64_t at)
{
    char *base = container_of(s)->base;
    uint64_t *word = (uint64_t *)(base + at);
    if (touch(s, at, sizeof *word) != 0)
        return -1;
    uint64_t offset = *word - (uintptr_t)base, to = redirected(s, offset);
    if (to == offset)
        return 0;
    if (announce(s, at, sizeof *word) != 0)
        return -1;
    *word = (uintptr_t)base + to;
    track_set_kind(s->a->t, at, sizeof *word, KIND_POINTER);
    s->pointers++;
    return 0;
}

static int redirect_all(struct step *s)
{
    uint64_t end = container_bytes(container_of(s)), at = 0;
    while ((at = pointers_next(s->a, at, end)) < end) {
        if (redirect(s, at) != 0)
            return -1;
        at += sizeof(void *);
    }
    uint64_t root = allocator_root_offset(s->a), to = redirected(s, root);
    s->pointers += to != root;
    allocator_move_root(s->a, to);
    return 0;
}

/* Note in which segments pointers are looked up. */
static void note_emptied(struct step *s, uint8_t emptied)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct move *m = &s->moves[i];
        memset(s->emptied + segment_at(s, m->from), emptied,
               segment_at(s, m->from + m->bytes) - segment_at(s, m->from) + 1);
    }
}

/* Do a step of at most `most` objects, or a few more, without its commit. */
static int prepare(struct step *s, uint32_t most)
{
    struct allocator *a = s->a;
    lock_acquire(&a->lock);
    int result = compaction_next(&s->plan, most, s->moves, &s->count);
    qsort(s->moves, s->count, sizeof *s->moves, compare_moves);
    note_emptied(s, true);
    if (result == 0)
        result = copy_all(s);
    if (result == 0) {
        compaction_free(&s->plan, s->moves, s->count);
        result = redirect_all(s);
    }
    note_emptied(s, false);
    lock_release(&a->lock);
    return result;
}

/* -1 with errno as it was. If the rollback fails, -1 with its errno and message, and no commit succeeds
 * until a rollback does. */
static int undo(struct allocator *a)
{
    int error = errno;
    if (allocator_rollback(a) == 0)
        errno = error;
    return -1;
}

static int commit_or_undo(struct step *s)
{
    return s->caller->commit(s->caller->context) == 0 ? 0 : undo(s->a);
}

/* A step that fails is undone. */
static int make(struct step *s, uint32_t most)
{
    struct compaction_cursor before = s->plan.at;
    s->pointers = 0;
    int result = prepare(s, most) == 0 ? commit_or_undo(s) : undo(s->a);
    if (result != 0)
        s->plan.at = before;
    return result;
}

/* The size of the next step, after a step that wrote `logged` bytes to the log. */
static uint32_t next_size(const struct step *s, uint32_t most, uint64_t logged)
{
    uint64_t budget = max_u64(STEP_LOG, container_bytes(container_of(s)) / STEP_LOG_SHARE);
    uint64_t fitting = logged == 0 ? STEP_MAX : s->count * budget / logged;
    return (uint32_t)max_u64(1, min_u64(fitting, min_u64(4 * (uint64_t)most, STEP_MAX)));
}

static uint64_t bytes_moved(const struct step *s)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->count; i++)
        bytes += s->moves[i].bytes;
    return bytes;
}

/* Void the log, and cut the file off where it can end. Not if a step could not be undone: errno stays. */
static int shrink(struct allocator *a)
{
    if (a->t->rollback_failed)
        return -1;
    lock_acquire(&a->lock);
    int result = txn_shrink(a->t);
    lock_release(&a->lock);
    return result;
}

static int move_all(struct step *s, struct compact_report *report)
{
    const struct medium *medium = &container_of(s)->medium;
    uint32_t most = STEP_FIRST;
    do {
        uint64_t copied = medium->counts.bytes_copied;
        while (make(s, most) != 0) {
            bool full = errno == ENOSPC || errno == EDQUOT;
            if (!full || most == 1 || shrink(s->a) != 0) /* the log still has the undone step */
                return -1;
            most = (uint32_t)max_u64(most / 4, 1);
        }
        uint64_t bytes = bytes_moved(s);
        report->objects += s->count;
        report->bytes += bytes;
        report->pointers += s->pointers;
        report->commits += s->count > 0;
        copied = medium->counts.bytes_copied - copied;
        most = next_size(s, most, copied - min_u64(copied, bytes));
        if (s->caller->moved)
            s->caller->moved(s->caller->context, s->moves, s->count);
    } while (s->count > 0);
    return 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int lower_maps(struct step *s)
{
    struct allocator *a = s->a;
    lock_acquire(&a->lock);
    int result = pointers_lower_maps(s->a, s->plan.end);
    lock_release(&a->lock);
    return result == 0 ? commit_or_undo(s) : undo(a);
}

static int free_empty(struct step *s)
{
    lock_acquire(&s->a->lock);
    allocator_free_empty(s->a);
    lock_release(&s->a->lock);
    return commit_or_undo(s);
}

static int begin(struct step *s, struct allocator *a, const struct compact_caller *caller)
{
    *s = (struct step){.a = a, .caller = caller};
    s->moves = map_table(moves_bytes(s));
    s->emptied = calloc(container_of(s)->segments_max + 1, 1);
    if (s->moves == MAP_FAILED || !s->emptied)
        return pm__fail_system(ENOMEM, "%s: no memory for the tables to compact it",
                               container_of(s)->path);
    lock_acquire(&a->lock);
    int result = compaction_begin(&s->plan, a);
    lock_release(&a->lock);
    return result;
}

static void end(struct step *s)
{
    compaction_end(&s->plan);
    if (s->moves != MAP_FAILED)
        munmap(s->moves, moves_bytes(s));
    free(s->emptied);
}

int pointers_compact(struct allocator *a, const struct compact_caller *caller,
                     struct compact_report *report)
{
    struct step s;
    *report = (struct compact_report){0};
    const struct container *c = a->c;
    uint64_t bytes = container_bytes(c);
    int result = begin(&s, a, caller);
    if (result == 0)
        result = free_empty(&s);
    if (result == 0)
        result = move_all(&s, report);
    if (result == 0)
        result = lower_maps(&s);
    if (result == 0)
        result = shrink(a);
    int error = errno;
    if (result != 0 && container_bytes(c) > bytes && medium_failed(&c->medium) == 0)
        (void)shrink(a); /* the undone step is still in the log */
    end(&s);
    errno = error;
    return result;
}
