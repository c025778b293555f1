/* The table of stages, and the three handlers that walk it. */
#include "base/fork.h"

#include "base/panic.h"

#include <pthread.h>
#include <stdbool.h>

static struct stage {
    struct lock *lock; /* or functions */
    void (*before)(void), (*after)(void), (*in_child)(void);
    _Atomic bool is_set;
} stages[FORK_STAGES];

/* Stages that this thread's fork has begun: another thread may set a stage meanwhile. */
static _Thread_local bool begun[FORK_STAGES] __attribute__((tls_model("initial-exec")));

static void before_fork(void)
{
    for (int i = 0; i < FORK_STAGES; i++) {
        begun[i] = stages[i].is_set;
        if (begun[i] && stages[i].lock)
            lock_acquire(stages[i].lock);
        else if (begun[i])
            stages[i].before();
    }
}

static void end(bool is_child)
{
    for (int i = FORK_STAGES; i-- > 0;)
        if (begun[i] && stages[i].lock)
            lock_release(stages[i].lock);
        else if (begun[i])
            (is_child ? stages[i].in_child : stages[i].after)();
}

static void after_fork(void)
{
    end(false);
}

static void in_child(void)
{
    end(true);
}

__attribute__((constructor)) static void watch(void)
{
    if (pthread_atfork(before_fork, after_fork, in_child) != 0)
        panic_address("pthread_atfork()", stages, /* unreachable: a process that starts has memory */
                      "no memory to watch for fork(); free some, or raise ulimit -v");
}

void fork_take(enum fork_stage stage, struct lock *lock)
{
    stages[stage].lock = lock;
    stages[stage].is_set = true;
}

void fork_call(enum fork_stage stage, void (*before)(void), void (*after)(void),
               void (*in_child)(void))
{
    struct stage *s = &stages[stage];
    s->before = before;
    s->after = after;
    s->in_child = in_child;
    s->is_set = true;
}
