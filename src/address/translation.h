/*
 * A container is `translated` in two cases. It lies at another address than its pointers mean. Or a
 * program or library into which its pointers lead does. Home keeps the pointers for the addresses that it
 * was made for. The view has them for this process. libpm translates them page by page, as pages are
 * touched.
 *
 * The view is separate memory, mapped without access. The first access to a page faults, and the handler
 * makes the page from home. It copies the bytes, and translates the words that home's pointer map names.
 * It writes them through the descriptor of the view's memory, and only then makes the page readable. So
 * no thread ever sees a pointer that is not right. A commit uses the redo engine, whatever was asked for,
 * and goes the other way. It compares, logs and carries home the lines in home's form. So opening costs
 * the same for any size, and a container that is only read does not change.
 *
 * The more often a stretch of the container faults, the larger is the neighbourhood that a fault makes. A
 * program that touches pages here and there pays for few pages. A program that walks all of a stretch, in
 * any order, pays for a few faults.
 *
 * Invariants, under the page lock
 *  V1  A page is TRANSLATED if and only if it can be read, or is about to be. Then it has the contents of
 *      home and of home's map, except for stores of the open transaction and for free space.
 *  V2  A page that is not TRANSLATED takes no memory.
 *  V3  TRANSLATED pages that were never open have only home's contents: their memory may go at any time.
 *
 * The idea: SoftPM and LIBPM fix pointers when a container is loaded. Wilson fixes them at page faults:
 * "Pointer swizzling at page fault time" (1991).
 */
#ifndef PM_ADDRESS_TRANSLATION_H
#define PM_ADDRESS_TRANSLATION_H

#include "address/modules.h"
#include "pages/pages.h"
#include "pages/tracker.h"
#include "words/pointer_map.h"

struct translation {
    struct container *c;
    struct pages *pages;
    const struct modules *modules;
    const struct pointer_map *map;
    uint64_t home, view; /* the first byte that a pointer leads to, in home and in this process */
    uint32_t *maps;      /* per group: segment of its map at the last commit, or 0 */
    bool maps_are_stale; /* segments have changed owners since `maps` was filled */
    uint8_t *touches;    /* per stretch: number of its faults, up to TOUCHES_MAX */
    char *stage;         /* room for STAGE_PAGES while they are made */
    uint64_t private_max; /* pages of the view that may have memory */
    uint32_t hand;       /* hand of the clock that gives memory back */
    uint32_t patience;   /* touches until it may give memory back again */
};

/* For a container that is `translated`, recovered and mapped. `private_max` is in bytes. NULL with a
 * message. The others outlive it. */
struct translation *translation_new(struct pages *pages, const struct modules *modules,
                                    const struct pointer_map *map, uint64_t private_max);
void translation_unload(struct translation *m); /* or NULL */

/* Make a page readable, and pages around it. Page lock. [handler] -errno */
int translation_touch(struct translation *m, uint32_t page);

/* Make these pages untouchable, and give their memory back. Page lock. [handler] -errno */
int translation_forget(struct translation *m, uint32_t first, uint32_t count);

/* Note that a commit has changed these words of home. */
void translation_note(struct translation *m, const struct record_word *words, uint64_t count);

/* Make a range of the view equal to home. The range has whole words, and at most a page. Page lock. */
void translation_restore(struct translation *m, uint64_t offset, uint64_t bytes);

/* A line of the view in home's form; made in `image`. */
const char *translation_of_line(const struct translation *m, uint64_t line, char image[PM_LINE]);

/* translate_to_view() relocates a pointer of home to this process; translate_to_home() is the reverse. */
static inline uint64_t translate_to_view(const struct translation *m, uint64_t value)
{
    return value - m->home < m->c->max_size ? value - m->home + m->view
                                            : modules_to_view(m->modules, value);
}

static inline uint64_t translate_to_home(const struct translation *m, uint64_t value)
{
    return value - m->view < m->c->max_size ? value - m->view + m->home
                                            : modules_to_home(m->modules, value);
}

/* False if home cannot have a pointer of this process: home means another place by the same address. */
static inline bool translation_keeps(const struct translation *m, uint64_t value)
{
    return translate_to_view(m, translate_to_home(m, value)) == value;
}

#endif
