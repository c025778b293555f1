/*
 * A wrapper must not touch an object that the function has given away. Once a thread has unlocked a mutex,
 * posted a semaphore, or left a condition variable or a barrier, another thread may free the object. Its
 * memory may hold pointers by then, and the wrapper must not call them data.
 *
 * The linker puts the functions below in the place of libc's (--wrap). They store pointers to the object, as
 * another thread could at that moment. A copy of the container shows whether the words stayed pointers.
 */
#define _GNU_SOURCE
#include <libpm.h>

#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 8, CALLS = 15 };

struct root {
    union object {
        void *words[WORDS];
        pthread_mutex_t mutex;
        pthread_rwlock_t rwlock;
        pthread_spinlock_t spin;
        pthread_cond_t cond;
        pthread_barrier_t barrier;
        mtx_t mtx;
        cnd_t cnd;
        sem_t semaphore;
    } objects[CALLS];
    pthread_mutex_t mutex;
    mtx_t mtx;
};

static struct root *root; /* NULL: libc's functions, for libpm itself */

static bool is_reused(void *p)
{
    if (!root)
        return false;
    void **words = p;
    for (int i = 0; i < WORDS; i++)
        words[i] = root;
    return true;
}

#define RELEASING(name, parameters, arguments)                                                     \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters                                                                   \
    {                                                                                              \
        return is_reused((void *)p) ? 0 : __real_##name arguments;                                 \
    }

RELEASING(pthread_mutex_unlock, (pthread_mutex_t * p), (p))
RELEASING(pthread_rwlock_unlock, (pthread_rwlock_t * p), (p))
RELEASING(pthread_spin_unlock, (pthread_spinlock_t * p), (p))
RELEASING(pthread_cond_signal, (pthread_cond_t * p), (p))
RELEASING(pthread_cond_broadcast, (pthread_cond_t * p), (p))
RELEASING(pthread_cond_wait, (pthread_cond_t * p, pthread_mutex_t *lock), (p, lock))
RELEASING(pthread_cond_timedwait,
          (pthread_cond_t * p, pthread_mutex_t *lock, const struct timespec *t), (p, lock, t))
RELEASING(pthread_cond_clockwait,
          (pthread_cond_t * p, pthread_mutex_t *lock, clockid_t id, const struct timespec *t),
          (p, lock, id, t))
RELEASING(pthread_barrier_wait, (pthread_barrier_t * p), (p))
RELEASING(mtx_unlock, (mtx_t * p), (p))
RELEASING(cnd_signal, (cnd_t * p), (p))
RELEASING(cnd_broadcast, (cnd_t * p), (p))
RELEASING(cnd_wait, (cnd_t * p, mtx_t *lock), (p, lock))
RELEASING(cnd_timedwait, (cnd_t * p, mtx_t *lock, const struct timespec *t), (p, lock, t))
RELEASING(sem_post, (sem_t * p), (p))

static const char *const names[CALLS] = {
    "pthread_mutex_unlock",
    "pthread_rwlock_unlock",
    "pthread_spin_unlock",
    "pthread_cond_signal",
    "pthread_cond_broadcast",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
    "pthread_barrier_wait",
    "mtx_unlock",
    "cnd_signal",
    "cnd_broadcast",
    "cnd_wait",
    "cnd_timedwait",
    "sem_post",
};

static void call_all(struct root *r)
{
    union object *p = r->objects;
    struct timespec t = {0};
    root = r;
    pthread_mutex_unlock(&p++->mutex);
    pthread_rwlock_unlock(&p++->rwlock);
    pthread_spin_unlock(&p++->spin);
    pthread_cond_signal(&p++->cond);
    pthread_cond_broadcast(&p++->cond);
    pthread_cond_wait(&p++->cond, &r->mutex);
    pthread_cond_timedwait(&p++->cond, &r->mutex, &t);
    pthread_cond_clockwait(&p++->cond, &r->mutex, CLOCK_MONOTONIC, &t);
    pthread_barrier_wait(&p++->barrier);
    mtx_unlock(&p++->mtx);
    cnd_signal(&p++->cnd);
    cnd_broadcast(&p++->cnd);
    cnd_wait(&p++->cnd, &r->mtx);
    cnd_timedwait(&p++->cnd, &r->mtx, &t);
    sem_post(&p++->semaphore);
    root = NULL;
    assert(p == r->objects + CALLS);
}

int main(void)
{
    char path[] = "/dev/shm/libpm-released-XXXXXX", copy[sizeof path + 5];
    int fd = mkstemp(path), failures = 0;
    assert(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    snprintf(copy, sizeof copy, "%s.copy", path);
    struct pm_options options = {.size = sizeof options,
                                 .flags = PM_CREATE | PM_MOVABLE,
                                 .tracker = PM_TRACKER_STORES,
                                 .max_size = 64 << 20};
    pm_container *c = pm_open(path, &options);
    assert(c);
    struct root *r = pm_calloc(c, 1, sizeof *r);
    assert(pm_setroot(c, r, 0) == 0);
    call_all(r);
    assert(pm_commit(c) == 0 && pm_copy(c, copy, NULL, NULL) == 0);
    pm_container *d = pm_open(copy, &options);
    assert(d);
    r = pm_getroot(d);
    for (int i = 0; i < CALLS; i++)
        for (int word = 0; word < WORDS; word++)
            if (r->objects[i].words[word] != r) {
                fprintf(stderr, "word %d after %s() is no pointer any more\n", word, names[i]);
                failures++;
            }
    pm_close(d);
    pm_close(c);
    unlink(path);
    unlink(copy);
    return failures != 0;
}
