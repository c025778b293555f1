/*
 * Modules: the program and the libraries that a container's pointers lead into, to functions, string
 * literals, static objects, the tables of C++ classes. In another run a module may lie elsewhere. So
 * the container has a table of them: which it was, by its build-id, and at what address. Home's
 * pointers are relative to that, for home's value less the table's address is an offset in the
 * module; and if it does not lie there now the container is opened as one that is `moved`, with
 * pages made right as they are touched (txn/moved.h). Where nothing has moved nothing is done.
 *
 * A module comes into the table with the commit that finds the first pointer into it. It stays until
 * it is not loaded, no pointer leads into it any more, and another one needs its place.
 *
 * Invariants
 *  L1  No two modules that are in the table have home's addresses in common.
 *  L2  In a container that is not `moved` those that are loaded lie where home says. In one that is,
 *      pointers into one that is not loaded are addresses that nothing can have.
 */
#ifndef PM_TXN_MODULES_H
#define PM_TXN_MODULES_H

#include "txn/journal.h"
#include "txn/loaded.h"

struct txn;

struct module {
    uint64_t id;         /* of its build-id */
    uint64_t home, size; /* as home has it; size 0: no module */
    uint64_t view;       /* as this process has it */
    bool loaded;         /* and there it is */
    uint64_t needed_at;  /* offset of a pointer into it, if it is not loaded or is refused */
};

struct modules {
    struct journal_region region;
    struct module module[FORMAT_MODULES_MAX];
    uint32_t end;   /* of those in use */
    uint64_t above; /* all of them, loaded or not, lie above this, as the process has them */
    uint64_t
        unused[FORMAT_MODULES_MAX]; /* ids of those that the medium has, but no pointer needs */
    struct loaded_list list;
};

/* Words of the table, each of which a commit may change. */
#define MODULES_WORDS (FORMAT_MODULES_MAX * sizeof(struct format_module) / sizeof(uint64_t))

/* Read the table, as the last commit left it, and find its modules in this process. -1 with a message
 * if it is damaged. */
int modules_load(struct txn *t);

/* Whether a module is not where home's pointers mean it to be; or another one is, so that pointers
 * into it could not be told apart. */
bool modules_are_displaced(const struct modules *m);

/* No pointer leads into this one: its place in the table may be taken. */
void modules_give_up(struct modules *m, uint32_t module);

/* Have the module that a value leads into in the table: 1; 0 if there is none, after some 50 ns; -1
 * with a message if there is no room. The journal's lock is held. */
int modules_adopt(struct txn *t, uint64_t value);

/* Whether there may be one, or anything else: at a glance, as counters and the like have none. */
static inline bool modules_may_reach(const struct modules *m, uint64_t value)
{
    return value - m->above < (UINT64_C(1) << 47) - m->above;
}

/* Whether modules_adopt() would find a module there. */
bool modules_may_adopt(struct modules *m, uint64_t value);

/* The first module that is not loaded, from `from` on; `end` if all are. */
uint32_t modules_missing(const struct modules *m, uint32_t from);

/* Say that the pointer at `needed_at` leads into a module that is missing, or that the program
 * refuses. Returns -1. */
int modules_report(const struct txn *t, uint32_t module);
int modules_refuse(const struct txn *t, uint32_t module);

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

/* Whether a pointer of the view leads into a module of the table, loaded or not. */
static inline bool modules_know(const struct modules *m, uint64_t value)
{
    for (uint32_t i = 0; i < m->end; i++)
        if (value - m->module[i].view < m->module[i].size)
            return true;
    return false;
}

#endif
