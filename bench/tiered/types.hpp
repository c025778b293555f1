// The durable types of the benchmarks. NO-PM, ALL-PM and SELECT-PM are the paper's names (arXiv 1807.06417).
#ifndef BENCH_TIERED_TYPES_HPP
#define BENCH_TIERED_TYPES_HPP

#include <tiered/annotate.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench
{

struct PM_DURABLE point {
    PM_TIER("pm") std::array<double, 12> coordinates;
};

// All in persistent memory.
struct PM_DURABLE all_node {
    PM_TIER("pm") std::array<int32_t, 30> values;
    PM_TIER("pm") std::vector<uint32_t> neighbours;
    PM_TIER("pm") std::string text;
};

// What queries look at in persistent memory, and the rest on disk.
struct PM_DURABLE select_node {
    PM_TIER("pm") std::array<int32_t, 30> values;
    PM_TIER("pm") std::vector<uint32_t> neighbours;
    PM_TIER("disk") std::string text;
};

struct PM_DURABLE all_person {
    PM_TIER("pm") int32_t age;
    PM_TIER("pm") std::string name;
    PM_TIER("pm") std::string place;
    PM_TIER("pm") std::array<std::byte, 10000> image;
};

struct PM_DURABLE select_person {
    PM_TIER("pm") int32_t age;
    PM_TIER("pm") std::string name;
    PM_TIER("pm") std::string place;
    PM_TIER("disk") std::array<std::byte, 10000> image;
};

} // namespace bench

#endif
