/*
 * Which lines have an owner: an object, or metadata. A line without one does not count, whatever pieces of it
 * the log has (L14). So freed memory needs no room in the file. No record says for long what was freed. The
 * bitmaps and the segment table say so, and they are in the log themselves.
 *
 *               stored to                 freed
 *   no piece ─────────────► it counts ─────────────► left ───┐
 *       ▲                       ▲                            │ given to an object:
 *       └── pm_open() finds     └────────────────────────────┘ logged, stored to or not
 *           no piece
 *
 * A line is *left* if the log may have pieces of it that do not count. If an object gets such a line, the
 * commit logs it, even if the program has not stored to it. Otherwise an old piece would count again.
 *
 * A commit looks at the words of bitmaps and of the segment table that it changes. They say which lines lose
 * their owners, and which get one. Recovery finds all lines without an owner, by all these words. Behind a
 * checkpoint it looks at the words that records have, and at the lines that they have.
 *
 * Invariants, at the end of each commit:
 *  W1  A line has pieces that count only if it has an owner.
 *  W2  A line with an owner is not left.
 */
#include "txn/log/deltas.h"

#include "base/error.h"
#include "container/contents.h"

/* Slots of which one word of a bitmap speaks. */
struct slots {
    uint64_t begin; /* offset of the first one: a line begins there */
    uint64_t size;  /* of each */
};

static uint64_t slot_begin(const struct slots *s, uint32_t slot)
{
    return s->begin + slot * s->size;
}

/* Those of a slab whose segment begins at `segment`. */
static struct slots slots_of(uint64_t segment, const struct slab_shape *shape, uint32_t word)
{
    uint64_t size = shape->object_size;
    return (struct slots){segment + shape->header_bytes + (uint64_t)word * BITMAP_SLOTS * size,
                          size};
}

/* Take the lowest run of set bits from a word: [*first, return value). */
static uint32_t take_run(uint64_t *bits, uint32_t *first)
{
    *first = (uint32_t)__builtin_ctzll(*bits);
    uint64_t behind = ~(*bits >> *first);
    uint32_t end = *first + (behind != 0 ? (uint32_t)__builtin_ctzll(behind) : 64);
    *bits &= ~bits_between(*first, end);
    return end;
}

/* Add lines [first, end) to a list of runs. -ENOMEM */
static int list_lines(struct vector *runs, uint64_t first, uint64_t end)
{
    if (first >= end)
        return 0;
    uint64_t *run = vector_push(runs, sizeof *run);
    if (!run)
        return -ENOMEM;
    *run = redo_run(first, end - first);
    return 0;
}

/* Add the lines of these freed slots that no slot in use touches. A word speaks for whole lines. So a line is
 * shared with other slots of the word only, or with what is behind the last slot. -ENOMEM */
static int list_freed(struct vector *runs, const struct slots *s, uint64_t used, uint64_t freed)
{
    uint64_t listed = 0;
    int error = 0;
    while (freed != 0 && error == 0) {
        uint32_t first, end = take_run(&freed, &first);
        uint64_t before = used & ((UINT64_C(1) << first) - 1), behind = used >> end;
        /* where the slot in use before them ends, and the one behind begins */
        uint64_t from = before ? slot_begin(s, 64 - (uint32_t)__builtin_clzll(before)) : 0;
        uint64_t to = behind ? slot_begin(s, end + (uint32_t)__builtin_ctzll(behind)) : UINT64_MAX;
        from = max_u64(divide_up(from, PM_LINE), slot_begin(s, first) / PM_LINE);
        to = min_u64(to / PM_LINE, divide_up(slot_begin(s, end), PM_LINE));
        from = max_u64(from, listed);
        error = list_lines(runs, from, to);
        listed = max_u64(listed, to);
    }
    return error;
}

/* ---- a commit -------------------------------------------------------------------------------- */

/* Of lines that get an owner, those that are left. -ENOMEM */
static int list_given(struct txn *t, uint64_t line, uint64_t end)
{
    struct log_engine *k = log_engine_of(t);
    int error = 0;
    k->gives = true;
    for (uint64_t next; line < end && error == 0; line = next) {
        uint64_t word = align_down(line, 64);
        next = min_u64(end, word + 64);
        log_need_unit(t, line);
        uint64_t left = k->left[word / 64] & bits_between(line - word, next - word);
        while (left != 0 && error == 0) {
            uint32_t first, last = take_run(&left, &first);
            error = list_lines(&k->given, word + first, word + last);
        }
    }
    return error;
}

static int find_in_table(struct txn *t, uint64_t segment, uint64_t word)
{
    uint64_t first = (segment << t->c->segment_shift) / PM_LINE,
             end = first + t->c->segment_size / PM_LINE;
    uint64_t old = table_word(home_table(t->c), segment);
    if (word == 0 && old != 0)
        return list_lines(&log_engine_of(t)->dropped, first, end);
    return old == 0 && segment_is_large(word) ? list_given(t, first, end) : 0;
}

static int find_in_bitmap(struct txn *t, const struct slab_shape *shape,
                          const struct record_word *word)
{
    const uint64_t within = word->offset & (t->c->segment_size - 1), begin = word->offset - within;
    const struct slots s = slots_of(begin, shape, (uint32_t)(within / sizeof(uint64_t)));
    uint64_t used = seal_payload(word->value), old = seal_payload(*home_word(t->c, word->offset));
    uint64_t given = used & ~old;
    int error = list_freed(&log_engine_of(t)->dropped, &s, used, old & ~used);
    while (given != 0 && error == 0) {
        uint32_t first, end = take_run(&given, &first);
        error =
            list_given(t, slot_begin(&s, first) / PM_LINE, divide_up(slot_begin(&s, end), PM_LINE));
    }
    return error;
}

/* The shape of the slab in a segment, as the open transaction has it. NULL: it is none. Most slabs that a
 * commit changes are of one shape, and to compute that takes four divisions. */
static const struct slab_shape *find_shape(struct txn *t, uint32_t segment)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t word = table_word(shadow_table(t->c), segment);
    if (segment_kind(word) != SEGMENT_SLAB ||
        (word != k->shaped && !contents_shape(t->c, word, &k->shape)))
        return NULL;
    k->shaped = word;
    return &k->shape;
}

static int find_in_word(struct txn *t, const struct record_word *word)
{
    uint32_t segment = (uint32_t)(word->offset >> t->c->segment_shift);
    if (is_table_word(t->c, word->offset))
        return find_in_table(t, (word->offset - FORMAT_TABLE) / sizeof(uint64_t), word->value);
    const struct slab_shape *shape = segment < t->c->meta_segments ? NULL : find_shape(t, segment);
    return shape ? find_in_bitmap(t, shape, word) : 0; /* 0: the root, or the pointer map */
}

int log_find_owners(struct txn *t, const struct commit_words *w)
{
    struct log_engine *k = log_engine_of(t);
    int error = 0;
    k->dropped.count = k->given.count = 0;
    k->gives = false;
    for (uint64_t i = 0; i < w->counts.words && k->drops && error == 0; i++)
        error = find_in_word(t, &w->words[i]);
    return error;
}

/* The allocator knows at once which lines this transaction has given or freed. Of others it need not know
 * (struct txn_upcalls). */
bool log_has_owner(const struct txn *t, uint64_t line)
{
    const struct contents open = contents_open(t->c);
    unsigned live = t->upcalls.line_liveness(t->upcalls.context, line);
    uint64_t start, size;
    if (live != (LIVE_BEFORE | LIVE_AFTER))
        return live & LIVE_AFTER;
    for (uint64_t at = line * PM_LINE; at < (line + 1) * PM_LINE; at += FORMAT_GRANULARITY_MIN)
        if (contents_find(&open, at, &start, &size))
            return true;
    return false;
}

/* ---- given lines ----------------------------------------------------------------------------- */

void log_take_lines(struct txn *t, const uint64_t *runs, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t line = run_line(runs[i]), end = line + run_count(runs[i]), next; line < end;
             line = next) {
            uint64_t word = align_down(line, 64);
            next = min_u64(end, word + 64);
            log_set_left_bits(t, word, bits_between(line - word, next - word), false);
        }
}

void log_untake_lines(struct txn *t, const uint64_t *runs, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t line = run_line(runs[i]), n = run_count(runs[i]); n > 0; n--, line++)
            if (log_entry(t, line) == 0)
                log_set_left(t, line, true);
}

/* ---- dropped lines --------------------------------------------------------------------------- */

/* Goes over the dropped lines that have pieces. */
struct dropped {
    uint64_t next_run, line, end;
};

static bool next_dropped(const struct txn *t, struct dropped *at)
{
    const struct log_engine *k = log_engine_of(t);
    for (;;) {
        for (; at->line < at->end; at->line++)
            if (log_entry(t, at->line) != 0)
                return true;
        if (at->next_run == k->dropped.count)
            return false;
        uint64_t run = ((const uint64_t *)k->dropped.items)[at->next_run++];
        at->line = run_line(run);
        at->end = at->line + run_count(run);
    }
}

uint64_t log_dropped_terms(const struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    uint64_t sum = 0;
    for (struct dropped at = {0}; next_dropped(t, &at); at.line++)
        sum += entry_term(k, log_line_hash(t->c->seed, at.line), line_map_at(&k->map, at.line));
    return sum;
}

int log_unmap_dropped(struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    int error = 0;
    for (uint64_t i = 0; i < k->dropped.count && k->mapped_runs > 0 && error == 0; i++)
        error = log_unmap_lines(t, ((const uint64_t *)k->dropped.items)[i]);
    return error;
}

void log_refill_dropped(struct txn *t)
{
    for (struct dropped at = {0}; next_dropped(t, &at); at.line++)
        if (!log_engine_of(t)->mapped[at.line / PM_PAGE_LINES] && !log_is_absent(t, at.line))
            log_read_line(t, at.line, t->c->home + at.line * PM_LINE);
}

static void drop_line(struct txn *t, uint64_t line, uint64_t epoch)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t entry = log_entry(t, line);
    if (entry == 0)
        return;
    log_set_left(t, line, true); /* K1: before the map changes */
    log_leave_line(t, entry, epoch);
    *line_map_entry(&k->map, line) = 0;
    k->lines_live--;
}

/* The lines of a group. Where they lie one behind the other, they are of one chunk. A group that says nothing
 * is not written to, or its page of the map would take memory. */
static void drop_group(struct txn *t, uint64_t line, uint64_t epoch)
{
    struct log_engine *k = log_engine_of(t);
    log_need_unit(t, line);
    uint32_t *group = &k->map.groups[line / LINE_MAP_GROUP];
    if (*group == 0)
        return;
    if (*group & LINE_MAP_SPLIT) {
        for (uint32_t i = 0; i < LINE_MAP_GROUP; i++)
            drop_line(t, line + i, epoch);
    } else {
        log_set_left_bits(t, align_down(line, 64), /* K1, too */
                          bits_between(line % 64, line % 64 + LINE_MAP_GROUP), true);
        log_leave_place(t, *group, LINE_MAP_GROUP * PM_LINE_WORDS, epoch);
        k->lines_live -= LINE_MAP_GROUP;
    }
    line_map_set_group(&k->map, group, 0);
}

void log_drop_lines(struct txn *t, uint64_t epoch)
{
    struct log_engine *k = log_engine_of(t);
    for (uint64_t i = 0; i < k->dropped.count; i++) {
        const uint64_t run = ((const uint64_t *)k->dropped.items)[i];
        uint64_t line = run_line(run), end = line + run_count(run);
        while (line < end)
            if (line_map_is_group(line, end)) {
                drop_group(t, line, epoch);
                line += LINE_MAP_GROUP;
            } else {
                drop_line(t, line++, epoch);
            }
        line_map_settle_ends(&k->map, run_line(run), run_count(run));
    }
    line_map_trim(&k->map);
}

/* ---- recovery -------------------------------------------------------------------------------- */

/* A word of the container, as the log has it. Words are read one after the other, so a line is kept. */
struct word_reader {
    const struct txn *t;
    uint64_t line;
    uint64_t words[PM_LINE_WORDS];
};

static uint64_t read_word(struct word_reader *r, uint64_t offset)
{
    if (r->line != offset / PM_LINE) {
        r->line = offset / PM_LINE;
        log_read_line(r->t, r->line, (char *)r->words);
    }
    return r->words[offset % PM_LINE / sizeof(uint64_t)];
}

/* Which lines of a segment are listed: those without an owner, or all, as far as records concern them. */
struct listing {
    const struct logged_lines *logged;
    bool with_owned;
};

/* Lines that never have an owner. Records concern them if they have one of them. */
static int list_logged(struct txn *t, const struct listing *l, uint64_t first, uint64_t end)
{
    return log_is_any_logged(l->logged, first, end)
               ? list_lines(&log_engine_of(t)->dropped, first, end)
               : 0;
}

/* Lines of the slots of one word of a bitmap. Records concern them if they have one, or the word's line. */
static int list_slots(struct txn *t, const struct listing *l, struct word_reader *r,
                      uint64_t offset, const struct slots *s, uint64_t slots)
{
    const uint64_t first = s->begin / PM_LINE,
                   end = divide_up(slot_begin(s, BITMAP_SLOTS), PM_LINE);
    if (!log_is_any_logged(l->logged, offset / PM_LINE, offset / PM_LINE + 1) &&
        !log_is_any_logged(l->logged, first, end))
        return 0;
    uint64_t used = l->with_owned ? 0 : seal_payload(read_word(r, offset));
    return list_freed(&log_engine_of(t)->dropped, s, used, slots & ~used);
}

/* Lines of a slab: behind the bitmap, of slots, and behind them. -ENOMEM */
static int list_slab(struct txn *t, const struct listing *l, struct word_reader *r, uint64_t begin,
                     const struct slab_shape *shape)
{
    uint32_t words = bitmap_words(shape->objects);
    uint64_t first = begin + shape->header_bytes,
             behind = first + (uint64_t)shape->objects * shape->object_size;
    int error =
        list_logged(t, l, divide_up(begin + words * sizeof(uint64_t), PM_LINE), first / PM_LINE);
    for (uint32_t w = 0; w < words && error == 0; w++) {
        const struct slots s = slots_of(begin, shape, w);
        error = list_slots(t, l, r, begin + w * sizeof(uint64_t), &s,
                           bitmap_mask(w, 0, shape->objects));
    }
    return error == 0 ? list_logged(t, l, divide_up(behind, PM_LINE),
                                    (begin + t->c->segment_size) / PM_LINE)
                      : error;
}

/* Any line may be in a record. */
static const struct logged_lines all_lines;

/* If the segment's word in the table is in a record, any line may have another owner. */
static int list_segment(struct txn *t, uint32_t segment, struct listing l)
{
    struct word_reader r = {.t = t, .line = UINT64_MAX};
    const uint64_t begin = (uint64_t)segment << t->c->segment_shift, first = begin / PM_LINE,
                   end = (begin + t->c->segment_size) / PM_LINE,
                   at = FORMAT_TABLE + segment * sizeof(uint64_t);
    struct slab_shape shape;
    log_engine_of(t)->dropped.count = 0;
    if (log_is_any_logged(l.logged, at / PM_LINE, at / PM_LINE + 1))
        l.logged = &all_lines;
    if (!log_is_any_logged(l.logged, first, end))
        return 0;
    uint64_t word = read_word(&r, at);
    if (word == 0 || (l.with_owned && !l.logged->bits))
        return list_lines(&log_engine_of(t)->dropped, first, end);
    return contents_shape(t->c, word, &shape) ? list_slab(t, &l, &r, begin, &shape) : 0;
}

int log_find_unowned(struct txn *t, uint32_t segment, const struct logged_lines *logged)
{
    return list_segment(t, segment, (struct listing){logged, .with_owned = false});
}

int log_find_concerned(struct txn *t, uint32_t segment, const struct logged_lines *logged)
{
    return list_segment(t, segment, (struct listing){logged, .with_owned = true});
}

int log_check_owners(struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    for (uint32_t i = t->c->meta_segments; i < atomic_load(&t->c->segments) && k->drops; i++) {
        struct dropped at = {0};
        if (log_find_unowned(t, i, &all_lines) != 0)
            return pm__fail_system(ENOMEM, "%s: no memory to read the log", t->c->path);
        if (next_dropped(t, &at))
            return container_damaged(t->c,
                                     base_of(k, line_map_at(&k->map, at.line)) * (uint64_t)PM_LINE,
                                     "a line of the log counts that no object has");
        log_keep_bound(t);
    }
    return 0;
}
