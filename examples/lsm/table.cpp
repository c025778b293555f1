// Opening reads footer, index and filter, which stay in memory. A get then reads one block, if the filter
// does not rule it out and the cache does not have it.
#include "lsm/table.hpp"

#include <snappy.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

namespace lsm
{
namespace
{

constexpr size_t footer_bytes = 6 * 8, trailer_bytes = 1 + 4;

std::string expanded(std::string_view block, Compression how, const std::string &path,
                     uint64_t offset)
{
    const bool is_snappy = how == Compression::snappy;
    size_t bytes = SIZE_MAX;
    if (is_snappy)
        snappy::GetUncompressedLength(block.data(), block.size(), &bytes);
    else if (how == Compression::zstd)
        bytes = ZSTD_getFrameContentSize(block.data(), block.size());
    if (bytes > block_max) // the codes for errors are larger, too
        damaged(path, offset, "a compressed block has no length");
    std::string contents(bytes, '\0');
    if (is_snappy ? !snappy::RawUncompress(block.data(), block.size(), contents.data())
                  : ZSTD_decompress(contents.data(), bytes, block.data(), block.size()) != bytes)
        damaged(path, offset, "a compressed block is damaged");
    return contents;
}

BlockPlace place_in(std::string_view value)
{
    Reader in{value};
    BlockPlace place{in.varint(), in.varint()};
    return in.ok ? place : BlockPlace{UINT64_MAX, 0};
}

} // namespace

Table::Table(const Places &places, TableInfo info, BlockCache &cache)
    : info_(std::move(info)), file_(table_path(places, info_), File::Use::read), cache_(cache)
{
    if (file_.size() != info_.bytes || file_.size() < footer_bytes)
        damaged(file_.path(), file_.size(),
                "a table of " + std::to_string(info_.bytes) + " bytes ends here");
    const uint64_t at = file_.size() - footer_bytes;
    const std::string footer = file_.read(at, footer_bytes);
    Reader in{footer};
    BlockPlace filter{in.fixed<uint64_t>(), in.fixed<uint64_t>()},
        index{in.fixed<uint64_t>(), in.fixed<uint64_t>()};
    if (in.fixed<uint64_t>() != XXH3_64bits(footer.data(), 4 * 8) || in.rest != "lsmtable")
        damaged(file_.path(), at, "the end of a table is damaged");
    filter_ = *read(filter, false);
    index_ = read(index, false);
    index_at_ = index.offset;
}

Table::~Table()
{
    if (obsolete_)
        unlink(file_.path().c_str());
}

Block Table::read(BlockPlace place, bool cached) const
{
    Block block = cached ? cache_.get(info_.number, place.offset) : nullptr;
    if (block)
        return block;
    if (place.bytes > file_.size())
        damaged(file_.path(), index_at_, "the index of a table leads out of it");
    std::string text = file_.read(place.offset, place.bytes + trailer_bytes);
    const size_t covered = place.bytes + 1;
    if (fixed_at<uint32_t>(text.data() + covered) !=
        static_cast<uint32_t>(XXH3_64bits_withSeed(text.data(), covered, place.offset)))
        damaged(file_.path(), place.offset, "a block of a table is damaged");
    auto how = static_cast<Compression>(text[place.bytes]);
    text.resize(place.bytes);
    block = std::make_shared<const std::string>(
        how == Compression::none ? std::move(text)
                                 : expanded(text, how, file_.path(), place.offset));
    if (cached)
        cache_.put(info_.number, place.offset, block);
    return block;
}

class TableCursor : public Cursor
{
  public:
    TableCursor(const Table &table, bool cached)
        : table_(table), cached_(cached),
          index_(block_cursor(table.index_, table.file_.path(), table.index_at_))
    {
    }

    bool valid() const override { return block_ && block_->valid(); }
    std::string_view key() const override { return block_->key(); }
    std::string_view value() const override { return block_->value(); }

    void seek_to_first() override
    {
        index_->seek_to_first();
        enter();
        if (block_)
            block_->seek_to_first();
    }

    void seek_to_last() override
    {
        index_->seek_to_last();
        enter();
        if (block_)
            block_->seek_to_last();
    }

    void seek(std::string_view key) override
    {
        index_->seek(key); // to the first block whose last key is not before it
        enter();
        if (block_)
            block_->seek(key);
    }

    void next() override
    {
        block_->next();
        if (block_->valid())
            return;
        index_->next();
        enter();
        if (block_)
            block_->seek_to_first();
    }

    void prev() override
    {
        block_->prev();
        if (block_->valid())
            return;
        index_->prev();
        enter();
        if (block_)
            block_->seek_to_last();
    }

  private:
    void enter()
    {
        block_.reset();
        if (!index_->valid())
            return;
        BlockPlace place = place_in(index_->value());
        block_ = block_cursor(table_.read(place, cached_), table_.file_.path(), place.offset);
    }

    const Table &table_;
    bool cached_;
    std::unique_ptr<Cursor> index_, block_;
};

std::unique_ptr<Cursor> Table::cursor() const
{
    return std::make_unique<TableCursor>(*this, true);
}

std::optional<Table::Found> Table::get(std::string_view key, Sequence sequence) const
{
    TableCursor at(*this, true);
    at.seek(search_key(key, sequence));
    if (!at.valid() || user_key(at.key()) != key)
        return {};
    return Found{kind_of(at.key()), std::string(at.value())};
}

bool Table::may_have(std::string_view key) const
{
    return filter_may_have(filter_, key);
}

void Table::check() const
{
    TableCursor at(*this, false);
    std::string before;
    for (at.seek_to_first(); at.valid(); at.next()) {
        if (!before.empty() && compare(before, at.key()) >= 0)
            damaged(file_.path(), 0, "keys of a table are out of order");
        before = at.key();
    }
    if (before != info_.largest)
        damaged(file_.path(), 0, "the last key of a table is not the one that the manifest names");
}

} // namespace lsm
