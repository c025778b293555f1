// The medium: real files that the library opens as it does any others, and a watch over what it
// does to them.
//
// The library's calls come to us because medium_of() and the system calls that change a file are
// wrapped by the linker (hooks.cpp). On pmem each write-back, copy and fence is an event; on an
// ordinary file each write, each sync (where it begins and where it ends) and change of size. At an
// event we compare what the files have with what they had, so plain stores are found too, whoever
// made them: for caches evict. Write-backs and copies look only where they are told to, unless a
// recording is to be `thorough`; fences, syncs, and the program by tick(), look everywhere. (What
// is stored in between and not found before its write-back was not missed: until the next fence
// everything that might have been on the medium still may be.)
//
// One device at a time; of threads one at a time (threads.hpp).
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

// New containers' ids, and with them addresses and checksums, follow from this.
void seed_ids(uint64_t seed);

class Device
{
  public:
    // Of files that need not exist yet; none may grow beyond FILE_MAX.
    static constexpr uint64_t FILE_MAX = UINT64_C(16) << 20;
    Device(Kind kind, std::vector<std::string> paths);
    ~Device();
    Device(const Device &) = delete;

    Kind kind() const { return kind_; }
    const std::vector<std::string> &paths() const { return paths_; }
    // The contents of all files.
    std::vector<std::vector<char>> contents() const;

    // Let the files hold what a crash left: an image, or what is newest.
    void load(const Memory &memory, const Image &image);
    void load_newest(const Memory &memory);

    // Put what happens from now on into a recording. NULL: nothing.
    void record(Recording *recording, bool thorough = false);
    Recording *recording() { return recording_; }
    // Notice whatever was stored to: as if time passed. With tick() as an event.
    void look_everywhere(uint32_t event);
    void tick();

    // From now on each write finds the disk full, or not, as a seed decides; or none does again.
    void fail_writes(std::optional<Random> random) { failures_ = random; }

    // For the hooks.
    bool write_fails() { return failures_ && failures_->below(3) == 0; }
    static Device *current();
    struct File {
        uint32_t number;
        int fd; // the library's; -1: not open
        char *map;
        uint64_t size;
        std::vector<char> seen; // what the file held at the last look
    };
    bool adopt(int fd); // it may be one of the files
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
