// What creation makes durable, and in which order: the file's contents, then its name, then the name's
// directory. A power failure could leave less otherwise: a name without contents, or no name although
// pm_open() has returned. Deletion syncs the directory too. Else a deleted container could come back.
#include "common/fixture.hpp"
#include "system/steps.hpp"

#include <algorithm>

TEST_CASE("a new file is synced before it has its name, and the directory after that")
{
    steps::Lacks lacks;
    lacks.nameless = GENERATE(false, true);
    lacks.noreplace = GENERATE(false, true);
    lacks.fallocate = GENERATE(false, true);
    test::Directory directory;
    const pm_options how = test::small();
    steps::lack(lacks);
    steps::arm(0, steps::At::fails); // none does
    test::Container c(pm_open((directory / "c.pm").c_str(), &how));
    REQUIRE(c);

    const std::vector<std::string> &calls = steps::calls();
    const auto end = std::find(calls.begin(), calls.end(), "fsync directory");
    auto last_of = [&](std::initializer_list<const char *> names) {
        int last = -1;
        for (auto i = calls.begin(); i != end; i++)
            if (std::count(names.begin(), names.end(), *i) > 0)
                last = (int)(i - calls.begin());
        return last;
    };
    const int written = last_of({"pwrite", "fallocate", "ftruncate"}), synced = last_of({"fsync"}),
              named = last_of({"linkat", "renameat2"});
    REQUIRE(end != calls.end());
    REQUIRE(written >= 0);
    REQUIRE(written < synced);
    REQUIRE(synced < named);
}

TEST_CASE("the directory is synced after a container was deleted")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    const pm_options how = test::small();
    REQUIRE(test::Container(pm_open(path.c_str(), &how)));
    steps::arm(0, steps::At::fails); // none does
    REQUIRE_OK(pm_delete(path.c_str()));
    REQUIRE_FALSE(steps::calls().empty());
    REQUIRE(steps::calls().back() == "fsync directory");
}
