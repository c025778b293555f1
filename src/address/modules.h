/*
 * Modules: the program and the libraries that a container's pointers lead into, to functions, string
 * literals, static objects, the tables of C++ classes. In another run a module may lie elsewhere. So the
 * container has a table with the build-id and the address of each module. Home's pointers are relative to
 * this address: home's value less the table's address is an offset in the module. If a module lies
 * elsewhere now, the container is opened as one that is `translated`, and libpm adjusts pages as they are
 * touched (address/translation.h). If nothing has moved, nothing is done.
 *
 * A module comes into the table with the commit that finds the first pointer into it. The module stays as
 * long as it is loaded, or a pointer leads into it, or no other module needs the place.
 *
 * Invariants
 *  L1  No two modules of the table have home addresses in common.
 *  L2  In a container that is not `translated`, loaded modules lie where home says. In a `translated`
 *      container pointers into a module that is not loaded are addresses that nothing can have.
 *  L3  Where a module lies is decided once: when the container is opened, or when the module is adopted. A
 *      module that the program loads later is adopted anew, even if the table has it.
 */
#ifndef PM_ADDRESS_MODULES_H
#define PM_ADDRESS_MODULES_H

#include "address/loaded.h"
#include "base/lock.h"
#include "words/journal.h"

struct module {
    uint64_t id;         /* hash of its build-id */
    uint64_t home, size; /* address in home's pointers; size 0: no module */
    uint64_t view;       /* address in this process */
    bool loaded;         /* true if the module is loaded at `view` */
    uint64_t needed_at;  /* offset of a pointer into it, if it is not loaded or is refused */
};

struct modules {
    struct container *c;
    struct journal *journal; /* of `region` */
    struct journal_region region;
    /* The fault handler reads `module` and `end` under this lock. After pm_open() they change only under
     * this lock and the journal's. */
    struct lock *page_lock;
    struct module module[FORMAT_MODULES_MAX];
    uint32_t end;   /* end of the entries in use */
    uint64_t above; /* in this process all modules, loaded or not, lie above this */
    uint64_t
        unused[FORMAT_MODULES_MAX]; /* ids of modules that the medium has, but no pointer needs */
    struct loaded_list list;
};

/* Words of the table. A commit may change each of them. */
#define MODULES_WORDS (FORMAT_MODULES_MAX * sizeof(struct format_module) / sizeof(uint64_t))

/* Read the table as the last commit left it, and find its modules in this process. If the table is
 * damaged, -1 with a message. */
int modules_load(struct modules *m);

/* The open transaction has been rolled back. Forget the modules that it adopted. All others stay where they
 * were when the container was opened, because the view's pointers mean these addresses. The caller holds
 * the journal's lock. */
void modules_roll_back(struct modules *m);

/* True if a module is not where home's pointers mean it to be. Also true if another module is there,
 * because pointers into the two could not be told apart. */
bool modules_are_displaced(struct modules *m);

/* Give up a module's place in the table, because no pointer leads into it. */
void modules_give_up(struct modules *m, uint32_t module);

/* Make sure that the table has the module into which a value leads: 1. If there is no such module: 0,
 * after some 50 ns. If there is no room: -1 with a message. The caller holds the journal's lock. */
int modules_adopt(struct modules *m, uint64_t value);

/* A quick test: false if no module, nor anything else, can be at this address. It is false for most
 * counters and other numbers. */
static inline bool modules_may_reach(const struct modules *m, uint64_t value)
{
    return value - m->above < (UINT64_C(1) << 47) - m->above;
}

/* True if modules_adopt() would find a module at this address. */
bool modules_may_adopt(struct modules *m, uint64_t value);

/* The first module that is not loaded, from `from` on; `end` if all are. */
uint32_t modules_missing(const struct modules *m, uint32_t from);

/* modules_report() says that the pointer at `needed_at` leads into a module that is missing.
 * modules_refuse() says that the program refuses the module. Both return -1. */
int modules_report(const struct modules *m, uint32_t module);
int modules_refuse(const struct modules *m, uint32_t module);

static inline uint64_t modules_to_view(const struct modules *m, uint64_t value)
{
    for (uint32_t i = 0; i < m->end; i++)
        if (value - m->module[i].home < m->module[i].size)
            return value - m->module[i].home + m->module[i].view;
    return value;
}

static inline uint64_t modules_to_home(const struct modules *m, uint64_t value)
{
    for (uint32_t i = 0; i < m->end; i++)
        if (value - m->module[i].view < m->module[i].size)
            return value - m->module[i].view + m->module[i].home;
    return value;
}

/* True if a pointer of the view leads into a module of the table, loaded or not. */
static inline bool modules_know(const struct modules *m, uint64_t value)
{
    for (uint32_t i = 0; i < m->end; i++)
        if (value - m->module[i].view < m->module[i].size)
            return true;
    return false;
}

#endif
