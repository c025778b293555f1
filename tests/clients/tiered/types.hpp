// Annotated types for the tests, with every kind of field.
#ifndef TESTS_TIERED_TYPES_HPP
#define TESTS_TIERED_TYPES_HPP

#include <tiered/annotate.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace people
{

enum class colour : uint16_t { red, green = 700 };

struct PM_DURABLE address {
    PM_TIER("pm") int32_t number;
    PM_TIER("disk") std::string street;
};

struct PM_DURABLE person {
    PM_TIER("pm") int32_t age;
    PM_TIER("pm") colour eyes;
    PM_TIER("pm") std::array<double, 12> marks;
    PM_TIER("disk") std::array<std::byte, 10000> image;
    PM_TIER("pm", "disk") std::string place;
    PM_TIER("pm") std::string motto;
    PM_TIER("dram") std::string guess;
    PM_TIER("remote") std::string diary;
    std::string name;
    double height;
    std::vector<float> steps;
    float weights[3];
    tiered::handle<person> boss;
    address home;
};

struct PM_DURABLE note {
    PM_TIER("pm", "remote") std::string text;
    PM_TIER("remote") std::string other;
    PM_TIER("dram", "disk") std::string draft;
};

} // namespace people

// In the global namespace, for the crash tests.
struct PM_DURABLE account {
    PM_TIER("pm") uint64_t balance;
    PM_TIER("pm", "disk") std::string owner;
    PM_TIER("disk") std::string statement;
};

#endif
