/* direct.c - device buffers that peers access in place
 *
 * A network card can read and write GPU memory that it has registered.  So if
 * every transport to the peers of a run can name the memory, puts read and
 * write it without a copy in host memory.  If one transport cannot, the space
 * is staged (expose.c) for all peers, because the copy back at the end of a run
 * would overwrite what cards have written in place.
 *
 * The scratch into which peers put is then on the device too, so arriving data
 * are reduced there.
 */
#include "coll/exec/direct.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "coll/exec/bind.h"
#include "coll/exec/exec.h"
#include "coll/exec/launch.h"
#include "coll/exec/peer.h"
#include "coll/exec/run.h"
#include "device/memory.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "sched/sched.h"
#include "transport/arena.h"
#include "transport/transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

void dtn_direct_hide(struct dtn_exec_run *run, int name)
{
    struct dtensor_ctx *ctx = run->ctx;

    for (int t = 0; t < ctx->ntransports; t++) {
        struct dtn_remote *named = &run->exposed.name[t][name];

        if (named->addr || named->key)
            ctx->transports[t]->ops->unreg(ctx->transports[t], *named);
        *named = (struct dtn_remote){ 0, 0 };
    }
}

static void direct_note(struct dtn_exec_run *run,
                        const struct dtn_transport *tp, const char *why)
{
    snprintf(run->ctx->path.why, sizeof run->ctx->path.why, "%s %s",
             tp->ops->name, why);
}

/* May every transport to a peer of the run reach memory of devices? */
static bool direct_able(struct dtn_exec_run *run)
{
    for (int t = 0; t < run->ctx->ntransports; t++) {
        const struct dtn_transport *tp = run->ctx->transports[t];

        if (!(run->exec->wires >> t & 1)
            || (tp->ops->attach && run->memory->exporter))
            continue;
        direct_note(run, tp, "reaches host memory only");
        return false;
    }
    return true;
}

/* Name `bytes` bytes of the device with every transport to a peer of the run.
 * False: one cannot reach them, and they have no name.
 */
static bool direct_name(struct dtn_exec_run *run, int name, unsigned char *mem,
                        size_t bytes)
{
    struct dtensor_ctx *ctx = run->ctx;
    bool named = direct_able(run);

    for (int t = 0; t < ctx->ntransports && named; t++) {
        struct dtn_transport *tp = ctx->transports[t];

        if (!(run->exec->wires >> t & 1))
            continue;
        named = tp->ops->reg(tp, mem, bytes, &run->exposed.name[t][name]) == 0;
        if (!named)
            direct_note(run, tp, tp->unreached);
    }
    if (!named)
        dtn_direct_hide(run, name);
    return named;
}

bool dtn_direct_expose(struct dtn_exec_run *run, enum dtn_space space)
{
    const struct dtn_exec *exec = run->exec;
    const int name = dtn_exec_name(space);
    const size_t bytes = exec->sched.bytes[space] * exec->scale[space];

    if (!direct_name(run, name, exec->base[space], bytes))
        return false;
    run->exposed.behind[name] = bytes;
    if (!exec->sched.exposed[space])
        dtn_direct_hide(run, name);   /* puts leave from it, nobody comes     */
    return true;
}

/* Do peers put into the scratch, or this rank from it? */
static bool scratch_moves(const struct dtn_sched *sched)
{
    bool moves = sched->exposed[DTN_TMP] || sched->exposed[DTN_ACC];

    for (int s = 0; s < sched->nsteps && !moves; s++)
        moves = sched->steps[s].op == DTN_OP_PUT
             && sched->steps[s].src.space > DTN_OUT;
    return moves;
}

void dtn_direct_scratch(struct dtn_exec_run *run)
{
    struct dtn_exec *exec = run->exec;
    const size_t bytes = dtn_sched_scratch(&exec->sched);

    run->ctx->path.why[0] = '\0';
    if (bytes == 0 || !scratch_moves(&exec->sched))
        return;
    if (!direct_able(run))
        return;
    if (!exec->far)
        exec->far = dtn_arena_alloc(run->memory->arena, bytes);
    if (!exec->far)
        snprintf(run->ctx->path.why, sizeof run->ctx->path.why, "there is no "
                 "room for %zu bytes of scratch on the device", bytes);
    if (!exec->far || !direct_name(run, DTN_TMP, exec->far, bytes))
        return;
    dtn_direct_hide(run, DTN_TMP);
    exec->base[DTN_TMP] = exec->far;
    exec->base[DTN_ACC] = exec->far + (exec->acc - exec->tmp);
}

bool dtn_direct_missed(const struct dtn_exec_run *run)
{
    return run->ctx->world.cluster->device.direct == DTN_DIRECT_REQUIRED
        && run->ctx->path.why[0];
}

void dtn_direct_say(struct dtn_exec_run *run)
{
    struct dtensor_ctx *ctx = run->ctx;
    struct dtn_path *path = &ctx->path;

    path->streams = path->graph = false;
    path->call = run->exec->wires != 0 ? ctx->calls + 1 : 0;
    path->by_program = run->exec->sched.reduction.fn != NULL;
    if (run->exec->said || run->exec->wires == 0)
        return;
    run->exec->said = true;
    dtn_log(&ctx->log, DTN_LOG_INFO, "gpu: %s: memory of the GPU %s%s",
            run->exec->sched.name, path->why[0] ? "is staged: "
                                                : "is reached in place",
            path->why);
}

/* Of device memory, or of this rank's to host memory that is mapped. */
unsigned char *dtn_direct_put_at(const struct dtn_exec_run *run,
                                 const struct dtn_exec_step *bound)
{
    const struct dtn_exec *exec = run->exec;
    const struct dtn_exec_peer *peer = bound->peer;
    const int name = dtn_exec_name(bound->step->dst.space);
    unsigned char *there = exec->base[dtn_exec_peer_base(
        (int)(peer - exec->peers), name)];

    return there && (peer->remote[name].key & DTN_KEY_DEVICE
                     || dtn_run_is_device(run, dtn_run_at(run, bound->src)))
         ? there + bound->dst.offset : NULL;
}

void dtn_direct_adopt(struct dtn_exec_run *run)
{
    if (run->memory != &dtn_host || !run->ctx->device)
        return;
    if (!run->exec->named) {              /* nothing was exposed              */
        memset(run->exposed.name, 0, sizeof run->exposed.name);
        memset(run->exposed.staged, 0, sizeof run->exposed.staged);
        memset(run->exposed.bounce, 0, sizeof run->exposed.bounce);
        run->trial.is_private = false;
    }
    run->memory = run->ctx->device;
    dtn_run_done(run, run->memory->ops->begin(run->memory));
}

void dtn_direct_end(struct dtn_exec_run *run)
{
    run->exec->base[DTN_TMP] = run->exec->tmp;
    run->exec->base[DTN_ACC] = run->exec->acc;
}

int dtn_direct_put(struct dtn_exec_run *run, const struct dtn_exec_step *bound,
                   unsigned char *there)
{
    const struct dtn_sched *sched = &run->exec->sched;
    const struct dtn_memory_ops *ops = run->memory->ops;
    const unsigned char *src = dtn_run_at(run, bound->src);
    const int box = bound->step->box;

    if (run->ctx->watcher)
        run->ctx->watcher->mapped += bound->bytes;
    return dtn_run_done(run, box >= 0
        ? ops->copy_box(run->memory, &sched->boxes[box],
                        dtensor_dtype_size(sched->dtype), there, src)
        : ops->copy(run->memory, there, src, bound->bytes));
}
