/* test_bench.c - the parts of dtensor-bench that compute
 *
 * Percentiles, busbw factors and crossing bytes against worked numbers and a
 * count by hand; patterns against folding in several orders.
 *
 * Without this test, a printed bandwidth could be wrong by a constant factor,
 * and nobody could tell from the output.
 */
#include "dtensor.h"
#include "tests/support/tap.h"
#include "tools/bench/bench.h"
#include "tools/bench/cross.h"
#include "tools/bench/flat.h"
#include "tools/bench/job.h"
#include "tools/bench/measure.h"
#include "tools/bench/options.h"
#include "tools/bench/pattern.h"
#include "tools/bench/read.h"
#include "tools/bench/session.h"
#include "tools/bench/tests.h"
#include "tools/bench/value.h"

#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* --------------------------------------------------------------- stats --- */

static void test_stats(void)
{
    double twenty[20], one = 7;
    struct stats s;

    for (int i = 0; i < 20; i++)
        twenty[i] = 20 - i;
    stats_of(twenty, 20, &s);
    ok(s.min == 1 && s.max == 20, "min and max of 20 times are 1 and 20");
    ok(s.p50 == 10, "p50 of 1..20 is the 10th, %g", s.p50);
    ok(s.p99 == 20, "p99 of 1..20 is the 20th, %g", s.p99);
    stats_of(&one, 1, &s);
    ok(s.min == 7 && s.p50 == 7 && s.p99 == 7 && s.max == 7,
       "one time is all its percentiles");
    ok(stats_percentile(twenty, 20, 5) == 1 &&
       stats_percentile(twenty, 20, 5.1) == 2,
       "nearest rank: 5 %% of 20 is the 1st, 5.1 %% the 2nd");
    ok(stats_percentile(twenty, 20, 0) == 1 &&
       stats_percentile(twenty, 20, 100) == 20,
       "the 0th and 100th percentiles are the ends");
}

/* Brute force: the smallest value with at least percent % no larger. */
static double slow_percentile(const double *sorted, size_t n, double percent)
{
    for (size_t i = 0; i < n; i++)
        if ((double)(i + 1) * 100 >= percent * (double)n)
            return sorted[i];
    return sorted[n - 1];
}

static void test_percentiles_brute(void)
{
    double value[300];
    int bad = 0;

    for (size_t n = 1; n <= 300; n++) {
        for (size_t i = 0; i < n; i++)
            value[i] = (double)i;
        for (int percent = 1; percent <= 100; percent++)
            bad += stats_percentile(value, n, percent) !=
                   slow_percentile(value, n, percent);
    }
    ok(bad == 0, "percentiles of 1..300 values agree with counting");
}

/* ------------------------------------------------------------- factors --- */

static void test_factors(void)
{
    static const struct {
        const char *test;
        int n;
        double factor;
    } rows[] = {
        { "allreduce", 2, 1 },            { "allreduce", 4, 1.5 },
        { "allgather", 4, 0.75 },         { "reduce_scatter", 4, 0.75 },
        { "all_to_all", 4, 0.75 },        { "broadcast", 4, 1 },
        { "reduce", 4, 1 },               { "barrier", 4, 0 },
        { "gather", 4, 0.75 },            { "scatter", 4, 0.75 },
        { "allgatherv", 4, 0.75 },        { "all_to_allv", 4, 0.75 },
        { "sendrecv", 4, 1 },             { "sendrecv", 1, 0 },
        { "allreduce", 1, 0 },            { "broadcast", 1, 0 },
    };

    for (size_t i = 0; i < BENCH_COUNT(rows); i++) {
        double got = test_find(rows[i].test)->factor(rows[i].n);

        ok(got == rows[i].factor, "%s over %d: busbw is algbw x %g",
           rows[i].test, rows[i].n, got);
    }
    ok(!test_find("allreduc") && !test_find(""), "unknown tests are unknown");
}

static void test_sizes(void)
{
    struct bench_case c;

    test_size(test_find("allreduce"), 4096, 4, 4, &c);
    ok(c.count == 1024 && c.bytes == 4096,
       "allreduce of 4096 bytes f32 has count 1024");
    test_size(test_find("allgather"), 4096, 4, 4, &c);
    ok(c.count == 256 && c.bytes == 4096,
       "allgather of 4096 bytes over 4 sends 256 elements a rank");
    test_size(test_find("allgather"), 4097, 4, 3, &c);
    ok(c.count == 341 && c.bytes == 4092, "sizes are rounded down to whole "
       "elements of every block");
    test_size(test_find("all_to_all"), 1, 8, 5, &c);
    ok(c.count == 1 && c.bytes == 40, "... and up to one");
    test_size(test_find("barrier"), 4096, 4, 4, &c);
    ok(c.count == 0 && c.bytes == 0, "a barrier has no bytes");
}

/* Unequal blocks: by the rule, and never a byte more than equal ones. */
static void test_blocks(void)
{
    static const int share[4] = { 10, 20, 30, 40 };
    struct bench_case c = { .count = 25 };
    struct bench b = { .group = 4 };
    struct flat f = { .job = { .b = &b, .c = &c } };
    bool ruled = true, whole = true;

    c.test = test_find("allgatherv");
    for (int r = 0; r < 4; r++)
        ruled = ruled && test_block(&f, 0, r) == (size_t)share[r];
    ok(ruled, "100 elements over 4 ranks: blocks of 10, 20, 30 and 40");
    c.test = test_find("all_to_allv");
    for (b.group = 1; b.group <= 9; b.group++)
        for (c.count = 0; c.count <= 40; c.count++)
            for (int p = 0; p < b.group; p++) {
                size_t sent = 0, back = 0;

                for (int r = 0; r < b.group; r++) {
                    sent += test_block(&f, p, r);
                    back += test_block(&f, r, p);
                }
                whole = whole && sent == c.count * (size_t)b.group
                        && back == sent;
            }
    ok(whole, "all_to_allv: 1 to 9 ranks send and get n times count, 0 to 40");
}

/* --------------------------------------------------------------- cross --- */

/* The box of block `i` of `n` along dimension d of a 2-D tensor; d < 0: all. */
struct box {
    int64_t shape[2], offset[2];
};

static struct box chunk(const int64_t shape[2], int d, int i, int n)
{
    struct box box = { { shape[0], shape[1] }, { 0, 0 } };
    int64_t each, first;

    if (d < 0)
        return box;
    each = (shape[d] + n - 1) / n;
    first = i * each < shape[d] ? i * each : shape[d];
    box.offset[d] = first;
    box.shape[d] = first + each < shape[d] ? each : shape[d] - first;
    return box;
}

static bool holds(const struct box *box, int64_t row, int64_t column)
{
    return row >= box->offset[0] && row < box->offset[0] + box->shape[0] &&
           column >= box->offset[1] && column < box->offset[1] + box->shape[1];
}

static void test_overlap_brute(void)
{
    int bad = 0, cases = 0;

    for (int n = 1; n <= 5; n++)
        for (int from = -1; from < 2; from++)
            for (int to = -1; to < 2; to++)
                for (int i = 0; i < n; i++)
                    for (int j = 0; j < n; j++) {
                        const int64_t shape[2] = { 7, 4 };
                        struct box a = chunk(shape, from, i, n);
                        struct box b = chunk(shape, to, j, n);
                        int64_t count = 0;

                        for (int64_t e = 0; e < 28; e++)
                            count += holds(&a, e / 4, e % 4) &&
                                     holds(&b, e / 4, e % 4);
                        cases++;
                        bad += count != cross_overlap(2, a.shape, a.offset,
                                                      b.shape, b.offset);
                    }
    ok(bad == 0, "%d overlaps of 7 x 4 agree with counting elements", cases);
}

static void test_incoming(void)
{
    ok(cross_incoming(250000, 250000, 62500, 1) == 187500,
       "S(0) -> S(1) of 1000 x 1000 over 4: 187500 elements come in");
    ok(cross_incoming(25, 100, 25, 1) == 75,
       "S -> R over 4 brings in 3/4, as an all-gather");
    ok(cross_incoming(100, 25, 25, 4) == 75,
       "P -> S over 4 brings in 3/4, as a reduce-scatter");
    ok(cross_incoming(100, 100, 100, 4) == 150,
       "P -> R over 4 brings in 6/4, as an allreduce");
    ok(cross_incoming(100, 100, 100, 2) == 100,
       "P -> R over 2 brings in the other term");
    ok(cross_incoming(100, 100, 100, 1) == 0, "R -> R brings in nothing");
    ok(cross_incoming(0, 100, 0, 1) == 100, "who has nothing needs all");
}

/* -------------------------------------------------------------- values --- */

static void test_values(void)
{
    int bad = 0;

    for (int type = 0; type < DTENSOR_NDTYPES; type++) {
        enum dtensor_dtype dtype = (enum dtensor_dtype)type;
        int64_t limit = value_limit(dtype), cell[4];

        for (int64_t v = 0; v <= limit && v <= 70000; v++) {
            value_store(dtype, cell, 1, v);
            bad += value_load(dtype, cell, 1) != (double)v;
        }
        value_store(dtype, cell, 0, limit);
        bad += value_load(dtype, cell, 0) != (double)limit;
        if (dtype != DTENSOR_BOOL && dtensor_dtype_name(dtype)[0] != 'u') {
            value_store(dtype, cell, 0, -limit);
            bad += value_load(dtype, cell, 0) != (double)-limit;
        }
    }
    ok(bad == 0, "every type gives back every integer up to its limit");
}

static void test_half_bits(void)
{
    uint16_t bits;
    bool fine = true;

    value_store(DTENSOR_F16, &bits, 0, 1);
    fine &= bits == 0x3c00;
    value_store(DTENSOR_F16, &bits, 0, -2);
    fine &= bits == 0xc000;
    value_store(DTENSOR_BF16, &bits, 0, 1);
    fine &= bits == 0x3f80;
    value_store(DTENSOR_BF16, &bits, 0, 255);
    fine &= bits == 0x437f;
    ok(fine, "1 and -2 are 3c00 and c000 in f16, 1 and 255 3f80 and 437f "
       "in bf16");
    bits = 0x0001;
    fine = value_load(DTENSOR_F16, &bits, 0) == ldexp(1, -24);
    bits = 0x7c00;
    fine &= isinf(value_load(DTENSOR_F16, &bits, 0)) != 0;
    bits = 0x7fc0;
    fine &= isnan(value_load(DTENSOR_BF16, &bits, 0)) != 0;
    ok(fine, "denormals, infinities and NaNs are read as such");
}

/* ------------------------------------------------------------ patterns --- */

/* Fold in the type itself, from source `first` on by `step`, rounding after
 * each; doubles stand for the integer types' exact arithmetic.
 */
static double fold(const struct patterns *p, uint64_t i, int first, int step)
{
    int n = p->nsources;
    double acc = pattern_value(p, first, 0, i), v;
    double cell[2];

    for (int k = 1; k < n; k++) {
        v = pattern_value(p, ((first + k * step) % n + n) % n, 0, i);
        switch (p->op) {
        case DTENSOR_PROD:
            acc *= v;
            break;
        case DTENSOR_MIN:
            acc = v < acc ? v : acc;
            break;
        case DTENSOR_MAX:
            acc = v > acc ? v : acc;
            break;
        default:
            acc += v;
            break;
        }
        if (fabs(acc) > (double)value_limit(p->dtype) &&
            p->dtype != DTENSOR_BOOL && p->op != DTENSOR_PROD)
            return NAN;
        value_store(p->dtype, cell, 0, (int64_t)acc);
        acc = value_load(p->dtype, cell, 0);
    }
    return p->op == DTENSOR_AVG ? acc / n : acc;
}

static int pattern_bad(enum dtensor_dtype dtype, enum dtensor_redop op, int n)
{
    struct patterns p;
    int bad = 0;

    if (!patterns_init(&p, dtype, op, n, 1))
        return 1;
    for (uint64_t i = 0; i < PATTERN_PERIOD; i++) {
        double want = pattern_value(&p, PATTERN_REDUCED, 0, i);

        bad += fold(&p, i, 0, 1) != want || fold(&p, i, n - 1, -1) != want ||
               fold(&p, i, n / 2, 1) != want;
    }
    patterns_fini(&p);
    return bad;
}

static void test_patterns_exact(void)
{
    static const int sizes[] = { 1, 2, 3, 4, 7, 64, 129, 300 };

    for (int op = DTENSOR_SUM; op <= DTENSOR_MAX; op++) {
        int bad = 0;

        for (int type = 0; type < DTENSOR_NDTYPES; type++)
            for (size_t s = 0; s < BENCH_COUNT(sizes); s++)
                bad += value_op_fits((enum dtensor_dtype)type,
                                     (enum dtensor_redop)op) &&
                       pattern_bad((enum dtensor_dtype)type,
                                   (enum dtensor_redop)op, sizes[s]);
        ok(bad == 0, "%s of every type over 1..300 ranks is exact and stays "
           "in range in three orders",
           dtensor_redop_name((enum dtensor_redop)op));
    }
}

static void test_patterns_bits(void)
{
    struct patterns p;
    int bad = 0;
    uint8_t want[3][8], got[3];

    for (int k = 0; k < 3; k++) {
        got[0] = 0xff;
        got[1] = got[2] = 0;
        patterns_init(&p, DTENSOR_U8,
                      (enum dtensor_redop)(DTENSOR_BAND + k), 5, 1);
        for (int s = 0; s < 5; s++) {
            pattern_fill(&p, s, 3, 11, 8, want[0]);
            got[0] &= want[0][4];
            got[1] |= want[0][4];
            got[2] ^= want[0][4];
        }
        pattern_fill(&p, PATTERN_REDUCED, 3, 11, 8, want[k]);
        bad += got[k] != want[k][4];
        patterns_fini(&p);
    }
    ok(bad == 0, "bit reductions of u8 over 5 ranks are what C says");
}

static void test_patterns_tell_apart(void)
{
    struct patterns p;
    static float a[5000], b[5000];
    size_t first = 0;
    int same = 0;

    patterns_init(&p, DTENSOR_F32, PATTERN_NO_OP, 4, 1);
    pattern_fill(&p, 1, 7, 100, 5000, a);
    ok(pattern_check(&p, 1, 7, 100, 5000, a, &first) == 0,
       "what was filled is found right");
    a[4321] += 1;
    a[4999] = -1;
    ok(pattern_check(&p, 1, 7, 100, 5000, a, &first) == 2 && first == 4321,
       "two wrong elements of 5000 are found, the first is 4321");
    pattern_fill(&p, 1, 7, 100 + 256, 4000, b);
    ok(memcmp(a + 256, b, 4000 * sizeof *a) == 0,
       "a part filled by itself is that part of the whole");
    pattern_fill(&p, 2, 7, 100, 5000, b);
    ok(pattern_check(&p, 1, 7, 100, 5000, b, &first) > 4900,
       "another rank's elements are wrong ones");
    pattern_fill(&p, 1, 6, 100, 5000, b);
    ok(pattern_check(&p, 1, 7, 100, 5000, b, &first) > 4900,
       "the iteration before's elements are wrong ones");
    for (int k = 1; k <= 30; k++) {
        pattern_fill(&p, 1, 7, 100 + (UINT64_C(1) << k), 5000, b);
        same += pattern_check(&p, 1, 7, 100, 5000, b, &first) < 4900;
    }
    ok(same == 0, "elements displaced by a power of two are wrong ones");
    patterns_fini(&p);
}

static void test_patterns_scaled(void)
{
    struct patterns p;
    int bad = 0;

    patterns_init(&p, DTENSOR_BF16, PATTERN_NO_OP, 1, 6);
    for (uint64_t i = 0; i < PATTERN_PERIOD; i++)
        bad += fmod(pattern_value(&p, 0, 0, i), 6) != 0;
    ok(bad == 0, "values scaled by 6 are multiples of 6");
    patterns_fini(&p);
}

/* ------------------------------------------------------------- options --- */

static bool parse(struct bench_options *opt, char *why, size_t size, int argc,
                  const char *const args[])
{
    char *argv[16];

    for (int i = 0; i < argc; i++)
        argv[i] = (char *)(uintptr_t)args[i];
    argv[argc] = NULL;
    optind = 0;
    return options_parse(opt, argc, argv, why, size);
}

static void test_options(void)
{
    static const char *const defaults[] = { "b", "allreduce" };
    static const char *const many[] = {
        "b", "all", "-b", "2K", "--maxbytes=3M", "-n7", "-d", "bf16",
        "--op", "max", "--min-time", "2s", "--local", "4"
    };
    struct bench_options opt;
    int64_t shape[DTENSOR_MAX_DIMS];
    char why[400], text[400];

    ok(parse(&opt, why, sizeof why, 2, defaults) && opt.min_bytes == 8 &&
       opt.max_bytes == 4 << 20 && opt.step_factor == 4 && opt.iters == 20 &&
       opt.warmup == 3 && opt.check == 1 && opt.registered == 1 &&
       opt.dtype == DTENSOR_F32 && opt.redop == DTENSOR_SUM &&
       opt.ntests == 1, "the defaults are those of the manual");
    options_format(&opt, text, sizeof text);
    ok(strcmp(text, "-b 8 -e 4194304 -f 4 -n 20 -w 3 -c 1 -d f32 -o sum "
              "-r 0 -R 1") == 0, "they are printed as they are typed: %s",
       text);
    ok(parse(&opt, why, sizeof why, 14, many) && opt.min_bytes == 2048 &&
       opt.max_bytes == 3 << 20 && opt.iters == 7 &&
       opt.dtype == DTENSOR_BF16 && opt.redop == DTENSOR_MAX &&
       opt.min_time_ns == INT64_C(2000000000) && opt.local == 4 &&
       opt.ntests == bench_ntests, "options in every spelling are read");
    ok(read_shape("1000x20x3", shape) == 3 && shape[0] == 1000 &&
       shape[2] == 3, "1000x20x3 is a shape");
    ok(!read_shape("", shape) && !read_shape("3x", shape) &&
       !read_shape("x3", shape) && !read_shape("3,4", shape) &&
       !read_shape("1x2x3x4x5x6x7x8x9", shape) &&
       !read_shape("-3", shape), "six texts are no shape");
}

int main(void)
{
    test_stats();
    test_percentiles_brute();
    test_factors();
    test_sizes();
    test_blocks();
    test_overlap_brute();
    test_incoming();
    test_values();
    test_half_bits();
    test_patterns_exact();
    test_patterns_bits();
    test_patterns_tell_apart();
    test_patterns_scaled();
    test_options();
    return done();
}
