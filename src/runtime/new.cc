/*
 * The operators of C++ for code compiled by `pmcc --discover`, see allocations.def. In an archive
 * that is linked into the program, since libpm itself has nothing of C++: bad_alloc is thrown here.
 *
 * Their own names are those of the operators, mangled, behind "pm__". All are weak, and call each
 * other as the standard says that the operators do, so that a program may replace some.
 *
 * None is declared noexcept, though some are: clang makes a function __clang_call_terminate for those,
 * which lld's link-time optimisation does not find in an archive once the program has it, too.
 */
#include "runtime/heap.h"

#include <cstdint>
#include <new>

#define OPERATOR extern "C" __attribute__((weak, visibility("hidden")))

namespace
{

/* Without an alignment of its own, malloc's is meant. */
void *allocate(size_t alignment, size_t size)
{
    return alignment ? pm__memalign(alignment, size) : pm__malloc(size);
}

/* What the program's new-handler can do: make room, throw, or not return. */
void *allocate_or_throw(size_t alignment, size_t size)
{
    size = size ? size : 1;
    void *p;
    while (!(p = allocate(alignment, size))) {
        std::new_handler handler = std::get_new_handler();
        if (!handler)
            throw std::bad_alloc();
        handler();
    }
    return p;
}

template <class Operator, class... Arguments>
void *null_if_thrown(Operator *allocating, Arguments... arguments)
{
    try {
        return allocating(arguments...);
    } catch (...) {
        return nullptr;
    }
}

} // namespace

/* A std::nothrow_t is passed by its address, an align_val_t as a size. */
OPERATOR void *pm___Znwm(size_t size)
{
    return allocate_or_throw(0, size);
}
OPERATOR void *pm___ZnwmSt11align_val_t(size_t size, size_t alignment)
{
    return allocate_or_throw(alignment, size);
}
OPERATOR void *pm___Znam(size_t size)
{
    return pm___Znwm(size);
}
OPERATOR void *pm___ZnamSt11align_val_t(size_t size, size_t alignment)
{
    return pm___ZnwmSt11align_val_t(size, alignment);
}
OPERATOR void *pm___ZnwmRKSt9nothrow_t(size_t size, const void *)
{
    return null_if_thrown(pm___Znwm, size);
}
OPERATOR void *pm___ZnamRKSt9nothrow_t(size_t size, const void *)
{
    return null_if_thrown(pm___Znam, size);
}
OPERATOR void *pm___ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void *)
{
    return null_if_thrown(pm___ZnwmSt11align_val_t, size, alignment);
}
OPERATOR void *pm___ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void *)
{
    return null_if_thrown(pm___ZnamSt11align_val_t, size, alignment);
}

OPERATOR void pm___ZdlPv(void *p)
{
    pm__free(p);
}
OPERATOR void pm___ZdaPv(void *p)
{
    pm___ZdlPv(p);
}
OPERATOR void pm___ZdlPvm(void *p, size_t)
{
    pm___ZdlPv(p);
}
OPERATOR void pm___ZdaPvm(void *p, size_t)
{
    pm___ZdaPv(p);
}
OPERATOR void pm___ZdlPvRKSt9nothrow_t(void *p, const void *)
{
    pm___ZdlPv(p);
}
OPERATOR void pm___ZdaPvRKSt9nothrow_t(void *p, const void *)
{
    pm___ZdaPv(p);
}
OPERATOR void pm___ZdlPvSt11align_val_t(void *p, size_t)
{
    pm__free(p);
}
OPERATOR void pm___ZdaPvSt11align_val_t(void *p, size_t alignment)
{
    pm___ZdlPvSt11align_val_t(p, alignment);
}
OPERATOR void pm___ZdlPvmSt11align_val_t(void *p, size_t, size_t alignment)
{
    pm___ZdlPvSt11align_val_t(p, alignment);
}
OPERATOR void pm___ZdaPvmSt11align_val_t(void *p, size_t, size_t alignment)
{
    pm___ZdaPvSt11align_val_t(p, alignment);
}
OPERATOR void pm___ZdlPvSt11align_val_tRKSt9nothrow_t(void *p, size_t alignment, const void *)
{
    pm___ZdlPvSt11align_val_t(p, alignment);
}
OPERATOR void pm___ZdaPvSt11align_val_tRKSt9nothrow_t(void *p, size_t alignment, const void *)
{
    pm___ZdaPvSt11align_val_t(p, alignment);
}
