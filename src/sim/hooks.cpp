// The library's calls come in here: linked with --wrap for each function below. There are three kinds:
//
//   the medium   medium_of() returns a medium whose calls are events of the device. Writes and changes of
//                size are carried out first, and are events then. A sync is an event only.
//   chance       getrandom(2) returns numbers from a seed. The clock of a simulated thread goes on by
//                1 µs at each call.
//   waiting      A simulated thread that would wait for a lock or a condition lets another thread go on.
#include "sim/device.hpp"
#include "sim/random.hpp"
#include "sim/threads.hpp"

#include <cerrno>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

extern "C" {
#include "backend/backend.h"
}

using sim::Device;

namespace
{

Device::File *recorded(int fd)
{
    Device *d = Device::current();
    return d && d->records() ? d->find(fd) : nullptr;
}

void written_back(const medium *m, const void *address, size_t size)
{
    if (Device::File *f = recorded(m->fd))
        Device::current()->written_back(*f, (uint64_t)((const char *)address - m->file), size);
}

void write_back(medium *m, const void *address, size_t size)
{
    written_back(m, address, size);
}

int publish(medium *m, const void *address, size_t size)
{
    written_back(m, address, size);
    return 0;
}

int copy(medium *m, void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
    written_back(m, to, size);
    return 0;
}

int fence(medium *m)
{
    m->counts.fences++;
    if (recorded(m->fd))
        Device::current()->fence();
    return 0;
}

uint64_t ids_drawn;

int sync_length(medium *m)
{
    if (Device::File *f = recorded(m->fd))
        Device::current()->sync(*f);
    return 0;
}

const medium_ops pmem = {"sim", true, write_back, publish, copy, fence, fence, sync_length};

void resized(int fd, uint64_t size)
{
    Device *d = Device::current();
    if (Device::File *f = d ? d->find(fd) : nullptr)
        d->resized(*f, size);
}

} // namespace

void sim::seed_ids(uint64_t seed)
{
    ids_drawn = sim::mix(seed);
}

extern "C" {

int __real_ftruncate(int fd, off_t size);
int __real_fallocate(int fd, int mode, off_t offset, off_t size);
ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t offset);
int __real_fsync(int fd);
int __real_fdatasync(int fd);
const struct medium_ops *__real_medium_of(int fd, const void *home, size_t size, bool synchronous);

const struct medium_ops *__wrap_medium_of(int fd, const void *home, size_t size, bool synchronous)
{
    Device *d = Device::current();
    if (!d || !d->adopt(fd))
        return __real_medium_of(fd, home, size, synchronous);
    return d->kind() == sim::Kind::PMEM ? &pmem : &medium_cache;
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    Device *d = Device::current();
    if (d && d->find(fd) && d->write_fails()) {
        errno = ENOSPC;
        return -1;
    }
    ssize_t n = __real_pwrite(fd, bytes, size, offset);
    if (Device::File *f = n > 0 ? recorded(fd) : nullptr)
        Device::current()->written(*f, (uint64_t)offset, (uint64_t)n);
    return n;
}

int __wrap_fdatasync(int fd)
{
    Device *d = Device::current();
    if (!d || !d->find(fd))
        return __real_fdatasync(fd);
    if (Device::File *f = recorded(fd))
        d->sync(*f);
    return 0;
}

int __wrap_fsync(int fd)
{
    Device *d = Device::current();
    return d && d->find(fd) ? __wrap_fdatasync(fd) : __real_fsync(fd);
}

int __wrap_ftruncate(int fd, off_t size)
{
    int result = __real_ftruncate(fd, size);
    if (result == 0)
        resized(fd, (uint64_t)size);
    return result;
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t size)
{
    int result = __real_fallocate(fd, mode, offset, size);
    if (result == 0)
        resized(fd, (uint64_t)(offset + size));
    return result;
}

// Ids must be the same in every run, and with them addresses and checksums.
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned)
{
    for (size_t i = 0; i < size; i++)
        static_cast<char *>(bytes)[i] = (char)sim::mix(++ids_drawn);
    return (ssize_t)size;
}

// ---- threads: a thread that waits lets others go on ---------------------------------------------

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __real_sched_yield(void);
void __real_lock_wait(uint32_t *state);
int __real_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (!sim::in_thread())
        return __real_pthread_mutex_lock(mutex);
    int error;
    while ((error = pthread_mutex_trylock(mutex)) == EBUSY)
        sim::yield_blocked();
    return error;
}

// A condition may wake a thread for no reason, and this one always does.
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    if (!sim::in_thread())
        return __real_pthread_cond_wait(condition, mutex);
    pthread_mutex_unlock(mutex);
    sim::yield_blocked();
    return __wrap_pthread_mutex_lock(mutex);
}

// lock_wait() of base/lock.h, which C++ cannot read.
void __wrap_lock_wait(uint32_t *state)
{
    if (!sim::in_thread())
        return __real_lock_wait(state);
    while (__atomic_exchange_n(state, 2, __ATOMIC_ACQUIRE) != 0)
        sim::yield_blocked();
}

int __wrap_sched_yield(void)
{
    if (!sim::in_thread())
        return __real_sched_yield();
    sim::yield_blocked();
    return 0;
}

// The duration of a round decides how long a leader waits for other threads.
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    static uint64_t ns;
    if (!Device::current())
        return __real_clock_gettime(clock, time);
    if (!sim::in_thread())
        ns = 0;
    ns += 1000;
    *time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    return 0;
}
}
