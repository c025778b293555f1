/*
 * The arena: 64 TiB of reserved addresses in slots of 1 GiB. A container takes a run of slots that
 * covers its max_size. The signal handler reads the table without a lock. An entry is one pointer. It is
 * written before the container's first page can fault, and cleared after its last.
 */
#include "container/container.h"

#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS          (ARENA_SIZE >> ARENA_SLOT_SHIFT)
#define VOLATILE_SLOTS (VOLATILE_SIZE >> ARENA_SLOT_SHIFT)

uintptr_t arena_base;
static struct container *_Atomic slots[SLOTS];
static _Atomic bool used[SLOTS];                               /* now, or in the past */
static pthread_mutex_t arena_lock = PTHREAD_MUTEX_INITIALIZER; /* guards changes of slots */

/* Whether the kernel places mappings in the arena. It does so if the stack is unlimited, because it then
 * leaves most of the address space to the stack. */
static bool is_overrun(void)
{
    void *p = map_reserve(NULL, PM_PAGE);
    if (p == MAP_FAILED)
        return false;
    munmap(p, PM_PAGE);
    return (uintptr_t)p - ARENA_HINT < ARENA_SIZE;
}

static bool marks_are_there; /* since the process began */

/* If the kernel places mappings in the arena, stores to ordinary memory look for marks. Map a table
 * without marks, for children of fork(2) too. This runs before the program's own constructors, which may
 * store. */
__attribute__((constructor(101))) static void begin(void)
{
    if (is_overrun())
        marks_are_there = map_table_at((void *)MARKS_TABLE, MARKS_SIZE) == 0 &&
                          madvise((void *)MARKS_TABLE, MARKS_SIZE, MADV_DOFORK) == 0;
}

static int map_tables(void)
{
    int error = marks_are_there ? 0 : map_table_at((void *)MARKS_TABLE, MARKS_SIZE);
    if (error != 0)
        return error;
    error = map_table_at((void *)KINDS_TABLE, KINDS_SIZE);
    if (error != 0 && !marks_are_there)
        munmap((void *)MARKS_TABLE, MARKS_SIZE);
    return error;
}

/* Why there is no room, and what to do; NULL for other errors. No option makes the arena smaller. */
static const char *reason(int error)
{
    if (error == ENOMEM)
        return "Cannot allocate memory; raise the limits of address space and data: ulimit -v "
               "unlimited, ulimit -d unlimited";
    if (error == EEXIST)
        return is_overrun()
                   ? "the kernel maps libraries and memory there; run it with a limited stack: "
                     "ulimit -s 8192, and not with the old layout of addresses (setarch -L)"
                   : "is something else mapped there, or libpm linked twice, shared and static?";
    return NULL;
}

int arena_reserve(const char *path)
{
    int error = 0;
    pthread_mutex_lock(&arena_lock);
    if (arena_base == 0) {
        void *p = map_reserve((void *)ARENA_HINT, ARENA_SIZE);
        error = p == MAP_FAILED ? -errno : map_tables();
        if (error == 0)
            arena_base = (uintptr_t)p;
        else if (p != MAP_FAILED)
            munmap(p, ARENA_SIZE);
    }
    pthread_mutex_unlock(&arena_lock);
    if (error != 0)
        return pm__fail_because(-error, reason(-error),
                                "%s: cannot reserve %" PRIu64 " GiB of address space at %#" PRIx64,
                                path, ARENA_SIZE >> 30, ARENA_HINT);
    return 0;
}

static uint64_t slot_of(uint64_t address)
{
    return (address - arena_base) >> ARENA_SLOT_SHIFT;
}

static uint64_t slot_count(uint64_t size)
{
    return divide_up(size, UINT64_C(1) << ARENA_SLOT_SHIFT);
}

struct container *arena_find(const void *address)
{
    if (arena_base == 0 || !arena_contains(address))
        return NULL;
    return atomic_load_explicit(&slots[slot_of((uintptr_t)address)], memory_order_acquire);
}

/* Owns slots that no container may take, as those of the volatile heap. It holds nothing, and no transaction
 * is above it. */
static struct container nobody = {.fd = -1, .view_fd = -1, .home_fd = -1, .watcher = -1};

/* Threads that look into containers which others may just be closing. A container is gone only when they have
 * left it. */
static _Atomic unsigned searching;

static struct container *search_mappings(const void *address, uint64_t *offset)
{
    for (uint64_t i = 0; i < SLOTS; i++) {
        struct container *c = atomic_load_explicit(&slots[i], memory_order_acquire);
        if (!c)
            continue;
        const char *const mappings[] = {c->base, c->home, c->shadow, c->file};
        for (int k = 0; k < 4; k++) {
            *offset = (uint64_t)((const char *)address - mappings[k]);
            if (mappings[k] && *offset < (k < 3 ? c->max_size : container_file_max(c)))
                return c;
        }
    }
    return NULL;
}

struct container *arena_find_any(const void *address, uint64_t *offset)
{
    struct container *c = arena_find(address);
    if (c && c != &nobody) {
        *offset = (uint64_t)((const char *)address - c->base);
        return c;
    }
    atomic_fetch_add(&searching, 1);
    c = search_mappings(address, offset);
    atomic_fetch_sub(&searching, 1);
    return c;
}

bool arena_take_volatile(void)
{
    return arena_take(VOLATILE_BASE, VOLATILE_SIZE, &nobody);
}

static bool slots_are_free(uint64_t first, uint64_t count)
{
    if (first + count > SLOTS)
        return false;
    for (uint64_t i = first; i < first + count; i++)
        if (atomic_load_explicit(&slots[i], memory_order_relaxed))
            return false;
    return true;
}

static void set_slots(uint64_t first, uint64_t count, struct container *owner)
{
    for (uint64_t i = first; i < first + count; i++) {
        atomic_store_explicit(&slots[i], owner, memory_order_release);
        atomic_store_explicit(&used[i], true, memory_order_relaxed);
    }
}

bool arena_was_used(const void *address)
{
    return atomic_load_explicit(&used[slot_of((uintptr_t)address)], memory_order_relaxed);
}

bool arena_take(uint64_t base, uint64_t size, struct container *owner)
{
    uint64_t first = slot_of(base), count = slot_count(size);
    pthread_mutex_lock(&arena_lock);
    bool free = slots_are_free(first, count);
    if (free)
        set_slots(first, count, owner);
    pthread_mutex_unlock(&arena_lock);
    return free;
}

/* Find the first run of free slots, starting at a random place and wrapping around. The run does not touch
 * slots [from, from + count), nor the slots of a volatile heap in this or another run. SLOTS if there is
 * none. The lock is held.
 *
 * The search begins where the lower half of an address is no small number. A word may have an int in its
 * lower half, and padding with the upper half of an address. With a small int the word would otherwise
 * look like a pointer into the container. */
static uint64_t search(uint64_t random, uint64_t from, uint64_t count)
{
    uint64_t start = random % (SLOTS - VOLATILE_SLOTS) / 4 * 4 + 1; /* at 1 GiB of each 4 */
    for (uint64_t i = 0; i < SLOTS; i++) {
        uint64_t first = (start + i) % SLOTS;
        bool apart = first + count <= from || first >= from + count;
        if (apart && first + count <= SLOTS - VOLATILE_SLOTS && slots_are_free(first, count))
            return first;
    }
    return SLOTS;
}

uint64_t arena_take_elsewhere(uint64_t base, uint64_t size, uint64_t random,
                              struct container *owner)
{
    uint64_t count = slot_count(size);
    pthread_mutex_lock(&arena_lock);
    uint64_t first = search(random, slot_of(base), count);
    if (first < SLOTS)
        set_slots(first, count, owner);
    pthread_mutex_unlock(&arena_lock);
    return first < SLOTS ? arena_base + (first << ARENA_SLOT_SHIFT) : 0;
}

void arena_give_back(uint64_t base, uint64_t size)
{
    /* The next owner of the slots has marked nothing. If this fails, the addresses are not used again. */
    void *marks = mark_of((void *)base);
    void *kinds = kinds_of((void *)base);
    bool cleared = map_clear_table(marks, size >> MARKS_LINE_SHIFT) == 0 &&
                   map_clear_table(kinds, size >> KINDS_WORD_SHIFT) == 0;
    pthread_mutex_lock(&arena_lock);
    set_slots(slot_of(base), slot_count(size), cleared ? NULL : &nobody);
    pthread_mutex_unlock(&arena_lock);
    atomic_thread_fence(memory_order_seq_cst); /* whoever begins to search now does not find it */
    while (atomic_load(&searching) > 0)
        sched_yield();
}

uint64_t arena_choose(uint64_t size, uint64_t random)
{
    pthread_mutex_lock(&arena_lock);
    uint64_t first = search(random, SLOTS, slot_count(size));
    pthread_mutex_unlock(&arena_lock);
    return first < SLOTS ? arena_base + (first << ARENA_SLOT_SHIFT) : 0;
}

void arena_abandon(void)
{
    struct container *previous = NULL;
    for (uint64_t i = 0; i < SLOTS; i++) {
        struct container *c = atomic_load_explicit(&slots[i], memory_order_relaxed);
        if (c && c != previous && c->fd >= 0) {
            close(c->fd);
            if (c->view_fd >= 0)
                close(c->view_fd);
            if (c->home_fd != c->fd)
                close(c->home_fd);
            if (c->watcher >= 0)
                close(c->watcher);
        }
        previous = c;
        if (c != &nobody)
            atomic_store_explicit(&slots[i], NULL, memory_order_relaxed);
    }
    if (arena_base)
        map_reserve_again((void *)arena_base, ARENA_SIZE - VOLATILE_SIZE);
}
