// A file that nobody may change: its bytes and its times.
#ifndef TESTS_UNIT_UNCHANGED_HPP
#define TESTS_UNIT_UNCHANGED_HPP

#include "common/fixture.hpp"

#include <sys/stat.h>

namespace test
{

class Unchanged
{
  public:
    explicit Unchanged(const std::string &path)
        : path_(path), bytes_(read_file(path)), before_(attributes())
    {
    }
    void require() const
    {
        const bool same = read_file(path_) == bytes_;
        REQUIRE(same);
        const struct stat now = attributes();
        REQUIRE(now.st_size == before_.st_size);
        REQUIRE(now.st_blocks == before_.st_blocks);
        for (const auto time : {&stat::st_mtim, &stat::st_ctim}) {
            REQUIRE((now.*time).tv_sec == (before_.*time).tv_sec);
            REQUIRE((now.*time).tv_nsec == (before_.*time).tv_nsec);
        }
    }

  private:
    struct stat attributes() const
    {
        struct stat found = {};
        REQUIRE(stat(path_.c_str(), &found) == 0);
        return found;
    }
    const std::string path_, bytes_;
    const struct stat before_;
};

} // namespace test

#endif
