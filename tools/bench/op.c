/* op.c - dtensor-bench op: how fast operators are
 *
 * Each case is measured in turn with its bound: for an operator that moves
 * memory a copy of as many bytes, for a product the BLAS that the library has
 * loaded, called directly.  The result is the median over the calls of the time
 * of the slowest rank.  A decision, or a call on small tensors, takes less time
 * than the clock can resolve, so many are timed together.
 */
#include "tools/bench/bench.h"
#include "tools/bench/launch.h"
#include "tools/bench/op.h"
#include "tools/bench/op_blas.h"
#include "tools/bench/session.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 400 };              /* calls timed at once                      */

struct op_run {
    const struct op_options *opt;
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *world;     /* all ranks                        */
    int rank;                             /* of them                          */
    char *bound[2];                       /* what a copy is timed with        */
    double *us, *bound_us;                /* [iters]                          */
    struct op_result *rows;               /* [ncases]                         */
};

/* ---------------------------------------------------------------- calls --- */

static int call_op(struct op_ready *r, struct dtensor_error *err)
{
    const struct dtensor *const *in = (const struct dtensor *const *)r->in;
    struct dtensor *out = NULL;
    int rc;

    if (!r->what->new_tensor)
        return dtensor_op_into(r->what->op, r->nin, in, &r->args, 1, &r->out,
                               err);
    rc = dtensor_op(r->what->op, r->nin, in, &r->args, 1, &out, err);
    dtensor_destroy(out);
    return rc;
}

/* A decision; of OP_DECIDES one that nobody has asked for yet. */
static int call_infer(struct op_ready *r, struct dtensor_error *err)
{
    const struct dtensor_op_call call = { r->what->op, r->nin, r->spec,
                                          r->args };
    struct dtensor_spec want[OP_INPUTS], out;
    struct dtensor_op_info info;

    for (int i = 0; i < r->nin && r->what->kind == OP_DECIDES; i++)
        r->spec[i].shape[0] += 8;
    return dtensor_op_infer(&call, want, 1, &out, &info, err);
}

static int call_case(struct op_ready *r, double *usp, struct dtensor_error *err)
{
    const enum op_kind kind = r->what->kind;
    const bool infers = kind == OP_FINDS || kind == OP_DECIDES;
    const int times = kind == OP_FINDS || kind == OP_CALLS ? MANY : 1;
    const int64_t start = session_now_ns();
    int rc = 0;

    for (int i = 0; i < times && rc == 0; i++)
        rc = infers ? call_infer(r, err) : call_op(r, err);
    *usp = (double)(session_now_ns() - start) / 1e3 / times;
    return rc;
}

/* ---------------------------------------------------------------- bound --- */

/* Of one rank; with more the operands may have to move. */
static bool bound_product(const struct op_run *run, const struct op_ready *r)
{
    const struct op_options *opt = run->opt;
    const int m = (int)opt->shape[0], k = (int)opt->shape[1];

    return opt->ranks == 1 &&
           (opt->dtype == DTENSOR_F32 || opt->dtype == DTENSOR_F64) &&
           op_blas_multiply(&(struct op_gemm){
               .dtype = opt->dtype, .m = m, .n = m, .k = k,
               .b_transposed = r->what->inputs[1] == 'y',
               .a = dtensor_to_local(r->in[0]),
               .b = dtensor_to_local(r->in[1]),
               .out = dtensor_to_local(r->out) });
}

/* Time the bound of a case; false: there is none. */
static bool bound_time(const struct op_run *run, const struct op_ready *r,
                       double *usp)
{
    const int64_t start = session_now_ns();

    if (r->what->kind == OP_MULTIPLIES) {
        if (!bound_product(run, r))
            return false;
    } else if (r->what->kind == OP_MOVES) {
        memcpy(run->bound[0], run->bound[1], (size_t)r->bytes / 2);
    } else {
        return false;
    }
    *usp = (double)(session_now_ns() - start) / 1e3;
    return true;
}

static int bound_memory(struct op_run *run, const struct op_ready *r,
                        struct dtensor_error *err)
{
    const size_t bytes = (size_t)r->bytes / 2 + 1;

    for (int i = 0; i < 2; i++) {
        free(run->bound[i]);
        run->bound[i] = malloc(bytes);
        if (!run->bound[i])
            return session_fail(err, DTENSOR_ENOMEM, "%s: no memory for %zu "
                                "bytes", r->what->name, bytes);
        memset(run->bound[i], 1, bytes);
    }
    return 0;
}

/* -------------------------------------------------------------- measure --- */

static int measure_case(struct op_run *run, struct op_ready *r,
                        struct op_result *row, struct dtensor_error *err)
{
    const int64_t iters = run->opt->iters, warmup = 3;
    bool bound = true;
    struct stats stats;
    int rc = bound_memory(run, r, err);

    for (int64_t i = -warmup; i < iters && rc == 0; i++) {
        const int64_t at = i < 0 ? 0 : i;

        rc = dtensor_barrier(run->world, err);
        if (rc == 0)
            rc = call_case(r, &run->us[at], err);
        bound = bound && bound_time(run, r, &run->bound_us[at]);
    }
    if (rc == 0)
        rc = dtensor_allreduce(run->world, run->us, run->us, (size_t)iters,
                               DTENSOR_F64, DTENSOR_MAX, err);
    if (rc != 0)
        return rc;
    *row = (struct op_result){ .what = r->what, .bytes = r->bytes,
                               .flops = r->flops };
    stats_of(run->us, (size_t)iters, &row->us);
    if (bound) {
        stats_of(run->bound_us, (size_t)iters, &stats);
        row->bound_us = stats.p50;
    }
    return 0;
}

static int measure_all(struct op_run *run, struct dtensor_error *err)
{
    int rc = 0;

    if (run->rank == 0)
        op_report_header(run->opt, stdout);
    for (int i = 0; i < run->opt->ncases && rc == 0; i++) {
        struct op_ready ready;

        rc = op_ready_init(&ready, run->ctx, run->opt, run->opt->cases[i],
                           err);
        if (rc == 0)
            rc = measure_case(run, &ready, &run->rows[i], err);
        op_ready_fini(&ready);
        if (rc == 0 && run->rank == 0)
            op_report_row(run->opt, &run->rows[i], stdout);
    }
    return rc;
}

/* ------------------------------------------------------------------ all --- */

static int op_open(struct op_run *run, struct dtensor_error *err)
{
    const size_t iters = (size_t)run->opt->iters;
    int rc = dtensor_init(NULL, &run->ctx, err);

    if (rc == 0)
        rc = dtensor_mesh_find(run->ctx, "world", &run->world, err);
    if (rc != 0)
        return rc;
    dtensor_set_repro(run->ctx, run->opt->repro);
    run->rank = dtensor_rank(run->ctx);
    run->us = calloc(iters, sizeof run->us[0]);
    run->bound_us = calloc(iters, sizeof run->us[0]);
    run->rows = calloc((size_t)run->opt->ncases, sizeof run->rows[0]);
    if (!run->us || !run->bound_us || !run->rows)
        return session_fail(err, DTENSOR_ENOMEM, "no memory for the times of "
                            "%zu calls", iters);
    return 0;
}

/* Somebody else may have started the ranks: then there are as many as those. */
static int op_started(const struct dtensor_ctx *ctx, struct op_options *opt,
                      struct dtensor_error *err)
{
    const int n = dtensor_world_size(ctx);

    if ((opt->ranks > 1 || opt->products) && opt->ranks != n)
        return session_fail(err, DTENSOR_EINVAL, "%s: the job has %d rank%s "
                            "(%s)", opt->products ? "--products" : "--ranks",
                            n, n == 1 ? "" : "s", opt->products
                            ? "start one" : "leave --ranks out");
    opt->ranks = n;
    return 0;
}

static int op_rank(struct op_options *opt, struct dtensor_error *err)
{
    struct op_run run = { .opt = opt };
    int rc = op_open(&run, err);

    if (rc == 0)
        rc = op_started(run.ctx, opt, err);
    if (rc == 0 && opt->products)
        rc = op_products(run.ctx, opt, err);
    else if (rc == 0)
        rc = measure_all(&run, err);
    if (rc == 0 && run.rank == 0 && !opt->products)
        op_report_targets(opt, run.rows, stdout);
    if (rc == 0 && run.rank == 0 && opt->json &&
        !op_report_json(opt, run.rows))
        rc = session_fail(err, DTENSOR_ESYS, "--json %s: cannot write it",
                          opt->json);
    if (rc != 0 && run.ctx && !dtensor_should_report(run.ctx, err))
        err->text[0] = '\0';
    free(run.us);
    free(run.bound_us);
    free(run.rows);
    free(run.bound[0]);
    free(run.bound[1]);
    dtensor_fini(run.ctx);
    return rc;
}

int op_main(int argc, char *argv[])
{
    struct op_options opt;
    struct dtensor_error err = { 0 };
    char why[400];
    int code, rc;

    if (!op_options_parse(&opt, argc, argv, why, sizeof why)) {
        fprintf(stderr, "dtensor-bench op: %s\n"
                "Try 'dtensor-bench op --help' for more information.\n", why);
        free(opt.cases);
        return BENCH_USAGE;
    }
    if (opt.help) {
        op_options_help(stdout);
        return BENCH_OK;
    }
    if (opt.ranks > 1 && !getenv("DTN_RANK") && !getenv("SLURM_STEP_ID") &&
        launch_local((int)opt.ranks, &code) < 0) {
        free(opt.cases);
        return code;
    }
    rc = op_rank(&opt, &err);
    free(opt.cases);
    if (rc != 0 && err.text[0])
        fprintf(stderr, "dtensor-bench op: %s\n", err.text);
    return session_exit_code(rc);
}
