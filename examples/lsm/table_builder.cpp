// Blocks go to the file as they are full. Index and filter wait in memory for the end.
#include "lsm/table.hpp"

#include <algorithm>
#include <cerrno>
#include <snappy.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

namespace lsm
{
namespace
{

constexpr uint64_t write_back_bytes = 1 << 20;

std::string compressed(std::string_view contents, Compression how)
{
    std::string block;
    if (how == Compression::snappy)
        snappy::Compress(contents.data(), contents.size(), &block);
    if (how == Compression::zstd) {
        block.resize(ZSTD_compressBound(contents.size()));
        const size_t bytes =
            ZSTD_compress(block.data(), block.size(), contents.data(), contents.size(), 1);
        block.resize(ZSTD_isError(bytes) ? contents.size() : bytes);
    }
    return block;
}

// It survives a power failure; its name may not.
void write_file(const Storage &storage, const TableInfo &info, std::string_view bytes)
{
    File file(storage.path_of(info), File::Use::create);
    try {
        file.append(bytes);
        file.sync();
    } catch (...) {
        unlink(file.path().c_str());
        throw;
    }
}

} // namespace

TableBuilder::TableBuilder(const Storage &storage, uint64_t number, TablePlace place,
                           const Options &options)
    : storage_(storage), options_(options), info_{number, 0, {}, {}, place, {}},
      filter_(options.bloom_bits)
{
    if (place != TablePlace::container)
        file_ = File(storage.path_of(info_), File::Use::create);
}

TableBuilder::~TableBuilder()
{
    if (!finished_ && !info_.in_container())
        unlink(storage_.path_of(info_).c_str());
}

void TableBuilder::append(std::string_view bytes)
{
    if (info_.in_container())
        text_ += bytes;
    else
        file_.append(bytes);
}

void TableBuilder::add(std::string_view key, std::string_view value)
{
    if (block_.empty() && info_.smallest.empty())
        info_.smallest = key;
    block_.add(key, value);
    filter_.add(user_key(key));
    info_.largest = key;
    if (kind_of(key) == Kind::address)
        if (const auto address = Address::of(value))
            values_[address->number] += address->space();
    if (block_.bytes() >= options_.block_bytes)
        end_block();
}

void TableBuilder::end_block()
{
    BlockPlace place = write(block_.finish());
    std::string value;
    put_varint(value, place.offset);
    put_varint(value, place.bytes);
    index_.add(info_.largest, value);
}

BlockPlace TableBuilder::write(std::string_view contents)
{
    if (contents.size() > block_max)
        throw Error(EFBIG, storage_.path_of(info_) +
                               ": a block, the index or the filter of this table would have more "
                               "than 4 GiB; choose smaller memtable_bytes or persistent_bytes");
    Compression how = options_.compression;
    std::string block = compressed(contents, how);
    if (how == Compression::none || block.size() > contents.size() - contents.size() / 8) {
        how = Compression::none;
        block = contents;
    }
    BlockPlace place{size(), block.size()};
    block.push_back(static_cast<char>(how));
    put_fixed(block, static_cast<uint32_t>(
                         XXH3_64bits_withSeed(block.data(), block.size(), place.offset)));
    append(block);
    // A table that goes to the disk all at once makes others wait, who append to a log.
    if (!info_.in_container() && file_.size() % write_back_bytes < block.size())
        file_.begin_write_back();
    return place;
}

void copy_table(const Table &table, const Storage &storage, const TableInfo &info)
{
    if (info.in_container())
        return storage.container->add_table(info.number, table.bytes());
    NewTables made(storage);
    write_file(storage, info, table.bytes());
    made.add(info);
    made.take();
}

TableInfo TableBuilder::finish()
{
    if (!block_.empty())
        end_block();
    std::string footer;
    for (const std::string &part : {filter_.finish(), index_.finish()}) {
        BlockPlace place = write(part);
        put_fixed(footer, place.offset);
        put_fixed(footer, place.bytes);
    }
    put_fixed(footer, static_cast<uint64_t>(XXH3_64bits(footer.data(), footer.size())));
    footer += "lsmtable";
    append(footer);
    info_.bytes = size();
    info_.values.assign(values_.begin(), values_.end());
    std::sort(info_.values.begin(), info_.values.end());
    if (info_.in_container())
        add_to_container();
    else
        file_.sync();
    finished_ = true;
    return info_;
}

// It is one object. There may be room, but in pieces.
void TableBuilder::add_to_container()
{
    try {
        storage_.container->add_table(info_.number, text_);
    } catch (const Error &error) {
        if (error.code().value() != ENOSPC)
            throw;
        info_.place = TablePlace::directory;
        write_file(storage_, info_, text_);
    }
}

} // namespace lsm
