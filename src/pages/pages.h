/*
 * Page states: what the library knows of each page of the view, and its protection.
 *
 *            first store, pm_dirty()                   commit: keeps it hot, or
 *   CLOSED ---------------------------> OPEN (+LOGGED) -----------------------> OPEN (+LOGGED)
 *     ^                                   |                                      by the next image
 *     |        commit: cooled             |  map limit reached
 *     +-----------------------------------+------------------> CLOSED, still LOGGED: opens again
 *                                                              without a second image
 *
 *   FRESH, under undo, marks a page without a live object at the last commit. It opens without an image, so
 *   a rollback does not restore it. It stays open until a commit finds a live object on it.
 *
 * Each page has one byte of flags, changed only under the container's page lock. (The design had a
 * compare-and-swap for each page instead. But mprotect is most of a fault, and the kernel serialises it
 * anyhow. Under a lock a page has no state "being logged", and eviction is simple.)
 *
 * Invariants
 *  P1  A page is writable in the view if and only if OPEN is set, or the holder of the page lock is
 *      changing both.
 *  P2  LISTED if and only if `opened` has exactly one entry for it; LOGGED implies LISTED.
 *  P3  Under undo OPEN implies LOGGED or FRESH. Under redo neither is used, and OPEN implies PRIVATE; with
 *      tracker `stores` only if the page was stored to. In a translated container OPEN implies TRANSLATED.
 *  P4  FRESH implies: the committed bitmap has no object on the page (U3). The
 *      converse need not hold: if nothing is known of a page, it counts as live, which is safe.
 */
#ifndef PM_PAGES_PAGES_H
#define PM_PAGES_PAGES_H

#include "container/container.h"

enum page_flag {
    PAGE_OPEN = 1,
    PAGE_LOGGED = 2, /* its image of this epoch is in the log */
    PAGE_LISTED = 4,
    PAGE_FRESH = 8,
    PAGE_PRIVATE = 16, /* redo: the view may have a private copy */
    PAGE_KNOWN = 32,   /* was listed before, so the last record may name it */
    PAGE_TRANSLATED =
        64, /* in a translated container: its pointers are adjusted, and it can be read */
    PAGE_JUDGED = 128, /* concurrent stores: not opened since this commit checked its pointers */
};

#define SLOT_NONE UINT32_MAX

enum page_fate { PAGE_CLOSES, PAGE_STAYS_OPEN, PAGE_STAYS_LISTED };

/* A page that the next commit must look at. */
struct page_entry {
    uint32_t page;
    uint32_t slot; /* undo: slot of its image, or SLOT_NONE for a page that was fresh */
    union {
        struct {          /* undo */
            uint64_t sum; /* if it has a slot: checksum of the contents at the start of the epoch */
            uint64_t now; /* checksum at this commit */
        };
        struct {            /* redo */
            bool announced; /* marks tell of the stores to it, so it may stay open after a commit */
            bool changed;   /* this commit has found changes on it */
            enum page_fate fate; /* what becomes of it at this commit */
        };
    };
};

/* Stores that run on from page to page. */
struct page_stream {
    uint32_t next;   /* the page behind the last window */
    uint32_t window; /* pages of the last window */
};

/* A program that fills several slabs in turn, as a list's nodes and their values, has as many streams. */
#define PAGE_STREAMS 4

struct page_window {
    uint32_t count;
    bool runs_on; /* it continues a stream */
};

struct pages {
    struct container *c;
    uint8_t *flags;            /* enum page_flag, one byte a page */
    uint8_t *heat;             /* high nibble: heat; low nibble: idle commits */
    struct page_entry *opened; /* room for every page */
    uint32_t count;            /* entries in `opened` */
    uint32_t hand;             /* where the next eviction begins */
    struct page_stream streams[PAGE_STREAMS];
    uint32_t oldest_stream;    /* a new stream takes its place */
    uint64_t evicted;          /* pages closed early, by the map limit or the memory limit, ever */
    uint64_t private_count;    /* pages that are PRIVATE or TRANSLATED */
};

/* Set up with all pages closed, and make the tables. */
void pages_load(struct pages *pages, struct container *c);

static inline char *page_home(const struct pages *pages, uint32_t page)
{
    return pages->c->home + ((uint64_t)page << PM_PAGE_SHIFT);
}

/* Flags change by a single store, because they are also read without the lock. Such a reader needs only a
 * bit that nobody changes meanwhile. */
static inline void page_set(struct pages *pages, uint32_t page, unsigned set)
{
    __atomic_store_n(&pages->flags[page], (uint8_t)(pages->flags[page] | set), __ATOMIC_RELAXED);
}

static inline void page_clear(struct pages *pages, uint32_t page, unsigned clear)
{
    __atomic_store_n(&pages->flags[page], (uint8_t)(pages->flags[page] & ~clear), __ATOMIC_RELAXED);
}

/* May be called without the lock. */
static inline bool page_has(const struct pages *pages, uint32_t page, enum page_flag flag)
{
    return __atomic_load_n(&pages->flags[page], __ATOMIC_RELAXED) & flag;
}

/* Put a page on the list. It has no entry yet. */
static inline void pages_list(struct pages *pages, struct page_entry entry)
{
    page_set(pages, entry.page, PAGE_LISTED | PAGE_KNOWN);
    pages->opened[pages->count++] = entry;
}

/* Make the commit compare the whole page, which has no image. The page is open, or opens when it is stored
 * to. If it is on the list already, its entry stays. */
static inline void pages_list_once(struct pages *pages, uint32_t page, bool announced)
{
    if (!(pages->flags[page] & PAGE_LISTED))
        pages_list(pages,
                   (struct page_entry){.page = page, .slot = SLOT_NONE, .announced = announced});
}

/*
 * How many pages to open for a store to the closed page `page`. All of them are closed, of one kind, and
 * in the same segment. The result is `least`, and grows up to `most` while stores run on from page to
 * page. This is found in as many as `streams` places at once. With more of them, random stores seem to run
 * on more often.
 */
struct page_window pages_window(struct pages *pages, uint32_t page, uint32_t least, uint32_t most,
                                unsigned streams);

/*
 * Make the view of [first, first + count) writable and set OPEN. If the kernel refuses another map, close
 * runs of open pages until it agrees. [handler] -errno
 */
int pages_open(struct pages *pages, uint32_t first, uint32_t count);

/*
 * Close up to EVICT_RUNS maximal runs of open pages, going round like a clock's hand. A maximal run is
 * bounded by closed pages, so closing it merges maps and never needs a new one. Its pages stay LOGGED: a
 * later store opens them again without an image. (The design opens the neighbourhood instead. In a sparse
 * container this logs pages nobody wrote, without bound.) Returns the number of runs. [handler]
 */
uint32_t pages_evict(struct pages *pages);

/* Make pages read-only and clear OPEN. In a translated container only TRANSLATED pages may be closed.
 * [handler] -errno */
int pages_close(struct pages *pages, uint32_t first, uint32_t count);

/* Make pages untouchable and clear OPEN. [handler] -errno */
int pages_hide(struct pages *pages, uint32_t first, uint32_t count);

/*
 * Close the pages of `entries` for which `keep` is false. The entries must be sorted by page. It makes as
 * few system calls as the pages that stay open between them allow.
 */
int pages_close_sorted(struct pages *pages, const struct page_entry *entries, uint32_t count,
                       bool (*keep)(const struct page_entry *));

/*
 * Decide whether a page that is open at commit stays open, at the price of one image in the commit's
 * round. Call it once a commit. The more often a page was found changed, the more idle commits it may
 * stay open. (Ski rental: staying open costs about a twentieth of a fault.)
 */
bool pages_stay_hot(struct pages *pages, uint32_t page, bool changed);

/*
 * Set the state of the closed pages of a segment that is taken: cold, and FRESH if `fresh`. With
 * concurrent stores a page may be LISTED from an object that the same transaction freed; its entry
 * remains.
 */
void pages_reset(struct pages *pages, uint32_t first, uint32_t count, bool fresh);

/* Forget closed pages that are not listed, because their segments leave the file. */
void pages_forget(struct pages *pages, uint32_t first, uint32_t count);

/* Close all listed pages, and sort the list. -errno */
int pages_close_listed(struct pages *pages);

/* Empty the list. */
void pages_unlist(struct pages *pages);

/* Take the pages from `first` on off the list. */
void pages_unlist_from(struct pages *pages, uint32_t first);

/* Sort the list by page. */
void pages_sort(struct pages *pages);

/* True if P2 and P3 hold. `open`: flags of which each open page has one; 0: an open page may have none.
 * Linear in the pages of the file. */
bool pages_are_valid(const struct pages *pages, unsigned open);

/* Give back memory of a list that had `peak` entries. */
void pages_trim(struct pages *pages, uint32_t peak);

#endif
