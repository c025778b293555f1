// A large value of which a part is in the file, when there is no memory for the rest of it.
#include "unit/page_state.h"
#include "unit/pages.hpp"

#include <cerrno>
#include <filesystem>
#include <sys/mman.h>

using namespace values;

namespace
{

// Calls that want memory: some in a row fail, and one more.
uint64_t calls, fails_from = UINT64_MAX, fails_for, fails_too;

bool fails()
{
    calls++;
    return (calls >= fails_from && calls - fails_from < fails_for) || calls == fails_too;
}

// pm_put(), during which calls fail from this one on.
void *put_failing(pm_container *c, const std::string &value, uint64_t from)
{
    calls = 0;
    fails_from = from;
    void *object = pm_put(c, value.data(), value.size());
    fails_from = UINT64_MAX;
    fails_too = 0;
    return object;
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
        void *object = put_failing(c.get(), value, at);
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
        REQUIRE(lost_chunks(c.get()) == 0);
        for (int round = 0; round < 2; round++) {
            REQUIRE(has(c.get(), 0, now));
            REQUIRE_OK(pm_check(c.get()));
            crash(c, path);
        }
    }
    REQUIRE(failures > 2);
}

// It cannot be mapped, and goes to memory. There a call fails once more.
TEST_CASE("a large value is handed over though calls fail", "[log]")
{
    const std::string value = bytes_of(80 * 1024, 1);
    test::Directory directory;
    const std::string path = directory / "c.pm";
    fails_for = 1;
    uint64_t first = 0, last = 0;
    do {
        first++;
        uint64_t second = first;
        do {
            second++;
            CAPTURE(first, second);
            std::filesystem::remove(path);
            test::Container c = test::open(path, options());
            make_root(c.get());
            REQUIRE_OK(pm_commit(c.get()));
            fails_too = second;
            void *object = put_failing(c.get(), value, first);
            last = calls;
            if (!object)
                continue;
            set(root_of(c.get()), 0, object, value.size());
            REQUIRE_OK(pm_commit(c.get()));
            REQUIRE(lost_chunks(c.get()) == 0);
            REQUIRE(has(c.get(), 0, value));
            crash(c, path);
            REQUIRE(has(c.get(), 0, value));
        } while (second <= last);
    } while (first <= last);
    REQUIRE(first > 5);
}
