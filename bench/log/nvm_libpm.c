/* libpm's calls to persistent memory come here first, for the linker wraps medium_of(). So the library that users
 * get has no delay. */
#include "backend/backend.h"
#include "log/nvm.h"

static void write_back(struct medium *m, const void *address, size_t size)
{
    nvm_store(address, size);
    medium_pmem.write_back(m, address, size);
}

static int publish(struct medium *m, const void *address, size_t size)
{
    nvm_store(address, size);
    return medium_pmem.publish(m, address, size);
}

static int copy(struct medium *m, void *to, const void *from, size_t size)
{
    nvm_store(to, size);
    return medium_pmem.copy(m, to, from, size);
}

static int fence(struct medium *m)
{
    const int error = medium_pmem.fence(m);
    nvm_fence();
    return error;
}

static int sync_length(struct medium *m)
{
    return medium_pmem.sync_length(m);
}

static const struct medium_ops slow_pmem = {
    .name = "pmem",
    .power_safe = true,
    .write_back = write_back,
    .publish = publish,
    .copy = copy,
    .fence = fence,
    .settle = fence,
    .sync_length = sync_length,
};

__typeof__(medium_of) __real_medium_of, __wrap_medium_of;

const struct medium_ops *__wrap_medium_of(int fd, const void *home, size_t size, bool synchronous)
{
    const struct medium_ops *ops = __real_medium_of(fd, home, size, synchronous);
    return ops == &medium_pmem ? &slow_pmem : ops;
}
