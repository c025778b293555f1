/*
 * Notes of stores to the volatile heap. They tell which *cards*, of 512 bytes, have been written to since
 * somebody last took them, and the kind of each word. The tables are those of base/marks.h.
 *
 * Invariants
 *  C1  The marks of a card are all set or all clear (except for a moment within cards_mark()). If they
 *      are set, the card is on the list of written cards.
 *
 * Idea: card marking, Wilson and Moher, OOPSLA 1989.
 */
#ifndef PM_DISCOVERY_CARDS_H
#define PM_DISCOVERY_CARDS_H

#include "base/marks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CARD_SHIFT 9
#define CARD       (UINT64_C(1) << CARD_SHIFT)

/* Call this once, before anything else here. False if there is no address space. */
bool cards_start(void);

/* Code is about to store to [address, address + size) of the heap. Thread-safe, signal-safe. */
void cards_mark(const void *address, size_t size);

/* True if a range that begins in the heap and is not empty ends there. */
bool cards_have(const void *address, size_t size);

/* Set the kind of the words of a range of the heap: all kinds of base/marks.h. */
void cards_set_kind(const void *address, size_t size, uint8_t kind);

/* Memory at `from`, anywhere, is about to be copied to a range of the heap: copy the kinds. */
void cards_copy_kinds(const void *address, const void *from, size_t size);

/* Take a card off the list of written cards: NULL if the list is empty. Later stores list the card again. */
char *cards_take(void);

#endif
