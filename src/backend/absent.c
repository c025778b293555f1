/*
 * Pages that memory does not have until somebody needs them, by userfaultfd(2). The first access to such a
 * page is a SIGBUS in the thread itself (UFFD_FEATURE_SIGBUS, Linux 4.14), so no other thread must answer.
 * A system call that is handed such memory fails with EFAULT instead. For accesses by the program, and not
 * by the kernel, any process may ask (UFFD_USER_MODE_ONLY, Linux 5.11).
 */
#define _GNU_SOURCE
#include "backend/backend.h"

#include "base/bits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int absent_open(void)
{
    int watcher = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API,
                             .features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM};
    if (watcher < 0)
        return -errno;
    if (ioctl(watcher, UFFDIO_API, &api) == 0)
        return watcher;
    int error = errno;
    close(watcher);
    return -error;
}

int absent_watch(int watcher, void *address, size_t size)
{
    struct uffdio_register range = {.range = {.start = (uintptr_t)address, .len = size},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    map_small_pages(address, size); /* a huge one would bring pages that nobody has filled */
    return ioctl(watcher, UFFDIO_REGISTER, &range) == 0 ? 0 : -errno;
}

int absent_fill(int watcher, void *to, const void *contents, size_t size)
{
    uint64_t done = 0;
    while (done < size) {
        struct uffdio_copy copy = {
            .dst = (uintptr_t)to + done, .src = (uintptr_t)contents + done, .len = size - done};
        if (ioctl(watcher, UFFDIO_COPY, &copy) == 0)
            return 0;
        if (copy.copy > 0) /* the next page is there, or the mappings are just changing */
            done += (uint64_t)copy.copy;
        else if (errno == EEXIST)
            done += PM_PAGE;
        else if (errno != EAGAIN)
            return -errno;
    }
    return 0;
}
