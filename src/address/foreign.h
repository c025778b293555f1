/*
 * Pointers that lead out of the container. There are three kinds, with an option for each:
 *
 *   into a program or library    right in the next run too (address/modules.h), or refused.
 *   to freed memory of the       discovery/closure.c replaces them by foreign_freed() before the
 *   volatile heap                commit, or refuses them.
 *   to other memory              will not be there: the stack, malloc'ed memory, another container.
 *                                The commit fails, or warns, or keeps the word as data
 */
#ifndef PM_ADDRESS_FOREIGN_H
#define PM_ADDRESS_FOREIGN_H

#include "address/modules.h"
#include "container/contents.h"

/* How a commit treats a pointer to other memory that is alive: enum pm_foreign_pointers. */
enum foreign_pointers { FOREIGN_ERROR, FOREIGN_WARN, FOREIGN_IGNORE };

struct translation;

struct foreign {
    struct container *c;
    struct modules *modules;
    const struct translation *translation; /* or NULL */
    enum foreign_pointers policy;
    bool refuse_modules; /* no pointer may lead into a program or library */
};

/* True if a pointer that leads out may be an error. */
static inline bool foreign_is_strict(const struct foreign *f)
{
    return f->policy == FOREIGN_ERROR || f->refuse_modules;
}

/* True if a program could have anything at this address: not in the first page, nor in the kernel's half. */
static inline bool foreign_is_address(uint64_t value)
{
    return value - PM_PAGE < (UINT64_C(1) << 47) - PM_PAGE;
}

/* True for values that programs store for "none", like NULL or MAP_FAILED: the first page or the last. */
static inline bool foreign_is_sentinel(uint64_t value)
{
    return value + PM_PAGE < 2 * PM_PAGE;
}

/* A commit replaces a pointer to freed memory of the volatile heap by an address from here on. No
 * processor takes such an address, and no module has it (nowhere() in modules.c). Different pointers stay
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

/* True if memory is mapped at this address now. A number in a union, or in a `void *`, rarely is such an
 * address. Costs a system call. */
bool foreign_is_mapped(uint64_t value);

/* True if the value is no address, or leads to the same place in the next run too. */
static inline bool foreign_leads_home(const struct container *c, uint64_t value)
{
    return value == 0 || container_is_led_into(c, value);
}

/* As modules_adopt(), for the pointer at an offset in the file. It also fails if the program refuses
 * modules. -1 with a message. */
int foreign_adopt(const struct foreign *f, uint64_t offset, uint64_t value);

/* Check some words of a line of the view that hold pointers; `words` has a bit for each. Words that lead
 * out, and not into a module, are taken from `words`. If such a pointer is an error, -1 with a message.
 * Where nothing is mapped it is no error, unless the words are `declared` to be pointers. */
int foreign_check(const struct foreign *f, uint64_t line, uint8_t *words, bool declared);

#endif
