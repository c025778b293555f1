// The kernel does not let us close pages again: mprotect(2) fails, as it does when the process has
// too many maps. What is committed is committed, and no store is missed.
#include "common/process.hpp"

#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

using test::page_word;

static constexpr uint64_t SEGMENT = 64 << 10;

static bool refuses; // to make a part of a segment read-only, which would split a map

extern "C" {

int __real_mprotect(void *address, size_t size, int protection);

int __wrap_mprotect(void *address, size_t size, int protection)
{
    if (!refuses || protection != PROT_READ || size % SEGMENT == 0)
        return __real_mprotect(address, size, protection);
    errno = ENOMEM;
    return -1;
}
}

namespace
{

constexpr uint64_t PAGES = 40; // more than a segment of the log has images

// With so many segments besides those of the metadata, the pages, and the log as it is made.
pm_options with_room_for(uint64_t segments)
{
    pm_options how = test::small();
    how.max_size = (3 + PAGES * 4096 / SEGMENT + 1 + segments) * SEGMENT;
    return how;
}

void store(pm_container *c, uint64_t pages, uint64_t value)
{
    for (uint64_t page = 0; page < pages; page++)
        page_word(c, page) = value;
}

} // namespace

// arguments: path
CHILD_PROCESS(cools_pages_unprotected)
{
    pm_container *c = test::open(arguments[0], test::options()).release();
    store(c, PAGES - 1, 1);
    CHILD_REQUIRE(pm_commit(c) == 0);
    refuses = true;
    page_word(c, PAGES - 1) = 1; // the others would be closed for not having changed
    CHILD_REQUIRE(pm_commit(c) == 0);
    uint64_t faults = test::stats(c).faults;
    store(c, PAGES - 1, 2);
    CHILD_REQUIRE(test::stats(c).faults == faults);
    CHILD_REQUIRE(pm_commit(c) == 0);
    CHILD_REQUIRE(pm_check(c) == 0);
    _exit(0);
}

TEST_CASE("pages that cannot be closed are logged ahead, or stay listed")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::open_with_pages(path, PAGES, with_room_for(100));
    REQUIRE_CLEAN(test::run("cools_pages_unprotected", {path}));
    test::Container c = test::open(path, test::options());
    for (uint64_t page = 0; page < PAGES - 1; page++)
        REQUIRE(page_word(c.get(), page) == 2);
    REQUIRE_OK(pm_check(c.get()));
}

// arguments: path, whether there is a standard error
CHILD_PROCESS(commits_what_cannot_be_logged)
{
    if (arguments[1] == "mute")
        close(STDERR_FILENO);
    pm_container *c = test::open(arguments[0], test::options()).release();
    page_word(c, 0) = 1;
    CHILD_REQUIRE(pm_commit(c) == 0);
    store(c, 20, 2);
    refuses = true;
    pm_commit(c);
    test::say("alive");
    _exit(0);
}

TEST_CASE("a page that can neither be closed nor logged ends the process", "[undo]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::open_with_pages(path, PAGES, with_room_for(1)); // for a second segment of one half
    std::string voice = GENERATE(as<std::string>(), "loud", "mute");
    test::Ended ended = test::run("commits_what_cannot_be_logged", {path, voice});
    INFO(ended.errors);
    REQUIRE(test::killed(ended.status, SIGABRT));
    REQUIRE(ended.output.empty());
    bool told = ended.errors.find(path) != std::string::npos &&
                ended.errors.find("can neither protect nor log a page") != std::string::npos;
    REQUIRE(told == (voice == "loud"));
    test::Container c = test::open(path, test::options());
    REQUIRE(page_word(c.get(), 0) == 1);
    for (uint64_t page = 1; page < 20; page++)
        REQUIRE(page_word(c.get(), page) == 0);
    REQUIRE_OK(pm_check(c.get()));
}
