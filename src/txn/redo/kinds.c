/*
 * Before a commit, bring the pointer map up to date from the kinds of words (base/marks.h).
 *
 * The kind of a word in a marked line decides whether the pointer map says "pointer" afterwards:
 *
 *   stored as a pointer           mapped. It must lead into the container, or be NULL, or be no address
 *                                 at all, like -1. Any other target will not be there tomorrow.
 *   stored with unknown kind      mapped if it leads into the container, or into a module.
 *   changed to something else     not mapped.
 *   pieced (base/marks.h, P4)     not mapped; the commit fails if it leads into the container or a module.
 *   not stored to, or stored      as it was. Zero never needs relocation, and this way the log gets no
 *   with its old value or zero    entry each time a field becomes NULL.
 *
 * A fresh line needs no exception. Freeing an object unmaps its words, so no word of a fresh line was
 * mapped at the last commit. A word that was mapped since, as by pm_realloc(), and then stored to, does
 * not count as "as it was". A store that tells no kinds (pm_dirty(), or a page fault) leaves the map as
 * it was, so declared pointers stay declared. If such a store may have followed a store that tells its
 * kind, the word's value decides.
 *
 * Invariants
 *  K1  The kinds of a line that is neither marked nor on a LISTED page are KIND_NONE, which is 0.
 *  K2  Each explicitly mapped word in a marked line has a kind too: pm_mark_pointer() counts as a store.
 *  K3  Code that tells kinds has not stored to a word of KIND_NONE. On a LISTED page it may have stored data
 *      there, so the word's value is compared with home.
 */
#include "txn/redo/redo.h"

#include "base/error.h"
#include "txn/foreign.h"

#include <emmintrin.h>
#include <errno.h>
#include <inttypes.h>

/* One page of the kinds table covers KINDS_PAGE bytes of data. From FORGET_MIN bytes on, giving the
 * table's memory back to the system is cheaper than storing to it. */
#define KINDS_PAGE    (PM_PAGE << KINDS_WORD_SHIFT)
#define FORGET_MIN    (UINT64_C(1) << 20)

/* One mask for two questions: does the word's value decide, or may the word be pieced? A store of a whole
 * word never sets both bits; pieces may (base/marks.h, P5). */
#define KIND_LEADING  (KIND_BY_VALUE | KIND_PIECE_LAST)

#define ALWAYS_INLINE __attribute__((always_inline)) static inline
#define OUT_OF_LINE   __attribute__((noinline)) static /* rare code must not cost registers */

/* Mask of the words of this line whose kind has a bit of `some`: one bit a word, the first word in bit 0. */
static inline unsigned words_of(uint64_t kinds, int some)
{
    __m128i of_some = _mm_and_si128(_mm_cvtsi64_si128((int64_t)kinds), _mm_set1_epi8((char)some));
    return (unsigned)_mm_movemask_epi8(_mm_adds_epu8(of_some, _mm_set1_epi8(INT8_MAX)));
}

/* Mask of the words of this line that are pieced. */
static inline unsigned pieced_of(uint64_t kinds)
{
    return (unsigned)_mm_movemask_epi8(_mm_cvtsi64_si128((int64_t)kinds_pieced(kinds)));
}

static inline uint64_t line_kinds(const struct txn *t, uint64_t line)
{
    uint64_t kinds;
    memcpy(&kinds, redo_kinds(t, line), sizeof kinds);
    return kinds;
}

static inline const uint64_t *line_words(const struct txn *t, uint64_t line)
{
    return (const uint64_t *)(t->c->base + line * PM_LINE);
}

/* Mask of the words in `mapped` that have their old value, or are zero. In a moved container the old
 * value is the relocated one, because home may have text where the view has a pointer. */
static uint8_t unchanged(const struct txn *t, uint64_t line, uint8_t mapped)
{
    const uint64_t *now = line_words(t, line), *was = home_word(t->c, line * PM_LINE);
    unsigned words = 0;
    for (uint32_t i = 0; i < PM_LINE_WORDS; i++) {
        uint64_t before = t->moved ? moved_to_view(t, was[i]) : was[i];
        words |= (unsigned)(now[i] == before || now[i] == 0) << i;
    }
    return words & mapped;
}

/* Mask of the words of this line that were mapped at the last commit. */
static uint8_t mapped_before(const struct txn *t, uint64_t line)
{
    struct mapped_place at = mapped_place(t, line);
    uint64_t map = (uint64_t)at.group->segment << t->c->segment_shift;
    return map ? (uint8_t)(home_word(t->c, map)[at.word] >> at.shift) : 0;
}

/* Mask of the words in `same` that stay mapped. All of them are stored to and unchanged(). A word that
 * was mapped since the last commit, as by pm_realloc(), does not stay mapped unless it is zero. In a
 * fresh object home may have anything there. */
static uint8_t kept(const struct txn *t, uint64_t line, uint8_t same)
{
    const uint64_t *words = line_words(t, line);
    unsigned zero = 0;
    for (uint32_t i = 0; i < PM_LINE_WORDS; i++)
        zero |= (unsigned)(words[i] == 0) << i;
    return same & (zero | mapped_before(t, line));
}

/* ---- at commit ------------------------------------------------------------------------------- */

/* True if `value` leads to objects, or just behind a page of objects. A number is more likely to look
 * like an address of the first pages than of any other, so free pages do not count. */
static bool leads_to_data(const struct txn *t, uint64_t value)
{
    uint64_t offset = value - (uintptr_t)t->c->base;
    return container_is_led_into(t->c, value) && offset > 0 &&
           (segments_page_is_data(t, (uint32_t)(offset >> PM_PAGE_SHIFT)) ||
            segments_page_is_data(t, (uint32_t)((offset - 1) >> PM_PAGE_SHIFT)));
}

/* Mask of the words in `words` that lead to objects, or into a module. -1: pm__fail(). */
static int leading(struct txn *t, uint64_t line, unsigned words)
{
    const uint64_t *values = line_words(t, line);
    int pointers = 0;
    for (; words; words &= words - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(words);
        if (!modules_may_reach(&t->modules, values[i]))
            continue;
        int leads = leads_to_data(t, values[i])
                        ? 1
                        : foreign_adopt(t, line * PM_LINE + i * sizeof *values, values[i]);
        if (leads < 0)
            return -1;
        pointers |= leads << i;
    }
    return pointers;
}

/* P4. Fail with a message if a pieced word leads to an object or into a module. `words` has the pieced
 * words of this line. 0, or -1. */
static int refuse_pieced(struct txn *t, uint64_t line, unsigned words)
{
    const uint64_t *values = line_words(t, line);
    for (; words; words &= words - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(words);
        if (modules_may_reach(&t->modules, values[i]) &&
            (leads_to_data(t, values[i]) || modules_may_adopt(&t->modules, values[i])))
            return txn_refuse_pieced(t, line * PM_LINE + i * sizeof *values);
    }
    return 0;
}

int txn_refuse_pieced(const struct txn *t, uint64_t offset)
{
    char object[OBJECT_TEXT];
    txn_describe_object(t, offset, " in ", object);
    return pm__fail_at(
        t->c->path, offset, EINVAL,
        "%#" PRIx64
        "%s was stored in pieces of less than 8 bytes, and is the address of an object: if it is a "
        "pointer, copy it as one, or by memcpy(); if not, call pm_mark_data() of these 8 bytes",
        *(const uint64_t *)(t->c->base + offset), object);
}

/* How the commit found a line. With FOREIGN, the kinds may not tell of every store: */
#define VISIT_FOREIGN 1u /* code that tells no kinds has stored to the line too */
#define VISIT_UNSEEN  2u /* and nobody said where on the line */
#define VISIT_LISTED  4u /* the line's page is listed, K3 */

/* Mask of the words of this line that are pointers now; the words in `was` were mapped before. -1:
 * pm__fail(). */
OUT_OF_LINE int pointers_of(struct txn *t, uint64_t line, uint8_t was, unsigned visit)
{
    uint64_t kinds = line_kinds(t, line);
    uint8_t is = (uint8_t)words_of(kinds, KIND_POINTER);
    uint8_t by_value = (uint8_t)words_of(kinds, KIND_BY_VALUE);
    uint8_t data = (uint8_t)words_of(kinds, KIND_DATA), stored = was & (by_value | data);
    uint8_t others = was & (uint8_t)~(is | stored);
    unsigned pieced = pieced_of(kinds);
    if (pieced && refuse_pieced(t, line, pieced) != 0)
        return -1;
    if (foreign_check(t, line, &is, false) != 0)
        return -1;
    int leads = leading(t, line, visit & VISIT_UNSEEN ? by_value | (data & was) : by_value);
    if (leads < 0)
        return -1;
    if (visit & VISIT_FOREIGN) {
        /* Declared words stay declared wherever they lead now, unless their target is an error. */
        uint8_t declared = others;
        if (foreign_check(t, line, &declared, true) != 0)
            return -1;
    } else if (visit & VISIT_LISTED) {
        others = unchanged(t, line, others);
    }
    if (stored)
        others |= kept(t, line, unchanged(t, line, stored));
    return is | leads | others;
}

/* Make the pointer map say which words of the line are pointers. */
static int set_mapped(struct txn *t, uint64_t line, uint8_t is)
{
    struct mapped_place at = mapped_place(t, line);
    if (!at.group->words &&
        t->pointers.make(t->pointers.context, (uint32_t)(at.group - t->pointers.groups)) != 0)
        return -1;
    uint64_t rest = seal_payload(at.group->words[at.word]) & ~((uint64_t)UINT8_MAX << at.shift);
    txn_set_map_word(t, at.group, at.word, rest | (uint64_t)is << at.shift);
    return 0;
}

OUT_OF_LINE int map_line(struct txn *t, uint64_t line, unsigned visit, void *context)
{
    uint8_t was = txn_mapped(t, line);
    int is = pointers_of(t, line, was, visit);
    (void)context;
    if (is == was)
        return 0;
    return is < 0 ? -1 : set_mapped(t, line, (uint8_t)is);
}

/* Called for a line that has been stored to; a result other than 0 ends the walk. */
typedef int line_visitor(struct txn *t, uint64_t line, unsigned visit, void *context);

/* If a page is listed because a store faulted there, all of its lines count as foreign. */
static int visit_page(struct txn *t, const struct page_entry *entry, line_visitor *visitor,
                      void *context)
{
    bool announced = entry->sum != 0;
    uint64_t first = (uint64_t)entry->page * PM_PAGE_LINES;
    int result = 0;
    for (uint64_t line = first; line < first + PM_PAGE_LINES && result == 0; line++) {
        uint8_t mark = *redo_mark(t, line);
        unsigned foreign = !announced            ? VISIT_FOREIGN | VISIT_UNSEEN
                           : mark & MARK_FOREIGN ? VISIT_FOREIGN
                                                 : 0;
        if (mark != 0 || !announced)
            result = visitor(t, line, VISIT_LISTED | foreign, context);
    }
    return result;
}

static int visit_listed(struct txn *t, line_visitor *visitor, void *context)
{
    int result = 0;
    for (uint32_t i = 0; i < t->pages.count && result == 0; i++)
        result = visit_page(t, &t->pages.opened[i], visitor, context);
    return result;
}

static bool is_listed(const struct txn *t, uint64_t line)
{
    return t->pages.flags[line / PM_PAGE_LINES] & PAGE_LISTED;
}

OUT_OF_LINE int visit_marked(struct txn *t, uint64_t line, line_visitor *visitor, void *context)
{
    uint8_t mark = *redo_mark(t, line);
    if (mark == 0 || is_listed(t, line))
        return 0;
    return visitor(t, line, mark & MARK_FOREIGN ? VISIT_FOREIGN : 0, context);
}

/* The data that glance() reads: the tables, and the map of one group of segments, if the group has a map. */
struct scene {
    const struct container *c;
    const uint8_t *marks, *kinds;
    __m128i below; /* for modules_may_reach(): the bound on the higher halves of words, four times */
    const struct map_group *group;
    const uint64_t *map;
    uint64_t first, count; /* the map's first word among all groups' words; words in the map */
};

/* Fill in `scene` for the group of this line. */
static void look_around(const struct txn *t, uint64_t line, struct scene *scene)
{
    struct mapped_place at = mapped_place(t, line);
    scene->below = _mm_set1_epi32((int32_t)(t->modules.above >> 32) - 1);
    scene->group = at.group;
    scene->map = at.group->words;
    scene->first = map_word_of_line(line) - at.word;
    scene->count = at.group->words ? UINT64_C(1) << map_word_shift(t->c) : 0;
}

static inline bool lead_home(const struct scene *scene, const uint64_t *words, unsigned some)
{
    for (; some; some &= some - 1)
        if (!foreign_leads_home(scene->c, words[__builtin_ctz(some)]))
            return false;
    return true;
}

/* Mask of the words of this line for which modules_may_reach() is true. It compares higher halves only,
 * so it may have more words. */
static inline unsigned may_be_addresses(const struct scene *scene, const uint64_t *words)
{
    const __m128 *pair = (const __m128 *)words;
    __m128i four[2];
    for (int i = 0; i < 2; i++) {
        __m128i high =
            _mm_castps_si128(_mm_shuffle_ps(pair[2 * i], pair[2 * i + 1], _MM_SHUFFLE(3, 1, 3, 1)));
        four[i] = _mm_and_si128(_mm_cmpgt_epi32(high, scene->below),
                                _mm_cmplt_epi32(high, _mm_set1_epi32(1 << (47 - 32))));
    }
    __m128i eight = _mm_packs_epi32(four[0], four[1]);
    return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(eight, _mm_setzero_si128()));
}

/* Bits to set in a word of a group's map. */
struct addition {
    uint64_t word, bits;
};

enum { ADDITIONS_MAX = 32 };

/* Examine marked lines until a line needs map_line(), or until there are ADDITIONS_MAX additions. Returns
 * where it stopped. A line needs no map_line() if its pointers lead into the container, and its other
 * stored words are no addresses and were not mapped. The loop calls no function, because a commit of a
 * few lines spends a noticeable part of its time here. */
ALWAYS_INLINE const uint64_t *glance(const struct scene *scene, const uint64_t *marked,
                                     const uint64_t *end, struct addition **additions)
{
    struct addition *last = *additions, *full = last + ADDITIONS_MAX;
    do {
        uint64_t line = *marked, map_word = map_word_of_line(line), word = map_word - scene->first;
        if (scene->marks[line] != (MARK_LINE | MARK_KINDS) || word >= scene->count)
            break;
        uint64_t kinds, shift = (line - map_word * MAP_WORD_LINES) * PM_LINE_WORDS;
        const uint64_t *words = (const uint64_t *)(scene->c->base + line * PM_LINE);
        memcpy(&kinds, scene->kinds + line * PM_LINE_WORDS, sizeof kinds);
        uint64_t pointers = words_of(kinds, KIND_POINTER), stored = words_of(kinds, KIND_ANY);
        uint64_t mapped = scene->map[word] >> shift & stored;
        unsigned by_value = words_of(kinds, KIND_LEADING);
        if (!lead_home(scene, words, pointers) ||
            (by_value && by_value & may_be_addresses(scene, words)) || mapped & ~pointers)
            break;
        if (mapped != pointers)
            *last++ = (struct addition){word, pointers << shift};
    } while (++marked < end && last < full);
    *additions = last;
    return marked;
}

OUT_OF_LINE void add_bits(struct txn *t, const struct scene *scene, const struct addition *next,
                          const struct addition *end)
{
    for (; next < end; next++)
        txn_set_map_word(t, scene->group, next->word,
                         seal_payload(scene->map[next->word]) | next->bits);
}

static int map_marked(struct txn *t)
{
    const uint64_t *marked = t->redo->marked, *end = marked + t->redo->marked_count;
    struct scene scene = {.c = t->c, .marks = redo_mark(t, 0), .kinds = redo_kinds(t, 0)};
    struct addition additions[ADDITIONS_MAX];
    int result = 0;
    if (marked < end)
        look_around(t, *marked, &scene);
    while (result == 0 && marked < end) {
        struct addition *last = additions;
        marked = glance(&scene, marked, end, &last);
        if (last > additions)
            add_bits(t, &scene, additions, last);
        if (marked < end) {
            result = visit_marked(t, *marked, map_line, NULL);
            look_around(t, *marked++, &scene);
        }
    }
    return result;
}

int redo_map_pointers(struct txn *t)
{
    if (!t->kinds)
        return 0;
    int result = visit_listed(t, map_line, NULL);
    return result == 0 ? map_marked(t) : result;
}

struct search {
    uint64_t low, size;
    txn_found *found;
    void *context;
};

static int search_line(struct txn *t, uint64_t line, unsigned visit, void *context)
{
    struct search *s = context;
    const uint64_t *words = line_words(t, line);
    unsigned within = 0;
    (void)visit;
    for (uint32_t i = 0; i < PM_LINE_WORDS; i++)
        within |= (unsigned)(words[i] - s->low < s->size) << i;
    if (within == 0)
        return 0;
    uint64_t kinds = line_kinds(t, line);
    within &= words_of(kinds, KIND_MAY_POINT) | pieced_of(kinds) |
              (txn_mapped(t, line) & ~words_of(kinds, KIND_DATA));
    for (; within; within &= within - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(within);
        if (s->found(s->context, line * PM_LINE + i * sizeof *words) != 0)
            return -1;
    }
    return 0;
}

int txn_find_pointers(struct txn *t, uint64_t low, uint64_t size, txn_found *found, void *context)
{
    struct search search = {low, size, found, context};
    if (!t->kinds)
        return 0;
    int result = visit_listed(t, search_line, &search);
    for (uint64_t i = 0, n = t->redo->marked_count; i < n && result == 0; i++)
        result = visit_marked(t, t->redo->marked[i], search_line, &search);
    return result;
}

/* ---- between commits ------------------------------------------------------------------------- */

static void set_kind(struct txn *t, uint64_t offset, uint64_t bytes, uint8_t kind)
{
    uint64_t word = offset / sizeof(uint64_t), end = divide_up(offset + bytes, sizeof(uint64_t));
    while (bytes > 0 && word < end) {
        uint64_t line = word / PM_LINE_WORDS,
                 n = min_u64(end - word, PM_LINE_WORDS - word % PM_LINE_WORDS);
        if (*redo_mark(t, line) & MARK_KINDS)
            memset(redo_kinds(t, line) + word % PM_LINE_WORDS, kind, n);
        word += n;
    }
}

/* Mark the bytes `from` to `to` - 1 of a word as stored in pieces. */
static void set_piece(uint8_t *kind, uint64_t from, uint64_t to)
{
    uint8_t pieces = *kind & KIND_PIECES;
    for (; from < to; from++)
        pieces |= (uint8_t)(KINDS_OF_PIECES >> 8 * from);
    *kind = pieces;
}

void txn_set_pieces(uint8_t *kinds, uint64_t offset, uint64_t bytes)
{
    const uint64_t size = sizeof(uint64_t), end = offset + bytes;
    uint64_t low = align_up(offset, size), high = align_down(end, size);
    if (low < high)
        memset(kinds + low / size, KIND_PIECED, (high - low) / size);
    if (offset < low)
        set_piece(&kinds[offset / size], offset % size, size - (low - min_u64(low, end)));
    if (low <= high && high < end)
        set_piece(&kinds[high / size], 0, end - high);
}

void txn_mark_pieces(struct txn *t, uint64_t offset, uint64_t bytes)
{
    const uint64_t end = offset + bytes;
    for (uint64_t n; t->kinds && offset < end; offset += n) {
        n = min_u64(end - offset, PM_LINE - offset % PM_LINE);
        if (*redo_mark(t, offset / PM_LINE) & MARK_KINDS)
            txn_set_pieces(redo_kinds(t, 0), offset, n);
    }
}

void txn_set_kind(struct txn *t, uint64_t offset, uint64_t bytes, uint8_t kind)
{
    if (!t->kinds)
        return;
    uint64_t end = offset + bytes;
    uint64_t from = align_up(offset, KINDS_PAGE), to = align_down(end, KINDS_PAGE);
    if (kind != KIND_POINTER && bytes >= FORGET_MIN &&
        map_clear_table(redo_kinds(t, from / PM_LINE), (to - from) >> KINDS_WORD_SHIFT) == 0) {
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
    uint8_t *kinds = redo_kinds(t, line);
    for (; words; words &= words - 1) {
        uint8_t *kind = &kinds[__builtin_ctz(words)];
        if (*kind != KIND_NONE)
            *kind = KIND_BY_VALUE;
    }
}

void txn_mark_foreign(struct txn *t, uint64_t offset, uint64_t bytes)
{
    uint64_t end = offset + bytes;
    for (uint64_t start = align_down(offset, PM_LINE); start < end && t->kinds; start += PM_LINE) {
        uint64_t line = start / PM_LINE;
        if (!*redo_mark(t, line))
            continue;
        uint64_t from = max_u64(offset, start) - start, to = min_u64(end - start, PM_LINE);
        __atomic_fetch_or(redo_mark(t, line), MARK_FOREIGN, __ATOMIC_RELAXED);
        doubt_kinds(
            t, line,
            (unsigned)bits_between(from / sizeof(uint64_t), divide_up(to, sizeof(uint64_t))));
    }
}

/* A byte of 0 or 1 for each bit. */
static uint64_t spread(uint8_t bits)
{
    uint64_t bytes = bits * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
    return (bytes + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101);
}

/* True if words of the line may have been stored to though their kind is KIND_NONE: K3. */
static inline bool others_store_to(const struct txn *t, uint64_t line, uint8_t mark)
{
    return mark & MARK_FOREIGN || is_listed(t, line);
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
    uint8_t mapped = txn_mapped(t, line);
    uint8_t mark = *redo_mark(t, line);
    uint64_t told = mark ? line_kinds(t, line) : 0, kinds = told;
    mapped &= (uint8_t)~words_of(kinds, KIND_MAY_POINT);
    if (!mapped) /* the usual case */
        return others_are_data(kinds);
    uint8_t data = mapped & (uint8_t)words_of(told, KIND_DATA);
    uint8_t doubtful = others_store_to(t, line, mark) ? mapped : data;
    uint8_t same = doubtful ? unchanged(t, line, doubtful) : 0, changed = doubtful & (uint8_t)~same;
    if (data)
        changed |= data & (uint8_t)~kept(t, line, same);
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
    bool told = t && t->kinds && offset % sizeof(uint64_t) == 0;
    return (struct source){told ? t : NULL, offset / sizeof(uint64_t)};
}

static inline bool some_are_mapped(struct source at, uint64_t count)
{
    for (uint64_t n, end = at.first + count; at.first < end; at.first += n) {
        struct mapped_place place = mapped_place_of_word(at.t, at.first);
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
           (c && c->upper && container_holds(c, address) && ((const struct txn *)c->upper)->kinds);
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

void txn_copy_kinds_out(uint8_t *to, const void *address, uint64_t count)
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

uint64_t txn_kinds_at(const void *address, uint64_t words)
{
    uint64_t kinds = 0;
    txn_copy_kinds_out((uint8_t *)&kinds, address, words);
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
        memcpy(redo_kinds(t, 0) + first + at, piece, n);
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
        copy_told(redo_kinds(t, 0) + first, redo_kinds(from.t, 0) + from.first, count);
}

static inline void copy_words(struct txn *t, uint64_t first, struct source from, uint64_t count)
{
    struct mapped_place place = mapped_place_of_word(from.t, from.first);
    if (count > min_u64(PM_LINE_WORDS, SEAL_BITS - place.shift))
        copy_many(t, first, from, count);
    else if (mapped_at(place) & bits_between(0, count))
        copy_pieces(t, first, from, count);
    else
        copy_few_told(redo_kinds(t, 0) + first, redo_kinds(from.t, 0) + from.first, count);
}

OUT_OF_LINE void copy_from_elsewhere(struct txn *t, uint64_t first, const void *address,
                                     uint64_t count)
{
    struct source from = words_at(address);
    if (from.t)
        copy_many(t, first, from, count);
    else
        kinds_elsewhere(redo_kinds(t, 0) + first, address, count);
}

/* The range has whole words, and parts of words at its ends. */
OUT_OF_LINE void copy_with_parts(struct txn *t, uint64_t offset, const char *from, uint64_t bytes)
{
    uint64_t end = offset + bytes, low = align_up(offset, sizeof(uint64_t)),
             high = align_down(end, sizeof(uint64_t));
    if (low < high)
        txn_copy_kinds(t, low, from + (low - offset), high - low);
    if (offset < low)
        txn_mark_pieces(t, offset, min_u64(low, end) - offset);
    if (high < end && low <= high)
        txn_mark_pieces(t, high, end - high);
}

/* Code that needs a stack frame is out of line. Most calls move few words within a container, and a frame
 * would take a fifth of their time. */
void txn_copy_kinds(struct txn *t, uint64_t offset, const void *from, uint64_t bytes)
{
    uint64_t first = offset / sizeof(uint64_t), count = bytes / sizeof(uint64_t);
    if (!t->kinds || bytes == 0 || from == t->c->base + offset)
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
