// Fresh processes. A child of fork(2) may not use libpm once its parent has, and many a test needs
// a process that dies: so a test program starts itself again, with the name of a function to run.
//
//     CHILD_PROCESS(stores_and_dies)
//     {
//         ... arguments[0] ...; CHILD_REQUIRE(...);
//     }
//     TEST_CASE("...") { REQUIRE_CLEAN(test::run("stores_and_dies", {path})); }
#ifndef TESTS_PROCESS_HPP
#define TESTS_PROCESS_HPP

#include "common/fixture.hpp"

#include <csignal>
#include <cstdint>
#include <cstring>

#include <string>
#include <sys/types.h>
#include <vector>

namespace test
{

using Arguments = std::vector<std::string>;
using ChildFunction = void (*)(const Arguments &);

struct Ended {
    int status; // as waitpid(2) has it
    std::string output, errors;
};

// A process under way. Its standard output is a pipe; standard error is collected. It gets SIGALRM
// after two minutes, so that a test that hangs fails instead. Throws when the system refuses; uses
// nothing of Catch2, so that children may have children.
class Process
{
  public:
    Process(const std::string &child, const Arguments &arguments = {},
            const Arguments &environment = {});
    ~Process(); // kills it
    Process(const Process &) = delete;

    std::string read_line(); // of its output; "" at the end
    void kill(int signal);
    void close_input(); // its standard input, a pipe, ends
    Ended wait();
    pid_t id() const { return id_; }

  private:
    pid_t id_;
    int input_, output_, errors_;
    std::string read_;
};

// Start, wait, tell.
Ended run(const std::string &child, const Arguments &arguments = {},
          const Arguments &environment = {});

// For children: say that a point is reached, and wait until the parent closes our input.
void say(const char *line);
void wait_for_end_of_input();

// Anonymous memory of this process. Private copies of a container's pages (the shadow) count, its
// shared pages do not.
uint64_t anonymous_bytes();

// Addresses of this process that are mapped or reserved.
uint64_t address_bytes();

struct ChildRegistration {
    ChildRegistration(const char *name, ChildFunction function);
};

// What main() calls: the exit status of the child that the command line names, or -1 for none.
int run_child_named(int argc, char **argv);

} // namespace test

#define CHILD_PROCESS(name)                                                                        \
    static void child_##name(const test::Arguments &arguments);                                    \
    static const test::ChildRegistration register_##name(#name, child_##name);                     \
    static void child_##name([[maybe_unused]] const test::Arguments &arguments)

// The process ended with status 0.
#define REQUIRE_CLEAN(...)                                                                         \
    do {                                                                                           \
        const test::Ended ended_ = (__VA_ARGS__);                                                  \
        INFO("wait status " << ended_.status << "; errors: " << ended_.errors);                    \
        REQUIRE(test::exited(ended_.status));                                                      \
    } while (0)

#define REQUIRE_KILLED(signal, ...)                                                                \
    do {                                                                                           \
        const test::Ended ended_ = (__VA_ARGS__);                                                  \
        INFO("wait status " << ended_.status << "; errors: " << ended_.errors);                    \
        REQUIRE(test::killed(ended_.status, signal));                                              \
    } while (0)

#endif
