/* heart.c - the thread that makes a rank's heartbeats
 *
 * A rank may compute for minutes between two calls of the library, so only a
 * thread can show that it still runs.  The thread wakes every `heartbeat`, 10
 * times a second by default, counts a beat in the page of the host and sleeps
 * again: 5 us, 0.005 % of a core.
 *
 * The leader of a host of several also sends beats over the tree and forwards
 * what others report, while its program computes; between two exchanges of
 * ranks that join it sends beats only.  It never waits for the lock of the
 * tree: if the program's thread has it, that thread does the same work.
 */
#include "boot/heart.h"
#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "base/wait.h"
#include "boot/boot.h"
#include "boot/pulse.h"
#include "boot/state.h"
#include "boot/verdict.h"
#include "boot/watch.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 256 << 10 };  /* of it some 10 KiB are touched */

#define HURRY_NS (5 * DTN_BOOT_MS)

struct dtn_heart {
    pthread_t thread;             /* that beats                               */
    pid_t process;                /* that started it                          */
    pthread_mutex_t lock;         /* of `stop`                                */
    pthread_cond_t stopping;      /* `stop` has changed                       */
    bool stop;                    /* it must end                              */
    _Atomic bool begun;           /* the others see when it dies              */
};

static void heart_beat(struct dtn_boot *boot)
{
    dtn_pulse_beat(&boot->pulse);
    dtn_boot_tend(boot);
}

/* A question and its verdict go through ranks that compute, too. */
static struct timespec heart_next(const struct dtn_boot *boot)
{
    const int64_t at = dtn_now_ns()
                     + (dtn_verdict_awaited(boot)
                        ? HURRY_NS : boot->cluster->transport.heartbeat_ns);

    return (struct timespec){ at / 1000000000, at % 1000000000 };
}

static void *heart_run(void *arg)
{
    struct dtn_boot *boot = arg;
    struct dtn_heart *heart = boot->heart;
    struct timespec next;

    dtn_pulse_begin(&boot->pulse);
    atomic_store(&heart->begun, true);
    pthread_mutex_lock(&heart->lock);
    while (!heart->stop) {
        pthread_mutex_unlock(&heart->lock);
        heart_beat(boot);
        next = heart_next(boot);
        pthread_mutex_lock(&heart->lock);
        while (!heart->stop
               && pthread_cond_timedwait(&heart->stopping, &heart->lock, &next)
                  == 0)
            ;
    }
    pthread_mutex_unlock(&heart->lock);
    dtn_pulse_end(&boot->pulse);
    return NULL;
}

/* Signals of the program are for its own threads. */
static int heart_create(struct dtn_boot *boot)
{
    sigset_t all, before;
    pthread_attr_t attr;
    int rc;

    rc = pthread_attr_init(&attr);
    if (rc != 0)
        return rc;
    sigfillset(&all);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&boot->heart->thread, &attr, heart_run, boot);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return rc;
}

static void heart_say(const struct dtn_boot *boot)
{
    const struct dtn_transport_conf *conf = &boot->cluster->transport;
    char beat[32], dead[32];

    if (boot->log && boot->rank == 0)
        dtn_log(boot->log, DTN_LOG_INFO, "boot: a heartbeat every %s; a rank "
                "is lost after %s without",
                dtn_format_time(conf->heartbeat_ns, beat, sizeof beat),
                dtn_format_time(conf->dead_after_ns, dead, sizeof dead));
}

static int heart_start(struct dtn_boot *boot, struct dtensor_error *err)
{
    struct dtn_heart *heart = calloc(1, sizeof *heart);
    pthread_condattr_t clock;
    int rc;

    if (!heart)
        return dtn_fail_nomem(err, "boot", sizeof *heart);
    heart->process = getpid();
    pthread_mutex_init(&heart->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&heart->stopping, &clock);
    pthread_condattr_destroy(&clock);
    boot->heart = heart;
    rc = heart_create(boot);
    if (rc == 0) {
        heart_say(boot);
        return 0;
    }
    boot->heart = NULL;
    pthread_cond_destroy(&heart->stopping);
    pthread_mutex_destroy(&heart->lock);
    free(heart);
    return dtn_fail_sys(err, rc, "boot: cannot start the thread of the "
                        "heartbeats: %s (see ulimit -u and -v)", strerror(rc));
}

int dtn_boot_beat_open(struct dtn_boot *boot, int *fd,
                       struct dtensor_error *err)
{
    const struct dtn_host *host = boot->hosts[boot->host];
    int rc = 0;

    boot->pulse.n = host->nranks;
    boot->pulse.me = boot->rank - host->first_rank;
    if (host->nranks > 1 && boot->rank == host->first_rank)
        rc = dtn_pulse_create(&boot->pulse, err);
    if (rc == 0 && host->nranks > 1 && boot->rank == host->first_rank
        && !boot->pulse.page && boot->log)
        dtn_log(boot->log, DTN_LOG_WARN, "boot: a sandbox forbids "
                "memfd_create, or ulimit -f is too low: ranks of this host do "
                "not notice that one is stopped");
    *fd = boot->pulse.fd;
    return rc;
}

int dtn_boot_beat_start(struct dtn_boot *boot, int fd,
                        struct dtensor_error *err)
{
    int rc = 0;

    if (boot->pulse.n > 1 && !boot->pulse.page && fd >= 0)
        rc = dtn_pulse_map(&boot->pulse, fd, err);
    if (rc == 0 && boot->cluster->world_size > 1)
        rc = heart_start(boot, err);
    if (rc != 0)
        return rc;
    dtn_boot_hold(boot);
    dtn_watch_accept(boot);
    dtn_boot_release(boot);
    return 0;
}

/* On a busy machine a rank could make many calls before its thread has run. */
void dtn_boot_beat_await(const struct dtn_boot *boot)
{
    struct dtn_wait wait;

    dtn_wait_init(&wait, INT64_MAX, true);
    while (boot->heart && !atomic_load(&boot->heart->begun))
        dtn_wait_pause(&wait);
}

void dtn_heart_stop(struct dtn_boot *boot)
{
    struct dtn_heart *heart = boot->heart;

    if (!heart || heart->process != getpid())
        return;
    pthread_mutex_lock(&heart->lock);
    heart->stop = true;
    pthread_cond_signal(&heart->stopping);
    pthread_mutex_unlock(&heart->lock);
    pthread_join(heart->thread, NULL);
    pthread_cond_destroy(&heart->stopping);
    pthread_mutex_destroy(&heart->lock);
    free(heart);
    boot->heart = NULL;
}
