/* expose.c - how peers access the buffers of a run
 *
 * Memory of the arena is mapped by peers on the host, or registered with the
 * device: it is exposed as it is.  Private memory, such as memory of malloc(),
 * is staged, that is copied to a bounce buffer in the arena; or peers read and
 * write it by cross-memory attach (process_vm_readv()).  Which method is faster
 * depends on the distance of the cores.  On a virtual machine this distance
 * changes while a program runs.  A store to a cache line that a peer has read
 * must first invalidate the peer's copy: 64 KiB take 6 us between cores that
 * share a cache and 40 us between distant cores.  With non-temporal stores they
 * take 8 us; by cross-memory attach they take 8 and 13 us.
 *
 * In a fifth method nothing is exposed: the data pass through a small window
 * (window.c).
 *
 * Which is the fastest is measured, see trials.c.
 */
#include "coll/exec/expose.h"
#include "base/copy.h"
#include "base/units.h"
#include "boot/boot.h"
#include "coll/exec/bind.h"
#include "coll/exec/direct.h"
#include "coll/exec/exec.h"
#include "coll/exec/launch.h"
#include "coll/exec/peer.h"
#include "coll/exec/run.h"
#include "coll/exec/trials.h"
#include "job/await.h"
#include "job/bounce.h"
#include "job/ctx.h"
#include "sched/sched.h"
#include "transport/arena.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Is some exposed buffer private memory? */
static bool run_is_private(const struct dtn_exec_run *run)
{
    const struct dtn_sched *sched = &run->exec->sched;
    bool outside = false;

    if (run->memory != &dtn_host)
        return false;             /* device memory is staged or in place      */
    for (int s = DTN_IN; s <= DTN_OUT && run->exec->tries; s++)
        outside |= sched->exposed[s] && sched->bytes[s] > 0
                && !dtn_arena_contains(&run->ctx->arena, run->exec->base[s],
                                       sched->bytes[s]);
    return outside;
}

/* -------------------------------------------------------------- staging --- */

/* The part of a space that peers access. */
static struct dtn_range space_shown(const struct dtn_exec_run *run,
                                    enum dtn_space space)
{
    const struct dtn_sched *sched = &run->exec->sched;

    if (sched->exposed_range[space].bytes > 0)
        return sched->exposed_range[space];
    return (struct dtn_range){ 0, sched->bytes[space] };
}

static int stage_in(struct dtn_exec_run *run)
{
    const struct dtn_range shown = space_shown(run, DTN_IN);
    unsigned char *to = run->exposed.staged[DTN_IN] + shown.offset;
    const unsigned char *from = run->exec->base[DTN_IN] + shown.offset;

    run->ctx->copied_bytes += shown.bytes;
    if (!dtn_run_exposure(run)->nt || run->memory != &dtn_host)
        return dtn_run_done(run, run->memory->ops->copy(run->memory, to, from,
                                                        shown.bytes));
    dtn_copy_nt(to, from, shown.bytes);
    dtn_copy_fence();
    return 0;
}

static int stage_out(struct dtn_exec_run *run)
{
    const struct dtn_range shown = space_shown(run, DTN_OUT);

    if (!run->exposed.staged[DTN_OUT])
        return 0;
    run->ctx->copied_bytes += shown.bytes;
    return dtn_run_download(run, run->exec->base[DTN_OUT] + shown.offset,
                            run->exposed.staged[DTN_OUT] + shown.offset,
                            shown.bytes);
}

/* ------------------------------------------------------------- exposing --- */

/* May peers access the space by cross-memory attach if it is private memory? */
static bool space_by_cma(const struct dtn_exec_run *run, enum dtn_space space)
{
    const struct dtn_sched *sched = &run->exec->sched;

    if (sched->expose == DTN_EXPOSE_STAGED_ONLY || space > DTN_OUT)
        return false;
    return sched->bytes[space] >= DTN_STAGED_MAX_BYTES
        || dtn_run_exposure(run)->cma[space];
}

/* Register `mem` as a space with every transport.  EINVAL: it must be staged,
 * and is registered with none.
 */
static int space_register(struct dtn_exec_run *run, enum dtn_space space,
                          unsigned char *mem)
{
    struct dtensor_ctx *ctx = run->ctx;
    const size_t bytes = run->exec->sched.bytes[space]
                       * run->exec->scale[space];
    const int name = dtn_exec_name(space);
    int rc = 0;

    for (int t = 0; t < ctx->ntransports && rc == 0; t++) {
        struct dtn_transport *tp = ctx->transports[t];

        rc = tp->ops->fetch && !space_by_cma(run, space)
             && !dtn_arena_contains(&ctx->arena, mem, bytes)
           ? DTENSOR_EINVAL
           : tp->ops->reg(tp, mem, bytes, &run->exposed.name[t][name]);
    }
    if (rc != 0)
        dtn_direct_hide(run, name);
    run->exposed.behind[name] = bytes;
    return rc;
}

/* Take a bounce buffer; EAGAIN if there is no room while other runs have some.
 */
static int space_bounce(struct dtn_exec_run *run, enum dtn_space space)
{
    const int mine = run->exposed.bounce[DTN_IN] != NULL;
    const enum dtn_bounce_use use = space == DTN_IN ? DTN_BOUNCE_IN
                                                    : DTN_BOUNCE_OUT;
    const size_t bytes = run->exec->sched.bytes[space];
    const bool turns = dtn_run_exposure(run)->turns
                    && run->memory == &dtn_host;

    run->exposed.bounce[space] = turns
        ? dtn_bounce_take_next(run->ctx, use, run->memory, bytes)
        : dtn_bounce_take(run->ctx, use, run->memory, bytes);
    if (run->exposed.bounce[space])
        return 0;
    return run->ctx->bounces.ntaken > mine ? DTENSOR_EAGAIN : DTENSOR_ENOMEM;
}

/* Stage a space in the bounce buffer; only the part that peers access is used.
 */
static int space_stage(struct dtn_exec_run *run, enum dtn_space space)
{
    unsigned char *mem = run->exposed.bounce[space]->mem;
    int rc = 0;

    run->exposed.staged[space] = mem;
    if (space == DTN_OUT)
        run->exec->base[DTN_EXEC_OUT_EXPOSED] = mem;
    if (space == DTN_IN)
        rc = stage_in(run);
    if (rc == 0)
        rc = space_register(run, space, mem);
    run->exposed.refused = rc != 0;
    return rc;
}

/* Is it the OUT that needs not be exposed, since there are steps for private
 * memory?
 */
static bool space_hidden(const struct dtn_exec_run *run, enum dtn_space space)
{
    const struct dtn_exec *exec = run->exec;

    return space == DTN_OUT && exec->sched.nprivate > 0
        && run->memory == &dtn_host
        && !dtn_arena_contains(&run->ctx->arena, exec->base[DTN_OUT],
                               exec->sched.bytes[DTN_OUT]);
}

/* Expose a space as it is, or staged.  Puts from a device that cards do not
 * reach leave from a bounce buffer too.
 */
static int space_expose(struct dtn_exec_run *run, enum dtn_space space)
{
    const struct dtn_exec *exec = run->exec;
    const bool device = dtn_run_is_device(run, exec->base[space]);
    int rc = DTENSOR_EINVAL;

    if (!exec->sched.exposed[space] && !device)
        return 0;
    if (space_hidden(run, space)) {
        run->hidden = true;
        return 0;
    }
    if (!device)
        rc = space_register(run, space, exec->base[space]);
    else if (dtn_direct_expose(run, space))
        rc = 0;
    else if (dtn_direct_missed(run))
        return DTENSOR_ENODEV;
    run->exposed.refused = rc != 0 && rc != DTENSOR_EINVAL;
    if (rc == 0 || run->exposed.refused)
        return rc;
    rc = space_bounce(run, space);
    return rc == 0 && exec->sched.exposed[space] ? space_stage(run, space) : rc;
}

static int expose_failed(struct dtn_exec_run *run, int rc)
{
    const size_t *bytes = run->exec->sched.bytes;
    char in[32], out[32];

    if (rc == DTENSOR_ENODEV && !run->exposed.refused)
        return dtn_poison(run->ctx, rc, run->ctx->world.rank, "[device] direct "
                          "= required, but memory of the GPU has to be staged: "
                          "%s (set direct = auto, or see dtensor-conf "
                          "--fabric)", run->ctx->path.why);
    dtn_format_size(bytes[DTN_IN], in, sizeof in);
    dtn_format_size(bytes[DTN_OUT], out, sizeof out);
    if (run->exposed.refused)
        return dtn_poison(run->ctx, rc, run->ctx->world.rank, "the device "
                          "refused to register memory of this call, %s in and "
                          "%s out (may enough be locked? see ulimit -l; "
                          "DTN_LOG=warn says why)", in, out);
    return dtn_poison(run->ctx, rc, run->ctx->world.rank, "no room to stage "
                      "memory that peers cannot reach, %s in and %s out (use "
                      "dtensor_alloc, or raise [transport] arena)", in, out);
}

static void spaces_hide(struct dtn_exec_run *run)
{
    struct dtensor_ctx *ctx = run->ctx;

    for (int i = 0; i < run->exec->nspaces; i++)
        dtn_direct_hide(run, dtn_exec_name(run->exec->spaces[i]));
    for (int space = DTN_IN; space <= DTN_OUT; space++)
        if (run->exposed.bounce[space])
            dtn_bounce_give(ctx, run->exposed.bounce[space]);
    if (run->memory != &dtn_host)
        dtn_direct_end(run);
}

int dtn_expose(struct dtn_exec_run *run)
{
    int rc = 0;

    memset(run->exposed.name, 0, sizeof run->exposed.name);
    memset(run->exposed.staged, 0, sizeof run->exposed.staged);
    memset(run->exposed.bounce, 0, sizeof run->exposed.bounce);
    dtn_trial_begin(run, run_is_private(run));
    if (run->memory != &dtn_host)
        dtn_direct_scratch(run);
    if (run->memory != &dtn_host && dtn_direct_missed(run))
        rc = DTENSOR_ENODEV;
    for (int i = 0; i < run->exec->nspaces && rc == 0 && !run->windowed; i++)
        rc = space_expose(run, run->exec->spaces[i]);
    if (run->memory != &dtn_host)
        dtn_direct_say(run);
    if (rc == DTENSOR_EAGAIN)
        spaces_hide(run);
    return rc == 0 || rc == DTENSOR_EAGAIN ? rc : expose_failed(run, rc);
}

int dtn_unexpose(struct dtn_exec_run *run, int rc)
{
    if (rc == 0 && !run->windowed)
        rc = stage_out(run);
    spaces_hide(run);
    if (rc == 0)
        dtn_trial_end(run);
    return rc;
}
