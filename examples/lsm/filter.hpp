// Bloom filters (CACM 1970): whether a table may have a key. One filter a table. The bits of a key come
// from one hash by adding (Kirsch and Mitzenmacher, ESA 2006).
#ifndef EXAMPLES_LSM_FILTER_HPP
#define EXAMPLES_LSM_FILTER_HPP

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lsm
{

class FilterBuilder
{
  public:
    explicit FilterBuilder(unsigned bits) : bits_(bits) {}
    void add(std::string_view user_key);
    std::string finish() const; // empty if a key has no bits

  private:
    unsigned bits_;
    std::vector<uint64_t> hashes_;
};

// False: no key of the filter is this one. An empty filter may have every key.
bool filter_may_have(std::string_view filter, std::string_view user_key);

// The filter of a memtable, whose size is chosen before its keys are known. All bits of a key lie in one
// cache line. One thread adds; others may ask meanwhile.
class GrowingFilter
{
  public:
    explicit GrowingFilter(size_t bytes) : lines_(bytes / sizeof(Line)) {}
    void add(std::string_view user_key);
    bool may_have(std::string_view user_key) const; // without bytes: always
    bool has_bytes() const { return !lines_.empty(); }

  private:
    struct alignas(64) Line {
        std::atomic<uint64_t> words[8];
    };

    std::vector<Line> lines_;
};

} // namespace lsm

#endif
