// What the library keeps in volatile memory, beyond the mapping of the container itself.
#include "common/format.hpp"
#include "common/process.hpp"

#include <algorithm>
#include <cerrno>
#include <malloc.h>

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

namespace
{

// The least block that malloc() gives out has twice as many bytes.
constexpr size_t LEAK_MIN = 16;

// Require that `body` returns true each time, and keeps no block. What malloc() itself keeps for the thread
// (its tcache) counts as given out, and comes to some 6,000 bytes.
void require_no_leak(const std::function<bool()> &body)
{
    constexpr size_t FIRST = 20, TIMES = 400;
    size_t good = 0, before = 0;
    for (size_t i = 0; i < FIRST + TIMES; i++) {
        if (i == FIRST)
            before = mallinfo2().uordblks;
        good += body();
    }
    const size_t after = mallinfo2().uordblks;
    REQUIRE(good == FIRST + TIMES);
    REQUIRE(after < before + TIMES * LEAK_MIN);
}

} // namespace

TEST_CASE("a container that was closed, or that cannot be opened, leaves no block of memory")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    pm_options how = test::small(PM_CREATE | PM_MOVABLE);
    {
        const test::Container c = test::open(path, how);
        auto **p = static_cast<void **>(pm_calloc(c.get(), 1, sizeof(void *)));
        REQUIRE(p);
        REQUIRE_OK(pm_mark_pointer(p));
        REQUIRE_OK(pm_dirty(p, sizeof *p));
        *p = reinterpret_cast<void *>(&pm_open); // leads into a module
        REQUIRE_OK(pm_setroot(c.get(), p, 0));
        REQUIRE_OK(pm_commit(c.get()));
    }
    auto fails = [&](int error) {
        const test::Container c(pm_open(path.c_str(), &how));
        return !c && errno == error;
    };
    SECTION("closed")
    {
        require_no_leak([&] {
            pm_container *c = pm_open(path.c_str(), &how);
            return c && pm_malloc(c, 100) && pm_commit(c) == 0 && pm_close(c) == 0;
        });
    }
    SECTION("refused by the container layer")
    {
        how.layout = "another";
        require_no_leak([&] { return fails(EMEDIUMTYPE); });
    }
    SECTION("refused by recovery")
    {
        test::flip_bit(path, FORMAT_STATE + offsetof(format_state, base_epoch), 1);
        require_no_leak([&] { return fails(EBADMSG); });
    }
    SECTION("refused when all layers are open")
    {
        how.module_pointers = PM_MODULES_REFUSE;
        require_no_leak([&] { return fails(EPERM); });
    }
}
