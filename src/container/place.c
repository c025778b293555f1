/*
 * A container lies at the addresses that its pointers mean, if those are free. Then there is nothing to
 * do. Otherwise it gets other addresses, if all programs that wrote it vouched for the pointer map. Its
 * pointers then become right in one of two ways:
 *
 *  - The view has translated pointers, page by page (address/translation.h).
 *  - The layer that knows the map relocates the pointers on the medium, before anybody sees them. This
 *    is done if the program asks for it, or does not vouch for the pointers it will store.
 */
#define _GNU_SOURCE
#include "container/place.h"

#include "base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

int place_none(const char *path, uint64_t size)
{
    return pm__fail(ENOMEM,
                    "%s: the arena has no free %" PRIu64
                    " bytes; close a container or choose a smaller "
                    "max_size",
                    path, size);
}

/* Whether [base, base + size) are whole slots of the arena. */
static bool is_in_arena(uint64_t base, uint64_t size)
{
    return base >= ARENA_HINT && base % (UINT64_C(1) << ARENA_SLOT_SHIFT) == 0 &&
           size <= ARENA_SIZE && base - ARENA_HINT <= ARENA_SIZE - size;
}

/* Whether the two ranges are apart. Only then a relocated pointer can be told from an old one: see
 * pointer/relocate.c. If a relocation is complete but not yet noted, target and base are the same. */
static bool is_apart(uint64_t target, uint64_t base, uint64_t size)
{
    return target == 0 || target == base || target + size <= base || base + size <= target;
}

/* Whether the state page is the newest one. A relocation is under way until `target` is zero. */
static int check_guard(const struct container *c, const struct format_state *state)
{
    struct format_guard guard;
    if (c->header.version < FORMAT_VERSION)
        return 0;
    ssize_t n = TEMP_FAILURE_RETRY(pread(c->fd, &guard, sizeof guard, FORMAT_GUARD));
    if (n < 0)
        return pm__fail_system_at(c->path, FORMAT_GUARD, errno,
                                  "cannot read the guard of the state page");
    bool base = guard.base == state->base || (state->target != 0 && guard.base != 0);
    bool movable = guard.movable == state->movable ||
                   (guard.movable == seal(MOVABLE_NOW) && state->movable == seal(MOVABLE_ONCE));
    if ((size_t)n == sizeof guard && seal_is_valid(guard.base) && base && movable)
        return 0;
    return pm__fail_at(c->path, FORMAT_STATE + offsetof(struct format_state, base), EBADMSG,
                       "the state page contradicts its guard at offset %" PRIu64 ": one of them is "
                       "damaged, or an old copy; restore the file from a backup",
                       FORMAT_GUARD);
}

int place_read(struct container *c)
{
    struct format_state state;
    ssize_t n = TEMP_FAILURE_RETRY(pread(c->fd, &state, sizeof state, FORMAT_STATE));
    if (n < 0)
        return pm__fail_system_at(c->path, FORMAT_STATE, errno, "cannot read the state page");
    const uint64_t words[] = {state.base, state.target, state.movable};
    c->pointers_base = seal_payload(state.base);
    c->pointers_target = seal_payload(state.target);
    c->movable = (enum movable)seal_payload(state.movable);
    for (int i = 0; i < 3; i++)
        if ((size_t)n < sizeof state || !seal_is_valid(words[i]) ||
            !is_in_arena(c->pointers_base, c->max_size) ||
            (c->pointers_target && !is_in_arena(c->pointers_target, c->max_size)) ||
            seal_payload(state.movable) > MOVABLE_ONCE ||
            !is_apart(c->pointers_target, c->pointers_base, c->max_size))
            return container_damaged(c, FORMAT_STATE + offsetof(struct format_state, base),
                                     "what addresses it is for is damaged");
    return check_guard(c, &state);
}

int place_take(struct container *c, const struct container_options *options)
{
    uint64_t size = c->max_size;
    uint64_t meant = c->pointers_target ? c->pointers_target : c->pointers_base;
    c->translated = options->translated;
    if (arena_take(meant, size, c)) {
        c->base = (char *)meant;
        return 0;
    }
    if (c->movable != MOVABLE_NOW)
        return pm__fail(EADDRINUSE,
                        "%s: its addresses %#" PRIx64 " to %#" PRIx64
                        " are taken in this process; close the "
                        "container that is there (only one whose every writer used PM_MOVABLE "
                        "can be moved)",
                        c->path, meant, meant + size);
    c->base = (char *)arena_take_elsewhere(meant, size, c->seed, c);
    c->relocates = !c->readonly && (!c->vouched || options->relocate);
    c->translated |= !c->relocates;
    return c->base ? 0 : place_none(c->path, size);
}
