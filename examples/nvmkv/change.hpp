// A change of a store in the making: puts and erasures, as replacements of whole regions.
//
// Each finds the place of its key in the newest state, and sees what those before it in the same
// change will have done. Nothing is written before Ftl::submit() gets the replacements, and then
// all of them are one change. So invariants 3 and 4 of nvmkv.hpp, among them the flags of other
// pairs that a key has to pass, hold after it or as before.
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

/// The pair or tombstone that an extent is; EBADMSG if it is none.
PairView pair_of(Ftl::Snapshot &snapshot, const Extent &extent);
/// That of a region, if anything is there.
std::optional<PairView> pair_in(Ftl::Snapshot &snapshot, const Places &places, uint64_t region);

class Change
{
  public:
    /// REQUIRES: nobody else changes the store until this has been submitted.
    Change(const Places &places, Ftl::Snapshot latest) : places_(places), latest_(std::move(latest))
    {
    }

    /// `image` is the pair, see pair_image(), without flags. EOVERFLOW if it has no place.
    void put(uint32_t pool, uint64_t hash, std::string_view key, std::string image);
    /// Whether it was there.
    bool erase(uint32_t pool, uint64_t hash, std::string_view key);
    /// The pair or tombstone of this region, whatever it is.
    void clear(uint64_t region);

    /// Hands out what is to be submitted, and lets the snapshot go. Valid as long as this.
    std::vector<Replacement> finish();

  private:
    struct Planned {
        uint64_t first;    // sector of the image
        std::string image; // empty: nothing is there any more
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
