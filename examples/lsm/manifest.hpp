// The manifest: a log of edits. CURRENT names the manifest that counts, so a new one takes over in one step.
#ifndef EXAMPLES_LSM_MANIFEST_HPP
#define EXAMPLES_LSM_MANIFEST_HPP

#include "lsm/log.hpp"
#include "lsm/version.hpp"

namespace lsm
{

// What the manifest says in the end.
struct State {
    Version version;
    uint64_t log = 0, next_number = 1;
    Sequence last_sequence = 0;
    uint64_t container_id = 0, fast_id = 0;
    uint64_t manifest = 0; // number of the manifest that says so, if it takes more edits; else 0

    void apply(const Edit &edit, const Tables &opened);
};

// Read the manifest. No value: the directory has no store.
std::optional<State> read_manifest(const Places &places, BlockCache &cache);

class Manifest
{
  public:
    // Go on with the one that `state` names, or begin manifest `number` and make it count.
    Manifest(const std::string &directory, uint64_t number, const State &state);

    // When it returns, the edit survives a power failure. If it fails with `unknown`, it may survive or
    // not, and no further edit is possible.
    void append(const Edit &edit, bool &unknown);

  private:
    Log log_;
};

} // namespace lsm

#endif
