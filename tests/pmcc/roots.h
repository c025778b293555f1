// What several files of a program have, and the linker keeps once.
#pragma once

inline void *shared_variable;
inline thread_local void *shared_local;
[[gnu::noinline]] inline void shared_function()
{
    shared_variable = &shared_local;
}
template <class T> struct Shared {
    static T *member;
    virtual ~Shared() = default;
};
template <class T> T *Shared<T>::member;

inline void use_shared()
{
    shared_function();
    Shared<int>::member = nullptr;
}

void use_shared_elsewhere();
