/*
 * Which words of the volatile heap lead to an object of it: so that a commit which moves the object
 * finds them without a walk of the heap. The remembered set of generational collectors (Ungar 1984),
 * with the marks and kinds of compiled code for its write barrier.
 *
 * Words that have been stored to since the last look are on the written cards. A look takes the
 * cards one by one, hands what leads to an object that moves to the caller, and remembers the rest
 * by object. So it is linear in the cards written since the last, and no word is remembered twice
 * for what it holds. What a word holds may have changed since it was remembered, and its object may
 * have been freed: so whoever asks compares.
 *
 * Invariants
 *  N1  A word of a live object that leads to the heap, and has the kind of a pointer, is one by value,
 *      or is pieced, is on a written card, or is remembered for the object that it leads to and its kind has
 *      KIND_REMEMBERED.
 */
#ifndef PM_DISCOVERY_REFERENCES_H
#define PM_DISCOVERY_REFERENCES_H

#include "discovery/heap.h"

/* Told of a word that leads to an object that moves: of one that is moving itself too. False ends it. */
typedef bool references_found(void *context, uint64_t *word, const struct heap_object *object);

/* Look at all cards written since the last time. False if there is no memory to remember more, or `found`
 * ended it. Then the words not looked at, and the last one, are still on written cards. Nobody else uses
 * the heap. */
bool references_refresh(references_found *found, void *context);

/* Find those remembered for an object. Linear in what was ever remembered for its address. */
void references_of(const struct heap_object *object, references_found *found, void *context);

/* The object has gone: forget what was remembered for it. */
void references_forget(const struct heap_object *object);

/* The words of [from, from + bytes) of the heap count as just written again. */
void references_renew(const void *from, uint64_t bytes);

#endif
