/*
 * The data of the tiered benchmarks. Every program makes the same from the same seed, and nothing of the
 * making is timed.
 */
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace bench
{

constexpr size_t dimensions = 12;
using Point = std::array<double, dimensions>;

/** Points around eight centres. */
class PointSource
{
  public:
    Point next()
    {
        Point point;
        const double centre = double(random_() % 8);
        for (double &x : point)
            x = centre + double(random_() % 1000) / 500;
        return point;
    }

  private:
    std::mt19937_64 random_{1};
};

/* A graph. Features are uniform, and in-degrees follow a power law: the square of a uniform number draws each
 * target, so that early nodes are popular. */
constexpr size_t graph_nodes = 20'000, graph_degree = 5, features = 30, text_bytes = 2000;
constexpr int feature_values = 10;

struct GraphNode {
    std::array<int32_t, features> values;
    std::vector<uint32_t> neighbours;
    std::string text;
};

class GraphSource
{
  public:
    GraphNode next()
    {
        GraphNode node;
        for (int32_t &value : node.values)
            value = int32_t(random_() % feature_values);
        for (size_t i = 0; i < graph_degree; i++) {
            const double u = double(random_() >> 11) / double(UINT64_C(1) << 53);
            node.neighbours.push_back(uint32_t(u * u * graph_nodes));
        }
        node.text.assign(text_bytes, char('a' + random_() % 26));
        return node;
    }

  private:
    std::mt19937_64 random_{2};
};

constexpr size_t image_bytes = 10'000;

struct Person {
    int32_t age;
    std::string name, place;
    std::vector<std::byte> image;
};

class PersonSource
{
  public:
    Person next()
    {
        Person person;
        person.age = int32_t(random_() % 100);
        person.name = "person " + std::to_string(random_() % 1'000'000);
        person.place = "place " + std::to_string(random_() % 1000);
        person.image.assign(image_bytes, std::byte(random_()));
        return person;
    }

  private:
    std::mt19937_64 random_{3};
};

} // namespace bench
