#include "simulation/compacting.hpp"

#include "sim/random.hpp"
#include "unit/web.hpp"

namespace simulation
{

// Cells of a transaction: some steps of a compaction.
constexpr uint64_t CELLS = 120;

Compacting::Compacting(const Setup &setup) : Program(setup)
{
    options_.flags |= PM_MOVABLE;
    options_.granularity = 1024; // slabs of a few cells
    web::recorded = setup.mode == "stores";
}

// How many commits the container has.
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

void Compacting::change(pm_container *c, uint64_t commits) const
{
    web::Random random(sim::mix(setup_.seed) + commits);
    if (!web::root(c))
        web::begin(c);
    web::remove(c, [&](const web::Cell *) { return random() % 4 != 0; });
    web::add_some(c, random, CELLS);
    web::root(c)->commits++;
}

// Every second transaction is committed by the compaction.
void Compacting::run(sim::Session &session)
{
    Container c(pm_open(session.paths()[0].c_str(), &options_));
    require(c != nullptr, "pm_open");
    uint64_t commits = check(c.get());
    session.found(0, commits);
    for (uint64_t n = 0; n < session.more; n++) {
        change(c.get(), commits);
        session.tick();
        session.begun(0, commits + 1);
        if (commits % 2 == 0)
            require(pm_commit(c.get()) == 0, "pm_commit");
        else
            require(pm_compact(c.get(), nullptr, nullptr, nullptr) == 0, "pm_compact");
        session.returned(0, ++commits);
    }
    if (session.more > 0)
        check(c.get());
    if (!session.close)
        session.end();
    else
        require(pm_close(c.release()) == 0, "pm_close");
}

} // namespace simulation
