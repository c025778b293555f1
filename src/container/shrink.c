/*
 * Giving the end of the file back to the file system, while the container is open.
 *
 * The order is: first nobody looks there, then nothing is mapped there, then the file is cut off. So no
 * access ever meets the SIGBUS of a mapping without a file behind it. The steps may stop anywhere:
 * growing begins at the file's end according to `segments`, cuts off the rest, and maps anew.
 */
#include "container/container.h"

#include <errno.h>
#include <sys/mman.h>

/* A private mapping stays: it was made for all space into which the file may grow. The private copies go
 * with the file. The queue still takes these pages for copies, and keeps them up to date. None is queued. */
static int unmap(char *address, uint64_t size, bool private)
{
    if (!private)
        return map_reserve_again(address, size);
    return mprotect(address, size, PROT_NONE) == 0 ? 0 : -errno;
}

static int unmap_all(struct container *c, uint64_t from, uint64_t size)
{
    int error = c->translated ? 0 : unmap(c->base + from, size, c->private_view);
    if (error == 0)
        error = unmap(c->home + from, size, c->medium.queue);
    return error == 0 ? unmap(c->shadow + from, size, false) : error;
}

int container_cut_chunks(struct container *c, uint32_t chunks)
{
    uint64_t from = chunks * c->chunk_size, size = container_file_bytes(c) - from;
    atomic_store_explicit(&c->chunks, chunks, memory_order_release);
    int error = size > 0 ? map_reserve_again(c->file + from, size) : 0;
    return error == 0 ? file_give_back(c->fd, from) : error;
}

int container_shrink(struct container *c, uint32_t segments)
{
    uint64_t from = (uint64_t)segments << c->segment_shift, size = container_bytes(c) - from;
    int error = 0;
    if (size > 0) {
        atomic_store_explicit(&c->segments, segments, memory_order_release);
        error = unmap_all(c, from, size);
    }
    if (error == 0) /* may be left from an earlier failure */
        error = file_give_back(c->home_fd, from);
    return error == 0 && !c->is_log ? medium_sync_length(&c->medium)
                                  : error;
}
