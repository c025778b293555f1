// The kernel refuses to let a page of a container be read that lies elsewhere than its pointers mean. A call of
// libpm fails, and can be repeated; so can an access of the program.
#include "common/fixture.hpp"

#include <cerrno>
#include <filesystem>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

int refusals; // so many of the next calls of mprotect(2) that make pages readable

} // namespace

extern "C" int __real_mprotect(void *at, size_t size, int prot);
extern "C" int __wrap_mprotect(void *at, size_t size, int prot)
{
    if (refusals == 0 || prot != PROT_READ)
        return __real_mprotect(at, size, prot);
    refusals--;
    errno = EACCES;
    return -1;
}

TEST_CASE("a page that could not be opened for a call is opened at its next access")
{
    test::Directory directory;
    const std::string path = directory / "c.pm", copy = directory / "copy.pm";
    test::Container original = test::open(path, test::small(PM_CREATE | PM_MOVABLE));
    auto **words = static_cast<void **>(pm_calloc(original.get(), 2, sizeof(void *)));
    REQUIRE(words);
    REQUIRE_OK(pm_mark_pointers(words, 2));
    words[0] = words;
    REQUIRE_OK(pm_setroot(original.get(), words, 0));
    REQUIRE_OK(pm_commit(original.get()));
    original.reset();
    std::filesystem::copy_file(path, copy);
    original = test::open(path, test::small(PM_MOVABLE));
    test::Container c = test::open(copy, test::small(PM_MOVABLE));
    REQUIRE(test::stats(c.get()).moved);
    refusals = 1;
    REQUIRE(pm_check(c.get()) == -1);
    REQUIRE(test::failed_with(EACCES, {copy.c_str(), "cannot open the page of a pointer"}));
    REQUIRE(refusals == 0);
    alarm(30); // if it faults again and again
    auto *volatile *root = static_cast<void *volatile *>(pm_getroot(c.get()));
    REQUIRE(root[0] == static_cast<const volatile void *>(root));
    alarm(0);
    REQUIRE_OK(pm_check(c.get()));
}
