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
 *   FRESH marks a page without a live object at the last commit. It opens without an image and
 *   stays open until a commit finds a live object on it.
 *
 * One byte of flags a page, changed only under the container's page lock. (The design had a
 * compare-and-swap for each page instead. But the kernel serialises the mprotect, which is most of
 * a fault, anyhow; under a lock a page has no state "being logged", and eviction is simple.)
 *
 * Invariants
 *  P1  A page is writable in the view if and only if OPEN is set, or it is on its way under the
 *      lock.
 *  P2  LISTED if and only if `opened` has exactly one entry for it; LOGGED implies LISTED.
 *  P3  Under undo OPEN implies LOGGED or FRESH; under redo it implies PRIVATE, and neither is used.
 *      In a moved container it implies FIXED.
 *  P4  FRESH implies: the committed bitmap has no object on the page (U3). The
 *      converse need not hold: what is unknown counts as live, which is safe.
 */
#ifndef PM_TXN_PAGES_H
#define PM_TXN_PAGES_H

#include "container/container.h"

enum page_flag {
    PAGE_OPEN = 1,
    PAGE_LOGGED = 2, /* its pre-image of this epoch is in the log */
    PAGE_LISTED = 4,
    PAGE_FRESH = 8,
    PAGE_PRIVATE = 16, /* redo: the view may have a copy of its own */
    PAGE_KNOWN = 32,   /* was listed before: the last record may name it */
    PAGE_FIXED = 64,   /* of a moved container: has its pointers right, and can be read */
};

#define SLOT_NONE UINT32_MAX

/* A page that the next commit must look at. */
struct page_entry {
    uint32_t page;
    uint32_t slot; /* of its pre-image, or SLOT_NONE for a page that was fresh */
    uint64_t sum;  /* checksum of the contents at the start of the epoch, if it has a slot */
    uint64_t now;  /* checksum at this commit */
};

struct pages {
    struct container *c;
    uint8_t *flags;            /* enum page_flag, one byte a page */
    uint8_t *heat;             /* high nibble: heat; low nibble: idle commits */
    struct page_entry *opened; /* room for every page */
    uint32_t count;            /* of `opened` */
    uint32_t hand;             /* where the next eviction begins */
    uint32_t sequel;           /* a fault on this page continues a sequential run */
    uint32_t window;           /* pages opened by the last fault of that run */
    uint64_t evicted;          /* pages closed early, by the map limit or the memory limit, ever */
    uint64_t private_count;    /* pages that are PRIVATE or FIXED */
};

/* With all pages closed, and tables for them. */
void pages_load(struct pages *pages, struct container *c);

static inline char *page_home(const struct pages *pages, uint32_t page)
{
    return pages->c->home + ((uint64_t)page << PM_PAGE_SHIFT);
}

/* A page's flags change by one store, since they are also read without the lock: by those to whom
 * only a bit matters that nobody changes meanwhile. */
static inline void page_set(struct pages *pages, uint32_t page, unsigned set)
{
    __atomic_store_n(&pages->flags[page], (uint8_t)(pages->flags[page] | set), __ATOMIC_RELAXED);
}

static inline void page_clear(struct pages *pages, uint32_t page, unsigned clear)
{
    __atomic_store_n(&pages->flags[page], (uint8_t)(pages->flags[page] & ~clear), __ATOMIC_RELAXED);
}

/* Without the lock. */
static inline bool page_has(const struct pages *pages, uint32_t page, enum page_flag flag)
{
    return __atomic_load_n(&pages->flags[page], __ATOMIC_RELAXED) & flag;
}

static inline void pages_list(struct pages *pages, uint32_t page, uint32_t slot, uint64_t sum)
{
    page_set(pages, page, PAGE_LISTED | PAGE_KNOWN);
    pages->opened[pages->count++] = (struct page_entry){.page = page, .slot = slot, .sum = sum};
}

/*
 * How many pages to open for a store to closed `page`, all closed, of one kind, and in its segment:
 * `least`, and more and more, up to `most`, while stores run on from page to page.
 */
uint32_t pages_window(struct pages *pages, uint32_t page, uint32_t least, uint32_t most);

/*
 * Make the view of [first, first + count) writable and set OPEN. When the kernel refuses another
 * map, closes runs of open pages until it does not. [handler] -errno
 */
int pages_open(struct pages *pages, uint32_t first, uint32_t count);

/*
 * Close up to EVICT_RUNS maximal runs of open pages, going round like a clock's hand. A maximal run
 * is bounded by closed pages, so closing it merges maps and never needs a new one. Its pages stay
 * LOGGED: a later store opens them again without an image. (The design opens the neighbourhood
 * instead, which logs pages nobody wrote: in a sparse container, without bound.) Returns the runs.
 * [handler]
 */
uint32_t pages_evict(struct pages *pages);

/* The reverse: read-only, OPEN cleared. Of a moved container only those that are FIXED. [handler]
 * -errno */
int pages_close(struct pages *pages, uint32_t first, uint32_t count);

/* Let nobody touch them, and OPEN be cleared. [handler] -errno */
int pages_hide(struct pages *pages, uint32_t first, uint32_t count);

/*
 * Close the pages of `entries`, which are sorted by page, for which `keep` is false; as few system
 * calls as the pages that stay open between them allow.
 */
int pages_close_sorted(struct pages *pages, const struct page_entry *entries, uint32_t count,
                       bool (*keep)(const struct page_entry *));

/*
 * Whether a page that is open at commit should stay open, at the price of one image in that
 * commit's round. Call once a commit. A page earns more idle commits the more often it was found
 * changed (ski rental: staying costs about a twentieth of a fault).
 */
bool pages_stay_hot(struct pages *pages, uint32_t page, bool changed);

/*
 * The state of closed pages of a segment that is taken: cold, and FRESH if `fresh`. With concurrent
 * stores a page may be LISTED from an object that the same transaction freed; its entry remains.
 */
void pages_reset(struct pages *pages, uint32_t first, uint32_t count, bool fresh);

/* Forget closed pages that nobody lists: their segments leave the file. */
void pages_forget(struct pages *pages, uint32_t first, uint32_t count);

/* Close all that are listed, which brings the list in order. -errno */
int pages_close_listed(struct pages *pages);

/* List none any more. */
void pages_unlist(struct pages *pages);

/* Nor those from `first` on. */
void pages_unlist_from(struct pages *pages, uint32_t first);

/* Bring the list in order of pages. */
void pages_sort(struct pages *pages);

/* Whether P2 and P3 hold. Linear in the pages of the file. */
bool pages_are_valid(const struct pages *pages);

/* Give memory of a list that had `peak` entries back. */
void pages_trim(struct pages *pages, uint32_t peak);

#endif
