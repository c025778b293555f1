/*
 * What NVMKV is compared with, behind one face: keys are numbers, of which each store makes 16
 * bytes; there may be several instances, which are pools or databases. What fails becomes an
 * exception: a benchmark has no use for errors.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace bench
{

constexpr size_t key_size = 16; // bytes

struct StoreOptions {
    std::string directory = {};
    bool sync = false; // a put returns when it survives a power failure, not just the process
    size_t cache_bytes = 0;
    size_t instances = 1;
    bool collision_cache = true;
    unsigned key_bits = 36; // of NVMKV
};

/**
 * What the store has asked for so far, of the kernel, or of libpm. I/Os are counted where the store
 * hands them to the layer below: of LevelDB that is write(2) and its files, of NVMKV the address
 * space. Bytes written are counted below that too: of libpm they are what it logs and writes back.
 */
struct Traffic {
    uint64_t writes, bytes_written;
    uint64_t syncs;
    uint64_t reads, bytes_read;
};

/** Any thread may call everything. */
class KeyValueStore
{
  public:
    KeyValueStore() = default;
    KeyValueStore(const KeyValueStore &) = delete;
    KeyValueStore &operator=(const KeyValueStore &) = delete;

    /** Closes it. */
    virtual ~KeyValueStore() = default;

    virtual void put(size_t instance, uint64_t key, std::string_view value) = 0;
    /** False if it is not there. */
    virtual bool get(size_t instance, uint64_t key, std::string &value) = 0;
    virtual Traffic traffic() = 0;
};

/** Each opens what the directory has, or a new one. */
std::unique_ptr<KeyValueStore> make_nvmkv(const StoreOptions &options);
/** The address space below NVMKV by itself: a value goes to sectors that the key names. */
std::unique_ptr<KeyValueStore> make_ftl(const StoreOptions &options);
std::unique_ptr<KeyValueStore> make_leveldb(const StoreOptions &options);

/** 16 printable bytes, in no order. */
class KeyText
{
  public:
    explicit KeyText(uint64_t key);
    operator std::string_view() const { return {text_, key_size}; }

  private:
    char text_[key_size];
};

} // namespace bench
