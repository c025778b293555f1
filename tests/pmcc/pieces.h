/*
 * Functions made up at random store pointers, whole and in parts. An oracle knows each byte.
 *
 *   pieces_program.cc   Writes a C file: such functions, and what memory is like after them.
 *   pieces.h            That file includes it. The pass compiles both, as C or as C++.
 *   pieces_main.c       Calls the functions and commits. Opens the container elsewhere, and compares.
 *   pieces.sh           Does so for many seeds and compiler options. Shrinks what fails.
 *
 * Each function has three objects: a, b and t. It stores to a and b. Pointers lead to t. The main program
 * fills a and b with pointers and data first.
 */
#ifndef TEST_PMCC_PIECES_H
#define TEST_PMCC_PIECES_H

#include <stdint.h>
#include <string.h>

enum { WORD = 8, WORDS = 24, BYTES = WORD * WORDS };

/* A byte. Data has its value. A byte of the pointer t + delta has its place in the pointer. Its `value` has
 * the bits that differ from the pointer's. */
#define DATA(value)                  (value)
#define POINTER(delta, place, value) (1u << 31 | (delta) << 16 | (place) << 8 | (value))
#define UNKNOWN                      (1u << 30) /* padding */

struct word {
    int object, word; /* object 0: a, 1: b */
    int is_pointer;   /* its bytes are those of one pointer, in order */
    int is_data; /* data has overwritten a part of the word: it is not changed, wherever it leads */
    int may_fail; /* perhaps all of it was stored in pieces: a commit may refuse it */
    uint32_t bytes[WORD];
};

struct function {
    void (*run)(char *a, char *b, char *t, long n);
    int number;
    long n;
    int commits;              /* after a and b have been filled */
    const uint32_t *filled;   /* a number for each word of a and b, see fill() */
    const struct word *words; /* those that differ from `filled` */
    int count;
};

#ifdef __cplusplus
extern "C" {
#endif
extern const struct function functions[];
extern const int function_count;
#ifdef __cplusplus
}
#endif

#ifdef PIECES_PROGRAM

#pragma clang diagnostic ignored "-Wunused-function"
#pragma clang diagnostic ignored "-Wunused-variable"
#pragma clang diagnostic ignored "-Wunused-parameter"
#pragma clang diagnostic ignored "-Wunused-but-set-variable"
#pragma clang diagnostic ignored "-Watomic-alignment"

#define ALIAS __attribute__((may_alias))
typedef uint8_t u8 ALIAS;
typedef uint16_t u16 ALIAS;
typedef uint32_t u32 ALIAS;
typedef uint64_t u64 ALIAS;
typedef int8_t s8 ALIAS;
typedef int16_t s16 ALIAS;
typedef int32_t s32 ALIAS;
typedef int64_t s64 ALIAS;
typedef void *ptr ALIAS;
typedef double dbl ALIAS;
typedef unsigned __int128 u128 __attribute__((may_alias, aligned(8)));
typedef u8 u8_any;
typedef uint16_t u16_any __attribute__((may_alias, aligned(1)));
typedef uint32_t u32_any __attribute__((may_alias, aligned(1)));
typedef uint64_t u64_any __attribute__((may_alias, aligned(1)));
typedef uint64_t longs __attribute__((vector_size(16), may_alias, aligned(8)));
typedef uint64_t four_longs __attribute__((vector_size(32), may_alias, aligned(8)));
typedef uint32_t ints __attribute__((vector_size(16), may_alias, aligned(8)));
typedef uint8_t chars __attribute__((vector_size(16), may_alias, aligned(8)));

union word_of {
    void *pointer;
    uint64_t u64;
    double real;
    char text[8];
    uint8_t u8[8];
    uint16_t u16[4];
    uint32_t u32[2];
};
union buffer {
    uint64_t u64[WORDS];
    void *pointer[WORDS];
    uint8_t u8[BYTES];
};
typedef struct {
    uint64_t first, second;
} ALIAS pair;
typedef struct {
    void *pointer;
    uint32_t low, high;
    uint64_t number;
} ALIAS record;
typedef struct {
    char bytes[12];
} ALIAS twelve;
typedef struct {
    uint64_t first;
    char letter; /* and padding */
    uint64_t second;
} ALIAS padded;
typedef struct {
    uint64_t tag : 3, rest : 61;
} ALIAS tagged;

static const char text[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";

#define NOINLINE __attribute__((noinline))
#define ACCESS(type)                                                                               \
    static inline type copy_##type(const void *from)                                               \
    {                                                                                              \
        type value;                                                                                \
        memcpy(&value, from, sizeof value);                                                        \
        return value;                                                                              \
    }                                                                                              \
    static inline void put_##type(void *to, type value)                                            \
    {                                                                                              \
        memcpy(to, &value, sizeof value);                                                          \
    }                                                                                              \
    NOINLINE static type far_copy_##type(const void *from)                                         \
    {                                                                                              \
        return *(const type##_any *)from;                                                          \
    }                                                                                              \
    NOINLINE static void far_put_##type(void *to, type value)                                      \
    {                                                                                              \
        *(type##_any *)to = value;                                                                 \
    }                                                                                              \
    NOINLINE static type pass_##type(type value)                                                   \
    {                                                                                              \
        return value;                                                                              \
    }                                                                                              \
    NOINLINE static void set_bits_##type(type *word, type bits)                                    \
    {                                                                                              \
        *word |= bits;                                                                             \
    }
ACCESS(u8)
ACCESS(u16)
ACCESS(u32)
ACCESS(u64)

static inline u64 bits_of(double real)
{
    u64 bits;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}
static inline double real_of(u64 bits)
{
    double real;
    memcpy(&real, &bits, sizeof real);
    return real;
}
NOINLINE static void *pass_pointer(void *pointer)
{
    return pointer;
}

#endif
#endif
