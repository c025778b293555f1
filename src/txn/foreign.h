/*
 * Pointers that lead out of the container. There are three kinds, and an option for each:
 *
 *   into a program or library    right in the next run too (txn/modules.h), or refused
 *   to freed memory of the       discovery/closure.c replaces them by foreign_freed() before it
 *   volatile heap                commits, or refuses them
 *   to other memory              will not be there: the stack, malloc'ed memory, another container.
 *                                The commit fails, or warns, or keeps the word as data
 */
#ifndef PM_TXN_FOREIGN_H
#define PM_TXN_FOREIGN_H

#include "txn/txn.h"

/* Whether a program could have anything there: not in the first page, nor in the kernel's half. */
static inline bool foreign_is_address(uint64_t value)
{
    return value - PM_PAGE < (UINT64_C(1) << 47) - PM_PAGE;
}

/* Whether it is what programs store for "none", NULL or MAP_FAILED: of the first page or the last. */
static inline bool foreign_is_sentinel(uint64_t value)
{
    return value + PM_PAGE < 2 * PM_PAGE;
}

/* What a commit makes of a pointer to memory of the volatile heap that has been freed. No processor
 * takes such an address, and no module has it (nowhere() in modules.c). Pointers that differ stay
 * different. */
#define FOREIGN_FREED (UINT64_C(1) << 61)

static inline uint64_t foreign_freed(uint64_t value)
{
    return FOREIGN_FREED + (value - VOLATILE_BASE);
}

static inline bool foreign_is_freed(uint64_t value)
{
    return value - FOREIGN_FREED < VOLATILE_SIZE;
}

/* The end of a message about a pointer into a program or library. */
#define FOREIGN_REFUSED                                                                            \
    "leads into a program or library, which module_pointers = PM_MODULES_REFUSE forbids; store "   \
    "something else, or open with PM_MODULES_KEEP"

/* Whether there is anything now: a number in a union, or in a `void *`, is hardly ever the address of
 * something. A call of the system. */
bool foreign_is_mapped(uint64_t value);

/* Whether it is none, or leads where it will in the next run too. */
static inline bool foreign_leads_home(const struct container *c, uint64_t value)
{
    return value == 0 || container_is_led_into(c, value);
}

/* As modules_adopt(), of the pointer at an offset in the file; -1 with a message also if the program
 * refuses modules. */
int foreign_adopt(struct txn *t, uint64_t offset, uint64_t value);

/* Look at some words of a line of the view, which hold pointers, a bit each: those that lead out, and
 * not into a module, are taken from `words`. -1 with a message if that is an error; where nothing is
 * mapped it is none, unless the words are `declared` to be pointers. */
int foreign_check(struct txn *t, uint64_t line, uint8_t *words, bool declared);

/* Look at all mapped words of pages that the transaction may have stored to. For containers whose program
 * vouches for its pointers, where no code tells what it stores. -1 as above. */
int foreign_check_declared(struct txn *t);

#endif
