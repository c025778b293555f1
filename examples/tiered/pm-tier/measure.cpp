// Two lengths of values, so that latency and bandwidth come apart. Values are read in random order.
#include "measure.hpp"

#include "tiered/error.hpp"
#include "tiered/tier.hpp"

#include <libpm.hpp>

#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <numeric>
#include <random>
#include <unistd.h>

namespace pm_tier
{
namespace
{

namespace fs = std::filesystem;

constexpr size_t lengths[] = {64, 65536};
constexpr size_t bytes_each = 64 << 20; // of values of one length: more than caches have

double ns_since(std::chrono::steady_clock::time_point since)
{
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - since)
        .count();
}

// A directory that goes at the end.
class scratch
{
  public:
    explicit scratch(const std::string &parent) : path_(fs::path(parent) / "pm-tier-measure.XXXXXX")
    {
        std::string name = path_.string();
        if (!mkdtemp(name.data()))
            throw failure(parent + ": cannot make a directory to measure in; choose another");
        path_ = name;
    }
    ~scratch()
    {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    const fs::path &path() const { return path_; }

  private:
    fs::path path_;
};

// How to write `count` values of `length` bytes durably, and to read one. Reading returns something, so that
// it is not optimised away.
struct subject {
    std::function<void(size_t count, size_t length)> write;
    std::function<void()> forget_caches;
    std::function<unsigned(size_t index, size_t length)> read;
};

tier_cost cost_of(const std::string &name, const subject &of, size_t reads_max)
{
    double reading[2], writing[2];
    for (size_t i = 0; i < 2; i++) {
        const size_t count = bytes_each / lengths[i] / (i == 0 ? 4 : 1);
        auto begin = std::chrono::steady_clock::now();
        of.write(count, lengths[i]);
        writing[i] = ns_since(begin) / double(count);
        of.forget_caches();
        std::vector<size_t> order(count);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), std::mt19937(1));
        order.resize(std::min(order.size(), reads_max));
        volatile unsigned sum = 0;
        begin = std::chrono::steady_clock::now();
        for (const size_t index : order)
            sum = sum + of.read(index, lengths[i]);
        reading[i] = ns_since(begin) / double(order.size());
    }
    const double more = double(lengths[1] - lengths[0]);
    tier_cost cost;
    cost.name = name;
    cost.read_ns_per_byte = std::max(0.0, (reading[1] - reading[0]) / more);
    cost.write_ns_per_byte = std::max(0.0, (writing[1] - writing[0]) / more);
    cost.read_ns = std::max(0.0, reading[0] - double(lengths[0]) * cost.read_ns_per_byte);
    cost.write_ns = std::max(0.0, writing[0] - double(lengths[0]) * cost.write_ns_per_byte);
    return cost;
}

// A tier behind tiered::tier, as the store uses it.
subject of_tier(tiered::tier &tier, std::vector<uint64_t> &places, std::vector<std::byte> &buffer,
                const fs::path &files)
{
    return {[&](size_t count, size_t length) {
                buffer.assign(length, std::byte(1));
                places.clear();
                for (size_t i = 0; i < count; i++)
                    places.push_back(tier.set(buffer));
                tier.sync();
            },
            [files] {
                for (const fs::directory_entry &entry : fs::directory_iterator(files)) {
                    const int fd = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
                    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
                    close(fd);
                }
            },
            [&](size_t index, size_t length) {
                tier.get(places[index], std::span(buffer).first(length));
                return unsigned(buffer[0]);
            }};
}

tier_cost measure_pm(const fs::path &directory)
{
    pm::options options;
    options.flags = PM_CREATE;
    pm::container container(directory / "pm", options);
    std::vector<std::byte *> values;
    const subject pm = {[&](size_t count, size_t length) {
                            for (std::byte *value : values)
                                container.destroy(value);
                            values.clear();
                            for (size_t i = 0; i < count; i++) {
                                void *at = pm_malloc(container.get(), length);
                                if (!at)
                                    throw failure(pm_errormsg());
                                memset(at, 1, length);
                                values.push_back(static_cast<std::byte *>(at));
                            }
                            container.commit();
                        },
                        [] {},
                        [&](size_t index, size_t length) {
                            unsigned sum = 0;
                            for (size_t at = 0; at < length; at += 64)
                                sum += unsigned(values[index][at]);
                            return sum;
                        }};
    return cost_of("pm", pm, SIZE_MAX);
}

} // namespace

std::vector<tier_cost> measure(const std::string &pm_directory, const std::string &disk_directory)
{
    const scratch pm(pm_directory), disk(disk_directory), nothing(disk_directory);
    std::vector<uint64_t> places;
    std::vector<std::byte> buffer;
    const auto memory = tiered::make_memory_tier(), files = tiered::make_file_tier(disk.path());
    files->keep({});
    std::vector<tier_cost> costs;
    costs.push_back(cost_of("dram", of_tier(*memory, places, buffer, nothing.path()), SIZE_MAX));
    costs.back().loss_probability = 0.01; // of one access: once in a hundred runs, say
    costs.push_back(measure_pm(pm.path()));
    costs.push_back(cost_of("disk", of_tier(*files, places, buffer, disk.path()), 5000));
    return costs;
}

} // namespace pm_tier
