// The medium: real files, which the library opens like any others, and a watch over its accesses to them.
//
// The linker wraps medium_of() and the system calls that change a file, so the library's calls come to us
// (hooks.cpp). On pmem each write-back, copy and fence is an event. On an ordinary file each write is an
// event, each change of size, and each sync: where it begins and where it ends. At an event we compare
// the files with their contents before. This finds plain stores too, whoever made them. It is right
// because caches may evict a store at any time.
//
// A write-back or copy looks only at its range, unless the recording is to be `thorough`. A fence or sync
// looks everywhere, and so does the program by tick(). A store may thus be found only later. Nothing is
// missed by this: until the next fence every version that might have been on the medium still may be.
//
// One device exists at a time, and one thread runs at a time (threads.hpp).
#ifndef PM_SIM_DEVICE_HPP
#define PM_SIM_DEVICE_HPP

#include "sim/crash.hpp"
#include "sim/random.hpp"
#include "sim/recording.hpp"

#include <optional>
#include <string>
#include <sys/types.h>

namespace sim
{

// The ids of new containers follow from this seed, and so do their addresses and checksums.
void seed_ids(uint64_t seed);

class Device
{
  public:
    // The files need not exist yet. No file may grow beyond FILE_MAX.
    static constexpr uint64_t FILE_MAX = UINT64_C(16) << 20;
    Device(Kind kind, std::vector<std::string> paths);
    ~Device();
    Device(const Device &) = delete;

    Kind kind() const { return kind_; }
    const std::vector<std::string> &paths() const { return paths_; }
    // The contents of all files.
    std::vector<std::vector<char>> contents() const;

    // Give the files the contents that a crash left: an image, or the newest versions.
    void load(const Memory &memory, const Image &image);
    void load_newest(const Memory &memory);

    // Put all later events into a recording. NULL: record nothing.
    void record(Recording *recording, bool thorough = false);
    Recording *recording() { return recording_; }
    // Look for stores everywhere, as if time passed. tick() makes this an event.
    void look_everywhere(uint32_t event);
    void tick();

    // From now on let a seed decide for each write whether the disk is full. Without a seed no write
    // fails.
    void fail_writes(std::optional<Random> random) { failures_ = random; }

    // For the hooks.
    bool write_fails() { return failures_ && failures_->below(3) == 0; }
    static Device *current();
    struct File {
        uint32_t number;
        int fd; // the library's descriptor; -1: not open
        char *map;
        uint64_t size;
        std::vector<char> seen; // what the file held at the last look
    };
    bool adopt(int fd); // take the descriptor, if it is of one of the files
    File *find(int fd);
    void written_back(File &file, uint64_t offset, uint64_t size);
    void fence();
    void written(File &file, uint64_t offset, uint64_t size);
    void sync(File &file);
    void resized(File &file, uint64_t size);
    bool records() const { return recording_; }

  private:
    void look(File &file, uint64_t offset, uint64_t size, uint32_t event);
    uint32_t begin_write(File &file, uint64_t offset, uint64_t size);
    void set_size(File &file, uint64_t size);
    void put(Unit unit, const char *bytes);

    Kind kind_;
    uint32_t unit_;
    std::vector<std::string> paths_;
    std::vector<File> files_;
    Recording *recording_ = nullptr;
    bool thorough_ = false;
    std::optional<Random> failures_;
};

} // namespace sim

#endif
