#include "driver/process.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

extern char **environ;

namespace bench
{
namespace
{

[[noreturn]] void fail(const std::string &what, int error)
{
    throw std::system_error(error, std::generic_category(), what);
}

/** Starts the program with its standard output in `output`. */
pid_t start(const std::vector<std::string> &command, int output)
{
    std::vector<char *> argv;
    for (const std::string &word : command)
        argv.push_back(const_cast<char *>(word.c_str()));
    argv.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    pid_t pid;
    int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        fail(command[0], error);
    return pid;
}

/** Everything up to the end of the stream. */
std::string read_all(FILE *stream)
{
    std::string text;
    char buffer[4096];
    while (size_t count = fread(buffer, 1, sizeof buffer, stream))
        text.append(buffer, count);
    return text;
}

} // namespace

std::vector<Sample> run(const std::vector<std::string> &command)
{
    std::unique_ptr<FILE, decltype(&fclose)> output(tmpfile(), fclose);
    if (!output)
        fail("tmpfile", errno);

    int status;
    pid_t pid = start(command, fileno(output.get()));
    if (waitpid(pid, &status, 0) != pid)
        fail("waitpid", errno);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        std::string text;
        for (const std::string &word : command)
            text += word + ' ';
        throw std::runtime_error(text + (WIFSIGNALED(status)
                                             ? std::string("died: ") + strsignal(WTERMSIG(status))
                                             : "failed"));
    }

    rewind(output.get());
    std::istringstream lines(read_all(output.get()));
    std::vector<Sample> samples;
    for (std::string line; std::getline(lines, line);)
        samples.push_back(nlohmann::json::parse(line).get<Sample>());
    return samples;
}

} // namespace bench
