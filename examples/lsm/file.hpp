// Files, with errors that name them. All I/O of the store goes through here.
#ifndef EXAMPLES_LSM_FILE_HPP
#define EXAMPLES_LSM_FILE_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lsm
{

// EBADMSG. `what` is what is wrong at this place.
[[noreturn]] void damaged(const std::string &path, uint64_t offset, const std::string &what);

// An open file. Movable. Reading is thread-safe.
class File
{
  public:
    enum class Use { read, append, create };

    File() = default;
    // `append` makes a new file, or goes on behind an old one. `create` makes a new one in any case.
    File(const std::string &path, Use use);
    File(File &&other) noexcept;
    File &operator=(File &&other) noexcept;
    ~File();

    const std::string &path() const { return path_; }
    uint64_t size() const { return size_; }

    std::string read(uint64_t offset, size_t bytes) const; // EBADMSG if the file is shorter
    void append(std::string_view bytes); // if it fails, the file is as long as before
    void sync();                         // what was appended survives a power failure
    void begin_write_back();             // of what was appended since the last call

  private:
    void cut(uint64_t size);

    std::string path_;
    int fd_ = -1;
    uint64_t size_ = 0, written_back_ = 0;
};

// Held while the store is open. EBUSY if somebody else holds it.
class DirectoryLock
{
  public:
    explicit DirectoryLock(const std::string &directory);
    ~DirectoryLock();
    DirectoryLock(const DirectoryLock &) = delete;

  private:
    int fd_;
};

std::vector<std::string> names_in(const std::string &directory);
void make_directory(const std::string &path); // if it is not there; its name is durable then
bool exists(const std::string &path);

// DIRECTORY/NUMBER.KIND, as logs and tables are called.
std::string numbered_path(const std::string &directory, uint64_t number, const char *kind);
std::string read_whole(const std::string &path);

// Replace a small file, or make it. After a power failure it has its old contents or the new ones. EIO of the
// directory's sync included: then either.
void replace(const std::string &directory, const std::string &name, std::string_view contents);

// New names in the directory survive a power failure.
void sync_directory(const std::string &directory);

} // namespace lsm

#endif
