// What code does that `pmcc --discover` has compiled, by hand: so that tests of discovery are the same
// with every compiler.
#ifndef TESTS_COMPILED_HPP
#define TESTS_COMPILED_HPP

#include <cstdint>

extern "C" {
#include "runtime/announce.h"
}
#include "runtime/heap.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace compiled
{

// That there is such code. (The program's own variables are no roots: tests tell of those they use.)
struct Module {
    pm__roots roots{};
    explicit Module(const pm__global *globals = nullptr, size_t count = 0)
    {
        roots.globals = globals;
        roots.globals_end = globals + count;
        pm__register(&roots);
    }
    ~Module() { pm__unregister(&roots); }
    Module(const Module &) = delete;
};

// A store: announced, and whether it is a pointer.
template <class T> void put(T &field, std::type_identity_t<T> value)
{
    if (in_arena(&field)) {
        pm__mark_range(&field, sizeof field);
        set_kind(&field, std::is_pointer_v<T> ? KIND_POINTER : KIND_DATA);
    }
    field = value;
}

template <class T> T *make(size_t bytes = sizeof(T))
{
    return static_cast<T *>(pm__calloc(1, bytes));
}

} // namespace compiled

#endif
