/* test_cast.c - casts between all types, where and fill
 *
 * Arrays of random shapes, with gaps and in any order, are compared one element
 * at a time with what lib/base/dtype.h makes of a value.
 *
 * Without this test, a cast between two rare types could round wrongly, or an
 * operand with gaps be read where it has no elements.
 */
#include "math/pointwise.h"
#include "math/width.h"
#include "base/dtype.h"
#include "base/narrow.h"
#include "dtensor.h"
#include "tests/math/sample.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <complex.h>
#include <stdbool.h>
#include <string.h>

static uint64_t seed;

static void test_where(void)
{
    int wrong = 0;

    for (int i = 0; i < 200; i++) {
        const enum dtensor_dtype dtype = (enum dtensor_dtype)(i %
                                                              DTENSOR_NDTYPES);
        int64_t shape[3], index[3] = { 0 };
        struct dtn_array out, pick, yes, no;

        if (!dtn_width_force(i % 3))
            dtn_width_force(-1);
        sample_shape(&seed, 3, 9, shape);
        out = sample_new(&seed, dtype, 3, shape, i & 1);
        yes = sample_new(&seed, dtype, 3, shape, i & 2);
        no = sample_new(&seed, dtype, 0, shape, false);
        pick = sample_new(&seed, DTENSOR_BOOL, 2, shape + 1, i & 1);
        sample_fill(&seed, &yes, true);
        sample_fill(&seed, &no, true);
        sample_fill(&seed, &pick, false);
        dtn_where(&out, &pick, &yes, &no);
        bool more = dtn_array_count(&out) > 0;

        for (; more; more = sample_next(&out, index))
            wrong += memcmp(sample_at(&out, index),
                            *(uint8_t *)sample_at(&pick, index + 1)
                                ? sample_at(&yes, index) : no.data,
                            dtensor_dtype_size(dtype)) != 0;
        sample_free(&out);
        sample_free(&pick);
        sample_free(&yes);
        sample_free(&no);
    }
    dtn_width_force(-1);
    ok(wrong == 0, "where takes the bits of one operand or the other: %d wrong",
       wrong);
}

/* What base/dtype.h makes of a value, but from integers to integers and of
 * complex numbers.
 */
static bool cast_is_right(enum dtensor_dtype to, const void *got,
                          enum dtensor_dtype from, const void *src)
{
    const double x = dtn_load(from, src, 0);
    char want[16] = { 0 };

    if (!dtn_dtype_is_float(from) && !dtn_dtype_is_float(to))
        dtn_store_int(to, want, 0, to == DTENSOR_BOOL
                                       ? x != 0 : dtn_load_int(from, src, 0));
    else
        dtn_store(to, want, 0, dtn_dtype_is_narrow(to) || to == DTENSOR_F32
                                   ? (double)(float)x : x);
    return x != x && dtn_dtype_is_float(to)
               ? dtn_load(to, got, 0) != dtn_load(to, got, 0)
               : memcmp(want, got, dtensor_dtype_size(to)) == 0;
}

static int cast_wrong(enum dtensor_dtype to, enum dtensor_dtype from, bool gaps)
{
    const int64_t shape[] = { 5, 131 };
    struct dtn_array out = sample_new(&seed, to, 2, shape, gaps);
    struct dtn_array in = sample_new(&seed, from, 2, shape, gaps);
    int64_t index[2] = { 0 };
    int wrong = 0;

    sample_fill(&seed, &in, true);
    dtn_cast(&out, &in);
    if (dtn_dtype_kind(from) != DTN_DTYPE_COMPLEX || to == from)
        do
            wrong += to == from
                         ? memcmp(sample_at(&out, index), sample_at(&in, index),
                                  dtensor_dtype_size(to)) != 0
                         : !cast_is_right(to, sample_at(&out, index), from,
                                          sample_at(&in, index));
        while (sample_next(&out, index));
    sample_free(&out);
    sample_free(&in);
    if (wrong)
        note("%s from %s: %d wrong", dtensor_dtype_name(to),
             dtensor_dtype_name(from), wrong);
    return wrong;
}

/* Without gaps some have loops of their own, for each width. */
static void test_casts(void)
{
    int wrong = 0;

    for (int width = 0; width < 3 && dtn_width_force(width); width++)
        for (int to = 0; to < DTENSOR_NDTYPES; to++)
            for (int from = 0; from < DTENSOR_NDTYPES; from++)
                for (int gaps = 0; gaps < 2; gaps++)
                    wrong += cast_wrong((enum dtensor_dtype)to,
                                        (enum dtensor_dtype)from, gaps);
    dtn_width_force(-1);
    ok(wrong == 0, "casts between all types are right at every width: %d wrong",
       wrong);
}

static void test_casts_of_complex(void)
{
    double complex in[3] = { 2.5 - 3 * I, 0, 4 * I };
    float complex half[3];
    double real[3];
    uint8_t truth[3];
    int8_t whole[3];
    const int64_t shape[] = { 3 };
    const struct dtn_array from = dtn_array_packed(in, DTENSOR_C128, 1, shape);
    struct dtn_array to = dtn_array_packed(real, DTENSOR_F64, 1, shape);

    dtn_cast(&to, &from);
    to = dtn_array_packed(truth, DTENSOR_BOOL, 1, shape);
    dtn_cast(&to, &from);
    to = dtn_array_packed(whole, DTENSOR_I8, 1, shape);
    dtn_cast(&to, &from);
    to = dtn_array_packed(half, DTENSOR_C64, 1, shape);
    dtn_cast(&to, &from);
    ok(real[0] == 2.5 && real[2] == 0 && whole[0] == 2 && truth[0] == 1 &&
       truth[1] == 0 && truth[2] == 1 && half[2] == 4 * I,
       "a complex number becomes its real part, and true if it is not 0");
}

static void test_fill(void)
{
    int wrong = 0;

    for (int dtype = 0; dtype < DTENSOR_NDTYPES; dtype++) {
        const int64_t shape[] = { 7, 90 };
        struct dtn_array a = sample_new(&seed, (enum dtensor_dtype)dtype, 2,
                                        shape, true);
        int64_t index[2] = { 0 };

        dtn_array_fill(&a, 1);
        do
            wrong += dtn_load(a.dtype, sample_at(&a, index), 0) != 1;
        while (sample_next(&a, index));
        sample_free(&a);
    }
    ok(wrong == 0, "a filled array has the value everywhere: %d wrong", wrong);
}

enum { HALVES = 1 << 16 };        /* numbers of 16 bits                       */

static uint32_t widened(enum dtensor_dtype dtype, uint16_t half)
{
    return dtn_narrow_bits(dtype == DTENSOR_F16 ? dtn_f16_widen(half)
                                                : dtn_bf16_widen(half));
}

static uint16_t narrowed(enum dtensor_dtype dtype, uint32_t bits)
{
    const float x = dtn_narrow_float(bits);

    return dtype == DTENSOR_F16 ? dtn_f16_narrow(x) : dtn_bf16_narrow(x);
}

/* Of all numbers of f16 or bf16 the bits of base/narrow.h; and back, also of
 * numbers beside them and between two.
 */
static int halves_wrong(enum dtensor_dtype dtype)
{
    static uint16_t half[HALVES];
    static uint32_t bits[HALVES];
    static const int beside[] = { 0, -1, 1, 0x0fff, 0x1000, 0x1001, 0x7fff,
                                  0x8000, 0x8001 };
    const int64_t shape[] = { HALVES };
    const struct dtn_array narrow = dtn_array_packed(half, dtype, 1, shape);
    const struct dtn_array wide = dtn_array_packed(bits, DTENSOR_F32, 1, shape);
    int wrong = 0;

    for (int k = 0; k < (int)(sizeof beside / sizeof *beside); k++) {
        for (int i = 0; i < HALVES; i++)
            half[i] = (uint16_t)i;
        dtn_cast(&wide, &narrow);
        for (int i = 0; i < HALVES; i++) {
            wrong += bits[i] != widened(dtype, (uint16_t)i);
            bits[i] += (uint32_t)beside[k];
        }
        dtn_cast(&narrow, &wide);
        for (int i = 0; i < HALVES; i++)
            wrong += half[i] != narrowed(dtype, bits[i]);
    }
    return wrong;
}

static void test_halves(enum dtensor_dtype dtype)
{
    for (int width = 0; width < 3 && dtn_width_force(width); width++) {
        const int wrong = halves_wrong(dtype);

        ok(wrong == 0, "width %d: %s becomes f32 and f32 %s by the bits of one "
           "at a time: %d wrong", width, dtensor_dtype_name(dtype),
           dtensor_dtype_name(dtype), wrong);
    }
    dtn_width_force(-1);
}

int main(void)
{
    seed = rand_seed(2);
    test_where();
    test_casts();
    test_casts_of_complex();
    test_fill();
    test_halves(DTENSOR_F16);
    test_halves(DTENSOR_BF16);
    return done();
}
