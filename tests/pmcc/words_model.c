/*
 * A plain copy of the objects, see words.h. Each byte has its value. A byte that was stored with a pointer, or
 * copied from such a byte, also has the number of that pointer.
 *
 *   a whole pointer   the 8 bytes of one pointer, in order, in an aligned word. It must lead to its object
 *   made up           bytes of several pointers, in order; or of one, but for two zeros at the end. A commit
 *                     may take the word for a pointer
 *   anything else     must stay as it is, even if it looks like an address, as text over an old pointer does
 *
 * If a word of the container has its value of the last commit, it also has the kind of the last commit. If it
 * was made up, it still may be a pointer.
 */
#include "words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct byte {
    unsigned char value, place; /* in its pointer */
    bool apart;                 /* stored since the last store to all of its word */
    uint32_t pointer;           /* 0: data */
};

/* What has been stored as a pointer. */
struct pointer {
    int target;
};

static struct byte objects[OBJECTS_MAX][OBJECT_BYTES];
static bool exists[OBJECTS_MAX], in_pieces[OBJECTS_MAX][OBJECT_WORDS];
static struct {
    bool is_pointer; /* whole, or made up */
    struct byte bytes[WORD];
} committed[OBJECTS_MAX][OBJECT_WORDS]; /* of a container's words, at the last commit */
static struct pointer *pointers;
static uint32_t pointer_count, pointer_room;
static uint64_t seed, state;
static bool is_loud;
static char *const *real; /* where objects are */
static char *was[OBJECTS_MAX];

static _Noreturn __attribute__((format(printf, 1, 2))) void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "seed %llu: ", (unsigned long long)seed);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    abort();
}

void model_begin(uint64_t new_seed, bool loud)
{
    seed = state = new_seed;
    is_loud = loud;
    memset(exists, 0, sizeof exists);
    memset(objects, 0, sizeof objects);
    memset(in_pieces, 0, sizeof in_pieces);
    pointer_count = 0;
}

long draw(long n)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = (state ^ (state >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (long)((x ^ (x >> 31)) % (uint64_t)n);
}

void say(const char *format, ...)
{
    if (!is_loud)
        return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
}

/* ---- what was done --------------------------------------------------------------------------- */

void model_add(int object)
{
    exists[object] = true;
    memset(objects[object], 0, sizeof objects[object]);
    memset(committed[object], 0, sizeof committed[object]);
    memset(in_pieces[object], 0, sizeof in_pieces[object]);
}

/* What is left of pointers to it is data. */
void model_remove(int object)
{
    int other, at;
    exists[object] = false;
    for (other = 0; other < OBJECTS_MAX; other++)
        for (at = 0; at < OBJECT_BYTES; at++) {
            uint32_t pointer = committed[other][at / WORD].bytes[at % WORD].pointer;
            if (pointer && pointers[pointer].target == object)
                committed[other][at / WORD].is_pointer = false;
        }
    while (model_leads_to(object, &other, &at))
        objects[other][at].pointer = 0;
}

void model_begin_commit(char *const *at)
{
    memcpy(was, at, sizeof was);
}

bool model_is_volatile(const char *p)
{
    return (uint64_t)p - UINT64_C(0x500000000000) < UINT64_C(1) << 40;
}

static uint32_t new_pointer(int target)
{
    if (pointer_count + 1 >= pointer_room) {
        pointer_room = 2 * pointer_room + 1024;
        pointers = realloc(pointers, pointer_room * sizeof *pointers);
        if (!pointers)
            fail("no memory");
    }
    pointers[++pointer_count] = (struct pointer){target};
    return pointer_count;
}

void model_pointer(int object, int at, int target, long distance)
{
    uint32_t pointer = new_pointer(target);
    uint64_t value = (uint64_t)real[target] + (uint64_t)distance;
    say("  pointer to %d%+ld at %d.%d\n", target, distance, object, at);
    for (unsigned i = 0; i < WORD; i++, value >>= 8)
        objects[object][at + (int)i] =
            (struct byte){(unsigned char)value, (unsigned char)i, false, pointer};
    in_pieces[object][at / WORD] = false;
}

/* What is stored over, in whole words or not. */
static void touch(int object, int at, int bytes, bool pieces)
{
    for (int end = at + bytes; at < end; at += WORD - at % WORD)
        in_pieces[object][at / WORD] = pieces || at % WORD || end - at < WORD;
}

/* A part of a word may be overwritten by bytes of the same pointer that is there. The word is no whole pointer
 * then: its bytes get two numbers. */
static void put(int object, int at, const struct byte *bytes, int count, bool pieces)
{
    uint32_t old = 0, fresh = 0;
    for (int i = 0; i < count; i++) {
        struct byte b = bytes[i], *word = &objects[object][(at + i) / WORD * WORD];
        int first = at - (at + i) / WORD * WORD, last = first + count;
        bool overlays = false;
        for (int k = 0; k < WORD; k++)
            overlays |= (k < first || k >= last) && word[k].pointer == b.pointer && !word[k].apart;
        if (b.pointer && overlays) {
            if (b.pointer != old)
                fresh = new_pointer(pointers[b.pointer].target);
            old = b.pointer;
            b.pointer = fresh;
        }
        b.apart = pieces || first > 0 || last < WORD;
        objects[object][at + i] = b;
    }
}

void model_data(int object, int at, int bytes)
{
    say("  %d bytes of data at %d.%d\n", bytes, object, at);
    for (int i = 0; i < bytes; i++)
        objects[object][at + i] = (struct byte){(unsigned char)real[object][at + i], 0, true, 0};
    touch(object, at, bytes, false);
}

/* Whether words that are copied as they are were in pieces. */
static void carry_pieces(int to, int to_at, const bool *from_pieces, int from_at, int bytes)
{
    for (int at = 0; at + WORD <= bytes; at++)
        if ((to_at + at) % WORD == 0 && (from_at + at) % WORD == 0)
            in_pieces[to][(to_at + at) / WORD] |= from_pieces[(from_at + at) / WORD];
}

void model_copy(int to, int to_at, int from, int from_at, int bytes, bool pieces)
{
    struct byte copy[OBJECT_BYTES];
    bool from_pieces[OBJECT_WORDS];
    say("  %d bytes %d.%d <- %d.%d%s\n", bytes, to, to_at, from, from_at, pieces ? ", in pieces" : "");
    memcpy(copy, &objects[from][from_at], (size_t)bytes * sizeof *copy);
    memcpy(from_pieces, in_pieces[from], sizeof from_pieces);
    put(to, to_at, copy, bytes, pieces);
    touch(to, to_at, bytes, pieces || to_at % WORD != from_at % WORD);
    carry_pieces(to, to_at, from_pieces, from_at, bytes);
}

void model_swap(int a, int a_at, int b, int b_at, int bytes, bool pieces)
{
    struct byte copy[OBJECT_BYTES];
    bool a_pieces[OBJECT_WORDS], b_pieces[OBJECT_WORDS];
    say("  %d bytes %d.%d <-> %d.%d%s\n", bytes, a, a_at, b, b_at, pieces ? ", in pieces" : "");
    memcpy(a_pieces, in_pieces[a], sizeof a_pieces);
    memcpy(b_pieces, in_pieces[b], sizeof b_pieces);
    memcpy(copy, &objects[a][a_at], (size_t)bytes * sizeof *copy);
    put(a, a_at, &objects[b][b_at], bytes, pieces);
    put(b, b_at, copy, bytes, pieces);
    bool shifted = a_at % WORD != b_at % WORD;
    touch(a, a_at, bytes, pieces || shifted);
    touch(b, b_at, bytes, pieces || shifted);
    carry_pieces(a, a_at, b_pieces, b_at, bytes);
    carry_pieces(b, b_at, a_pieces, a_at, bytes);
}

void model_bits(int object, int at)
{
    say("  bits at %d.%d\n", object, at);
    struct byte *b = &objects[object][at];
    b->value = (unsigned char)real[object][at];
    if (b->place != 0) /* of a pointer that is not aligned */
        b->pointer = 0;
}

void model_marked_data(int object, int at)
{
    for (int i = 0; i < WORD; i++)
        objects[object][at + i].pointer = 0;
    in_pieces[object][at / WORD] = false;
    committed[object][at / WORD].is_pointer = false;
}

/* ---- what a word is -------------------------------------------------------------------------- */

enum what { WHOLE, MADE_UP, OTHER };

static enum what what_is(const struct byte *word)
{
    bool is_one = true;
    for (int i = 0; i < WORD; i++) {
        bool is_zero = i >= 6 && !word[i].pointer && word[i].value == 0;
        if (!is_zero && (!word[i].pointer || word[i].place != i))
            return OTHER;
        is_one &= word[i].pointer == word[0].pointer;
    }
    return is_one ? WHOLE : MADE_UP;
}

static uint64_t value_of(const struct byte *word)
{
    uint64_t value = 0;
    for (int i = WORD; i-- > 0;)
        value = value << 8 | word[i].value;
    return value;
}

/* Whether it looks like the address of an object, or of what is near: of anything in the arena. */
static bool looks_like_address(const struct byte *word)
{
    uint64_t value = value_of(word);
    return value >= UINT64_C(0x110000000000) && value < UINT64_C(0x510000000000);
}

int model_target(int object, int at)
{
    const struct byte *word = &objects[object][at];
    return at % WORD == 0 && what_is(word) == WHOLE ? pointers[word->pointer].target : -1;
}

bool model_is_ambiguous(int to_at, int from, int from_at, int bytes, bool by_value)
{
    const uint64_t page = 4096, top = UINT64_C(1) << 47;
    if (!by_value && to_at % WORD == from_at % WORD)
        return false;
    for (int at = 0; at + WORD <= bytes; at++) {
        const struct byte *word = &objects[from][from_at + at];
        bool is_address = by_value ? value_of(word) - page < top - page : looks_like_address(word);
        if ((to_at + at) % WORD == 0 && is_address && what_is(word) != WHOLE)
            return true;
    }
    return false;
}

bool model_leads_to(int target, int *object, int *at)
{
    for (*object = 0; *object < OBJECTS_MAX; ++*object)
        for (*at = 0; *at < OBJECT_BYTES && exists[*object]; ++*at) {
            uint32_t pointer = objects[*object][*at].pointer;
            if (pointer && pointers[pointer].target == target)
                return true;
        }
    return false;
}

bool model_next_doubtful(int *object, int *at)
{
    for (; *object < OBJECTS_MAX; ++*object, *at = 0)
        for (; *at < OBJECT_BYTES && exists[*object]; *at += WORD)
            if (in_pieces[*object][*at / WORD] && looks_like_address(&objects[*object][*at]))
                return true;
    return false;
}

/* ---- comparisons ----------------------------------------------------------------------------- */

static _Noreturn void fail_at(int object, int at, const char *when)
{
    const struct byte *word = &objects[object][at / WORD * WORD];
    uint64_t is;
    memcpy(&is, real[object] + at / WORD * WORD, sizeof is);
    static const char *const names[] = {"whole pointer", "pointer made up of several", "data"};
    fail("%s: object %d, word at %d, %s%s: is %#llx, should be %#llx", when, object,
         at / WORD * WORD, names[what_is(word)],
         in_pieces[object][at / WORD] ? " stored in pieces" : "", (unsigned long long)is,
         (unsigned long long)value_of(word));
}

static void stay_what_it_was(int object, int at)
{
    struct byte *word = &objects[object][at];
    const struct byte *then = committed[object][at / WORD].bytes;
    if (committed[object][at / WORD].is_pointer && what_is(word) != WHOLE &&
        value_of(word) == value_of(then))
        memcpy(word, then, sizeof committed[object]->bytes);
}

void model_check(char *const *at, const char *when)
{
    real = at;
    for (int object = 0; object < OBJECTS_MAX; object++)
        for (int i = 0; i < OBJECT_BYTES && exists[object]; i++)
            if ((unsigned char)real[object][i] != objects[object][i].value)
                fail_at(object, i, when);
    for (int object = 0; object < OBJECTS_MAX; object++)
        for (int at = 0; at < OBJECT_BYTES && exists[object]; at += WORD)
            stay_what_it_was(object, at);
}

/* A pointer has become this value. */
static void set_value(struct byte *word, uint64_t value)
{
    for (int i = 0; i < WORD; i++, value >>= 8)
        word[i].value = (unsigned char)value;
}

/* Bytes of pointers that are no whole ones lead to where the object was. */
static void forget_moved(char *const *before, char *const *after)
{
    for (int object = 0; object < OBJECTS_MAX; object++)
        for (int i = 0; i < OBJECT_BYTES && exists[object]; i++) {
            struct byte *b = &objects[object][i];
            int target = b->pointer ? pointers[b->pointer].target : -1;
            if (target >= 0 && before[target] != after[target] &&
                what_is(&objects[object][i / WORD * WORD]) != WHOLE)
                b->pointer = 0;
        }
}

static void note_committed(int object, int at)
{
    const struct byte *word = &objects[object][at];
    committed[object][at / WORD].is_pointer =
        !model_is_volatile(real[object]) && what_is(word) != OTHER;
    for (int i = 0; i < WORD; i++) {
        committed[object][at / WORD].bytes[i] = word[i];
        committed[object][at / WORD].bytes[i].apart = false;
    }
}

void model_check_commit(char *const *after, const char *when)
{
    char *const *before = was;
    for (int object = 0; object < OBJECTS_MAX; object++)
        for (int at = 0; at < OBJECT_BYTES && exists[object]; at += WORD) {
            struct byte *word = &objects[object][at];
            enum what what = what_is(word);
            if (what == OTHER)
                continue;
            int target = pointers[word[0].pointer].target;
            uint64_t moved =
                value_of(word) + (uint64_t)after[target] - (uint64_t)before[target];
            uint64_t is;
            memcpy(&is, after[object] + at, sizeof is);
            if (what == WHOLE)
                set_value(word, moved);
            else if (is != value_of(word)) { /* taken for a pointer, to one of them */
                uint32_t taken = 0;
                for (int i = 0; i < 6 && !taken; i++) {
                    target = pointers[word[i].pointer].target;
                    if (is == value_of(word) + (uint64_t)after[target] - (uint64_t)before[target])
                        taken = word[i].pointer;
                }
                if (taken) {
                    for (int i = 0; i < WORD; i++)
                        word[i] = (struct byte){0, (unsigned char)i, false, taken};
                    set_value(word, is);
                }
            }
        }
    forget_moved(before, after);
    for (int object = 0; object < OBJECTS_MAX; object++)
        if (!model_is_volatile(after[object])) /* on the heap they stay what they are */
            memset(in_pieces[object], 0, sizeof in_pieces[object]);
    model_check(after, when);
    for (int object = 0; object < OBJECTS_MAX; object++)
        for (int at = 0; at < OBJECT_BYTES && exists[object]; at += WORD)
            note_committed(object, at);
}
