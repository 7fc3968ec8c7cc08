/* test_hosts_bytes.c - the bytes that are counted where only some ranks are
 * read
 *
 * Four ranks on two hosts.  In a hierarchical allreduce a rank adds the terms
 * of its own host, which are fewer than all, and puts to the other host.  The
 * counted bytes must be those of dtensor_call_steps().
 *
 * Without this test, the counters could take every reduction for one of the
 * terms of all ranks.
 */
#include "dtensor.h"
#include "tests/support/hosts.h"
#include "tests/support/tap.h"
#include "tests/support/world.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 50000 };

static const struct hosts two = { 2, { 2, 2 } };

static void add(const struct dtensor_call_step *step, void *arg)
{
    if (step->kind != DTENSOR_STEP_LOCAL)
        *(uint64_t *)arg += step->bytes;
}

static void sums(int rank, int n, void *arg)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
        .dtype = DTENSOR_F64, .op = DTENSOR_SUM, .count = COUNT };
    struct dtensor_debug_count count;
    struct world w;
    uint64_t bytes = 0;
    void *in, *out;

    (void)n;
    (void)arg;
    hosts_be(&two, rank);
    world_open(&w);
    need(dtensor_alloc(w.ctx, COUNT * sizeof(double), &in, &w.err) == 0
         && dtensor_alloc(w.ctx, COUNT * sizeof(double), &out, &w.err) == 0
         && dtensor_call_steps(w.mesh, &call, NULL, rank, add, &bytes, &w.err)
            == 0
         && dtensor_debug_begin(w.ctx, NULL, &w.err) == 0
         && dtensor_call_run(w.mesh, &call, in, out, &w.err) == 0
         && dtensor_debug_end(w.ctx, &w.err) == 0
         && dtensor_debug_counts(w.ctx, NULL, DTENSOR_FORWARD,
                                 DTENSOR_ALLREDUCE, &count, &w.err) == 0,
         "%s", w.err.text);
    need(bytes > 0 && count.predicted_bytes == bytes,
         "%s: %" PRIu64 " bytes are counted, its steps have %" PRIu64,
         dtensor_last_plan(w.ctx), count.predicted_bytes, bytes);
    dtensor_free(w.ctx, in);
    dtensor_free(w.ctx, out);
    dtensor_fini(w.ctx);
}

int main(void)
{
    const char *path = "hosts_bytes.ini";

    setenv("DTN_KEY", RANKS_KEY, 1);
    setenv("DTN_CLUSTER", path, 1);
    hosts_write(&two, path, "", "[tuning]\nallreduce = 0-inf:hierarchical\n");
    ok(ranks_run(4, 30, sums, NULL, NULL) == 0,
       "the bytes of a hierarchical allreduce are those of its steps");
    unlink(path);
    return done();
}
