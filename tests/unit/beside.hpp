// A call of libpm beside another thread, which shall go on until it has to wait for a lock. The program wraps
// lock_wait().
#ifndef TESTS_UNIT_BESIDE_HPP
#define TESTS_UNIT_BESIDE_HPP

#include <algorithm>
#include <atomic>
#include <cstddef>

struct lock;

inline thread_local bool is_other;    // this is the other thread
inline std::atomic<bool> other_waits; // for a lock

extern "C" {
void __real_lock_wait(struct lock *lock);
void __wrap_lock_wait(struct lock *lock);
void __wrap_lock_wait(struct lock *lock)
{
    if (is_other)
        other_waits = true;
    __real_lock_wait(lock);
}
}

inline bool are_all(const void *p, size_t bytes, unsigned char value)
{
    const auto *b = static_cast<const unsigned char *>(p);
    return std::all_of(b, b + bytes, [&](unsigned char c) { return c == value; });
}

#endif
