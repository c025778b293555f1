/*
 * What one repetition measured of one figure. The measuring programs print one JSON object a line;
 * the driver collects them from many repetitions and forms medians. Nothing else passes between
 * the two, so a new figure needs no change of the driver but a heading.
 */
#pragma once

#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bench
{

struct Sample {
    std::string table;            // which table it belongs to
    std::vector<std::string> row; // labels of its row
    std::string peer;             // its column
    double value;                 // per operation, in `unit`
    std::string unit = "ns";      // ns, bytes, %
    uint64_t operations = 1;      // how many operations the value is the mean of

    NLOHMANN_DEFINE_TYPE_INTRUSIVE(Sample, table, row, peer, value, unit, operations)
};

inline void emit(const Sample &sample)
{
    std::cout << nlohmann::json(sample) << '\n';
}

} // namespace bench
