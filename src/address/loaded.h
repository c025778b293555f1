/* The modules that this process has loaded: the program and its libraries, if they have a build-id. */
#ifndef PM_ADDRESS_LOADED_H
#define PM_ADDRESS_LOADED_H

#include <stdbool.h>
#include <stdint.h>

struct loaded {
    uint64_t id;          /* 56 bits of a hash of its build-id; not 0 */
    uint64_t start, size; /* from its first page to its last */
};

/* Modules beyond this number are not in the list. The dynamic linker is asked for them, in microseconds. */
#define LOADED_MAX 512

/* As of the last relevant change by the dynamic linker. Zero at first; not thread-safe. */
struct loaded_list {
    struct loaded module[LOADED_MAX];
    uint32_t count;
    bool is_cut;         /* there are more */
    struct loaded other; /* the one of them that was found last */
    unsigned long long adds, subs; /* the dynamic linker's counters when the list was made */
};

/* The module that has an address, or a build-id, now; NULL if there is none. Asking the dynamic linker
 * takes some 50 ns. Small numbers, which are no addresses, do not cost this. */
/* The result is valid until the next call. */
const struct loaded *loaded_at(struct loaded_list *list, uint64_t address);
const struct loaded *loaded_with_id(struct loaded_list *list, uint64_t id);

/* True if a module has one of these addresses. */
bool loaded_overlap(struct loaded_list *list, uint64_t start, uint64_t size);

/* An address below which there is no module, nor ever will be. */
uint64_t loaded_above(struct loaded_list *list);

#endif
