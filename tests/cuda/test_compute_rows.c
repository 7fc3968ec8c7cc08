/* test_compute_rows.c - the kernels of reductions, rows and products
 *
 * As test_compute.c: reductions of any dimensions, softmax, norms, what is
 * found by index, products, and rows in order have the bits of lib/math.
 *
 * Without this test, a sum on a GPU could have its terms in another order than
 * on a CPU, and training would go another way on it.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "cuda/compute.h"
#include "cuda/compute_order.h"
#include "cuda/compute_rows.h"
#include "math/matmul.h"
#include "math/norm.h"
#include "math/order.h"
#include "math/reduction.h"
#include "math/room.h"
#include "math/select.h"
#include "math/softmax.h"
#include "dtensor.h"
#include "tests/cuda/calls.h"
#include "tests/cuda/engine.h"
#include "tests/math/sample.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Alignas(64) char room[DTN_ROOM_BYTES];

enum { CALLS = 6 };

static uint64_t seed;

/* ---------------------------------------------------------------- rows --- */

static void launches_run(int engine, const struct dtn_launches *launches)
{
    for (int i = 0; i < launches->n; i++)
        engine_run(engine, &launches->launch[i]);
}

/* `in`, of random strides, and what comes out if `dims` are reduced. */
static unsigned rows_begin(struct call *call, enum dtensor_dtype dtype,
                           enum dtensor_dtype out)
{
    const int ndim = 1 + rand_below(&seed, 4);
    const int large = rand_below(&seed, ndim);
    const unsigned dims = 1u + (unsigned)rand_below(&seed, (1 << ndim) - 1);
    int64_t shape[DTENSOR_MAX_DIMS];

    sample_shape(&seed, ndim, 6, shape);
    if (shape[large] > 0 && rand_below(&seed, 3) == 0)
        shape[large] = 1 + rand_below(&seed, 1500);
    *call = (struct call){ .nin = 1 };
    call->in[0] = sample_new(&seed, dtype, ndim, shape, rand_below(&seed, 2));
    sample_fill(&seed, &call->in[0], rand_below(&seed, 8) == 0);
    call->at[0] = &call->in[0];
    for (int d = 0; d < ndim; d++)
        shape[d] = dims >> d & 1 ? 1 : shape[d];
    call_outputs(&seed, call, out, ndim, shape, false);
    return dims;
}

static bool reduce_is(int engine, enum dtn_reduction_kind kind, double p,
                      struct call *call)
{
    static struct dtn_launches launches;
    char what[80];
    void *memory;
    bool right;

    dtn_launch_reduce(kind, &call->got, call->at[0], p, NULL, &launches);
    memory = aligned_alloc(64, launches.bytes + 64);
    dtn_launch_reduce(kind, &call->got, call->at[0], p, memory, &launches);
    launches_run(engine, &launches);
    dtn_reduce_dims(kind, &call->want, call->at[0], p, room);
    snprintf(what, sizeof what, "reduction %d with %g as %s", (int)kind, p,
             engine_name(engine));
    right = call_same(what, call, kind == DTN_REDUCE_MAX
                                  || kind == DTN_REDUCE_MIN);
    free(memory);
    call_end(call);
    return right;
}

static bool reduces(enum dtn_reduction_kind kind, enum dtensor_dtype dtype,
                    double p)
{
    const struct dtn_array one = { .dtype = dtype };
    static struct dtn_launches launches;

    return dtn_reduction_ok(kind, dtype)
        && dtn_launch_reduce(kind, &one, &one, p, NULL, &launches);
}

static void test_reduce(int engine)
{
    static const double powers[] = { 2, 1, 0, (double)INFINITY,
                                     (double)-INFINITY };
    int tried = 0, wrong = 0;

    for (int kind = 0; kind < DTN_REDUCTIONS; kind++)
        for (int t = 0; t < DTENSOR_NDTYPES; t++)
            for (int n = 0; n < 2 * (int)DTN_COUNT(powers); n++) {
                const bool truth = kind == DTN_REDUCE_ANY
                                || kind == DTN_REDUCE_ALL;
                struct call call;

                if (!reduces(kind, t, powers[n / 2]))
                    continue;
                rows_begin(&call, t, truth ? DTENSOR_BOOL : t);
                tried++;
                wrong += !reduce_is(engine, kind, powers[n / 2], &call);
            }
    ok(wrong == 0, "%s: %d reductions are those of dtn_reduce_dims()",
       engine_name(engine), tried);
}

/* A full sum of many blocks, and columns beside each other. */
static void test_long_sums(int engine)
{
    static const int64_t shapes[][2] = { { 1, 40000 }, { 3000, 7 },
                                         { 33, 700 } };
    bool right = true;

    for (int i = 0; i < (int)DTN_COUNT(shapes) * 2; i++) {
        int64_t shape[2] = { shapes[i / 2][0], shapes[i / 2][1] };
        struct call call = { .nin = 1 };

        call.in[0] = sample_new(&seed, DTENSOR_F32, 2, shape, false);
        for (int64_t k = 0; k < shape[0] * shape[1]; k++)
            ((float *)call.in[0].data)[k] =
                (float)((double)(int64_t)rand_next(&seed) * 0x1p-60);
        call.at[0] = &call.in[0];
        shape[i % 2] = 1;
        call_outputs(&seed, &call, DTENSOR_F32, 2, shape, false);
        right = reduce_is(engine, DTN_REDUCE_SUM, 0, &call) && right;
    }
    ok(right, "%s: so are long sums, along rows and along columns",
       engine_name(engine));
}

static void test_softmax(int engine)
{
    static const enum dtensor_dtype types[] = { DTENSOR_F32, DTENSOR_F64,
                                                DTENSOR_BF16, DTENSOR_F16 };
    static struct dtn_launches launches;
    bool right = true;

    for (int n = 0; n < 80; n++) {
        const enum dtensor_dtype t = types[n % 4];
        struct call call;
        void *memory;
        int dim;

        rows_begin(&call, t, t);
        sample_free(&call.want);
        sample_free(&call.got);
        call_outputs(&seed, &call, t, call.in[0].ndim, call.in[0].shape,
                     n % 3 == 0);
        dim = rand_below(&seed, call.in[0].ndim);
        dtn_launch_softmax(n / 4 % 2, &call.got, call.at[0], dim, NULL,
                           &launches);
        memory = aligned_alloc(64, launches.bytes + 64);
        dtn_launch_softmax(n / 4 % 2, &call.got, call.at[0], dim, memory,
                           &launches);
        launches_run(engine, &launches);
        dtn_softmax(n / 4 % 2, &call.want, call.at[0], dim, room);
        right = call_same("softmax", &call, false) && right;
        free(memory);
        call_end(&call);
    }
    ok(right, "%s: softmax and its logarithm are those of dtn_softmax()",
       engine_name(engine));
}

/* The outputs of a norm are three: the rows, their means, 1 / deviations. */
static bool norm_is(int engine, int n)
{
    static const enum dtensor_dtype types[] = { DTENSOR_F32, DTENSOR_F64,
                                                DTENSOR_BF16 };
    const enum dtensor_dtype t = types[n % 3];
    const int64_t shape[] = { 1 + n % 5, 2, 3 + n, 40 - n / 2 };
    const int64_t each[] = { shape[0], shape[1], n % 2 ? 1 : shape[2], 1 };
    static struct dtn_launches launches;
    struct dtn_array weight, bias;
    struct call call = { .nin = 1 }, mean = { .nin = 0 }, rstd = { .nin = 0 };
    struct dtn_norm norm = { .dims = 1 + n % 2, .centred = n % 3 != 1,
                             .epsilon = 1e-5 };
    void *memory;
    bool right;

    call.in[0] = sample_new(&seed, t, 4, shape, n % 4 == 1);
    weight = sample_new(&seed, t, norm.dims, shape + 4 - norm.dims, false);
    bias = sample_new(&seed, t, norm.dims, shape + 4 - norm.dims, false);
    sample_fill(&seed, &call.in[0], false);
    sample_fill(&seed, &weight, false);
    sample_fill(&seed, &bias, false);
    call_outputs(&seed, &call, t, 4, shape, false);
    call_outputs(&seed, &mean, DTENSOR_F32, 4, each, false);
    call_outputs(&seed, &rstd, DTENSOR_F32, 4, each, false);
    norm.in = &call.in[0];
    norm.weight = n % 5 ? &weight : NULL;
    norm.bias = n % 5 > 2 ? &bias : NULL;
    norm.out = &call.want;
    norm.mean = norm.centred ? &mean.want : NULL;
    norm.rstd = &rstd.want;
    dtn_norm(&norm);
    norm.out = &call.got;
    norm.mean = norm.centred ? &mean.got : NULL;
    norm.rstd = &rstd.got;
    dtn_launch_norm(&norm, NULL, &launches);
    memory = aligned_alloc(64, launches.bytes + 64);
    dtn_launch_norm(&norm, memory, &launches);
    launches_run(engine, &launches);
    right = call_same("norm", &call, false)
         && call_same("mean", &mean, false)
         && call_same("1 / deviation", &rstd, false);
    free(memory);
    sample_free(&weight);
    sample_free(&bias);
    call_end(&call);
    call_end(&mean);
    call_end(&rstd);
    return right;
}

static void test_norm(int engine)
{
    bool right = true;

    for (int n = 0; n < 30; n++)
        right = norm_is(engine, n) && right;
    ok(right, "%s: layer and RMS norms are those of dtn_norm()",
       engine_name(engine));
}

/* --------------------------------------------------------------- index --- */

static bool gather_is(int engine, enum dtensor_dtype t, bool wide)
{
    const int ndim = 1 + rand_below(&seed, 3), dim = rand_below(&seed, ndim);
    const enum dtensor_dtype in[] = { t };
    int64_t shape[DTENSOR_MAX_DIMS], first = rand_below(&seed, 3);
    struct dtn_array index;
    struct dtn_launch launch;
    struct call call;
    uint32_t *wrong = calloc(1, sizeof *wrong);    /* a GPU reaches no stack  */
    int64_t value, size;
    bool right;

    sample_shape(&seed, ndim, 9, shape);
    call = (struct call){ .nin = 1 };
    call.in[0] = sample_new(&seed, in[0], ndim, shape, rand_below(&seed, 2));
    sample_fill(&seed, &call.in[0], true);
    size = shape[dim];
    shape[dim] = rand_below(&seed, 12);
    index = sample_new(&seed, wide ? DTENSOR_I64 : DTENSOR_I32, ndim, shape,
                       false);
    for (int64_t i = 0; i < dtn_array_count(&index); i++)
        dtn_store_int(index.dtype, index.data, (size_t)i,
                      rand_below(&seed, (int)size + 4));
    call_outputs(&seed, &call, t, ndim, shape, false);
    dtn_array_gather(&call.want, &call.in[0], dim, &index, first);
    dtn_launch_gather(&call.got, &call.in[0], dim, &index, first, &launch);
    engine_run(engine, &launch);
    right = call_same("gather", &call, false);
    dtn_launch_index_check(&index, size + 3, wrong, &launch);
    engine_run(engine, &launch);
    right = right && (*wrong != 0) == (dtn_index_wrong(&index, size + 3,
                                                      &value) >= 0);
    free(wrong);
    sample_free(&index);
    call_end(&call);
    return right;
}

static void test_gather(int engine)
{
    bool right = true;

    for (int t = 0; t < DTENSOR_NDTYPES; t++)
        for (int n = 0; n < 2 * CALLS; n++)
            right = gather_is(engine, t, n % 2) && right;
    ok(right, "%s: elements are found by index, and wrong indices",
       engine_name(engine));
}

/* ------------------------------------------------------------- product --- */

/* Of packed, turned and batched matrices. */
static bool matmul_is(int engine, int n)
{
    static const enum dtensor_dtype types[] = {
        DTENSOR_F32, DTENSOR_F64, DTENSOR_BF16, DTENSOR_F16, DTENSOR_F8E4M3 };
    const enum dtensor_dtype t = types[n % 5];
    const int64_t batch = 1 + n % 3, m = n % 11, k = n * 7 % 40, c = n * 5 % 23;
    const int64_t a[] = { batch, n % 2 ? k : m, n % 2 ? m : k };
    const int64_t b[] = { n % 4 ? batch : 1, n % 3 ? k : c, n % 3 ? c : k };
    const int64_t out[] = { batch, m, c };
    const unsigned add = n % 7 == 0 ? DTN_MATMUL_ADD : 0;
    struct call call = { .nin = 2 };
    struct dtn_array left, right_side;
    struct dtn_launch launch;
    void *workspace;
    bool right;

    call.in[0] = sample_new(&seed, t, 3, a, false);
    call.in[1] = sample_new(&seed, t, 3, b, false);
    sample_fill(&seed, &call.in[0], n % 6 == 0);
    sample_fill(&seed, &call.in[1], false);
    call_outputs(&seed, &call, t, 3, out, false);
    sample_fill(&seed, &call.got, false);
    memcpy(call.want.data, call.got.data, (size_t)dtn_array_count(&call.got)
                                          * dtn_dtype_size(t));
    left = n % 2 ? dtn_array_swapped(&call.in[0], 1, 2) : call.in[0];
    right_side = n % 3 ? call.in[1] : dtn_array_swapped(&call.in[1], 1, 2);
    workspace = malloc(64 + dtn_matmul_workspace(&call.want, &left,
                                                 &right_side,
                                                 add | DTN_MATMUL_REPRO));
    dtn_matmul(&call.want, &left, &right_side, add | DTN_MATMUL_REPRO,
               workspace);
    if (!dtn_launch_matmul(&call.got, &left, &right_side, add != 0, &launch))
        return false;
    engine_run(engine, &launch);
    right = call_same("product", &call, false);
    free(workspace);
    call_end(&call);
    return right;
}

static void test_matmul(int engine)
{
    bool right = true;

    for (int n = 0; n < 120; n++)
        right = matmul_is(engine, n) && right;
    ok(right, "%s: products are those of the own loops of the CPU",
       engine_name(engine));
}

/* --------------------------------------------------------------- order --- */

/* A sort, or some elements of each row from one on: the largest, a median, the
 * most frequent.
 */
static struct dtn_order order_draw(const struct dtn_array *in, int64_t *takenp)
{
    const int dim = rand_below(&seed, in->ndim), n = (int)in->shape[dim];
    struct dtn_order order = { .dim = dim, .down = rand_below(&seed, 2) };

    *takenp = n;
    if (rand_below(&seed, 2) == 0 || n == 0)
        return order;
    order.first = rand_below(&seed, n);
    *takenp = rand_below(&seed, n - (int)order.first + 1);
    if (rand_below(&seed, 3) == 0 || *takenp == 0)
        return order;
    *takenp = 1;
    order.often = rand_below(&seed, 2);
    order.nan = !order.often;
    order.down = false;
    return order;
}

/* Of rows that have equal elements, zeros of both signs, and NaNs. */
static bool order_is(int engine, enum dtensor_dtype t, int turn, int ndim,
                     int64_t shape[])
{
    struct call call = { .nin = 1 }, places = { .nin = 0 };
    struct dtn_launch launch;
    struct dtn_order order;
    int64_t taken;
    void *memory;
    bool right;

    call.in[0] = sample_new(&seed, t, ndim, shape, rand_below(&seed, 2));
    sample_fill(&seed, &call.in[0], rand_below(&seed, 3) == 0);
    order = order_draw(&call.in[0], &taken);
    shape[order.dim] = taken;
    call_outputs(&seed, &call, t, ndim, shape, rand_below(&seed, 2));
    call_outputs(&seed, &places, DTENSOR_I64, ndim, shape, false);
    memory = malloc(dtn_order_workspace(&call.in[0], order.dim) + 1);
    order.values = &call.want;
    order.index = turn % 3 != 1 ? &places.want : NULL;
    dtn_order(&order, &call.in[0], memory);
    free(memory);
    memory = aligned_alloc(64, (dtn_launch_order_bytes(&order, &call.in[0])
                                / 64 + 1) * 64);
    order.values = &call.got;
    order.index = turn % 3 != 1 ? &places.got : NULL;
    for (int i = 0; dtn_launch_order(&order, &call.in[0], memory, i, &launch);
         i++)
        engine_run(engine, &launch);
    right = call_same("order", &call, false)
         && call_same("places", &places, false);
    free(memory);
    call_end(&call);
    call_end(&places);
    return right;
}

/* The last one needs more memory than the launches take at once. */
static void test_order(int engine)
{
    int64_t shape[DTENSOR_MAX_DIMS];
    int tried = 0, wrong = 0;

    for (int t = 0; t < DTENSOR_NDTYPES; t++)
        for (int turn = 0; turn < 4 * CALLS; turn++) {
            const int ndim = 1 + rand_below(&seed, 3);

            if (dtn_dtype_kind(t) == DTN_DTYPE_COMPLEX)
                continue;
            sample_shape(&seed, ndim, 9, shape);
            if (turn == 0)
                shape[rand_below(&seed, ndim)] = 1 + rand_below(&seed, 3000);
            wrong += !order_is(engine, t, turn, ndim, shape);
            tried++;
        }
    shape[0] = 3;
    shape[1] = 700001;
    wrong += !order_is(engine, DTENSOR_U8, 1, 2, shape);
    ok(wrong == 0, "%s: %d times rows are in the order of dtn_order()",
       engine_name(engine), tried);
}

int main(void)
{
    seed = rand_seed(6);
    for (int e = 0; e < ENGINES; e++) {
        if (!engine_is_here(e, "rows as nvcc compiled them"))
            continue;
        test_reduce(e);
        test_long_sums(e);
        test_softmax(e);
        test_norm(e);
        test_gather(e);
        test_matmul(e);
        test_order(e);
    }
    return done();
}
