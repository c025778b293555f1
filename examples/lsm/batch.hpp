// The form of a batch, in memory and in the log:
//
//     first sequence number, 8 bytes | count, 4 bytes | entries: kind, key, value (of a value)
//
// In the log, the highest bit of the count says that a write of the batch asked for `sync`.
#ifndef EXAMPLES_LSM_BATCH_HPP
#define EXAMPLES_LSM_BATCH_HPP

#include "lsm/key.hpp"
#include "lsm/lsm.hpp"

#include <functional>

namespace lsm
{

class BatchAccess
{
  public:
    static std::string_view text(const Batch &batch) { return batch.text_; }
    static Sequence sequence(std::string_view text); // the first number; 0 if there is none
    static bool is_synced(std::string_view text);
    static void set_sequence(Batch &batch, Sequence sequence, bool is_synced);
    static void append(Batch &to, const Batch &from);
};

// Call `each` with every entry's sequence number, from `first` on, kind, key and value. Returns the number
// behind the last; 0 if the bytes are no batch.
Sequence
read_batch(std::string_view text, Sequence first,
           const std::function<void(Sequence, Kind, std::string_view, std::string_view)> &each);

} // namespace lsm

#endif
