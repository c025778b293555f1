// What every test needs: a place for containers, containers that close themselves, and children to
// do what a test process cannot survive.
#ifndef TESTS_FIXTURE_HPP
#define TESTS_FIXTURE_HPP

#include "common/mode.hpp"

#include <catch2/catch.hpp>
#include <libpm.h>

#include <functional>
#include <memory>
#include <string>

namespace test
{

// A directory of its own, deleted with all that is in it. On tmpfs, which counts as pmem, unless
// `parent` says otherwise.
class Directory
{
  public:
    explicit Directory(const std::string &parent = "/dev/shm");
    ~Directory();
    Directory(const Directory &) = delete;
    std::string operator/(const std::string &name) const { return path_ + "/" + name; }
    const std::string &path() const { return path_; }

  private:
    std::string path_;
};

// Options of the run's mode with their size set; small segments make boundaries cheap to reach.
pm_options options(unsigned flags = 0);
pm_options small(unsigned flags = PM_CREATE); // 64 KiB segments, at most 64 MiB

// Generates false and true for options.concurrent_stores; false alone where the tracker excludes
// it.
bool concurrently();

struct Closer {
    void operator()(pm_container *c) const { pm_close(c); }
};
using Container = std::unique_ptr<pm_container, Closer>;

// Open, and fail the test if that fails: by an exception, so that child processes can use it.
Container open(const std::string &path, const pm_options &options);

struct pm_stats stats(pm_container *c);

// Commit. Returns how many bytes that wrote for objects: their lines, without journaled words.
uint64_t written_by_commit(pm_container *c);

// Run `body` in a child of fork(2) and return its wait status. Once this process has opened a
// container the child can do nothing with libpm; process.hpp has fresh processes.
int in_child(const std::function<void()> &body);

// Status helpers for in_child().
bool exited(int status, int code = 0);
bool killed(int status, int signal);

// Leave a child of in_child() at once, with a message if `condition` does not hold. (Catch2's
// macros are for the parent.)
void child_require(bool condition, const char *what);
#define CHILD_REQUIRE(condition) test::child_require((condition) ? true : false, #condition)

// Flip one bit of a file.
void flip_bit(const std::string &path, uint64_t byte, unsigned bit);

// How often a test repeats itself: `all` times if LIBPM_LONG is set, as scripts/soak sets it, else `some`.
unsigned repetitions(unsigned some, unsigned all);

// Whole files, and parts of them.
std::string read_file(const std::string &path);
void write_file(const std::string &path, const std::string &bytes);
void patch_file(const std::string &path, uint64_t offset, const void *bytes, size_t size);
uint64_t read_word(const std::string &path, uint64_t offset);

// A container with `pages` pages of one large object at its root, committed, closed, and open
// again: so all its pages are closed and cold.
Container open_with_pages(const std::string &path, uint64_t pages, const pm_options &how);

// The 64-bit word at the start of a page of the root object. Volatile, since it is what a test
// observes and the compiler must not remember.
volatile uint64_t &page_word(pm_container *c, uint64_t page);

// Whether the last failure was this errno, with all `words` in its message.
bool failed_with(int error, std::initializer_list<const char *> words = {});

} // namespace test

// The call returned 0; else its message is told.
#define REQUIRE_OK(call)                                                                           \
    do {                                                                                           \
        int result_ = (call);                                                                      \
        INFO(#call << ": " << (result_ == 0 ? "" : pm_errormsg()));                                \
        REQUIRE(result_ == 0);                                                                     \
    } while (0)

#endif
