#define _GNU_SOURCE
#include "txn/modules.h"

#include "base/checksum.h"
#include "base/error.h"
#include "txn/txn.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <string.h>

/* ---- what this process has loaded ------------------------------------------------------------ */

struct loaded {
    uint64_t wanted_id, wanted_address; /* the one that is not 0 */
    uint64_t id, start, size;
    char name[40]; /* of its file, or as much as fits */
};

/* Of a build-id; 0 if the module has none. */
static uint64_t build_id(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE)
            continue;
        uint64_t align = segment->p_align == 8 ? 8 : 4, at = 0;
        const char *notes = (const char *)(info->dlpi_addr + segment->p_vaddr);
        while (at + sizeof(ElfW(Nhdr)) <= segment->p_memsz) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(notes + at);
            uint64_t name = at + sizeof *note, bytes = align_up(name + note->n_namesz, align);
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof ELF_NOTE_GNU &&
                memcmp(notes + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0)
                return seal_payload(checksum(notes + bytes, note->n_descsz, 0)) | 1;
            at = align_up(bytes + note->n_descsz, align);
        }
    }
    return 0;
}

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
    struct loaded *l = context;
    uint64_t start = UINT64_MAX, end = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD)
            continue;
        start = min_u64(start, info->dlpi_addr + segment->p_vaddr);
        end = max_u64(end, info->dlpi_addr + segment->p_vaddr + segment->p_memsz);
    }
    start = align_down(start, PM_PAGE);
    end = align_up(end, PM_PAGE);
    if (l->wanted_address && l->wanted_address - start >= end - start)
        return 0;
    uint64_t id = build_id(info);
    if (id == 0 || (l->wanted_id && l->wanted_id != id))
        return 0;
    l->id = id;
    l->start = start;
    l->size = end - start;
    const char *path = info->dlpi_name[0] ? info->dlpi_name : program_invocation_name;
    const char *slash = strrchr(path, '/');
    strncpy(l->name, slash ? slash + 1 : path, sizeof l->name - 1);
    return 1;
}

static bool find_by_id(struct loaded *l, uint64_t id)
{
    *l = (struct loaded){.wanted_id = id};
    return dl_iterate_phdr(look, l);
}

static bool find_by_address(struct loaded *l, uint64_t address)
{
    *l = (struct loaded){.wanted_address = address};
    return dl_iterate_phdr(look, l);
}

static int list(struct dl_phdr_info *info, size_t size, void *context)
{
    struct modules *m = context;
    struct loaded l = {.name = ""};
    m->adds = info->dlpi_adds;
    m->subs = info->dlpi_subs;
    if (look(info, size, &l) == 0)
        return 0;
    if (m->loaded_count < LOADED_MAX)
        m->loaded[m->loaded_count] = (struct loaded_range){l.start, l.size};
    m->loaded_count++;
    return 0;
}

/* Whether the list is what is loaded now. */
static int compare(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct modules *m = context;
    (void)size;
    return info->dlpi_adds == m->adds && info->dlpi_subs == m->subs ? 1 : 2;
}

static void list_loaded(struct modules *m)
{
    if (m->loaded_count > 0 && dl_iterate_phdr(compare, m) == 1)
        return;
    m->loaded_count = 0;
    dl_iterate_phdr(list, m);
}

bool modules_may_have(struct modules *m, uint64_t value)
{
    list_loaded(m);
    for (uint32_t i = 0; i < m->loaded_count && i < LOADED_MAX; i++)
        if (value - m->loaded[i].start < m->loaded[i].size)
            return true;
    return m->loaded_count > LOADED_MAX;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define TEXT_BYTES 7 /* of a word */

static void get_text(const uint64_t *words, uint32_t count, char *text)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t word = seal_payload(words[i]);
        memcpy(text + i * TEXT_BYTES, &word, TEXT_BYTES);
    }
    text[count * TEXT_BYTES] = 0;
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

static const struct format_module *entry(const struct txn *t, uint32_t i)
{
    return (const struct format_module *)home_word(t->c, FORMAT_MODULES) + i;
}

static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
    return a < b + b_size && b < a + a_size;
}

/* Whether some addresses of home are another module's. */
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

/* Addresses that no processor takes, where module `i` would not fit into another. */
static uint64_t nowhere(uint32_t i)
{
    return (UINT64_C(1) << 62) + ((uint64_t)i << 48);
}

int modules_load(struct txn *t)
{
    struct modules *m = &t->modules;
    uint64_t unused[FORMAT_MODULES_MAX];
    memcpy(unused, m->unused, sizeof unused);
    *m = (struct modules){.region = {.offset = FORMAT_MODULES, .words = MODULES_WORDS}};
    list_loaded(m);
    for (uint32_t i = 0; i < FORMAT_MODULES_MAX; i++) {
        const struct format_module *e = entry(t, i);
        if (!entry_is_valid(m, e))
            return pm__fail(EBADMSG,
                            "%s: offset %" PRIu64 ": an entry of the table of modules is damaged; "
                            "restore the file from a backup",
                            t->c->path, FORMAT_MODULES + i * sizeof *e);
        if (e->id == 0)
            continue;
        struct loaded l;
        struct module *k = &m->module[i];
        *k = (struct module){.id = seal_payload(e->id),
                             .home = seal_payload(e->base),
                             .size = seal_payload(e->size)};
        m->end = i + 1;
        k->loaded = find_by_id(&l, k->id) && l.size == k->size;
        k->view = k->loaded ? l.start : t->c->moved ? nowhere(i) : k->home;
        if (!k->loaded && unused[i] == k->id)
            modules_give_up(m, i);
    }
    return 0;
}

void modules_give_up(struct modules *m, uint32_t module)
{
    m->unused[module] = m->module[module].id;
    m->module[module] = (struct module){.size = 0};
}

bool modules_are_displaced(const struct modules *m)
{
    for (uint32_t i = 0; i < m->end; i++) {
        const struct module *k = &m->module[i];
        if (k->loaded && k->view != k->home)
            return true;
        for (uint32_t j = 0; !k->loaded && j < m->loaded_count && j < LOADED_MAX; j++)
            if (overlap(k->home, k->size, m->loaded[j].start, m->loaded[j].size))
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

int modules_report(const struct txn *t, uint32_t module, uint64_t offset)
{
    const struct format_module *e = entry(t, module);
    enum { NAME = sizeof e->name / sizeof *e->name, SYMBOL = sizeof e->symbol / sizeof *e->symbol };
    char name[NAME * TEXT_BYTES + 1], symbol[SYMBOL * TEXT_BYTES + 1] = "", object[OBJECT_TEXT];
    uint64_t byte = *home_word(t->c, offset) - t->modules.module[module].home;
    get_text(e->name, NAME, name);
    if (byte == seal_payload(e->first)) /* of others nobody knows what was there */
        get_text(e->symbol, SYMBOL, symbol);
    txn_describe_object(t, offset, " in ", object);
    return pm__fail(
        ENOEXEC,
        "%s: offset %" PRIu64 ": the pointer there%s leads to byte %#" PRIx64
        " of %s%s%s%s, of which "
        "this very build is not loaded (addr2line of that build tells what is there); load it "
        "before "
        "pm_open(), or open with foreign_pointers = PM_FOREIGN_IGNORE and correct the pointers",
        t->c->path, offset, object, byte, name, symbol[0] ? " (" : "", symbol,
        symbol[0] ? ")" : "");
}

/* ---- a module more --------------------------------------------------------------------------- */

/* Where home's pointers are to mean it: where it is, if nobody else's do. 0: they must, and do. */
static uint64_t choose_home(const struct txn *t, const struct loaded *l)
{
    const struct modules *m = &t->modules;
    if (!are_taken(m, l->start, l->size))
        return l->start;
    if (!t->moved)
        return 0;
    uint64_t home = ARENA_HINT + ARENA_SIZE; /* behind all that there are */
    for (uint32_t i = 0; i < m->end; i++)
        home = max_u64(home, m->module[i].home + m->module[i].size);
    return home;
}

static void put_entry(struct txn *t, uint32_t at, const struct format_module *e)
{
    enum { WORDS = sizeof *e / sizeof(uint64_t) };
    uint64_t words[WORDS];
    memcpy(words, e, sizeof words);
    for (uint32_t i = 0; i < WORDS; i++)
        journal_set(&t->journal, &t->modules.region, at * WORDS + i, words[i]);
}

static void record(struct txn *t, uint32_t at, uint64_t home, uint64_t value,
                   const struct loaded *l)
{
    struct format_module e = {.id = seal(l->id),
                              .base = seal(home),
                              .size = seal(l->size),
                              .first = seal(value - l->start)};
    Dl_info symbol;
    put_text(e.name, sizeof e.name / sizeof *e.name, l->name);
    if (dladdr((void *)value, &symbol) && symbol.dli_sname)
        put_text(e.symbol, sizeof e.symbol / sizeof *e.symbol, symbol.dli_sname);
    for (uint32_t i = 0; i < FORMAT_MODULES_MAX; i++) /* they might have addresses in common */
        if (t->modules.unused[i] && t->modules.module[i].size == 0)
            put_entry(t, i, &(struct format_module){.id = 0});
    put_entry(t, at, &e);
    t->modules.module[at] = (struct module){
        .id = l->id, .home = home, .size = l->size, .view = l->start, .loaded = true};
    t->modules.end = (uint32_t)max_u64(t->modules.end, at + 1);
}

/* The module of the table that has this address and was found where it is now; `end` if none. */
static uint32_t known(const struct txn *t, const struct loaded *l)
{
    const struct modules *m = &t->modules;
    uint32_t i = 0;
    while (i < m->end && !(m->module[i].view == l->start && m->module[i].size == l->size &&
                           m->module[i].id == l->id))
        i++;
    return i;
}

/* Whether another module was there when pointers into it were made, which mean nothing now. */
static bool replaces(const struct modules *m, const struct loaded *l)
{
    for (uint32_t i = 0; i < m->end; i++)
        if (overlap(l->start, l->size, m->module[i].view, m->module[i].size))
            return true;
    return false;
}

int modules_adopt(struct txn *t, uint64_t value)
{
    struct modules *m = &t->modules;
    struct loaded l;
    if (!find_by_address(&l, value))
        return modules_know(m, value); /* of one that is not loaded */
    if (known(t, &l) < m->end)
        return 1;
    if (replaces(m, &l))
        return pm__fail(
            EINVAL,
            "%s: a library was unloaded into which pointers lead, and %s, into which "
            "one leads too, is where it was; correct the pointers into the first, and "
            "commit, before any into the second are stored; then open the container anew",
            t->c->path, l.name);
    uint32_t at = 0;
    while (at < FORMAT_MODULES_MAX && m->module[at].size > 0)
        at++;
    uint64_t home = choose_home(t, &l);
    if (at == FORMAT_MODULES_MAX || home == 0)
        return pm__fail(ENOSPC,
                        "%s: offset %" PRIu64
                        ": no room in the table of modules for %s, into which "
                        "a pointer leads",
                        t->c->path, (uint64_t)FORMAT_MODULES, l.name);
    record(t, at, home, value, &l);
    return 1;
}
