#include "pm/crash/place.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

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
        if (rename(path.c_str(), aside(path).c_str()) == 0) {
            aside_.insert(path);
        } else if (errno != ENOENT) {
            std::string why = strerror(errno);
            put_back();
            throw Error("cannot set aside " + path + ": " + why);
        }
    }
}

Place::~Place()
{
    put_back();
}

void Place::put_back()
{
    for (const std::string &path : paths_)
        unlink(path.c_str());
    for (const std::string &path : aside_)
        if (rename(aside(path).c_str(), path.c_str()) != 0)
            fprintf(stderr, "pm crash: cannot rename %s back: %s\n", aside(path).c_str(),
                    strerror(errno));
}

void Place::fill(uint32_t event, const sim::Memory &memory, const sim::Image &image)
{
    for (const std::string &path : paths_)
        unlink(path.c_str());
    for (uint32_t f = 0; f < tape_.files().size(); f++)
        if (tape_.files()[f].is_there(event))
            write(tape_.files()[f].path, f, memory, image);
}

void Place::keep(const std::string &directory, uint32_t event, const sim::Memory &memory,
                 const sim::Image &image)
{
    fs::create_directories(directory);
    for (uint32_t f = 0; f < tape_.files().size(); f++) {
        const Tape::File &file = tape_.files()[f];
        fs::path name = fs::path(file.path).filename();
        if (paths_.size() > 1) // they may have one name
            name = std::to_string(f) + "-" + name.string();
        if (file.is_there(event))
            write(directory / name, f, memory, image);
    }
}

void Place::write(const std::string &path, uint32_t file, const sim::Memory &memory,
                  const sim::Image &image)
{
    static const char zeros[BLOCK] = {};
    const char *floor = memory.floor_of(file);
    contents_.assign(floor, floor + image.sizes[file]);
    for (const sim::Image::Choice &c : image.choices)
        if (sim::file_of(c.unit) == file)
            memcpy(contents_.data() + (uint64_t)sim::number_of(c.unit) * memory.bytes(),
                   c.version.bytes, memory.bytes());
    struct stat st;
    mode_t mode =
        stat(aside(tape_.files()[file].path).c_str(), &st) == 0 ? st.st_mode & 07777 : 0666;
    unlink(path.c_str());
    int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    bool good = fd >= 0 && ftruncate(fd, (off_t)contents_.size()) == 0;
    for (uint64_t at = 0; good && at < contents_.size(); at += BLOCK) {
        size_t size = std::min(BLOCK, contents_.size() - at);
        if (memcmp(contents_.data() + at, zeros, size) != 0)
            good = pwrite(fd, contents_.data() + at, size, (off_t)at) == (ssize_t)size;
    }
    int error = errno;
    close(fd);
    if (!good)
        throw Error("cannot write " + path + ": " + strerror(error));
}

} // namespace crash
