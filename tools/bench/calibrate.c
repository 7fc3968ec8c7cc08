/* calibrate.c - what messages and bytes cost here, as a [tuning] section
 *
 * The library predicts a call as so many hops, messages and bytes, each at a
 * price (dtensor_call_ways()).  Here the same calls are timed, and the prices
 * are found that make the predictions come true: of all calls together the
 * squares of the relative errors are least.  When an allreduce of 64 bytes on 2
 * ranks, of 1 hop and 1 message, takes 0.30 us and a barrier on 4, of 1 hop and
 * 3 messages, 0.40 us, a message is 50 ns and a hop 250.
 *
 * Prices that these calls hardly tell apart, as those of hops and messages of 2
 * ranks, keep the ratio they had: a small part of the error is the distance
 * from where the search began.
 */
#include "tools/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_MAX = 64, WAYS_MAX = 32, RUNS = 31, ROUNDS = 400 };

/* One call, timed. */
struct timed {
    enum dtensor_collective coll;
    size_t bytes;                 /* of its largest buffer                    */
    double ns;
    struct dtensor_way way;
};

struct calibration {
    struct bench *b;
    void *in, *out;
    int n;
    struct timed call[CALLS_MAX];
    double ns[DTENSOR_NCOSTS];    /* of one; 0: no call has any               */
    double before[DTENSOR_NCOSTS];
};

static const struct {
    enum dtensor_collective coll;
    const char *name;
    bool blocked;                 /* the buffer holds a block for each rank   */
} calibrate_calls[] = {
    { DTENSOR_ALLREDUCE, "allreduce", false },
    { DTENSOR_BROADCAST, "broadcast", false },
    { DTENSOR_REDUCE, "reduce", false },
    { DTENSOR_ALLGATHER, "allgather", true },
    { DTENSOR_REDUCE_SCATTER, "reduce_scatter", true },
    { DTENSOR_ALL_TO_ALL, "all_to_all", true },
    { DTENSOR_BARRIER, "barrier", false },
};

static const size_t calibrate_bytes[] = {
    64, 1 << 10, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20
};

/* ---------------------------------------------------------------- timing --- */

static int calibrate_run(struct calibration *cal, const struct timed *timed,
                         size_t count, struct dtensor_error *err)
{
    const struct dtensor_mesh *mesh = cal->b->mesh;
    const enum dtensor_dtype f32 = DTENSOR_F32;

    switch (timed->coll) {
    case DTENSOR_ALLREDUCE:
        return dtensor_allreduce(mesh, cal->in, cal->out, count, f32,
                                 DTENSOR_SUM, err);
    case DTENSOR_BROADCAST:
        return dtensor_broadcast(mesh, 0, cal->in, count, f32, err);
    case DTENSOR_REDUCE:
        return dtensor_reduce(mesh, 0, cal->in, cal->out, count, f32,
                              DTENSOR_SUM, err);
    case DTENSOR_ALLGATHER:
        return dtensor_allgather(mesh, cal->in, cal->out, count, f32, err);
    case DTENSOR_REDUCE_SCATTER:
        return dtensor_reduce_scatter(mesh, cal->in, cal->out, count, f32,
                                      DTENSOR_SUM, err);
    case DTENSOR_ALL_TO_ALL:
        return dtensor_all_to_all(mesh, cal->in, cal->out, count, f32, err);
    default:
        return dtensor_barrier(mesh, err);
    }
}

static int double_ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Median over RUNS of the slowest rank's mean of a few calls in a row. */
static int calibrate_time(struct calibration *cal, struct timed *timed,
                          size_t count, struct dtensor_error *err)
{
    const int calls = timed->bytes > 256 << 10 ? 2 : 16;
    double ns[RUNS];
    int rc = 0;

    for (int run = -3; run < RUNS && rc == 0; run++) {
        double *slot = &ns[run < 0 ? 0 : run];
        int64_t begin;

        rc = dtensor_barrier(cal->b->all, err);
        begin = session_now_ns();
        for (int i = 0; i < calls && rc == 0 && cal->b->position >= 0; i++)
            rc = calibrate_run(cal, timed, count, err);
        *slot = (double)(session_now_ns() - begin) / calls;
    }
    if (rc == 0)
        rc = session_max(cal->b, ns, RUNS, err);
    qsort(ns, RUNS, sizeof ns[0], double_ascending);
    timed->ns = ns[RUNS / 2];
    return rc;
}

/* Time a call of that size, and ask what it is made of. */
static int calibrate_call(struct calibration *cal, size_t c, size_t bytes,
                          struct dtensor_error *err)
{
    const size_t ranks = calibrate_calls[c].blocked ? (size_t)cal->b->group : 1;
    struct timed *timed = &cal->call[cal->n];
    const struct dtensor_call call = { .coll = calibrate_calls[c].coll,
                                       .dtype = DTENSOR_F32,
                                       .count = bytes / sizeof(float) / ranks };
    struct dtensor_way ways[WAYS_MAX];
    int nways, rc, i = 0;

    if (call.count == 0 && call.coll != DTENSOR_BARRIER)
        return 0;
    timed->coll = call.coll;
    timed->bytes = call.count * sizeof(float) * ranks;
    rc = dtensor_call_ways(cal->b->mesh, &call, ways, WAYS_MAX, &nways, err);
    if (rc == 0)
        rc = calibrate_time(cal, timed, call.count, err);
    if (rc)
        return rc;
    while (!ways[i].taken)
        i++;
    timed->way = ways[i];
    cal->n++;
    return 0;
}

static int calibrate_measure(struct calibration *cal, struct dtensor_error *err)
{
    const size_t nsizes = BENCH_COUNT(calibrate_bytes);
    int rc = 0;

    for (size_t c = 0; c < BENCH_COUNT(calibrate_calls); c++)
        for (size_t s = 0; s < nsizes && rc == 0; s++)
            if (calibrate_calls[c].coll != DTENSOR_BARRIER || s == 0)
                rc = calibrate_call(cal, c, calibrate_calls[c].coll
                                    == DTENSOR_BARRIER ? 0 : calibrate_bytes[s],
                                    err);
    return rc;
}

/* --------------------------------------------------------------- prices --- */

static double calibrate_predict(const struct calibration *cal,
                                const struct timed *timed)
{
    double ns = 0;

    for (int k = 0; k < DTENSOR_NCOSTS; k++)
        ns += timed->way.amount[k] * cal->ns[k];
    return ns;
}

/* The prices to begin with: those of the predictions. */
static void calibrate_begin(struct calibration *cal)
{
    for (int k = 0; k < DTENSOR_NCOSTS; k++)
        for (int i = 0; i < cal->n && cal->ns[k] <= 0; i++)
            if (cal->call[i].way.amount[k] > 0)
                cal->ns[k] = cal->call[i].way.part_ns[k]
                           / cal->call[i].way.amount[k];
    memcpy(cal->before, cal->ns, sizeof cal->ns);
}

/* The best price k while the others stay: the error is a parabola in it.  Not
 * below a twentieth of what it was: nothing is free.
 */
static void calibrate_price(struct calibration *cal, int k)
{
    const double before = cal->before[k], weight = 0.02;
    double up = weight / before, down = weight / before / before, part;

    for (int i = 0; i < cal->n; i++) {
        const struct timed *timed = &cal->call[i];
        double rest = calibrate_predict(cal, timed)
                    - timed->way.amount[k] * cal->ns[k];

        part = timed->way.amount[k] / timed->ns;
        up += part * (timed->ns - rest) / timed->ns;
        down += part * part;
    }
    cal->ns[k] = up / down > before / 20 ? up / down : before / 20;
}

static void calibrate_fit(struct calibration *cal)
{
    calibrate_begin(cal);
    for (int round = 0; round < ROUNDS; round++)
        for (int k = 0; k < DTENSOR_NCOSTS; k++)
            if (cal->ns[k] > 0)
                calibrate_price(cal, k);
}

/* --------------------------------------------------------------- section --- */

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

static const char *calibrate_name(enum dtensor_collective coll)
{
    size_t c = 0;

    while (calibrate_calls[c].coll != coll)
        c++;
    return calibrate_calls[c].name;
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
        double value = calibrate_keys[k].rate ? fmin(1e9 / cal->ns[k], 1e12)
                                              : fmax(cal->ns[k], 1);

        if (cal->ns[k] > 0)
            fprintf(stream, "%-16s = %.0f\n", calibrate_keys[k].key, value);
    }
    fprintf(stream, "; %-16s %10s %-14s %12s %12s\n", "call", "bytes", "by",
            "us", "predicted");
    for (int i = 0; i < cal->n; i++)
        fprintf(stream, "; %-16s %10zu %-14s %12.2f %12.2f\n",
                calibrate_name(cal->call[i].coll), cal->call[i].bytes,
                cal->call[i].way.name, cal->call[i].ns / 1e3,
                calibrate_predict(cal, &cal->call[i]) / 1e3);
}

int calibrate(struct bench *b, FILE *stream, struct dtensor_error *err)
{
    const size_t most = calibrate_bytes[BENCH_COUNT(calibrate_bytes) - 1];
    struct calibration *cal = calloc(1, sizeof *cal);
    int rc;

    if (!cal)
        return session_fail(err, DTENSOR_ENOMEM, "no memory to calibrate");
    cal->b = b;
    rc = session_alloc(b, most, &cal->in, err);
    if (rc == 0)
        rc = session_alloc(b, most, &cal->out, err);
    rc = session_agree(b, rc, err);
    if (rc == 0)
        rc = calibrate_measure(cal, err);
    if (rc == 0 && b->rank == 0) {
        calibrate_fit(cal);
        calibrate_print(cal, stream);
    }
    if (cal->in)
        session_free(b, cal->in);
    if (cal->out)
        session_free(b, cal->out);
    free(cal);
    return rc;
}
