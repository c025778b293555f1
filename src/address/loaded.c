/*
 * Lists the modules by dl_iterate_phdr(3), and hashes the build-id that it finds in a module's ELF notes.
 * The dynamic linker counts the modules that have come and gone. While both counts stay as they were, the
 * list is current, and asking takes one step of the iteration. A search is linear in the loaded modules.
 */
#define _GNU_SOURCE
#include "address/loaded.h"

#include "base/bits.h"
#include "base/checksum.h"
#include "base/seal.h"

#include <elf.h>
#include <link.h>
#include <string.h>

/* A hash of the module's build-id; 0 if the module has none. */
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

static struct loaded look(const struct dl_phdr_info *info)
{
    uint64_t start = UINT64_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD)
            continue;
        start = min_u64(start, info->dlpi_addr + segment->p_vaddr);
        end = max_u64(end, info->dlpi_addr + segment->p_vaddr + segment->p_memsz);
    }
    start = align_down(start, PM_PAGE);
    return (struct loaded){build_id(info), start, align_up(end, PM_PAGE) - start};
}

static int add(struct dl_phdr_info *info, size_t size, void *context)
{
    struct loaded_list *list = context;
    (void)size;
    list->adds = info->dlpi_adds;
    list->subs = info->dlpi_subs;
    struct loaded l = look(info);
    list->is_cut |= l.id != 0 && list->count == LOADED_MAX;
    if (l.id != 0 && list->count < LOADED_MAX)
        list->module[list->count++] = l;
    return 0;
}

/* Called for the first module only. Its counters tell whether any module has come or gone. */
static int is_current(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct loaded_list *list = context;
    (void)size;
    return info->dlpi_adds == list->adds && info->dlpi_subs == list->subs ? 1 : -1;
}

/* Bring the list up to date, if modules have come or gone. */
static void refresh(struct loaded_list *list)
{
    if (list->adds > 0 && dl_iterate_phdr(is_current, list) == 1)
        return;
    list->count = 0;
    list->is_cut = false;
    dl_iterate_phdr(add, list);
}

/* What is looked for: a module that overlaps a range, or has an id. */
struct search {
    uint64_t start, size, id;
    struct loaded found;
};

static bool fits(const struct search *s, const struct loaded *l)
{
    return s->id != 0 ? l->id == s->id : l->start < s->start + s->size && s->start < l->start + l->size;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *s = context;
    (void)size;
    s->found = look(info);
    return s->found.id != 0 && fits(s, &s->found) ? 1 : 0;
}

static const struct loaded *search(struct loaded_list *list, struct search s)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (fits(&s, &list->module[i]))
            return &list->module[i];
    if (!list->is_cut || dl_iterate_phdr(look_at, &s) == 0)
        return NULL;
    list->other = s.found;
    return &list->other;
}

/* The dynamic linker lets the kernel place libraries, and the kernel places none below this address. The
 * program itself may be there, and stays. */
#define LIBRARIES_BEGIN (UINT64_C(1) << 32)

const struct loaded *loaded_at(struct loaded_list *list, uint64_t address)
{
    if (address >= LIBRARIES_BEGIN || list->adds == 0)
        refresh(list);
    return search(list, (struct search){.start = address, .size = 1});
}

const struct loaded *loaded_with_id(struct loaded_list *list, uint64_t id)
{
    refresh(list);
    return search(list, (struct search){.id = id});
}

bool loaded_overlap(struct loaded_list *list, uint64_t start, uint64_t size)
{
    return search(list, (struct search){.start = start, .size = size}) != NULL;
}

uint64_t loaded_above(struct loaded_list *list)
{
    refresh(list);
    uint64_t lowest = LIBRARIES_BEGIN;
    for (uint32_t i = 0; i < list->count; i++)
        lowest = min_u64(lowest, list->module[i].start);
    return lowest;
}
