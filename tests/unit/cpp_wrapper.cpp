// libpm.hpp.
#include "common/fixture.hpp"

#include <libpm.hpp>
#include <stdexcept>
#include <vector>

namespace
{

struct Counter {
    explicit Counter(int start) : value(start)
    {
        if (start < 0)
            throw std::out_of_range("start");
    }
    int value;
};

} // namespace

TEST_CASE("the wrapper keeps objects, and turns failures into exceptions", "[cpp]")
{
    test::Directory directory;
    pm::options create;
    create.flags = PM_CREATE;
    {
        pm::container c(directory / "c", create);
        REQUIRE(c.root<Counter>() == nullptr);
        auto *counter = c.make<Counter>(41);
        c.set_root(counter);
        c.commit();
        counter->value++;
        c.rollback();
        REQUIRE(counter->value == 41);
        counter->value++;
        c.commit();
        REQUIRE_THROWS_AS(c.make<Counter>(-1), std::out_of_range);
        REQUIRE(pm_next_object(c.get(), nullptr, nullptr) == counter);
        REQUIRE(pm_next_object(c.get(), counter, nullptr) == nullptr); // no memory is lost
        counter->value = 7; // not committed

        pm::container assigned(directory / "d", create);
        assigned = pm::container(directory / "e", create);
        REQUIRE_NOTHROW(pm::container(directory / "d", {})); // the one that it had is closed
        pm::container moved(std::move(c));
        REQUIRE(c.get() == nullptr);
        REQUIRE(moved.root<Counter>() == counter);
    }
    pm::container again(directory / "c");
    REQUIRE(again.root<Counter>()->value == 42);
    int on_stack = 0;
    REQUIRE_THROWS_AS(again.destroy(&on_stack), pm::error);
    try {
        pm::container twice(directory / "c");
        FAIL("opened twice");
    } catch (const pm::error &e) {
        REQUIRE(e.code().value() == EBUSY);
        REQUIRE(std::string(e.what()).find("/c: open for writing") != std::string::npos);
        REQUIRE(std::string(e.what()) == pm_errormsg()); // the code's text would add nothing
        const std::system_error &copy = pm::error(e);
        REQUIRE(std::string(copy.what()) == e.what());
    }
}

TEST_CASE("the wrapper tells what has moved", "[cpp]")
{
    struct List {
        Counter counter;
        List *next;
    };
    test::Directory directory;
    pm::options create;
    create.flags = PM_CREATE | PM_MOVABLE;
    create.segment_size = 64 << 10;
    pm::container c(directory / "c", create);
    std::vector<List *> all;
    for (int i = 0; i < 10000; i++)
        all.push_back(c.make<List>(List{Counter(i), all.empty() ? nullptr : all.back()}));
    List *outside = nullptr, *kept = nullptr;
    for (List *l : all)
        if (l->counter.value % 1000 == 500) {
            l->next = kept;
            REQUIRE_OK(pm_mark_pointer(&l->next));
            outside = kept = l;
        } else {
            c.destroy(l);
        }
    c.set_root(kept);
    uint64_t moved = 0;
    pm_compacted done = c.compact([&](void *from, void *to, size_t bytes) {
        REQUIRE(bytes == sizeof(List));
        moved++;
        if (from == outside)
            outside = static_cast<List *>(to);
    });
    REQUIRE((moved == done.objects_moved && moved > 0));
    REQUIRE(c.root<List>() == outside);
    for (int i = 9500; i > 0; i -= 1000, outside = outside->next)
        REQUIRE(outside->counter.value == i);
    REQUIRE(c.compact().objects_moved == 0);
    pm::container fixed(directory / "fixed", {PM_CREATE});
    REQUIRE_THROWS_AS(fixed.compact(), pm::error);
}
