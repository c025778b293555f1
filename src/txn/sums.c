/*
 * Adding up journaled words. The segment table says where they are: a slab begins with its bitmap, and a
 * map segment has nothing but journaled words. Other segments have none.
 *
 * The state page gets new sums before the base epoch is raised, with a fence between the two. If a crash
 * comes between them, the log still counts, and recovery takes the sums from its newest record.
 */
#include "txn/sums.h"

#include "base/error.h"
#include "container/contents.h"

#include <errno.h>
#include <inttypes.h>

static uint64_t meta_bytes(const struct container *c)
{
    return (uint64_t)c->meta_segments << c->segment_shift;
}

static uint32_t term(const struct container *c, uint64_t offset, uint64_t word)
{
    return is_table_word(c, offset) ? sums_table_term(c->seed, offset, word)
                                    : sums_term(c->seed, offset, word);
}

static uint32_t range(const struct container *c, uint64_t offset, uint64_t words)
{
    uint32_t sum = 0;
    for (uint64_t end = offset + words * sizeof(uint64_t); offset < end; offset += sizeof(uint64_t))
        sum += term(c, offset, __atomic_load_n(home_word(c, offset), __ATOMIC_RELAXED));
    return sum;
}

/* Add up the journaled words of a segment whose table word is `word`. */
static uint32_t in_segment(const struct container *c, uint32_t segment, uint64_t word)
{
    uint64_t offset = (uint64_t)segment << c->segment_shift, words = 0;
    struct slab_shape shape;
    if (segment_kind(word) == SEGMENT_MAP)
        words = c->segment_size / sizeof(uint64_t);
    else if (contents_shape(c, word, &shape))
        words = bitmap_words(shape.objects);
    return range(c, offset, words);
}

struct sums sums_after(const struct txn *t, const struct record_word *words, uint64_t count)
{
    const struct container *c = t->c;
    struct sums sums = t->sums;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t offset = words[i].offset, before = *home_word(c, offset);
        uint32_t change = term(c, offset, words[i].value) - term(c, offset, before);
        if (offset >= meta_bytes(c)) {
            sums.rest += change;
            continue;
        }
        sums.fixed += change;
        if (is_table_word(c, offset) && words[i].value == 0)
            sums.rest -=
                in_segment(c, (uint32_t)((offset - FORMAT_TABLE) / sizeof(uint64_t)), before);
    }
    return sums;
}

static uint32_t fixed_of_home(const struct container *c)
{
    return range(c, FORMAT_STATE + offsetof(struct format_state, root_offset), ROOT_WORDS) +
           range(c, FORMAT_MODULES, MODULES_WORDS) + range(c, FORMAT_TABLE, c->segments_max);
}

static uint32_t rest_of_home(const struct container *c)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < atomic_load(&c->segments); i++)
        sum += in_segment(c, i, table_word(home_table(c), i));
    return sum;
}

struct sums sums_of_home(const struct txn *t)
{
    return (struct sums){fixed_of_home(t->c), rest_of_home(t->c)};
}

/* `found`: the sums of the words that home has. */
static int compare(const struct txn *t, struct sums found, const char *of)
{
    if (sums_word(found) == sums_word(t->sums))
        return 0;
    return pm__fail_at(t->c->path, FORMAT_STATE + offsetof(struct format_state, sums), EBADMSG,
                       "the sum over %s is not that of the last commit: the medium has lost a "
                       "sector of them, or has an old copy; restore the file from a backup",
                       of);
}

/* A file of an older format has none until it is opened for writing. In a log container the map's sum covers
 * metadata too. */
static bool has_sums(const struct txn *t)
{
    return t->c->header.version == FORMAT_VERSION;
}

int sums_check_fixed(const struct txn *t)
{
    if (!has_sums(t))
        return 0;
    return compare(t, (struct sums){fixed_of_home(t->c), t->sums.rest},
                   "root, modules and segment table");
}

int sums_check_rest(const struct txn *t)
{
    if (!has_sums(t))
        return 0;
    return compare(t, (struct sums){t->sums.fixed, rest_of_home(t->c)}, "bitmaps and pointer map");
}

/* Write the words back even if the file has them already: after the death of a process they may be in the
 * cache only. */
int sums_publish(struct txn *t, uint64_t durable)
{
    if (t->c->header.version < FORMAT_VERSION)
        return 0;
    struct medium *medium = &t->c->medium;
    int error = medium_publish_word(medium, &file_state(t->c)->sums, sums_word(t->sums));
    if (error == 0)
        error = medium_publish_word(medium, &file_guard(t->c)->epoch, seal(durable));
    return error;
}

int sums_upgrade(struct txn *t)
{
    if (t->c->header.version >= FORMAT_VERSION || t->c->readonly)
        return 0;
    struct format_state *state = file_state(t->c);
    struct format_guard *guard = file_guard(t->c);
    struct medium *medium = &t->c->medium;
    t->sums = sums_of_home(t);
    int error = medium_publish_word(medium, &state->sums, sums_word(t->sums));
    if (error == 0)
        error = medium_publish_word(medium, &guard->epoch, seal(t->epoch - 1));
    if (error == 0)
        error = medium_publish_word(medium, &guard->base, state->base);
    if (error == 0)
        error = medium_publish_word(medium, &guard->movable, state->movable);
    if (error == 0)
        error = medium_settle(medium);
    if (error == 0)
        error = container_upgrade(t->c);
    return error == 0 ? 0
                      : pm__fail_system(-error, "%s: cannot bring it to format version %u",
                                        t->c->path, FORMAT_VERSION);
}
