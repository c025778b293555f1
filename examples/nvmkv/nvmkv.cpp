// Opens stores; gets, puts and erases pairs.
#include "nvmkv/nvmkv.hpp"

#include "nvmkv/store.hpp"

#include <array>
#include <cerrno>
#include <cstring>

namespace nvmkv
{
namespace
{

// ---- Sector 0

struct Superblock {
    char magic[8];
    uint32_t version;
    uint32_t key_bits, value_bits;
};
constexpr char superblock_magic[8] = "NVMKV/1";

constexpr unsigned key_bits_min = 5; // with fewer regions, two places of a key could be the same
constexpr unsigned value_bits_min = 2, value_bits_max = 20;

bool in_range(unsigned key_bits, unsigned value_bits)
{
    return key_bits >= key_bits_min && key_bits <= address_bits && value_bits >= value_bits_min &&
           value_bits <= value_bits_max && key_bits + value_bits <= address_bits;
}

void require_bits(const std::string &path, const Options &options)
{
    if (!in_range(options.key_bits, options.value_bits))
        fail(EINVAL, path + ": a store needs 5 key bits or more, 2 to 20 value bits, and at most " +
                         std::to_string(address_bits) + " of both");
}

// Empty if the address space is empty: then the store's creation was interrupted.
std::optional<Superblock> superblock_of(Ftl &ftl)
{
    if (!ftl.iterate(0))
        return std::nullopt;
    char sector[sector_size];
    ftl.read(0, sector);
    Superblock superblock;
    memcpy(&superblock, sector, sizeof superblock);
    if (memcmp(superblock.magic, superblock_magic, sizeof superblock_magic) != 0 ||
        superblock.version != 1 || !in_range(superblock.key_bits, superblock.value_bits))
        fail(EBADMSG, ftl.path() +
                          ": the first sector is not that of a store; if it was one, restore the "
                          "file from a backup");
    return superblock;
}

// This write completes the creation of a store.
Superblock write_superblock(Ftl &ftl, const Options &options)
{
    Superblock superblock{{}, 1, options.key_bits, options.value_bits};
    memcpy(superblock.magic, superblock_magic, sizeof superblock_magic);
    char sector[sector_size] = {};
    memcpy(sector, &superblock, sizeof superblock);
    ftl.write(0, sector);
    ftl.flush();
    return superblock;
}

Ftl::Options ftl_options(const Options &options, unsigned flags)
{
    return {flags, options.durability, options.max_size, options.segment_size, options.engine};
}

} // namespace
// ---- Opening

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::Store(Store &&) noexcept = default;
Store &Store::operator=(Store &&) noexcept = default;
Store::~Store() = default;

Store Store::create(const std::string &path, const Options &options)
{
    require_bits(path, options);
    auto ftl = std::make_unique<Ftl>(path, ftl_options(options, PM_CREATE));
    if (superblock_of(*ftl))
        fail(EEXIST, path + ": there is a store already; open it, or destroy it first");
    write_superblock(*ftl, options);
    return Store(
        std::make_unique<Impl>(std::move(ftl), options.key_bits, options.value_bits, options));
}

Store Store::open(const std::string &path, const Options &options)
{
    if (options.create_if_missing)
        require_bits(path, options);
    const unsigned flags =
        (options.readonly ? PM_READONLY : 0) | (options.create_if_missing ? PM_CREATE : 0);
    auto ftl = std::make_unique<Ftl>(path, ftl_options(options, flags));
    auto superblock = superblock_of(*ftl);
    if (!superblock && !options.create_if_missing)
        fail_unfinished(path);
    if (!superblock)
        superblock = write_superblock(*ftl, options);
    return Store(std::make_unique<Impl>(std::move(ftl), superblock->key_bits,
                                        superblock->value_bits, options));
}

void Store::destroy(const std::string &path)
{
    try {
        superblock_of(*std::make_unique<Ftl>(path, Ftl::Options{})); // throws if it is no store
    } catch (const std::system_error &error) {
        if (error.code().value() != ENODATA) // an unfinished store may be deleted
            throw;
    }
    if (pm_delete(path.c_str()) != 0)
        throw pm::error();
}

// ---- Getting

uint64_t Store::Impl::hash_of(Pool pool, std::string_view key) const
{
    if (key.empty() || key.size() > key_max)
        fail(EINVAL, ftl->path() + ": a key of " + std::to_string(key.size()) +
                         " bytes; keys have 1 to " + std::to_string(key_max));
    return Places::hash(pool, key);
}

void Store::Impl::require_pool(Pool pool) const
{
    if (!pools.live(pool))
        fail(ENOENT, ftl->path() + ": there is no pool " + std::to_string(pool));
}

std::optional<PairView> Store::Impl::find(Ftl::Snapshot &snapshot, Pool pool, uint64_t hash,
                                          std::string_view key)
{
    if (unsigned probe = options.collision_cache ? collisions.probe_of(hash) : 0) {
        auto pair = pair_in(snapshot, places, places.region(hash, probe));
        if (pair && pair->is(pool, hash, key))
            return pair;
    }
    for (unsigned probe = 0; probe < probes_max; probe++) { // (3)
        auto pair = pair_in(snapshot, places, places.region(hash, probe));
        if (pair && pair->is(pool, hash, key)) {
            if (probe > 0)
                collisions.remember(hash, probe);
            return pair;
        }
        if (!pair || !pair->passed())
            break;
    }
    return std::nullopt;
}

namespace
{

std::string cache_key(Pool pool, std::string_view key)
{
    std::string whole(reinterpret_cast<const char *>(&pool), sizeof pool);
    return whole.append(key);
}

} // namespace

bool Store::Impl::get(std::string_view key, std::string &value, Pool pool)
{
    const uint64_t hash = hash_of(pool, key);
    require_pool(pool);
    std::string cached;
    if (cache && cache->get(hash, cached = cache_key(pool, key), value))
        return true;
    Ftl::Snapshot snapshot = ftl->snapshot();
    auto pair = find(snapshot, pool, hash, key);
    if (!pair)
        return false;
    value = pair->value;
    if (cache)
        cache->fill(hash, cached, value, snapshot.sequence());
    return true;
}

bool Store::get(std::string_view key, std::string &value, Pool pool)
{
    return impl_->get(key, value, pool);
}

std::optional<std::string> Store::get(std::string_view key, Pool pool)
{
    std::string value;
    return impl_->get(key, value, pool) ? std::optional(std::move(value)) : std::nullopt;
}

bool Store::exists(std::string_view key, Pool pool)
{
    const uint64_t hash = impl_->hash_of(pool, key);
    impl_->require_pool(pool);
    Ftl::Snapshot snapshot = impl_->ftl->snapshot();
    return impl_->find(snapshot, pool, hash, key).has_value();
}

std::vector<std::optional<std::string>> Store::get_batch(std::span<const std::string_view> keys,
                                                         Pool pool)
{
    impl_->require_pool(pool);
    Ftl::Snapshot snapshot = impl_->ftl->snapshot();
    std::vector<std::optional<std::string>> values;
    for (std::string_view key : keys) {
        auto pair = impl_->find(snapshot, pool, impl_->hash_of(pool, key), key);
        values.push_back(pair ? std::optional(std::string(pair->value)) : std::nullopt);
    }
    return values;
}

// ---- Putting and erasing

// Drop a value from the cache. The next change replaces the value, and is not visible yet.
void Store::Impl::drop(uint64_t hash, Pool pool, std::string_view key)
{
    if (cache)
        cache->drop(hash, cache_key(pool, key), ftl->next_sequence());
}

Ftl::Ticket Store::Impl::submit(Change &change)
{
    return *ftl->submit(change.finish());
}

// Put all pairs as one change.
Ftl::Ticket Store::Impl::put(std::span<const KeyValue> pairs, Pool pool)
{
    std::vector<std::string> images;
    for (const auto &[key, value] : pairs) {
        const uint64_t hash = hash_of(pool, key);
        if (value.size() > places.value_max())
            fail(EFBIG, ftl->path() + ": a value of " + std::to_string(value.size()) +
                            " bytes; it can have " + std::to_string(places.value_max()) +
                            ", and more in a store with more value bits");
        images.push_back(pair_image(pool, hash, key, value));
    }
    std::scoped_lock lock(writing);
    require_pool(pool);
    Change change(places, ftl->latest());
    for (size_t i = 0; i < pairs.size(); i++) {
        const uint64_t hash = Places::hash(pool, pairs[i].key);
        change.put(pool, hash, pairs[i].key, std::move(images[i]));
        drop(hash, pool, pairs[i].key);
    }
    return submit(change);
}

// Erase all keys as one change. No change, and an empty optional, if there is nothing to erase.
std::optional<Ftl::Ticket> Store::Impl::erase(std::span<const std::string_view> keys, Pool pool,
                                              size_t &erased)
{
    for (std::string_view key : keys)
        hash_of(pool, key);
    std::scoped_lock lock(writing);
    require_pool(pool);
    Change change(places, ftl->latest());
    const size_t before = erased;
    for (std::string_view key : keys) {
        const uint64_t hash = Places::hash(pool, key);
        erased += change.erase(pool, hash, key);
        drop(hash, pool, key);
    }
    if (erased == before)
        return std::nullopt;
    return submit(change);
}

void Store::put(std::string_view key, std::string_view value, Pool pool)
{
    impl_->ftl->wait(impl_->put(std::array{KeyValue{key, value}}, pool));
}

bool Store::erase(std::string_view key, Pool pool)
{
    size_t erased = 0;
    if (auto ticket = impl_->erase(std::array{key}, pool, erased))
        impl_->ftl->wait(*ticket);
    return erased > 0;
}

namespace
{

// Submits each item by itself, and waits once for all. If an item fails, waits for those before it.
template <class Items, class Submit> void submit_each(Ftl &ftl, const Items &items, Submit &&submit)
{
    std::optional<Ftl::Ticket> last;
    auto wait = [&] {
        if (last)
            ftl.wait(*last);
    };
    try {
        for (const auto &item : items)
            if (std::optional<Ftl::Ticket> ticket = submit(item))
                last = ticket;
    } catch (...) {
        wait();
        throw;
    }
    wait();
}

} // namespace

void Store::put_batch(std::span<const KeyValue> pairs, Pool pool, Atomic atomic)
{
    if (atomic == Atomic::whole && !pairs.empty())
        impl_->ftl->wait(impl_->put(pairs, pool));
    else
        submit_each(*impl_->ftl, pairs,
                    [&](const KeyValue &pair) { return impl_->put(std::span(&pair, 1), pool); });
}

size_t Store::erase_batch(std::span<const std::string_view> keys, Pool pool, Atomic atomic)
{
    size_t erased = 0;
    if (atomic == Atomic::whole) {
        if (auto ticket = impl_->erase(keys, pool, erased))
            impl_->ftl->wait(*ticket);
        return erased;
    }
    submit_each(*impl_->ftl, keys, [&](const std::string_view &key) {
        return impl_->erase(std::span(&key, 1), pool, erased);
    });
    return erased;
}

} // namespace nvmkv
