/*
 * Small commits, as most are under `stores`: a few marked lines, and a few words. In general a commit goes
 * over its lines six times, by way of tables that have room for any number of lines. It finds the lines, cuts
 * them into parts, enters them in the map, builds each part, counts, and brings home. Here three loops over a
 * table on the stack do that. They do it in the same order, so the rules hold for the same reasons.
 *
 * A commit is small if
 *
 *   - no page is listed, no line needs translation, and none was handed over
 *   - at most LINES_MAX lines have changed, the lines of words included, and all have an object
 *   - no metadata is new
 *   - its record is one part, which fits in the open chunk
 *   - nothing is left of a record that failed, or of a compaction (L14)
 *
 * Whether a commit is small is known before anything has changed.
 */
#include "txn/log/log.h"

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
    uint64_t line;
    const char *from; /* in home's form */
    uint32_t before;  /* its place in the file before this commit */
};

struct small {
    struct small_line lines[LINES_MAX];
    uint64_t runs[LINES_MAX]; /* redo_run() values */
    uint32_t count, run_count;
    uint32_t data_count; /* lines of data; they come first */
};

/* The run has fewer lines than LINES_MAX. It joins the last one, if that ends there. */
static inline void add_run(struct small *s, uint64_t run)
{
    uint64_t *last = s->run_count > 0 ? &s->runs[s->run_count - 1] : NULL;
    if (last && run_line(*last) + run_count(*last) == run_line(run))
        *last = redo_run(run_line(*last), run_count(*last) + run_count(run));
    else
        s->runs[s->run_count++] = run;
}

static inline void add(struct small *s, uint64_t line, const char *from)
{
    s->lines[s->count++] = (struct small_line){.line = line, .from = from};
    add_run(s, redo_run(line, 1));
}

/* The lines of a new object that differ from home. */
static inline void add_object(const struct container *c, struct small *s, uint64_t run)
{
    uint64_t line = run_line(run), end = line + run_count(run);
    while (line < end) {
        uint64_t first = line;
        for (; line < end; line++) {
            uint64_t at = line * PM_LINE;
            if (!line_images_differ(c->base + at, c->home + at))
                break;
            s->lines[s->count++] = (struct small_line){.line = line, .from = c->base + at};
        }
        if (line > first)
            add_run(s, redo_run(first, line - first));
        line++;
    }
}

/* As view_collect(). False: the commit is not small. */
static inline bool collect_data(struct txn *t, struct small *s)
{
    const struct tracker *k = &t->tracker;
    const uint8_t *marks = line_mark(t->c, 0);
    bool freed = t->freed == t->epoch;
    uint64_t marked = k->count;
    if (marked > MARKS_MAX || k->object_lines > OBJECT_LINES_MAX)
        return false;
    if (k->object_count > 0 && t->freed_new == t->epoch) /* T3 */
        return false;
    for (uint64_t i = 0; i < k->object_count; i++)
        add_object(t->c, s, k->objects[i]);
    for (uint64_t i = 0; i < marked; i++) {
        uint64_t line = k->marked[i];
        const char *view = t->c->base + line * PM_LINE;
        const void *before =
            k->imaged[i] ? (const void *)&k->images[i] : t->c->home + line * PM_LINE;
        if (marks[line] == 0 || !line_images_differ(view, before))
            continue;
        if (freed && !(t->upcalls.line_liveness(t->upcalls.context, line) & LIVE_AFTER))
            return false;
        add(s, line, view);
    }
    s->data_count = s->count;
    return true;
}

static inline bool collect_words(struct txn *t, struct small *s, const struct commit_words *w)
{
    if (w->counts.clears > 0 || s->count + w->counts.words > LINES_MAX)
        return false;
    for (uint64_t i = 0; i < w->counts.words; i++) {
        uint64_t line = w->words[i].offset / PM_LINE;
        if (i == 0 || line != w->words[i - 1].offset / PM_LINE)
            add(s, line, t->c->shadow + line * PM_LINE);
    }
    return true;
}

/* The plan has memory, in which a failed record can be noted. */
static inline bool fits(const struct txn *t, const struct small *s)
{
    const struct log_engine *k = log_engine_of(t);
    uint32_t chunk = k->open[LOG_PROGRAM];
    return chunk != 0 && k->stale.count == 0 && !k->forgets && k->plan.room > 0 &&
           k->chunks[chunk].end + log_part_head(s->run_count) + s->count <= chunk_lines(t);
}

/* Enter the lines in the map, and build the part in the stage. */
static inline struct log_part *build(struct txn *t, struct small *s, uint32_t place)
{
    struct log_engine *k = log_engine_of(t);
    struct log_part *part = (struct log_part *)k->stage;
    line_image *to = (line_image *)part + log_part_head(s->run_count);
    uint32_t *map = k->map, at = place + (uint32_t)log_part_head(s->run_count);
    uint64_t sum = k->map_sum, seed = t->c->seed;
    to[-1] = (line_image){0}; /* behind the last run */
    *part = log_begin_record(t, t->c->pointers_base);
    part->number = LOG_LAST;
    part->runs = (uint16_t)s->run_count;
    part->lines = (uint16_t)s->count;
    for (uint32_t i = 0; i < s->run_count; i++)
        part->run[i] = s->runs[i];
    for (struct small_line *l = s->lines, *end = l + s->count; l < end; l++, at++) {
        assert(!k->mapped[l->line / PM_PAGE_LINES]); /* L15 */
        l->before = map[l->line];
        map[l->line] = at;
        sum += log_map_change(seed, l->line, l->before, at);
        *to++ = *(const line_image *)l->from;
    }
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
    int error = log_store(t, place, part, (log_part_head(s->run_count) + s->count) * PM_LINE);
    if (error == 0)
        return 0;
    for (uint32_t i = s->count; i-- > 0;) /* a line may be there twice */
        k->map[s->lines[i].line] = s->lines[i].before;
    k->map_sum = sum;
    log_note_failed(t, chunk, k->chunks[chunk].end);
    return error;
}

/* As log_install(), and finish() of commit.c. */
static inline void finish(struct txn *t, const struct small *s, const struct commit_words *w)
{
    struct log_engine *k = log_engine_of(t);
    struct chunk *chunk = &k->chunks[k->open[LOG_PROGRAM]];
    uint32_t new_lines = 0;
    chunk->newest = t->epoch;
    chunk->end += (uint32_t)log_part_head(s->run_count) + s->count;
    chunk->live += s->count;
    for (const struct small_line *l = s->lines, *end = l + s->count; l < end; l++) {
        new_lines += l->before == 0;
        log_leave_place(t, l->before, t->epoch);
    }
    k->lines_live += new_lines;
    t->lines_logged += s->count;
    journal_apply(t->c, w->clears, 0, w->words, w->counts.words);
    for (uint32_t i = 0; i < s->data_count; i++)
        stream_line(t->c->home + s->lines[i].line * PM_LINE, s->lines[i].from);
    view_end(t, w);
}

/* -errno: nothing has changed. */
static inline int commit_lines(struct txn *t, struct small *s, const struct commit_words *w)
{
    int error = log_void_chunks(t);
    if (error != 0)
        return error;
    log_clean(t, s->count);
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
    s.count = s.run_count = 0;
    if (t->pages.count > 0 || t->translation || log_engine_of(t)->filled.count > 0 ||
        !collect_data(t, &s))
        return false;
    struct commit_words w = view_words(t);
    if (!collect_words(t, &s, &w) || !fits(t, &s))
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
