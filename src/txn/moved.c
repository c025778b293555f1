#define _GNU_SOURCE
#include "txn/moved.h"

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

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ 22
#endif

static_assert(LEAST << TOUCHES_MAX == STRETCH, "the largest neighbourhood is a stretch");

static uint64_t stretches(const struct container *c)
{
    return divide_up(c->max_size >> PM_PAGE_SHIFT, STRETCH);
}

int moved_load(struct txn *t, uint64_t copies_max)
{
    struct container *c = t->c;
    struct moved *m = calloc(1, sizeof *m);
    t->moved = m;
    if (m) {
        *m = (struct moved){
            /* A pointer to the container's first byte leads to no object; a pointer one past the last
             * byte may. */
            .home = c->pointers_base + 1,
            .view = (uintptr_t)c->base + 1,
            .maps = calloc(format_map_groups(c->segments_max), sizeof *m->maps),
            .maps_are_stale = true,
            .touches = calloc(stretches(c), 1),
            .stage = malloc(STAGE_PAGES << PM_PAGE_SHIFT),
            .copies_max = copies_max >> PM_PAGE_SHIFT,
        };
        if (m->maps && m->touches && m->stage)
            return 0;
    }
    return pm__fail_system(ENOMEM, "%s: no memory to open it elsewhere than its pointers mean",
                           c->path);
}

void moved_unload(struct txn *t)
{
    struct moved *m = t->moved;
    if (!m)
        return;
    free(m->maps);
    free(m->touches);
    free(m->stage);
    free(m);
    t->moved = NULL;
}

/* ---- from home to the view ------------------------------------------------------------------- */

static void find_maps(struct txn *t)
{
    struct moved *m = t->moved;
    memset(m->maps, 0, format_map_groups(t->c->segments_max) * sizeof *m->maps);
    for (uint32_t i = 0, n = atomic_load(&t->c->segments); i < n; i++) {
        uint64_t word = home_table(t->c)[i];
        if (segment_kind(word) == SEGMENT_MAP)
            m->maps[segment_argument(word)] = i;
    }
    m->maps_are_stale = false;
}

void moved_note(struct txn *t, const struct record_word *words, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        t->moved->maps_are_stale |= is_table_word(t->c, words[i].offset);
}

/* Mask of the words that home's map says are pointers, from offset `index` * MAP_WORD_BYTES on. */
static uint64_t mapped_in_home(const struct txn *t, uint64_t index)
{
    const struct container *c = t->c;
    uint64_t per_map = c->segment_size / sizeof(uint64_t);
    uint64_t segment = t->moved->maps[index / per_map];
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

/* Relocate pointers to the view's addresses: the mapped words among home's words from `offset` on, copied
 * to `words`. */
static void move_words(struct txn *t, uint64_t offset, uint64_t bytes, uint64_t *words)
{
    uint64_t moved = 0;
    for (uint64_t index = offset / MAP_WORD_BYTES; index * MAP_WORD_BYTES < offset + bytes; index++)
        for (uint64_t left = mapped_in_home(t, index); left; left &= left - 1) {
            uint64_t at = index * MAP_WORD_BYTES + (uint64_t)__builtin_ctzll(left) * sizeof *words;
            if (at - offset >= bytes)
                continue;
            uint64_t *word = &words[(at - offset) / sizeof *words], before = *word;
            *word = moved_to_view(t, before);
            moved += *word != before;
        }
    t->c->pointers_moved += moved;
}

/* Copy a range of home, in whole words, in the form that the view has. */
static void copy(struct txn *t, uint64_t offset, uint64_t bytes, char *to)
{
    const struct container *c = t->c;
    if (t->moved->maps_are_stale)
        find_maps(t);
    memcpy(to, c->home + offset, bytes);
    for (uint64_t end = offset + bytes, n; offset < end; offset += n, to += n) {
        n = min_u64(end - offset, c->segment_size - offset % c->segment_size);
        if (segment_is_data(home_table(c)[offset >> c->segment_shift]))
            move_words(t, offset, n, (uint64_t *)to);
    }
}

/* Other threads may be reading. So it stores only words that change, and never home's value of a pointer. */
void moved_restore(struct txn *t, uint64_t offset, uint64_t bytes)
{
    const uint64_t *from = (const uint64_t *)t->moved->stage;
    uint64_t *to = (uint64_t *)(t->c->base + offset);
    copy(t, offset, bytes, t->moved->stage);
    for (uint64_t i = 0; i < bytes / sizeof *to; i++)
        if (to[i] != from[i])
            __atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static bool is_fixed(const struct txn *t, uint32_t page)
{
    return t->pages.flags[page] & PAGE_FIXED;
}

/* Make pages of the view from home. None of them may be FIXED. */
static int make(struct txn *t, uint32_t first, uint32_t count)
{
    int error = 0;
    for (uint32_t n; count > 0 && error == 0; first += n, count -= n) {
        n = (uint32_t)min_u64(count, STAGE_PAGES);
        uint64_t offset = (uint64_t)first << PM_PAGE_SHIFT, bytes = (uint64_t)n << PM_PAGE_SHIFT;
        copy(t, offset, bytes, t->moved->stage);
        error = file_write(t->c->view_fd, t->moved->stage, bytes, offset);
        if (error == -ENOSPC) /* the kernel's error when the memory of the view runs out */
            error = -ENOMEM;
        for (uint32_t i = 0; i < n && error == 0; i++)
            page_set(&t->pages, first + i, PAGE_FIXED);
        t->pages.private_count += error == 0 ? n : 0;
    }
    return error;
}

/* If too much memory is in use, give back the memory of pages that have only been read. */
static void forget_some(struct txn *t)
{
    struct moved *m = t->moved;
    if (t->pages.private_count <= m->copies_max)
        return;
    uint64_t keep = m->copies_max - m->copies_max / FORGET_SHARE;
    uint32_t end = (uint32_t)(container_bytes(t->c) >> PM_PAGE_SHIFT);
    for (uint32_t left = end; left > 0 && t->pages.private_count > keep;) {
        uint32_t first = m->hand < end ? m->hand : 0, run = 0;
        while (first + run < end && run < left && run < STRETCH &&
               (t->pages.flags[first + run] &
                (PAGE_FIXED | PAGE_PRIVATE | PAGE_OPEN | PAGE_LISTED)) == PAGE_FIXED)
            run++;
        if (run > 0 && moved_forget(t, first, run) != 0)
            return;
        m->hand = first + max_u64(run, 1);
        left -= (uint32_t)max_u64(run, 1);
    }
}

int moved_touch(struct txn *t, uint32_t page)
{
    struct pages *p = &t->pages;
    if (is_fixed(t, page)) /* made by another thread, or the kernel refused then */
        return p->flags[page] & PAGE_OPEN ? 0 : pages_close(p, page, 1);
    forget_some(t);
    uint8_t *touches = &t->moved->touches[page / STRETCH];
    uint32_t wanted = LEAST << *touches, first = page / wanted * wanted;
    uint32_t end = (uint32_t)min_u64(first + wanted, container_bytes(t->c) >> PM_PAGE_SHIFT);
    *touches += *touches < TOUCHES_MAX;
    for (uint32_t run = 0; first < end; first += run + 1, run = 0) {
        while (first + run < end && !is_fixed(t, first + run))
            run++;
        if (run == 0)
            continue;
        int error = make(t, first, run);
        if (error == 0)
            error = pages_close(p, first, run);
        if (error != 0)
            return error;
        /* Let the kernel enter all pages in its tables in one call, not by a fault for every few. */
        if (run > FAULT_AROUND)
            madvise(t->c->base + ((uint64_t)first << PM_PAGE_SHIFT), (size_t)run << PM_PAGE_SHIFT,
                    MADV_POPULATE_READ);
    }
    return 0;
}

int moved_forget(struct txn *t, uint32_t first, uint32_t count)
{
    UNCANCELLED;
    int error = pages_hide(&t->pages, first, count);
    if (error != 0)
        return error;
    /* If this fails, the pages keep their memory until they are written again. */
    (void)fallocate(t->c->view_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)first << PM_PAGE_SHIFT, (off_t)count << PM_PAGE_SHIFT);
    for (uint32_t page = first; page < first + count; page++) {
        t->pages.private_count -= is_fixed(t, page);
        page_clear(&t->pages, page, PAGE_FIXED | PAGE_PRIVATE);
    }
    memset(&t->moved->touches[first / STRETCH], 0,
           (first + count - 1) / STRETCH - first / STRETCH + 1);
    return 0;
}

/* ---- from the view to home ------------------------------------------------------------------- */

const char *moved_line(const struct txn *t, uint64_t line, char image[PM_LINE])
{
    uint64_t words[PM_LINE_WORDS];
    memcpy(words, t->c->base + line * PM_LINE, PM_LINE);
    for (unsigned left = mapped_in_line(&t->map, line); left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(left);
        words[i] = moved_to_home(t, words[i]);
    }
    return memcpy(image, words, PM_LINE);
}
