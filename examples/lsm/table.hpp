// A table: a file of sorted pairs that never changes.
//
//     block    contents | compression, 1 byte | checksum, 4 bytes
//     table    data blocks | filter | index | footer
//     index    a block: the last key of each data block, and where that block is
//     footer   offset and length of filter and index, 8 bytes each | checksum, 8 bytes | magic, 8 bytes
//
// A block's checksum covers its offset too, so a block in the wrong place is noticed.
#ifndef EXAMPLES_LSM_TABLE_HPP
#define EXAMPLES_LSM_TABLE_HPP

#include "lsm/block.hpp"
#include "lsm/cache.hpp"
#include "lsm/file.hpp"
#include "lsm/filter.hpp"
#include "lsm/lsm.hpp"
#include "lsm/places.hpp"

#include <atomic>
#include <optional>

namespace lsm
{

struct BlockPlace {
    uint64_t offset, bytes; // of the contents
};

// What the manifest knows of a table. Keys have their tags.
struct TableInfo {
    uint64_t number = 0, bytes = 0;
    std::string smallest, largest;
    bool fast = false; // it lies in the directory of fast tables
};

inline std::string table_path(const Places &places, const TableInfo &table)
{
    return numbered_path(places.of_tables(table.fast), table.number, "table");
}

// Writes a table. If it goes away before finish() returns, so does the file.
class TableBuilder
{
  public:
    TableBuilder(const Places &places, uint64_t number, bool fast, const Options &options);
    ~TableBuilder();
    void add(std::string_view key, std::string_view value); // in order
    TableInfo finish(); // the file survives a power failure; its name may not
    uint64_t bytes() const { return file_.size() + block_.bytes(); }

  private:
    void end_block();
    BlockPlace write(std::string_view contents);

    const Options &options_;
    TableInfo info_;
    File file_;
    BlockBuilder block_, index_;
    FilterBuilder filter_;
    bool finished_ = false;
};

// Reads a table. Thread-safe.
class Table
{
  public:
    Table(const Places &places, TableInfo info, BlockCache &cache);
    ~Table();
    Table(const Table &) = delete;

    // As Memtable::get(), but the value is a copy.
    struct Found {
        Kind kind;
        std::string value;
    };
    std::optional<Found> get(std::string_view user_key, Sequence sequence) const;
    bool may_have(std::string_view user_key) const; // what the filter says

    std::unique_ptr<Cursor> cursor() const; // it must be gone before the table
    void check() const;                     // read all of it

    const TableInfo &info() const { return info_; }
    void delete_when_unused() { obsolete_ = true; } // no version of the store has it any more

  private:
    friend class TableCursor;
    Block read(BlockPlace place, bool cached) const;

    TableInfo info_;
    File file_;
    BlockCache &cache_;
    Block index_;
    uint64_t index_at_;
    std::string filter_;
    std::atomic<bool> obsolete_ = false;
};

} // namespace lsm

#endif
