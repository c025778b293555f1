#include "common/file_medium.hpp"

#include <cerrno>
#include <sys/types.h>
#include <thread>
#include <unistd.h>
#include <utility>

extern "C" {
#include "backend/backend.h"
}

test::FileMedium test::file_medium;

namespace
{

bool fails(uint64_t call, uint64_t from)
{
    return from != 0 && (test::file_medium.once ? call == from : call >= from);
}

void count_event()
{
    const test::FileMedium &m = test::file_medium;
    if (m.dies_at != 0 && m.writes + m.syncs == m.dies_at)
        _exit(test::MEDIUM_DIED);
}

} // namespace

extern "C" {

int __real_fdatasync(int fd);
ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t offset);

const struct medium_ops *__wrap_medium_of(int, const void *, size_t, bool)
{
    return &medium_cache;
}

int __wrap_fdatasync(int fd)
{
    test::FileMedium &m = test::file_medium;
    const uint64_t call = __atomic_add_fetch(&m.syncs, 1, __ATOMIC_ACQ_REL);
    count_event();
    if (m.sync_us != 0)
        usleep((useconds_t)m.sync_us);
    if (std::function<void()> work = std::exchange(m.during_sync, nullptr))
        std::thread(work).join();
    const bool works = !fails(call, m.sync_fails);
    const int result = works ? __real_fdatasync(fd) : -1;
    if (m.synced)
        m.synced(works);
    if (!works)
        errno = (int)m.sync_error;
    return result;
}

namespace
{

// Write, and tell what has arrived.
ssize_t arrive(int fd, const void *bytes, size_t size, off_t offset)
{
    const ssize_t arrived = __real_pwrite(fd, bytes, size, offset);
    if (test::file_medium.wrote && arrived > 0)
        test::file_medium.wrote((uint64_t)offset, (uint64_t)arrived);
    return arrived;
}

} // namespace

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    test::FileMedium &m = test::file_medium;
    m.writes++;
    count_event();
    if (std::function<void()> work = std::exchange(m.during_write, nullptr))
        std::thread(work).join();
    if (!fails(m.writes, m.write_fails) ||
        (m.writes_work_from != 0 && m.writes >= m.writes_work_from))
        return arrive(fd, bytes, size, offset);
    if (size > 4096) // some of it arrives
        return arrive(fd, bytes, size / 2 / 512 * 512, offset);
    if (m.arrives && m.writes == m.write_fails)
        arrive(fd, bytes, size, offset);
    errno = (int)m.write_error;
    return -1;
}
}
