#include "simulation/compacting.hpp"

#include "sim/random.hpp"
#include "unit/web.hpp"

namespace simulation
{

// Cells of a transaction: some steps of a compaction.
constexpr uint64_t CELLS = 120;

Compacting::Compacting(const Setup &setup) : Repeating(setup)
{
    options_.flags |= PM_MOVABLE;
    options_.granularity = 1024; // slabs of a few cells
    web::recorded = setup.mode == "stores";
}

uint64_t Compacting::check(pm_container *c)
{
    const web::Root *root = web::root(c);
    uint64_t commits = root ? root->commits : 0;
    require_whole(c, commits, [&] {
        if (root)
            web::check(c);
    });
    return commits;
}

void Compacting::change(pm_container *c, uint64_t commits)
{
    web::Random random(sim::mix(setup_.seed) + commits);
    if (!web::root(c))
        web::begin(c);
    web::remove(c, [&](const web::Cell *) { return random() % 4 != 0; });
    web::add_some(c, random, CELLS);
    web::root(c)->commits++;
}

// Every second transaction is committed by the compaction.
void Compacting::commit(pm_container *c, uint64_t commits)
{
    if (commits % 2 == 0)
        Repeating::commit(c, commits);
    else
        require(pm_compact(c, nullptr, nullptr, nullptr) == 0, "pm_compact");
}

} // namespace simulation
