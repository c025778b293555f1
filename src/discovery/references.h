/*
 * Which words of the volatile heap lead to an object of the heap. So a commit that moves the object finds
 * them without a walk of the heap. This is the remembered set of generational collectors (Ungar 1984).
 * The marks and kinds of compiled code are its write barrier.
 *
 * Words stored to since the last look are on the written cards. A look takes the cards one by one. If a
 * word leads to an object that moves, the look hands the word to the caller. Other words are remembered,
 * by object. So a look is linear in the cards written since the last look, and no word is remembered
 * twice with the same value. A remembered word may have changed since, and its object may have been
 * freed. So each user compares before it believes an entry.
 *
 * Invariants
 *  N1  Take a word of a live object that leads to the heap, and whose kind is pointer, by value, or
 *      pieced. It is on a written card; or it is remembered for its target, and its kind has
 *      KIND_REMEMBERED.
 */
#ifndef PM_DISCOVERY_REFERENCES_H
#define PM_DISCOVERY_REFERENCES_H

#include "discovery/heap.h"

/* Called with a word that leads to an object that moves; the word's own object may move too. False ends
 * the search. */
typedef bool references_found(void *context, uint64_t *word, const struct heap_object *object);

/* Look at all cards written since the last look. False if there is no memory to remember more, or if
 * `found` returned false. Then the remaining words, and the last one, are still on written cards. Nobody
 * else may use the heap. */
bool references_refresh(references_found *found, void *context);

/* Find the words remembered for an object. Linear in the words ever remembered for its address. */
void references_of(const struct heap_object *object, references_found *found, void *context);

/* The object is gone: forget the words remembered for it. */
void references_forget(const struct heap_object *object);

/* Treat the words of [from, from + bytes) of the heap as just written. */
void references_renew(const void *from, uint64_t bytes);

#endif
