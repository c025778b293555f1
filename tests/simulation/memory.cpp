// What the simulator takes for durable: a little more, and it would miss what a power failure breaks.
#include "common/fixture.hpp"

#include "sim/memory.hpp"

#include <vector>

namespace
{

constexpr uint32_t SECTOR = sim::unit_bytes(sim::Kind::FILE);

void change(sim::Memory &memory, sim::Unit unit, const std::vector<char> &bytes)
{
    memory.change(unit, bytes.data(), sim::unit_hash(unit, bytes.data(), SECTOR));
}

} // namespace

TEST_CASE("what is written while a file is synced is durable by the next sync")
{
    const std::vector<char> first(SECTOR, 1), second(SECTOR, 2);
    const sim::Unit changed = sim::unit_of(0, 0), meanwhile = sim::unit_of(0, 1);
    sim::Memory memory;
    memory.start(sim::Kind::FILE, {std::vector<char>(2 * SECTOR, 0)});
    change(memory, changed, first);
    memory.begin_sync(0);
    change(memory, changed, second);
    change(memory, meanwhile, second);
    memory.sync(0);
    REQUIRE(*memory.floor(changed) == 1);
    REQUIRE(*memory.newest(changed) == 2);
    REQUIRE(*memory.floor(meanwhile) == 0);
    REQUIRE_FALSE(memory.clean());
    memory.begin_sync(0);
    memory.sync(0);
    REQUIRE(*memory.floor(changed) == 2);
    REQUIRE(*memory.floor(meanwhile) == 2);
    REQUIRE(memory.clean());
}
