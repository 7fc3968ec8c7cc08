/* test_values.c - from random words to values
 *
 * Published values, the same values at all vector widths, and the accuracy and
 * the moments of each distribution.
 *
 * Without this test, a normal or exponential variate could be biased, or have
 * other bits on another CPU.
 */
#include "base/compiler.h"
#include "base/dtype.h"
#include "random/dist.h"
#include "base/elementary.h"
#include "random/fill.h"
#include "random/philox.h"
#include "random/quantile.h"
#include "random/values.h"
#include "dtensor.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { N = 4 * DTN_CHUNK_BLOCKS };
static uint64_t state;

/* ------------------------------------------------------------ published --- */

/* Values that users of PyTorch have published of CUDA devices, by the device's
 * multiprocessors and threads of each: in its issues of these numbers, or in
 * many places (0).  Four digits, so to 0.5e-4 of the unit they are printed in.
 */
static const struct {
    int issue, sms, threads;
    const char *dist;                      /* of f32; mean, std if normal     */
    double mean, std;
    uint64_t seed;
    int64_t offset, numel, first;          /* of numel, those from first on   */
    double want[8];                        /* up to the first 0               */
} published[] = {
    { 0, 132, 2048, "rand", 0, 1, 0, 0, 8, 0,
      { .3990, .5167, .0249, .9401, .9459, .7967, .4150, .8203 } },
    { 0, 132, 2048, "rand", 0, 1, 0, 4, 4, 0,
      { .9722, .7910, .4690, .3300 } },
    { 0, 132, 2048, "randn", 0, 1, 0, 0, 8, 0,
      { -.9247, -.4253, -2.6438, .1452, -.1209, -.5797, -.6229, -.3284 } },
    { 0, 132, 2048, "randn", 0, 1, 42, 0, 8, 0,
      { .1940, 2.1614, -.1721, .8491, -1.9244, .6530, -.6494, -.8175 } },
    { 79496, 132, 2048, "randn", 0, 1, 10, 0, 3, 0,
      { -.1029, 1.6810, -.2708 } },
    /* 1 x 64 x 2048 on 43008 threads: past them, so other lanes and blocks */
    { 158398, 28, 1536, "randn", 0, 1, 42, 0, 131072, 0,
      { .1940, 2.1614, -.1721 } },
    { 158398, 28, 1536, "randn", 0, 1, 42, 0, 131072, 2045,
      { 1.4540, -2.7733, -.8932, -.4574, .8063, .1580 } },
    { 158398, 28, 1536, "randn", 0, 1, 42, 0, 131072, 4093,
      { .1124, .2769, -1.2535, 1.1346, -.6329, -.9147 } },
    { 158398, 28, 1536, "randn", 0, 1, 42, 0, 131072, 126973,
      { -.7282, .5087, .1318, .7881, .8339, -1.1424 } },
    { 158398, 28, 1536, "randn", 0, 1, 42, 0, 131072, 129021,
      { -.6297, -1.1112, -.4091, -1.2356, -.4083, -.4695 } },
    { 158398, 28, 1536, "randn", 0, 1, 42, 0, 131072, 131069,
      { -.4841, 1.2850, -.0282 } },
    /* 49 * 12 * 112 * 144 on an H100 and an A100: 10 and 11 rounds of them */
    { 143086, 132, 2048, "randn", 0, 1, 1, 0, 9483264, 0,
      { -.2963, 2.6764, -.1408 } },
    { 143086, 132, 2048, "randn", 0, 1, 1, 0, 9483264, 9483261,
      { -.6970, -.7780, .3267 } },
    { 143086, 108, 2048, "randn", 0, 1, 1, 0, 9483264, 0,
      { -.2963, 2.6764, -.1408 } },
    { 143086, 108, 2048, "randn", 0, 1, 1, 0, 9483264, 9483261,
      { .1549, -.6797, -.1656 } },
    /* 1000 x 100 normals of mean 5 and variance 5, on an RTX A4000 */
    { 97097, 48, 1536, "randn", 5, 2.2360679774997896, 14, 0, 100000, 0,
      { 2.8731, 5.2727, 2.9889 } },
    { 97097, 48, 1536, "randn", 5, 2.2360679774997896, 14, 0, 100000, 97,
      { 1.6853, 9.6331, 6.6319, 3.9968, 3.8097, 5.7328 } },
    { 97097, 48, 1536, "randn", 5, 2.2360679774997896, 14, 0, 100000, 197,
      { 4.4029, 3.9804, 7.4698 } },
    { 97097, 48, 1536, "randn", 5, 2.2360679774997896, 14, 0, 100000, 99700,
      { 8.6297, 2.3137, 6.2596 } },
    { 97097, 48, 1536, "randn", 5, 2.2360679774997896, 14, 0, 100000, 99900,
      { 2.7337, 2.2106, 7.7815 } },
    { 97097, 48, 1536, "randn", 5, 2.2360679774997896, 14, 0, 100000, 99997,
      { 8.2207, 6.5395, 4.2604 } },
};

static void all_published(void)
{
    for (size_t k = 0; k < DTN_COUNT(published); k++) {
        const struct dtensor_random_rule rule = {
            .fill = DTENSOR_FILL_CUDA, .sms = published[k].sms,
            .threads_per_sm = published[k].threads
        };
        const struct dtn_random_stream stream =
            dtn_random_stream_of(&rule, published[k].seed, published[k].offset,
                                 published[k].numel);
        struct dtn_dist dist;
        int n = 0, bad = 0;
        float got[8];

        while (n < 8 && published[k].want[n] != 0)
            n++;
        if (published[k].dist[4] == 'n')
            dtn_dist_normal(&dist, DTN_NORMAL, DTENSOR_F32, published[k].mean,
                            published[k].std, NULL);
        else
            dtn_dist_uniform(&dist, DTENSOR_F32, 0, 1, NULL);
        dtn_fill_adapt(&rule, &dist);
        dtn_fill(&stream, &dist, published[k].first, n, got);
        for (int i = 0; i < n; i++)
            bad += fabs((double)got[i] - published[k].want[i]) > 0.5001e-4;
        ok(bad == 0, "%s, seed %" PRIu64 ", offset %d, %d x %d threads: "
           "elements %d.. of %d are as published (issue %d): %.4f %.4f ...",
           published[k].dist, published[k].seed, (int)published[k].offset,
           published[k].sms, published[k].threads, (int)published[k].first,
           (int)published[k].numel, published[k].issue, (double)got[0],
           (double)got[1]);
        if (published[k].numel <= 8)
            ok(dtn_fill_need(&rule, &dist, published[k].numel) == 4,
               "and the offset grows by 4");
    }
}

/* -------------------------------------------------------- distributions --- */

#define DISTS 14

/* One of several of each distribution; false when there is none of that type.
 */
static bool make_dist(int i, enum dtensor_dtype dtype, struct dtn_dist *dist)
{
    const double cut[][4] = { { 0, 1, -2, 2 }, { 1, 2, 3, INFINITY },
                              { 0, 1, -9, -6 } };

    switch (i) {
    case 0: return dtn_dist_uniform(dist, dtype, 0, 1, NULL) == 0;
    case 1: return dtn_dist_uniform(dist, dtype, -3.25, 0.3, NULL) == 0;
    case 2: return dtn_dist_normal(dist, DTN_NORMAL, dtype, 0, 1, NULL) == 0;
    case 3: return dtn_dist_normal(dist, DTN_NORMAL, dtype, 2, 0.1, NULL) == 0;
    case 4: return dtn_dist_normal(dist, DTN_LOG_NORMAL, dtype, 0, 1,
                                   NULL) == 0;
    case 5: return dtn_dist_exponential(dist, dtype, 1.5, NULL) == 0;
    case 6: return dtn_dist_bernoulli(dist, dtype, 0.25, NULL) == 0;
    case 7: return dtn_dist_trunc_normal(dist, dtype, cut[0], NULL) == 0;
    case 8: return dtn_dist_trunc_normal(dist, dtype, cut[1], NULL) == 0;
    case 9: return dtn_dist_trunc_normal(dist, dtype, cut[2], NULL) == 0;
    case 10: return dtn_dist_integers(dist, dtype, 0, 2, NULL) == 0;
    case 11: return dtn_dist_integers(dist, dtype, -5, 8, NULL) == 0;
    case 12: return dtn_dist_integers(dist, dtype, INT64_MIN, INT64_MAX,
                                      NULL) == 0;
    default: return dtn_dist_bits(dist, dtype, NULL) == 0;
    }
}

/* What a width makes is what the narrowest does, bit for bit. */
static void widths_alike(void)
{
    static uint32_t words[N];
    static unsigned char want[8 * N], got[8 * N];
    struct dtn_dist dist;
    int made = 0, bad = 0;

    for (int round = 0; round < 12; round++) {
        rand_bytes(&state, words, sizeof words);
        for (int i = 0; i < 64; i++)
            words[rand_below(&state, N)] = rand_below(&state, 2) ?
                (uint32_t)rand_below(&state, 3) :
                UINT32_MAX - (uint32_t)rand_below(&state, 300);
        for (int i = 0; i < DISTS; i++)
            for (int d = 0; d < DTENSOR_NDTYPES; d++) {
                if (!make_dist(i, (enum dtensor_dtype)d, &dist))
                    continue;
                made++;
                memset(want, 0, sizeof want);
                dtn_dist_blocks(&dist, 0, words, DTN_CHUNK_BLOCKS, want);
                for (int w = 1; w < dtn_random_widths(); w++) {
                    memset(got, 0, sizeof got);
                    dtn_dist_blocks(&dist, w, words, DTN_CHUNK_BLOCKS, got);
                    if (memcmp(want, got, sizeof want) != 0 && bad++ == 0)
                        note("distribution %d of %s, width %s", i,
                             dtensor_dtype_name((enum dtensor_dtype)d),
                             dtn_random_width_name(w));
                }
            }
    }
    ok(bad == 0 && made > 1000, "%d widths make the same bits of %d fills",
       dtn_random_widths(), made);
}

/* The bits of all of them, as a sum that was written down: the same on every
 * CPU, whatever its vectors are.  FNV-1a.
 */
static void everywhere_alike(uint64_t want)
{
    static uint32_t words[N];
    static unsigned char out[8 * N];
    uint64_t sum = UINT64_C(0xcbf29ce484222325), fixed = 5;
    struct dtn_dist dist;

    for (int i = 0; i < N; i++)
        words[i] = (uint32_t)rand_next(&fixed);
    for (int i = 0; i < DISTS; i++)
        for (int d = 0; d < DTENSOR_NDTYPES; d++) {
            const enum dtensor_dtype dtype = (enum dtensor_dtype)d;

            if (!make_dist(i, dtype, &dist))
                continue;
            dtn_dist_blocks(&dist, dtn_random_widths() - 1, words,
                            DTN_CHUNK_BLOCKS, out);
            for (size_t k = 0; k < N / (size_t)dist.words *
                                   dtensor_dtype_size(dtype); k++)
                sum = (sum ^ out[k]) * UINT64_C(0x100000001b3);
        }
    ok(sum == want, "the bits of all distributions are those of every other "
       "CPU: %016" PRIx64, sum);
}

/* --------------------------------------------------------------- ranges --- */

/* Every value lies where it may, extremes of the words included. */
static void inside(void)
{
    static uint32_t words[N];
    static double x[N];
    static unsigned char raw[8 * N];
    struct dtn_dist dist;
    int bad = 0;

    rand_bytes(&state, words, sizeof words);
    for (int i = 0; i < N; i++)
        if (i % 4 == 0)
            words[i] = i % 8 ? 0 : UINT32_MAX;
    for (int i = 0; i < DISTS - 1; i++)
        for (int d = 0; d < DTENSOR_NDTYPES; d++) {
            const enum dtensor_dtype dtype = (enum dtensor_dtype)d;
            double low = -INFINITY, high = INFINITY;
            int n;

            if (!make_dist(i, dtype, &dist))
                continue;
            n = N / dist.words;
            dtn_dist_blocks(&dist, 0, words, DTN_CHUNK_BLOCKS, raw);
            if (i <= 1 || (i >= 7 && i <= 9))
                low = dist.from, high = dist.to;
            if (i == 4 || i == 5)
                low = 0;
            for (int k = 0; k < n; k++) {
                x[k] = dtn_load(dtype, raw, (size_t)k);
                if (dtype == DTENSOR_F64 || dtype == DTENSOR_F32)
                    bad += !(x[k] >= low && x[k] <= high) || !isfinite(x[k]);
                bad += i <= 1 && !(x[k] >= low && x[k] < high);
                bad += i == 11 && !(x[k] >= -5 && x[k] < 8);
                bad += i == 6 && x[k] != 0 && x[k] != 1;
            }
        }
    ok(bad == 0, "values keep to their bounds, and the upper one is not among "
       "them");
}

/* ------------------------------------------------------------- accuracy --- */

static double ulps_f32(float got, long double want)
{
    float near = fabsf((float)want);
    int exponent;

    frexpf(near > 0x1p-126f ? near : 0x1p-126f, &exponent);
    return fabs((double)((long double)got - want)) / ldexp(1, exponent - 24);
}

static double ulps_f64(double got, long double want)
{
    int exponent;

    frexp(fabs((double)want), &exponent);
    return (double)(fabsl((long double)got - want) /
                    ldexpl(1, exponent - 53));
}

static double worst_normal_f32(int rounds)
{
    static uint32_t words[N];
    static float got[N];
    struct dtn_dist dist;
    double worst = 0, now;

    dtn_dist_normal(&dist, DTN_NORMAL, DTENSOR_F32, 0, 1, NULL);
    for (int round = 0; round < rounds; round++) {
        rand_bytes(&state, words, sizeof words);
        dtn_values_f32(dtn_random_widths() - 1, &dist, words, N, got);
        for (int i = 0; i < N; i += 2) {
            const float u = (float)words[i] * 0x1p-32f + 0x1p-33f;
            const float v = fmaf((float)words[i + 1], 1.4629180793e-9f,
                                 7.314590396e-10f);
            const long double s = sqrtl(-2 * logl(u));

            if (u == 1)
                continue;
            now = fmax(ulps_f32(got[i], s * sinl(v)),
                       ulps_f32(got[i + 1], s * cosl(v)));
            worst = fmax(worst, now);
        }
    }
    return worst;
}

static double worst_normal_f64(int rounds)
{
    const long double pi = 3.14159265358979323846264338327950288L;
    static uint32_t words[N];
    static double got[N / 2];
    struct dtn_dist dist;
    double worst = 0, now;

    dtn_dist_normal(&dist, DTN_NORMAL, DTENSOR_F64, 0, 1, NULL);
    for (int round = 0; round < rounds; round++) {
        rand_bytes(&state, words, sizeof words);
        dtn_values_f64(dtn_random_widths() - 1, &dist, words, N / 2, got);
        for (int i = 0; i < N; i += 4) {
            const double zu = (double)(words[i] ^ (uint64_t)words[i + 1] << 21);
            const double zv = (double)(words[i + 2] ^
                                       (uint64_t)words[i + 3] << 21);
            const long double s = sqrtl(-2 * logl(zu * 0x1p-53 + 0x1p-54));
            const double x = zv * 0x1p-52 + 0x1p-53, q = rint(2 * x);
            const long double r = pi * (x - q / 2);
            const long double pair[] = { sinl(r), cosl(r), -sinl(r),
                                         -cosl(r) };

            now = fmax(ulps_f64(got[i / 2], s * pair[(int)q % 4]),
                       ulps_f64(got[i / 2 + 1], s * pair[((int)q + 1) % 4]));
            worst = fmax(worst, now);
        }
    }
    return worst;
}

static double worst_of(double (*one)(double x))
{
    const int rounds = rounds_of(300000);
    double worst = 0;

    for (int i = 0; i < rounds; i++)
        worst = fmax(worst, one((double)(rand_next(&state) >> 11) * 0x1p-53));
    return worst;
}

static double error_log_f32(double x)
{
    const float u = (float)ldexp(x + 0x1p-53, -(int)(x * 64));

    return ulps_f32(log_of_f32(u).high, logl(u));
}

static double error_log_f64(double x)
{
    const double u = ldexp(x + 0x1p-53, -(int)(x * 900));

    return ulps_f64(log_of_f64(u), logl(u));
}

static double error_exp_f64(double x)
{
    return ulps_f64(exp_of_f64(x * 1400 - 700), expl(x * 1400 - 700));
}

/* The quantile of a probability is where the distribution function is that. */
static double error_quantile(double x)
{
    const double p = ldexp(x + 0x1p-53, -1 - (int)(x * 80));
    const double z = dtn_normal_quantile(p);
    const long double slope = expl(-0.5L * z * z) / sqrtl(2 * acosl(-1));

    return (double)fabsl((0.5L * erfcl(-(long double)z / sqrtl(2)) - p) /
                         slope);
}

static double error_cdf(double x)
{
    const double z = x * 20 - 14;
    const long double want = 0.5L * erfcl(-(long double)z / sqrtl(2));

    return (double)(fabsl(dtn_normal_cdf(z) - want) / want);
}

static void accuracy(void)
{
    const struct { const char *what; double worst, bound; } errors[] = {
        { "normal f32, in ulp of the exact formula",
          worst_normal_f32(rounds_of(1500)),
          2 },
        { "normal f64, in ulp", worst_normal_f64(rounds_of(300)), 4 },
        { "log f32, in ulp", worst_of(error_log_f32), 0.75 },
        { "log f64, in ulp", worst_of(error_log_f64), 2 },
        { "exp f64, in ulp", worst_of(error_exp_f64), 2 },
        { "normal quantile, absolute", worst_of(error_quantile), 1e-14 },
        { "normal distribution function, relative", worst_of(error_cdf),
          1e-13 },
    };

    for (size_t i = 0; i < DTN_COUNT(errors); i++)
        ok(errors[i].worst <= errors[i].bound, "error of %s: %.2g, at most %g",
           errors[i].what, errors[i].worst, errors[i].bound);
}

/* Two roundings instead of one make no other angle, of any float a word may
 * become: the words of 24 bits or less, and 2^23 of each larger magnitude.
 */
static void angles(void)
{
    const double turn = (double)1.4629180793e-9f;
    const double half = (double)7.314590396e-10f;
    const uint32_t step = 100 / (uint32_t)rounds_of(100);
    int64_t bad = 0, tried = 0;

    for (int shift = 0; shift <= 8; shift++)
        for (uint32_t i = shift ? 1 << 23 : 0; i < 1 << 24; i += step) {
            const float x = (float)i * (float)(1 << shift);

            bad += (float)((double)x * turn + half) !=
                   fmaf(x, 1.4629180793e-9f, 7.314590396e-10f);
            tried++;
        }
    bad += (float)(0x1p32 * turn + half) !=
           fmaf(0x1p32f, 1.4629180793e-9f, 7.314590396e-10f);
    ok(bad == 0, "the angle of %" PRId64 " floats is that of a fused operation",
       tried + 1);
}

/* -------------------------------------------------------------- moments --- */

static void moment(int which, double mean, double variance)
{
    const struct dtn_random_stream stream = { .seed = rand_next(&state),
                                       .numel = 1 << 20 };
    static float x[1 << 20];
    struct dtn_dist dist;
    double sum = 0, squares = 0, n = 1 << 20;

    make_dist(which, DTENSOR_F32, &dist);
    dtn_fill(&stream, &dist, 0, 1 << 20, x);
    for (int i = 0; i < 1 << 20; i++) {
        sum += (double)x[i];
        squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    }
    ok(fabs(sum / n - mean) < 5 * sqrt(variance / n) &&
       fabs(squares / n / variance - 1) < 0.05,
       "distribution %d: mean %.4f for "
       "%.4f, variance %.4f for %.4f", which, sum / n, mean, squares / n,
       variance);
}

int main(void)
{
    state = rand_seed(20251120);
    note("TEST_SEED=%" PRIu64, state);
    all_published();
    widths_alike();
    everywhere_alike(UINT64_C(0xd3df663feef43f21));
    inside();
    accuracy();
    angles();
    moment(0, 0.5, 1 / 12.0);
    moment(1, (0.3 - 3.25) / 2, 3.55 * 3.55 / 12);
    moment(2, 0, 1);
    moment(3, 2, 0.01);
    moment(4, exp(0.5), (exp(1) - 1) * exp(1));
    moment(5, 1 / 1.5, 1 / 2.25);
    moment(6, 0.25, 0.1875);
    moment(7, 0, 0.7737413);
    moment(11, 1, 14);
    return done();
}
