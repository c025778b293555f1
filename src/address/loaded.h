/* The modules that this process has loaded: the program and its libraries, if they have a build-id. */
#ifndef PM_ADDRESS_LOADED_H
#define PM_ADDRESS_LOADED_H

#include <stdint.h>

struct loaded {
    uint64_t id;          /* 56 bits of a hash of its build-id; not 0 */
    uint64_t start, size; /* from its first page to its last */
};

/* Modules beyond this number are ignored. */
#define LOADED_MAX 256

/* As of the last relevant change by the dynamic linker. Zero at first; not thread-safe. */
struct loaded_list {
    struct loaded module[LOADED_MAX];
    uint32_t count;
    unsigned long long adds, subs; /* the dynamic linker's counters when the list was made */
};

/* The module that has an address, or a build-id, now; NULL if there is none. Asking the dynamic linker
 * takes some 50 ns. Small numbers, which are no addresses, do not cost this. */
const struct loaded *loaded_at(struct loaded_list *list, uint64_t address);
const struct loaded *loaded_with_id(struct loaded_list *list, uint64_t id);

/* An address below which there is no module, nor ever will be. */
uint64_t loaded_above(struct loaded_list *list);

#endif
