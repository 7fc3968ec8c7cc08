/* test_curand.c - the kernels of `fill = cuda` against cuRAND's functions
 *
 * curand.c has the same kernels by cuRAND's own functions, compiled as PyTorch
 * is.  nvcc's PTX of both runs here, translated to C, with the approximate
 * instructions of a GPU exact, as wrong as they may be, and between.  If the
 * bits are the same whatever these give, they are the same on a GPU.
 *
 * Without this test, normals on a GPU could be near PyTorch's and not equal: by
 * another constant, another logarithm, or a product that is rounded.
 */
#include "base/compiler.h"
#include "cuda/kernels.h"
#include "device/memory.h"
#include "dtensor.h"
#include "random/dist.h"
#include "random/fill.h"
#include "tests/cuda/bounds.h"
#include "tests/cuda/engine.h"
#include "tests/cuda/ptx_approximate.h"
#include "tests/support/tap.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 3 };

static size_t most;
static char *ours, *theirs, *exact;

static void fill_by(int engine, const struct dtensor_random_rule *rule,
                    const struct dtn_dist *dist, void *out)
{
    const struct dtn_random_stream stream =
        dtn_random_stream_of(rule, UINT64_C(1) << 63 | 0x42,
                             4 * (INT64_C(0xffffffff) - 2),
                             (int64_t)most + FIRST);
    const struct dtn_fill_how how = { &stream, dist };
    const struct dtn_elements elements = {
        .how = &how, .first = FIRST, .count = most,
        .out_bytes = dtensor_dtype_size(dist->dtype)
    };
    struct dtn_launch launch;

    dtn_fill_formula.launch(&elements, out, NULL, &launch);
    if (!bounds_apply(&launch))
        abort();
    engine_run(engine, &launch);
}

/* Must the errors of instructions show?  What is rounded hides them, and so
 * does the logarithm of f64 in normals of a small deviation.
 */
static bool shows(const struct dtn_dist *dist)
{
    return dist->dtype == DTENSOR_F32
        || (dist->dtype == DTENSOR_F64 && dist->kind == DTN_EXPONENTIAL);
}

static bool same_bits(int engine, const struct dtensor_random_rule *rule,
                      struct dtn_dist dist)
{
    const size_t bytes = most * dtensor_dtype_size(dist.dtype);
    bool right = true, all_exact = true;

    dtn_fill_adapt(rule, &dist);
    for (int wrong = 0; right && wrong < PTX_WRONGS; wrong++) {
        ptx_wrong = (enum ptx_wrong)wrong;
        fill_by(engine, rule, &dist, ours);
        fill_by(ENGINE_CURAND, rule, &dist, theirs);
        if (wrong == PTX_EXACT)
            memcpy(exact, ours, bytes);
        all_exact = all_exact && memcmp(exact, ours, bytes) == 0;
        right = engine_differs(ours, theirs, bytes) < 0;
        if (!right)
            note("kind %d, %d multiprocessors, errors of kind %d: byte %ld",
                 dist.kind, rule->sms, wrong,
                 engine_differs(ours, theirs, bytes));
    }
    if (right && all_exact && shows(&dist)) {
        note("kind %d: no instruction was approximate", dist.kind);
        return false;
    }
    return right;
}

static bool dist_is_curands(int engine, const struct dtn_dist *dist)
{
    static const struct dtensor_random_rule rules[] = {
        { .fill = DTENSOR_FILL_CUDA, .sms = 1, .threads_per_sm = 2048 },
        { .fill = DTENSOR_FILL_CUDA, .sms = 132, .threads_per_sm = 2048 },
    };
    bool right = true;

    for (size_t r = 0; r < DTN_COUNT(rules); r++)
        right = same_bits(engine, &rules[r], *dist) && right;
    return right;
}

static bool type_is_curands(int engine, enum dtensor_dtype t)
{
    struct dtn_dist d;
    bool right = dtn_dist_normal(&d, DTN_NORMAL, t, 0, 1, NULL) == 0
              && dist_is_curands(engine, &d);

    right = dtn_dist_normal(&d, DTN_NORMAL, t, -1.5, 0.02, NULL) == 0
         && dist_is_curands(engine, &d) && right;
    right = dtn_dist_normal(&d, DTN_NORMAL, t, 0.375, 1, NULL) == 0
         && dist_is_curands(engine, &d) && right;
    right = dtn_dist_normal(&d, DTN_LOG_NORMAL, t, 0.5, 3, NULL) == 0
         && dist_is_curands(engine, &d) && right;
    right = dtn_dist_exponential(&d, t, 0.7, NULL) == 0
         && dist_is_curands(engine, &d) && right;
    return right;
}

int main(void)
{
    static const enum dtensor_dtype types[] = { DTENSOR_F64, DTENSOR_F32,
                                                DTENSOR_F16, DTENSOR_BF16 };
    const char *claim = "kernels of fill = cuda have the bits of cuRAND's";
    const bool here = engine_is_here(ENGINE_CURAND, claim);

    most = engine_elements(ENGINE_PTX) / 10;
    ours = malloc(8 * most);
    theirs = malloc(8 * most);
    exact = malloc(8 * most);
    for (int e = ENGINE_PTX; e <= ENGINE_NEWEST; e++)
        for (size_t i = 0; here && i < DTN_COUNT(types); i++)
            ok(type_is_curands(e, types[i]), "%s: %s, %s", engine_name(e),
               claim, dtensor_dtype_name(types[i]));
    free(ours);
    free(theirs);
    free(exact);
    return done();
}
