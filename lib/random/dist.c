/* dist.c - distributions: their parameters, and values of a type
 *
 * Values are computed as f32, as f64 or, if they are integers, in 64 bits.
 * Then they are rounded to the type of the elements: a bf16 is a rounded f32.
 * Parameters are rounded to the type first.  So uniform bf16 values between 0
 * and 0.3 lie in [0, 0.30078125), because the bf16 nearest to 0.3 is
 * 0.30078125.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

#include "random/dist.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/narrow.h"
#include "random/quantile.h"
#include "random/values.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>

/* ----------------------------------------------------------- parameters --- */

static double dist_round(enum dtensor_dtype dtype, double value)
{
    double element = 0;

    dtn_store(dtype, &element, 0, value);
    return dtn_load(dtype, &element, 0);
}

static int dist_needs_float(const char *what, enum dtensor_dtype dtype,
                            struct dtensor_error *err)
{
    if (dtn_dtype_kind(dtype) == DTN_DTYPE_FLOAT)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "%s: %s is not a real floating type "
                    "(f32, f64, f16, bf16, f8e4m3 or f8e5m2)", what,
                    dtensor_dtype_name(dtype));
}

static struct dtn_dist dist_of(enum dtn_dist_kind kind,
                               enum dtensor_dtype dtype)
{
    return (struct dtn_dist){
        .kind = kind, .dtype = dtype, .words = dtype == DTENSOR_F64 ? 2 : 1
    };
}

int dtn_dist_uniform(struct dtn_dist *dist, enum dtensor_dtype dtype,
                     double from, double to, struct dtensor_error *err)
{
    struct dtn_dist made = dist_of(DTN_UNIFORM, dtype);
    int rc = dist_needs_float("uniform", dtype, err);

    if (rc != 0)
        return rc;
    if (!(from < to))
        return dtn_fail(err, DTENSOR_EINVAL, "uniform: from %g to %g is empty "
                        "(from must be less than to)", from, to);
    made.add = made.from = dist_round(dtype, from);
    made.to = dist_round(dtype, to);
    made.mul = made.to - made.from;
    if (dtype == DTENSOR_F32)
        made.mul = (double)(float)made.mul;
    if (!(made.from < made.to) || !isfinite(made.mul) || !isfinite(made.add))
        return dtn_fail(err, DTENSOR_EINVAL, "uniform: from %g to %g cannot be "
                        "represented in %s", from, to,
                        dtensor_dtype_name(dtype));
    *dist = made;
    return 0;
}

int dtn_dist_normal(struct dtn_dist *dist, enum dtn_dist_kind kind,
                    enum dtensor_dtype dtype, double mean, double std,
                    struct dtensor_error *err)
{
    const char *what = kind == DTN_NORMAL ? "normal" : "log_normal";
    int rc = dist_needs_float(what, dtype, err);

    if (rc != 0)
        return rc;
    if (!isfinite(mean) || !isfinite(std) || std < 0)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: mean %g and std %g; both "
                        "must be finite and std not negative", what, mean,
                        std);
    *dist = dist_of(kind, dtype);
    dist->add = mean;
    dist->mul = std;
    return 0;
}

int dtn_dist_exponential(struct dtn_dist *dist, enum dtensor_dtype dtype,
                         double lambda, struct dtensor_error *err)
{
    int rc = dist_needs_float("exponential", dtype, err);

    if (rc != 0)
        return rc;
    if (!(lambda > 0) || !isfinite(1 / lambda))
        return dtn_fail(err, DTENSOR_EINVAL, "exponential: rate %g; expected "
                        "more than 0", lambda);
    *dist = dist_of(DTN_EXPONENTIAL, dtype);
    dist->mul = -1 / lambda;
    return 0;
}

static int dist_probability(const char *what, double p,
                            struct dtensor_error *err)
{
    if (p >= 0 && p <= 1)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "%s: probability %g; expected 0 to 1",
                    what, p);
}

static int dist_refuses_complex(const char *what, enum dtensor_dtype dtype,
                                struct dtensor_error *err)
{
    if (dtn_dtype_kind(dtype) != DTN_DTYPE_COMPLEX)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "%s: %s is complex (fill the real and "
                    "the imaginary part separately)", what,
                    dtensor_dtype_name(dtype));
}

int dtn_dist_bernoulli(struct dtn_dist *dist, enum dtensor_dtype dtype,
                       double p, struct dtensor_error *err)
{
    int rc = dist_refuses_complex("bernoulli", dtype, err);

    if (rc == 0)
        rc = dist_probability("bernoulli", p, err);
    if (rc != 0)
        return rc;
    *dist = dist_of(DTN_BERNOULLI, dtype);
    dist->mul = p;
    return 0;
}

int dtn_dist_keep(struct dtn_dist *dist, enum dtensor_dtype dtype, double p,
                  struct dtensor_error *err)
{
    const int vector = 16 / (int)dtensor_dtype_size(dtype);
    int rc = dist_needs_float("dropout", dtype, err);

    if (rc == 0)
        rc = dist_probability("dropout", p, err);
    if (rc != 0)
        return rc;
    *dist = dist_of(DTN_BERNOULLI, DTENSOR_BOOL);
    dist->mul = 1 - p;
    dist->vector = vector > 8 ? 8 : vector;
    return 0;
}

/* The part of the distribution between the bounds.  If it lies on the right, it
 * is mirrored, because numbers near 0 are finer than those near 1.
 */
static void dist_cut(struct dtn_dist *dist)
{
    double low = (dist->from - dist->add) / dist->mul;
    double high = (dist->to - dist->add) / dist->mul;

    dist->mirrored = low > 0;
    dist->p_low = dtn_normal_cdf(dist->mirrored ? -high : low);
    dist->p_range = dtn_normal_cdf(dist->mirrored ? -low : high) - dist->p_low;
}

int dtn_dist_trunc_normal(struct dtn_dist *dist, enum dtensor_dtype dtype,
                          const double param[4], struct dtensor_error *err)
{
    const double mean = param[0], std = param[1], a = param[2], b = param[3];
    struct dtn_dist made = dist_of(DTN_TRUNC_NORMAL, dtype);
    int rc = dist_needs_float("trunc_normal", dtype, err);

    if (rc != 0)
        return rc;
    if (!isfinite(mean) || !isfinite(std) || !(std > 0))
        return dtn_fail(err, DTENSOR_EINVAL, "trunc_normal: mean %g and std "
                        "%g; both must be finite and std positive", mean, std);
    if (!(a < b))
        return dtn_fail(err, DTENSOR_EINVAL, "trunc_normal: from %g to %g is "
                        "empty (from must be less than to)", a, b);
    made.add = mean;
    made.mul = std;
    made.from = a;
    made.to = b;
    dist_cut(&made);
    if (!(made.p_range > 1e-290))
        return dtn_fail(err, DTENSOR_EINVAL, "trunc_normal: from %g to %g is "
                        "too far from mean %g for std %g: the probability of "
                        "this interval is 0", a, b, mean, std);
    *dist = made;
    return 0;
}

/* The integers of a type, from *lowp to *highp.  For a float type, those up to
 * which every integer is exact.
 */
static void dist_integers_of(enum dtensor_dtype dtype, int64_t *lowp,
                             int64_t *highp)
{
    static const int digits[DTENSOR_NDTYPES] = {
        [DTENSOR_F32] = 24, [DTENSOR_F64] = 53, [DTENSOR_F16] = 11,
        [DTENSOR_BF16] = 8, [DTENSOR_F8E4M3] = 4, [DTENSOR_F8E5M2] = 3
    };
    const int bits = 8 * (int)dtensor_dtype_size(dtype);

    switch (dtn_dtype_kind(dtype)) {
    case DTN_DTYPE_SIGNED:
        *highp = INT64_MAX >> (64 - bits);
        *lowp = -*highp - 1;
        break;
    case DTN_DTYPE_UNSIGNED:
        *highp = bits == 64 ? INT64_MAX : INT64_MAX >> (63 - bits);
        *lowp = 0;
        break;
    case DTN_DTYPE_BOOL:
        *highp = 1;
        *lowp = 0;
        break;
    default:
        *highp = INT64_C(1) << digits[dtype];
        *lowp = -*highp;
    }
}

int dtn_dist_integers(struct dtn_dist *dist, enum dtensor_dtype dtype,
                      int64_t low, int64_t high, struct dtensor_error *err)
{
    int64_t least, most;
    int rc = dist_refuses_complex("integers", dtype, err);

    if (rc != 0)
        return rc;
    dist_integers_of(dtype, &least, &most);
    if (low >= high)
        return dtn_fail(err, DTENSOR_EINVAL, "integers: from %lld to %lld is "
                        "empty (from must be less than to)", (long long)low,
                        (long long)high);
    if (low < least || high - 1 > most)
        return dtn_fail(err, DTENSOR_EINVAL, "integers: %lld to %lld, but %s "
                        "holds %lld to %lld", (long long)low,
                        (long long)(high - 1), dtensor_dtype_name(dtype),
                        (long long)least, (long long)most);
    *dist = dist_of(DTN_INTEGERS, dtype);
    dist->words = 2;
    dist->low = low;
    dist->range = (uint64_t)high - (uint64_t)low;
    return 0;
}

int dtn_dist_bits(struct dtn_dist *dist, enum dtensor_dtype dtype,
                  struct dtensor_error *err)
{
    const enum dtn_dtype_kind kind = dtn_dtype_kind(dtype);

    if (kind == DTN_DTYPE_FLOAT || kind == DTN_DTYPE_COMPLEX)
        return dtn_fail(err, DTENSOR_EINVAL, "bits: %s is not an integer type",
                        dtensor_dtype_name(dtype));
    *dist = dist_of(DTN_INTEGERS, dtype);
    dist->words = dtensor_dtype_size(dtype) == 8 ? 2 : 1;
    return 0;
}

/* --------------------------------------------------------------- values --- */

static void store_floats(enum dtensor_dtype dtype, const float *x, size_t n,
                         void *out)
{
    switch (dtype) {
    case DTENSOR_F16:
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)out)[i] = dtn_f16_narrow(x[i]);
        break;
    case DTENSOR_BF16:
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)out)[i] = dtn_bf16_narrow(x[i]);
        break;
    case DTENSOR_BOOL:
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)out)[i] = x[i] != 0;
        break;
    default:
        for (size_t i = 0; i < n; i++)
            dtn_store(dtype, out, i, (double)x[i]);
    }
}

/* Rounding to a narrow type may give the excluded end of the interval. */
static void store_uniform(const struct dtn_dist *dist, float *x, size_t n,
                          void *out)
{
    const float to = (float)dist->to, from = (float)dist->from;

    switch (dist->dtype) {
    case DTENSOR_F16:
        for (size_t i = 0; i < n; i++)
            x[i] = dtn_f16_widen(dtn_f16_narrow(x[i])) >= to ? from : x[i];
        break;
    case DTENSOR_BF16:
        for (size_t i = 0; i < n; i++)
            x[i] = dtn_bf16_widen(dtn_bf16_narrow(x[i])) >= to ? from : x[i];
        break;
    default:
        for (size_t i = 0; i < n; i++)
            x[i] = (float)dist_round(dist->dtype, (double)x[i]) >= to ? from
                                                                      : x[i];
    }
    store_floats(dist->dtype, x, n, out);
}

static void blocks_float(const struct dtn_dist *dist, int width,
                         const uint32_t *words, size_t n, void *out)
{
    float x[4 * DTN_CHUNK_BLOCKS];

    if (dist->dtype == DTENSOR_F32) {
        dtn_values_f32(width, dist, words, n, out);
        return;
    }
    dtn_values_f32(width, dist, words, n, x);
    if (dist->kind == DTN_UNIFORM)
        store_uniform(dist, x, n, out);
    else
        store_floats(dist->dtype, x, n, out);
}

static void blocks_integers(const struct dtn_dist *dist, const uint32_t *words,
                            size_t n, void *out)
{
    const bool floats = dtn_dtype_kind(dist->dtype) == DTN_DTYPE_FLOAT;
    int64_t x[4 * DTN_CHUNK_BLOCKS];

    dtn_values_int(dist, words, n, x);
    for (size_t i = 0; i < n; i++) {
        if (floats)
            dtn_store(dist->dtype, out, i, (double)x[i]);
        else if (dist->dtype == DTENSOR_BOOL)
            ((uint8_t *)out)[i] = x[i] & 1;
        else
            switch (dtensor_dtype_size(dist->dtype)) {
            case 1: ((uint8_t *)out)[i] = (uint8_t)x[i]; break;
            case 2: ((uint16_t *)out)[i] = (uint16_t)x[i]; break;
            case 4: ((uint32_t *)out)[i] = (uint32_t)x[i]; break;
            default: ((int64_t *)out)[i] = x[i];
            }
    }
}

void dtn_dist_blocks(const struct dtn_dist *dist, int width,
                     const uint32_t *words, size_t nblocks, void *out)
{
    const size_t n = nblocks * 4 / (size_t)dist->words;

    if (dist->kind == DTN_INTEGERS)
        blocks_integers(dist, words, n, out);
    else if (dist->words == 2)
        dtn_values_f64(width, dist, words, n, out);
    else
        blocks_float(dist, width, words, n, out);
}
