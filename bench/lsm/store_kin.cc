/* LevelDB, or RocksDB. Tuned as their manuals advise for a comparison: no compression, bloom filters, a cache of the
 * given size. */
#include "harness/kin.h"
#include "lsm/peer.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace bench
{
namespace
{

void demand(const db::Status &status)
{
    if (status.ok())
        return;
    fprintf(stderr, "%s: %s\n", Peer::name(), status.ToString().c_str());
    exit(1);
}

db::Slice slice(std::string_view text)
{
    return {text.data(), text.size()};
}

class KinPeer : public Peer
{
  public:
    explicit KinPeer(const PeerOptions &o)
    {
        db::Options options;
        options.create_if_missing = true;
        options.write_buffer_size = o.write_buffer_size;
        options.compression = db::kNoCompression;
#ifdef BENCH_ROCKSDB
        db::BlockBasedTableOptions table;
        table.block_cache = db::NewLRUCache(o.cache_size);
        if (o.bloom_bits)
            table.filter_policy.reset(db::NewBloomFilterPolicy(o.bloom_bits));
        options.table_factory.reset(db::NewBlockBasedTableFactory(table));
        options.IncreaseParallelism(2);
#else
        cache_.reset(db::NewLRUCache(o.cache_size));
        options.block_cache = cache_.get();
        if (o.bloom_bits)
            filter_.reset(db::NewBloomFilterPolicy(o.bloom_bits));
        options.filter_policy = filter_.get();
#endif
        db::DB *opened = nullptr;
        demand(db::DB::Open(options, o.db, &opened));
        db_.reset(opened);
    }

    void put(std::string_view key, std::string_view value, bool sync) override
    {
        db::WriteOptions how;
        how.sync = sync;
        demand(db_->Put(how, slice(key), slice(value)));
    }

    void remove(std::string_view key) override { demand(db_->Delete({}, slice(key))); }

    bool get(std::string_view key, std::string &value) override
    {
        db::Status status = db_->Get({}, slice(key), &value);
        if (!status.IsNotFound())
            demand(status);
        return status.ok();
    }

    uint64_t scan(std::string_view key, uint64_t count) override
    {
        std::unique_ptr<db::Iterator> at(db_->NewIterator({}));
        uint64_t n = 0;
        for (at->Seek(slice(key)); at->Valid() && n < count; at->Next(), n++)
            at->value();
        demand(at->status());
        return n;
    }

#ifndef BENCH_ROCKSDB
    /* Its property is a table, whose third column has the seconds of each level. They include those of writing
     * memtables to level 0, which is the time of level 0. */
    double merging_seconds() override
    {
        std::string text;
        db_->GetProperty("leveldb.stats", &text);
        std::istringstream lines(text);
        double all = 0;
        for (std::string line; std::getline(lines, line);) {
            std::istringstream fields(line);
            double level = 0, files = 0, megabytes = 0, seconds = 0;
            if (fields >> level >> files >> megabytes >> seconds && level > 0)
                all += seconds;
        }
        return all;
    }
#endif

  private:
#ifndef BENCH_ROCKSDB
    std::unique_ptr<db::Cache> cache_;
    std::unique_ptr<const db::FilterPolicy> filter_;
#endif
    std::unique_ptr<db::DB> db_;
};

} // namespace

std::unique_ptr<Peer> Peer::open(const PeerOptions &options)
{
    return std::make_unique<KinPeer>(options);
}

const char *Peer::name()
{
#ifdef BENCH_ROCKSDB
    return "rocksdb";
#else
    return "leveldb";
#endif
}

} // namespace bench
