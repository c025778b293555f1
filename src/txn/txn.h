/*
 * Transactions: what the allocator and the api see of them. One per container, implicit, numbered
 * by its epoch. Two engines make them atomic:
 *
 *   undo/   the view is home; a page's contents at the start of the epoch are in the log before the
 *           page can be stored to
 *   redo/   the view is a private copy; commit logs the lines that changed and only then lets them
 *           go home
 *
 * Both end a transaction with one record in one round, and both have the journaled words ride in
 * it. What they share is in this folder: words (journal), page states (pages), who owns which
 * segment (segments), the signal handler (fault).
 *
 * Locking. The *page lock* guards everything here but the journal; the handler takes it. The
 * journal, notes, commit and rollback are serialised by the caller (the allocator's mutex).
 */
#ifndef PM_TXN_H
#define PM_TXN_H

#include "base/lock.h"
#include "container/container.h"
#include "txn/journal.h"
#include "txn/log.h"
#include "txn/modules.h"
#include "txn/pages.h"

struct copy;
struct moved;
struct redo;
struct txn;
struct txn_options;

/* How a transaction is made atomic. Functions that can fail return -errno or, after pm__fail(), -1,
 * as the txn_ functions below that call them. */
struct engine {
    const char *name;
    bool in_place; /* stores reach home before commit: pages have images, and may be fresh */
    int (*load)(struct txn *t, const struct txn_options *options); /* after recovery */
    void (*unload)(struct txn *t);                                 /* whether loaded or not */
    /* Pages taken for data, all closed and reset, of which the first `header` are not the
     * application's to store to; locked. */
    int (*adopt)(struct txn *t, uint32_t first, uint32_t count, uint32_t header);
    int (*open_page)(struct txn *t, uint32_t page); /* for a store that faulted; locked [handler] */
    int (*dirty)(struct txn *t, uint64_t offset, uint64_t bytes);
    int (*reserve)(struct txn *t, uint64_t pages, uint64_t extra_pages, uint64_t extra_words);
    int (*prepare)(struct txn *t); /* of commit, before it takes the lock; NULL: nothing to do */
    int (*commit)(struct txn *t);
    int (*wait)(struct txn *t, uint64_t epoch);
    int (*rollback)(struct txn *t);
    int (*close)(struct txn *t);    /* write back what is only in the log; 0: nothing to recover */
    int (*drain)(struct txn *t);    /* the same and void the log, to go on; no page is open that
                                       has an image. -errno: nothing is void */
    void (*restart)(struct txn *t); /* the log is void, and may be shorter; NULL: nothing to do */
    /* Pages from this one on leave the file, closed: forget stores to them. NULL: nothing to do */
    void (*forget)(struct txn *t, uint32_t page);
};

extern const struct engine engine_undo, engine_redo;

/* What txn asks the allocator during a commit, whose lock is held. */
enum liveness { LIVE_BEFORE = 1, LIVE_AFTER = 2 }; /* at the last commit; at this one */

struct page_liveness {
    uint64_t before, after;
};

struct txn_upcalls {
    void *context;
    /* Whether any object touches the line: enum liveness. Where the open transaction has allocated
     * and freed nothing, the answer may be that there always was and is one. */
    unsigned (*line_liveness)(void *context, uint64_t line);
    /* The same for all lines of a page, a bit each, the first in bit 0. */
    struct page_liveness (*page_liveness)(void *context, uint32_t page);
};

/* The part of the pointer map that speaks for a group of segments. */
struct map_group {
    const uint64_t *words;        /* MAP_WORD_LINES lines each, sealed; NULL if nothing is mapped */
    struct journal_region *pages; /* of the words: MAP_PAGE_WORDS each */
    uint32_t segment;             /* where they are; 0 if nothing is mapped */
};

/* root_offset and root_size. */
#define ROOT_WORDS 2

/* The journal takes a page of the map as a region. */
#define MAP_PAGE_WORDS (PM_PAGE / sizeof(uint64_t))

/* What txn asks those who keep the map of pointers. */
struct pointer_upcalls {
    void *context;
    const struct map_group *groups;
    /* Make the words of a group, of which there are none yet; the allocator's lock is held, but not
     * the page lock. 0, or -1 with a message when there is no room for a map. */
    int (*make)(void *context, uint32_t group);
};

/* What becomes of a commit with a pointer to foreign memory: enum pm_foreign_pointers. */
enum foreign_pointers { FOREIGN_ERROR, FOREIGN_WARN, FOREIGN_IGNORE };

/* How to open; made by the api layer. */
struct txn_options {
    const struct engine *engine;
    bool concurrent; /* threads may store during commit */
    bool stores;     /* redo: code marks what it stores to */
    enum foreign_pointers foreign;
    bool refuse_modules;  /* no pointer may lead into a program or library */
    bool audit;           /* look at every commit for stores that no mark announced, or, where
                             nothing tells pointers, for words that may be some */
    uint64_t private_max; /* bytes */
    /* Called when home is that of the last commit and the log is void, before anybody sees the
     * view: what the upper layers have to mend. -1 with a message. */
    int (*recovered)(struct txn *t);
};

/* A page whose liveness changes with this commit. */
struct page_note {
    uint32_t page;
    bool live; /* afterwards */
};

struct recovery_report {
    bool recovered; /* there was something to do */
    uint64_t pages; /* images copied back */
    uint64_t ns;
};

struct txn {
    struct container *c;
    const struct engine *engine;
    struct redo *redo;               /* what that engine needs besides; NULL under undo */
    struct moved *moved;             /* NULL where pointers mean what they are */
    struct copy *copy;               /* that is being made, page lock; NULL: none is */
    struct txn_upcalls upcalls;      /* set by the allocator */
    struct pointer_upcalls pointers; /* set by the pointer map */
    struct lock lock;                /* the page lock */
    uint64_t epoch;                  /* of the open transaction */
    bool reserved;   /* until commit, log no page that nobody stored to: txn_reserve() counted */
    bool concurrent; /* threads may store during commit */
    bool stores;     /* code marks what it stores to */
    bool kinds;      /* and its kinds become the pointer map: the program vouches for it */
    bool audit_pointers; /* a commit warns of words that may be pointers out of the container */
    bool looks;          /* a commit looks at the words of pages, for either reason: look_at_pages() */
    enum foreign_pointers foreign;
    bool refuse_modules; /* no pointer may lead into a program or library */
    struct journal journal;
    struct journal_region table; /* the segment table */
    struct journal_region root;  /* root_offset, root_size */
    struct sums sums;            /* of home's journaled words, as the last commit has them */
    struct modules modules;
    struct log log;
    struct pages pages;
    uint32_t free_hint;      /* no segment below it is free */
    struct page_note *notes; /* room for every page */
    uint64_t note_count;
    char *record; /* where commit builds its record */
    struct recovery_report recovery;
    uint64_t commits, faults, touches, pages_logged, pages_ahead, lines_logged, bytes_fresh;
};

/* A line over MAP_WORD_LINES, exactly: by a multiplication, where division takes three times as many
 * instructions. */
static inline uint64_t map_word_of_line(uint64_t line)
{
    const unsigned __int128 one = (unsigned __int128)1 << 64, inverse = (one + 5) / MAP_WORD_LINES;
    static_assert(
        MAP_WORD_LINES == 7 && ARENA_SIZE / PM_LINE < UINT64_MAX / 5,
        "5 / 2^64 of a line, over 7, are less than the 1 / 7 that is left to the next word");
    return (uint64_t)(line * inverse >> 64);
}

/* log2 of the words of a group's map, which is a segment. */
static inline uint32_t map_word_shift(const struct container *c)
{
    return c->segment_shift - 3;
}

/* Where the bits of a line, or the bit of a word, are. */
struct mapped_place {
    const struct map_group *group;
    uint64_t word, shift;
};

static inline struct mapped_place mapped_place_in(const struct txn *t, uint64_t map_word,
                                                  uint64_t shift)
{
    uint32_t group_shift = map_word_shift(t->c);
    return (struct mapped_place){&t->pointers.groups[map_word >> group_shift],
                                 map_word & ((UINT64_C(1) << group_shift) - 1), shift};
}

static inline struct mapped_place mapped_place(const struct txn *t, uint64_t line)
{
    uint64_t map_word = map_word_of_line(line);
    return mapped_place_in(t, map_word, (line - map_word * MAP_WORD_LINES) * PM_LINE_WORDS);
}

static inline struct mapped_place mapped_place_of_word(const struct txn *t, uint64_t word)
{
    uint64_t map_word = map_word_of_line(word / PM_LINE_WORDS);
    return mapped_place_in(t, map_word, word - map_word * SEAL_BITS);
}

/* The bits from there on. Needs no lock if nobody frees the object. */
static inline uint64_t mapped_at(struct mapped_place at)
{
    const uint64_t *words = __atomic_load_n(&at.group->words, __ATOMIC_ACQUIRE);
    return words ? __atomic_load_n(&words[at.word], __ATOMIC_RELAXED) >> at.shift : 0;
}

/* Which words of a line are mapped, a bit each, the first in bit 0. As mapped_at(). */
static inline uint8_t txn_mapped(const struct txn *t, uint64_t line)
{
    return (uint8_t)mapped_at(mapped_place(t, line));
}

/* Change a word of a group's. The allocator's lock. */
static inline void txn_set_map_word(struct txn *t, const struct map_group *group, uint64_t word,
                                    uint64_t payload)
{
    journal_set(&t->journal, &group->pages[word / MAP_PAGE_WORDS], word % MAP_PAGE_WORDS,
                seal(payload));
}

/*
 * Recover the container that container_open() opened, complete its mappings, begin an epoch. -1
 * with a message.
 */
int txn_open(struct txn *t, struct container *c, const struct txn_options *options);

/* Bring home what only the log has, raise the base epoch: nothing is left to recover. The
 * open transaction must have been rolled back. -1 when the medium fails; then there is. */
int txn_close(struct txn *t);

/*
 * Void the log as txn_close() does, but go on; then have the file end where the last segment in use
 * does. Nothing has changed since the last commit, which is durable; nobody else uses the
 * container. Some rounds. -1 with a message: when the medium fails, or the system refuses.
 */
int txn_shrink(struct txn *t);

/*
 * Where a call that may fail begins: how long the file is, in which epoch. If the call fails, and has
 * given back all that it took, the file is to be as long again.
 */
struct txn_call {
    uint64_t epoch;
    uint32_t segments;
};

static inline struct txn_call txn_begin_call(const struct txn *t)
{
    return (struct txn_call){counted(&t->epoch), atomic_load(&t->c->segments)};
}

/* Cut off what is free behind that length. Not if somebody has committed meanwhile: what is free now may
 * be in use in the state that a crash would leave. The allocator's lock is held. */
void txn_undo_growth(struct txn *t, struct txn_call call);

/* The same with the page lock held, in a transaction that has not been committed since. */
void txn_cut_tail(struct txn *t, uint32_t segments);

/* Release what is not the container's only, for one that is read-only or whose medium failed. */
void txn_unload(struct txn *t);

/* The same after txn_open(), for a pm_open() that fails: nothing has been stored, so the file is marked
 * closed. errno stays. */
void txn_abandon(struct txn *t);

/*
 * What the allocator tells before txn_commit(): after it `page` holds a live object, or holds none
 * any more. At most once a page; only for pages where that is news (txn_page_is_fresh()).
 */
void txn_note(struct txn *t, uint32_t page, bool live);

static inline bool txn_page_is_fresh(const struct txn *t, uint32_t page)
{
    return page_has(&t->pages, page, PAGE_FRESH);
}

#define OBJECT_TEXT 128 /* bytes, the NUL included */

/* `before`, and in words which byte of which object is at `offset`; "" if there is no object. */
void txn_describe_object(const struct txn *t, uint64_t offset, const char *before,
                         char text[OBJECT_TEXT]);

/* The commit of `epoch` is fenced: leave word of it for recovery. */
static inline void txn_note_fenced(struct txn *t, uint64_t epoch)
{
    __atomic_store_n(&home_state(t->c)->fenced_epoch, seal(epoch), __ATOMIC_RELAXED);
}

/* Under undo: mark pages that the committed bitmap shows to hold nothing; they will open without an
 * image. */
void txn_set_fresh(struct txn *t, uint32_t first, uint32_t count);

/* Commit, not waiting for an ordinary file. 0, or -1 with a message and nothing changed but the
 * notes, which are consumed. */
int txn_commit(struct txn *t);

/* Wait until the commit of `epoch` is durable. -1 with a message. No lock is held. */
int txn_wait(struct txn *t, uint64_t epoch);

/* 0, or -1 with EIO: the medium failed, and nothing more may be written. */
int txn_check_medium(struct txn *t);

int txn_rollback(struct txn *t);

/* Make way for stores to [offset, offset + bytes) of the file. -errno: nothing opened. */
int txn_dirty(struct txn *t, uint64_t offset, uint64_t bytes);

/* The same for loads, so that one for which there is no memory fails a call of ours, and does not end
 * the process: in a container that does not lie where its pointers mean. -errno */
int txn_touch(struct txn *t, uint64_t offset, uint64_t bytes);

/* When stores are made that a mark speaks for. */
enum mark_time {
    MARK_AHEAD,    /* all of them later */
    MARK_WHENEVER, /* some perhaps before, in this transaction */
};

/* There are stores to this line of the file. Thread-safe, signal-safe. */
void txn_mark(struct txn *t, uint64_t line, enum mark_time when);

/* The same for a range. */
void txn_mark_range(struct txn *t, uint64_t offset, uint64_t bytes, enum mark_time when);

/*
 * Kinds (base/marks.h), where `t->kinds`; elsewhere these do nothing, and pointers are those
 * mapped.
 *
 * txn_set_kind     the marked words of a range are data, or pointers, or free
 * txn_mark_pieces  pieces of pointers may be stored to the range, which is marked
 * txn_copy_kinds   memory at `from`, in a container or not, is about to be copied to the range,
 *                  which is marked: its whole words get the kinds of those there
 * txn_mark_foreign the range is marked, and will be stored to by code that tells no kinds
 */
void txn_set_kind(struct txn *t, uint64_t offset, uint64_t bytes, uint8_t kind);
void txn_mark_pieces(struct txn *t, uint64_t offset, uint64_t bytes);
void txn_copy_kinds(struct txn *t, uint64_t offset, const void *from, uint64_t bytes);
void txn_mark_foreign(struct txn *t, uint64_t offset, uint64_t bytes);

/* The same in a table of kinds, that of a container or of the heap; `offset` is from its first word. */
void txn_set_pieces(uint8_t *kinds, uint64_t offset, uint64_t bytes);

/* Fail a commit for a pieced word that leads to an object. Returns -1. */
int txn_refuse_pieced(const struct txn *t, uint64_t offset);

/* Told of a word, by its offset; not 0 ends the search. */
typedef int txn_found(void *context, uint64_t offset);

/* The words that the open transaction has stored to, not as data, and whose value is in [low, low +
 * size). Linear in the lines stored to. -1 if `found` ended it. */
int txn_find_pointers(struct txn *t, uint64_t low, uint64_t size, txn_found *found, void *context);

/* The kinds of up to 8 words at an address, in a container or not; a byte each, the first lowest.
 */
uint64_t txn_kinds_at(const void *address, uint64_t words);

/* Those of any number of words, for another table than a container's. What is at `to` may be the kinds of
 * words at `address` themselves, which are about to be moved within the volatile heap. */
void txn_copy_kinds_out(uint8_t *to, const void *address, uint64_t count);

/*
 * Grow the log so that `pages` more pages can be logged, and a commit can list them and
 * `extra_pages` others, with `extra_words` journaled words. -errno
 */
int txn_reserve(struct txn *t, uint64_t pages, uint64_t extra_pages, uint64_t extra_words);

/*
 * Serve a store to `address` in the container, or a load. True: it may be tried again. False: no
 * page that may be stored to, or that anything hinders to be read. Ends the process when the page
 * cannot be logged, or made. [handler]
 */
bool txn_fault(struct txn *t, const void *address, bool store);

/* The transaction layer's part of pm_check(): table words, base epoch, page states. */
int txn_check(struct txn *t);

/* ---- segments ------------------------------------------------------------------------------ */

/*
 * Take `count` adjacent segments for the open transaction: the first gets `word`, others
 * SEGMENT_MORE. Only such as were free at the last commit and are free now; else the file grows.
 * Their pages are fresh, and open but for the first `header_bytes`. Returns the first, or -errno.
 */
int64_t segments_take(struct txn *t, uint32_t count, uint64_t word, uint64_t header_bytes);

/* Where segments_take() would take them without growing the file; UINT32_MAX: nowhere. */
uint32_t segments_find(struct txn *t, uint32_t count);

/* As segments_take(), with words as those of `count` segments from `from` on: large objects, or a
 * slab and then large objects. */
int64_t segments_take_alike(struct txn *t, uint32_t from, uint32_t count, uint64_t header_bytes);

/* Free segments [first, first + count) with the next commit. */
void segments_release(struct txn *t, uint32_t first, uint32_t count);

/* Take a free segment for `half` of the log, as its last. Under the page lock. [handler] -errno */
int segments_claim_log(struct txn *t, unsigned half);

/* Have the file have `count` free segments, by growing it at once. Under the page lock. [handler]
 * -errno: it is as it was */
int segments_make_room(struct txn *t, uint64_t count);

/* Give back what `half` has claimed beyond its first `count` segments, which nobody has used. A round.
 * Under the page lock. */
void segments_unclaim_log(struct txn *t, unsigned half, uint32_t count);

/* Give `half` of the log room for `slots`. Under the page lock. [handler] -errno: it is as it was */
int segments_grow_log(struct txn *t, unsigned half, uint64_t slots);

/*
 * Let a half of the log whose contents are void shrink to what recent epochs needed of it, but keep
 * `slots`. The segments are free after the commit that is being prepared, which cannot fail after.
 */
void segments_shrink_log(struct txn *t, unsigned half, uint64_t slots);

/* Have each half of the log be its first segment, as low in the file as when it was created. The log
 * is void, and the page lock held. A round. -errno: it may have more */
int segments_cut_log(struct txn *t);

/* Of a commit that has these words: the segments that it sets free can be taken from now on, and
 * may no longer be stored to. (Failing to close them costs a diagnosis, no data.) */
void segments_close_freed(struct txn *t, const struct record_word *words, uint64_t count);

/* Whether stores to this page are the application's to make: part of a slab's or large object's
 * data. [handler] */
bool segments_page_is_data(const struct txn *t, uint32_t page);

static inline uint32_t pages_per_segment(const struct container *c)
{
    return (uint32_t)(c->segment_size >> PM_PAGE_SHIFT);
}

#endif
