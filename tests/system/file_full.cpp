// A full disk under an ordinary file and the redo engine: commits fail cleanly, can be tried again
// when there is space, and lose nothing.
#include "common/file_medium.hpp"
#include "common/process.hpp"
#include "system/disk.hpp"
#include "system/full.hpp"

#include <cerrno>
#include <unistd.h>

using test::failed_with;
using test::page_word;

using namespace test::full;

TEST_CASE("a commit that finds the disk full can be tried again", "[private][disk]")
{
    test::Disk disk(64 * MiB);
    std::string path = disk / "c.pm";
    test::Container c = test::open_with_pages(path, PAGES, how());
    REQUIRE(std::string(test::stats(c.get()).medium) == "file");
    page_word(c.get(), 0) = 1;
    REQUIRE_OK(pm_commit(c.get()));
    disk.fill();
    store(c.get(), 2);
    uint64_t epoch = test::stats(c.get()).epoch;
    for (int again = 0; again < 3; again++) {
        REQUIRE(pm_commit(c.get()) == -1);
        REQUIRE(failed_with(ENOSPC, {path.c_str(), "roll back"}));
        REQUIRE(test::stats(c.get()).epoch == epoch);
        REQUIRE(holds(c.get(), 2));
        REQUIRE_OK(pm_check(c.get()));
    }
    uint64_t expected = 2;
    SECTION("when there is space")
    {
        disk.free(16 * MiB);
        REQUIRE_OK(pm_commit(c.get()));
    }
    SECTION("a little space at a time")
    {
        unsigned failures = 0;
        while (pm_commit(c.get()) != 0) {
            REQUIRE(failed_with(ENOSPC));
            disk.free(64 << 10);
            failures++;
        }
        REQUIRE(failures > 3);
    }
    SECTION("or rolled back")
    {
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(page_word(c.get(), 0) == 1);
        REQUIRE(page_word(c.get(), 1) == 0);
        page_word(c.get(), 1) = 3; // small commits go on, on the full disk
        for (uint64_t i = 0; i < 2000; i++) {
            page_word(c.get(), 0) = i;
            REQUIRE_OK(pm_commit(c.get()));
        }
        REQUIRE(page_word(c.get(), 1) == 3);
        disk.free_all();
        store(c.get(), 4);
        REQUIRE_OK(pm_commit(c.get()));
        expected = 4;
    }
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE(holds(c.get(), expected));
    // As a dead process would leave it: what the file has now is all that a successor gets.
    std::string left = test::read_file(path);
    c.reset();
    c = test::open(path, how());
    REQUIRE(holds(c.get(), expected));
    c.reset();
    test::write_file(path, left);
    c = test::open(path, how());
    REQUIRE(test::stats(c.get()).recovered);
    REQUIRE(holds(c.get(), expected));
    REQUIRE_OK(pm_check(c.get()));
}
