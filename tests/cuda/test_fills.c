/* test_fills.c - the kernels that fill with random numbers, against dtn_fill()
 *
 * Each distribution and type, in the sequential order and in that of a CUDA
 * grid, as ranges that begin and end within a block, and with counters that
 * pass 2^32.  All bits are compared, but for normals and exponentials of
 * `fill = cuda` on a GPU: these are within a bound, whatever the approximate
 * instructions give.
 *
 * Without this test, the numbers of a tensor could depend on whether a CPU or a
 * GPU made them.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "cuda/kernels.h"
#include "device/memory.h"
#include "dtensor.h"
#include "random/dist.h"
#include "random/fill.h"
#include "tests/cuda/bounds.h"
#include "tests/cuda/engine.h"
#include "tests/cuda/ptx_approximate.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { EDGE = 64 };

static uint64_t seed;
static size_t most;
static char *want, *got;

/* The first byte that is wrong, or -1; around the elements none may change. */
static long range_differs(bool approximate, const struct dtn_dist *dist,
                          size_t skipped, size_t count, size_t all)
{
    const size_t bytes = count * dtensor_dtype_size(dist->dtype);

    if (approximate) {
        if (!bounds_hold(dist, got + skipped, want + skipped, count))
            return (long)skipped;
        memcpy(got + skipped, want + skipped, bytes);
    }
    return engine_differs(got, want, all);
}

static bool range_agrees(int engine, const struct dtn_random_stream *stream,
                         const struct dtn_dist *dist, int64_t first,
                         size_t count, size_t shift)
{
    const size_t elem = dtensor_dtype_size(dist->dtype);
    const size_t all = (shift + count) * elem + EDGE;
    const struct dtn_fill_how how = { stream, dist };
    const struct dtn_elements elements = { .how = &how, .first = first,
                                           .count = count,
                                           .out_bytes = elem };
    struct dtn_launch launch;
    long at;

    memset(want, 0xa5, all);
    memset(got, 0xa5, all);
    dtn_fill(stream, dist, first, (int64_t)count, want + shift * elem);
    dtn_fill_formula.launch(&elements, got + shift * elem, NULL, &launch);
    engine_run(engine, &launch);
    at = range_differs(engine != ENGINE_TWIN && stream->threads > 0
                       && bounds_apply(&launch), dist, shift * elem, count,
                       all);
    if (at >= 0)
        note("kind %d of %s as %s, %lld threads, %zu from %lld, shift %zu: "
             "byte %ld is %02x and not %02x", dist->kind,
             dtensor_dtype_name(dist->dtype), engine_name(engine),
             (long long)stream->threads, count, (long long)first, shift, at,
             (unsigned char)got[at], (unsigned char)want[at]);
    return at < 0;
}

/* In one order: short ranges, a long one, counters that pass 2^32. */
static bool order_agrees(int engine, const struct dtensor_random_rule *rule,
                         struct dtn_dist dist, size_t longest)
{
    const int64_t numel = (int64_t)longest + 64;
    const uint64_t key = UINT64_C(1) << 63 | 0x42;
    struct dtn_random_stream stream = dtn_random_stream_of(rule, key, 12,
                                                           numel);
    bool right = true;

    dtn_fill_adapt(rule, &dist);
    for (int64_t first = 0; first < 10; first++)
        for (size_t count = 0; right && count < 24; count += 5)
            right = range_agrees(engine, &stream, &dist, first, count,
                                 (size_t)first % 3);
    for (int i = 0; right && i < 8; i++) {
        const int64_t first = rand_below(&seed, (int)numel - 700);

        right = range_agrees(engine, &stream, &dist, first, 600, 1);
    }
    right = right && range_agrees(engine, &stream, &dist, 3, longest, 0);
    stream.block = UINT64_C(0xffffffff) - 10;
    return right && range_agrees(engine, &stream, &dist, 0, 900, 0);
}

static bool dist_agrees(int engine, const struct dtn_dist *dist, size_t longest)
{
    static const struct dtensor_random_rule rules[] = {
        { .fill = DTENSOR_FILL_SEQUENTIAL },
        { .fill = DTENSOR_FILL_CUDA, .sms = 1, .threads_per_sm = 2048 },
        { .fill = DTENSOR_FILL_CUDA, .sms = 132, .threads_per_sm = 2048 },
    };
    bool right = true;

    for (size_t r = 0; r < DTN_COUNT(rules); r++)
        for (int w = 0; w < PTX_WRONGS; w++) {
            ptx_wrong = (enum ptx_wrong)w;
            if (w == PTX_EXACT || rules[r].fill == DTENSOR_FILL_CUDA)
                right = right
                     && order_agrees(engine, &rules[r], *dist,
                                     w == PTX_EXACT ? longest : longest / 20);
        }
    return right;
}

/* ------------------------------------------------------- distributions --- */

static bool floats_agree(int engine, enum dtensor_dtype t, size_t n)
{
    static const double cut[][4] = {
        { 0, 1, -2, 2 }, { 1, 3, 5, 11 }, { 0, 1, -9, -6 }, { 0, 0.02, 0, 1 }
    };
    struct dtn_dist d;
    bool right = true;

    right = dtn_dist_uniform(&d, t, 0, 1, NULL) == 0
         && dist_agrees(engine, &d, n) && right;
    right = dtn_dist_uniform(&d, t, -1, 2, NULL) == 0
         && dist_agrees(engine, &d, n / 4) && right;
    right = dtn_dist_normal(&d, DTN_NORMAL, t, 0, 1, NULL) == 0
         && dist_agrees(engine, &d, n) && right;
    right = dtn_dist_normal(&d, DTN_NORMAL, t, -1.5, 0.02, NULL) == 0
         && dist_agrees(engine, &d, n / 4) && right;
    right = dtn_dist_normal(&d, DTN_LOG_NORMAL, t, 0.5, 3, NULL) == 0
         && dist_agrees(engine, &d, n) && right;
    right = dtn_dist_exponential(&d, t, 0.7, NULL) == 0
         && dist_agrees(engine, &d, n) && right;
    right = dtn_dist_keep(&d, t, 0.3, NULL) == 0
         && dist_agrees(engine, &d, n) && right;
    for (size_t i = 0; i < DTN_COUNT(cut); i++)
        right = dtn_dist_trunc_normal(&d, t, cut[i], NULL) == 0
             && dist_agrees(engine, &d, i == 0 ? n : n / 8) && right;
    return right;
}

static bool integers_agree(int engine, enum dtensor_dtype t, size_t n)
{
    const bool wide = dtensor_dtype_size(t) == 8;
    struct dtn_dist d;
    bool right = true;

    right = dtn_dist_integers(&d, t, 0, t == DTENSOR_BOOL ? 2 : 7, NULL) == 0
         && dist_agrees(engine, &d, n);
    if (wide)
        right = dtn_dist_integers(&d, t, 5, INT64_C(1) << 53, NULL) == 0
             && dist_agrees(engine, &d, n / 4) && right;
    right = dtn_dist_bernoulli(&d, t, 0.25, NULL) == 0
         && dist_agrees(engine, &d, n) && right;
    if (!dtn_dtype_is_float(t))
        right = dtn_dist_bits(&d, t, NULL) == 0
             && dist_agrees(engine, &d, n) && right;
    return right;
}

/* The longest arrays are of f32, f64, bf16 and i64, which have all kernels. */
static size_t longest_of(enum dtensor_dtype t)
{
    const bool first = t == DTENSOR_F32 || t == DTENSOR_F64
                    || t == DTENSOR_BF16 || t == DTENSOR_I64;

    return first ? most : most / 20;
}

int main(void)
{
    seed = rand_seed(3);
    most = engine_elements(ENGINE_TWIN) / 2;
    want = aligned_alloc(64, (most + 64) / 8 * 64 + 4096);
    got = aligned_alloc(64, (most + 64) / 8 * 64 + 4096);
    for (int e = 0; e < ENGINES; e++) {
        if (!engine_is_here(e, "fills as nvcc compiled them"))
            continue;
        most = engine_elements(e) / 2;
        for (enum dtensor_dtype t = 0; t < DTENSOR_NDTYPES; t++) {
            const bool floats = dtn_dtype_kind(t) == DTN_DTYPE_FLOAT;

            if (dtn_dtype_kind(t) == DTN_DTYPE_COMPLEX)
                continue;
            ok((!floats || floats_agree(e, t, longest_of(t)))
               && integers_agree(e, t, longest_of(t)),
               "%s: every distribution of %s is as dtn_fill()'s",
               engine_name(e), dtensor_dtype_name(t));
        }
    }
    return done();
}
