/* plan.c - makes a schedule ready to run
 *
 * A plan has scratch, and room for what peers will send, so a run allocates
 * nothing.  The first run connects to every peer that a step names: in a ring
 * over 8 ranks these are two, in an exchange the ranks that exchange data with
 * this one.  A first run that is started connects without waiting for them.
 */
#include "base/error.h"
#include "base/reduce.h"
#include "boot/boot.h"
#include "coll/exec.h"
#include "coll/record.h"
#include "coll/exec/exec.h"
#include "coll/state.h"
#include "job/ctx.h"
#include "job/group.h"
#include "sched/call.h"
#include "sched/fingerprint.h"
#include "sched/sched.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* List every peer that a step names: the first run of the plan connects to
 * them.
 */
static int plan_unmet(struct dtn_plan *plan, struct dtensor_error *err)
{
    const struct dtn_sched *sched = &plan->sched;
    const size_t bytes = (size_t)sched->n * (sizeof(int) + sizeof(bool));
    int *ranks = calloc(1, bytes);
    bool *named = (bool *)(ranks + sched->n);

    if (!ranks)
        return dtn_fail_nomem(err, sched->name, bytes);
    for (int s = 0; s < sched->nsteps; s++) {
        const struct dtn_step *step = &sched->steps[s];

        if (step->op == DTN_OP_SIGNAL || step->op == DTN_OP_WAIT
            || step->op == DTN_OP_PUT)
            named[step->peer] = true;
    }
    for (int p = 0; p < sched->n; p++)
        if (named[p])
            ranks[plan->nunmet++] = plan->group.ranks[p];
    plan->unmet = ranks;
    return 0;
}

/* A mismatch found while ranks connect is reported with the call of the plan.
 */
static int plan_meet(struct dtn_plan *plan, bool waits,
                     struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = plan->group.ctx;
    int rc;

    ctx->connecting_call = &plan->record;
    rc = waits ? dtn_ctx_connect(ctx, plan->unmet, plan->nunmet, err)
               : dtn_poll_connect(ctx, plan->unmet, plan->nunmet,
                                  &plan->meeting, err);
    ctx->connecting_call = NULL;
    if (rc != 0)
        return rc;
    free(plan->unmet);
    plan->unmet = NULL;
    return 0;
}

int dtn_plan_connect(struct dtn_plan *plan, struct dtensor_error *err)
{
    return plan->unmet ? plan_meet(plan, true, err) : 0;
}

int dtn_plan_meet(struct dtn_plan *plan, struct dtensor_error *err)
{
    return plan->unmet ? plan_meet(plan, false, err) : 0;
}

/* Which spaces do peers access, and from which buffers of the user are puts? */
static void plan_spaces(struct dtn_plan *plan)
{
    const struct dtn_sched *sched = &plan->sched;
    bool puts[DTN_NSPACES] = { false };

    for (int s = 0; s < sched->nsteps; s++)
        if (sched->steps[s].op == DTN_OP_PUT)
            puts[sched->steps[s].src.space] = true;
    for (int s = 0; s < DTN_NSPACES; s++)
        if (sched->bytes[s] > 0
            && (sched->exposed[s] || (puts[s] && s <= DTN_OUT)))
            plan->spaces[plan->nspaces++] = (enum dtn_space)s;
}

/* Does a step send READY, or does a peer access a space? */
static bool plan_names(const struct dtn_sched *sched)
{
    bool names = false;

    for (int s = 0; s < DTN_NSPACES; s++)
        names |= sched->exposed[s];
    for (int s = 0; s < sched->nsteps; s++)
        names |= sched->steps[s].op == DTN_OP_SIGNAL
              && sched->steps[s].tag == DTN_TAG_READY;
    return names;
}

/* May its exposed buffers be private memory that is not always staged? */
static bool plan_tries(const struct dtn_plan *plan)
{
    const struct dtensor_ctx *ctx = plan->group.ctx;
    const struct dtn_sched *sched = &plan->sched;
    bool fetches = false;

    for (int t = 0; t < ctx->ntransports; t++)
        fetches |= ctx->transports[t]->fetches;
    return fetches && (sched->exposed[DTN_IN] || sched->exposed[DTN_OUT])
        && sched->expose != DTN_EXPOSE_STAGED_ONLY;
}

static int plan_fill(struct dtn_plan *plan, struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = plan->group.ctx;
    size_t n = (size_t)plan->sched.n;
    size_t scratch = dtn_sched_scratch(&plan->sched);
    int rc;

    plan->named = plan_names(&plan->sched);
    plan_spaces(plan);
    plan->tries = plan_tries(plan);
    plan->trials.best = -1;
    plan->peers = calloc(n, sizeof *plan->peers);
    plan->terms = calloc(n + 1, sizeof *plan->terms);
    plan->base = calloc((size_t)dtn_exec_peer_base((int)n, 0),
                        sizeof *plan->base);
    if (!plan->peers || !plan->terms || !plan->base)
        return dtn_fail_nomem(err, plan->sched.name, n * sizeof *plan->peers);
    for (size_t p = 0; p < n; p++) {
        plan->peers[p].rank = plan->group.ranks[p];
        plan->peers[p].tp = ctx->peers[plan->peers[p].rank].tp;
        while (plan->peers[p].tp
               && ctx->transports[plan->peers[p].transport]
                  != plan->peers[p].tp)
            plan->peers[p].transport++;
    }
    for (int s = 0; s < DTN_NSPACES; s++)
        plan->scale[s] = s == DTN_ACC
                       ? dtn_reduction_ratio(&plan->sched.reduction) : 1;
    if (scratch > 0) {
        plan->tmp = dtn_arena_alloc(&ctx->arena, scratch);
        if (!plan->tmp)
            return dtn_arena_fail(&ctx->arena, plan->sched.name, scratch, err);
        plan->acc = plan->tmp + scratch - plan->sched.bytes[DTN_ACC]
                                          * plan->scale[DTN_ACC];
    }
    plan->base[DTN_TMP] = plan->tmp;
    plan->base[DTN_ACC] = plan->acc;
    rc = dtn_plan_bind(plan, err);
    if (rc == 0)
        rc = dtn_ready_reach(plan, err);
    return rc == 0 ? plan_unmet(plan, err) : rc;
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

void dtn_plan_set_record(struct dtn_plan *plan,
                         const struct dtn_call_record *said)
{
    plan->record = *said;
    plan->messages = dtn_fingerprint_coll(said->base) == DTN_COLL_PAIRS;
}

/* Each message has one step with match bits: the step that is not DATA. */
void dtn_plan_turn(struct dtn_plan *plan)
{
    struct dtn_coll_state *coll = dtn_coll_of(plan->group.ctx);

    for (int s = 0; s < plan->sched.nsteps; s++) {
        struct dtn_step *step = &plan->sched.steps[s];
        struct dtn_exec_peer *peer;
        uint64_t turn;

        if ((step->op != DTN_OP_SIGNAL && step->op != DTN_OP_WAIT)
            || step->tag == DTN_TAG_DATA)
            continue;
        peer = &plan->peers[step->peer];
        turn = dtn_fingerprint_mix(DTN_MIX_TURN,
                                    ++coll->peers[peer->rank]
                                          .messages[step->is_recv]);
        step->match_bits ^= peer->turn[step->is_recv] ^ turn;
        peer->turn[step->is_recv] = turn;
    }
}

/* The call records of its runs point to its text. */
static void plan_forget(const struct dtn_plan *plan)
{
    struct dtensor_ctx *ctx = plan->group.ctx;

    for (int i = 0; i < DTN_RECORD_MAX && plan->record.text; i++)
        if (ctx->recent_calls[i].text == plan->record.text)
            ctx->recent_calls[i].text = NULL;
}

void dtn_plan_destroy(struct dtn_plan *plan)
{
    if (!plan)
        return;
    plan_forget(plan);
    dtn_arena_free(&plan->group.ctx->arena, plan->tmp);
    dtn_sched_fini(&plan->sched);
    free(plan->peers);
    free(plan->terms);
    free(plan->base);
    free(plan->steps);
    free(plan->unmet);
    free(plan->reach);
    free(plan);
}

const struct dtn_sched *dtn_plan_sched(const struct dtn_plan *plan)
{
    return &plan->sched;
}
