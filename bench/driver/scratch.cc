#include "driver/scratch.h"

#include <cstdlib>
#include <linux/magic.h>
#include <sys/vfs.h>

namespace bench
{
namespace
{

namespace fs = std::filesystem;

[[noreturn]] void fail(const char *what, const fs::path &path)
{
    throw fs::filesystem_error(what, path, std::error_code(errno, std::generic_category()));
}

} // namespace

Scratch::Scratch(const fs::path &parent)
{
    std::string name = parent / "pm-bench-XXXXXX";
    if (!mkdtemp(name.data()))
        fail("mkdtemp", name);
    path_ = name;
}

Scratch::~Scratch()
{
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

void Scratch::clear()
{
    for (const auto &entry : fs::directory_iterator(path_))
        fs::remove_all(entry);
}

void require_disk(const fs::path &directory)
{
    struct statfs status;
    if (statfs(directory.c_str(), &status) != 0)
        fail("statfs", directory);
    if (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC)
        throw std::runtime_error(directory.string() + " is in memory; --file-directory must be on "
                                                      "an ordinary file system");
}

} // namespace bench
