/*
 * Kinds of stores, as they are told between two commits. A kind is told only of marked lines: a line that is
 * not marked has none (K1 in map.c).
 */
#include "track/track.h"
#include "track/words.h"

/* One page of the kinds table covers KINDS_PAGE bytes of data. From FORGET_MIN bytes on, giving the
 * table's memory back to the system is cheaper than storing to it. */
#define KINDS_PAGE (PM_PAGE << KINDS_WORD_SHIFT)
#define FORGET_MIN (UINT64_C(1) << 20)

/* Tell that the bytes `from` to `to` - 1 of a word are pieces, or data (P3). */
static void set_part(uint8_t *kind, uint64_t from, uint64_t to, bool are_pieces)
{
    uint8_t bits = 0, before = *kind & KIND_PIECES;
    for (; from < to; from++)
        bits |= (uint8_t)(KINDS_OF_PIECES >> 8 * from);
    *kind = are_pieces ? before | bits : (before & ~bits) | KIND_DATA;
}

void track_set_kinds(uint8_t *kinds, uint64_t offset, uint64_t bytes, uint8_t kind)
{
    const uint64_t size = sizeof(uint64_t);
    uint64_t end = offset + bytes;
    if (!(kind & KIND_DATA)) { /* a part of a word speaks for the word */
        offset = align_down(offset, size);
        end = align_up(end, size);
    }
    uint64_t low = align_up(offset, size), high = align_down(end, size);
    if (low < high)
        memset(kinds + low / size, kind, (high - low) / size);
    if (offset < low)
        set_part(&kinds[offset / size], offset % size, size - (low - min_u64(low, end)),
                 kind_is_pieced(kind));
    if (low <= high && high < end)
        set_part(&kinds[high / size], 0, end - high, kind_is_pieced(kind));
}

static void set_kind(struct txn *t, uint64_t offset, uint64_t bytes, uint8_t kind)
{
    const uint64_t end = offset + bytes;
    for (uint64_t n; offset < end; offset += n) {
        n = min_u64(end - offset, PM_LINE - offset % PM_LINE);
        if (*line_mark(t->c, offset / PM_LINE) & MARK_KINDS)
            track_set_kinds(line_kinds(t->c, 0), offset, n, kind);
    }
}

void track_set_kind(struct txn *t, uint64_t offset, uint64_t bytes, uint8_t kind)
{
    if (!t->tracker.kinds)
        return;
    uint64_t end = offset + bytes;
    uint64_t from = align_up(offset, KINDS_PAGE), to = align_down(end, KINDS_PAGE);
    if ((kind == KIND_NONE || kind == KIND_DATA) && bytes >= FORGET_MIN &&
        map_clear_table(line_kinds(t->c, from / PM_LINE), (to - from) >> KINDS_WORD_SHIFT) == 0) {
        set_kind(t, offset, from - offset, kind);
        set_kind(t, to, end - to, kind);
    } else {
        set_kind(t, offset, bytes, kind);
    }
}

/* Let the value decide from now on for each of `words` that has a kind, because its kind is no longer
 * certain. Other threads may be telling the kinds of the line's other words. */
static void doubt_kinds(struct txn *t, uint64_t line, unsigned words)
{
    uint8_t *kinds = line_kinds(t->c, line);
    for (; words; words &= words - 1) {
        uint8_t *kind = &kinds[__builtin_ctz(words)];
        if (*kind != KIND_NONE)
            *kind = KIND_BY_VALUE;
    }
}

void track_mark_foreign(struct txn *t, uint64_t offset, uint64_t bytes)
{
    uint64_t end = offset + bytes;
    for (uint64_t start = align_down(offset, PM_LINE); start < end && t->tracker.kinds;
         start += PM_LINE) {
        uint64_t line = start / PM_LINE;
        if (!*line_mark(t->c, line))
            continue;
        uint64_t from = max_u64(offset, start) - start, to = min_u64(end - start, PM_LINE);
        __atomic_fetch_or(line_mark(t->c, line), MARK_FOREIGN, __ATOMIC_RELAXED);
        doubt_kinds(
            t, line,
            (unsigned)bits_between(from / sizeof(uint64_t), divide_up(to, sizeof(uint64_t))));
    }
}
