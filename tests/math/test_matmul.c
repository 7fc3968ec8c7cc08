/* test_matmul.c - products of matrices
 *
 * Products of random shapes, batched, broadcast, transposed, with gaps, in
 * every type, are compared with three nested loops.  What DTN_MATMUL_REPRO
 * gives has exactly their bits, at every vector width; and so have products of
 * bf16 whose terms are too small for the instruction that adds pairs.
 *
 * Without this test, a product could be wrong at the edge of a block, or have
 * other bits when a rank holds fewer rows.
 */
#include "math/blas.h"
#include "math/matmul.h"
#include "math/width.h"
#include "base/dtype.h"
#include "dtensor.h"
#include "tests/math/sample.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed;

struct call {
    struct dtn_array out, a, b, old;
    unsigned flags;
};

static const void *operand_at(const struct call *call,
                              const struct dtn_array *operand,
                              const int64_t index[], int64_t row,
                              int64_t column)
{
    int64_t at[DTENSOR_MAX_DIMS];

    sample_broadcast(operand, call->out.ndim, index, at);
    at[operand->ndim - 2] = row;
    at[operand->ndim - 1] = column;
    return sample_at(operand, at);
}

#define TWIN(name, T, load, add)                                              \
    static T name(const struct call *call, const int64_t index[])             \
    {                                                                         \
        const int r = call->out.ndim - 2;                                     \
        const enum dtensor_dtype dtype = call->out.dtype;                     \
        T sum = 0;                                                            \
                                                                              \
        if (call->flags & DTN_MATMUL_ADD)                                     \
            sum = (T)load(dtype, sample_at(&call->old, index), 0);            \
        for (int64_t k = 0; k < call->a.shape[r + 1]; k++) {                  \
            const T x = (T)load(dtype, operand_at(call, &call->a, index,      \
                                                  index[r], k), 0);           \
            const T y = (T)load(dtype, operand_at(call, &call->b, index, k,   \
                                                  index[r + 1]), 0);          \
                                                                              \
            sum = add;                                                        \
        }                                                                     \
        return sum;                                                           \
    }

static double complex load_complex(enum dtensor_dtype dtype, const void *at,
                                   size_t i)
{
    return dtype == DTENSOR_C64 ? ((const float complex *)at)[i]
                                : ((const double complex *)at)[i];
}

TWIN(twin_f32, float, dtn_load, fmaf(x, y, sum))
TWIN(twin_f64, double, dtn_load, fma(x, y, sum))
TWIN(twin_int, uint64_t, dtn_load_int, sum + x * y)
TWIN(twin_complex, double complex, load_complex, sum + x * y)

static bool element_is_right(const struct call *call, const int64_t index[])
{
    const enum dtensor_dtype dtype = call->out.dtype;
    const void *got = sample_at(&call->out, index);
    const bool exact = call->flags & DTN_MATMUL_REPRO;
    const double unit = dtype == DTENSOR_F64 || dtype == DTENSOR_C128
                            ? 1e-13 : 1e-4;

    if (dtn_dtype_kind(dtype) == DTN_DTYPE_COMPLEX)
        return cabs(load_complex(dtype, got, 0) - twin_complex(call, index)) <=
               unit * 100;
    if (!dtn_dtype_is_float(dtype)) {
        int64_t want;

        dtn_store_int(dtype, &want, 0, (int64_t)twin_int(call, index));
        return dtn_load_int(dtype, got, 0) == dtn_load_int(dtype, &want, 0);
    }
    return sample_close(dtype, dtn_load(dtype, got, 0),
                        dtype == DTENSOR_F64 ? twin_f64(call, index)
                                             : (double)twin_f32(call, index),
                        exact ? 0 : dtn_dtype_is_narrow(dtype) ? 1 : 16,
                        exact ? 0 : unit);
}

/* An operand of the shape: transposed in memory, broadcast, or as it is. */
static struct dtn_array operand_new(enum dtensor_dtype dtype, int ndim,
                                    const int64_t shape[])
{
    int64_t own[DTENSOR_MAX_DIMS];
    struct dtn_array array;

    memcpy(own, shape, sizeof own);
    for (int d = 0; d < ndim - 2; d++)
        own[d] = rand_below(&seed, 3) == 0 ? 1 : own[d];
    if (rand_below(&seed, 2)) {
        own[ndim - 2] = shape[ndim - 1];
        own[ndim - 1] = shape[ndim - 2];
        array = sample_new(&seed, dtype, ndim, own, rand_below(&seed, 2));
        array = dtn_array_swapped(&array, ndim - 2, ndim - 1);
    } else {
        array = sample_new(&seed, dtype, ndim, own, rand_below(&seed, 2));
    }
    sample_fill(&seed, &array, false);
    return array;
}

static struct call call_new(enum dtensor_dtype dtype, int most, unsigned flags)
{
    const int ndim = 2 + rand_below(&seed, 3);
    int64_t shape[DTENSOR_MAX_DIMS] = { 0 }, a[DTENSOR_MAX_DIMS];
    int64_t b[DTENSOR_MAX_DIMS], k;
    struct call call = { .flags = flags };

    sample_shape(&seed, ndim - 2, 3, shape);
    sample_shape(&seed, 2, most, shape + ndim - 2);
    sample_shape(&seed, 1, most, &k);
    memcpy(a, shape, sizeof a);
    memcpy(b, shape, sizeof b);
    a[ndim - 1] = b[ndim - 2] = k;
    call.a = operand_new(dtype, ndim, a);
    call.b = operand_new(dtype, ndim, b);
    call.out = sample_new(&seed, dtype, ndim, shape, rand_below(&seed, 2));
    sample_fill(&seed, &call.out, false);
    call.old = sample_new(&seed, dtype, ndim, shape, false);
    dtn_array_copy(&call.old, &call.out);
    return call;
}

static void call_free(struct call *call)
{
    sample_free(&call->out);
    sample_free(&call->a);
    sample_free(&call->b);
    sample_free(&call->old);
}

static int call_wrong(struct call *call)
{
    const size_t size = dtn_matmul_workspace(&call->out, &call->a, &call->b,
                                             call->flags);
    int64_t index[DTENSOR_MAX_DIMS] = { 0 };
    void *workspace = malloc(size + 1);
    int wrong = 0;

    dtn_matmul(&call->out, &call->a, &call->b, call->flags, workspace);
    free(workspace);
    for (bool more = dtn_array_count(&call->out) > 0; more;
         more = sample_next(&call->out, index))
        wrong += !element_is_right(call, index);
    if (wrong)
        note("%s %lld x %lld x %lld, flags %u: %d wrong",
             dtensor_dtype_name(call->out.dtype),
             (long long)call->out.shape[call->out.ndim - 2],
             (long long)call->out.shape[call->out.ndim - 1],
             (long long)call->a.shape[call->out.ndim - 1], call->flags, wrong);
    return wrong;
}

static void test_products(int width, unsigned flags)
{
    const int calls = 24;
    int wrong = 0;

    for (int dtype = 0; dtype < DTENSOR_NDTYPES; dtype++)
        for (int i = 0; i < calls && dtype != DTENSOR_BOOL; i++) {
            struct call call = call_new((enum dtensor_dtype)dtype,
                                        i < 20 ? 9 : 50,
                                        flags | (i & 1 ? DTN_MATMUL_ADD : 0));

            wrong += call_wrong(&call);
            call_free(&call);
        }
    ok(wrong == 0, "width %d%s: %d products of each type are those of three "
       "loops: %d elements wrong (seed %llu)", width,
       flags & DTN_MATMUL_REPRO ? ", repro" : "", calls, wrong,
       (unsigned long long)rand_seed(3));
}

/* Longer than a block of the own loops, or of a row of the result. */
static void test_long(unsigned flags, int64_t m, int64_t k, int64_t n)
{
    const int64_t out[] = { m, n }, a[] = { m, k }, b[] = { k, n };
    struct call call = { .flags = flags };

    call.a = sample_new(&seed, DTENSOR_F32, 2, a, false);
    call.b = sample_new(&seed, DTENSOR_F32, 2, b, false);
    call.out = sample_new(&seed, DTENSOR_F32, 2, out, false);
    call.old = sample_new(&seed, DTENSOR_F32, 2, out, false);
    sample_fill(&seed, &call.a, false);
    sample_fill(&seed, &call.b, false);
    ok(call_wrong(&call) == 0, "%d x %d by %d x %d%s is right", (int)m, (int)k,
       (int)k, (int)n, flags & DTN_MATMUL_REPRO ? ", repro," : "");
    call_free(&call);
}

/* Several blocks and panels, and their edges; batched, transposed, gapped. */
static void test_blocks(int width)
{
    static const enum dtensor_dtype dtypes[] = { DTENSOR_F32, DTENSOR_F64,
                                                 DTENSOR_F16, DTENSOR_BF16 };
    const int calls = 9;
    int wrong = 0;

    for (int d = 0; d < 4; d++)
        for (int i = 0; i < calls; i++) {
            struct call call = call_new(dtypes[d], 40 + 25 * i,
                                        DTN_MATMUL_REPRO |
                                        (i & 1 ? DTN_MATMUL_ADD : 0));

            wrong += call_wrong(&call);
            call_free(&call);
        }
    ok(wrong == 0, "width %d: %d products of each float of up to %d rows are "
       "those of three loops", width, calls, 40 + 25 * (calls - 1));
}

/* Numbers whose exponents are `from` to `from` + 7. */
static void fill_small(struct dtn_array *array, unsigned from)
{
    int64_t index[DTENSOR_MAX_DIMS] = { 0 };

    for (bool more = dtn_array_count(array) > 0; more;
         more = sample_next(array, index)) {
        const unsigned bits = (unsigned)rand_below(&seed, 1 << 11);

        *(uint16_t *)sample_at(array, index) =
            (uint16_t)(((bits >> 10) << 15) + (from << 7) + (bits & 1023));
    }
}

/* Of bf16 numbers whose products and sums are subnormal in f32, or are not; the
 * sums may have been small before.
 */
static void test_small(void)
{
    static const unsigned from[][3] = {
        { 0, 130, 130 }, { 60, 60, 0 }, { 64, 66, 64 }, { 70, 76, 0 },
        { 240, 0, 240 }, { 120, 120, 0 }, { 120, 120, 120 } };
    int wrong = 0;

    for (int i = 0; i < 7 * 8; i++) {
        struct call call = call_new(DTENSOR_BF16, 50, DTN_MATMUL_REPRO |
                                    (i & 1 ? DTN_MATMUL_ADD : 0));

        fill_small(&call.a, from[i % 7][0]);
        fill_small(&call.b, from[i % 7][1]);
        fill_small(&call.out, from[i % 7][2]);
        dtn_array_copy(&call.old, &call.out);
        wrong += call_wrong(&call);
        call_free(&call);
    }
    ok(wrong == 0, "products of small bf16 are those of three loops");
}

/* 145 x 145 - 144 x 146 = 1, of numbers times 2^-63 and 2^`scale`, and `old`:
 * the sum is subnormal though no term is.
 */
static void test_cancels(int scale, double old)
{
    enum { M = 4, N = 16, K = 130 };
    static uint16_t out[M * N], a[M * K], b[K * N];
    const int64_t so[] = { M, N }, sa[] = { M, K }, sb[] = { K, N };
    const struct dtn_array oa = dtn_array_packed(out, DTENSOR_BF16, 2, so);
    const struct dtn_array aa = dtn_array_packed(a, DTENSOR_BF16, 2, sa);
    const struct dtn_array ba = dtn_array_packed(b, DTENSOR_BF16, 2, sb);
    static double room[8192];
    bool right = true;

    for (size_t i = 0; i < M * N; i++)
        dtn_store(DTENSOR_BF16, out, i, old);
    for (size_t i = 0; i < M; i++) {
        dtn_store(DTENSOR_BF16, a, i * K, ldexp(145, -63));
        dtn_store(DTENSOR_BF16, a, i * K + 1, ldexp(-144, -63));
    }
    for (size_t j = 0; j < N; j++) {
        dtn_store(DTENSOR_BF16, b, j, ldexp(145, scale));
        dtn_store(DTENSOR_BF16, b, N + j, ldexp(146, scale));
    }
    dtn_matmul(&oa, &aa, &ba, DTN_MATMUL_ADD, room);
    for (size_t i = 0; i < M * N; i++)
        right &= dtn_load(DTENSOR_BF16, out, i) == ldexp(1, scale - 63) + old;
    ok(right, "terms that cancel to 2^%d, with %g: their sum is not lost",
       scale - 63, old);
}

int main(void)
{
    seed = rand_seed(3);
    note("BLAS: %s", dtn_blas_ok() ? "yes" : "no");
    for (int width = 0; width < 3 && dtn_width_force(width); width++)
        test_products(width, DTN_MATMUL_REPRO);
    for (int width = 0; width < 3 && dtn_width_force(width); width++)
        test_blocks(width);
    dtn_width_force(-1);
    test_small();
    test_cancels(-63, 0);
    test_cancels(-64, 0);
    test_cancels(-63, ldexp(-129, -133));
    test_products(-1, 0);
    test_long(0, 67, 530, 301);
    test_long(DTN_MATMUL_REPRO, 67, 530, 301);
    test_long(DTN_MATMUL_REPRO, 6, 131, 1100);
    return done();
}
