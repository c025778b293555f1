// Puts the containers, as a crash leaves them, at their own paths, where the check looks for them. The
// program's own files are renamed meanwhile, in the same directory, and renamed back in the end.
//
// If a path still has the file of the crash before, only the blocks that differ are written: most
// crashes leave nearly the same bytes.
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
    // Throws Error if a file cannot be set aside, or if an earlier run set it aside and never put it back.
    explicit Place(const Tape &tape);
    ~Place();
    Place(const Place &) = delete;

    // Put the files as a crash at this event leaves them. Removes files that did not exist then.
    void fill(uint32_t event, const sim::Memory &memory, const sim::Image &image);
    // Write the same files into a directory, for the user to look at.
    void keep(const std::string &directory, uint32_t event, const sim::Memory &memory,
              const sim::Image &image);

  private:
    struct File {
        int fd = -1;
        char *map = nullptr; // STREAM_FILE_MAX bytes, the largest size of a file
        ino_t inode = 0;
        uint64_t size = 0;
    };
    void rename_back();
    bool is_ours(const std::string &path, const File &file) const;
    void make(const std::string &path, mode_t mode, File &file);
    void forget(File &file);
    void write(const std::string &path, uint32_t number, const sim::Memory &memory,
               const sim::Image &image, File &file);

    const Tape &tape_;
    std::set<std::string> paths_, aside_; // paths of containers; those whose file was set aside
    std::map<std::string, File> files_;   // our own files, by path
};

} // namespace crash

#endif
