/*
 * Transactions, as the allocator and the api see them. There is one per container, implicit, numbered by
 * its epoch. Three engines make transactions atomic:
 *
 *   undo/   the view is home; a page's contents at the start of the epoch are in the log before the
 *           page can be stored to
 *   redo/   the view is a private copy; commit logs the lines that changed and only then lets them
 *           go home
 *   log/    the view is a private copy; commit logs the lines that changed, and the log is their home
 *
 * All end a transaction with one record in one round, and both put the journaled words into this record.
 * What they share is in this folder: the log, who owns a segment, recovery, copies. Journaled words, page
 * states and addresses have folders of their own below.
 *
 * Locking. The *page lock* guards everything here except the journal; the handler takes this lock too.
 * The caller serialises the journal, notes, commit and rollback (by the allocator's mutex).
 */
#ifndef PM_TXN_H
#define PM_TXN_H

#include "address/foreign.h"
#include "address/translation.h"
#include "base/lock.h"
#include "container/container.h"
#include "pages/tracker.h"
#include "txn/log.h"
#include "txn/rounds.h"
#include "txn/view/view.h"
#include "words/pointer_map.h"

struct copy;
struct txn;
struct txn_options;

/* The result of an engine's recovery. */
struct recovered {
    uint64_t restored; /* the epoch of home's state */
    uint64_t newest;   /* the newest epoch of which a record, or a part of one, may be left */
};

/* An engine makes transactions atomic. Functions that can fail return -errno; or -1 after pm__fail(), if
 * the txn_ function that calls them does so. */
struct engine {
    const char *name;
    uint64_t log_bit; /* in the base epoch's word: this engine wrote the log */
    /* Recover from a log of its own, whichever engine comes next. It restores home, but leaves the base
     * epoch alone. `t->sums` has the sums at the base epoch, and gets the sums of the restored state. */
    int (*recover)(struct txn *t, uint64_t base, struct recovered *found);
    bool in_place; /* stores reach home before commit: pages have images, and may be fresh */
    int (*load)(struct txn *t, const struct txn_options *options); /* after recovery */
    void (*unload)(struct txn *t);                                 /* whether loaded or not */
    /* Take pages for data. All are closed and reset. The application may not store to the first `header`
     * of them. Page lock. */
    int (*adopt)(struct txn *t, uint32_t first, uint32_t count, uint32_t header);
    /* Open a page for a store that faulted, or for a line that is about to be marked. Page lock. [handler] */
    int (*open_page)(struct txn *t, uint32_t page);
    int (*open_marked)(struct txn *t, uint32_t page);
    int (*dirty)(struct txn *t, uint64_t offset, uint64_t bytes); /* open pages for stores */
    /* Copy whole lines into new objects, and let the commit log them without a mark. Returns how many bytes,
     * from the first one on, it has taken; the caller stores the others. The allocator's lock is held. NULL:
     * none */
    uint64_t (*fill)(struct txn *t, uint64_t offset, const void *from, uint64_t bytes);
    /* Whether the commit takes this line as a whole, announced or not, if an object has it. Until then home
     * may differ. Page lock. NULL: no line */
    bool (*takes_whole)(const struct txn *t, uint64_t line);
    /* Pages are about to be cut off: what is mapped there is theirs again. Page lock. -errno. NULL: it is */
    int (*release)(struct txn *t, uint32_t first, uint32_t count);
    int (*reserve)(struct txn *t, uint64_t pages, uint64_t extra_pages, uint64_t extra_words);
    int (*commit)(struct txn *t);
    int (*wait)(struct txn *t, uint64_t epoch);
    int (*rollback)(struct txn *t);
    /* While it is opened: home has changed in these runs of lines (redo_run() values), and all its pointers
     * mean `base` from now on. Make both durable at once. -errno; `*recorded`, false before: a crash may
     * keep it all the same. NULL: who changes home makes it durable */
    int (*rebase)(struct txn *t, const uint64_t *runs, uint64_t count, uint64_t base,
                  bool *recorded);
    /* Erase what is left of a record that could not be written, if that did not succeed at once. Until then
     * no commit, rollback or copy may succeed: a crash might bring the failed commit back. -errno. NULL:
     * there is nothing */
    int (*retract)(struct txn *t);
    /* Check the log while the container is open. Page lock. -1 with a message. NULL: it is of no use then */
    int (*check)(struct txn *t);
    int (*close)(struct txn *t); /* write home what only the log has; 0: nothing to recover */
    int (*end)(struct txn *t);   /* after close: say in the file that nobody has it open. -errno */
    /* As close, then void the log and go on. No open page may have an image. -errno: nothing is void. NULL:
     * the log is home */
    int (*drain)(struct txn *t);
    void (*restart)(struct txn *t); /* the log is void, and may be shorter; NULL: nothing to do */
    /* Set the bits of the chunks that have nothing. Who takes one writes to it by log_store(), which tells a
     * copy. Page lock. NULL: the table of segments says where nothing is */
    void (*list_free)(const struct txn *t, uint64_t *bits);
    /* Make the file as short as the contents allow. Nothing has changed since the last commit. -errno; NULL:
     * txn_shrink() has done so */
    int (*compact)(struct txn *t);
};

/* To add an engine name it here, in recovery.c, and in api/lifecycle.c. */
extern const struct engine engine_undo, engine_redo, engine_log;

/* The questions of a commit to the allocator, whose lock is held. */
enum liveness { LIVE_BEFORE = 1, LIVE_AFTER = 2 }; /* at the last commit; at this one */

struct page_liveness {
    uint64_t before, after;
};

struct txn_upcalls {
    void *context;
    /* Tell whether any object touches the line: enum liveness. If the open transaction has allocated and
     * freed nothing, the answer may be LIVE_BEFORE and LIVE_AFTER for every line. */
    unsigned (*line_liveness)(void *context, uint64_t line);
    /* The same for all lines of a page: one bit a line, the first line in bit 0. */
    struct page_liveness (*page_liveness)(void *context, uint32_t page);
};

/* root_offset and root_size. */
#define ROOT_WORDS 2

/* Options of opening; made by the api layer. */
struct txn_options {
    const struct engine *engine;
    bool concurrent; /* threads may store during commit */
    bool stores;     /* redo: code marks what it stores to */
    enum foreign_pointers foreign;
    bool refuse_modules; /* no pointer may lead into a program or library */
    bool audit; /* look at every commit for stores without a mark, or for words that may be pointers */
    uint64_t private_max; /* bytes */
    uint32_t live_percent; /* log: of the file */
    uint64_t initial_size; /* log: the file stays so long */
    /* Called when home has the last commit and the log is void, before anybody sees the view. The upper
     * layers mend their data here. -1 with a message. */
    int (*recovered)(struct txn *t);
};

/* A page whose liveness changes with this commit. */
struct page_note {
    uint32_t page;
    bool live; /* true if the page has a live object after this commit */
};

struct recovery_report {
    bool recovered; /* true if there was anything to do */
    uint64_t pages; /* undo: images copied back; redo: runs of lines, in whole pages */
    uint64_t bytes; /* log: of records that were read */
    uint64_t ns;
};

struct txn {
    struct container *c;
    const struct engine *engine;
    void *own;                       /* further state of the engine */
    struct translation *translation; /* NULL if pointers mean the view's addresses */
    struct copy *copy;               /* a copy being made, guarded by the page lock; NULL: none */
    struct txn_upcalls upcalls;      /* set by the allocator */
    struct pointer_map map;
    struct lock lock; /* the page lock */
    uint64_t epoch;   /* of the open transaction */
    uint64_t freed;   /* the last epoch in which an object or a segment was freed */
    uint64_t freed_new; /* the last epoch in which an object of a slab was allocated and freed */
    bool reserved;    /* txn_reserve() counted pages: until commit, log no page without a store */
    bool concurrent;  /* threads may store during commit */
    bool rollback_failed; /* perhaps half-way: no commit until a rollback succeeds */
    bool audit_pointers; /* a commit warns of words that may be pointers out of the container */
    bool looks;          /* a commit looks at the pointers of changed pages, for either reason */
    struct tracker tracker;
    struct foreign foreign;
    struct journal journal;
    struct journal_region table; /* the segment table */
    struct journal_region root;  /* root_offset, root_size */
    struct sums sums;            /* sums of home's journaled words at the last commit */
    struct modules modules;
    struct log log;
    struct pages pages;
    struct view view;     /* of engines that do not work in place */
    struct rounds rounds; /* likewise */
    uint32_t free_hint;      /* no segment below it is free */
    struct page_note *notes; /* room for every page */
    uint64_t note_count;
    char *record; /* where a commit builds the journaled words of its record, and undo all of it */
    struct recovery_report recovery;
    uint64_t commits, faults, touches, pages_logged, pages_ahead, lines_logged, bytes_fresh;
};

/*
 * Recover the container that container_open() opened, complete its mappings, and begin an epoch. -1 with
 * a message.
 */
int txn_open(struct txn *t, struct container *c, const struct txn_options *options);

/* Bring home what only the log has, and raise the base epoch. Then nothing is left to recover. The open
 * transaction must have been rolled back. If the medium fails, -1, and the next open must recover. */
int txn_close(struct txn *t);

/* end() of the engines that have a home in the file. */
int txn_end_home(struct txn *t);

/*
 * Void the log as txn_close() does, but go on. Then cut the file off behind the last segment in use.
 * Nothing may have changed since the last commit, which must be durable, and nobody else may use the
 * container. Some rounds. If the medium fails, or the system refuses, -1 with a message.
 */
int txn_shrink(struct txn *t);

/* The same for a file that is not as long as the container, if that is worth its while. It writes the
 * contents anew, and needs room for them. -1 with a message: the file may be longer than before. */
int txn_compact_file(struct txn *t);

/*
 * The state where a call begins that may fail: the length of the file, and the epoch. If the call fails
 * and has given back all that it took, the file is to be as long again.
 */
struct txn_call {
    uint64_t epoch;
    uint32_t segments;
};

static inline struct txn_call txn_begin_call(const struct txn *t)
{
    return (struct txn_call){counted(&t->epoch), atomic_load(&t->c->segments)};
}

/* Cut off free segments behind that length. Not if somebody has committed meanwhile: what is free now may
 * be in use in the state that a crash would leave. The caller holds the allocator's lock. */
void txn_undo_growth(struct txn *t, struct txn_call call);

/* The same, with the page lock held. The transaction must not have been committed since. */
void txn_cut_tail(struct txn *t, uint32_t segments);

/* Release the parts that only txn owns, for a container that is read-only or whose medium failed. */
void txn_unload(struct txn *t);

/* retract() of the engine. The page lock is held, or nobody else uses the container. -errno. The second one
 * fails with a message: -1 */
static inline int txn_retract(struct txn *t)
{
    return t->engine->retract ? t->engine->retract(t) : 0;
}
int txn_retract_or_fail(struct txn *t);

/* The same after txn_open(), for a pm_open() that fails. Nothing has been stored, so the file is marked
 * closed. It leaves errno alone. */
void txn_abandon(struct txn *t);

/*
 * The allocator calls this before txn_commit(): after the commit `page` holds a live object, or holds
 * none any more. At most once a page, and only if the page's state changes (txn_page_is_fresh()).
 */
void txn_note(struct txn *t, uint32_t page, bool live);

/* Drop the notes: the commit that they were for has ended, or has failed before it reached txn_commit(). */
static inline void txn_drop_notes(struct txn *t)
{
    t->note_count = 0;
}

static inline bool txn_page_is_fresh(const struct txn *t, uint32_t page)
{
    return page_has(&t->pages, page, PAGE_FRESH);
}

/* The commit of `epoch` is fenced: store this fact for recovery. */
static inline void txn_note_fenced(struct txn *t, uint64_t epoch)
{
    __atomic_store_n(&file_state(t->c)->fenced_epoch, seal(epoch), __ATOMIC_RELAXED);
}

/* Under undo: mark pages as fresh that hold nothing according to the committed bitmap. They open without
 * an image. */
void txn_set_fresh(struct txn *t, uint32_t first, uint32_t count);

/*
 * Commit in three steps, for somebody who has more to do while nothing is stored:
 *
 *   txn_begin_commit  takes the page lock: stores wait from here on, and belong to the next epoch. With
 *                     concurrent stores it also closes the pages that were stored to
 *   txn_commit        commits, without waiting for an ordinary file. After an error nothing has changed
 *   txn_end_commit    releases the lock, whether the others failed or not
 *
 * The first two return 0, or -1 with a message.
 */

int txn_begin_guarded_commit(struct txn *t, sigset_t *saved);

/* While a thread commits, signal handlers may store, or read pages that must be made or filled first. With
 * concurrent stores other threads may store too. If either can happen, signals wait. */
static inline bool txn_guards_commits(const struct txn *t)
{
    return t->concurrent || t->translation || t->c->watcher >= 0;
}

static inline int txn_begin_commit(struct txn *t, sigset_t *saved)
{
    if (txn_guards_commits(t))
        return txn_begin_guarded_commit(t, saved);
    lock_acquire(&t->lock);
    return 0;
}

static inline int txn_commit(struct txn *t)
{
    return txn_retract_or_fail(t) == 0 ? t->engine->commit(t) : -1;
}

static inline void txn_end_commit(struct txn *t, const sigset_t *saved)
{
    if (txn_guards_commits(t))
        lock_release_masked(&t->lock, saved);
    else
        lock_release(&t->lock);
}

/* Wait until the commit of `epoch` is durable. -1 with a message. No lock is held. */
int txn_wait(struct txn *t, uint64_t epoch);

/* 0, or -1 with EIO: the medium failed, and nothing more may be written. */
int txn_check_medium(struct txn *t);

/* -1 with a message: a part of the view may have been restored. Another call goes on. */
int txn_rollback(struct txn *t);

/* 0, or -1 with ENOTRECOVERABLE: the last rollback failed, so the transaction must not be committed. The
 * allocator's lock is held. */
int txn_check_rollback(const struct txn *t);

/* Open the pages of [offset, offset + bytes) of the file for stores. -errno: no page was opened. */
int txn_dirty(struct txn *t, uint64_t offset, uint64_t bytes);

/* The same for loads, in a container that does not lie where its pointers mean. If a page lacks memory,
 * our call fails instead of a load that would end the process. -errno */
int txn_touch(struct txn *t, uint64_t offset, uint64_t bytes);

/*
 * Grow the log so that `pages` more pages can be logged. A commit must then be able to list them and
 * `extra_pages` other pages, with `extra_words` journaled words. -errno
 */
int txn_reserve(struct txn *t, uint64_t pages, uint64_t extra_pages, uint64_t extra_words);

/*
 * Serve a store to `address` in the container, or a load. True: the access may be tried again. False: the
 * page may not be stored to, or nothing hinders the load. If the page cannot be logged, or made, it ends
 * the process. [handler]
 */
bool txn_fault(struct txn *t, const void *address, bool store);

/* Check the segment table as the medium has it. Afterwards code may safely compute with the words. Before
 * recovery a commit's words may be there in part, so each word is checked by itself. -1 with a message. */
int txn_check_table(const struct container *c, bool recovered);

/* Check the root's words as the medium has them. pm_check() tells whether the root is an object. */
int txn_check_root(const struct txn *t);

/* The transaction layer's part of pm_check(): it checks table words, base epoch, page states. */
int txn_check(struct txn *t);

/* The same for the log, where it is more than a way home. Linear in the log. */
int txn_check_log(struct txn *t);

/* A line of the view in home's form. In a translated container it is made in `image`. */
static inline const char *line_in_home_form(const struct txn *t, uint64_t line, char image[PM_LINE])
{
    return t->translation ? translation_of_line(t->translation, line, image)
                          : t->c->base + line * PM_LINE;
}

/* True if a line of the view differs from home. About 3 ns for lines in the cache. */
static inline bool line_differs_from_home(const struct txn *t, uint64_t line)
{
    _Alignas(PM_LINE) char image[PM_LINE];
    return line_images_differ(line_in_home_form(t, line, image), t->c->home + line * PM_LINE);
}

/* ---- maps.c -------------------------------------------------------------------------------- */

/* Note which segments have maps: the segment table has been replaced, and every region is clean. */
void txn_find_maps(struct txn *t);

/* Make a map for a group that has none, or that is to have another. -1 with a message if there is no room.
 * The caller holds the allocator's lock, but not the page lock. */
int txn_make_map(struct txn *t, struct map_group *group);

/* Give back the maps made since `t->map.made` was `made`. */
void txn_unmake_maps(struct txn *t, uint64_t made);

/* Note that a group has no map. */
void txn_displace_map(struct map_group *group);

/* ---- segments ------------------------------------------------------------------------------ */

/*
 * Take `count` adjacent segments for the open transaction. The first gets `word`, the others
 * SEGMENT_MORE. It takes only segments that were free at the last commit and are free now; if there are
 * none, the file grows. Their pages are fresh. All except the first `header_bytes` are open. Returns the
 * first segment, or -errno.
 */
int64_t segments_take(struct txn *t, uint32_t count, uint64_t word, uint64_t header_bytes);

/* The first segment that segments_take() would take without growing the file; UINT32_MAX: none. */
uint32_t segments_find(struct txn *t, uint32_t count);

/* As segments_take(), but copy the words of `count` segments from `from` on: large objects, or a slab and
 * then large objects. */
int64_t segments_take_alike(struct txn *t, uint32_t from, uint32_t count, uint64_t header_bytes);

/* Free segments [first, first + count) with the next commit. */
void segments_release(struct txn *t, uint32_t first, uint32_t count);

/* Take a free segment for `half` of the log, as its last. Under the page lock. [handler] -errno */
int segments_claim_log(struct txn *t, unsigned half);

/* Grow the file, by one step, until it has `count` free segments. Page lock. [handler] -errno: the file
 * is as it was */
int segments_make_room(struct txn *t, uint64_t count);

/* Give back the segments that `half` has claimed beyond its first `count`. Nobody may have used them. A
 * round. Page lock. */
void segments_unclaim_log(struct txn *t, unsigned half, uint32_t count);

/* Give `half` of the log room for `slots`. Page lock. [handler] -errno: the half is as it was */
int segments_grow_log(struct txn *t, unsigned half, uint64_t slots);

/*
 * Shrink a half of the log whose contents are void. It keeps the segments that recent epochs needed, and
 * at least `slots`. The segments are free after the commit that is being prepared. This commit cannot
 * fail any more.
 */
void segments_shrink_log(struct txn *t, unsigned half, uint64_t slots);

/* Cut each half of the log down to its first segment, as low in the file as at creation. The log must be
 * void, and the page lock held. A round. -errno: a half may have more segments */
int segments_cut_log(struct txn *t);

/* After a commit with these words: the segments that it freed can be taken from now on, and may no longer
 * be stored to. (If closing their pages fails, a diagnosis is lost, but no data.) */
void segments_close_freed(struct txn *t, const struct record_word *words, uint64_t count);

/* True if the application may store to this page: it is part of a slab's or large object's data.
 * [handler] */
bool segments_page_is_data(const struct txn *t, uint32_t page);

#endif
