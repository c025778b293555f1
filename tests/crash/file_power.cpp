// The power fails under an ordinary file: as power.cpp does on pmem, and by the same LIBPM_POWER.
// Linked into a worker with --wrap=medium_of, pwrite, fsync and fdatasync. Each write and each sync
// is an event. When the power fails, each sector that was written since the last sync has what it
// had then, or what any later write made of it; and a file that has grown may be as short as then.
#include "crash/power.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

extern "C" {
#include "backend/backend.h"
}

namespace
{

constexpr size_t SECTOR = 512;

struct Write {
    size_t offset;
    std::string bytes;
};

struct Power {
    int fd = -1;
    std::string durable;        // contents
    std::vector<Write> pending; // since the last sync, in their order
    std::string file, kind;
    uint64_t event = 0, fails_at = 0, seed = 0;
    bool coarse = false;
};

Power &power()
{
    static Power *p = new Power;
    return *p;
}

size_t size_now(const Power &p)
{
    struct stat st;
    return fstat(p.fd, &st) == 0 ? (size_t)st.st_size : p.durable.size();
}

std::string contents_now(const Power &p)
{
    std::string all(size_now(p), 0);
    if (pread(p.fd, all.data(), all.size(), 0) != (ssize_t)all.size())
        abort();
    return all;
}

void put(const std::string &name, const std::string &bytes)
{
    FILE *out = fopen(name.c_str(), "wb");
    if (!out || fwrite(bytes.data(), 1, bytes.size(), out) != bytes.size() || fclose(out) != 0)
        abort();
}

void make_durable(Power &p)
{
    p.durable.resize(std::max(p.durable.size(), size_now(p)), 0);
    for (const Write &w : p.pending)
        memcpy(p.durable.data() + w.offset, w.bytes.data(), w.bytes.size());
    p.pending.clear();
}

// For each sector, how many of the pending writes to it count.
void tear_sectors(Power &p)
{
    std::mt19937_64 random(p.seed);
    unsigned mood = random() % 5; // all lost, all kept, sector by sector, or by blocks
    if (mood != 0 && random() % 2)
        p.durable.resize(std::max(p.durable.size(), size_now(p)), 0);
    std::map<size_t, std::vector<std::pair<const Write *, size_t>>> sectors;
    for (const Write &w : p.pending)
        for (size_t at = w.offset / SECTOR; at * SECTOR < w.offset + w.bytes.size(); at++)
            sectors[at].push_back({&w, at});
    for (auto &[sector, writes] : sectors) {
        size_t count = random() % (writes.size() + 1);
        if (mood < 2 || mood == 4) {
            bool kept = mood < 2 ? mood : crash::block_fate(p.seed, sector * SECTOR);
            count = kept ? writes.size() : 0;
        }
        if ((sector + 1) * SECTOR > p.durable.size())
            continue;
        for (size_t i = 0; i < count; i++) {
            const Write &w = *writes[i].first;
            size_t from = std::max(w.offset, sector * SECTOR);
            size_t to = std::min(w.offset + w.bytes.size(), (sector + 1) * SECTOR);
            memcpy(p.durable.data() + from, w.bytes.data() + (from - w.offset), to - from);
        }
    }
}

void count_event(Power &p)
{
    if (++p.event != p.fails_at)
        return;
    if (p.kind == "power") {
        tear_sectors(p);
        put(p.file, p.durable);
    } else {
        put(p.file, contents_now(p));
        put(p.file + ".image", p.durable);
    }
    _exit(crash::POWER_FAILED);
}

} // namespace

extern "C" {

ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t offset);

const struct medium_ops *__wrap_medium_of(int fd, const void *, size_t, bool)
{
    Power &p = power();
    std::string before;
    std::istringstream(getenv("LIBPM_POWER")) >> p.file >> p.fails_at >> p.seed >> p.kind >> before;
    const char *coarse = getenv("LIBPM_POWER_COARSE");
    p.coarse = coarse && *coarse == '1';
    p.fd = fd;
    p.durable = contents_now(p);
    if (before != "-") { // what is in the page cache only was written just now
        std::string all = p.durable;
        std::ifstream in(before, std::ios::binary);
        p.durable.resize(std::filesystem::file_size(before));
        in.read(p.durable.data(), (std::streamsize)p.durable.size());
        for (size_t at = 0; at < all.size(); at += SECTOR)
            if (p.durable.compare(std::min(at, p.durable.size()), SECTOR, all, at, SECTOR) != 0)
                p.pending.push_back({at, all.substr(at, SECTOR)});
    }
    return &medium_cache;
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    Power &p = power();
    if (fd == p.fd) {
        if (!p.coarse || size >= crash::COARSE)
            count_event(p);
        p.pending.push_back({(size_t)offset, std::string(static_cast<const char *>(bytes), size)});
    }
    return __real_pwrite(fd, bytes, size, offset);
}

int __wrap_fdatasync(int fd)
{
    Power &p = power();
    if (fd == p.fd) {
        count_event(p);
        make_durable(p);
    }
    return 0;
}

int __wrap_fsync(int fd)
{
    return __wrap_fdatasync(fd);
}
}
