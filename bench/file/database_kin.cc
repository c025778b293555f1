/*
 * LevelDB, or RocksDB, with sync=true, else their defaults: a commit is one record in a log. They let one of the
 * waiting threads write for all of them, so their group commit is built in.
 */
#include "file/database.h"
#include "harness/kin.h"

#include <bit>
#include <cstring>
#include <stdexcept>

namespace bench
{
namespace
{

static_assert(std::endian::native == std::endian::little);

void check(const db::Status &status)
{
    if (!status.ok())
        throw std::runtime_error(std::string(database_name) + ": " + status.ToString());
}

/** A key in the order of bytes that they sort by. */
class KeyBytes
{
  public:
    explicit KeyBytes(uint64_t key) : bytes_(__builtin_bswap64(key)) {}

    operator db::Slice() const { return {reinterpret_cast<const char *>(&bytes_), sizeof bytes_}; }

  private:
    uint64_t bytes_;
};

class Kin : public Database
{
  public:
    explicit Kin(const DatabaseOptions &options) : value_size_(options.value_size)
    {
        db::Options theirs;
        theirs.create_if_missing = true;
        db::DB *db;
        check(db::DB::Open(theirs, options.directory + "/database", &db));
        db_.reset(db);
    }

    void put(std::span<const Put> puts) override
    {
        db::WriteBatch batch;
        for (const Put &put : puts)
            batch.Put(KeyBytes(put.key), {put.value, value_size_});
        db::WriteOptions options;
        options.sync = true;
        check(db_->Write(options, &batch));
    }

    bool get(uint64_t key, char *value) override
    {
        std::string found;
        db::Status status = db_->Get({}, KeyBytes(key), &found);
        if (status.IsNotFound())
            return false;
        check(status);
        memcpy(value, found.data(), std::min(value_size_, found.size()));
        return true;
    }

    uint64_t size() override
    {
        uint64_t count = 0;
        std::unique_ptr<db::Iterator> each(db_->NewIterator({}));
        for (each->SeekToFirst(); each->Valid(); each->Next())
            count++;
        check(each->status());
        return count;
    }

  private:
    size_t value_size_;
    std::unique_ptr<db::DB> db_;
};

} // namespace

#ifdef BENCH_ROCKSDB
const char *const database_name = "RocksDB";
#else
const char *const database_name = "LevelDB";
#endif

std::unique_ptr<Database> open_database(const DatabaseOptions &options)
{
    return std::make_unique<Kin>(options);
}

} // namespace bench
