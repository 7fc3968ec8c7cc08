/* test_steps.c - the schedules that dtensor_call_steps() tells
 *
 * For every collective, every algorithm that can run it and every rank of 6 on
 * 2 hosts: each wait has its signal, and each rank moves the bytes that its
 * result needs.  A ring's numbers are known and compared.  Wrong questions are
 * refused in words.
 *
 * Without this test, a picture could show messages that no rank sends.
 */
#include "dtensor.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <string.h>

enum { RANKS = 6, COUNT = 6 * 1024, BYTES = 4 * COUNT };

struct seen {
    int me;
    int signals[RANKS][RANKS];    /* from, to                                 */
    int waits[RANKS][RANKS];      /* for a signal from, at                    */
    size_t in[RANKS];             /* bytes that come into a rank              */
    size_t reduced[RANKS];        /* of terms                                 */
    int wrong;                    /* steps of which no sense can be made      */
};

static dtensor_step_f see;

static void see(const struct dtensor_call_step *step, void *arg)
{
    struct seen *seen = arg;
    int me = seen->me, peer = step->peer;

    if ((step->kind == DTENSOR_STEP_LOCAL) != (peer == -1) || peer == me ||
        peer >= RANKS || (unsigned)step->kind >= DTENSOR_NSTEP_KINDS) {
        seen->wrong++;
        return;
    }
    if (step->reduces)
        seen->reduced[me] += step->bytes;
    if (step->kind == DTENSOR_STEP_SIGNAL)
        seen->signals[me][peer]++;
    if (step->kind == DTENSOR_STEP_WAIT)
        seen->waits[peer][me]++;
    if (step->kind == DTENSOR_STEP_PUT || step->kind == DTENSOR_STEP_SIGNAL)
        seen->in[peer] += step->bytes;
    if (step->kind == DTENSOR_STEP_LOAD)
        seen->in[me] += step->bytes;
}

static int look(const struct dtensor_mesh *mesh,
                const struct dtensor_call *call, const char *algorithm,
                struct seen *seen)
{
    int rc = 0;

    *seen = (struct seen){ 0 };
    for (seen->me = 0; seen->me < RANKS && rc == 0; seen->me++)
        rc = dtensor_call_steps(mesh, call, algorithm, seen->me, see, seen,
                                NULL);
    return rc;
}

/* What must come into each rank at the least. */
static size_t least(const struct dtensor_call *call, int rank)
{
    switch (call->coll) {
    case DTENSOR_ALLREDUCE:
        return BYTES / RANKS;
    case DTENSOR_BROADCAST:
        return rank == call->root ? 0 : BYTES;
    case DTENSOR_REDUCE:
        return rank == call->root ? BYTES / RANKS : 0;
    case DTENSOR_ALLGATHER: case DTENSOR_ALL_TO_ALL:
        return BYTES / RANKS * (RANKS - 1);
    case DTENSOR_GATHER:
        return rank == call->root ? BYTES / RANKS * (RANKS - 1) : 0;
    case DTENSOR_SCATTER:
        return rank == call->root ? 0 : BYTES / RANKS;
    case DTENSOR_REDUCE_SCATTER:
        return BYTES / RANKS;
    default:
        return 0;
    }
}

static void test_way(const struct dtensor_mesh *mesh,
                     const struct dtensor_call *call, const char *name)
{
    struct seen seen;
    int enough = 1;

    if (look(mesh, call, name, &seen) != 0) {
        ok(0, "collective %d by %s has steps", call->coll, name);
        return;
    }
    for (int r = 0; r < RANKS; r++)
        enough = enough && seen.in[r] >= least(call, r);
    ok(seen.wrong == 0 && enough &&
       memcmp(seen.signals, seen.waits, sizeof seen.waits) == 0,
       "collective %d by %s: waits have signals, bytes arrive", call->coll,
       name);
}

static void test_all(const struct dtensor_mesh *mesh)
{
    for (int c = 0; c < DTENSOR_NCOLLECTIVES; c++) {
        int blocks = c != DTENSOR_ALLREDUCE && c != DTENSOR_REDUCE &&
                     c != DTENSOR_BROADCAST;
        const struct dtensor_call call = {
            .coll = (enum dtensor_collective)c, .dtype = DTENSOR_F32,
            .root = 1, .count = c == DTENSOR_BARRIER ? 0
                              : blocks ? COUNT / RANKS : COUNT
        };
        struct dtensor_way ways[32];
        int n;

        if (dtensor_call_ways(mesh, &call, ways, 32, &n, NULL) != 0)
            n = 0;
        ok(n > 0, "collective %d has ways", c);
        for (int i = 0; i < n; i++)
            test_way(mesh, &call, ways[i].name);
    }
}

static void test_ring(const struct dtensor_mesh *mesh)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
                                       .dtype = DTENSOR_F32, .count = COUNT };
    const size_t moved = 2 * (RANKS - 1) * (BYTES / RANKS);
    struct seen seen;

    look(mesh, &call, "ring", &seen);
    for (int r = 0; r < RANKS; r++)
        ok(seen.in[r] == moved && seen.reduced[r] > 0 &&
           seen.signals[r][(r + 1) % RANKS] > 0 &&
           seen.signals[r][(r + 2) % RANKS] == 0,
           "ring: rank %d gets %zu bytes and signals its neighbour", r,
           seen.in[r]);
}

static void test_refused(const struct dtensor_mesh *mesh)
{
    const size_t counts[RANKS] = { 1, 1, 1, 1, 1, 1 };
    const struct dtensor_call good = { .coll = DTENSOR_ALLREDUCE, .count = 8 };
    const struct dtensor_call counted = { .coll = DTENSOR_ALL_TO_ALL,
                                          .counts = counts,
                                          .recv_counts = counts };
    struct seen seen = { 0 };
    struct dtensor_error err;

    ok(dtensor_call_steps(mesh, &good, NULL, RANKS, see, &seen, &err) ==
       DTENSOR_EINVAL && strstr(err.text, "position 6"), "%s", err.text);
    ok(dtensor_call_steps(mesh, &good, "rign", 0, see, &seen, &err) ==
       DTENSOR_EINVAL && strstr(err.text, "no algorithm \"rign\""), "%s",
       err.text);
    ok(dtensor_call_steps(mesh, &counted, NULL, 0, see, &seen, &err) ==
       DTENSOR_EINVAL && strstr(err.text, "all-to-all with counts"), "%s",
       err.text);
    ok(seen.wrong == 0 && seen.in[0] == 0, "and no step is told");
}

int main(void)
{
    const struct dtensor_mesh *mesh;
    struct dtensor_ctx *ctx = NULL;

    if (dtensor_init_offline(NULL, RANKS, 3, &ctx, NULL) != 0 ||
        dtensor_mesh_find(ctx, "world", &mesh, NULL) != 0) {
        ok(false, "a mesh of 6 ranks");
        return done();
    }
    test_all(mesh);
    test_ring(mesh);
    test_refused(mesh);
    dtensor_fini(ctx);
    return done();
}
