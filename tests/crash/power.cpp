#include "crash/power.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
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

constexpr uint64_t LINE = 64;

struct Taken {
    uint64_t offset;
    char bytes[LINE];
};

struct Power {
    int fd = -1;
    const char *home = nullptr;
    std::vector<char> image;
    std::vector<Taken> taken; // since the last fence
    std::string file, kind;
    uint64_t event = 0, fails_at = 0, seed = 0;
    bool coarse = false;
};

// One container per worker. Never destroyed: stores are served until the process ends.
Power &power()
{
    static Power *p = new Power;
    return *p;
}

// The file may have grown, or been cut off. What growth allocates is durable and zero.
void follow_length(Power &p)
{
    struct stat st;
    if (fstat(p.fd, &st) == 0)
        p.image.resize((size_t)st.st_size, 0);
}

void write_file(const std::string &name, const char *bytes, size_t size)
{
    FILE *out = fopen(name.c_str(), "wb");
    if (!out || fwrite(bytes, 1, size, out) != size || fclose(out) != 0)
        abort();
}

void tear_lines(Power &p)
{
    std::mt19937_64 random(p.seed);
    // All lost, all kept, line by line, or by blocks: so that a whole record meets lost contents.
    unsigned mood = random() % 5;
    for (uint64_t at = 0; at < p.image.size(); at += LINE) {
        if (memcmp(p.home + at, p.image.data() + at, LINE) == 0)
            continue;
        unsigned fate = mood < 2    ? mood
                        : mood == 4 ? crash::block_fate(p.seed, at)
                                    : (unsigned)(random() % 3);
        uint64_t words = fate == 0 ? 0 : fate == 1 ? 0xff : random();
        for (unsigned w = 0; w < LINE / 8; w++)
            if (words >> w & 1)
                memcpy(p.image.data() + at + w * 8, p.home + at + w * 8, 8);
    }
}

void fail(Power &p)
{
    follow_length(p);
    if (p.kind == "power") {
        tear_lines(p);
        write_file(p.file, p.image.data(), p.image.size());
    } else {
        write_file(p.file, p.home, p.image.size());
        write_file(p.file + ".image", p.image.data(), p.image.size());
    }
    _exit(crash::POWER_FAILED);
}

void count_event(Power &p)
{
    if (++p.event == p.fails_at)
        fail(p);
}

void take(Power &p, const void *address, size_t size)
{
    uint64_t first = (uint64_t)((const char *)address - p.home) / LINE * LINE;
    uint64_t end = (uint64_t)((const char *)address - p.home) + size;
    for (uint64_t at = first; at < end; at += LINE) {
        Taken line;
        line.offset = at;
        memcpy(line.bytes, p.home + at, LINE);
        p.taken.push_back(line);
    }
}

void write_back(struct medium *, const void *address, size_t size)
{
    if (!power().coarse)
        count_event(power());
    take(power(), address, size);
}

int publish(struct medium *, const void *address, size_t size)
{
    if (!power().coarse)
        count_event(power());
    take(power(), address, size);
    return 0;
}

int copy(struct medium *, void *to, const void *from, size_t size)
{
    if (!power().coarse || size >= crash::COARSE)
        count_event(power());
    memcpy(to, from, size);
    take(power(), to, size);
    return 0;
}

int fence(struct medium *medium)
{
    Power &p = power();
    count_event(p);
    follow_length(p);
    for (const Taken &line : p.taken) {
        if (line.offset >= p.image.size()) // what is cut off has been fenced before
            abort();
        memcpy(p.image.data() + line.offset, line.bytes, LINE);
    }
    p.taken.clear();
    medium->counts.fences++;
    return 0;
}

int sync_length(medium *) // lengths are never lost here
{
    return 0;
}

const struct medium_ops failing = {"power", true,  write_back, publish,
                                   copy,    fence, fence,      sync_length};

} // namespace

extern "C" const struct medium_ops *__wrap_medium_of(int fd, const void *home, size_t size, bool)
{
    Power &p = power();
    std::string before;
    std::istringstream(getenv("LIBPM_POWER")) >> p.file >> p.fails_at >> p.seed >> p.kind >> before;
    const char *coarse = getenv("LIBPM_POWER_COARSE");
    p.coarse = coarse && *coarse == '1';
    p.fd = fd;
    p.home = static_cast<const char *>(home);
    p.image.assign(p.home, p.home + size);
    if (before != "-")
        std::ifstream(before, std::ios::binary).read(p.image.data(), (std::streamsize)size);
    p.taken.reserve(1 << 16);
    return &failing;
}
