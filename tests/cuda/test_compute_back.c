/* test_compute_back.c - the kernels of gradients, losses, places and lines
 *
 * As test_compute_rows.c: gradients of softmax and norms, cross entropy, where
 * an extreme is, what is added at an index, sums so far and triangles have the
 * bits of lib/math.
 *
 * Without this test, a network trained on a GPU could go another way than on a
 * CPU, from its first step back on.
 */
#include "base/dtype.h"
#include "cuda/compute_backward.h"
#include "cuda/compute_lines.h"
#include "cuda/compute_rows.h"
#include "math/norm_backward.h"
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

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static _Alignas(64) char lent[DTN_ROOM_BYTES];

static uint64_t seed;

static const enum dtensor_dtype floats[] = { DTENSOR_F32, DTENSOR_F64,
                                             DTENSOR_BF16, DTENSOR_F16 };

static struct dtn_launches launches;

/* With memory of as many bytes as were asked for. */
static void launches_run(int engine)
{
    for (int i = 0; i < launches.n; i++)
        engine_run(engine, &launches.launch[i]);
}

static void *room(void)
{
    return aligned_alloc(64, (launches.bytes + 127) / 64 * 64);
}

/* A shape of up to three dimensions, one of them long now and then. */
static int shape_draw(int64_t shape[DTENSOR_MAX_DIMS])
{
    const int ndim = 1 + rand_below(&seed, 3);
    const int large = rand_below(&seed, ndim);

    sample_shape(&seed, ndim, 7, shape);
    if (shape[large] > 0 && rand_below(&seed, 3) == 0)
        shape[large] = 1 + rand_below(&seed, 1500);
    return ndim;
}

static struct dtn_array drawn(enum dtensor_dtype dtype, int ndim,
                              const int64_t shape[], bool special)
{
    struct dtn_array array = sample_new(&seed, dtype, ndim, shape,
                                        rand_below(&seed, 2));

    sample_fill(&seed, &array, special);
    return array;
}

/* Indices below `most`, some of them out of range. */
static struct dtn_array indices(enum dtensor_dtype dtype, int ndim,
                                const int64_t shape[], int64_t most)
{
    struct dtn_array array = sample_new(&seed, dtype, ndim, shape, false);

    for (int64_t i = 0; i < dtn_array_count(&array); i++)
        dtn_store_int(dtype, array.data, (size_t)i,
                      rand_below(&seed, (int)most + 2) - 1);
    return array;
}

/* ----------------------------------------------------------- gradients --- */

static bool softmax_backward_is(int engine, int n)
{
    const enum dtensor_dtype t = floats[n % 4];
    const bool logarithm = n / 4 % 2;
    int64_t shape[DTENSOR_MAX_DIMS];
    const int ndim = shape_draw(shape), dim = rand_below(&seed, ndim);
    struct call call = { .nin = 2 };
    void *memory;
    bool right;

    call.in[0] = drawn(t, ndim, shape, n % 9 == 0);
    call.in[1] = drawn(t, ndim, shape, false);
    call_outputs(&seed, &call, t, ndim, shape, n % 3 == 0);
    dtn_softmax_backward(logarithm, &call.want, &call.in[0], &call.in[1], dim);
    dtn_launch_softmax_backward(logarithm, &call.got, &call.in[0], &call.in[1],
                                dim, NULL, &launches);
    memory = room();
    dtn_launch_softmax_backward(logarithm, &call.got, &call.in[0], &call.in[1],
                                dim, memory, &launches);
    launches_run(engine);
    right = call_same("gradient of softmax", &call, false);
    free(memory);
    call_end(&call);
    return right;
}

/* The operands of a norm, and its three gradients here and there. */
struct norm_case {
    struct call call, weight, bias;
    struct dtn_array w, mean, rstd;
};

static void norm_draw(int n, struct norm_case *c, struct dtn_norm_backward *b)
{
    const enum dtensor_dtype t = floats[n % 3];
    const int64_t shape[] = { 1 + n * 29 % 90, 2, 3 + n, 40 - n / 2 };
    const int64_t each[] = { shape[0], shape[1], n % 2 ? 1 : shape[2], 1 };
    const int dims = 1 + n % 2;
    const int64_t *last = shape + 4 - dims;

    *c = (struct norm_case){ .call = { .nin = 2 } };
    c->call.in[0] = drawn(t, 4, shape, false);
    c->call.in[1] = drawn(t, 4, shape, n % 7 == 0);
    c->w = drawn(t, dims, last, false);
    c->mean = drawn(DTENSOR_F32, 4, each, false);
    c->rstd = drawn(DTENSOR_F32, 4, each, false);
    call_outputs(&seed, &c->call, t, 4, shape, n % 4 == 0);
    call_outputs(&seed, &c->weight, t, dims, last, n % 5 == 0);
    call_outputs(&seed, &c->bias, t, dims, last, false);
    *b = (struct dtn_norm_backward){
        .in_grad = &c->call.want, .weight_grad = n % 6 ? &c->weight.want : NULL,
        .bias_grad = n % 5 ? &c->bias.want : NULL, .grad = &c->call.in[0],
        .in = &c->call.in[1], .weight = n % 4 ? &c->w : NULL,
        .mean = n % 3 ? &c->mean : NULL, .rstd = n % 3 ? &c->rstd : NULL,
        .dims = dims, .centred = n % 5 != 1, .epsilon = 1e-5,
        .sums = calloc(4, (size_t)(shape[2] * shape[3]) * sizeof(double)) };
}

static bool norm_backward_is(int engine, int n)
{
    struct dtn_norm_backward norm;
    struct norm_case c;
    void *memory;
    bool right;

    norm_draw(n, &c, &norm);
    dtn_norm_backward(&norm);
    norm.in_grad = &c.call.got;
    norm.weight_grad = norm.weight_grad ? &c.weight.got : NULL;
    norm.bias_grad = norm.bias_grad ? &c.bias.got : NULL;
    dtn_launch_norm_backward(&norm, NULL, &launches);
    memory = room();
    dtn_launch_norm_backward(&norm, memory, &launches);
    launches_run(engine);
    right = call_same("gradient of a norm", &c.call, false)
         && call_same("gradient of its weight", &c.weight, false)
         && call_same("gradient of its bias", &c.bias, false);
    free(memory);
    free(norm.sums);
    sample_free(&c.w);
    sample_free(&c.mean);
    sample_free(&c.rstd);
    call_end(&c.call);
    call_end(&c.weight);
    call_end(&c.bias);
    return right;
}

static void test_gradients(int engine)
{
    bool right = true;

    for (int n = 0; n < 60; n++)
        right = softmax_backward_is(engine, n) && right;
    ok(right, "%s: gradients of softmax and its logarithm are those of "
       "dtn_softmax_backward()", engine_name(engine));
    right = true;
    for (int n = 0; n < 40; n++)
        right = norm_backward_is(engine, n) && right;
    ok(right, "%s: gradients of norms are those of dtn_norm_backward()",
       engine_name(engine));
}

/* ---------------------------------------------------- losses, extremes --- */

static bool loss_is(int engine, int n)
{
    const enum dtensor_dtype t = floats[n % 4];
    const enum dtensor_dtype i = n % 3 ? DTENSOR_I64 : DTENSOR_I32;
    int64_t shape[DTENSOR_MAX_DIMS];
    const int ndim = shape_draw(shape), dim = rand_below(&seed, ndim);
    struct call call = { .nin = 2 }, most = { .nin = 0 }, sum = { .nin = 0 };
    struct dtn_row_loss of;
    void *memory;
    bool right;

    call.in[0] = drawn(t, ndim, shape, n % 8 == 0);
    shape[dim] = 1;
    call.in[1] = indices(i, ndim, shape, call.in[0].shape[dim]);
    call_outputs(&seed, &call, n % 2 ? t : DTENSOR_F32, ndim, shape, false);
    call_outputs(&seed, &most, t, ndim, shape, n % 3 == 0);
    call_outputs(&seed, &sum, DTENSOR_F32, ndim, shape, n % 5 == 0);
    of = (struct dtn_row_loss){ .loss = &call.want,
        .most = n % 4 ? &most.want : NULL, .sum = n % 7 ? &sum.want : NULL,
        .in = &call.in[0], .target = &call.in[1], .dim = dim };
    dtn_cross_entropy(&of);
    of.loss = &call.got;
    of.most = of.most ? &most.got : NULL;
    of.sum = of.sum ? &sum.got : NULL;
    dtn_launch_cross_entropy(&of, NULL, &launches);
    memory = room();
    dtn_launch_cross_entropy(&of, memory, &launches);
    launches_run(engine);
    right = call_same("cross entropy", &call, false)
         && call_same("the largest of each row", &most, false)
         && call_same("the sum of each row", &sum, false);
    free(memory);
    call_end(&call);
    call_end(&most);
    call_end(&sum);
    return right;
}

/* The end of a softmax whose numbers of the rows are known. */
static bool finish_is(int engine, int n)
{
    const enum dtensor_dtype t = floats[n % 4];
    const enum dtensor_dtype wide = t == DTENSOR_F64 ? t : DTENSOR_F32;
    int64_t shape[DTENSOR_MAX_DIMS];
    const int ndim = shape_draw(shape), dim = rand_below(&seed, ndim);
    struct call call = { .nin = 3 };
    void *memory;
    bool right;

    call_outputs(&seed, &call, t, ndim, shape, n % 3 == 0);
    call.in[0] = drawn(t, ndim, shape, n % 9 == 0);
    shape[dim] = 1;
    call.in[1] = drawn(t, ndim, shape, false);
    call.in[2] = drawn(wide, ndim, shape, false);
    dtn_softmax_finish(false, &call.want, &call.in[0], &call.in[1],
                       &call.in[2]);
    dtn_launch_softmax_finish(&call.got, &call.in[0], &call.in[1], &call.in[2],
                              dim, NULL, &launches);
    memory = room();
    dtn_launch_softmax_finish(&call.got, &call.in[0], &call.in[1], &call.in[2],
                              dim, memory, &launches);
    launches_run(engine);
    right = call_same("end of a softmax", &call, false);
    free(memory);
    call_end(&call);
    return right;
}

/* Equal elements: the first of them is taken. */
static bool extreme_is(int engine, enum dtensor_dtype t, int n)
{
    int64_t shape[DTENSOR_MAX_DIMS];
    const int ndim = shape_draw(shape), dim = rand_below(&seed, ndim);
    struct call call = { .nin = 1 }, place = { .nin = 0 };
    void *memory;
    bool right;

    shape[dim] += shape[dim] == 0;
    call.in[0] = drawn(t, ndim, shape, n % 4 == 0);
    shape[dim] = 1;
    call_outputs(&seed, &call, t, ndim, shape, false);
    call_outputs(&seed, &place, DTENSOR_I64, ndim, shape, false);
    dtn_extreme(n % 2, &call.want, &place.want, &call.in[0], dim, lent);
    dtn_launch_extreme(n % 2, &call.got, &place.got, &call.in[0], dim, NULL,
                       &launches);
    memory = room();
    dtn_launch_extreme(n % 2, &call.got, &place.got, &call.in[0], dim, memory,
                       &launches);
    launches_run(engine);
    right = call_same("extreme", &call, false)
         && call_same("place of it", &place, false);
    free(memory);
    call_end(&call);
    call_end(&place);
    return right;
}

static void test_losses(int engine)
{
    bool right = true;

    for (int n = 0; n < 60; n++)
        right = loss_is(engine, n) && right;
    ok(right, "%s: losses are those of dtn_cross_entropy()",
       engine_name(engine));
    right = true;
    for (int n = 0; n < 40; n++)
        right = finish_is(engine, n) && right;
    ok(right, "%s: with known numbers of the rows a softmax is that of "
       "dtn_softmax_finish()", engine_name(engine));
    right = true;
    for (int t = 0; t < DTENSOR_NDTYPES; t++)
        for (int n = 0; n < 12; n++)
            right = (dtn_dtype_kind(t) == DTN_DTYPE_COMPLEX
                     || extreme_is(engine, t, n)) && right;
    ok(right, "%s: extremes and their places are those of dtn_extreme()",
       engine_name(engine));
}

/* --------------------------------------------------------------- lines --- */

/* The same numbers are there at first. */
static void outputs_alike(struct call *call, enum dtensor_dtype t, int ndim,
                          const int64_t shape[])
{
    call_outputs(&seed, call, t, ndim, shape, false);
    sample_fill(&seed, &call->got, false);
    memcpy(call->want.data, call->got.data,
           (size_t)dtn_array_count(&call->got) * dtn_dtype_size(t));
}

static bool scatter_is(int engine, enum dtensor_dtype t, int n)
{
    const enum dtensor_dtype i = n % 3 ? DTENSOR_I64 : DTENSOR_I32;
    int64_t shape[DTENSOR_MAX_DIMS];
    const int ndim = shape_draw(shape), dim = rand_below(&seed, ndim);
    struct call call = { .nin = 2 };
    struct dtn_launch launch;
    bool right;

    outputs_alike(&call, t, ndim, shape);
    for (int d = 0; d < ndim; d++)
        shape[d] = d == dim ? rand_below(&seed, 50)
                            : shape[d] - (shape[d] > 2 && n % 2);
    call.in[0] = indices(i, ndim, shape, call.got.shape[dim]);
    for (int d = 0; d < ndim; d++)
        shape[d] += n % 5 == 0;
    call.in[1] = drawn(t, ndim, shape, n % 4 == 0);
    dtn_array_scatter(&call.want, dim, &call.in[0], &call.in[1], n % 2);
    dtn_launch_scatter(&call.got, dim, &call.in[0], &call.in[1], n % 2,
                       &launch);
    engine_run(engine, &launch);
    right = call_same(n % 2 ? "scatter_add" : "scatter", &call, false);
    call_end(&call);
    return right;
}

static bool table_is(int engine, int n)
{
    const enum dtensor_dtype t = floats[n % 4];
    const int64_t table[] = { 1 + n * 7 % 90, n % 13 };
    const int64_t shape[] = { n % 5, 1 + n * 3 % 30, table[1] };
    struct call call = { .nin = 2 };
    struct dtn_launch launch;
    bool right;

    outputs_alike(&call, t, 2, table);
    call.in[0] = indices(n % 2 ? DTENSOR_I64 : DTENSOR_I32, 2, shape,
                         table[0] + 3);
    call.in[1] = drawn(t, 3, shape, n % 4 == 0);
    dtn_embedding_backward(&call.want, &call.in[1], &call.in[0], n % 3);
    dtn_launch_embedding_backward(&call.got, &call.in[1], &call.in[0], n % 3,
                                  &launch);
    engine_run(engine, &launch);
    right = call_same("gradient of a table", &call, false);
    call_end(&call);
    return right;
}

static bool cumulate_is(int engine, enum dtensor_dtype t, int n)
{
    int64_t shape[DTENSOR_MAX_DIMS];
    const int ndim = shape_draw(shape), dim = rand_below(&seed, ndim);
    struct call call = { .nin = 1 };
    struct dtn_launch launch;
    bool right;

    call.in[0] = drawn(t, ndim, shape, n % 4 == 0);
    call_outputs(&seed, &call, t, ndim, shape, n % 3 == 0);
    dtn_cumulate(n % 2, &call.want, &call.in[0], dim, lent);
    dtn_launch_cumulate(n % 2, &call.got, &call.in[0], dim, &launch);
    engine_run(engine, &launch);
    right = call_same(n % 2 ? "cumprod" : "cumsum", &call, false);
    call_end(&call);
    return right;
}

static bool triangle_is(int engine, enum dtensor_dtype t, int n)
{
    const int64_t shape[] = { n % 4, n * 5 % 11, n * 3 % 17 };
    const int ndim = 2 + n % 2;
    const int64_t *from = shape + 3 - ndim, edge = n % 9 - 4;
    struct call call = { .nin = 1 };
    struct dtn_launch launch;
    bool right;

    call.in[0] = drawn(t, ndim, from, false);
    call_outputs(&seed, &call, t, ndim, from, n % 3 == 0);
    dtn_triangle(n % 2, edge, &call.want, &call.in[0]);
    dtn_launch_triangle(n % 2, edge, &call.got, &call.in[0], &launch);
    engine_run(engine, &launch);
    right = call_same("triangle", &call, false);
    call_end(&call);
    return right;
}

static void test_lines(int engine)
{
    bool scatters = true, cumulates = true, triangles = true, tables = true;

    for (int t = 0; t < DTENSOR_NDTYPES; t++)
        for (int n = 0; n < 12; n++) {
            scatters = scatter_is(engine, t, n) && scatters;
            cumulates = (dtn_dtype_kind(t) == DTN_DTYPE_COMPLEX
                         || cumulate_is(engine, t, n)) && cumulates;
            triangles = triangle_is(engine, t, n) && triangles;
        }
    for (int n = 0; n < 60; n++)
        tables = table_is(engine, n) && tables;
    ok(scatters, "%s: scatters are those of dtn_array_scatter()",
       engine_name(engine));
    ok(tables, "%s: gradients of tables are those of dtn_embedding_backward()",
       engine_name(engine));
    ok(cumulates, "%s: sums so far are those of dtn_cumulate()",
       engine_name(engine));
    ok(triangles, "%s: triangles are those of dtn_triangle()",
       engine_name(engine));
}

int main(void)
{
    seed = rand_seed(7);
    for (int e = 0; e < ENGINES; e++) {
        if (!engine_is_here(e, "gradients as nvcc compiled them"))
            continue;
        test_gradients(e);
        test_losses(e);
        test_lines(e);
    }
    return done();
}
