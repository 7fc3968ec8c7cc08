/* run.c - runs a schedule over the transports
 *
 * A plan is a schedule with everything it needs at hand: connections, scratch
 * memory, room for what the peers say of their buffers.  Running it walks the
 * steps in order.  READY tells a peer where this rank's IN, OUT and TMP are, and
 * how large (ready.c); the peer puts into them or, where its transport maps,
 * loads from them.  Nothing is allocated, and no data moves before the peer's
 * fingerprint was found to be ours.
 */
#include "base/box.h"
#include "base/reduce.h"
#include "base/units.h"
#include "boot/boot.h"
#include "coll/exec.h"
#include "coll/exec/exec.h"
#include "coll/request.h"
#include "coll/state.h"
#include "job/await.h"
#include "job/ctx.h"
#include "sched/sched.h"
#include "transport/arena.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

/* ------------------------------------------------------------- exposing --- */

/* Name `mem` to the peers of every transport as a space; EINVAL if one cannot,
 * or peers would fetch what had better be staged.
 */
static int run_register(struct exec_run *run, enum dtn_space space,
                        unsigned char *mem)
{
    struct dtensor_ctx *ctx = run->ctx;
    const struct dtn_sched *sched = &run->plan->sched;
    size_t bytes = sched->bytes[space] * run->plan->scale[space];
    int rc = 0;

    for (int t = 0; t < ctx->ntransports && rc == 0; t++) {
        struct dtn_transport *tp = ctx->transports[t];

        if (tp->fetches && !dtn_lend_fetched(run, space)
            && !dtn_arena_contains(&ctx->arena, mem, bytes))
            return DTENSOR_EINVAL;
        rc = tp->ops->reg(tp, mem, bytes, &run->name[t][exec_name(space)]);
    }
    run->behind[exec_name(space)] = bytes;
    return rc;
}

static void run_hide(struct exec_run *run)
{
    struct dtensor_ctx *ctx = run->ctx;

    dtn_ctx_bounced(ctx, run);
    for (int t = 0; t < ctx->ntransports; t++)
        for (int s = 0; s < EXEC_NNAMES; s++)
            if (run->name[t][s].addr || run->name[t][s].key)
                ctx->transports[t]->ops->unreg(ctx->transports[t],
                                               run->name[t][s]);
}

/* What peers may touch of a space. */
static struct dtn_range run_shown(const struct exec_run *run,
                                  enum dtn_space space)
{
    const struct dtn_sched *sched = &run->plan->sched;

    if (sched->shown[space].bytes > 0)
        return sched->shown[space];
    return (struct dtn_range){ 0, sched->bytes[space] };
}

/* Make the space reachable for peers, where it stands or in a bounce buffer, of
 * which only the part that they touch is used; EAGAIN while another run has that.
 */
static int run_expose(struct exec_run *run, enum dtn_space space)
{
    size_t bytes = run->plan->sched.bytes[space];
    unsigned char *bounce;
    int rc;

    if (!run->plan->sched.exposed[space] || bytes == 0)
        return 0;
    rc = run_register(run, space, run->base[space]);
    run->refused = rc != 0 && rc != DTENSOR_EINVAL;
    if (rc == 0 || run->refused)
        return rc;
    if (run->ctx->bounce[space].user)
        return DTENSOR_EAGAIN;
    bounce = dtn_ctx_bounce(run->ctx, space, bytes);
    if (!bounce)
        return DTENSOR_ENOMEM;
    run->ctx->bounce[space].user = run;
    run->staged[space] = bounce;
    if (space == DTN_IN)
        dtn_lend_stage(run, run_shown(run, space));
    rc = run_register(run, space, bounce);
    run->refused = rc != 0;
    return rc;
}

/* Memory there was enough, but a device would not have it: or there was not. */
static int run_unexposed(struct exec_run *run, int rc)
{
    const size_t *bytes = run->plan->sched.bytes;
    char in[32], out[32];

    dtn_format_size(bytes[DTN_IN], in, sizeof in);
    dtn_format_size(bytes[DTN_OUT], out, sizeof out);
    if (run->refused)
        return dtn_poison(run->ctx, rc, run->ctx->self.rank, "the device "
                          "refused to register memory of this call, %s in and "
                          "%s out (may enough be locked? see ulimit -l; "
                          "DTN_LOG=warn says why)", in, out);
    return dtn_poison(run->ctx, rc, run->ctx->self.rank, "no room to stage "
                      "memory that peers cannot reach, %s in and %s out (use "
                      "dtensor_alloc, or raise [transport] arena)", in, out);
}

/* ---------------------------------------------------------------- steps --- */

static int run_signal(struct exec_run *run, const struct dtn_step *step)
{
    const struct exec_peer *peer = &run->plan->peers[step->peer];
    struct dtn_signal signal = { .fingerprint = run->fingerprint ^ step->salt,
                                 .tag = (uint16_t)step->tag };

    if (run->polls) {
        int rc = dtn_poll_room(run->ctx, peer->rank, &run->wait);

        if (rc != 0)
            return rc;
    }
    if (step->tag == DTN_TAG_READY)
        return dtn_ready_say(run, step, &signal);
    if (step->tag == DTN_TAG_CARRY && step->bytes > 0) {
        signal.len = (uint16_t)(step->bytes
                                * run->plan->scale[step->src.space]);
        return dtn_carry(run->ctx, peer->rank, run->polls ? &run->wait : NULL,
                         &run->moved, &signal, dtn_run_at(run, &step->src));
    }
    return run->polls
         ? dtn_poll_signal(run->ctx, peer->rank, &run->wait, &signal)
         : dtn_signal(run->ctx, peer->rank, &signal);
}

static int run_wait(struct exec_run *run, const struct dtn_step *step)
{
    struct exec_peer *peer = &run->plan->peers[step->peer];
    const struct dtn_signal *signal;
    const size_t bytes = step->bytes * run->plan->scale[step->dst.space];
    int rc = run->polls ? dtn_poll(run->ctx, peer->rank, &run->wait, &signal)
                        : dtn_await(run->ctx, peer->rank, &signal);

    if (rc != 0)
        return rc;
    if (signal->fingerprint != (run->fingerprint ^ step->salt)
        || signal->tag != step->tag)
        return dtn_run_mismatch(run, step, signal);
    if (step->tag == DTN_TAG_READY ? !dtn_ready_take(run, peer, signal)
                                   : signal->len != bytes)
        return dtn_run_mismatch(run, step, signal);
    if (bytes > 0)
        memcpy(dtn_run_at(run, &step->dst),
               dtn_carried(run->ctx, peer->rank, signal), bytes);
    dtn_consume(run->ctx, peer->rank);
    return 0;
}

/* Put a piece of memory, or continue a put that returned EAGAIN. */
static int run_put_piece(struct exec_run *run, int rank, struct dtn_remote dst,
                         const void *src, size_t bytes)
{
    int rc;

    if (!run->polls)
        return dtn_put(run->ctx, rank, dst, src, bytes);
    rc = dtn_poll_put(run->ctx, rank, &run->wait, dst, src, bytes,
                      &run->moved);
    if (rc == 0)
        run->moved = 0;
    return rc;
}

/* Row by row. */
static int run_put_box(struct exec_run *run, int rank, struct dtn_remote dst,
                       const struct dtn_step *step)
{
    const int64_t elem = (int64_t)dtensor_dtype_size(run->plan->sched.dtype);
    const unsigned char *src = dtn_run_at(run, &step->src);
    struct exec_rows *rows = &run->rows;
    int rc;

    if (!rows->begun) {
        rows->begun = true;
        rows->box = run->plan->sched.boxes[step->box];
        rows->bytes = dtn_box_take_run(&rows->box) * (size_t)elem;
        rows->walk = (struct dtn_walk){ .box = &rows->box };
    }
    do {
        struct dtn_remote to = dst;

        to.addr += (uint64_t)(rows->walk.dst * elem);
        rc = run_put_piece(run, rank, to, src + rows->walk.src * elem,
                           rows->bytes);
        if (rc != 0)
            return rc;
    } while (dtn_walk_next(&rows->walk));
    rows->begun = false;
    return 0;
}

static int run_put(struct exec_run *run, const struct dtn_step *step)
{
    const struct exec_peer *peer = &run->plan->peers[step->peer];
    struct dtn_remote dst = peer->remote[exec_name(step->dst.space)];

    dst.addr += step->dst.offset * run->plan->scale[step->dst.space];
    if (step->box >= 0)
        return run_put_box(run, peer->rank, dst, step);
    return run_put_piece(run, peer->rank, dst, dtn_run_at(run, &step->src),
                         step->bytes * run->plan->scale[step->src.space]);
}

static void run_fill(struct exec_run *run, const struct dtn_step *step)
{
    const struct dtn_sched *sched = &run->plan->sched;
    const size_t count = step->bytes / dtensor_dtype_size(sched->dtype);
    const enum dtensor_dtype dtype = step->dst.space == DTN_ACC
                                   ? sched->how.partial : sched->dtype;
    void *dst = dtn_run_at(run, &step->dst);

    if (step->op == DTN_OP_SCALE)
        dtn_scale(dtype, dst, count, sched->divisor);
    else
        dtn_fill_neutral(dtype, sched->how.op, dst, count);
}

static int run_flush(struct exec_run *run, const struct dtn_step *step)
{
    const int rank = run->plan->peers[step->peer].rank;

    return run->polls ? dtn_poll_flush(run->ctx, rank, &run->wait)
                      : dtn_flush(run->ctx, rank);
}

static int run_step(struct exec_run *run, const struct dtn_step *step)
{
    switch (step->op) {
    case DTN_OP_PUT:
        return run_put(run, step);
    case DTN_OP_FLUSH:
        return run_flush(run, step);
    case DTN_OP_SIGNAL:
        return run_signal(run, step);
    case DTN_OP_WAIT:
        return run_wait(run, step);
    case DTN_OP_COPY:
        return dtn_run_copy(run, step);
    case DTN_OP_REDUCE:
    case DTN_OP_FOLD:
        return dtn_run_reduce(run, step);
    case DTN_OP_SCALE:
    case DTN_OP_NEUTRAL:
        run_fill(run, step);
        return 0;
    case DTN_NOPS:
        break;
    }
    return DTENSOR_EINVAL;
}

/* From where it stands to the end; EAGAIN: to a signal that is not there. */
static int run_steps(struct exec_run *run)
{
    const struct dtn_sched *sched = &run->plan->sched;
    int rc = 0;

    for (; run->step < sched->nsteps; run->step++) {
        rc = run_step(run, &sched->steps[run->step]);
        if (rc != 0)
            return rc;
        run->wait.start_ns = 0;
    }
    return 0;
}

/* Remember what this call is, in case it is not what others call. */
static void run_note(const struct exec_run *run)
{
    struct dtensor_ctx *ctx = run->ctx;
    struct dtn_said *said = &ctx->said[++ctx->calls % DTN_SAID_MAX];

    *said = run->plan->said;
    said->fingerprint = run->fingerprint;
    said->number = run->plan->group.calls ? *run->plan->group.calls : 0;
    if (run->plan->messages)
        dtn_plan_turn(run->plan);
}

/* Make everything reachable that peers reach. */
static int run_lend(struct exec_run *run)
{
    int rc = 0;

    memset(run->name, 0, sizeof run->name);
    dtn_lend_begin(run);
    for (int s = 0; s < DTN_NSPACES && rc == 0; s++)
        rc = run_expose(run, (enum dtn_space)s);
    if (rc == DTENSOR_EAGAIN)
        run_hide(run);
    return rc;
}

/* `run` may be anything before, but for `polls`. */
static int run_begin(struct exec_run *run, struct dtn_plan *plan,
                     const void *in, void *out, uint64_t fingerprint)
{
    int rc = 0;

    run->plan = plan;
    run->ctx = plan->group.ctx;
    run->fingerprint = fingerprint;
    run->refused = false;
    run->step = 0;
    run->rows.begun = false;
    run->moved = 0;
    run->nready = 0;
    run->wait.start_ns = 0;
    memset(run->staged, 0, sizeof run->staged);
    run->base[DTN_IN] = (unsigned char *)(uintptr_t)in;
    run->base[DTN_OUT] = out;
    run->base[DTN_TMP] = plan->tmp;
    run->base[DTN_ACC] = plan->acc;
    if (plan->named)
        rc = run_lend(run);
    if (rc == DTENSOR_EAGAIN)
        return rc;
    run_note(run);
    return rc == 0 ? 0 : run_unexposed(run, rc);
}

/* What peers put where they could reach it goes to where it is wanted. */
static void run_unstage(struct exec_run *run)
{
    const struct dtn_range shown = run_shown(run, DTN_OUT);

    if (!run->staged[DTN_OUT])
        return;
    memcpy(run->base[DTN_OUT] + shown.offset,
           run->staged[DTN_OUT] + shown.offset, shown.bytes);
    run->ctx->copied_bytes += shown.bytes;
}

static int run_end(struct exec_run *run, int rc, struct dtensor_error *err)
{
    dtn_coll_of(run->ctx)->run = NULL;
    if (run->plan->named && rc == 0)
        run_unstage(run);
    if (run->plan->named)
        run_hide(run);
    if (rc != 0)
        return dtn_ctx_check(run->ctx, err);
    if (run->plan->named)
        dtn_lend_end(run);
    return 0;
}

/* The call for which ranks connect: they compare it. */
static void plan_call(struct dtn_plan *plan, uint64_t fingerprint)
{
    plan->said.fingerprint = fingerprint;
    plan->said.number = plan->group.calls ? *plan->group.calls : 0;
}

int dtn_plan_run(struct dtn_plan *plan, const void *in, void *out,
                 uint64_t fingerprint, struct dtensor_error *err)
{
    struct exec_run run;
    int rc = dtn_ctx_ready(plan->group.ctx, err);

    if (rc == 0 && dtn_coll_of(plan->group.ctx)->pending)
        rc = dtn_requests_finish(plan->group.ctx, err);
    if (rc == 0 && plan->unmet) {
        plan_call(plan, fingerprint);
        rc = dtn_plan_connect(plan, err);
    }
    if (rc != 0)
        return rc;
    run.polls = false;
    rc = run_begin(&run, plan, in, out, fingerprint);
    dtn_coll_of(plan->group.ctx)->run = &run;
    if (rc == 0)
        rc = run_steps(&run);
    return run_end(&run, rc, err);
}

int dtn_plan_start(struct dtn_plan *plan, const void *in, void *out,
                   uint64_t fingerprint, struct dtensor_error *err)
{
    int rc = dtn_ctx_ready(plan->group.ctx, err);

    if (rc == 0 && plan->unmet) {
        plan_call(plan, fingerprint);
        rc = dtn_plan_meet(plan, err);
    }
    if (rc != 0)
        return rc;
    plan->started.polls = true;
    rc = run_begin(&plan->started, plan, in, out, fingerprint);
    dtn_lend_leave(&plan->started);
    return rc == 0 || rc == DTENSOR_EAGAIN ? rc
         : run_end(&plan->started, rc, err);
}

int dtn_plan_warm(struct dtn_plan *plan, const void *in, void *out,
                  struct dtensor_error *err)
{
    int rc;

    plan->trials.best = 0;        /* staged, which takes memory               */
    plan->trials.runs = INT_MAX;
    rc = dtn_plan_start(plan, in, out, 0, err);
    plan->trials.best = -1;
    plan->trials.runs = 0;
    if (rc == 0 && plan->named)
        run_hide(&plan->started);
    return rc;
}

int dtn_plan_poll(struct dtn_plan *plan, struct dtensor_error *err)
{
    struct exec_run *run = &plan->started;
    int rc = dtn_ctx_check(plan->group.ctx, err);

    if (rc == 0) {
        dtn_coll_of(run->ctx)->run = run;
        dtn_lend_return(run);
        rc = run_steps(run);
        dtn_coll_of(run->ctx)->run = NULL;
    }
    if (rc != DTENSOR_EAGAIN)
        return run_end(run, rc, err);
    dtn_lend_leave(run);
    return rc;
}
