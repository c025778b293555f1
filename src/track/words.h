/* Words of a line, and their kinds (base/marks.h), as masks: one bit a word, the first word in bit 0.
 * Private to this folder. */
#ifndef PM_TRACK_WORDS_H
#define PM_TRACK_WORDS_H

#include "txn/txn.h"

#include <emmintrin.h>
#include <string.h>

#define OUT_OF_LINE __attribute__((noinline)) static /* rare code must not cost registers */

/* Mask of the words of this line whose kind has a bit of `some`. */
static inline unsigned words_of(uint64_t kinds, int some)
{
    __m128i of_some = _mm_and_si128(_mm_cvtsi64_si128((int64_t)kinds), _mm_set1_epi8((char)some));
    return (unsigned)_mm_movemask_epi8(_mm_adds_epu8(of_some, _mm_set1_epi8(INT8_MAX)));
}

/* Mask of the words of this line that are pieced. */
static inline unsigned pieced_of(uint64_t kinds)
{
    return (unsigned)_mm_movemask_epi8(_mm_cvtsi64_si128((int64_t)kinds_pieced(kinds)));
}

/* The kinds of a line's words, one byte each, the first the lowest. */
static inline uint64_t kinds_of_line(const struct container *c, uint64_t line)
{
    uint64_t kinds;
    memcpy(&kinds, line_kinds(c, line), sizeof kinds);
    return kinds;
}

static inline const uint64_t *words_of_line(const struct container *c, uint64_t line)
{
    return (const uint64_t *)(c->base + line * PM_LINE);
}

static inline bool line_is_listed(const struct txn *t, uint64_t line)
{
    return t->pages.flags[line / PM_PAGE_LINES] & PAGE_LISTED;
}

/* Mask of the words in `mapped` that have their old value, or are zero. In a translated container the old
 * value is the relocated one, because home may have text where the view has a pointer. */
uint8_t track_unchanged(const struct txn *t, uint64_t line, uint8_t mapped);

/* Mask of the words in `same` that stay mapped. All of them are stored to and track_unchanged(). A word
 * that was mapped since the last commit, as by pm_realloc(), does not stay mapped unless it is zero. In a
 * fresh object home may have anything there. */
uint8_t track_kept(const struct txn *t, uint64_t line, uint8_t same);

/* ---- visit.c --------------------------------------------------------------------------------- */

/* How the commit found a line. With FOREIGN, the kinds may not tell of every store: */
#define VISIT_FOREIGN 1u /* code that tells no kinds has stored to the line too */
#define VISIT_UNSEEN  2u /* and nobody said where on the line */
#define VISIT_LISTED  4u /* the line's page is listed, K3 */

/* Called for a line that has been stored to; a result other than 0 ends the walk. */
typedef int line_visitor(struct txn *t, uint64_t line, unsigned visit, void *context);

int track_visit_listed(struct txn *t, line_visitor *visitor, void *context);

/* Visit a line of the list of marked lines, unless its entry is void or its page is listed. */
int track_visit_marked(struct txn *t, uint64_t line, line_visitor *visitor, void *context);

#endif
