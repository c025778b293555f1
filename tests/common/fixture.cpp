#include "common/fixture.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

namespace test
{

Directory::Directory(const std::string &parent) : path_(parent + "/libpm-test-XXXXXX")
{
    if (!mkdtemp(path_.data()))
        throw std::runtime_error("mkdtemp " + path_ + ": " + strerror(errno));
}

Directory::~Directory()
{
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

pm_options options(unsigned flags)
{
    pm_options o{};
    o.size = sizeof o;
    o.flags = flags;
    set_mode(o);
    return o;
}

pm_options small(unsigned flags)
{
    pm_options o = options(flags);
    o.segment_size = 64 << 10;
    o.max_size = 64 << 20;
    return o;
}

bool concurrently()
{
    return stores() ? false : GENERATE(false, true);
}

Container open(const std::string &path, const pm_options &options)
{
    Container c(pm_open(path.c_str(), &options));
    if (!c)
        throw std::runtime_error(pm_errormsg());
    return c;
}

struct pm_stats stats(pm_container *c)
{
    struct pm_stats s{};
    s.size = sizeof s;
    if (pm_stats(c, &s) != 0)
        throw std::runtime_error(pm_errormsg());
    return s;
}

uint64_t written_by_commit(pm_container *c)
{
    constexpr uint64_t line = 64;
    const struct pm_stats before = stats(c);
    REQUIRE_OK(pm_commit(c));
    const struct pm_stats after = stats(c);
    return after.bytes_fresh - before.bytes_fresh +
           (after.lines_logged - before.lines_logged) * line;
}

int in_child(const std::function<void()> &body)
{
    fflush(nullptr);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        body();
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    return status;
}

bool exited(int status, int code)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

bool killed(int status, int signal)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

void child_require(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "in the child: %s does not hold; last message: %s\n", what, pm_errormsg());
    _exit(99);
}

unsigned repetitions(unsigned some, unsigned all)
{
    return getenv("LIBPM_LONG") ? all : some;
}

void flip_bit(const std::string &path, uint64_t byte, unsigned bit)
{
    int fd = ::open(path.c_str(), O_RDWR);
    REQUIRE(fd >= 0);
    unsigned char value;
    REQUIRE(pread(fd, &value, 1, (off_t)byte) == 1);
    value ^= (unsigned char)(1u << bit);
    REQUIRE(pwrite(fd, &value, 1, (off_t)byte) == 1);
    close(fd);
}

std::string read_file(const std::string &path)
{
    std::ifstream in(path, std::ios::binary);
    std::error_code none;
    std::string bytes(std::filesystem::file_size(path, none) * !none, 0);
    in.read(bytes.data(), (std::streamsize)bytes.size());
    return bytes;
}

void write_file(const std::string &path, const std::string &bytes)
{
    std::ofstream out(path, std::ios::binary);
    out << bytes;
    if (!out.flush())
        throw std::runtime_error("cannot write " + path);
}

void patch_file(const std::string &path, uint64_t offset, const void *bytes, size_t size)
{
    int fd = ::open(path.c_str(), O_RDWR);
    bool written = fd >= 0 && pwrite(fd, bytes, size, (off_t)offset) == (ssize_t)size;
    close(fd);
    if (!written)
        throw std::runtime_error("cannot patch " + path);
}

uint64_t read_word(const std::string &path, uint64_t offset)
{
    uint64_t word = 0;
    int fd = ::open(path.c_str(), O_RDONLY);
    bool read = fd >= 0 && pread(fd, &word, sizeof word, (off_t)offset) == sizeof word;
    close(fd);
    if (!read)
        throw std::runtime_error("cannot read " + path);
    return word;
}

Container open_with_pages(const std::string &path, uint64_t pages, const pm_options &how)
{
    {
        Container c(pm_open(path.c_str(), &how));
        void *p = c ? pm_malloc(c.get(), pages * 4096) : nullptr;
        if (!p)
            throw std::runtime_error(pm_errormsg());
        memset(p, 0, pages * 4096);
        if (pm_setroot(c.get(), p, 0) != 0 || pm_commit(c.get()) != 0)
            throw std::runtime_error(pm_errormsg());
    }
    pm_options again = how;
    again.flags &= ~(unsigned)(PM_CREATE | PM_EXCLUSIVE);
    Container c(pm_open(path.c_str(), &again));
    if (!c)
        throw std::runtime_error(pm_errormsg());
    return c;
}

volatile uint64_t &page_word(pm_container *c, uint64_t page)
{
    return *reinterpret_cast<volatile uint64_t *>(static_cast<char *>(pm_getroot(c)) + page * 4096);
}

bool failed_with(int error, std::initializer_list<const char *> words)
{
    int actual = errno;
    std::string message = pm_errormsg();
    if (Catch::getCurrentContext().getResultCapture()) // none in a child process
        UNSCOPED_INFO("errno " << actual << " (" << strerror(actual) << "), message: " << message);
    for (const char *word : words)
        if (message.find(word) == std::string::npos)
            return false;
    return actual == error;
}

} // namespace test
