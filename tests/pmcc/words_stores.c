/* What is done to memory, see words.h. No function is inlined, so that the compiler knows as little of its
 * caller as in a program. */
#include "words.h"

#include <stdatomic.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

typedef unsigned short u16 __attribute__((aligned(1), may_alias));
typedef unsigned u32 __attribute__((aligned(1), may_alias));
typedef unsigned long u64 __attribute__((aligned(1), may_alias));
typedef double real __attribute__((aligned(1), may_alias));

union word {
    void *pointer;
    uintptr_t number;
    double real;
    char text[8];
    unsigned char bytes[8];
    struct {
        unsigned low, high;
    } half;
    unsigned short quarter[4];
};

struct pair {
    union word a, b;
};

/* ---- pointers -------------------------------------------------------------------------------- */

NOINLINE static void typed(char *to, void *pointer)
{
    *(void **)to = pointer;
}
NOINLINE static void of_char(char *to, void *pointer)
{
    *(char **)to = pointer;
}
NOINLINE static void as_number(char *to, void *pointer)
{
    *(uintptr_t *)to = (uintptr_t)pointer;
}
NOINLINE static void of_union(char *to, void *pointer)
{
    ((union word *)to)->pointer = pointer;
}
NOINLINE static void whole_union(char *to, void *pointer)
{
    union word word;
    word.pointer = pointer;
    *(union word *)to = word;
}
NOINLINE static void copied_from_stack(char *to, void *pointer)
{
    memcpy(to, &pointer, sizeof pointer);
}
NOINLINE static void atomically(char *to, void *pointer)
{
    atomic_store((_Atomic(void *) *)to, pointer);
}
NOINLINE static void exchanged(char *to, void *pointer)
{
    atomic_exchange((_Atomic(uintptr_t) *)to, (uintptr_t)pointer);
}

store_pointer *const pointer_stores[] = {typed,       of_char,           as_number,  of_union,
                                         whole_union, copied_from_stack, atomically, exchanged};
const int pointer_store_count = COUNT(pointer_stores);

/* ---- data ------------------------------------------------------------------------------------ */

#define DATA(name, type, value)                                                                    \
    NOINLINE static void name(char *to, long n)                                                    \
    {                                                                                              \
        (void)n;                                                                                   \
        *(type *)to = value;                                                                       \
    }
DATA(constant_byte, char, ':')
DATA(argument_byte, unsigned char, (unsigned char)n)
DATA(computed_byte, unsigned char, (unsigned char)(n * 3 + 1))
DATA(counted_byte, unsigned char, (unsigned char)(*to + 1))
DATA(argument_short, u16, (unsigned short)n)
DATA(argument_int, u32, (unsigned)n)
DATA(constant_int, u32, 0x616263)
DATA(plain_int, int, (int)n)
DATA(a_float, float, (float)n)
DATA(argument_long, u64, (unsigned long)n & 0xffffffff)
DATA(constant_long, u64, 77)
DATA(a_double, real, (double)n)
#define FIELD(name, type, field)                                                                   \
    NOINLINE static void name(char *to, long n)                                                    \
    {                                                                                              \
        ((union word *)to)->field = (type)n;                                                       \
    }
FIELD(first_text, char, text[0])
FIELD(low_half, unsigned, half.low)
FIELD(a_quarter, unsigned short, quarter[0])
NOINLINE static void a_table_byte(char *to, long n)
{
    static const char table[] = "0123456789abcdef";
    to[0] = table[n & 15];
}
NOINLINE static void cleared(char *to, long n)
{
    memset(to, (int)n & 1, 13);
}
NOINLINE static void two_words(char *to, long n)
{
    *(struct pair *)to = (struct pair){{.real = (double)n}, {.number = 5}};
}

const struct data_store data_stores[] = {
    {constant_byte, 1, 1},  {argument_byte, 1, 1},  {computed_byte, 1, 1}, {counted_byte, 1, 1},
    {argument_short, 2, 1}, {argument_int, 4, 1},   {constant_int, 4, 1},  {plain_int, 4, 4},
    {a_float, 4, 4},        {argument_long, 8, 1},  {constant_long, 8, 1}, {a_double, 8, 1},
    {first_text, 1, 8},     {low_half, 4, 8},       {a_quarter, 2, 8},     {a_table_byte, 1, 1},
    {cleared, 13, 1},       {two_words, 16, 8},
};
const int data_store_count = COUNT(data_stores);

/* ---- text ------------------------------------------------------------------------------------ */

/* Not snprintf(): libc's own stores open a page by a fault, and then words there go by their values. */
static const char letters[] = "PPabcdefghijklmnopqrstuvwxyz :PP";

NOINLINE static void by_characters(char *to, long n)
{
    for (long i = 0; i < n; i++)
        to[i] = letters[i];
    to[n] = '\0';
}
NOINLINE static void by_pointer(char *to, long n)
{
    const char *from = letters + n % 7;
    while (n-- > 0)
        *to++ = *from++;
    *to = 0;
}
NOINLINE static void by_strncpy(char *to, long n)
{
    strncpy(to, letters, (size_t)n);
    to[n] = '\0';
}
NOINLINE static void computed(char *to, long n)
{
    for (long i = 0; i <= n; i++)
        to[i] = (char)('a' + i % 26);
}

store_text *const text_stores[] = {by_characters, by_pointer, by_strncpy, computed};
const int text_store_count = COUNT(text_stores);

/* ---- copies ---------------------------------------------------------------------------------- */

NOINLINE static void with_memcpy(char *to, const char *from, long n)
{
    memcpy(to, from, (size_t)n);
}
NOINLINE static void with_memmove(char *to, const char *from, long n)
{
    memmove(to, from, (size_t)n);
}
#define FIXED(bytes)                                                                               \
    NOINLINE static void fixed_##bytes(char *to, const char *from, long n)                         \
    {                                                                                              \
        for (; n > 0; n -= (bytes), to += (bytes), from += (bytes))                                \
            memcpy(to, from, bytes);                                                               \
    }
FIXED(1)
FIXED(2)
FIXED(3)
FIXED(4)
FIXED(6)
FIXED(8)
FIXED(12)
FIXED(16)
#define LOOP(name, type)                                                                           \
    NOINLINE static void name##_up(char *to, const char *from, long n)                             \
    {                                                                                              \
        type *t = (type *)to;                                                                      \
        const type *f = (const type *)from;                                                        \
        for (long i = 0; i < n / (long)sizeof(type); i++)                                          \
            t[i] = f[i];                                                                           \
    }                                                                                              \
    NOINLINE static void name##_down(char *to, const char *from, long n)                           \
    {                                                                                              \
        volatile type *t = (volatile type *)to;                                                    \
        const type *f = (const type *)from;                                                        \
        for (long i = n / (long)sizeof(type); i-- > 0;)                                            \
            t[i] = f[i];                                                                           \
    }
LOOP(bytes, char)
LOOP(shorts, u16)
LOOP(ints, u32)
LOOP(plain_ints, int)
LOOP(longs, u64)
NOINLINE static void while_bytes(char *to, const char *from, long n)
{
    while (n-- > 0)
        *to++ = *from++;
}
NOINLINE static void put_byte(char *to, char byte)
{
    *to = byte;
}
NOINLINE static void through_a_function(char *to, const char *from, long n)
{
    for (long i = 0; i < n; i++)
        put_byte(to + i, from[i]);
}
NOINLINE static void assigned(char *to, const char *from, long n)
{
    for (; n > 0; n -= WORD, to += WORD, from += WORD)
        *(union word *)to = *(const union word *)from;
}
NOINLINE static void assigned_pairs(char *to, const char *from, long n)
{
    for (; n > 0; n -= 2 * WORD, to += 2 * WORD, from += 2 * WORD)
        *(struct pair *)to = *(const struct pair *)from;
}
/* The optimiser makes several variables of each union. */
static volatile bool parts_are_read;
static volatile double part_read;
#define ASSIGNED_PARTS(name, type)                                                                 \
    NOINLINE static void name(char *to, const char *from, long n)                                  \
    {                                                                                              \
        for (; n > 0; n -= WORD, to += WORD, from += WORD) {                                       \
            union {                                                                                \
                void *pointer;                                                                     \
                type part;                                                                         \
            } word;                                                                                \
            memcpy(&word, from, sizeof word);                                                      \
            if (parts_are_read)                                                                    \
                part_read = (double)word.part;                                                     \
            memcpy(to, &word, sizeof word);                                                        \
        }                                                                                          \
    }
ASSIGNED_PARTS(assigned_char, char)
ASSIGNED_PARTS(assigned_bool, bool)
ASSIGNED_PARTS(assigned_short, short)
ASSIGNED_PARTS(assigned_int, int)
ASSIGNED_PARTS(assigned_float, float)
NOINLINE static void pointers(char *to, const char *from, long n)
{
    for (; n > 0; n -= WORD, to += WORD, from += WORD)
        ((union word *)to)->pointer = ((const union word *)from)->pointer;
}
NOINLINE static void numbers(char *to, const char *from, long n)
{
    for (; n > 0; n -= WORD, to += WORD, from += WORD)
        ((union word *)to)->number = ((const union word *)from)->number;
}
NOINLINE static void through_the_stack(char *to, const char *from, long n)
{
    char buffer[OBJECT_BYTES];
    memcpy(buffer, from, (size_t)n);
    __asm__ volatile("" : : "r"(buffer) : "memory");
    memcpy(to, buffer, (size_t)n);
}
NOINLINE static void halves_joined(char *to, const char *from, long n)
{
    for (; n > 0; n -= WORD, to += WORD, from += WORD)
        *(u64 *)to = *(const u32 *)from | (unsigned long)*(const u32 *)(from + 4) << 32;
}
NOINLINE static void halves_added(char *to, const char *from, long n)
{
    for (; n > 0; n -= WORD, to += WORD, from += WORD) {
        unsigned low = *(const u32 *)from, high = *(const u32 *)(from + 4);
        *(u64 *)to = low + ((unsigned long)high << 32);
    }
}
NOINLINE static void halves_cut(char *to, const char *from, long n)
{
    for (; n > 0; n -= WORD, to += WORD, from += WORD) {
        unsigned long word = *(const u64 *)from;
        *(u32 *)to = (unsigned)word;
        *(u32 *)(to + 4) = (unsigned)(word >> 32);
    }
}
NOINLINE static void bytes_cut(char *to, const char *from, long n)
{
    for (; n > 0; n -= WORD, to += WORD, from += WORD) {
        unsigned long word = *(const u64 *)from;
        for (int i = 0; i < WORD; i++, word >>= 8)
            to[i] = (char)word;
    }
}

#ifdef __OPTIMIZE__
#define GOES_THROUGH_MEMORY false
#else
#define GOES_THROUGH_MEMORY true
#endif

const struct copy copies[] = {
    {with_memcpy, 1, 1, false, false, false},
    {with_memmove, 1, 1, true, false, false},
    {fixed_1, 1, 1, false, true, false},
    {fixed_2, 2, 1, false, true, false},
    {fixed_3, 3, 1, false, true, false},
    {fixed_4, 4, 1, false, true, false},
    {fixed_6, 6, 1, false, true, false},
    {fixed_8, 8, 1, false, false, false},
    {fixed_12, 12, 1, false, true, false},
    {fixed_16, 16, 1, false, false, false},
    {bytes_up, 1, 1, false, true, false},
    {bytes_down, 1, 1, false, true, false},
    {shorts_up, 2, 1, false, true, false},
    {shorts_down, 2, 1, false, true, false},
    {ints_up, 4, 1, false, true, false},
    {ints_down, 4, 1, false, true, false},
    {plain_ints_up, 4, 4, false, true, false},
    {plain_ints_down, 4, 4, false, true, false},
    {longs_up, 8, 1, false, false, false},
    {longs_down, 8, 1, false, false, false},
    {while_bytes, 1, 1, false, true, false},
    {through_a_function, 1, 1, false, true, false},
    {assigned, 8, 8, false, false, false},
    {assigned_pairs, 16, 8, false, false, false},
    {assigned_char, 8, 8, false, false, GOES_THROUGH_MEMORY},
    {assigned_bool, 8, 8, false, false, GOES_THROUGH_MEMORY},
    {assigned_short, 8, 8, false, false, GOES_THROUGH_MEMORY},
    {assigned_int, 8, 8, false, false, GOES_THROUGH_MEMORY},
    {assigned_float, 8, 8, false, false, GOES_THROUGH_MEMORY},
    {pointers, 8, 8, false, false, true},
    {numbers, 8, 8, false, false, false},
    {through_the_stack, 8, 8, false, false, true},
    {halves_joined, 8, 8, false, true, false},
    {halves_added, 8, 8, false, true, false},
    {halves_cut, 8, 8, false, true, false},
    {bytes_cut, 8, 8, false, true, false},
};
const int copy_count = COUNT(copies);

/* ---- swaps ----------------------------------------------------------------------------------- */

#define SWAP(name, type)                                                                           \
    NOINLINE static void name(char *a, char *b, long n)                                            \
    {                                                                                              \
        for (; n > 0; n -= (long)sizeof(type), a += sizeof(type), b += sizeof(type)) {             \
            type t = *(type *)a;                                                                   \
            *(type *)a = *(type *)b;                                                               \
            *(type *)b = t;                                                                        \
        }                                                                                          \
    }
SWAP(swapped_bytes, char)
SWAP(swapped_ints, u32)
SWAP(swapped_plain_ints, int)
SWAP(swapped_longs, u64)
SWAP(swapped_unions, union word)
NOINLINE static void exclusive_or(char *a, char *b, long n)
{
    for (long i = 0; i < n; i++) {
        a[i] ^= b[i];
        b[i] ^= a[i];
        a[i] ^= b[i];
    }
}

const struct swap swaps[] = {{swapped_bytes, 1, true},       {swapped_ints, 4, true},
                             {swapped_plain_ints, 4, true},  {swapped_longs, 8, false},
                             {swapped_unions, 8, false},     {exclusive_or, 1, true}};
const int swap_count = COUNT(swaps);

/* ---- bits ------------------------------------------------------------------------------------ */

NOINLINE static void set_in_byte(char *word, long bits)
{
    *(unsigned char *)word |= (unsigned char)(bits & 7);
}
NOINLINE static void clear_in_byte(char *word, long bits)
{
    *(unsigned char *)word &= (unsigned char)(bits | ~7);
}
NOINLINE static void set_one_in_byte(char *word, long bits)
{
    (void)bits;
    *(unsigned char *)word |= 1;
}
NOINLINE static void clear_one_in_byte(char *word, long bits)
{
    (void)bits;
    ((union word *)word)->bytes[0] &= 0xfe;
}
NOINLINE static void flip_in_word(char *word, long bits)
{
    *(uintptr_t *)word ^= (uintptr_t)bits & 7;
}
NOINLINE static void set_in_number(char *word, long bits)
{
    (void)bits;
    ((union word *)word)->number |= 2;
}
NOINLINE static void clear_in_pointer(char *word, long bits)
{
    (void)bits;
    union word *w = (union word *)word;
    w->pointer = (void *)((uintptr_t)w->pointer & ~(uintptr_t)7);
}
NOINLINE static void colour_atomically(char *word, long bits)
{
    atomic_fetch_or((_Atomic(uintptr_t) *)word, (uintptr_t)bits & 4);
}

/* The compiler does not know that it is the same. */
static inline void *hidden(void *pointer)
{
    __asm__ volatile("" : "+r"(pointer));
    return pointer;
}
/* The compiler does not load the byte again where it knows what was stored. */
NOINLINE static void stored_on_one_path(char *word, long bits)
{
    union word *w = (union word *)word;
    void *same = hidden(w->pointer);
    if (bits & 1)
        w->pointer = same;
    w->bytes[0] |= (unsigned char)(bits & 7);
}
NOINLINE static void stored_or_set(char *word, long bits)
{
    union word *w = (union word *)word;
    void *same = hidden(w->pointer);
    if (bits & 1)
        w->pointer = same;
    else
        w->bytes[0] |= 2;
    w->bytes[0] |= 4;
}

/* The optimiser makes one store of the two, and drops its type. */
NOINLINE static long set_or_clear(unsigned char *byte, long set, long n)
{
    if (set) {
        *byte |= 1;
        return n / set;
    }
    *byte &= 0xfe;
    return n + 3;
}
NOINLINE static void set_or_clear_in_byte(char *word, long bits)
{
    set_or_clear((unsigned char *)word, bits & 1, bits);
}
NOINLINE static void set_by_comparing(char *word, long bits)
{
    unsigned *half = (unsigned *)word, old = __atomic_load_n(half, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(half, &old, old | (unsigned)(bits & 7), 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
        ;
}
NOINLINE static void set_in_memory(char *word, long bits)
{
    (void)bits;
    unsigned char copy;
    memcpy(&copy, word, sizeof copy);
    copy |= 1;
    memcpy(word, &copy, sizeof copy);
}
/* Without optimisation the byte goes through a variable. */
NOINLINE static void set_in_two_steps(char *word, long bits)
{
    unsigned char byte = ((union word *)word)->bytes[0];
    byte |= (unsigned char)(bits & 7);
    ((union word *)word)->bytes[0] = byte;
}
NOINLINE static void set_in_place(char *word, long bits)
{
    (void)bits;
    union word *w = (union word *)word;
    w->bytes[0] = w->bytes[0] | 4;
}
NOINLINE static void set_by_assembly(char *word, long bits)
{
    (void)bits;
    __asm__ volatile("orb $2, %0" : "+m"(*(unsigned char *)word));
}

const struct bit_change bit_changes[] = {
    {set_in_byte, false},       {clear_in_byte, false},        {set_one_in_byte, false},
    {clear_one_in_byte, false}, {flip_in_word, false},         {set_in_number, false},
    {clear_in_pointer, true},   {colour_atomically, false},    {stored_on_one_path, true},
    {stored_or_set, true},      {set_or_clear_in_byte, false}, {set_by_comparing, false},
    {set_by_assembly, false},   {set_in_memory, false},        {set_in_two_steps, false},
    {set_in_place, false},
};
const int bit_change_count = COUNT(bit_changes);
