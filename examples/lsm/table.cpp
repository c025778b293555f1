// Opening reads footer, index and filter, which stay in memory. A get then reads one block, if the filter
// does not rule it out and the cache does not have it. In the container, all of this is in memory anyway.
#include "lsm/table.hpp"

#include <algorithm>
#include <snappy.h>
#include <unistd.h>
#include <utility>
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

std::string Storage::path_of(const TableInfo &table) const
{
    return numbered_path(table.place == TablePlace::fast ? places.fast : places.directory,
                         table.number, "table");
}

void delete_table(const Storage &storage, const TableInfo &table)
{
    if (table.in_container())
        storage.container->drop_table(table.number);
    else
        unlink(storage.path_of(table).c_str());
}

NewTables::~NewTables()
{
    for (const TableInfo &table : tables_)
        delete_table(storage_, table);
}

std::vector<TableInfo> NewTables::take()
{
    for (const auto &[place, directory] :
         {std::pair(TablePlace::directory, &storage_.places.directory),
          {TablePlace::fast, &storage_.places.fast}})
        if (std::any_of(tables_.begin(), tables_.end(),
                        [place = place](const TableInfo &t) { return t.place == place; }))
            sync_directory(*directory);
    return std::exchange(tables_, {});
}

Table::Table(const Storage &storage, TableInfo info)
    : storage_(storage), info_(std::move(info)),
      path_(info_.in_container()
                ? storage_.container->path() + ": table " + std::to_string(info_.number)
                : storage_.path_of(info_))
{
    if (info_.in_container())
        memory_ = storage_.container->table(info_.number);
    else
        file_ = File(path_, File::Use::read);
    const uint64_t size = info_.in_container() ? memory_.size() : file_.size();
    if (size != info_.bytes || size < footer_bytes)
        damaged(path_, size, "a table of " + std::to_string(info_.bytes) + " bytes ends here");
    const uint64_t at = size - footer_bytes;
    const Block footer = part(at, footer_bytes);
    Reader in{footer.text};
    BlockPlace filter{in.fixed<uint64_t>(), in.fixed<uint64_t>()},
        index{in.fixed<uint64_t>(), in.fixed<uint64_t>()};
    if (in.fixed<uint64_t>() != XXH3_64bits(footer.text.data(), 4 * 8) || in.rest != "lsmtable")
        damaged(path_, at, "the end of a table is damaged");
    index_at_ = index.offset;
    filter_ = read(filter, false);
    index_ = read(index, false);
    for (const auto &[number, bytes] : info_.values) {
        values_.push_back(storage_.values.get(number));
        values_.back()->add_user();
    }
}

Table::~Table()
{
    if (obsolete_)
        delete_table(storage_, info_);
    else
        for (const auto &file : values_)
            file->remove_user();
}

void Table::delete_when_unused()
{
    obsolete_ = true;
    for (const auto &file : values_) {
        file->remove_user();
        file->delete_if_unused();
    }
}

Block Table::part(uint64_t offset, size_t bytes) const
{
    if (!info_.in_container())
        return Block(file_.read(offset, bytes));
    if (offset > memory_.size() || bytes > memory_.size() - offset)
        damaged(path_, memory_.size(), "the table ends too early");
    return Block(memory_.substr(offset, bytes));
}

std::string Table::bytes() const
{
    return info_.in_container() ? std::string(memory_) : file_.read(0, file_.size());
}

// What the container has as it is to be read needs no cache.
Block Table::read(BlockPlace place, bool cached) const
{
    cached &= !info_.in_container();
    if (auto block = cached ? storage_.cache.get(info_.number, place.offset) : std::nullopt)
        return *block;
    if (place.bytes > info_.bytes)
        damaged(path_, index_at_, "the index of a table leads out of it");
    Block block = part(place.offset, place.bytes + trailer_bytes);
    const size_t covered = place.bytes + 1;
    if (fixed_at<uint32_t>(block.text.data() + covered) !=
        static_cast<uint32_t>(XXH3_64bits_withSeed(block.text.data(), covered, place.offset)))
        damaged(path_, place.offset, "a block of a table is damaged");
    const auto how = static_cast<Compression>(block.text[place.bytes]);
    block.text = block.text.substr(0, place.bytes);
    if (how != Compression::none)
        block = Block(expanded(block.text, how, path_, place.offset));
    if (cached)
        storage_.cache.put(info_.number, place.offset, block);
    return block;
}

std::string Table::value_at(std::string_view text) const
{
    const auto address = Address::of(text);
    const auto file =
        std::lower_bound(values_.begin(), values_.end(), address ? address->number : UINT64_MAX,
                         [](const auto &f, uint64_t number) { return f->number() < number; });
    if (!address || file == values_.end() || (*file)->number() != address->number)
        damaged(path_, 0, "a table has the address of a value that is in none of its files");
    return (*file)->read(*address);
}

class TableCursor : public Cursor
{
  public:
    TableCursor(const Table &table, bool cached, Table::Values values)
        : table_(table), cached_(cached), values_(values),
          index_(block_cursor(table.index_, table.path_, table.index_at_))
    {
    }

    bool valid() const override { return block_ && block_->valid(); }
    std::string_view key() const override { return block_->key(); }

    std::string_view value() const override
    {
        if (values_ == Table::Values::addresses || kind_of(key()) != Kind::address)
            return block_->value();
        if (!value_)
            value_ = table_.value_at(block_->value());
        return *value_;
    }

    void seek_to_first() override
    {
        value_.reset();
        index_->seek_to_first();
        enter();
        if (block_)
            block_->seek_to_first();
    }

    void seek_to_last() override
    {
        value_.reset();
        index_->seek_to_last();
        enter();
        if (block_)
            block_->seek_to_last();
    }

    void seek(std::string_view key) override
    {
        value_.reset();
        index_->seek(key); // to the first block whose last key is not before it
        enter();
        if (block_)
            block_->seek(key);
    }

    void next() override
    {
        value_.reset();
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
        value_.reset();
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
        block_ = block_cursor(table_.read(place, cached_), table_.path_, place.offset);
    }

    const Table &table_;
    const bool cached_;
    const Table::Values values_;
    std::unique_ptr<Cursor> index_, block_;
    mutable std::optional<std::string> value_; // that was read for this pair
};

std::unique_ptr<Cursor> Table::cursor(Values values) const
{
    return std::make_unique<TableCursor>(*this, true, values);
}

std::optional<Table::Found> Table::get(std::string_view key, Sequence sequence) const
{
    TableCursor at(*this, true, Values::addresses);
    at.seek(search_key(key, sequence));
    if (!at.valid() || user_key(at.key()) != key)
        return {};
    if (kind_of(at.key()) == Kind::address)
        return Found{Kind::value, value_at(at.value())};
    return Found{kind_of(at.key()), std::string(at.value())};
}

bool Table::may_have(std::string_view key) const
{
    return filter_may_have(filter_.text, key);
}

void Table::check() const
{
    TableCursor at(*this, false, Values::read);
    std::string before;
    for (at.seek_to_first(); at.valid(); at.next()) {
        if (!before.empty() && compare(before, at.key()) >= 0)
            damaged(path_, 0, "keys of a table are out of order");
        before = at.key();
        at.value();
    }
    if (before != info_.largest)
        damaged(path_, 0, "the last key of a table is not the one that the manifest names");
}

} // namespace lsm
