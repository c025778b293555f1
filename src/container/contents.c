/*
 * Reads segment words and bitmaps, and clips what it finds to the segment and to the file. contents_find()
 * takes constant time, and contents_words() goes through a few slots. contents_next() skips segments without
 * an object, and bitmap words without a bit.
 */
#include "container/contents.h"

#include <inttypes.h>
#include <stdio.h>

static uint64_t word_of(const struct contents *v, uint64_t segment)
{
    return segment < v->segments ? table_word((const uint64_t *)(v->tables + FORMAT_TABLE), segment)
                                 : 0;
}

static uint64_t offset_of(const struct contents *v, uint64_t segment)
{
    return segment << v->c->segment_shift;
}

bool contents_shape(const struct container *c, uint64_t word, struct slab_shape *shape)
{
    uint64_t size = segment_argument(word) * (uint64_t)FORMAT_GRANULARITY_MIN;
    if (segment_kind(word) != SEGMENT_SLAB || size == 0 || size % c->granularity != 0 ||
        size > c->segment_size / 2)
        return false;
    *shape = slab_shape(c->segment_size, (uint32_t)size);
    return true;
}

bool contents_slab(const struct contents *v, uint32_t segment, struct contents_slab *slab)
{
    uint64_t start = offset_of(v, segment);
    if (!contents_shape(v->c, word_of(v, segment), &slab->shape))
        return false;
    slab->bitmap = (const uint64_t *)(v->tables + start);
    slab->first = start + slab->shape.header_bytes;
    return true;
}

/* The bytes of the large object that begins at a segment; 0 if none does. Constant time: txn_open() has
 * checked that each run is whole. */
static uint64_t large_bytes(const struct contents *v, uint64_t segment)
{
    uint64_t word = word_of(v, segment), count = segment_argument(word);
    bool is_whole =
        segment_kind(word) == SEGMENT_LARGE && count > 0 && count <= v->segments - segment &&
        (count == 1 || word_of(v, segment + count - 1) == segment_word(SEGMENT_MORE, count - 1));
    return is_whole ? offset_of(v, count) : 0;
}

/* The first slot in use from `slot` on, or one behind the last. */
static uint64_t next_used(const struct contents_slab *s, uint64_t slot)
{
    for (uint64_t w = slot / BITMAP_SLOTS; w * BITMAP_SLOTS < s->shape.objects; w++) {
        uint64_t used = contents_used(s, (uint32_t)w) & bitmap_mask((uint32_t)w, slot, UINT32_MAX);
        if (used)
            return w * BITMAP_SLOTS + (uint32_t)__builtin_ctzll(used);
    }
    return s->shape.objects;
}

bool contents_next(const struct contents *v, uint64_t *offset, uint64_t *size)
{
    for (uint64_t i = *offset >> v->c->segment_shift; i < v->segments; i++) {
        uint64_t large = *offset <= offset_of(v, i) ? large_bytes(v, i) : 0;
        if (large) {
            *offset = offset_of(v, i);
            *size = large;
            return true;
        }
        struct contents_slab s;
        if (!contents_slab(v, (uint32_t)i, &s))
            continue;
        uint64_t slot = *offset <= s.first ? 0 : divide_up(*offset - s.first, s.shape.object_size);
        slot = next_used(&s, slot);
        if (slot < s.shape.objects) {
            *offset = s.first + slot * s.shape.object_size;
            *size = s.shape.object_size;
            return true;
        }
    }
    return false;
}

bool contents_find(const struct contents *v, uint64_t offset, uint64_t *start, uint64_t *size)
{
    uint64_t segment = offset >> v->c->segment_shift;
    struct contents_slab s;
    if (segment < v->segments && contents_slab(v, (uint32_t)segment, &s)) {
        uint64_t slot = (offset - s.first) / s.shape.object_size;
        if (offset < s.first || slot >= s.shape.objects)
            return false;
        *start = s.first + slot * s.shape.object_size;
        *size = s.shape.object_size;
        return contents_used(&s, (uint32_t)slot / BITMAP_SLOTS) >> slot % BITMAP_SLOTS & 1;
    }
    uint64_t word = word_of(v, segment);
    uint64_t back = segment_kind(word) == SEGMENT_MORE ? segment_argument(word) : 0;
    if (back > segment)
        return false;
    *start = offset_of(v, segment - back);
    *size = large_bytes(v, segment - back);
    return offset - *start < *size;
}

/* Whether all of slots [first, end) are in use. */
static bool all_used(const struct contents_slab *s, uint64_t first, uint64_t end)
{
    for (uint64_t w = first / BITMAP_SLOTS; w * BITMAP_SLOTS < end; w++)
        if (~contents_used(s, (uint32_t)w) & bitmap_mask((uint32_t)w, first, end))
            return false;
    return true;
}

/* A mask of the words in [from, end) that belong to objects of one slab; bit 0 is the word at
 * `origin`. */
static uint64_t words_of_slab(const struct contents_slab *s, uint64_t from, uint64_t end,
                              uint64_t origin)
{
    uint64_t size = s->shape.object_size;
    from = max_u64(from, s->first);
    end = min_u64(end, s->first + s->shape.objects * size);
    if (from >= end)
        return 0;
    uint64_t slot = (from - s->first) / size, behind = divide_up(end - s->first, size);
    if (all_used(s, slot, behind)) /* as nearly always */
        return bits_between((from - origin) / sizeof(uint64_t), (end - origin) / sizeof(uint64_t));
    uint64_t words = 0;
    for (; (slot = next_used(s, slot)) < behind; slot++) {
        uint64_t first = max_u64(from, s->first + slot * size);
        uint64_t last = min_u64(end, s->first + (slot + 1) * size);
        words |=
            bits_between((first - origin) / sizeof(uint64_t), (last - origin) / sizeof(uint64_t));
    }
    return words;
}

uint64_t contents_words(const struct contents *v, uint64_t offset)
{
    uint64_t words = 0, end = offset + MAP_WORD_BYTES;
    for (uint64_t at = offset, next; at < end; at = next) {
        uint64_t segment = at >> v->c->segment_shift, start, size;
        struct contents_slab s;
        next = min_u64(end, offset_of(v, segment + 1));
        if (segment >= v->segments)
            break;
        if (contents_slab(v, (uint32_t)segment, &s))
            words |= words_of_slab(&s, at, next, offset);
        else if (contents_find(v, at, &start, &size))
            words |=
                bits_between((at - offset) / sizeof(uint64_t), (next - offset) / sizeof(uint64_t));
    }
    return words;
}

void contents_describe(const struct container *c, uint64_t offset, const char *before,
                   char text[OBJECT_TEXT])
{
    struct contents open = contents_open(c);
    uint64_t start, bytes;
    text[0] = 0;
    if (contents_find(&open, offset, &start, &bytes))
        snprintf(text, OBJECT_TEXT, "%sbyte %" PRIu64 " of the object of %" PRIu64 " bytes at %p",
                 before, offset - start, bytes, (void *)(c->base + start));
}
