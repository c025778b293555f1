/*
 * What stands behind the tier `disk`: value files, or RocksDB with blob files. Transactions of a hundred values
 * with a sync each, and reads in random order.
 *
 *     PEER: files, rocksdb
 */
#include "tiered/program.h"

#include <rocksdb/db.h>

#include <numeric>
#include <random>

namespace
{

/** The same interface, with a value's place as its key. */
class RocksTier : public tiered::tier
{
  public:
    explicit RocksTier(const std::filesystem::path &directory)
    {
        rocksdb::Options options;
        options.create_if_missing = true;
        options.enable_blob_files = true;
        options.min_blob_size = 4096;
        rocksdb::DB *database = nullptr;
        check(rocksdb::DB::Open(options, directory, &database));
        database_.reset(database);
    }
    void keep(const std::set<uint32_t> &) override {}
    uint64_t set(tiered::bytes value) override
    {
        const uint64_t place = ++last_ << 32;
        check(batch_.Put(slice({reinterpret_cast<const std::byte *>(&place), sizeof place}),
                         slice(value)));
        return place;
    }
    void sync() override
    {
        rocksdb::WriteOptions how;
        how.sync = true;
        check(database_->Write(how, &batch_));
        batch_.Clear();
    }
    bool get(uint64_t place, std::span<std::byte> value) override
    {
        rocksdb::PinnableSlice found;
        check(database_->Get({}, database_->DefaultColumnFamily(),
                             slice({reinterpret_cast<const std::byte *>(&place), sizeof place}),
                             &found));
        memcpy(value.data(), found.data(), value.size());
        return true;
    }
    void discard(uint32_t) override {}
    uint64_t full_bytes(uint32_t) const override { return 0; }
    std::string name_of(uint64_t) const override { return "RocksDB"; }

  private:
    static void check(const rocksdb::Status &status)
    {
        if (!status.ok())
            throw std::runtime_error(status.ToString());
    }
    static rocksdb::Slice slice(tiered::bytes value)
    {
        return {reinterpret_cast<const char *>(value.data()), value.size()};
    }

    std::unique_ptr<rocksdb::DB> database_;
    rocksdb::WriteBatch batch_;
    uint64_t last_ = 0;
};

void measure(tiered::tier &tier, const std::string &peer, size_t count, size_t length)
{
    constexpr size_t values_per_sync = 100;
    std::vector<std::byte> value(length);
    std::vector<uint64_t> places;
    std::mt19937_64 random(5);
    const uint64_t begin = bench::now_ns();
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0; at + 8 <= length; at += 64) /* compression has nothing to gain */
            *reinterpret_cast<uint64_t *>(&value[at]) = random();
        places.push_back(tier.set(value));
        if (i % values_per_sync == values_per_sync - 1)
            tier.sync();
    }
    const uint64_t written = bench::now_ns();
    std::shuffle(places.begin(), places.end(), random);
    for (const uint64_t place : places)
        tier.get(place, value);
    const uint64_t end = bench::now_ns();
    const std::string name = std::to_string(length) + " B";
    bench::emit(
        {"tiered_disk", {name, "set"}, peer, double(written - begin) / double(count), "ns", count});
    bench::emit(
        {"tiered_disk", {name, "get"}, peer, double(end - written) / double(count), "ns", count});
}

} // namespace

int main(int argc, char **argv)
{
    return bench::run_peers(argc, argv, [](const bench::Job &job) {
        for (const size_t length : {100, 10'000}) {
            const std::filesystem::path directory = job.file / (job.peer + std::to_string(length));
            if (job.peer == "files") {
                const auto tier = tiered::make_file_tier(directory);
                tier->keep({});
                measure(*tier, job.peer, job.count, length);
            } else {
                RocksTier tier(directory);
                measure(tier, job.peer, job.count, length);
            }
        }
    });
}
