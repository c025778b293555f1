// Puts what a crash leaves where the check looks for it: at the containers' own paths. What the
// program left there is set aside meanwhile, beside it, and put back in the end.
//
// A file that is there already is compared with what it shall hold, and changed where it differs:
// most crashes leave much the same.
#ifndef PM_CRASH_PLACE_HPP
#define PM_CRASH_PLACE_HPP

#include "pm/crash/tape.hpp"
#include "sim/crash.hpp"

#include <set>

namespace crash
{

class Place
{
  public:
    // Error if a path cannot be set aside, or was by a run that never put it back.
    explicit Place(const Tape &tape);
    ~Place();
    Place(const Place &) = delete;

    // As after a crash at this event. Files that were not there then are absent.
    void fill(uint32_t event, const sim::Memory &memory, const sim::Image &image);
    // The same files in a directory, to look at.
    void keep(const std::string &directory, uint32_t event, const sim::Memory &memory,
              const sim::Image &image);

  private:
    struct File {
        int fd = -1;
        char *map = nullptr; // of as much as a file can have
        ino_t inode = 0;
        uint64_t size = 0;
    };
    void put_back();
    bool is_ours(const std::string &path, const File &file) const;
    void make(const std::string &path, mode_t mode, File &file);
    void forget(File &file);
    void write(const std::string &path, uint32_t number, const sim::Memory &memory,
               const sim::Image &image, File &file);

    const Tape &tape_;
    std::set<std::string> paths_, aside_; // of containers; those that were there
    std::map<std::string, File> files_;   // that we put at paths_
};

} // namespace crash

#endif
