#include "simulation/discovering.hpp"

#include "sim/random.hpp"
#include "unit/discovered.hpp"

#include <random>

namespace simulation
{

using compiled::put;

// Nodes of a transaction.
constexpr uint64_t NODES = 12;

Discovering::Discovering(const Setup &setup) : Repeating(setup)
{
    options_.flags |= PM_DISCOVER | PM_VOUCHED;
    options_.engine = PM_ENGINE_AUTO;
    options_.tracker = PM_TRACKER_STORES;
}

uint64_t Discovering::check(pm_container *c)
{
    const auto *root = static_cast<discovered::Root *>(pm_getroot(c));
    uint64_t commits = root ? root->commits : 0;
    require_whole(c, commits, [&] {
        if (root)
            discovered::check(c);
    });
    return commits;
}

void Discovering::change(pm_container *c, uint64_t commits)
{
    std::mt19937_64 random(sim::mix(setup_.seed) + commits);
    discovered::Root *root = discovered::root(c);
    for (uint64_t i = 0; i < NODES; i++) {
        discovered::Node *other = root->first && random() % 2 ? root->first : nullptr;
        discovered::push(root, random() % 8 ? random() % 6 : random() % 600, other);
    }
    if (root->count > 20 &&
        root->first->next->other != root->first) { // pointers that change, to new ones
        put(root->first->next->other, root->first);
        put(root->first->next->inside, discovered::inside_of(root->first));
    }
    put(root->commits, root->commits + 1);
}

} // namespace simulation
