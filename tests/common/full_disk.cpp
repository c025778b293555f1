// Stands between the log engine and the growth of its file.
#include "common/full_disk.hpp"

#include <cerrno>
#include <cstdint>

namespace test
{

bool disk_is_full, grows_by_least;
uint32_t disk_has = UINT32_MAX;

} // namespace test

extern "C" {

struct container;
int __real_container_grow_chunks(struct container *c, uint32_t count, uint32_t wanted);

int __wrap_container_grow_chunks(struct container *c, uint32_t count, uint32_t wanted)
{
    if (test::disk_is_full || count > test::disk_has)
        return -ENOSPC;
    const bool least = test::grows_by_least || wanted > test::disk_has;
    const int grown = __real_container_grow_chunks(c, count, least ? count : wanted);
    if (grown > 0 && test::disk_has != UINT32_MAX)
        test::disk_has -= (uint32_t)grown;
    return grown;
}

bool __wrap_container_has_room(const struct container *, uint32_t count)
{
    return !test::disk_is_full && test::disk_has >= count;
}
}
