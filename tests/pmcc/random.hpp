// Random choices of programs that write programs: a seed yields the same ones on every machine.
#ifndef TESTS_PMCC_RANDOM_HPP
#define TESTS_PMCC_RANDOM_HPP

#include <cstddef>
#include <cstdint>

class Random
{
  public:
    explicit Random(uint64_t seed) : state_(seed) {}

    // splitmix64 (Steele, Lea, Flood, OOPSLA 2014)
    uint64_t below(uint64_t bound)
    {
        state_ += 0x9e3779b97f4a7c15U;
        uint64_t x = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9U;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
        return (x ^ (x >> 31)) % bound;
    }

    template <size_t Count> const char *any(const char *const (&words)[Count])
    {
        return words[below(Count)];
    }

  private:
    uint64_t state_;
};

#endif
