/*
 * LevelDB with sync=true, else its defaults: a commit is one record in a log. It lets one of the
 * waiting threads write for all of them, so its group commit is built in.
 */
#include "file/database.h"

#include <bit>
#include <cstring>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>
#include <stdexcept>

namespace bench
{
namespace
{

static_assert(std::endian::native == std::endian::little);

void check(const leveldb::Status &status)
{
    if (!status.ok())
        throw std::runtime_error("LevelDB: " + status.ToString());
}

/** A key in the order of bytes that LevelDB sorts by. */
class KeyBytes
{
  public:
    explicit KeyBytes(uint64_t key) : bytes_(__builtin_bswap64(key)) {}

    operator leveldb::Slice() const
    {
        return {reinterpret_cast<const char *>(&bytes_), sizeof bytes_};
    }

  private:
    uint64_t bytes_;
};

class Leveldb : public Database
{
  public:
    explicit Leveldb(const DatabaseOptions &options) : value_size_(options.value_size)
    {
        leveldb::Options theirs;
        theirs.create_if_missing = true;
        leveldb::DB *db;
        check(leveldb::DB::Open(theirs, options.directory + "/leveldb", &db));
        db_.reset(db);
    }

    void put(std::span<const Put> puts) override
    {
        leveldb::WriteBatch batch;
        for (const Put &put : puts)
            batch.Put(KeyBytes(put.key), {put.value, value_size_});
        leveldb::WriteOptions options;
        options.sync = true;
        check(db_->Write(options, &batch));
    }

    bool get(uint64_t key, char *value) override
    {
        std::string found;
        leveldb::Status status = db_->Get({}, KeyBytes(key), &found);
        if (status.IsNotFound())
            return false;
        check(status);
        memcpy(value, found.data(), std::min(value_size_, found.size()));
        return true;
    }

    uint64_t size() override
    {
        uint64_t count = 0;
        std::unique_ptr<leveldb::Iterator> each(db_->NewIterator({}));
        for (each->SeekToFirst(); each->Valid(); each->Next())
            count++;
        check(each->status());
        return count;
    }

  private:
    size_t value_size_;
    std::unique_ptr<leveldb::DB> db_;
};

} // namespace

const char *const database_name = "LevelDB";

std::unique_ptr<Database> open_database(const DatabaseOptions &options)
{
    return std::make_unique<Leveldb>(options);
}

} // namespace bench
