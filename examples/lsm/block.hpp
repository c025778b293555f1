// A block: sorted pairs in the form of files, the unit of reading and caching.
//
//     entry    shared, varint | own, varint | length of the value, varint | the key's own bytes | the value
//     block    entries | restarts: offset of an entry, 4 bytes each | their number, 4 bytes
//
// The first `shared` bytes of a key are those of the key before. At every 16th entry, a *restart*,
// nothing is shared, so a search goes through the restarts by halves.
#ifndef EXAMPLES_LSM_BLOCK_HPP
#define EXAMPLES_LSM_BLOCK_HPP

#include "lsm/cursor.hpp"

namespace lsm
{

// Bytes of any block, also of an index or a filter: restarts have 32 bits.
constexpr uint64_t block_max = UINT32_MAX;

class BlockBuilder
{
  public:
    void add(std::string_view key, std::string_view value); // in order
    std::string finish();                                   // the block; the builder is empty then
    size_t bytes() const { return text_.size() + (restarts_.size() + 1) * sizeof(uint32_t); }
    bool empty() const { return text_.empty(); }

  private:
    std::string text_, last_;
    std::vector<uint32_t> restarts_;
    unsigned count_ = 0; // since the last restart
};

// A block in memory, shared by the cache and by cursors, or in the container.
struct Block {
    std::string_view text{};
    std::shared_ptr<const void> owner{}; // NULL in the container, where its table keeps it

    Block() = default;
    explicit Block(std::string_view text) : text(text) {}
    explicit Block(std::string own)
    {
        auto kept = std::make_shared<const std::string>(std::move(own));
        text = *kept;
        owner = std::move(kept);
    }
};

// Walk through a block. `path` and `offset` say where it stands, for errors: EBADMSG if an entry does not
// fit. The path must outlive the cursor.
std::unique_ptr<Cursor> block_cursor(Block block, const std::string &path, uint64_t offset);

} // namespace lsm

#endif
