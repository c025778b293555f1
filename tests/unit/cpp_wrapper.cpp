// libpm.hpp.
#include "common/fixture.hpp"

#include <libpm.hpp>
#include <stdexcept>

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
        counter->value = 7; // not committed

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
    }
}
