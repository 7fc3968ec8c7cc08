/* test_partial_ranks.c - partial values on real ranks, bit by bit
 *
 * test_partial.c checks routes in one process; here six ranks as 2 x 3 run
 * them in every type and reduction: by each route, without a plan, in a batch,
 * to another mesh, from an array on all ranks or on one.  All must leave the
 * bits of the direct route, and the expected bits where they are known.
 * Elements are 0 or 12, for products 1 or 2, so that no sum or sixth is
 * rounded in any type.
 *
 * Without this test, partial values of real ranks could depend on the route.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "tensor/tensor.h"
#include "transport/tcp/tcp.h"
#include "dtensor.h"
#include "tests/support/tensor_job.h"

#include <stdbool.h>
#include <string.h>

enum { ROWS = 4, COLS = 3, ELEMS = ROWS * COLS };

static const int64_t shape[] = { ROWS, COLS };

/* @ is the reduction. */
static const char *const pairs[][2] = {
    { "S(0),R", "S(0),P(@)" }, { "R,R", "P(@),P(@)" }, { "R,R", "R,P(@)" },
    { "R,P(@)", "P(@),S(0)" }, { "P(@),R", "S(0),P(@)" },
    { "R,S(0)", "P(@),R" }, { "S(0),S(0)", "P(@),R" },
    { "S(0),S(1)", "P(@),P(@)" }, { "P(@),S(0)", "S(0),P(@)" },
    { "P(@),R", "R,P(@)" }, { "S(1),R", "P(@),S(0)" },
};

static struct dtensor_spec spec_with(struct job *job,
                                     const struct dtensor_mesh *mesh,
                                     enum dtensor_dtype dtype, const char *text,
                                     enum dtensor_redop op)
{
    char placements[80] = "", *at = placements;

    for (; *text; text++)
        at += *text == '@' ? sprintf(at, "%s", dtensor_redop_name(op))
                           : sprintf(at, "%c", *text);
    return spec_of(job, mesh, dtype, shape, placements);
}

static double element(enum dtensor_redop op, int64_t i)
{
    const bool large = i * 7 % 3 == 1;

    return op == DTENSOR_PROD ? 1 + large : 12 * large;
}

/* A tensor whose replicas agree, as terms or as shards of element(). */
static struct dtensor *filled(struct job *job, const struct dtensor_spec *spec,
                              enum dtensor_redop op)
{
    int64_t row[ELEMS_MAX], col[ELEMS_MAX], n = 0, term = 0;
    const int64_t rows = indices_of(job, spec, 0, row);
    const int64_t cols = indices_of(job, spec, 1, col);
    int coord[DTENSOR_MAX_DIMS];
    struct dtensor *t = NULL;

    good(dtensor_zeros(spec, &t, &job->err));
    dtensor_mesh_coord(spec->mesh, job->rank, coord);
    for (int m = 0; m < dtensor_mesh_ndim(spec->mesh); m++)
        if (spec->placement[m].kind == DTENSOR_PARTIAL)
            term += (m + 1) * coord[m];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            dtn_store(spec->dtype, dtensor_to_local(t), (size_t)n++,
                      element(op, row[i] * COLS + col[j] + term));
    return t;
}

static void same(struct job *job, const struct dtensor *want,
                 const struct dtensor *have, const char *how)
{
    const struct dtensor_spec *spec = dtensor_spec_of(want);
    const size_t bytes = dtensor_local_bytes(want);
    char text[200];

    dtensor_spec_format(spec, text, sizeof text);
    for (size_t i = 0; i < bytes / dtensor_dtype_size(spec->dtype); i++)
        need(memcmp((const char *)dtensor_to_local(want) +
                    i * dtensor_dtype_size(spec->dtype),
                    (const char *)dtensor_to_local(have) +
                    i * dtensor_dtype_size(spec->dtype),
                    dtensor_dtype_size(spec->dtype)) == 0,
             "%s to %s: element %zu is %g, by the direct route %g", how, text,
             i, dtn_load(spec->dtype, dtensor_to_local(have), i),
             dtn_load(spec->dtype, dtensor_to_local(want), i));
    if (bytes > 0)
        memset(dtensor_to_local(have), 0x5a, bytes);
}

static void by_routes(struct job *job, const struct dtensor *a,
                      const struct dtensor *want, struct dtensor *b)
{
    for (int r = 0; r < DTENSOR_NROUTES; r++) {
        const struct dtensor_plan_options options = {
            .route = (enum dtensor_route)r };
        struct dtensor_plan *plan = NULL;

        if (dtensor_plan_create(dtensor_spec_of(a), dtensor_spec_of(b),
                                &options, &plan, NULL) != 0)
            continue;
        good(dtensor_plan_run(plan, a, b, &job->err));
        same(job, want, b, "a route");
        dtensor_plan_destroy(plan);
    }
}

/* All ways from a tensor without P: of what was the whole. */
static void from_whole(struct job *job, enum dtensor_redop op,
                       const struct dtensor *want)
{
    const struct dtensor_spec *spec = dtensor_spec_of(want);
    static _Alignas(16) char full[ELEMS * 16];
    struct dtensor *t = NULL;

    for (size_t i = 0; i < ELEMS; i++)
        dtn_store(spec->dtype, full, i, element(op, (int64_t)i));
    for (int root = -1; root < 2; root++) {
        good(dtensor_distribute(spec, full, root, &t, &job->err));
        same(job, want, t, root < 0 ? "without source" : "from a root");
        dtensor_destroy(t);
    }
}

static void one_pair(struct job *job, const struct dtensor_mesh *mesh,
                     enum dtensor_dtype dtype, enum dtensor_redop op, int i)
{
    static const struct dtensor_plan_options direct = {
        .route = DTENSOR_ROUTE_DIRECT };
    const struct dtensor_spec from = spec_with(job, mesh, dtype, pairs[i][0],
                                               op);
    const struct dtensor_spec to = spec_with(job, mesh, dtype, pairs[i][1], op);
    const struct dtensor_spec src[] = { from, from }, dst[] = { to, to };
    struct dtensor *a = filled(job, &from, op), *want = NULL, *b[2] = { NULL };
    struct dtensor_batch *batch = NULL;
    struct dtensor_plan *plan = NULL;

    good(dtensor_zeros(&to, &want, &job->err));
    good(dtensor_zeros(&to, &b[0], &job->err));
    good(dtensor_zeros(&to, &b[1], &job->err));
    good(dtensor_plan_create(&from, &to, &direct, &plan, &job->err));
    good(dtensor_plan_run(plan, a, want, &job->err));
    by_routes(job, a, want, b[0]);
    good(dtensor_redistribute_into(a, b[0], &job->err));
    same(job, want, b[0], "at once");
    good(dtensor_batch_create(2, src, dst, &batch, &job->err));
    good(dtensor_batch_run(batch, (const struct dtensor *const[]){ a, a }, b,
                           &job->err));
    same(job, want, b[0], "in a batch");
    same(job, want, b[1], "in a batch");
    if (strcmp(pairs[i][0], "R,R") == 0)
        from_whole(job, op, want);
    dtensor_batch_destroy(batch);
    dtensor_plan_destroy(plan);
    dtensor_destroy(a);
    dtensor_destroy(want);
    dtensor_destroy(b[0]);
    dtensor_destroy(b[1]);
}

static const struct dtensor_mesh *mesh_with(struct job *job, int x, int y)
{
    const struct dtensor_mesh *mesh = NULL;

    good(dtensor_mesh_create(job->ctx, 2, (const int[]){ x, y }, NULL, NULL,
                             &mesh, &job->err));
    return mesh;
}

static void pairs_main(int rank, int n, void *arg)
{
    struct job job_here, *job = &job_here;
    const struct dtensor_mesh *mesh;

    job_open(job, rank, n, arg);
    mesh = mesh_with(job, 2, n / 2);
    for (int t = 0; t < DTENSOR_NDTYPES; t++)
        for (int o = 0; o < DTENSOR_NREDOPS; o++)
            for (size_t i = 0; i < DTN_COUNT(pairs); i++)
                if (dtn_redop_ok((enum dtensor_redop)o,
                                 (enum dtensor_dtype)t) && rounds_pick())
                    one_pair(job, mesh, (enum dtensor_dtype)t,
                             (enum dtensor_redop)o, (int)i);
    dtensor_fini(job->ctx);
}

/* ---------------------------------------------------------- known terms --- */

/* Of the value x at every place the term of (i, j): its own way for each. */
static const struct known {
    enum dtensor_dtype dtype;
    const char *from, *to;
    double value, mine, others;        /* of coordinate 0, and not            */
} known[] = {
    { DTENSOR_F32, "S(0),R", "S(0),P(max)", 6, 6, 6 },
    { DTENSOR_F32, "S(0),R", "S(0),P(avg)", 6, 6, 6 },
    { DTENSOR_F32, "S(0),S(1)", "S(0),P(avg)", 6, 6, 6 },
    { DTENSOR_F32, "S(0),R", "S(0),P(sum)", 6, 2, 2 },
    { DTENSOR_I32, "S(0),R", "S(0),P(sum)", 6, 6, 0 },
    { DTENSOR_I32, "S(0),R", "S(0),P(prod)", 6, 6, 1 },
    { DTENSOR_U8, "S(0),R", "S(0),P(min)", 6, 6, 6 },
    { DTENSOR_F16, "R,R", "R,P(avg)", 30000, 30000, 30000 },
    { DTENSOR_F8E4M3, "R,R", "R,P(avg)", 192, 192, 192 },
    { DTENSOR_F16, "R,S(0)", "R,P(avg)", 30000, 30000, 30000 },
    { DTENSOR_I8, "R,S(1)", "R,P(avg)", 100, 100, 100 },
};

/* There, as said, and back. */
static void one_known(struct job *job, const struct dtensor_mesh *mesh,
                      const struct known *k, enum dtensor_route route)
{
    const struct dtensor_plan_options options = { .route = route };
    const struct dtensor_spec from = spec_of(job, mesh, k->dtype, shape,
                                             k->from);
    const struct dtensor_spec to = spec_of(job, mesh, k->dtype, shape, k->to);
    const size_t elem = dtensor_dtype_size(k->dtype);
    struct dtensor *a = NULL, *b = NULL;
    struct dtensor_plan *plan = NULL;
    int coord[DTENSOR_MAX_DIMS];

    if (dtensor_plan_create(&from, &to, &options, &plan, NULL) != 0)
        return;
    good(dtensor_full(&from, k->value, &a, &job->err));
    good(dtensor_zeros(&to, &b, &job->err));
    good(dtensor_plan_run(plan, a, b, &job->err));
    dtensor_mesh_coord(mesh, job->rank, coord);
    for (size_t i = 0; i < dtensor_local_bytes(b) / elem; i++)
        need(dtn_load(k->dtype, dtensor_to_local(b), i) ==
             (coord[1] ? k->others : k->mine), "%s -> %s by route %d: %g",
             k->from, k->to, route, dtn_load(k->dtype, dtensor_to_local(b), i));
    dtensor_plan_destroy(plan);
    good(dtensor_plan_create(&to, &from, &options, &plan, &job->err));
    good(dtensor_plan_run(plan, b, a, &job->err));
    for (size_t i = 0; i < dtensor_local_bytes(a) / elem; i++)
        need(dtn_load(k->dtype, dtensor_to_local(a), i) == k->value,
             "%s -> %s -> %s by route %d: %g", k->from, k->to, k->from, route,
             dtn_load(k->dtype, dtensor_to_local(a), i));
    dtensor_plan_destroy(plan);
    dtensor_destroy(a);
    dtensor_destroy(b);
}

/* From another mesh a term is made of the value, whatever it was there. */
static void from_mesh(struct job *job, const struct dtensor_mesh *mesh,
                      const struct dtensor_mesh *other)
{
    const struct dtensor_spec from = spec_of(job, other, DTENSOR_F32, shape,
                                             "S(0),S(1)");
    const struct dtensor_spec to = spec_of(job, mesh, DTENSOR_F32, shape,
                                           "R,P(max)");
    struct dtensor *a = NULL, *b = NULL;

    good(dtensor_full(&from, 6, &a, &job->err));
    good(dtensor_redistribute_to(a, &to, &b, &job->err));
    for (int i = 0; i < ELEMS; i++)
        need(((const float *)dtensor_to_local(b))[i] == 6, "from another mesh");
    dtensor_destroy(a);
    dtensor_destroy(b);
}

static void known_main(int rank, int n, void *arg)
{
    struct job job_here, *job = &job_here;
    const struct dtensor_mesh *mesh;

    job_open(job, rank, n, arg);
    mesh = mesh_with(job, 2, 3);
    for (size_t i = 0; i < DTN_COUNT(known); i++)
        for (int r = 0; r < DTENSOR_NROUTES; r++)
            one_known(job, mesh, &known[i], (enum dtensor_route)r);
    from_mesh(job, mesh, mesh_with(job, 3, 2));
    dtensor_fini(job->ctx);
}

/* An array of 16 KiB from one rank, in four slabs, and from all of them. */
static void slabs_main(int rank, int n, void *arg)
{
    static const char *const placements[] = { "P(@),P(@)", "S(0),P(@)",
                                              "P(@),S(1)", "R,P(@)" };
    static const enum dtensor_dtype dtypes[] = { DTENSOR_F32, DTENSOR_I32 };
    static float full[64 * 64];
    const int64_t whole[] = { 64, 64 };
    struct job job_here, *job = &job_here;

    job_open(job, rank, n, arg);
    for (int o = 0; o < 2 * DTENSOR_NREDOPS; o++)
        for (size_t i = 0; i < DTN_COUNT(placements); i++) {
            const enum dtensor_redop op = (enum dtensor_redop)(o / 2);
            const enum dtensor_dtype dtype = dtypes[o % 2];
            struct dtensor_spec spec;
            struct dtensor *a = NULL, *b = NULL;

            if (!dtn_redop_ok(op, dtype))
                continue;
            spec = spec_with(job, mesh_with(job, 2, 2), dtype, placements[i],
                             op);
            memcpy(spec.shape, whole, sizeof whole);
            for (size_t k = 0; k < DTN_COUNT(full); k++)
                dtn_store(dtype, full, k, element(op, (int64_t)k));
            good(dtensor_distribute(&spec, full, -1, &a, &job->err));
            good(dtensor_distribute(&spec, full, 1, &b, &job->err));
            need(strstr(dtensor_last_plan(job->ctx), "4 slabs"), "%s",
                 dtensor_last_plan(job->ctx));
            same(job, a, b, "in slabs");
            dtensor_destroy(a);
            dtensor_destroy(b);
        }
    dtensor_fini(job->ctx);
}

int main(void)
{
    const char *tcp = ranks_file("tcp", 4, "[redistribute]\npipeline = 4K\n");

    ok(ranks_run(6, 60, known_main, NULL, NULL) == 0, "terms that are known, "
       "from every route, there and back");
    ok(ranks_run(6, 60, pairs_main, NULL, NULL) == 0, "the bits of direct, of "
       "every dtype and reduction, by 6 ranks: by routes, at once, in batches, "
       "from a whole");
    ok(ranks_run(4, 60, pairs_main, (void *)(uintptr_t)tcp, NULL) == 0,
       "and by "
       "4 over tcp");
    ok(ranks_run(4, 60, slabs_main, (void *)(uintptr_t)tcp, NULL) == 0, "and "
       "from a root in slabs those of an array that all hold");
    unlink(tcp);
    return done();
}
