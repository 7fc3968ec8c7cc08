/* test_named.c - operators as functions
 *
 * Each function on tensors that are cut, against numbers known beforehand; and
 * what is left out when an argument is NULL.
 *
 * Without this test, a function could pass its arguments in another order, or
 * an index outside of its table could read what is not there.
 */
#include "dtensor.h"
#include "tests/support/job.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { WORLD = 4 };

static struct dtensor *tensor(struct job *job, const char *placements,
                              enum dtensor_dtype dtype, int ndim,
                              const int64_t shape[], const void *full)
{
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    good(dtensor_spec_init(&spec, job->ctx, "world", placements, dtype, ndim,
                           shape, &job->err));
    good(dtensor_distribute(&spec, full, -1, &t, &job->err));
    return t;
}

/* Is the whole of `t` these numbers?  It is destroyed. */
static void is(struct job *job, struct dtensor *t, size_t n,
               const double want[], const char *what)
{
    double have[16];

    good(dtensor_full_tensor(t, have, n * sizeof have[0], &job->err));
    for (size_t i = 0; i < n; i++)
        need(fabs(have[i] - want[i]) < 1e-12, "%s: element %zu is %.17g, not "
             "%.17g", what, i, have[i], want[i]);
    dtensor_destroy(t);
}

/* a is 2x3, b 3x2, rows of scores 2x3. */
static const int64_t wide[] = { 2, 3 }, tall[] = { 3, 2 };
static const double a_full[] = { 1, 2, 3, 4, 5, 6 };
static const double b_full[] = { 1, 0, 2, 1, 0, 3 };

static void products(struct job *job)
{
    struct dtensor *a = tensor(job, "S(1)", DTENSOR_F64, 2, wide, a_full);
    struct dtensor *b = tensor(job, "S(0)", DTENSOR_F64, 2, tall, b_full);
    struct dtensor *w = tensor(job, "S(0)", DTENSOR_F64, 2, wide, a_full);
    struct dtensor *bias = tensor(job, "R", DTENSOR_F64, 1, wide,
                                  (const double[]){ 10, 20 });
    struct dtensor *t = NULL;

    good(dtensor_matmul(a, b, &t, &job->err));
    is(job, t, 4, (const double[]){ 5, 11, 14, 23 }, "matmul");
    good(dtensor_linear(a, w, bias, &t, &job->err));
    is(job, t, 4, (const double[]){ 24, 52, 42, 97 }, "linear");
    good(dtensor_linear(a, w, NULL, &t, &job->err));
    is(job, t, 4, (const double[]){ 14, 32, 32, 77 }, "linear, no bias");
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_destroy(w);
    dtensor_destroy(bias);
}

static void pointwise(struct job *job)
{
    struct dtensor *a = tensor(job, "S(0)", DTENSOR_F64, 2, wide, a_full);
    struct dtensor *b = tensor(job, "S(1)", DTENSOR_F64, 2, wide, b_full);
    struct dtensor *t = NULL, *whole = NULL;

    good(dtensor_add(a, b, &t, &job->err));
    is(job, t, 6, (const double[]){ 2, 2, 5, 5, 5, 9 }, "add");
    good(dtensor_mul(a, b, &t, &job->err));
    is(job, t, 6, (const double[]){ 1, 0, 6, 4, 0, 18 }, "mul");
    good(dtensor_scale(a, -0.5, &t, &job->err));
    is(job, t, 6, (const double[]){ -0.5, -1, -1.5, -2, -2.5, -3 }, "scale");
    good(dtensor_scale(a, 0.4, &t, &job->err));
    good(dtensor_cast(t, DTENSOR_I32, &whole, &job->err));
    dtensor_destroy(t);
    good(dtensor_cast(whole, DTENSOR_F64, &t, &job->err));
    is(job, t, 6, (const double[]){ 0, 0, 1, 1, 2, 2 }, "cast");
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_destroy(whole);
}

static void rows(struct job *job)
{
    const double up = log(3), share[] = { 0.25, 0.75, 0.5, 0.5 };
    const int64_t square[] = { 2, 2 };
    struct dtensor *a = tensor(job, "S(1)", DTENSOR_F64, 2, square,
                               (const double[]){ 0, up, 7, 7 });
    struct dtensor *x = tensor(job, "S(0)", DTENSOR_F64, 2, square,
                               (const double[]){ 1, 3, -2, 2 });
    struct dtensor *two = tensor(job, "R", DTENSOR_F64, 1, square,
                                 (const double[]){ 2, 2 });
    struct dtensor *t = NULL;

    good(dtensor_softmax(a, -1, &t, &job->err));
    is(job, t, 4, share, "softmax");
    good(dtensor_layer_norm(x, two, two, 3, &t, &job->err));
    is(job, t, 4, (const double[]){ 1, 3, 2 - 4 / sqrt(7), 2 + 4 / sqrt(7) },
       "layer_norm");
    good(dtensor_layer_norm(x, NULL, NULL, 3, &t, &job->err));
    is(job, t, 4, (const double[]){ -0.5, 0.5, -2 / sqrt(7), 2 / sqrt(7) },
       "layer_norm without weight");
    need(dtensor_layer_norm(x, NULL, two, 3, &t, &job->err) == DTENSOR_EINVAL &&
         strstr(job->err.text, "input 1 is NULL"), "a bias without a weight: "
         "%s", job->err.text);
    good(dtensor_rms_norm(x, two, 4, &t, &job->err));
    is(job, t, 4, (const double[]){ 2 / 3.0, 2, -4 / sqrt(8), 4 / sqrt(8) },
       "rms_norm");
    dtensor_destroy(a);
    dtensor_destroy(x);
    dtensor_destroy(two);
}

static void by_index(struct job *job)
{
    const int64_t two[] = { 2 }, square[] = { 2, 2 };
    struct dtensor *table = tensor(job, "S(0)", DTENSOR_F64, 2, tall, b_full);
    struct dtensor *index = tensor(job, "R", DTENSOR_I64, 1, two,
                                   (const int64_t[]){ 2, 0 });
    struct dtensor *bad = tensor(job, "R", DTENSOR_I64, 1, two,
                                 (const int64_t[]){ 2, 3 });
    struct dtensor *scores = tensor(job, "S(0)", DTENSOR_F64, 2, square,
                                    (const double[]){ 0, log(3), 0, 0 });
    struct dtensor *right = tensor(job, "S(0)", DTENSOR_I64, 1, two,
                                   (const int64_t[]){ 1, 0 });
    struct dtensor *t = NULL;

    good(dtensor_embedding(table, index, &t, &job->err));
    is(job, t, 4, (const double[]){ 0, 3, 1, 0 }, "embedding");
    t = NULL;
    need(dtensor_embedding(table, bad, &t, &job->err) == DTENSOR_EINVAL && !t &&
         job->err.rank == -1 &&
         strstr(job->err.text, "element 1 of its part of input 1 is 3 "
                "(expected 0 to 2)"), "%s", job->err.text);
    need(dtensor_op("index_put", 3, (const struct dtensor *const[]){ table,
                    scores, bad }, &(struct dtensor_op_args){ .ndims = 1 }, 1,
                    &t, &job->err) == DTENSOR_EINVAL && !t &&
         strstr(job->err.text, "element 1 of its part of input 2 is 3 "
                "(expected 0 to 2)"),
         "%s", job->err.text);
    good(dtensor_cross_entropy(scores, right, DTENSOR_OP_MEAN, &t, &job->err));
    is(job, t, 1, (const double[]){ (log(4 / 3.0) + log(2)) / 2 },
       "cross_entropy");
    dtensor_destroy(table);
    dtensor_destroy(index);
    dtensor_destroy(bad);
    dtensor_destroy(scores);
    dtensor_destroy(right);
}

/* What only the elements or sizes of a part say. */
static void wrong_parts(struct job *job)
{
    const int64_t square[] = { 2, 2 }, none[] = { 2, 0 }, two[] = { 2 };
    struct dtensor *x = tensor(job, "R", DTENSOR_F64, 2, square, a_full);
    struct dtensor *empty = tensor(job, "R", DTENSOR_F64, 2, none, a_full);
    struct dtensor *row = tensor(job, "R", DTENSOR_F64, 1, two, a_full);
    struct dtensor *target = tensor(job, "R", DTENSOR_I64, 1, two,
                                    (const int64_t[]){ 1, 2 });
    struct dtensor *out = NULL;
    const struct {
        const char *op;
        int nin;
        const struct dtensor *in[3];
        int dim;
        const char *words;
    } wrong[] = {
        { "cross_entropy", 2, { x, target }, 0,
          "part of input 1 is 2 (expected 0 to 1)" },
        { "cross_entropy_backward", 3, { row, x, target }, 0,
          "part of input 2 is 2 (expected 0 to 1)" },
        { "tril", 1, { row }, 0, "the input has 1 dimensions" },
        { "median_dim", 1, { empty }, 1, "dimension 1 has no elements" },
        { "max_dim", 1, { empty }, 1, "max_dim of 2x0: dimension 1 has no" },
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        need(dtensor_op(wrong[i].op, wrong[i].nin, wrong[i].in,
                        &(struct dtensor_op_args){ .ndims = 1,
                            .dim = { wrong[i].dim } }, 1, &out,
                        &job->err) == DTENSOR_EINVAL && !out &&
             strstr(job->err.text, wrong[i].words), "%s: %s", wrong[i].op,
             job->err.text);
    dtensor_destroy(x);
    dtensor_destroy(empty);
    dtensor_destroy(row);
    dtensor_destroy(target);
}

/* A bound that is NaN makes all results NaN, or 0 if they are integers. */
static void clamped(struct job *job)
{
    static const enum dtensor_dtype types[] = { DTENSOR_F64, DTENSOR_F32,
        DTENSOR_BF16, DTENSOR_F16, DTENSOR_F8E5M2, DTENSOR_I32, DTENSOR_U8 };
    static const struct dtensor_op_args bounds[] = {
        { .low = NAN, .high = 1 }, { .low = -1, .high = NAN } };
    struct dtensor *x = tensor(job, "S(0)", DTENSOR_F64, 2, wide, a_full);
    struct dtensor *y = NULL, *z = NULL;
    double full[6];

    for (size_t i = 0; i < 2 * sizeof types / sizeof types[0]; i++) {
        good(dtensor_cast(x, types[i / 2], &y, &job->err));
        good(dtensor_op("clamp", 1, (const struct dtensor *const[]){ y },
                        &bounds[i % 2], 1, &z, &job->err));
        dtensor_destroy(y);
        good(dtensor_cast(z, DTENSOR_F64, &y, &job->err));
        good(dtensor_full_tensor(y, full, sizeof full, &job->err));
        for (int k = 0; k < 6; k++)
            need(i / 2 < 5 ? isnan(full[k]) : full[k] == 0, "clamp of %s by "
                 "NaN: %g", dtensor_dtype_name(types[i / 2]), full[k]);
        dtensor_destroy(y);
        dtensor_destroy(z);
    }
    dtensor_destroy(x);
}

static void (*const parts[])(struct job *job) = {
    products, pointwise, rows, by_index, wrong_parts, clamped };

static void part(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;

    job_open(job, rank, n, NULL);
    parts[*(const int *)arg](job);
    dtensor_fini(job->ctx);
}

int main(void)
{
    static const char *const claims[] = {
        "matmul, linear", "add, mul, scale, cast",
        "softmax, layer_norm, rms_norm", "embedding, cross_entropy",
        "refused elements, and parts without any,", "clamp by NaN" };

    for (int i = 0; i < 6; i++)
        ok(ranks_run(WORLD, 60, part, &i, NULL) == 0,
           "%s give the numbers or words that they should", claims[i]);
    return done();
}
