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
    LOST,    // only the certainly durable state
    KEPT,    // the newest version of everything
    LOG,     // the newest version of the log only
    DATA,    // the newest version of everything else
    SUBSET,  // the newest version of the units whose bits the seed has
    SOME,    // the seed decides for each unit
    PROCESS, // only the process dies: caches keep their contents, which are no more durable than before
};

struct Crash {
    uint32_t event; // the crash comes after everything up to this event was issued. If the event is a
                    // fence or sync, the crash comes before the event has any effect
    Fate fate;
    uint64_t seed;
};

std::string to_string(const Crash &crash);
// Accepts only text that to_string() makes.
std::optional<Crash> parse_crash(const std::string &text);

// The files' contents after a power failure: the floor, except for the chosen units.
struct Image {
    struct Choice {
        Unit unit;
        Version version;
    };
    std::vector<Choice> choices;
    std::vector<uint64_t> sizes;
    std::vector<char> torn; // the bytes of torn units
    uint64_t floor_hash;    // hash of the contents
    uint64_t hash;          // hash of contents and sizes
};

// Make the image of a crash, but not for Fate::PROCESS. The image refers to `memory`, and is valid until
// `memory` changes.
void choose(const Memory &memory, const Crash &crash, Image &image);

// The power failures to try at an event; `memory` is the state before it. They are each fate that needs
// no seed, every subset if few units are dirty, and `seeds` seeds from `first` on.
std::vector<Crash> power_failures(const Memory &memory, uint32_t event, uint64_t first,
                                  uint64_t seeds);

} // namespace sim

#endif
