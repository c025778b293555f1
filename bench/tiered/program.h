/* What the programs of this part share: arguments, and files of messages. */
#pragma once

#include "harness/sample.h"

#include <tiered/store.hpp>

#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace bench
{

struct Job {
    std::filesystem::path memory, file; // directories: of persistent memory, and on the disk
    std::string peer;
    size_t count;

    std::filesystem::path messages() const { return file / "messages"; }
    std::filesystem::path container(const std::string &store) const
    {
        return memory / (store + ".pm");
    }
    tiered::store open(const std::string &name) const
    {
        tiered::options options;
        options.container = container(name);
        return tiered::store(file / name, options);
    }
};

inline uint64_t now_ns()
{
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                 std::chrono::nanoseconds(1));
}

/**
 * The arguments are PEER,... COUNT MEMORY-DIRECTORY FILE-DIRECTORY. Each peer gets a process, which begins with no
 * memory of those before it.
 */
template <class Run> int run_peers(int argc, char **argv, Run run)
{
    if (argc != 5)
        throw std::runtime_error("usage: PEER,... COUNT MEMORY-DIRECTORY FILE-DIRECTORY");
    std::istringstream peers(argv[1]);
    for (std::string peer; std::getline(peers, peer, ',');) {
        if (fork() == 0) {
            run(Job{argv[3], argv[4], peer, std::stoul(argv[2])});
            std::cout.flush();
            _exit(0);
        }
        int status = 0;
        if (wait(&status) < 0 || status != 0)
            throw std::runtime_error(std::string(argv[0]) + ": " + peer + " has failed");
    }
    return 0;
}

/** Let this process and its children use so much memory, page cache and tmpfs included. Needs root. */
class MemoryLimit
{
  public:
    explicit MemoryLimit(uint64_t bytes)
        : group_("/sys/fs/cgroup/memory/pm-bench-" + std::to_string(getpid()))
    {
        std::filesystem::create_directory(group_);
        write("memory.limit_in_bytes", bytes);
        write("tasks", static_cast<uint64_t>(getpid()));
    }
    ~MemoryLimit()
    {
        std::ofstream("/sys/fs/cgroup/memory/tasks") << getpid();
        std::error_code ignored;
        std::filesystem::remove(group_, ignored);
    }
    MemoryLimit(const MemoryLimit &) = delete;

  private:
    void write(const char *name, uint64_t value)
    {
        std::ofstream file(group_ / name);
        file << value;
        if (!file.flush())
            throw std::runtime_error((group_ / name).string() +
                                     ": memory cannot be limited; is this root?");
    }

    const std::filesystem::path group_;
};

/** Messages with their lengths before them, as Protocol Buffers' own manual has it. */
template <class Message, class Each>
void read_messages(const std::filesystem::path &path, Each each)
{
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        throw std::runtime_error(path.string() + ": cannot be read");
    google::protobuf::io::FileInputStream in(fd);
    in.SetCloseOnDelete(true);
    Message message;
    bool ended = false;
    while (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&message, &in, &ended)) {
        each(message);
        message.Clear(); // it merges
    }
    if (!ended)
        throw std::runtime_error(path.string() + ": is damaged");
}

/** `fill(message)` for each of `count` messages. */
template <class Message, class Fill>
void write_messages(const std::filesystem::path &path, size_t count, Fill fill)
{
    std::ofstream out(path, std::ios::binary);
    google::protobuf::io::OstreamOutputStream stream(&out);
    Message message;
    for (size_t i = 0; i < count; i++) {
        message.Clear();
        fill(message);
        if (!google::protobuf::util::SerializeDelimitedToZeroCopyStream(message, &stream))
            throw std::runtime_error(path.string() + ": cannot be written");
    }
}

/** Commit now and then, so that one transaction need not hold all. */
template <class Make> void make_objects(tiered::store &store, size_t count, Make make)
{
    for (size_t i = 0; i < count; i++) {
        make();
        if (i % 10'000 == 9'999)
            store.commit();
    }
    store.commit();
}

} // namespace bench
