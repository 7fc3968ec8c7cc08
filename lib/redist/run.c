/* run.c - runs a plan on this rank
 *
 * The steps run one after another.  The result of a step is in scratch memory
 * and is the input of the next step.  The last step writes to the caller's
 * memory.
 */
#include "redist/run.h"
#include "base/compiler.h"
#include "coll/exec.h"
#include "coll/request.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "job/group.h"
#include "job/last_plan.h"
#include "job/watcher.h"
#include "mesh/mesh.h"
#include "redist/phases.h"
#include "redist/plan.h"
#include "redist/ready.h"
#include "redist/scratch.h"
#include "sched/call.h"
#include "sched/fingerprint.h"
#include "dtensor.h"

#include <stdbool.h>

int dtn_phase_finish(const struct dtn_phase *phase, void *out, size_t count,
                     struct dtensor_error *err)
{
    if (phase->kind != DTN_PHASE_BROADCAST || phase->divide <= 1)
        return 0;
    return dtn_buffer_scale(phase->dst.mesh->ctx, phase->dst.dtype, out, count,
                            phase->divide, err);
}

static enum dtn_coll run_coll(const struct dtn_redist_step *step)
{
    return step->phase.kind == DTN_PHASE_REDUCE ? DTN_COLL_ALLREDUCE
                                                : DTN_COLL_BROADCAST;
}

static struct dtn_call run_call(const struct dtensor_plan *r,
                                const struct dtn_redist_step *step)
{
    const struct dtn_phase *phase = &step->phase;

    return (struct dtn_call){
        .coll = run_coll(step), .n = step->group->n, .me = step->group->me,
        .count = step->count,
        .on_device = step->group->on_device, .text = r->call,
        .plan = dtn_fingerprint_mix(DTN_MIX_PLAN, r->hash),
        .dtype = phase->dst.dtype, .redop = phase->redop,
        .divisor = phase->divide                 /* of a broadcast it is none */
    };
}

bool dtn_redist_idle(const struct dtn_redist_step *step)
{
    return step->group->me < 0 ||
           (step->phase.kind != DTN_PHASE_EXCHANGE && step->count == 0);
}

uint32_t dtn_redist_number(const struct dtensor_plan *r)
{
    return r->nsteps > 0 && r->all->group.me >= 0 ? ++*r->all->group.calls : 0;
}

static int run_step(const struct dtensor_plan *r, struct dtn_redist_step *step,
                    uint32_t number, const void *in, void *out,
                    struct dtensor_error *err)
{
    int rc = 0;

    if (step->phase.kind == DTN_PHASE_EXCHANGE) {
        rc = dtn_exec_run(step->exec, in, out,
                          dtn_fingerprint_numbered(step->fingerprint, number),
                          err);
    } else if (step->count > 0) {
        struct dtn_call call = run_call(r, step);

        call.number = number;
        rc = dtn_call_run(step->group, &call, in, out, err);
    }
    return rc == 0 ? dtn_phase_finish(&step->phase, out, step->count, err)
                   : rc;
}

int dtn_redist_calls(struct dtensor_plan *r, struct dtensor_error *err)
{
    int rc = dtn_redist_ready(r, err);

    if (r->all->group.me < 0)
        return rc;
    for (int i = 0; rc == 0 && i < r->nsteps; i++) {
        struct dtn_redist_step *step = &r->step[i];
        const struct dtn_call call = run_call(r, step);

        if (!step->exec && !dtn_redist_idle(step))
            rc = dtn_call_exec(step->group, &call, &step->exec,
                               &step->fingerprint, err);
    }
    return rc;
}

void dtn_redist_tell(const struct dtensor_plan *r, bool continues)
{
    struct dtn_watcher *watcher = r->dst.mesh->ctx->watcher;
    struct dtn_activity redist = {
        .kind = DTN_WATCHED_REDIST, .name = "redistribute", .nin = 1,
        .nout = 1, .in = &r->src, .out = &r->dst,
        .scatters = r->root != DTN_NO_ROOT, .continues = continues };

    for (int i = 0; i < r->nsteps; i++)
        redist.ns += r->step[i].ns;
    watcher->begin(watcher, &redist);
}

/* In a context that only plans: report the bytes of all ranks to the watcher.
 */
static int redist_follow(const struct dtensor_plan *r)
{
    struct dtn_watcher *watcher = r->dst.mesh->ctx->watcher;

    for (int i = 0; watcher && i < r->nsteps; i++) {
        const struct dtn_redist_step *step = &r->step[i];
        const bool exchange = step->phase.kind == DTN_PHASE_EXCHANGE;

        watcher->begin(watcher, &(struct dtn_activity){
            .kind = DTN_WATCHED_CALL, .ns = step->ns,
            .name = exchange ? "exchange" : dtn_coll_name(run_coll(step)),
            .coll = exchange ? DTN_COLL_EXCHANGE : run_coll(step),
            .bytes = dtensor_plan_bytes(r, i, -1, -1) });
        watcher->end(watcher);
    }
    return 0;
}

static inline int redist_run(struct dtensor_plan *r, const void *in, void *out,
                             struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = r->dst.mesh->ctx;
    uint32_t number;
    int rc;

    if (ctx->planning)
        return redist_follow(r);
    number = dtn_redist_number(r);
    rc = dtn_requests_finish(ctx, err);
    if (rc == 0)
        rc = dtn_redist_ready(r, err);
    if (rc == 0)
        rc = dtn_redist_scratch(r, err);
    if (rc == 0 && r->nsteps == 0 && r->out_bytes > 0 && in != out)
        rc = dtn_buffer_copy(ctx, out, in, r->out_bytes, err);
    dtn_last_plan_is(&ctx->last_plan, r->text);
    for (int i = 0; rc == 0 && i < r->nsteps; i++) {
        void *to = dtn_redist_target(r, i, out);

        if (dtn_redist_idle(&r->step[i]))
            continue;
        rc = run_step(r, &r->step[i], number, in, to, err);
        if (r->step[i].phase.kind != DTN_PHASE_EXCHANGE)
            dtn_last_plan_is(&ctx->last_plan, r->text);
        in = to;
    }
    return rc;
}

static DTN_NOINLINE int redist_run_watched(struct dtensor_plan *r,
                                           const void *in, void *out,
                                           struct dtensor_error *err)
{
    struct dtn_watcher *watcher = r->dst.mesh->ctx->watcher;
    int rc;

    dtn_redist_tell(r, false);
    rc = redist_run(r, in, out, err);
    watcher->end(watcher);
    return rc;
}

int dtn_redist_run(struct dtensor_plan *r, const void *in, void *out,
                   struct dtensor_error *err)
{
    return r->dst.mesh->ctx->watcher ? redist_run_watched(r, in, out, err)
                                     : redist_run(r, in, out, err);
}
