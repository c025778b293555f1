/*
 * One slab. A slot is taken by a search of the bitmap's words, from `hint` on, for a bit that is clear in
 * home *and* shadow. It is put back by clearing its bit. The lists link slabs by segment number in both
 * directions, so a slab enters and leaves its list in constant time.
 *
 * The second half tells which lines and pages have objects, before and after the open transaction. Under redo
 * a commit asks this for each changed line. A line of a slab that the transaction has not touched costs two
 * words of the segment tables.
 */
#include "allocator/slab.h"

#include "allocator/bitmap.h"
#include "allocator/classes.h"
#include "container/contents.h"

static const uint64_t *home_bits(const struct allocator *a, const struct slab *s)
{
    return home_word(a->c, s->bitmap.offset);
}

static const uint64_t *shadow_bits(const struct allocator *a, const struct slab *s)
{
    return shadow_word(a->c, s->bitmap.offset);
}

static void touch(struct allocator *a, struct slab *s)
{
    if (!s->touched) {
        s->touched = true;
        s->first_line = UINT64_MAX;
        s->last_line = 0;
        s->next_touched = a->touched;
        a->touched = s;
    }
}

/* Slots [first, end) are being given out or taken back. */
static void touch_slots(struct allocator *a, struct slab *s, uint32_t first, uint32_t end)
{
    touch(a, s);
    s->first_line = min_u64(s->first_line, slot_offset(a, s, first) / PM_LINE);
    s->last_line = max_u64(s->last_line, (slot_offset(a, s, end) - 1) / PM_LINE);
}

/* The list head of the slab's class. NULL: only an older libpm had a class for this size. */
static uint32_t *list_of(struct allocator *a, const struct slab *s)
{
    uint32_t size, class = class_of(a->c, s->shape.object_size, &size);
    return class != CLASS_LARGE && size == s->shape.object_size ? &a->first[class] : NULL;
}

bool slab_is_alone(struct allocator *a, const struct slab *s)
{
    const uint32_t *first = list_of(a, s);
    return first && (*first == SLAB_NONE || (*first == s->segment && s->next == SLAB_NONE));
}

void slab_list(struct allocator *a, struct slab *s)
{
    uint32_t *first = s->listed ? NULL : list_of(a, s);
    if (!first)
        return;
    s->listed = true;
    s->previous = SLAB_NONE;
    s->next = *first;
    if (s->next != SLAB_NONE)
        a->slabs[s->next].previous = s->segment;
    *first = s->segment;
}

void slab_unlist(struct allocator *a, struct slab *s)
{
    if (!s->listed)
        return;
    s->listed = false;
    if (s->next != SLAB_NONE)
        a->slabs[s->next].previous = s->previous;
    if (s->previous != SLAB_NONE)
        a->slabs[s->previous].next = s->next;
    else
        *list_of(a, s) = s->next;
}

/* The slots that touch page `page` of the file: [first, end). */
static void slots_of_page(const struct allocator *a, const struct slab *s, uint32_t page,
                          uint32_t *first, uint32_t *end)
{
    uint64_t data = segment_offset(a, s->segment) + s->shape.header_bytes;
    uint64_t begin = ((uint64_t)page << PM_PAGE_SHIFT) - data;
    uint64_t size = s->shape.object_size;
    *first = (uint32_t)min_u64(begin / size, s->shape.objects);
    *end = (uint32_t)min_u64(divide_up(begin + PM_PAGE, size), s->shape.objects);
}

static bool page_is_used(const struct allocator *a, const struct slab *s, const uint64_t *bits,
                         uint32_t page)
{
    uint32_t first, end;
    slots_of_page(a, s, page, &first, &end);
    return bitmap_any(bits, first, end);
}

/* Fill in the fields that follow from the object size; the list's fields stay as they are. */
static void describe(struct allocator *a, struct slab *s, uint32_t object_size)
{
    s->shape = slab_shape(a->c->segment_size, object_size);
    s->bitmap = (struct journal_region){.offset = segment_offset(a, s->segment),
                                        .words = bitmap_words(s->shape.objects)};
    s->by_size = reciprocal_of(object_size / FORMAT_GRANULARITY_MIN);
    s->hint = 0;
    s->loaded = true;
}

struct slab *slab_load(struct allocator *a, uint32_t segment)
{
    struct slab *s = &a->slabs[segment];
    uint64_t word = shadow_table(a->c)[segment];
    if (segment_kind(word) != SEGMENT_SLAB) /* given back in this transaction */
        word = home_table(a->c)[segment];
    describe(a, s, segment_argument(word) * FORMAT_GRANULARITY_MIN);
    if (!a->t->engine->in_place)
        return s;
    /* Pages without a committed object need no image: note them, run by run. */
    uint32_t page =
        (uint32_t)((segment_offset(a, segment) + s->shape.header_bytes) >> PM_PAGE_SHIFT);
    uint32_t end = (segment + 1) * pages_per_segment(a->c);
    while (page < end) {
        uint32_t run = 0;
        while (page + run < end && !page_is_used(a, s, home_bits(a, s), page + run))
            run++;
        if (run > 0)
            txn_set_fresh(a->t, page, run);
        page += run + 1;
    }
    return s;
}

struct slab *slab_create(struct allocator *a, uint32_t object_size, int *error)
{
    uint64_t word = segment_word(SEGMENT_SLAB, object_size / FORMAT_GRANULARITY_MIN);
    struct slab_shape shape = slab_shape(a->c->segment_size, object_size);
    int64_t segment = segments_take(a->t, 1, word, shape.header_bytes);
    if (segment < 0) {
        *error = (int)-segment;
        return NULL;
    }
    return slab_begin(a, (uint32_t)segment, object_size);
}

struct slab *slab_begin(struct allocator *a, uint32_t segment, uint32_t object_size)
{
    struct slab *s = &a->slabs[segment];
    *s = (struct slab){.segment = segment};
    describe(a, s, object_size);
    journal_clear(&a->t->journal, &s->bitmap);
    touch(a, s);
    slab_list(a, s);
    return s;
}

uint32_t slab_take(struct allocator *a, struct slab *s)
{
    const uint64_t *home = home_bits(a, s), *shadow = shadow_bits(a, s);
    for (uint32_t w = s->hint; w < s->bitmap.words; w++) {
        uint64_t free = ~(home[w] | shadow[w]) & bitmap_mask(w, 0, s->shape.objects);
        s->hint = w;
        if (free && seal_is_valid(shadow[w])) { /* a damaged word must not be sealed again */
            journal_set(&a->t->journal, &s->bitmap, w,
                        seal(seal_payload(shadow[w]) | (free & -free)));
            uint32_t slot = w * BITMAP_SLOTS + (uint32_t)__builtin_ctzll(free);
            touch_slots(a, s, slot, slot + 1);
            return slot;
        }
    }
    s->hint = s->bitmap.words;
    return SLOT_FULL;
}

void slab_take_all(struct allocator *a, struct slab *s, uint32_t first, uint32_t end)
{
    for (uint32_t w = first / BITMAP_SLOTS; w * BITMAP_SLOTS < end; w++)
        journal_set(&a->t->journal, &s->bitmap, w,
                    seal(seal_payload(shadow_bits(a, s)[w]) | bitmap_mask(w, first, end)));
    touch_slots(a, s, first, end);
}

uint32_t slab_room(const struct allocator *a, const struct slab *s, uint32_t first, uint32_t most)
{
    uint32_t n = 0;
    while (n < most && first + n < s->shape.objects && !bitmap_has(shadow_bits(a, s), first + n) &&
           !bitmap_has(home_bits(a, s), first + n))
        n++;
    return n;
}

uint32_t slab_count(const struct allocator *a, const struct slab *s)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < s->bitmap.words; w++) {
        uint64_t word = shadow_bits(a, s)[w];
        if (!contents_is_sound(word, w, s->shape.objects))
            return SLOT_FULL;
        n += (uint32_t)__builtin_popcountll(seal_payload(word));
    }
    return n;
}

void slab_give_back(struct allocator *a, struct slab *s)
{
    slab_unlist(a, s);
    s->bitmap.obsolete = s->touched;
    segments_release(a->t, s->segment, 1);
}

void slab_put(struct allocator *a, struct slab *s, uint32_t slot)
{
    uint32_t w = slot / BITMAP_SLOTS;
    uint64_t bit = UINT64_C(1) << slot % BITMAP_SLOTS;
    journal_set(&a->t->journal, &s->bitmap, w, seal(seal_payload(shadow_bits(a, s)[w]) & ~bit));
    touch_slots(a, s, slot, slot + 1);
    a->t->freed = a->t->epoch;
    if (!(home_bits(a, s)[w] & bit)) { /* allocated in this transaction: free at once */
        if (w < s->hint)
            s->hint = w;
        slab_list(a, s);
        a->t->freed_new = a->t->epoch;
    }
}

bool slab_uses(const struct allocator *a, const struct slab *s, uint32_t slot)
{
    return seal_is_valid(shadow_bits(a, s)[slot / BITMAP_SLOTS]) &&
           bitmap_has(shadow_bits(a, s), slot);
}

uint32_t slab_slot_at(const struct allocator *a, const struct slab *s, uint64_t offset)
{
    uint64_t data = segment_offset(a, s->segment) + s->shape.header_bytes;
    if (offset < data || (offset - data) % s->shape.object_size != 0)
        return SLOT_FULL;
    uint64_t slot = (offset - data) / s->shape.object_size;
    return slot < s->shape.objects ? (uint32_t)slot : SLOT_FULL;
}

/* A damaged word counts as in use: nobody knows its old contents. */
static bool words_are_zero(const uint64_t *words, uint32_t first, uint32_t end)
{
    for (uint32_t w = first; w < end; w++)
        if (words[w])
            return false;
    return true;
}

bool slab_is_empty(const struct allocator *a, const struct slab *s)
{
    /* Look first at the words that changed last: they are the likeliest to be in use. */
    return words_are_zero(shadow_bits(a, s), s->bitmap.low, s->bitmap.high) &&
           words_are_zero(shadow_bits(a, s), 0, s->bitmap.words);
}

/* Whether objects on these lines may have come or gone. */
static inline bool may_have_changed(const struct slab *s, uint64_t first, uint64_t last)
{
    return s->touched && first <= s->last_line && last >= s->first_line;
}

/* For lines where something was allocated or freed. Out of line: other lines then cost no registers. */
__attribute__((noinline)) static unsigned liveness_of_changed(struct allocator *a, uint64_t offset,
                                                              uint64_t old, uint64_t word)
{
    bool was_slab = segment_kind(old) == SEGMENT_SLAB, is_slab = segment_kind(word) == SEGMENT_SLAB;
    if (!was_slab && !is_slab)
        return (segment_is_large(old) ? LIVE_BEFORE : 0u) | (segment_is_large(word) ? LIVE_AFTER : 0u);

    /* A segment does not change hands within a transaction, so both are of one slab. */
    const struct slab *s = slab_of(a, (uint32_t)(offset >> a->c->segment_shift));
    uint32_t within = (uint32_t)(offset & (a->c->segment_size - 1));
    if (within < s->shape.header_bytes)
        return 0;
    uint32_t granule = (within - s->shape.header_bytes) / FORMAT_GRANULARITY_MIN;
    uint32_t first = divide(granule, s->by_size);
    uint32_t last = divide(granule + (PM_LINE - 1) / FORMAT_GRANULARITY_MIN, s->by_size);
    if (last >= s->shape.objects)
        last = s->shape.objects - 1;
    if (first > last)
        return 0;
    bool was = was_slab && bitmap_any_of_few(home_bits(a, s), first, last - first + 1);
    bool is = is_slab && bitmap_any_of_few(shadow_bits(a, s), first, last - first + 1);
    return (was ? LIVE_BEFORE : 0u) | (is ? LIVE_AFTER : 0u);
}

unsigned slab_line_liveness(void *allocator, uint64_t line)
{
    struct allocator *a = allocator;
    uint64_t offset = line * PM_LINE;
    uint32_t segment = (uint32_t)(offset >> a->c->segment_shift);
    uint64_t old = home_table(a->c)[segment], word = shadow_table(a->c)[segment];
    const struct slab *s = &a->slabs[segment];
    if (old == word && !may_have_changed(s, line, line))
        return segment_is_data(word) ? LIVE_BEFORE | LIVE_AFTER : 0;
    return liveness_of_changed(a, offset, old, word);
}

/* The lines of a page that bytes [from, end) of the slots' area touch. The area begins at `data`, counted
 * from the page's start. */
static uint64_t lines_between(uint64_t data, uint64_t from, uint64_t end)
{
    from = from > data ? from - data : 0;
    end = min_u64(end - data, PM_PAGE);
    return bits_between(from / PM_LINE, divide_up(end, PM_LINE));
}

/* The lines of a page that used slots touch. On most pages all slots are in use. */
static uint64_t used_lines(const struct allocator *a, const struct slab *s, const uint64_t *bits,
                           uint32_t page)
{
    uint64_t size = s->shape.object_size;
    uint64_t data = ((uint64_t)page << PM_PAGE_SHIFT) - slot_offset(a, s, 0), lines = 0;
    uint32_t first, end;
    slots_of_page(a, s, page, &first, &end);
    if (bitmap_all(bits, first, end))
        return first < end ? lines_between(data, first * size, end * size) : 0;
    for (uint32_t w = first / BITMAP_SLOTS; w * BITMAP_SLOTS < end; w++)
        for (uint64_t left = bits[w] & bitmap_mask(w, first, end); left; left &= left - 1) {
            uint64_t slot = w * BITMAP_SLOTS + (uint32_t)__builtin_ctzll(left);
            lines |= lines_between(data, slot * size, (slot + 1) * size);
        }
    return lines;
}

struct page_liveness slab_page_liveness(void *allocator, uint32_t page)
{
    struct allocator *a = allocator;
    uint32_t segment = page / pages_per_segment(a->c);
    uint64_t old = home_table(a->c)[segment], word = shadow_table(a->c)[segment];
    bool was_slab = segment_kind(old) == SEGMENT_SLAB, is_slab = segment_kind(word) == SEGMENT_SLAB;
    if (!was_slab && !is_slab)
        return (struct page_liveness){segment_is_large(old) ? UINT64_MAX : 0,
                                      segment_is_large(word) ? UINT64_MAX : 0};

    /* A segment does not change hands within a transaction, so both are of one slab. */
    const struct slab *s = slab_of(a, segment);
    if (page % pages_per_segment(a->c) < s->shape.header_bytes >> PM_PAGE_SHIFT)
        return (struct page_liveness){0, 0};
    uint64_t is = used_lines(a, s, shadow_bits(a, s), page), was = is;
    if (may_have_changed(s, page * PM_PAGE_LINES, (page + 1) * PM_PAGE_LINES - 1))
        was = used_lines(a, s, home_bits(a, s), page);
    return (struct page_liveness){was_slab ? was : 0, is_slab ? is : 0};
}

void slab_note_pages(struct allocator *a, struct slab *s)
{
    const uint64_t *home = home_bits(a, s), *shadow = shadow_bits(a, s);
    uint32_t noted = 0; /* pages below have been looked at; slots come in order of address */
    for (uint32_t n = 0, end = journal_candidates(&s->bitmap); n < end; n++) {
        uint32_t w = journal_candidate(&s->bitmap, n);
        uint64_t changed = seal_payload(home[w] ^ shadow[w]);
        if (home[w] & changed) { /* slots that may be given out again after the commit */
            if (w < s->hint)
                s->hint = w;
            slab_list(a, s);
        }
        if (!a->t->engine->in_place) /* lines are judged when commit finds that they changed */
            continue;
        for (; changed; changed &= changed - 1) {
            uint32_t slot = w * BITMAP_SLOTS + (uint32_t)__builtin_ctzll(changed);
            struct page_range on = slot_pages(a, s, slot);
            for (uint32_t page = on.first > noted ? on.first : noted; page <= on.last; page++) {
                bool live = page_is_used(a, s, shadow, page);
                if (live == txn_page_is_fresh(a->t, page))
                    txn_note(a->t, page, live);
                noted = page + 1;
            }
        }
    }
}
