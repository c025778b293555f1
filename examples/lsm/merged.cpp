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

class Merged : public Cursor
{
  public:
    Merged(Cursors parts, const std::atomic<uint64_t> *moves)
        : parts_(std::move(parts)), moves_(moves)
    {
    }

    bool valid() const override { return at_; }
    std::string_view key() const override { return at_->key(); }
    std::string_view value() const override { return at_->value(); }

    void seek_to_first() override
    {
        begin();
        for (auto &part : parts_)
            part->seek_to_first();
        choose(Direction::forward);
    }

    void seek_to_last() override
    {
        begin();
        for (auto &part : parts_)
            part->seek_to_last();
        choose(Direction::backward);
    }

    void seek(std::string_view key) override
    {
        begin();
        for (auto &part : parts_)
            part->seek(key);
        choose(Direction::forward);
    }

    // If a part fails, this stands nowhere.
    //
    // Forwards, all parts stand at their first pair that is not before this one.
    void next() override
    {
        Cursor &at = *std::exchange(at_, nullptr);
        if (direction_ == Direction::backward)
            for (auto &part : parts_)
                if (part.get() != &at) {
                    part->seek(at.key());
                    if (part->valid() && compare(part->key(), at.key()) == 0)
                        part->next();
                }
        step(at, Direction::forward);
    }

    // Backwards, all parts stand at their last pair that is not behind this one.
    void prev() override
    {
        Cursor &at = *std::exchange(at_, nullptr);
        if (direction_ == Direction::forward)
            for (auto &part : parts_)
                if (part.get() != &at) {
                    part->seek(at.key());
                    part->valid() ? part->prev() : part->seek_to_last();
                }
        step(at, Direction::backward);
    }

  private:
    enum class Direction { forward, backward };

    void begin()
    {
        at_ = nullptr;
        seen_ = moves_ ? moves_->load(std::memory_order_acquire) : 0;
    }

    void step(Cursor &at, Direction direction)
    {
        if (moves_)
            key_ = at.key();
        direction == Direction::forward ? at.next() : at.prev();
        if (moves_ && moves_->load(std::memory_order_acquire) != seen_)
            search_anew(direction);
        choose(direction);
    }

    void search_anew(Direction direction)
    {
        begin();
        for (auto &part : parts_) {
            part->seek(key_);
            if (direction == Direction::forward) {
                while (part->valid() && compare(part->key(), key_) <= 0)
                    part->next();
            } else {
                part->valid() ? part->prev() : part->seek_to_last();
                while (part->valid() && compare(part->key(), key_) >= 0)
                    part->prev();
            }
        }
    }

    void choose(Direction direction)
    {
        const int sign = direction == Direction::forward ? 1 : -1;
        direction_ = direction;
        at_ = nullptr;
        for (auto &part : parts_)
            if (part->valid() && (!at_ || compare(part->key(), at_->key()) * sign < 0))
                at_ = part.get();
    }

    Cursors parts_;
    const std::atomic<uint64_t> *moves_;
    uint64_t seen_ = 0; // of `moves_`, before the parts searched last
    std::string key_;
    Cursor *at_ = nullptr;
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
