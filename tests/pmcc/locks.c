/* Functions of libc that write to where their arguments point: time and locks. */
#define _GNU_SOURCE
#include "text.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <wchar.h>

SUBJECT_MORE(uses_clocks)
{
    clock_gettime(CLOCK_MONOTONIC, (struct timespec *)m);
    clock_getres(CLOCK_MONOTONIC, (struct timespec *)(m + 200));
    timespec_get((struct timespec *)(m + 400), TIME_UTC);
    gettimeofday((struct timeval *)(m + 600), (struct timezone *)(m + 800));
    struct itimerval hour = {.it_value.tv_sec = 3600}, off = {0};
    setitimer(ITIMER_VIRTUAL, &hour, NULL);
    getitimer(ITIMER_VIRTUAL, (struct itimerval *)(m + 4000));
    setitimer(ITIMER_VIRTUAL, &off, (struct itimerval *)(m + 4200));
    time((time_t *)(m + 1000));
}

SUBJECT_MORE(uses_dates)
{
    time_t now = 1e9 + 1e6 * n;
    struct tm *utc = (struct tm *)m, *local = (struct tm *)(m + 200);
    gmtime_r(&now, utc);
    localtime_r(&now, local);
    commit();
    utc->tm_wday = local->tm_wday = 9;
    commit();
    require(timegm(utc) == now && mktime(local) == now);
    asctime_r(utc, m + 1000);
    ctime_r(&now, m + 1200);
    strftime(m + 1400, n, "%Y", utc);
    wcsftime((wchar_t *)(m + 1800), n, L"%Y", utc);
    strptime("2001-02-03", "%Y-%m-%d", (struct tm *)(m + 1600));
}

/* Each call by itself. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        commit();                                                                                  \
        require((call) == 0);                                                                      \
    } while (0)

SUBJECT_MORE(uses_mutexes)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)m;
    struct timespec never = {0};
    TRY(pthread_mutex_init(lock, NULL));
    TRY(pthread_mutex_lock(lock));
    TRY(pthread_mutex_unlock(lock));
    TRY(pthread_mutex_trylock(lock));
    TRY(pthread_mutex_unlock(lock));
    TRY(pthread_mutex_timedlock(lock, &never));
    TRY(pthread_mutex_unlock(lock));
    TRY(pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &never));
    TRY(pthread_mutex_unlock(lock));
    TRY(pthread_mutex_destroy(lock));
}

SUBJECT_MORE(uses_read_write_locks)
{
    pthread_rwlock_t *lock = (pthread_rwlock_t *)m;
    TRY(pthread_rwlock_init(lock, NULL));
    TRY(pthread_rwlock_rdlock(lock));
    TRY(pthread_rwlock_tryrdlock(lock));
    TRY(pthread_rwlock_unlock(lock));
    TRY(pthread_rwlock_unlock(lock));
    TRY(pthread_rwlock_wrlock(lock));
    TRY(pthread_rwlock_unlock(lock));
    TRY(pthread_rwlock_trywrlock(lock));
    TRY(pthread_rwlock_unlock(lock));
    struct timespec never = {0};
    TRY(pthread_rwlock_timedrdlock(lock, &never));
    TRY(pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &never));
    TRY(pthread_rwlock_unlock(lock));
    TRY(pthread_rwlock_unlock(lock));
    TRY(pthread_rwlock_timedwrlock(lock, &never));
    TRY(pthread_rwlock_unlock(lock));
    TRY(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &never));
    TRY(pthread_rwlock_unlock(lock));
    TRY(pthread_rwlock_destroy(lock));
}

SUBJECT_MORE(uses_spin_locks)
{
    pthread_spinlock_t *lock = (pthread_spinlock_t *)m;
    TRY(pthread_spin_init(lock, PTHREAD_PROCESS_PRIVATE));
    TRY(pthread_spin_lock(lock));
    TRY(pthread_spin_unlock(lock));
    TRY(pthread_spin_trylock(lock));
    TRY(pthread_spin_unlock(lock));
}

SUBJECT_MORE(uses_mutexes_of_c11)
{
    mtx_t *lock = (mtx_t *)m;
    struct timespec never = {0};
    TRY(mtx_init(lock, mtx_timed));
    TRY(mtx_lock(lock));
    TRY(mtx_unlock(lock));
    TRY(mtx_trylock(lock));
    TRY(mtx_unlock(lock));
    TRY(mtx_timedlock(lock, &never));
    TRY(mtx_unlock(lock));
    commit();
    mtx_destroy(lock);
}

SUBJECT_MORE(uses_condition_variables)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)m;
    pthread_cond_t *changed = (pthread_cond_t *)(m + 200);
    struct timespec never = {0};
    TRY(pthread_mutex_init(lock, NULL));
    TRY(pthread_cond_init(changed, NULL));
    TRY(pthread_mutex_lock(lock));
    TRY(pthread_cond_timedwait(changed, lock, &never) - ETIMEDOUT);
    TRY(pthread_cond_clockwait(changed, lock, CLOCK_MONOTONIC, &never) - ETIMEDOUT);
    TRY(pthread_cond_signal(changed));
    TRY(pthread_cond_broadcast(changed));
    TRY(pthread_mutex_unlock(lock));
    TRY(pthread_cond_destroy(changed));
}

/* Until another thread has signalled: the waiting one has told it where. */
static void *signal_changed(void *m)
{
    pthread_mutex_lock(m);
    pthread_cond_signal((pthread_cond_t *)((char *)m + 200));
    pthread_mutex_unlock(m);
    return NULL;
}

SUBJECT_MORE(waits_for_a_condition_variable)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)m;
    pthread_cond_t *changed = (pthread_cond_t *)(m + 200);
    pthread_t thread;
    require(pthread_mutex_init(lock, NULL) == 0 && pthread_cond_init(changed, NULL) == 0);
    require(pthread_mutex_lock(lock) == 0);
    commit();
    require(pthread_create(&thread, NULL, signal_changed, m) == 0);
    require(pthread_cond_wait(changed, lock) == 0);
    require(pthread_mutex_unlock(lock) == 0 && pthread_join(thread, NULL) == 0);
}

SUBJECT_MORE(uses_condition_variables_of_c11)
{
    mtx_t *lock = (mtx_t *)m;
    cnd_t *changed = (cnd_t *)(m + 200);
    struct timespec never = {0};
    TRY(mtx_init(lock, mtx_timed));
    TRY(cnd_init(changed));
    TRY(mtx_lock(lock));
    TRY(cnd_timedwait(changed, lock, &never) - thrd_timedout);
    TRY(cnd_signal(changed));
    TRY(cnd_broadcast(changed));
    TRY(mtx_unlock(lock));
    cnd_destroy(changed);
}

static int signal_changed_of_c11(void *m)
{
    mtx_lock(m);
    cnd_signal((cnd_t *)((char *)m + 200));
    mtx_unlock(m);
    return 0;
}

SUBJECT_MORE(waits_for_a_condition_variable_of_c11)
{
    mtx_t *lock = (mtx_t *)m;
    cnd_t *changed = (cnd_t *)(m + 200);
    thrd_t thread;
    require(mtx_init(lock, mtx_plain) == 0 && cnd_init(changed) == 0 && mtx_lock(lock) == 0);
    commit();
    require(thrd_create(&thread, signal_changed_of_c11, m) == 0);
    require(cnd_wait(changed, lock) == 0);
    require(mtx_unlock(lock) == 0 && thrd_join(thread, NULL) == 0);
}

SUBJECT_MORE(uses_semaphores)
{
    sem_t *semaphore = (sem_t *)m;
    struct timespec never = {0};
    TRY(sem_init(semaphore, 0, 2));
    TRY(sem_wait(semaphore));
    TRY(sem_trywait(semaphore));
    TRY(sem_timedwait(semaphore, &never) + 1);
    TRY(sem_clockwait(semaphore, CLOCK_MONOTONIC, &never) + 1);
    TRY(sem_post(semaphore));
    TRY(sem_destroy(semaphore));
}

SUBJECT_MORE(uses_barriers)
{
    pthread_barrier_t *barrier = (pthread_barrier_t *)m;
    TRY(pthread_barrier_init(barrier, NULL, 1));
    TRY(pthread_barrier_wait(barrier) - PTHREAD_BARRIER_SERIAL_THREAD);
    TRY(pthread_barrier_destroy(barrier));
}

SUBJECT_MORE(uses_sets_of_signals)
{
    sigset_t *set = (sigset_t *)m, *all = (sigset_t *)(m + 200);
    TRY(sigemptyset(set));
    TRY(sigfillset(all));
    TRY(sigaddset(set, SIGUSR1));
    TRY(sigdelset(all, SIGUSR1));
    TRY(sigorset((sigset_t *)(m + 400), set, all));
    TRY(sigandset((sigset_t *)(m + 600), set, all));
    TRY(sigpending((sigset_t *)(m + 800)));
    TRY(sigprocmask(SIG_BLOCK, NULL, (sigset_t *)(m + 1000)));
    TRY(pthread_sigmask(SIG_BLOCK, NULL, (sigset_t *)(m + 1200)));
}
