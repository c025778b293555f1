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

using EachEntry = std::function<void(Sequence, Kind, std::string_view key, std::string_view value)>;

// The entries of a write: one, or all of a batch. Keys and values stay in the caller's memory. So a write
// to a container copies each value once.
class Entries
{
  public:
    explicit Entries(const Batch &batch) : batch_(&batch) {}
    Entries(Kind kind, std::string_view key, std::string_view value = {}); // EINVAL, as Batch

    uint32_t count() const { return batch_ ? batch_->count() : 1; }
    size_t bytes() const { return batch_ ? batch_->bytes() : key_.size() + value_.size(); }
    void append_to(Batch &batch) const;
    Sequence each(Sequence first, const EachEntry &each) const; // the number behind the last

  private:
    const Batch *batch_ = nullptr;
    Kind kind_ = Kind::value;
    std::string_view key_{}, value_{};
};

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
Sequence read_batch(std::string_view text, Sequence first, const EachEntry &each);

} // namespace lsm

#endif
