/* threads.c - threads and locks of simulated processes
 *
 * A thread is a coroutine, and runs until it waits.  The memory of a mutex
 * holds its owner and how often it is locked; all can be locked again by their
 * owner.
 */
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

struct mutex {
    struct sim_task *owner;       /* NULL: it is not locked                   */
    uint64_t times;
};
_Static_assert(sizeof(struct mutex) <= sizeof(pthread_mutex_t), "it fits");

#define WRAPPED(type, name, ...)                                              \
    type __real_##name(__VA_ARGS__);                                          \
    type __wrap_##name(__VA_ARGS__)

WRAPPED(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr,
        void *(*main)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*main)(void *), void *arg)
{
    if (!sim_self)
        return __real_pthread_create(thread, attr, main, arg);
    *thread = (pthread_t)sim_spawn(sim_self->process, main, arg);
    return 0;
}

WRAPPED(int, pthread_join, pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result)
{
    struct sim_task *task = (struct sim_task *)thread;

    if (!sim_self)
        return __real_pthread_join(thread, result);
    sim_self->waits = task;
    while (!task->done)
        sim_block(SIM_NEVER, false);
    sim_self->waits = NULL;
    return 0;
}

WRAPPED(int, pthread_mutex_init, pthread_mutex_t *lock,
        const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_init(pthread_mutex_t *lock,
                              const pthread_mutexattr_t *attr)
{
    if (!sim_self)
        return __real_pthread_mutex_init(lock, attr);
    memset(lock, 0, sizeof *lock);
    return 0;
}

static bool take(struct mutex *mutex)
{
    if (mutex->owner && mutex->owner != sim_self)
        return false;
    mutex->owner = sim_self;
    mutex->times++;
    return true;
}

WRAPPED(int, pthread_mutex_trylock, pthread_mutex_t *lock);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock)
{
    if (!sim_self)
        return __real_pthread_mutex_trylock(lock);
    return take((struct mutex *)lock) ? 0 : EBUSY;
}

WRAPPED(int, pthread_mutex_lock, pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    if (!sim_self)
        return __real_pthread_mutex_lock(lock);
    sim_self->waits = lock;
    while (!take((struct mutex *)lock))
        sim_block(SIM_NEVER, false);
    sim_self->waits = NULL;
    return 0;
}

WRAPPED(int, pthread_mutex_unlock, pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
    struct mutex *mutex = (struct mutex *)lock;

    if (!sim_self)
        return __real_pthread_mutex_unlock(lock);
    if (--mutex->times > 0)
        return 0;
    mutex->owner = NULL;
    sim_wake(lock);
    return 0;
}

WRAPPED(int, pthread_mutex_destroy, pthread_mutex_t *lock);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *lock)
{
    return sim_self ? 0 : __real_pthread_mutex_destroy(lock);
}

WRAPPED(int, pthread_cond_timedwait, pthread_cond_t *cond,
        pthread_mutex_t *lock, const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                                  const struct timespec *until)
{
    struct timespec ts;
    int64_t left;

    if (!sim_self)
        return __real_pthread_cond_timedwait(cond, lock, until);
    clock_gettime(CLOCK_MONOTONIC, &ts);
    left = (until->tv_sec - ts.tv_sec) * INT64_C(1000000000)
         + until->tv_nsec - ts.tv_nsec;
    left += sim_now();
    pthread_mutex_unlock(lock);
    sim_self->waits = cond;
    sim_block(left, false);
    pthread_mutex_lock(lock);
    return sim_now() >= left ? ETIMEDOUT : 0;
}

WRAPPED(int, pthread_cond_signal, pthread_cond_t *cond);
int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
    if (!sim_self)
        return __real_pthread_cond_signal(cond);
    sim_wake(cond);
    return 0;
}
