/*
 * From the kinds of words (base/marks.h) to the pointer map, before a commit.
 *
 * A word of a marked line is then
 *
 *   stored as a pointer           mapped. It must lead into the container, or be NULL or no address
 *                                 at all, as -1; what leads elsewhere will not be there tomorrow
 *   stored as we know not what    mapped if it leads into the container, or into a module
 *   changed to something else     not mapped
 *   not stored to, or with what   as it was. Zero needs no moving either way, and a field that is
 *   was there, or zero            NULL now and then is not logged each time
 *
 * A fresh line is no exception: nothing of it was mapped at the last commit, for freeing an object
 * unmaps its words. What is mapped since, as by pm_realloc(), and then stored to, was never "there".
 * What was changed by stores that tell no kinds (pm_dirty(), or a page fault) stays as it was, so
 * that declared pointers stay declared. Where such stores may have followed one that tells its kind, the
 * word goes by its value.
 *
 * Invariants
 *  K1  The kinds of a line that is neither marked nor on a LISTED page are KIND_NONE, which is 0.
 *  K2  What is mapped explicitly in a marked line has a kind too: pm_mark_pointer() is a store here.
 *  K3  A word of KIND_NONE has not been stored to by code that tells kinds; but on a LISTED page it may
 *      have been, data. So there it is looked at.
 */
#include "txn/redo/redo.h"

#include "txn/foreign.h"

/* Data whose kinds fill a page of the table, and as much as is rather given back than stored to. */
#define KINDS_PAGE    (PM_PAGE << KINDS_WORD_SHIFT)
#define FORGET_MIN    (UINT64_C(1) << 20)

#define ALWAYS_INLINE __attribute__((always_inline)) static inline
#define OUT_OF_LINE   __attribute__((noinline)) static /* what is rare must not cost registers */

/* Bit 0 of each byte. */
static inline uint8_t gather(uint64_t bytes)
{
    return (uint8_t)((bytes & KIND_EACH) * UINT64_C(0x0102040810204080) >> 56);
}

/* Those of a line's words that are of a kind, or of one of two; a bit each. */
static inline uint8_t words_of(uint64_t kinds, uint8_t one, uint8_t other)
{
    return gather(kinds / one | kinds / other);
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

/* Those of some mapped words that are as they were, or zero. */
static uint8_t unchanged(const struct txn *t, uint64_t line, uint8_t mapped)
{
    _Alignas(PM_LINE) char image[PM_LINE];
    const uint64_t *now = (const uint64_t *)redo_line(t, line, image);
    const uint64_t *was = home_word(t->c, line * PM_LINE);
    unsigned words = 0;
    for (uint32_t i = 0; i < PM_LINE_WORDS; i++)
        words |= (unsigned)(now[i] == was[i] || now[i] == 0) << i;
    return words & mapped;
}

/* Which words of a line were mapped at the last commit. `known`: of the line. */
static uint8_t mapped_before(const struct txn *t, uint64_t line, const struct mapped_lines *known)
{
    if (!known->words)
        return 0;
    struct mapped_place at = mapped_place(known, line);
    const struct journal_region *page = &known->pages[at.word / MAP_PAGE_WORDS];
    if (page->clear)
        return 0;
    return (uint8_t)(home_word(t->c, page->offset)[at.word % MAP_PAGE_WORDS] >> at.shift);
}

/* Those of some words, stored to and unchanged(), that stay mapped. What was mapped since the last
 * commit, as by pm_realloc(), is not as it was, whatever home has there: in a fresh object that is
 * anything. */
static uint8_t kept(const struct txn *t, uint64_t line, uint8_t same,
                    const struct mapped_lines *known)
{
    const uint64_t *words = line_words(t, line);
    unsigned zero = 0;
    for (uint32_t i = 0; i < PM_LINE_WORDS; i++)
        zero |= (unsigned)(words[i] == 0) << i;
    return same & (zero | mapped_before(t, line, known));
}

/* ---- at commit ------------------------------------------------------------------------------- */

/* Where objects are, and just behind: numbers look like addresses of the first pages sooner than of
 * others. */
static bool leads_to_data(const struct txn *t, uint64_t value)
{
    uint64_t offset = value - (uintptr_t)t->c->base;
    return container_is_led_into(t->c, value) && offset > 0 &&
           (segments_page_is_data(t, (uint32_t)(offset >> PM_PAGE_SHIFT)) ||
            segments_page_is_data(t, (uint32_t)((offset - 1) >> PM_PAGE_SHIFT)));
}

/* Those of some words that lead to objects, or into a module. -1: pm__fail(). */
static int leading(struct txn *t, uint64_t line, unsigned words)
{
    const uint64_t *values = line_words(t, line);
    int pointers = 0;
    for (; words; words &= words - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(words);
        if (!modules_may_reach(&t->modules, values[i]))
            continue;
        int leads = leads_to_data(t, values[i]) ? 1 : modules_adopt(t, values[i]);
        if (leads < 0)
            return -1;
        pointers |= leads << i;
    }
    return pointers;
}

/* How a line came to be looked at: what is told of its words may not be all. */
#define VISIT_FOREIGN 1u /* others, who tell no kinds, have stored there too */
#define VISIT_UNSEEN  2u /* and nobody has said where */
#define VISIT_LISTED  4u /* its page is, K3 */

/* Which words of a line are pointers now, of which `was` were mapped. -1: pm__fail(). */
OUT_OF_LINE int pointers_of(struct txn *t, uint64_t line, uint8_t was,
                            const struct mapped_lines *known, unsigned visit)
{
    uint64_t kinds = line_kinds(t, line);
    uint8_t is = gather(kinds / KIND_POINTER), by_value = gather(kinds / KIND_BY_VALUE);
    uint8_t data = gather(kinds / KIND_DATA), stored = was & (by_value | data);
    uint8_t others = was & (uint8_t)~(is | stored);
    if (foreign_check(t, line, &is, false) != 0)
        return -1;
    int leads = leading(t, line, visit & VISIT_UNSEEN ? by_value | (data & was) : by_value);
    if (leads < 0)
        return -1;
    if (visit & VISIT_FOREIGN) {
        /* Wherever they lead now, they stay declared, if that is no error. */
        uint8_t declared = others;
        if (foreign_check(t, line, &declared, true) != 0)
            return -1;
    } else if (visit & VISIT_LISTED) {
        others = unchanged(t, line, others);
    }
    if (stored)
        others |= kept(t, line, unchanged(t, line, stored), known);
    return is | leads | others;
}

/* The same, or -1 if it takes more than a glance: pointers lead home, other words that were stored are
 * no addresses, and were not mapped. */
static inline int pointers_at_a_glance(const struct txn *t, const uint64_t *words, uint64_t kinds,
                                       uint8_t was)
{
    uint64_t pointers = kinds & KIND_POINTER * KIND_EACH,
             by_value = kinds & KIND_BY_VALUE * KIND_EACH;
    for (uint64_t left = pointers; left; left &= left - 1)
        if (!foreign_leads_home(t->c, words[__builtin_ctzll(left) / 8]))
            return -1;
    for (uint64_t left = by_value; left; left &= left - 1)
        if (modules_may_reach(&t->modules, words[__builtin_ctzll(left) / 8]))
            return -1;
    uint8_t is = gather(pointers), others = was & (uint8_t)~is;
    if (others && others & words_of(kinds, KIND_BY_VALUE, KIND_DATA))
        return -1;
    return is | others;
}

/* Have the map say which words of a line are pointers. */
OUT_OF_LINE int set_mapped(struct txn *t, uint64_t line, int is, struct mapped_lines *known)
{
    if (!known->words) {
        if (t->pointers.make(t->pointers.context, line) != 0)
            return -1;
        *known = t->pointers.mapped(t->pointers.context, line);
    }
    struct mapped_place at = mapped_place(known, line);
    uint64_t rest = seal_payload(known->words[at.word]) & ~((uint64_t)UINT8_MAX << at.shift);
    txn_set_map_word(t, known->pages, at.word, rest | (uint64_t)is << at.shift);
    return 0;
}

/* The tables, of the first line; and what is known of the map. */
struct mapping {
    const char *view;
    const uint8_t *kinds;
    struct mapped_lines known;
};

ALWAYS_INLINE int map_line(struct txn *t, uint64_t line, unsigned visit, void *context)
{
    struct mapping *m = context;
    uint8_t was = txn_mapped(t, line, &m->known);
    int is = -1;
    if (visit == 0) {
        uint64_t kinds;
        memcpy(&kinds, m->kinds + line * PM_LINE_WORDS, sizeof kinds);
        is = pointers_at_a_glance(t, (const uint64_t *)(m->view + line * PM_LINE), kinds, was);
    }
    if (is < 0)
        is = pointers_of(t, line, was, &m->known, visit);
    if (is == was)
        return 0;
    return is < 0 ? -1 : set_mapped(t, line, is, &m->known);
}

/* What is done with a line that has been stored to; not 0 ends it. */
typedef int line_visitor(struct txn *t, uint64_t line, unsigned visit, void *context);

/* A page that is listed since a store faulted there is all foreign. */
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

/* Inline with its visitor: a commit of a few lines spends a noticeable part of its time here. */
ALWAYS_INLINE int visit_lines(struct txn *t, line_visitor *visitor, void *context)
{
    const uint8_t *marks = redo_mark(t, 0), *flags = t->pages.flags;
    const uint64_t *marked = t->redo->marked;
    int result = t->pages.count > 0 ? visit_listed(t, visitor, context) : 0;
    for (uint64_t i = 0, n = t->redo->marked_count; i < n && result == 0; i++) {
        uint64_t line = marked[i];
        if (!marks[line] || flags[line / PM_PAGE_LINES] & PAGE_LISTED)
            continue;
        result = marks[line] & MARK_FOREIGN ? visitor(t, line, VISIT_FOREIGN, context)
                                            : visitor(t, line, 0, context);
    }
    return result;
}

OUT_OF_LINE int map_lines(struct txn *t)
{
    struct mapping m = {t->c->base, redo_kinds(t, 0), {0}};
    return visit_lines(t, map_line, &m);
}

int redo_map_pointers(struct txn *t)
{
    return t->kinds ? map_lines(t) : 0;
}

struct search {
    uint64_t low, size;
    struct mapped_lines known;
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
    within &= words_of(kinds, KIND_POINTER, KIND_BY_VALUE) | txn_mapped(t, line, &s->known);
    for (; within; within &= within - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(within);
        if (s->found(s->context, line * PM_LINE + i * sizeof *words) != 0)
            return -1;
    }
    return 0;
}

int txn_find_pointers(struct txn *t, uint64_t low, uint64_t size, txn_found *found, void *context)
{
    struct search search = {low, size, {0}, found, context};
    return t->kinds ? visit_lines(t, search_line, &search) : 0;
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

/* Those of a line's words that have a kind and are about to lose it: by their value from now on. Other
 * threads may be telling the kinds of the others. */
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

/* A byte for each bit. */
static uint64_t spread(uint8_t bits)
{
    uint64_t bytes = bits * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
    return (bytes + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101);
}

/* Whether words of a line may have been stored to though their kind is KIND_NONE: K3. */
static inline bool others_store_to(const struct txn *t, uint64_t line, uint8_t mark)
{
    return mark & MARK_FOREIGN || t->pages.flags[line / PM_PAGE_LINES] & PAGE_LISTED;
}

/* The kinds of a line's words, a byte each, as the next commit would see them, whose `mapped` words
 * are now. Home is looked at only where it must, for its lines mostly are in no cache. */
static inline uint64_t kinds_now(const struct txn *t, uint64_t line, uint8_t mapped,
                                 const struct mapped_lines *known)
{
    uint8_t mark = *redo_mark(t, line);
    uint64_t told = mark ? line_kinds(t, line) : 0, kinds = told & KIND_MAY_POINT * KIND_EACH;
    if (!kinds && !mapped) /* as a rule of what is moved by the bulk */
        return KIND_DATA * KIND_EACH;
    mapped &= (uint8_t)~words_of(kinds, KIND_POINTER, KIND_BY_VALUE);
    uint8_t data = mapped & gather(told / KIND_DATA);
    uint8_t doubtful = others_store_to(t, line, mark) ? mapped : data;
    uint8_t same = doubtful ? unchanged(t, line, doubtful) : 0, changed = doubtful & (uint8_t)~same;
    if (data)
        changed |= data & (uint8_t)~kept(t, line, same, known);
    kinds |= spread(mapped & (uint8_t)~changed) * KIND_POINTER;
    kinds |= spread(changed & (uint8_t)~data) * KIND_BY_VALUE;
    return kinds | spread((uint8_t)~words_of(kinds, KIND_POINTER, KIND_BY_VALUE)) * KIND_DATA;
}

/* The container that has words at `address`, if it knows their kinds: most likely `near`. */
static const struct txn *words_at(const struct container *near, const void *address)
{
    const struct container *c = near && container_holds(near, address) ? near : arena_find(address);
    if (!c || !c->upper || !container_holds(c, address) || (uintptr_t)address % sizeof(uint64_t))
        return NULL;
    const struct txn *t = c->upper;
    return t->kinds ? t : NULL;
}

/* In order of address; by value where nothing else is known. Up to a line's more are written. */
static void copy_kinds(const struct container *near, uint8_t *to, const void *from, uint64_t words)
{
    const struct txn *t = words_at(near, from);
    if (!t) {
        memset(to, KIND_BY_VALUE, words);
        return;
    }
    uint64_t word = (uint64_t)((const char *)from - t->c->base) / sizeof(uint64_t);
    struct mapped_lines known = {0};
    for (uint64_t n; words > 0; to += n, word += n, words -= n) {
        uint64_t line = word / PM_LINE_WORDS;
        uint8_t mapped = txn_mapped(t, line, &known);
        uint64_t kinds = kinds_now(t, line, mapped, &known) >> 8 * (word % PM_LINE_WORDS);
        n = min_u64(words, PM_LINE_WORDS - word % PM_LINE_WORDS);
        memcpy(to, &kinds, sizeof kinds);
    }
}

uint64_t txn_kinds_at(const void *address, uint64_t words)
{
    uint64_t kinds[2] = {0};
    copy_kinds(NULL, (uint8_t *)kinds, address, words);
    return kinds[0] & bits_between(0, 8 * words);
}

/* By the piece, in the order in which memmove(3) could copy ranges that overlap. */
void txn_copy_kinds(struct txn *t, uint64_t offset, const void *from, uint64_t bytes)
{
    enum { PIECE = 512 };
    uint8_t piece[PIECE + PM_LINE_WORDS];
    uint64_t first = divide_up(offset, sizeof(uint64_t)), end = (offset + bytes) / sizeof(uint64_t);
    if (!t->kinds)
        return;
    bool upwards = t->c->base + offset <= (const char *)from;
    for (uint64_t n; first < end; first += upwards ? n : 0, end -= upwards ? 0 : n) {
        n = min_u64(end - first, PIECE);
        uint64_t word = upwards ? first : end - n;
        copy_kinds(t->c, piece, (const char *)from + (word * sizeof(uint64_t) - offset), n);
        memcpy(redo_kinds(t, 0) + word, piece, n);
    }
    /* Parts of words are data. */
    if (offset % sizeof(uint64_t))
        set_kind(t, offset, 1, KIND_DATA);
    if ((offset + bytes) % sizeof(uint64_t) && bytes)
        set_kind(t, offset + bytes - 1, 1, KIND_DATA);
}
