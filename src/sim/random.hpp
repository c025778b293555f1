// Numbers from a seed, the same on every machine: splitmix64 (Steele, Lea and Flood, 2014).
#ifndef PM_SIM_RANDOM_HPP
#define PM_SIM_RANDOM_HPP

#include <cstdint>

namespace sim
{

constexpr uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

class Random
{
  public:
    explicit Random(uint64_t seed) : state_(mix(seed)) {}
    uint64_t operator()() { return mix(state_++); }
    uint64_t below(uint64_t end) { return (*this)() % end; }

  private:
    uint64_t state_;
};

} // namespace sim

#endif
