/* test_copies.c - the kernels that copy, set, compare, count and drop elements
 *
 * Each is compared with the function of the library that runs on the CPU, byte
 * by byte, those beside the result too.
 *
 * Without this test, a GPU could write past a box, repeat a pattern from the
 * wrong byte, or call -0 and 0 different.
 */
#include "base/box.h"
#include "base/compiler.h"
#include "base/dtype.h"
#include "base/equal.h"
#include "base/reduce.h"
#include "cuda/launch.h"
#include "device/memory.h"
#include "dtensor.h"
#include "tensor/tensor.h"
#include "tests/cuda/engine.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 200, SIDE = 1 << 15, EDGE = 64 };

static uint64_t seed;
static size_t bytes;                   /* of each array                       */
static char *one, *two, *want, *got;

static bool same(int engine, const char *what, unsigned n)
{
    const long at = engine_differs(got, want, bytes);

    if (at >= 0)
        note("%s as %s, case %u: byte %ld is %02x and not %02x", what,
             engine_name(engine), n, at, (unsigned char)got[at],
             (unsigned char)want[at]);
    return at < 0;
}

/* ---------------------------------------------------------------- boxes --- */

static void strides_draw(const struct dtn_box *box, int64_t *stride, bool turns)
{
    int64_t next = 1;

    for (int n = 0; n < box->ndim; n++) {
        const int d = turns ? n : box->ndim - 1 - n;

        stride[d] = next;
        next *= box->size[d] + rand_below(&seed, 2);
    }
}

static void test_boxes(int engine)
{
    bool right = true;

    for (unsigned n = 0; right && n < ROUNDS; n++) {
        const size_t elem = (size_t)1 << rand_below(&seed, 5);
        const size_t shift = (size_t)rand_below(&seed, 3) * elem;
        struct dtn_box box = { .ndim = rand_below(&seed, 5) };
        struct dtn_launch launch;

        for (int d = 0; d < box.ndim; d++)
            box.size[d] = rand_below(&seed, 12) + (n % 20 ? 1 : 0);
        strides_draw(&box, box.dst_stride, rand_below(&seed, 3) == 0);
        strides_draw(&box, box.src_stride, rand_below(&seed, 3) == 0);
        rand_bytes(&seed, one, SIDE * 16);
        memset(want, 0xa5, bytes);
        memset(got, 0xa5, bytes);
        dtn_box_copy(&box, elem, want + shift, one + shift);
        dtn_launch_copy_box(&box, elem, got + shift, one + shift, &launch);
        engine_run(engine, &launch);
        right = same(engine, "box", n);
    }
    ok(right, "%s: boxes are copied as by dtn_box_copy()", engine_name(engine));
}

static void test_large_box(int engine)
{
    const int64_t rows = 1000, cols = (int64_t)engine_elements(engine) / rows;
    const struct dtn_box box = { 2, { rows, cols }, { 1, rows },
                                 { cols, 1 } };
    struct dtn_launch launch;

    rand_bytes(&seed, one, (size_t)(4 * rows * cols));
    memset(want, 0, bytes);
    memset(got, 0, bytes);
    dtn_box_copy(&box, 4, want, one);
    dtn_launch_copy_box(&box, 4, got, one, &launch);
    engine_run(engine, &launch);
    ok(same(engine, "transpose", 0), "%s: a large array is transposed",
       engine_name(engine));
}

/* ------------------------------------------------------------- patterns --- */

static void test_neutral(int engine)
{
    bool right = true;

    for (enum dtensor_dtype t = 0; t < DTENSOR_NDTYPES; t++)
        for (enum dtensor_redop op = 0; op < DTENSOR_NREDOPS; op++)
            for (unsigned n = 0; right && n < 12; n++) {
                const size_t elem = dtensor_dtype_size(t);
                const size_t first = n % 5, count = n < 6 ? n : 300 + n;
                struct dtn_launch launch;

                if (!dtn_redop_ok(op, t))
                    continue;
                memset(want, 0xa5, bytes);
                memset(got, 0xa5, bytes);
                dtn_fill_neutral(t, op, want + first * elem, count);
                dtn_launch_neutral(t, op, got + first * elem, count, &launch);
                engine_run(engine, &launch);
                right = same(engine, dtensor_dtype_name(t), n);
            }
    ok(right, "%s: neutral elements are those of dtn_fill_neutral()",
       engine_name(engine));
}

/* The elements of a pattern differ in every byte. */
static void test_repeat(int engine)
{
    const char elem[] = "ABCDEFGHIJKLMNOP";
    bool right = true;

    for (size_t size = 1; size <= 16; size *= 2)
        for (size_t first = 0; right && first < 20; first++)
            for (size_t count = 0; right && count < 40; count += 3) {
                struct dtn_launch launch;

                memset(want, 0xa5, 2048);
                memset(got, 0xa5, 2048);
                for (size_t i = 0; i < count; i++)
                    memcpy(want + (first + i) * size, elem, size);
                dtn_launch_repeat(elem, size, got + first * size, count,
                                  &launch);
                engine_run(engine, &launch);
                right = engine_differs(got, want, 2048) < 0;
            }
    ok(right, "%s: an element is repeated from any address on",
       engine_name(engine));
}

/* ---------------------------------------------------------------- equal --- */

static bool equal_agrees(int engine, enum dtensor_dtype t, size_t count)
{
    uint32_t *differ = calloc(1, sizeof *differ);  /* a GPU reaches no stack  */
    struct dtn_launch launch;
    bool right;

    dtn_launch_equal(t, one, two, count, differ, &launch);
    engine_run(engine, &launch);
    right = *differ == !dtn_equal(t, one, two, count);
    free(differ);
    return right;
}

static void test_equal(int engine)
{
    bool right = true, found = true;

    for (enum dtensor_dtype t = 0; t < DTENSOR_NDTYPES; t++)
        for (size_t n = 0; n < 300; n++) {
            const size_t elem = dtensor_dtype_size(t);

            /* Few elements, so that some have neither NaN nor difference. */
            engine_fill(&seed, t, one, n % 5 + 1);
            memcpy(two, one, (n % 5 + 1) * elem);
            two[rand_below(&seed, (int)elem)] ^=
                (char)(n % 2 ? 0 : 1 << rand_below(&seed, 8));
            right = right && equal_agrees(engine, t, n % 5 + 1);
        }
    memset(one, 0, bytes);
    memset(two, 0, bytes);
    right = right && equal_agrees(engine, DTENSOR_F32, engine_elements(engine));
    two[4 * engine_elements(engine) - 1] = 1;
    found = equal_agrees(engine, DTENSOR_F32, engine_elements(engine));
    ok(right && found, "%s: arrays are equal as dtn_equal() says",
       engine_name(engine));
}

/* ------------------------------------------------------------- formulas --- */

static bool formula_agrees(int engine, const struct dtn_formula *formula,
                           const struct dtn_elements *e, unsigned n)
{
    const size_t shift = n % 2 ? e->out_bytes : 0;
    const void *const in[] = { one, two };
    struct dtn_launch launch;

    memset(want, 0xa5, bytes);
    memset(got, 0xa5, bytes);
    formula->make(e->how, e->first, e->count, want + shift, in);
    formula->launch(e, got + shift, in, &launch);
    engine_run(engine, &launch);
    return same(engine, "formula", n);
}

static void test_arange(int engine)
{
    static const int64_t first[] = { 0, 1, 100, 250, 32760, 65530, 2147483640,
                                     4294967290, INT64_C(1) << 53,
                                     (INT64_C(1) << 61) + 12345 };
    bool right = true;

    for (enum dtensor_dtype t = 0; t < DTENSOR_NDTYPES; t++)
        for (unsigned i = 0; i < DTN_COUNT(first); i++)
            right = right && formula_agrees(engine, &dtn_index_formula,
                &(struct dtn_elements){ .how = &t, .first = first[i],
                    .count = i == 1 ? engine_elements(engine) / 4 : 777,
                    .out_bytes = dtensor_dtype_size(t) }, t * 100u + i);
    ok(right, "%s: indices are those of dtensor_arange()",
       engine_name(engine));
}

static void test_dropout(int engine)
{
    static const enum dtensor_dtype types[] = {
        DTENSOR_F32, DTENSOR_F64, DTENSOR_F16, DTENSOR_BF16, DTENSOR_F8E4M3,
        DTENSOR_F8E5M2
    };
    static const double p[] = { 0, 0.1, 0.25, 1 - 0x1p-20, 1 };
    const size_t count = engine_elements(engine);
    bool right = true;

    for (unsigned t = 0; t < DTN_COUNT(types); t++)
        for (unsigned i = 0; i < DTN_COUNT(p); i++) {
            const struct dtn_dropout how = { types[t], p[i] };
            const size_t elem = dtensor_dtype_size(types[t]);

            engine_fill(&seed, types[t], one, count);
            engine_fill(&seed, DTENSOR_BOOL, two, count);
            right = right && formula_agrees(engine, &dtn_dropout_formula,
                &(struct dtn_elements){ .how = &how, .count = count,
                    .out_bytes = elem, .in_bytes = { elem, 1 } }, t * 10 + i);
        }
    ok(right, "%s: elements are dropped as by dtensor_dropout(), NaNs "
       "included", engine_name(engine));
}

int main(void)
{
    seed = rand_seed(2);
    bytes = engine_elements(ENGINE_TWIN) * 8 + 16 * EDGE;
    bytes = bytes < SIDE * 16 ? SIDE * 16 : bytes;
    one = aligned_alloc(64, bytes / 64 * 64 + 64);
    two = aligned_alloc(64, bytes / 64 * 64 + 64);
    want = aligned_alloc(64, bytes / 64 * 64 + 64);
    got = aligned_alloc(64, bytes / 64 * 64 + 64);
    for (int e = 0; e < ENGINES; e++) {
        if (!engine_is_here(e, "copies as nvcc compiled them"))
            continue;
        test_boxes(e);
        test_large_box(e);
        test_neutral(e);
        test_repeat(e);
        test_equal(e);
        test_arange(e);
        test_dropout(e);
    }
    return done();
}
