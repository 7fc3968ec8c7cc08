/* test_compute.c - the kernels of operators, against lib/math
 *
 * Each function on each type, operands of random shapes, broadcast, with gaps
 * and in any order, and long arrays of random bits, is computed by lib/math, by
 * the kernel as C and by nvcc's PTX; all bytes are compared; two NaN are the
 * same.
 *
 * Without this test, a tensor on a GPU could become other numbers than on a
 * CPU: by another exp(), a fused product, a stride that was forgotten.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "cuda/compute.h"
#include "dtensor.h"
#include "tests/cuda/calls.h"
#include "tests/cuda/engine.h"
#include "tests/math/sample.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 6, STAGED = 66 };

static uint64_t seed;

/* ------------------------------------------------------------ operands --- */

static struct dtn_array operand(enum dtensor_dtype dtype, int ndim,
                                const int64_t shape[])
{
    const int skip = ndim > 0 ? rand_below(&seed, ndim) : 0;
    int64_t own[DTENSOR_MAX_DIMS];
    struct dtn_array array;

    for (int d = skip; d < ndim; d++)
        own[d - skip] = rand_below(&seed, 4) == 0 ? 1 : shape[d];
    array = sample_new(&seed, dtype, ndim - skip, own, rand_below(&seed, 2));
    sample_fill(&seed, &array, rand_below(&seed, 2));
    return array;
}

static void call_begin(struct call *call, enum dtensor_dtype out,
                       const enum dtensor_dtype in[], int nin)
{
    const int ndim = rand_below(&seed, 5);
    int64_t shape[DTENSOR_MAX_DIMS];

    sample_shape(&seed, ndim, 7, shape);
    *call = (struct call){ .nin = nin };
    for (int i = 0; i < nin; i++)
        call->in[i] = operand(in[i], ndim, shape);
    call_outputs(&seed, call, out, ndim, shape, rand_below(&seed, 2));
    for (int i = 0; i < nin; i++)
        call->at[i] = &call->in[i];
}

/* Random bits; `count` of them. */
static void call_flat(struct call *call, enum dtensor_dtype out,
                      const enum dtensor_dtype in[], int nin, int64_t count)
{
    *call = (struct call){ .nin = nin };
    for (int i = 0; i < nin; i++) {
        call->in[i] = sample_new(&seed, in[i], 1, &count, false);
        engine_fill(&seed, in[i], call->in[i].data, (size_t)count);
        call->at[i] = &call->in[i];
    }
    call_outputs(&seed, call, out, 1, &count, false);
}

/* ----------------------------------------------------------- pointwise --- */

static bool pointwise_is(int engine, enum dtn_pointwise op, struct call *call)
{
    static const double args[][2] = { { 2, 5 }, { -0.5, 0.75 }, { 3, 1e30 } };
    const double *with = args[rand_below(&seed, DTN_COUNT(args))];
    struct dtn_launch launch;
    char what[80];
    bool right;

    if (!dtn_launch_pointwise(op, &call->got, call->at, with, &launch))
        return false;
    dtn_pointwise(op, &call->want, call->at, with);
    engine_run(engine, &launch);
    snprintf(what, sizeof what, "function %d as %s", (int)op,
             engine_name(engine));
    right = call_same(what, call, false);
    call_end(call);
    return right;
}

static bool has_kernel(enum dtn_pointwise op, enum dtensor_dtype dtype)
{
    const struct dtn_array one = { .dtype = dtype };
    const struct dtn_array *const in[] = { &one, &one, &one };
    struct dtn_launch launch;

    return dtn_launch_pointwise(op, &one, in, NULL, &launch);
}

static void test_pointwise(int engine)
{
    const int64_t many = (int64_t)engine_elements(engine) / 50;
    int tried = 0, staged = 0, wrong = 0;

    for (int op = 0; op < DTN_POINTWISES; op++)
        for (int t = 0; t < DTENSOR_NDTYPES; t++) {
            const enum dtensor_dtype in[] = { t, t, t };
            const bool compares = op >= DTN_LT && op <= DTN_NE;
            const enum dtensor_dtype out = compares ? DTENSOR_BOOL : in[0];
            const int nin = dtn_pointwise_operands(op);
            struct call call;

            if (!dtn_pointwise_ok(op, t))
                continue;
            if (!has_kernel(op, t)) {
                staged++;
                continue;
            }
            tried++;
            for (int n = 0; n < CALLS; n++) {
                call_begin(&call, out, in, nin);
                wrong += !pointwise_is(engine, op, &call);
            }
            call_flat(&call, out, in, nin, many);
            wrong += !pointwise_is(engine, op, &call);
        }
    ok(wrong == 0, "%s: %d functions of types are those of dtn_pointwise(), "
       "seed %llu", engine_name(engine), tried, (unsigned long long)seed);
    ok(staged == STAGED, "and %d of complex numbers and of libm have no kernel",
       staged);
}

/* --------------------------------------------------------- where, cast --- */

static void test_where(int engine)
{
    bool right = true;

    for (int t = 0; t < DTENSOR_NDTYPES && right; t++)
        for (int n = 0; n < CALLS && right; n++) {
            const enum dtensor_dtype in[] = { DTENSOR_BOOL, t, t };
            struct dtn_launch launch;
            struct call call;

            call_begin(&call, t, in, 3);
            dtn_launch_where(&call.got, call.at[0], call.at[1], call.at[2],
                             &launch);
            dtn_where(&call.want, call.at[0], call.at[1], call.at[2]);
            engine_run(engine, &launch);
            right = call_same("where", &call, false);
            call_end(&call);
        }
    ok(right, "%s: elements are chosen as by dtn_where()",
       engine_name(engine));
}

static bool cast_is(int engine, struct call *call)
{
    struct dtn_launch launch;
    bool right;

    if (!dtn_launch_cast(&call->got, call->at[0], &launch))
        return false;
    dtn_cast(&call->want, call->at[0]);
    engine_run(engine, &launch);
    right = call_same("cast", call, false);
    if (!right)
        note("from %s", dtensor_dtype_name(call->in[0].dtype));
    call_end(call);
    return right;
}

static bool is_complex(int dtype)
{
    return dtn_dtype_kind((enum dtensor_dtype)dtype) == DTN_DTYPE_COMPLEX;
}

static void test_cast(int engine)
{
    const int64_t many = (int64_t)engine_elements(engine) / 200;
    int wrong = 0, pairs = 0;

    for (int to = 0; to < DTENSOR_NDTYPES; to++)
        for (int t = 0; t < DTENSOR_NDTYPES; t++) {
            const enum dtensor_dtype in[] = { t };
            struct call call;

            if (to == t || is_complex(to) || is_complex(t))
                continue;
            pairs++;
            call_begin(&call, to, in, 1);
            wrong += !cast_is(engine, &call);
            call_flat(&call, to, in, 1, many);
            wrong += !cast_is(engine, &call);
        }
    ok(wrong == 0, "%s: casts between %d pairs of types are those of "
       "dtn_cast()", engine_name(engine), pairs);
}

/* ---------------------------------------------------------------- copy --- */

static void test_copy(int engine)
{
    bool right = true;

    for (int t = 0; t < DTENSOR_NDTYPES && right; t++)
        for (int n = 0; n < CALLS && right; n++) {
            const enum dtensor_dtype in[] = { t };
            struct dtn_launch launch;
            struct call call;
            struct dtn_array from;

            call_begin(&call, t, in, 1);
            from = dtn_array_expanded(&call.in[0], &call.got);
            for (int d = 0; d < from.ndim; d++)
                if (from.shape[d] > 0 && rand_below(&seed, 3) == 0)
                    from = dtn_array_sliced(&from, d, from.shape[d] - 1,
                                            from.shape[d], -1);
            dtn_launch_copy(&call.got, &from, &launch);
            dtn_array_copy(&call.want, &from);
            engine_run(engine, &launch);
            right = call_same("copy", &call, false);
            call_end(&call);
        }
    ok(right, "%s: views are copied, forward and backward",
       engine_name(engine));
}

int main(void)
{
    seed = rand_seed(5);
    for (int e = 0; e < ENGINES; e++) {
        if (!engine_is_here(e, "functions as nvcc compiled them"))
            continue;
        test_pointwise(e);
        test_where(e);
        test_cast(e);
        test_copy(e);
    }
    return done();
}
