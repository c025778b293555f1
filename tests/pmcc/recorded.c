/* Structures in C whose pointers the pass records. */
#define _GNU_SOURCE
#include "recorded.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <wchar.h>

/* And nobody may change its parameters. */
#define NOINLINE __attribute__((noinline, used))

/* ---- a tree with parents --------------------------------------------------------------------- */

struct tree {
    long key;
    struct tree *child[2], *parent;
};

static void rotate(struct tree **root, struct tree *n, int side)
{
    struct tree *up = n->child[!side], *parent = n->parent;
    n->child[!side] = up->child[side];
    if (up->child[side])
        up->child[side]->parent = n;
    up->child[side] = n;
    up->parent = parent;
    n->parent = up;
    if (!parent)
        *root = up;
    else
        parent->child[parent->child[1] == n] = up;
}

STRUCTURE(trees)
static void build_trees(pm_container *c, int step)
{
    struct tree **root = root_bytes(c, step, sizeof *root);
    if (step == 0)
        has_pointer(root);
    for (long i = 0; i < 200; i++) {
        struct tree *n = make(c, PM_TYPE(struct tree, child, parent), 1), **at = root,
                    *parent = NULL;
        n->key = (i * 7919 + step * 104729) % 10007;
        while (*at) {
            parent = *at;
            at = &parent->child[n->key > parent->key];
        }
        n->parent = parent;
        *at = n;
        if (parent && i % 3 == 0)
            rotate(root, parent, parent->child[1] == n ? 0 : 1);
    }
}
static const char *check_node(const struct tree *n, const struct tree *parent, long *count)
{
    if (!n)
        return NULL;
    REQUIRE_THAT_IT_HAS(n->parent == parent);
    ++*count;
    const char *wrong = check_node(n->child[0], n, count);
    return wrong ? wrong : check_node(n->child[1], n, count);
}
static const char *check_trees(pm_container *c)
{
    long count = 0;
    const char *wrong = check_node(*(struct tree **)pm_getroot(c), NULL, &count);
    return wrong || count == 200 * STEPS ? wrong : "all nodes";
}

/* ---- padding, in which the stack has left an address ------------------------------------------ */

struct padded {
    struct padded *next;
    int number; /* with the padding it would look like a pointer */
    struct padded *also;
    long same; /* as `number` */
};

/* Where the next function has its variables. */
NOINLINE static void leave_on_stack(const void *address)
{
    const void *volatile words[64];
    for (int i = 0; i < 64; i++)
        words[i] = address;
}

NOINLINE static void set_padded(struct padded *p, struct padded *next, int number)
{
    *p = (struct padded){.next = next, .number = number};
}

STRUCTURE(padded)
static void build_padded(pm_container *c, int step)
{
    struct padded **root = root_bytes(c, step, sizeof *root);
    if (step == 0)
        has_pointer(root);
    for (int i = 0; i < 50; i++) {
        struct padded *p = make(c, PM_TYPE(struct padded, next, also), 1);
        leave_on_stack(p);
        set_padded(p, *root, (int)(uintptr_t)p);
        p->same = p->number;
        *root = p;
    }
}
static const char *check_padded(pm_container *c)
{
    int count = 0;
    for (const struct padded *p = *(struct padded **)pm_getroot(c); p; p = p->next, count++)
        REQUIRE_THAT_IT_HAS(p->number == p->same);
    return count == 50 * STEPS ? NULL : "all of them";
}

/* ---- the middle of an object, and one past its end ------------------------------------------- */

struct range {
    int numbers[10];
    int *begin, *middle, *end, *volatile last;
    struct range *next;
};
#define RANGE PM_TYPE(struct range, begin, middle, end, next)

STRUCTURE(ranges)
static void build_ranges(pm_container *c, int step)
{
    struct range *first = pm_getroot(c);
    for (int i = 0; i < 20; i++) {
        struct range *r = make(c, RANGE, 1);
        has_pointer((void *)&r->last);
        *r = (struct range){.begin = r->numbers,
                            .middle = &r->numbers[i % 10],
                            .end = r->numbers + 10,
                            .last = (int *)(r + 1),
                            .next = first};
        for (int k = 0; k < 10; k++)
            r->numbers[k] = step + k;
        first = r;
    }
    if (step % 2)
        first->next->middle = NULL;
    pm_setroot(c, first, 0);
}
static const char *check_ranges(pm_container *c)
{
    int count = 0;
    for (const struct range *r = pm_getroot(c); r; r = r->next, count++) {
        REQUIRE_THAT_IT_HAS(r->begin == r->numbers && r->end == r->numbers + 10);
        REQUIRE_THAT_IT_HAS(!r->middle || (r->middle >= r->begin && r->middle < r->end));
        REQUIRE_THAT_IT_HAS(r->last == (const int *)(r + 1));
    }
    return count == 20 * STEPS ? NULL : "all of them";
}

/* ---- void *, and what is done with arrays of pointers ---------------------------------------- */

struct arrays {
    void **any;
    char **texts;
    long count;
    char *names[300];
    struct named {
        const char *name;
        long number;
    } sorted[64];
};
#define ARRAYS PM_TYPE(struct arrays, any, texts, names)

NOINLINE static void copy_all(char **to, char *const *from, long n)
{
    for (long i = 0; i < n; i++)
        to[i] = from[i];
}
NOINLINE static void reverse(void **p, long n)
{
    for (long i = 0; i < n / 2; i++) {
        void *swap = p[i];
        p[i] = p[n - 1 - i];
        p[n - 1 - i] = swap;
    }
}
static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}
static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)b, *(char *const *)a);
}
static void *grow(void *p, size_t bytes)
{
    void *q = pm_realloc(p, bytes);
    if (!q)
        abort();
    return q;
}

STRUCTURE(arrays)
static void build_arrays(pm_container *c, int step)
{
    struct arrays *a = pm_getroot(c);
    if (step == 0) {
        a = make(c, ARRAYS, 1);
        pm_setroot(c, a, 0);
        a->any = make_bytes(c, 16);
        a->texts = make_bytes(c, 16);
        for (int i = 0; i < 64; i++)
            has_pointer(&a->sorted[i].name);
    }
    long n = a->count, more = 40;
    a->any = grow(a->any, (n + more) * sizeof(void *));
    a->texts = grow(a->texts, (n + more) * sizeof(void *));
    for (long i = n; i < n + more; i++) {
        char *text = make_bytes(c, 32);
        memset(text, 'a' + i % 26, 1 + i % 20);
        a->texts[i] = text;
        a->any[i] = i % 2 ? (void *)&a->texts : (void *)(text + 5);
        has_pointer(&a->texts[i]);
        has_pointer(&a->any[i]);
    }
    a->count = n += more;
    copy_all(a->names + step, a->texts, n);
    memmove(a->names + 7, a->names + step, number(100) * sizeof(char *));
    memcpy(a->names + 200, a->names + 3, 8 * sizeof(char *));
    reverse(a->any, n);
    qsort(a->texts, n, sizeof *a->texts, compare_texts);
    for (int i = 0; i < 64; i++) {
        a->sorted[i].name = a->texts[(i * 37) % n];
        a->sorted[i].number = ((long)a / 16 + i) * number(16);
    }
    qsort(a->sorted, 64, sizeof *a->sorted, compare_names);
    a->sorted[5] = a->sorted[6];
    a->texts = grow(a->texts, 3 * n * sizeof(void *));
}
static const char *check_arrays(pm_container *c)
{
    const struct arrays *a = pm_getroot(c);
    for (long i = 0; i < a->count; i++) {
        REQUIRE_THAT_IT_HAS(pm_contains(c, a->texts[i]) && a->texts[i][0] >= 'a');
        REQUIRE_THAT_IT_HAS(pm_contains(c, a->any[i]));
        REQUIRE_THAT_IT_HAS(i == 0 || strcmp(a->texts[i - 1], a->texts[i]) >= 0);
    }
    for (int i = 0; i < 300; i++)
        REQUIRE_THAT_IT_HAS(!a->names[i] || (pm_contains(c, a->names[i]) && *a->names[i] >= 'a'));
    for (int i = 1; i < 64; i++)
        REQUIRE_THAT_IT_HAS(i == 5 || strcmp(a->sorted[i - 1].name, a->sorted[i].name) <= 0);
    return a->count == 40 * STEPS ? NULL : "all of them";
}

/* ---- a struct of the shape of the union `mixed` in recorded_shapes.c ---------------------------- */

struct wrapped {
    struct numbers {
        int a, b, c, d, e, f;
        double g;
    } numbers;
};
struct wrapper {
    struct wrapper *self;
    struct wrapped wrapped;
};

NOINLINE static void get_wrapped(struct wrapped *to)
{
    *to = (struct wrapped){.numbers.g = (double)number(8)};
}
NOINLINE static void assign_wrapped(struct wrapped *to)
{
    struct wrapped wrapped;
    get_wrapped(&wrapped);
    *to = wrapped;
}

STRUCTURE(wrapped)
static void build_wrapped(pm_container *c, int step)
{
    struct wrapper *r = root_bytes(c, step, sizeof *r);
    has_pointer(&r->self);
    r->self = r;
    assign_wrapped(&r->wrapped);
}
static const char *check_wrapped(pm_container *c)
{
    const struct wrapper *r = pm_getroot(c);
    REQUIRE_THAT_IT_HAS(r->self == r && r->wrapped.numbers.g == 8);
    return NULL;
}

/* ---- unions, and data over pointers ---------------------------------------------------------- */

union value {
    void *pointer;
    long number;
    double real;
    char text[16];
    struct {
        int low, high;
    } parts;
};
struct values {
    union value v[64], copies[64];
    char *over[12];
};

STRUCTURE(unions)
static void build_unions(pm_container *c, int step)
{
    struct values *s = root_bytes(c, step, sizeof *s);
    long looks = (long)s;
    for (int i = 0; i < 64; i++) {
        union value *v = &s->v[i];
        /* One kind of value after the other, in one transaction and from one to the next. */
        for (int turn = 0; turn < 2; turn++) {
            int kind = (i >> (2 * turn) & 3) ^ step;
            has_data(v, sizeof *v);
            switch (kind) {
            case 0:
                v->pointer = &s->v[63 - i];
                has_pointer(v);
                break;
            case 1:
                v->number = looks / 5 * number(5); /* an integer that looks like a pointer */
                break;
            case 2:
                strcpy(v->text, "some text");
                break;
            default:
                v->parts.low = (int)looks;
                if (turn == 0 || step % 2 == 0) /* else of a pointer, the upper half stays */
                    v->parts.high = step;
                break;
            }
        }
        s->copies[i] = *v;
        has_data(&s->copies[i], sizeof *v);
        if ((i >> 2 & 3) == step)
            has_pointer(&s->copies[i]);
    }
    for (int i = 0; i < 12; i++)
        s->over[i] = s->v[i].text;
    for (int i = 0; i < 12; i++)
        has_pointer(&s->over[i]);
    if (step > 0) {
        int fds[2];
        memset(&s->over[0], step, sizeof(char *));
        snprintf((char *)&s->over[1], 8, "%d", step);
        if (pipe(fds) || write(fds[1], &looks, 8) != 8 || read(fds[0], &s->over[2], 8) != 8)
            abort();
        close(fds[0]);
        close(fds[1]);
        ((char *)&s->over[3])[3] ^= 1;
        *(volatile double *)&s->over[4] = step;
        s->over[5] = NULL;
        has_data(&s->over[0], 6 * sizeof(char *));
        memcpy(&s->over[8], "parts of words", number(12));
        s->over[10] += step;
        memcpy((char *)&s->over[10] + 4, (int[2]){(int)(looks >> 32), 5}, number(8));
        has_data(&s->over[8], 4 * sizeof(char *));
    }
}
static const char *check_unions(pm_container *c)
{
    const struct values *s = pm_getroot(c);
    for (int i = 0; i < 64; i++)
        switch ((i >> 2 & 3) ^ (STEPS - 1)) {
        case 0:
            REQUIRE_THAT_IT_HAS(s->v[i].pointer == &s->v[63 - i]);
            REQUIRE_THAT_IT_HAS(s->copies[i].pointer == &s->v[63 - i]);
            break;
        case 2:
            REQUIRE_THAT_IT_HAS(strcmp(s->v[i].text, "some text") == 0);
            break;
        default:
            REQUIRE_THAT_IT_HAS(s->v[i].number == s->copies[i].number);
        }
    REQUIRE_THAT_IT_HAS(s->over[6] == s->v[6].text && s->over[7] == s->v[7].text);
    return NULL;
}

/* Text over a pointer into the program, which is copied then. */
union slot {
    void *pointer;
    uint64_t number;
    char text[8];
    uint16_t parts[4];
};
struct slots {
    union slot pointer, text, copies[6];
};
static int in_program[30000];

NOINLINE static void set_pointer(union slot *to, void *value)
{
    to->pointer = value;
}
NOINLINE static void set_part(union slot *to, uint16_t value)
{
    to->parts[0] = value;
}
NOINLINE static void assign(union slot *to, const union slot *from)
{
    *to = *from;
}
NOINLINE static void assign_number(union slot *to, const union slot *from)
{
    to->number = from->number;
}
NOINLINE static void copy_text(union slot *to, const union slot *from)
{
    memcpy(to->text, from->text, sizeof to->text);
}

/* A program that always lies at the same addresses is below 4 GiB. There a copy goes by its value, and no run
 * changes it. */
static bool lies_anywhere(void)
{
    return (uintptr_t)in_program >> 32 != 0;
}

STRUCTURE(slots)
static void build_slots(pm_container *c, int step)
{
    struct slots *s = root_bytes(c, step, sizeof *s);
    if (step >= 2 && !lies_anywhere())
        return;
    switch (step) {
    case 0:
        set_pointer(&s->pointer, &in_program[20000]);
        set_pointer(&s->text, &in_program[20000]);
        has_pointer(&s->pointer);
        has_pointer(&s->text);
        break;
    case 1:
        set_part(&s->text, 0x6162);
        has_data(&s->text, sizeof s->text);
        break;
    case 2:
        assign(&s->copies[0], &s->text);
        assign_number(&s->copies[1], &s->text);
        copy_text(&s->copies[2], &s->text);
        memmove(&s->copies[3], &s->text, number(8));
        break;
    default:
        assign(&s->copies[4], &s->copies[2]);
        assign(&s->copies[5], &s->pointer);
        has_pointer(&s->copies[5]);
    }
}
static const char *check_slots(pm_container *c)
{
    const struct slots *s = pm_getroot(c);
    if (!lies_anywhere())
        return NULL;
    for (int i = 0; i < 5; i++)
        REQUIRE_THAT_IT_HAS(s->copies[i].number == s->text.number);
    REQUIRE_THAT_IT_HAS(s->copies[5].pointer == &in_program[20000]);
    return NULL;
}

/* ---- pointers as integers -------------------------------------------------------------------- */

struct coloured {
    uintptr_t parent_colour; /* as in Linux' rbtree.h */
    struct coloured *left, *right;
    long uses;
};
#define COLOURED PM_TYPE(struct coloured, left, right)

static struct coloured *parent_of(const struct coloured *n)
{
    return (struct coloured *)(n->parent_colour & ~(uintptr_t)3);
}
static void set_parent(struct coloured *n, struct coloured *parent)
{
    n->parent_colour = (n->parent_colour & 1) | (uintptr_t)parent;
}
static void set_parent_colour(struct coloured *n, struct coloured *parent, int colour)
{
    n->parent_colour = (uintptr_t)parent | colour;
}

STRUCTURE(tagged)
static void build_tagged(pm_container *c, int step)
{
    struct coloured *top = pm_getroot(c);
    for (int i = 0; i < 30; i++) {
        struct coloured *n = make(c, COLOURED, 1);
        has_pointer(&n->parent_colour);
        n->left = top;
        if (top) {
            n->right = top->left;
            n->parent_colour = top->parent_colour; /* of an integer */
            set_parent(top, n);
            top->parent_colour ^= 1;
            top->uses++;
        }
        if (i % 3 == step % 3)
            set_parent_colour(n, n, i & 1);
        else
            n->parent_colour = 0;
        n->parent_colour |= 1;
        top = n;
    }
    pm_setroot(c, top, 0);
}
static const char *check_tagged(pm_container *c)
{
    const struct coloured *n = pm_getroot(c);
    int count = 0;
    for (const struct coloured *below = n->left; below; n = below, below = below->left, count++)
        REQUIRE_THAT_IT_HAS(parent_of(below) == n && (!n->right || n->right == below->left));
    return count == 30 * STEPS - 1 ? NULL : "all of them";
}

/* ---- words of which nobody says what they are ------------------------------------------------ */

struct words {
    uintptr_t from[40], to[40], swapped[2];
    struct {
        void *pointer;
        long number;
    } moved[500];
};

NOINLINE static void copy_word(uintptr_t *to, const uintptr_t *from)
{
    *to = *from;
}
NOINLINE static void swap_words(uintptr_t *a, uintptr_t *b)
{
    uintptr_t swap = *a;
    *a = *b;
    *b = swap;
}
NOINLINE static void tag_word(uintptr_t *word)
{
    *word |= 1;
}
NOINLINE static void untag_word(uintptr_t *to, const uintptr_t *from)
{
    *to = *from & ~(uintptr_t)7;
}
NOINLINE static void take_tag(uintptr_t *to, const uintptr_t *from)
{
    *to = (*from & 7) + 4096; /* not to be taken for NULL with a tag */
}

STRUCTURE(words)
static void build_words(pm_container *c, int step)
{
    struct words *w = root_bytes(c, step, sizeof *w);
    for (int i = 0; i < 40; i++) {
        has_data(&w->from[i], 8);
        has_data(&w->to[i], 8);
        if ((i + step) % 3 == 0) {
            w->from[i] = (uintptr_t)&w->to[i];
            has_pointer(&w->from[i]);
        } else {
            w->from[i] = ((uintptr_t)&w->to[i] / 8 + 1 + step) * number(8); /* no pointer */
        }
        if (i % 4 == 0) {
            copy_word(&w->to[i], &w->from[i]);
        } else if (i % 4 == 1) {
            untag_word(&w->to[i], &w->from[i]);
        } else if (i % 4 == 2) {
            take_tag(&w->to[i], &w->from[i]);
        } else {
            tag_word(&w->from[i]);
            w->to[i] = 5000;
        }
        if (i % 4 < 2 && (i + step) % 3 == 0)
            has_pointer(&w->to[i]);
    }
    has_data(w->swapped, sizeof w->swapped);
    w->swapped[step % 2] = (uintptr_t)w;
    w->swapped[!(step % 2)] = 5000 + step;
    swap_words(&w->swapped[0], &w->swapped[1]);
    has_pointer(&w->swapped[!(step % 2)]);
    if (step == 0)
        for (int i = 0; i < 401; i++) {
            if (i % 2 == 0)
                w->moved[i].pointer = w;
            w->moved[i].number = ((long)w / 16 + 1) * number(16);
        }
    memmove(&w->moved[1], &w->moved[0], number(400 + step) * sizeof w->moved[0]);
    if (step == 2) /* and back */
        memmove(&w->moved[0], &w->moved[1], number(400) * sizeof w->moved[0]);
    for (int i = 0; i < 401 + step; i++)
        has_pointer(&w->moved[i].pointer);
}
static const char *check_words(pm_container *c)
{
    const struct words *w = pm_getroot(c);
    for (int i = 1; i < 400 + STEPS; i++)
        REQUIRE_THAT_IT_HAS(!w->moved[i].pointer || w->moved[i].pointer == w);
    for (int i = 0; i < 40; i++) {
        if ((i + STEPS - 1) % 3 != 0)
            continue;
        REQUIRE_THAT_IT_HAS(w->from[i] - (uintptr_t)&w->to[i] == (i % 4 == 3));
        REQUIRE_THAT_IT_HAS(i % 4 > 1 || w->to[i] == (uintptr_t)&w->to[i]);
    }
    REQUIRE_THAT_IT_HAS(w->swapped[!((STEPS - 1) % 2)] == (uintptr_t)w);
    return NULL;
}

/* Such words may lead into the program, which lies low if it has a fixed place; or be counters. */
struct abroad {
    uintptr_t functions[2], numbers[4];
};

STRUCTURE(abroad)
static void build_abroad(pm_container *c, int step)
{
    struct abroad *a = root_bytes(c, step, sizeof *a);
    uintptr_t from[6] = {(uintptr_t)build_words,
                         (uintptr_t)build_abroad + step,
                         5000 + step,
                         number(1 << 20),
                         number(1 << 30),
                         number(1L << 50)};
    for (int i = 0; i < 2; i++) {
        copy_word(&a->functions[i], &from[i]);
        has_pointer(&a->functions[i]);
    }
    for (int i = 0; i < 4; i++) {
        copy_word(&a->numbers[i], &from[2 + i]);
        has_data(&a->numbers[i], sizeof a->numbers[i]);
    }
}
static const char *check_abroad(pm_container *c)
{
    const struct abroad *a = pm_getroot(c);
    REQUIRE_THAT_IT_HAS(a->functions[0] == (uintptr_t)build_words);
    REQUIRE_THAT_IT_HAS(a->functions[1] == (uintptr_t)build_abroad + STEPS - 1);
    REQUIRE_THAT_IT_HAS(a->numbers[0] == 5000 + STEPS - 1 && a->numbers[1] == 1 << 20 &&
                        a->numbers[2] == 1 << 30 && a->numbers[3] == 1L << 50);
    return NULL;
}

/* ---- structs that are copied and passed about ------------------------------------------------ */

struct pair {
    struct pair *a;
    long n;
    struct pair *b;
};
struct block {
    struct pair pairs[12];
    long count;
    struct block *next;
};
#define BLOCK PM_TYPE(struct block, next)

NOINLINE static struct pair make_pair(struct pair *a, long n)
{
    return (struct pair){a, n, a + 1};
}
NOINLINE static void store_pair(struct pair p, struct pair *at)
{
    *at = p;
}
NOINLINE static void swap_bytes(void *a, void *b, size_t n)
{
    char swap[64];
    memcpy(swap, a, n);
    memcpy(a, b, n);
    memcpy(b, swap, n);
}

STRUCTURE(copies)
static void build_copies(pm_container *c, int step)
{
    struct block *old = pm_getroot(c), *b = make(c, BLOCK, 1), local = {.count = step};
    for (int i = 0; i < 12; i++) {
        has_pointer(&b->pairs[i].a);
        has_pointer(&b->pairs[i].b);
    }
    b->next = old;
    for (int i = 0; i < 6; i++)
        b->pairs[i] = make_pair(&b->pairs[i], i);
    store_pair(b->pairs[2], &b->pairs[6]);
    local.pairs[7] = b->pairs[6];
    b->pairs[7] = local.pairs[7];
    memcpy(&b->pairs[8], &b->pairs[3], sizeof(struct pair));
    struct pair *heap = malloc(2 * sizeof *heap);
    heap[0] = b->pairs[1];
    heap[1] = make_pair(&b->pairs[11], step);
    memcpy(&b->pairs[9], heap, number(2) * sizeof *heap);
    free(heap);
    b->pairs[11] = old ? old->pairs[number(11)] : b->pairs[10];
    if (old)
        swap_bytes(&old->pairs[0], &b->pairs[1], sizeof(struct pair));
    long m = b->pairs[4].n;
    b->pairs[4].n = b->pairs[5].n;
    b->pairs[5].n = m;
    pm_setroot(c, b, 0);
}
static const char *check_copies(pm_container *c)
{
    for (const struct block *b = pm_getroot(c); b; b = b->next)
        for (int i = 0; i < 12; i++) {
            REQUIRE_THAT_IT_HAS(pm_contains(c, b->pairs[i].a));
            REQUIRE_THAT_IT_HAS(b->pairs[i].b == b->pairs[i].a + 1);
        }
    return NULL;
}

/* ---- atomics --------------------------------------------------------------------------------- */

struct atomic {
    _Atomic(struct atomic *) next;
    _Atomic(char *) text;
    _Atomic long count;
    char bytes[40];
    struct triple {
        struct atomic *self;
        long number;
        char *text;
    } triple, copy;
};

/* Of a size that no instruction stores at once. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Watomic-alignment"
NOINLINE static void set_triples(struct atomic *a, struct triple value)
{
    struct triple none = {0};
    if (!__atomic_compare_exchange(&a->triple, &none, &value, 0, __ATOMIC_SEQ_CST,
                                   __ATOMIC_SEQ_CST) ||
        __atomic_compare_exchange(&a->triple, &none, &none, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        abort();
    __atomic_store(&a->copy, &none, __ATOMIC_SEQ_CST);
    value.text++;
    __atomic_exchange(&a->copy, &value, &a->triple, __ATOMIC_SEQ_CST);
}
#pragma clang diagnostic pop

STRUCTURE(atomics)
static void build_atomics(pm_container *c, int step)
{
    for (int i = 0; i < 10; i++) {
        struct atomic *a = make_bytes(c, sizeof *a), *top = pm_getroot(c), *none = NULL;
        has_pointer((void *)&a->next);
        has_pointer((void *)&a->text);
        if (!atomic_compare_exchange_strong(&a->next, &none, top))
            abort();
        atomic_store_explicit(&a->text, a->bytes, memory_order_relaxed);
        atomic_fetch_add(&a->text, step);
        if (top && atomic_exchange(&top->text, top->bytes + 7) < top->bytes)
            abort();
        atomic_fetch_add(&a->count, step);
        struct triple *triples[] = {&a->triple, &a->copy};
        for (int k = 0; k < 2; k++) {
            has_pointer(&triples[k]->self);
            has_pointer(&triples[k]->text);
        }
        set_triples(a, (struct triple){a, step + 5000, a->bytes});
        pm_setroot(c, a, 0);
    }
}
static const char *check_atomics(pm_container *c)
{
    int count = 0;
    for (struct atomic *a = pm_getroot(c); a; a = a->next, count++) {
        REQUIRE_THAT_IT_HAS(a->text == a->bytes + (count ? 7 : STEPS - 1));
        REQUIRE_THAT_IT_HAS(a->triple.self == a && a->triple.text == a->bytes);
        REQUIRE_THAT_IT_HAS(a->copy.self == a && a->copy.text == a->bytes + 1);
    }
    return count == 10 * STEPS ? NULL : "all of them";
}

/* ---- reads into parts, with a pointer between -------------------------------------------------- */

struct parts {
    char a[8];
    struct parts *self;
    char b[16];
    struct parts *other;
};

STRUCTURE(parts)
static void build_parts(pm_container *c, int step)
{
    struct parts *r = root_bytes(c, step, sizeof *r);
    struct iovec pieces[2] = {{r->a, sizeof r->a}, {r->b, sizeof r->b}};
    int ends[2];
    if (pipe(ends) || write(ends[1], "abcdefghijklmnopqrstuvwx", 24) != 24)
        abort();
    r->self = r->other = r;
    if (readv(ends[0], pieces, 2) != 24)
        abort();
    close(ends[0]);
    close(ends[1]);
    has_data(r, sizeof *r);
    has_pointer(&r->self);
    has_pointer(&r->other);
}
static const char *check_parts(pm_container *c)
{
    const struct parts *r = pm_getroot(c);
    REQUIRE_THAT_IT_HAS(r->self == r && r->other == r && memcmp(r->a, "abcdefgh", 8) == 0);
    REQUIRE_THAT_IT_HAS(memcmp(r->b, "ijklmnopqrstuvwx", 16) == 0);
    return NULL;
}

/* ---- reads that are short -------------------------------------------------------------------- */

struct filled {
    struct filled *first; /* read over */
    char text[4096];
    struct filled *self; /* room, but never reached, like the rest */
    struct msghdr message;
    struct iovec piece;
};
#define FILLED 18

/* Read a few bytes into `r`, or none, with room for all of it. */
NOINLINE static void fill_in(struct filled *r, int way, int fd, FILE *f)
{
    long looks = (long)r;
    size_t n = number(sizeof *r);
    struct iovec piece = {r, n};
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) || send(sockets[1], &looks, 8, 0) != 8)
        abort();
    rewind(f);
    if (ftruncate(fd, 0) || pwrite(fd, &looks, 8, 0) != 8)
        abort();
    ssize_t got = 8;
    switch (way) {
    case 0:
        got = read(fd, r, n);
        break;
    case 1:
        got = pread(fd, r, n, 0);
        break;
    case 2:
        got = pread64(fd, r, n, 0);
        break;
    case 3:
        got = readv(fd, &piece, 1);
        break;
    case 4:
        got = preadv(fd, &piece, 1, 0);
        break;
    case 5:
        got = preadv64(fd, &piece, 1, 0);
        break;
    case 6:
        got = recv(sockets[0], r, n, 0);
        break;
    case 7:
        got = recvfrom(sockets[0], r, n, 0, NULL, NULL);
        break;
    case 8:
        has_pointer(&r->message.msg_iov);
        has_pointer(&r->piece.iov_base);
        r->piece = piece;
        r->message.msg_iov = &r->piece;
        r->message.msg_iovlen = 1;
        got = recvmsg(sockets[0], &r->message, 0);
        break;
    case 9:
        got = fread(r, 1, n, f);
        break;
    case 10:
        got += fread(r, n, 1, f);
        break;
    case 11:
        got = fread_unlocked(r, 2, n / 2, f) * 2;
        break;
    case 12:
        got = fgets((char *)r, (int)n, f) ? 8 : -1;
        break;
    case 13:
        got = readlink("/proc/self", (char *)r, n) > 0 ? 8 : -1;
        break;
    case 14:
        got = readlinkat(AT_FDCWD, "/proc/self", (char *)r, n) > 0 ? 8 : -1;
        break;
    case 15:
        got = getcwd((char *)r, n) ? 8 : -1;
        break;
    case 16:
        has_pointer(&r->first);
        got -= 1 + read(-1, r, n);
        break;
    default:
        has_pointer(&r->first);
        got -= 1 + getrandom(r, n, ~0u);
    }
    if (got != 8 || close(sockets[0]) || close(sockets[1]))
        abort();
}

STRUCTURE(filled)
static void build_filled(pm_container *c, int step)
{
    struct filled *r = root_bytes(c, step, FILLED * sizeof *r);
    int fd = memfd_create("few", MFD_CLOEXEC);
    FILE *f = fdopen(fd, "r+");
    for (int i = 0; i < FILLED; i++) {
        r[i].first = r[i].self = &r[(i + step) % FILLED];
        has_data(&r[i].first, 8);
        has_pointer(&r[i].self);
        fill_in(&r[i], i, fd, f);
    }
    fclose(f);
}
static const char *check_filled(pm_container *c)
{
    const struct filled *r = pm_getroot(c);
    for (int i = 0; i < FILLED; i++)
        REQUIRE_THAT_IT_HAS(r[i].self == &r[(i + STEPS - 1) % FILLED] &&
                            (!r[i].message.msg_iov || r[i].message.msg_iov == &r[i].piece));
    return NULL;
}

/* ---- memory that becomes something else ------------------------------------------------------ */

struct reused {
    struct reused *next;
    void *rest[6];
};

STRUCTURE(reused)
static void build_reused(pm_container *c, int step)
{
    struct reused *top = pm_getroot(c);
    for (int i = 0; i < 20; i++) {
        struct reused *r = make(c, PM_TYPE(struct reused, next, rest), 1);
        r->next = top;
        for (int k = 0; k < 6; k++)
            r->rest[k] = r;
        if (i % 2) {
            long looks = (long)r;
            pm_free(r);
            long *numbers = pm_malloc(c, sizeof *r); /* the same memory */
            for (int k = 0; k < 5; k++)              /* the others are as they were */
                numbers[k] = looks / 3 * number(3);
            if (i % 4 == 1)
                pm_free(numbers);
        } else {
            top = r;
        }
    }
    if (step == 2) { /* freed later */
        struct reused *gone = top->next;
        top->next = gone->next;
        pm_free(gone);
    }
    pm_setroot(c, top, 0);
}
static const char *check_reused(pm_container *c)
{
    int count = 0;
    for (const struct reused *r = pm_getroot(c); r; r = r->next, count++)
        for (int k = 0; k < 6; k++)
            REQUIRE_THAT_IT_HAS(r->rest[k] == r);
    return count == 10 * STEPS - 1 ? NULL : "all of them";
}

/* ---- many words moved at once, onto each other, and not by whole words ------------------------- */

enum { MOVED_WORDS = 1600, MOVED_EACH = 3, WINDOWS = 100, WINDOW = 8, WINDOW_EACH = 15 };

struct moves {
    char target[MOVED_WORDS]; /* what a word is about: every third leads there, */
    int about[MOVED_WORDS];   /* and this says which; others are that number */
    void *words[MOVED_WORDS];
    void *sparse[MOVED_WORDS];           /* of which few are pointers, */
    void *windows[WINDOWS][WINDOW];      /* and of each of these the last only, */
    void *last[9], *copied[9], *wide[9]; /* and of these */
    char packed[sizeof(void *) + 4];     /* a pointer, 4 bytes in */
    void *unpacked, *shifted[2];
};

NOINLINE static void move_words(struct moves *m, size_t to, size_t from, size_t count)
{
    memmove(&m->words[to], &m->words[from], count * sizeof *m->words);
    memmove(&m->about[to], &m->about[from], count * sizeof *m->about);
}

/* Wherever a word of the map ends within one. */
NOINLINE static void copy_windows(struct moves *m, size_t bytes)
{
    for (int i = 0; i < WINDOWS; i++)
        memcpy(m->windows[i], &m->sparse[(i + 1) * WINDOW_EACH - WINDOW], bytes);
}

NOINLINE static void copy_last(struct moves *m, size_t count)
{
    memcpy(m->copied, m->last, count * sizeof *m->last);
    wmemcpy((wchar_t *)m->wide, (const wchar_t *)m->last,
            count * sizeof *m->last / sizeof(wchar_t));
    memcpy(&m->unpacked, m->packed + 4, sizeof m->unpacked);
    memcpy((char *)m->shifted + 4, m->packed, sizeof m->packed);
}

STRUCTURE(moves)
static void build_moves(pm_container *c, int step)
{
    struct moves *m = root_bytes(c, step, sizeof *m);
    for (int i = 0; step == 0 && i < MOVED_WORDS; i++) {
        m->about[i] = i;
        if (i % MOVED_EACH == 0)
            m->words[i] = &m->target[i];
        else
            memset(&m->words[i], i % 100 + 1, sizeof *m->words);
    }
    for (int i = 0; step == 0 && i < WINDOWS; i++) {
        size_t last = (size_t)(i + 1) * WINDOW_EACH - 1;
        m->sparse[last] = &m->target[last];
    }
    if (step == 0) {
        move_words(m, 5, 0, 20); /* told in this transaction, mapped by none */
        move_words(m, 100, 104, 30);
        for (long n = 1; n <= 17; n++)
            for (size_t at = 200 + 60 * (size_t)n, end = at + 60; at < end; at += 20)
                move_words(m, at + 1, at, number(n));
        m->last[8] = &m->target[8];
        char *in = &m->target[9];
        memcpy(m->packed + 4, &in, sizeof in);
    } else if (step == 1) {
        for (size_t at = 0; at < 1590; at += 9) /* all mapped since the last commit */
            move_words(m, at + 1, at, number(8));
        move_words(m, 7, 0, 1500);
        copy_last(m, number(9));
        copy_windows(m, number(sizeof m->windows[0]));
    } else if (step == 2) {
        move_words(m, 0, 8, 1500);
        move_words(m, 7, 0, 1500); /* in part told in this transaction */
        move_words(m, 0, 8, 1500);
    } else {
        move_words(m, 1, 0, 1599);
        move_words(m, 0, 1, 700);
    }
    for (int i = 0; i < MOVED_WORDS; i++)
        if (m->about[i] % MOVED_EACH == 0)
            has_pointer(&m->words[i]);
        else
            has_data(&m->words[i], sizeof *m->words);
    for (int i = 0; i < WINDOWS; i++) {
        has_pointer(&m->sparse[(i + 1) * WINDOW_EACH - 1]);
        has_pointer(&m->windows[i][WINDOW - 1]);
    }
    has_pointer(&m->last[8]);
    has_pointer(&m->copied[8]);
    has_pointer(&m->wide[8]);
    has_pointer(&m->unpacked);
    has_pointer(&m->shifted[1]);
}
static const char *check_moves(pm_container *c)
{
    const struct moves *m = pm_getroot(c);
    for (int i = 0; i < MOVED_WORDS; i++) {
        if (m->about[i] % MOVED_EACH == 0)
            REQUIRE_THAT_IT_HAS(m->words[i] == &m->target[m->about[i]]);
        void *number_there;
        memset(&number_there, m->about[i] % 100 + 1, sizeof number_there);
        if (m->about[i] % MOVED_EACH)
            REQUIRE_THAT_IT_HAS(m->words[i] == number_there);
    }
    for (int i = 0; i < WINDOWS; i++)
        REQUIRE_THAT_IT_HAS(m->windows[i][WINDOW - 1] == &m->target[(i + 1) * WINDOW_EACH - 1]);
    REQUIRE_THAT_IT_HAS(m->copied[8] == &m->target[8]);
    REQUIRE_THAT_IT_HAS(m->wide[8] == &m->target[8]);
    REQUIRE_THAT_IT_HAS(m->last[8] == &m->target[8]);
    REQUIRE_THAT_IT_HAS(m->shifted[1] == m->unpacked);
    return m->unpacked == &m->target[9] ? NULL : "what was packed";
}
