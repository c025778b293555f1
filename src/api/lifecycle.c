/*
 * Opening, closing, clearing, deleting. pm_open() checks the options, and opens the layers from the bottom
 * up:
 *
 *   1  container_open() finds and locks the file, and maps home.
 *   2  choose_engine() looks at the options and at the medium.
 *   3  txn_open() recovers, and maps the rest.
 *   4  allocator_open() builds the lists of slabs. Then the table of modules is judged: a module that is
 *      missing or refused may fail the opening.
 *   5  sums_upgrade() and pointers_note_immovable() come last, because what they write is for good.
 *   6  discovery_open() follows, if the program asked for it. It cannot fail.
 *
 * Only step 3 tells whether a module lies elsewhere than the pointers mean. Then all layers are closed
 * again, and the container is opened as a translated one.
 */
#define _GNU_SOURCE
#include "api/api.h"

#include "base/cancel.h"
#include "base/error.h"
#include "discovery/exclusions.h"
#include "pages/fault.h"
#include "pointer/relocate.h"
#include "txn/copy.h"
#include "txn/sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT_DEFAULT  (UINT64_C(1) << 20)
#define MAX_SIZE_DEFAULT (UINT64_C(64) << 30)
#define HOLES_DEFAULT    (UINT64_C(1) << 30)
#define PRIVATE_DEFAULT  (UINT64_C(256) << 20)
#define PRIVATE_MIN      (UINT64_C(128) << 10)

#define LIVE_PERCENT_MIN     10
#define LIVE_PERCENT_MAX     90
#define LIVE_PERCENT_DEFAULT 50

/* Fail if no code with marks is loaded: nothing that the program stores would be committed. */
static int demand_marks(const char *path, const struct pm_options *o)
{
    if (o->tracker != PM_TRACKER_STORES || marks_are_made() ||
        o->flags & (PM_DISCOVER | PM_ANNOUNCED | PM_READONLY))
        return 0;
    return pm__fail(
        ENOTSUP,
        "%s: PM_TRACKER_STORES needs code compiled by pmcc, which tells what it stores, "
        "and none is loaded; compile with pmcc, or use PM_TRACKER_FAULTS, or announce "
        "each store by pm_dirty() and open with PM_ANNOUNCED",
        path);
}

static int bad_option(const char *path, const char *what)
{
    return pm__fail(EINVAL, "%s: %s", path, what);
}

/* Check pm_options and translate them for the layers below. */
static int read_options(const char *path, const struct pm_options *o, struct container_options *out)
{
    const unsigned known = PM_CREATE | PM_EXCLUSIVE | PM_READONLY | PM_UNSAFE_POWER | PM_MOVABLE |
                           PM_RELOCATE | PM_DISCOVER | PM_VOUCHED | PM_ACCEPT_COPY | PM_PATH_ERROR |
                           PM_ANNOUNCED;
    if (o->size != sizeof *o)
        return bad_option(path, "options.size must be sizeof(struct pm_options); compiled with "
                                "another libpm.h?");
    if (o->flags & ~known)
        return bad_option(path, "options.flags has a flag that this libpm does not know");
    if (o->flags & PM_READONLY && o->flags & PM_CREATE)
        return bad_option(path, "PM_READONLY excludes PM_CREATE");
    if (o->flags & PM_EXCLUSIVE && !(o->flags & PM_CREATE))
        return bad_option(path, "PM_EXCLUSIVE needs PM_CREATE");
    if (o->flags & PM_VOUCHED && !(o->flags & PM_DISCOVER))
        return bad_option(path, "PM_VOUCHED needs PM_DISCOVER");
    if (o->flags & PM_DISCOVER && o->flags & PM_READONLY)
        return bad_option(path, "PM_READONLY excludes PM_DISCOVER");
    if (o->flags & PM_RELOCATE && !(o->flags & PM_MOVABLE))
        return bad_option(path, "PM_RELOCATE needs PM_MOVABLE");
    if (o->flags & PM_RELOCATE && o->flags & PM_READONLY)
        return bad_option(path, "PM_READONLY excludes PM_RELOCATE");
    if ((unsigned)o->engine > PM_ENGINE_LOG)
        return bad_option(path, "options.engine is none that this libpm has");
    if ((unsigned)o->tracker > PM_TRACKER_STORES)
        return bad_option(path, "options.tracker is none that this libpm has");
    if (o->tracker == PM_TRACKER_STORES && o->engine == PM_ENGINE_UNDO)
        return bad_option(path, "PM_TRACKER_STORES excludes the undo engine: undo must see a store "
                                "before it happens");
    if (o->flags & PM_ANNOUNCED && o->tracker != PM_TRACKER_STORES)
        return bad_option(path, "PM_ANNOUNCED needs PM_TRACKER_STORES");
    if (o->tracker == PM_TRACKER_STORES && o->concurrent_stores)
        return bad_option(path,
                          "PM_TRACKER_STORES excludes concurrent_stores: a mark and its store "
                          "must be of one transaction");
    if ((unsigned)o->foreign_pointers > PM_FOREIGN_IGNORE)
        return bad_option(path, "options.foreign_pointers is none that this libpm has");
    if ((unsigned)o->freed_pointers > PM_FREED_ERROR)
        return bad_option(path, "options.freed_pointers is none that this libpm has");
    if ((unsigned)o->module_pointers > PM_MODULES_REFUSE)
        return bad_option(path, "options.module_pointers is none that this libpm has");
    if (o->live_percent != 0 &&
        (o->live_percent < LIVE_PERCENT_MIN || o->live_percent > LIVE_PERCENT_MAX))
        return bad_option(path, "options.live_percent must be 10 to 90, or 0 for the default");
    if (o->layout && strlen(o->layout) > PM_LAYOUT_MAX)
        return bad_option(path, "options.layout is longer than PM_LAYOUT_MAX bytes");
    *out = (struct container_options){
        .create = o->flags & PM_CREATE,
        .exclusive = o->flags & PM_EXCLUSIVE,
        .readonly = o->flags & PM_READONLY,
        .movable = o->flags & PM_MOVABLE,
        .relocate = o->flags & PM_RELOCATE,
        .accept_copy = o->flags & PM_ACCEPT_COPY,
        .bounded = o->private_max != 0,
        .checkpoint_bytes = o->checkpoint_bytes,
        .path_error = o->flags & PM_PATH_ERROR,
        .log = o->engine == PM_ENGINE_LOG,
        .layout = o->layout,
        .mode = o->mode ? o->mode : 0666,
        .check_owner = o->check_owner,
        .holes_max = o->holes_max ? o->holes_max : HOLES_DEFAULT,
        .segment_size = o->segment_size ? o->segment_size : SEGMENT_DEFAULT,
        .granularity = o->granularity ? o->granularity : FORMAT_GRANULARITY_MIN,
    };
    if (!is_power_of_two(out->segment_size) || out->segment_size < FORMAT_SEGMENT_MIN ||
        out->segment_size > FORMAT_SEGMENT_MAX)
        return bad_option(path, "options.segment_size must be a power of two, 64 KiB to 1 GiB");
    if (!is_power_of_two(out->granularity) || out->granularity < FORMAT_GRANULARITY_MIN ||
        out->granularity > FORMAT_GRANULARITY_MAX)
        return bad_option(path, "options.granularity must be a power of two, 16 to 4096");
    uint64_t max = o->max_size ? o->max_size : max_u64(MAX_SIZE_DEFAULT, 16 * out->segment_size);
    if (max > FORMAT_SIZE_MAX)
        return bad_option(path, "options.max_size must be at most 4 TiB");
    out->max_size = align_up(max, out->segment_size);
    if (o->initial_size > out->max_size)
        return bad_option(path, "options.initial_size is larger than max_size");
    out->initial_size = align_up(o->initial_size, out->segment_size);
    uint64_t least = (format_meta_segments(out->segment_size, out->max_size) + 3);
    if (out->max_size / out->segment_size < least)
        return bad_option(path, "options.max_size leaves no room for data: metadata and log take "
                                "three segments or more");
    return 0;
}

static_assert((int)PM_FOREIGN_WARN == (int)FOREIGN_WARN &&
                  (int)PM_FOREIGN_IGNORE == (int)FOREIGN_IGNORE,
              "one enum for programs, one for the layers below");

/* A container belongs to the log engine for ever, or never. */
static int other_engine(const struct container *c)
{
    return pm__fail(ENOTSUP,
                    c->is_log ? "%s: a container of the log engine; open it with PM_ENGINE_LOG, or with "
                                "PM_ENGINE_AUTO"
                              : "%s: not a container of the log engine; open it with another engine, or "
                                "with PM_ENGINE_AUTO",
                    c->path);
}

/* Choose the engine by the options and by the medium that was found. */
static int choose_engine(const pm_container *c, const struct pm_options *o, struct txn_options *out)
{
    const struct container *in = &c->container;
    bool asked = o->engine == PM_ENGINE_UNDO ||
                 (o->engine == PM_ENGINE_AUTO && o->tracker != PM_TRACKER_STORES &&
                  (in->medium.ops->power_safe || o->flags & PM_UNSAFE_POWER));
    bool undo = asked && !in->translated; /* home has other pointers than the view */
    const char *audit = secure_getenv("LIBPM_AUDIT");
    *out = (struct txn_options){
        .engine = in->is_log ? &engine_log : undo || in->readonly ? &engine_undo : &engine_redo,
        .concurrent = o->concurrent_stores,
        .stores = o->tracker == PM_TRACKER_STORES,
        .foreign = (enum foreign_pointers)o->foreign_pointers,
        .refuse_modules = o->module_pointers == PM_MODULES_REFUSE,
        .audit = audit && strcmp(audit, "0") != 0 && audit[0],
        .private_max = max_u64(o->private_max ? o->private_max : PRIVATE_DEFAULT, PRIVATE_MIN),
        .live_percent = o->live_percent ? o->live_percent : LIVE_PERCENT_DEFAULT,
        .initial_size = o->initial_size,
        .recovered = pointers_relocate,
    };
    if (in->is_log != (o->engine == PM_ENGINE_LOG) && o->engine != PM_ENGINE_AUTO)
        return other_engine(in);
    if (in->is_log || !undo || in->readonly || in->medium.ops->power_safe || o->flags & PM_UNSAFE_POWER)
        return 0;
    return pm__fail(ENOTSUP,
                    "%s: on an ordinary file the undo engine survives a crash of the process but "
                    "not a power failure; use the redo engine, or accept that with "
                    "PM_UNSAFE_POWER",
                    in->path);
}

/* Give up the modules that no pointer leads into. Only a pass over all pointers can tell. So look only for
 * modules that are missing, which is rare, or refused. */
static void give_up_modules(pm_container *c)
{
    struct modules *m = &c->txn.modules;
    for (uint32_t i = 0; i < m->end; i++) {
        struct module *k = &m->module[i];
        bool matters = k->size > 0 && (!k->loaded || c->txn.foreign.refuse_modules);
        if (matters && !pointers_find(&c->container, k->home, k->size, &k->needed_at))
            modules_give_up(m, i);
    }
}

/* If modules are refused, no module may remain, and no pointer into a module that the container does not
 * note. If a program always lies at the same addresses, everybody knows them, and a forged file can have
 * them. */
static int refuse_modules(pm_container *c)
{
    const struct modules *m = &c->txn.modules;
    if (!c->txn.foreign.refuse_modules)
        return 0;
    for (uint32_t i = 0; i < m->end; i++)
        if (m->module[i].size > 0)
            return modules_refuse(m, i);
    if (pointers_check(&c->allocator, NULL) == 0)
        return 0;
    errno = EPERM;
    return -1;
}

/* Each remaining module must be loaded. */
static int demand_modules(const pm_container *c)
{
    const struct modules *m = &c->txn.modules;
    uint32_t missing = modules_missing(m, 0);
    return missing < m->end ? modules_report(m, missing) : 0;
}

/* Whether pages must be translated as they are touched, because a module lies elsewhere. This is known
 * only after recovery. */
static bool must_be_translated(pm_container *c)
{
    return modules_are_displaced(&c->txn.modules) && !c->container.translated;
}

/* All layers are open. Judge the modules, and make final what is to be final. */
static int finish(pm_container *c, const struct pm_options *options)
{
    give_up_modules(c);
    if (refuse_modules(c) != 0)
        return -1;
    if (must_be_translated(c))
        return 0; /* it will be opened again, which may fail */
    if (options->module_pointers != PM_MODULES_MISSING_OK && demand_modules(c) != 0)
        return -1;
    return sums_upgrade(&c->txn) == 0 ? pointers_note_immovable(&c->container) : -1;
}

/*
 * Reserve space for the tables of all layers:
 *  - for each page redo needs some 2.9 KiB, most of it for the lines, and undo 0.3 KiB
 *  - for a container of any size, images of lines take 4 MiB, lines that are marked twice 2.5 MiB, and runs
 *    of new objects 0.5 MiB
 *
 * tables_take() asserts that this is enough.
 */
static int open_tables(struct container *c, const struct engine *engine)
{
    uint64_t base = UINT64_C(9) << 20;
    uint64_t pages = engine->in_place ? c->max_size / 8 : c->max_size / 4 * 3;
    if (c->is_log) /* for each line: 4 for its entry, 8/16 for its group, 12 for a delta; for each page 3 */
        pages += c->max_size / PM_LINE * 33 / 2 + c->max_size / PM_PAGE * 3 +
                 container_file_max(c) / c->chunk_size * 48;
    int error = tables_open(&c->tables, base + pages);
    if (error != 0)
        return pm__fail_system(-error, "%s: no address space for its tables", c->path);
    return 0;
}

static int open_layers(pm_container *c, const char *path, const struct pm_options *options,
                       const struct container_options *opening)
{
    if (container_open(&c->container, path, opening) != 0)
        return -1;
    struct txn_options how;
    if (choose_engine(c, options, &how) == 0 && open_tables(&c->container, how.engine) == 0 &&
        (how.engine->in_place || opening->readonly || container_make_private(&c->container) == 0) &&
        txn_open(&c->txn, &c->container, &how) == 0) {
        bool allocator = allocator_open(&c->allocator, &c->txn) == 0;
        if (allocator && finish(c, options) == 0) {
            c->container.medium.counts = (struct medium_counts){0}; /* statistics begin here */
            if (options->flags & PM_DISCOVER)
                discovery_open(&c->discovery, &c->allocator, options->flags & PM_VOUCHED,
                               options->freed_pointers == PM_FREED_ERROR);
            return 0;
        }
        int error = errno;
        if (allocator)
            allocator_close(&c->allocator);
        errno = error;
        txn_abandon(&c->txn);
    }
    int error = errno;
    container_discard(&c->container);
    errno = error;
    return -1;
}

static pm_container *forget(pm_container *c)
{
    int error = errno;
    free(c);
    errno = error;
    return NULL;
}

static void close_upper(pm_container *c)
{
    discovery_close(&c->discovery);
    allocator_close(&c->allocator);
}

pm_container *pm_open(const char *path, const struct pm_options *options)
{
    DEFER_CANCELLATION;
    static const struct pm_options defaults = {.size = sizeof defaults};
    UNCANCELLED;
    struct container_options opening;
    if (api_enter_process() != 0)
        return NULL;
    if (!path)
        return pm__fail_null(EINVAL, "the path is NULL");
    struct pm_options implied;
    options = options ? options : &defaults;
    if (options->size == sizeof *options && options->flags & PM_DISCOVER) {
        implied = *options;
        implied.flags |= PM_MOVABLE;
        implied.tracker = PM_TRACKER_STORES;
        options = &implied;
        if (!roots_are_known())
            return pm__fail_null(ENOTSUP,
                                 "%s: PM_DISCOVER needs a program compiled by `pmcc --discover`, "
                                 "whose malloc'ed objects can be found",
                                 path);
    }
    if (read_options(path, options, &opening) != 0 || demand_marks(path, options) != 0)
        return NULL;
    if (fault_begin_open(path) != 0)
        return NULL;
    pm_container *c = calloc(1, sizeof *c);
    if (!c)
        pm__fail_system(ENOMEM, "%s: no memory to open it", path);
    else if (open_layers(c, path, options, &opening) != 0)
        c = forget(c);
    if (c && must_be_translated(c)) {
        close_upper(c);
        txn_abandon(&c->txn);
        container_discard(
            &c->container); /* so that a failure empties the holes that this has filled */
        opening.translated = true;
        if (open_layers(c, path, options, &opening) != 0)
            c = forget(c);
    }
    fault_end_open();
    return c;
}

int pm_close(pm_container *c)
{
    DEFER_CANCELLATION;
    UNCANCELLED;
    if (!c)
        return 0;
    if (api_enter(c) != 0)
        return -1;
    if (txn_is_copied(&c->txn))
        return txn_refuse_beside_copy(&c->txn);
    if (api_current == c)
        api_current = NULL;
    bool readonly = c->container.readonly;
    int named = readonly ? 0 : name_check_now(&c->container);
    int result = readonly ? 0 : allocator_rollback(&c->allocator);
    close_upper(c);
    if (result == 0 && !readonly)
        result = txn_close(&c->txn);
    else /* the log still has changes to roll back, or only the view has changes to forget */
        txn_unload(&c->txn);
    int error = result == 0 ? ESTALE : errno;
    container_close(&c->container);
    free(c);
    errno = error;
    return result == 0 ? named : result;
}

/* The lock is held over both. Otherwise another thread might exclude a field of a new object in between. */
static int clear(pm_container *c)
{
    lock_acquire(&c->allocator.lock);
    int result = allocator_clear(&c->allocator);
    if (result == 0)
        exclusions_move(c->container.base, c->container.max_size, NULL);
    lock_release(&c->allocator.lock);
    return result;
}

static int clear_discovering(pm_container *c)
{
    discovery_enter();
    int result = clear(c);
    if (result == 0)
        discovery_drop_root(&c->discovery);
    discovery_leave();
    return result;
}

int pm_clear(pm_container *c)
{
    DEFER_CANCELLATION;
    if (api_enter_writing(c) != 0)
        return -1;
    return api_discovers(c) ? clear_discovering(c) : clear(c);
}

int pm_delete(const char *path)
{
    DEFER_CANCELLATION;
    UNCANCELLED;
    if (api_enter_process() != 0)
        return -1;
    if (!path)
        return pm__fail(EINVAL, "the path is NULL");
    if (fault_begin_open(path) != 0)
        return -1;
    int result = container_delete(path);
    fault_end_open();
    return result;
}
