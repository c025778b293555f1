#include "hostile/visit.hpp"

#include "common/compiled.hpp"
#include "common/format.hpp"
#include "hostile/anatomy.hpp"
#include "hostile/calls.hpp"
#include "hostile/memory_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <libpm.h>
#include <set>
#include <span>

extern "C" {
#include "backend/backend.h"

const struct medium_ops *__real_medium_of(int fd, const void *home, size_t size, bool synchronous);

static bool on_ordinary_file;

// libpm's question what kind of file it has.
const struct medium_ops *__wrap_medium_of(int fd, const void *home, size_t size, bool synchronous)
{
    return on_ordinary_file ? &medium_cache : __real_medium_of(fd, home, size, synchronous);
}
}

namespace hostile
{

namespace
{

enum Way {
    READ_ONLY,
    READ_CHECKPOINT,
    UNDO,
    REDO,
    REDO_ON_FILE,
    LOG,
    LOG_ON_FILE,
    LOG_CHECKPOINTS,
    WAYS
};
const char *const names[WAYS] = {
    "read-only",     "read-only from a checkpoint", "undo", "redo", "redo on a file", "log",
    "log on a file", "log with checkpoints"};

// The walk reads so much at most.
constexpr size_t OBJECTS_MAX = 500, OBJECT_BYTES_MAX = 64 << 10;

// libpm believes no file that claims to be older, and none gets that old. Near the limit a few
// commits reach it.
constexpr uint64_t EPOCH_OLD = (UINT64_C(1) << 54) - 1000;

// So much log between two checkpoints, in ways that write some.
constexpr uint64_t CHECKPOINT_BYTES = 4096;

// More ways, in which all functions are called. `flags`: of enum pm_flags.
struct Use {
    const char *name;
    pm_engine engine;
    bool on_ordinary_file, elsewhere; // elsewhere: while its own addresses are taken
    unsigned flags;
    uint64_t checkpoint_bytes = 0;
};
const Use uses[] = {
    {"all calls, read-only", PM_ENGINE_AUTO, false, false, PM_READONLY},
    {"all calls, undo", PM_ENGINE_UNDO, false, false, PM_MOVABLE},
    {"all calls, redo", PM_ENGINE_REDO, false, false, PM_MOVABLE},
    {"all calls, redo on a file", PM_ENGINE_REDO, true, false, PM_MOVABLE},
    {"all calls, discovering", PM_ENGINE_REDO, false, false, PM_DISCOVER | PM_VOUCHED},
    {"all calls, discovering on a file", PM_ENGINE_REDO, true, false, PM_DISCOVER | PM_VOUCHED},
    {"all calls, not movable", PM_ENGINE_UNDO, false, false, 0},
    {"all calls, elsewhere", PM_ENGINE_REDO, false, true, PM_MOVABLE},
    {"all calls, elsewhere, on a file", PM_ENGINE_REDO, true, true, PM_MOVABLE},
    {"all calls, elsewhere, read-only", PM_ENGINE_AUTO, false, true, PM_READONLY | PM_MOVABLE},
    {"all calls, relocated, undo", PM_ENGINE_UNDO, false, true, PM_MOVABLE | PM_RELOCATE},
    {"all calls, relocated, redo", PM_ENGINE_REDO, false, true, PM_MOVABLE | PM_RELOCATE},
    {"all calls, relocated, discovering", PM_ENGINE_REDO, false, true,
     PM_DISCOVER | PM_VOUCHED | PM_RELOCATE},
};
const Use log_uses[] = {
    {"all calls, read-only", PM_ENGINE_AUTO, false, false, PM_READONLY},
    {"all calls, log", PM_ENGINE_LOG, false, false, PM_MOVABLE},
    {"all calls, log on a file", PM_ENGINE_LOG, true, false, PM_MOVABLE},
    {"all calls, log, discovering", PM_ENGINE_LOG, false, false, PM_DISCOVER | PM_VOUCHED},
    {"all calls, log, not movable", PM_ENGINE_LOG, true, false, 0},
    {"all calls, log, elsewhere", PM_ENGINE_LOG, false, true, PM_MOVABLE},
    {"all calls, log, elsewhere, read-only", PM_ENGINE_AUTO, false, true, PM_READONLY | PM_MOVABLE},
    {"all calls, log, relocated", PM_ENGINE_LOG, false, true, PM_MOVABLE | PM_RELOCATE},
    {"all calls, log, relocated on a file", PM_ENGINE_LOG, true, true, PM_MOVABLE | PM_RELOCATE},
    {"all calls, log, checkpoints", PM_ENGINE_LOG, false, false, PM_MOVABLE, CHECKPOINT_BYTES},
    {"all calls, log, checkpoints, relocated on a file", PM_ENGINE_LOG, true, true,
     PM_MOVABLE | PM_RELOCATE, CHECKPOINT_BYTES},
};

void demand(bool condition, Way way, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "%s: %s; errno %d, message: %s\n", names[way], what, errno, pm_errormsg());
    abort();
}

const MemoryFile &the_file()
{
    static const MemoryFile file;
    return file;
}

bool is_reader(Way way)
{
    return way == READ_ONLY || way == READ_CHECKPOINT;
}

bool is_good_reason(int error)
{
    return error == EBADMSG || error == ENOTSUP || error == EADDRINUSE || error == ENOMEM ||
           error == ENOEXEC;
}

pm_container *open_in(Way way)
{
    pm_options options{};
    options.size = sizeof options;
    options.flags = PM_ACCEPT_COPY | (is_reader(way) ? (unsigned)PM_READONLY : 0u);
    options.engine = is_reader(way) ? PM_ENGINE_AUTO
                     : way == UNDO  ? PM_ENGINE_UNDO
                     : way >= LOG   ? PM_ENGINE_LOG
                                    : PM_ENGINE_REDO;
    if (way == LOG_CHECKPOINTS || way == READ_CHECKPOINT)
        options.checkpoint_bytes = CHECKPOINT_BYTES;
    on_ordinary_file = way == REDO_ON_FILE || way == LOG_ON_FILE;
    pm_container *c = pm_open(the_file().path(), &options);
    demand(c || is_good_reason(errno), way, "pm_open() fails for no good reason");
    return c;
}

// The objects that a conservative collector would find from the root.
std::set<char *> objects_of(pm_container *c)
{
    std::set<char *> found;
    std::vector<char *> left = {static_cast<char *>(pm_getroot(c))};
    while (!left.empty() && found.size() < OBJECTS_MAX) {
        char *object = left.back();
        left.pop_back();
        size_t size = pm_contains(c, object) ? pm_usable_size(object) : 0;
        if (size == 0 || !found.insert(object).second)
            continue;
        size = std::min(size, OBJECT_BYTES_MAX) / sizeof(char *) * sizeof(char *);
        for (size_t i = 0; i < size; i += sizeof(char *)) {
            char *pointer;
            memcpy(&pointer, object + i, sizeof pointer);
            if (pointer && pm_contains(c, pointer) && left.size() < OBJECTS_MAX)
                left.push_back(pointer);
        }
    }
    return found;
}

uint64_t digest_of(pm_container *c, const std::set<char *> &objects)
{
    uint64_t sum = (uint64_t)pm_getroot(c);
    for (char *object : objects) {
        size_t size = std::min(pm_usable_size(object), OBJECT_BYTES_MAX);
        sum = checksum_mix(checksum(object, size, sum), (uint64_t)object, size);
    }
    return sum;
}

// Change a bit of everything. False: there was no room for it, or it could not be committed.
bool change(pm_container *c, const std::set<char *> &objects)
{
    if (pm_reserve(c, 16 * PM_PAGE) != 0)
        return false;
    size_t n = 0;
    for (char *object : objects) {
        char *middle = object + pm_usable_size(object) / 2 / 8 * 8;
        if (n++ < 4 && !pm_next_pointer(middle, middle + 8)) // the map may say anything
            memset(middle, 0x5A, 8);
    }
    char *small = static_cast<char *>(pm_calloc(c, 1, 40));
    char *large = static_cast<char *>(pm_malloc(c, 70000));
    if (large)
        memset(large + 5000, 1, 5000);
    if (small && pm_getroot(c) == nullptr)
        pm_setroot(c, small, 0);
    if (!objects.empty() && *objects.rbegin() != pm_getroot(c))
        pm_free(*objects.rbegin());
    bool committed = pm_commit(c) == 0;
    pm_free(small);
    pm_free(large);
    if (!committed)
        pm_rollback(c);
    return committed && pm_commit(c) == 0;
}

struct Found {
    bool opened, whole; // pm_check() has nothing to say
    uint64_t digest;
    bool log; // of the log engine
};

// What is there after closing, by a reader.
void read_again(Way way, uint64_t expected)
{
    pm_container *c = open_in(READ_ONLY);
    demand(c, way, "what was closed cannot be opened");
    demand(pm_check(c) == 0, way, "what was closed is not whole");
    demand(digest_of(c, objects_of(c)) == expected, way, "what was committed is not there");
    pm_close(c);
}

Found visit_in(Way way)
{
    pm_container *c = open_in(way);
    if (!c)
        return {false, false, 0, false};
    Found found = {true, pm_check(c) == 0, 0, false};
    demand(found.whole || errno == EBADMSG, way, "pm_check() fails for no good reason");
    std::set<char *> objects = objects_of(c);
    found.digest = digest_of(c, objects);
    struct pm_stats stats{};
    stats.size = sizeof stats;
    demand(pm_stats(c, &stats) == 0, way, "pm_stats() fails");
    found.log = strcmp(stats.engine, "log") == 0;
    if (is_reader(way) || !found.whole) {
        pm_close(c);
        return found;
    }
    bool changed = change(c, objects);
    demand(pm_check(c) == 0, way, "a change leaves it damaged");
    uint64_t digest = changed ? digest_of(c, objects_of(c)) : 0;
    demand(pm_close(c) == 0, way, "pm_close() fails");
    if (changed && stats.epoch < EPOCH_OLD)
        read_again(way, digest);
    return found;
}

pm_container *open_to_use(const MemoryFile &file, const Use &use)
{
    pm_options options{};
    options.size = sizeof options;
    options.flags = use.flags | PM_ACCEPT_COPY; // seeds are copies of killed ones
    options.engine = use.engine;
    options.checkpoint_bytes = use.checkpoint_bytes;
    on_ordinary_file = use.on_ordinary_file;
    pm_container *c = pm_open(file.path(), &options);
    if (!c && !is_good_reason(errno)) {
        fprintf(stderr, "%s: pm_open() fails for no good reason: %s\n", use.name, pm_errormsg());
        abort();
    }
    return c;
}

// A damaged pointer map ends the process at the first access to a page that has to be moved, as libpm
// promises. So there is nothing to see.
bool ends_at_first_access(pm_container *c)
{
    struct pm_stats stats{};
    stats.size = sizeof stats;
    return pm_stats(c, &stats) != 0 || (stats.moved && pm_check(c) != 0);
}

void use(const Bytes &bytes, const Use &how)
{
    static const compiled::Module discovers; // which is a reason to let PM_DISCOVER
    static const MemoryFile own, copy;
    pm_container *in_the_way = nullptr;
    own.fill(bytes);
    if (how.elsewhere) {
        copy.fill(bytes);
        in_the_way = open_to_use(copy, {how.name, PM_ENGINE_AUTO, false, false, PM_READONLY});
    }
    pm_container *c = open_to_use(own, how);
    if (c && !ends_at_first_access(c))
        call_all(c, {own.path(), !(how.flags & PM_READONLY), (how.flags & PM_DISCOVER) != 0});
    else
        pm_close(c);
    pm_close(in_the_way);
}

} // namespace

void visit(const Bytes &file)
{
    the_file().fill(file);
    Found reader = visit_in(READ_ONLY);
    const bool log = reader.opened ? reader.log : is_log(file);
    const Way first = log ? LOG : UNDO, end = log ? WAYS : LOG;
    Way way = (Way)(first + checksum(file.data(), file.size(), 0) % (uint64_t)(end - first));
    if (way == LOG_CHECKPOINTS) // it does not read what is in front of the checkpoint
        reader = visit_in(READ_CHECKPOINT);
    Found writer = visit_in(way);
    if (!writer.opened &&
        strstr(pm_errormsg(), "as often as")) // a log container may be refused to writers only
        return;
    demand(writer.opened == reader.opened, way, "opens what a reader does not, or the reverse");
    demand(!reader.whole || writer.whole, way, "is less whole than to a reader");
    demand(!reader.whole || writer.digest == reader.digest, way,
           "shows something else to a reader");
    const std::span<const Use> all =
        log ? std::span<const Use>(log_uses) : std::span<const Use>(uses);
    use(file, all[checksum(file.data(), file.size(), 1) % all.size()]);
}

} // namespace hostile
