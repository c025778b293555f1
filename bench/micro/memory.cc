/*
 * Volatile memory that the library itself needs: growth of the process' private resident memory
 * (RssAnon) by opening an empty container, and with 256 MiB of 64-byte objects in use. The mapped
 * container itself is RssShmem and does not count; the private pages of the redo engine do.
 */
#include "harness/sample.h"
#include "micro/container.h"
#include "micro/micro.h"

#include <fstream>

namespace bench
{
namespace
{

constexpr size_t object_size = 64;
constexpr size_t object_count = (256 << 20) / object_size;
constexpr size_t batch = 1 << 16;

double rss_anon()
{
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (word == "RssAnon:") {
            double kib;
            status >> kib;
            return kib * 1024;
        }
    throw std::runtime_error("no RssAnon in /proc/self/status");
}

void measure(const std::string &directory, const Mode &mode)
{
    double before = rss_anon();
    double empty, full;
    {
        Container container(directory, mode);
        empty = rss_anon();
        for (size_t i = 0; i < object_count; i++) {
            *static_cast<size_t *>(container.allocate(object_size)) = i;
            if ((i + 1) % batch == 0)
                container.commit();
        }
        full = rss_anon();
    }
    Container::remove(directory, mode);

    emit({"memory", {"empty"}, mode.name, empty - before, "bytes"});
    emit({"memory",
          {"256 MiB in objects of 64 bytes"},
          mode.name,
          100 * (full - before) / (object_size * object_count),
          "%",
          object_count});
}

} // namespace

void memory(const std::string &directory)
{
    rss_anon(); // so that what it needs itself is there already
    for (const Mode &mode : modes)
        measure(directory, mode);
}

} // namespace bench
