/*
 * Kinds of words that are copied: memory moves by memcpy(3) and its kin, and its pointers stay pointers. The
 * source may be this container, another one, the volatile heap, or memory of which nothing is told.
 */
#include "track/track.h"
#include "track/words.h"

#include "base/marks.h"

/* A byte of 0 or 1 for each bit. */
static uint64_t spread(uint8_t bits)
{
    uint64_t bytes = bits * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
    return (bytes + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101);
}

/* True if words of the line may have been stored to though their kind is KIND_NONE: K3. */
static inline bool others_store_to(const struct txn *t, uint64_t line, uint8_t mark)
{
    return mark & MARK_FOREIGN || line_is_listed(t, line);
}

/* The kinds as told, with KIND_DATA in place of KIND_NONE. */
static inline uint64_t others_are_data(uint64_t kinds)
{
    static_assert(KIND_DATA == 0x80 >> 5, "a byte's highest bit, shifted");
    uint64_t low = INT8_MAX * KIND_EACH, none = ~(((kinds & low) + low) | kinds);
    return kinds | (none >> 5 & KIND_DATA * KIND_EACH);
}

/* The kinds of a line's words, a byte each, as the next commit would see them. Reads home only where it
 * must, for home's lines are rarely in a cache. */
static uint64_t kinds_now(const struct txn *t, uint64_t line)
{
    uint8_t mapped = mapped_in_line(&t->map, line);
    uint8_t mark = *line_mark(t->c, line);
    uint64_t told = mark ? kinds_of_line(t->c, line) : 0, kinds = told;
    mapped &= (uint8_t)~words_of(kinds, KIND_MAY_POINT);
    if (!mapped) /* the usual case */
        return others_are_data(kinds);
    uint8_t data = mapped & (uint8_t)words_of(told, KIND_DATA);
    uint8_t doubtful = others_store_to(t, line, mark) ? mapped : data;
    uint8_t same = doubtful ? track_unchanged(t, line, doubtful) : 0,
            changed = doubtful & (uint8_t)~same;
    if (data)
        changed |= data & (uint8_t)~track_kept(t, line, same);
    kinds &= ~(spread(mapped & (uint8_t)~changed) * UINT8_MAX);
    kinds |= spread(mapped & (uint8_t)~changed) * KIND_POINTER;
    kinds |= spread(changed & (uint8_t)~data) * KIND_BY_VALUE;
    return others_are_data(kinds);
}

/* Words of a container that knows the kinds of its words. */
struct source {
    const struct txn *t; /* NULL if no such container has the words */
    uint64_t first;      /* number of the first word, from the container's start */
};

OUT_OF_LINE struct source words_at(const void *address)
{
    const struct container *c = arena_find(address);
    const struct txn *t = c && container_holds(c, address) ? c->upper : NULL;
    uint64_t offset = c ? (uint64_t)((const char *)address - c->base) : 0;
    bool told = t && t->tracker.kinds && offset % sizeof(uint64_t) == 0;
    return (struct source){told ? t : NULL, offset / sizeof(uint64_t)};
}

static inline bool some_are_mapped(struct source at, uint64_t count)
{
    for (uint64_t n, end = at.first + count; at.first < end; at.first += n) {
        struct mapped_place place = mapped_place_of_word(&at.t->map, at.first);
        n = min_u64(end - at.first, SEAL_BITS - place.shift);
        if (mapped_at(place) & bits_between(0, n))
            return true;
    }
    return false;
}

/* Copies in order of address. Writes up to PM_LINE_WORDS kinds beyond `count`. */
static void copy_kinds(uint8_t *to, struct source from, uint64_t count)
{
    for (uint64_t n, word = from.first; count > 0; to += n, word += n, count -= n) {
        uint64_t kinds = kinds_now(from.t, word / PM_LINE_WORDS) >> 8 * (word % PM_LINE_WORDS);
        n = min_u64(count, PM_LINE_WORDS - word % PM_LINE_WORDS);
        memcpy(to, &kinds, sizeof kinds);
    }
}

/* True if the kinds of the words there are told. */
static bool tells_kinds(const void *address)
{
    const struct container *c = arena_find(address);
    return (uintptr_t)address - VOLATILE_BASE < VOLATILE_SIZE ||
           (c && c->upper && container_holds(c, address) && c->upper->tracker.kinds);
}

/* The kind of 8 bytes that lie across two words. If both words are data, so are the bytes. If nothing is
 * told of either, both are as at the last commit, and the value decides. Otherwise they are pieced
 * (base/marks.h, P4): memmove() may have put a pointer there, or numbers may lie over half of a pointer. */
static uint8_t kind_across(uint8_t a, uint8_t b)
{
    if (a == KIND_NONE && b == KIND_NONE)
        return KIND_BY_VALUE;
    return a == KIND_DATA && b == KIND_DATA ? KIND_DATA : KIND_PIECED;
}

/* The two tables may overlap. */
static void kinds_across(uint8_t *to, const uint8_t *from, uint64_t count)
{
    bool upwards = to <= from;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = upwards ? i : count - 1 - i;
        to[at] = kind_across(from[at], from[at + 1]);
    }
}

/* For words that lie in no container that knows kinds, or that are not aligned. In the volatile heap the
 * told kinds stay. A word without a kind is zero there, or foreign code has stored it. */
static void kinds_elsewhere(uint8_t *to, const void *from, uint64_t count)
{
    if (!tells_kinds(from)) {
        memset(to, KIND_BY_VALUE, count);
    } else if ((uintptr_t)from % sizeof(uint64_t)) {
        kinds_across(to, kinds_of(from), count);
    } else {
        memmove(to, kinds_of(from), count);
        for (uint64_t i = 0; i < count; i++)
            to[i] = to[i] ? to[i] & (uint8_t)~KIND_REMEMBERED : KIND_BY_VALUE;
    }
}

void track_copy_kinds_out(uint8_t *to, const void *address, uint64_t count)
{
    enum { PIECE = 64 };
    uint8_t piece[PIECE + PM_LINE_WORDS];
    struct source from = words_at(address);
    if (!from.t) {
        kinds_elsewhere(to, address, count);
        return;
    }
    for (uint64_t n; count > 0; to += n, from.first += n, count -= n) {
        n = min_u64(count, PIECE);
        copy_kinds(piece, from, n);
        memcpy(to, piece, n);
    }
}

uint64_t track_kinds_at(const void *address, uint64_t words)
{
    uint64_t kinds = 0;
    track_copy_kinds_out((uint8_t *)&kinds, address, words);
    return kinds;
}

/* Copies piece by piece, in the order in which memmove(3) could copy overlapping ranges. */
OUT_OF_LINE void copy_pieces(struct txn *t, uint64_t first, struct source from, uint64_t count)
{
    enum { PIECE = 512 };
    uint8_t piece[PIECE + PM_LINE_WORDS];
    bool upwards = from.t != t || first <= from.first;
    for (uint64_t n, done = 0; done < count; done += n) {
        n = min_u64(count - done, PIECE);
        uint64_t at = upwards ? done : count - done - n;
        copy_kinds(piece, (struct source){from.t, from.first + at}, n);
        memcpy(line_kinds(t->c, 0) + first + at, piece, n);
    }
}

/* `count` is at most PM_LINE_WORDS. */
static inline void put_kinds(uint8_t *to, uint64_t kinds, uint64_t count)
{
    if (count & 8)
        memcpy(to, &kinds, 8);
    if (count & 4) {
        memcpy(to, &kinds, 4);
        kinds >>= 32;
        to += 4;
    }
    if (count & 2) {
        memcpy(to, &kinds, 2);
        kinds >>= 16;
        to += 2;
    }
    if (count & 1)
        *to = (uint8_t)kinds;
}

/* Copy the told kinds of words that are not mapped. This is the usual case when many words are copied. It
 * reads a whole line's kinds. The table has room for this: no container ends where the arena ends. */
static inline void copy_few_told(uint8_t *to, const uint8_t *from, uint64_t count)
{
    uint64_t kinds;
    memcpy(&kinds, from, sizeof kinds);
    put_kinds(to, others_are_data(kinds), count);
}

static void copy_told(uint8_t *to, const uint8_t *from, uint64_t count)
{
    memmove(to, from, count);
    for (uint64_t n; count > 0; to += n, count -= n) {
        n = min_u64(count, PM_LINE_WORDS);
        copy_few_told(to, to, n);
    }
}

OUT_OF_LINE void copy_many(struct txn *t, uint64_t first, struct source from, uint64_t count)
{
    if (some_are_mapped(from, count))
        copy_pieces(t, first, from, count);
    else
        copy_told(line_kinds(t->c, 0) + first, line_kinds(from.t->c, 0) + from.first, count);
}

static inline void copy_words(struct txn *t, uint64_t first, struct source from, uint64_t count)
{
    struct mapped_place place = mapped_place_of_word(&from.t->map, from.first);
    if (count > min_u64(PM_LINE_WORDS, SEAL_BITS - place.shift))
        copy_many(t, first, from, count);
    else if (mapped_at(place) & bits_between(0, count))
        copy_pieces(t, first, from, count);
    else
        copy_few_told(line_kinds(t->c, 0) + first, line_kinds(from.t->c, 0) + from.first, count);
}

OUT_OF_LINE void copy_from_elsewhere(struct txn *t, uint64_t first, const void *address,
                                     uint64_t count)
{
    struct source from = words_at(address);
    if (from.t)
        copy_many(t, first, from, count);
    else
        kinds_elsewhere(line_kinds(t->c, 0) + first, address, count);
}

/* The range has whole words, and parts of words at its ends. */
OUT_OF_LINE void copy_with_parts(struct txn *t, uint64_t offset, const char *from, uint64_t bytes)
{
    uint64_t end = offset + bytes, low = align_up(offset, sizeof(uint64_t)),
             high = align_down(end, sizeof(uint64_t));
    if (low < high)
        track_copy_kinds(t, low, from + (low - offset), high - low);
    if (offset < low)
        track_set_kind(t, offset, min_u64(low, end) - offset, KIND_PIECED);
    if (high < end && low <= high)
        track_set_kind(t, high, end - high, KIND_PIECED);
}

/* Code that needs a stack frame is out of line. Most calls move few words within a container, and a frame
 * would take a fifth of their time. */
void track_copy_kinds(struct txn *t, uint64_t offset, const void *from, uint64_t bytes)
{
    uint64_t first = offset / sizeof(uint64_t), count = bytes / sizeof(uint64_t);
    if (!t->tracker.kinds || bytes == 0 || from == t->c->base + offset)
        return;
    if ((offset | bytes) % sizeof(uint64_t)) {
        copy_with_parts(t, offset, from, bytes);
    } else if (container_holds(t->c, from) && (uintptr_t)from % sizeof(uint64_t) == 0) {
        uint64_t at = (uint64_t)((const char *)from - t->c->base);
        copy_words(t, first, (struct source){t, at / sizeof(uint64_t)}, count);
    } else {
        copy_from_elsewhere(t, first, from, count);
    }
}
