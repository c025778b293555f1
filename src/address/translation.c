/*
 * The first access to a page comes to translation_touch():
 *
 *   1  If too many pages have memory, a clock's hand takes the memory of pages that have only been read.
 *   2  The neighbourhood is chosen: 8 pages at a stretch's first fault, then twice as many each time.
 *   3  Each run of pages that are not TRANSLATED is copied from home to a buffer, 64 pages at a time.
 *   4  In the buffer the words that home's map names are translated. The buffer is written to the view's
 *      memory by its descriptor.
 *   5  mprotect(2) makes the run readable.
 *
 * A word of the map that is damaged ends the process, since no wrong pointer may reach the program.
 */
#define _GNU_SOURCE
#include "address/translation.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/panic.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A stretch has STRETCH pages. Its first fault makes a neighbourhood of LEAST pages; each further fault
 * doubles the neighbourhood. */
#define STRETCH     512u
#define LEAST       8u
#define TOUCHES_MAX 6u /* LEAST << TOUCHES_MAX is a whole stretch */

/* Pages made at once: they fit into the processor's second-level cache. */
#define STAGE_PAGES 64u

/* Pages that the kernel enters in its tables at one fault for a load. */
#define FAULT_AROUND 16u

/* Memory is given back until 1/FORGET_SHARE below the limit, so that not every fault needs to do it. */
#define FORGET_SHARE 8
/* Memory is given back once in so many touches: one instruction may need several pages at once. (A gather of
 * AVX-512 needs 32.) */
#define PATIENCE 64

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ 22
#endif

static_assert(LEAST << TOUCHES_MAX == STRETCH, "the largest neighbourhood is a stretch");

static uint64_t stretches(const struct container *c)
{
    return divide_up(c->max_size >> PM_PAGE_SHIFT, STRETCH);
}

struct translation *translation_new(struct pages *pages, const struct modules *modules,
                                    const struct pointer_map *map, uint64_t private_max)
{
    struct container *c = pages->c;
    struct translation *m = calloc(1, sizeof *m);
    if (m) {
        *m = (struct translation){
            .c = c,
            .pages = pages,
            .modules = modules,
            .map = map,
            /* A pointer to the container's first byte leads to no object; a pointer one past the last
             * byte may. */
            .home = c->pointers_base + 1,
            .view = (uintptr_t)c->base + 1,
            .maps = calloc(format_map_groups(c->segments_max), sizeof *m->maps),
            .maps_are_stale = true,
            .touches = calloc(stretches(c), 1),
            .stage = malloc(STAGE_PAGES << PM_PAGE_SHIFT),
            .private_max = private_max >> PM_PAGE_SHIFT,
        };
        if (m->maps && m->touches && m->stage)
            return m;
        translation_unload(m);
    }
    pm__fail_system(ENOMEM, "%s: no memory to open it elsewhere than its pointers mean", c->path);
    return NULL;
}

void translation_unload(struct translation *m)
{
    if (!m)
        return;
    free(m->maps);
    free(m->touches);
    free(m->stage);
    free(m);
}

/* ---- from home to the view ------------------------------------------------------------------- */

static void find_maps(struct translation *m)
{
    memset(m->maps, 0, format_map_groups(m->c->segments_max) * sizeof *m->maps);
    for (uint32_t i = 0, n = atomic_load(&m->c->segments); i < n; i++) {
        uint64_t word = home_table(m->c)[i];
        if (segment_kind(word) == SEGMENT_MAP)
            m->maps[segment_argument(word)] = i;
    }
    m->maps_are_stale = false;
}

void translation_note(struct translation *m, const struct record_word *words, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        m->maps_are_stale |= is_table_word(m->c, words[i].offset);
}

/* Mask of the words that home's map says are pointers, from offset `index` * MAP_WORD_BYTES on. */
static uint64_t mapped_in_home(const struct translation *m, uint64_t index)
{
    const struct container *c = m->c;
    uint64_t per_map = c->segment_size / sizeof(uint64_t);
    uint64_t segment = m->maps[index / per_map];
    if (segment == 0)
        return 0;
    uint64_t offset = (segment << c->segment_shift) + index % per_map * sizeof(uint64_t);
    uint64_t word = *home_word(c, offset);
    if (!seal_is_valid(word))
        panic(c->path, offset,
              "a word of the pointer map is damaged, and libpm cannot adjust pointers without it. "
              "`pm check` finds such damage before a program does; restore the file from a "
              "backup. Opened where its own addresses are free, the container can still be read",
              0);
    return seal_payload(word);
}

/* Translate pointers to the view's addresses: the mapped words among home's words from `offset` on, copied
 * to `words`. */
static void translate_words(struct translation *m, uint64_t offset, uint64_t bytes, uint64_t *words)
{
    uint64_t moved = 0;
    for (uint64_t index = offset / MAP_WORD_BYTES; index * MAP_WORD_BYTES < offset + bytes; index++)
        for (uint64_t left = mapped_in_home(m, index); left; left &= left - 1) {
            uint64_t at = index * MAP_WORD_BYTES + (uint64_t)__builtin_ctzll(left) * sizeof *words;
            if (at - offset >= bytes)
                continue;
            uint64_t *word = &words[(at - offset) / sizeof *words], before = *word;
            *word = translate_to_view(m, before);
            moved += *word != before;
        }
    m->c->pointers_moved += moved;
}

/* Copy a range of home, in whole words, in the form that the view has. */
static void copy(struct translation *m, uint64_t offset, uint64_t bytes, char *to)
{
    const struct container *c = m->c;
    if (m->maps_are_stale)
        find_maps(m);
    memcpy(to, c->home + offset, bytes);
    for (uint64_t end = offset + bytes, n; offset < end; offset += n, to += n) {
        n = min_u64(end - offset, c->segment_size - offset % c->segment_size);
        if (segment_is_data(home_table(c)[offset >> c->segment_shift]))
            translate_words(m, offset, n, (uint64_t *)to);
    }
}

/* Other threads may be reading. So it stores only words that change, and never home's value of a pointer. */
void translation_restore(struct translation *m, uint64_t offset, uint64_t bytes)
{
    const uint64_t *from = (const uint64_t *)m->stage;
    uint64_t *to = (uint64_t *)(m->c->base + offset);
    copy(m, offset, bytes, m->stage);
    for (uint64_t i = 0; i < bytes / sizeof *to; i++)
        if (to[i] != from[i])
            __atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static bool is_translated(const struct translation *m, uint32_t page)
{
    return m->pages->flags[page] & PAGE_TRANSLATED;
}

/* Make pages of the view from home. None of them may be TRANSLATED. */
static int make(struct translation *m, uint32_t first, uint32_t count)
{
    int error = 0;
    for (uint32_t n; count > 0 && error == 0; first += n, count -= n) {
        n = (uint32_t)min_u64(count, STAGE_PAGES);
        uint64_t offset = (uint64_t)first << PM_PAGE_SHIFT, bytes = (uint64_t)n << PM_PAGE_SHIFT;
        copy(m, offset, bytes, m->stage);
        error = file_write(m->c->view_fd, m->stage, bytes, offset);
        if (error == -ENOSPC) /* the kernel's error when the memory of the view runs out */
            error = -ENOMEM;
        for (uint32_t i = 0; i < n && error == 0; i++)
            page_set(m->pages, first + i, PAGE_TRANSLATED);
        m->pages->private_count += error == 0 ? n : 0;
    }
    return error;
}

/* If too much memory is in use, give back the memory of pages that have only been read. */
static void forget_some(struct translation *m)
{
    m->patience -= m->patience > 0;
    if (m->pages->private_count <= m->private_max || m->patience > 0)
        return;
    m->patience = PATIENCE;
    uint64_t keep = m->private_max - m->private_max / FORGET_SHARE;
    uint32_t end = (uint32_t)(container_bytes(m->c) >> PM_PAGE_SHIFT);
    for (uint32_t left = end; left > 0 && m->pages->private_count > keep;) {
        uint32_t first = m->hand < end ? m->hand : 0, run = 0;
        while (first + run < end && run < left && run < STRETCH &&
               (m->pages->flags[first + run] &
                (PAGE_TRANSLATED | PAGE_PRIVATE | PAGE_OPEN | PAGE_LISTED)) == PAGE_TRANSLATED)
            run++;
        if (run > 0 && translation_forget(m, first, run) != 0)
            return;
        m->hand = first + max_u64(run, 1);
        left -= (uint32_t)max_u64(run, 1);
    }
}

int translation_touch(struct translation *m, uint32_t page)
{
    struct pages *p = m->pages;
    if (is_translated(m, page)) /* made by another thread, or the kernel refused then */
        return p->flags[page] & PAGE_OPEN ? 0 : pages_close(p, page, 1);
    forget_some(m);
    uint8_t *touches = &m->touches[page / STRETCH];
    uint32_t wanted = LEAST << *touches, first = page / wanted * wanted;
    uint32_t end = (uint32_t)min_u64(first + wanted, container_bytes(m->c) >> PM_PAGE_SHIFT);
    *touches += *touches < TOUCHES_MAX;
    for (uint32_t run = 0; first < end; first += run + 1, run = 0) {
        while (first + run < end && !is_translated(m, first + run))
            run++;
        if (run == 0)
            continue;
        int error = make(m, first, run);
        if (error == 0)
            error = pages_close(p, first, run);
        if (error != 0)
            return error;
        /* Let the kernel enter all pages in its tables in one call, not by a fault for every few. */
        if (run > FAULT_AROUND)
            madvise(m->c->base + ((uint64_t)first << PM_PAGE_SHIFT), (size_t)run << PM_PAGE_SHIFT,
                    MADV_POPULATE_READ);
    }
    return 0;
}

int translation_forget(struct translation *m, uint32_t first, uint32_t count)
{
    UNCANCELLED;
    int error = pages_hide(m->pages, first, count);
    if (error != 0)
        return error;
    /* If this fails, the pages keep their memory until they are written again. */
    (void)fallocate(m->c->view_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)first << PM_PAGE_SHIFT, (off_t)count << PM_PAGE_SHIFT);
    for (uint32_t page = first; page < first + count; page++) {
        m->pages->private_count -= is_translated(m, page);
        page_clear(m->pages, page, PAGE_TRANSLATED | PAGE_PRIVATE);
    }
    memset(&m->touches[first / STRETCH], 0, (first + count - 1) / STRETCH - first / STRETCH + 1);
    return 0;
}

/* ---- from the view to home ------------------------------------------------------------------- */

const char *translation_of_line(const struct translation *m, uint64_t line, char image[PM_LINE])
{
    uint64_t words[PM_LINE_WORDS];
    memcpy(words, m->c->base + line * PM_LINE, PM_LINE);
    for (unsigned left = mapped_in_line(m->map, line); left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(left);
        words[i] = translate_to_home(m, words[i]);
    }
    return memcpy(image, words, PM_LINE);
}
