/* What this process has loaded: the program and its libraries, those of them that have a build-id. */
#ifndef PM_TXN_LOADED_H
#define PM_TXN_LOADED_H

#include <stdint.h>

struct loaded {
    uint64_t id;          /* 56 bits of a hash of its build-id; not 0 */
    uint64_t start, size; /* from its first page to its last */
};

/* More than these are as if they were not there. */
#define LOADED_MAX 256

/* As of the dynamic linker's last change that mattered. Zero at first; not thread-safe. */
struct loaded_list {
    struct loaded module[LOADED_MAX];
    uint32_t count;
    unsigned long long adds, subs; /* of the dynamic linker, when it was made */
};

/* The one that has an address, or a build-id, now; NULL if there is none. Asking the dynamic linker
 * takes some 50 ns, which small numbers do not cost. */
const struct loaded *loaded_at(struct loaded_list *list, uint64_t address);
const struct loaded *loaded_with_id(struct loaded_list *list, uint64_t id);

/* An address below which there is none, nor ever will be. */
uint64_t loaded_above(struct loaded_list *list);

#endif
