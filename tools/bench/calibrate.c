/* calibrate.c - what messages and bytes cost here, as a [tuning] section
 *
 * The library predicts a call as so many hops, messages and bytes, each with a
 * cost (dtensor_call_ways()).  Here the same calls are timed, and the costs are
 * fitted: the sum of the squares of the relative errors is smallest.  When an
 * allreduce of 64 bytes on 2 ranks, of 1 hop and 1 message, takes 0.30 us and a
 * barrier on 4, of 1 hop and 3 messages, 0.40 us, a message is 50 ns and a hop
 * 250.
 *
 * The input is written before each call, as programs do: data that no rank has
 * written since the last call are in both caches, and cost a third.  Above the
 * cache size bytes cost more; a few sizes and costs are tried, and those with
 * the best predictions are used.
 *
 * Prices that these calls hardly tell apart, as those of hops and messages of 2
 * ranks, keep the ratio they had: a small part of the error is the distance
 * from where the search began.
 */
#include "tools/bench/bench.h"
#include "tools/bench/calibrate.h"
#include "tools/bench/job.h"
#include "tools/bench/measure.h"
#include "tools/bench/options.h"
#include "tools/bench/pattern.h"
#include "tools/bench/session.h"
#include "tools/bench/tests.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_MAX = 64, WAYS_MAX = 32, WARM_UP = 8, RUNS = 61, ROUNDS = 200 };
#define SETTLE_NS INT64_C(300000000)

/* One call, timed. */
struct timed {
    const struct bench_test *test;
    size_t bytes;                 /* of its largest buffer                    */
    double ns;
    struct dtensor_way way;
};

/* Prices, and how they grow beyond a cache. */
struct prices {
    double ns[DTENSOR_NCOSTS];    /* of one; 0: no call has any               */
    double cache_bytes;
    double uncached;
};

struct calibration {
    struct bench *b;
    int n;
    struct timed call[CALLS_MAX];
    struct prices at;
    double before[DTENSOR_NCOSTS];
};

static const char *const calibrate_tests[] = {
    "allreduce", "broadcast", "reduce", "allgather", "reduce_scatter",
    "all_to_all", "barrier"
};

static const size_t calibrate_bytes[] = {
    64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20
};

/* --------------------------------------------------------------- timing --- */

static int double_ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* As dtensor-bench measures: input written before, output read after, median of
 * the slowest rank.
 */
static int calibrate_time(struct calibration *cal, struct timed *timed,
                          const struct bench_case *c,
                          struct dtensor_error *err)
{
    struct bench *b = cal->b;
    struct bench_job *job = NULL;
    struct bench_result result;
    int rc = session_agree(b, c->test->open(b, c, &job, err), err);

    if (rc == 0)
        rc = measure(job, &result, err);
    if (rc == 0)
        timed->ns = result.time_us.p50 * 1e3;
    if (job)
        job->ops->close(job);
    return rc;
}

/* Time a call of that size, and ask what it is made of. */
static int calibrate_call(struct calibration *cal, const char *name,
                          size_t bytes, struct dtensor_error *err)
{
    struct timed *timed = &cal->call[cal->n];
    struct bench_case c = { .test = test_find(name), .dtype = DTENSOR_F32 };
    const bool blocked = c.test->in_blocks == TEST_GROUP
                      || c.test->out_blocks == TEST_GROUP;
    struct dtensor_call call = { .coll = c.test->coll, .dtype = c.dtype };
    struct dtensor_way ways[WAYS_MAX];
    int nways, rc, i = 0;

    c.redop = c.test->flags & TEST_REDUCES ? DTENSOR_SUM : PATTERN_NO_OP;
    test_size(c.test, bytes, sizeof(float), cal->b->group, &c);
    if (c.bytes > bytes && bytes > 0)
        return 0;
    call.count = c.count;
    timed->test = c.test;
    timed->bytes = c.count * sizeof(float)
                 * (blocked ? (size_t)cal->b->group : 1);
    rc = dtensor_call_ways(cal->b->mesh, &call, ways, WAYS_MAX, &nways, err);
    if (rc == 0)
        rc = calibrate_time(cal, timed, &c, err);
    if (rc)
        return rc;
    while (!ways[i].taken)
        i++;
    timed->way = ways[i];
    cal->n++;
    return 0;
}

/* The first call is timed for nothing: ranks that just started may share a CPU
 * for a while, and then an allreduce of 64 bytes takes 6 us instead of 0.3.
 */
static int calibrate_measure(struct calibration *cal, struct dtensor_error *err)
{
    const struct bench_options *asked = cal->b->opt;
    struct bench_options opt = *asked;
    int rc;

    opt.iters = RUNS;
    opt.warmup = WARM_UP;
    opt.check = 0;
    opt.min_time_ns = SETTLE_NS;
    cal->b->opt = &opt;
    rc = calibrate_call(cal, calibrate_tests[0], calibrate_bytes[0], err);
    opt.min_time_ns = 0;
    cal->n = 0;
    for (size_t t = 0; t < BENCH_COUNT(calibrate_tests); t++)
        for (size_t s = 0; s < BENCH_COUNT(calibrate_bytes) && rc == 0; s++)
            if (s == 0 || test_find(calibrate_tests[t])->in_blocks != 0)
                rc = calibrate_call(cal, calibrate_tests[t],
                                    calibrate_bytes[s], err);
    cal->b->opt = asked;
    return rc;
}

/* --------------------------------------------------------------- prices --- */

/* How much of price k a call pays: of bytes more, if there is no cache for all.
 */
static double calibrate_amount(const struct prices *at,
                               const struct timed *timed, int k)
{
    double beyond = (double)timed->bytes - at->cache_bytes;
    bool grows = k == DTENSOR_COST_INTRA_BYTES || k == DTENSOR_COST_FOLDED
              || k == DTENSOR_COST_COPIED;

    return timed->way.amount[k] * (grows && beyond > 0
        ? 1 + (at->uncached - 1) * beyond / (double)timed->bytes : 1);
}

static double calibrate_predict(const struct calibration *cal,
                                const struct timed *timed)
{
    double ns = 0;

    for (int k = 0; k < DTENSOR_NCOSTS; k++)
        ns += calibrate_amount(&cal->at, timed, k) * cal->at.ns[k];
    return ns;
}

/* The prices to begin with: those of the predictions. */
static void calibrate_begin(struct calibration *cal)
{
    memset(cal->before, 0, sizeof cal->before);
    for (int k = 0; k < DTENSOR_NCOSTS; k++)
        for (int i = 0; i < cal->n && cal->before[k] <= 0; i++) {
            const struct dtensor_way *way = &cal->call[i].way;

            if (way->amount[k] > 0 && way->stretch <= 1)
                cal->before[k] = way->part_ns[k] / way->amount[k];
        }
}

/* The best price k while the others stay: the error is a parabola in it.  It is
 * relative to what is between the two, so that twice as much is as bad as half.
 * Not below a twentieth of what it was: nothing is free.
 */
static void calibrate_price(struct calibration *cal, int k)
{
    const double before = cal->before[k], weight = 0.02;
    double up = weight / before, down = weight / before / before, part;

    for (int i = 0; i < cal->n; i++) {
        const struct timed *timed = &cal->call[i];
        double amount = calibrate_amount(&cal->at, timed, k);
        double ns = calibrate_predict(cal, timed);
        double rest = ns - amount * cal->at.ns[k], scale = sqrt(ns * timed->ns);

        part = amount / scale;
        up += part * (timed->ns - rest) / scale;
        down += part * part;
    }
    cal->at.ns[k] = up / down > before / 20 ? up / down : before / 20;
}

/* How far off predictions are, all together. */
static double calibrate_error(const struct calibration *cal)
{
    double error = 0, off;

    for (int i = 0; i < cal->n; i++) {
        off = log(calibrate_predict(cal, &cal->call[i]) / cal->call[i].ns);
        error += off * off;
    }
    return error;
}

static void calibrate_prices(struct calibration *cal)
{
    memcpy(cal->at.ns, cal->before, sizeof cal->at.ns);
    for (int round = 0; round < ROUNDS; round++)
        for (int k = 0; k < DTENSOR_NCOSTS; k++)
            if (cal->before[k] > 0)
                calibrate_price(cal, k);
}

/* The best prices for each cache there could be, and the best of these. */
static void calibrate_fit(struct calibration *cal)
{
    static const double times[] = { 1, 1.5, 2, 3, 4, 6, 9 };
    struct prices best = { .uncached = 0 };
    double least = HUGE_VAL, error;

    calibrate_begin(cal);
    for (double cache = 16 << 10; cache <= 4 << 20; cache *= 2)
        for (size_t t = 0; t < BENCH_COUNT(times); t++) {
            cal->at.cache_bytes = cache;
            cal->at.uncached = times[t];
            calibrate_prices(cal);
            error = calibrate_error(cal);
            if (error < least) {
                least = error;
                best = cal->at;
            }
        }
    cal->at = best;
}

/* -------------------------------------------------------------- section --- */

static const struct {
    const char *key;
    bool rate;                    /* bytes a second, not ns                   */
} calibrate_keys[DTENSOR_NCOSTS] = {
    [DTENSOR_COST_INTRA_HOPS] = { "intra_latency_ns", false },
    [DTENSOR_COST_INTRA_MESSAGES] = { "intra_message_ns", false },
    [DTENSOR_COST_INTRA_BYTES] = { "intra_bandwidth", true },
    [DTENSOR_COST_INTER_HOPS] = { "inter_latency_ns", false },
    [DTENSOR_COST_INTER_MESSAGES] = { "inter_message_ns", false },
    [DTENSOR_COST_INTER_BYTES] = { "inter_bandwidth", true },
    [DTENSOR_COST_FOLDED] = { "fold_bandwidth", true },
    [DTENSOR_COST_COPIED] = { "copy_bandwidth", true },
};

/* How far off a prediction is: 1.25 for 25% too much or too little. */
static double calibrate_off(const struct calibration *cal,
                            const struct timed *timed)
{
    return exp(fabs(log(calibrate_predict(cal, timed) / timed->ns)));
}

static void calibrate_print(const struct calibration *cal, FILE *stream)
{
    double off[CALLS_MAX];

    for (int i = 0; i < cal->n; i++)
        off[i] = calibrate_off(cal, &cal->call[i]);
    qsort(off, (size_t)cal->n, sizeof off[0], double_ascending);
    fprintf(stream, "; dtensor-bench --calibrate, %d ranks, %d calls: off by a "
            "factor of %.2f\n; in the median, %.2f at worst\n[tuning]\n",
            cal->b->group, cal->n, off[cal->n / 2], off[cal->n - 1]);
    for (int k = 0; k < DTENSOR_NCOSTS; k++) {
        double ns = cal->at.ns[k];
        double value = calibrate_keys[k].rate ? fmin(1e9 / ns, 1e12)
                                              : fmax(ns, 1);

        if (ns > 0)
            fprintf(stream, "%-16s = %.0f\n", calibrate_keys[k].key, value);
    }
    fprintf(stream, "%-16s = %.0f\n%-16s = %.0f\n", "cache_size",
            cal->at.cache_bytes, "uncached_percent", 100 * cal->at.uncached);
    fprintf(stream, "; %-16s %10s %-14s %12s %12s\n", "call", "bytes", "by",
            "us", "predicted");
    for (int i = 0; i < cal->n; i++)
        fprintf(stream, "; %-16s %10zu %-14s %12.2f %12.2f\n",
                cal->call[i].test->name, cal->call[i].bytes,
                cal->call[i].way.name, cal->call[i].ns / 1e3,
                calibrate_predict(cal, &cal->call[i]) / 1e3);
}

int calibrate(struct bench *b, FILE *stream, struct dtensor_error *err)
{
    struct calibration *cal = calloc(1, sizeof *cal);
    int rc;

    if (!cal)
        return session_fail(err, DTENSOR_ENOMEM, "no memory to calibrate");
    cal->b = b;
    rc = calibrate_measure(cal, err);
    if (rc == 0 && b->rank == 0) {
        calibrate_fit(cal);
        calibrate_print(cal, stream);
    }
    free(cal);
    return rc;
}
