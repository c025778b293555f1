/*
 * Creation: all or nothing. The file is filled and forced to the medium before it gets its name
 * (container/new_file.h), so a crash leaves no file, or a whole one.
 */
#define _GNU_SOURCE
#include "container/create.h"

#include "base/error.h"
#include "container/descriptor.h"
#include "container/header.h"
#include "container/new_file.h"
#include "container/place.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static int fill_header(struct format_header *h, const char *path,
                       const struct container_options *options)
{
    *h = (struct format_header){.segment_size = options->segment_size,
                                .max_size = options->max_size,
                                .granularity = options->granularity};
    if (TEMP_FAILURE_RETRY(getrandom(h->id, sizeof h->id, 0)) != sizeof h->id)
        return pm__fail_system(errno, "%s: no random bytes for its id", path);
    h->meta_segments = (uint32_t)format_meta_segments(h->segment_size, h->max_size);
    if (options->layout)
        strncpy(h->layout, options->layout, sizeof h->layout - 1);
    header_seal(h, options->log ? FORMAT_VERSION_LOG : FORMAT_VERSION);
    return 0;
}

int header_write(int fd, const struct format_header *header, uint64_t offset)
{
    return file_write(fd, header, sizeof *header, offset);
}

static int fill_state(struct format_state *state, const char *path, const struct format_header *h,
                      bool movable)
{
    uint64_t base = arena_choose(h->max_size, h->id[0]);
    if (base == 0)
        return place_none(path, h->max_size);
    struct sums sums = {0, 0};
    for (uint32_t i = 0; i < h->meta_segments; i++)
        sums.fixed += sums_table_term(h->id[0] ^ h->id[1], FORMAT_TABLE + i * sizeof(uint64_t),
                                      segment_word(SEGMENT_META, 0));
    *state = (struct format_state){.base_epoch = seal(EPOCH_CREATED),
                                   .mark = MARK_CLOSED,
                                   .base = seal(base),
                                   .movable = seal(movable ? MOVABLE_NOW : MOVABLE_NEVER),
                                   .sums = sums_word(sums)};
    return 0;
}

/* The segment table: metadata, and one segment for each half of the log. */
static int fill_table(int fd, const struct format_header *h)
{
    int error = 0;
    for (uint32_t i = 0; i < h->meta_segments + 2 && error == 0; i++) {
        uint64_t word = i < h->meta_segments ? segment_word(SEGMENT_META, 0)
                                             : segment_log_word(i - h->meta_segments, 0);
        error = file_write(fd, &word, sizeof word, FORMAT_TABLE + i * sizeof word);
    }
    return error;
}

/* An empty container. In the log engine's there is only the first chunk, and void ones. */
static int fill_file(int fd, const struct format_header *h, const struct format_state *state,
                     const struct container_options *options)
{
    uint64_t least = options->log ? log_chunk_size(h->segment_size)
                                  : (h->meta_segments + 2) * h->segment_size;
    struct format_guard guard = {state->base_epoch, state->base, state->movable};
    int error = file_allocate(fd, 0, max_u64(least, options->initial_size));
    if (error == 0)
        error = header_write(fd, h, FORMAT_HEADER_A);
    if (error == 0)
        error = header_write(fd, h, FORMAT_HEADER_B);
    if (error == 0)
        error = file_write(fd, state, sizeof *state, FORMAT_STATE);
    if (error == 0)
        error = file_write(fd, &guard, sizeof guard, FORMAT_GUARD);
    if (error == 0 && !options->log)
        error = fill_table(fd, h);
    return error == 0 ? file_sync(fd) : error;
}

int container_create(const char *path, const struct container_options *options)
{
    struct format_header header;
    struct format_state state;
    if (fill_header(&header, path, options) != 0 ||
        fill_state(&state, path, &header, options->movable) != 0)
        return -1;
    struct new_file file;
    if (new_file_open(&file, path, options->mode) != 0)
        return pm__fail_system(errno, "%s: cannot create", path);
    int error = fill_file(file.fd, &header, &state, options);
    if (error != 0)
        pm__fail_system(-error, "%s: cannot create", path);
    if (error == 0 && new_file_publish(&file, path) == 0)
        return file.fd;
    new_file_discard(&file);
    return -1;
}
