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

typedef uint32_t __attribute__((may_alias)) any_half;
typedef uint16_t __attribute__((may_alias)) any_quarter;
typedef uint64_t __attribute__((may_alias)) any_word;

[[gnu::noinline]] static uint32_t half_of(const void *word, int which)
{
    return static_cast<const any_half *>(word)[which];
}

void copy_joined(void *to, const void *from, int way)
{
    static const volatile bool is_chosen = true;
    const uint64_t low = half_of(from, 0), high = half_of(from, 1),
                   word = *static_cast<const any_word *>(from);
    auto *word_at = static_cast<any_word *>(to);
    auto *half_at = static_cast<any_half *>(to);
    auto *quarter_at = static_cast<any_quarter *>(to);
    switch (way) {
    case 0:
        *word_at = low ^ high << 32;
        break;
    case 1: // a half cut out by a mask
        *word_at = (word & UINT32_MAX) | high << 32;
        break;
    case 2: // both joined before
        *word_at = (word & 0xffffff) | ((low | high << 32) & ~uint64_t(0xffffff));
        break;
    case 3: // a half that is another on another path
        *word_at = (is_chosen ? low : 86400) | high << 32;
        break;
    case 4: // with a tag, which is taken away
        *word_at = ((low | high << 32) ^ 1) & ~uint64_t(1);
        break;
    case 5: // a half that is a sum of quarters
        half_at[0] =
            (static_cast<uint32_t>(word >> 16 & 0xffff) << 16) + static_cast<uint16_t>(word);
        half_at[1] = static_cast<uint32_t>(high);
        break;
    case 6: // halves of a pointer, not of a number
        half_at[0] =
            static_cast<uint32_t>(reinterpret_cast<uintptr_t>(*static_cast<void *const *>(from)));
        half_at[1] = static_cast<uint32_t>(
            reinterpret_cast<uintptr_t>(*static_cast<void *const *>(from)) >> 32);
        break;
    case 7: // where other pieces were before
        quarter_at[2] = static_cast<uint16_t>(reinterpret_cast<uintptr_t>(to) >> 32);
        quarter_at[3] = static_cast<uint16_t>(reinterpret_cast<uintptr_t>(to) >> 48);
        half_at[0] = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from));
        __atomic_exchange_n(&half_at[1],
                            static_cast<uint32_t>(reinterpret_cast<uintptr_t>(from) >> 32),
                            __ATOMIC_ACQ_REL);
        break;
    case 8: // data between the pieces, beside them
        half_at[0] = static_cast<uint32_t>(low);
        quarter_at[3] = 0;
        quarter_at[2] = static_cast<uint16_t>(high);
        break;
    case 9: // data between the pieces, by a function, where a piece will be
        half_at[0] = static_cast<uint32_t>(low);
        memset(half_at + 1, 0, is_chosen ? sizeof *half_at : 0);
        half_at[1] = static_cast<uint32_t>(high);
        break;
    case 10: // both halves of a word, and then one of them again
        half_at[0] = static_cast<uint32_t>(word);
        half_at[1] = static_cast<uint32_t>(word >> 32);
        __asm__ volatile("" ::: "memory");
        half_at[0] = static_cast<uint32_t>(low);
        break;
    default: // one byte after the other
        *word_at = 0;
        for (int i = 0; i < 8; i++)
            *word_at |= static_cast<uint64_t>(static_cast<const unsigned char *>(from)[i]) << 8 * i;
    }
}

[[gnu::noinline]] void put_upper_half(void *to, const void *from)
{
    static_cast<any_half *>(to)[1] = static_cast<const any_half *>(from)[1];
}

[[gnu::noinline]] static void overwrite(void *word)
{
    *static_cast<any_word *>(word) = 7;
}

/* The optimiser knows that the first quarter is in the word already. It does not know that of the others. */
[[gnu::noinline]] static void copy_over_itself(void *to, uint64_t word, uint32_t low, uint32_t high)
{
    *static_cast<volatile any_word *>(to) = word;
    static_cast<any_quarter *>(to)[0] = static_cast<any_quarter>(word);
    static_cast<any_quarter *>(to)[1] = static_cast<any_quarter>(low >> 16);
    static_cast<any_half *>(to)[1] = high;
}

/* The first word gets the second, and so on. The optimiser keeps some halves for the next round. */
[[gnu::noinline]] static void rotate(void *words, const any_word *times)
{
    auto *half = static_cast<any_half *>(words);
    for (any_word i = 0; i < *times; i++) {
        const any_half low = half[0], high = half[1];
        half[0] = half[2];
        half[1] = half[3];
        half[2] = half[4];
        half[3] = half[5];
        half[4] = low;
        half[5] = high;
    }
}

void copy_in_steps(void *to, const void *from, int way)
{
    static const volatile bool is_chosen = true;
    any_word times = 3;
    const uint32_t low = half_of(from, 0), high = half_of(from, 1);
    const uint64_t word = *static_cast<const any_word *>(from);
    auto *word_at = static_cast<any_word *>(to);
    auto *half_at = static_cast<any_half *>(to);
    auto *quarter_at = static_cast<any_quarter *>(to);
    any_half old_low, old_high, zero = 0;
    any_quarter old_quarter;
    auto wait = [] { __asm__ volatile("" ::: "memory"); };
    switch (way) {
    case 0: // a function overwrites the word, and the halves are put back
    case 1: // a function does so on one path
        *word_at = *static_cast<const any_word *>(from);
        wait();
        old_low = half_at[0];
        old_high = half_at[1];
        if (way == 0 || is_chosen)
            overwrite(to);
        half_at[0] = old_low;
        half_at[1] = old_high;
        break;
    case 2: // in a loop
        *word_at = *static_cast<const any_word *>(from);
        rotate(to, &times);
        break;
    case 3: // bits are set
        half_at[0] |= low;
        wait();
        half_at[1] |= high;
        break;
    case 4: // atomically
        __atomic_or_fetch(&half_at[0], low, __ATOMIC_RELAXED);
        __atomic_or_fetch(&half_at[1], high, __ATOMIC_RELAXED);
        break;
    case 5: // a tag for a time
        half_at[0] = low;
        wait();
        *static_cast<unsigned char *>(to) |= 1;
        wait();
        *static_cast<unsigned char *>(to) &= 0xfe;
        wait();
        half_at[1] = high;
        break;
    case 6: // half a word, stored as a whole one
        *word_at = low;
        wait();
        half_at[1] = high;
        break;
    case 7:
        *word_at = static_cast<uint64_t>(high) << 32;
        wait();
        half_at[0] = low;
        break;
    case 8: // half a word, copied as a whole one
        half_at[2] = low;
        wait();
        memcpy(to, half_at + 2, sizeof *word_at);
        wait();
        half_at[1] = high;
        break;
    case 9: // half a word, exchanged
        __atomic_compare_exchange_n(&half_at[0], &zero, low, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
        half_at[1] = high;
        break;
    case 10: // half a word, that other code completes by setting bits
        *word_at = low;
        wait();
        half_at[1] |= high;
        break;
    case 11: // over the pointer itself
        return copy_over_itself(to, word, low, high);
    case 12: // in between the word may change
        *static_cast<volatile any_word *>(to) = word;
        wait();
        quarter_at[0] = static_cast<any_quarter>(word);
        quarter_at[1] = static_cast<any_quarter>(low >> 16);
        half_at[1] = high;
        break;
    case 13: // a quarter, exchanged
    case 14: // a quarter, stored by assembly
        *static_cast<volatile any_word *>(to) = word;
        old_quarter = quarter_at[0];
        if (way == 13)
            __atomic_compare_exchange_n(&quarter_at[0], &old_quarter, static_cast<any_quarter>(low),
                                        false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        else
            __asm__ volatile("movw %1, %0"
                             : "=m"(quarter_at[0])
                             : "r"(static_cast<any_quarter>(low)));
        quarter_at[1] = static_cast<any_quarter>(low >> 16);
        half_at[1] = high;
        break;
    default: // a half of a number, over which the half of a pointer was stored. The other is of the pointer
        word_at[1] = UINT64_C(0x200000000000);
        wait();
        half_at[2] = static_cast<any_half>(reinterpret_cast<uintptr_t>(from));
        half_at[0] = *static_cast<volatile any_half *>(half_at + 2);
        half_at[1] = static_cast<any_half>(reinterpret_cast<uintptr_t>(from) >> 32);
    }
}

/* The other bytes than the first. */
static void put_others(unsigned char *to, uintptr_t address)
{
    for (int i = 1; i < 8; i++)
        to[i] = static_cast<unsigned char>(address >> 8 * i);
}

[[gnu::noinline]] static void put_chosen(unsigned char *to, void *const *from, long n)
{
    const auto address = reinterpret_cast<uintptr_t>(*from);
    to[0] = static_cast<unsigned char>(n & 1 ? address : n * 3 + 8);
    put_others(to, address);
}
[[gnu::noinline]] static void put_constant(unsigned char *to, void *const *from, long n)
{
    const auto address = reinterpret_cast<uintptr_t>(*from);
    if (n & 1)
        to[0] = static_cast<unsigned char>(address);
    else
        to[0] = 8;
    put_others(to, address);
}
[[gnu::noinline]] static void put_other_word(unsigned char *to, void *const *from, long n)
{
    const auto address = reinterpret_cast<uintptr_t>(*from);
    to[0] = static_cast<unsigned char>(n & 1 ? address >> 8 : n >> 8);
    put_others(to, address);
}
[[gnu::noinline]] static void put_passed(unsigned char *to, void *const *from, unsigned char first)
{
    to[0] = first;
    put_others(to, reinterpret_cast<uintptr_t>(*from));
}
[[gnu::noinline]] static void put_text(unsigned char *to, void *const *from, const char *text)
{
    to[0] = static_cast<unsigned char>(*text);
    put_others(to, reinterpret_cast<uintptr_t>(*from));
}

void copy_with_number(void *to, void *const *from, int way)
{
    static volatile long even = 2048;
    auto *bytes = static_cast<unsigned char *>(to);
    switch (way) {
    case 0:
        return put_chosen(bytes, from, even);
    case 1:
        return put_constant(bytes, from, even);
    case 2:
        return put_other_word(bytes, from, even);
    case 3:
        return put_passed(bytes, from, static_cast<unsigned char>(even >> 8));
    default:
        return put_text(bytes, from, "\010");
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
