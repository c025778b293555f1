#include "mapped.h"

#include "api/api.h"

void walk_pointers(pm_container *c, void (*visit)(void *context, uint64_t offset), void *context)
{
    uint64_t end = container_bytes(&c->container);
    for (uint64_t at = 0; (at = pointer_map_next(&c->pointers, at, end)) < end;
         at += sizeof(void *))
        visit(context, at);
}

uint64_t offset_of(pm_container *c, const void *p)
{
    return (uint64_t)((const char *)p - c->container.base);
}
