// Bloom filters (CACM 1970): whether a table may have a key. One filter a table. The bits of a key come
// from one hash by adding (Kirsch and Mitzenmacher, ESA 2006).
#ifndef EXAMPLES_LSM_FILTER_HPP
#define EXAMPLES_LSM_FILTER_HPP

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

} // namespace lsm

#endif
