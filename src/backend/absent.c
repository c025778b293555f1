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
#include <sys/mman.h>
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
    /* A huge page would bring pages that nobody has filled. Kernels without huge pages refuse. */
    (void)madvise(address, size, MADV_NOHUGEPAGE);
    return ioctl(watcher, UFFDIO_REGISTER, &range) == 0 ? 0 : -errno;
}

int absent_fill(int watcher, void *page, const void *contents)
{
    struct uffdio_copy copy = {.dst = (uintptr_t)page, .src = (uintptr_t)contents, .len = PM_PAGE};
    while (ioctl(watcher, UFFDIO_COPY, &copy) != 0) {
        if (errno != EAGAIN) /* the mappings are just changing */
            return -errno;
        copy.copy = 0;
    }
    return 0;
}
