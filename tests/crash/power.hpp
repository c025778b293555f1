// A medium on which the power fails: linked into a worker with --wrap=medium_of, it stands for pmem
// under the real code. (The crash simulator proper will explore every event; this one samples.)
//
// It keeps what the medium would hold in an image of its own. A write-back or a copy takes down the
// lines as they are; a fence puts them into the image. At a chosen event the process ends, in one
// of two ways:
//
//   power     every line in which home differs from the image, those the program merely stored to
//             included, is lost, kept, or kept in some of its 8-byte words, as the seed decides
//   process   home stays as it is, for the caches survive; but so does the image, beside it, and
//   the
//             next run begins with both: what recovery reads may not be durable yet
//
// LIBPM_POWER="FILE EVENT SEED KIND BEFORE" in the environment switches it on: the result goes to
// FILE, the image of kind `process` to FILE.image; BEFORE is such an image to begin with, or "-".
//
// With LIBPM_POWER_COARSE=1 only fences and copies of COARSE bytes or more are events: so a run
// comes through many commits and fails amid their records.
#ifndef TESTS_CRASH_POWER_HPP
#define TESTS_CRASH_POWER_HPP

#include <cstdint>

namespace crash
{

// The worker's exit status when its power failed.
constexpr int POWER_FAILED = 77;

constexpr unsigned COARSE = 16384;

// Whether a block of 16 KiB is lost (0) or kept (1), as the seed decides.
inline unsigned block_fate(uint64_t seed, uint64_t offset)
{
    return (seed ^ (offset >> 14) * 0x9E3779B97F4A7C15u) * 0xD1B54A32D192ED03u >> 63;
}

} // namespace crash

#endif
