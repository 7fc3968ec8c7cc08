/* run.c - begins and ends a run of an executable
 *
 * An executable has all that a run needs: connections, scratch memory, and room
 * for what peers say about their buffers.  So a run allocates nothing.  It
 * exposes IN and OUT to the peers (expose.c), takes the steps in order
 * (step.c), and ends.  A blocking call does so at once; a started one begins,
 * and goes on in each poll.
 */
#include "coll/exec/run.h"
#include "base/compiler.h"
#include "base/wait.h"
#include "coll/exec.h"
#include "coll/exec/apart.h"
#include "coll/exec/bind.h"
#include "coll/exec/cma.h"
#include "coll/exec/exec.h"
#include "coll/exec/expose.h"
#include "coll/exec/graph.h"
#include "coll/exec/launch.h"
#include "coll/exec/lend.h"
#include "coll/exec/private.h"
#include "coll/exec/report.h"
#include "coll/exec/signals.h"
#include "coll/exec/step.h"
#include "coll/exec/watch.h"
#include "coll/exec/window.h"
#include "coll/request.h"
#include "coll/state.h"
#include "device/memory.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "sched/fingerprint.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* ---------------------------------------------------------------- begin --- */

/* Record this call, in case other ranks make a different one; then count it:
 * the beating thread reads the last record.
 */
static void run_note(const struct dtn_exec_run *run)
{
    struct dtensor_ctx *ctx = run->ctx;
    const uint64_t call = atomic_load_explicit(&ctx->calls,
                                               memory_order_relaxed) + 1;
    struct dtn_call_record *said = &ctx->recent_calls[call % DTN_RECORD_MAX];

    *said = run->exec->record;
    said->fingerprint = run->fingerprint;
    said->number = run->exec->group.calls ? *run->exec->group.calls : 0;
    atomic_store_explicit(&ctx->calls, call, memory_order_release);
}

/* Does it send READY with spaces, or may it put from a device? */
static bool run_exposes(const struct dtn_exec_run *run)
{
    return run->exec->named || run->memory != &dtn_host;
}

/* Initialise all of `run` but `polls`, and expose its buffers. */
static int run_prepare(struct dtn_exec_run *run, struct dtn_exec *exec,
                       const void *in, void *out, uint64_t fingerprint)
{
    int rc = 0;

    run->exec = exec;
    run->ctx = exec->group.ctx;
    run->fingerprint = fingerprint;
    run->exposed.refused = run->windowed = run->hidden = false;
    run->trial.is_private = false;
    run->lent = NULL;
    run->progress.step = 0;
    run->progress.end = exec->sched.nsteps;
    run->progress.rows.begun = false;
    run->progress.moved = 0;
    run->progress.nready = 0;
    run->wait.start_ns = 0;
    run->memory = dtn_memory_of(run->ctx->device, in, out);
    run->device.launched = run->device.streams = false;
    run->device.records = run->device.apart = false;
    exec->base[DTN_IN] = (unsigned char *)(uintptr_t)in;
    exec->base[DTN_OUT] = exec->base[DTN_EXEC_OUT_EXPOSED] = out;
    if (run->memory != &dtn_host) {
        memset(run->exposed.name, 0, sizeof run->exposed.name);
        dtn_apart_take(run);
        rc = dtn_run_done(run, run->memory->ops->begin(run->memory));
    }
    if (rc == 0 && run_exposes(run))
        rc = dtn_expose(run);
    return rc;
}

static int run_begin(struct dtn_exec_run *run, struct dtn_exec *exec,
                     const void *in, void *out, uint64_t fingerprint)
{
    int rc = run_prepare(run, exec, in, out, fingerprint);

    if (rc == 0 && exec->sched.streams)
        rc = dtn_signals_begin(run);
    if (rc != DTENSOR_EAGAIN && exec->messages)
        dtn_exec_count_messages(exec);
    return rc;
}

/* ---------------------------------------------------------- steps, end --- */

/* Run the window's executable in place of the steps that are left out. */
static DTN_NOINLINE int run_inside(struct dtn_exec_run *run)
{
    const struct dtn_exec *exec = run->exec;
    struct dtn_exec *window;
    int rc = 0;

    if (!run->lent) {
        rc = dtn_window_take(run);
        if (rc != 0)
            return rc;
        window = exec->window->exec;
        window->started.polls = run->polls;
        rc = run_prepare(&window->started, window, exec->base[DTN_IN],
                         exec->base[DTN_OUT], run->fingerprint);
    }
    return rc == 0 ? dtn_run_steps(&exec->window->exec->started) : rc;
}

/* Note the call while its first messages are on the way. */
static int run_first(struct dtn_exec_run *run)
{
    const int rc = dtn_run_first(run);

    run_note(run);
    return rc == 0 || rc == DTENSOR_EAGAIN ? 0
         : dtn_await_failed(run->ctx,
                            run->exec->steps[run->progress.step].peer->rank,
                            rc);
}

static int run_go(struct dtn_exec_run *run)
{
    const int rc = dtn_run_steps(run);

    if (rc != 0 || !(run->windowed || run->hidden))
        return rc;
    return run->windowed ? run_inside(run) : dtn_private_run(run);
}

/* Of a run on a device: wait for what was launched before a failure. */
static DTN_NOINLINE void run_end_device(struct dtn_exec_run *run, int rc)
{
    if (rc != 0 && run->device.records)
        dtn_graph_end(run);
    if (rc != 0 && run->device.streams)
        dtn_watch_give_up(run);
    dtn_run_settle(run, true);
    dtn_apart_end(run);
}

static DTN_NOINLINE void run_end_inside(struct dtn_exec_run *run, int rc)
{
    struct dtn_exec_run *inside = &run->exec->window->exec->started;

    if (inside->memory != &dtn_host)
        run_end_device(inside, rc);
    dtn_unexpose(inside, rc);
}

static int run_end(struct dtn_exec_run *run, int rc, struct dtensor_error *err)
{
    if (run->windowed && run->lent)
        run_end_inside(run, rc);
    if (run->lent)
        dtn_lend_end(run);
    dtn_run_now(run->ctx, NULL);
    if (run->memory != &dtn_host)
        run_end_device(run, rc);
    if (run_exposes(run))
        rc = dtn_unexpose(run, rc);
    return rc == 0 ? 0 : dtn_ctx_check(run->ctx, err);
}

/* ------------------------------------------------------- blocking calls --- */

/* The call to compare while ranks connect. */
static void exec_call(struct dtn_exec *exec, uint64_t fingerprint)
{
    exec->record.fingerprint = fingerprint;
    exec->record.number = exec->group.calls ? *exec->group.calls : 0;
}

static inline int exec_run(struct dtn_exec *exec, const void *in, void *out,
                           uint64_t fingerprint, struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = exec->group.ctx;
    struct dtn_exec_run run;
    int rc = dtn_ctx_works(ctx) ? 0 : dtn_ctx_ready(ctx, err);

    if (rc == 0)
        rc = dtn_run_alone(ctx, err);
    if (rc == 0 && dtn_coll_of(ctx)->pending)
        rc = dtn_requests_finish(ctx, err);
    if (rc == 0 && exec->unmet) {
        exec_call(exec, fingerprint);
        rc = dtn_exec_connect(exec, err);
    }
    if (rc != 0)
        return rc;
    run.polls = false;
    rc = run_begin(&run, exec, in, out, fingerprint);
    dtn_run_now(ctx, &run);
    if (rc == 0)
        rc = run_first(&run);
    if (rc == 0)
        rc = run_go(&run);
    return run_end(&run, rc, err);
}

static DTN_NOINLINE int exec_run_watched(struct dtn_exec *exec, const void *in,
                                         void *out, uint64_t fingerprint,
                                         struct dtensor_error *err)
{
    int rc;

    dtn_exec_tell_begin(exec, false);
    rc = exec_run(exec, in, out, fingerprint, err);
    dtn_exec_tell_end(exec, rc == 0);
    return rc;
}

int dtn_exec_run(struct dtn_exec *exec, const void *in, void *out,
                 uint64_t fingerprint, struct dtensor_error *err)
{
    return exec->group.ctx->watcher
         ? exec_run_watched(exec, in, out, fingerprint, err)
         : exec_run(exec, in, out, fingerprint, err);
}

int dtn_exec_run_step(struct dtn_exec *exec, const void *in, void *out,
                      uint64_t base, uint32_t number, const char *text,
                      struct dtensor_error *err)
{
    const struct dtn_call_record alone = exec->record;
    int rc;

    dtn_exec_set_text(exec, base, text);
    rc = dtn_exec_run(exec, in, out, dtn_fingerprint_numbered(base, number),
                      err);
    exec->record = alone;
    return rc;
}

/* -------------------------------------------------------- started calls --- */

/* Stop and continue the clock of a timed run while it is not polled. */
static void run_pause(struct dtn_exec_run *run)
{
    if (run->trial.timed_ns != 0)
        run->trial.left_ns = dtn_now_ns();
}

static void run_resume(struct dtn_exec_run *run)
{
    if (run->trial.timed_ns != 0 && !run->ctx->in_blocking_wait)
        run->trial.timed_ns += dtn_now_ns() - run->trial.left_ns;
}

int dtn_exec_start(struct dtn_exec *exec, const void *in, void *out,
                   uint64_t fingerprint, struct dtensor_error *err)
{
    int rc = dtn_ctx_ready(exec->group.ctx, err);

    if (rc == 0 && exec->unmet) {
        exec_call(exec, fingerprint);
        rc = dtn_exec_meet(exec, err);
    }
    if (rc != 0)
        return rc;
    exec->started.polls = true;
    rc = run_begin(&exec->started, exec, in, out, fingerprint);
    if (rc != DTENSOR_EAGAIN)
        run_note(&exec->started);
    run_pause(&exec->started);
    if (rc != 0 && rc != DTENSOR_EAGAIN)
        return run_end(&exec->started, rc, err);
    if (rc == 0)
        dtn_exec_tell_start(exec);
    if (rc == 0)
        dtn_apart_turn(&exec->started, false);
    else
        dtn_apart_end(&exec->started);
    return rc;
}

int dtn_exec_warm(struct dtn_exec *exec, const void *in, void *out,
                  struct dtensor_error *err)
{
    int rc;

    exec->trials.best = DTN_METHOD_TURNS;   /* staged, in the largest buffers */
    exec->trials.runs = INT_MAX;
    rc = dtn_exec_start(exec, in, out, 0, err);
    exec->trials.best = -1;
    exec->trials.runs = 0;
    if (rc != 0)
        return rc;
    dtn_apart_turn(&exec->started, true);
    rc = exec->tries ? dtn_cma_warm(&exec->started) : 0;
    if (rc == 0 && exec->started.trial.is_private)
        rc = dtn_window_warm(&exec->started);
    if (rc == 0 && exec->sched.nprivate > 0)
        rc = dtn_private_warm(&exec->started);
    if (rc == 0)
        rc = dtn_run_settle(&exec->started, true);
    if (rc != 0)
        return run_end(&exec->started, rc, err);
    dtn_apart_end(&exec->started);
    if (run_exposes(&exec->started))
        dtn_unexpose(&exec->started, DTENSOR_EAGAIN);
    return 0;
}

static int exec_poll(struct dtn_exec *exec, struct dtensor_error *err)
{
    struct dtn_exec_run *run = &exec->started;
    int rc = dtn_ctx_check(exec->group.ctx, err);

    dtn_apart_turn(run, true);
    if (rc == 0) {
        dtn_run_now(run->ctx, run);
        run_resume(run);
        rc = run_go(run);
        dtn_run_now(run->ctx, NULL);
    }
    if (rc != DTENSOR_EAGAIN)
        return run_end(run, rc, err);
    dtn_apart_turn(run, false);
    run_pause(run);
    return rc;
}

/* A run on a device, and one that has put a part of a message, is polled. */
int dtn_exec_finish(struct dtn_exec *exec, struct dtensor_error *err)
{
    struct dtn_exec_run *run = &exec->started;

    run->polls = run->ctx->device || run->progress.moved > 0;
    return dtn_exec_poll(exec, err);
}

int dtn_exec_poll(struct dtn_exec *exec, struct dtensor_error *err)
{
    int rc;

    if (!exec->group.ctx->watcher)
        return exec_poll(exec, err);
    dtn_exec_tell_begin(exec, true);
    rc = exec_poll(exec, err);
    dtn_exec_tell_end(exec, rc == 0);
    if (rc != DTENSOR_EAGAIN)
        dtn_watch_landed(exec->group.ctx, &exec->flight);
    return rc;
}
