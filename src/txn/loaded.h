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

/* As of the dynamic linker's last change. Zero at first; not thread-safe. */
struct loaded_list {
    struct loaded module[LOADED_MAX];
    uint32_t count;
    unsigned long long adds, subs; /* of the dynamic linker, when it was made */
};

/* Bring the list up to date; some 50 ns if it is. */
void loaded_refresh(struct loaded_list *list);

/* The one that has an address, or a build-id; NULL if there is none. */
const struct loaded *loaded_at(const struct loaded_list *list, uint64_t address);
const struct loaded *loaded_with_id(const struct loaded_list *list, uint64_t id);

#endif
