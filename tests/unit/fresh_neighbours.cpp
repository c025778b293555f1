// Stores that run on open pages ahead, free ones included, when the allocator has not looked at
// their slab yet. The record of that transaction lists them. So the next one must not take them for
// fresh and store there without an image: the record would be refuted.
#include "common/process.hpp"

#include <cstring>
#include <unistd.h>

namespace
{

constexpr size_t SIZE = 8192; // two pages; some objects a slab of 64 KiB
constexpr int KEPT = 3;

struct Root {
    char *objects[KEPT];
    char *later;
};

} // namespace

CHILD_PROCESS(runs_into_free_pages)
{
    pm_options how = test::options();
    pm_container *c = pm_open(arguments[0].c_str(), &how);
    CHILD_REQUIRE(c);
    Root *root = static_cast<Root *>(pm_getroot(c));
    for (char *object : root->objects) // upwards: windows get longer, and reach beyond the last
        memset(object, 'b', SIZE);
    CHILD_REQUIRE(pm_commit(c) == 0);
    root->later = static_cast<char *>(pm_malloc(c, SIZE)); // the allocator learns of the slab
    CHILD_REQUIRE(root->later);
    memset(root->later, 'c', SIZE);
    _exit(0);
}

TEST_CASE("free pages that a fault opened ahead stay as the last record lists them")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    {
        test::Container c = test::open(path, test::small());
        Root *root = static_cast<Root *>(pm_calloc(c.get(), 1, sizeof(Root)));
        REQUIRE(root);
        REQUIRE_OK(pm_setroot(c.get(), root, 0));
        for (char *&object : root->objects) {
            object = static_cast<char *>(pm_malloc(c.get(), SIZE));
            REQUIRE(object);
            memset(object, 'a', SIZE);
        }
        REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE_CLEAN(test::run("runs_into_free_pages", {path}));
    test::Container c = test::open(path, test::options());
    Root *root = static_cast<Root *>(pm_getroot(c.get()));
    for (const char *object : root->objects)
        REQUIRE(std::string(object, SIZE) == std::string(SIZE, 'b'));
    REQUIRE_FALSE(root->later);
    REQUIRE_OK(pm_check(c.get()));
}
