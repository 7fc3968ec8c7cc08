/* pairs.c - --check-fabric: each two ranks, alone with each other
 *
 * A collective over 64 ranks is as slow as its slowest link and does not say
 * which.  So every pair is measured by itself: the time of an 8-byte allreduce
 * of the two, and how fast 1 MiB goes from one to the other.
 *
 * The pairs are those of a tournament: of 4 ranks, 0-3 and 1-2 at the same
 * time, then 0-1 and 2-3, then 0-2 and 1-3.  Every rank is in one pair of a
 * round, so n ranks take n - 1 rounds, not n(n-1)/2, and the network is in use
 * all over, as it will be.
 */
#include "tools/bench/measure.h"
#include "tools/bench/options.h"
#include "tools/bench/pairs.h"
#include "tools/bench/session.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS_BYTES = 1 << 20, PAIRS_ALL = 64 };

int pairs_opponent(int n, int round, int position)
{
    int seats = n + (n & 1), turn = seats - 1, other;

    if (position == seats - 1)
        other = round * (seats / 2) % turn;
    else
        other = ((round - position) % turn + turn) % turn;
    if (other == position)
        other = seats - 1;
    return other < n ? other : -1;
}

int pairs_rounds(int n)
{
    return n < 2 ? 0 : n + (n & 1) - 1;
}

/* --------------------------------------------------------- one pair --- */

struct pair {
    struct bench *b;
    const struct dtensor_mesh *mesh;
    int me;                       /* 0 or 1                                   */
    void *mem;                    /* PAIRS_BYTES                              */
    double *us;                   /* [iters]                                  */
};

/* The median time of an allreduce of 8 bytes. */
static int pair_latency(struct pair *pair, double *usp,
                        struct dtensor_error *err)
{
    int64_t warmup = pair->b->opt->warmup + 1, iters = pair->b->opt->iters;
    struct stats stats;
    int64_t start_ns;
    int rc = 0;

    for (int64_t i = -warmup; i < iters && rc == 0; i++) {
        start_ns = session_now_ns();
        rc = dtensor_allreduce(pair->mesh, pair->mem, pair->mem, 2,
                               DTENSOR_I32, DTENSOR_MAX, err);
        if (i >= 0)
            pair->us[i] = (double)(session_now_ns() - start_ns) / 1e3;
    }
    if (rc)
        return rc;
    stats_of(pair->us, (size_t)iters, &stats);
    *usp = stats.p50;
    return 0;
}

/* GB/s from position `root` to the other, by the median time of a broadcast at
 * the receiver; 0 at the sender.
 */
static int pair_bandwidth(struct pair *pair, int root, double *ratep,
                          struct dtensor_error *err)
{
    int64_t warmup = pair->b->opt->warmup, iters = pair->b->opt->iters;
    struct stats stats;
    int64_t start_ns;
    int rc = 0;

    for (int64_t i = -warmup; i < iters && rc == 0; i++) {
        rc = dtensor_barrier(pair->mesh, err);
        start_ns = session_now_ns();
        if (rc == 0)
            rc = dtensor_broadcast(pair->mesh, root, pair->mem, PAIRS_BYTES,
                                   DTENSOR_U8, err);
        if (i >= 0)
            pair->us[i] = (double)(session_now_ns() - start_ns) / 1e3;
    }
    if (rc)
        return rc;
    stats_of(pair->us, (size_t)iters, &stats);
    *ratep = pair->me != root && stats.p50 > 0
        ? PAIRS_BYTES / stats.p50 / 1e3 : 0;
    return 0;
}

/* Measure this rank's pair of a round, at positions i and j of `pairs`. */
static int pair_measure(struct pair *pair, struct pairs *pairs, int i, int j,
                        struct dtensor_error *err)
{
    int low = i < j ? i : j, high = i < j ? j : i, two = 2;
    const int ranks[] = { pairs->rank[low], pairs->rank[high] };
    double us = 0, rate[2] = { 0, 0 };
    int rc = dtensor_mesh_create(pair->b->ctx, 1, &two, NULL, ranks,
                                 &pair->mesh, err);

    pair->me = i == high;
    if (rc == 0)
        rc = pair_latency(pair, &us, err);
    for (int root = 0; root < 2 && rc == 0; root++)
        rc = pair_bandwidth(pair, root, &rate[root], err);
    if (rc)
        return rc;
    pairs->latency_us[i * pairs->n + j] = us;
    pairs->latency_us[j * pairs->n + i] = us;
    pairs->rate[low * pairs->n + high] = rate[0];
    pairs->rate[high * pairs->n + low] = rate[1];
    return 0;
}

/* -------------------------------------------------------- all pairs --- */

/* All ranks, or of more than 64 the first of each host.  host[r] are known. */
static void pairs_choose(struct pairs *pairs, const char (*host)[64],
                         int nranks)
{
    for (int r = 0; r < nranks; r++) {
        bool first = true;

        for (int i = 0; i < r && first && nranks > PAIRS_ALL; i++)
            first = strcmp(host[i], host[r]) != 0;
        if (!first)
            continue;
        pairs->rank[pairs->n] = r;
        memcpy(pairs->host[pairs->n++], host[r], sizeof host[r]);
    }
}

static int pairs_hosts(struct pairs *pairs, struct bench *b,
                       struct dtensor_error *err)
{
    size_t n = (size_t)b->nranks;
    char (*host)[64] = calloc(n + 1, sizeof *host);
    int rc = 0;

    pairs->rank = calloc(n, sizeof *pairs->rank);
    pairs->host = calloc(n, sizeof *pairs->host);
    if (!host || !pairs->rank || !pairs->host)
        rc = session_fail(err, DTENSOR_ENOMEM, "no memory for %d host names",
                          b->nranks);
    rc = session_agree(b, rc, err);
    if (rc == 0) {
        snprintf(host[n], sizeof host[n], "%.63s", dtensor_host(b->ctx));
        rc = dtensor_allgather(b->all, host[n], host, sizeof host[n],
                               DTENSOR_U8, err);
    }
    if (rc == 0)
        pairs_choose(pairs, (const char (*)[64])host, b->nranks);
    free(host);
    return rc;
}

static int pairs_alloc(struct pairs *pairs, struct pair *pair,
                       struct dtensor_error *err)
{
    size_t cells = (size_t)pairs->n * (size_t)pairs->n;

    pairs->latency_us = calloc(cells, sizeof(double));
    pairs->rate = calloc(cells, sizeof(double));
    pair->us = calloc((size_t)pair->b->opt->iters, sizeof(double));
    if (!pairs->latency_us || !pairs->rate || !pair->us)
        return session_fail(err, DTENSOR_ENOMEM, "no memory for %d x %d pairs",
                            pairs->n, pairs->n);
    return session_alloc(pair->b, PAIRS_BYTES, &pair->mem, err);
}

static int pairs_position(const struct pairs *pairs, int rank)
{
    for (int i = 0; i < pairs->n; i++)
        if (pairs->rank[i] == rank)
            return i;
    return -1;
}

static int pairs_play(struct pairs *pairs, struct pair *pair,
                      struct dtensor_error *err)
{
    struct bench *b = pair->b;
    int me = pairs_position(pairs, b->rank), other, rc = 0;
    size_t cells = (size_t)pairs->n * (size_t)pairs->n;

    for (int round = 0; round < pairs_rounds(pairs->n) && rc == 0; round++) {
        rc = dtensor_barrier(b->all, err);
        other = me < 0 ? -1 : pairs_opponent(pairs->n, round, me);
        if (rc == 0 && other >= 0)
            rc = pair_measure(pair, pairs, me, other, err);
    }
    if (rc == 0)
        rc = session_max(b, pairs->latency_us, cells, err);
    if (rc == 0)
        rc = session_max(b, pairs->rate, cells, err);
    return rc;
}

int pairs_measure(struct pairs *pairs, struct bench *b,
                  struct dtensor_error *err)
{
    struct pair pair = { .b = b };
    int rc;

    memset(pairs, 0, sizeof *pairs);
    rc = pairs_hosts(pairs, b, err);
    if (rc == 0)
        rc = session_agree(b, pairs_alloc(pairs, &pair, err), err);
    if (rc == 0)
        rc = pairs_play(pairs, &pair, err);
    if (pair.mem)
        session_free(b, pair.mem);
    free(pair.us);
    return rc;
}

void pairs_fini(struct pairs *pairs)
{
    free(pairs->rank);
    free(pairs->host);
    free(pairs->latency_us);
    free(pairs->rate);
    memset(pairs, 0, sizeof *pairs);
}
