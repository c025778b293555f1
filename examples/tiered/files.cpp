// The tier `disk`: value files. An extent is a file, and its number is in the file's name. Values have no
// header: the reference in the container has their length and checksum.
//
// Invariants
//   1. A file is written from its beginning to its end, once. No byte of it changes afterwards.
//   2. A new run begins a new file. What a crash left behind the last committed value is never overwritten,
//      and goes with the file.
#include "tiered/directory.hpp"
#include "tiered/error.hpp"
#include "tiered/tier.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <unistd.h>
#include <vector>

namespace tiered
{
namespace
{

namespace fs = std::filesystem;

// A new file begins behind this. A value may be longer.
constexpr uint64_t file_bytes_max = 64 << 20;
constexpr size_t open_files_max = 128;
constexpr const char *suffix = ".values";

class file
{
  public:
    file(const fs::path &path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
    ~file()
    {
        if (fd_ >= 0)
            close(fd_);
    }
    file(const file &) = delete;
    int fd() const { return fd_; }

  private:
    const int fd_;
};

using file_ref = std::shared_ptr<const file>;

[[noreturn]] void fail(const fs::path &path, const char *what, int number)
{
    throw error(number, path.string() + ": " + what + ": " + strerror(number));
}

class file_tier : public tier
{
  public:
    explicit file_tier(const fs::path &directory) : directory_(directory)
    {
        std::error_code code;
        if (fs::create_directories(directory, code))
            sync_directory(directory.parent_path());
        directory_file_ = std::make_shared<file>(directory, O_RDONLY | O_DIRECTORY);
        if (code || directory_file_->fd() < 0)
            fail(directory, "cannot make the directory of values", code ? code.value() : errno);
    }

    void keep(const std::set<uint32_t> &extents) override
    {
        std::vector<uint32_t> left_over;
        for (const fs::directory_entry &entry : fs::directory_iterator(directory_)) {
            const std::string name = entry.path().filename();
            uint32_t number = 0;
            const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number, 16);
            if (parsed.ec != std::errc() ||
                parsed.ptr != name.data() + name.size() - strlen(suffix) || !name.ends_with(suffix))
                continue; // not ours
            if (extents.contains(number))
                full_[number] = entry.file_size();
            else
                left_over.push_back(number);
        }
        for (const uint32_t number : left_over)
            discard(number);
        number_ = extents.empty() ? 0 : *extents.rbegin();
    }

    uint64_t set(bytes value) override
    {
        std::lock_guard guard(lock_);
        if (!current_ || end_ >= file_bytes_max)
            begin_file();
        for (size_t done = 0; done < value.size();) {
            const ssize_t n = pwrite(current_->fd(), value.data() + done, value.size() - done,
                                     static_cast<off_t>(end_ + done));
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0)
                fail(path_of(number_), "cannot write a value", errno);
            done += static_cast<size_t>(n);
        }
        const uint64_t place = uint64_t(number_) << 32 | end_;
        end_ += value.size();
        is_synced_ = false;
        return place;
    }

    bool get(uint64_t place, std::span<std::byte> value) override
    {
        const uint32_t number = extent_of(place);
        const file_ref from = opened(number);
        const auto offset = static_cast<off_t>(static_cast<uint32_t>(place));
        for (size_t done = 0; done < value.size();) {
            const ssize_t n = pread(from->fd(), value.data() + done, value.size() - done,
                                    offset + static_cast<off_t>(done));
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0)
                fail(path_of(number), "cannot read a value", errno);
            if (n == 0)
                throw error(EBADMSG, path_of(number).string() + ": is cut off before byte " +
                                         std::to_string(offset + static_cast<off_t>(value.size())));
            done += static_cast<size_t>(n);
        }
        return true;
    }

    // The kernel reports a lost write once. Values that may be lost must not be committed later.
    void sync() override
    {
        std::lock_guard guard(lock_);
        if (broken_ != 0)
            fail(directory_, "values could not be written; open the store again", broken_);
        if (is_synced_)
            return;
        if (current_)
            filled_.push_back(current_);
        for (const file_ref &one : filled_)
            if (fdatasync(one->fd()) != 0)
                broken_ = errno;
        if (is_new_ && fsync(directory_file_->fd()) != 0)
            broken_ = errno;
        if (broken_ != 0)
            fail(directory_, "cannot sync values", broken_);
        filled_.clear();
        is_new_ = false;
        is_synced_ = true;
    }

    void discard(uint32_t extent) override
    {
        std::lock_guard guard(lock_);
        if (extent == number_)
            retire();
        readers_.erase(extent);
        full_.erase(extent);
        if (unlink(path_of(extent).c_str()) != 0 && errno != ENOENT)
            fail(path_of(extent), "cannot delete a file that is not needed", errno);
    }

    uint64_t full_bytes(uint32_t extent) const override
    {
        std::lock_guard guard(lock_);
        const auto found = full_.find(extent);
        return found != full_.end() ? found->second : 0;
    }

    void copy(const fs::path &to) override
    {
        fs::create_directories(to);
        for (const fs::directory_entry &entry : fs::directory_iterator(directory_)) {
            if (!entry.path().filename().string().ends_with(suffix))
                continue;
            const fs::path path = to / entry.path().filename();
            fs::copy_file(entry.path(), path);
            sync_file(path);
        }
        sync_directory(to);
    }

    std::string name_of(uint64_t place) const override
    {
        return path_of(extent_of(place)).string() + ", byte " +
               std::to_string(static_cast<uint32_t>(place));
    }

  private:
    fs::path path_of(uint32_t number) const
    {
        char name[24];
        snprintf(name, sizeof name, "%08x%s", number, suffix);
        return directory_ / name;
    }

    // `current_` gets no more values.
    void retire()
    {
        if (current_ && !is_synced_)
            filled_.push_back(current_);
        if (current_)
            full_[number_] = end_;
        current_.reset();
    }

    void begin_file()
    {
        retire();
        if (number_ == UINT32_MAX)
            throw error(EOVERFLOW, directory_.string() +
                                       ": has no number left for a file; copy the "
                                       "objects to a new store");
        auto begun = std::make_shared<file>(path_of(number_ + 1), O_RDWR | O_CREAT | O_EXCL);
        if (begun->fd() < 0)
            fail(path_of(number_ + 1), "cannot make a file of values", errno);
        number_++;
        current_ = begun;
        end_ = 0;
        is_new_ = true;
    }

    file_ref opened(uint32_t number)
    {
        std::lock_guard guard(lock_);
        if (number == number_ && current_)
            return current_;
        const auto found = readers_.find(number);
        if (found != readers_.end())
            return found->second;
        if (readers_.size() >= open_files_max)
            readers_.clear();
        auto file_read = std::make_shared<file>(path_of(number), O_RDONLY);
        if (file_read->fd() < 0)
            fail(path_of(number), "cannot open the file of a value", errno);
        readers_.emplace(number, file_read);
        return file_read;
    }

    const fs::path directory_;
    file_ref directory_file_;
    mutable std::mutex lock_;
    file_ref current_; // values are appended to it
    uint32_t number_ = 0;
    uint64_t end_ = 0;
    std::vector<file_ref> filled_; // and not synced
    bool is_synced_ = true, is_new_ = false;
    int broken_ = 0;                    // errno of a sync that failed
    std::map<uint32_t, uint64_t> full_; // bytes of files that get no more values
    std::map<uint32_t, file_ref> readers_;
};

} // namespace

void sync_directory(const fs::path &path)
{
    const file directory(path, O_RDONLY | O_DIRECTORY);
    if (directory.fd() < 0 || fsync(directory.fd()) != 0)
        fail(path, "cannot sync the directory", errno);
}

void sync_file(const fs::path &path)
{
    const file written(path, O_RDONLY);
    if (written.fd() < 0 || fdatasync(written.fd()) != 0)
        fail(path, "cannot sync the file", errno);
}

std::shared_ptr<tier> make_file_tier(const fs::path &directory)
{
    return std::make_shared<file_tier>(directory);
}

} // namespace tiered
