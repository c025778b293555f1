/* LevelDB, or RocksDB, whose interface grew from it: with BENCH_ROCKSDB. bench::db is the one that was chosen. */
#pragma once

#ifdef BENCH_ROCKSDB
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#else
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>
#endif

namespace bench
{

#ifdef BENCH_ROCKSDB
namespace db = rocksdb;
#else
namespace db = leveldb;
#endif

} // namespace bench
