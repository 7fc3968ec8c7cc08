/* speed_pair.c - an allreduce between two ranks that share a GPU
 *
 * Its bound is 2 r S bytes: each of r ranks reads S bytes once and writes them
 * once, at the rate of a copy.  A rank is usually a process, and a GPU works
 * for one process at a time; two threads of one process are not held up so.
 * What tells ranks apart is in the environment, which threads share: getenv()
 * of this program answers each thread for itself.
 */
#include "dtensor.h"
#include "base/wait.h"
#include "tests/device/speed.h"
#include "tests/support/job.h"
#include "tests/support/standin.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2 };

extern char **environ;

static _Thread_local const char *own_rank;    /* "0", "1"; NULL: a process    */

char *getenv(const char *name)
{
    const size_t n = strlen(name);
    const char *answer = NULL;

    if (own_rank && (strcmp(name, "DTN_RANK") == 0
                     || strcmp(name, "DTN_LOCAL_RANK") == 0))
        answer = own_rank;
    if (own_rank && (strcmp(name, "DTN_WORLD_SIZE") == 0
                     || strcmp(name, "DTN_LOCAL_SIZE") == 0))
        answer = "2";
    for (char **e = environ; !answer && e && *e; e++)
        if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
            answer = *e + n + 1;
    return (char *)(uintptr_t)answer;
}

/* Seconds of the fastest allreduce. */
static double pair_best(struct job *job, const struct speed *speed, void *mem)
{
    const struct dtensor_mesh *mesh;
    double least = 1e9;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    for (int i = 0; i <= speed->rounds; i++) {
        int64_t begin;
        double s;

        good(dtensor_barrier(mesh, &job->err));
        begin = dtn_now_ns();
        good(dtensor_allreduce(mesh, mem, mem, speed->bytes / 2, DTENSOR_BF16,
                               DTENSOR_SUM, &job->err));
        s = (double)(dtn_now_ns() - begin) / 1e9;
        if (i > 0 && s < least)
            least = s;
    }
    return least;
}

static void pair_say(struct job *job, const struct speed *speed, double best,
                     const char *who, double expected)
{
    const double rate = 2.0 * RANKS * (double)speed->bytes / best;

    note("allreduce bf16, 2 %-9s %9.2f us, %.2f GB/s, %.2f of the copy (2 r S)"
         "%s%s", who, best * 1e6, rate / 1e9, rate / speed->copy,
         expected > 0 ? speed_verdict(rate / speed->copy, expected)
                      : "; by turns, so nothing is expected", speed_mark());
    note("%s: %s", who, dtensor_last_plan(job->ctx));
}

static void pair_run(int rank, struct speed *speed, const char *who,
                     double expected)
{
    struct job made, *job = &made;
    double best;
    void *mem;

    job_open(job, rank, RANKS, speed->file);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, speed->bytes, &mem,
                          &job->err));
    best = pair_best(job, speed, mem);
    if (rank == 0)
        pair_say(job, speed, best, who, expected);
    dtensor_free(job->ctx, mem);
    dtensor_fini(job->ctx);
}

void speed_pair_processes(int rank, int n, void *speed)
{
    pair_run(rank, speed, "processes", 0);
}

static void *pair_thread(void *speed)
{
    own_rank = "1";
    pair_run(1, speed, "threads", 0.6);
    return NULL;
}

void speed_pair_threads(int rank, int n, void *speed)
{
    pthread_t other;

    need(pthread_create(&other, NULL, pair_thread, speed) == 0, "no thread");
    own_rank = "0";
    pair_run(0, speed, "threads", 0.6);
    pthread_join(other, NULL);
}
