/*
 * The places outside the heap and the containers where a program keeps pointers: variables of its
 * modules, and the stack. Modules list their variables (base/roots.h). The stack has no list. So each
 * aligned word of the stack counts as a pointer if it leads into the heap. No number looks like such an
 * address by chance, because the heap is 2^-24 of all 64-bit values. And a word that nobody uses any more
 * does no harm.
 *
 * The stack cannot show pointers that a function keeps elsewhere. Functions compiled by pmcc keep
 * pointers in their frames, in variables and in the heap. Nothing is known of other functions: sorting
 * libraries have copies in memory of their own. So the frames are walked first.
 *
 * Conservative stacks: Boehm and Weiser, Software - Practice and Experience 18 (1988). Their collector
 * never changes the words it finds.
 */
#ifndef PM_DISCOVERY_ROOTS_H
#define PM_DISCOVERY_ROOTS_H

#include <stdbool.h>
#include <stdint.h>

/* A frame, as functions compiled with a frame pointer link them. A public function passes its own frame
 * on by value, because the compiler may give up the frame before the function's next call. */
struct frame {
    const struct frame *up;
    const void *return_address;
};

/* A range of words to look at. */
struct roots_range {
    uint64_t *first, *end;
};

/* True if any code compiled by `pmcc --discover` is loaded. */
bool roots_are_known(void);

/* The frame of the program that calls a public function; `return_address` is in the program. Use it only
 * in a public function, which must be ROOTS_ENTRY: inlined or split, the function would have another
 * frame. */
#define roots_caller() (*(const struct frame *)__builtin_frame_address(0))
#define ROOTS_ENTRY    __attribute__((noinline))

/*
 * Find the calling thread's stack, from a public function that `program` calls on. True if pmcc has
 * compiled the functions of all frames up to main() or the thread's start. If not, the range ends where
 * the thread's stack ends, and `*foreign` is the address in the first foreign function.
 */
bool roots_stack(struct frame program, struct roots_range *stack, const void **foreign);

/* Call `look` for each range of variables, including the calling thread's own variables. */
void roots_variables(void (*look)(void *context, struct roots_range range), void *context);

#endif
