/*
 * LMDB with the manual's defaults, which are durable: no MDB_NOSYNC, MDB_NOMETASYNC, MDB_MAPASYNC
 * or MDB_WRITEMAP; pages are written, then fdatasync(2), then the meta page through O_DSYNC. Keys
 * are MDB_INTEGERKEY, its fastest kind. Writers take turns by LMDB's own lock.
 */
#include "file/database.h"

#include <cstring>
#include <lmdb.h>
#include <stdexcept>

namespace bench
{
namespace
{

constexpr size_t map_size = 1 << 30; // address space; the file grows as needed

void check(int error)
{
    if (error)
        throw std::runtime_error(std::string("LMDB: ") + mdb_strerror(error));
}

/** Aborted with its scope unless committed. */
class Transaction
{
  public:
    Transaction(MDB_env *env, unsigned flags) { check(mdb_txn_begin(env, nullptr, flags, &txn_)); }
    Transaction(const Transaction &) = delete;
    Transaction &operator=(const Transaction &) = delete;
    ~Transaction() { mdb_txn_abort(txn_); }

    operator MDB_txn *() const { return txn_; }

    void commit()
    {
        MDB_txn *txn = txn_;
        txn_ = nullptr; // it is gone whatever the outcome
        check(mdb_txn_commit(txn));
    }

  private:
    MDB_txn *txn_;
};

class Lmdb : public Database
{
  public:
    explicit Lmdb(const DatabaseOptions &options) : value_size_(options.value_size)
    {
        check(mdb_env_create(&env_));
        check(mdb_env_set_mapsize(env_, map_size));
        check(mdb_env_open(env_, (options.directory + "/lmdb").c_str(), MDB_NOSUBDIR, 0600));
        Transaction transaction(env_, 0);
        check(mdb_dbi_open(transaction, nullptr, MDB_INTEGERKEY | MDB_CREATE, &dbi_));
        transaction.commit();
    }
    ~Lmdb() override { mdb_env_close(env_); }

    void put(std::span<const Put> puts) override
    {
        Transaction transaction(env_, 0);
        for (const Put &put : puts) {
            uint64_t key = put.key;
            MDB_val k{sizeof key, &key}, v{value_size_, const_cast<char *>(put.value)};
            check(mdb_put(transaction, dbi_, &k, &v, 0));
        }
        transaction.commit();
    }

    bool get(uint64_t key, char *value) override
    {
        Transaction transaction(env_, MDB_RDONLY);
        MDB_val k{sizeof key, &key}, v;
        if (int error = mdb_get(transaction, dbi_, &k, &v)) {
            check(error == MDB_NOTFOUND ? 0 : error);
            return false;
        }
        memcpy(value, v.mv_data, value_size_);
        return true;
    }

    uint64_t size() override
    {
        MDB_stat stat;
        Transaction transaction(env_, MDB_RDONLY);
        check(mdb_stat(transaction, dbi_, &stat));
        return stat.ms_entries;
    }

  private:
    size_t value_size_;
    MDB_env *env_;
    MDB_dbi dbi_;
};

} // namespace

const char *const database_name = "LMDB";

std::unique_ptr<Database> open_database(const DatabaseOptions &options)
{
    return std::make_unique<Lmdb>(options);
}

} // namespace bench
