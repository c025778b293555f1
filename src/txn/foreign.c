#define _GNU_SOURCE
#include "txn/foreign.h"

#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

static int leads_out(const struct txn *t, uint64_t offset, uint64_t value)
{
    char object[OBJECT_TEXT];
    txn_describe_object(t, offset, " in ", object);
    int result =
        pm__fail_at(t->c->path, offset, EINVAL,
                    "the pointer %#" PRIx64
                    "%s leads out of the container, to what will not be there in the next run: the "
                    "stack, malloc'ed memory, another container, or a library without a build-id; "
                    "store something else, or open with foreign_pointers = PM_FOREIGN_IGNORE",
                    value, object);
    if (t->foreign == FOREIGN_ERROR)
        return result;
    pm__warn();
    return 0;
}

int foreign_adopt(struct txn *t, uint64_t offset, uint64_t value)
{
    char object[OBJECT_TEXT];
    if (!t->refuse_modules || !modules_may_adopt(&t->modules, value))
        return modules_adopt(t, value);
    txn_describe_object(t, offset, " in ", object);
    return pm__fail_at(t->c->path, offset, EINVAL, "the pointer %#" PRIx64 "%s " FOREIGN_REFUSED,
                       value, object);
}

bool foreign_is_mapped(uint64_t value)
{
    unsigned char resident;
    void *page = (void *)align_down(value, PM_PAGE);
    if (arena_contains((void *)value) && !arena_was_used((void *)value))
        return false; /* reserved address space only */
    int saved = errno;
    bool is_mapped =
        foreign_is_address(value) && (mincore(page, PM_PAGE, &resident) == 0 || errno != ENOMEM);
    errno = saved;
    return is_mapped;
}

/* Judge a pointer that leads out. It may stay: 1. The word is no pointer for the next run: 0. The pointer
 * is an error: -1 with a message. */
static int check_value(struct txn *t, uint64_t offset, uint64_t value, bool declared)
{
    int adopted = foreign_adopt(t, offset, value);
    if (adopted != 0 || t->foreign == FOREIGN_IGNORE ||
        !(declared ? foreign_is_address(value) : foreign_is_mapped(value)))
        return adopted;
    return leads_out(t, offset, value);
}

int foreign_check(struct txn *t, uint64_t line, uint8_t *words, bool declared)
{
    const uint64_t *values = (const uint64_t *)(t->c->base + line * PM_LINE);
    for (unsigned left = *words; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(left);
        if (foreign_leads_home(t->c, values[i]))
            continue;
        int stays = check_value(t, line * PM_LINE + i * sizeof *values, values[i], declared);
        if (stays < 0)
            return -1;
        if (stays == 0)
            *words &= (uint8_t)~(1u << i);
    }
    return 0;
}

static int check_page(struct txn *t, uint32_t page)
{
    uint64_t line = (uint64_t)page * PM_PAGE_LINES, end = line + PM_PAGE_LINES;
    int result = 0, error = txn_touch(t, line * PM_LINE, PM_PAGE);
    if (error != 0)
        return pm__fail_system_at(t->c->path, line * PM_LINE, -error,
                                  "cannot open the page, to check its pointers");
    for (; line < end && result == 0; line++) {
        uint8_t words = txn_mapped(t, line);
        result = foreign_check(t, line, &words, true);
    }
    return result;
}

int foreign_check_declared(struct txn *t)
{
    int result = 0;
    sigset_t saved;
    /* The lock guards only entries that other threads add meanwhile. A page that is not there yet is made
     * when it is read. */
    lock_acquire_masked(&t->lock, &saved);
    uint32_t opened = t->pages.count;
    lock_release_masked(&t->lock, &saved);
    for (uint32_t i = 0; i < opened && result == 0; i++)
        result = check_page(t, t->pages.opened[i].page);
    for (uint64_t i = 0; i < t->note_count && result == 0; i++)
        if (t->notes[i].live)
            result = check_page(t, t->notes[i].page);
    return result;
}
