// A medium on which the power fails: linked into a worker with --wrap=medium_of, it stands for pmem
// under the real code. (The crash simulator proper will explore every event; this one samples.)
//
// It keeps what the medium would hold in an image of its own. A write-back or a copy takes down the
// lines as they are; a fence puts them into the image. At a chosen event every line in which home
// differs from the image, those the program merely stored to included, is lost, kept, or kept in
// some of its 8-byte words, as the seed decides; the result goes to a file, and the process ends.
//
// LIBPM_POWER="FILE EVENT SEED" in the environment switches it on.
#ifndef TESTS_CRASH_POWER_HPP
#define TESTS_CRASH_POWER_HPP

namespace crash
{

// The worker's exit status when its power failed.
constexpr int POWER_FAILED = 77;

} // namespace crash

#endif
