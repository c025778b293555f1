/*
 * What the map says of a line, and how a record changes it: the line as a whole, or a delta (deltas.c). It is
 * inline, for a commit spends a noticeable part of its time here.
 *
 *   map ──► 0                    the line was never stored to
 *   map ──► line of the file     it has the whole line
 *   map ──► struct delta ──► line of the file that has the whole line
 *                       └──► word of the file where the words are that differ
 *
 * A record enters its lines before it is written, and unenters them if that fails. When it counts, it leaves
 * what they had.
 */
#ifndef PM_TXN_LOG_DELTAS_H
#define PM_TXN_LOG_DELTAS_H

#include "txn/log/log.h"

#include <assert.h>
#include <errno.h>

/* What the map says of a line: `entry` below. */
static inline bool has_delta(uint32_t entry)
{
    return entry & LOG_HAS_DELTA;
}

static inline struct delta *delta_of(const struct log_engine *k, uint32_t entry)
{
    return &k->deltas[entry & ~LOG_HAS_DELTA];
}

/* The line of the file that has the whole line, or 0. */
static inline uint32_t base_of(const struct log_engine *k, uint32_t entry)
{
    return has_delta(entry) ? delta_of(k, entry)->base : entry;
}

static inline uint64_t word_of(const struct delta *d)
{
    return d->place * (uint64_t)PM_LINE_WORDS + d->at;
}

/* What an entry adds to the map's sum. */
static inline uint64_t entry_term(const struct log_engine *k, uint64_t line_hash, uint32_t entry)
{
    uint64_t term = log_place_term(line_hash, base_of(k, entry));
    if (has_delta(entry))
        term += log_place_term(line_hash, log_delta_place(word_of(delta_of(k, entry))));
    return term;
}

/* The words that a delta of this line needs, of which `changed` have changed now (L16). 0: it is logged as a
 * whole, since it never was, or since too many have changed. */
static inline uint32_t log_delta_needed(const struct txn *t, uint64_t line, uint32_t changed)
{
    const struct log_engine *k = log_engine_of(t);
    uint32_t entry = log_entry(t, line);
    if (has_delta(entry))
        changed |= delta_of(k, entry)->mask;
    else if (entry == 0 || !k->writes_deltas)
        return 0;
    return log_count_words(changed) <= LOG_DELTA_WORDS_MAX ? changed : 0;
}

static inline uint32_t log_delta_words(const struct delta *d)
{
    return 1 + log_count_words(d->mask);
}

/* Let the map say that a line has a delta, which does not say yet where. There is always memory. */
static inline struct delta *log_add_delta(struct log_engine *k, uint64_t line)
{
    uint32_t i = k->unused_delta;
    k->unused_delta = i == k->deltas_known ? ++k->deltas_known : k->deltas[i].base;
    k->deltas[i].base = line_map_at(&k->map, line);
    *line_map_entry(&k->map, line) = LOG_HAS_DELTA | i;
    return &k->deltas[i];
}

static inline void log_place_delta(struct delta *d, uint32_t mask, uint64_t word)
{
    d->place = (uint32_t)(word / PM_LINE_WORDS);
    d->at = word % PM_LINE_WORDS;
    d->mask = (uint8_t)mask;
}

/* Give a line a delta whose words are at word `word`, and note what it had. There is always memory. Returns
 * by how much the map's sum changes. */
static inline uint64_t log_enter_delta(struct txn *t, struct moved_line *moved, uint32_t mask,
                                       uint64_t word)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t hash = log_line_hash(t->c->seed, moved->line),
             sum = log_place_term(hash, log_delta_place(word));
    log_touch_unit(t, moved->line);
    uint32_t entry = moved->from = line_map_at(&k->map, moved->line);
    if (has_delta(entry)) {
        moved->delta = *delta_of(k, entry);
        sum -= log_place_term(hash, log_delta_place(word_of(&moved->delta)));
        log_place_delta(delta_of(k, entry), mask, word);
    } else {
        log_place_delta(log_add_delta(k, moved->line), mask, word);
    }
    return sum;
}

static inline void log_drop_delta(struct log_engine *k, uint32_t entry)
{
    *delta_of(k, entry) = (struct delta){.base = k->unused_delta};
    k->unused_delta = entry & ~LOG_HAS_DELTA;
}

/* The same for a line that is at `place` as a whole now. */
static inline uint64_t log_enter_line(struct txn *t, struct moved_line *moved, uint32_t place)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t hash = log_line_hash(t->c->seed, moved->line);
    log_touch_unit(t, moved->line);
    uint32_t *entry = line_map_entry(&k->map, moved->line);
    moved->from = *entry;
    *entry = place;
    return log_place_term(hash, place) - entry_term(k, hash, moved->from);
}

/* The same for the lines of a group, which needs no block then. */
static inline uint64_t log_enter_group(struct txn *t, struct moved_line *moved, uint64_t line,
                                       uint32_t place)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t sum = 0;
    log_touch_unit(t, line);
    for (uint32_t i = 0; i < LINE_MAP_GROUP; i++) {
        uint64_t hash = log_line_hash(t->c->seed, line + i);
        moved[i].line = line + i;
        moved[i].from = line_map_at(&k->map, line + i);
        sum += log_place_term(hash, place + i) - entry_term(k, hash, moved[i].from);
    }
    line_map_set_group(&k->map, &k->map.groups[line / LINE_MAP_GROUP], place);
    return sum;
}

/* The same for the lines of a run. Two runs of a part may share a group, and complete it together. A short
 * run alone completes none: another record's header lies between their lines in the file. */
static inline uint64_t log_enter_run(struct txn *t, struct moved_line *moved, uint64_t run,
                                     uint32_t place)
{
    uint64_t sum = 0, line = run_line(run), end = line + run_count(run);
    while (line < end) {
        uint32_t count = 1;
        if (line_map_is_group(line, end)) {
            count = LINE_MAP_GROUP;
            sum += log_enter_group(t, moved, line, place);
        } else {
            moved->line = line;
            sum += log_enter_line(t, moved, place);
        }
        line += count;
        place += count;
        moved += count;
    }
    if (run_count(run) >= LINE_MAP_GROUP)
        line_map_settle_ends(&log_engine_of(t)->map, run_line(run), run_count(run));
    return sum;
}

/* L15 */
static inline void log_assert_unmapped(const struct log_engine *k, uint64_t run)
{
    const uint8_t *page = k->mapped + run_line(run) / PM_PAGE_LINES,
                  *last = k->mapped + (run_line(run) + run_count(run) - 1) / PM_PAGE_LINES;
    for (; page <= last; page++)
        assert(*page == 0);
}

/* The map is as it was before a line was entered. The last one first: a line may have been entered twice. */
static inline void log_unenter(struct log_engine *k, const struct moved_line *moved)
{
    uint32_t entry = line_map_at(&k->map, moved->line);
    if (has_delta(moved->from) && entry == moved->from)
        *delta_of(k, entry) = moved->delta;
    else if (has_delta(entry))
        log_drop_delta(k, entry);
    *line_map_entry(&k->map, moved->line) = moved->from;
    line_map_settle(&k->map, moved->line, 1);
}

/* The record counts. The delta that the line had is not needed any more. */
static inline void log_leave_delta(struct txn *t, const struct moved_line *moved, uint64_t epoch)
{
    if (has_delta(moved->from))
        log_leave_place(t, moved->delta.place, log_delta_words(&moved->delta), epoch);
}

/* The same where the line is logged as a whole: nothing is needed that it had. */
static inline void log_leave_line(struct txn *t, uint32_t from, uint64_t epoch)
{
    struct log_engine *k = log_engine_of(t);
    log_leave_place(t, base_of(k, from), PM_LINE_WORDS, epoch);
    if (has_delta(from)) {
        log_leave_place(t, delta_of(k, from)->place, log_delta_words(delta_of(k, from)), epoch);
        log_drop_delta(k, from);
    }
}

/* Words of the pieces that a line has. */
static inline uint32_t log_entry_size(const struct log_engine *k, uint32_t entry)
{
    uint32_t words = base_of(k, entry) == 0 ? 0 : PM_LINE_WORDS;
    return has_delta(entry) ? words + log_delta_words(delta_of(k, entry)) : words;
}

/* What the log says of a line. */
void log_read_line(const struct txn *t, uint64_t line, char *to);

/* Add a line to the runs of a list, behind the first ones. -ENOMEM */
static inline int log_list_line(struct vector *runs, uint64_t first, uint64_t line)
{
    if (runs->count > first && run_extend((uint64_t *)runs->items + runs->count - 1, line))
        return 0;
    uint64_t *run = vector_push(runs, sizeof *run);
    if (!run)
        return -ENOMEM;
    *run = redo_run(line, 1);
    return 0;
}

/* Add a delta to a list. -ENOMEM */
static inline int log_list_delta(struct delta_list *list, uint64_t line, uint32_t mask)
{
    uint64_t *entry = vector_push(&list->entries, sizeof *entry);
    if (!entry)
        return -ENOMEM;
    *entry = log_delta(line, mask);
    list->words += log_entry_words(*entry);
    return 0;
}

static inline void log_clear_deltas(struct delta_list *list)
{
    list->entries.count = list->words = 0;
}

/* Take the lines from a commit's runs that get deltas. `changed`: for each line of the runs, what differs.
 * -ENOMEM */
int log_split(struct txn *t, struct record_runs *r, const uint8_t *changed);

#endif
