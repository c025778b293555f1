/*
 * Commit. These are its steps, in order. Each layer has its own, and whoever follows a step goes down.
 *
 *    may_commit               the container can be written, faults reach libpm,
 *                             the file is still at its path                        fault.c, name.c
 *    discovery_find           which words stored lead to the volatile heap?        discovery/
 *    discovery_gather         copy into the container what they lead to
 *    discovery_redirect       lead all pointers to the copies
 *    exclusions_hide          excluded fields hold NULL for a while
 *      allocator_begin_commit   which pages live or die?                           allocator/
 *      txn_check_rollback       no rollback has stopped half-way                   txn/
 *      track_map_pointers       which words are pointers?                          track/
 *      track_check_pointers     does a pointer lead out?
 *        txn_begin_commit         stores wait from here on                         txn/
 *        track_audit              was a store missed?                              track/
 *        txn_commit               the engine: find changes, write the record,
 *                                 bring home what it says                          txn/undo/, txn/redo/
 *        txn_end_commit           stores may go on
 *      allocator_end_commit     the next transaction has begun                     allocator/
 *    exclusions_show                                                               discovery/
 *    discovery_end            free the old objects
 *    txn_wait                 on a file: until the record is durable               txn/redo/
 *
 * Locks: the allocator's from allocator_begin_commit() on, the page lock from txn_begin_commit() on, each
 * until its end. If a step fails, the transaction stays open. Discovery puts everything back, and the
 * allocator gives back what the commit took. The pointer map may have learnt something already: the next
 * commit looks again.
 */
#include "api/api.h"

#include "base/cancel.h"
#include "base/error.h"
#include "discovery/exclusions.h"
#include "pages/fault.h"

#include <errno.h>
#include <signal.h>

/* Each commit checks that libpm's signal handler is still installed. Where stores rarely fault, only one
 * commit in CHECK_EVERY checks: the check would take most of the commit's time. */
static int check_handler(pm_container *c)
{
    enum { CHECK_EVERY = 64 };
    bool skip = c->txn.tracker.stores && counted(&c->txn.commits) % CHECK_EVERY != 0;
    return skip ? 0 : fault_install(c->container.path);
}

static int may_commit(pm_container *c)
{
    if (api_enter_writing(c) != 0 || check_handler(c) != 0)
        return -1;
    return name_is_due(&c->container.name) ? name_check(&c->container) : 0;
}

/* Nobody stores meanwhile: the page lock is held. `*overtaken`: see track_was_overtaken(). If it is true,
 * nothing has happened; NULL: it does not matter. */
static int commit_stores(struct txn *t, bool *overtaken)
{
    sigset_t saved;
    int result = txn_begin_commit(t, &saved);
    if (overtaken)
        *overtaken = result == 0 && track_was_overtaken(t);
    if (!overtaken || !*overtaken) {
        if (result == 0)
            result = track_audit(t);
        if (result == 0)
            result = txn_commit(t);
    }
    txn_end_commit(t, &saved);
    return result;
}

/* With concurrent stores a thread may store a pointer after the check. Then check again. */
static int check_and_commit(struct txn *t)
{
    enum { ATTEMPTS = 64 };
    bool watches = t->concurrent && t->looks, overtaken = true;
    int result = 0;
    for (int i = 0; overtaken && result == 0; i++) {
        if (i == ATTEMPTS && foreign_is_strict(&t->foreign))
            return pm__fail(EAGAIN,
                            "%s: threads store pointers to what is outside of the container faster than "
                            "a commit can check them; commit again",
                            t->c->path);
        watches &= i < ATTEMPTS; /* the words are data to this program, or a warning */
        overtaken = false;
        result = track_check_pointers(t);
        if (result == 0)
            result = commit_stores(t, watches ? &overtaken : NULL);
    }
    return result;
}

int api_commit_transaction(pm_container *c, uint64_t *epoch)
{
    allocator_begin_commit(&c->allocator);
    int result = txn_check_rollback(&c->txn);
    if (result == 0)
        result = track_map_pointers(&c->txn);
    if (result == 0)
        result = check_and_commit(&c->txn);
    *epoch = allocator_end_commit(&c->allocator, result);
    return result;
}

static int commit_hiding(pm_container *c, uint64_t *epoch)
{
    if (!exclusions_any())
        return api_commit_transaction(c, epoch);
    exclusions_hide(&c->txn);
    int result = api_commit_transaction(c, epoch);
    exclusions_show(&c->txn, result == 0);
    return result;
}

/* The registers of the program's functions are saved in this frame, and restored from here. So the frame
 * must exist when the stack is redirected, and when it is put back. */
static __attribute__((noinline)) int commit_moving(pm_container *c, struct frame program,
                                                   uint64_t *epoch)
{
    struct allocator_call call = allocator_begin_call(&c->allocator);
    void *stack_top;
    __builtin_unwind_init();
    int result = discovery_gather(&c->discovery);
    __asm__ volatile("mov %%rsp, %0" : "=r"(stack_top));
    if (result == 0)
        result = discovery_redirect(&c->discovery, program, stack_top);
    if (result == 0)
        result = commit_hiding(c, epoch);
    discovery_end(&c->discovery, call, result);
    return result;
}

static int find_and_commit(pm_container *c, struct frame program, uint64_t *epoch)
{
    if (discovery_find(&c->discovery) != 0)
        return -1;
    if (!discovery_has_moves(&c->discovery))
        return commit_hiding(c, epoch);
    sigset_t saved;
    discovery_block_signals(&saved);
    int result = commit_moving(c, program, epoch);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    return result;
}

static int commit_discovering(pm_container *c, struct frame program, uint64_t *epoch)
{
    discovery_enter();
    int result = find_and_commit(c, program, epoch);
    discovery_leave();
    return result;
}

static inline int commit(pm_container *c, struct frame program, uint64_t *epoch)
{
    if (may_commit(c) != 0)
        return -1;
    return api_discovers(c) ? commit_discovering(c, program, epoch)
                            : api_commit_transaction(c, epoch);
}

int api_commit(pm_container *c, struct frame program)
{
    DEFER_CANCELLATION;
    uint64_t epoch;
    return commit(c, program, &epoch) == 0 ? txn_wait(&c->txn, epoch) : -1;
}

ROOTS_ENTRY int pm_commit(pm_container *c)
{
    return api_commit(c, roots_caller());
}

ROOTS_ENTRY pm_ticket pm_commit_async(pm_container *c)
{
    DEFER_CANCELLATION;
    uint64_t epoch;
    return commit(c, roots_caller(), &epoch) == 0 ? (pm_ticket){c, epoch} : (pm_ticket){NULL, 0};
}

int pm_wait(pm_ticket ticket)
{
    DEFER_CANCELLATION;
    if (!ticket.container)
        return pm__fail(EINVAL, "a ticket of a commit that failed");
    return api_enter(ticket.container) == 0 ? txn_wait(&ticket.container->txn, ticket.epoch) : -1;
}
