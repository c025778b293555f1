/*
 * LevelDB with its defaults but for the size of its cache, and with the filters that its manual
 * advises, by which a get passes most tables by that do not have the key. What it asks of the system
 * is counted in its own environment.
 */
#include "nvmkv/store.h"

#include <atomic>
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <stdexcept>
#include <vector>

namespace bench
{
namespace
{

void check(const leveldb::Status &status)
{
    if (!status.ok())
        throw std::runtime_error("LevelDB: " + status.ToString());
}

struct Counts {
    std::atomic<uint64_t> writes{0}, bytes_written{0}, syncs{0}, reads{0}, bytes_read{0};
};

/** Appending fills a buffer, which the other calls hand to write(2). */
class CountingWriter : public leveldb::WritableFile
{
  public:
    CountingWriter(leveldb::WritableFile *file, Counts &counts) : file_(file), counts_(counts) {}
    leveldb::Status Append(const leveldb::Slice &data) override
    {
        filled_ = true;
        counts_.bytes_written += data.size();
        return file_->Append(data);
    }
    leveldb::Status Sync() override
    {
        count_write();
        counts_.syncs++;
        return file_->Sync();
    }
    leveldb::Status Close() override
    {
        count_write();
        return file_->Close();
    }
    leveldb::Status Flush() override
    {
        count_write();
        return file_->Flush();
    }

  private:
    void count_write()
    {
        counts_.writes += filled_;
        filled_ = false;
    }

    std::unique_ptr<leveldb::WritableFile> file_;
    Counts &counts_;
    bool filled_ = false; // with what has not been written
};

class CountingReader : public leveldb::RandomAccessFile
{
  public:
    CountingReader(leveldb::RandomAccessFile *file, Counts &counts) : file_(file), counts_(counts)
    {
    }
    leveldb::Status Read(uint64_t offset, size_t n, leveldb::Slice *result,
                         char *scratch) const override
    {
        counts_.reads++;
        counts_.bytes_read += n;
        return file_->Read(offset, n, result, scratch);
    }

  private:
    std::unique_ptr<leveldb::RandomAccessFile> file_;
    Counts &counts_;
};

class CountingEnv : public leveldb::EnvWrapper
{
  public:
    explicit CountingEnv(Counts &counts) : EnvWrapper(leveldb::Env::Default()), counts_(counts) {}
    leveldb::Status NewWritableFile(const std::string &name, leveldb::WritableFile **file) override
    {
        return wrap<CountingWriter>(target()->NewWritableFile(name, file), file);
    }
    leveldb::Status NewAppendableFile(const std::string &name,
                                      leveldb::WritableFile **file) override
    {
        return wrap<CountingWriter>(target()->NewAppendableFile(name, file), file);
    }
    leveldb::Status NewRandomAccessFile(const std::string &name,
                                        leveldb::RandomAccessFile **file) override
    {
        return wrap<CountingReader>(target()->NewRandomAccessFile(name, file), file);
    }

  private:
    template <class Counting, class File> leveldb::Status wrap(leveldb::Status status, File **file)
    {
        if (status.ok())
            *file = new Counting(*file, counts_);
        return status;
    }
    Counts &counts_;
};

class Leveldb : public KeyValueStore
{
  public:
    explicit Leveldb(const StoreOptions &options)
        : env_(counts_), cache_(leveldb::NewLRUCache(options.cache_bytes))
    {
        write_.sync = options.sync;
        leveldb::Options theirs;
        theirs.create_if_missing = true;
        theirs.env = &env_;
        theirs.filter_policy = filter_.get();
        if (options.cache_bytes)
            theirs.block_cache = cache_.get();
        for (size_t i = 0; i < options.instances; i++) {
            leveldb::DB *db;
            check(
                leveldb::DB::Open(theirs, options.directory + "/leveldb" + std::to_string(i), &db));
            databases_.emplace_back(db);
        }
    }

    void put(size_t instance, uint64_t key, std::string_view value) override
    {
        check(databases_[instance]->Put(write_, slice(KeyText(key)), slice(value)));
    }

    bool get(size_t instance, uint64_t key, std::string &value) override
    {
        leveldb::Status status = databases_[instance]->Get({}, slice(KeyText(key)), &value);
        if (status.IsNotFound())
            return false;
        check(status);
        return true;
    }

    Traffic traffic() override
    {
        return {counts_.writes, counts_.bytes_written, counts_.syncs, counts_.reads,
                counts_.bytes_read};
    }

  private:
    /** Of the temporary only until the end of the call, which is enough. */
    static leveldb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

    Counts counts_;
    CountingEnv env_;
    std::unique_ptr<leveldb::Cache> cache_;
    std::unique_ptr<const leveldb::FilterPolicy> filter_{leveldb::NewBloomFilterPolicy(10)};
    leveldb::WriteOptions write_;
    std::vector<std::unique_ptr<leveldb::DB>> databases_; // close before all that
};

} // namespace

std::unique_ptr<KeyValueStore> make_leveldb(const StoreOptions &options)
{
    return std::make_unique<Leveldb>(options);
}

} // namespace bench
