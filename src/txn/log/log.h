/*
 * The log engine: the log is the home (Hu et al., "Log-Structured Non-Volatile Main Memory", USENIX ATC
 * 2017). A commit appends one record with the lines that have changed, and nothing else is written. The map
 * says where in the file each line has its newest piece. The program loads and stores in virtual memory.
 * Home is memory, which pm_open() fills from the log. The view is a private copy of home, as under redo.
 *
 *   txn_open --> recovery --> EPOCH e OPEN --- commit: record e ----> map and home changed;
 *                  |           ^    |          pmem: one fence        e becomes e + 1
 *                  |           |    |          file: no wait here
 *                  |           +----+ rollback: home's lines back
 *                  +-- seals, base
 *
 * Journaled words are logged as the lines that they are on, as data is.
 *
 * The rules (docs/internals/log.md) and where they are kept:
 *
 *  L1  a commit is durable after a fence that follows its record           ../rounds.c
 *  L2  up to `certain` gaps are legal, above it only a run of whole records recovery.c
 *  L3  from a chunk's end on only the header's generation counts           recovery.c
 *  L4  generations are of one incarnation                                  recovery.c
 *  L5  before the first record chunks are sealed                           recovery.c
 *  L6  the base's epoch is the restored one                                recovery.c, engine.c, chunks.c
 *  L7  what is relied on is made durable first                             recovery.c
 *  L8, L9, L10  when a chunk is void, and when it is filled again          chunks.c
 * L11  new metadata is logged where the log may have older pieces          commit.c
 * L12  there is room for all parts before the first byte                   record.c, small.c
 * L13  a record says what the whole map is                                 record.c, small.c, recovery.c
 * L14  a line counts only if it has an owner                               owners.c, recovery.c
 * L15  what is mapped stays where it is                                    pages.c
 * L16  a delta has all that differs from the whole line                    deltas.h, clean.c, recovery.c
 *  K1  a unit's image is as the checkpoint's commit left the unit          units.c, checkpoint.c
 *  K2  a checkpoint is named when all of it, and its commit, are durable   checkpoint.c
 *  K3  of a chunk that was begun again since, all records are read         recovery.c, chunks.c
 *  K4  images stay until a newer checkpoint is named, durably              checkpoint.c
 *  K5  a unit is absent only while the named checkpoint has its image      units.c
 *
 * If memory is bounded, home is filled as it is accessed (bounded.c).
 */
#ifndef PM_TXN_LOG_LOG_H
#define PM_TXN_LOG_LOG_H

#include "base/vector.h"
#include "txn/log/line_map.h"
#include "txn/txn.h"

/* What is known of a chunk of the file. */
struct chunk {
    uint64_t newest;  /* newest epoch of a part in it */
    uint64_t emptied; /* epoch of the commit that moved its last live line away, or that voided the chunk */
    uint32_t live;    /* words of pieces in it that count */
    uint32_t end;     /* lines in use, the header included; 0: it is void; LOG_END_IMAGES */
    uint32_t image_lines; /* of images that the named checkpoint needs */
};

/* Free chunks that are there when the disk is full. The last one is for the cleaner. The one before is also
 * for commits that free objects and allocate none: that is how room comes back. */
#define LOG_RESERVE 2u

/* Parts of three kinds go to chunks of their own. What the cleaner has moved is seldom stored to again.
 * Between lines that soon have newer pieces it would be moved again and again. Large values are in the file
 * before their commit (early.c). The paper, section 3.3, has separate logs for the same reason. */
enum log_stream {
    LOG_PROGRAM,
    LOG_CLEANER,
    LOG_VALUES,
    LOG_STREAMS
};

/* Lines of `count` runs, redo_run() values. */
static inline uint64_t log_lines_of(const uint64_t *runs, uint64_t count)
{
    uint64_t lines = 0;
    for (uint64_t i = 0; i < count; i++)
        lines += run_count(runs[i]);
    return lines;
}

/* The first page of a run of whole pages, and how many it has. */
static inline uint32_t log_run_page(uint64_t run)
{
    return (uint32_t)(run_line(run) / PM_PAGE_LINES);
}

static inline uint32_t log_run_pages(uint64_t run)
{
    return (uint32_t)(run_count(run) / PM_PAGE_LINES);
}

/* Numbers of chunks. */
struct chunk_list {
    uint32_t *items;
    uint32_t count;
};

/* What the map says of a line with LOG_HAS_DELTA is which of these it has. Recovery refuses a log in which
 * `base` is 0. An unused one has the mask 0, and its `base` says which is the next. */
struct delta {
    uint32_t base;  /* line of the file that has the whole line */
    uint32_t place; /* line of the file where its words are */
    uint8_t at;     /* the first one, in that line */
    uint8_t mask;   /* which words of the line they are */
};

/* A part of the next record: its place, and its share of the record's runs. */
struct planned_part {
    uint32_t chunk, line;           /* in the chunk */
    uint32_t contents;              /* line in the chunk where they begin */
    uint64_t first_run, first_line, first_delta; /* of the record */
    uint32_t runs, lines, deltas;
    uint32_t delta_words; /* of these deltas */
    bool pages;           /* LOG_PAGES */
    bool is_early;        /* the contents are there, and `sum` is their checksum */
    uint64_t sum;
};

/* A large value, or a part of one, that was handed over and is in the file (early.c). */
struct early_part {
    uint32_t chunk, line; /* as of planned_part */
    uint64_t run;         /* redo_run(): whole pages */
    uint64_t sum;         /* checksum of the contents */
    bool is_lost;         /* its pages were cut off (E5) */
};

/* A line that the record being written moves, and what the map said of it. */
struct moved_line {
    uint64_t line;
    uint32_t from;
    struct delta delta; /* if it had one */
};

/* Deltas of a record to come. */
struct delta_list {
    struct vector entries; /* log_delta() values */
    uint64_t words;        /* that they take in a table */
};

/* How a unit of the map stands to its images. */
enum unit_state {
    UNIT_CHANGED, /* the map has changed since, or there never was one */
    UNIT_AWAITED, /* and the checkpoint that is being made needs one, as the unit is now */
    UNIT_WRITTEN, /* the checkpoint that is being made has one, and the unit is as it says */
    UNIT_SAVED,   /* the same of the checkpoint that the state page names */
};

/* Besides: the map does not have the unit. All that is known of it is in the image that the named checkpoint
 * has. Such a unit has not changed since (units.c). */
#define UNIT_ABSENT 8u

/* See checkpoint.c. */
enum checkpoint_phase {
    CHECKPOINT_NONE,
    CHECKPOINT_WRITING,
    CHECKPOINT_WRITTEN,
    CHECKPOINT_NAMED
};

/* An image of a checkpoint, or a piece of its root. */
struct image_place {
    uint32_t place; /* line of the file; 0: there is none */
    uint32_t lines;
    uint32_t sum; /* of a unit's image: the lower half of its checksum */
};

/* A checkpoint, and where its images are. */
struct image_places {
    uint64_t epoch;  /* of the commit that it is of; 0: there is none */
    uint32_t chunks; /* of which the root says what they have: those behind have nothing */
    struct image_place *units; /* of each unit */
    struct vector root;        /* of the root's pieces; the first one is the first piece */
};

struct checkpoint {
    uint64_t interval; /* lines of log from one to the next; 0: there are none here */
    bool is_strict;    /* not later, even if so much of the map has changed that it is costly */
    enum checkpoint_phase phase;
    uint8_t *states;                  /* enum unit_state of each unit, and UNIT_ABSENT */
    struct image_places named, next;  /* of the one that the state page names, and of the next */
    uint64_t units; /* of the newest checkpoint, and all with lines that are left */
    uint64_t saved;                   /* units in that state, more or less */
    uint64_t images, lines;           /* of units, in the named one: how many, and lines of all */
    uint64_t logged;                  /* lines, since the commit of the newest checkpoint */
    uint64_t at, awaited, written;    /* units: where it goes on, awaited in all, and written */
    uint64_t changed;                 /* units, since the newest checkpoint began */
    uint64_t due; /* CHECKPOINT_WRITTEN, CHECKPOINT_NAMED: when this commit is durable, go on */
    uint32_t chunk, line;    /* where the next image goes; 0: to a fresh chunk */
    uint32_t chunks;         /* that have images */
    bool failed;             /* there was no memory for an image */
    struct log_image *image; /* room for one while it is built */
    struct vector ahead;     /* images that wait to be written, line by line */
    struct vector root;      /* words of the root to be written */
};

struct log_engine {
    struct line_map map; /* see log_entry() */
    uint64_t map_sum;
    struct delta *deltas;
    uint32_t deltas_known;     /* have been in use; the others come after them */
    uint32_t unused_delta;     /* the first of a list; `deltas_known` if there is none */
    bool writes_deltas;        /* the container's format knows them */
    bool drops;                /* likewise: lines without an owner do not count (L14) */
    bool is_checkpointed;      /* likewise: there may be checkpoints */
    bool packs_images; /* likewise: images may be packed, and a root says how long each is */
    uint64_t *left;            /* a bit for each line: it is left (owners.c) */
    struct vector dropped; /* lines that this commit leaves without an owner: redo_run() values */
    struct vector given;   /* and left lines to which it gives one */
    bool gives;            /* it gives any line an owner */
    uint64_t shaped;       /* the word of a slab in the segment table, and its shape (owners.c) */
    struct slab_shape shape;
    struct chunk *chunks;      /* of the file */
    struct chunk_list free;    /* void, and a fence has passed since */
    struct chunk_list emptied; /* without a live piece, but not void yet */
    struct chunk_list voided;  /* void, but not fenced yet */
    uint32_t open[LOG_STREAMS]; /* the chunk in which the next part of a stream goes; 0: none */
    uint32_t known;            /* chunks of the file that have been seen */
    uint32_t chunk_shift;      /* log2 of the lines of a chunk */
    uint32_t generation;
    uint64_t lines_live;  /* lines that have a piece */
    uint64_t words_live;  /* of all pieces that count */
    uint64_t taken;       /* chunks taken ever */
    uint64_t reserved;    /* the epoch for which log_make_room() was called last */
    uint32_t reserve;     /* free chunks that must be left when one is taken */
    bool folds_all;       /* the cleaner logs chunks again for any delta that dies with it */
    /* The cleaner: its victim, or 0. The part in it where the next step goes on, and how many of the part's
     * pieces earlier steps have passed. A damaged part ends the cleaner's work. */
    uint32_t victim, victim_at;
    uint64_t victim_passed;
    uint64_t share; /* lines to be cleaned for each line that a commit logs */
    uint64_t owed;  /* lines that it has not cleaned yet, though commits have logged that many */
    uint32_t live_percent; /* options.live_percent */
    bool is_full;          /* the file could not grow when it was tried last, or has no room to */
    uint64_t full_at;      /* that was when so many chunks had been taken */
    uint64_t searched;     /* twice `taken`, and one more if it was time to fold */
    bool cannot_clean;
    /* Free chunks that nobody has needed since `spare_since` chunks had been taken (surplus.c), and how many
     * chunks the file keeps, of options.initial_size. */
    uint32_t spare, chunks_min;
    uint64_t spare_since;
    struct vector cleaned, cleaned_lines; /* lines to be logged again: redo_run() values, and contents */
    struct delta_list cleaned_deltas;
    uint8_t *mapped;                      /* for each page: it is mapped from the file (pages.c) */
    uint32_t mapped_runs;                 /* how many runs of pages are */
    bool maps_view;                       /* the view is there, and is mapped too */
    struct bounded *bounded;              /* NULL: home has all pages */
    bool is_ahead;                        /* the map is: a record is being written */
    struct vector filled; /* lines that were handed over in this transaction: redo_run() values */
    uint64_t filled_from; /* a commit's first run of them */
    uint8_t *handed;      /* for each page: this transaction has handed bytes of it over */
    struct vector early;  /* struct early_part, of this transaction */
    uint64_t early_lines; /* of all of them */
    uint64_t early_failed; /* the epoch in which one could not be made */
    uint64_t fenced; /* as the record being written says: a round may end meanwhile */
    char *stage;         /* a part while it is built */
    struct vector split_runs; /* a commit's runs of lines that get no delta, redo_run() values */
    struct delta_list split_deltas; /* and the deltas of the others */
    struct vector plan;  /* struct planned_part */
    enum log_stream stream; /* of the plan */
    struct vector pieces; /* the plan's runs, if it has several parts */
    struct moved_line *moved; /* the lines of the plan, in its order; room for `moved_room` */
    uint64_t moved_count, moved_room;
    struct checkpoint checkpoint;
    struct vector stale; /* likewise: parts of a record that could not be written, until they are erased */
};

static inline struct log_engine *log_engine_of(const struct txn *t)
{
    return t->own;
}

static inline bool log_is_open(const struct log_engine *k, uint32_t chunk)
{
    return chunk == k->open[LOG_PROGRAM] || chunk == k->open[LOG_CLEANER] ||
           chunk == k->open[LOG_VALUES];
}

static inline uint32_t chunk_lines(const struct txn *t)
{
    return (uint32_t)(t->c->chunk_size / PM_LINE);
}

/* The line of the file that is `line` lines behind the beginning of a chunk. */
static inline uint32_t place_in(const struct txn *t, uint32_t chunk, uint32_t line)
{
    return chunk * chunk_lines(t) + line;
}

static inline char *at_place(const struct txn *t, uint64_t place)
{
    return t->c->file + place * PM_LINE;
}

/* Lines of the segments in front of all data. If memory is bounded, home has these from the beginning, and
 * others come at their first access. */
static inline uint64_t log_lines_of_metadata(const struct txn *t)
{
    return ((uint64_t)t->c->meta_segments << t->c->segment_shift) / PM_LINE;
}

/* ---- chunks.c -------------------------------------------------------------------------------- */

/* Make the tables, for recovery to fill. -errno */
int log_tables_open(struct txn *t);
void log_tables_close(struct txn *t);

/* After recovery: put each chunk on the list where it belongs. */
void log_chunks_found(struct txn *t);

/* Commit `epoch` has taken the last live line of a chunk. */
void log_chunk_emptied(struct txn *t, uint32_t chunk, uint64_t epoch);

/* A stream goes on in chunk `next`, which may be the same; 0: in a fresh one. */
void log_leave_chunk(struct txn *t, enum log_stream stream, uint32_t next);

/* The next large value goes to a fresh chunk. Then what is left of the last one may be cleaned or cut off. */
void log_leave_values(struct txn *t);

/* Pieces of so many words count that are in a chunk. */
static inline void log_add_live(struct log_engine *k, uint32_t chunk, uint32_t words)
{
    k->chunks[chunk].live += words;
    k->words_live += words;
}

/* A piece of so many words at `place` counts no more, as commit `epoch` says. 0: none did. */
static inline void log_leave_place(struct txn *t, uint32_t place, uint32_t words, uint64_t epoch)
{
    struct log_engine *k = log_engine_of(t);
    uint32_t chunk = place >> k->chunk_shift;
    if (place == 0)
        return;
    k->words_live -= words;
    if ((k->chunks[chunk].live -= words) == 0)
        log_chunk_emptied(t, chunk, epoch);
}

/* Write to the file, from a line of it on: past the cache, or by write(2). log_store_header() writes a
 * chunk's header. -errno: some of it may be there */
int log_store(struct txn *t, uint64_t place, const void *from, uint64_t bytes);
int log_store_header(struct txn *t, uint32_t chunk, uint64_t word, uint64_t begun);

/* Void the chunks that nobody needs (L8, L9). The next fence makes them free (L10). -errno */
int log_void_chunks(struct txn *t);

/* There is no room: make the chunks free that only wait for further commits. Three rounds. -errno: -ENOSPC if
 * there are none */
int log_reclaim(struct txn *t);

/* Recovery has ended, and made everything durable: make the chunks free in which it has found no live line.
 * -errno */
int log_void_found(struct txn *t);

/* Whether an error says that there is no room. log_gains_room() also makes some, by log_reclaim() or by the
 * cleaner; false: there is no more to be had. */
static inline bool log_lacks_room(int error)
{
    return error == -ENOSPC || error == -EDQUOT || error == -EFBIG;
}
bool log_gains_room(struct txn *t, int error);

/* Have free chunks for `lines` lines of records. -errno: the file is as long as before */
int log_make_room(struct txn *t, uint64_t lines);

/* Take a free chunk; the file grows if there is none. Its header is not written yet. 0 on success, -errno */
int log_take_chunk(struct txn *t, uint32_t *chunk);

/* Give back a chunk that was taken and not used. */
void log_untake_chunk(struct txn *t, uint32_t chunk);

/* Chunks of the file up to the last one in use. It may have no more than images, or be dead. */
uint32_t log_end_of_use(const struct txn *t);

/* Cut the file off behind so many chunks. The others are free. -errno: the file may be longer still, and then
 * recovery finds void chunks there */
int log_cut_off(struct txn *t, uint32_t end);

/* ---- surplus.c ------------------------------------------------------------------------------- */

/* So many free chunks are needed, or must stay free. */
void log_note_needed(struct log_engine *k, uint64_t count);

/* Whether the file has more free chunks than it should keep. */
bool log_has_surplus(const struct txn *t);

/* Cut free chunks off the file's end, if nobody has needed them for long. */
void log_cut_surplus(struct txn *t);

/* ---- record.c -------------------------------------------------------------------------------- */

/* The runs of a record, redo_run() values: first of data, which the view has, and then of metadata. */
struct record_runs {
    const uint64_t *runs;
    uint64_t count, data_count, lines;
    uint64_t stored_count;     /* of data: runs that were stored to, not handed over */
    const char *metadata_from; /* the shadow, or home */
    const char *contents;      /* NULL, or all lines of the runs, one after the other */
    const struct delta_list *deltas; /* of further lines; or NULL */
    uint64_t data_deltas;            /* of these, how many are of data */
    enum log_stream stream;
    /* Lines lose their owners with it: those of log_find_owners(). Its first parts are the early ones. */
    bool is_transaction;
    bool borrows; /* it goes to a chunk of the reserve */
};

/* Lines without which no part of whole pages is begun in a chunk. */
#define LOG_PAGES_ROOM (PM_PAGE_LINES + LOG_PAGES_MIN)

/* Whether pages of data get parts of their own. A small chunk has no room for these. If the container lies
 * elsewhere, its pages need translation. */
static inline bool log_makes_pages(const struct txn *t)
{
    return chunk_lines(t) >= 2 * LOG_PAGES_ROOM && !t->translation;
}

/* Plan where the parts go, with room for all of them (L12). If there are several, their runs take the place
 * of `runs`: none is of two parts. -errno: nothing has changed */
int log_plan(struct txn *t, struct record_runs *runs);

/* The header that the parts of the next record share. It does not know the map's sum yet. */
static inline struct log_part log_begin_record(struct txn *t, uint64_t base)
{
    struct log_engine *k = log_engine_of(t);
    k->fenced = atomic_load(&t->rounds.durable); /* L2 */
    return (struct log_part){.epoch = t->epoch,
                             .fenced = k->fenced,
                             .generation = k->generation,
                             .base = log_base(base)};
}

/* Write the planned record, and bring the map up to date. After an error (-errno) the map is as it was, and
 * nothing of the record counts. The next record goes to the same place. */
int log_write(struct txn *t, const struct record_runs *runs, uint64_t base);

/* The same for a record of one part, there, which could not be written. */
void log_note_failed(struct txn *t, uint32_t chunk, uint32_t line);

/* Erase what records have left that could not be written. 0: nothing is left; -errno */
int log_erase_stale(struct txn *t);

/* The record counts: count its lines where they are now, and no more where they were. */
void log_install(struct txn *t);

/* Checksum of a part that stands at `place`. */
uint64_t log_part_sum(const struct container *c, const struct log_part *part, uint64_t place);

/* ---- small.c --------------------------------------------------------------------------------- */

/* A commit of a few lines. False: it is not small, and nothing has changed. `*error`: as log_write(); the
 * view's `changes` say how many lines. */
bool log_commit_small(struct txn *t, int *error);

/* ---- fill.c ---------------------------------------------------------------------------------- */

/* fill() of struct engine. */
uint64_t log_fill(struct txn *t, uint64_t offset, const void *from, uint64_t bytes);

/* Bring home what the log says of filled lines; the second one only where the object was freed again.
 * -errno: a page cannot be opened. Another call goes on. */
int log_unfill(struct txn *t);
int log_unfill_freed(struct txn *t);

/* Whether any filled line has no object any more. */
bool log_filled_was_freed(struct txn *t);

/* The lines of a page that have no object any more, because something was freed: one bit a line. */
uint64_t log_freed_lines(const struct txn *t, uint32_t page);

/* Let the filled runs have each line once, in their order: the table of changes has room for no more. */
void log_condense_filled(struct log_engine *k);

/* Add the filled lines to those that the commit has found, behind them. */
void log_add_filled(struct txn *t);

/* The transaction that filled them has ended, early parts included. */
void log_end_filled(struct txn *t, bool is_committed);

/* ---- early.c --------------------------------------------------------------------------------- */

/* Write bytes of a new object to the file. Page lock. Returns how many; 0: fewer than a part of whole pages
 * has, or there is no room, or nothing of it may be mapped. */
uint64_t log_write_early(struct txn *t, uint64_t offset, const char *from, uint64_t bytes);

/* The line of its chunk where the contents begin. */
static inline uint32_t log_early_contents(const struct early_part *e)
{
    return (uint32_t)align_up(e->line + 1, PM_PAGE_LINES);
}

/* The line of the file where they begin. */
static inline uint32_t log_early_place(const struct txn *t, const struct early_part *e)
{
    return place_in(t, e->chunk, log_early_contents(e));
}

/* Home and view lose these pages (E5). */
void log_lose_early(struct txn *t, uint32_t first, uint32_t count);

/* The part that has a page; NULL: none has. */
const struct early_part *log_early_of(const struct txn *t, uint32_t page);

/* A commit begins: map memory for values that were freed again. -errno */
int log_unmap_freed_early(struct txn *t);

/* A rollback: the same for all, and nobody needs what they have. -errno: another call goes on. */
int log_discard_early(struct txn *t);

/* The record has entered its lines in the map: let `dropped` have those whose object was freed again.
 * -ENOMEM */
int log_drop_early(struct txn *t);

/* A commit logs their lines, so they are not left. And if it fails, they are. */
void log_take_early(struct txn *t);
void log_untake_early(struct txn *t);

/* The transaction has ended. If the parts do not count, their chunks are free again. */
void log_end_early(struct txn *t, bool is_committed);

/* ---- pages.c --------------------------------------------------------------------------------- */

/* Whether any pages may be mapped. */
bool log_may_map(const struct txn *t);

/* Map pages from the file, where they lie together, in home and view: home and view have the same already, or
 * nobody has looked yet. None of them is open. False: nothing has changed. */
bool log_map_pages(struct txn *t, uint32_t first, uint32_t count);

/* The same for pages that an early part has. If it counts, log_keep_mapped() makes them like others. */
bool log_map_early(struct txn *t, const struct early_part *e);
void log_keep_mapped(struct txn *t, uint32_t first, uint32_t count);

/* As log_unmap_pages(), but nobody needs what they have, so memory has something else. -errno */
int log_discard_pages(struct txn *t, uint32_t page);

/* Give a mapped page memory again, with its whole run. Other pages stay as they are. [handler] -errno */
int log_unmap_pages(struct txn *t, uint32_t page);

/* The same for the lines of a run, which have no owner any more. Nobody needs what they have. So home has
 * something else, unless other lines were mapped with them. log_refill_dropped() brings it back. -errno */
int log_unmap_lines(struct txn *t, uint64_t run);

/* The same for a range. */
int log_unmap_range(struct txn *t, uint32_t first, uint32_t count);

/* Home and view lose these pages. release() of struct engine. */
int log_release(struct txn *t, uint32_t first, uint32_t count);

/* Whether nobody has stored to a page since it was closed: the view reads it through to home. */
static inline bool log_page_is_untouched(const struct txn *t, uint32_t page)
{
    return !page_has(&t->pages, page, PAGE_OPEN | PAGE_LISTED | PAGE_PRIVATE);
}

/* The view is there: map in it what is mapped in home. -errno */
int log_map_view(struct txn *t);

/* The container is closed, with all that was mapped. */
void log_forget_mapped(struct txn *t);

/* Map the pages that the record had as whole pages, if nobody has stored to them. */
void log_map_planned(struct txn *t);

/* open_page() and open_marked() of struct engine. */
int log_open_page(struct txn *t, uint32_t page);
int log_open_marked(struct txn *t, uint32_t page);

/* ---- bounded.c ------------------------------------------------------------------------------- */

/* If memory is bounded: make what that needs. As soon as the handler is installed, accesses to absent pages
 * are served. -errno */
int log_bound(struct txn *t);
void log_unbound(struct txn *t);

/* Let home have so many bytes, more or less. View and shadow are mapped. */
void log_set_bound(struct txn *t, uint64_t bytes);

/* fill() of struct container. [handler] */
bool log_fill_absent(struct txn *t, uint64_t offset);

/* dirty() of struct engine. A system call may store there next, so no page is absent. */
int log_dirty(struct txn *t, uint64_t offset, uint64_t bytes);

/* Home has pages, or has them no more. [handler] */
void log_note_present(struct txn *t, uint32_t first, uint32_t count);
void log_note_absent(struct txn *t, uint32_t first, uint32_t count);

/* The map has a unit, or has it no more. [handler] */
void log_note_unit(const struct txn *t, uint64_t unit, bool present);

/* How many units may change before a checkpoint is made for them, so that the map can give them back. */
uint64_t log_units_max(const struct txn *t);

/* A page has lines that this transaction has filled, or the transaction has ended. */
void log_note_filled(struct txn *t, uint32_t page, bool filled);

/* A transaction has ended: if home has too many pages, give some back. Page lock. */
void log_keep_bound(struct txn *t);

/* Whether reading a line from the log is better than from home, which has no such page. */
bool log_is_absent(const struct txn *t, uint64_t line);

/* ---- clean.c --------------------------------------------------------------------------------- */

/* Before a commit logs so many lines, heads included: log live lines of a victim again, if that is due. If it
 * fails, nothing is lost. */
void log_clean(struct txn *t, uint64_t lines);

/* For the simulator: each commit cleans a step, of any chunk that is not open. */
extern bool log_cleans_always;

/* Before such a commit: have a victim. If there is no other chunk, that in which the last commit is. */
void log_choose_any(struct txn *t);

/* There is no room: empty a whole chunk, for log_reclaim() to make free. -ENOSPC: none would leave more room;
 * -errno */
int log_clean_chunk(struct txn *t);

/* The same, unless little of what is in use is dead. */
int log_clean_for_reserve(struct txn *t);

/* If the file's last chunk has live lines, it is the next victim, and commits clean it in steps. */
void log_clean_last(struct txn *t);

/* Log again what is live in a chunk that no stream has open. It may take the reserve. -errno: perhaps a part
 * of it */
int log_empty_chunk(struct txn *t, uint32_t chunk);

/* ---- compact.c ------------------------------------------------------------------------------- */

/* compact() of struct engine. */
int log_compact(struct txn *t);

/* ---- units.c --------------------------------------------------------------------------------- */

/* The image of a unit as the map has it now. Returns how many lines it takes; 0: there is nothing to say. Its
 * checksum is still missing. */
uint64_t log_image_of(const struct txn *t, uint64_t unit, uint64_t epoch, struct log_image *to);

/* If a unit is absent, bring it to the map from its image. False: the image is damaged, and the map may have
 * a part of it. [handler] */
bool log_load_unit(const struct txn *t, uint64_t unit);

/* The same for a unit that somebody needs now. If the image is damaged, the process ends: the log has
 * everything, and the next pm_open() reads it. */
void log_need_absent(const struct txn *t, uint64_t unit);

/* If memory is bounded, let a unit of data be absent, unless it has changed since the named checkpoint. */
void log_drop_unit(struct txn *t, uint64_t unit);

/* Whether the map lacks a unit. */
static inline bool log_unit_is_absent(const struct log_engine *k, uint64_t unit)
{
    return k->checkpoint.states[unit] & UNIT_ABSENT;
}

static inline void log_need_unit(const struct txn *t, uint64_t line)
{
    if (__builtin_expect(log_unit_is_absent(log_engine_of(t), line / LOG_UNIT_LINES), false))
        log_need_absent(t, line / LOG_UNIT_LINES);
}

/* What the map says of a line. Page lock, or while the container is opened. [handler] */
static inline uint32_t log_entry(const struct txn *t, uint64_t line)
{
    log_need_unit(t, line);
    return line_map_at(&log_engine_of(t)->map, line);
}

/* An image at `place`, with at least a word; NULL: there is no such image, or it is damaged. */
const struct log_image *log_image_at(const struct txn *t, uint32_t place);

/* What units of the map add up to, which are present. */
struct map_total {
    uint64_t sum, lines; /* as the engine's map_sum and lines_live */
    uint32_t *live;      /* of each chunk */
};

void log_add_unit(const struct txn *t, uint64_t unit, struct map_total *total);

/* Whether all units add up to what is counted as commits come. */
bool log_adds_up(const struct txn *t, const struct map_total *total);

/* The image of a unit that the named checkpoint has. NULL: it is damaged. */
const struct log_image *log_image_of_named(const struct txn *t, uint64_t unit);

/* Checksum of an image that stands, or is to stand, at `place`. */
uint64_t log_image_sum(const struct container *c, const struct log_image *image, uint64_t place);

/* Whether a chunk has images, in use or not. */
static inline bool log_has_images(const struct log_engine *k, uint32_t chunk)
{
    return k->chunks[chunk].end == LOG_END_IMAGES;
}

/* ---- checkpoint.c ---------------------------------------------------------------------------- */

/* Make the tables. -errno */
int log_checkpoint_open(struct txn *t);
void log_checkpoint_free(struct log_engine *k);

/* A commit begins: go on with checkpoints. What fails here fails no commit. */
void log_checkpoint_go_on(struct txn *t);

static inline void log_checkpoint(struct txn *t)
{
    if (log_engine_of(t)->checkpoint.interval != 0)
        log_checkpoint_go_on(t);
}

/* What the map says of a line, or whether it is left, is about to change (K1). */
void log_change_unit(struct txn *t, uint64_t line);

static inline void log_touch_unit(struct txn *t, uint64_t line)
{
    if (log_engine_of(t)->checkpoint.states[line / LOG_UNIT_LINES] != UNIT_CHANGED)
        log_change_unit(t, line);
}

/* The next checkpoint has the unit of this line. */
static inline void log_cover_unit(struct log_engine *k, uint64_t line)
{
    k->checkpoint.units = max_u64(k->checkpoint.units, line / LOG_UNIT_LINES + 1);
}

/* The container is closed, and all commits are durable: leave a checkpoint, if it can be written. -errno: the
 * medium has failed */
int log_checkpoint_close(struct txn *t);

/* Whether there are images, or a checkpoint is being made. */
bool log_has_checkpoint(const struct txn *t);

/* Note what each chunk has of the named checkpoint's images. */
void log_count_images(struct txn *t);

/* Chunks that the named checkpoint's images need when they are written one after the other. */
uint64_t log_chunks_of_images(const struct txn *t);

/* Chunks that the next checkpoint will take, or that the one still takes which is being written. Without
 * checkpoints there are none. */
uint64_t log_images_to_come(const struct txn *t);

/* Give all images up, durably: their chunks wait to be void. Fences. -errno: the images stay */
int log_give_up_checkpoint(struct txn *t);

/* Whether the map adds up to what is counted, and all images say what it says. Page lock. -1 with a message.
 */
int log_check_map(struct txn *t);

/* ---- checkpoint_read.c ----------------------------------------------------------------------- */

/* A checkpoint that recovery goes on from. */
struct found_checkpoint {
    uint64_t epoch; /* 0: there is none, and all of the log is read */
    uint32_t base;
    uint32_t segments; /* of the container */
    uint32_t chunks;
    uint32_t *ends; /* of so many chunks: where valid records end. To be freed */
};

/* Words of a root in this container. */
static inline uint64_t log_words_of_root(const struct txn *t, uint64_t chunks, uint64_t units)
{
    return log_engine_of(t)->packs_images ? log_root_words_with_lines(chunks, units)
                                          : log_root_words(chunks, units);
}

/* Take what the checkpoint says that the state page names. If memory is bounded, its units are absent. If it
 * is damaged, the map is empty again, with a warning, and `epoch` is 0. -ENOMEM */
int log_load_checkpoint(struct txn *t, struct found_checkpoint *found);

/* The checkpoint turned out to be damaged: the same. */
void log_forget_checkpoint(struct txn *t, struct found_checkpoint *found);

/* ---- owners.c -------------------------------------------------------------------------------- */

static inline bool log_is_left(const struct txn *t, uint64_t line)
{
    log_need_unit(t, line);
    return log_engine_of(t)->left[line / 64] >> line % 64 & 1;
}

/* Lines of one word of `left`: bit i is line `first` + i, and `first` is a multiple of 64. */
static inline void log_set_left_bits(struct txn *t, uint64_t first, uint64_t bits, bool is_left)
{
    uint64_t *word = &log_engine_of(t)->left[first / 64];
    log_touch_unit(t, first);
    if (is_left) /* the container may become smaller, and the lines stay left */
        log_cover_unit(log_engine_of(t), first);
    *word = is_left ? *word | bits : *word & ~bits;
}

static inline void log_set_left(struct txn *t, uint64_t line, bool is_left)
{
    log_set_left_bits(t, align_down(line, 64), UINT64_C(1) << line % 64, is_left);
}

/* Whether the log may have pieces of a line, that count or do not. */
static inline bool log_may_have_pieces(const struct txn *t, uint64_t line)
{
    return log_entry(t, line) != 0 || log_is_left(t, line);
}

/* Find which lines lose their owners with a commit of these words (`dropped`), and which get one (`given`,
 * `gives`). -ENOMEM */
int log_find_owners(struct txn *t, const struct commit_words *w);

/* Whether a line of data has an owner in the open transaction. */
bool log_has_owner(const struct txn *t, uint64_t line);

/* Whether a line of data has no piece and must not get one: the program has stored to it after it was freed
 * (W1). */
static inline bool log_is_stray(const struct txn *t, uint64_t line)
{
    return log_entry(t, line) == 0 && log_engine_of(t)->drops && !log_has_owner(t, line);
}

/* A commit logs `count` runs of lines, so they are not left. */
void log_take_lines(struct txn *t, const uint64_t *runs, uint64_t count);

/* The commit has failed: lines of its runs that have no piece are left. Some may not have been left before.
 * They are logged once more than they need be. */
void log_untake_lines(struct txn *t, const uint64_t *runs, uint64_t count);

/* What the dropped lines add to the map's sum. */
uint64_t log_dropped_terms(const struct txn *t);

/* L15: dropped pages that are mapped get memory, and home may have zeros there. Until then the cleaner may
 * need what they have. -errno */
int log_unmap_dropped(struct txn *t);

/* The commit has failed: home has again what the log says of the dropped lines. */
void log_refill_dropped(struct txn *t);

/* Commit `epoch` counts: its dropped lines do not any more. */
void log_drop_lines(struct txn *t, uint64_t epoch);

/* Lines that are in the records behind a checkpoint: a bit for each, of `count`. */
struct logged_lines {
    const uint64_t *bits; /* NULL: there is no checkpoint, and any line may be in a record */
    uint64_t count;
};

/* Whether any of lines [first, end) is. */
static inline bool log_is_any_logged(const struct logged_lines *l, uint64_t first, uint64_t end)
{
    if (!l->bits)
        return true;
    for (end = min_u64(end, l->count); first < end; first = align_down(first, 64) + 64) {
        const uint64_t from = first % 64, to = min_u64(from + end - first, 64);
        if (l->bits[first / 64] & bits_between(from, to))
            return true;
    }
    return false;
}

/* Let `dropped` be lines of a segment without an owner, as the log says: all that may have lost it by these
 * records. The map is whole. -ENOMEM */
int log_find_unowned(struct txn *t, uint32_t segment, const struct logged_lines *logged);

/* The same, with or without an owner: what the map says of them is needed to drop them. */
int log_find_concerned(struct txn *t, uint32_t segment, const struct logged_lines *logged);

/* Whether W1 holds. -1 with a message. */
int log_check_owners(struct txn *t);

/* ---- home.c ---------------------------------------------------------------------------------- */

/* What the log says of a page. [handler] */
void log_read_page(const struct txn *t, uint32_t page, char *to);

/* Give home all lines that the map has, but those of pages that are mapped. If memory is bounded: those of
 * metadata. */
void log_fill_home(struct txn *t);

/* ---- commit.c, recovery.c -------------------------------------------------------------------- */

int log_commit(struct txn *t);
int log_rebase(struct txn *t, const uint64_t *runs, uint64_t count, uint64_t base, bool *recorded);

/* Bring home to the state of the last commit that holds. Then, unless it is read-only, seal the chunks. It
 * sets the epoch to begin with. -1 with a message. */
int log_recover(struct txn *t);

/* check() of struct engine: the parts of each chunk, up to its end. */
int log_check(struct txn *t);

/* Say in the state page what the last commit is, and whether a writer has the file open. The next fence
 * makes it durable. -errno */
int log_publish_state(struct txn *t, uint64_t epoch, uint64_t mark);

#endif
