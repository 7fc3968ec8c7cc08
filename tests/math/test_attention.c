/* test_attention.c - attention in blocks against nested loops
 *
 * Sizes below, at and above those of the blocks, with and without the order of
 * causes, of every float type that is computed with.  Gradients of f64 are
 * compared with differences of results whose inputs differ a little.
 *
 * Without this test, a block could forget to correct what came before, or the
 * last block use what the one before left in memory.
 */
#include "math/attention.h"
#include "math/matmul.h"
#include "base/dtype.h"
#include "dtensor.h"
#include "tests/math/sample.h"
#include "tests/support/rand.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { Q, K, V, OUT, GRAD, DQ, DK, DV, ARRAYS };

static uint64_t seed;

/* One call: its arrays, of which Q, K, V, GRAD are random, and lse. */
struct trial {
    struct dtn_array at[ARRAYS], lse;
    struct dtn_attention a;
};

static double get(const struct dtn_array *array, int64_t i)
{
    return dtn_load(array->dtype, array->data, (size_t)i);
}

/* Results of q, k, v in t->at[OUT] and t->lse. */
static void run(struct trial *t)
{
    void *work = malloc(dtn_attention_workspace(&t->a, false));

    dtn_attention(&t->a, &t->at[OUT], &t->lse, work);
    free(work);
}

static void run_back(struct trial *t)
{
    const struct dtn_attention_grads g = {
        &t->at[GRAD], &t->at[OUT], &t->lse, &t->at[DQ], &t->at[DK],
        &t->at[DV] };
    void *work = malloc(dtn_attention_workspace(&t->a, true));

    dtn_attention_backward(&t->a, &g, work);
    free(work);
}

static void trial_make(struct trial *t, enum dtensor_dtype dtype,
                       const int64_t size[6], bool causal, unsigned flags)
{
    const int64_t n = size[0], h = size[1], queries = size[2], keys = size[3],
                  width = size[4], values = size[5];
    const int64_t shape[ARRAYS][4] = {
        [Q] = { n, h, queries, width }, [K] = { n, h, keys, width },
        [V] = { n, h, keys, values }, [OUT] = { n, h, queries, values },
        [GRAD] = { n, h, queries, values }, [DQ] = { n, h, queries, width },
        [DK] = { n, h, keys, width }, [DV] = { n, h, keys, values } };

    for (int i = 0; i < ARRAYS; i++) {
        t->at[i] = sample_new(&seed, dtype, 4, shape[i], false);
        for (int64_t k = 0; k < dtn_array_count(&t->at[i]); k++)
            dtn_store(dtype, t->at[i].data, (size_t)k,
                      (rand_below(&seed, 2001) - 1000) / 500.0);
    }
    t->lse = sample_new(&seed, dtype == DTENSOR_F64 ? DTENSOR_F64
                        : DTENSOR_F32, 3, shape[Q], false);
    t->a = (struct dtn_attention){ &t->at[Q], &t->at[K], &t->at[V],
                                   1 / sqrt((double)width), causal, flags };
}

static void trial_free(struct trial *t)
{
    for (int i = 0; i < ARRAYS; i++)
        sample_free(&t->at[i]);
    sample_free(&t->lse);
}

/* The largest difference of the results from those of nested loops. */
static double error_of(const struct trial *t, const int64_t size[6])
{
    const int64_t queries = size[2], keys = size[3], d = size[4], v = size[5];
    double *share = malloc((size_t)keys * sizeof *share), most = 0;

    for (int64_t row = 0; row < size[0] * size[1] * queries; row++) {
        const int64_t head = row / queries, i = row % queries;
        const int64_t last = t->a.causal && i + 1 < keys ? i + 1 : keys;
        double sum = 0;

        for (int64_t j = 0; j < last; j++) {
            double dot = 0;

            for (int64_t k = 0; k < d; k++)
                dot += get(&t->at[Q], row * d + k) *
                       get(&t->at[K], (head * keys + j) * d + k);
            sum += share[j] = exp(dot * t->a.scale);
        }
        for (int64_t k = 0; k < v; k++) {
            double made = 0;

            for (int64_t j = 0; j < last; j++)
                made += share[j] / sum *
                        get(&t->at[V], (head * keys + j) * v + k);
            most = fmax(most, fabs(made - get(&t->at[OUT], row * v + k)));
        }
        most = fmax(most, fabs(log(sum) - get(&t->lse, row)));
    }
    free(share);
    return most;
}

static void test_result(enum dtensor_dtype dtype, double bound)
{
    static const int64_t sizes[][6] = {
        { 1, 1, 1, 1, 1, 1 }, { 2, 3, 5, 7, 4, 6 }, { 1, 2, 64, 128, 8, 8 },
        { 1, 1, 65, 129, 16, 3 }, { 1, 1, 150, 300, 5, 9 },
        { 1, 1, 200, 90, 32, 32 } };
    double worst = 0;

    for (int k = 0; k < (int)(sizeof sizes / sizeof sizes[0]) * 4; k++) {
        const int64_t *size = sizes[k / 4];
        struct trial t;

        trial_make(&t, dtype, size, k % 2, k / 2 % 2 ? DTN_MATMUL_REPRO : 0);
        run(&t);
        worst = fmax(worst, error_of(&t, size));
        trial_free(&t);
    }
    ok(worst < bound, "of %s the results are those of nested loops: %.2g",
       dtensor_dtype_name(dtype), worst);
}

/* ------------------------------------------------------------ gradients --- */

static double product(const struct trial *t)
{
    double sum = 0;

    for (int64_t i = 0; i < dtn_array_count(&t->at[OUT]); i++)
        sum += get(&t->at[OUT], i) * get(&t->at[GRAD], i);
    return sum;
}

/* The slope of the product along element i of an input. */
static double slope(struct trial *t, int input, int64_t i)
{
    const double x = get(&t->at[input], i), step = 1e-5;
    double sum[2];

    for (int k = 0; k < 2; k++) {
        dtn_store(DTENSOR_F64, t->at[input].data, (size_t)i,
                  k ? x + step : x - step);
        run(t);
        sum[k] = product(t);
    }
    dtn_store(DTENSOR_F64, t->at[input].data, (size_t)i, x);
    return (sum[1] - sum[0]) / (2 * step);
}

static void test_gradients(const int64_t size[6], bool causal)
{
    double worst = 0;
    struct trial t;

    trial_make(&t, DTENSOR_F64, size, causal, 0);
    run(&t);
    run_back(&t);
    for (int input = Q; input <= V; input++)
        for (int k = 0; k < 25; k++) {
            const int64_t n = dtn_array_count(&t.at[input]);
            const int64_t i = rand_below(&seed, (int)n);

            worst = fmax(worst, fabs(slope(&t, input, i) -
                                     get(&t.at[DQ + input], i)));
        }
    ok(worst < 1e-7, "gradients of %d queries and %d keys%s are differences of "
       "results: %.2g", (int)size[2], (int)size[3], causal ? ", causal" : "",
       worst);
    trial_free(&t);
}

int main(void)
{
    seed = rand_seed(20261123);
    test_result(DTENSOR_F64, 1e-12);
    test_result(DTENSOR_F32, 1e-4);
    test_result(DTENSOR_BF16, 0.05);
    for (int k = 0; k < 2; k++) {
        test_gradients((const int64_t[]){ 2, 2, 5, 7, 3, 4 }, k);
        test_gradients((const int64_t[]){ 1, 1, 150, 140, 6, 5 }, k);
    }
    return done();
}
