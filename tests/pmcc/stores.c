/* Every form of store there is in C, one at a time. */
#include "subject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#define NOINLINE __attribute__((noinline))

#define STORES(name, type, value)                                                                  \
    SUBJECT(name)                                                                                  \
    {                                                                                              \
        *(type *)(m + 64) = (type)(value);                                                         \
    }
STORES(stores_char, char, n)
STORES(stores_bool, bool, n & 1)
STORES(stores_short, short, n)
STORES(stores_int, int, n)
STORES(stores_long, long, n)
STORES(stores_float, float, n)
STORES(stores_double, double, n)
STORES(stores_pointer, void *, m + n)

typedef int v4 __attribute__((vector_size(16), aligned(4)));
typedef int v8 __attribute__((vector_size(32), aligned(4)));
typedef int v16 __attribute__((vector_size(64), aligned(4)));
typedef __int128 unaligned_int128 __attribute__((aligned(8)));
typedef long double unaligned_long_double __attribute__((aligned(8)));
STORES(stores_int128, unaligned_int128, n)
STORES(stores_long_double, unaligned_long_double, n)

SUBJECT(stores_vector_16)
{
    *(v4 *)(m + 4) = (v4){1, 2, (int)n, 4};
}
SUBJECT(stores_vector_32)
{
    *(v8 *)(m + 4) = (v8){1, 2, (int)n, 4, 5, 6, 7, 8};
}
SUBJECT(stores_vector_64)
{
    *(v16 *)(m + 4) = (v16){1, (int)n, 3};
}
SUBJECT(stores_non_temporal)
{
    __builtin_nontemporal_store(n, (long *)m);
}

SUBJECT(stores_straddling)
{
    int64_t x = n;
    memcpy(m + 61, &x, sizeof x);
    memcpy(m + 190, &x, sizeof x);
}

struct __attribute__((packed)) packed {
    char a;
    long b;
    short c;
    char pad[60];
    long d;
};
SUBJECT(stores_packed)
{
    struct packed *p = (struct packed *)(m + 53);
    p->b = n;
    p->d = n;
}

/* Two fields side by side, of which the second is the better aligned: it begins the next line. */
struct __attribute__((aligned(64))) lines {
    char pad[60];
    int last;
    long first;
};
SUBJECT(stores_across_lines)
{
    struct lines *p = (struct lines *)(((uintptr_t)m + 63) & ~(uintptr_t)63);
    p->last = (int)n;
    p->first = n;
}

struct bits {
    unsigned a : 3, b : 17, c : 12;
    uint64_t d : 40, e : 24;
};
SUBJECT(stores_bitfields)
{
    struct bits *b = (struct bits *)m;
    b->a = n;
    b[20].d = n;
    b[20].e = ~n;
    b[40].b ^= 5;
}

struct node {
    struct node *left, *right;
    long key;
    int colour;
    char name[20];
};
struct large {
    long words[25];
};
SUBJECT(stores_fields)
{
    struct node *p = (struct node *)m;
    p->left = p->right = p;
    p->key = n;
    p->colour = 1;
}
SUBJECT(stores_fields_and_commits)
{
    struct node *p = (struct node *)m;
    p->left = p;
    commit();
    p->right = p;
    p->key = n;
    commit();
    p->left = 0;
    p->name[19] = 1;
    commit();
    p->left = p + 1;
}
SUBJECT(stores_far_apart)
{
    long *p = (long *)m;
    p[0] = n;
    p[100] = n;
    p[9] = n;
    p[1] = n;
    p[50] = n;
    p[7] = n;
}
SUBJECT(stores_in_turn)
{
    long *p = (long *)m, *q = (long *)(m + 512 + n * 8);
    p[3] = 1;
    q[0] = 2;
    p[0] = 3;
    q[9] = 4;
    p[20] = 5;
    q[-5] = 6;
}
SUBJECT(copies_struct)
{
    *(struct node *)m = *(struct node *)(m + 4096 + n * 8);
    memset(m, 3, 40);
}
SUBJECT(copies_large)
{
    struct large x;
    memset(&x, (int)n, sizeof x);
    *(struct large *)m = x;
}
SUBJECT(zeroes_struct)
{
    *(struct node *)m = (struct node){.key = n};
}

NOINLINE static void by_value(struct large x, char *m)
{
    *(struct large *)m = x;
}
SUBJECT(passes_by_value)
{
    struct large x;
    memset(&x, (int)n, sizeof x);
    by_value(x, m + 24);
}
NOINLINE static struct large make_large(long n)
{
    struct large x;
    for (int i = 0; i < 25; i++)
        x.words[i] = n + i;
    return x;
}
SUBJECT(returns_struct)
{
    *(struct large *)(m + 16) = make_large(n);
}

SUBJECT(sets)
{
    memset(m + n, 7, 200);
}
SUBJECT(sets_some)
{
    memset(m + 3, 7, n * 5);
}
SUBJECT(copies)
{
    memset(m + 5000, 1, 300);
    memcpy(m + n, m + 5000, 150);
}
SUBJECT(copies_some)
{
    char from[512];
    memset(from, 2, sizeof from);
    memcpy(m + 7, from, n * 3);
}
SUBJECT(moves)
{
    for (int i = 0; i < 300; i++)
        m[i] = (char)(i * 7);
    commit();
    memmove(m + 1, m, 200);
    commit();
    memmove(m, m + 3, n);
}

SUBJECT(atomics)
{
    atomic_store((_Atomic long *)m, n);
    atomic_store_explicit((_Atomic int *)(m + 128), n, memory_order_relaxed);
    atomic_fetch_add((_Atomic long *)(m + 256), 1);
    atomic_fetch_xor((_Atomic char *)(m + 384), 5);
    atomic_exchange((_Atomic short *)(m + 512), (short)n);
    long expected = *(long *)(m + 640);
    atomic_compare_exchange_strong((_Atomic long *)(m + 640), &expected, n);
}
SUBJECT_MORE(atomic_failing)
{
    long expected = 12345;
    atomic_compare_exchange_strong((_Atomic long *)m, &expected, n);
}
SUBJECT(stores_expected) // the old value goes to the arena
{
    _Atomic long local = n;
    atomic_compare_exchange_strong(&local, (long *)m, 5);
}
SUBJECT(stores_volatile)
{
    volatile int *p = (volatile int *)m;
    p[0] = (int)n;
    p[100] = 1;
}

SUBJECT(assembly)
{
    __asm__("movq %1, %0" : "=m"(*(long *)(m + 64)) : "r"(n));
    __asm__("addl $1, %0" : "+m"(*(int *)(m + 256)) : : "cc");
}

NOINLINE static void list_to(va_list *to, ...)
{
    va_start(*to, to);
    va_end(*to);
}
SUBJECT(stores_va_list)
{
    list_to((va_list *)(m + 48), n);
}

/* __jmp_buf and flag; the signal mask behind is not written. */
SUBJECT_MORE(stores_jump_buffer)
{
    if (setjmp(*(jmp_buf *)(m + 8)) == 0)
        longjmp(*(jmp_buf *)(m + 8), 1);
    (setjmp)(*(jmp_buf *)(m + 1000)); /* the function, where setjmp() is a macro */
    sigsetjmp(*(sigjmp_buf *)(m + 2000), 0);
    getcontext((ucontext_t *)(m + 3000));
}

SUBJECT(stores_after_jump)
{
    jmp_buf buffer;
    volatile int round = 0;
    if (setjmp(buffer) < 3) {
        *(long *)m += 1;
        round = round + 1;
        commit();
        longjmp(buffer, round);
    }
    *(long *)m = n;
}

SUBJECT(stores_by_condition)
{
    if (n > 10)
        *(int *)m = 1;
    else
        *(int *)(m + 128) = 1;
    *(int *)(m + 4) = 2;
    if (n & 1)
        commit();
    *(int *)(m + 8) = 2;
    switch (n & 7) {
    case 0:
        m[300] = 1;
        break;
    case 3:
        m[400] = 1;
        commit(); /* fallthrough */
    case 4:
        m[500] = 1;
        break;
    default:
        break;
    }
    *(int *)m = 3;
    m[300] = 1;
}
SUBJECT(selects_pointer)
{
    long local = 0;
    long *p = n & 1 ? &local : (long *)m;
    *p = n;
    p = n & 2 ? p : (long *)(m + 128);
    *p = local;
}

__attribute__((optnone, noinline)) static void not_optimised(char *m, long n)
{
    struct node *p = (struct node *)m;
    p->key = n;
    for (long i = 0; i < n; i++)
        m[i] = (char)i;
    memset(m + 1000, 1, n);
}
SUBJECT(is_not_optimised)
{
    not_optimised(m, n);
}

#define SPACE(number) __attribute__((address_space(number)))

struct words {
    long word[12];
};

/* Address spaces that are no segment: their pointers are plain addresses. */
SUBJECT(stores_in_other_space)
{
    *(SPACE(1) long *)m = n;
    *(SPACE(1) char *)(m + 100) = (char)n;
    *(SPACE(2) long *)(m + 200) = *(SPACE(1) long *)(m + 8) + n + 1;
    m[512] = (char)n; // or the copied word is what was there
    *(SPACE(1) long *)(m + 304) = *(SPACE(3) long *)(m + 512);
    *(SPACE(258) long *)(m + 400) = n; // %ss begins at 0
    __atomic_fetch_add((SPACE(1) long *)(m + 640), n + 1, __ATOMIC_RELAXED);
}
SUBJECT(stores_neighbours_in_other_space)
{
    SPACE(1) struct words *p = (SPACE(1) struct words *)(m + 64);
    p->word[2] = n;
    p->word[0] = 1;
    p->word[1] = 2;
    *(SPACE(1) unsigned char *)(m + 1024) |= 1;
}
SUBJECT(loops_in_other_space)
{
    SPACE(1) long *p = (SPACE(1) long *)m;
    for (long i = 0; i < n; i++)
        p[i] = i;
}
SUBJECT(copies_in_other_space)
{
    memset(m + 1024, (int)n, sizeof(struct words)); // or both are the same
    *(SPACE(1) struct words *)m = *(SPACE(2) struct words *)(m + 1024);
    commit();
    *(struct words *)m = *(SPACE(1) struct words *)(m + 2048 + 8);
}
SUBJECT(copies_from_segment)
{
    *(long *)m = *(SPACE(257) long *)0; // the thread's own address
    commit();
    *(struct node *)(m + 64) = *(SPACE(257) struct node *)0;
}

/* The base is a constant, and what is added to it an address. */
extern long missing[] __attribute__((weak));
__attribute__((optnone, noinline)) static void adds_to_constant(char *m, long n)
{
    ((long *)0)[(uintptr_t)m / 8] = n;
    ((struct words *)0)[((uintptr_t)m + 1024) / sizeof(struct words)].word[1] = n;
    ((long *)4096)[((uintptr_t)m + 3000 - 4096) / 8] = n;
    missing[((uintptr_t)m + 4000) / 8] = n;
}
SUBJECT(stores_from_constant)
{
    adds_to_constant(m, n);
}
#ifdef NULL_IS_VALID
static inline char *at(char *base, uintptr_t offset)
{
    return base + offset;
}
SUBJECT(stores_from_null)
{
    *(long *)at(NULL, (uintptr_t)m) = n;
    *at(NULL, (uintptr_t)m + 200) = 1;
    for (long i = 0; i < n; i++)
        ((long *)0)[((uintptr_t)m + 400) / 8 + i] = i;
}
#endif
