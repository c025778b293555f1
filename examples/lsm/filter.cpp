// The last byte says how many bits a key has. With 10 bits a key, one of a hundred misses looks like a hit.
#include "lsm/filter.hpp"

#include <algorithm>
#include <xxhash.h>

namespace lsm
{
namespace
{

// Call each(bit) for the bits of a key, until it returns false.
template <class Each> bool all_bits(uint64_t hash, unsigned probes, uint64_t bits, Each each)
{
    const uint64_t step = hash >> 33 | hash << 31;
    for (unsigned i = 0; i < probes; i++, hash += step)
        if (!each(hash % bits))
            return false;
    return true;
}

} // namespace

void FilterBuilder::add(std::string_view user_key)
{
    uint64_t hash = XXH3_64bits(user_key.data(), user_key.size());
    if (bits_ && (hashes_.empty() || hashes_.back() != hash)) // versions of a key follow each other
        hashes_.push_back(hash);
}

std::string FilterBuilder::finish() const
{
    if (hashes_.empty())
        return {};
    const unsigned probes = std::clamp(bits_ * 69 / 100, 1U, 30U); // ln 2 times the bits is best
    std::string filter((hashes_.size() * bits_ + 7) / 8, '\0');
    for (uint64_t hash : hashes_)
        all_bits(hash, probes, filter.size() * 8, [&](uint64_t bit) {
            filter[bit / 8] = static_cast<char>(filter[bit / 8] | 1 << bit % 8);
            return true;
        });
    filter.push_back(static_cast<char>(probes));
    return filter;
}

bool filter_may_have(std::string_view filter, std::string_view user_key)
{
    if (filter.size() < 2)
        return true;
    const uint64_t hash = XXH3_64bits(user_key.data(), user_key.size());
    return all_bits(hash, static_cast<unsigned char>(filter.back()), (filter.size() - 1) * 8,
                    [&](uint64_t bit) { return filter[bit / 8] >> bit % 8 & 1; });
}

} // namespace lsm
