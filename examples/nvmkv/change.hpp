// Plans a change of a store: puts and erasures, as replacements of whole regions.
//
// Each put or erasure finds the place of its key in the newest state, as changed by the earlier ones of the
// same change. Nothing is written before Ftl::submit() gets the replacements. Then all of them are one
// change. So invariants 3 and 4 of nvmkv.hpp hold before and after the change. This includes the flags of
// pairs that a key has to pass.
#ifndef EXAMPLES_NVMKV_CHANGE_HPP
#define EXAMPLES_NVMKV_CHANGE_HPP

#include "nvmkv/ftl.hpp"
#include "nvmkv/pair.hpp"
#include "nvmkv/places.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nvmkv
{

/// The pair or tombstone of an extent. EBADMSG if the extent is neither.
PairView pair_of(Ftl::Snapshot &snapshot, const Extent &extent);
/// The pair or tombstone of a region, if the region is not empty.
std::optional<PairView> pair_in(Ftl::Snapshot &snapshot, const Places &places, uint64_t region);

class Change
{
  public:
    /// REQUIRES: nobody else changes the store until this has been submitted.
    Change(const Places &places, Ftl::Snapshot latest) : places_(places), latest_(std::move(latest))
    {
    }

    /// Put a pair. `image` is its bytes without flags, see pair_image(). EOVERFLOW if no place is free.
    void put(uint32_t pool, uint64_t hash, std::string_view key, std::string image);
    /// Erase a pair. Returns whether it was there.
    bool erase(uint32_t pool, uint64_t hash, std::string_view key);
    /// Remove the pair or tombstone of this region.
    void clear(uint64_t region);

    /// Returns the replacements for Ftl::submit(), and releases the snapshot. They are valid as long as
    /// this object.
    std::vector<Replacement> finish();

  private:
    struct Planned {
        uint64_t first;    // sector of the image
        std::string image; // empty: the region becomes empty
    };
    std::optional<PairView> at(uint64_t region);
    void store(uint64_t region, uint64_t offset, std::string image);
    void pass(uint64_t region, const PairView &pair);

    const Places &places_;
    std::optional<Ftl::Snapshot> latest_;
    std::map<uint64_t, Planned> planned_; // by region
};

} // namespace nvmkv

#endif
