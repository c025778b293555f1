/*
 * SQLite in WAL mode with synchronous=FULL, which syncs the log at each commit; checkpoints by its
 * default. Statements are prepared once. SQLite allows one writer; several threads share one
 * connection by a lock, since connections that find the database locked would sleep and try again.
 */
#include "file/database.h"

#include <cstring>
#include <mutex>
#include <sqlite3.h>
#include <stdexcept>

namespace bench
{
namespace
{

class Sqlite : public Database
{
  public:
    explicit Sqlite(const DatabaseOptions &options)
        : value_size_(static_cast<int>(options.value_size))
    {
        check(sqlite3_open((options.directory + "/sqlite").c_str(), &db_));
        run("PRAGMA journal_mode=WAL");
        run("PRAGMA synchronous=FULL");
        run("CREATE TABLE IF NOT EXISTS map (key INTEGER PRIMARY KEY, value BLOB NOT NULL)");
        begin_ = prepare("BEGIN IMMEDIATE");
        commit_ = prepare("COMMIT");
        put_ = prepare("INSERT OR REPLACE INTO map VALUES (?, ?)");
        get_ = prepare("SELECT value FROM map WHERE key = ?");
        size_ = prepare("SELECT count(*) FROM map");
    }
    ~Sqlite() override
    {
        for (sqlite3_stmt *statement : {begin_, commit_, put_, get_, size_})
            sqlite3_finalize(statement);
        sqlite3_close(db_);
    }

    void put(std::span<const Put> puts) override
    {
        std::scoped_lock lock(mutex_);
        step(begin_);
        for (const Put &put : puts) {
            check(sqlite3_bind_int64(put_, 1, static_cast<sqlite3_int64>(put.key)));
            check(sqlite3_bind_blob(put_, 2, put.value, value_size_, SQLITE_STATIC));
            step(put_);
        }
        step(commit_);
    }

    bool get(uint64_t key, char *value) override
    {
        check(sqlite3_bind_int64(get_, 1, static_cast<sqlite3_int64>(key)));
        bool found = sqlite3_step(get_) == SQLITE_ROW;
        if (found && sqlite3_column_bytes(get_, 0) == value_size_)
            memcpy(value, sqlite3_column_blob(get_, 0), static_cast<size_t>(value_size_));
        check(sqlite3_reset(get_));
        return found;
    }

    uint64_t size() override
    {
        if (sqlite3_step(size_) != SQLITE_ROW)
            check(sqlite3_errcode(db_));
        auto count = static_cast<uint64_t>(sqlite3_column_int64(size_, 0));
        check(sqlite3_reset(size_));
        return count;
    }

  private:
    void check(int result)
    {
        if (result != SQLITE_OK)
            throw std::runtime_error(std::string("SQLite: ") + sqlite3_errmsg(db_));
    }

    void run(const char *sql) { check(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr)); }

    sqlite3_stmt *prepare(const char *sql)
    {
        sqlite3_stmt *statement;
        check(sqlite3_prepare_v2(db_, sql, -1, &statement, nullptr));
        return statement;
    }

    void step(sqlite3_stmt *statement)
    {
        sqlite3_step(statement);
        check(sqlite3_reset(statement)); // reports what the step has met
    }

    int value_size_;
    std::mutex mutex_;
    sqlite3 *db_;
    sqlite3_stmt *begin_, *commit_, *put_, *get_, *size_;
};

} // namespace

const char *const database_name = "SQLite";

std::unique_ptr<Database> open_database(const DatabaseOptions &options)
{
    return std::make_unique<Sqlite>(options);
}

} // namespace bench
