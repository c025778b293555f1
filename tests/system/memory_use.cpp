// What the library keeps in volatile memory, beyond the mapping of the container itself.
#include "common/process.hpp"

#include <algorithm>

CHILD_PROCESS(measures_an_empty_container)
{
    uint64_t before = test::anonymous_bytes();
    CHILD_REQUIRE(before > 0);
    pm_options how = test::options(PM_CREATE); // the defaults: up to 64 GiB
    pm_container *c = pm_open(arguments[0].c_str(), &how);
    CHILD_REQUIRE(c);
    CHILD_REQUIRE(pm_malloc(c, 16) && pm_commit(c) == 0);
    uint64_t used = test::anonymous_bytes() - before;
    test::say(std::to_string(used).c_str());
    CHILD_REQUIRE(used < 1 << 20);
    CHILD_REQUIRE(pm_close(c) == 0);
    CHILD_REQUIRE(test::anonymous_bytes() - before < 1 << 19); // given back
}

CHILD_PROCESS(measures_many_objects)
{
    const uint64_t bytes = 256 << 20, size = 64, objects = bytes / size;
    uint64_t step = std::stoul(arguments[1]);
    uint64_t before = test::anonymous_bytes(), most = 0;
    pm_options how = test::options(PM_CREATE);
    pm_container *c = pm_open(arguments[0].c_str(), &how);
    CHILD_REQUIRE(c);
    uint64_t *last = nullptr;
    for (uint64_t i = 0; i < objects; i++) {
        last = static_cast<uint64_t *>(pm_malloc(c, size));
        CHILD_REQUIRE(last);
        *last = i;
        if (i % step == step - 1) {
            CHILD_REQUIRE(pm_commit(c) == 0);
            most = std::max(most, test::anonymous_bytes() - before);
        }
    }
    CHILD_REQUIRE(pm_commit(c) == 0);
    most = std::max(most, test::anonymous_bytes() - before);
    test::say(std::to_string(most).c_str());
    CHILD_REQUIRE(most < bytes * 3 / 100);
}

TEST_CASE("an empty container costs less than 1 MiB")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("measures_an_empty_container", {directory / "c.pm"}));
}

TEST_CASE("256 MiB of small objects cost less than 3 %", "[undo]")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("measures_many_objects", {directory / "c.pm", "20000"}));
}

TEST_CASE("so they do in one transaction", "[undo]")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("measures_many_objects", {directory / "c.pm", "100000000"}));
}
