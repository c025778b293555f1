// R7: a line of an object that was allocated in this transaction counts though it equals home. Free
// space may hold the very contents in the cache only, from a commit that a crash tore.
#include "common/fixture.hpp"

#include <cstring>

namespace
{

constexpr uint64_t LINE = 64;

void fill(char *object, size_t size)
{
    for (size_t i = 0; i < size; i++)
        object[i] = (char)(i + 1);
}

} // namespace

// Of one line, of several, and of parts of pages.
TEST_CASE("an object that holds what was there before is written whole", "[redo]")
{
    const size_t size = GENERATE(64u, 200u, 1000u, 2500u, 3000u, 5000u, 9000u);
    const bool downwards = GENERATE(false, true);
    CAPTURE(size, downwards);
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small());
    constexpr int OBJECTS = 6;
    char *objects[OBJECTS];
    for (char *&object : objects) {
        object = static_cast<char *>(pm_malloc(c.get(), size));
        REQUIRE(object);
        fill(object, size);
    }
    REQUIRE_OK(pm_commit(c.get()));
    for (int i = 0; i < OBJECTS; i++) {
        char *object = objects[downwards ? OBJECTS - 1 - i : i];
        CAPTURE(i);
        REQUIRE_OK(pm_free(object));
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(pm_malloc(c.get(), size) == object);
        fill(object, size);
        // Lines of no other object: one that is shared with an object which stays has not changed.
        uint64_t from = ((uintptr_t)object + LINE - 1) / LINE, end = ((uintptr_t)object + size) / LINE;
        REQUIRE(test::written_by_commit(c.get()) >= (end - from) * LINE);
    }
    REQUIRE_OK(pm_check(c.get()));
}
