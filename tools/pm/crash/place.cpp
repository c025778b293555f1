// A container's file is renamed to PATH.pm-crash-aside, and never written to. If the tool is killed, the
// file is still there, and the next run says so.
//
// Our own files stay mapped from crash to crash. Blocks are allocated before they are stored to, because a
// full disk would be a signal. Each file is marked as closed, or libpm would refuse it as a copy.
#include "pm/crash/place.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern "C" {
#include "container/format.h"
}

namespace fs = std::filesystem;

namespace crash
{

static constexpr uint64_t BLOCK = 4096;

static std::string aside(const std::string &path)
{
    return path + ".pm-crash-aside";
}

Place::Place(const Tape &tape) : tape_(tape)
{
    for (const Tape::File &f : tape.files())
        paths_.insert(f.path);
    for (const std::string &path : paths_)
        if (fs::exists(aside(path)))
            throw Error(aside(path) +
                        " is there: another `pm crash` is at work on it, or was "
                        "killed; if so, rename that file back to " +
                        path);
    for (const std::string &path : paths_) {
        const int error = rename(path.c_str(), aside(path).c_str()) == 0 ? 0 : errno;
        if (error == 0) {
            aside_.insert(path);
        } else if (error != ENOENT) { // and nothing of ours is there yet
            rename_back();
            throw Error("cannot set aside " + path + ": " + strerror(error));
        }
    }
}

Place::~Place()
{
    for (auto &[path, file] : files_)
        forget(file);
    for (const std::string &path : paths_)
        unlink(path.c_str());
    rename_back();
}

void Place::rename_back()
{
    for (const std::string &path : aside_)
        if (rename(aside(path).c_str(), path.c_str()) != 0)
            fprintf(stderr, "pm crash: cannot rename %s back: %s\n", aside(path).c_str(),
                    strerror(errno));
}

void Place::fill(uint32_t event, const sim::Memory &memory, const sim::Image &image)
{
    std::set<std::string> absent = paths_;
    for (uint32_t f = 0; f < tape_.files().size(); f++) {
        const std::string &path = tape_.files()[f].path;
        if (!tape_.files()[f].is_there(event))
            continue;
        write(path, f, memory, image, files_[path]);
        absent.erase(path);
    }
    for (const std::string &path : absent) {
        unlink(path.c_str());
        forget(files_[path]);
    }
}

void Place::keep(const std::string &directory, uint32_t event, const sim::Memory &memory,
                 const sim::Image &image)
{
    fs::create_directories(directory);
    for (uint32_t f = 0; f < tape_.files().size(); f++) {
        const Tape::File &file = tape_.files()[f];
        fs::path name = fs::path(file.path).filename();
        if (paths_.size() > 1) // files of different directories may have the same name
            name = std::to_string(f) + "-" + name.string();
        if (!file.is_there(event))
            continue;
        File kept;
        write(directory / name, f, memory, image, kept);
        forget(kept);
    }
}

bool Place::is_ours(const std::string &path, const File &file) const
{
    struct stat st;
    return file.map && stat(path.c_str(), &st) == 0 && st.st_ino == file.inode &&
           (uint64_t)st.st_size == file.size;
}

void Place::forget(File &file)
{
    if (file.map) {
        munmap(file.map, STREAM_FILE_MAX);
        close(file.fd);
    }
    file = File();
}

// Makes an empty file and maps it. Children do not get the mapping: a fork would copy its page tables.
void Place::make(const std::string &path, mode_t mode, File &file)
{
    forget(file);
    unlink(path.c_str());
    int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    struct stat st;
    void *map = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0)
        map = mmap(nullptr, STREAM_FILE_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        int error = errno;
        close(fd);
        throw Error("cannot write " + path + ": " + strerror(error));
    }
    madvise(map, STREAM_FILE_MAX, MADV_DONTFORK);
    file = {fd, static_cast<char *>(map), st.st_ino, 0};
}

void Place::write(const std::string &path, uint32_t number, const sim::Memory &memory,
                  const sim::Image &image, File &file)
{
    struct stat st;
    if (!is_ours(path, file)) {
        std::string original = aside(tape_.files()[number].path);
        make(path, stat(original.c_str(), &st) == 0 ? st.st_mode & 07777 : 0666, file);
    }
    if (image.sizes[number] < file.size && ftruncate(file.fd, (off_t)image.sizes[number]) != 0)
        throw Error("cannot write " + path + ": " + strerror(errno));
    // Allocate the blocks now: on a full disk a store to the mapping would kill the tool.
    if (image.sizes[number] > file.size)
        if (int error = posix_fallocate(file.fd, 0, (off_t)image.sizes[number]))
            throw Error("cannot write " + path + ": " + strerror(error));
    file.size = image.sizes[number];
    const char *floor = memory.floor_of(number);
    for (uint64_t at = 0; at < file.size; at += BLOCK) {
        size_t size = std::min(BLOCK, file.size - at);
        if (memcmp(file.map + at, floor + at, size) != 0)
            memcpy(file.map + at, floor + at, size);
    }
    for (const sim::Image::Choice &c : image.choices)
        if (sim::file_of(c.unit) == number)
            memcpy(file.map + (uint64_t)sim::number_of(c.unit) * memory.bytes(), c.version.bytes,
                   memory.bytes());
    // The mark in the image names the program's file. With this mark libpm would take the new file for a
    // copy, and refuse it.
    const uint64_t mark = MARK_CLOSED;
    if (file.size >= FORMAT_MARK + sizeof mark)
        memcpy(file.map + FORMAT_MARK, &mark, sizeof mark);
}

} // namespace crash
