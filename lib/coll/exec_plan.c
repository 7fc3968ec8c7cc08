/* exec_plan.c - a schedule made ready to run
 *
 * Connected to every peer that some step names - of a ring over 8 ranks two, of
 * an exchange those that have something for this rank - with scratch memory and
 * room for what peers will say, so that running it allocates nothing.
 */
#include "coll/exec.h"

#include <stdlib.h>
#include <string.h>

/* Connect to every peer that some step names. */
static int plan_connect(struct dtn_plan *plan, struct dtensor_error *err)
{
    const struct dtn_sched *sched = &plan->sched;
    int *ranks = calloc((size_t)sched->n, sizeof *ranks);
    int n = 0, rc;

    if (!ranks)
        return dtn_fail_nomem(err, sched->name, (size_t)sched->n * sizeof(int));
    for (int p = 0; p < sched->n; p++)
        for (int s = 0; s < sched->nsteps; s++)
            if (sched->steps[s].op == DTN_OP_SIGNAL
                || sched->steps[s].op == DTN_OP_WAIT
                || sched->steps[s].op == DTN_OP_PUT)
                if (sched->steps[s].peer == p) {
                    ranks[n++] = plan->group.ranks[p];
                    break;
                }
    rc = dtn_ctx_connect(plan->group.ctx, ranks, n, err);
    free(ranks);
    return rc;
}

static int plan_fill(struct dtn_plan *plan, struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = plan->group.ctx;
    size_t n = (size_t)plan->sched.n, tmp = plan->sched.bytes[DTN_TMP];

    plan->peers = calloc(n, sizeof *plan->peers);
    plan->terms = calloc(n, sizeof *plan->terms);
    if (!plan->peers || !plan->terms)
        return dtn_fail_nomem(err, plan->sched.name, n * sizeof *plan->peers);
    for (size_t p = 0; p < n; p++) {
        plan->peers[p].rank = plan->group.ranks[p];
        plan->peers[p].tp = ctx->peers[plan->peers[p].rank].tp;
    }
    if (tmp > 0) {
        plan->tmp = dtn_arena_alloc(&ctx->arena, tmp);
        if (!plan->tmp)
            return dtn_fail_nomem(err, plan->sched.name, tmp);
    }
    return plan_connect(plan, err);
}

int dtn_plan_create(const struct dtn_group *group, struct dtn_sched *sched,
                    struct dtn_plan **planp, struct dtensor_error *err)
{
    struct dtn_plan *plan = calloc(1, sizeof *plan);
    int rc;

    if (!plan)
        return dtn_fail_nomem(err, sched->name, sizeof *plan);
    plan->group = *group;
    plan->sched = *sched;
    rc = plan_fill(plan, err);
    if (rc != 0) {
        memset(&plan->sched, 0, sizeof plan->sched);
        dtn_plan_destroy(plan);
        return rc;
    }
    memset(sched, 0, sizeof *sched);
    *planp = plan;
    return 0;
}

void dtn_plan_destroy(struct dtn_plan *plan)
{
    if (!plan)
        return;
    dtn_arena_free(&plan->group.ctx->arena, plan->tmp);
    dtn_sched_fini(&plan->sched);
    free(plan->peers);
    free(plan->terms);
    free(plan);
}

const struct dtn_sched *dtn_plan_sched(const struct dtn_plan *plan)
{
    return &plan->sched;
}
