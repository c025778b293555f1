/*
 * Where a program keeps pointers besides the heap and its containers: in variables of its modules,
 * and on the stack. Modules tell of the first (base/roots.h). The stack tells nothing, so each of
 * its aligned words counts that leads into the heap: no number looks like that by chance, for the
 * heap is 2^-24 of what 64 bits can say; and a word that nobody uses any more does no harm.
 *
 * What the stack cannot show is what a function keeps elsewhere. Functions that pmcc has compiled
 * keep pointers in their frames, in variables and in the heap. Of others nobody knows: sorting
 * libraries have copies in memory of their own. So the frames are walked first.
 *
 * Conservative stacks: Boehm and Weiser, Software - Practice and Experience 18 (1988). Theirs never
 * changes what it finds.
 */
#ifndef PM_DISCOVERY_ROOTS_H
#define PM_DISCOVERY_ROOTS_H

#include <stdbool.h>
#include <stdint.h>

/* A frame, as the functions compiled with a frame pointer link them. What a public function was called
 * with is passed on by value: the compiler may give its frame away before it calls the next one. */
struct frame {
    const struct frame *up;
    const void *return_address;
};

/* Words to look at. */
struct roots_range {
    uint64_t *first, *end;
};

/* Whether any code compiled by `pmcc --discover` is loaded. */
bool roots_are_known(void);

/* The program's frame that calls a public function; `return_address` is in the program. Only for
 * such a function, which must be ROOTS_ENTRY: inlined or split, it would have another frame. */
#define roots_caller() (*(const struct frame *)__builtin_frame_address(0))
#define ROOTS_ENTRY    __attribute__((noinline))

/*
 * The calling thread's stack, from a public function that `program` calls on. True if all frames up to
 * main() or the thread's start are of functions that pmcc has compiled; else it ends where the
 * thread's stack does, and `*foreign` is the address in the first function that is not.
 */
bool roots_stack(struct frame program, struct roots_range *stack, const void **foreign);

/* Call `look` for each range of variables, the calling thread's own among them. */
void roots_variables(void (*look)(void *context, struct roots_range range), void *context);

#endif
