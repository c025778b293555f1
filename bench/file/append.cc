/*
 * What a log writes to a disk at least: a record goes to the next free place of a file, and fdatasync(2) follows.
 * The file has its blocks from the beginning. The labels are those of the databases' row (cell.cc).
 */
#include "file/written.h"
#include "harness/sample.h"
#include "harness/status.h"

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

namespace bench
{
namespace
{

struct Setting {
    std::string directory;
    std::vector<std::string> row;
    size_t bytes, commits;
};

void require(bool holds, const char *what)
{
    if (!holds)
        throw std::system_error(errno, std::generic_category(), what);
}

void measure(const Setting &setting)
{
    const int fd = open((setting.directory + "/append").c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
    require(fd >= 0, "open");
    require(fallocate(fd, 0, 0, static_cast<off_t>(setting.bytes * setting.commits)) == 0,
            "fallocate");
    require(fsync(fd) == 0, "fsync");
    const std::string record(setting.bytes, 'r');
    const auto before = bytes_written(setting.directory);
    for (size_t i = 0; i < setting.commits; i++) {
        require(write(fd, record.data(), record.size()) == static_cast<ssize_t>(record.size()),
                "write");
        require(fdatasync(fd) == 0, "fdatasync");
    }
    close(fd);
    const auto after = bytes_written(setting.directory);
    if (before && after)
        emit({"file_updates", setting.row, "append",
              static_cast<double>(*after - *before) / static_cast<double>(setting.commits), "B",
              setting.commits});
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    bench::Setting setting{};
    CLI::App app("Tell what a bare append writes to the disk");
    app.add_option("directory", setting.directory, "an empty directory")->required();
    app.add_option("bytes", setting.bytes, "of a record")->required();
    app.add_option("commits", setting.commits)->required();
    app.add_option("--row", setting.row, "its labels: value, puts a commit, keys")
        ->expected(3)
        ->required();
    CLI11_PARSE(app, argc, argv);
    return bench::status_of([&] { bench::measure(setting); });
}
