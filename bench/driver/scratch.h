/* Where the measured programs may write. */
#pragma once

#include <filesystem>

namespace bench
{

/** An empty directory, gone with its scope; clear() empties it between two programs. */
class Scratch
{
  public:
    explicit Scratch(const std::filesystem::path &parent);
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    ~Scratch();

    void clear();
    const std::filesystem::path &path() const { return path_; }

  private:
    std::filesystem::path path_;
};

/** Throws if the directory is in memory, where a write is not what it is on a disk. */
void require_disk(const std::filesystem::path &directory);

} // namespace bench
