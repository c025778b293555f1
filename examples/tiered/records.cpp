#include "tiered/records.hpp"

#include <cstring>
#include <libpm.h>

namespace tiered
{

namespace
{

uint32_t capacity_of(size_t record_bytes)
{
    size_t capacity = (block_bytes - sizeof(block)) / record_bytes;
    while (block::start(capacity) + capacity * record_bytes > block_bytes)
        capacity--;
    return static_cast<uint32_t>(capacity);
}

block *block_of(const void *record)
{
    return reinterpret_cast<block *>(reinterpret_cast<uintptr_t>(record) / block_bytes *
                                     block_bytes);
}

} // namespace

void *records::make(const std::function<void *()> &allocate)
{
    if (!with_room) {
        const uint32_t capacity = capacity_of(record_bytes);
        auto *made = static_cast<block *>(allocate());
        *made = {nullptr, nullptr, this, record_bytes, capacity, 0};
        memset(made->bits(), 0, block::start(capacity) - sizeof(block));
        (first ? last->next : first) = made;
        last = with_room = made;
    }
    block *in = with_room;
    const uint32_t i = in->first_free();
    in->bits()[i / 64] |= uint64_t(1) << i % 64;
    if (++in->used == in->capacity)
        with_room = in->next_with_room;
    return memset(in->record(i), 0, record_bytes);
}

void records::free(void *record)
{
    block *in = block_of(record);
    const uint32_t i = in->index(record);
    in->bits()[i / 64] &= ~(uint64_t(1) << i % 64);
    if (in->used-- == in->capacity) {
        in->next_with_room = with_room;
        with_room = in;
    }
}

bool records::has(const void *record) const
{
    block *in = block_of(record);
    if (pm_usable_size(in) != block_bytes || in->of != this ||
        reinterpret_cast<uintptr_t>(record) % block_bytes < in->start())
        return false;
    const uint32_t i = in->index(record);
    return i < in->capacity && in->record(i) == record && in->has(i);
}

void *records::walk_from(void *at, size_t limit, const std::function<void(void *)> &each) const
{
    block *in = at ? block_of(at) : first;
    uint32_t i = at ? in->index(at) : 0;
    for (; in; in = in->next, i = 0)
        for (i = in->next_used(i); i < in->capacity; i = in->next_used(i + 1)) {
            if (limit-- == 0)
                return in->record(i);
            each(in->record(i));
        }
    return nullptr;
}

} // namespace tiered
