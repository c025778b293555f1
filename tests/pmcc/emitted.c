/*
 * How many marks stand where, in what the pass makes of this at -O2. emitted.sh runs it.
 *
 * CHECK-LABEL names a function; what follows is about that one.
 */
#include <stdlib.h>
#include <string.h>

struct node {
    struct node *left, *right;
    long key;
    int colour;
};
void commit(void);

// One test, then a call in a branch of its own.
// CHECK-LABEL: @one(
// CHECK: sub i64 {{.*}}, 18691697672192
// CHECK: lshr i64 {{.*}}, 46
// CHECK: br i1
// CHECK: lshr i64 {{.*}}, 6
// CHECK: load i8
// CHECK: br i1 {{.*}} !prof
// CHECK: call preserve_mostcc void @pm__mark(
// CHECK-NOT: @pm__mark
void one(long *p)
{
    *p = 1;
}

// Four fields, one mark of both ends.
// CHECK-LABEL: @fields(
// CHECK: call preserve_mostcc void @pm__mark_range(ptr {{.*}}, i64 28)
// CHECK-NOT: @pm__mark
void fields(struct node *n)
{
    n->left = n->right = 0;
    n->key = 5;
    n->colour = 1;
}

// Nothing that cannot be in the arena.
// CHECK-LABEL: @outside(
// CHECK-NOT: @pm__mark
struct node global;
_Thread_local int of_thread;
void *outside(long n, struct node by_value)
{
    static long counts[64];
    long local[64];
    memset(local, 1, sizeof local);
    local[n] = 3;
    counts[n & 63] += local[n / 2];
    global.key = n;
    of_thread = 5;
    by_value.key = n;
    *(volatile long *)&by_value.colour = 2;
    int *heap = malloc(400);
    heap[n] = counts[3];
    struct node *cleared = calloc(1, sizeof *cleared);
    cleared->left = (struct node *)heap;
    return n & 1 ? (void *)cleared : (void *)&global;
}

// A program may have its own of these in another file, for what is in a container.
// CHECK-LABEL: @resized(
// CHECK: call preserve_mostcc void @pm__mark
long *resized(long n, long *p)
{
    p = realloc(p, 8 * n);
    p[n - 1] = n;
    return p;
}
// CHECK-LABEL: @copied_text(
// CHECK: call preserve_mostcc void @pm__mark
char *copied_text(const char *from)
{
    char *text = strdup(from);
    text[0] = 'X';
    return text;
}
// CHECK-LABEL: @copied_part(
// CHECK: call preserve_mostcc void @pm__mark
char *copied_part(const char *from)
{
    char *text = strndup(from, 7);
    text[0] = 'X';
    return text;
}

// And of this in the same file.
// CHECK-LABEL: @from_own(
// CHECK: call preserve_mostcc void @pm__mark(
void *own_memory;
__attribute__((noinline)) void *valloc(size_t bytes)
{
    return bytes > 64 ? own_memory : NULL;
}
long *from_own(long n)
{
    long *p = valloc(n);
    *p = n;
    return p;
}

// A call may commit: marks on both sides of it.
// CHECK-LABEL: @around_call(
// CHECK: call preserve_mostcc void @pm__mark(
// CHECK: call void @commit(
// CHECK: call preserve_mostcc void @pm__mark(
// CHECK-NOT: @pm__mark
void around_call(long *p)
{
    *p = 1;
    commit();
    *p = 2;
}

// strlen() commits nothing: one mark.
// CHECK-LABEL: @around_pure(
// CHECK: call preserve_mostcc void @pm__mark_range(
// CHECK-NOT: @pm__mark
void around_pure(long *p, long n)
{
    p[1] = n;
    p[2] = strlen((char *)p);
}

// Marked on every way to the second store.
// CHECK-LABEL: @dominated(
// CHECK: call preserve_mostcc void @pm__mark(
// CHECK-NOT: @pm__mark
void dominated(long *p, long n, long *from)
{
    *p = 1;
    if (n != from[0])
        *p = from[n];
}

// Marked on one way only.
// CHECK-LABEL: @joined(
// CHECK-COUNT-2: call preserve_mostcc void @pm__mark(
// CHECK-NOT: @pm__mark
void joined(long *p, long *q, long n)
{
    if (n > 7)
        *(volatile long *)p = 1;
    q[n] = *p + 1;
}

// Not joined across a volatile access: by it a signal's handler may be told to commit.
// CHECK-LABEL: @told(
// CHECK: call preserve_mostcc void @pm__mark(
// CHECK: load volatile i32, ptr @may_commit
// CHECK: call preserve_mostcc void @pm__mark(
// CHECK-NOT: @pm__mark
int may_commit;
void told(long *p)
{
    p[0] = 1;
    (void)*(volatile int *)&may_commit;
    p[1] = 2;
}

// Nor across an atomic access: by it another thread may be told to commit.
// CHECK-LABEL: @told_thread(
// CHECK: call preserve_mostcc void @pm__mark(
// CHECK: load atomic i32, ptr @may_commit acquire
// CHECK: call preserve_mostcc void @pm__mark(
// CHECK-NOT: @pm__mark
void told_thread(long *p)
{
    p[0] = 1;
    (void)__atomic_load_n(&may_commit, __ATOMIC_ACQUIRE);
    p[1] = 2;
}

// Nor across a call in which there is one, even if the call accesses no memory but its argument's.
// CHECK-LABEL: @told_in_call(
// CHECK: call preserve_mostcc void @pm__mark(
// CHECK: call {{.*}} @is_told(
// CHECK: call preserve_mostcc void @pm__mark(
// CHECK-NOT: @pm__mark
static __attribute__((noinline)) int is_told(int *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}
void told_in_call(long *p, int *flag)
{
    p[0] = 1;
    (void)is_told(flag);
    p[1] = 2;
}

// One mark of the range for each of two loops: the vectoriser's and the rest.
// CHECK-LABEL: @fill(
// CHECK-COUNT-2: call preserve_mostcc void @pm__mark_data(
// CHECK-NOT: @pm__mark
void fill(int *a, long n)
{
    for (long i = 0; i < n; i++)
        a[i] = (int)i;
}

// The same address in every round: before the loop.
// CHECK-LABEL: @invariant(
// CHECK: call preserve_mostcc void @pm__mark(
// CHECK: phi i64
// CHECK-NOT: @pm__mark
void invariant(long *p, unsigned char *from, long n)
{
    long i = 0;
    do
        __builtin_nontemporal_store((long)from[i] + i, p);
    while (++i < n);
}

// Not so if each round may commit.
// CHECK-LABEL: @not_invariant(
// CHECK: phi i64
// CHECK: call preserve_mostcc void @pm__mark(
// CHECK-NOT: @pm__mark
void not_invariant(long *p, long n)
{
    for (long i = 0; i < n; i++) {
        *p = i;
        commit();
    }
}

// CHECK-LABEL: @copy(
// CHECK: call preserve_mostcc void @pm__mark_copy(ptr {{.*}}, ptr {{.*}}, i64 %
// CHECK-NOT: @pm__mark
void copy(char *p, const char *q, size_t n)
{
    memcpy(p, q, n);
}

// A pointer that is loaded as one, and a flag that is set, need no question.
// CHECK-LABEL: @typed(
// CHECK-NOT: @pm__kinds
void typed(struct node *n)
{
    n->left = n->right;
    n->colour |= 1;
}

// What a union has, only the library knows.
// CHECK-LABEL: @copied(
// CHECK: call preserve_mostcc i64 @pm__kinds(
union word {
    void *pointer;
    long number;
};
void copied(union word *to, const union word *from)
{
    union word word;
    memcpy(&word, from, sizeof word);
    memcpy(to, &word, sizeof word);
}

// And of a byte, whether it is a pointer's.
// CHECK-LABEL: @tagged(
// CHECK: call preserve_mostcc i64 @pm__kinds(
void tagged(long *word)
{
    *(unsigned char *)word |= 1;
}

// Halves that are copied one behind the other are one word's, of which the library is asked.
// CHECK-LABEL: @neighbours(
// CHECK: call preserve_mostcc i64 @pm__kinds(
union halves {
    void *pointer;
    unsigned half[2];
};
void neighbours(union halves *restrict to, const union halves *restrict from)
{
    to->half[0] = from->half[0];
    to->half[1] = from->half[1];
}
static __attribute__((noinline)) void set(union halves *to, void *pointer)
{
    to->pointer = pointer;
}

// Not so if a function that stores is called between them: there the kinds may change.
// CHECK-LABEL: @not_neighbours(
// CHECK-NOT: @pm__kinds
// CHECK: call {{.*}} @set(
// CHECK-NOT: @pm__kinds
// CHECK: ret void
void not_neighbours(union halves *restrict to, const union halves *restrict from, union halves *other,
                    void *pointer)
{
    to->half[0] = from->half[0];
    set(other, pointer);
    to->half[1] = from->half[1];
}

// CHECK-LABEL: @opted_out(
// CHECK-NOT: @pm__
__attribute__((disable_sanitizer_instrumentation)) char *opted_out(char *p, char *q)
{
    *q = 1;
    return strcpy(p, q + 1);
}

// CHECK-LABEL: @wrapped(
// CHECK: call {{.*}} @pm__strcpy(
// CHECK-LABEL: declare
char *wrapped(char *p, char *q)
{
    return strcpy(p, q);
}
