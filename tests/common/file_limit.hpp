// A limit of file sizes, of this process, while the object lives. What it forbids fails with EFBIG, and no signal
// comes.
#ifndef TESTS_COMMON_FILE_LIMIT_HPP
#define TESTS_COMMON_FILE_LIMIT_HPP

#include "common/fixture.hpp"

#include <csignal>
#include <cstdint>
#include <sys/resource.h>

namespace test
{

class FileLimit
{
  public:
    explicit FileLimit(uint64_t bytes)
    {
        struct sigaction ignore = {};
        ignore.sa_handler = SIG_IGN;
        sigaction(SIGXFSZ, &ignore, &signal_);
        getrlimit(RLIMIT_FSIZE, &limit_);
        const rlimit lower = {bytes, limit_.rlim_max};
        REQUIRE(setrlimit(RLIMIT_FSIZE, &lower) == 0);
    }
    ~FileLimit()
    {
        setrlimit(RLIMIT_FSIZE, &limit_);
        sigaction(SIGXFSZ, &signal_, nullptr);
    }
    FileLimit(const FileLimit &) = delete;

  private:
    struct sigaction signal_;
    rlimit limit_;
};

} // namespace test

#endif
