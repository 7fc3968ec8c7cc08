/* choose.c - the cheapest combination that an operator accepts
 *
 * Most calls find a combination that moves nothing, and then no cost is
 * computed.  Else all combinations are put in a heap with a lower bound of what
 * they cost.  The first one has one more of its costs computed and goes back to
 * its new place, or leaves the heap if it has all of them, until no bound is
 * below the best of those.  The cost of an input that lies in one way is
 * computed once.
 */
#include "op/choose.h"
#include "op/collective.h"
#include "op/terms.h"
#include "op/words.h"
#include "base/error.h"
#include "cluster/cluster.h"
#include "job/ctx.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "redist/predict.h"
#include "dtensor.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

enum { MEMO_MAX = 4096 };         /* costs that are kept for one input        */
#define ROUNDING 1e-9             /* relative, of sums of costs               */

/* A combination that may be the cheapest. */
struct candidate {
    double bound;                 /* it costs no less                         */
    double terms;                 /* part of it for terms; < 0: not asked yet */
    int order;                    /* its place among all                      */
    struct dtn_tuple choice;      /* the options                              */
};

struct choosing {
    const struct dtn_options *options;           /* of the call               */
    const struct dtn_costs *costs;               /* how they are found        */
    struct dtn_chosen best;                      /* one that moves nothing    */
    bool found;                                  /* there is one              */
    struct candidate *heap;                      /* [n] none is below its     */
                                                 /* parent, (i - 1) / 2       */
    int n, room;                                 /* entries; there is room    */
    bool failed;                                 /* no memory for more        */
    /* For each kind of operand and option what it adds to the index of the way
     * in which the operand lies, and how many ways there are.
     */
    short adds[DTN_RULE_IN][DTENSOR_MAX_DIMS][DTN_OPTIONS_MAX];
    int nways[DTN_RULE_IN];                      /* entries of each memo      */
    struct known {
        double ns;                               /* the cost, or a bound of   */
                                                 /* it; < 0: not even that    */
        bool found;                              /* it is the cost            */
    } *memo;                                     /* [inputs][stride]; NULL:   */
                                                 /* none kept                 */
    int stride;                                  /* entries for one input     */
};

static double model_cost(const void *arg, const struct dtensor_spec *src,
                         const struct dtensor_spec *dst, double limit)
{
    return dtn_redist_predict_below(arg, src, dst, limit);
}

static double model_least(const void *arg, const struct dtensor_spec *src,
                          const struct dtensor_placement dst[])
{
    return dtn_redist_predict_least(arg, src, src->placement, dst);
}

static double model_allreduce(const void *arg, const struct dtensor_mesh *mesh,
                              unsigned dims, double bytes)
{
    return dtn_cost_allreduce(arg, mesh, dims, bytes);
}

void dtn_costs_model(const struct dtensor_mesh *mesh,
                     struct dtn_costs_of *model, struct dtn_costs *costs)
{
    const bool repro = mesh->ctx->world.cluster->repro;

    dtn_cost_init(mesh, &model->cost);
    model->kept.n = 0;
    model->kept.steps = false;
    model->cost.kept = &model->kept;
    *costs = (struct dtn_costs){
        .cost = model_cost, .least = model_least,
        .allreduce = repro ? NULL : model_allreduce,
        .terms = model_least, .arg = &model->cost,
        .whole = repro };
}

/* ----------------------------------------------------------------- memo --- */

/* Over n ranks. */
static bool place_same(const struct dtn_option *a, const struct dtn_option *b,
                       int kind, int n)
{
    const struct dtn_row_place *p = &a->row->in[kind], *q = &b->row->in[kind];

    return p->kind == q->kind &&
           (p->kind != DTENSOR_SHARD ||
            (p->dim == q->dim &&
             dtn_placement_equal(&a->shard, &b->shard, n))) &&
           (p->kind != DTENSOR_PARTIAL || p->op == q->op);
}

/* Number the ways in which a kind of operand lies: options that are the same
 * for it have one number.
 */
static void memo_classes(struct choosing *c, int kind)
{
    const struct dtn_options *options = c->options;
    int ways = 1;

    for (int m = 0; m < options->ndim && ways <= MEMO_MAX; m++) {
        const int n = options->sig->call->in[0].mesh->size[m];
        short *adds = c->adds[kind][m];
        int classes = 0;

        for (int k = 0; k < options->n[m]; k++) {
            int first = 0;

            while (!place_same(&options->option[m][first],
                               &options->option[m][k], kind, n))
                first++;
            adds[k] = first < k ? adds[first] : (short)(classes++ * ways);
        }
        ways *= classes;
    }
    c->nways[kind] = ways;
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
        c->memo[i] = (struct known){ .ns = -1 };
}

/* ---------------------------------------------------------------- costs --- */

static double input_cost(const struct dtn_options *options,
                         const struct dtn_tuple *choice, int i,
                         const struct dtn_costs *costs, double limit)
{
    const struct dtensor_spec *src = &options->sig->call->in[i];
    struct dtensor_spec dst = *src;

    dtn_choice_input(options, choice, i, dst.placement);
    return costs->cost(costs->arg, src, &dst, limit);
}

static double input_least(const struct dtn_options *options,
                          const struct dtn_tuple *choice, int i,
                          const struct dtn_costs *costs)
{
    struct dtensor_placement dst[DTENSOR_MAX_DIMS];

    dtn_choice_input(options, choice, i, dst);
    return costs->least(costs->arg, &options->sig->call->in[i], dst);
}

/* What is known of the cost of input i: at least a bound. */
static struct known *known_at(const struct choosing *c,
                              const struct dtn_tuple *choice, int i)
{
    const int kind = dtn_kind_of(c->options->sig, i);
    struct known *known;
    int at = i * c->stride;

    for (int m = 0; m < c->options->ndim; m++)
        at += c->adds[kind][m][choice->at[m]];
    known = &c->memo[at];
    if (known->ns < 0)
        known->ns = input_least(c->options, choice, i, c->costs);
    return known;
}

/* A lower bound of what a choice costs, without terms; *what is the input with
 * the lowest bound whose cost is not known yet, or -1.
 */
static double known_sum(const struct choosing *c,
                        const struct dtn_tuple *choice, int *what)
{
    const int nin = c->options->sig->call->nin;
    double sum = !c->options->reduces ? 0
               : dtn_collective_cost(c->options, choice, c->costs);
    double lowest = HUGE_VAL;

    *what = -1;
    for (int i = 0; i < nin; i++) {
        const struct known *known;

        if (!c->memo) {
            sum += input_cost(c->options, choice, i, c->costs, HUGE_VAL);
            continue;
        }
        known = known_at(c, choice, i);
        sum += known->ns;
        if (!known->found && known->ns <= lowest) {
            lowest = known->ns;
            *what = i;
        }
    }
    return sum;
}

double dtn_choice_cost(const struct dtn_options *options,
                       const struct dtn_tuple *choice,
                       const struct dtn_costs *costs)
{
    double sum = dtn_collective_cost(options, choice, costs);

    for (int m = 0; m < options->ndim; m++)
        if (options->option[m][choice->at[m]].never)
            return HUGE_VAL;
    for (int i = 0; i < options->sig->call->nin; i++)
        sum += input_cost(options, choice, i, costs, HUGE_VAL);
    return sum + dtn_terms_cost(options, choice, costs);
}

/* ------------------------------------------------------------- choosing --- */

static bool see_still(void *arg, const struct dtn_tuple *choice)
{
    struct choosing *c = arg;

    c->found = true;
    c->best = (struct dtn_chosen){ .choice = *choice,
                                   .why = "nothing has to be moved" };
    return true;
}

static bool see_first(void *arg, const struct dtn_tuple *choice)
{
    struct choosing *c = arg;

    c->found = true;
    c->best = (struct dtn_chosen){ .choice = *choice, .cost = HUGE_VAL,
                                   .why = "nothing else keeps the placement of "
                                          "the first input" };
    return false;
}

static bool see_candidate(void *arg, const struct dtn_tuple *choice)
{
    struct choosing *c = arg;
    int what;

    if (c->n == c->room) {
        const int room = c->room ? 4 * c->room : 256;
        struct candidate *heap = realloc(c->heap, (size_t)room * sizeof *heap);

        c->failed = !heap;
        if (!heap)
            return false;
        c->heap = heap;
        c->room = room;
    }
    c->heap[c->n] = (struct candidate){ known_sum(c, choice, &what),
                                        c->options->makes ? -1 : 0, c->n,
                                        *choice };
    c->n++;
    return true;
}

/* Of equal ones the first in order. */
static bool before(const struct candidate *a, const struct candidate *b)
{
    return a->bound < b->bound || (a->bound == b->bound && a->order < b->order);
}

/* Entry i may be above entries under it. */
static void heap_down(struct choosing *c, int i)
{
    const struct candidate moved = c->heap[i];
    int child;

    while ((child = 2 * i + 1) < c->n) {
        child += child + 1 < c->n &&
                 before(&c->heap[child + 1], &c->heap[child]);
        if (!before(&c->heap[child], &moved))
            break;
        c->heap[i] = c->heap[child];
        i = child;
    }
    c->heap[i] = moved;
}

static void heap_remove(struct choosing *c)
{
    c->heap[0] = c->heap[--c->n];
    if (c->n > 0)
        heap_down(c, 0);
}

/* Find the cost of input i, or that it is `slack` or more above its bound. */
static void known_find(struct choosing *c, const struct dtn_tuple *choice,
                       int i, double slack)
{
    struct known *known = known_at(c, choice, i);
    const double limit = known->ns + slack;
    const double cost = input_cost(c->options, choice, i, c->costs, limit);

    known->found = cost < limit || limit == HUGE_VAL;
    known->ns = known->found ? cost : limit;
}

/* Add the terms of the first one, which may then be behind another. */
static void add_terms(struct choosing *c)
{
    struct candidate *first = c->heap;

    first->terms = dtn_terms_cost(c->options, &first->choice, c->costs);
    first->bound += first->terms;
    if (first->terms > 0)
        heap_down(c, 0);
}

/* Compute costs of the first one until it is behind another; with all of them,
 * it may be the best.  Of the very first one all are computed: what is above
 * the best one need not be known.
 */
static void look_closer(struct choosing *c, struct candidate *best)
{
    const bool all = best->bound == HUGE_VAL || best->bound == 0;
    struct candidate *first = c->heap;
    int what;
    double sum = known_sum(c, &first->choice, &what) + first->terms;

    while (what >= 0 && (all || sum <= first->bound)) {
        known_find(c, &first->choice, what,
                   all ? HUGE_VAL : best->bound * (1 + 2 * ROUNDING) - sum);
        sum = known_sum(c, &first->choice, &what) + first->terms;
    }
    first->bound = sum;
    if (what >= 0) {
        heap_down(c, 0);
    } else {
        if (before(first, best))
            *best = *first;
        heap_remove(c);
    }
}

/* Until no other can be below the best one.  A bound may be above its cost by
 * rounding.
 */
static void choose_cheapest(struct choosing *c)
{
    struct candidate best = { .bound = HUGE_VAL, .order = INT_MAX };
    int what;

    for (int i = c->n / 2 - 1; i >= 0; i--)
        heap_down(c, i);
    while (c->n > 0 && c->heap->bound <= best.bound * (1 + ROUNDING))
        if (c->heap->terms < 0)
            add_terms(c);
        else
            look_closer(c, &best);
    c->found = true;
    c->best = (struct dtn_chosen){ .choice = best.choice,
                                   .cost = known_sum(c, &best.choice, &what),
                                   .terms = best.terms,
                                   .why = "no other combination costs less" };
}

/* Others accept inputs that are all whole. */
static int none_accepted(const struct dtn_options *options,
                         struct dtensor_error *err)
{
    const struct dtn_signature *sig = options->sig;

    if (sig->rule->flags & DTN_RULE_INPLACE)
        return dtn_op_fail(sig->call, err, "it works in place, and input 0 "
                           "cannot keep its placement (redistribute it before, "
                           "or take the operator without _)");
    return dtn_op_fail(sig->call, err, "it moves nothing, and dimension %d is "
                       "sharded (redistribute before)", sig->dim[0]);
}

int dtn_choose_options(const struct dtn_options *options,
                       const struct dtn_costs *costs, struct dtn_chosen *chosen,
                       struct dtensor_error *err)
{
    struct choosing c;                 /* large: only what is used is set     */

    c.options = options;
    c.costs = costs;
    c.heap = NULL;
    c.memo = NULL;
    c.n = c.room = c.stride = 0;
    c.found = c.failed = false;
    dtn_choices_visit(options, DTN_STILL, see_still, &c);
    if (!c.found) {
        memo_make(&c);
        dtn_choices_visit(options, DTN_USUAL, see_candidate, &c);
        if (c.n > 0 && !c.failed)
            choose_cheapest(&c);
        free(c.memo);
        free(c.heap);
    }
    if (c.failed)
        return dtn_fail_nomem(err, "op", (size_t)c.room * 4 *
                              sizeof c.heap[0]);
    if (!c.found)
        dtn_choices_visit(options, DTN_ALL, see_first, &c);
    if (!c.found)
        return none_accepted(options, err);
    *chosen = c.best;
    return 0;
}
