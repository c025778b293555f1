/* Structures whose stores the optimiser gives other shapes than they were written in: unions that become
 * one variable of one member's type, or halves; arrays that become vectors; and numbers made of
 * addresses. Numbers here are none that lead anywhere, but would be refused as pointers. */
#include "recorded.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, used))

/* ---- unions in variables --------------------------------------------------------------------- */

struct object {
    struct object *self;
};

enum kind { POINTER, DOUBLE, LONG, FLOAT, INT, KINDS };

/* The order of the members decides what type the variable gets. */
#define CELL(name, members)                                                                        \
    struct name {                                                                                  \
        int kind;                                                                                  \
        union {                                                                                    \
            members                                                                                \
        } as;                                                                                      \
    };                                                                                             \
    NOINLINE static void set_##name(struct name *to, enum kind kind, struct object *o, long n)     \
    {                                                                                              \
        struct name cell;                                                                          \
        memset(&cell, 0, sizeof cell);                                                             \
        cell.kind = kind;                                                                          \
        if (kind == POINTER)                                                                       \
            cell.as.o = o;                                                                         \
        else if (kind == DOUBLE)                                                                   \
            cell.as.d = (double)n * 1.5;                                                           \
        else if (kind == LONG)                                                                     \
            cell.as.l = n;                                                                         \
        else if (kind == FLOAT)                                                                    \
            cell.as.f = (float)n * 2.5f;                                                           \
        else                                                                                       \
            cell.as.i = (int)n;                                                                    \
        *to = cell;                                                                                \
    }                                                                                              \
    NOINLINE static void copy_##name(struct name *to, const struct name *from)                     \
    {                                                                                              \
        struct name cell = *from;                                                                  \
        if (cell.kind == DOUBLE)                                                                   \
            cell.as.d = fabs(cell.as.d);                                                           \
        else if (cell.kind == INT)                                                                 \
            cell.as.i++;                                                                           \
        *to = cell;                                                                                \
    }

CELL(double_first, double d; struct object * o; long l; float f; int i;)
CELL(pointer_first, struct object *o; double d; long l; float f; int i;)
CELL(long_first, long l; struct object * o; double d; float f; int i;)
CELL(int_first, int i; struct object * o; double d; long l; float f;)
CELL(text_first, char text[16]; struct object * o; double d; long l; float f; int i;)

#define CELLS 20
struct cells {
    struct double_first d[2 * CELLS];
    struct pointer_first p[2 * CELLS];
    struct long_first l[2 * CELLS];
    struct int_first i[2 * CELLS];
    struct text_first t[2 * CELLS];
    struct object object;
};

#define FILL(name, cells)                                                                          \
    set_##name(&(cells)[at], kind, o, n);                                                          \
    copy_##name(&(cells)[CELLS + at], &(cells)[at]);                                               \
    for (int copy = 0; copy < 2; copy++) {                                                         \
        has_data(&(cells)[CELLS * copy + at].as, sizeof(cells)->as);                               \
        if (kind == POINTER)                                                                       \
            has_pointer(&(cells)[CELLS * copy + at].as);                                           \
    }

STRUCTURE(cells)
static void build_cells(pm_container *c, int step)
{
    struct cells *r = root_bytes(c, step, sizeof *r);
    struct object *o = &r->object;
    long n = number(86400);
    for (int at = 0; at < CELLS; at++) {
        enum kind kind = (enum kind)((at + step) % KINDS);
        FILL(double_first, r->d)
        FILL(pointer_first, r->p)
        FILL(long_first, r->l)
        FILL(int_first, r->i)
        FILL(text_first, r->t)
    }
}
#define LEADS(cells) ((cells)[at].kind != POINTER || (cells)[at].as.o == &r->object)
static const char *check_cells(pm_container *c)
{
    const struct cells *r = pm_getroot(c);
    for (int at = 0; at < 2 * CELLS; at++)
        REQUIRE_THAT_IT_HAS(LEADS(r->d) && LEADS(r->p) && LEADS(r->l) && LEADS(r->i) &&
                            LEADS(r->t));
    return NULL;
}

/* ---- loops of which vectors are made --------------------------------------------------------- */

#define ROWS 64
struct rows {
    struct {
        struct object *o;
        double weight;
    } weighted[ROWS];
    struct {
        long n;
        struct object *o;
    } counted[ROWS];
    struct {
        double a;
        struct object *o, *p;
        double b;
    } wide[ROWS];
    uintptr_t tagged[ROWS], untagged[ROWS], moved[ROWS];
    struct object objects[ROWS];
};

NOINLINE static void fill_weighted(struct rows *r, struct object *o, int rows)
{
    for (int i = 0; i < rows; i++) {
        r->weighted[i].o = o + i;
        r->weighted[i].weight = i * 1.5;
    }
}
NOINLINE static void fill_counted(struct rows *r, struct object *o, int rows)
{
    for (int i = 0; i < rows; i++) {
        r->counted[i].n = i * 86400L;
        r->counted[i].o = o + i;
    }
}
NOINLINE static void fill_wide(struct rows *r, struct object *o, int rows)
{
    for (int i = 0; i < rows; i++) {
        r->wide[i].a = i;
        r->wide[i].o = o;
        r->wide[i].p = o + i;
        r->wide[i].b = i;
    }
}
/* Two numbers with pointers between them, stored before: the numbers alone are data. */
NOINLINE static void weigh_wide(struct rows *r, int rows)
{
    for (int i = 0; i < rows; i++) {
        r->wide[i].a = i * 0.5;
        r->wide[i].b = i * 2.5;
    }
}
NOINLINE static void tag_all(uintptr_t *words, int rows)
{
    for (int i = 0; i < rows; i++)
        words[i] |= 1;
}
NOINLINE static void untag_all(uintptr_t *to, const uintptr_t *from, int rows)
{
    for (int i = 0; i < rows; i++)
        to[i] = from[i] & 1 ? from[i] & ~(uintptr_t)7 : from[i];
}
NOINLINE static void move_all(uintptr_t *to, const uintptr_t *from, int rows)
{
    for (int i = 0; i < rows; i++)
        to[i] = from[i] + 4;
}

STRUCTURE(rows)
static void build_rows(pm_container *c, int step)
{
    struct rows *r = root_bytes(c, step, sizeof *r);
    int rows = (int)number(ROWS - step);
    fill_weighted(r, r->objects, rows);
    fill_counted(r, r->objects, rows);
    fill_wide(r, r->objects, rows);
    weigh_wide(r, rows);
    for (int i = 0; i < rows; i++)
        r->tagged[i] = (uintptr_t)&r->objects[i];
    tag_all(r->tagged, rows);
    untag_all(r->untagged, r->tagged, rows);
    move_all(r->moved, r->untagged, rows);
    for (int i = 0; i < rows; i++) {
        has_pointer(&r->weighted[i].o);
        has_pointer(&r->counted[i].o);
        has_pointer(&r->wide[i].o);
        has_pointer(&r->wide[i].p);
        has_pointer(&r->tagged[i]);
        has_pointer(&r->untagged[i]);
        has_pointer(&r->moved[i]);
    }
}
static const char *check_rows(pm_container *c)
{
    const struct rows *r = pm_getroot(c);
    for (int i = 0; i < ROWS; i++) {
        const struct object *o = &r->objects[i];
        REQUIRE_THAT_IT_HAS(r->weighted[i].o == o && r->counted[i].o == o && r->wide[i].p == o &&
                            r->wide[i].o == r->objects);
        REQUIRE_THAT_IT_HAS(r->tagged[i] == (uintptr_t)o + 1 && r->untagged[i] == (uintptr_t)o &&
                            r->moved[i] == (uintptr_t)o + 4);
    }
    return NULL;
}

/* ---- what is loaded on some ways only, and what is not exchanged ------------------------------ */

struct ways {
    uintptr_t chosen[4];
    _Atomic uintptr_t kept[2];
    uintptr_t numbers[5], rounded[3];
    struct object object;
};

NOINLINE static void disturb(void)
{
    __asm__ volatile("" ::: "memory");
}
NOINLINE static void choose(uintptr_t *to, const uintptr_t *from, int what)
{
    uintptr_t word = 0;
    if (what == 1) {
        disturb();
        word = *from;
        disturb();
    } else if (what == 2) {
        word = 86400;
        disturb();
    }
    *to = word;
}
NOINLINE static void exchange(_Atomic uintptr_t *word, uintptr_t next)
{
    uintptr_t none = 0;
    atomic_compare_exchange_strong(word, &none, next);
}
NOINLINE static void number_all(uintptr_t *to, void *key, unsigned buckets)
{
    to[0] = (uintptr_t)key & (buckets - 1);
    to[1] = (uintptr_t)key ^ ((uintptr_t)key >> 7);
    to[2] = (uintptr_t)key ^ 0x5bd1e995abc0;
    to[3] = -(uintptr_t)key;
    to[4] = (uintptr_t)key + 0x7f4a7c15f39cc060;
}
NOINLINE static void round_all(uintptr_t *to, const void *within)
{
    to[0] = (uintptr_t)within >> 3 << 3;
    to[1] = (uintptr_t)within / 8 * 8;
    to[2] = (uintptr_t)within & ~(uintptr_t)7;
}

STRUCTURE(ways)
static void build_ways(pm_container *c, int step)
{
    struct ways *r = root_bytes(c, step, sizeof *r);
    r->chosen[0] = (uintptr_t)&r->object;
    for (int i = 1; i < 4; i++)
        choose(&r->chosen[i], r->chosen, i - 1);
    r->kept[0] = (uintptr_t)&r->object;
    exchange(&r->kept[0], 1);
    r->kept[1] = (uintptr_t)number(86400);
    exchange(&r->kept[1], (uintptr_t)&r->object);
    number_all(r->numbers, (char *)r + step, 65536);
    round_all(r->rounded, (char *)&r->object + 1);
    has_pointer(&r->chosen[0]);
    has_pointer(&r->chosen[2]);
    has_pointer((void *)&r->kept[0]);
    for (int i = 0; i < 3; i++)
        has_pointer(&r->rounded[i]);
}
static const char *check_ways(pm_container *c)
{
    struct ways *r = pm_getroot(c);
    uintptr_t o = (uintptr_t)&r->object;
    REQUIRE_THAT_IT_HAS(r->chosen[0] == o && r->chosen[2] == o && r->kept[0] == o);
    REQUIRE_THAT_IT_HAS(r->chosen[1] == 0 && r->chosen[3] == 86400 && r->kept[1] == 86400);
    for (int i = 0; i < 3; i++)
        REQUIRE_THAT_IT_HAS(r->rounded[i] == o);
    return NULL;
}

/* ---- unions by halves, and a union chosen in a loop -------------------------------------------- */

union halves {
    struct {
        uint32_t low, high;
    } h;
    void *p;
    char text[8];
};
union numbered {
    struct {
        uint32_t low, high;
    } h;
    void *p;
    long number;
};
struct split {
    union halves from[4], moved[2], chosen;
    long sum;
    struct counted {
        long count;
        union numbered value;
    } replaced;
    union numbered before;
};

NOINLINE static void move_by_halves(union halves *to, union halves *from)
{
#ifdef __OPTIMIZE__
    uint32_t high = from->h.high, low = from->h.low;
    from->p = 0;
    to->h.high = high; /* the upper half first */
    to->h.low = low;
#else /* the halves go through the stack: two numbers, which a commit refuses */
    *to = *from;
    from->p = 0;
#endif
}
NOINLINE static long choose_union(union halves *to, const union halves *from, const char *wanted, int count)
{
    union halves chosen = {.p = 0};
    long sum = 0;
    for (int i = 0; i < count; i++) {
        union halves each = from[i];
        sum += (long)each.p;
        if (wanted[i])
            chosen = each;
    }
    *to = chosen;
    return sum;
}
/* The halves are read between two stores that might share a mark, and the second would change what they are. */
NOINLINE static void replace(struct counted *restrict r, union numbered *restrict before,
                             bool flips)
{
    union numbered value;
    r->count = 86400;
    value = r->value;
    r->value.number = 86400;
    if (flips)
        value.h.high ^= 1;
    *before = value;
}

STRUCTURE(split)
static void build_split(pm_container *c, int step)
{
    static const char wanted[] = {1, 0, 0, 0};
    struct split *r = root_bytes(c, step, sizeof *r);
    has_data(r, sizeof *r);
    r->moved[0].p = r;
    move_by_halves(&r->moved[1], &r->moved[0]);
    r->from[0].p = r;
    memcpy(r->from[1].text, "abcd\x30\x20", 7); /* looks like an address */
    r->sum = choose_union(&r->chosen, r->from, wanted, (int)number(2));
    has_pointer(&r->moved[1]);
    has_pointer(&r->from[0]);
    has_pointer(&r->chosen);
    r->replaced.value.p = r;
    replace(&r->replaced, &r->before, false);
    has_pointer(&r->before);
}
static const char *check_split(pm_container *c)
{
    const struct split *r = pm_getroot(c);
    REQUIRE_THAT_IT_HAS(r->moved[0].p == 0 && r->moved[1].p == r && r->from[0].p == r && r->chosen.p == r);
    REQUIRE_THAT_IT_HAS(strcmp(r->from[1].text, "abcd\x30\x20") == 0);
    REQUIRE_THAT_IT_HAS(r->before.p == r && r->replaced.value.number == 86400);
    return NULL;
}

/* ---- unions that go through a variable of one member's type ----------------------------------- */

union word {
    struct object *o;
    uint64_t n;
};
#define WORDS 24
struct through {
    union word from[WORDS], one[WORDS], all[WORDS];
    struct object *typed[WORDS];
    struct object object;
};

NOINLINE static void copy_union(union word *to, const union word *from)
{
    union word word;
    memcpy(&word, from, sizeof word);
    memcpy(to, &word, sizeof word);
}
NOINLINE static void copy_unions(union word *to, const union word *from, int words)
{
    for (int i = 0; i < words; i++) {
        union word word;
        memcpy(&word, &from[i], sizeof word);
        if (!word.o)
            word.n = 5000;
        memcpy(&to[i], &word, sizeof word);
    }
}
NOINLINE static void take_pointer(struct object **to, const union word *from)
{
    union word word;
    memcpy(&word, from, sizeof word);
    *to = word.o;
}

STRUCTURE(through)
static void build_through(pm_container *c, int step)
{
    struct through *r = root_bytes(c, step, sizeof *r);
    has_data(r, offsetof(struct through, typed));
    for (int i = 0; i < WORDS; i++) {
        bool is_pointer = (i + step) % 3 == 0;
        if (is_pointer)
            r->from[i].o = &r->object;
        else
            r->from[i].n = (uint64_t)number(86400 + i);
    }
    for (int i = 0; i < WORDS; i++)
        copy_union(&r->one[i], &r->from[i]);
    copy_unions(r->all, r->from, WORDS);
    for (int i = 0; i < WORDS; i++)
        if ((i + step) % 3 == 0) {
            take_pointer(&r->typed[i], &r->from[i]);
            has_pointer(&r->from[i]);
            has_pointer(&r->one[i]);
            has_pointer(&r->all[i]);
            has_pointer(&r->typed[i]);
        }
}
static const char *check_through(pm_container *c)
{
    const struct through *r = pm_getroot(c);
    for (int i = 0; i < WORDS; i++) {
        uint64_t word = (i + STEPS - 1) % 3 ? 86400 + (uint64_t)i : (uint64_t)&r->object;
        REQUIRE_THAT_IT_HAS(r->from[i].n == word && r->one[i].n == word && r->all[i].n == word);
        REQUIRE_THAT_IT_HAS(!r->typed[i] || r->typed[i] == &r->object);
    }
    return NULL;
}

/* ---- unions that the optimiser makes several variables of --------------------------------------- */

static volatile double part_read;

/* The part that is read gets a variable of its own, and the rest of the union another. */
#define PART(name, member, part)                                                                   \
    struct part_##name {                                                                           \
        long is_pointer;                                                                           \
        union {                                                                                    \
            struct object *o;                                                                      \
            uint64_t n;                                                                            \
            member;                                                                                \
        } as;                                                                                      \
    };                                                                                             \
    NOINLINE static void copy_part_##name(struct part_##name *to, const struct part_##name *from)  \
    {                                                                                              \
        struct part_##name value = *from;                                                          \
        if (!value.is_pointer)                                                                     \
            part_read = (double)value.as.part;                                                     \
        *to = value;                                                                               \
    }                                                                                              \
    NOINLINE static void choose_part_##name(struct part_##name *to, const struct part_##name *a,   \
                                            const struct part_##name *b)                           \
    {                                                                                              \
        struct part_##name value = b->is_pointer ? *b : *a;                                        \
        if (value.is_pointer < 0)                                                                  \
            value.as.part = 0;                                                                     \
        *to = value;                                                                               \
    }

PART(char, unsigned char c, c)
PART(bool, _Bool b; short h, b)
PART(short, short h, h)
PART(int, int i, i)
PART(float, float f, f)
PART(
    floats,
    struct {
        float x;
        float y;
    } at,
    at.y)
PART(last, unsigned char bytes[8], bytes[5])

#define PARTS 8
struct parts_of_unions {
    struct part_char chars[3 * PARTS];
    struct part_bool bools[3 * PARTS];
    struct part_short shorts[3 * PARTS];
    struct part_int ints[3 * PARTS];
    struct part_float floats[3 * PARTS];
    struct part_floats pairs[3 * PARTS];
    struct part_last lasts[3 * PARTS];
    struct object object;
};

#define FILL_PART(name, values)                                                                    \
    values[i].is_pointer = is_pointer;                                                             \
    if (is_pointer)                                                                                \
        values[i].as.o = o;                                                                        \
    else                                                                                           \
        values[i].as.n = (uint64_t)number(86400 + i);                                              \
    copy_part_##name(&values[PARTS + i], &values[i]);                                              \
    choose_part_##name(&values[2 * PARTS + i], &values[PARTS + i], &values[i]);                    \
    for (int at = i; at < 3 * PARTS; at += PARTS) {                                                \
        has_data(&values[at], sizeof *values);                                                     \
        if (is_pointer)                                                                            \
            has_pointer(&values[at].as);                                                           \
    }

STRUCTURE(parts_of_unions)
static void build_parts_of_unions(pm_container *c, int step)
{
    struct parts_of_unions *r = root_bytes(c, step, sizeof *r);
    struct object *o = &r->object;
    for (int i = 0; i < PARTS; i++) {
        bool is_pointer = (i + step) % 3 == 0;
        FILL_PART(char, r->chars)
        FILL_PART(bool, r->bools)
        FILL_PART(short, r->shorts)
        FILL_PART(int, r->ints)
        FILL_PART(float, r->floats)
        FILL_PART(floats, r->pairs)
        FILL_PART(last, r->lasts)
    }
}
static const char *check_parts_of_unions(pm_container *c)
{
    const struct parts_of_unions *r = pm_getroot(c);
    for (int at = 0; at < 3 * PARTS; at++) {
        int i = at % PARTS;
        uint64_t is = (i + STEPS - 1) % 3 ? 86400 + (uint64_t)i : (uint64_t)&r->object;
        REQUIRE_THAT_IT_HAS(r->chars[at].as.n == is && r->bools[at].as.n == is);
        REQUIRE_THAT_IT_HAS(r->shorts[at].as.n == is && r->ints[at].as.n == is);
        REQUIRE_THAT_IT_HAS(r->floats[at].as.n == is && r->pairs[at].as.n == is);
        REQUIRE_THAT_IT_HAS(r->lasts[at].as.n == is);
    }
    return NULL;
}

/* ---- parts that reach beyond the union ----------------------------------------------------------- */

/* The optimiser copies the rest of the union together with the fields behind it. */
struct before_fields {
    union {
        struct object *o;
        int halves[2];
        unsigned char letter;
    } as;
    char letter;
    int number;
};
/* It copies the padding together with the union. */
struct behind_padding {
    struct object *o;
    char letter;
    union {
        long number;
        struct object *o;
    } as;
};
struct beyond {
    struct before_fields before[WORDS], before_copies[WORDS];
    struct behind_padding behind[WORDS], behind_copies[WORDS];
    struct object object;
};

NOINLINE static void copy_before_fields(struct before_fields *to, const struct before_fields *from)
{
    for (int i = 0; i < WORDS; i++) {
        struct before_fields value = from[i];
        if (part_read < 0)
            part_read = value.as.halves[0];
        to[i] = value;
    }
}
NOINLINE static void copy_behind_padding(struct behind_padding *to,
                                         const struct behind_padding *from)
{
    for (int i = 0; i < WORDS; i++) {
        struct behind_padding value = from[i];
        part_read = value.letter;
        to[i] = value;
    }
}

STRUCTURE(beyond)
static void build_beyond(pm_container *c, int step)
{
    struct beyond *r = root_bytes(c, step, sizeof *r);
    struct object *o = &r->object;
    for (int i = 0; i < WORDS; i++) {
        r->before[i] = (struct before_fields){.as.o = o, .letter = 'a', .number = i + step};
        r->behind[i] = (struct behind_padding){.o = o, .letter = 'b', .as.o = o};
    }
    copy_before_fields(r->before_copies, r->before);
    copy_behind_padding(r->behind_copies, r->behind);
    for (int i = 0; i < WORDS; i++) {
        has_pointer(&r->before[i].as);
        has_pointer(&r->before_copies[i].as);
        has_pointer(&r->behind[i].o);
        has_pointer(&r->behind[i].as);
        has_pointer(&r->behind_copies[i].o);
        has_pointer(&r->behind_copies[i].as);
    }
}
static const char *check_beyond(pm_container *c)
{
    const struct beyond *r = pm_getroot(c);
    for (int i = 0; i < WORDS; i++) {
        REQUIRE_THAT_IT_HAS(r->before_copies[i].as.o == &r->object);
        REQUIRE_THAT_IT_HAS(r->before_copies[i].number == i + STEPS - 1);
        REQUIRE_THAT_IT_HAS(r->behind_copies[i].o == &r->object);
        REQUIRE_THAT_IT_HAS(r->behind_copies[i].as.o == &r->object);
    }
    return NULL;
}

/* ---- copies that the optimiser splits within words ----------------------------------------------- */

/* A copy begins behind `lock`, in the middle of a word. */
struct locked {
    int lock, number;
    struct object *first, *second;
};
/* The optimiser copies the front of the union together with the field before. */
struct before_union {
    struct object *o;
    union {
        struct object *o;
        struct {
            int number;
            char letter;
        } at;
    } as;
};
/* Lies where `o` is aligned. */
struct __attribute__((packed)) packed {
    int number;
    struct object *o;
    long last;
};
/* Copied as bytes, from the middle of `number` on. */
union bytes {
    struct {
        long number;
        struct object *o[3];
    } at;
    unsigned char bytes[32];
};
#define TORN_COPIES 9
struct torn {
    struct locked locked[WORDS], locked_copies[WORDS];
    struct before_union fronts[WORDS], front_copies[WORDS];
    struct {
        int number;
        struct packed as;
    } packed, packed_copy;
    union bytes bytes, bytes_copies[TORN_COPIES];
    struct object object;
};

NOINLINE static void copy_locked(struct locked *to, const struct locked *from)
{
    struct locked value = *from;
    part_read = value.number;
    memcpy(&to->number, &value.number, sizeof value - offsetof(struct locked, number));
}
NOINLINE static void copy_before_union(struct before_union *to, const struct before_union *from)
{
    struct before_union value = *from;
    if (part_read < 0)
        part_read = value.as.at.letter;
    *to = value;
}
NOINLINE static void copy_packed(struct packed *to, const struct packed *from)
{
    struct packed value = *from;
    part_read = value.number;
    *to = value;
}

/* The copy begins at byte 5. The program may read some bytes, so these get a variable of their own. */
#define COPY_BYTES(name, type, at, size)                                                           \
    NOINLINE static void copy_bytes_##name(unsigned char *to, const unsigned char *from)           \
    {                                                                                              \
        union bytes value;                                                                         \
        type part;                                                                                 \
        memcpy(&value, from, sizeof value);                                                        \
        memcpy(&part, value.bytes + (at), sizeof part);                                            \
        if (part_read < 0)                                                                         \
            part_read = (double)part;                                                              \
        memcpy(to + 5, value.bytes + 5, size);                                                     \
    }
COPY_BYTES(behind, unsigned char, 7, 27)     /* 2 bytes, 1, and a copy of whole words */
COPY_BYTES(word, unsigned int, 8, 27)        /* 3, 4, and a copy that begins in a word */
COPY_BYTES(few, unsigned int, 8, 11)         /* 3, 4, 4: the last two are a word */
COPY_BYTES(middle, unsigned int, 12, 27)     /* 7, 4, and a copy of whole words */
COPY_BYTES(first, unsigned char, 13, 27)     /* 8 bytes that are no word, 1, and a copy */
COPY_BYTES(last, unsigned char, 23, 27)      /* a copy, 1, and 8 */
COPY_BYTES(end, unsigned int, 28, 27)        /* a copy that ends in a word, and 4 */
COPY_BYTES(wide, unsigned __int128, 5, 27)   /* 16 bytes that begin in a word */
COPY_BYTES(wider, unsigned __int128, 12, 27) /* in another one */

STRUCTURE(torn)
static void build_torn(pm_container *c, int step)
{
    static void (*const copies[TORN_COPIES])(unsigned char *, const unsigned char *) = {
        copy_bytes_behind, copy_bytes_word, copy_bytes_few,  copy_bytes_middle, copy_bytes_first,
        copy_bytes_last,   copy_bytes_end,  copy_bytes_wide, copy_bytes_wider};
    struct torn *r = root_bytes(c, step, sizeof *r);
    struct object *o = &r->object;
    for (int i = 0; i < WORDS; i++) {
        r->locked[i] = (struct locked){.number = i + step, .first = o, .second = o};
        r->fronts[i] = (struct before_union){.o = o, .as.o = o};
        copy_locked(&r->locked_copies[i], &r->locked[i]);
        copy_before_union(&r->front_copies[i], &r->fronts[i]);
        has_pointer(&r->locked[i].first);
        has_pointer(&r->locked[i].second);
        has_pointer(&r->locked_copies[i].first);
        has_pointer(&r->locked_copies[i].second);
        has_pointer(&r->fronts[i].o);
        has_pointer(&r->fronts[i].as);
        has_pointer(&r->front_copies[i].o);
        has_pointer(&r->front_copies[i].as);
    }
    r->packed.as = (struct packed){.number = step, .o = o, .last = step};
    copy_packed(&r->packed_copy.as, &r->packed.as);
    has_pointer((char *)&r->packed.as + offsetof(struct packed, o));
    has_pointer((char *)&r->packed_copy.as + offsetof(struct packed, o));
    r->bytes.at.number = step;
    for (int k = 0; k < 3; k++) {
        r->bytes.at.o[k] = o;
        has_pointer(&r->bytes.at.o[k]);
    }
    for (int i = 0; i < TORN_COPIES; i++) {
        copies[i](r->bytes_copies[i].bytes, r->bytes.bytes);
        for (int k = 0; k < (copies[i] == copy_bytes_few ? 1 : 3); k++)
            has_pointer(&r->bytes_copies[i].at.o[k]);
    }
}
static const char *check_torn(pm_container *c)
{
    const struct torn *r = pm_getroot(c);
    const struct object *o = &r->object;
    for (int i = 0; i < WORDS; i++) {
        REQUIRE_THAT_IT_HAS(r->locked_copies[i].first == o && r->locked_copies[i].second == o);
        REQUIRE_THAT_IT_HAS(r->locked_copies[i].number == i + STEPS - 1);
        REQUIRE_THAT_IT_HAS(r->front_copies[i].o == o && r->front_copies[i].as.o == o);
    }
    REQUIRE_THAT_IT_HAS(r->packed_copy.as.o == o);
    for (int i = 0; i < TORN_COPIES; i++) {
        REQUIRE_THAT_IT_HAS(r->bytes_copies[i].at.o[0] == o);
        REQUIRE_THAT_IT_HAS(r->bytes_copies[i].at.o[2] == (i == 2 ? NULL : o));
    }
    return NULL;
}

/* ---- unions with numbers of more than a word ---------------------------------------------------- */

/* The optimiser copies such a union as one number. Of a long double it copies 10 bytes. */
union extended {
    long double number;
    struct object *o;
};
union quad {
    __float128 number;
    struct object *o[2];
};
struct wide {
    union extended extended[WORDS], copied[WORDS];
    union quad quad[WORDS], swapped[WORDS];
    struct object object;
};

NOINLINE static void copy_extended(union extended *to, const union extended *from, long change)
{
    union extended value = *from;
    if (change)
        value.number += 1;
    *to = value;
}
NOINLINE static void swap_quads(union quad *a, union quad *b)
{
    union quad value = *a;
    *a = *b;
    *b = value;
}

STRUCTURE(wide)
static void build_wide(pm_container *c, int step)
{
    struct wide *r = root_bytes(c, step, sizeof *r);
    has_data(r, offsetof(struct wide, object));
    for (int i = 0; i < WORDS; i++) {
        bool is_pointer = (i + step) % 3 == 0;
        memset(&r->extended[i], 0, sizeof r->extended[i]);
        memset(&r->quad[i], 0, sizeof r->quad[i]);
        memset(&r->swapped[i], 0, sizeof r->swapped[i]);
        if (is_pointer) {
            r->extended[i].o = r->quad[i].o[0] = r->swapped[i].o[1] = &r->object;
            has_pointer(&r->extended[i]);
            has_pointer(&r->copied[i]);
            has_pointer(&r->swapped[i].o[0]);
            has_pointer(&r->quad[i].o[1]);
        } else {
            r->extended[i].number = (long double)number(i) * 1.5L;
            r->quad[i].number = (__float128)number(i) * 2.5;
        }
        copy_extended(&r->copied[i], &r->extended[i], number(!is_pointer));
        swap_quads(&r->quad[i], &r->swapped[i]);
    }
}
static const char *check_wide(pm_container *c)
{
    const struct wide *r = pm_getroot(c);
    for (int i = 0; i < WORDS; i++)
        if ((i + STEPS - 1) % 3 == 0) {
            REQUIRE_THAT_IT_HAS(r->extended[i].o == &r->object && r->copied[i].o == &r->object);
            REQUIRE_THAT_IT_HAS(r->swapped[i].o[0] == &r->object && r->quad[i].o[1] == &r->object);
        } else {
            REQUIRE_THAT_IT_HAS(r->copied[i].number == (long double)i * 1.5L + 1);
            REQUIRE_THAT_IT_HAS(r->swapped[i].number == (__float128)i * 2.5);
        }
    return NULL;
}

/* ---- variables whose type the optimiser exchanges ----------------------------------------------- */

struct numbers {
    int a, b, c, d, e, f;
    double g;
};
union mixed {
    struct numbers numbers;
    struct object *o[4];
};
struct halved {
    struct object *o;
    uint32_t low, high; /* with each other they look like a pointer */
    uint64_t same;
};
struct exchanged {
    union mixed merged, linked;
    struct halved halved;
    struct object object;
};

NOINLINE static void get_numbers(struct numbers *to, long n)
{
    to->a = (int)n;
    to->g = 8;
}
NOINLINE static void put_pointer(union mixed *to, struct object *o, long at)
{
    if (at < 4)
        to->o[at] = o;
}
/* Both variables become one, a struct of numbers. */
NOINLINE static void merge(union mixed *to, struct object *o, long at)
{
    struct numbers numbers = {0};
    get_numbers(&numbers, 86400);
    union mixed mixed = {0};
    mixed.numbers = numbers;
    put_pointer(&mixed, o, at);
    put_pointer(&mixed, o, at + 1);
    *to = mixed;
}
/* The linker takes the union for the struct `wrapped` of recorded.c. */
NOINLINE static void link_alike(union mixed *to, struct object *o)
{
    union mixed mixed;
    for (int i = 0; i < 4; i++)
        put_pointer(&mixed, o, i);
    *to = mixed;
}
NOINLINE static void put_halves(struct halved *to, struct object *o)
{
    *to = (struct halved){o, (uint32_t)(uintptr_t)o, (uint32_t)((uintptr_t)o >> 32), ~(uintptr_t)o};
}
NOINLINE static void assign_halves(struct halved *to, struct object *o)
{
    struct halved halved;
    put_halves(&halved, o);
    *to = halved;
}

STRUCTURE(exchanged)
static void build_exchanged(pm_container *c, int step)
{
    struct exchanged *r = root_bytes(c, step, sizeof *r);
    has_data(r, sizeof *r);
    merge(&r->merged, &r->object, number(1));
    link_alike(&r->linked, &r->object);
    assign_halves(&r->halved, &r->object);
    has_pointer(&r->halved.o);
    for (int i = 0; i < 4; i++) {
        has_pointer(&r->linked.o[i]);
        if (i == 1 || i == 2)
            has_pointer(&r->merged.o[i]);
    }
}
static const char *check_exchanged(pm_container *c)
{
    const struct exchanged *r = pm_getroot(c);
    REQUIRE_THAT_IT_HAS(r->merged.o[1] == &r->object && r->merged.o[2] == &r->object);
    REQUIRE_THAT_IT_HAS(r->merged.numbers.a == 86400 && r->merged.numbers.g == 8);
    for (int i = 0; i < 4; i++)
        REQUIRE_THAT_IT_HAS(r->linked.o[i] == &r->object);
    REQUIRE_THAT_IT_HAS(r->halved.o == &r->object);
    REQUIRE_THAT_IT_HAS((r->halved.low | (uint64_t)r->halved.high << 32) == ~r->halved.same);
    return NULL;
}

/* ---- addresses that arithmetic takes apart, and puts together again --------------------------- */

struct computed {
    __extension__ unsigned __int128 pair;
    uintptr_t unpacked, extended, middle, rounded, scaled;
    struct bits {
        uintptr_t tag : 3, address : 61;
    } bits;
    uint64_t packed, high;
    uintptr_t numbers[4];
    double boxed[3];
    struct object objects[8];
};

NOINLINE static void drop_first(struct computed *r)
{
    r->pair = r->pair >> 64;
}
NOINLINE static void unpack(uintptr_t *to, const uint64_t *packed)
{
    *to = *packed >> 16;
}
NOINLINE static void extend(uintptr_t *to, const uint64_t *high)
{
    *to = (uintptr_t)((int64_t)(*high << 16) >> 16);
}
NOINLINE static void find_middle(uintptr_t *to, const void *from, const void *end)
{
    *to = ((uintptr_t)from + (uintptr_t)end) / 2;
}
NOINLINE static void round_up(uintptr_t *to, const void *from, size_t multiple)
{
    *to = ((uintptr_t)from + multiple - 1) / multiple * multiple;
}
NOINLINE static void scale(uintptr_t *to, uintptr_t by_eight)
{
    *to = by_eight * 8;
}
NOINLINE static void set_bits(struct bits *to, const void *address, unsigned tag)
{
    to->tag = tag & 7;
    to->address = (uintptr_t)address >> 3;
}
/* They look like addresses, but would not in a program that makes sense. */
NOINLINE static void count(uintptr_t *to, const struct object *from, const struct object *end,
                           uintptr_t key)
{
    to[0] = (uintptr_t)(end - from);
    to[1] = key / 3 * (uintptr_t)number(3);
    to[2] = key % (uintptr_t)number(-1);
    to[3] = (key ^ key >> 7) * 0x9e3779b97f4a7c15;
}
NOINLINE static double box(const void *address)
{
    double boxed;
    memcpy(&boxed, &address, sizeof boxed);
    return boxed;
}
NOINLINE static double unbox(const double *from)
{
    return *from;
}
NOINLINE static void put(double *to, double value)
{
    *to = value;
}

STRUCTURE(computed)
static void build_computed(pm_container *c, int step)
{
    struct computed *r = root_bytes(c, step, sizeof *r);
    const struct object *o = &r->objects[step];
    uintptr_t address = (uintptr_t)o;
    __extension__ typedef unsigned __int128 two_words;
    r->pair = (two_words)address << 64 | 5000;
    drop_first(r);
    r->packed = address << 16 | 5;
    unpack(&r->unpacked, &r->packed);
    r->high = address | UINT64_C(5) << 48;
    extend(&r->extended, &r->high);
    find_middle(&r->middle, o, o + 2);
    round_up(&r->rounded, (const char *)o + 3, (size_t)number(8));
    scale(&r->scaled, address / 8);
    set_bits(&r->bits, o, 5);
    count(r->numbers, (struct object *)number(0), (struct object *)(address * 8), address + 1);
    r->boxed[0] = box(o);
    put(&r->boxed[1], box(o));
    r->boxed[2] = unbox(&r->boxed[1]);
    void *pointers[] = {&r->pair,   &r->unpacked, &r->extended, &r->middle,   &r->rounded,
                        &r->scaled, &r->bits,     &r->boxed[0], &r->boxed[1], &r->boxed[2]};
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
        has_pointer(pointers[i]);
}
static const char *check_computed(pm_container *c)
{
    struct computed *r = pm_getroot(c);
    const struct object *o = &r->objects[STEPS - 1];
    uintptr_t address = (uintptr_t)o;
    REQUIRE_THAT_IT_HAS(r->pair == address && r->unpacked == address && r->extended == address);
    REQUIRE_THAT_IT_HAS(r->middle == (uintptr_t)(o + 1) && r->rounded == (uintptr_t)(o + 1));
    REQUIRE_THAT_IT_HAS(r->scaled == address && r->bits.address << 3 == address &&
                        r->bits.tag == 5);
    for (int i = 0; i < 3; i++)
        REQUIRE_THAT_IT_HAS(memcmp(&r->boxed[i], &o, sizeof o) == 0);
    REQUIRE_THAT_IT_HAS(r->numbers[0] == r->numbers[2] - 1);
    return NULL;
}

/* ---- tags that are set in a part of the word -------------------------------------------------- */

typedef uint32_t __attribute__((may_alias)) any_uint32_t;
typedef uint16_t __attribute__((may_alias)) any_uint16_t;

#define TEXTS 6
struct partly {
    uintptr_t byte[4], half, atomic, twice;
    uintptr_t stored, third, pair[2]; /* and tagged by the same function */
    uintptr_t loaded;                 /* by the function that tags it */
    uintptr_t indexed[2], wide[2], cast, flipped, lanes[4], compared, either[2], halves[18],
        chosen[18], bytes[18], apart[2 * 18];
    uintptr_t number, over, texts[TEXTS], flagged, met, joined[2], kept[5];
    struct object object;
};

NOINLINE static void tag_byte(uintptr_t *word, unsigned char tag)
{
    *(unsigned char *)word |= tag;
}
NOINLINE static void untag_byte(uintptr_t *word)
{
    *(unsigned char *)word &= 0xf8;
}
NOINLINE static void flip_byte(uintptr_t *word)
{
    *(unsigned char *)word ^= 2;
}
NOINLINE static void tag_bytes(uintptr_t *words, int count)
{
    for (int i = 0; i < count; i++)
        *(unsigned char *)&words[i] |= 4;
}
/* The optimiser loads vectors of bytes, and stores single lanes. */
NOINLINE static void tag_every_eighth(char *bytes, long count)
{
    for (long i = 0; i < count; i++)
        *(unsigned char *)(bytes + 8 * i) |= 4;
}
/* Pointers in halves, with a word between. Scatters would store several low halves first. Without
 * optimisation the commit refuses such pieces. */
NOINLINE static void store_halves(uintptr_t *words, const char *object, long count)
{
    for (long i = 0; i < count; i++) {
        const uintptr_t value = (uintptr_t)(object + (i & 7));
#ifdef __OPTIMIZE__
        any_uint32_t *to = (any_uint32_t *)(words + 2 * i);
        to[0] = (uint32_t)value;
        to[1] = (uint32_t)(value >> 32);
#else
        words[2 * i] = value;
#endif
    }
}
NOINLINE static void tag_half(uintptr_t *word)
{
    *(any_uint32_t *)word |= 1;
}
NOINLINE static void tag_atomically(uintptr_t *word)
{
    __atomic_fetch_or((unsigned char *)word, 1, __ATOMIC_SEQ_CST);
}
NOINLINE static void flag_last(uintptr_t *word)
{
    ((unsigned char *)word)[5] |= 0x80;
}
/* Then the optimiser knows what the byte was, and does not load it. */
NOINLINE static void store_tagged(uintptr_t *word, uintptr_t value)
{
    *word = value;
    *(unsigned char *)word |= 1;
}
NOINLINE static void store_changed(uintptr_t *word, uintptr_t value)
{
    *word = value;
    ((unsigned char *)word)[2] ^= 1;
}
NOINLINE static uintptr_t load_and_change(uintptr_t *word)
{
    uintptr_t value = *word;
    ((unsigned char *)word)[2] ^= 1;
    return value;
}
NOINLINE static void copy_tagged(uintptr_t *to, const uintptr_t *from)
{
    to[0] = from[0];
    to[1] = from[1];
    *(unsigned char *)&to[1] |= 4;
}
/* Without optimisation the place is computed twice. */
NOINLINE static void tag_each(uintptr_t *words, int count)
{
    for (int i = 0; i < count; i++) {
        unsigned char byte = *(unsigned char *)&words[i];
        byte |= 1;
        *(unsigned char *)&words[i] = byte;
    }
}
/* The optimiser knows the byte from a number of two words, from a pointer, and from a vector. */
NOINLINE static void store_wide_and_tag(uintptr_t *words, uintptr_t value)
{
    unsigned __int128 both = (unsigned __int128)value << 64 | 86400;
    memcpy(words, &both, sizeof both);
    *(unsigned char *)&words[1] |= 1;
}
NOINLINE static void store_cast_and_tag(uintptr_t *word, const uintptr_t *from)
{
    unsigned __int128 both;
    memcpy(&both, from, sizeof both);
    *(void **)word = (void *)(uintptr_t)(both >> 64);
    *(unsigned char *)word |= 1;
}
typedef uintptr_t __attribute__((vector_size(16), aligned(8), may_alias)) two_words;
NOINLINE static void copy_lanes_and_tag(uintptr_t *words)
{
    two_words two = *(two_words *)words;
    *(two_words *)(words + 2) = __builtin_shufflevector(two, two, 1, 0);
    *(unsigned char *)&words[1] |= 1;
}
/* The optimiser counts flips in vectors. */
NOINLINE static void flip_often(uintptr_t *word, int times)
{
    for (int i = 0; i < times; i++)
        *(unsigned char *)word ^= 2;
}
/* The optimiser loads vectors of halves, and stores single lanes, or lanes by a mask. */
NOINLINE static void flip_halves(uintptr_t *words, int count)
{
    for (int i = 0; i < count; i++)
        *(any_uint32_t *)&words[i] ^= 2;
}
NOINLINE static void tag_chosen_halves(any_uint32_t *halves, const int *restrict chosen, int count)
{
    for (int i = 0; i < count; i++)
        if (chosen[i])
            halves[i] |= 1;
}
/* The optimiser makes one store of the two. */
NOINLINE static void flip_either(uintptr_t *words, int which)
{
    if (which)
        *(any_uint32_t *)&words[1] ^= 2;
    else
        *(any_uint32_t *)&words[0] ^= 4;
}
/* A comparison may fail. So the word goes by its value, though it was a number. */
NOINLINE static void exchange_halves(uintptr_t *word, const uintptr_t *from)
{
    for (int i = 0; i < 2; i++) {
        any_uint32_t *to = (any_uint32_t *)word + i, old = *to;
        __atomic_compare_exchange_n(to, &old, ((const any_uint32_t *)from)[i], false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    }
}
NOINLINE static void set_byte(uintptr_t *word)
{
    *(unsigned char *)word = 5;
}
/* The optimiser tags two words as one vector. */
NOINLINE static void tag_words(uintptr_t *words, int n)
{
    for (int i = 0; i < n; i++)
        words[i] |= 1;
}
/* Two paths meet before the store, and on one of them the byte is no tag. */
NOINLINE static void tag_or_set_byte(uintptr_t *word, bool sets)
{
    unsigned char byte = *(unsigned char *)word;
    if (sets)
        byte = (unsigned char)number(5);
    *(unsigned char *)word = byte;
}
/* The optimiser joins the two stores to the byte. The first is no tag. */
NOINLINE static void set_byte_and_tag(uintptr_t *word, bool sets)
{
    if (sets)
        *(unsigned char *)word = (unsigned char)number(4);
    *(unsigned char *)word |= 1;
}
/* Put the word together of its own parts, where one may be another. The optimiser stores this part only. */
NOINLINE static void put_together(uintptr_t *word, bool sets, unsigned char tag)
{
    union {
        uintptr_t word;
        unsigned char bytes[8];
    } parts;
    parts.word = *word;
    if (sets)
        parts.bytes[1] = (unsigned char)number(5);
    *word = parts.word;
    *(unsigned char *)word |= tag;
}
/* In a loop the byte comes from the round before, too. */
NOINLINE static void tag_or_set_often(uintptr_t *word, int times, int sets)
{
    unsigned char byte = *(unsigned char *)word;
    for (int i = 0; i < times; i++)
        if (i == sets)
            byte = (unsigned char)number(5);
        else
            byte |= 1;
    *(unsigned char *)word = byte;
}

STRUCTURE(partly)
static void build_partly(pm_container *c, int step)
{
    struct partly *r = root_bytes(c, step, sizeof *r);
    uintptr_t o = (uintptr_t)&r->object;
    if (step % 2 ==
        0) { /* then tags are set in the transaction of the store, and else in the next */
        for (int i = 0; i < 4; i++)
            r->byte[i] = o;
        r->half = r->atomic = r->twice = r->over = r->flagged = r->met = o;
        for (int i = 0; i < 5; i++)
            r->kept[i] = o;
        r->joined[0] = r->joined[1] = o;
        for (int i = 0; i < TEXTS; i++)
            r->texts[i] = o;
        r->number = o / 8 * (uintptr_t)number(8); /* it looks like a pointer */
    }
    if (step == 0) {
        r->loaded = o ^ 0x10000;
        (void)load_and_change(&r->loaded);
        r->indexed[0] = r->indexed[1] = r->lanes[0] = r->lanes[1] = r->flipped = o;
        tag_each(r->indexed, (int)number(2));
        store_wide_and_tag(r->wide, o);
        store_cast_and_tag(&r->cast, &r->indexed[0]);
        copy_lanes_and_tag(r->lanes);
        flip_often(&r->flipped, (int)number(99));
        int chosen[2 * 18];
        for (int i = 0; i < 18; i++) {
            r->halves[i] = r->chosen[i] = r->bytes[i] = o;
            chosen[2 * i] = (int)number(1);
            chosen[2 * i + 1] = 0;
        }
        r->either[0] = r->either[1] = o;
        flip_either(r->either, (int)number(0));
        flip_either(r->either, (int)number(1));
        flip_halves(r->halves, (int)number(18));
        tag_every_eighth((char *)r->bytes, number(18));
        store_halves(r->apart, (const char *)o, number(18));
        tag_chosen_halves((any_uint32_t *)r->chosen, chosen, (int)number(2 * 18));
        r->compared = (uintptr_t)number(86400);
        exchange_halves(&r->compared, &r->half);
    }
    if (step != 2) {
        tag_byte(&r->byte[0], 1);
        flip_byte(&r->byte[1]);
        tag_bytes(&r->byte[2], 2);
        tag_half(&r->half);
        tag_atomically(&r->atomic);
        tag_byte(&r->twice, 3);
        untag_byte(&r->twice);
        store_tagged(&r->stored, o);
        store_changed(&r->third, o ^ 0x10000);
        copy_tagged(r->pair, r->byte + 2);
        tag_byte(&r->number, 1);
        set_byte(&r->over);
        for (int i = 0; i < TEXTS; i++)
            set_byte(&r->texts[i]);
        tag_words(r->texts, (int)number(TEXTS));
        flag_last(&r->flagged);
        tag_or_set_byte(&r->met, true);
        set_byte_and_tag(&r->joined[0], true);
        tag_or_set_often(&r->joined[1], (int)number(3), 1);
        tag_or_set_byte(&r->kept[0], false);
        set_byte_and_tag(&r->kept[1], false);
        tag_or_set_often(&r->kept[2], (int)number(3), -1);
        put_together(&r->kept[3], false, 0);
        put_together(&r->kept[4], false, 1);
    }
    for (int i = 0; i < 4; i++)
        has_pointer(&r->byte[i]);
    has_pointer(&r->half);
    has_pointer(&r->atomic);
    has_pointer(&r->twice);
    has_pointer(&r->stored);
    has_pointer(&r->third);
    has_pointer(&r->pair[0]);
    has_pointer(&r->pair[1]);
    has_pointer(&r->loaded);
    for (int i = 0; i < 2; i++)
        has_pointer(&r->indexed[i]);
    has_pointer(&r->wide[1]);
    has_pointer(&r->cast);
    has_pointer(&r->flipped);
    for (int i = 0; i < 4; i++)
        has_pointer(&r->lanes[i]);
    has_pointer(&r->compared);
    has_pointer(&r->either[0]);
    has_pointer(&r->either[1]);
    for (int i = 0; i < 18; i++) {
        has_pointer(&r->halves[i]);
        has_pointer(&r->chosen[i]);
        has_pointer(&r->bytes[i]);
        has_pointer(&r->apart[2 * i]);
    }
    for (int i = 0; i < 5; i++)
        has_pointer(&r->kept[i]);
    for (uintptr_t *word = &r->over; word < r->kept; word++)
        if (step == 2)
            has_pointer(word);
        else
            has_data(word, sizeof *word);
}
static const char *check_partly(pm_container *c)
{
    const struct partly *r = pm_getroot(c);
    uintptr_t o = (uintptr_t)&r->object;
    REQUIRE_THAT_IT_HAS(r->byte[0] == o + 1 && r->byte[1] == (o ^ 2) && r->byte[2] == (o | 4));
    REQUIRE_THAT_IT_HAS(r->byte[3] == (o | 4) && r->half == o + 1 && r->atomic == o + 1);
    REQUIRE_THAT_IT_HAS(r->twice == o && (!r->stored || r->stored == o + 1));
    REQUIRE_THAT_IT_HAS(!r->pair[1] || (r->third == o && r->pair[1] == (o | 4)));
    REQUIRE_THAT_IT_HAS(r->loaded == o);
    REQUIRE_THAT_IT_HAS(r->indexed[0] == o + 1 && r->indexed[1] == o + 1 && r->wide[1] == o + 1);
    REQUIRE_THAT_IT_HAS(r->cast == o + 1 && r->flipped == (o ^ 2) && r->compared == o);
    REQUIRE_THAT_IT_HAS(r->kept[0] == o && r->kept[3] == o);
    REQUIRE_THAT_IT_HAS(r->kept[1] == r->kept[2] && r->kept[2] == r->kept[4] &&
                        (r->kept[4] & ~1ul) == o);
    REQUIRE_THAT_IT_HAS(r->lanes[1] == o + 1 && r->lanes[2] == o && r->lanes[3] == o);
    REQUIRE_THAT_IT_HAS(r->either[0] == (o ^ 4) && r->either[1] == (o ^ 2));
    for (int i = 0; i < 18; i++)
        REQUIRE_THAT_IT_HAS(r->halves[i] == (o ^ 2) && r->chosen[i] == o + 1 &&
                            r->bytes[i] == (o | 4) && r->apart[2 * i] == o + (uintptr_t)(i & 7));
    return NULL;
}

/* ---- words that are read from one of two places ------------------------------------------------ */

struct either {
    struct object object;
    uintptr_t number, pointer, last, to[2], second, of_halves[3], both[2], first;
};

NOINLINE static void copy_either(uintptr_t *to, const uintptr_t *a, const uintptr_t *b, int which)
{
    uintptr_t x = *a, y = *b;
    *to = which ? x : y;
}

/* The second of two words that are read as one number, in parts. Without optimisation that is refused. */
NOINLINE static void copy_second(uintptr_t *to, const uintptr_t *from)
{
#ifdef __OPTIMIZE__
    unsigned __int128 both;
    memcpy(&both, from, sizeof both);
    ((any_uint32_t *)to)[0] = (uint32_t)(both >> 64);
    ((any_uint16_t *)to)[2] = (uint16_t)(both >> 96);
    ((any_uint16_t *)to)[3] = (uint16_t)(both >> 112);
#else
    *to = from[1];
#endif
}

/* Two words that are read as one number, and the first of them in parts, too. */
NOINLINE static void copy_both(uintptr_t *to, uintptr_t *first, const uintptr_t *from)
{
    unsigned __int128 both;
    memcpy(&both, from, sizeof both);
    memcpy(to, &both, sizeof both);
#ifdef __OPTIMIZE__
    ((any_uint32_t *)first)[1] = (uint32_t)(both >> 32);
    ((any_uint16_t *)first)[1] = (uint16_t)(both >> 16);
    ((any_uint16_t *)first)[0] = (uint16_t)both;
#else
    *first = from[0];
#endif
}

/* The bytes of a word that is put together of halves and of a byte. The same holds. */
NOINLINE static void copy_bytes_of_halves(uintptr_t *to, uintptr_t *from)
{
#ifdef __OPTIMIZE__
    const uintptr_t last = (uintptr_t)255 << 56;
    const any_uint32_t *half = (const any_uint32_t *)from;
    uintptr_t high = *(const volatile any_uint32_t *)(half + 1);
    *(two_words *)to = (two_words){((*half + (high << 32)) & ~last) | (*from & last), 0};
    unsigned char *bytes = (unsigned char *)(to + 2), *read = (unsigned char *)to;
    bytes[0] = read[0];
    bytes[1] = read[1];
    bytes[2] = read[2];
    bytes[3] = read[3];
    bytes[4] = read[4];
    bytes[5] = read[5];
    bytes[6] = read[6];
    bytes[7] = read[7];
#else
    to[0] = to[2] = *from;
    to[1] = 0;
#endif
}

STRUCTURE(either)
static void build_either(pm_container *c, int step)
{
    struct either *r = root_bytes(c, step, sizeof *r);
    uintptr_t o = (uintptr_t)&r->object;
    if (step % 2 == 0) {
        r->number = o / 8 * (uintptr_t)number(8); /* it looks like a pointer */
        r->pointer = r->last = o;
    }
    if (step != 2) {
        copy_either(&r->to[0], &r->number, &r->pointer, (int)number(0));
        copy_either(&r->to[1], &r->pointer, &r->number, (int)number(1));
        copy_second(&r->second, &r->number);
        copy_bytes_of_halves(r->of_halves, &r->pointer);
        copy_both(r->both, &r->first, &r->pointer);
    }
    has_pointer(&r->pointer);
    has_pointer(&r->second);
    has_pointer(&r->of_halves[0]);
    has_pointer(&r->of_halves[2]);
    has_pointer(&r->last);
    has_pointer(&r->both[0]);
    has_pointer(&r->both[1]);
    has_pointer(&r->first);
    has_pointer(&r->to[0]);
    has_pointer(&r->to[1]);
}
static const char *check_either(pm_container *c)
{
    const struct either *r = pm_getroot(c);
    uintptr_t o = (uintptr_t)&r->object;
    REQUIRE_THAT_IT_HAS(r->pointer == o && r->second == o);
    REQUIRE_THAT_IT_HAS(r->of_halves[0] == o && r->of_halves[2] == o);
    REQUIRE_THAT_IT_HAS(r->last == o && r->both[0] == o && r->both[1] == o && r->first == o);
    REQUIRE_THAT_IT_HAS(!r->to[0] || (r->to[0] == o && r->to[1] == o));
    return NULL;
}

/* ---- vectors of lanes narrower than a word, which SIMD code copies and permutes words by ------- */

typedef float any_floats __attribute__((vector_size(16), aligned(8), may_alias));
typedef int any_ints __attribute__((vector_size(16), aligned(8), may_alias));
typedef char any_chars __attribute__((vector_size(16), aligned(8), may_alias));

struct narrow {
    struct object object;
    uintptr_t floats[2], chars[2], swapped[2], chosen[2], joined[2];
    float numbers[4];
};

NOINLINE static void copy_floats(void *to, const void *from)
{
    *(any_floats *)to = *(const any_floats *)from;
}
NOINLINE static void copy_chars(void *to, const void *from)
{
    *(any_chars *)to = *(const any_chars *)from;
}
NOINLINE static void swap_words(void *to, const void *from)
{
    any_ints words = *(const any_ints *)from;
    *(any_ints *)to = __builtin_shufflevector(words, words, 2, 3, 0, 1);
}
NOINLINE static void choose_words(void *to, const void *one, const void *other, bool is_one)
{
    *(any_ints *)to = is_one ? *(const any_ints *)one : *(const any_ints *)other;
}
NOINLINE static void join_words(void *to, const void *one, const void *other)
{
    *(any_floats *)to =
        __builtin_shufflevector(*(const any_floats *)one, *(const any_floats *)other, 0, 1, 6, 7);
}
NOINLINE static void halve(float *numbers)
{
    for (int i = 0; i < 4; i++)
        numbers[i] *= 0.5f;
}

STRUCTURE(narrow)
static void build_narrow(pm_container *c, int step)
{
    struct narrow *r = root_bytes(c, step, sizeof *r);
    uintptr_t words[2] = {(uintptr_t)&r->object, (uintptr_t)r->floats + (uintptr_t)step};
    copy_floats(r->floats, words);
    copy_chars(r->chars, words);
    swap_words(r->swapped, words);
    choose_words(r->chosen, words, r->numbers, number(1));
    join_words(r->joined, words, words);
    r->numbers[0] = (float)number(100 + step);
    halve(r->numbers);
    uintptr_t *const first[] = {r->floats, r->chars, r->swapped, r->chosen, r->joined};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        has_pointer(first[i]);
        has_pointer(first[i] + 1);
    }
}
static const char *check_narrow(pm_container *c)
{
    const struct narrow *r = pm_getroot(c);
    uintptr_t a = (uintptr_t)&r->object, b = (uintptr_t)r->floats + STEPS - 1;
    REQUIRE_THAT_IT_HAS(r->floats[0] == a && r->floats[1] == b);
    REQUIRE_THAT_IT_HAS(r->chars[0] == a && r->chars[1] == b);
    REQUIRE_THAT_IT_HAS(r->swapped[0] == b && r->swapped[1] == a);
    REQUIRE_THAT_IT_HAS(r->chosen[0] == a && r->chosen[1] == b);
    REQUIRE_THAT_IT_HAS(r->joined[0] == a && r->joined[1] == b);
    REQUIRE_THAT_IT_HAS(r->numbers[0] == 51.5f);
    return NULL;
}

/* ---- functions that are called between stores, and store there themselves --------------------- */

union number {
    struct object *o;
    uintptr_t n;
    double d;
};

#define CALLS 8
struct called {
    double before;
    union number word;
    union number filled[CALLS], kept;
    struct object object;
};

NOINLINE static void set_double(union number *to, double d)
{
    to->d = d * 1.5; /* what is computed is data */
}
NOINLINE static void set_pointer(union number *to, struct object *o)
{
    to->o = o;
}

/* One mark for two stores, and a store between them. */
NOINLINE static void set_after_call(struct called *r, struct object *o, double d)
{
    r->before = d;
    set_double(&r->word, d);
    r->word.o = o;
}

/* One mark for a loop. */
NOINLINE static void fill_after_calls(union number *to, struct object *o, uintptr_t eight,
                                      long words)
{
    for (long i = 0; i < words; i++) {
        set_pointer(&to[i], o);
        to[i].n = (uintptr_t)o / 8 * eight; /* it looks like a pointer */
    }
}
NOINLINE static void keep_after_calls(union number *to, struct object *o, uintptr_t eight,
                                      long times)
{
    for (long i = 0; i < times; i++) {
        set_pointer(to, o);
        to->n = (uintptr_t)o / 8 * eight;
    }
}

STRUCTURE(called)
static void build_called(pm_container *c, int step)
{
    struct called *r = root_bytes(c, step, sizeof *r);
    uintptr_t eight = (uintptr_t)number(8);
    set_after_call(r, &r->object, (double)number(step) + 2.5);
    has_pointer(&r->word);
    fill_after_calls(r->filled, &r->object, eight, number(CALLS));
    keep_after_calls(&r->kept, &r->object, eight, number(3));
}
static const char *check_called(pm_container *c)
{
    const struct called *r = pm_getroot(c);
    REQUIRE_THAT_IT_HAS(r->word.o == &r->object);
    REQUIRE_THAT_IT_HAS(r->before == STEPS + 1.5);
    return NULL;
}

/* ---- assembly that stores structs ------------------------------------------------------------- */

struct assembled {
    struct parts {
        struct object *o[10];
        long n;
    } parts;
    union {
        double d;
        struct object *o;
    } any[2];
    struct object object;
};

/* Their types do not tell what is in them, be it since they are large or unions. */
NOINLINE static void assemble(struct assembled *to, const struct assembled *from)
{
    void *parts = &to->parts, *any = &to->any;
    const void *from_parts = &from->parts, *from_any = &from->any;
    size_t bytes = sizeof to->parts, any_bytes = sizeof to->any;
    __asm__ volatile("rep movsb"
                     : "+D"(parts), "+S"(from_parts), "+c"(bytes), "=m"(to->parts)
                     : "m"(from->parts));
    __asm__ volatile("rep movsb"
                     : "+D"(any), "+S"(from_any), "+c"(any_bytes), "=m"(to->any)
                     : "m"(from->any));
}

STRUCTURE(assembled)
static void build_assembled(pm_container *c, int step)
{
    struct assembled *r = root_bytes(c, step, sizeof *r), from = {0};
    from.parts.o[step] = from.parts.o[9] = &r->object;
    from.parts.n = number(86400);
    from.any[0].d = 2.5;
    from.any[1].o = &r->object;
    assemble(r, &from);
    has_pointer(&r->parts.o[step]);
    has_pointer(&r->parts.o[9]);
    has_pointer(&r->any[1]);
}
static const char *check_assembled(pm_container *c)
{
    const struct assembled *r = pm_getroot(c);
    REQUIRE_THAT_IT_HAS(r->parts.o[STEPS - 1] == &r->object && r->parts.o[9] == &r->object);
    REQUIRE_THAT_IT_HAS(r->any[1].o == &r->object && r->any[0].d == 2.5);
    REQUIRE_THAT_IT_HAS(r->parts.n == 86400);
    return NULL;
}

/* ---- pointers that are taken just before something else is stored there ------------------------ */

struct taken {
    unsigned long before;
    union number word, in_loop[CALLS], taken[2];
    struct object object;
};

NOINLINE static void fill_words(struct taken *r, struct object *o)
{
    r->word.o = o;
    for (int i = 0; i < CALLS; i++)
        r->in_loop[i].o = o;
}
/* One mark for two stores, and a load between them. */
NOINLINE static void take_word(struct taken *r, union number *to, double d)
{
    r->before = (unsigned long)(d * 2);
    union number taken = r->word;
    r->word.d = d * 3;
    *to = taken;
}
/* One mark for a loop. */
NOINLINE static void take_last(union number *from, union number *to, long words, double d)
{
    union number taken;
    long i = 0;
    do {
        taken = from[i];
        from[i].d = d * (double)i;
    } while (++i < words);
    *to = taken;
}

STRUCTURE(taken)
static void build_taken(pm_container *c, int step)
{
    struct taken *r = root_bytes(c, step, sizeof *r);
    fill_words(r, &r->object);
    take_word(r, &r->taken[0], (double)number(step) + 1.5);
    take_last(r->in_loop, &r->taken[1], number(CALLS), (double)number(step) + 1.5);
    has_pointer(&r->taken[0]);
    has_pointer(&r->taken[1]);
}
static const char *check_taken(pm_container *c)
{
    const struct taken *r = pm_getroot(c);
    REQUIRE_THAT_IT_HAS(r->taken[0].o == &r->object && r->taken[1].o == &r->object);
    REQUIRE_THAT_IT_HAS(r->word.d == (STEPS + 0.5) * 3 && r->before == 2 * STEPS + 1);
    return NULL;
}

/* ---- loops that may end before they store ------------------------------------------------------ */

struct ended {
    union number word;
    int keys[CALLS];
    struct object object;
};

/* One mark before the loop would tell data of a word that no round may store to. */
NOINLINE static void store_until(union number *to, const int *keys, int last, long count)
{
    for (long i = 0; i < count; i++) {
        if (keys[i] == last)
            return;
        to->n = (uintptr_t)keys[i];
    }
}

STRUCTURE(ended)
static void build_ended(pm_container *c, int step)
{
    struct ended *r = root_bytes(c, step, sizeof *r);
    for (int i = 0; i < CALLS; i++)
        r->keys[i] = 7;
    set_pointer(&r->word, &r->object);
    store_until(&r->word, r->keys, 7, number(CALLS));
    has_pointer(&r->word);
}
static const char *check_ended(pm_container *c)
{
    const struct ended *r = pm_getroot(c);
    REQUIRE_THAT_IT_HAS(r->word.o == &r->object);
    return NULL;
}

/* ---- bits that are flipped where paths meet ------------------------------------------------------ */

#define FLIPPED 24
struct flipped {
    uintptr_t words[FLIPPED], one, other, pair[2], upper;
    unsigned seen, sum;
    struct object object;
};

typedef unsigned short any_quarter __attribute__((may_alias));
typedef unsigned any_half __attribute__((may_alias));

/* A half is loaded on each path. The optimiser takes the quarter from the half. */
NOINLINE static void flip_behind_loop(struct flipped *f, long n)
{
    volatile unsigned char bytes[FLIPPED];
    for (long i = 0; i < n - 3; i++)
        f->words[i] = 0;
    f->seen = *(any_half *)&f->one;
    for (long i = 0; i < n; i++)
        bytes[i] = 0;
    *(any_quarter *)&f->one ^= 2;
}
/* Which word it is is chosen together with the half. */
NOINLINE static void flip_chosen(struct flipped *f, bool is_one, long n)
{
    volatile unsigned char bytes[FLIPPED];
    uintptr_t *word;
    if (is_one) {
        word = &f->one;
        f->seen = *(any_half *)word;
    } else {
        for (long i = 0; i < n; i++)
            bytes[i] = 0;
        word = &f->other;
        f->sum = *(any_half *)word;
    }
    *(any_quarter *)word ^= 2;
}
NOINLINE static void flip_selected(struct flipped *f, bool is_one)
{
    *(any_quarter *)(is_one ? &f->one : &f->other) ^= 4;
}
/* The optimiser stores the word on two paths, and takes the quarter from what it stored. */
NOINLINE static void flip_stored(struct flipped *f, long n)
{
    volatile unsigned char bytes[FLIPPED];
    for (long i = 0; i < n - 3; i++)
        bytes[i] = 0;
    f->one = f->other;
    for (long i = 0; i < n - 6; i++)
        bytes[i] = 0;
    *(any_quarter *)&f->one ^= 2;
}
/* The same of two words in a vector. */
NOINLINE static void flip_stored_vector(struct flipped *f, long n)
{
    typedef uintptr_t vector __attribute__((vector_size(16), may_alias, aligned(8)));
    volatile unsigned char bytes[FLIPPED];
    for (long i = 0; i < n - 3; i++)
        bytes[i] = 0;
    *(vector *)f->pair = *(vector *)f->words;
    for (long i = 0; i < n - 6; i++)
        bytes[i] = 0;
    *(unsigned char *)&f->pair[0] ^= 4;
    *(unsigned char *)&f->pair[1] ^= 4;
}
/* The same of a quarter that is not the first. The bit is set already, so the pointer leads where it led. */
NOINLINE static void set_in_stored(struct flipped *f, long n)
{
    volatile unsigned char bytes[FLIPPED];
    for (long i = 0; i < n - 3; i++)
        bytes[i] = 0;
    f->upper = f->words[0];
    for (long i = 0; i < n - 6; i++)
        bytes[i] = 0;
    ((any_quarter *)&f->upper)[1] |= 0x4000;
}
/* Each round has loaded the next word, too. */
NOINLINE static void flip_each(uintptr_t *words, long n)
{
    volatile unsigned sum = 0;
    for (long i = 0; i < n; i++) {
        sum += *(any_half *)&words[i + 1];
        *(any_quarter *)&words[i] ^= 2;
    }
}

STRUCTURE(flipped)
static void build_flipped(pm_container *c, int step)
{
    struct flipped *r = root_bytes(c, step, sizeof *r);
    if (step == 0) {
        for (int i = 0; i < FLIPPED; i++)
            r->words[i] = (uintptr_t)&r->object;
        r->one = r->other = (uintptr_t)&r->object;
        has_pointer(&r->one);
        has_pointer(&r->other);
        for (int i = 0; i < FLIPPED; i++)
            has_pointer(&r->words[i]);
    } else if (step == 1) {
        flip_behind_loop(r, number(3));
        flip_each(r->words, number(FLIPPED - 1));
    } else if (step == 2) {
        flip_chosen(r, number(step) == 2, number(3));
        flip_chosen(r, number(step) == 3, number(3));
    } else {
        flip_selected(r, number(step) == 3);
        flip_selected(r, number(step) == 2);
        flip_stored(r, number(step));
        flip_stored_vector(r, number(step));
        set_in_stored(r, number(step));
        has_pointer(&r->pair[0]);
        has_pointer(&r->pair[1]);
        has_pointer(&r->upper);
    }
}
static const char *check_flipped(pm_container *c)
{
    const struct flipped *r = pm_getroot(c);
    const uintptr_t address = (uintptr_t)&r->object;
    REQUIRE_THAT_IT_HAS(r->one == (address ^ 4) && r->other == (address ^ 6));
    for (int i = 0; i < FLIPPED - 1; i++)
        REQUIRE_THAT_IT_HAS(r->words[i] == (address ^ 2));
    return NULL;
}

/* ---- a loop of bytes beside a pointer ----------------------------------------------------------- */

struct named {
    char name[32];
    struct object *o;
    char text[32];
    struct object object;
};

/* One mark has the loop's bytes and the pointer. The pointer is not stored in pieces. */
NOINLINE static void add_name(struct named *to, struct object *o, const char *from)
{
    to->o = o;
    for (int i = 0; i < 32; i++)
        to->name[i] = from[i];
}
NOINLINE static void add_text(struct named *to, struct object *o, const char *from)
{
    to->o = o;
    for (int i = 0; i < 32; i++)
        to->text[i] = from[i];
}

STRUCTURE(named)
static void build_named(pm_container *c, int step)
{
    struct named *r = root_bytes(c, step, sizeof *r);
    char letters[32];
    for (int i = 0; i < 32; i++)
        letters[i] = (char)('a' + (i + number(step)) % 26);
    if (step % 2)
        add_name(r, &r->object, letters);
    else
        add_text(r, &r->object, letters);
    has_pointer(&r->o);
}
static const char *check_named(pm_container *c)
{
    const struct named *r = pm_getroot(c);
    REQUIRE_THAT_IT_HAS(r->o == &r->object);
    return NULL;
}
