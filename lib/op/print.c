/* print.c - what was decided for an operator, and from what
 *
 *   matmul of 16x8 f32 S(0), 8x12 f32 S(1)
 *
 *   along one mesh dimension
 *     R, R -> R
 *     S(1), S(0) -> P(sum)
 *     ...
 *   together, the cheapest of 8
 *          us  inputs -> outputs
 *        1.32  S(0); R -> S(0)
 *        2.64  R; R -> R
 *        2.70  S(1); S(0) -> P(sum)  with 0.66 to reduce what becomes terms
 *
 *   takes S(0); R -> S(0), 1.32 us: no other combination costs less
 */
#include "op/bound.h"
#include "op/cache.h"
#include "op/choose.h"
#include "op/infer.h"
#include "op/kernels.h"
#include "op/terms.h"
#include "op/words.h"
#include "base/error.h"
#include "base/units.h"
#include "job/ctx.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/predict.h"
#include "dtensor.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 8 };               /* combinations that are printed            */
enum { SEEN_MAX = 4096 };         /* of which the costs are computed          */

/* The cheapest combinations. */
struct cheapest {
    const struct dtn_options *options;           /* of the call               */
    const struct dtn_costs *costs;               /* how they are found        */
    int seen;                                    /* combinations              */
    int n;                                       /* entries of choice         */
    struct dtn_tuple choice[SHOWN];             /* the cheapest first        */
    double cost[SHOWN];                          /* of each, in ns            */
};

static bool see_cheapest(void *arg, const struct dtn_tuple *choice)
{
    struct cheapest *c = arg;
    const double cost = dtn_choice_cost(c->options, choice, c->costs);
    int at = c->n;

    while (at > 0 && cost < c->cost[at - 1])
        at--;
    if (at < SHOWN) {
        const int last = c->n < SHOWN ? c->n++ : SHOWN - 1;

        memmove(&c->choice[at + 1], &c->choice[at],
                (size_t)(last - at) * sizeof c->choice[0]);
        memmove(&c->cost[at + 1], &c->cost[at],
                (size_t)(last - at) * sizeof c->cost[0]);
        c->choice[at] = *choice;
        c->cost[at] = cost;
    }
    return ++c->seen < SEEN_MAX;
}

/* "S(0), R -> S(0)"; of a long list only the first. */
static void print_places(const struct dtensor_op_call *call,
                         const struct dtensor_spec want[],
                         const struct dtensor_spec out[], int nout,
                         FILE *stream)
{
    char text[200];

    for (int i = 0; i < call->nin && i < DTN_RULE_IN; i++) {
        dtensor_placements_format(want[i].mesh, want[i].placement, text,
                                  sizeof text);
        fprintf(stream, "%s%s", i ? "; " : "", text);
    }
    fputs(" -> ", stream);
    for (int i = 0; i < nout && i < DTN_RULE_OUT; i++) {
        dtensor_placements_format(out[i].mesh, out[i].placement, text,
                                  sizeof text);
        fprintf(stream, "%s%s", i ? "; " : "", text);
    }
}

static void print_choice(const struct cheapest *c, int k, FILE *stream)
{
    const struct dtn_signature *sig = c->options->sig;
    struct dtensor_spec want[DTN_RULE_IN], out[DTN_RULE_OUT];
    const double terms = dtn_terms_cost(c->options, &c->choice[k], c->costs);

    for (int i = 0; i < sig->nin; i++) {
        want[i] = sig->call->in[i];
        dtn_choice_input(c->options, &c->choice[k], i, want[i].placement);
    }
    for (int i = 0; i < sig->nout; i++) {
        out[i] = sig->call->in[0];
        dtn_choice_output(c->options, &c->choice[k], i, out[i].placement);
    }
    if (c->cost[k] == HUGE_VAL)
        fprintf(stream, "%10s  ", "never");
    else
        fprintf(stream, "%10.2f  ", c->cost[k] / 1e3);
    print_places(&(struct dtensor_op_call){ .nin = sig->nin }, want, out,
                 sig->nout, stream);
    if (terms > 0 && c->cost[k] < HUGE_VAL)
        fprintf(stream, "  with %.2f to reduce what becomes terms",
                terms / 1e3);
    fputc('\n', stream);
}

/* The rows, and the cheapest of their combinations. */
static int print_rows(const struct dtensor_op_call *call,
                      const struct dtn_rule *rule, FILE *stream,
                      struct dtensor_error *err)
{
    struct dtn_signature sig;
    struct dtn_rowset rows;
    struct dtn_options *options;
    struct dtn_costs_of *model = malloc(sizeof *model);    /* 40 KiB         */
    struct dtn_costs costs;
    struct cheapest c = { .costs = &costs };
    char text[200];
    int rc;

    if (!model)
        return dtn_fail_nomem(err, "op", sizeof *model);
    dtn_costs_model(call->in[0].mesh, model, &costs);
    rc = dtn_infer_options(call, rule, &costs, &sig, &rows, &options, err);
    if (rc != 0) {
        free(model);
        return rc;
    }
    fputs("\nalong one mesh dimension\n", stream);
    for (int i = 0; i < rows.n; i++)
        fprintf(stream, "  %s\n", dtn_row_format(&sig, &rows.row[i], text,
                                                 sizeof text));
    c.options = options;
    dtn_choices_visit(options, DTN_ALL, see_cheapest, &c);
    fprintf(stream, "\ntogether, the cheapest of %d%s\n%10s  inputs -> "
            "outputs\n", c.seen, c.seen == SEEN_MAX ? " or more" : "", "us");
    for (int k = 0; k < c.n; k++)
        print_choice(&c, k, stream);
    free(options);
    free(model);
    return 0;
}

static void print_taken(const struct dtn_decision *d, size_t scratch,
                        FILE *stream)
{
    const struct dtn_inferred *inferred = &d->inferred;
    char shape[170], size[40];

    fputs("\ntakes ", stream);
    print_places(&d->call, inferred->want, inferred->out, inferred->nout,
                 stream);
    fprintf(stream, ", %.2f us: %s\n", inferred->cost / 1e3, inferred->why);
    for (int i = 0; i < d->call.nin; i++)
        if (!dtn_spec_equal(&d->in[i], &inferred->want[i]))
            fprintf(stream, "  input %d is redistributed\n", i);
    for (int i = 0; i < inferred->nout; i++)
        fprintf(stream, "  output %d is %s %s\n", i, dtn_shape_words(
                    inferred->out[i].ndim, inferred->out[i].shape, shape,
                    sizeof shape),
                dtensor_dtype_name(inferred->out[i].dtype));
    if (scratch > 0)
        fprintf(stream, "  works with %s of memory on rank %d\n",
                dtn_format_size(scratch, size, sizeof size),
                d->in[0].mesh->ctx->world.rank);
    fprintf(stream, "  on a GPU %s\n", dtn_op_infers_kernels(d)
            ? "its kernels compute it" : "the CPU computes it, on copies");
}

int dtensor_op_print(const struct dtensor_op_call *call, FILE *stream,
                     struct dtensor_error *err)
{
    struct dtn_decision *d;
    struct dtn_op_key key;
    const struct dtn_rule *rule;
    char words[600];
    size_t scratch = 0;
    int rc;

    if (!call || !stream)
        return dtn_fail(err, DTENSOR_EINVAL, "op: %s is NULL",
                        call ? "stream" : "call");
    key = (struct dtn_op_key){ call->op, call->nin, call->in, NULL,
                               &call->args };
    rc = dtn_decide(&key, &d, err);
    if (rc == 0)
        rc = dtn_rule_of(call, &rule, err);
    if (rc == 0)
        rc = dtn_bound_bytes(d, &scratch, err);
    if (rc != 0)
        return rc;
    fprintf(stream, "%s\n", dtn_op_words(call, words, sizeof words));
    if (rule->engine != DTN_BY_VIEW && rule->engine != DTN_BY_STACK)
        rc = print_rows(call, rule, stream, err);
    if (rc != 0)
        return rc;
    print_taken(d, scratch, stream);
    if (fflush(stream) != 0 || ferror(stream))
        return dtn_fail_sys(err, errno ? errno : EIO, "op: cannot write: %m");
    return 0;
}
