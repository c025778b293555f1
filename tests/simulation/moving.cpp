#include "simulation/moving.hpp"

#include "simulation/addresses.h"
#include "unit/linked.hpp"

namespace simulation
{

Moving::Moving(const Setup &setup) : Program(setup)
{
    options_.flags |= PM_MOVABLE | (setup.elsewhere ? 0 : PM_RELOCATE);
    linked::recorded = setup.mode == "stores";
}

Program::Container Moving::open(const std::string &path, bool taken)
{
    if (taken || addresses_are_odd(path.c_str()))
        take_addresses_of(path.c_str());
    Container c = Program::open(path);
    give_addresses_back();
    return c;
}

// How many commits the container has.
uint64_t Moving::check(pm_container *c)
{
    const linked::Root *root = linked::root(c);
    uint64_t commits = root ? root->count : 0;
    require_whole(c, commits, [&] {
        if (root)
            linked::require(c, commits);
    });
    return commits;
}

void Moving::push(pm_container *c, uint64_t n)
{
    linked::push(c);
    if (!setup_.elsewhere)
        return;
    linked::renew(c);
    if (n % 3 != 0)
        return;
    require(pm_rollback(c) == 0, "pm_rollback");
    linked::push(c);
    linked::renew(c);
}

void Moving::run(sim::Session &session)
{
    const std::string &path = session.paths()[0];
    Container c = open(path, false);
    uint64_t commits = check(c.get());
    session.found(0, commits);
    for (uint64_t n = 0; n < session.more; n++) {
        if (!linked::root(c.get()))
            linked::build(c.get(), 1);
        else
            push(c.get(), n);
        session.tick();
        session.begun(0, commits + 1);
        require(pm_commit(c.get()) == 0, "pm_commit");
        session.returned(0, ++commits);
    }
    if (session.more > 0) {
        c.reset();
        c = open(path, true);
        session.found(0, check(c.get()));
    }
    if (!session.close)
        session.end();
    else
        require(pm_close(c.release()) == 0, "pm_close");
}

} // namespace simulation
