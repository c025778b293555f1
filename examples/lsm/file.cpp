// System calls, each with its error. A short write is gone on with; a failed one is cut off.
#include "lsm/file.hpp"

#include "lsm/lsm.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace lsm
{
namespace
{

const char *remedy(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return "; free disk space";
    case EMFILE:
        return "; raise the limit of open files: ulimit -n";
    case ENOENT:
        return "; restore it from a backup";
    default:
        return "";
    }
}

[[noreturn]] void fail(const std::string &path, const char *what)
{
    int error = errno;
    throw Error(error, path + ": cannot " + what + ": " + strerror(error) + remedy(error));
}

int open_or_fail(const std::string &path, int flags, const char *what)
{
    int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    if (fd < 0)
        fail(path, what);
    return fd;
}

} // namespace

void damaged(const std::string &path, uint64_t offset, const std::string &what)
{
    throw Error(EBADMSG, path + ": offset " + std::to_string(offset) + ": " + what +
                             "; restore the store from a backup");
}

File::File(const std::string &path, Use use) : path_(path)
{
    const int create = O_CREAT | (use == Use::create ? O_TRUNC : 0);
    fd_ = open_or_fail(path, use == Use::read ? O_RDONLY : O_RDWR | create, "open");
    struct stat status;
    if (fstat(fd_, &status) != 0)
        fail(path_, "read its status");
    size_ = static_cast<uint64_t>(status.st_size);
}

File::File(File &&other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_),
      written_back_(other.written_back_)
{
}

File &File::operator=(File &&other) noexcept
{
    std::swap(path_, other.path_);
    std::swap(fd_, other.fd_);
    std::swap(size_, other.size_);
    std::swap(written_back_, other.written_back_);
    return *this;
}

File::~File()
{
    if (fd_ >= 0)
        close(fd_);
}

std::string File::read(uint64_t offset, size_t bytes) const
{
    if (offset > size_ || bytes > size_ - offset)
        damaged(path_, size_, "the file ends too early");
    std::string part(bytes, '\0');
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(fd_, part.data() + done, bytes - done, static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            fail(path_, "read");
        if (n == 0)
            damaged(path_, offset + done, "the file ends too early");
        done += static_cast<size_t>(n);
    }
    return part;
}

void File::append(std::string_view bytes)
{
    uint64_t end = size_;
    while (!bytes.empty()) {
        ssize_t n = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(end));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int error = errno;
            cut(size_);
            errno = error;
            fail(path_, "write");
        }
        bytes.remove_prefix(static_cast<size_t>(n));
        end += static_cast<uint64_t>(n);
    }
    size_ = end;
}

// An advice. Whatever fails here, sync() reports.
void File::begin_write_back()
{
    sync_file_range(fd_, static_cast<off_t>(written_back_),
                    static_cast<off_t>(size_ - written_back_), SYNC_FILE_RANGE_WRITE);
    written_back_ = size_;
}

void File::cut(uint64_t size)
{
    if (ftruncate(fd_, static_cast<off_t>(size)) != 0)
        fail(path_, "cut off a part that was not written whole");
}

void File::sync()
{
    if (fdatasync(fd_) != 0)
        fail(path_, "sync");
}

DirectoryLock::DirectoryLock(const std::string &directory)
    : fd_(open_or_fail(directory + "/LOCK", O_RDWR | O_CREAT, "open"))
{
    if (flock(fd_, LOCK_EX | LOCK_NB) == 0)
        return;
    int error = errno;
    close(fd_);
    if (error == EWOULDBLOCK)
        throw Error(EBUSY,
                    directory +
                        ": another process, or this one, has the store open; close it first");
    errno = error;
    fail(directory, "lock");
}

DirectoryLock::~DirectoryLock()
{
    close(fd_);
}

std::vector<std::string> names_in(const std::string &directory)
{
    DIR *stream = opendir(directory.c_str());
    if (!stream)
        fail(directory, "list");
    std::vector<std::string> names;
    while (dirent *entry = readdir(stream))
        names.push_back(entry->d_name);
    closedir(stream);
    return names;
}

void make_directory(const std::string &path)
{
    if (mkdir(path.c_str(), 0777) == 0)
        sync_directory(path + "/..");
    else if (errno != EEXIST)
        fail(path, "make");
}

bool exists(const std::string &path)
{
    return access(path.c_str(), F_OK) == 0;
}

std::string numbered_path(const std::string &directory, uint64_t number, const char *kind)
{
    char name[32];
    snprintf(name, sizeof name, "/%06llu.%s", static_cast<unsigned long long>(number), kind);
    return directory + name;
}

std::string read_whole(const std::string &path)
{
    File file(path, File::Use::read);
    return file.read(0, file.size());
}

void replace(const std::string &directory, const std::string &name, std::string_view contents)
{
    const std::string path = directory + "/" + name, fresh = path + ".new";
    unlink(fresh.c_str());
    {
        File file(fresh, File::Use::append);
        file.append(contents);
        file.sync();
    }
    if (rename(fresh.c_str(), path.c_str()) != 0)
        fail(path, "replace");
    sync_directory(directory);
}

void sync_directory(const std::string &directory)
{
    int fd = open_or_fail(directory, O_RDONLY | O_DIRECTORY, "open");
    int result = fsync(fd), error = errno;
    close(fd);
    errno = error;
    if (result != 0)
        fail(directory, "sync");
}

} // namespace lsm
