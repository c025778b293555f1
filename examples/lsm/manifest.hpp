// The manifest: a log of edits. CURRENT names the manifest that counts, so a new one takes over in one step.
// In mode `key_lsm` it lies in the container. So a compaction there does nothing on the disk.
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
    // Which manifest says so, if it takes more edits.
    uint64_t manifest = 0;     // its number; 0: none
    bool in_container = false; // it is the container's

    bool goes_on(bool to_container) const { return to_container ? in_container : manifest != 0; }

    void apply(const Edit &edit, const Tables &opened);
};

// Read the manifest. No value: the directory has no store.
std::optional<State> read_manifest(const Storage &storage);

class Manifest
{
  public:
    // Go on with the one that `state` names, or begin another and make it count: the container's if
    // `number` is 0.
    Manifest(const Storage &storage, uint64_t number, const State &state);

    // When it returns, the edit survives a power failure. If it fails with `unknown`, it may survive or
    // not, and no further edit is possible. `after`: the version after the edit.
    void append(const Edit &edit, const Version &after, bool &unknown);

  private:
    void append_in_container(const Edit &edit, const Version &after);

    std::optional<Log> log_; // no value: in the container
    Container *container_;
    State state_; // but for the version
    uint64_t bytes_ = 0,
             whole_bytes_ = 0; // in the container: of all edits; of the first, which says all
};

} // namespace lsm

#endif
