/*
 * A new object, filled by memcpy(3) or handed over by pm_put(), and committed. Beside it its bytes alone: copied
 * past the cache to memory, in order, and one fence.
 *
 *   new       each object takes the place of a null pointer in an array, so the container grows.
 *   replace   each takes the place of an older object, which is freed in the same commit.
 */
#include "harness/clock.h"
#include "harness/sample.h"
#include "harness/status.h"

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <libpm.h>
#include <libpmem.h>
#include <memory>
#include <stdexcept>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace bench
{
namespace
{

struct Setting {
    std::string peer, path;
    uint64_t bytes, objects, repetitions = 1;
};

void check(bool holds, const char *what)
{
    if (!holds)
        throw std::runtime_error(std::string(what) + ": " + pm_errormsg());
}

void report(const Setting &setting, const char *pattern, double ns)
{
    const uint64_t puts = setting.objects * setting.repetitions;
    emit({"objects",
          {pattern, std::to_string(setting.bytes)},
          setting.peer,
          ns / static_cast<double>(puts),
          "ns",
          puts});
}

/** The bytes of an object. Each object has another number in each line. */
class Source
{
  public:
    explicit Source(uint64_t bytes) : bytes_(bytes), data_(new char[bytes])
    {
        memset(data_.get(), 1, bytes);
    }
    const char *next()
    {
        number_++;
        for (uint64_t at = 0; at + sizeof number_ <= bytes_; at += 64)
            memcpy(data_.get() + at, &number_, sizeof number_);
        return data_.get();
    }

  private:
    uint64_t bytes_, number_ = 0;
    std::unique_ptr<char[]> data_;
};

void measure_floor(const Setting &setting)
{
    const uint64_t size = setting.bytes * setting.objects;
    const int fd = open(setting.path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    check(fd >= 0 && ftruncate(fd, (off_t)size) == 0, "open");
    char *log = static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    check(log != MAP_FAILED, "mmap");
    memset(log, 0, size); // no copy meets a page that is not there yet
    Source source(setting.bytes);
    const double ns = elapsed_ns([&] {
        for (uint64_t i = 0; i < setting.repetitions * setting.objects; i++) {
            pmem_memcpy(log + i % setting.objects * setting.bytes, source.next(), setting.bytes,
                        PMEM_F_MEM_NODRAIN | PMEM_F_MEM_NONTEMPORAL);
            pmem_drain();
        }
    });
    for (const char *pattern : {"new", "replace"})
        report(setting, pattern, ns);
    munmap(log, size);
    close(fd);
}

void measure(const Setting &setting)
{
    pm_options options{};
    options.size = sizeof options;
    options.flags = PM_CREATE;
    const bool hands_over = setting.peer == "log/put";
    options.engine = setting.peer == "redo/stores" ? PM_ENGINE_REDO : PM_ENGINE_LOG;
    options.tracker = PM_TRACKER_STORES;
    pm_container *c = pm_open(setting.path.c_str(), &options);
    check(c, "pm_open");
    char **objects = static_cast<char **>(pm_calloc(c, setting.objects, sizeof *objects));
    check(objects && pm_setroot(c, objects, 0) == 0 && pm_commit(c) == 0, "pm_calloc");
    Source source(setting.bytes);
    const auto put = [&](uint64_t i) {
        const char *bytes = source.next();
        char *object = static_cast<char *>(hands_over ? pm_put(c, bytes, setting.bytes)
                                                      : pm_malloc(c, setting.bytes));
        check(object, "pm_malloc");
        if (!hands_over)
            memcpy(object, bytes, setting.bytes);
        check(pm_free(objects[i]) == 0, "pm_free");
        objects[i] = object;
        check(pm_commit(c) == 0, "pm_commit");
    };
    const double first = elapsed_ns([&] {
        for (uint64_t i = 0; i < setting.objects; i++)
            put(i);
    });
    report({setting.peer, setting.path, setting.bytes, setting.objects}, "new", first);
    const double replaced = elapsed_ns([&] {
        for (uint64_t i = 0; i < setting.repetitions * setting.objects; i++)
            put(i % setting.objects);
    });
    report(setting, "replace", replaced);
    check(pm_check(c) == 0 && pm_close(c) == 0, "pm_close");
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Setting setting{};
    CLI::App app("Time new objects, each a commit");
    app.add_option("peer", setting.peer)
        ->required()
        ->check(CLI::IsMember({"redo/stores", "log/stores", "log/put", "floor"}));
    app.add_option("bytes", setting.bytes, "of an object")->required();
    app.add_option("objects", setting.objects, "that are there in the end")->required();
    app.add_option("path", setting.path, "file to create")->required();
    app.add_option("--repetitions", setting.repetitions, "of replacing all of them");
    CLI11_PARSE(app, argc, argv);
    return bench::status_of(
        [&] { setting.peer == "floor" ? bench::measure_floor(setting) : bench::measure(setting); });
}
