/*
 * A database: one way to keep a map of 64-bit keys to values of one size on an ordinary file
 * system, so that each commit survives a power failure. Each measuring program links exactly one.
 * What fails becomes an exception: a benchmark has no use for errors.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace bench
{

struct Put {
    uint64_t key;
    const char *value; // `value_size` bytes
};

struct DatabaseOptions {
    std::string directory;
    size_t value_size; // bytes
    bool group;        // commits of several threads may share one write to the medium
};

class Database
{
  public:
    Database() = default;
    Database(const Database &) = delete;
    Database &operator=(const Database &) = delete;

    /** Closes it. */
    virtual ~Database() = default;

    /** Insert or update, all in one commit, which is durable on return. Any thread may call it. */
    virtual void put(std::span<const Put> puts) = 0;

    /** Copy the key's value out; false if it is not there. One thread at a time. */
    virtual bool get(uint64_t key, char *value) = 0;

    /** How many keys there are. */
    virtual uint64_t size() = 0;

    /** Waits for the medium since it was opened, where the database counts them. */
    virtual std::optional<uint64_t> rounds() { return std::nullopt; }
};

/** Its column in the tables. */
extern const char *const database_name;

/** Open the database in the directory, or create it. */
std::unique_ptr<Database> open_database(const DatabaseOptions &options);

} // namespace bench
