/*
 * Volatile memory that the library itself needs: growth of the process' private resident memory
 * (RssAnon) by opening an empty container, and with 256 MiB of 64-byte objects in use. The mapped
 * container itself is RssShmem and does not count.
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

} // namespace

void memory(const std::string &directory)
{
    rss_anon(); // so that what it needs itself is there already
    double before = rss_anon();
    Container container(directory + "/container");
    double empty = rss_anon();
    for (size_t i = 0; i < object_count; i++) {
        *static_cast<size_t *>(container.allocate(object_size)) = i;
        if ((i + 1) % batch == 0)
            container.commit();
    }
    double full = rss_anon();

    emit({"memory", {"empty"}, "libpm", empty - before, "bytes"});
    emit({"memory",
          {"256 MiB in objects of 64 bytes"},
          "libpm",
          100 * (full - before) / (object_size * object_count),
          "%",
          object_count});
}

} // namespace bench
