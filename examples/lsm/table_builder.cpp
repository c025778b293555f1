// Blocks go to the file as they are full. Index and filter wait in memory for the end.
#include "lsm/table.hpp"

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

} // namespace

TableBuilder::TableBuilder(const Places &places, uint64_t number, bool fast, const Options &options)
    : options_(options), info_{number, 0, {}, {}, fast},
      file_(table_path(places, info_), File::Use::create), filter_(options.bloom_bits)
{
}

TableBuilder::~TableBuilder()
{
    if (!finished_)
        unlink(file_.path().c_str());
}

void TableBuilder::add(std::string_view key, std::string_view value)
{
    if (block_.empty() && info_.smallest.empty())
        info_.smallest = key;
    block_.add(key, value);
    filter_.add(user_key(key));
    info_.largest = key;
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
        throw Error(EFBIG, file_.path() +
                               ": a block, the index or the filter of this table would have more "
                               "than 4 GiB; choose smaller memtable_bytes or persistent_bytes");
    Compression how = options_.compression;
    std::string block = compressed(contents, how);
    if (how == Compression::none || block.size() > contents.size() - contents.size() / 8) {
        how = Compression::none;
        block = contents;
    }
    BlockPlace place{file_.size(), block.size()};
    block.push_back(static_cast<char>(how));
    put_fixed(block, static_cast<uint32_t>(
                         XXH3_64bits_withSeed(block.data(), block.size(), place.offset)));
    file_.append(block);
    // A table that goes to the disk all at once makes others wait, who append to a log.
    if (file_.size() % write_back_bytes < block.size())
        file_.begin_write_back();
    return place;
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
    file_.append(footer);
    file_.sync();
    info_.bytes = file_.size();
    finished_ = true;
    return info_;
}

} // namespace lsm
