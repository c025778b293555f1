// Stands between the log engine and the growth of its file.
#include "common/full_disk.hpp"

#include <cerrno>
#include <cstdint>

namespace test
{

bool disk_is_full, grows_by_least;

} // namespace test

extern "C" {

struct container;
int __real_container_grow_chunks(struct container *c, uint32_t count, uint32_t wanted);

int __wrap_container_grow_chunks(struct container *c, uint32_t count, uint32_t wanted)
{
    return test::disk_is_full
               ? -ENOSPC
               : __real_container_grow_chunks(c, count, test::grows_by_least ? count : wanted);
}
}
