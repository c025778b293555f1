// System calls that write to memory find a closed page read-only, and say so; they raise no signal
// that could open it.
#include "common/fixture.hpp"

#include <cerrno>
#include <cstring>
#include <sys/uio.h>
#include <unistd.h>

namespace
{

struct Fixture {
    test::Directory directory;
    test::Container c = test::open_with_pages(directory / "c.pm", 20, test::small());
    char *data = static_cast<char *>(pm_getroot(c.get()));
    int ends[2];

    Fixture()
    {
        REQUIRE(pipe(ends) == 0);
        REQUIRE(write(ends[1], "contents", 8) == 8);
    }
    ~Fixture()
    {
        close(ends[0]);
        close(ends[1]);
    }
};

} // namespace

TEST_CASE_METHOD(Fixture, "read(2) into a closed page", "[faults]")
{
    char *buffer = data + 5 * 4096 + 100;
    errno = 0;
    REQUIRE(read(ends[0], buffer, 8) == -1);
    REQUIRE(errno == EFAULT);
    REQUIRE(test::stats(c.get()).faults == 0);
    if (GENERATE(true, false))
        REQUIRE_OK(pm_dirty(buffer, 8));
    else
        *buffer = 1; // opens the page as well
    REQUIRE(read(ends[0], buffer, 8) == 8);
    REQUIRE(memcmp(buffer, "contents", 8) == 0);
    SECTION("and is rolled back")
    {
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(buffer[0] == 0);
    }
    SECTION("and is committed")
    {
        REQUIRE_OK(pm_commit(c.get()));
        c.reset();
        c = test::open(directory / "c.pm", test::options());
        REQUIRE(memcmp(buffer, "contents", 8) == 0);
    }
}

TEST_CASE_METHOD(Fixture, "read(2) over the border of pages", "[faults]")
{
    char *buffer = data + 6 * 4096 - 4;
    REQUIRE_OK(pm_dirty(buffer, 4)); // the first page only
    ssize_t got = read(ends[0], buffer, 8);
    REQUIRE(((got == -1 && errno == EFAULT) || got == 4));
    REQUIRE_OK(pm_dirty(buffer, 8));
    REQUIRE(write(ends[1], "contents", 8) == 8);
    REQUIRE(read(ends[0], buffer, 8) == 8);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE_METHOD(Fixture, "write(2) from a closed page")
{
    strcpy(data, "hello");
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(directory / "c.pm", test::options());
    char got[20];
    REQUIRE(read(ends[0], got, 8) == 8);
    REQUIRE(write(ends[1], data, 6) == 6);
    REQUIRE(read(ends[0], got, 6) == 6);
    REQUIRE(strcmp(got, "hello") == 0);
    REQUIRE(test::stats(c.get()).faults == 0);
}

TEST_CASE_METHOD(Fixture, "read(2) into a new object")
{
    // Its pages may be open already; what the manual asks for is never wrong.
    void *p = pm_malloc(c.get(), 100000);
    REQUIRE(p);
    REQUIRE_OK(pm_dirty(p, 100000));
    iovec parts[2] = {{p, 4}, {static_cast<char *>(p) + 99996, 4}};
    REQUIRE(readv(ends[0], parts, 2) == 8);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(memcmp(static_cast<char *>(p) + 99996, "ents", 4) == 0);
}
