// What is durable for certain is not written again when a log container is opened (L7). The disk would get
// everything twice, and opening would take as long as writing.
#include "common/process.hpp"

#include <cstring>
#include <unistd.h>

namespace
{

constexpr size_t LINE = 64, BYTES = 4 << 20;
constexpr int MORE = 3;

size_t rewritten;

// An object that many commits have filled. NULL if libpm fails.
char *committed(pm_container *c)
{
    auto *p = static_cast<char *>(pm_malloc(c, BYTES));
    bool good = p && pm_setroot(c, p, 0) == 0;
    for (size_t at = 0; good && at < BYTES; at += 16 * LINE) {
        memset(p + at, 'a', 16 * LINE);
        good = pm_commit(c) == 0;
    }
    return good ? p : nullptr;
}

// Written to the file by an opening though it is there already: records, and headers of chunks.
size_t by_opening(const std::string &path)
{
    rewritten = 0;
    test::Container c = test::open(path, test::options());
    REQUIRE(static_cast<char *>(pm_getroot(c.get()))[BYTES - 1] == 'a');
    return rewritten;
}

} // namespace

extern "C" {

struct medium;
int __real_medium_rewrite(struct medium *medium, const void *address, size_t size);

int __wrap_medium_rewrite(struct medium *medium, const void *address, size_t size)
{
    rewritten += size;
    return __real_medium_rewrite(medium, address, size);
}
}

TEST_CASE("what was closed is not written again")
{
    test::Directory directory(GENERATE("/dev/shm", "."));
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::options(PM_CREATE));
    REQUIRE(committed(c.get()));
    c.reset();
    REQUIRE(by_opening(path) == 0);
}

CHILD_PROCESS(commits_and_dies)
{
    test::Container c = test::open(arguments[0], test::options(PM_CREATE));
    char *p = committed(c.get());
    CHILD_REQUIRE(p);
    for (int i = 0; i < MORE; i++) {
        memset(p + i * LINE, 'b', LINE);
        CHILD_REQUIRE(pm_commit_async(c.get()).container);
    }
    _exit(0);
}

TEST_CASE("of what was not closed, what no record calls durable is written again")
{
    const bool in_memory = GENERATE(true, false);
    test::Directory directory(in_memory ? "/dev/shm" : ".");
    const std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("commits_and_dies", {path}));
    const size_t bytes = by_opening(path);
    REQUIRE(bytes >= (in_memory ? 1 : MORE) * 2 * LINE); // a header and a line each. Memory has fences
    REQUIRE(bytes <= 4096);
    REQUIRE(by_opening(path) == 0);
}
