/*
 * Modules hand their tables to pm__register() when they are loaded. The stack is walked along the frame
 * pointers. libgcc's unwinder tells the function of each return address, and the tables say whether pmcc
 * compiled it. This search is linear in the functions of all modules, so a cache has the answers for 256
 * return addresses. The cache is emptied when a module comes or goes.
 *
 * One lock guards the tables and the cache.
 */
#define _GNU_SOURCE
#include "discovery/roots.h"

#include "base/fork.h"
#include "base/bits.h"
#include "base/lock.h"
#include "base/panic.h"
#include "base/roots.h"
#include "base/vector.h"

#include <pthread.h>

/* From libgcc: the unwind information that covers an address. */
struct dwarf_eh_bases {
    void *text, *data, *function;
};
const void *_Unwind_Find_FDE(void *address, struct dwarf_eh_bases *bases);

static struct lock modules_lock; /* guards the following variables */
static struct vector modules;    /* const struct pm__roots * */

/* A cache: what is known of return addresses. Address 0: empty entry. */
#define VERDICTS 256
static struct verdict {
    const void *address;
    const struct pm__function *function; /* the function returned to; NULL: foreign */
} verdicts[VERDICTS];

static const struct pm__roots **module_at(uint64_t i)
{
    return (const struct pm__roots **)modules.items + i;
}

/* A child of fork(2) unloads modules, at its end at the latest, so the lock must work there. */
static __attribute__((constructor(101))) void begin(void)
{
    fork_take(FORK_MODULES, &modules_lock);
}

static void forget_verdicts(void)
{
    for (uint32_t i = 0; i < VERDICTS; i++)
        verdicts[i].address = NULL;
}

void pm__register(const struct pm__roots *roots)
{
    lock_acquire(&modules_lock);
    const struct pm__roots **module = vector_push(&modules, sizeof(void *));
    if (module)
        *module = roots;
    else
        panic_address("pm__register()", roots, /* unreachable: without memory no module starts */
                      "no memory to note a module's variables; free some, or raise ulimit -v");
    forget_verdicts();
    lock_release(&modules_lock);
}

void pm__unregister(const struct pm__roots *roots)
{
    lock_acquire(&modules_lock);
    uint64_t i = 0;
    while (i < modules.count && *module_at(i) != roots)
        i++;
    if (i < modules.count)
        *module_at(i) = *module_at(--modules.count);
    forget_verdicts();
    lock_release(&modules_lock);
}

bool roots_are_known(void)
{
    lock_acquire(&modules_lock);
    bool any = modules.count > 0;
    lock_release(&modules_lock);
    return any;
}

/* ---- the stack ------------------------------------------------------------------------------- */

static const struct pm__function *find_function(const void *start)
{
    for (uint64_t i = 0; i < modules.count; i++) {
        const struct pm__roots *m = *module_at(i);
        for (const struct pm__function *f = m->functions; f < m->functions_end; f++)
            if (f->start == start)
                return f;
    }
    return NULL;
}

/* The function to which the address returns; NULL if pmcc has not compiled it. */
static const struct pm__function *function_at(const void *return_address)
{
    struct verdict *v = &verdicts[(uintptr_t)return_address % VERDICTS];
    if (v->address != return_address) {
        struct dwarf_eh_bases bases;
        const void *fde = _Unwind_Find_FDE((char *)(uintptr_t)return_address - 1, &bases);
        *v = (struct verdict){return_address, fde ? find_function(bases.function) : NULL};
    }
    return v->function;
}

static bool is_thread_start(const void *return_address)
{
    return (uintptr_t)return_address - (uintptr_t)pm__thread_begin <=
           (uintptr_t)(pm__thread_end - pm__thread_begin);
}

/* The end of the calling thread's stack; NULL if the thread runs on another stack, as coroutines do. */
static const void *stack_end(const void *within)
{
    pthread_attr_t attributes;
    void *low;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return NULL;
    int error = pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    return error == 0 && (uintptr_t)within - (uintptr_t)low < size ? (char *)low + size : NULL;
}

bool roots_stack(struct frame program, struct roots_range *stack, const void **foreign)
{
    const struct frame *here = __builtin_frame_address(0), *at = here;
    struct frame f = program; /* later the frame at `at` */
    const struct pm__function *function = NULL;
    bool is_base = false;
    lock_acquire(&modules_lock);
    while (!is_base && (function = function_at(f.return_address)) && f.up > at) {
        is_base = function->flags & PM__FUNCTION_MAIN;
        at = f.up;
        f = *at;
    }
    if (!is_base)
        is_base = is_thread_start(f.return_address);
    lock_release(&modules_lock);
    const void *end = is_base ? at + 1 : stack_end(here);
    *stack = (struct roots_range){.first = (uint64_t *)(uintptr_t)here,
                                  .end = (uint64_t *)(uintptr_t)(end ? end : at)};
    *foreign = f.return_address;
    return is_base;
}

/* ---- variables ------------------------------------------------------------------------------- */

static struct roots_range words_of(void *address, size_t size)
{
    uint64_t first = align_up((uintptr_t)address, sizeof(uint64_t));
    uint64_t end = align_down((uintptr_t)address + size, sizeof(uint64_t));
    return (struct roots_range){(uint64_t *)first, (uint64_t *)max_u64(first, end)};
}

void roots_variables(void (*look)(void *context, struct roots_range range), void *context)
{
    look(context, words_of(&pm__strtok_rest, sizeof pm__strtok_rest));
    lock_acquire(&modules_lock);
    for (uint64_t i = 0; i < modules.count; i++) {
        const struct pm__roots *m = *module_at(i);
        for (const struct pm__global *g = m->globals; g < m->globals_end; g++)
            look(context, words_of(g->address, g->size));
        for (const struct pm__local *l = m->locals; l < m->locals_end; l++)
            look(context, words_of(l->address(), l->size));
    }
    lock_release(&modules_lock);
}
