// A table: sorted pairs that never change, in a file or in the container.
//
//     block    contents | compression, 1 byte | checksum, 4 bytes
//     table    data blocks | filter | index | footer
//     index    a block: the last key of each data block, and where that block is
//     footer   offset and length of filter and index, 8 bytes each | checksum, 8 bytes | magic, 8 bytes
//
// A block's checksum covers its offset too, so a block in the wrong place is noticed.
//
// In mode `key_lsm`, a pair may have the address of its value (values.hpp). The form is the same in a file
// and in the container, so a table moves there and back as it is.
#ifndef EXAMPLES_LSM_TABLE_HPP
#define EXAMPLES_LSM_TABLE_HPP

#include "lsm/block.hpp"
#include "lsm/cache.hpp"
#include "lsm/file.hpp"
#include "lsm/filter.hpp"
#include "lsm/lsm.hpp"
#include "lsm/persistent.hpp"
#include "lsm/places.hpp"
#include "lsm/values.hpp"

#include <atomic>
#include <optional>
#include <unordered_map>

namespace lsm
{

struct BlockPlace {
    uint64_t offset, bytes; // of the contents
};

enum class TablePlace : uint8_t { directory, fast, container };

// What the manifest knows of a table. Keys have their tags.
struct TableInfo {
    uint64_t number = 0, bytes = 0;
    std::string smallest, largest;
    TablePlace place = TablePlace::directory;
    std::vector<std::pair<uint64_t, uint64_t>>
        values; // of which value files it needs how many bytes; by number

    bool in_container() const { return place == TablePlace::container; }
};

// Where tables lie and what they need. It outlives them.
struct Storage {
    const Places &places;
    Container *container; // NULL: none
    BlockCache &cache;
    ValueFiles &values;

    std::string path_of(const TableInfo &table) const; // not in the container
};

// A table that no version has had, or has any more.
void delete_table(const Storage &storage, const TableInfo &table);

// Tables that no edit names yet. What is not taken is deleted.
class NewTables
{
  public:
    explicit NewTables(const Storage &storage) : storage_(storage) {}
    ~NewTables();
    NewTables(const NewTables &) = delete;
    void add(TableInfo table) { tables_.push_back(std::move(table)); }
    std::vector<TableInfo> take(); // from now on their names survive a power failure

  private:
    const Storage &storage_;
    std::vector<TableInfo> tables_;
};

// Writes a table. If it goes away before finish() returns, so does the file. One for the container waits in
// memory, for it gets there in one transaction. If it finds no room there, it goes to the directory.
class TableBuilder
{
  public:
    TableBuilder(const Storage &storage, uint64_t number, TablePlace place, const Options &options);
    ~TableBuilder();
    void add(std::string_view key, std::string_view value); // in order
    TableInfo finish(); // the table survives a power failure; the name of a file may not
    uint64_t bytes() const { return size() + block_.bytes(); }

  private:
    uint64_t size() const { return info_.in_container() ? text_.size() : file_.size(); }
    void append(std::string_view bytes);
    void end_block();
    BlockPlace write(std::string_view contents);
    void add_to_container();

    const Storage &storage_;
    const Options &options_;
    TableInfo info_;
    File file_;
    std::string text_; // for the container
    std::unordered_map<uint64_t, uint64_t> values_; // as TableInfo::values, in no order
    BlockBuilder block_, index_;
    FilterBuilder filter_;
    bool finished_ = false;
};

// Reads a table. Thread-safe.
class Table
{
  public:
    Table(const Storage &storage, TableInfo info);
    ~Table();
    Table(const Table &) = delete;

    // As Memtable::get(), but the value is a copy. It may come from a value file; then its kind is `value`.
    struct Found {
        Kind kind;
        std::string value;
    };
    std::optional<Found> get(std::string_view user_key, Sequence sequence) const;
    bool may_have(std::string_view user_key) const; // what the filter says

    // What the value of a pair is that has an address. value() reads it, and may throw.
    enum class Values { read, addresses };

    // It must be gone before the table.
    std::unique_ptr<Cursor> cursor(Values values = Values::read) const;
    void check() const; // read all of it, values included

    std::string value_at(std::string_view address) const;

    // All of it, as it is.
    std::string bytes() const;

    const TableInfo &info() const { return info_; }
    void delete_when_unused(); // no version of the store has it any more

  private:
    friend class TableCursor;
    Block part(uint64_t offset, size_t bytes) const;
    Block read(BlockPlace place, bool cached) const;

    const Storage &storage_;
    TableInfo info_;
    const std::string path_; // as errors name it
    File file_;
    std::string_view memory_;                        // in the container
    std::vector<std::shared_ptr<ValueFile>> values_; // as info_ has them
    Block index_, filter_;
    uint64_t index_at_;
    std::atomic<bool> obsolete_ = false;
};

// Write a table as it is to another place: `info` is the table's, but for the place.
void copy_table(const Table &table, const Storage &storage, const TableInfo &info);

} // namespace lsm

#endif
