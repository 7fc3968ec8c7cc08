/* ready.c - makes a plan ready to run on this rank
 *
 * A plan depends only on placements, so it costs the same for 8 ranks and for
 * 1,024.  What depends on the rank is made before the first run: the schedule
 * of this rank for each exchange, and the group of each allreduce or broadcast.
 */
#include "redist/ready.h"
#include "base/box.h"
#include "base/units.h"
#include "boot/boot.h"
#include "coll/exec.h"
#include "job/ctx.h"
#include "job/group.h"
#include "mesh/mesh.h"
#include "redist/exchange.h"
#include "redist/phases.h"
#include "redist/plan.h"
#include "redist/plan_text.h"
#include "sched/call.h"
#include "sched/fingerprint.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>

/* The text of an exchange, such as "exchange shm 8 ranks, 6.0 MiB in 6 pieces":
 * what this rank receives.
 */
static void ready_say_exchange(struct dtensor_plan *r,
                               const struct dtn_group *group,
                               const struct dtn_step_exchange *x, int rounds)
{
    size_t elem = dtensor_dtype_size(r->dst.dtype), bytes = 0;
    char moved[32];
    int n = 0;

    for (int i = 0; i < x->received.n; i++)
        if (x->received.list[i].source != group->me) {
            bytes += (size_t)dtn_box_count(&x->received.list[i].box) * elem;
            n++;
        }
    if (n == 0 && x->sent.n == 0)
        dtn_redist_text_add(r, "local");
    else
        dtn_redist_text_add(r, "exchange %s %d ranks, %s in %d pieces",
                            dtn_group_wire(group), group->n,
                            dtn_format_size(bytes, moved, sizeof moved), n);
    if (rounds > 1)
        dtn_redist_text_add(r, " and %d rounds", rounds);
}

static int ready_exchange(struct dtensor_plan *r, struct dtn_redist_step *step,
                          struct dtensor_error *err)
{
    const struct dtn_phase *phase = &step->phase;
    struct dtn_step_exchange x;
    int rc;

    step->group = dtn_exchange_group(r, phase);
    if (step->group->me < 0)                 /* of the other mesh            */
        return 0;
    rc = dtn_step_exchange_init(r, step, step->group->ctx->world.rank, &x,
                                err);
    if (rc == 0)
        rc = dtn_exchange_exec(step->group, &x.exchange, &step->exec, err);
    if (rc == 0)
        ready_say_exchange(r, step->group, &x,
                           dtn_exec_sched(step->exec)->rounds);
    step->fingerprint = dtn_fingerprint(DTN_COLL_EXCHANGE, phase->dst.dtype,
                                        phase->redop, r->hash);
    if (step->exec)
        dtn_exec_set_record(step->exec, &(struct dtn_call_record){
            .kind = DTN_RECORD_WORDED, .base = step->fingerprint,
            .group = step->group->hash, .fingerprint = step->fingerprint,
            .n = (uint32_t)step->group->n, .text = r->call }, step->ns);
    dtn_step_exchange_fini(&x);
    return rc;
}

/* The executable of an allreduce or broadcast is in the cache of the coll room.
 */
static int ready_call(struct dtensor_plan *r, struct dtn_redist_step *step,
                      struct dtensor_error *err)
{
    const struct dtensor_mesh *sub;
    char bytes[32];
    int rc = dtn_mesh_sub(step->phase.src.mesh, step->phase.dims, &sub, err);

    if (rc != 0)
        return rc;
    step->group = &sub->group;
    if (sub->group.me < 0)                   /* of the other mesh            */
        return 0;
    dtn_redist_text_add(r, "%s %s %d ranks of %s",
                        step->phase.kind == DTN_PHASE_REDUCE ? "allreduce"
                                                        : "broadcast",
                        dtn_group_wire(step->group), step->group->n,
                        dtn_format_size(step->count *
                                        dtensor_dtype_size(r->dst.dtype),
                                        bytes, sizeof bytes));
    return 0;
}

int dtn_redist_connect(struct dtensor_plan *r, struct dtensor_error *err)
{
    int rc = dtn_redist_ready(r, err);

    for (int i = 0; rc == 0 && i < r->nsteps; i++)
        if (r->step[i].exec)
            rc = dtn_exec_connect(r->step[i].exec, err);
    return rc;
}

int dtn_redist_ready(struct dtensor_plan *r, struct dtensor_error *err)
{
    int rc = 0;

    if (r->ready || r->all->group.me < 0 || r->dst.mesh->ctx->planning)
        return 0;
    for (int i = 0; rc == 0 && i < r->nsteps; i++) {
        struct dtn_redist_step *step = &r->step[i];

        dtn_redist_text_add(r, i ? ", then " : ": ");
        rc = step->phase.kind == DTN_PHASE_EXCHANGE
           ? ready_exchange(r, step, err) : ready_call(r, step, err);
    }
    if (r->nsteps == 0)
        dtn_redist_text_add(r, ": local");
    r->ready = rc == 0;
    return rc;
}
