// The checksum of a block was right when it was read. Lengths are checked all the same, since a block that is
// made wrong must not lead anybody out of it.
#include "lsm/block.hpp"

#include "lsm/file.hpp"

#include <algorithm>
#include <utility>

namespace lsm
{
namespace
{

constexpr unsigned restart_every = 16;

class BlockCursor : public Cursor
{
  public:
    BlockCursor(Block block, const std::string &path, uint64_t offset)
        : block_(std::move(block)), path_(path), offset_(offset)
    {
        const size_t size = block_.text.size();
        if (size >= sizeof(uint32_t))
            restarts_ = fixed_at<uint32_t>(block_.text.data() + size - sizeof(uint32_t));
        uint64_t tail = (uint64_t(restarts_) + 1) * sizeof(uint32_t);
        if (size < sizeof(uint32_t) || tail > size)
            damaged(path_, offset_, "a block is too short");
        end_ = at_ = next_ = size - tail;
    }

    bool valid() const override { return at_ < end_; }
    std::string_view key() const override { return key_; }
    std::string_view value() const override { return value_; }
    void next() override { read(next_); }

    void seek_to_first() override
    {
        key_.clear();
        read(0);
    }

    void seek_to_last() override
    {
        go_to(restarts_ ? restarts_ - 1 : 0);
        while (valid() && next_ < end_)
            next();
    }

    // Go through the entries from the last restart before this one.
    void prev() override
    {
        const uint64_t here = at_;
        if (here == 0) {
            at_ = end_;
            return;
        }
        uint32_t low = 0, high = restarts_; // the restart is in [low, high)
        while (low + 1 < high) {
            const uint32_t middle = low + (high - low) / 2;
            (restart(middle) < here ? low : high) = middle;
        }
        go_to(low);
        while (next_ < here)
            next();
    }

    void seek(std::string_view wanted) override
    {
        uint32_t low = 0, high = restarts_; // the last restart before `wanted` is in [low, high)
        while (low + 1 < high) {
            uint32_t middle = low + (high - low) / 2;
            go_to(middle);
            (valid() && compare(key_, wanted) < 0 ? low : high) = middle;
        }
        go_to(low);
        while (valid() && compare(key_, wanted) < 0)
            next();
    }

  private:
    uint64_t restart(uint32_t n) const
    {
        return fixed_at<uint32_t>(block_.text.data() + end_ + n * sizeof(uint32_t));
    }

    void go_to(uint32_t n)
    {
        key_.clear();
        read(restarts_ ? restart(n) : end_);
    }

    void read(uint64_t at)
    {
        at_ = at;
        if (at >= end_)
            return;
        Reader in{block_.text.substr(at, end_ - at)};
        uint64_t shared = in.varint(), own = in.varint(), length = in.varint();
        std::string_view own_key = in.bytes(own);
        value_ = in.bytes(length);
        if (!in.ok || shared > key_.size() || shared + own < tag_bytes)
            damaged(path_, offset_ + at, "an entry of a block is damaged");
        key_.resize(shared);
        key_ += own_key;
        next_ = end_ - in.rest.size();
    }

    Block block_;
    const std::string &path_;
    uint64_t offset_;
    uint32_t restarts_ = 0;
    uint64_t end_, at_, next_; // of the entries; where this entry begins, and the next
    std::string key_;
    std::string_view value_;
};

} // namespace

void BlockBuilder::add(std::string_view key, std::string_view value)
{
    size_t shared = 0;
    if (restarts_.empty() || count_ == restart_every) {
        restarts_.push_back(static_cast<uint32_t>(text_.size()));
        count_ = 0;
    } else {
        shared = static_cast<size_t>(std::mismatch(key.begin(),
                                                   key.begin() + std::min(key.size(), last_.size()),
                                                   last_.begin())
                                         .first -
                                     key.begin());
    }
    put_varint(text_, shared);
    put_varint(text_, key.size() - shared);
    put_varint(text_, value.size());
    text_ += key.substr(shared);
    text_ += value;
    last_ = key;
    count_++;
}

std::string BlockBuilder::finish()
{
    for (uint32_t restart : restarts_)
        put_fixed(text_, restart);
    put_fixed(text_, static_cast<uint32_t>(restarts_.size()));
    restarts_.clear();
    return std::exchange(text_, {});
}

std::unique_ptr<Cursor> block_cursor(Block block, const std::string &path, uint64_t offset)
{
    return std::make_unique<BlockCursor>(std::move(block), path, offset);
}

} // namespace lsm
