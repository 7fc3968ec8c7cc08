/* test_dtype.c - element types: tables and conversions
 *
 * Sizes and names are compared with a table; every narrow float is converted
 * and compared with double arithmetic.
 *
 * Without this test, a conversion of f16, bf16 or an 8-bit float could round
 * the wrong way, or treat NaN and infinity as numbers.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "base/narrow.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static float e4m3_widen(uint16_t bits)
{
    return dtn_f8e4m3_widen((uint8_t)bits);
}

static uint16_t e4m3_narrow(float value)
{
    return dtn_f8e4m3_narrow(value);
}

static float e5m2_widen(uint16_t bits)
{
    return dtn_f8e5m2_widen((uint8_t)bits);
}

static uint16_t e5m2_narrow(float value)
{
    return dtn_f8e5m2_narrow(value);
}

/* A binary float of `digits` fraction bits and exponents -bias+1 .. bias; one
 * that is `finite` has no infinity, uses the top exponent for numbers too, and
 * of it only the last code is a NaN.
 */
struct format {
    const char *name;
    int bits, digits, bias;
    bool finite;
    float (*widen)(uint16_t bits);
    uint16_t (*narrow)(float value);
};

static const struct format formats[] = {
    { "f16", 16, 10, 15, false, dtn_f16_widen, dtn_f16_narrow },
    { "bf16", 16, 7, 127, false, dtn_bf16_widen, dtn_bf16_narrow },
    { "f8e4m3", 8, 3, 7, true, e4m3_widen, e4m3_narrow },
    { "f8e5m2", 8, 2, 15, false, e5m2_widen, e5m2_narrow },
};

static unsigned sign_of(const struct format *f)
{
    return 1u << (f->bits - 1);
}

/* What the bits mean, by the definition. */
static double value_of(const struct format *f, unsigned bits)
{
    const int fraction = (int)(bits & ((1u << f->digits) - 1));
    const int exponent = (int)(bits >> f->digits) & (2 * f->bias + 1);
    const double sign = bits & sign_of(f) ? -1 : 1;

    if (f->finite && (bits & (sign_of(f) - 1)) == sign_of(f) - 1)
        return (double)NAN;
    if (!f->finite && exponent == 2 * f->bias + 1)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - f->bias - f->digits);
    return sign * ldexp(fraction + (1 << f->digits),
                        exponent - f->bias - f->digits);
}

/* The nearest value of the format, ties to even, all steps exact in double. */
static double nearest(const struct format *f, double value)
{
    const double magnitude = fabs(value);
    int exponent = 0;
    double ulp, units, below;

    if (isinf(value) && f->finite)
        return (double)NAN;
    if (magnitude == 0 || isinf(value))
        return value;
    frexp(magnitude, &exponent);
    exponent--;
    if (exponent < 1 - f->bias)
        exponent = 1 - f->bias;
    ulp = ldexp(1, exponent - f->digits);
    units = magnitude / ulp;
    below = floor(units);
    if (units - below > 0.5 || (units - below == 0.5 && fmod(below, 2) == 1))
        below++;
    if (f->finite && below * ulp > value_of(f, sign_of(f) - 2))
        return (double)NAN;
    if (!f->finite && below * ulp >= ldexp(1, f->bias + 1))
        return copysign((double)INFINITY, value);
    return copysign(below * ulp, value);
}

static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static void test_widen(const struct format *f)
{
    unsigned wrong = 0, lost = 0;

    for (unsigned bits = 0; bits < 1u << f->bits; bits++) {
        const float value = f->widen((uint16_t)bits);
        const unsigned quiet = isnan(value) ? 1u << (f->digits - 1) : 0;

        wrong += !same(value, value_of(f, bits));
        lost += f->narrow(value) != (bits | quiet);
    }
    ok(wrong == 0, "%s: all %u values widen exactly", f->name, 1u << f->bits);
    ok(lost == 0, "%s: all %u come back; a NaN is quiet then", f->name,
       1u << f->bits);
}

/* Between each two neighbours: the middle, and the floats next to it. */
static void test_ties(const struct format *f)
{
    unsigned wrong = 0;

    for (unsigned bits = 0; bits < sign_of(f) - 1; bits++) {
        const double a = value_of(f, bits), b = value_of(f, bits + 1);
        const float middle = (float)((a + b) / 2);
        const unsigned even = bits & 1 ? bits + 1 : bits;

        if (!isfinite(b) || (double)middle != (a + b) / 2)
            continue;
        wrong += f->narrow(middle) != even;
        wrong += f->narrow(nextafterf(middle, 0)) != bits;
        wrong += f->narrow(nextafterf(middle, INFINITY)) != bits + 1;
        wrong += f->narrow(-middle) != (even | sign_of(f));
    }
    ok(wrong == 0, "%s: every tie goes to even, its neighbours to theirs",
       f->name);
}

static void test_narrow(const struct format *f)
{
    unsigned wrong = 0, count = 0;

    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 4099, count++) {
        const uint32_t narrow = (uint32_t)bits;
        float value;

        memcpy(&value, &narrow, sizeof value);
        if (isnan(value))
            wrong += !isnan(f->widen(f->narrow(value)));
        else
            wrong += !same(f->widen(f->narrow(value)), nearest(f, value));
    }
    ok(wrong == 0, "%s: %u floats round as in double arithmetic", f->name,
       count);
}

static void test_limits(void)
{
    ok(dtn_f16_narrow(65519.996f) == 0x7bff && dtn_f16_narrow(65520) == 0x7c00,
       "f16: 65520 is the first to become infinity");
    ok(dtn_f16_narrow(0x1p-25f) == 0 && dtn_f16_narrow(0x1.000002p-25f) == 1,
       "f16: more than half of the smallest subnormal becomes it");
    ok(dtn_bf16_narrow(0x1.fep127f) == 0x7f7f &&
       dtn_bf16_narrow(0x1.ffp127f) == 0x7f80,
       "bf16: the middle above the largest becomes infinity");
    ok(e4m3_narrow(464) == 0x7e && e4m3_narrow(nextafterf(464, 465)) == 0x7f &&
       e4m3_narrow(-INFINITY) == 0xff && e4m3_narrow(479) == 0x7f,
       "f8e4m3: what is nearer to 480 than to 448 becomes a NaN");
    ok(e5m2_narrow(61439.996f) == 0x7b && e5m2_narrow(61440) == 0x7c &&
       e5m2_narrow(-INFINITY) == 0xfc,
       "f8e5m2: 61440 is the first to become infinity");
}

static void test_load_store(void)
{
    static const struct {
        enum dtensor_dtype dtype;
        double value, want;
    } cases[] = {
        { DTENSOR_F32, 0.1, 0.1f }, { DTENSOR_F64, 0.1, 0.1 },
        { DTENSOR_F16, 0.1, 0x1.998p-4 }, { DTENSOR_BF16, 0.1, 0x1.9ap-4 },
        { DTENSOR_I8, 1.9, 1 }, { DTENSOR_I8, -1.9, -1 },
        { DTENSOR_I8, 200, 127 }, { DTENSOR_I8, -200, -128 },
        { DTENSOR_U8, -1, 0 }, { DTENSOR_U8, 255.9, 255 },
        { DTENSOR_U8, 1e9, 255 }, { DTENSOR_I32, 1e10, 2147483647 },
        { DTENSOR_I32, -1e10, -2147483648.0 }, { DTENSOR_I64, 1e15, 1e15 },
        { DTENSOR_I64, 1e30, 0x1p63 }, { DTENSOR_I64, -1e30, -0x1p63 },
        { DTENSOR_I16, 40000, 32767 }, { DTENSOR_I16, -40000, -32768 },
        { DTENSOR_U16, 70000, 65535 }, { DTENSOR_U16, -1, 0 },
        { DTENSOR_U32, 1e10, 4294967295.0 }, { DTENSOR_U32, 3e9, 3e9 },
        { DTENSOR_U64, 0x1p63, 0x1p63 }, { DTENSOR_U64, -5, 0 },
        { DTENSOR_U64, 1e30, 0x1p64 }, { DTENSOR_BOOL, 0.5, 1 },
        { DTENSOR_BOOL, -0.0, 0 }, { DTENSOR_C64, 0.1, 0.1f },
        { DTENSOR_C128, 0.1, 0.1 }, { DTENSOR_F8E4M3, 0.1, 0.1015625 },
        { DTENSOR_F8E5M2, 0.1, 0.09375 },
    };
    int64_t limit;

    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        _Alignas(16) char array[48] = { 0 };

        dtn_store(cases[i].dtype, array, 1, cases[i].value);
        ok(dtn_load(cases[i].dtype, array, 1) == cases[i].want &&
           dtn_load(cases[i].dtype, array, 0) == 0 &&
           dtn_load(cases[i].dtype, array, 2) == 0, "%g stored as %s is %g",
           cases[i].value, dtensor_dtype_name(cases[i].dtype), cases[i].want);
    }
    for (int t = 0; t < DTENSOR_NDTYPES; t++) {
        const enum dtensor_dtype dtype = (enum dtensor_dtype)t;
        const bool is_bool = dtype == DTENSOR_BOOL;
        _Alignas(16) char array[16];

        dtn_store(dtype, array, 0, (double)NAN);
        ok(dtn_dtype_is_float(dtype) ? isnan(dtn_load(dtype, array, 0))
                                     : dtn_load(dtype, array, 0) == is_bool,
           "NaN stored as %s is %s", dtensor_dtype_name(dtype),
           dtn_dtype_is_float(dtype) ? "NaN" : is_bool ? "true" : "0");
    }
    dtn_store(DTENSOR_I64, &limit, 0, (double)INFINITY);
    ok(limit == INT64_MAX, "infinity stored as i64 is its maximum");
}

static void test_ints(void)
{
    int wrong = 0;

    for (int t = 0; t < DTENSOR_NDTYPES; t++) {
        const enum dtensor_dtype dtype = (enum dtensor_dtype)t;
        const int bits = 8 * (int)dtensor_dtype_size(dtype);
        uint64_t array[2] = { 0, 0 };

        if (dtn_dtype_is_float(dtype) || dtype == DTENSOR_BOOL)
            continue;
        for (int b = 0; b < bits; b++) {
            const bool sign = dtn_dtype_kind(dtype) == DTN_DTYPE_SIGNED &&
                              b == bits - 1;
            const uint64_t value = sign ? UINT64_MAX << b : UINT64_C(1) << b;

            dtn_store_int(dtype, array, 1, (int64_t)value);
            wrong += dtn_load_int(dtype, array, 1) != (int64_t)value;
            wrong += dtn_load_int(dtype, array, 0) != 0;
        }
    }
    ok(wrong == 0, "every bit of every integer type comes back exactly");
}

static void test_names(void)
{
    static const size_t sizes[] = { 4, 8, 2, 2, 1, 1, 4, 8, 2, 2, 4, 8, 1, 8,
                                    16, 1, 1 };
    struct dtensor_error err;
    enum dtensor_dtype dtype = DTENSOR_I8;
    enum dtensor_redop op = DTENSOR_MAX;

    for (int i = 0; i < DTENSOR_NDTYPES; i++) {
        const char *name = dtensor_dtype_name((enum dtensor_dtype)i);

        ok(dtensor_dtype_parse(name, &dtype, &err) == 0 && (int)dtype == i &&
           dtensor_dtype_size(dtype) == sizes[i], "dtype %s: %zu bytes", name,
           sizes[i]);
    }
    for (int i = 0; i < DTENSOR_NREDOPS; i++) {
        const char *name = dtensor_redop_name((enum dtensor_redop)i);

        ok(dtensor_redop_parse(name, &op, &err) == 0 && (int)op == i,
           "reduction %s", name);
    }
    dtype = DTENSOR_I8;
    ok(dtensor_dtype_parse("float", &dtype, &err) == DTENSOR_EINVAL &&
       dtype == DTENSOR_I8 && strstr(err.text, "\"float\""),
       "an unknown dtype is refused: %s", err.text);
    op = DTENSOR_MAX;
    ok(dtensor_redop_parse("mean", &op, &err) == DTENSOR_EINVAL &&
       op == DTENSOR_MAX && strstr(err.text, "\"mean\""),
       "an unknown reduction is refused: %s", err.text);
    ok(dtensor_dtype_parse(NULL, &dtype, &err) == DTENSOR_EINVAL &&
       dtype == DTENSOR_I8 && strstr(err.text, "NULL") &&
       dtensor_redop_parse(NULL, &op, &err) == DTENSOR_EINVAL &&
       op == DTENSOR_MAX && strstr(err.text, "NULL"),
       "and so is no name at all: %s", err.text);
    ok(dtensor_dtype_size(DTENSOR_NDTYPES) == 0 &&
       strcmp(dtensor_dtype_name((enum dtensor_dtype)-1), "?") == 0 &&
       strcmp(dtensor_redop_name((enum dtensor_redop)DTN_NREDOPS), "?") == 0,
       "values outside the enums have no size and the name \"?\"");
}

/* By type and reduction, in the order of the enums. */
static void test_redop_ok(void)
{
    /*                           sum avg prod min max band bor bxor */
    static const char *const rows[DTENSOR_NDTYPES] = {
        [DTENSOR_F32] = "yyyyynnn",    [DTENSOR_F64] = "yyyyynnn",
        [DTENSOR_F16] = "yyyyynnn",    [DTENSOR_BF16] = "yyyyynnn",
        [DTENSOR_F8E4M3] = "yyyyynnn", [DTENSOR_F8E5M2] = "yyyyynnn",
        [DTENSOR_I8] = "yyyyyyyy",     [DTENSOR_U8] = "yyyyyyyy",
        [DTENSOR_I16] = "yyyyyyyy",    [DTENSOR_U16] = "yyyyyyyy",
        [DTENSOR_I32] = "yyyyyyyy",    [DTENSOR_U32] = "yyyyyyyy",
        [DTENSOR_I64] = "yyyyyyyy",    [DTENSOR_U64] = "yyyyyyyy",
        [DTENSOR_BOOL] = "ynyyyyyy",   [DTENSOR_C64] = "yyynnnnn",
        [DTENSOR_C128] = "yyynnnnn",
    };

    for (int t = 0; t < DTENSOR_NDTYPES; t++) {
        char row[DTENSOR_NREDOPS + 1] = "";

        for (int o = 0; o < DTENSOR_NREDOPS; o++)
            row[o] = dtn_redop_ok((enum dtensor_redop)o, (enum dtensor_dtype)t)
                   ? 'y' : 'n';
        ok(strcmp(row, rows[t]) == 0, "the reductions of %s",
           dtensor_dtype_name((enum dtensor_dtype)t));
    }
    ok(!dtn_redop_ok(DTENSOR_NREDOPS, DTENSOR_F32) &&
       !dtn_redop_ok(DTENSOR_SUM, DTENSOR_NDTYPES) &&
       !dtn_redop_ok((enum dtensor_redop)-1, DTENSOR_I8),
       "none exist outside the enums");
}

int main(void)
{
    for (size_t i = 0; i < DTN_COUNT(formats); i++) {
        test_widen(&formats[i]);
        test_ties(&formats[i]);
        test_narrow(&formats[i]);
    }
    test_limits();
    test_load_store();
    test_ints();
    test_names();
    test_redop_ok();
    return done();
}
