// Which field belongs in which tier: the integer program of George et al., arXiv 1807.06417, section 3.
//
//     minimise    sum of x(f,t) * F(f) * (C(f,t) + R(f) * P(t))   over fields f and tiers t
//     subject to  sum over t of x(f,t) = 1                        for each field
//                 records(t) + sum over f of x(f,t) * bytes(f,t) <= capacity(t)
//
// F: accesses; C: nanoseconds of one access; R: nanoseconds to compute the field again; P: the probability
// that the tier loses it.
//
// Every object has its record in pm, with a slot for each field that does not lie in the record itself. So
// records(pm) is more than 0, and a value that its slot can hold takes no more bytes of pm.
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
    bool is_in_record = false;
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
    double record_bytes = 0; // of one object of each type

    bool is_possible(size_t field, size_t tier) const;
    double cost_ns(size_t field, size_t tier) const; // of all accesses together
    double bytes(size_t field, size_t tier) const;   // of all values
    double records(size_t tier) const;               // bytes of all records
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
