// What the generator tells the store about a durable type.
#ifndef EXAMPLES_TIERED_SCHEMA_HPP
#define EXAMPLES_TIERED_SCHEMA_HPP

#include "tiered/slot.hpp"

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

namespace tiered
{

struct field {
    std::string_view name;
    std::string_view type;
    size_t offset; // in the record
    bool in_slot;
    std::array<std::string_view, 4> tiers; // in order of preference; empty ones at the end
};

/// How often a field was read and written, and how many bytes. Counted by a build with TIERED_PROFILE. If
/// several threads count at once, some counts are lost.
struct access_counts {
    std::atomic<uint64_t> reads, writes, read_bytes, written_bytes;
};

class schema
{
  public:
    /// Enters itself in the list of all types of the program. `counts`: one for each field; may be NULL.
    schema(std::string_view name, size_t record_bytes, std::vector<field> fields,
           access_counts *counts);
    schema(const schema &) = delete;

    std::string_view name() const { return name_; }
    size_t record_bytes() const { return record_bytes_; }
    const std::vector<field> &fields() const { return fields_; }
    access_counts *counts() const { return counts_; }

    /// What the layout of a record depends on. Two programs whose texts are the same share a store.
    std::string text() const;

    /// What differs, in words; empty if nothing does.
    std::string difference(std::string_view stored_text) const;

    /// Those of libraries that are loaded later are not in it. Any thread may ask.
    static std::vector<const schema *> all();

  private:
    const std::string_view name_;
    const size_t record_bytes_;
    const std::vector<field> fields_;
    access_counts *const counts_;
};

#ifdef TIERED_PROFILE
constexpr bool is_profiled = true;
#else
constexpr bool is_profiled = false;
#endif

/// One load and one store for each count.
inline void add(std::atomic<uint64_t> &counter, uint64_t by)
{
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

inline void count_read(access_counts &field, size_t bytes)
{
    if constexpr (is_profiled) {
        add(field.reads, 1);
        add(field.read_bytes, bytes);
    }
}

inline void count_write(access_counts &field, size_t bytes)
{
    if constexpr (is_profiled) {
        add(field.writes, 1);
        add(field.written_bytes, bytes);
    }
}

} // namespace tiered

#endif
