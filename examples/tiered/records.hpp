// Blocks of records, in the container. Records of one type lie close together, so that reading one field of
// all objects reads little else; and they can be found without any collection.
//
//     block: header | a bit for each record | records
//
// A block is a segment of the container, aligned to its size, so that a record's block is found by a mask.
#ifndef EXAMPLES_TIERED_RECORDS_HPP
#define EXAMPLES_TIERED_RECORDS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>

namespace tiered
{

constexpr size_t block_bytes = 256 << 10;

struct block;

/// Of one type, in the container.
struct records {
    uint64_t record_bytes = 0;
    uint64_t count = 0;
    block *first = nullptr;     // all blocks
    block *with_room = nullptr; // those with free records

    /// Make a zeroed record. `allocate` returns memory for a block, aligned.
    void *make(const std::function<void *()> &allocate);
    void free(void *record);
    bool has(const void *record) const; // false also for addresses of other memory in the container
    void walk(const std::function<void(void *)> &each) const;
    /// Go on from `at` (NULL: the beginning) for `limit` records. Returns the next, or NULL at the end.
    void *walk_from(void *at, size_t limit, const std::function<void(void *)> &each) const;
};

} // namespace tiered

#endif
