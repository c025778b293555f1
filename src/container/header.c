/*
 * The header is written once and read at every open. It has two copies, each on a page of its own and
 * with a checksum, so one damaged page costs nothing. A header is believed only if its checksum is right
 * and each field is in range. So later computations with it cannot overflow.
 */
#define _GNU_SOURCE
#include "container/header.h"

#include "base/cancel.h"
#include "base/checksum.h"
#include "base/error.h"
#include "container/create.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static uint64_t header_checksum(const struct format_header *header)
{
    return checksum(header, offsetof(struct format_header, checksum), header->version);
}

void header_seal(struct format_header *header, uint32_t version)
{
    memcpy(header->magic, FORMAT_MAGIC, sizeof header->magic);
    header->version = version;
    header->page_size = PM_PAGE;
    header->header_bytes = sizeof *header;
    header->checksum = header_checksum(header);
}

static bool geometry_is_valid(const struct format_header *h)
{
    return is_power_of_two(h->segment_size) && h->segment_size >= FORMAT_SEGMENT_MIN &&
           h->segment_size <= FORMAT_SEGMENT_MAX && h->max_size <= FORMAT_SIZE_MAX &&
           h->max_size % h->segment_size == 0 && is_power_of_two(h->granularity) &&
           h->granularity >= FORMAT_GRANULARITY_MIN && h->granularity <= FORMAT_GRANULARITY_MAX &&
           h->meta_segments == format_meta_segments(h->segment_size, h->max_size) &&
           h->max_size / h->segment_size > h->meta_segments + 2 &&
           memchr(h->layout, 0, sizeof h->layout) != NULL;
}

enum verdict { WHOLE, NO_MAGIC, OTHER_VERSION, OTHER_PAGE_SIZE, DAMAGED };

static enum verdict judge(const struct format_header *h)
{
    if (memcmp(h->magic, FORMAT_MAGIC, sizeof h->magic) != 0)
        return NO_MAGIC;
    bool whole = h->checksum == header_checksum(h);
    /* Another version may keep its checksum elsewhere; its number alone must tell. */
    if (h->version < FORMAT_VERSION_OLDEST || h->version > FORMAT_VERSION_LOG)
        return OTHER_VERSION;
    if (!whole)
        return DAMAGED;
    if (h->page_size != PM_PAGE)
        return OTHER_PAGE_SIZE;
    return h->header_bytes == sizeof *h && geometry_is_valid(h) ? WHOLE : DAMAGED;
}

int header_read(int fd, const char *path, struct format_header *header, uint64_t *damaged)
{
    UNCANCELLED;
    static const uint64_t offsets[2] = {FORMAT_HEADER_A, FORMAT_HEADER_B};
    struct format_header copies[2];
    enum verdict verdicts[2];
    for (int i = 0; i < 2; i++) {
        ssize_t n = TEMP_FAILURE_RETRY(pread(fd, &copies[i], sizeof copies[i], (off_t)offsets[i]));
        if (n < 0)
            return pm__fail_system_at(path, offsets[i], errno, "cannot read the header");
        if ((size_t)n < sizeof copies[i])
            memset((char *)&copies[i] + n, 0, sizeof copies[i] - (size_t)n);
        verdicts[i] = judge(&copies[i]);
    }
    *damaged = UINT64_MAX;
    /* Copy A goes first to a new version: a copy B that lags behind is brought there as a damaged one. */
    for (int i = 0; i < 2; i++)
        if (verdicts[i] == WHOLE) {
            *header = copies[i];
            if (verdicts[!i] != WHOLE || copies[!i].version != copies[i].version)
                *damaged = offsets[!i];
            return 0;
        }
    if (verdicts[0] == NO_MAGIC && verdicts[1] == NO_MAGIC)
        return pm__fail(EBADMSG, "%s: offset 0: not a libpm container", path);
    /* When one copy has another version and the second is damaged, the version is the news. */
    for (int i = 0; i < 2; i++) {
        if (verdicts[i] == OTHER_VERSION)
            return pm__fail(ENOTSUP,
                            "%s: offset 8: a container of format version %u, this library reads "
                            "versions %u to %u; use the libpm that wrote it",
                            path, copies[i].version, FORMAT_VERSION_OLDEST, FORMAT_VERSION_LOG);
        if (verdicts[i] == OTHER_PAGE_SIZE)
            return pm__fail(ENOTSUP, "%s: offset 12: made for pages of %u bytes, not %" PRIu64,
                            path, copies[i].page_size, PM_PAGE);
    }
    return pm__fail(EBADMSG,
                    "%s: offsets 0 and %" PRIu64
                    ": both copies of the header are damaged; restore the "
                    "file from a backup",
                    path, FORMAT_HEADER_B);
}

int container_upgrade(struct container *c)
{
    static const uint64_t offsets[2] = {FORMAT_HEADER_A, FORMAT_HEADER_B};
    header_seal(&c->header, FORMAT_VERSION);
    int error = 0;
    for (int i = 0; i < 2 && error == 0; i++) {
        error = header_write(c->fd, &c->header, offsets[i]);
        if (error == 0)
            error = file_sync(c->fd);
    }
    return error;
}

int container_check_headers(struct container *c)
{
    struct format_header header;
    uint64_t damaged;
    if (header_read(c->fd, c->path, &header, &damaged) != 0)
        return -1;
    if (damaged != UINT64_MAX)
        return pm__fail_at(
            c->path, damaged, EBADMSG,
            "one copy of the header is damaged; open the container for writing to mend it");
    if (memcmp(&header, &c->header, sizeof header) != 0)
        return pm__fail(EBADMSG, "%s: offset 0: the header has changed while open", c->path);
    return 0;
}
