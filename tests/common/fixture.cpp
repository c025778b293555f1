#include "common/fixture.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

namespace test {

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
    return o;
}

pm_options small(unsigned flags)
{
    pm_options o = options(flags);
    o.segment_size = 64 << 10;
    o.max_size = 64 << 20;
    return o;
}

Container open(const std::string &path, const pm_options &options)
{
    Container c(pm_open(path.c_str(), &options));
    INFO(pm_errormsg());
    REQUIRE(c);
    return c;
}

pm_stats stats(pm_container *c)
{
    pm_stats s{};
    s.size = sizeof s;
    REQUIRE_OK(pm_stats(c, &s));
    return s;
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

bool failed_with(int error, std::initializer_list<const char *> words)
{
    int actual = errno;
    std::string message = pm_errormsg();
    UNSCOPED_INFO("errno " << actual << " (" << strerror(actual) << "), message: " << message);
    for (const char *word : words)
        if (message.find(word) == std::string::npos)
            return false;
    return actual == error;
}

} // namespace test
