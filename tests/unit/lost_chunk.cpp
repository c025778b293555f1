// L13: a container of the log engine of which the medium has lost a chunk is refused, unless nobody needs the
// chunk. A header of zeros is that of a void chunk, so only the map's sum can tell.
#include "common/format.hpp"
#include "common/process.hpp"
#include "container/format_log.h"

#include <cerrno>
#include <unistd.h>

namespace
{

constexpr uint64_t CHUNK = 64 << 10, PAGES = 60;

void check_lost(const std::string &path)
{
    const std::string whole = test::read_file(path);
    unsigned used = 0, refused = 0;
    for (uint64_t at = CHUNK; at + CHUNK <= whole.size(); at += CHUNK) {
        if (std::string(whole, at, PM_LINE) == std::string(PM_LINE, '\0'))
            continue;
        used++;
        std::string bytes = whole;
        bytes.replace(at, CHUNK, CHUNK, '\0');
        test::write_file(path, bytes);
        INFO("chunk at " << at);
        for (unsigned flags : {(unsigned)PM_READONLY, 0u}) {
            pm_options options = test::options(flags);
            test::Container c(pm_open(path.c_str(), &options));
            if (!c)
                REQUIRE(test::failed_with(EBADMSG, {path.c_str(), "backup"}));
            for (uint64_t i = 0; c && i < PAGES; i++)
                REQUIRE(test::page_word(c.get(), i) == 3);
            refused += !c;
        }
    }
    test::write_file(path, whole);
    test::Container c = test::open(path, test::options());
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE(used > 0);
    REQUIRE(refused > 0);
}

} // namespace

// The state page knows the sums of the last container that was closed. So it must not be closed here.
CHILD_PROCESS(leaves_one_commit)
{
    test::Container c = test::open(arguments[0], test::small());
    if (!pm_getroot(c.get())) {
        uint64_t *object = (uint64_t *)pm_malloc(c.get(), 64);
        CHILD_REQUIRE(object);
        CHILD_REQUIRE(pm_setroot(c.get(), object, 0) == 0);
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
    }
    _exit(0);
}

TEST_CASE("the log rots while the container is open")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    pm_options how = test::small();
    test::Container c = test::open_with_pages(path, PAGES, how);
    for (uint64_t value = 1; value <= 3; value++) {
        for (uint64_t i = 0; i < PAGES; i++)
            test::page_word(c.get(), i) = value;
        REQUIRE_OK(pm_commit(c.get()));
    }
    const bool reads = GENERATE(false, true);
    if (reads) {
        c.reset();
        c = test::open(path, test::options(PM_READONLY));
    }
    unsigned noticed = 0;
    const uint64_t bytes = test::read_file(path).size();
    for (uint64_t at = CHUNK; at < bytes; at += 8 * PM_LINE) {
        test::flip_bit(path, at, 0);
        if (pm_check(c.get()) != 0) {
            REQUIRE(test::failed_with(EBADMSG, {path.c_str(), "backup"}));
            noticed++;
        }
        test::flip_bit(path, at, 0);
    }
    CHECK(noticed >= PAGES / 8); // as many as there are live lines, at least
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("the only chunk of a container is lost")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("leaves_one_commit", {path}));
    REQUIRE_CLEAN(test::run("leaves_one_commit", {path})); // its recovery raises the base epoch
    std::string bytes = test::read_file(path);
    bytes.replace(CHUNK, bytes.size() - CHUNK, bytes.size() - CHUNK, '\0');
    test::write_file(path, bytes);
    REQUIRE(pm_open(path.c_str(), nullptr) == nullptr);
    REQUIRE(test::failed_with(EBADMSG, {path.c_str(), "lacks pieces", "backup"}));
}

TEST_CASE("one of several chunks is lost")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open_with_pages(path, PAGES, test::small());
    for (uint64_t round = 1; round <= 3; round++) {
        for (uint64_t i = 0; i < PAGES; i++)
            test::page_word(c.get(), i) = round;
        REQUIRE_OK(pm_commit(c.get()));
    }
    c.reset();
    check_lost(path);
}
