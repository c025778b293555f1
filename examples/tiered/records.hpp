// Blocks of records, in the container. Records of one type lie close together. So a program that reads one
// field of all objects reads little else, and finds all objects without a collection.
//
//     block: header | a bit for each record | records
//
// A block is a segment of the container, aligned to its size, so that a record's block is found by a mask.
#ifndef EXAMPLES_TIERED_RECORDS_HPP
#define EXAMPLES_TIERED_RECORDS_HPP

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace tiered
{

constexpr size_t block_bytes = 256 << 10;
constexpr size_t record_bytes_max = block_bytes - 64; // beside the header of a block, and one bit

struct records;

struct block {
    block *next;
    block *next_with_room; // valid if it has room
    const records *of;
    uint64_t record_bytes;
    uint32_t capacity;
    uint32_t used;

    uint64_t *bits()
    {
        return reinterpret_cast<uint64_t *>(this + 1);
    } // records follow, aligned to 64
    const uint64_t *bits() const { return reinterpret_cast<const uint64_t *>(this + 1); }
    char *record(uint32_t i) { return reinterpret_cast<char *>(this) + start() + i * record_bytes; }
    size_t start() const { return start(capacity); }
    static size_t start(size_t capacity)
    {
        return (sizeof(block) + (capacity + 63) / 64 * sizeof(uint64_t) + 63) / 64 * 64;
    }
    uint32_t index(const void *record) const
    {
        const auto offset = reinterpret_cast<uintptr_t>(record) % block_bytes - start();
        return static_cast<uint32_t>(offset / record_bytes);
    }
    bool has(uint32_t i) const { return bits()[i / 64] >> i % 64 & 1; }
    // The first record in use from `i` on; `capacity`: none.
    uint32_t next_used(uint32_t i) const
    {
        while (i < capacity) {
            const uint64_t rest = bits()[i / 64] >> i % 64;
            if (rest)
                return i + static_cast<uint32_t>(std::countr_zero(rest));
            i = (i / 64 + 1) * 64;
        }
        return capacity;
    }
    uint32_t first_free() const
    {
        for (uint32_t word = 0;; word++)
            if (~bits()[word])
                return word * 64 + static_cast<uint32_t>(std::countr_one(bits()[word]));
    }
};

static_assert(sizeof(block) + sizeof(uint64_t) <= block_bytes - record_bytes_max);

/// All objects of a type, which must not be made or destroyed meanwhile. A forward range.
template <class T> class objects
{
  public:
    class iterator
    {
      public:
        using value_type = T;
        using difference_type = std::ptrdiff_t;

        iterator() = default;
        explicit iterator(block *in) : in_(in), i_(UINT32_MAX)
        {
            if (in_)
                ++*this;
        }
        T operator*() const
        {
            return T(reinterpret_cast<typename T::durable_record_type *>(in_->record(i_)));
        }
        iterator &operator++()
        {
            while ((i_ = in_->next_used(i_ + 1)) >= in_->capacity) {
                in_ = in_->next;
                i_ = UINT32_MAX;
                if (!in_)
                    break;
            }
            return *this;
        }
        iterator operator++(int)
        {
            iterator before = *this;
            ++*this;
            return before;
        }
        bool operator==(const iterator &) const = default;

      private:
        block *in_ = nullptr;
        uint32_t i_ = UINT32_MAX;
    };

    explicit objects(block *first) : first_(first) {}
    iterator begin() const { return iterator(first_); }
    iterator end() const { return {}; }

  private:
    block *first_;
};

/// Of one type, in the container.
struct records {
    uint64_t record_bytes = 0;
    block *first = nullptr; // all blocks, from old to new, as they lie in the file
    block *last = nullptr;
    block *with_room = nullptr; // those with free records

    /// Make a zeroed record. `allocate` returns memory for a block, aligned.
    void *make(const std::function<void *()> &allocate);
    void free(void *record);
    bool has(const void *record) const; // an address in the container
    /// Go on from `at` (NULL: the beginning) for `limit` records. Returns the next, or NULL at the end.
    void *walk_from(void *at, size_t limit, const std::function<void(void *)> &each) const;
};

} // namespace tiered

#endif
