#include "recorded_errors.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/mman.h>

namespace
{

struct Virtual {
    virtual ~Virtual() = default;
    virtual long value() const { return 1; }
    long number = 5;
};

} // namespace

void store_foreign(Holder *holder, Foreign what, pm_container *other)
{
    static void *heap = malloc(64);
    static void *map =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long local = 0;
    switch (what) {
    case Foreign::Stack:
        *const_cast<void *volatile *>(&holder->pointer) = &local;
        break;
    case Foreign::Heap:
        holder->pointer = static_cast<char *>(heap) + 5;
        break;
    case Foreign::Function:
        holder->pointer = reinterpret_cast<void *>(&abort);
        break;
    case Foreign::Constant:
        holder->pointer = const_cast<char *>("text");
        break;
    case Foreign::Container:
        holder->pointer = pm_getroot(other);
        break;
    case Foreign::VirtualTable:
        new (holder) Virtual();
        break;
    case Foreign::Mapped:
        holder->pointer = map;
        break;
    }
}

void store_pointer(Holder *holder, void *pointer)
{
    holder->pointer = pointer;
}

void store_pointers(void **words, size_t count, void *pointer)
{
    for (size_t i = 0; i < count; i++)
        words[i] = pointer;
}

void copy_halves(void *__restrict to, void *const *__restrict from, size_t count)
{
    typedef uint32_t __attribute__((may_alias)) half; // of no type that strict aliasing knows
    half *__restrict halves = static_cast<half *>(to);
    for (size_t i = 0; i < count; i++) {
        const auto word = reinterpret_cast<uint64_t>(from[i]);
        halves[2 * i] = static_cast<half>(word);
        halves[2 * i + 1] = static_cast<half>(word >> 32);
    }
}

void copy(void *to, const void *from, size_t bytes)
{
    memmove(to, from, bytes);
}

void fill(void *words, int byte, size_t bytes)
{
    memset(words, byte, bytes);
}

void store_number(Holder *holder, long number)
{
    static volatile long one = 1;
    holder->number = number * one;
}

void store_computed(void *word, double number)
{
    *static_cast<double *>(word) = number * 2;
}
