/* test_plan_ranks.c - plans on real ranks: routes, meshes, batches, requests
 *
 * Every rank knows every element of every result, so each checks its own part.
 *
 * Without this test, a plan could be right on paper and wrong when it runs,
 * for example in a batch or between two meshes.
 */
#include "base/wait.h"
#include "coll/request.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/gate.h"
#include "tests/support/tensor_job.h"

#include <string.h>

static int64_t now_ns(void)
{
    return dtn_now_ns();
}

/* ---------------------------------------------------------------- real runs */

/* Every route of some pairs, on real ranks, with uneven and nested shards. */
static void routes_main(int rank, int n, void *arg)
{
    static const int sizes[] = { 2, 2 };
    static const char *const pairs[][2] = {
        { "S(0),S(0)", "R,R" }, { "S(0),S(1)", "S(1),S(0)" },
        { "P,S(0)", "S(0),R" }, { "S(0),S(0)", "S(1),S(1)" },
        { "P,P", "R,S(1)" }, { "R,S(0)", "S(0),S(0)" }, { "R,R", "P,S(1)" },
        { "S(0),R", "P,P" }
    };
    const int64_t shape[] = { 5, 3 };
    struct job job_here, *job = &job_here;
    const struct dtensor_mesh *mesh = NULL;

    (void)arg;
    job_open(job, rank, n, NULL);
    good(dtensor_mesh_create(job->ctx, 2, sizes, NULL, NULL, &mesh, &job->err));
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        for (int route = 0; route < DTENSOR_NROUTES; route++) {
            const struct dtensor_plan_options options = {
                .route = (enum dtensor_route)route };
            struct dtensor_spec src = spec_of(job, mesh, DTENSOR_F64, shape,
                                              pairs[i][0]);
            struct dtensor_spec dst = spec_of(job, mesh, DTENSOR_F64, shape,
                                              pairs[i][1]);
            struct dtensor *a = make(job, &src, -1), *b = NULL;
            struct dtensor_plan *plan = NULL;

            good(dtensor_zeros(&dst, &b, &job->err));
            good(dtensor_plan_create(&src, &dst, &options, &plan, &job->err));
            for (int k = 0; k < 2; k++) {
                good(dtensor_plan_run(plan, a, b, &job->err));
                need(is_partial(&dst) ? whole_is_right(job, b)
                                      : local_is_right(job, b),
                     "%s -> %s by route %d", pairs[i][0], pairs[i][1], route);
            }
            need(dtensor_plan_run(plan, b, a, &job->err) == DTENSOR_EINVAL,
                 "a plan the wrong way round is refused");
            dtensor_plan_destroy(plan);
            dtensor_destroy(a);
            dtensor_destroy(b);
        }
    dtensor_fini(job->ctx);
}

/* Between meshes: shapes, orders, disjoint, overlapping, of different sizes. */
static const struct cross_case {
    int ndim[2], size[2][2], rank[2][4];
    const char *from, *to;
} cross_cases[] = {
    { { 1, 2 }, { { 4 }, { 2, 2 } }, { { 0, 1, 2, 3 }, { 3, 1, 2, 0 } },
      "S(0)", "S(1),S(0)" },
    { { 1, 1 }, { { 2 }, { 2 } }, { { 0, 1 }, { 2, 3 } }, "S(0)", "S(1)" },
    { { 1, 1 }, { { 3 }, { 2 } }, { { 2, 0, 1 }, { 1, 3 } }, "S(0)", "S(0)" },
    { { 1, 1 }, { { 2 }, { 3 } }, { { 3, 1 }, { 0, 1, 2 } }, "R", "S(1)" },
    { { 1, 2 }, { { 3 }, { 2, 2 } }, { { 0, 1, 2 }, { 0, 1, 2, 3 } },
      "P", "R,S(0)" },
    { { 2, 1 }, { { 2, 2 }, { 1 } }, { { 0, 1, 2, 3 }, { 2 } },
      "P,S(0)", "R" },
    { { 1, 1 }, { { 1 }, { 4 } }, { { 3 }, { 3, 2, 1, 0 } }, "R", "S(0)" },
    { { 1, 1 }, { { 2 }, { 2 } }, { { 1, 0 }, { 0, 1 } }, "S(0)", "S(0)" },
    { { 1, 1 }, { { 2 }, { 2 } }, { { 0, 1 }, { 2, 3 } }, "P", "P" },
};

static void cross_main(int rank, int n, void *arg)
{
    const int64_t shape[] = { 7, 3 };
    struct job job_here, *job = &job_here;

    (void)arg;
    job_open(job, rank, n, NULL);
    for (size_t i = 0; i < sizeof cross_cases / sizeof cross_cases[0]; i++) {
        const struct cross_case *c = &cross_cases[i];
        const struct dtensor_mesh *mesh[2] = { NULL, NULL };
        struct dtensor *a, *b = NULL, *again = NULL;
        struct dtensor_spec src, dst;

        for (int k = 0; k < 2; k++)
            good(dtensor_mesh_create(job->ctx, c->ndim[k], c->size[k], NULL,
                                     c->rank[k], &mesh[k], &job->err));
        src = spec_of(job, mesh[0], DTENSOR_F64, shape, c->from);
        dst = spec_of(job, mesh[1], DTENSOR_F64, shape, c->to);
        a = make(job, &src, -1);
        good(dtensor_redistribute_to(a, &dst, &b, &job->err));
        good(dtensor_redistribute_to(a, &dst, &again, &job->err));
        if (dtensor_mesh_index(mesh[1], rank) >= 0)
            need(is_partial(&dst) ? whole_is_right(job, b)
                                  : local_is_right(job, b) &&
                                    local_is_right(job, again),
                 "case %zu: %s -> %s", i, c->from, c->to);
        else
            need(dtensor_local_bytes(b) == 0, "an outsider holds nothing");
        dtensor_destroy(a);
        dtensor_destroy(b);
        dtensor_destroy(again);
    }
    dtensor_fini(job->ctx);
}

/* ------------------------------------------------------------------ batch */

static uint64_t signals_sent(const struct job *job)
{
    uint64_t sent = 0;

    for (int r = 0; r < job->n; r++)
        sent += job->ctx->peers[r].sent;
    return sent;
}

/* A batch takes less than half of the signals that its tensors take one by one.
 */
static void batch_signals(struct job *job, struct dtensor_batch *batch, int n,
                          struct dtensor *const a[], struct dtensor *b[])
{
    uint64_t start = signals_sent(job), together, apart;

    good(dtensor_batch_run(batch, (const struct dtensor *const *)a, b,
                           &job->err));
    together = signals_sent(job) - start;
    for (int k = 0; k < 2; k++) {
        start = signals_sent(job);
        for (int i = 0; i < n; i++)
            good(dtensor_redistribute_into(a[i], b[i], &job->err));
    }
    apart = signals_sent(job) - start;
    if (job->rank == 0)
        note("%llu signals together, %llu one by one",
             (unsigned long long)together, (unsigned long long)apart);
    need(2 * together < apart, "signals: %llu together, %llu one by one",
         (unsigned long long)together, (unsigned long long)apart);
}

/* A dozen tensors at once: right, and with fewer signals than one by one. */
static void batch_main(int rank, int n, void *arg)
{
    static const char *const pairs[][2] = {
        { "S(0)", "S(1)" }, { "S(1)", "S(0)" }, { "P", "S(0)" }, { "P", "R" },
        { "S(0)", "R" }, { "R", "P" }, { "P", "S(1)" }, { "S(0)", "S(0)" },
        { "S(1)", "R" }, { "R", "S(1)" }, { "S(1)", "P" }, { "S(0)", "S(1)" }
    };
    enum { N = sizeof pairs / sizeof pairs[0] };
    static const int sizes[] = { 4 };
    struct dtensor *a[N], *b[N] = { NULL };
    struct dtensor_spec src[N], dst[N];
    struct dtensor_batch *batch = NULL;
    const struct dtensor_mesh *mesh = NULL;
    struct job job_here, *job = &job_here;

    (void)arg;
    job_open(job, rank, n, arg);
    good(dtensor_mesh_create(job->ctx, 1, sizes, NULL, NULL, &mesh, &job->err));
    for (int i = 0; i < N; i++) {
        const int64_t shape[] = { 3 + i % 4, 5 - i % 3 };
        enum dtensor_dtype dtype = i % 5 ? DTENSOR_F64 : DTENSOR_I32;

        src[i] = spec_of(job, mesh, dtype, shape, pairs[i][0]);
        dst[i] = spec_of(job, mesh, dtype, shape, pairs[i][1]);
        a[i] = make(job, &src[i], -1);
        good(dtensor_zeros(&dst[i], &b[i], &job->err));
    }
    good(dtensor_batch_create(N, src, dst, &batch, &job->err));
    for (int k = 0; k < 3; k++) {
        good(dtensor_batch_run(batch, (const struct dtensor *const *)a, b,
                               &job->err));
        for (int i = 0; i < N; i++)
            need(is_partial(&dst[i]) ? whole_is_right(job, b[i])
                                     : local_is_right(job, b[i]),
                 "tensor %d: %s -> %s", i, pairs[i][0], pairs[i][1]);
    }
    batch_signals(job, batch, N, a, b);
    need(dtensor_batch_run(batch, (const struct dtensor *const *)b, a,
                           &job->err) == DTENSOR_EINVAL, "the wrong way round");
    dtensor_batch_destroy(batch);
    dtensor_batch_destroy(NULL);
    for (int i = 0; i < N; i++) {
        dtensor_destroy(a[i]);
        dtensor_destroy(b[i]);
    }
    dtensor_fini(job->ctx);
}

/* ---------------------------------------------------------------- requests */

/* A tensor of 5 x 3, a plan to redistribute it, and a tensor for the result. */
static void request_make(struct job *job, const struct dtensor_mesh *mesh,
                         const char *const pair[2], struct dtensor_plan **planp,
                         struct dtensor **ap, struct dtensor **bp)
{
    const int64_t shape[] = { 5, 3 };
    struct dtensor_spec src = spec_of(job, mesh, DTENSOR_F64, shape, pair[0]);
    struct dtensor_spec dst = spec_of(job, mesh, DTENSOR_F64, shape, pair[1]);

    *ap = make(job, &src, -1);
    good(dtensor_zeros(&dst, bp, &job->err));
    good(dtensor_plan_create(&src, &dst, NULL, planp, &job->err));
}

static struct gate late;          /* before rank 3                            */

/* Test until it is finished.  With `alone`, rank 3 has not begun: it comes when
 * each of the others has tested ten times.
 */
static void request_test(struct job *job, struct dtensor_request *request,
                         bool alone)
{
    int finished = 0;

    for (int tests = 0; !finished; tests++) {
        if (alone && tests == 10)
            gate_open(&late, 1);
        good(dtensor_test(request, &finished, &job->err));
        need(!alone || !finished || tests >= 10, "over without rank 3");
    }
}

/* Three runs started, one of them in steps; tested, waited for out of order; a
 * collective in between; a late rank does not block the others.
 */
static void request_main(int rank, int n, void *arg)
{
    static const int sizes[] = { 2, 2 };
    static const char *const pairs[][2] = {
        { "S(0),S(0)", "R,S(1)" }, { "P,S(0)", "R,S(1)" },
        { "S(1),R", "R,S(0)" }, { "R,S(0)", "R,S(0)" }
    };
    enum { N = sizeof pairs / sizeof pairs[0] };
    struct dtensor *a[N], *b[N] = { NULL };
    struct dtensor_plan *plan[N] = { NULL };
    const struct dtensor_mesh *mesh = NULL;
    struct job job_here, *job = &job_here;

    job_open(job, rank, n, arg);
    good(dtensor_mesh_create(job->ctx, 2, sizes, NULL, NULL, &mesh, &job->err));
    for (int i = 0; i < N; i++)
        request_make(job, mesh, pairs[i], &plan[i], &a[i], &b[i]);
    for (int round = 0; round < 20; round++) {
        struct dtensor_request *request[N] = { NULL };

        for (int i = 0; i < N; i++)
            memset(dtensor_to_local(b[i]), 0, dtensor_local_bytes(b[i]));
        for (int i = 0; i < 3 && round == 1 && rank == 3; i++)
            gate_pass(&late);
        for (int i = 0; i < N; i++)
            good(dtensor_plan_start(plan[i], a[i], b[i], &request[i],
                                    &job->err));
        if (round % 3 == 1)
            request_test(job, request[1], round == 1 && rank != 3);
        if (round % 3 == 2)
            good(dtensor_barrier(mesh, &job->err));
        for (int i = N - 1; i >= 0; i--)
            good(dtensor_wait(request[i], &job->err));
        for (int i = 0; i < N; i++)
            need(local_is_right(job, b[i]), "round %d: %s -> %s", round,
                 pairs[i][0], pairs[i][1]);
    }
    good(dtensor_wait(NULL, &job->err));
    for (int i = 0; i < N; i++) {
        dtensor_plan_destroy(plan[i]);
        dtensor_destroy(a[i]);
        dtensor_destroy(b[i]);
    }
    dtensor_fini(job->ctx);
}

/* A peer that dies is found by testing, too. */
static void death_main(int rank, int n, void *arg)
{
    static const int sizes[] = { 4 };
    const int64_t shape[] = { 8, 4 };
    const struct dtensor_mesh *mesh = NULL;
    struct dtensor_request *request = NULL;
    struct dtensor_plan *plan = NULL;
    struct job job_here, *job = &job_here;
    struct dtensor_spec src, dst;
    struct dtensor *a, *b = NULL;
    int finished = 0, rc = 0;

    job_open(job, rank, n, arg);
    good(dtensor_mesh_create(job->ctx, 1, sizes, NULL, NULL, &mesh, &job->err));
    src = spec_of(job, mesh, DTENSOR_F64, shape, "S(0)");
    dst = spec_of(job, mesh, DTENSOR_F64, shape, "S(1)");
    a = make(job, &src, -1);
    good(dtensor_zeros(&dst, &b, &job->err));
    good(dtensor_plan_create(&src, &dst,
                             &(struct dtensor_plan_options){ .connect = 1 },
                             &plan, &job->err));
    good(dtensor_barrier(mesh, &job->err));
    if (rank == 2)
        _exit(0);
    good(dtensor_plan_start(plan, a, b, &request, &job->err));
    while (rc == 0 && !finished)
        rc = dtensor_test(request, &finished, &job->err);
    need(rc == DTENSOR_EPEER && job->err.rank == 2, "testing says %d: %s", rc,
         job->err.text);
    need(dtensor_wait(request, &job->err) == DTENSOR_EPEER, "so does waiting");
    dtensor_plan_destroy(plan);
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_fini(job->ctx);
}

/* The cache counts, and a call that moves nothing is cheap. */
static void cache_main(int rank, int n, void *arg)
{
    const int64_t shape[] = { 4, 4 };
    struct job job_here, *job = &job_here;
    struct dtensor_plan_cache before, after;
    struct dtensor_spec spec;
    struct dtensor *a = NULL, *b = NULL;
    int64_t best = INT64_MAX;

    (void)arg;
    job_open(job, rank, n, NULL);
    good(dtensor_spec_init(&spec, job->ctx, "world", "R", DTENSOR_F32, 2, shape,
                           &job->err));
    good(dtensor_zeros(&spec, &a, &job->err));
    good(dtensor_zeros(&spec, &b, &job->err));
    good(dtensor_redistribute_into(a, b, &job->err));
    dtensor_plan_cache(job->ctx, &before);
    for (int k = 0; k < 200; k++) {
        int64_t start = now_ns();

        for (int i = 0; i < 1000; i++)
            dtensor_redistribute_into(a, b, &job->err);
        start = now_ns() - start;
        best = start < best ? start : best;
    }
    dtensor_plan_cache(job->ctx, &after);
    need(after.hits == before.hits + 200000 && after.misses == before.misses &&
         after.entries == before.entries && after.limit > 0,
         "hits are counted");
    if (rank == 0)
        note("a cached call that moves nothing: %.1f ns", (double)best / 1e3);
    need(timeless() || best < 10 * 1000 * 1000, "a cached call that moves "
         "nothing takes %.1f ns: as long as making its plan",
         (double)best / 1e3);
    for (int i = 1; i <= after.limit + 5; i++) {
        struct dtensor *c = NULL, *d = NULL;
        struct dtensor_spec wide = spec;

        wide.shape[0] = i;
        good(dtensor_zeros(&wide, &c, &job->err));
        good(dtensor_redistribute(c, "S(0)", &d, &job->err));
        dtensor_destroy(c);
        dtensor_destroy(d);
    }
    dtensor_plan_cache(job->ctx, &after);
    need(after.entries == after.limit && after.dropped >= 5,
         "the cache keeps to its limit");
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_fini(job->ctx);
}

int main(void)
{
    const char *path;

    gate_make(&late);
    ok(ranks_run(4, 60, routes_main, NULL, NULL) == 0,
       "(5,3) on 2x2: every route gives the right elements");
    ok(ranks_run(4, 60, cross_main, NULL, NULL) == 0,
       "between meshes of other shape, order, ranks and size");
    ok(ranks_run(4, 60, batch_main, NULL, NULL) == 0,
       "a batch gives the right elements with fewer signals");
    ok(ranks_run(4, 60, request_main, NULL, NULL) == 0,
       "started, tested, waited for");
    ok(ranks_run(4, 60, death_main, NULL, NULL) == 0,
       "a dead peer is found by testing");
    path = ranks_file("tcp", 4, NULL);
    ok(ranks_run(4, 60, batch_main, (void *)path, NULL) == 0,
       "the same over tcp");
    ok(ranks_run(4, 60, request_main, (void *)path, NULL) == 0,
       "started, tested, waited for, over tcp");
    remove(path);
    ok(ranks_run(1, 60, cache_main, NULL, NULL) == 0,
       "the cache counts, is bounded and fast");
    return done();
}
