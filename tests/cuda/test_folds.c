/* test_folds.c - the kernels that fold, against dtn_fold() and its kin
 *
 * Each type, reduction, number of terms and mixture of elements and partial
 * results is folded by the library, by the kernel as C and by nvcc's PTX; all
 * bytes are compared, those beside the result too.
 *
 * Without this test, a GPU could give other bits than a CPU: another NaN, a
 * fused product, a sum of bf16 that is rounded twice.
 */
#include "base/box.h"
#include "base/compiler.h"
#include "base/dtype.h"
#include "base/reduce.h"
#include "cuda/launch.h"
#include "dtensor.h"
#include "tests/cuda/engine.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NSRC = 5, NDST = 3, SMALL = 1100, EDGE = 2,
       BOX_ELEMENTS = 1 << 14 };

static uint64_t seed;
static size_t most;                    /* elements of an array               */
static char *sources[NSRC], *results[NDST], *want;

/* One fold: its reduction, its arrays' types, where they begin. */
struct fold {
    struct dtn_reduction how;
    unsigned partial;
    int nsrc, ndst;
    size_t count, first;               /* elements; the first of an array    */
};

static enum dtensor_dtype type_of(const struct fold *f, unsigned which)
{
    return f->partial & which ? f->how.partial : f->how.dtype;
}

static size_t bytes_of(const struct fold *f, unsigned which)
{
    return dtn_dtype_size(type_of(f, which));
}

static void sources_fill(const struct fold *f, const void *src[])
{
    for (int s = 0; s < f->nsrc; s++) {
        const unsigned which = s == 0 ? DTN_PARTIAL_FIRST : DTN_PARTIAL_REST;

        engine_fill(&seed, type_of(f, which), sources[s],
                    f->first + f->count);
        src[s] = sources[s] + f->first * bytes_of(f, which);
    }
}

/* Is what `engine` folds what is wanted? */
static bool fold_is_right(int engine, const struct fold *f,
                          const void *const src[])
{
    const size_t bytes = bytes_of(f, DTN_PARTIAL_DST);
    const size_t all = (f->first + f->count + EDGE) * bytes;
    struct dtn_launch launch;
    void *dst[NDST];
    long at;

    for (int d = 0; d < f->ndst; d++) {
        memset(results[d], 0xa5, all);
        dst[d] = results[d] + f->first * bytes;
    }
    if (!dtn_launch_fold(&f->how, f->partial, dst, f->ndst, src, f->nsrc,
                         f->count, &launch))
        return false;
    engine_run(engine, &launch);
    for (int d = 0; d < f->ndst; d++) {
        at = engine_differs(results[d], want, all);
        if (at >= 0) {
            note("%s %s of %d as %s, partial %u, %zu elements from %zu: byte "
                 "%ld of result %d is %02x and not %02x",
                 dtensor_dtype_name(f->how.dtype),
                 dtensor_redop_name(f->how.op), f->nsrc, engine_name(engine),
                 f->partial, f->count, f->first, at, d,
                 (unsigned char)results[d][at], (unsigned char)want[at]);
            return false;
        }
    }
    return true;
}

static bool fold_agrees(int engine, const struct fold *f)
{
    const size_t bytes = bytes_of(f, DTN_PARTIAL_DST);
    const void *src[NSRC];

    if (f->nsrc == 1 && dtn_fold_moves(&f->how, f->partial))
        return true;
    sources_fill(f, src);
    memset(want, 0xa5, (f->first + f->count + EDGE) * bytes);
    dtn_fold(&f->how, f->partial, want + f->first * bytes, src, f->nsrc,
             f->count);
    return fold_is_right(engine, f, src);
}

/* Every mixture of partial results and elements, in turn. */
static bool folds_agree(int engine, const struct dtn_reduction *how)
{
    static const size_t counts[] = { 0, 1, 3, 16, 33, SMALL };
    struct fold f = { .how = *how };
    bool right = true;

    for (f.partial = 0; f.partial < 8; f.partial++)
        for (f.nsrc = 1; f.nsrc <= NSRC; f.nsrc += f.nsrc)
            for (size_t c = 0; c < DTN_COUNT(counts); c++) {
                f.count = counts[c];
                f.first = c % 2 ? 1 : 0;
                f.ndst = 1 + (int)(c + f.partial) % NDST;
                right = right && fold_agrees(engine, &f);
            }
    f = (struct fold){ .how = *how, .nsrc = 3, .ndst = 1, .count = most };
    f.count = bytes_of(&f, 0) > 8 ? most / 2 : most;
    return right && fold_agrees(engine, &f);
}

static void test_type(int engine, enum dtensor_dtype dtype)
{
    bool right = true;

    for (enum dtensor_redop op = 0; op < DTENSOR_NREDOPS; op++) {
        struct dtn_reduction how = dtn_reduction(dtype, op, 7);

        if (!dtn_redop_ok(op, dtype))
            continue;
        right = right && folds_agree(engine, &how);
        how.factor = 0.3;
        if (op == DTENSOR_SUM && dtn_dtype_is_float(dtype))
            right = right && folds_agree(engine, &how);
    }
    ok(right, "%s: every reduction of %s has the library's bits",
       engine_name(engine), dtensor_dtype_name(dtype));
}

/* ---------------------------------------------------------------- boxes --- */

/* Strides of one side: the dimensions in a random order, with gaps. */
static void strides_draw(const struct dtn_box *box, int64_t *stride, bool gaps)
{
    bool done[DTN_BOX_DIMS] = { false };
    int64_t next = 1;

    for (int n = 0; n < box->ndim; n++) {
        int d = gaps ? rand_below(&seed, box->ndim) : box->ndim - 1;

        while (done[d])
            d = (d + box->ndim - 1) % box->ndim;
        done[d] = true;
        stride[d] = next;
        next *= box->size[d] + (gaps ? rand_below(&seed, 3) : 0);
    }
}

static struct dtn_box box_draw(void)
{
    struct dtn_box box = { .ndim = rand_below(&seed, 5) };

    for (int d = 0; d < box.ndim; d++)
        box.size[d] = 1 + rand_below(&seed, d == box.ndim - 1 ? 40 : 4);
    if (box.ndim > 0 && rand_below(&seed, 20) == 0)
        box.size[0] = 0;
    strides_draw(&box, box.dst_stride, rand_below(&seed, 3) == 0);
    strides_draw(&box, box.src_stride, rand_below(&seed, 3) == 0);
    return box;
}

static bool box_agrees(int engine, const struct dtn_reduction *how,
                       unsigned partial, bool adds)
{
    const struct fold f = { .how = *how, .partial = partial };
    const size_t bytes = BOX_ELEMENTS * bytes_of(&f, DTN_PARTIAL_DST);
    const struct dtn_box box = box_draw();
    struct dtn_launch launch;
    long at;

    if (!adds && dtn_fold_moves(how, partial))
        return true;
    engine_fill(&seed, type_of(&f, adds ? DTN_PARTIAL_REST
                                        : DTN_PARTIAL_FIRST),
                sources[0], BOX_ELEMENTS);
    engine_fill(&seed, type_of(&f, DTN_PARTIAL_DST), want, BOX_ELEMENTS);
    memcpy(results[0], want, bytes);
    dtn_box_fold(&box, how, partial, adds, want, sources[0]);
    if (!dtn_launch_fold_box(&box, how, partial, adds, results[0], sources[0],
                             &launch))
        return false;
    engine_run(engine, &launch);
    at = engine_differs(results[0], want, bytes);
    if (at >= 0)
        note("%s %s, partial %u%s, %d dimensions: byte %ld",
             dtensor_dtype_name(how->dtype), dtensor_redop_name(how->op),
             partial, adds ? ", added" : "", box.ndim, at);
    return at < 0;
}

static void test_boxes(int engine)
{
    bool right = true;

    for (enum dtensor_dtype t = 0; t < DTENSOR_NDTYPES; t++)
        for (enum dtensor_redop op = 0; op < DTENSOR_NREDOPS; op++) {
            const struct dtn_reduction how = dtn_reduction(t, op, 5);

            for (int n = 0; right && dtn_redop_ok(op, t) && n < 8; n++) {
                /* In place, dst and src[0] are of one kind. */
                right = right && box_agrees(engine, &how, n & 1 ? 3 : 0, true)
                     && box_agrees(engine, &how, n & 1 ? 7 : 4, true)
                     && box_agrees(engine, &how, n & 3, false);
            }
        }
    ok(right, "%s: boxes are folded as by dtn_box_fold()", engine_name(engine));
}

/* ---------------------------------------------------------------- scale --- */

static bool scale_agrees(int engine, enum dtensor_dtype dtype, size_t count,
                         int n)
{
    const size_t bytes = (count + EDGE) * dtn_dtype_size(dtype);
    struct dtn_launch launch;
    long at;

    engine_fill(&seed, dtype, want, count + EDGE);
    memcpy(results[0], want, bytes);
    dtn_scale(dtype, want, count, n);
    dtn_launch_scale(dtype, results[0], count, n, &launch);
    engine_run(engine, &launch);
    at = engine_differs(results[0], want, bytes);
    if (at >= 0)
        note("%s / %d: byte %ld is %02x and not %02x",
             dtensor_dtype_name(dtype), n, at, (unsigned char)results[0][at],
             (unsigned char)want[at]);
    return at < 0;
}

static void test_scale(int engine)
{
    static const int by[] = { 1, 2, 3, 7, 1000003, INT32_MAX };
    bool right = true;

    for (enum dtensor_dtype t = 0; t < DTENSOR_NDTYPES; t++)
        for (size_t i = 0; t != DTENSOR_BOOL && i < DTN_COUNT(by); i++)
            right = scale_agrees(engine, t, SMALL - i, by[i]) && right;
    ok(right, "%s: arrays are divided as by dtn_scale(), NaNs included",
       engine_name(engine));
}

static void test_limits(void)
{
    struct dtn_reduction how = dtn_reduction(DTENSOR_F32, DTENSOR_SUM, 1);
    void *dst[DTN_KERNEL_TERMS + 1] = { NULL };
    const void *src[DTN_KERNEL_TERMS + 1] = { NULL };
    struct dtn_launch launch;

    ok(!dtn_launch_fold(&how, 0, dst, 1, src, DTN_KERNEL_TERMS + 1, 1, &launch)
       && !dtn_launch_fold(&how, 0, dst, DTN_KERNEL_TERMS + 1, src, 1, 1,
                           &launch),
       "more than %d terms or results are refused", DTN_KERNEL_TERMS);
    how.fn = (dtensor_reduce_f *)(uintptr_t)1;
    ok(!dtn_launch_fold(&how, 0, dst, 1, src, 2, 1, &launch),
       "and so is a function of the caller's");
}

int main(void)
{
    seed = rand_seed(1);
    most = engine_elements(ENGINE_TWIN);
    for (int i = 0; i < NSRC; i++)
        sources[i] = aligned_alloc(64, most / 8 * 64 + SMALL * 64
                                   + BOX_ELEMENTS * 16);
    for (int i = 0; i < NDST; i++)
        results[i] = aligned_alloc(64, most / 8 * 64 + SMALL * 64
                                   + BOX_ELEMENTS * 16);
    want = aligned_alloc(64, most / 8 * 64 + SMALL * 64
                                   + BOX_ELEMENTS * 16);
    for (int e = 0; e < ENGINES; e++) {
        if (!engine_is_here(e, "folds as nvcc compiled them"))
            continue;
        most = engine_elements(e);
        for (enum dtensor_dtype t = 0; t < DTENSOR_NDTYPES; t++)
            test_type(e, t);
        test_boxes(e);
        test_scale(e);
    }
    test_limits();
    return done();
}
