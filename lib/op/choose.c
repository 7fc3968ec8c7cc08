/* choose.c - the cheapest combination that an operator accepts
 *
 * Most calls find a combination that moves nothing, and then no cost is
 * computed.  Else all combinations are looked at twice: first for the one with
 * the least lower bound, whose cost is the limit; then for the cheapest, where
 * those with a lower bound above the limit are left out.  The cost of an input
 * that lies in one way is computed once.
 *
 * A shard is never made a term for an operator, nor one reduction another,
 * though a redistribute could: the output would be as large as the whole on
 * every rank.  Only an operator that works in place, and so has no choice, does
 * it.
 */
#include "op/choose.h"
#include "op/collective.h"
#include "op/words.h"
#include "base/error.h"
#include "cluster/cluster.h"
#include "job/ctx.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "redist/predict.h"
#include "dtensor.h"

#include <math.h>
#include <stdlib.h>

enum { MEMO_MAX = 4096 };         /* costs that are kept for one input        */

struct choosing {
    const struct dtn_options *options;           /* of the call               */
    const struct dtn_costs *costs;               /* how they are found        */
    struct dtn_chosen best;                      /* so far                    */
    bool found;                                  /* there is one              */
    double limit;                                /* the best costs no more    */
    double least;                                /* the least lower bound     */
    struct dtn_tuple guess;                     /* that has it               */
    /* For each kind of operand and option the first option that is the same
     * for this kind, and how many combinations these make; 0: too many.
     */
    unsigned char same[DTN_RULE_IN][DTENSOR_MAX_DIMS][DTN_OPTIONS_MAX];
    int nways[DTN_RULE_IN];                      /* entries of each memo      */
    struct known {
        double cost, least;                      /* < 0: not known            */
    } *memo;                                     /* [inputs][stride]; NULL:   */
                                                 /* none kept                 */
    int stride;                                  /* entries for one input     */
};

double dtn_cost_model(const void *arg, const struct dtensor_spec *src,
                      const struct dtensor_spec *dst)
{
    for (int m = 0; m < src->mesh->ndim; m++) {
        const struct dtensor_placement *a = &src->placement[m];
        const struct dtensor_placement *b = &dst->placement[m];

        if (b->kind == DTENSOR_PARTIAL && a->kind != DTENSOR_REPLICATE &&
            !dtn_placement_equal(a, b, src->mesh->size[m]))
            return HUGE_VAL;
    }
    return dtn_redist_predict(arg, src, dst);
}

static double model_least(const void *arg, const struct dtensor_spec *src,
                          const struct dtensor_spec *dst)
{
    return dtn_redist_predict_least(arg, src, dst);
}

static double model_allreduce(const void *arg, const struct dtensor_mesh *mesh,
                              unsigned dims, double bytes)
{
    return dtn_cost_allreduce(arg, mesh, dims, bytes);
}

void dtn_costs_model(const struct dtensor_mesh *mesh, struct dtn_cost *cost,
                     struct dtn_costs *costs)
{
    dtn_cost_init(mesh, cost);
    *costs = (struct dtn_costs){
        .cost = dtn_cost_model, .least = model_least,
        .allreduce = mesh->ctx->world.cluster->repro ? NULL : model_allreduce,
        .arg = cost };
}

/* ----------------------------------------------------------------- memo --- */

/* Over n ranks. */
static bool place_same(const struct dtn_option *a, const struct dtn_option *b,
                       int kind, int n)
{
    const struct dtn_row_place *p = &a->row->in[kind], *q = &b->row->in[kind];

    return p->lies == q->lies &&
           (p->lies != DTN_LIES_CUT ||
            (p->dim == q->dim && dtn_placement_equal(&a->cut, &b->cut, n))) &&
           (p->lies != DTN_LIES_TERM || p->op == q->op);
}

static int kind_of(const struct choosing *c, int i)
{
    const int nin = c->options->sig->nin;

    return i < nin ? i : nin - 1;
}

/* Number the ways in which a kind of operand lies. */
static void memo_classes(struct choosing *c, int kind)
{
    const struct dtn_options *options = c->options;

    c->nways[kind] = 1;
    for (int m = 0; m < options->ndim; m++) {
        const int n = options->sig->call->in[0].mesh->size[m];

        for (int k = 0; k < options->n[m]; k++) {
            int first = 0;

            while (!place_same(&options->option[m][first],
                               &options->option[m][k], kind, n))
                first++;
            c->same[kind][m][k] = (unsigned char)first;
        }
        if (c->nways[kind] <= MEMO_MAX)
            c->nways[kind] *= options->n[m];
    }
}

/* Without memory for it every cost is computed anew. */
static void memo_make(struct choosing *c)
{
    const int nin = c->options->sig->call->nin;

    for (int k = 0; k < c->options->sig->nin; k++) {
        memo_classes(c, k);
        if (c->stride < c->nways[k])
            c->stride = c->nways[k];
    }
    c->memo = c->stride > MEMO_MAX ? NULL
            : malloc((size_t)nin * (size_t)c->stride * sizeof c->memo[0]);
    for (int i = 0; c->memo && i < nin * c->stride; i++)
        c->memo[i] = (struct known){ -1, -1 };
}

static struct known *memo_at(const struct choosing *c,
                             const struct dtn_tuple *choice, int i)
{
    const int kind = kind_of(c, i);
    int at = 0;

    for (int m = 0; m < c->options->ndim; m++)
        at = at * c->options->n[m] + c->same[kind][m][choice->at[m]];
    return &c->memo[i * c->stride + at];
}

/* ---------------------------------------------------------------- costs --- */

static double input_cost(const struct dtn_options *options,
                         const struct dtn_tuple *choice, int i,
                         dtn_cost_f *cost, const void *arg)
{
    const struct dtensor_spec *src = &options->sig->call->in[i];
    struct dtensor_spec dst = *src;

    dtn_choice_input(options, choice, i, dst.placement);
    return cost(arg, src, &dst);
}

/* The cost of input i, or its lower bound. */
static double known_cost(const struct choosing *c,
                         const struct dtn_tuple *choice, int i, bool least)
{
    struct known *memo = c->memo ? memo_at(c, choice, i) : NULL;
    double *known = memo ? (least ? &memo->least : &memo->cost) : NULL, cost;

    if (known && *known >= 0)
        return *known;
    cost = input_cost(c->options, choice, i,
                      least ? c->costs->least : c->costs->cost, c->costs->arg);
    if (known)
        *known = cost;
    return cost;
}

static double sum_cost(const struct choosing *c,
                       const struct dtn_tuple *choice, bool least)
{
    double sum = dtn_collective_cost(c->options, choice, c->costs);

    for (int i = 0; i < c->options->sig->call->nin; i++)
        sum += known_cost(c, choice, i, least);
    return sum;
}

double dtn_choice_cost(const struct dtn_options *options,
                       const struct dtn_tuple *choice,
                       const struct dtn_costs *costs)
{
    double sum = dtn_collective_cost(options, choice, costs);

    for (int i = 0; i < options->sig->call->nin; i++)
        sum += input_cost(options, choice, i, costs->cost, costs->arg);
    return sum;
}

/* ------------------------------------------------------------- choosing --- */

static bool see_still(void *arg, const struct dtn_tuple *choice)
{
    struct choosing *c = arg;

    c->found = true;
    c->best = (struct dtn_chosen){ *choice, 0, "nothing has to be moved" };
    return true;
}

static bool see_least(void *arg, const struct dtn_tuple *choice)
{
    struct choosing *c = arg;
    const double sum = sum_cost(c, choice, true);

    if (sum < c->least) {
        c->least = sum;
        c->guess = *choice;
    }
    return true;
}

static bool see_cost(void *arg, const struct dtn_tuple *choice)
{
    struct choosing *c = arg;
    double sum = sum_cost(c, choice, true);

    if (sum > c->limit || (c->found && sum >= c->best.cost))
        return true;
    sum = dtn_collective_cost(c->options, choice, c->costs);
    for (int i = 0; i < c->options->sig->call->nin && sum <= c->limit; i++)
        sum += known_cost(c, choice, i, false);
    if (sum > c->limit || (c->found && sum >= c->best.cost))
        return true;
    c->found = true;
    c->limit = sum;
    c->best = (struct dtn_chosen){ *choice, sum,
                                   "no other combination costs less" };
    return true;
}

static int none_accepted(const struct dtn_options *options,
                         struct dtensor_error *err)
{
    const struct dtn_signature *sig = options->sig;

    if (sig->rule->flags & DTN_OP_INPLACE)
        return dtn_op_fail(sig->call, err, "it works in place, and input 0 "
                           "cannot stay as it lies (redistribute it before, or "
                           "take the operator without _)");
    if (sig->rule->flags & DTN_OP_STAYS)
        return dtn_op_fail(sig->call, err, "it moves nothing, and dimension %d "
                           "is cut (redistribute before)", sig->dim[0]);
    return dtn_op_fail(sig->call, err, "no placement of the inputs will do "
                       "(redistribute them to R)");
}

int dtn_choose_options(const struct dtn_options *options,
                       const struct dtn_costs *costs, struct dtn_chosen *chosen,
                       struct dtensor_error *err)
{
    struct choosing c = { .options = options, .costs = costs };

    dtn_choices_visit(options, true, see_still, &c);
    if (!c.found) {
        memo_make(&c);
        c.least = c.limit = HUGE_VAL;
        dtn_choices_visit(options, false, see_least, &c);
        if (c.least < HUGE_VAL)
            c.limit = sum_cost(&c, &c.guess, false);
        dtn_choices_visit(options, false, see_cost, &c);
        free(c.memo);
    }
    if (!c.found)
        return none_accepted(options, err);
    if (c.best.cost == HUGE_VAL)
        c.best.why = "nothing else leaves the first input as it lies";
    *chosen = c.best;
    return 0;
}
