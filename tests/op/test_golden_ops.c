/* test_golden_ops.c - decisions, compared with a real PyTorch's
 *
 * tests/golden/ops.txt has what PyTorch chose for 2,122 calls of 91 operators,
 * ops_other.txt and ops_any.txt for 739 others that nobody looked at before.
 * Here each is decided again: with PyTorch's idea of costs the placements have
 * to be the same, and with ours what was chosen must not cost more than
 * PyTorch's choice.  Calls that PyTorch refuses or does wrong are counted and
 * told apart.  DTN_OPS names another table of that form.
 *
 * Without this test, a rule could lack a row or have one too many, and calls
 * would move more than needed or give wrong sums.
 */
#include "op/choose.h"
#include "op/infer.h"
#include "redist/cost.h"
#include "redist/predict.h"
#include "dtensor.h"
#include "tests/op/golden_call.h"
#include "tests/op/torch_cost.h"
#include "tests/op/view_exact.h"
#include "tests/redist/plan_of.h"
#include "tests/support/golden.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int rows;                     /* compared                                 */
    int same;                     /* placements as PyTorch's, by its costs    */
    int costs;                    /* and the cost that PyTorch computed       */
    int cheaper;                  /* others, that cost less by its costs      */
    int different;                /* others                                   */
    int refused;                  /* by both                                  */
    int allowed;                  /* refused by PyTorch only                  */
    int stricter;                 /* refused here only                        */
    int wrong;                    /* PyTorch's result is wrong; not compared  */
    int dearer;                   /* by our costs: ours more than PyTorch's   */
    int saved;                    /* less                                     */
    int bound;                    /* lower bounds above the cost              */
    int unknown;                  /* operators that are not here              */
} n;

static void tell(const struct golden *table, const char *what, const char *got)
{
    static int told;

    if (told++ < 40)
        note("%s: %s: %s", what, table->line, got);
}

/* Are the placements those of the line?  Outputs that we do not have, and those
 * that are no tensors, are not compared.
 */
static bool agrees(const struct golden_call *g, const struct dtn_inferred *got,
                   char *text, size_t size)
{
    bool same = true;
    size_t at = 0;
    char word[120];

    for (int i = 0; i < g->call.nin; i++) {
        dtensor_placements_format(g->in[0].mesh, got->want[i].placement, word,
                                  sizeof word);
        same &= strcmp(word, g->want[i]) == 0;
        at += (size_t)snprintf(text + at, size - at, "%s ", word);
    }
    at += (size_t)snprintf(text + at, size - at, "=");
    for (int i = 0; i < got->nout && i < g->nout && at + 130 < size; i++) {
        dtensor_placements_format(g->in[0].mesh, got->out[i].placement, word,
                                  sizeof word);
        same &= strcmp(g->out[i], "-") == 0 || strcmp(word, g->out[i]) == 0;
        at += (size_t)snprintf(text + at, size - at, " %s", word);
    }
    return same;
}

/* Is it a view whose output, as PyTorch has it, is not what the ranks hold? */
static bool view_wrong(const struct golden_call *g)
{
    struct dtensor_spec want = g->in[0], out = g->in[0];

    if ((strcmp(g->call.op, "view") != 0 &&
         strcmp(g->call.op, "reshape") != 0) || g->refused)
        return false;
    out.ndim = g->call.args.ndim;
    memcpy(out.shape, g->call.args.shape, sizeof out.shape);
    if (dtensor_placements_parse(want.mesh, g->want[0], want.ndim,
                                 want.placement, NULL) != 0 ||
        dtensor_placements_parse(out.mesh, g->out[0], out.ndim, out.placement,
                                 NULL) != 0)
        abort();
    return !view_exact(&want, &out);
}

static void compare_torch(const struct golden *table,
                          const struct golden_call *g)
{
    static const struct dtn_costs torch = { .cost = torch_cost,
                                            .least = torch_cost_least };
    struct dtn_inferred got;
    struct dtensor_error err;
    char text[2000];

    if (dtn_infer(&g->call, &torch, &got, &err) != 0) {
        n.refused += g->refused != NULL;
        n.stricter += !g->refused;
        if (!g->refused)
            tell(table, "refused here", err.text);
        return;
    }
    if (g->refused) {
        n.allowed++;
        tell(table, "allowed", "");
    } else if (agrees(g, &got, text, sizeof text)) {
        n.same++;
        if (fabs(got.cost - g->us) < 2e-3 || got.cost == HUGE_VAL)
            n.costs++;
        else
            tell(table, "cost", text);
    } else if (got.cost < g->us - 2e-3) {
        n.cheaper++;
        tell(table, "cheaper", text);
    } else {
        n.different++;
        tell(table, "different", text);
    }
    free(got.want);
}

/* Does PyTorch's choice make terms along mesh dimension m, though no input is
 * one, and the inputs that are sharded do not all stay?
 */
static bool makes_terms(const struct golden_call *g,
                        const struct dtensor_spec *out, int m)
{
    bool stays = false, moves = false;

    for (int i = 0; i < g->call.nin; i++) {
        const struct dtensor_placement *p = &g->in[i].placement[m];
        struct dtensor_placement to[DTENSOR_MAX_DIMS];

        if (dtensor_placements_parse(out->mesh, g->want[i], g->in[i].ndim, to,
                                     NULL) != 0)
            abort();
        if (p->kind == DTENSOR_PARTIAL)
            return false;
        if (p->kind == DTENSOR_REPLICATE)
            continue;
        stays |= to[m].kind == p->kind && to[m].dim == p->dim;
        moves |= to[m].kind != p->kind || to[m].dim != p->dim;
    }
    return out->placement[m].kind == DTENSOR_PARTIAL && (moves || !stays);
}

/* Elements of a rank's part along dimension d. */
static double part_size(const struct dtensor_spec *spec, int d)
{
    double size = (double)spec->shape[d];

    for (int m = 0; m < dtensor_mesh_ndim(spec->mesh); m++)
        if ((spec->placement[m].kind == DTENSOR_SHARD ||
             spec->placement[m].kind == DTENSOR_STRIDED) &&
            spec->placement[m].dim == d)
            size /= dtensor_mesh_dim_size(spec->mesh, m);
    return size;
}

/* The least that it takes to reduce such terms of an output, to shards of the
 * longest dimension, or to replicas of a number.
 */
static double terms_ns(const struct golden_call *g,
                       const struct dtensor_spec *out,
                       const struct dtn_cost *cost)
{
    struct dtensor_placement to = { .kind = DTENSOR_REPLICATE };
    struct dtensor_spec reduced = *out;
    double longest = 1;

    for (int d = 0; d < out->ndim; d++)
        if (part_size(out, d) > longest) {
            longest = part_size(out, d);
            to = (struct dtensor_placement){ .kind = DTENSOR_SHARD, .dim = d };
        }
    for (int m = 0; m < dtensor_mesh_ndim(out->mesh); m++)
        if (makes_terms(g, out, m))
            reduced.placement[m] = to;
    return dtn_redist_predict_least(cost, out, out->placement,
                                    reduced.placement);
}

/* What PyTorch chose costs this much by our model. */
static double theirs_ns(const struct golden_call *g,
                        const struct dtn_inferred *got,
                        const struct dtn_cost *cost)
{
    double ns = 0;

    for (int i = 0; i < g->call.nin; i++) {
        struct dtensor_spec want = g->in[i];
        double least, predicted;

        if (dtensor_placements_parse(want.mesh, g->want[i], want.ndim,
                                     want.placement, NULL) != 0)
            abort();
        least = dtn_redist_predict_least(cost, &want, g->in[i].placement,
                                         want.placement);
        predicted = dtn_redist_predict(cost, &g->in[i], &want);
        ns += predicted;
        if (least > predicted * (1 + 1e-9) && n.bound++ < 5)
            note("bound %g above %g of %s", least, predicted, g->want[i]);
    }
    for (int i = 0; i < got->nout && i < g->nout; i++) {
        struct dtensor_spec out = got->out[i];

        if (strcmp(g->out[i], "-") == 0)
            continue;
        if (dtensor_placements_parse(out.mesh, g->out[i], out.ndim,
                                     out.placement, NULL) != 0)
            abort();
        ns += terms_ns(g, &out, cost);
    }
    return ns;
}

static void compare_ours(const struct golden *table,
                         const struct golden_call *g)
{
    struct dtn_inferred got;
    struct dtn_cost cost;
    double ns;

    dtn_cost_init(g->in[0].mesh, &cost);
    if (g->refused || dtn_infer(&g->call, NULL, &got, NULL) != 0)
        return;
    ns = theirs_ns(g, &got, &cost);
    n.saved += got.cost + got.terms < ns * (1 - 1e-9);
    if (got.cost + got.terms > ns * (1 + 1e-9)) {
        n.dearer++;
        tell(table, "dearer", got.why);
    }
    free(got.want);
}

static void table_compare(struct dtensor_ctx *ctx, const char *name)
{
    struct golden table;
    struct golden_call g;

    memset(&n, 0, sizeof n);
    if (!ok(golden_open(&table, name), "%s can be read", name))
        return;
    while (golden_next(&table)) {
        if (!golden_call_read(&table, ctx, &g)) {
            n.unknown++;
            continue;
        }
        n.rows++;
        g.wrong |= view_wrong(&g);
        n.wrong += g.wrong;
        if (g.wrong)
            continue;
        compare_torch(&table, &g);
        compare_ours(&table, &g);
    }
    ok(n.rows > 0 && n.different == 0 && n.stricter == 0, "%d calls: %d have "
       "the placements of %s by its costs, %d others cost less, %d differ; %d "
       "are refused by both, %d by PyTorch only, %d here only; %d are wrong in "
       "PyTorch; %d are not here", n.rows, n.same, table.origin, n.cheaper,
       n.different, n.refused, n.allowed, n.stricter, n.wrong, n.unknown);
    ok(n.costs == n.same, "the costs of those are PyTorch's too: %d", n.costs);
    ok(n.dearer == 0, "by our costs no choice is dearer than PyTorch's: %d "
       "are cheaper", n.saved);
    ok(n.bound == 0, "no lower bound is above the cost");
    golden_close(&table);
}

int main(void)
{
    const char *name = getenv("DTN_OPS");
    struct dtensor_ctx *ctx = planner_of(8, 8);

    table_compare(ctx, name ? name : "ops.txt");
    if (!name) {
        table_compare(ctx, "ops_other.txt");
        table_compare(ctx, "ops_any.txt");
    }
    dtensor_fini(ctx);
    return done();
}
