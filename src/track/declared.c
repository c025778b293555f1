/*
 * Pointers where no code tells kinds. A program that vouches for its pointers has declared them, so the
 * pointer map has them. Check the declared pointers on pages that the transaction may have stored to. Linear
 * in these pages.
 */
#include "track/track.h"

#include "address/foreign.h"
#include "base/error.h"
#include "track/strays.h"

static int check_page(struct txn *t, uint32_t page)
{
    uint64_t line = (uint64_t)page * PM_PAGE_LINES, end = line + PM_PAGE_LINES;
    int result = 0, error = txn_touch(t, line * PM_LINE, PM_PAGE);
    if (error != 0)
        return pm__fail_system_at(t->c->path, line * PM_LINE, -error,
                                  "cannot open the page, to check its pointers");
    for (; line < end && result == 0; line++) {
        uint8_t words = mapped_in_line(&t->map, line);
        result = foreign_check(&t->foreign, line, &words, true);
    }
    return result;
}

static int check_declared(struct txn *t)
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

int track_check_changed(struct txn *t)
{
    int result = t->c->vouched ? check_declared(t) : 0;
    if (result == 0 && t->audit_pointers)
        strays_warn(t);
    return result;
}
