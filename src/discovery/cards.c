/*
 * A card has eight lines, so its marks are one word. One load tells whether the card is listed already. The
 * first store to a card sets the marks, and adds the card's number to the end of an array. The array takes
 * address space for each card twice, and memory only as far as it was used.
 *
 * Nobody else may use the heap while cards_take() takes cards from the array's end.
 */
#include "discovery/cards.h"

#include "backend/backend.h"
#include "base/bits.h"
#include "track/track.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#define CARD_MARKED (UINT64_C(0x0101010101010101) * (MARK_LINE | MARK_KINDS))
static_assert(CARD >> MARKS_LINE_SHIFT == sizeof(uint64_t), "the marks of a card are one word");
static_assert(VOLATILE_SIZE >> CARD_SHIFT <= UINT32_MAX, "cards can be counted");

/* The list of written cards. It has room for each card twice. A signal handler may leave cards_mark() by
 * longjmp(3), and the card is then noted again. Threads that mark a card at the same moment may both note
 * it. */
static uint32_t *written;
static _Atomic uint32_t written_count;

bool cards_start(void)
{
    written = map_inherited_table(2 * (VOLATILE_SIZE >> CARD_SHIFT) * sizeof *written);
    return written;
}

static uint64_t *card_marks(uint64_t card)
{
    return (uint64_t *)mark_of((void *)VOLATILE_BASE) + card;
}

void cards_mark(const void *address, size_t size)
{
    uint64_t offset = (uintptr_t)address - VOLATILE_BASE;
    if (!written || size == 0 || size > VOLATILE_SIZE - offset)
        return;
    for (uint64_t card = offset >> CARD_SHIFT; card <= (offset + size - 1) >> CARD_SHIFT; card++)
        if (__atomic_load_n(card_marks(card), __ATOMIC_RELAXED) == 0) {
            written[atomic_fetch_add(&written_count, 1)] = (uint32_t)card;
            __atomic_store_n(card_marks(card), CARD_MARKED, __ATOMIC_RELEASE);
        }
}

bool cards_have(const void *address, size_t size)
{
    return size > 0 && size <= VOLATILE_BASE + VOLATILE_SIZE - (uintptr_t)address;
}

void cards_set_kind(const void *address, size_t size, uint8_t kind)
{
    if (cards_have(address, size))
        track_set_kinds(kinds_of((void *)VOLATILE_BASE), (uintptr_t)address - VOLATILE_BASE, size,
                        kind);
}

/* The range has whole words, and pieces of words at its ends. */
void cards_copy_kinds(const void *address, const void *from, size_t size)
{
    const char *to = address, *end = to + size;
    char *low = (char *)align_up((uintptr_t)to, sizeof(uint64_t)),
         *high = (char *)align_down((uintptr_t)end, sizeof(uint64_t));
    if (!cards_have(address, size) || from == address)
        return;
    if (low < high)
        track_copy_kinds_out(kinds_of(low), (const char *)from + (low - to),
                             (uint64_t)(high - low) / sizeof(uint64_t));
    if (to < low)
        cards_set_kind(to, (size_t)((low < end ? low : end) - to), KIND_PIECED);
    if (low <= high && high < end)
        cards_set_kind(high, (size_t)(end - high), KIND_PIECED);
}

char *cards_take(void)
{
    if (atomic_load(&written_count) == 0)
        return NULL;
    uint32_t card = written[atomic_fetch_sub(&written_count, 1) - 1];
    __atomic_store_n(card_marks(card), 0, __ATOMIC_RELEASE);
    return (char *)VOLATILE_BASE + ((uint64_t)card << CARD_SHIFT);
}
