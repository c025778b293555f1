// An ordinary file under the undo engine. Recovery and close wait for the file in medium_settle(). So it must call
// fdatasync(2), and report that call's error.
#include "common/fixture.hpp"

#include <cerrno>

extern "C" {
#include "backend/backend.h"
}

namespace
{

int calls, error; // error: what each call fails with, or 0
int synced;       // the descriptor of the last one

} // namespace

extern "C" int __wrap_fdatasync(int fd)
{
    calls++;
    synced = fd;
    errno = error;
    return error == 0 ? 0 : -1;
}

TEST_CASE("settling waits for the file, and reports its error")
{
    struct medium medium = {};
    medium.ops = &medium_cache;
    medium.fd = 77;
    for (int expected : {0, EIO, ENOSPC}) {
        calls = 0;
        error = expected;
        CHECK(medium_cache.settle(&medium) == -expected);
        CHECK(calls == 1);
        CHECK(synced == 77);
    }
    calls = 0;
    medium.fd = -1; // a reader has none
    CHECK(medium_cache.settle(&medium) == 0);
    CHECK(calls == 0);
}
