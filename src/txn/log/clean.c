/*
 * The cleaner. Chunks fill up with lines that have newer pieces elsewhere. A chunk of which few lines are
 * live is a *victim*: its live lines are logged again, and then nobody needs it. A commit does so in a
 * record of its own, just before the program's. This record has what the victim has, so it changes nothing.
 * It is an ordinary commit, with an epoch of its own. So the rules need nothing more
 * (docs/internals/log.md), and both records share a fence.
 *
 * A commit cleans if few chunks are free or dead, and less of the others is live than options.live_percent
 * says: half by default. If more is live, the file grows. If it cannot grow, commits clean until nearly all
 * is live. A commit does a step of the work, which frees more than the commit uses. No commit waits for a
 * whole chunk, unless it needs much room at once. If much less is live, commits clean although many chunks
 * are idle, so that the file gets shorter. For that they also empty its last chunk (surplus.c).
 *
 * What is cleaned goes to a chunk of its own (enum log_stream). A victim is read through the cache while the
 * program works: the lines behind those of this step are prefetched for the next one.
 *
 * On a full disk a commit that lacks room cleans whole chunks, one after the other, those first in which the
 * least is live. For this one chunk is kept in reserve (chunks.c). pm_reserve() cleans so too, before it lets
 * the file grow. The commit after it does not clean, because the room is for the program.
 *
 * Otherwise the victim is chosen by cost, benefit and age: Rosenblum and Ousterhout, "The Design and
 * Implementation of a Log-Structured File System" (SOSP 1991), section 3.6.
 */
#include "txn/log/deltas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Lines cleaned for each line that a commit logs. */
#define SHARE_MIN 2
#define SHARE_MAX 32
/* And in a step, at least. Each step has a record, whose head is dead at once. On a full disk that room is
 * worth more than short steps. */
#define STEP_MIN  16
#define STEP_FULL 64
/* If the file cannot grow, the cleaner works until so much of it is live. */
#define FULL_PERCENT 90
/* A victim is at most so much live. */
#define MOST_PERCENT 87
/* On a full disk a victim must leave at least this share of a chunk. */
#define GAIN_SHARE 32
/* To find a chunk to fold, a step looks at so many deltas for each chunk, and at so many at least. All might
 * be millions. A chunk counts if so many words of deltas were seen. */
#define SAMPLE_SHARE 16
#define SAMPLE_MIN   4096
#define SAMPLE_WORDS 16
/* Chunks in use without which no commit cleans. */
#define CLEAN_CHUNKS_MIN 8

static uint64_t idle_chunks(const struct log_engine *k)
{
    return k->free.count + k->voided.count + k->emptied.count;
}

/* Those with images are none of the cleaner's business. */
static uint64_t used_chunks(const struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    return t->c->chunks - 1 - idle_chunks(k) - k->checkpoint.chunks;
}

/* How much of the chunks in use may be live, in percent, while the cleaner works. */
static uint64_t live_percent(const struct log_engine *k)
{
    return k->is_full ? max_u64(FULL_PERCENT, k->live_percent) : k->live_percent;
}

/* `words` are less than `percent` of the chunks in use. Headers and runs count as dead. A small file may stay
 * as it is: among few chunks there is no good victim. */
static bool is_below(const struct txn *t, uint64_t words, uint64_t percent)
{
    return used_chunks(t) >= CLEAN_CHUNKS_MIN &&
           100 * words < percent * used_chunks(t) * chunk_lines(t) * PM_LINE_WORDS;
}

static bool is_wasteful(const struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    return is_below(t, k->words_live, live_percent(k));
}

/* On a full disk there may be no victim, because lines and their deltas are all live. Deltas are dead when
 * their lines are logged again: they are folded. But if few lines change, their deltas are soon dead anyway.
 * So libpm waits until half of the last chunk is filled that it can have. */
static bool is_time_to_fold(const struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    return k->is_full && idle_chunks(k) <= LOG_RESERVE &&
           k->chunks[k->open[LOG_PROGRAM]].end > chunk_lines(t) / 2 &&
           is_below(t, k->lines_live * PM_LINE_WORDS, live_percent(k));
}

/* By default an eighth of the chunks in use may be idle on top, and a hundredth if the file cannot grow.
 * Then it is one more while the cleaner's own chunk has little room: it may take another before it has
 * emptied one. What the next checkpoint will take should be idle, too. If not, the log takes the chunks that
 * the last one has left, and the file grows for the next one. */
static bool has_few_idle(const struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    const uint32_t filled = k->open[LOG_CLEANER];
    uint64_t ahead = used_chunks(t) * (k->is_full ? 4 : 100 - k->live_percent) / 400;
    if (k->is_full && (filled == 0 || k->chunks[filled].end > chunk_lines(t) / 2))
        ahead++;
    return idle_chunks(k) < LOG_RESERVE + 1 + ahead + log_images_to_come(t);
}

/* Contents have become so much less that the file should be shorter (surplus.c), and may be. */
static bool is_overlong(const struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    return !k->is_full && t->c->chunks > k->chunks_min &&
           is_below(t, k->words_live, k->live_percent / 4 * 3);
}

static bool is_due(const struct txn *t)
{
    bool is_last = log_engine_of(t)->victim == t->c->chunks - 1;
    return is_last || (has_few_idle(t) ? is_wasteful(t) || is_time_to_fold(t) : is_overlong(t));
}

/* Lines that a victim's live lines may take elsewhere on a full disk. The rest of a chunk that is being
 * filled is no gain: there was room before. */
static uint64_t most_elsewhere(const struct txn *t, uint32_t chunk)
{
    const struct log_engine *k = log_engine_of(t);
    uint32_t lines = log_is_open(k, chunk) ? k->chunks[chunk].end : chunk_lines(t);
    return lines - chunk_lines(t) / GAIN_SHARE;
}

/* A chunk that is being filled may be a victim on a full disk, if little room is left in it. */
static bool may_be_victim(const struct txn *t, uint32_t chunk)
{
    const struct log_engine *k = log_engine_of(t);
    const struct chunk *h = &k->chunks[chunk];
    if (log_has_images(k, chunk))
        return false;
    if (!log_is_open(k, chunk))
        return h->live > 0;
    if (chunk == k->open[LOG_VALUES] && k->early.count > 0) /* E1 */
        return false;
    return k->reserve == 0 && h->end > chunk_lines(t) / 8 * 7 &&
           h->live <= most_elsewhere(t, chunk) * PM_LINE_WORDS;
}

/* The room that cleaning the chunk gains, divided by the lines to be moved, times the chunk's age. Old lines
 * will live on, so their room is gained for long. In a young chunk more lines will soon be dead anyway. */
static double merit(const struct txn *t, const struct chunk *h)
{
    double live = h->live, dead = chunk_lines(t) * (double)PM_LINE_WORDS - live;
    return dead / live * (double)(t->epoch - h->newest + 1);
}

/* The chunk of the greatest merit; `least`: in which the least is live. At most `most` lines of it are live.
 * 0: none */
static uint32_t choose_victim(const struct txn *t, uint32_t most, bool least)
{
    const struct log_engine *k = log_engine_of(t);
    uint32_t best = 0;
    double best_merit = 0;
    for (uint32_t i = 1; i < t->c->chunks; i++) {
        const struct chunk *h = &k->chunks[i];
        if (h->live > most * PM_LINE_WORDS || !may_be_victim(t, i))
            continue;
        double m = least ? 1.0 / (h->live + 1.0) : merit(t, h);
        if (m > best_merit) {
            best = i;
            best_merit = m;
        }
    }
    return best;
}

/* Clean `chunk` from its beginning; 0: none. `folded`: words of deltas elsewhere that are dead then. A step
 * frees twice what its commit logs, so there are soon enough idle chunks. Where lines are folded it frees
 * four times as much, for there is less time. Scattered lines take 9/8 of their number elsewhere. */
static void set_victim(struct txn *t, uint32_t chunk, uint64_t folded)
{
    struct log_engine *k = log_engine_of(t);
    const struct chunk *h = &k->chunks[chunk];
    uint64_t words = (uint64_t)chunk_lines(t) * PM_LINE_WORDS + folded, live = h->live,
             elsewhere = live + live / 8, gain = elsewhere < words ? words - elsewhere : 1;
    k->victim = chunk;
    k->victim_at = 1;
    k->victim_passed = 0;
    k->share = divide_up((folded > 0 ? 4 : 2) * live, gain);
    k->share = max_u64(SHARE_MIN, min_u64(k->share, SHARE_MAX));
}

/* Add up, for each chunk, the words of deltas elsewhere of whose lines it has the whole. One delta of
 * `stride` stands for the others. */
static void count_foldable(const struct txn *t, uint32_t *words, uint32_t stride)
{
    const struct log_engine *k = log_engine_of(t);
    for (uint64_t i = t->epoch % stride; i < k->deltas_known; i += stride) {
        const struct delta *d = &k->deltas[i];
        if (d->mask != 0 && d->base >> k->chunk_shift != d->place >> k->chunk_shift)
            words[d->base >> k->chunk_shift] += stride * log_delta_words(d);
    }
}

/* The chunk whose lines have the most deltas elsewhere. `folded`: their words. 0: none has many, or any if
 * even a little helps. */
static uint32_t choose_folded(const struct txn *t, uint32_t stride, uint64_t *folded)
{
    uint32_t best = 0, most = (uint32_t)(chunk_lines(t) / GAIN_SHARE * PM_LINE_WORDS);
    if (log_engine_of(t)->folds_all)
        most = 1;
    if (stride > 1)
        most = (uint32_t)max_u64(most, SAMPLE_WORDS * stride);
    uint32_t *words = calloc(t->c->chunks, sizeof *words);
    if (!words)
        return 0;
    count_foldable(t, words, stride);
    for (uint32_t i = 1; i < t->c->chunks; i++)
        if (words[i] >= most && may_be_victim(t, i)) {
            best = i;
            *folded = words[i];
            most = words[i] + 1;
        }
    free(words);
    return best;
}

/* Note a live line, and let its contents come to the cache. -ENOMEM */
static int add_line(struct txn *t, uint64_t line)
{
    __builtin_prefetch(t->c->home + line * PM_LINE);
    return log_list_line(&log_engine_of(t)->cleaned, 0, line);
}

/* A compaction cuts off home. In a container of FORMAT_LOG_KEEPING the lines behind keep their pieces. And
 * home is not filled for the cleaner. */
static bool is_in_home(const struct txn *t, uint64_t line)
{
    return line < container_bytes(t->c) / PM_LINE && !log_is_absent(t, line);
}

/* Gather a line that is in the victim as a whole. -errno */
static int gather_line(struct txn *t, uint64_t line, uint64_t *lines)
{
    ++*lines;
    int error = log_unmap_pages(t, (uint32_t)(line / PM_PAGE_LINES));
    return error == 0 ? add_line(t, line) : error;
}

/* Gather a delta whose words begin at `word`, if it counts. If the line as a whole is in the same chunk, that
 * was before it, and the line is gathered already. -errno */
static int gather_delta(struct txn *t, uint64_t line, uint64_t word, uint64_t *lines)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t entry = log_entry(t, line);
    if (!has_delta(entry) || word_of(delta_of(k, entry)) != word ||
        base_of(k, entry) >> k->chunk_shift == word / PM_LINE_WORDS >> k->chunk_shift)
        return 0;
    if (!is_in_home(t, line))
        return gather_line(t, line, lines);
    ++*lines;
    __builtin_prefetch(t->c->home + line * PM_LINE);
    return log_list_delta(&k->cleaned_deltas, line, delta_of(k, entry)->mask);
}

/* Gather a piece of the victim, if it counts. It is a line at `place`, or a delta with words from `word` on.
 * An entry that the medium has damaged names no line whose piece is there. -errno */
static int gather_piece(struct txn *t, uint64_t entry, uint64_t line, uint32_t place, uint64_t word,
                        uint64_t *lines)
{
    if (line >= t->c->max_size / PM_LINE)
        return 0;
    if (log_is_delta(entry))
        return gather_delta(t, line, word, lines);
    return base_of(log_engine_of(t), log_entry(t, line)) == place ? gather_line(t, line, lines) : 0;
}

/* Gather the live lines of a part that is at `place`, from behind those that earlier steps have passed. If
 * there are `most` or more, the next step goes on behind them. But a run is cut only where a page begins, so
 * that its lines stay together. -errno */
static int gather_part(struct txn *t, const struct log_part *part, uint32_t place, uint64_t most,
                       uint64_t *lines)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t word = log_table_word(place) + 1; /* behind the entry */
    uint64_t before = 0;                       /* pieces of the entries before */
    int error = 0;
    place = (uint32_t)log_part_contents(part, place);
    for (const uint64_t *entry = part->table, *end = entry + part->words; entry < end && error == 0;
         entry += log_entry_words(*entry)) {
        const uint64_t count = log_is_delta(*entry) ? 1 : run_count(*entry);
        uint64_t i = k->victim_passed > before ? min_u64(k->victim_passed - before, count) : 0;
        for (; i < count && error == 0; i++) {
            const uint64_t line = run_line(*entry) + i;
            if (*lines >= most && (i == 0 || line % PM_PAGE_LINES == 0)) {
                k->victim_passed = before + i;
                return 0;
            }
            error = gather_piece(t, *entry, line, place + (uint32_t)i, word, lines);
        }
        place += log_is_delta(*entry) ? 0 : (uint32_t)count;
        word += log_entry_words(*entry);
        before += count;
    }
    k->victim_passed = 0;
    return error;
}

/* The victim's next lines come to the cache while the program works: they were written past it. */
static void prefetch_victim(const struct txn *t, uint64_t lines)
{
    const struct log_engine *k = log_engine_of(t);
    const char *next = at_place(t, place_in(t, k->victim, k->victim_at));
    lines = min_u64(lines, k->chunks[k->victim].end - k->victim_at);
    for (uint64_t i = 0; i < lines; i++)
        __builtin_prefetch(next + i * PM_LINE);
}

/* Copy the contents of the gathered lines. They come from home, so nobody reads the whole chunk to compare
 * its checksums. -ENOMEM */
static int copy_lines(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    for (uint64_t i = 0; i < k->cleaned.count; i++) {
        uint64_t run = ((const uint64_t *)k->cleaned.items)[i], line = run_line(run);
        for (uint64_t n = run_count(run); n > 0; n--, line++) {
            char *contents = vector_push(&k->cleaned_lines, PM_LINE);
            if (!contents)
                return -ENOMEM;
            if (is_in_home(t, line))
                memcpy(contents, t->c->home + line * PM_LINE, PM_LINE);
            else
                log_read_line(t, line, contents);
        }
    }
    return 0;
}

static void forget_gathered(struct log_engine *k)
{
    k->cleaned.count = k->cleaned_lines.count = 0;
    log_clear_deltas(&k->cleaned_deltas);
}

/* Gather live lines of the victim, part by part, until there are `most`, or a few more. If a part is damaged,
 * nothing is cleaned any more. -errno */
static int gather(struct txn *t, uint64_t most, uint64_t *lines)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t begin = k->victim_at, end = k->chunks[k->victim].end;
    int error = 0;
    forget_gathered(k);
    *lines = 0;
    while (k->victim_at < end && *lines < most && error == 0) {
        uint32_t place = place_in(t, k->victim, k->victim_at);
        const struct log_part *part = (const struct log_part *)at_place(t, place);
        uint64_t n = log_part_lines(part, place, end - k->victim_at);
        error = n > 0 ? gather_part(t, part, place, most, lines) : -EBADMSG;
        if (k->victim_passed == 0)
            k->victim_at += (uint32_t)n;
    }
    if (error == 0) {
        prefetch_victim(t, k->victim_at - begin);
        error = copy_lines(t);
    }
    if (error == -EBADMSG)
        k->cannot_clean = true;
    if (error != 0 || k->victim_at >= end)
        k->victim = 0;
    return error;
}

/* Log the gathered lines again. `alone`: no record follows that would be fenced with it. */
static int log_again(struct txn *t, bool alone)
{
    struct log_engine *k = log_engine_of(t);
    struct record_runs runs = {.runs = k->cleaned.items,
                               .count = k->cleaned.count,
                               .lines = k->cleaned_lines.count,
                               .contents = k->cleaned_lines.items,
                               .deltas = &k->cleaned_deltas,
                               .metadata_from = t->c->home,
                               .stream = LOG_CLEANER};
    bool freed = t->freed == t->epoch, freed_new = t->freed_new == t->epoch,
         reserved = k->reserved == t->epoch;
    int error = log_plan(t, &runs);
    if (error == 0)
        error = log_write(t, &runs, t->c->pointers_base);
    if (error != 0)
        return error;
    log_install(t);
    if (alone)
        rounds_note(t, k->fenced);
    else /* even if the program's record cannot be written */
        rounds_announce(t, k->fenced);
    count(&t->epoch);
    if (freed) /* in the transaction that goes on */
        t->freed = t->epoch;
    if (freed_new)
        t->freed_new = t->epoch;
    if (reserved)
        k->reserved = t->epoch;
    return 0;
}

/* Lines of the victim logged again, `most` or a few more. -errno; -ENOSPC: there is no victim */
static int64_t clean(struct txn *t, uint64_t most, bool alone)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t lines = 0;
    int error = k->victim != 0 && !k->cannot_clean ? gather(t, most, &lines) : -ENOSPC;
    if (error == 0 && lines > 0)
        error = log_again(t, alone);
    return error == 0 ? (int64_t)lines : error;
}

/* Lines that may be live in a victim: 5/8 by default. Of 8/9 and more nothing might be gained. */
static uint32_t most_live(const struct txn *t)
{
    uint64_t percent = (100 + 3 * live_percent(log_engine_of(t))) / 4;
    return (uint32_t)(chunk_lines(t) * min_u64(percent, MOST_PERCENT) / 100);
}

static void next_victim(struct txn *t)
{
    const struct log_engine *k = log_engine_of(t);
    uint64_t folded = 0;
    uint32_t chunk = choose_victim(t, most_live(t), false);
    if (chunk == 0 && is_time_to_fold(t)) {
        uint64_t sample = max_u64(SAMPLE_MIN, SAMPLE_SHARE * t->c->chunks);
        chunk = choose_folded(t, (uint32_t)(k->deltas_known / sample + 1), &folded);
    }
    set_victim(t, chunk, folded);
}

bool log_cleans_always;

void log_choose_any(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    if (k->victim != 0 && !log_is_open(k, k->victim))
        return;
    uint32_t chunk = choose_victim(t, chunk_lines(t), false);
    if (chunk == 0) {
        log_leave_chunk(t, LOG_PROGRAM, 0);
        chunk = choose_victim(t, chunk_lines(t), false);
    }
    set_victim(t, chunk, 0);
}

void log_clean(struct txn *t, uint64_t lines)
{
    struct log_engine *k = log_engine_of(t);
    if (log_cleans_always) {
        (void)clean(t, STEP_MIN, false);
        return;
    }
    uint64_t search = 2 * k->taken + is_time_to_fold(t);
    bool finds_none = k->victim == 0 && k->searched == search;
    if (k->reserved == t->epoch || finds_none ||
        !is_due(t)) /* what is reserved is for the program */
        return;
    k->owed += lines * max_u64(k->share, SHARE_MIN);
    if (k->owed < (k->is_full ? STEP_FULL : STEP_MIN))
        return;
    if (k->is_full)
        k->reserve = 1; /* the cleaner's own chunk, or nothing would ever be gained */
    int64_t left = (int64_t)k->owed;
    k->owed = 0;
    for (int64_t n = 1; left > 0 && n > 0 && is_due(t); left -= n) {
        if (k->victim == 0 || log_is_open(k, k->victim))
            next_victim(t);
        if (k->victim == 0) /* there may be one when a further chunk is full */
            k->searched = search;
        n = clean(t, (uint64_t)left, false);
    }
    k->reserve = LOG_RESERVE;
}

void log_clean_last(struct txn *t)
{
    uint32_t last = t->c->chunks - 1;
    if (log_engine_of(t)->open[LOG_VALUES] == last)
        log_leave_values(t);
    if (log_engine_of(t)->victim != last && last > 0 && may_be_victim(t, last))
        set_victim(t, last, 0);
}

int log_clean_for_reserve(struct txn *t)
{
    return is_wasteful(t) ? log_clean_chunk(t) : -ENOSPC;
}

/* Lines that a record of what was gathered takes, at most. Each part has a line that is partly filled, behind
 * its runs. */
static uint64_t gathered_room(const struct log_engine *k)
{
    uint64_t head = log_part_head(k->cleaned.count + k->cleaned_deltas.words),
             lines = k->cleaned_lines.count + head, parts = lines / (LOG_PART_LINES / 2) + 1;
    return lines + 2 * parts;
}

/* What is logged again, or dead, is not filled any more. */
static void leave_if_open(struct txn *t, uint32_t chunk)
{
    for (int stream = 0; stream < LOG_STREAMS; stream++)
        if (chunk == log_engine_of(t)->open[stream])
            log_leave_chunk(t, (enum log_stream)stream, 0);
}

/* Empty a chunk into others. `most`: lines that its lines may take there, at most. -ENOSPC: they take more */
static int empty_into_others(struct txn *t, uint32_t chunk, uint64_t most)
{
    struct log_engine *k = log_engine_of(t);
    uint64_t lines = 0;
    if (chunk == 0 || k->cannot_clean)
        return -ENOSPC;
    set_victim(t, chunk, 0);
    int error = gather(t, UINT64_MAX, &lines);
    if (error == 0 && (lines == 0 || gathered_room(k) > most))
        error = -ENOSPC;
    if (error != 0)
        return error;
    leave_if_open(t, chunk);
    return log_again(t, true);
}

/* A victim must leave more room than its lines take elsewhere. A run costs a word, so scattered lines take
 * 9/8 of their number: a chunk of them is full, and 8/9 live. If it were a victim again, a caller that wants
 * room would never end. */
int log_clean_chunk(struct txn *t)
{
    struct log_engine *k = log_engine_of(t);
    k->reserve = 0;
    uint32_t victim = choose_victim(t, chunk_lines(t) - chunk_lines(t) / GAIN_SHARE, true);
    bool is_dead = victim != 0 && k->chunks[victim].live == 0; /* the next log_reclaim() takes it */
    int error = 0;
    if (is_dead)
        leave_if_open(t, victim);
    else
        error = empty_into_others(t, victim, most_elsewhere(t, victim));
    uint64_t folded = 0;
    if (error == -ENOSPC)
        error = empty_into_others(t, choose_folded(t, 1, &folded), UINT64_MAX);
    k->victim = 0;
    k->reserve = LOG_RESERVE;
    return error;
}

int log_empty_chunk(struct txn *t, uint32_t chunk)
{
    struct log_engine *k = log_engine_of(t);
    if (k->cannot_clean)
        return -EBADMSG;
    set_victim(t, chunk, 0);
    k->reserve = 0;
    int64_t lines = clean(t, UINT64_MAX, true);
    k->reserve = LOG_RESERVE;
    return lines < 0 ? (int)lines : 0;
}
