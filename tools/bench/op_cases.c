/* op_cases.c - what dtensor-bench op measures, and the tensors for it
 *
 * The letters of the inputs, for --shape 1024x512:
 *
 *     x  1024 x 512, as --first says          t  512 x 1024, as --others says
 *     y  1024 x 512, as --others says         v  512
 *     s  8 x 8, whole: a small tensor         i  1024 indices of a row
 *     e  64 x 64, to be decided on            c  1024 indices of a column
 */
#include "tools/bench/bench.h"
#include "tools/bench/op.h"
#include "dtensor.h"

#include <string.h>

#define POINTWISE(name, inputs, args) { name, name, inputs, args, OP_MOVES, 0 }

const struct op_case op_cases[] = {
    { "infer-hit", "add", "ee", "", OP_FINDS, false },
    { "infer-miss", "add", "ee", "", OP_DECIDES, false },
    { "call-into", "add", "ss", "", OP_CALLS, false },
    { "call", "add", "ss", "", OP_CALLS, true },
    { "matmul", "matmul", "xt", "", OP_MULTIPLIES, false },
    { "linear", "linear", "xy", "", OP_MULTIPLIES, false },
    POINTWISE("add", "xy", ""),
    POINTWISE("mul", "xy", ""),
    POINTWISE("relu", "x", ""),
    POINTWISE("exp", "x", ""),
    POINTWISE("log", "x", ""),
    POINTWISE("tanh", "x", ""),
    POINTWISE("sigmoid", "x", ""),
    POINTWISE("gelu", "x", ""),
    POINTWISE("silu", "x", ""),
    POINTWISE("softplus", "x", ""),
    POINTWISE("erf", "x", ""),
    POINTWISE("sin", "x", ""),
    POINTWISE("cos", "x", ""),
    POINTWISE("sqrt", "x", ""),
    POINTWISE("cast", "x", "dtype=bf16"),
    { "sum", "sum", "x", "dim=1", OP_MOVES, false },
    { "sum-first", "sum", "x", "dim=0", OP_MOVES, false },
    { "amax", "amax", "x", "dim=1", OP_MOVES, false },
    { "argmax", "argmax", "x", "dim=1", OP_MOVES, false },
    { "softmax", "softmax", "x", "dim=1", OP_MOVES, false },
    { "log_softmax", "log_softmax", "x", "dim=1", OP_MOVES, false },
    { "layer_norm", "layer_norm", "xvv", "count=1", OP_MOVES, false },
    { "rms_norm", "rms_norm", "xv", "count=1", OP_MOVES, false },
    { "cross_entropy", "cross_entropy", "xc", "reduction=mean", OP_MOVES,
      false },
    { "embedding", "embedding", "xi", "", OP_MOVES, false },
};
const int op_ncases = BENCH_COUNT(op_cases);

/* ---------------------------------------------------------------- specs --- */

static int input_spec(const struct op_options *opt, char letter,
                      struct dtensor_ctx *ctx, struct dtensor_spec *spec,
                      struct dtensor_error *err)
{
    const int64_t rows = opt->shape[0], columns = opt->shape[1];
    const bool index = letter == 'i' || letter == 'c';
    const int64_t small = letter == 's' ? 8 : 64;
    int64_t shape[2] = { rows, columns };
    const char *places = "R";
    int ndim = 2;

    switch (letter) {
    case 'x': places = opt->first; break;
    case 'y': places = opt->others; break;
    case 't': places = opt->others, shape[0] = columns, shape[1] = rows; break;
    case 's': case 'e': shape[0] = shape[1] = small; break;
    default: ndim = 1, shape[0] = letter == 'v' ? columns : rows; break;
    }
    return dtensor_spec_init(spec, ctx, "world", places, index ? DTENSOR_I64
                             : opt->dtype, ndim, shape, err);
}

/* ---------------------------------------------------------------- ready --- */

/* Positive, so that it has a logarithm and no loop ends early for NaNs. */
static int input_fill(struct dtensor *t, char letter,
                      const struct op_options *opt, struct dtensor_error *err)
{
    struct dtensor_generator *gen = NULL;
    int rc = dtensor_generator_create(1, &gen, err);

    if (rc == 0 && (letter == 'i' || letter == 'c'))
        rc = dtensor_fill_integers(t, 0, opt->shape[letter == 'c'], gen, err);
    else if (rc == 0)
        rc = dtensor_fill_uniform(t, 0.25, 4, gen, err);
    dtensor_generator_destroy(gen);
    return rc;
}

static int ready_inputs(struct op_ready *r, struct dtensor_ctx *ctx,
                        const struct op_options *opt,
                        struct dtensor_error *err)
{
    const char *letters = r->what->inputs;
    int rc = 0;

    for (r->nin = 0; letters[r->nin] && rc == 0; r->nin++) {
        const int i = r->nin;

        rc = input_spec(opt, letters[i], ctx, &r->spec[i], err);
        if (rc == 0)
            rc = dtensor_zeros(&r->spec[i], &r->in[i], err);
        if (rc == 0)
            rc = input_fill(r->in[i], letters[i], opt, err);
        if (rc == 0)
            r->bytes += (double)dtensor_local_bytes(r->in[i]);
    }
    return rc;
}

int op_ready_init(struct op_ready *r, struct dtensor_ctx *ctx,
                  const struct op_options *opt, const struct op_case *what,
                  struct dtensor_error *err)
{
    int rc;

    *r = (struct op_ready){ .what = what };
    rc = dtensor_op_args_parse(what->args, &r->args, err);
    if (rc == 0)
        rc = ready_inputs(r, ctx, opt, err);
    if (rc == 0)
        rc = dtensor_op(what->op, r->nin, (const struct dtensor *const *)r->in,
                        &r->args, 1, &r->out, err);
    if (rc != 0)
        return rc;
    r->bytes += (double)dtensor_local_bytes(r->out);
    if (what->kind == OP_MULTIPLIES)
        r->flops = 2.0 * (double)opt->shape[0] * (double)opt->shape[0] *
                   (double)opt->shape[1] / (double)dtensor_world_size(ctx);
    return 0;
}

void op_ready_fini(struct op_ready *r)
{
    for (int i = 0; i < r->nin; i++)
        dtensor_destroy(r->in[i]);
    dtensor_destroy(r->out);
}
