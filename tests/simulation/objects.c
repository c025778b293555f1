#include "simulation/objects.h"

#include "api/api.h"

struct walk {
    pm_container *c;
    void (*visit)(void *context, uint64_t address, uint64_t size);
    void *context;
};

static void visit_at(void *context, uint64_t offset, uint64_t size)
{
    const struct walk *w = context;
    w->visit(w->context, (uintptr_t)w->c->container.base + offset, size);
}

void walk_objects(pm_container *c, void (*visit)(void *context, uint64_t address, uint64_t size),
                  void *context)
{
    struct walk w = {c, visit, context};
    lock_acquire(&c->allocator.lock);
    allocator_visit(&c->allocator, visit_at, &w);
    lock_release(&c->allocator.lock);
}
