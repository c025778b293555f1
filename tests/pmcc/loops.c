/* Stores in loops: marks that leave the loop, and such as must not. */
#include "subject.h"

#include <string.h>

SUBJECT(fills)
{
    int *a = (int *)m;
    for (long i = 0; i < n; i++)
        a[i] = (int)i;
}
SUBJECT(fills_bytes)
{
    for (long i = 0; i < n * 10; i++)
        m[i] = (char)(i | 0x80);
}
SUBJECT(fills_backwards)
{
    long *a = (long *)m;
    for (long i = n - 1; i >= 0; i--)
        a[i] = i;
}
SUBJECT(fills_unsigned)
{
    int *a = (int *)m;
    for (unsigned i = 3; i < (unsigned)n; i++)
        a[i] = (int)i;
}
SUBJECT(fills_constant)
{
    double *a = (double *)m;
    for (int i = 0; i < 37; i++)
        a[i] = (double)n + i;
}
SUBJECT(fills_to_pointer)
{
    for (short *p = (short *)m, *end = p + n; p != end; p++)
        *p = (short)n;
}
SUBJECT(fills_at_least_one)
{
    long i = 0;
    do
        ((long *)m)[i] = n;
    while (++i < n);
}
SUBJECT(fills_every_second)
{
    for (long i = 0; i < n; i += 2)
        ((int *)m)[i] = (int)i;
}
SUBJECT(fills_a_byte_a_line)
{
    for (long i = 0; i < n; i++)
        m[i * 64] = (char)i;
}
SUBJECT(fills_a_byte_in_two_lines)
{
    for (long i = 0; i < n; i++)
        m[i * 128] = (char)(i | 0x80);
}
SUBJECT(fills_with_gaps)
{
    for (long i = 0; i < n; i++)
        ((int *)m)[i * 17] = (int)i;
}
SUBJECT(fills_by_unknown_step)
{
    for (long i = 0; i < n * 20; i += n)
        m[i * 3] = (char)(i | 0x80);
}

struct record {
    long a, b, c;
    char pad[80];
    int d;
};
SUBJECT(fills_records)
{
    struct record *r = (struct record *)m;
    for (long i = 0; i < n; i++) {
        r[i].a = i;
        r[i].c = n;
        r[i].d = (int)i;
    }
}
SUBJECT(fills_two)
{
    for (long i = 0; i < n; i++) {
        ((long *)m)[i] = i;
        ((int *)(m + 4096))[i] = (int)n;
    }
}
SUBJECT(fills_and_then_some)
{
    long *a = (long *)m;
    for (long i = 0; i < n; i++) {
        a[i] = i;
        if (i % 7 == 3)
            a[500 + i] = n;
    }
}
SUBJECT(fills_until)
{
    long *a = (long *)m;
    for (long i = 0; i < n; i++) {
        if (i == 20 + a[0] % 2)
            break;
        a[i + 1] = i;
    }
}
SUBJECT(fills_then_leaves)
{
    volatile long limit = 30;
    for (long i = 0; i < n; i++) {
        ((long *)m)[i] = i;
        if (i > limit)
            return;
    }
}
SUBJECT(fills_where)
{
    int *a = (int *)m, *flags = (int *)(m + 8192);
    for (long i = 0; i < n; i++)
        flags[i] = (i % 5) > 2;
    commit();
    for (long i = 0; i < n; i++)
        if (flags[i])
            a[i] = (int)i;
}
SUBJECT(fills_bytes_where)
{
    char *flags = m + 8192;
    for (long i = 0; i < n; i++)
        flags[i] = (i % 40) == 39;
    commit();
    for (long i = 0; i < n; i++)
        if (flags[i])
            m[i] = (char)i;
}
SUBJECT(fills_square)
{
    int(*a)[16] = (int(*)[16])m;
    for (long i = 0; i < n; i++)
        for (int j = 0; j < 10; j++)
            a[i][j] = (int)i * j;
}
SUBJECT(fills_triangle)
{
    char(*a)[128] = (char(*)[128])m;
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++)
            a[i][j] = (char)(i * j + 1) | (char)0x80;
}
SUBJECT(fills_again_and_again)
{
    for (long round = 0; round < 5; round++)
        for (long i = 0; i < n; i++)
            ((int *)m)[i] = (int)(round * i);
}
SUBJECT(fills_and_commits)
{
    for (long round = 0; round < 5; round++) {
        for (long i = 0; i < n; i++)
            ((int *)m)[i] = (int)(round * 100 + i);
        commit();
    }
}
SUBJECT(commits_each)
{
    for (long i = 0; i < n; i++) {
        ((int *)m)[i] = (int)i;
        commit();
    }
}
SUBJECT(commits_once)
{
    for (long i = 0; i < n; i++) {
        *(long *)m = i + 1000;
        ((long *)m)[i / 2] = i;
        if (i == 5)
            commit();
    }
}
SUBJECT(commits_between)
{
    for (long i = 0; i < n; i++) {
        ((long *)m)[0] = i + 1;
        ((long *)m)[20] = i + 1;
        commit();
        ((long *)m)[0] = -i;
        ((long *)m)[20] = -i - 2;
    }
}

SUBJECT(adds_up)
{
    for (long i = 0; i < n; i++)
        *(long *)m += i + 1;
}
SUBJECT(adds_up_where)
{
    for (long i = 0; i < n; i++)
        if (m[2000 + i] != (char)i)
            *(volatile long *)m += i + 1;
}
SUBJECT(adds_up_and_commits)
{
    for (long i = 0; i < n; i++) {
        *(long *)m += i + 1;
        if (i % 3 == 2)
            commit();
    }
}
SUBJECT(scatters)
{
    int places[100];
    for (long i = 0; i < n; i++)
        places[i] = (int)(i * 37 % 101);
    for (long i = 0; i < n; i++)
        ((int *)m)[places[i] * 5] = (int)i;
}

struct link {
    struct link *next;
    long value;
    char pad[40];
};
SUBJECT(links)
{
    struct link *all = (struct link *)m, *first = 0;
    for (long i = 0; i < n; i++) {
        struct link *l = &all[i * 31 % 101];
        l->next = first;
        l->value = i;
        first = l;
    }
    commit();
    for (struct link *l = first; l; l = l->next)
        if (l->value & 1)
            l->value = n * 1000 + 1;
}
SUBJECT(walks_irreducibly)
{
    long i = 0;
    if (n & 1)
        goto middle;
top:
    ((long *)m)[i] = n;
    i++;
middle:
    ((long *)m)[100 + i] = i;
    if (i % 4 == 1)
        commit();
    i++;
    if (i < n)
        goto top;
}
SUBJECT(sorts)
{
    int *a = (int *)m;
    for (long i = 0; i < n; i++)
        a[i] = (int)(i * 7919 % 101);
    for (long i = 1; i < n; i++)
        for (long j = i; j > 0 && a[j - 1] > a[j]; j--) {
            int t = a[j];
            a[j] = a[j - 1];
            a[j - 1] = t;
        }
}
SUBJECT(copies_rows)
{
    char row[48];
    for (long i = 0; i < n; i++) {
        memset(row, (int)i, sizeof row);
        memcpy(m + i * 100, row, sizeof row);
    }
}
SUBJECT(copies_growing)
{
    for (long i = 0; i < n; i++)
        memset(m + i * 100, (int)i, i);
}
__attribute__((noinline)) static void recurse(char *m, long n)
{
    if (n <= 0)
        return;
    *(long *)m = n;
    recurse(m + 72, n - 1);
    commit();
    *(long *)m = -n;
}
SUBJECT(recurses)
{
    recurse(m, n);
}
