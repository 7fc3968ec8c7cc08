/* test_footprint.c - what a rank keeps of a job of 131,072 ranks
 *
 * A context that only plans has all tables of the world: hosts, names, meshes.
 * What a rank that has joined keeps besides is measured on the arrays that it
 * would have, for the 24 peers of a rank: 17 by recursive doubling, and 7 on
 * its host.  Each part has a budget in bytes, and the sum has one.
 *
 * Without this test, a field for every rank of the world would cost each rank
 * of a large job megabytes, and nobody would see it on a laptop.
 */
#include "base/ranks.h"
#include "base/sparse.h"
#include "coll/exec.h"
#include "coll/exec/exec.h"
#include "coll/state.h"
#include "job/ctx.h"
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/sched.h"
#include "transport/tcp/tcp.h"
#include "dtensor.h"
#include "tests/support/ranks.h"
#include "tests/support/tap.h"

#include <limits.h>
#include <malloc.h>
#include <stdlib.h>

enum { RANKS = 131072, PER_HOST = 8, ME = 70003 };

static size_t sum;

static size_t heap(void)
{
    const struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void part(const char *what, size_t bytes, size_t budget)
{
    sum += bytes;
    ok(bytes <= budget, "%s: %zu bytes of %zu", what, bytes, budget);
}

static size_t planning_bytes(int nranks)
{
    const size_t before = heap();
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err;
    size_t bytes;

    need(dtensor_init_offline(NULL, nranks, PER_HOST, &ctx, &err) == 0, "%s",
         err.text);
    bytes = heap() - before;
    dtensor_fini(ctx);
    return bytes;
}

/* Write to the entries of the peers of this rank, and count the memory. */
static size_t peers_bytes(size_t entry_bytes)
{
    unsigned char *array = dtn_sparse_new(RANKS, entry_bytes);
    size_t bytes;

    need(array, "no addresses for %d entries", RANKS);
    for (int distance = 1; distance < RANKS; distance *= 2)
        array[(size_t)(ME ^ distance) * entry_bytes] = 1;
    for (int r = ME / PER_HOST * PER_HOST; r % PER_HOST != PER_HOST - 1; r++)
        array[(size_t)r * entry_bytes] = 1;
    bytes = dtn_sparse_resident(array, RANKS, entry_bytes);
    dtn_sparse_free(array, RANKS, entry_bytes);
    return bytes;
}

/* An executable that sends to one rank of all. */
static size_t send_bytes(void)
{
    const struct dtn_ranks everyone = dtn_ranks_all(RANKS);
    struct dtn_edge edge = { .peer = RANKS - 1, .sends = 1,
                             .distance = RANKS - 1 - ME, .sent.bytes = 64 };
    struct dtn_call call = { .coll = DTN_COLL_PAIRS, .dtype = DTENSOR_U8,
                             .n = RANKS, .me = ME, .edges = &edge,
                             .nedges = 1 };
    struct dtn_group group = { .n = RANKS, .me = ME, .ranks = &everyone };
    struct dtn_sched sched = { 0 };
    struct dtn_exec *exec = NULL;
    struct dtensor_error err;
    size_t bytes;

    need(dtensor_init_offline(NULL, RANKS, PER_HOST, &group.ctx, &err) == 0,
         "%s", err.text);
    bytes = heap();
    need(dtn_emit_pairs_put(&call, &sched, &err) == 0, "%s", err.text);
    need(dtn_exec_create(&group, &sched, &exec, &err) == 0, "%s", err.text);
    bytes = heap() - bytes
          + dtn_sparse_resident(exec->peers, RANKS, sizeof *exec->peers)
          + dtn_sparse_resident(exec->base,
                                (size_t)dtn_exec_peer_base(RANKS, 0),
                                sizeof *exec->base);
    dtn_exec_destroy(exec);
    dtensor_fini(group.ctx);
    return bytes;
}

/* As many ranks and hosts as there may be, and one more. */
static void limits(void)
{
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err;

    ok(dtensor_init_offline(NULL, 1 << 20, 1, &ctx, &err) == 0
       && dtensor_world_size(ctx) == 1 << 20, "2^20 ranks, each on its host");
    dtensor_fini(ctx);
    ctx = NULL;
    ok(dtensor_init_offline(NULL, (1 << 20) + 1, 8, &ctx, &err)
       == DTENSOR_EINVAL && !ctx, "one more: %s", err.text);
    ok(dtensor_init_offline(NULL, INT_MAX, 8, &ctx, &err) == DTENSOR_EINVAL
       && !ctx, "2^31 - 1: %s", err.text);
}

int main(void)
{
    const size_t small = planning_bytes(RANKS / 8);
    const size_t large = planning_bytes(RANKS);

    part("hosts, names, ranks and meshes of the world", large, 860 << 10);
    ok(large - small <= 6 * (size_t)(RANKS - RANKS / 8), "they grow by %.1f "
       "bytes a rank", (double)(large - small) / (RANKS - RANKS / 8));
    part("state of 24 peers", peers_bytes(sizeof(struct dtn_peer)), 100 << 10);
    part("requests and messages of 24 peers",
         peers_bytes(sizeof(struct dtn_coll_peer)), 100 << 10);
    part("a transport's index of 24 peers", peers_bytes(sizeof(void *)),
         100 << 10);
    part("an executable that sends to one rank", send_bytes(), 16 << 10);
    ok(sizeof(struct dtn_tcp_peer) <= 528 << 10, "a connection of tcp, with all "
       "it ever keeps: %zu bytes", sizeof(struct dtn_tcp_peer));
    ok(sum <= 1 << 20, "a rank of %d keeps %zu bytes", RANKS, sum);
    limits();
    return done();
}
