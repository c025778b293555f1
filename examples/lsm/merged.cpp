// Keeps every part at its next pair, and shows the least of these. Each write has a sequence number of its
// own, so few keys are in two parts. But a pair that has just moved from part to part may come twice. And if
// a list gets full while a memtable moves to it, both have the pairs that have moved.
//
// When pairs have moved, no part need be where it should. So all parts search anew, in their order. A pair
// that moves meanwhile is found by the earlier part if it has not moved yet, and else by the later one.
#include "lsm/cursor.hpp"

#include <utility>

namespace lsm
{
namespace
{

constexpr size_t nowhere = SIZE_MAX;

class Merged : public Cursor
{
  public:
    Merged(Cursors parts, const std::atomic<uint64_t> *moves)
        : parts_(std::move(parts)), keys_(parts_.size()), moves_(moves)
    {
    }

    bool valid() const override { return at_ != nowhere; }
    std::string_view key() const override { return keys_[at_]; }
    std::string_view value() const override { return parts_[at_]->value(); }

    void seek_to_first() override
    {
        begin();
        move_all([](Cursor &part) { part.seek_to_first(); });
        choose(Direction::forward);
    }

    void seek_to_last() override
    {
        begin();
        move_all([](Cursor &part) { part.seek_to_last(); });
        choose(Direction::backward);
    }

    void seek(std::string_view key) override
    {
        begin();
        move_all([&](Cursor &part) { part.seek(key); });
        choose(Direction::forward);
    }

    // If a part fails, this stands nowhere.
    //
    // Forwards, all parts stand at their first pair that is not before this one.
    void next() override
    {
        const size_t at = std::exchange(at_, nowhere);
        if (direction_ == Direction::backward)
            move_all_but(at, [&](Cursor &part) {
                part.seek(keys_[at]);
                if (part.valid() && compare(part.key(), keys_[at]) == 0)
                    part.next();
            });
        step(at, Direction::forward);
    }

    // Backwards, all parts stand at their last pair that is not behind this one.
    void prev() override
    {
        const size_t at = std::exchange(at_, nowhere);
        if (direction_ == Direction::forward)
            move_all_but(at, [&](Cursor &part) {
                part.seek(keys_[at]);
                part.valid() ? part.prev() : part.seek_to_last();
            });
        step(at, Direction::backward);
    }

  private:
    enum class Direction { forward, backward };

    void begin()
    {
        at_ = nowhere;
        seen_ = moves_ ? moves_->load(std::memory_order_acquire) : 0;
    }

    template <class Move> void move(size_t i, Move how)
    {
        how(*parts_[i]);
        keys_[i] = parts_[i]->valid() ? parts_[i]->key() : std::string_view();
    }

    template <class Move> void move_all_but(size_t stays, Move how)
    {
        for (size_t i = 0; i < parts_.size(); i++)
            if (i != stays)
                move(i, how);
    }

    template <class Move> void move_all(Move how) { move_all_but(nowhere, how); }

    void step(size_t at, Direction direction)
    {
        if (moves_)
            key_ = keys_[at];
        move(at,
             [&](Cursor &part) { direction == Direction::forward ? part.next() : part.prev(); });
        if (moves_ && moves_->load(std::memory_order_acquire) != seen_)
            search_anew(direction);
        choose(direction);
    }

    void search_anew(Direction direction)
    {
        begin();
        move_all([&](Cursor &part) {
            part.seek(key_);
            if (direction == Direction::forward) {
                while (part.valid() && compare(part.key(), key_) <= 0)
                    part.next();
            } else {
                part.valid() ? part.prev() : part.seek_to_last();
                while (part.valid() && compare(part.key(), key_) >= 0)
                    part.prev();
            }
        });
    }

    void choose(Direction direction)
    {
        const int sign = direction == Direction::forward ? 1 : -1;
        direction_ = direction;
        at_ = nowhere;
        for (size_t i = 0; i < keys_.size(); i++)
            if (!keys_[i].empty() && (at_ == nowhere || compare(keys_[i], keys_[at_]) * sign < 0))
                at_ = i;
    }

    Cursors parts_;
    std::vector<std::string_view> keys_; // where the parts stand; empty: at the end
    const std::atomic<uint64_t> *moves_;
    uint64_t seen_ = 0; // of `moves_`, before the parts searched last
    std::string key_;
    size_t at_ = nowhere; // the part with the pair that this shows
    Direction direction_ = Direction::forward;
};

} // namespace

std::unique_ptr<Cursor> merged(Cursors cursors, const std::atomic<uint64_t> *moves)
{
    if (cursors.size() == 1)
        return std::move(cursors.front());
    return std::make_unique<Merged>(std::move(cursors), moves);
}

} // namespace lsm
