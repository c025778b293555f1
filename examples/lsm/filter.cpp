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

// The same for a filter of lines: the low 36 bits of a hash choose four bits of a line.
size_t line_of(uint64_t hash, size_t lines)
{
    return (hash >> 36) % lines;
}

template <class Words, class Each> bool all_words(Words &words, uint64_t hash, Each each)
{
    for (unsigned shift = 0; shift < 36; shift += 9)
        if (!each(words[hash >> shift & 7], UINT64_C(1) << (hash >> shift >> 3 & 63)))
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

bool GrowingFilter::may_have(std::string_view user_key) const
{
    if (lines_.empty())
        return true;
    const uint64_t hash = XXH3_64bits(user_key.data(), user_key.size());
    return all_words(lines_[line_of(hash, lines_.size())].words, hash,
                     [](const std::atomic<uint64_t> &word, uint64_t bit) {
                         return (word.load(std::memory_order_relaxed) & bit) != 0;
                     });
}

void GrowingFilter::add(std::string_view user_key)
{
    if (lines_.empty())
        return;
    const uint64_t hash = XXH3_64bits(user_key.data(), user_key.size());
    all_words(lines_[line_of(hash, lines_.size())].words, hash,
              [](std::atomic<uint64_t> &word, uint64_t bit) {
                  word.fetch_or(bit, std::memory_order_relaxed);
                  return true;
              });
}

} // namespace lsm
