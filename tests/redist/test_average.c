/* test_average.c - an average is rounded once
 *
 * The sum of three bf16 has up to two bits more than that type, and that of
 * four f16 near 60000 is beyond all f16.  So partial averages are added and
 * divided in f32 and rounded afterwards, whichever way the result takes:
 * allreduce, reduce-scatter, started, or in a batch.  Integers are added
 * without overflow, i64 and u64 in 128 bits, and divided once, toward zero, by
 * every route: 3, 4, 1 and 0 have the average 2.
 *
 * Without this test, an average could depend on the route, or overflow in the
 * type of its elements.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "coll/request.h"
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/tensor_job.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { ROWS = 6, COLS = 7 };

static const struct {
    enum dtensor_dtype dtype;
    double top;                        /* of the terms                        */
} types[] = {
    { DTENSOR_F16, 60000 }, { DTENSOR_BF16, 1e30 }, { DTENSOR_F8E4M3, 440 },
    { DTENSOR_F8E5M2, 50000 }, { DTENSOR_F32, 1e30 }, { DTENSOR_I32, 0x1p31 },
    { DTENSOR_I8, 127 }, { DTENSOR_U8, 255 }, { DTENSOR_I16, -0x1p15 },
    { DTENSOR_U16, 65535 }, { DTENSOR_U32, 0x1p32 }, { DTENSOR_I64, 0x1p63 },
    { DTENSOR_I64, -0x1p63 }, { DTENSOR_U64, 0x1p64 }
};

/* Of `n` terms divided by `by`: both by hand. */
static const struct {
    int ranks, ndim;
    const char *from, *to;
    int n, by;
    bool twice;                        /* one reduction after the other: each */
                                       /* of them rounds                      */
} cases[] = {
    { 3, 1, "P(avg)", "R", 3, 3, false },
    { 3, 1, "P(avg)", "S(0)", 3, 3, false },
    { 3, 1, "P(avg)", "S(1)", 3, 3, false },
    { 3, 1, "P(avg)", "SS(0,2)", 3, 3, false },
    { 4, 2, "P(avg),P(avg)", "R,R", 4, 4, false },
    { 4, 2, "P(avg),P(avg)", "S(0),S(1)", 4, 4, false },
    { 4, 2, "P(avg),R", "R,S(0)", 2, 2, false },
    { 4, 2, "R,P(avg)", "S(1),R", 2, 2, false },
    { 4, 2, "P(avg),P(sum)", "R,R", 4, 2, false },
    { 4, 2, "P(sum),P(avg)", "S(0),S(0)", 4, 2, false },
    { 4, 2, "P(avg),P(sum)", "S(0),S(0)", 4, 2, false },
    { 4, 2, "P(avg),P(avg)", "R,S(0)", 4, 4, true },
    { 4, 2, "P(avg),P(avg)", "S(1),R", 4, 4, true },
};

/* Element i of term k, the same on every rank. */
static double term_at(int type, int k, int64_t i)
{
    uint64_t state = (uint64_t)(1 + i + 1000 * k);
    double room = 0;
    const double x = types[type].top *
                     (0.5 + (double)rand_below(&state, 1000) / 2000);

    dtn_store(types[type].dtype, &room, 0, x);
    return dtn_load(types[type].dtype, &room, 0);
}

/* Which of the terms this rank has. */
static int term_of(const struct job *job, const struct dtensor_spec *spec)
{
    int coord[DTENSOR_MAX_DIMS], k = 0;

    dtensor_mesh_coord(spec->mesh, job->rank, coord);
    for (int m = 0; m < dtensor_mesh_ndim(spec->mesh); m++)
        if (spec->placement[m].kind == DTENSOR_PARTIAL)
            k = k * dtensor_mesh_dim_size(spec->mesh, m) + coord[m];
    return k;
}

/* Integers: in 128 bits. */
static bool integer_is(int type, int c, int64_t i, const void *local,
                       int64_t at)
{
    const enum dtensor_dtype dtype = types[type].dtype;
    dtn_i128 sum = 0;

    for (int k = 0; k < cases[c].n; k++) {
        int64_t term;

        dtn_store(dtype, &term, 0, term_at(type, k, i));
        term = dtn_load_int(dtype, &term, 0);
        sum += dtype == DTENSOR_U64 ? (dtn_i128)(uint64_t)term : term;
    }
    sum /= cases[c].by;
    return memcmp(&sum, (const char *)local + (size_t)at *
                  dtensor_dtype_size(dtype), dtensor_dtype_size(dtype)) == 0;
}

static bool element_is(int type, int c, int64_t i, const void *local,
                       int64_t at)
{
    const enum dtensor_dtype dtype = types[type].dtype;
    const size_t size = dtensor_dtype_size(dtype);
    double sum = 0, want, have = dtn_load(dtype, local, (size_t)at), room = 0;

    if (!dtn_dtype_is_float(dtype))
        return integer_is(type, c, i, local, at);
    for (int k = 0; k < cases[c].n; k++)
        sum += term_at(type, k, i);
    want = (float)sum / (float)cases[c].by;
    if (cases[c].twice || dtype == DTENSOR_F32)
        return fabs(have - want) <= want / (size == 1 ? 4 : size == 2 ? 128
                                                          : 1 << 20);
    dtn_store(dtype, &room, 0, want);
    return memcmp(&room, (const char *)local + (size_t)at * size, size) == 0;
}

static void check(struct job *job, int type, int c, const struct dtensor *t,
                  const char *way)
{
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    int64_t row[ELEMS_MAX], col[ELEMS_MAX], at = 0;
    const int64_t rows = indices_of(job, spec, 0, row);
    const int64_t cols = indices_of(job, spec, 1, col);

    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++, at++)
            need(element_is(type, c, row[i] * COLS + col[j],
                            dtensor_to_local(t), at), "%s: %s from %s to %s: "
                 "element %d is %g", way,
                 dtensor_dtype_name(types[type].dtype), cases[c].from,
                 cases[c].to, (int)(row[i] * COLS + col[j]),
                 dtn_load(types[type].dtype, dtensor_to_local(t), (size_t)at));
    if (dtensor_local_bytes(t) > 0)
        memset(dtensor_to_local(t), 0, dtensor_local_bytes(t));
}

/* The three ways to the same result. */
static void one_case(struct job *job, const struct dtensor_mesh *mesh, int type,
                     int c)
{
    const int64_t shape[] = { ROWS, COLS };
    const enum dtensor_dtype dtype = types[type].dtype;
    struct dtensor_spec from = spec_of(job, mesh, dtype, shape, cases[c].from);
    struct dtensor_spec to = spec_of(job, mesh, dtype, shape, cases[c].to);
    const struct dtensor_spec src[] = { from, from }, dst[] = { to, to };
    struct dtensor *a = NULL, *b[2] = { NULL, NULL };
    struct dtensor_request *request = NULL;
    struct dtensor_batch *batch = NULL;
    struct dtensor_plan *plan = NULL;

    good(dtensor_zeros(&from, &a, &job->err));
    for (int64_t i = 0; i < ROWS * COLS; i++)
        dtn_store(dtype, dtensor_to_local(a), (size_t)i,
                  term_at(type, term_of(job, &from), i));
    good(dtensor_zeros(&to, &b[0], &job->err));
    good(dtensor_zeros(&to, &b[1], &job->err));
    good(dtensor_redistribute_into(a, b[0], &job->err));
    check(job, type, c, b[0], "at once");
    for (int r = 1; !dtn_dtype_is_float(dtype) && r < DTENSOR_NROUTES; r++) {
        const struct dtensor_plan_options by = {
            .route = (enum dtensor_route)r };

        good(dtensor_plan_create(&from, &to, &by, &plan, &job->err));
        good(dtensor_plan_run(plan, a, b[0], &job->err));
        check(job, type, c, b[0], "by a route");
        dtensor_plan_destroy(plan);
    }
    good(dtensor_plan_create(&from, &to, NULL, &plan, &job->err));
    good(dtensor_plan_start(plan, a, b[0], &request, &job->err));
    good(dtensor_wait(request, &job->err));
    check(job, type, c, b[0], "started");
    good(dtensor_batch_create(2, src, dst, &batch, &job->err));
    good(dtensor_batch_run(batch, (const struct dtensor *const[]){ a, a }, b,
                           &job->err));
    check(job, type, c, b[0], "in a batch");
    check(job, type, c, b[1], "in a batch");
    dtensor_batch_destroy(batch);
    dtensor_plan_destroy(plan);
    dtensor_destroy(a);
    dtensor_destroy(b[0]);
    dtensor_destroy(b[1]);
}

/* 3, 4, 1 and 0, few of them and many, by each route. */
static void average_of_four(struct job *job, const struct dtensor_mesh *mesh)
{
    static const int32_t terms[] = { 3, 4, 1, 0 };

    for (int64_t rows = 1; rows <= 40000; rows *= 200)
        for (int r = 0; r < 2 * DTENSOR_NROUTES; r++) {
            const struct dtensor_plan_options options = {
                .route = (enum dtensor_route)(r / 2) };
            const int64_t many[] = { rows, 1 };
            struct dtensor_spec from = spec_of(job, mesh, DTENSOR_I32, many,
                                               "P(avg),P(avg)");
            struct dtensor_spec to = spec_of(job, mesh, DTENSOR_I32, many,
                                             r % 2 ? "R,S(0)" : "R,R");
            struct dtensor *a = NULL, *b = NULL;
            struct dtensor_plan *plan = NULL;

            good(dtensor_plan_create(&from, &to, &options, &plan, &job->err));
            good(dtensor_zeros(&from, &a, &job->err));
            for (int64_t i = 0; i < rows; i++)
                ((int32_t *)dtensor_to_local(a))[i] = terms[job->rank];
            good(dtensor_zeros(&to, &b, &job->err));
            good(dtensor_plan_run(plan, a, b, &job->err));
            for (size_t i = 0; i < dtensor_local_bytes(b) / 4; i++)
                need(((const int32_t *)dtensor_to_local(b))[i] == 2,
                     "%lld times 3, 4, 1, 0 by route %d is %d", (long long)rows,
                     r / 2, ((const int32_t *)dtensor_to_local(b))[i]);
            dtensor_plan_destroy(plan);
            dtensor_destroy(a);
            dtensor_destroy(b);
        }
}

static void averages(int rank, int n, void *arg)
{
    const struct dtensor_mesh *mesh;
    struct job the_job, *job = &the_job;

    job_open(job, rank, n, arg);
    for (size_t c = 0; c < DTN_COUNT(cases); c++) {
        if (cases[c].ranks != n)
            continue;
        good(dtensor_mesh_create(job->ctx, cases[c].ndim,
                                 (const int[]){ cases[c].ndim == 1 ? n : 2, 2 },
                                 NULL, NULL, &mesh, &job->err));
        for (size_t type = 0; type < DTN_COUNT(types); type++)
            one_case(job, mesh, (int)type, (int)c);
        if (cases[c].n == 4 && c == 4)
            average_of_four(job, mesh);
    }
    dtensor_fini(job->ctx);
}

int main(void)
{
    const char *path;

    for (int n = 3; n <= 4; n++) {
        ok(ranks_run(n, 60, averages, NULL, NULL) == 0, "averages of %d ranks "
           "over shared memory are divided before they are rounded", n);
        path = ranks_file("tcp", n, NULL);
        ok(ranks_run(n, 60, averages, (void *)(uintptr_t)path, NULL) == 0,
           "and over tcp");
        unlink(path);
    }
    return done();
}
