// A type without tags, for pm-tier to place.
#ifndef BENCH_TIERED_OPEN_HPP
#define BENCH_TIERED_OPEN_HPP

#include <tiered/annotate.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace bench
{

struct PM_DURABLE open_person {
    int32_t age;
    std::string name;
    std::string place;
    std::array<std::byte, 10000> image;
};

} // namespace bench

#endif
