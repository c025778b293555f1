/*
 * Small commits, as most are under `stores`: a few marked lines, and a few words. In general a commit goes
 * over its lines six times, by way of tables that have room for any number of lines. It finds the lines, cuts
 * them into parts, enters them in the map, builds each part, counts, and brings home. Here three loops over a
 * table on the stack do that. They do it in the same order, so the rules hold for the same reasons.
 *
 * A commit is small if
 *
 *   - no page is listed, no line needs translation, and no part is early
 *   - no line was stored to that nobody owns, and no page loses its owner that is mapped from the file
 *   - at most LINES_MAX lines have changed, the lines of words included, and all have an object
 *   - no metadata is new
 *   - its record is one part, which fits in the open chunk
 *   - nothing is left of a record that failed
 *
 * Whether a commit is small is known before anything has changed.
 */
#include "txn/log/deltas.h"

#include "base/stream.h"

#include <assert.h>
#include <string.h>

/* Marks, and lines of new objects. The more there may be, the longer other commits look in vain: at marks one
 * by one, and at the lines of an object together. */
#define MARKS_MAX        16
#define OBJECT_LINES_MAX 64
/* Lines, those of words included. */
#define LINES_MAX (MARKS_MAX + OBJECT_LINES_MAX)

struct small_line {
    uint32_t mask;    /* words that a delta has; 0: it is logged as a whole */
    const char *from; /* in home's form */
};

struct small {
    struct moved_line moved[LINES_MAX];
    struct small_line lines[LINES_MAX];
    uint32_t filled_count;       /* lines that were handed over come first: home has them already */
    uint32_t count, data_count;  /* then others of data */
    uint32_t words, delta_words; /* of the table, and of deltas in it */
    uint32_t whole;              /* lines that are logged as a whole */
    uint64_t run_end;            /* the line with which the table's last run goes on */
};

/* A line of which these words have changed. */
static inline void add(const struct txn *t, struct small *s, uint64_t line, uint32_t changed,
                       const char *from)
{
    uint32_t mask = log_delta_needed(t, line, changed);
    s->moved[s->count].line = line;
    s->lines[s->count++] = (struct small_line){mask, from};
    if (mask != 0) {
        uint32_t words = 1 + log_count_words(mask);
        s->words += words;
        s->delta_words += words;
        s->run_end = UINT64_MAX;
    } else {
        s->words += line != s->run_end;
        s->whole++;
        s->run_end = line + 1;
    }
}

/* Lines that were handed over. False: there are too many, or some were freed again. */
static inline bool add_filled(struct txn *t, struct small *s)
{
    struct log_engine *k = log_engine_of(t);
    if (k->filled.count == 0)
        return true;
    log_condense_filled(k);
    const uint64_t *filled = k->filled.items;
    if (log_lines_of(filled, k->filled.count) > OBJECT_LINES_MAX || log_filled_was_freed(t))
        return false;
    for (uint64_t i = 0; i < k->filled.count; i++)
        for (uint64_t line = run_line(filled[i]), n = run_count(filled[i]); n > 0; n--, line++)
            add(t, s, line, LINE_WORDS_ALL, t->c->base + line * PM_LINE);
    s->filled_count = s->count;
    return true;
}

/* A line that is left and gets an owner. It is logged, stored to or not (W2). */
static inline void add_left(const struct txn *t, struct small *s, uint64_t line)
{
    const char *view = t->c->base + line * PM_LINE;
    (void)*(const volatile char *)view; /* home may be filled for it, now */
    add(t, s, line, LINE_WORDS_ALL, view);
}

/* Lines of a new object. Those that are left are logged, and others if they differ from home. To look at home
 * takes long, for it is not in the cache. */
static inline void add_object(const struct txn *t, struct small *s, uint64_t run)
{
    for (uint64_t line = run_line(run), end = line + run_count(run); line < end; line++) {
        if (log_is_left(t, line)) {
            add_left(t, s, line);
        } else {
            const char *view = t->c->base + line * PM_LINE;
            uint32_t changed = line_words_that_differ(view, t->c->home + line * PM_LINE);
            if (changed != 0)
                add(t, s, line, changed, view);
        }
    }
}

/* As view_collect(). False: the commit is not small. */
static inline bool collect_data(struct txn *t, struct small *s)
{
    const struct tracker *k = &t->tracker;
    const uint8_t *marks = line_mark(t->c, 0);
    bool freed = t->freed == t->epoch;
    uint64_t marked = k->count;
    if (marked > MARKS_MAX || s->count + k->object_lines > OBJECT_LINES_MAX)
        return false;
    if (k->object_count > 0 && t->freed_new == t->epoch) /* T3 */
        return false;
    for (uint64_t i = 0; i < k->object_count; i++)
        add_object(t, s, k->objects[i]);
    for (uint64_t i = 0; i < marked; i++) {
        uint64_t line = k->marked[i];
        const char *view = t->c->base + line * PM_LINE;
        const void *before =
            k->imaged[i] ? (const void *)&k->images[i] : t->c->home + line * PM_LINE;
        uint32_t changed = marks[line] == 0 ? 0 : line_words_that_differ(view, before);
        if (changed == 0)
            continue;
        if (log_is_stray(t, line))
            return false;
        if (freed && !(t->upcalls.line_liveness(t->upcalls.context, line) & LIVE_AFTER))
            return false;
        add(t, s, line, changed, view);
    }
    return true;
}

/* `*at`: where to begin, and where the line is. Most lines of an object follow one another. */
static inline bool has_line(const struct small *s, uint64_t line, uint32_t *at)
{
    for (uint32_t i = 0; i < s->count; i++) {
        *at = *at + 1 < s->count ? *at + 1 : 0;
        if (s->moved[*at].line == line)
            return true;
    }
    return false;
}

/* As add_given() of commit.c. */
static inline bool add_given(const struct txn *t, struct small *s)
{
    const struct log_engine *k = log_engine_of(t);
    const uint64_t *given = k->given.items;
    uint32_t at = LINES_MAX;
    for (uint64_t i = 0; i < k->given.count; i++)
        for (uint64_t line = run_line(given[i]), n = run_count(given[i]); n > 0; n--, line++) {
            if (has_line(s, line, &at))
                continue;
            if (s->count == LINES_MAX)
                return false;
            add_left(t, s, line);
        }
    s->data_count = s->count;
    return true;
}

static inline bool collect_words(struct txn *t, struct small *s, const struct commit_words *w)
{
    const struct record_word *word = w->words, *end = word + w->counts.words;
    if (w->counts.clears > 0 || s->count + w->counts.words > LINES_MAX)
        return false;
    while (word < end) {
        uint64_t line = word->offset / PM_LINE;
        uint32_t changed = 0;
        for (; word < end && word->offset / PM_LINE == line; word++)
            changed |= 1u << word->offset % PM_LINE / sizeof(uint64_t);
        add(t, s, line, changed, t->c->shadow + line * PM_LINE);
    }
    return true;
}

static inline uint32_t part_lines(const struct small *s)
{
    return (uint32_t)log_part_head(s->words) + s->whole;
}

/* The plan has memory, in which a failed record can be noted. */
static inline bool fits(const struct txn *t, const struct small *s)
{
    const struct log_engine *k = log_engine_of(t);
    uint32_t chunk = k->open[LOG_PROGRAM];
    return chunk != 0 && k->stale.count == 0 && k->plan.room > 0 &&
           k->chunks[chunk].end + part_lines(s) <= chunk_lines(t);
}

/* The run of lines that are logged as wholes, from line `i` on: as add() has counted it. */
static inline uint64_t run_at(const struct small *s, uint32_t i)
{
    uint64_t line = s->moved[i].line, n = 1;
    while (i + n < s->count && s->lines[i + n].mask == 0 && s->moved[i + n].line == line + n)
        n++;
    return redo_run(line, n);
}

/* Enter the lines in the map, and build the part in the stage. */
static inline struct log_part *build(struct txn *t, struct small *s, uint32_t place)
{
    struct log_engine *k = log_engine_of(t);
    struct log_part *part = (struct log_part *)k->stage;
    line_image *to = (line_image *)part + log_part_head(s->words);
    uint32_t at = place + (uint32_t)log_part_head(s->words);
    uint64_t *table = part->table, sum = k->map_sum;
    k->is_ahead = true;
    to[-1] = (line_image){0}; /* behind the table's last word */
    *part = log_begin_record(t, t->c->pointers_base);
    part->number = LOG_LAST;
    part->words = (uint16_t)s->words;
    part->lines = (uint16_t)s->whole;
    for (uint32_t i = 0, next; i < s->count; i = next) {
        const struct small_line *l = &s->lines[i];
        struct moved_line *moved = &s->moved[i];
        if (l->mask != 0) {
            assert(!k->mapped[moved->line / PM_PAGE_LINES]); /* L15 */
            uint64_t word = log_table_word(place) + 1 + (uint64_t)(table - part->table);
            sum += log_enter_delta(t, moved, l->mask, word);
            table = log_put_delta(table, moved->line, l->mask, l->from);
            next = i + 1;
        } else {
            const uint64_t run = *table++ = run_at(s, i);
            log_assert_unmapped(k, run);
            sum += log_enter_run(t, moved, run, at);
            at += (uint32_t)run_count(run);
            for (next = i + (uint32_t)run_count(run); l < &s->lines[next]; l++)
                *to++ = *(const line_image *)l->from;
        }
    }
    assert(table == part->table + s->words);
    if (k->dropped.count > 0)
        sum -= log_dropped_terms(t);
    k->map_sum = part->map = sum;
    part->checksum = log_part_sum(t->c, part, place);
    return part;
}

/* -errno: the map is as it was, and nothing of the record counts. */
static inline int write_record(struct txn *t, struct small *s)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t chunk = k->open[LOG_PROGRAM], place = place_in(t, chunk, k->chunks[chunk].end);
    uint64_t sum = k->map_sum;
    const struct log_part *part = build(t, s, place);
    int error = log_store(t, place, part, part_lines(s) * (uint64_t)PM_LINE);
    k->is_ahead = false;
    if (error == 0)
        return 0;
    for (uint32_t i = s->count; i-- > 0;)
        log_unenter(k, &s->moved[i]);
    k->map_sum = sum;
    log_note_failed(t, chunk, k->chunks[chunk].end);
    return error;
}

/* As log_install(), and finish() of commit.c. */
static inline void finish(struct txn *t, const struct small *s, const struct commit_words *w)
{
    struct log_engine *k = log_engine_of(t);
    struct chunk *chunk = &k->chunks[k->open[LOG_PROGRAM]];
    uint32_t new_lines = 0, new_words = s->whole * PM_LINE_WORDS + s->delta_words;
    chunk->newest = t->epoch;
    chunk->end += part_lines(s);
    k->checkpoint.logged += part_lines(s);
    log_add_live(k, k->open[LOG_PROGRAM], new_words);
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->moved[i].from == 0)
            new_lines++;
        else if (s->lines[i].mask == 0)
            log_leave_line(t, s->moved[i].from, t->epoch);
        else
            log_leave_delta(t, &s->moved[i], t->epoch);
    }
    k->lines_live += new_lines;
    if (k->given.count > 0)
        log_take_lines(t, k->given.items, k->given.count);
    if (k->dropped.count > 0)
        log_drop_lines(t, t->epoch);
    t->lines_logged += s->count;
    journal_apply(t->c, w->clears, 0, w->words, w->counts.words);
    log_end_filled(t, true);
    for (uint32_t i = s->filled_count; i < s->data_count; i++)
        stream_line(t->c->home + s->moved[i].line * PM_LINE, s->lines[i].from);
    view_end(t, w);
    log_keep_bound(t);
}

/* -errno: nothing has changed. */
static inline int commit_lines(struct txn *t, struct small *s, const struct commit_words *w)
{
    int error = log_void_chunks(t);
    if (error != 0)
        return error;
    log_clean(t, part_lines(s));
    log_checkpoint(t);
    error = log_erase_stale(t); /* the cleaner's record may have failed, and has the same epoch */
    if (error == 0)
        error = write_record(t, s);
    if (error != 0)
        return error;
    view_leave(t);
    rounds_note(t, log_engine_of(t)->fenced); /* L1 */
    finish(t, s, w);
    return 0;
}

bool log_commit_small(struct txn *t, int *error)
{
    struct small s;
    s.filled_count = s.count = s.words = s.delta_words = s.whole = 0;
    s.run_end = UINT64_MAX;
    if (t->pages.count > 0 || t->translation || log_engine_of(t)->early.count > 0 ||
        !add_filled(t, &s) || !collect_data(t, &s))
        return false;
    struct commit_words w = view_words(t);
    if (log_find_owners(t, &w) != 0 || !add_given(t, &s) || !collect_words(t, &s, &w) ||
        !fits(t, &s))
        return false;
    if (log_engine_of(t)->dropped.count > 0 && log_engine_of(t)->mapped_runs > 0)
        return false;
    t->view.changes.run_count = t->view.changes.fresh_count = 0;
    t->view.changes.lines = s.count;
    *error = 0;
    if (s.count == 0)
        view_end_unchanged(t);
    else
        *error = commit_lines(t, &s, &w);
    return true;
}
