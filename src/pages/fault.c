/*
 * Our handler stands in front of all others and serves stores to containers. It passes everything else on
 * as if it were not there. The handler that ours replaced gets siginfo and context, under its own mask
 * and flags. If there was none, the default action follows, with the guilty instruction in the core dump.
 *
 * A program may install its handler over ours and chain to us. Then fault_install() puts ours in front
 * again, before theirs, and the chain would go round in a circle. So the replaced handlers are a stack. A
 * thread that comes back to us while chaining goes on to the next older handler.
 */
#define _GNU_SOURCE
#include "pages/fault.h"

#include "base/fork.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/panic.h"
#include "container/container.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef __x86_64__
#error "telling stores from loads in fault.c, and the fence in base/lock.h, are for x86-64 only"
#endif

#define REPLACED_MAX 8

/* The handlers that ours has replaced, newest last. Written under install_lock. If a handler runs while
 * an entry moves up, it may see the entry twice, and at worst chain to it twice. */
struct replaced {
    struct sigaction actions[REPLACED_MAX];
    _Atomic int count;
};

static const int signals[2] = {SIGSEGV, SIGBUS};
static struct replaced replaced[2];
static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool abandoned; /* this is a child of fork(2) */

/*
 * The handlers that this thread has chained to and that have not returned. A frame is the address of a
 * local variable of the call. A context is the address where the kernel has put the signal's context, and
 * so identifies the signal. If a frame is not above ours on the stack, its handler is gone: it left by
 * siglongjmp(3). Other entries may be gone too, but they do not belong to this signal.
 */
static _Thread_local struct {
    const char *frames[REPLACED_MAX];
    const void *contexts[REPLACED_MAX];
    int depth;
} chained __attribute__((tls_model("initial-exec")));

/* True if the access that this thread hands to dispatch() is a store: dispatch() has no parameter for it. */
static _Thread_local bool storing __attribute__((tls_model("initial-exec")));

bool fault_serve(void *address)
{
    struct container *c = arena_find(address);
    return c && c->upper && c->serve(c->upper, address, storing);
}

static void on_signal(int signal, siginfo_t *info, void *context);

static void take_default(int signal, const siginfo_t *info)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(signal, &action, NULL);
    /* A fault happens again when we return, at the guilty instruction. A signal sent by kill(2)
     * must be sent again; it is delivered when the handler's mask is gone. */
    if (info->si_code <= 0)
        raise(signal);
}

/* Count how many handlers this signal has been chained to, and drop entries that are gone. */
static int count_chained(const char *frame, const void *context)
{
    int count = 0;
    while (chained.depth > 0 && chained.frames[chained.depth - 1] <= frame)
        chained.depth--;
    while (count < chained.depth && chained.contexts[chained.depth - 1 - count] == context)
        count++;
    if (chained.depth == REPLACED_MAX) { /* the entries of other signals were left by jumps */
        int others = chained.depth - count;
        memmove(chained.frames, chained.frames + others, (size_t)count * sizeof *chained.frames);
        memmove(chained.contexts, chained.contexts + others,
                (size_t)count * sizeof *chained.contexts);
        chained.depth = count;
    }
    return count;
}

/* Do what would have happened without us. */
static void chain(int which, siginfo_t *info, void *context)
{
    char frame = 0; /* its address counts: where the stack is */
    int signal = signals[which];
    int next = atomic_load(&replaced[which].count) - 1 - count_chained(&frame, context);
    struct sigaction action = {.sa_handler = SIG_DFL};
    if (next >= 0)
        action = replaced[which].actions[next];
    bool is_fault = info->si_code > 0;
    if (!(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN && !is_fault)
        return;
    if (!(action.sa_flags & SA_SIGINFO) &&
        (action.sa_handler == SIG_IGN || action.sa_handler == SIG_DFL)) {
        take_default(signal, info); /* the kernel lets nobody ignore a fault */
        return;
    }
    if (action.sa_flags & (int)SA_RESETHAND)
        replaced[which].actions[next] = (struct sigaction){.sa_handler = SIG_DFL};
    sigset_t mask, saved;
    sigorset(&mask, &((ucontext_t *)context)->uc_sigmask, &action.sa_mask);
    if (!(action.sa_flags & SA_NODEFER))
        sigaddset(&mask, signal);
    pthread_sigmask(SIG_SETMASK, &mask, &saved);
    int depth = chained.depth++;
    chained.frames[depth] = &frame;
    chained.contexts[depth] = context;
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(signal, info, context);
    else
        action.sa_handler(signal);
    chained.depth = depth; /* drops entries of other signals' handlers that left by a jump */
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
}

/* Page-fault error code: bit 1, it was a store; bit 4, an instruction fetch. */
static bool is_store(const ucontext_t *context)
{
    return context->uc_mcontext.gregs[REG_ERR] & 1 << 1;
}

static bool is_fetch(const ucontext_t *context)
{
    return context->uc_mcontext.gregs[REG_ERR] & 1 << 4;
}

/* The signals that wait while a fault is served. SIGBUS does not wait, because reading home to log a page
 * may raise it. */
static void fill_mask(sigset_t *mask)
{
    sigfillset(mask);
    sigdelset(mask, SIGBUS);
}

/*
 * Enter and leave surround our work for a thread whose cancellation is asynchronous. libc cancels such a
 * thread by a signal. Our action's mask keeps this signal out until the cancellation is deferred. Then
 * the signal must come, because calls of libc wait for it. The cancellation acts at the beginning or at
 * the end, under the program's mask. It runs the program's cleanup handlers, and these may store to a
 * container.
 */
static int enter(const ucontext_t *context)
{
    int type = cancel_defer_type();
    if (type == PTHREAD_CANCEL_ASYNCHRONOUS) {
        sigset_t mask;
        fill_mask(&mask);
        pthread_sigmask(SIG_SETMASK, &context->uc_sigmask, NULL); /* never has libc's own signals */
        cancel_settle();
        pthread_sigmask(SIG_SETMASK, &mask, NULL);
    }
    return type;
}

static void leave(int type, const ucontext_t *context)
{
    if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
        pthread_sigmask(SIG_SETMASK, &context->uc_sigmask, NULL);
    cancel_undefer(&type);
}

/* Whether the access was to a page that memory does not have yet, and has now. */
static bool fills(struct container *c, const siginfo_t *info, uint64_t offset)
{
    bool in_file = (uint64_t)((const char *)info->si_addr - c->file) < container_file_max(c);
    return c->fill && info->si_code == BUS_ADRERR && !in_file && c->fill(c->filler, offset);
}

static bool serve(int signal, siginfo_t *info, const ucontext_t *context)
{
    if (atomic_load(&abandoned) || info->si_code <= 0)
        return false;
    if (signal == SIGSEGV && !is_fetch(context) && arena_contains(info->si_addr)) {
        storing = is_store(context);
        if (dispatch(info->si_addr))
            return true;
    }
    uint64_t offset;
    struct container *c = signal == SIGBUS ? arena_find_any(info->si_addr, &offset) : NULL;
    if (c && fills(c, info, offset))
        return true;
    if (c)
        report(c->path, offset,
               "SIGBUS: the medium failed, the file was cut short by another program, or, "
               "under undo, a file system that copies on write is full; the kernel's log and `df` "
               "say which. Then run `pm check` on the file");
    return false;
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
    int saved = errno, type = enter(context);
    bool served = serve(signal, info, context);
    leave(type, context);
    if (!served)
        chain(signal == SIGBUS, info, context);
    errno = saved;
}

static bool same_handler(const struct sigaction *a, const struct sigaction *b)
{
    return a->sa_sigaction == b->sa_sigaction && a->sa_flags == b->sa_flags;
}

/* Put `action` on top of the stack. If it is in the stack already, as with test frameworks, move it up. */
static int push(struct replaced *r, const struct sigaction *action)
{
    int count = atomic_load(&r->count), at = 0;
    while (at < count && !same_handler(&r->actions[at], action))
        at++;
    if (at == REPLACED_MAX)
        return -EPERM;
    for (; at + 1 < count; at++)
        r->actions[at] = r->actions[at + 1];
    r->actions[at] = *action;
    atomic_store(&r->count, at + 1);
    return 0;
}

static bool is_ours(const struct sigaction *action)
{
    return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_signal;
}

static int install(int which)
{
    struct sigaction ours = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (signals[which] == SIGBUS) /* filling a page reads the file, which may raise it again */
        ours.sa_flags |= (int)SA_NODEFER;
    struct sigaction current;
    fill_mask(&ours.sa_mask);
    /* Also mask the signal by which libc cancels a thread. sigaddset(3) refuses it: see enter(). */
    for (int i = __SIGRTMIN; i < SIGRTMIN; i++)
        *(uint64_t *)&ours.sa_mask |= UINT64_C(1) << (i - 1);
    if (sigaction(signals[which], NULL, &current) != 0)
        return -errno;
    if (is_ours(&current))
        return 0;
    int error = push(&replaced[which], &current);
    if (error == 0 && sigaction(signals[which], &ours, NULL) != 0)
        error = -errno;
    return error;
}

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
    pthread_mutex_lock(&opening);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&opening);
}

static void in_child(void)
{
    atomic_store(&abandoned, true);
    arena_abandon();
    after_fork();
}

bool fault_in_child(void)
{
    return atomic_load_explicit(&abandoned, memory_order_relaxed);
}

/* Runs once for the process; what failed is tried again. -errno */
static int start(void)
{
    static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
    static bool faults_watched;
    int error = 0;
    pthread_mutex_lock(&starting);
    fork_call(FORK_OPENING, before_fork, after_fork, in_child);
    if (!faults_watched)
        error = dispatch_start();
    faults_watched |= error == 0;
    pthread_mutex_unlock(&starting);
    return error;
}

int fault_begin_open(const char *path)
{
    if (arena_reserve(path) != 0)
        return -1;
    int error = start();
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot watch for page faults", path);
    pthread_mutex_lock(&opening);
    return 0;
}

void fault_end_open(void)
{
    pthread_mutex_unlock(&opening);
}

int fault_install(const char *path)
{
    int error = 0;
    struct sigaction segv, bus;
    /* The usual case takes no lock. */
    if (sigaction(SIGSEGV, NULL, &segv) == 0 && is_ours(&segv) &&
        sigaction(SIGBUS, NULL, &bus) == 0 && is_ours(&bus))
        return 0;
    pthread_mutex_lock(&install_lock);
    for (int which = 0; which < 2 && error == 0; which++)
        error = install(which);
    pthread_mutex_unlock(&install_lock);
    if (error == -EPERM)
        return pm__fail(EPERM,
                        "%s: SIGSEGV was taken from libpm more than %d times; install handlers "
                        "before pm_open(), or chain to the one that was there",
                        path, REPLACED_MAX);
    if (error != 0)
        return pm__fail_system(-error, "%s: cannot handle SIGSEGV", path);
    return 0;
}
