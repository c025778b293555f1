/*
 * Bytes that the program hands over: pm_put(), pm_write(). An engine may take whole lines of new objects
 * (fill() of struct engine). The other bytes are announced, and then stored, as any program's are. Lines go
 * first: once a page has been opened for other bytes, the engine takes none of its lines.
 *
 * The allocator's lock is held from the first step to the last, as in memory.c.
 */
#include "api/api.h"

#include "base/cancel.h"
#include "base/error.h"

#include <errno.h>
#include <string.h>

/* Fewer bytes are stored like others. */
#define FILL_MIN (4 * PM_LINE)

/* The program's memory may fault, for instance in another container that lies elsewhere. It does so here, and
 * not while a lock is held. */
static void touch(const void *from, size_t bytes)
{
    const volatile char *at = from;
    for (size_t i = 0; i < bytes; i += PM_PAGE)
        (void)at[i];
    if (bytes > 0)
        (void)at[bytes - 1];
}

static uint64_t offset_of(const pm_container *c, const void *p)
{
    return (uint64_t)((const char *)p - c->container.base);
}

static int store(pm_container *c, char *to, const char *from, size_t bytes)
{
    if (bytes == 0)
        return 0;
    int error = api_announce(c, offset_of(c, to), bytes);
    if (error != 0)
        return container_fail_at(&c->container, offset_of(c, to), -error,
                                 "cannot log or open pages for %zu bytes", bytes);
    memcpy(to, from, bytes);
    return 0;
}

/* Memory of a container may have to be filled, and that takes the other container's page lock. Nobody may
 * wait for it with a page lock of his own. */
static bool is_in_container(const void *from)
{
    const struct container *owner = arena_find(from);
    return owner && owner->base;
}

/* Whole lines; those that the engine does not take are stored, a page at a time. */
static int write_lines(pm_container *c, char *to, const char *from, size_t bytes)
{
    const struct engine *engine = c->txn.engine;
    bool fills = engine->fill && !is_in_container(from);
    int result = 0;
    while (bytes > 0 && result == 0) {
        size_t n = fills ? engine->fill(&c->txn, offset_of(c, to), from, bytes) : 0;
        if (n == 0) {
            n = min_u64(bytes, fills ? PM_PAGE - (uintptr_t)to % PM_PAGE : bytes);
            result = store(c, to, from, n);
        }
        to += n;
        from += n;
        bytes -= n;
    }
    return result;
}

static int write_bytes(pm_container *c, char *to, const char *from, size_t bytes)
{
    if (bytes < FILL_MIN)
        return store(c, to, from, bytes);
    size_t head = align_up((uintptr_t)to, PM_LINE) - (uintptr_t)to;
    size_t lines = align_down(bytes - head, PM_LINE), end = head + lines;
    int result = write_lines(c, to + head, from + head, lines);
    if (result == 0)
        result = store(c, to, from, head);
    return result == 0 ? store(c, to + end, from + end, bytes - end) : result;
}

/* Who writes to an object sees to it that nobody frees it meanwhile. So the lock need not be held on. */
static int check_object(pm_container *c, const void *to, size_t bytes)
{
    uint64_t start, size, offset = offset_of(c, to);
    lock_acquire(&c->allocator.lock);
    bool is_inside =
        allocator_object_at(&c->allocator, to, &start, &size) && bytes <= start + size - offset;
    lock_release(&c->allocator.lock);
    return is_inside ? 0
                     : pm__fail_at(c->container.path, offset, EINVAL,
                                   "%zu bytes here are not in one object", bytes);
}

int pm_write(void *to, const void *from, size_t bytes)
{
    DEFER_CANCELLATION;
    pm_container *c = owner_of(to);
    if (!c || api_enter_writing(c) != 0 || check_object(c, to, bytes) != 0)
        return -1;
    touch(from, bytes);
    lock_acquire(&c->allocator.lock);
    int result = write_bytes(c, to, from, bytes);
    lock_release(&c->allocator.lock);
    return result;
}

/* The rest of the last line is zero: the object has the line for itself. */
static int write_last_line(pm_container *c, char *to, const char *from, size_t bytes)
{
    char line[PM_LINE] = {0};
    memcpy(line, from, bytes);
    return bytes > 0 ? write_lines(c, to, line, PM_LINE) : 0;
}

static int write_object(pm_container *c, char *to, const char *from, size_t bytes)
{
    size_t lines = align_down(bytes, PM_LINE);
    if (bytes < FILL_MIN)
        return store(c, to, from, bytes);
    int result = write_lines(c, to, from, lines);
    return result == 0 ? write_last_line(c, to + lines, from + lines, bytes - lines) : result;
}

static void *put(pm_container *c, const void *data, size_t bytes)
{
    struct allocator_call call = allocator_begin_call(&c->allocator);
    size_t alignment = bytes < FILL_MIN ? FORMAT_GRANULARITY_MIN : PM_LINE;
    void *p = allocator_allocate_locked(&c->allocator, bytes, alignment);
    if (p && data && write_object(c, p, data, bytes) != 0)
        return api_give_back(c, p, call);
    return p;
}

void *pm_put(pm_container *c, const void *data, size_t bytes)
{
    DEFER_CANCELLATION;
    if (api_enter_writing(c) != 0)
        return NULL;
    if (data)
        touch(data, bytes);
    lock_acquire(&c->allocator.lock);
    void *p = put(c, data, bytes);
    lock_release(&c->allocator.lock);
    return p;
}
