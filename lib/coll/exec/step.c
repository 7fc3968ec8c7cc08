/* step.c - the steps of a run, one after the other
 *
 * A step signals a peer or waits for its signal here; the other steps are those
 * of put.c and move.c, and operations of the kind of memory.  A signal with
 * another fingerprint than this run's shows that two ranks made different calls
 * (mismatch.c).
 */
#include "coll/exec/step.h"
#include "base/compiler.h"
#include "coll/exec/bind.h"
#include "coll/exec/exec.h"
#include "coll/exec/launch.h"
#include "coll/exec/mismatch.h"
#include "coll/exec/move.h"
#include "coll/exec/peer.h"
#include "coll/exec/put.h"
#include "coll/exec/ready.h"
#include "coll/exec/run.h"
#include "coll/exec/signals.h"
#include "device/memory.h"
#include "job/await.h"
#include "job/ctx.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

/* --------------------------------------------------------------- signal --- */

/* Send data of device memory. */
static DTN_NOINLINE int run_send_device(struct dtn_exec_run *run, int rank,
                           struct dtn_signal *signal, const void *data)
{
    unsigned char copy[DTN_KEPT_MAX];
    int rc = dtn_run_download(run, copy, data, signal->len);

    return rc == 0 ? dtn_run_send(run, rank, signal, copy) : rc;
}

static DTN_NOINLINE int run_signal(struct dtn_exec_run *run,
                                   const struct dtn_exec_step *bound)
{
    const struct dtn_step *step = bound->step;
    const struct dtn_exec_peer *peer = bound->peer;
    const bool eager = step->tag == DTN_TAG_EAGER;
    struct dtn_signal signal = {
        .fingerprint = run->fingerprint ^ step->match_bits,
        .kind = dtn_signal_kind((uint32_t)step->tag,
                                eager ? (uint32_t)bound->bytes : 0),
    };
    const void *data = NULL;
    int rc;

    if (run->device.streams && step->tag == DTN_TAG_READY)
        return dtn_ready_send(run, bound, &signal);
    if (run->device.streams && peer->words && step->tag != DTN_TAG_EAGER)
        return dtn_signals_post(run, bound->peer, step->tag);
    rc = dtn_run_settle(run, !run->polls);
    if (rc != 0)
        return rc;
    if (step->tag == DTN_TAG_READY)
        return dtn_ready_send(run, bound, &signal);
    if (eager)
        data = dtn_run_at(run, bound->src);
    return signal.len > 0 && dtn_run_is_device(run, data)
         ? run_send_device(run, peer->rank, &signal, data)
         : dtn_run_send(run, peer->rank, &signal, data);
}

static struct dtn_signal short_signal(const struct dtn_exec_run *run,
                                      const struct dtn_exec_step *bound)
{
    return (struct dtn_signal){
        .fingerprint = run->fingerprint ^ bound->step->match_bits,
        .kind = dtn_signal_kind(DTN_TAG_EAGER, (uint32_t)bound->bytes) };
}

/* The same for a short message, which mostly is of host memory. */
static int run_send_short(struct dtn_exec_run *run,
                          const struct dtn_exec_step *bound)
{
    struct dtn_signal signal = short_signal(run, bound);

    return run->memory != &dtn_host ? run_signal(run, bound)
         : dtn_run_send(run, bound->peer->rank, &signal,
                        dtn_run_at(run, bound->src));
}

int dtn_run_first(struct dtn_exec_run *run)
{
    const struct dtn_exec_step *bound = run->exec->steps;
    const int n = run->memory == &dtn_host ? run->exec->nfirst : 0;
    int rc = 0;

    for (; run->progress.step < n; run->progress.step++, bound++) {
        struct dtn_signal signal = short_signal(run, bound);

        rc = dtn_try_signal(run->ctx, bound->peer->rank, &signal,
                            dtn_run_at(run, bound->src));
        if (rc != 0)
            break;
    }
    return rc;
}

/* ----------------------------------------------------------------- wait --- */

/* A peer whose device signals says READY again, when this rank's does not. */
static bool run_hears_again(struct dtn_exec_peer *peer,
                            const struct dtn_signal *signal)
{
    peer->again = false;
    return signal->len == 0;
}

static int run_await(struct dtn_exec_run *run, int rank,
                     const struct dtn_signal **signalp)
{
    return run->polls ? dtn_poll(run->ctx, rank, &run->wait, signalp)
                      : dtn_await(run->ctx, rank, signalp);
}

/* Long data go straight to where the step wants them, if nothing came yet. */
static DTN_NOINLINE int run_await_long(struct dtn_exec_run *run,
                                       const struct dtn_exec_step *bound,
                                       const struct dtn_signal **signalp)
{
    const struct dtn_signal signal = {
        .fingerprint = run->fingerprint ^ bound->step->match_bits,
        .tag = (uint32_t)bound->step->tag, .len = (uint32_t)bound->bytes
    };
    const int rank = bound->peer->rank;
    int rc;

    if (run->memory != &dtn_host)
        return run_await(run, rank, signalp);
    dtn_expect(run->ctx, rank, &signal, dtn_run_at(run, bound->dst));
    rc = run_await(run, rank, signalp);
    if (rc != 0)
        dtn_expect(run->ctx, rank, NULL, NULL);
    return rc;
}

/* Copy eager data to where the step wants them, unless they are there. */
static int run_keep(struct dtn_exec_run *run, void *dst, const void *data,
                    size_t bytes)
{
    if (data == dst)
        return 0;
    if (run->memory != &dtn_host)
        return dtn_run_download(run, dst, data, bytes);
    memcpy(dst, data, bytes);
    return 0;
}

static DTN_NOINLINE int run_wait(struct dtn_exec_run *run,
                                 const struct dtn_exec_step *bound)
{
    const struct dtn_step *step = bound->step;
    struct dtn_exec_peer *peer = bound->peer;
    const struct dtn_signal *signal;
    const size_t bytes = bound->bytes;
    const void *data;
    int rc;

    if (run->device.streams && peer->meets)
        return dtn_signals_meet(run, bound);
    if (run->device.streams && peer->words && step->tag != DTN_TAG_EAGER)
        return dtn_signals_hold(run, peer, step->tag);
    rc = bytes > DTN_EAGER_MAX ? run_await_long(run, bound, &signal)
                               : run_await(run, peer->rank, &signal);
    if (rc != 0)
        return rc;
    if (signal->fingerprint != (run->fingerprint ^ step->match_bits)
        || signal->tag != step->tag)
        return dtn_run_mismatch(run, step, signal);
    if (peer->again ? !run_hears_again(peer, signal)
        : step->tag == DTN_TAG_READY ? !dtn_ready_receive(run, peer, signal)
                                     : signal->len != bytes)
        return dtn_run_mismatch(run, step, signal);
    data = bytes > 0 ? dtn_eager_data(run->ctx, peer->rank, signal) : NULL;
    if (bytes > 0)
        rc = run_keep(run, dtn_run_at(run, bound->dst), data, bytes);
    if (rc == 0)
        dtn_consume(run->ctx, peer->rank);
    if (rc == 0 && peer->again)
        return run_wait(run, bound);
    return rc == 0 && run->device.streams && step->tag == DTN_TAG_READY
         ? dtn_signals_meet(run, bound) : rc;
}

/* The same for a short message, which mostly goes to host memory. */
static int run_receive_short(struct dtn_exec_run *run,
                             const struct dtn_exec_step *bound)
{
    const struct dtn_signal *signal;
    const int rank = bound->peer->rank;
    int rc;

    if (run->memory != &dtn_host)
        return run_wait(run, bound);
    rc = run_await(run, rank, &signal);
    if (rc != 0)
        return rc;
    if (signal->fingerprint != (run->fingerprint ^ bound->step->match_bits)
        || signal->kind != dtn_signal_kind(DTN_TAG_EAGER,
                                           (uint32_t)bound->bytes))
        return dtn_run_mismatch(run, bound->step, signal);
    if (bound->bytes > 0)
        memcpy(dtn_run_at(run, bound->dst),
               dtn_eager_data(run->ctx, rank, signal), bound->bytes);
    dtn_consume(run->ctx, rank);
    return 0;
}

/* ------------------------------------------------------------ all steps --- */

static int run_fill(struct dtn_exec_run *run, const struct dtn_exec_step *bound)
{
    const struct dtn_step *step = bound->step;
    const struct dtn_sched *sched = &run->exec->sched;
    const enum dtensor_dtype dtype = step->dst.space == DTN_ACC
                                   ? sched->reduction.partial : sched->dtype;
    void *dst = dtn_run_at(run, bound->dst);

    return dtn_run_done(run, step->op == DTN_OP_SCALE
        ? run->memory->ops->scale(run->memory, dtype, dst, bound->count,
                                  sched->divisor)
        : run->memory->ops->neutral(run->memory, dtype, sched->reduction.op,
                                    dst, bound->count));
}

static dtn_exec_step_f *const FUNCTIONS[DTN_NOPS] = {
    [DTN_OP_PUT] = dtn_run_put,       [DTN_OP_FLUSH] = dtn_run_flush,
    [DTN_OP_SIGNAL] = run_signal,     [DTN_OP_WAIT] = run_wait,
    [DTN_OP_COPY] = dtn_run_copy,     [DTN_OP_REDUCE] = dtn_run_reduce,
    [DTN_OP_FOLD] = dtn_run_reduce,   [DTN_OP_SCALE] = run_fill,
    [DTN_OP_NEUTRAL] = run_fill
};

bool dtn_step_is_short(const struct dtn_exec_step *bound)
{
    const struct dtn_step *step = bound->step;

    return (step->op == DTN_OP_SIGNAL || step->op == DTN_OP_WAIT)
        && step->tag == DTN_TAG_EAGER && bound->bytes <= DTN_EAGER_MAX;
}

dtn_exec_step_f *dtn_step_function(const struct dtn_exec_step *bound)
{
    const enum dtn_op op = bound->step->op;

    if (dtn_step_is_short(bound))
        return op == DTN_OP_SIGNAL ? run_send_short : run_receive_short;
    return FUNCTIONS[op];
}

int dtn_run_steps(struct dtn_exec_run *run)
{
    const struct dtn_exec_step *bound;
    int rc;

    for (; run->progress.step < run->progress.end; run->progress.step++) {
        bound = &run->exec->steps[run->progress.step];
        rc = bound->run(run, bound);
        if (rc != 0)
            return rc;
        run->wait.start_ns = 0;
    }
    return dtn_run_settle(run, !run->polls);
}
