#include "lsm/memory.hpp"

#include <algorithm>
#include <utility>

namespace lsm
{

char *HeapMemory::allocate(size_t bytes)
{
    constexpr size_t chunk_bytes = 64 << 10;
    bytes = (bytes + 7) / 8 * 8;
    if (bytes > static_cast<size_t>(end_ - free_)) {
        size_t size = std::max(bytes, chunk_bytes);
        chunks_.push_back(std::make_unique_for_overwrite<char[]>(size));
        free_ = chunks_.back().get();
        end_ = free_ + size;
        count(size);
    }
    return std::exchange(free_, free_ + bytes);
}

} // namespace lsm
