/*
 * The modes of libpm that this program measures. A program compiled with the pass plugin marks its
 * stores whoever tracks them, so it would slow the other modes down: redo/stores has a program of
 * its own, from the same sources. That one leaves the peers other than libpm out.
 */
#pragma once

#include "libpm.h"

namespace bench
{

struct Mode {
    const char *name;
    const char *file; // of its container
    pm_engine engine;
    pm_tracker tracker;
};

#ifdef BENCH_STORES
inline constexpr Mode modes[] = {{"redo/stores", "redo", PM_ENGINE_REDO, PM_TRACKER_STORES}};
inline constexpr bool with_others = false;
#else
inline constexpr Mode undo_faults = {"undo/faults", "undo", PM_ENGINE_UNDO, PM_TRACKER_FAULTS};
inline constexpr Mode redo_faults = {"redo/faults", "redo", PM_ENGINE_REDO, PM_TRACKER_FAULTS};
inline constexpr Mode modes[] = {undo_faults, redo_faults};
inline constexpr bool with_others = true;
#endif

} // namespace bench
