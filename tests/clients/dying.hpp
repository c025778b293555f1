// For a child process that dies just before its n-th event. The program links the calls that count as events with
// --wrap.
//
//     EVENT(int, unlink, (const char *path), (path))
//     CHILD_PROCESS(writes_and_dies) { events_left = std::stoull(arguments[0]); ... }
#ifndef TESTS_CLIENTS_DYING_HPP
#define TESTS_CLIENTS_DYING_HPP

#include <atomic>
#include <csignal>
#include <cstdint>
#include <unistd.h>

inline std::atomic<uint64_t> events_left{UINT64_MAX};

inline void event()
{
    if (--events_left == 0)
        kill(getpid(), SIGKILL);
}

#define EVENT(result, name, parameters, arguments)                                                 \
    extern "C" result __real_##name parameters;                                                    \
    extern "C" result __wrap_##name parameters                                                     \
    {                                                                                              \
        event();                                                                                   \
        return __real_##name arguments;                                                            \
    }

#endif
