// A crash: when it strikes, and what it leaves. Written EVENT:FATE or EVENT:FATE:SEED.
#ifndef PM_SIM_CRASH_HPP
#define PM_SIM_CRASH_HPP

#include "sim/memory.hpp"

#include <optional>
#include <string>
#include <vector>

namespace sim
{

enum class Fate {
    LOST,    // nothing but what is certainly durable
    KEPT,    // the newest of everything
    LOG,     // the newest of the log only
    DATA,    // the newest of everything else
    SUBSET,  // the newest of those units whose bits the seed has
    SOME,    // as the seed decides, for each unit
    PROCESS, // only the process dies: caches keep what they have, and it is no more durable than it
             // was
};

struct Crash {
    uint32_t event; // it strikes when everything up to this event was issued, and before a fence or
                    // a sync that is this event has any effect
    Fate fate;
    uint64_t seed;
};

std::string to_string(const Crash &crash);
// Only what to_string() makes.
std::optional<Crash> parse_crash(const std::string &text);

// What files have after a power failure: the floor, but for these units.
struct Image {
    struct Choice {
        Unit unit;
        Version version;
    };
    std::vector<Choice> choices;
    std::vector<uint64_t> sizes;
    std::vector<char> torn; // the bytes of torn lines
    uint64_t floor_hash;    // of the contents
    uint64_t hash;          // and of the sizes
};

// Not for Fate::PROCESS. The image refers to the memory, and is valid until that changes.
void choose(const Memory &memory, const Crash &crash, Image &image);

// The power failures to try at an event, before which this is the memory: each fate that needs no
// seed, every subset if few units are dirty, and so many seeds from `first` on.
std::vector<Crash> power_failures(const Memory &memory, uint32_t event, uint64_t first,
                                  uint64_t seeds);

} // namespace sim

#endif
