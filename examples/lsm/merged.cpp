// Keeps every part at its next pair, and shows the least of these. Equal keys do not happen, because each
// write has a sequence number of its own.
#include "lsm/cursor.hpp"

namespace lsm
{
namespace
{

class Merged : public Cursor
{
  public:
    explicit Merged(Cursors parts) : parts_(std::move(parts)) {}

    bool valid() const override { return least_; }
    std::string_view key() const override { return least_->key(); }
    std::string_view value() const override { return least_->value(); }

    void seek_to_first() override
    {
        for (auto &part : parts_)
            part->seek_to_first();
        choose();
    }

    void seek(std::string_view key) override
    {
        for (auto &part : parts_)
            part->seek(key);
        choose();
    }

    void next() override
    {
        least_->next();
        choose();
    }

  private:
    void choose()
    {
        least_ = nullptr;
        for (auto &part : parts_)
            if (part->valid() && (!least_ || compare(part->key(), least_->key()) < 0))
                least_ = part.get();
    }

    Cursors parts_;
    Cursor *least_ = nullptr;
};

} // namespace

std::unique_ptr<Cursor> merged(Cursors cursors)
{
    if (cursors.size() == 1)
        return std::move(cursors.front());
    return std::make_unique<Merged>(std::move(cursors));
}

} // namespace lsm
