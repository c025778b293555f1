#include "log/full_disk.h"

#include "backend/backend.h"

#include <errno.h>

static uint64_t limit = UINT64_MAX;

void full_disk(uint64_t bytes)
{
    limit = bytes;
}

__typeof__(file_allocate) __real_file_allocate, __wrap_file_allocate;

int __wrap_file_allocate(int fd, uint64_t from, uint64_t to)
{
    return to > limit ? -ENOSPC : __real_file_allocate(fd, from, to);
}
