/* measure.c - the timed loop
 *
 * One iteration, of which only the two lines marked [timed] count:
 *
 *     write the probe's source; barrier; copy it to its target     [timed]
 *     write the whole input; barrier; the call                     [timed]
 *     read the whole output; compare every element of it
 *
 * Each rank times its own part.  Afterwards the slowest rank of each iteration
 * is taken: with times 10, 12 and 11 us on three ranks, that iteration took
 * 12.  Writing the input and reading the output matters: a library that pulls
 * from a peer's cache looks up to three times faster on buffers nobody has
 * touched since the last call.
 *
 * The probe copies, on all ranks at once, as many bytes as the test must bring
 * into one rank.  The best of these times is the bound printed beside busbw: no
 * transfer through this machine's memory can be much faster.  It is taken in
 * the same loop because another process may own the memory a second later.
 */
#include "tools/bench/job.h"
#include "tools/bench/measure.h"
#include "tools/bench/options.h"
#include "tools/bench/session.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MEASURE_MAX_ITERS 10000000

struct measure {
    struct bench_job *job;
    char *probe_from, *probe_to;
    size_t probe_bytes;
    double *call_us, *copy_us;    /* [room]                                   */
    size_t n, room;
    int64_t iter;                 /* counts warm-up too                       */
    uint64_t wrong, copied_bytes;
    char plan[sizeof ((struct bench_result *)0)->plan];
};

static double measure_us(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) / 1e3;
}

/* Time a copy of probe_bytes. */
static int measure_probe(struct measure *m, double *usp,
                         struct dtensor_error *err)
{
    struct bench *b = m->job->b;
    int64_t start_ns;
    int rc;

    memset(m->probe_from, (int)m->iter, m->probe_bytes);
    rc = dtensor_barrier(b->all, err);
    if (rc)
        return rc;
    start_ns = session_now_ns();
    memcpy(m->probe_to, m->probe_from, m->probe_bytes);
    *usp = measure_us(start_ns, session_now_ns());
    session_touch(b, m->probe_to, m->probe_bytes);
    return 0;
}

/* Time the call; ranks outside the mesh only keep step. */
static int measure_call(struct measure *m, double *usp,
                        struct dtensor_error *err)
{
    struct bench_job *job = m->job;
    bool member = job->b->position >= 0;
    int64_t start_ns;
    int rc;

    if (member)
        job->ops->fill(job, m->iter);
    rc = dtensor_barrier(job->b->all, err);
    if (rc || !member)
        return rc;
    m->copied_bytes -= dtensor_copied_bytes(job->b->ctx);
    start_ns = session_now_ns();
    rc = job->ops->call(job, err);
    *usp = measure_us(start_ns, session_now_ns());
    m->copied_bytes += dtensor_copied_bytes(job->b->ctx);
    if (rc == 0)
        job->ops->read(job);
    return rc;
}

static int measure_verify(struct measure *m, struct dtensor_error *err)
{
    const struct bench_job *job = m->job;
    int64_t every = job->b->opt->check;
    uint64_t wrong = 0;
    int rc;

    if (!every || m->iter % every != 0 || job->b->position < 0)
        return 0;
    rc = job->ops->verify(m->job, m->iter, m->wrong == 0, &wrong, err);
    m->wrong += wrong;
    return rc;
}

/* One iteration; its times go to index m->n, which a warm-up overwrites. */
static int measure_once(struct measure *m, struct dtensor_error *err)
{
    int rc = 0;

    m->call_us[m->n] = m->copy_us[m->n] = 0;
    if (m->probe_bytes)
        rc = measure_probe(m, &m->copy_us[m->n], err);
    if (rc == 0)
        rc = measure_call(m, &m->call_us[m->n], err);
    if (rc == 0 && !*m->plan)         /* the same in each iteration           */
        snprintf(m->plan, sizeof m->plan, "%s",
                 dtensor_last_plan(m->job->b->ctx));
    if (rc == 0)
        rc = measure_verify(m, err);
    m->iter++;
    return rc;
}

static int measure_warm(struct measure *m, struct dtensor_error *err)
{
    int rc = 0;

    for (int64_t i = 0; i < m->job->b->opt->warmup && rc == 0; i++)
        rc = measure_once(m, err);
    return rc;
}

/* Fill the room there is. */
static int measure_fill(struct measure *m, struct dtensor_error *err)
{
    int rc = 0;

    for (; m->n < m->room && rc == 0; m->n++)
        rc = measure_once(m, err);
    return rc;
}

static int measure_grow(struct measure *m, size_t room,
                        struct dtensor_error *err)
{
    double *call = realloc(m->call_us, room * sizeof *call);
    double *copy = realloc(m->copy_us, room * sizeof *copy);

    m->call_us = call ? call : m->call_us;
    m->copy_us = copy ? copy : m->copy_us;
    if (!call || !copy)
        return session_fail(err, DTENSOR_ENOMEM, "no memory for %zu times",
                            room);
    m->room = room;
    return 0;
}

/* With --min-time, double the iterations until the slowest rank has spent that
 * long in its calls.
 */
static int measure_go_on(struct measure *m, struct dtensor_error *err)
{
    struct bench *b = m->job->b;
    double spent, wanted = (double)b->opt->min_time_ns / 1e3;
    int rc = 0;

    while (wanted > 0 && m->room < MEASURE_MAX_ITERS) {
        spent = 0;
        for (size_t i = 0; i < m->n; i++)
            spent += m->call_us[i];
        rc = session_max(b, &spent, 1, err);
        if (rc || spent >= wanted)
            return rc;
        rc = session_agree(b, measure_grow(m, 2 * m->room, err), err);
        if (rc == 0)
            rc = measure_fill(m, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int measure_open(struct measure *m, struct bench_job *job,
                        struct dtensor_error *err)
{
    memset(m, 0, sizeof *m);
    m->job = job;
    m->probe_bytes = (size_t)job->incoming_bytes;
    m->probe_from = malloc(m->probe_bytes + 8);
    m->probe_to = malloc(m->probe_bytes + 8);
    if (!m->probe_from || !m->probe_to)
        return session_fail(err, DTENSOR_ENOMEM, "no memory for a copy of "
                            "%zu bytes (choose a smaller -e)", m->probe_bytes);
    memset(m->probe_to, 0, m->probe_bytes);
    return measure_grow(m, (size_t)job->b->opt->iters, err);
}

static void measure_close(struct measure *m)
{
    free(m->probe_from);
    free(m->probe_to);
    free(m->call_us);
    free(m->copy_us);
}

/* GB/s of `bytes` in `us`; 0 for nothing. */
static double measure_rate(double bytes, double us)
{
    return us > 0 ? bytes / us / 1e3 : 0;
}

/* From each rank's own times to those of the slowest. */
static int measure_result(struct measure *m, struct bench_result *result,
                          struct dtensor_error *err)
{
    struct bench *b = m->job->b;
    double incoming = m->job->incoming_bytes;
    int64_t wrong = (int64_t)m->wrong, copied = (int64_t)m->copied_bytes;
    struct stats copy_us;
    int rc = session_max(b, m->call_us, m->n, err);

    if (rc == 0)
        rc = session_max(b, m->copy_us, m->n, err);
    if (rc == 0)
        rc = session_sum(b, &wrong, err);
    if (rc == 0)
        rc = session_sum(b, &copied, err);
    if (rc)
        return rc;
    stats_of(m->call_us, m->n, &result->time_us);
    stats_of(m->copy_us, m->n, &copy_us);
    result->c = m->job->c;
    result->dim = b->dim;
    result->ranks = b->group;
    result->algbw = measure_rate((double)result->c->bytes,
                                 result->time_us.p50);
    result->busbw = measure_rate(incoming, result->time_us.p50);
    result->bound = measure_rate(incoming, copy_us.min);
    result->wrong = (uint64_t)wrong;
    result->copied_bytes = (uint64_t)copied;
    memcpy(result->plan, m->plan, sizeof result->plan);
    return 0;
}

int measure(struct bench_job *job, struct bench_result *result,
            struct dtensor_error *err)
{
    struct measure m;
    int rc = session_agree(job->b, measure_open(&m, job, err), err);

    if (rc == 0)
        rc = measure_warm(&m, err);
    if (rc == 0)
        rc = measure_fill(&m, err);
    if (rc == 0)
        rc = measure_go_on(&m, err);
    if (rc == 0)
        rc = measure_result(&m, result, err);
    measure_close(&m);
    return rc;
}
