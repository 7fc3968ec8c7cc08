/* soak.c - --loop and --startup
 *
 * A leak of one page per thousand calls is invisible in a timing and ends a
 * training run on its third day.  --loop 10000 notes the resident memory and
 * the open descriptors after the first 1000 calls, when every cache is warm,
 * and again at the end: both should grow by 0.  Some results on the way are
 * checked too.
 */
#include "tools/bench/job.h"
#include "tools/bench/options.h"
#include "tools/bench/session.h"
#include "tools/bench/soak.h"
#include "dtensor.h"

#include <dirent.h>

#define SOAK_CHECKS 100

void soak_footprint(struct footprint *fp)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[200];
    long long kib = 0;
    DIR *dir;

    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmRSS: %lld kB", &kib) == 1)
            break;
    if (status)
        fclose(status);
    fp->rss_kib = kib;
    fp->fds = 0;
    dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        fp->fds++;
    if (dir)
        closedir(dir);
}

/* Call number i: a checked one about every hundredth part of the way. */
static int soak_call(struct bench_job *job, int64_t i, uint64_t *wrongp,
                     struct dtensor_error *err)
{
    int64_t n = job->b->opt->loop;
    int64_t every = n > SOAK_CHECKS ? n / SOAK_CHECKS : 1;
    uint64_t wrong = 0;
    int rc;

    if (i % every != 0)
        return job->ops->soak(job, err);
    job->ops->fill(job, i);
    rc = dtensor_barrier(job->b->mesh, err);
    if (rc == 0)
        rc = job->ops->call(job, err);
    if (rc == 0 && job->b->opt->check)
        rc = job->ops->verify(job, i, *wrongp == 0, &wrong, err);
    *wrongp += wrong;
    return rc;
}

static int soak_calls(struct bench_job *job, int64_t from, int64_t to,
                      uint64_t *wrongp, struct dtensor_error *err)
{
    int rc = 0;

    if (job->b->position < 0)
        return 0;
    for (int64_t i = from; i < to && rc == 0; i++)
        rc = soak_call(job, i, wrongp, err);
    return rc;
}

int soak_run(struct bench_job *job, struct footprint *growth,
             uint64_t *wrongp, struct dtensor_error *err)
{
    struct bench *b = job->b;
    int64_t n = b->opt->loop, total;
    struct footprint before, after;
    uint64_t wrong = 0;
    double grown[2];
    int rc = soak_calls(job, 0, n / 10, &wrong, err);

    if (rc)
        return rc;
    soak_footprint(&before);
    rc = soak_calls(job, n / 10, n, &wrong, err);
    if (rc)
        return rc;
    soak_footprint(&after);
    grown[0] = (double)(after.rss_kib - before.rss_kib);
    grown[1] = (double)(after.fds - before.fds);
    total = (int64_t)wrong;
    rc = session_max(b, grown, 2, err);
    if (rc == 0)
        rc = session_sum(b, &total, err);
    if (rc)
        return rc;
    growth->rss_kib = (int64_t)grown[0];
    growth->fds = (int64_t)grown[1];
    *wrongp = (uint64_t)total;
    return 0;
}

int soak_startup(struct bench *b, int64_t launch_ns, double *msp,
                 struct dtensor_error *err)
{
    double one = 1, ms;
    int rc = dtensor_allreduce(b->all, &one, &one, 1, DTENSOR_F64,
                               DTENSOR_SUM, err);

    if (rc)
        return rc;
    ms = (double)(session_now_ns() - launch_ns) / 1e6;
    rc = session_max(b, &ms, 1, err);
    if (rc == 0)
        *msp = ms;
    return rc;
}
