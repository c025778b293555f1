// Ordinary files whose medium fails on demand. A program linked with file_medium.cpp and --wrap for
// the functions below has *every* container on an ordinary file, those on tmpfs too, where
// fdatasync(2) costs nothing.
#ifndef TESTS_COMMON_FILE_MEDIUM_HPP
#define TESTS_COMMON_FILE_MEDIUM_HPP

#include <cstdint>
#include <functional>

namespace test
{

// What libpm's calls do; counted from 1 on, since the last reset.
struct FileMedium {
    uint64_t syncs, writes;          // calls
    uint64_t sync_fails, sync_error; // from this call on, if not 0; with this errno
    uint64_t write_fails, write_error;
    bool once;        // only that call
    bool arrives;     // what that write was to write, though it fails
    uint64_t writes_work_from; // if not 0: from this call on they succeed again
    uint64_t sync_us; // how long a sync takes at least
    uint64_t dies_at; // of writes and syncs together
    std::function<void()> during_sync, during_write; // what another thread does during the next one
    std::function<void(uint64_t offset, uint64_t bytes)> wrote; // what has arrived in the file
    std::function<void(bool)> synced;                           // a sync has succeeded, or failed
};

extern FileMedium file_medium;

constexpr int MEDIUM_DIED = 78; // exit status

} // namespace test

#endif
