#include "nvmkv/change.hpp"

#include <cerrno>

namespace nvmkv
{

PairView pair_of(Ftl::Snapshot &snapshot, const Extent &extent)
{
    PairView pair;
    if (!parse_pair(snapshot.read(extent), pair))
        fail(EBADMSG, snapshot.path() + ": sector " + std::to_string(extent.first) +
                          ": this is no pair; restore the file from a backup");
    return pair;
}

std::optional<PairView> pair_in(Ftl::Snapshot &snapshot, const Places &places, uint64_t region)
{
    const Range range = places.range(region);
    auto extent = snapshot.at_or_after(range.first);
    if (!extent || extent->first >= range.end())
        return std::nullopt;
    return pair_of(snapshot, *extent);
}

std::optional<PairView> Change::at(uint64_t region)
{
    auto planned = planned_.find(region);
    if (planned == planned_.end())
        return pair_in(*latest_, places_, region);
    PairView pair;
    if (!parse_pair(planned->second.image, pair))
        return std::nullopt;
    return pair;
}

void Change::store(uint64_t region, uint64_t offset, std::string image)
{
    planned_[region] = {places_.range(region).first + offset, std::move(image)};
}

// Set the flag *passed* of a pair or tombstone: a key has gone to a later place.
void Change::pass(uint64_t region, const PairView &pair)
{
    if (pair.passed())
        return;
    std::string image = pair_image(pair.header.pool, pair.header.hash, pair.key, pair.value);
    set_flags(image, pair.header.flags | pair_passed);
    store(region, pair.header.pool, std::move(image));
}

void Change::put(uint32_t pool, uint64_t hash, std::string_view key, std::string image)
{
    std::optional<unsigned> place; // the first free place, or the key's own
    uint32_t flags = 0;            // flags of the old pair or tombstone there, which stay
    unsigned probe = 0;
    for (; probe < probes_max; probe++) {
        auto pair = at(places_.region(hash, probe));
        if (!pair) {
            place = place.value_or(probe);
            break;
        }
        if (pair->is(pool, hash, key)) {
            place = probe;
            flags = pair->header.flags;
            break;
        }
        if (pair->tombstone() && !place) {
            place = probe;
            flags = pair_passed;
        }
        if (!pair->passed() && place)
            break; // no key has gone to a later place
    }
    if (!place)
        fail(EOVERFLOW, latest_->path() + ": all " + std::to_string(probes_max) +
                            " places of the key are taken; create a store with more key bits");
    // If the key exists, it is replaced in place, even if an earlier place has become free: pairs never
    // move.
    for (unsigned i = 0; i < *place; i++) {
        const uint64_t region = places_.region(hash, i);
        pass(region, *at(region));
    }
    set_flags(image, flags);
    store(places_.region(hash, *place), pool, std::move(image));
}

bool Change::erase(uint32_t pool, uint64_t hash, std::string_view key)
{
    for (unsigned probe = 0; probe < probes_max; probe++) {
        const uint64_t region = places_.region(hash, probe);
        auto pair = at(region);
        if (!pair)
            return false;
        if (pair->is(pool, hash, key)) {
            clear(region);
            return true;
        }
        if (!pair->passed())
            return false;
    }
    return false;
}

void Change::clear(uint64_t region)
{
    auto pair = at(region);
    if (!pair || !pair->passed()) {
        store(region, 0, {});
        return;
    }
    std::string image = pair_image(0, 0, {}, {});
    set_flags(image, pair_passed | pair_tombstone);
    store(region, places_.tombstone_offset(), std::move(image));
}

std::vector<Replacement> Change::finish()
{
    latest_.reset();
    std::vector<Replacement> replacements;
    for (const auto &[region, planned] : planned_)
        replacements.push_back({places_.range(region), {planned.first, planned.image}});
    return replacements;
}

} // namespace nvmkv
