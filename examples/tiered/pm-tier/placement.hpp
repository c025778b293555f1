// Which field belongs in which tier: the integer program of George et al., arXiv 1807.06417, section 3.
//
//     minimise    sum of x(f,t) * F(f) * (C(f,t) + R(f) * P(t))   over fields f and tiers t
//     subject to  sum over t of x(f,t) = 1                        for each field
//                 sum over f of x(f,t) * objects * bytes(f) <= capacity(t)
//
// F: accesses; C: nanoseconds of one access; R: nanoseconds to compute the field again; P: the probability
// that the tier loses it.
#ifndef EXAMPLES_TIERED_PM_TIER_PLACEMENT_HPP
#define EXAMPLES_TIERED_PM_TIER_PLACEMENT_HPP

#include "model.hpp"

#include <cmath>

namespace pm_tier
{

struct field_use {
    std::string type, name;
    double reads, writes;
    double bytes; // of one value
    double recomputation_ns = 0;
    std::vector<std::string> tiers; // possible ones; empty: all
};

struct tier_cost {
    std::string name;
    double read_ns = 0, write_ns = 0;                   // of an access
    double read_ns_per_byte = 0, write_ns_per_byte = 0; // and for each byte
    double loss_probability = 0;
    double capacity = INFINITY; // bytes
};

struct problem {
    std::vector<field_use> fields;
    std::vector<tier_cost> tiers;
    double objects = 1;

    bool is_possible(size_t field, size_t tier) const;
    double cost_ns(size_t field, size_t tier) const; // of all accesses together
    double bytes(size_t field) const { return fields[field].bytes * objects; }
};

struct solution {
    std::vector<size_t> tier_of; // each field
    double cost_ns;
};

/// By COIN-OR CBC. Throws failure if no placement has room: it says which capacity is short, and by how much.
solution solve(const problem &problem);

std::string table(const problem &problem, const solution &solution);
std::string picture(const problem &problem, const solution &solution); // SVG

} // namespace pm_tier

#endif
