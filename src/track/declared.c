/*
 * Pointers where no code tells kinds. A program that vouches for its pointers has declared them, so the
 * pointer map has them. Check the declared pointers on pages that the transaction may have stored to. Linear
 * in these pages.
 */
#include "track/track.h"

#include "address/foreign.h"
#include "base/error.h"
#include "track/strays.h"
#include "track/words.h"

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

/* With concurrent stores, close the pages, so that a store that comes during the check is noticed. */
static int close_pages(struct txn *t)
{
    int error = pages_close_listed(&t->pages);
    for (uint32_t i = 0; i < t->pages.count && error == 0; i++)
        page_set(&t->pages, t->pages.opened[i].page, PAGE_JUDGED);
    return error == 0 ? 0 : pm__fail_system(-error, "%s: cannot protect pages", t->c->path);
}

static int check_declared(struct txn *t)
{
    sigset_t saved;
    /* The lock guards only entries that other threads add meanwhile. A page that is not there yet is made
     * when it is read. */
    lock_acquire_masked(&t->lock, &saved);
    int result = t->concurrent ? close_pages(t) : 0;
    uint32_t opened = t->pages.count;
    lock_release_masked(&t->lock, &saved);
    for (uint32_t i = 0; i < opened && result == 0; i++)
        result = check_page(t, t->pages.opened[i].page);
    for (uint64_t i = 0; i < t->note_count && result == 0; i++)
        if (t->notes[i].live)
            result = check_page(t, t->notes[i].page);
    return result;
}

/* True if a declared word of the page leads to what foreign_check() might have to adopt, or refuse. */
static bool needs_check(const struct txn *t, uint32_t page)
{
    uint64_t line = (uint64_t)page * PM_PAGE_LINES;
    for (uint64_t end = line + PM_PAGE_LINES; line < end; line++)
        for (unsigned left = mapped_in_line(&t->map, line); left; left &= left - 1) {
            uint64_t value = words_of_line(t->c, line)[__builtin_ctz(left)];
            if (!foreign_leads_home(t->c, value) && modules_may_reach(&t->modules, value) &&
                !modules_know(&t->modules, value))
                return true;
        }
    return false;
}

bool track_was_overtaken(const struct txn *t)
{
    for (uint32_t i = 0; i < t->pages.count; i++) {
        uint32_t page = t->pages.opened[i].page;
        if (!page_has(&t->pages, page, PAGE_JUDGED) && needs_check(t, page))
            return true;
    }
    return false;
}

int track_check_changed(struct txn *t)
{
    int result = t->c->vouched ? check_declared(t) : 0;
    if (result == 0 && t->audit_pointers)
        strays_warn(t);
    return result;
}
