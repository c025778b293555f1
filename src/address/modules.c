/*
 * The table of modules. modules_load() checks each entry's seals, its range, and L1, and then looks for the
 * module in this process. modules_adopt() adds a module, which takes an entry of the table. Entries are
 * journaled words. So an entry becomes durable with the commit that found the first pointer, and a rollback
 * removes it: modules_roll_back().
 *
 * A `translated` container gives a module that is not loaded an address that no processor takes. So its
 * pointers stay apart from all others. There are at most 30 entries, and each search looks at all of them.
 */
#define _GNU_SOURCE
#include "address/modules.h"

#include "container/contents.h"

#include "base/error.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* ---- the table ------------------------------------------------------------------------------- */

#define TEXT_BYTES 7 /* bytes of text in a word */

static void get_text(const uint64_t *words, uint32_t count, char *text)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t word = seal_payload(words[i]);
        memcpy(text + i * TEXT_BYTES, &word, TEXT_BYTES);
    }
    text[count * TEXT_BYTES] = 0;
    pm__make_printable(text);
}

static void put_text(uint64_t *words, uint32_t count, const char *text)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < count; i++) {
        uint64_t word = 0, at = min_u64(i * TEXT_BYTES, size);
        memcpy(&word, text + at, min_u64(size - at, TEXT_BYTES));
        words[i] = seal(word);
    }
}

static const struct format_module *entry(const struct modules *m, uint32_t i)
{
    return (const struct format_module *)home_word(m->c, FORMAT_MODULES) + i;
}

static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
    return a < b + b_size && b < a + a_size;
}

/* True if another module of the table has some of these home addresses. */
static bool are_taken(const struct modules *m, uint64_t home, uint64_t size)
{
    for (uint32_t i = 0; i < m->end; i++)
        if (overlap(home, size, m->module[i].home, m->module[i].size))
            return true;
    return overlap(home, size, ARENA_HINT, ARENA_SIZE);
}

static bool entry_is_valid(const struct modules *m, const struct format_module *e)
{
    const uint64_t limit = UINT64_C(1) << 47;
    uint64_t words[sizeof *e / sizeof(uint64_t)];
    memcpy(words, e, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!seal_is_valid(words[i]))
            return false;
    uint64_t base = seal_payload(e->base), size = seal_payload(e->size);
    if (e->id == 0)
        return base == 0 && size == 0;
    return base > 0 && base < limit && size > 0 && size < limit && base % PM_PAGE == 0 &&
           size % PM_PAGE == 0 && !are_taken(m, base, size);
}

/* The view's address of module `i`, if the module is not loaded. No processor takes this address. The
 * distances are so large that no module fits into another's place. */
static uint64_t nowhere(uint32_t i)
{
    return (UINT64_C(1) << 62) + ((uint64_t)i << 48);
}

/* Read entry `i` of the table. */
static void load(struct modules *m, uint32_t i)
{
    const struct format_module *e = entry(m, i);
    struct module *k = &m->module[i];
    if (e->id == 0)
        return;
    *k = (struct module){
        .id = seal_payload(e->id), .home = seal_payload(e->base), .size = seal_payload(e->size)};
    m->end = i + 1;
    const struct loaded *l = loaded_with_id(&m->list, k->id);
    k->loaded = l && l->size == k->size;
    k->view = k->loaded ? l->start : m->c->translated ? nowhere(i) : k->home;
    m->above = min_u64(m->above, k->view);
    if (!k->loaded && m->unused[i] == k->id)
        modules_give_up(m, i);
}

int modules_load(struct modules *m)
{
    m->region = (struct journal_region){.offset = FORMAT_MODULES, .words = MODULES_WORDS};
    memset(m->module, 0, sizeof m->module);
    m->end = 0;
    m->above = loaded_above(&m->list);
    for (uint32_t i = 0; i < FORMAT_MODULES_MAX; i++) {
        if (!entry_is_valid(m, entry(m, i)))
            return container_damaged(m->c, FORMAT_MODULES + i * sizeof(struct format_module),
                                     "an entry of the table of modules is damaged");
        load(m, i);
    }
    return 0;
}

/* Change entry `i`, while the handler may be reading it. */
static void set(struct modules *m, uint32_t i, struct module module)
{
    sigset_t saved;
    lock_acquire_masked(m->page_lock, &saved);
    m->module[i] = module;
    m->end = (uint32_t)max_u64(m->end, i + 1);
    lock_release_masked(m->page_lock, &saved);
}

static bool is_committed(const struct modules *m, uint32_t i)
{
    const struct format_module *e = entry(m, i);
    const struct module *k = &m->module[i];
    return k->id == seal_payload(e->id) && k->home == seal_payload(e->base);
}

void modules_roll_back(struct modules *m)
{
    for (uint32_t i = 0; i < m->end; i++)
        if (m->module[i].size > 0 && !is_committed(m, i))
            set(m, i, (struct module){.size = 0});
}

void modules_give_up(struct modules *m, uint32_t module)
{
    m->unused[module] = m->module[module].id;
    m->module[module] = (struct module){.size = 0};
}

bool modules_are_displaced(struct modules *m)
{
    for (uint32_t i = 0; i < m->end; i++) {
        const struct module *k = &m->module[i];
        if (k->loaded ? k->view != k->home : loaded_overlap(&m->list, k->home, k->size))
            return true;
    }
    return false;
}

uint32_t modules_missing(const struct modules *m, uint32_t from)
{
    while (from < m->end && (m->module[from].size == 0 || m->module[from].loaded))
        from++;
    return from;
}

static int report(const struct modules *m, uint32_t module, int error, const char *what)
{
    uint64_t offset = m->module[module].needed_at;
    const struct format_module *e = entry(m, module);
    enum { NAME = sizeof e->name / sizeof *e->name, SYMBOL = sizeof e->symbol / sizeof *e->symbol };
    char name[NAME * TEXT_BYTES + 1], symbol[SYMBOL * TEXT_BYTES + 1] = "", object[OBJECT_TEXT];
    uint64_t byte = *home_word(m->c, offset) - m->module[module].home;
    get_text(e->name, NAME, name);
    if (byte == seal_payload(e->first)) /* only the first pointer's target has a symbol */
        get_text(e->symbol, SYMBOL, symbol);
    contents_describe(m->c, offset, " in ", object);
    return pm__fail_at(m->c->path, offset, error,
                       "the pointer there%s leads to byte %#" PRIx64 " of %s%s%s%s, %s", object,
                       byte, name, symbol[0] ? " (" : "", symbol, symbol[0] ? ")" : "", what);
}

int modules_report(const struct modules *m, uint32_t module)
{
    return report(m, module, ENOEXEC,
                  "of which this very build is not loaded (addr2line of that build tells what is "
                  "there); load it before pm_open(), or open with module_pointers = "
                  "PM_MODULES_MISSING_OK and correct the pointers");
}

int modules_refuse(const struct modules *m, uint32_t module)
{
    return report(m, module, EPERM,
                  "which module_pointers = PM_MODULES_REFUSE forbids; if you trust the file, open "
                  "it with PM_MODULES_KEEP");
}

/* ---- a module more --------------------------------------------------------------------------- */

/* Choose the address by which home's pointers mean the module. It is the module's own address, if no
 * other module's pointers use it. 0: another module's do, and in a container that is not `translated` no
 * other address will do. */
static uint64_t choose_home(const struct modules *m, const struct loaded *l)
{
    if (!are_taken(m, l->start, l->size))
        return l->start;
    if (!m->c->translated)
        return 0;
    uint64_t home = ARENA_HINT + ARENA_SIZE; /* behind all modules of the table */
    for (uint32_t i = 0; i < m->end; i++)
        home = max_u64(home, m->module[i].home + m->module[i].size);
    return home;
}

static void put_entry(struct modules *m, uint32_t at, const struct format_module *e)
{
    enum { WORDS = sizeof *e / sizeof(uint64_t) };
    uint64_t words[WORDS];
    memcpy(words, e, sizeof words);
    for (uint32_t i = 0; i < WORDS; i++)
        journal_set(m->journal, &m->region, at * WORDS + i, words[i]);
}

static void record(struct modules *m, uint32_t at, uint64_t home, uint64_t value,
                   const struct loaded *l)
{
    struct format_module e = {.id = seal(l->id),
                              .base = seal(home),
                              .size = seal(l->size),
                              .first = seal(value - l->start)};
    Dl_info what;
    if (dladdr((void *)value, &what) == 0)
        what = (Dl_info){.dli_fname = ""};
    const char *slash = strrchr(what.dli_fname, '/');
    put_text(e.name, sizeof e.name / sizeof *e.name, slash ? slash + 1 : what.dli_fname);
    put_text(e.symbol, sizeof e.symbol / sizeof *e.symbol, what.dli_sname ? what.dli_sname : "");
    /* Unused modules might share addresses with this one. */
    for (uint32_t i = 0; i < FORMAT_MODULES_MAX; i++)
        if (m->unused[i] && m->module[i].size == 0)
            put_entry(m, i, &(struct format_module){.id = 0});
    put_entry(m, at, &e);
    set(m, at,
        (struct module){
            .id = l->id, .home = home, .size = l->size, .view = l->start, .loaded = true});
}

/* True if the table has this module, and it is still where the table found it. */
static bool is_known(const struct modules *m, const struct loaded *l)
{
    for (uint32_t i = 0; i < m->end; i++)
        if (m->module[i].view == l->start && m->module[i].size == l->size &&
            m->module[i].id == l->id)
            return true;
    return false;
}

/* True if another module was at this address when pointers into it were made. These pointers mean nothing
 * now. */
static bool replaces(const struct modules *m, const struct loaded *l)
{
    for (uint32_t i = 0; i < m->end; i++)
        if (overlap(l->start, l->size, m->module[i].view, m->module[i].size))
            return true;
    return false;
}

bool modules_may_adopt(struct modules *m, uint64_t value)
{
    return loaded_at(&m->list, value) || modules_know(m, value);
}

int modules_adopt(struct modules *m, uint64_t value)
{
    const struct loaded *l = loaded_at(&m->list, value);
    if (!l)
        return modules_know(m, value); /* true if the module is not loaded */
    if (is_known(m, l))
        return 1;
    if (replaces(m, l))
        return pm__fail(EINVAL,
                        "%s: a library was unloaded into which pointers lead, and another, into "
                        "which %#" PRIx64 " leads, is where it was; correct the pointers into the "
                        "first, and commit, before any into the second are stored; then open the "
                        "container anew",
                        m->c->path, value);
    uint32_t at = 0;
    while (at < FORMAT_MODULES_MAX && m->module[at].size > 0)
        at++;
    uint64_t home = choose_home(m, l);
    if (at == FORMAT_MODULES_MAX || home == 0)
        return pm__fail_at(
            m->c->path, FORMAT_MODULES, ENOSPC,
            "no room in the table of modules for the one into which the pointer %#" PRIx64 " leads",
            value);
    record(m, at, home, value, l);
    return 1;
}
