/* op_products.c - dtensor-bench op --products: matrices of many shapes
 *
 * Each product of f32 or f64 is computed on one rank by dtensor_op_into() and
 * by the BLAS that the library has loaded, in turns, from the same memory.  A
 * batch is one call of the library and a call of the BLAS for each matrix.  The
 * result is the median of the ratios of two turns.
 */
#include "tools/bench/bench.h"
#include "tools/bench/op.h"
#include "tools/bench/op_blas.h"
#include "tools/bench/session.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

/* op: batch x m x k times k x n, or batches of both; linear and matmul_nt take
 * the second one as n x k, matmul_tn the first one as k x m.
 */
static const struct product {
    const char *op;
    int batch, m, n, k;
} products[] = {
    { "matmul", 1, 16, 16, 16 }, { "matmul", 1, 32, 32, 32 },
    { "matmul", 1, 64, 64, 64 }, { "matmul", 1, 128, 128, 128 },
    { "matmul", 1, 256, 256, 256 }, { "matmul", 1, 1024, 1024, 1024 },
    { "matmul", 1, 1000, 1001, 999 },
    { "matmul", 1, 8192, 64, 256 }, { "matmul", 1, 64, 8192, 256 },
    { "matmul", 1, 1024, 1024, 16 }, { "matmul", 1, 1024, 1024, 4 },
    { "matmul", 1, 16, 16, 8192 }, { "matmul", 1, 1024, 8, 1024 },
    { "matmul", 1, 1024, 1, 1024 }, { "matmul", 1, 1, 1024, 1024 },
    { "matmul_nt", 1, 64, 64, 64 }, { "matmul_nt", 1, 512, 512, 512 },
    { "matmul_tn", 1, 64, 64, 64 }, { "matmul_tn", 1, 512, 512, 512 },
    { "matmul", 64, 16, 16, 16 }, { "matmul", 64, 64, 64, 64 },
    { "matmul_nt", 32, 128, 128, 64 }, { "matmul", 8, 256, 256, 256 },
    { "linear", 1, 1, 1024, 1024 }, { "linear", 1, 8, 1024, 1024 },
    { "linear", 1, 128, 1024, 256 }, { "linear", 1, 512, 4096, 1024 },
};

struct product_run {
    const struct product *what;
    struct op_gemm gemm;          /* of the first matrix                      */
    struct dtensor *in[2], *out;
    struct dtensor_op_args args;
    int64_t times;                /* calls timed at once                      */
    double *ours, *theirs;        /* us, [iters]                              */
    double *ratio;                /* of the two, [iters]                      */
};

static int product_ours(struct product_run *run, struct dtensor_error *err)
{
    return dtensor_op_into(run->what->op, 2,
                           (const struct dtensor *const *)run->in, &run->args,
                           1, &run->out, err);
}

static bool product_theirs(const struct product_run *run)
{
    const struct product *p = run->what;
    const size_t size = dtensor_dtype_size(run->gemm.dtype);
    bool found = true;

    for (int i = 0; i < p->batch && found; i++) {
        struct op_gemm one = run->gemm;

        one.a = (const char *)one.a + (size_t)i * (size_t)(p->m * p->k) * size;
        one.b = (const char *)one.b + (size_t)i * (size_t)(p->k * p->n) * size;
        one.out = (char *)one.out + (size_t)i * (size_t)(p->m * p->n) * size;
        found = op_blas_multiply(&one);
    }
    return found;
}

/* ---------------------------------------------------------------- ready --- */

static int factor_make(struct dtensor_ctx *ctx, enum dtensor_dtype dtype,
                       const int64_t shape[3], struct dtensor **tensorp,
                       struct dtensor_error *err)
{
    const int alone = shape[0] == 1;
    struct dtensor_generator *gen = NULL;
    struct dtensor_spec spec;
    int rc = dtensor_spec_init(&spec, ctx, "world", "R", dtype, 3 - alone,
                               shape + alone, err);

    if (rc == 0)
        rc = dtensor_zeros(&spec, tensorp, err);
    if (rc == 0)
        rc = dtensor_generator_create(1, &gen, err);
    if (rc == 0)
        rc = dtensor_fill_uniform(*tensorp, 0.25, 4, gen, err);
    dtensor_generator_destroy(gen);
    return rc;
}

static int product_init(struct product_run *run, struct dtensor_ctx *ctx,
                        enum dtensor_dtype dtype, struct dtensor_error *err)
{
    const struct product *p = run->what;
    const bool tn = strcmp(p->op, "matmul_tn") == 0;
    const bool nt = !tn && strcmp(p->op, "matmul") != 0;
    const int64_t a[] = { p->batch, tn ? p->k : p->m, tn ? p->m : p->k };
    const int64_t b[] = { p->batch, nt ? p->n : p->k, nt ? p->k : p->n };
    const int64_t out[] = { p->batch, p->m, p->n };
    int rc = factor_make(ctx, dtype, a, &run->in[0], err);

    if (rc == 0)
        rc = factor_make(ctx, dtype, b, &run->in[1], err);
    if (rc == 0)
        rc = factor_make(ctx, dtype, out, &run->out, err);
    if (rc == 0)
        rc = dtensor_op_args_parse("", &run->args, err);
    if (rc == 0)
        run->gemm = (struct op_gemm){
            .dtype = dtype, .m = p->m, .n = p->n, .k = p->k,
            .a_transposed = tn, .b_transposed = nt,
            .a = dtensor_to_local(run->in[0]),
            .b = dtensor_to_local(run->in[1]),
            .out = dtensor_to_local(run->out) };
    return rc;
}

static void product_fini(struct product_run *run)
{
    dtensor_destroy(run->in[0]);
    dtensor_destroy(run->in[1]);
    dtensor_destroy(run->out);
}

/* -------------------------------------------------------------- measure --- */

/* A turn of each; of two, each is first once. */
static int product_turn(struct product_run *run, int64_t at,
                        struct dtensor_error *err)
{
    int rc = 0;

    for (int who = 0; who < 2; who++) {
        const bool ours = (at & 1) == who;
        const int64_t start = session_now_ns();

        for (int64_t i = 0; i < run->times && rc == 0; i++)
            if (ours)
                rc = product_ours(run, err);
            else
                product_theirs(run);
        *(ours ? &run->ours[at] : &run->theirs[at]) =
            (double)(session_now_ns() - start) / 1e3 / (double)run->times;
    }
    return rc;
}

/* As many calls at once as take 100 us. */
static int product_times(struct product_run *run, struct dtensor_error *err)
{
    int rc;

    run->times = 1;
    rc = product_turn(run, 0, err);
    if (rc == 0)
        rc = product_turn(run, 0, err);
    if (rc == 0 && run->ours[0] < 100)
        run->times = 1 + (int64_t)(100 / run->ours[0]);
    return rc;
}

/* A product is as fast as the BLAS if it takes 3 % longer at most, or 0.3 us.
 */
static void product_report(struct product_run *run, const struct op_options *o)
{
    const struct product *p = run->what;
    struct stats ours, theirs, ratio;
    char shape[60];

    for (int64_t i = 0; i < o->iters; i++)
        run->ratio[i] = run->ours[i] / run->theirs[i];
    stats_of(run->ratio, (size_t)o->iters, &ratio);
    stats_of(run->ours, (size_t)o->iters, &ours);
    stats_of(run->theirs, (size_t)o->iters, &theirs);
    snprintf(shape, sizeof shape, "%dx %dx%d by %dx%d", p->batch, p->m, p->k,
             p->k, p->n);
    printf("%-10s %-28s %10.3f %10.3f %7.3f %s\n", p->op, shape, ours.p50,
           theirs.p50, ratio.p50,
           ratio.p50 <= 1.03 || ours.p50 - theirs.p50 <= 0.3 ? "met"
                                                             : "missed");
    fflush(stdout);
}

static int product_measure(struct dtensor_ctx *ctx, const struct op_options *o,
                           const struct product *p, double *us,
                           struct dtensor_error *err)
{
    struct product_run run = { .what = p, .ours = us, .theirs = us + o->iters,
                               .ratio = us + 2 * o->iters };
    int rc = product_init(&run, ctx, o->dtype, err);

    if (rc == 0)
        rc = product_times(&run, err);
    if (rc == 0 && !product_theirs(&run))
        rc = session_fail(err, DTENSOR_ENODEV, "--products: the library has "
                          "loaded no BLAS to compare with");
    for (int64_t i = 0; i < o->iters && rc == 0; i++)
        rc = product_turn(&run, i, err);
    if (rc == 0)
        product_report(&run, o);
    product_fini(&run);
    return rc;
}

int op_products(struct dtensor_ctx *ctx, const struct op_options *opt,
                struct dtensor_error *err)
{
    double *us = calloc(3 * (size_t)opt->iters, sizeof us[0]);
    int rc = us ? 0 : session_fail(err, DTENSOR_ENOMEM, "no memory for the "
                                   "times");

    printf("# dtensor-bench op --products %s (%s)\n# %s, one rank; us of the "
           "library and of the BLAS alone, medians; met: 3 %% longer at most, "
           "or 0.3 us\n# %-8s %-28s %10s %10s %7s\n", dtensor_version(),
           dtensor_build(), dtensor_dtype_name(opt->dtype), "op", "shape",
           "ours", "BLAS", "times");
    for (size_t i = 0; i < BENCH_COUNT(products) && rc == 0; i++)
        rc = product_measure(ctx, opt, &products[i], us, err);
    free(us);
    return rc;
}
