// A large value of which a part is in the file, when there is no memory for the rest of it.
#include "unit/pages.hpp"

#include <cerrno>
#include <filesystem>
#include <sys/mman.h>

using namespace values;

namespace
{

uint64_t calls, fails_from = UINT64_MAX, fails_for; // calls that want memory: some in a row fail

bool fails()
{
    return ++calls >= fails_from && calls - fails_from < fails_for;
}

} // namespace

extern "C" {
void *__real_realloc(void *p, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes) { return fails() ? nullptr : __real_realloc(p, bytes); }

int __real_mprotect(void *p, size_t bytes, int rights);
int __wrap_mprotect(void *p, size_t bytes, int rights)
{
    if (!fails())
        return __real_mprotect(p, bytes, rights);
    errno = ENOMEM;
    return -1;
}

void *__real_mmap(void *p, size_t bytes, int rights, int flags, int fd, off_t offset);
void *__wrap_mmap(void *p, size_t bytes, int rights, int flags, int fd, off_t offset)
{
    if (!fails())
        return __real_mmap(p, bytes, rights, flags, fd, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}
}

// The container has grown for the value, and is cut off again. Then another object is there, of zeros.
TEST_CASE("a large value fails half-way, and leaves nothing in its place", "[log]")
{
    const std::string value = bytes_of(4 * MiB + 100 * 1024 + 4040, 1), zeros(value.size(), 0);
    const bool stores = GENERATE(false, true);
    fails_for = GENERATE(3u, 5u, 8u);
    CAPTURE(stores, fails_for);
    test::Directory directory;
    const std::string path = directory / "c.pm";
    uint64_t failures = 0, at = 0;
    for (bool failed = true; failed;) {
        at++;
        CAPTURE(at);
        std::filesystem::remove(path);
        test::Container c = test::open(path, options());
        make_root(c.get());
        REQUIRE_OK(pm_commit(c.get()));
        calls = 0;
        fails_from = at;
        void *object = pm_put(c.get(), value.data(), value.size());
        fails_from = UINT64_MAX;
        failed = calls >= at;
        if (object)
            continue;
        failures++;
        object = stores ? pm_calloc(c.get(), 1, value.size()) : pm_malloc(c.get(), value.size());
        REQUIRE(object);
        const std::string now(static_cast<char *>(object), value.size());
        REQUIRE((!stores || now == zeros));
        set(root_of(c.get()), 0, object, value.size());
        REQUIRE_OK(pm_commit(c.get()));
        for (int round = 0; round < 2; round++) {
            REQUIRE(has(c.get(), 0, now));
            REQUIRE_OK(pm_check(c.get()));
            crash(c, path);
        }
    }
    REQUIRE(failures > 2);
}
