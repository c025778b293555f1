/*
 * Waiting for the medium. A round makes durable all records written before it began. Threads share a round:
 * one of them leads it, the others follow. On persistent memory nobody waits here, because a commit fences
 * its record itself.
 *
 * Group commit: DeWitt et al., "Implementation Techniques for Main Memory Database Systems", SIGMOD 1984.
 */
#define _GNU_SOURCE
#include "txn/txn.h"

#include "base/cancel.h"
#include "base/error.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

/* If a round takes no longer, followers wait for it without sleeping. No leader waits longer for other
 * threads. */
#define SHORT_ROUND_NS 100000

enum round {
    ROUND_NOW,    /* the caller holds the page lock, so nobody can join */
    ROUND_SHARED, /* for a commit: other threads may join */
    ROUND_AGAIN,  /* at least one round, whatever is durable already */
};

void rounds_open(struct rounds *r, uint64_t durable)
{
    *r = (struct rounds){.committed = durable,
                         .durable = durable,
                         .proved = durable,
                         .reusable = durable,
                         .sync_lock = PTHREAD_MUTEX_INITIALIZER,
                         .synced = PTHREAD_COND_INITIALIZER};
}

void rounds_close(struct rounds *r)
{
    pthread_mutex_destroy(&r->sync_lock);
    pthread_cond_destroy(&r->synced);
}

static bool is_on_file(const struct txn *t)
{
    return t->c->medium.queue || t->c->medium.ops == &medium_append;
}

void rounds_announce(struct txn *t, uint64_t fenced)
{
    atomic_store_explicit(&t->rounds.proved, fenced, memory_order_release);
    atomic_store_explicit(&t->rounds.committed, t->epoch, memory_order_release);
}

void rounds_note(struct txn *t, uint64_t fenced)
{
    struct rounds *r = &t->rounds;
    if (!is_on_file(t)) {
        (void)medium_fence(&t->c->medium); /* a fence of pmem cannot fail */
        atomic_store_explicit(&r->reusable, fenced, memory_order_relaxed);
        atomic_store_explicit(&r->durable, t->epoch, memory_order_release);
        txn_note_fenced(t, t->epoch); /* pmem only: on a file this word is in a copy in memory */
    }
    rounds_announce(t, fenced);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Spin without the sync lock until `is_so()` is false or `ns` nanoseconds have passed. Sleeping and
 * waking would take longer than the expected wait. The caller holds the sync lock. */
static void stay_awake(struct rounds *r, bool (*is_so)(const struct rounds *r), uint64_t ns)
{
    uint64_t until = now_ns() + ns;
    pthread_mutex_unlock(&r->sync_lock);
    while (is_so(r) && now_ns() < until)
        sched_yield();
    pthread_mutex_lock(&r->sync_lock);
}

static bool lacks_company(const struct rounds *r)
{
    return atomic_load(&r->arrived) < r->company;
}

static bool is_syncing(const struct rounds *r)
{
    return atomic_load(&r->syncing);
}

/* Wait while another thread leads a round. If rounds are short, spin. Then followers return as soon as
 * their leader does, and in time for the next round. */
static void follow(struct rounds *r)
{
    UNCANCELLED;
    if (r->round_ns <= SHORT_ROUND_NS)
        stay_awake(r, is_syncing, 2 * SHORT_ROUND_NS);
    if (r->syncing)
        pthread_cond_wait(&r->synced, &r->sync_lock);
}

/*
 * Lead one round for all waiting threads. Only on a file threads wait. The caller holds the sync lock; it
 * is released during the round.
 *
 * A thread that commits again and again is about to come back when a round has ended, and would just miss
 * the next round. Two such threads would take turns and share nothing. So the leader first waits until as
 * many threads have arrived as the last round served or kept waiting. It waits at most half as long as
 * the last round took.
 */
static int lead(struct txn *t, enum round round)
{
    struct rounds *r = &t->rounds;
    r->syncing = true;
    if (round == ROUND_SHARED && lacks_company(r))
        stay_awake(r, lacks_company, min_u64(r->round_ns / 2, SHORT_ROUND_NS));
    uint32_t served = atomic_exchange(&r->arrived, 0);
    pthread_mutex_unlock(&r->sync_lock);
    uint64_t started = now_ns();
    uint64_t committed = atomic_load(&r->committed);
    /* R12: epochs up to it are home, and a record that this round makes durable calls them durable. */
    uint64_t reusable = atomic_load(&r->proved);
    if (t->c->medium.queue)
        reusable = min_u64(reusable, queue_floor(&t->c->medium));
    int error = medium_fence(&t->c->medium);
    pthread_mutex_lock(&r->sync_lock);
    r->syncing = false;
    r->round_ns = now_ns() - started;
    r->company = served + atomic_load(&r->arrived);
    if (error == 0) {
        atomic_store(&r->durable, committed);
        atomic_store(&r->reusable, reusable);
    }
    pthread_cond_broadcast(&r->synced);
    return error;
}

static int sync_until(struct txn *t, uint64_t epoch, enum round round)
{
    struct rounds *r = &t->rounds;
    int error = 0;
    pthread_mutex_lock(&r->sync_lock);
    atomic_fetch_add(&r->arrived, 1);
    while ((error = medium_failed(&t->c->medium)) == 0 &&
           (round == ROUND_AGAIN || atomic_load(&r->durable) < epoch)) {
        if (r->syncing) {
            follow(r);
        } else {
            error = lead(t, round);
            round = ROUND_NOW;
        }
    }
    pthread_mutex_unlock(&r->sync_lock);
    return error;
}

static bool is_durable(const struct txn *t, uint64_t epoch)
{
    return atomic_load_explicit(&t->rounds.durable, memory_order_acquire) >= epoch;
}

int rounds_sync(struct txn *t, uint64_t epoch)
{
    return is_durable(t, epoch) ? 0 : sync_until(t, epoch, ROUND_NOW);
}

int rounds_fence(struct txn *t)
{
    return sync_until(t, 0, ROUND_AGAIN);
}

int rounds_wait(struct txn *t, uint64_t epoch)
{
    if (epoch > atomic_load(&t->rounds.committed))
        return pm__fail(EINVAL, "%s: the ticket is of no commit of this container", t->c->path);
    bool done = is_durable(t, epoch) || sync_until(t, epoch, ROUND_SHARED) == 0;
    return done ? 0 : txn_check_medium(t);
}
