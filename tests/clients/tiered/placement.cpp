// Where pm-tier places fields: the solver beside all placements there are.
#include "placement.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace pm_tier;

namespace
{

problem random_problem(unsigned seed)
{
    std::mt19937 random(seed);
    const auto below = [&](unsigned end) { return double(random() % end); };
    problem made;
    made.objects = 1 + below(1000);
    made.record_bytes = 16 * below(5);
    for (const char *name : {"dram", "pm", "disk"})
        made.tiers.push_back({name, 1 + below(100), 1 + below(1000), below(10) / 10, below(10) / 5,
                              below(3) / 10, random() % 3 ? made.objects * below(200) : INFINITY});
    for (unsigned f = 0; f < 2 + seed % 5; f++) {
        field_use field{
            "t",  "f" + std::to_string(f), below(1000), below(100), 1 + below(100), below(1000), {},
            false};
        if (random() % 3 == 0)
            field.tiers = {made.tiers[random() % 3].name};
        if (field.tiers == std::vector<std::string>{"pm"})
            field.is_in_record = random() % 2;
        made.fields.push_back(field);
    }
    return made;
}

// What a value takes in a tier, as users are told.
double bytes_in(const field_use &field, const std::string &tier)
{
    if (tier != "pm")
        return field.bytes;
    if (field.is_in_record || field.bytes <= 12)
        return 0;
    return double((size_t(field.bytes) + 15) / 16 * 16);
}

// The least cost of all placements that have room; negative: there is none.
double by_brute_force(const problem &all)
{
    double best = -1;
    std::vector<size_t> tier_of(all.fields.size());
    for (;;) {
        double cost = 0;
        std::vector<double> used = {0, all.objects * all.record_bytes, 0};
        bool is_possible = true;
        for (size_t f = 0; f < tier_of.size(); f++) {
            is_possible &= all.is_possible(f, tier_of[f]);
            cost += all.cost_ns(f, tier_of[f]);
            used[tier_of[f]] += all.objects * bytes_in(all.fields[f], all.tiers[tier_of[f]].name);
        }
        for (size_t t = 0; t < used.size(); t++)
            is_possible &= used[t] <= all.tiers[t].capacity;
        if (is_possible && (best < 0 || cost < best))
            best = cost;
        size_t f = 0;
        while (f < tier_of.size() && ++tier_of[f] == all.tiers.size())
            tier_of[f++] = 0;
        if (f == tier_of.size())
            return best;
    }
}

} // namespace

TEST_CASE("the solver finds what trying all placements finds")
{
    unsigned impossible = 0;
    for (unsigned seed = 0; seed < 300; seed++) {
        INFO(seed);
        const problem all = random_problem(seed);
        const double best = by_brute_force(all);
        if (best < 0) {
            impossible++;
            REQUIRE_THROWS_AS(solve(all), failure);
            continue;
        }
        const solution found = solve(all);
        REQUIRE(found.cost_ns == Approx(best).margin(1e-6));
    }
    REQUIRE(impossible > 10);
    REQUIRE(impossible < 200);
}

TEST_CASE("if there is no room, the shortage is said")
{
    problem all;
    all.objects = 100;
    all.record_bytes = 40; // age, and slots of name and image
    all.tiers = {{"pm", 1, 1, 0, 0, 0, 6300}, {"disk", 100, 100, 1, 1, 0, 1000}};
    all.fields = {{"person", "age", 10, 1, 4, 0, {"pm"}, true},
                  {"person", "name", 10, 1, 20, 0, {"pm"}}, // an object of 32 bytes
                  {"person", "image", 10, 1, 10, 0, {"disk"}}};
    const auto message = [&] {
        try {
            solve(all);
        } catch (const failure &error) {
            return std::string(error.what());
        }
        return std::string();
    };
    const auto has = [](const std::string &text, const char *part) {
        INFO(text);
        REQUIRE(text.find(part) != std::string::npos);
    };
    has(message(), "pm is short by 900 bytes");
    has(message(), "records alone take 4000 bytes of pm");
    REQUIRE(message().find("disk is short") == std::string::npos); // it fits exactly
    all.tiers[0].capacity = 7200;                                  // exactly
    REQUIRE(solve(all).tier_of == std::vector<size_t>{0, 0, 1});
    all.fields[1].tiers.clear(); // now the name goes where it costs more
    all.tiers[0].capacity = 7199;
    all.tiers[1].capacity = INFINITY;
    const solution found = solve(all);
    REQUIRE(found.tier_of == std::vector<size_t>{0, 1, 1});
    has(table(all, found), "person.name");
    has(table(all, found), "records: 4000 bytes of pm, 40 for each object\n");
    has(table(all, found), "pm: 4000 bytes of 7199\n");
    has(picture(all, found), "</svg>");
    all.fields[1].bytes = 12; // its slot holds it
    REQUIRE(solve(all).tier_of == std::vector<size_t>{0, 0, 1});
    has(table(all, solve(all)), "pm: 4000 bytes of 7199\n");
    all.tiers[0].capacity = 3999;
    has(message(), "pm is short by 1 bytes");
    all.tiers[0].capacity = 0; // nothing fits
    has(message(), "pm is short by 4000 bytes");
    all.fields.clear(); // only handles
    has(message(), "pm is short by 4000 bytes");
    all.tiers[0].capacity = 4000;
    REQUIRE(solve(all).tier_of.empty());
}
