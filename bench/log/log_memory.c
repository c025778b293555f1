#include "log/log_memory.h"

#include "api/api.h"
#include "txn/log/log.h"

#include <stdlib.h>
#include <sys/mman.h>

/** Add the bytes of a table's pages that are in memory. */
static int add_resident(const void *table, uint64_t size, double *bytes)
{
    const uint64_t pages = (size + PM_PAGE - 1) / PM_PAGE;
    unsigned char *in_memory = malloc(pages);
    const int error = in_memory ? mincore((void *)table, size, in_memory) : -1;
    for (uint64_t i = 0; error == 0 && i < pages; i++)
        *bytes += in_memory[i] & 1 ? PM_PAGE : 0;
    free(in_memory);
    return error;
}

int log_memory_of(const pm_container *c, struct log_memory *memory)
{
    const struct log_engine *k = log_engine_of(&c->txn);
    const uint64_t lines = c->container.max_size / PM_LINE, chunk_size = c->container.chunk_size;
    *memory = (struct log_memory){.live = (double)(k->words_live * sizeof(uint64_t))};
    for (uint32_t i = 0; i < k->known; i++)
        memory->chunks += k->chunks[i].live > 0 ? (double)chunk_size : 0;
    const uint64_t groups = lines / LINE_MAP_GROUP;
    if (add_resident(k->map.groups, groups * sizeof *k->map.groups, &memory->map) != 0 ||
        add_resident(k->map.blocks, groups * sizeof *k->map.blocks, &memory->map) != 0 ||
        add_resident(k->map.owners, groups * sizeof *k->map.owners, &memory->map) != 0 ||
        add_resident(k->deltas, lines * sizeof *k->deltas, &memory->map) != 0)
        return -1;
    return add_resident(k->left, lines / 8, &memory->map);
}
