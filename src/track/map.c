/*
 * A step of commit: bring the pointer map up to date from the kinds of words (base/marks.h).
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
 * mapped at the last commit. A word that was mapped since, as by pm_mark_pointer() or pm_realloc(), is a
 * declared one: it stays mapped whatever number is stored as a pointer there, or with unknown kind. If
 * data is stored to it, it does not count as "as it was". A store that tells no kinds (pm_dirty(), or a
 * page fault) leaves the map as it was, so declared pointers stay declared. If such a store may have
 * followed a store that tells its kind, the word's value decides.
 *
 * Invariants
 *  K1  The kinds of a line that is neither marked nor on a LISTED page are KIND_NONE, which is 0.
 *  K2  Each explicitly mapped word in a marked line has a kind too: pm_mark_pointer() counts as a store.
 *  K3  Code that tells kinds has not stored to a word of KIND_NONE. On a LISTED page it may have stored data
 *      there, so the word's value is compared with home.
 */
#include "track/track.h"
#include "track/words.h"

#include "address/foreign.h"
#include "address/translation.h"
#include "base/error.h"

#include <errno.h>
#include <inttypes.h>

/* One mask for two questions: does the word's value decide, or may the word be pieced? */
#define KIND_LEADING  (KIND_BY_VALUE | KIND_PIECE_LAST)

#define ALWAYS_INLINE __attribute__((always_inline)) static inline

/* Mask of the words of this line that were mapped at the last commit. */
static uint8_t mapped_before(const struct txn *t, uint64_t line)
{
    struct mapped_place at = mapped_place(&t->map, line);
    uint64_t map = (uint64_t)at.group->segment << t->c->segment_shift;
    return map ? (uint8_t)(home_word(t->c, map)[at.word] >> at.shift) : 0;
}

uint8_t track_unchanged(const struct txn *t, uint64_t line, uint8_t mapped)
{
    const uint64_t *now = words_of_line(t->c, line), *was = home_word(t->c, line * PM_LINE);
    unsigned words = 0;
    for (uint32_t i = 0; i < PM_LINE_WORDS; i++) {
        uint64_t before = t->translation ? translate_to_view(t->translation, was[i]) : was[i];
        words |= (unsigned)(now[i] == before || now[i] == 0) << i;
    }
    return words & mapped;
}

uint8_t track_kept(const struct txn *t, uint64_t line, uint8_t same)
{
    const uint64_t *words = words_of_line(t->c, line);
    unsigned zero = 0;
    for (uint32_t i = 0; i < PM_LINE_WORDS; i++)
        zero |= (unsigned)(words[i] == 0) << i;
    return same & (zero | mapped_before(t, line));
}

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
    const uint64_t *values = words_of_line(t->c, line);
    int pointers = 0;
    for (; words; words &= words - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(words);
        if (!modules_may_reach(&t->modules, values[i]))
            continue;
        int leads =
            leads_to_data(t, values[i])
                ? 1
                : foreign_adopt(&t->foreign, line * PM_LINE + i * sizeof *values, values[i]);
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
    const uint64_t *values = words_of_line(t->c, line);
    for (; words; words &= words - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(words);
        if (modules_may_reach(&t->modules, values[i]) &&
            (leads_to_data(t, values[i]) || modules_may_adopt(&t->modules, values[i])))
            return track_refuse_pieced(t, line * PM_LINE + i * sizeof *values);
    }
    return 0;
}

int track_refuse_pieced(const struct txn *t, uint64_t offset)
{
    char object[OBJECT_TEXT];
    contents_describe(t->c, offset, " in ", object);
    return pm__fail_at(
        t->c->path, offset, EINVAL,
        "%#" PRIx64
        "%s was stored in pieces of less than 8 bytes, and is the address of an object: if it is a "
        "pointer, copy it as one, or by memcpy(); if not, call pm_mark_data() of these 8 bytes",
        *(const uint64_t *)(t->c->base + offset), object);
}

/* Mask of those of `words` that were declared since the last commit. If home would take a number for another
 * pointer, the word is none. */
OUT_OF_LINE uint8_t declared_since(const struct txn *t, uint64_t line, unsigned words)
{
    const uint64_t *values = words_of_line(t->c, line);
    unsigned those = words &= (unsigned)~mapped_before(t, line);
    for (; t->translation && words; words &= words - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(words);
        if (!translation_keeps(t->translation, values[i]))
            those &= ~(1u << i);
    }
    return (uint8_t)those;
}

/* Mask of the words of this line that are pointers now; the words in `was` were mapped before. -1:
 * pm__fail(). */
OUT_OF_LINE int pointers_of(struct txn *t, uint64_t line, uint8_t was, unsigned visit)
{
    uint64_t kinds = kinds_of_line(t->c, line);
    uint8_t is = (uint8_t)words_of(kinds, KIND_POINTER);
    uint8_t by_value = (uint8_t)words_of(kinds, KIND_BY_VALUE);
    uint8_t data = (uint8_t)words_of(kinds, KIND_DATA), stored = was & (by_value | data);
    uint8_t undecided = was & (is | by_value);
    uint8_t others = was & (uint8_t)~(is | stored);
    unsigned pieced = pieced_of(kinds);
    if (pieced && refuse_pieced(t, line, pieced) != 0)
        return -1;
    if (foreign_check(&t->foreign, line, &is, false) != 0)
        return -1;
    int leads = leading(t, line, visit & VISIT_UNSEEN ? by_value | (data & was) : by_value);
    if (leads < 0)
        return -1;
    is |= leads;
    if (undecided & ~is)
        is |= declared_since(t, line, undecided & ~is);
    if (visit & VISIT_FOREIGN) {
        /* Declared words stay declared wherever they lead now, unless their target is an error. */
        uint8_t declared = others;
        if (foreign_check(&t->foreign, line, &declared, true) != 0)
            return -1;
    } else if (visit & VISIT_LISTED) {
        others = track_unchanged(t, line, others);
    }
    if (stored)
        others |= track_kept(t, line, track_unchanged(t, line, stored));
    return is | others;
}

/* Make the pointer map say which words of the line are pointers. */
static int set_mapped(struct txn *t, uint64_t line, uint8_t is)
{
    struct mapped_place at = mapped_place(&t->map, line);
    if (!at.group->words && txn_make_map(t, at.group) != 0)
        return -1;
    uint64_t rest = seal_payload(at.group->words[at.word]) & ~((uint64_t)UINT8_MAX << at.shift);
    pointer_map_set_word(&t->journal, at.group, at.word, rest | (uint64_t)is << at.shift);
    return 0;
}

OUT_OF_LINE int map_line(struct txn *t, uint64_t line, unsigned visit, void *context)
{
    uint8_t was = mapped_in_line(&t->map, line);
    int is = pointers_of(t, line, was, visit);
    (void)context;
    if (is == was)
        return 0;
    return is < 0 ? -1 : set_mapped(t, line, (uint8_t)is);
}

/* ---- the usual lines, without a call -------------------------------------------------------- */

/* The data that glance() reads: the tables, and the map of one group of segments, if the group has a map. */
struct scene {
    const struct container *c;
    const uint8_t *marks, *kinds;
    __m128i
        below; /* for modules_may_reach(): the bound on the higher halves of words, four times */
    struct map_group *group;
    const uint64_t *map;
    uint64_t first, count; /* the map's first word among all groups' words; words in the map */
};

/* Fill in `scene` for the group of this line. */
static void look_around(const struct txn *t, uint64_t line, struct scene *scene)
{
    struct mapped_place at = mapped_place(&t->map, line);
    scene->below = _mm_set1_epi32((int32_t)(t->modules.above >> 32) - 1);
    scene->group = at.group;
    scene->map = at.group->words;
    scene->first = map_word_of_line(line) - at.word;
    scene->count = at.group->words ? UINT64_C(1) << t->map.word_shift : 0;
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
        pointer_map_set_word(&t->journal, scene->group, next->word,
                             seal_payload(scene->map[next->word]) | next->bits);
}

static int map_lines(struct txn *t, const uint64_t *marked, uint64_t count)
{
    const uint64_t *end = marked + count;
    struct scene scene = {.c = t->c, .marks = line_mark(t->c, 0), .kinds = line_kinds(t->c, 0)};
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
            result = track_visit_marked(t, *marked, map_line, NULL);
            look_around(t, *marked++, &scene);
        }
    }
    return result;
}

/* As a rule an object that is large enough for a run has data, and few pointers or none. */
static int map_object(struct txn *t, uint64_t run)
{
    enum { PIECE = 64 };
    uint64_t line = run_line(run), end = line + run_count(run), lines[PIECE], count = 0;
    uint64_t bytes = end * PM_LINE;
    bool any_mapped = pointer_map_next(&t->map, line * PM_LINE, bytes) < bytes;
    int result = 0;
    for (; line < end && result == 0; line++) {
        if (any_mapped || kinds_of_line(t->c, line) & (KIND_POINTER | KIND_LEADING) * KIND_EACH)
            lines[count++] = line;
        if (count == PIECE || (line + 1 == end && count > 0)) {
            result = map_lines(t, lines, count);
            count = 0;
        }
    }
    return result;
}

int track_map_kinds(struct txn *t)
{
    const struct tracker *k = &t->tracker;
    int result = track_visit_listed(t, map_line, NULL);
    if (result == 0)
        result = map_lines(t, k->marked, k->count);
    for (uint64_t i = 0; i < k->object_count && result == 0; i++)
        result = map_object(t, k->objects[i]);
    return result;
}
