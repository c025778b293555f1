/*
 * Deltas. A commit changes a word or two of most lines. It then logs not the line but the words that differ
 * from the last piece that has the whole line. So a line has two pieces at most, and no history: each delta
 * has all that the one before had (L16).
 *
 *   whole line   │ a b c d e f g h │   epoch 1
 *   delta        │ C │                 epoch 4
 *   delta        │ C F │               epoch 9: the line is a b C d e F g h, and epoch 4 is not needed
 *
 * The idea is that of a page with an image and newer pieces (Hu et al., section 3.2). But nobody follows
 * chains here. When more than LOG_DELTA_WORDS_MAX words differ, the line is logged as a whole again. The
 * cleaner moves a delta as it is, and a whole line with what its delta says.
 */
#include "txn/log/deltas.h"

#include <string.h>

void log_read_line(const struct txn *t, uint64_t line, char *to)
{
    const struct log_engine *k = log_engine_of(t);
    uint32_t entry = log_entry(t, line), base = base_of(k, entry);
    if (base != 0)
        memcpy(to, at_place(t, base), PM_LINE);
    else
        memset(to, 0, PM_LINE);
    if (has_delta(entry))
        log_apply_delta((uint64_t *)to, delta_of(k, entry)->mask,
                        (const uint64_t *)t->c->file + word_of(delta_of(k, entry)));
}

/* Which lines of one page have an owner in the open transaction. Lines come in their order, mostly, so the
 * last page is kept: to ask for each line takes longer than all the rest. */
struct owned_lines {
    uint64_t page, lines;
};

static bool is_owned(const struct txn *t, struct owned_lines *o, uint64_t line)
{
    uint64_t page = line / PM_PAGE_LINES;
    if (page != o->page)
        *o = (struct owned_lines){
            page, t->upcalls.page_liveness(t->upcalls.context, (uint32_t)page).after};
    return o->lines >> line % PM_PAGE_LINES & 1;
}

/* Some of the runs: those of one source. -ENOMEM */
static int split_runs(struct txn *t, const uint64_t *run, const uint64_t *end,
                      const uint8_t *changed, bool are_data)
{
    struct log_engine *k = log_engine_of(t);
    struct owned_lines owned = {.page = UINT64_MAX};
    uint64_t first = k->split_runs.count;
    int error = 0;
    for (; run < end; run++) {
        uint64_t line = run_line(*run);
        for (uint64_t n = run_count(*run); n > 0 && error == 0; n--, line++) {
            uint32_t mask = log_delta_needed(t, line, *changed++);
            bool may_be_stray = are_data && k->drops && line_map_at(&k->map, line) == 0; /* W1 */
            if (may_be_stray && !is_owned(t, &owned, line)) {
                log_set_left(t, line, true);
                continue;
            }
            error = mask != 0 ? log_list_delta(&k->split_deltas, line, mask)
                              : log_list_line(&k->split_runs, first, line);
        }
    }
    return error;
}

int log_split(struct txn *t, struct record_runs *r, const uint8_t *changed)
{
    struct log_engine *k = log_engine_of(t);
    const uint64_t *stored = r->runs + r->stored_count, *data = r->runs + r->data_count,
                   *end = r->runs + r->count;
    k->split_runs.count = 0;
    log_clear_deltas(&k->split_deltas);
    int error = split_runs(t, r->runs, stored, changed, true);
    r->stored_count = k->split_runs.count;
    changed += log_lines_of(r->runs, (uint64_t)(stored - r->runs));
    if (error == 0)
        error = split_runs(t, stored, data, changed, true);
    r->data_count = k->split_runs.count;
    r->data_deltas = k->split_deltas.entries.count;
    changed += log_lines_of(stored, (uint64_t)(data - stored));
    if (error == 0)
        error = split_runs(t, data, end, changed, false);
    r->runs = k->split_runs.items;
    r->count = k->split_runs.count;
    r->deltas = &k->split_deltas;
    r->lines = log_lines_of(r->runs, r->count);
    return error;
}
