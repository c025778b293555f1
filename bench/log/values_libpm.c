/* In a container in the mode that this program is built for, with the structures of examples/. */
#include "common/map.h"
#include "harness/mode.h"
#include "log/values.h"

const char *const values_peer = BENCH_MODE;

static pm_container *container;
static const struct map_ops *ops;
static void *map; /* of sps: the array */

void values_open(const char *path, const char *structure, uint64_t count, unsigned live_percent)
{
    struct pm_options options = mode_options();
    options.live_percent = live_percent;
    container = pm_open(path, &options);
    if (!container)
        values_fail("pm_open", pm_errormsg());
    for (size_t i = 0; i < MAP_OPS_COUNT; i++)
        if (strcmp(map_ops_all[i]->name, structure) == 0)
            ops = map_ops_all[i];
    map = ops ? ops->create(container) : pm_calloc(container, count, VALUE_BYTES);
    if (!map)
        values_fail(structure, pm_errormsg());
    values_commit();
}

void values_begin(void) {}

void values_insert(uint64_t key, uint64_t number)
{
    void *value = pm_malloc(container, VALUE_BYTES);
    if (!value)
        values_fail("pm_malloc", pm_errormsg());
    values_fill(value, number);
    if (ops->insert(container, map, key, (uint64_t)(uintptr_t)value) != 1)
        values_fail("insert", "the key was there");
}

static void *value_of(uint64_t key)
{
    uint64_t value;
    if (!ops)
        return (char *)map + key * VALUE_BYTES;
    if (!ops->lookup(map, key, &value))
        values_fail("lookup", "the key is not there");
    return (void *)(uintptr_t)value;
}

void values_update(uint64_t key, uint64_t number)
{
    values_fill(value_of(key), number);
}

void values_swap(uint64_t a, uint64_t b)
{
    values_exchange(value_of(a), value_of(b));
}

void values_commit(void)
{
    if (pm_commit(container) != 0)
        values_fail("pm_commit", pm_errormsg());
}

uint64_t values_first(uint64_t key)
{
    return *(const uint64_t *)value_of(key);
}

uint64_t values_written(void)
{
    struct pm_stats stats = {.size = sizeof stats};
    if (pm_stats(container, &stats) != 0)
        values_fail("pm_stats", pm_errormsg());
    return stats.bytes_logged + stats.lines_flushed * 64;
}

void values_close(void)
{
    if (pm_check(container) != 0 || pm_close(container) != 0)
        values_fail("pm_close", pm_errormsg());
}
