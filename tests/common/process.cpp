#include "common/process.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <spawn.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace test
{

namespace
{

// Made on first use: registrations run before main() in no certain order.
std::map<std::string, ChildFunction> &children()
{
    static std::map<std::string, ChildFunction> all;
    return all;
}

[[noreturn]] void refuse(const char *what)
{
    throw std::runtime_error(std::string(what) + ": " + strerror(errno));
}

std::string contents_of(int fd)
{
    std::string text;
    char buffer[4096];
    off_t at = 0;
    for (ssize_t n; (n = pread(fd, buffer, sizeof buffer, at)) > 0; at += n)
        text.append(buffer, (size_t)n);
    return text;
}

std::vector<char *> pointers(const Arguments &strings)
{
    std::vector<char *> all;
    for (const std::string &s : strings)
        all.push_back(const_cast<char *>(s.c_str()));
    all.push_back(nullptr);
    return all;
}

} // namespace

ChildRegistration::ChildRegistration(const char *name, ChildFunction function)
{
    children()[name] = function;
}

Process::Process(const std::string &child, const Arguments &arguments, const Arguments &environment)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        refuse("pipe2");
    errors_ = memfd_create("stderr", MFD_CLOEXEC);
    if (errors_ < 0)
        refuse("memfd_create");
    Arguments words = {"/proc/self/exe", "--child", child};
    words.insert(words.end(), arguments.begin(), arguments.end());
    Arguments settings = environment;
    for (char **e = environ; *e; e++)
        settings.push_back(*e); // the first of two wins in getenv(3)
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors_, STDERR_FILENO);
    int error = posix_spawn(&id_, words[0].c_str(), &actions, nullptr, pointers(words).data(),
                            pointers(settings).data());
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    input_ = in[1];
    output_ = out[0];
    if (error != 0) {
        errno = error;
        refuse("posix_spawn");
    }
}

Process::~Process()
{
    if (id_ == 0)
        return;
    kill(SIGKILL);
    close_input(); // and not wait(): a child of the child may hold the output open
    close(output_);
    close(errors_);
    waitpid(id_, nullptr, 0);
}

std::string Process::read_line()
{
    for (;;) {
        size_t end = read_.find('\n');
        if (end != std::string::npos) {
            std::string line = read_.substr(0, end);
            read_.erase(0, end + 1);
            return line;
        }
        char buffer[4096];
        ssize_t n = read(output_, buffer, sizeof buffer);
        if (n <= 0)
            return "";
        read_.append(buffer, (size_t)n);
    }
}

void Process::kill(int signal)
{
    ::kill(id_, signal);
}

void Process::close_input()
{
    if (input_ >= 0)
        close(input_);
    input_ = -1;
}

Ended Process::wait()
{
    close_input();
    char buffer[4096];
    for (ssize_t n; (n = read(output_, buffer, sizeof buffer)) > 0;)
        read_.append(buffer, (size_t)n);
    Ended ended{};
    if (waitpid(id_, &ended.status, 0) != id_)
        refuse("waitpid");
    ended.output = read_;
    ended.errors = contents_of(errors_);
    close(output_);
    close(errors_);
    id_ = 0;
    return ended;
}

Ended run(const std::string &child, const Arguments &arguments, const Arguments &environment)
{
    return Process(child, arguments, environment).wait();
}

void say(const char *line)
{
    std::string text = std::string(line) + "\n";
    if (write(STDOUT_FILENO, text.data(), text.size()) != (ssize_t)text.size())
        _exit(98);
}

void wait_for_end_of_input()
{
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
}

static uint64_t status_bytes(const char *wanted)
{
    std::ifstream status("/proc/self/status");
    std::string key;
    while (status >> key) {
        uint64_t kilobytes;
        if (key == wanted && status >> kilobytes)
            return kilobytes << 10;
    }
    return 0;
}

uint64_t anonymous_bytes()
{
    return status_bytes("RssAnon:");
}

uint64_t address_bytes()
{
    return status_bytes("VmSize:");
}

int run_child_named(int argc, char **argv)
{
    if (argc < 3 || strcmp(argv[1], "--child") != 0)
        return -1;
    auto found = children().find(argv[2]);
    if (found == children().end()) {
        fprintf(stderr, "no child process %s\n", argv[2]);
        return 97;
    }
    alarm(120);
    try {
        found->second(Arguments(argv + 3, argv + argc));
    } catch (const std::exception &e) {
        fprintf(stderr, "in the child: %s\n", e.what());
        return 96;
    }
    return 0;
}

} // namespace test
