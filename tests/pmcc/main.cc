// Every store form at one level of optimisation: the lines marked are the lines changed.
#define CATCH_CONFIG_MAIN
#include "arena.h"

#include <catch2/catch.hpp>

using namespace test;

namespace
{

constexpr size_t offsets[] = {1024, 1024 + 8, 1024 + 40, 1024 + 56};
constexpr long numbers[] = {0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 100};

void check(const Subject &subject, size_t offset, long n)
{
    Outcome outcome = observe(subject, offset, n);
    INFO(subject.name << " at offset " << offset << ", n = " << n);
    CHECK(outcome.escaped == std::set<size_t>{});
    if (subject.is_exact)
        CHECK(outcome.needless == std::set<size_t>{});
    CHECK(outcome.fault == "");
}

} // namespace

TEST_CASE("the lines that a program marks are the lines that it changes")
{
    make_arena();
    REQUIRE(subjects().size() > 10);
    for (const Subject &subject : subjects())
        for (size_t offset : offsets)
            for (long n : numbers)
                check(subject, offset, n);
    CHECK(mark_calls() > 100);
}
