// Which functions pmcc has compiled, as the tables of the loaded modules say: a walk of the stack stops where none
// names the function.
#include "common/fixture.hpp"

extern "C" {
#include "base/roots.h"
#include "discovery/roots.h"
}

namespace
{

__attribute__((noinline)) int walked(int n)
{
    return n * 3 + 1;
}

// Whether a walk ends well whose only frame returns to walked().
bool is_known()
{
    const frame above = {nullptr, nullptr};
    const void *const inside = reinterpret_cast<const char *>(&walked) + 4, *foreign = nullptr;
    roots_range stack{};
    const bool known = roots_stack({&above, inside}, &stack, &foreign);
    CHECK((known || foreign == inside));
    return known;
}

} // namespace

TEST_CASE("what was known of a function is forgotten with its module")
{
    const pm__function main = {reinterpret_cast<void *>(&walked), PM__FUNCTION_MAIN};
    pm__roots roots{};
    roots.functions = &main;
    roots.functions_end = &main + 1;
    REQUIRE(walked(1) == 4);
    CHECK_FALSE(is_known());
    pm__register(&roots);
    CHECK(is_known());
    pm__unregister(&roots);
    CHECK_FALSE(is_known()); // something else may be loaded there now
}
