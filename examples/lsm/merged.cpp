// Keeps every part at its next pair, and shows the least of these. Equal keys do not happen, because each
// write has a sequence number of its own.
#include "lsm/cursor.hpp"

#include <utility>

namespace lsm
{
namespace
{

class Merged : public Cursor
{
  public:
    explicit Merged(Cursors parts) : parts_(std::move(parts)) {}

    bool valid() const override { return at_; }
    std::string_view key() const override { return at_->key(); }
    std::string_view value() const override { return at_->value(); }

    void seek_to_first() override
    {
        at_ = nullptr;
        for (auto &part : parts_)
            part->seek_to_first();
        choose(Direction::forward);
    }

    void seek_to_last() override
    {
        at_ = nullptr;
        for (auto &part : parts_)
            part->seek_to_last();
        choose(Direction::backward);
    }

    void seek(std::string_view key) override
    {
        at_ = nullptr;
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
        at.next();
        choose(Direction::forward);
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
        at.prev();
        choose(Direction::backward);
    }

  private:
    enum class Direction { forward, backward };

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
    Cursor *at_ = nullptr;
    Direction direction_ = Direction::forward;
};

} // namespace

std::unique_ptr<Cursor> merged(Cursors cursors)
{
    if (cursors.size() == 1)
        return std::move(cursors.front());
    return std::make_unique<Merged>(std::move(cursors));
}

} // namespace lsm
