/*
 * A store as the benchmarks of LSM stores see it. Each peer is a program of its own, which links one
 * definition of open().
 */
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace bench
{

/** What db_bench calls by the same names. */
struct PeerOptions {
    std::string db;
    uint64_t write_buffer_size = 64 << 20;
    uint64_t cache_size = 8 << 20;
    int bloom_bits = 10;
    bool use_existing_db = false;

    /* Of our store only. */
    std::string memtables = "dram"; /* or immutable, mutable, nosst, merging, keylsm */
    std::string container;          /* path; empty: in `db` */
    uint64_t persistent_bytes = 256 << 20;
    std::string engine = "redo"; /* of its container, or log */
    std::string fast_directory;
    unsigned fast_levels = 0, read_workers = 0;
};

/** Thread-safe. Failures end the program with a message. */
class Peer
{
  public:
    virtual ~Peer() = default;
    virtual void put(std::string_view key, std::string_view value, bool sync) = 0;
    virtual void remove(std::string_view key) = 0;
    virtual bool get(std::string_view key, std::string &value) = 0;

    /** Visit up to `count` pairs from `key` on, keys and values. Returns how many there were. */
    virtual uint64_t scan(std::string_view key, uint64_t count) = 0;

    /** Bytes of log that it did not write to a file with write(2). */
    virtual uint64_t log_bytes() { return 0; }

    /** How long its background has merged tables since the opening. */
    virtual double merging_seconds() { return 0; }

    static std::unique_ptr<Peer> open(const PeerOptions &options);
    static const char *name();
};

} // namespace bench
