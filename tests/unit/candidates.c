/* The words of a region that may have changed are in ascending order, in whichever order they were set. */
#include "words/journal.h"

#undef NDEBUG
#include <assert.h>

static uint64_t home[64], shadow[64];
static struct container container;

static void set_in_order(const uint32_t *order, uint32_t count)
{
    struct journal journal = {.c = &container};
    struct journal_region region = {.offset = 0, .words = 64};
    for (uint32_t i = 0; i < count; i++)
        journal_set(&journal, &region, order[i], i + 1);
    uint32_t found = 0, n = journal_candidates(&region);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t word = journal_candidate(&region, k);
        assert(k == 0 || journal_candidate(&region, k - 1) < word);
        for (uint32_t i = 0; i < count; i++)
            found += order[i] == word;
    }
    assert(found == count);
}

/* All orders of the first words, by exchanging each with each behind it. */
static void permute(uint32_t *order, uint32_t fixed, uint32_t count)
{
    if (fixed == count)
        set_in_order(order, count);
    for (uint32_t i = fixed; i < count; i++) {
        uint32_t first = order[fixed];
        order[fixed] = order[i];
        order[i] = first;
        permute(order, fixed + 1, count);
        order[i] = order[fixed];
        order[fixed] = first;
    }
}

int main(void)
{
    container.home = (char *)home;
    container.shadow = (char *)shadow;
    for (uint32_t count = 1; count <= JOURNAL_FEW + 1; count++) {
        uint32_t order[] = {3, 7, 20, 21, 63};
        permute(order, 0, count);
    }
}
