// Maps each file a second time, and keeps a copy of what was seen last. At an event the mapping is compared
// with the copy, and each unit that differs becomes a step of the recording. Restoring a state writes only
// the blocks that differ.
//
// Between the beginning and the end of a sync another thread may run.
#include "sim/device.hpp"

#include "sim/threads.hpp"

#include <cerrno>
#include <fcntl.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern "C" int __real_ftruncate(int fd, off_t size);

namespace sim
{

// Contents are compared, and restored, in blocks of this size.
static constexpr uint64_t BLOCK = 4096;

static Device *the_device;

Device *Device::current()
{
    return the_device;
}

Device::Device(Kind kind, std::vector<std::string> paths)
    : kind_(kind), unit_(unit_bytes(kind)), paths_(std::move(paths))
{
    if (the_device)
        throw std::logic_error("one device at a time");
    the_device = this;
    for (uint32_t i = 0; i < paths_.size(); i++)
        files_.push_back({i, -1, nullptr, 0, {}});
}

Device::~Device()
{
    the_device = nullptr;
    for (File &f : files_)
        if (f.map)
            munmap(f.map, FILE_MAX);
}

// Do not map by the library's descriptor: the mapping would keep the descriptor's lock.
static char *map_file(const std::string &path)
{
    int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    void *map = mmap(nullptr, Device::FILE_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        throw std::runtime_error("cannot map " + path);
    return static_cast<char *>(map);
}

bool Device::adopt(int fd)
{
    struct stat open, named;
    if (fstat(fd, &open) != 0)
        return false;
    for (File &f : files_) {
        if (stat(paths_[f.number].c_str(), &named) != 0 || named.st_ino != open.st_ino)
            continue;
        f.fd = fd;
        if (!f.map) {
            f.map = map_file(paths_[f.number]);
            f.size = (uint64_t)open.st_size;
            f.seen.assign(f.map, f.map + f.size);
        }
        return true;
    }
    return false;
}

Device::File *Device::find(int fd)
{
    for (File &f : files_)
        if (f.fd == fd && fd >= 0)
            return &f;
    return nullptr;
}

std::vector<std::vector<char>> Device::contents() const
{
    std::vector<std::vector<char>> all;
    for (const File &f : files_)
        all.emplace_back(f.map, f.map + f.size);
    return all;
}

// ---- restoring ---------------------------------------------------------------------------------

void Device::set_size(File &file, uint64_t size)
{
    if (file.size == size)
        return;
    if (truncate(paths_[file.number].c_str(), (off_t)size) != 0)
        throw std::runtime_error("cannot resize " + paths_[file.number]);
    file.size = size;
    file.seen.resize(size, 0);
}

void Device::put(Unit unit, const char *bytes)
{
    File &f = files_[file_of(unit)];
    uint64_t offset = (uint64_t)number_of(unit) * unit_;
    if (offset >= f.size)
        return;
    memcpy(f.map + offset, bytes, unit_);
}

void Device::load(const Memory &memory, const Image &image)
{
    for (File &f : files_) {
        f.fd = -1;
        set_size(f, image.sizes[f.number]);
        const char *floor = memory.floor_of(f.number);
        for (uint64_t at = 0; at < f.size; at += BLOCK)
            if (memcmp(f.map + at, floor + at, BLOCK) != 0)
                memcpy(f.map + at, floor + at, BLOCK);
    }
    for (const Image::Choice &c : image.choices)
        put(c.unit, c.version.bytes);
}

void Device::load_newest(const Memory &memory)
{
    Image image;
    choose(memory, {0, Fate::KEPT, 0}, image);
    load(memory, image);
}

void Device::record(Recording *recording, bool thorough)
{
    recording_ = recording;
    thorough_ = thorough;
    if (recording)
        for (File &f : files_)
            if (f.map)
                memcpy(f.seen.data(), f.map, f.size);
}

// ---- watching ----------------------------------------------------------------------------------

void Device::look(File &f, uint64_t offset, uint64_t size, uint32_t event)
{
    uint64_t end = offset + size < f.size ? offset + size : f.size;
    for (uint64_t at = offset / unit_ * unit_; at < end; at += unit_) {
        if (memcmp(f.map + at, f.seen.data() + at, unit_) == 0)
            continue;
        memcpy(f.seen.data() + at, f.map + at, unit_);
        Unit unit = unit_of(f.number, at / unit_);
        const char *bytes = recording_->keep(f.map + at, unit_);
        recording_->add({Step::CHANGE, event, unit, 1, bytes, unit_hash(unit, bytes, unit_)});
    }
}

void Device::look_everywhere(uint32_t event)
{
    for (File &f : files_)
        for (uint64_t at = 0; f.map && at < f.size; at += BLOCK)
            if (memcmp(f.map + at, f.seen.data() + at, BLOCK) != 0)
                look(f, at, BLOCK, event);
}

void Device::tick()
{
    if (recording_)
        look_everywhere(recording_->begin_event(true));
}

uint32_t Device::begin_write(File &f, uint64_t offset, uint64_t size)
{
    uint32_t event = recording_->begin_event(thorough_);
    if (thorough_)
        look_everywhere(event);
    else
        look(f, offset, size, event);
    return event;
}

void Device::written_back(File &f, uint64_t offset, uint64_t size)
{
    uint32_t event = begin_write(f, offset, size);
    uint64_t first = offset / unit_, count = (offset + size - 1) / unit_ - first + 1;
    recording_->add({Step::QUEUE, event, unit_of(f.number, first), (uint32_t)count, nullptr, 0});
}

void Device::fence()
{
    uint32_t event = recording_->begin_event(true);
    look_everywhere(event);
    recording_->add({Step::FENCE, event, 0, 0, nullptr, 0});
}

void Device::written(File &f, uint64_t offset, uint64_t size)
{
    begin_write(f, offset, size);
}

void Device::sync(File &f)
{
    uint32_t event = recording_->begin_event(true);
    look_everywhere(event);
    if (kind_ == Kind::PMEM) { // the library syncs because the file has grown
        recording_->add({Step::SYNC_SIZE, event, f.number, 0, nullptr, 0});
        return;
    }
    recording_->add({Step::BEGIN_SYNC, event, f.number, 0, nullptr, 0});
    if (in_thread()) {
        yield();
        event = recording_->begin_event(true);
        look_everywhere(event);
    }
    recording_->add({Step::SYNC, event, f.number, 0, nullptr, 0});
}

void Device::resized(File &f, uint64_t size)
{
    if (size == f.size)
        return;
    if (recording_) {
        uint32_t event = recording_->begin_event(false);
        // If the file grows again, the part that is cut off reads as zeros.
        static const char zeros[512] = {};
        for (uint64_t at = size / unit_ * unit_; at < f.size; at += unit_)
            if (memcmp(f.seen.data() + at, zeros, unit_) != 0)
                recording_->add({Step::CHANGE, event, unit_of(f.number, at / unit_), 1, zeros, 0});
        recording_->add({Step::RESIZE, event, f.number, 0, nullptr, size});
    }
    f.size = size;
    f.seen.resize(size, 0);
}

} // namespace sim
