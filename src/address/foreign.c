/*
 * Judges a pointer that leads out of the container. The first answer counts:
 *
 *   1  A pointer into a program or library stays, and the table of modules adopts the module. If the
 *      program refuses modules, the pointer is an error.
 *   2  A declared pointer that home would take for another one is an error.
 *   3  With FOREIGN_IGNORE any other pointer is data.
 *   4  A word that nobody declared is data, if nothing is mapped at the address. A declared word is data,
 *      if its value is no address at all.
 *   5  The pointer is an error, or a warning.
 *
 * Step 1 asks the dynamic linker, and step 4 may cost a system call. foreign_check() skips NULL and pointers
 * into the container before step 1.
 */
#define _GNU_SOURCE
#include "address/foreign.h"

#include "address/translation.h"
#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

static int leads_out(const struct foreign *f, uint64_t offset, uint64_t value)
{
    char object[OBJECT_TEXT];
    contents_describe(f->c, offset, " in ", object);
    int result =
        pm__fail_at(f->c->path, offset, EINVAL,
                    "the pointer %#" PRIx64
                    "%s leads out of the container, to what will not be there in the next run: the "
                    "stack, malloc'ed memory, another container, or a library without a build-id; "
                    "store something else, or open with foreign_pointers = PM_FOREIGN_IGNORE",
                    value, object);
    if (f->policy == FOREIGN_ERROR)
        return result;
    pm__warn();
    return 0;
}

int foreign_adopt(const struct foreign *f, uint64_t offset, uint64_t value)
{
    char object[OBJECT_TEXT];
    if (!f->refuse_modules || !modules_may_adopt(f->modules, value))
        return modules_adopt(f->modules, value);
    contents_describe(f->c, offset, " in ", object);
    return pm__fail_at(f->c->path, offset, EINVAL, "the pointer %#" PRIx64 "%s " FOREIGN_REFUSED,
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

/* In the file this address is one of the container itself, or of a module that lies elsewhere in this run. A
 * word that is declared to be a pointer would mean that. */
static int cannot_be_kept(const struct foreign *f, uint64_t offset, uint64_t value)
{
    char object[OBJECT_TEXT];
    contents_describe(f->c, offset, " in ", object);
    return pm__fail_at(f->c->path, offset, EINVAL,
                       "the declared pointer %#" PRIx64
                       "%s leads to an address that in the file is the container's own or a module's, "
                       "so that it would lead there in the next run; store something else, or "
                       "declare by pm_mark_data() that it is none",
                       value, object);
}

/* Judge a pointer that leads out. It may stay: 1. The word is no pointer for the next run: 0. The pointer
 * is an error: -1 with a message. */
static int check_value(const struct foreign *f, uint64_t offset, uint64_t value, bool declared)
{
    int adopted = foreign_adopt(f, offset, value);
    if (adopted == 0 && declared && f->translation && !translation_keeps(f->translation, value))
        return cannot_be_kept(f, offset, value);
    if (adopted != 0 || f->policy == FOREIGN_IGNORE ||
        !(declared ? foreign_is_address(value) : foreign_is_mapped(value)))
        return adopted;
    return leads_out(f, offset, value);
}

int foreign_check(const struct foreign *f, uint64_t line, uint8_t *words, bool declared)
{
    const uint64_t *values = (const uint64_t *)(f->c->base + line * PM_LINE);
    for (unsigned left = *words; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(left);
        if (foreign_leads_home(f->c, values[i]))
            continue;
        int stays = check_value(f, line * PM_LINE + i * sizeof *values, values[i], declared);
        if (stays < 0)
            return -1;
        if (stays == 0)
            *words &= (uint8_t)~(1u << i);
    }
    return 0;
}
