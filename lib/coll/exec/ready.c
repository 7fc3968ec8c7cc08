/* ready.c - READY: the address and size of a rank's memory
 *
 * READY gives a peer the address and the size of this rank's IN, OUT and TMP or
 * ACC, if peers access them.  An address with its size has 22 bytes, so two of
 * them fit into the line of the signal; three go into a slot beside it.  The
 * peer knows from its own steps how much of each space it will access before
 * the next READY.  If that is more than the size, it fails before it moves a
 * byte: an allgather of 4 MiB does not write into a result buffer of 2 MiB,
 * even if the two ranks made different calls.
 *
 * A READY that gives no address asks for the window (window.c).  One without
 * OUT, of a schedule that has steps for private memory, asks for those.  An
 * address comes with the method that exposes private memory (trials.c).
 */
#include "coll/exec/ready.h"
#include "base/box.h"
#include "base/error.h"
#include "coll/exec/bind.h"
#include "coll/exec/direct.h"
#include "coll/exec/exec.h"
#include "coll/exec/peer.h"
#include "coll/exec/run.h"
#include "coll/exec/trials.h"
#include "job/await.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_BYTES = 22,              /* struct dtn_remote; 43 bits of size, two  */
    NAME_AT = sizeof(struct dtn_remote),       /* of the space, three of the  */
                                               /* method                      */
    READY_BYTES = (DTN_EXEC_NNAMES + 1) * NAME_BYTES
};
_Static_assert(2 * NAME_BYTES <= DTN_PAYLOAD_MAX, "two names fit the line");
_Static_assert(DTN_NMETHODS < 8, "a method fits in three bits, or none");

/* -------------------------------------------------------------- telling --- */

static void name_write(unsigned char *at, int space, unsigned method,
                       struct dtn_remote name, size_t bytes)
{
    const uint64_t extent = (uint64_t)bytes << 5 | method << 2
                          | (unsigned)space;
    const uint16_t part[3] = { (uint16_t)extent, (uint16_t)(extent >> 16),
                               (uint16_t)(extent >> 32) };

    memcpy(at, &name, sizeof name);
    memcpy(at + NAME_AT, part, sizeof part);
}

/* Read an address; returns the index of its space, or DTN_EXEC_WORDS. */
static int name_read(const unsigned char *at, unsigned *method,
                     struct dtn_remote *name, size_t *bytes)
{
    uint16_t part[3];

    memcpy(name, at, sizeof *name);
    memcpy(part, at + NAME_AT, sizeof part);
    *bytes = part[0] >> 5 | (size_t)part[1] << 11 | (size_t)part[2] << 27;
    *method = part[0] >> 2 & 7;
    return part[0] & 3;
}

int dtn_ready_send(struct dtn_exec_run *run, const struct dtn_exec_step *bound,
                   struct dtn_signal *signal)
{
    const struct dtn_step *step = bound->step;
    const struct dtn_exec_peer *peer = bound->peer;
    const size_t offset = bound->src.offset;
    unsigned char names[READY_BYTES];

    for (int s = 0; s < DTN_EXEC_NNAMES; s++) {
        struct dtn_remote name = run->exposed.name[peer->transport][s];
        size_t bytes = run->exposed.behind[s];

        if (!name.addr && !name.key)
            continue;
        if (s == dtn_exec_name(step->src.space)) {
            name.addr += offset;
            bytes = step->message_bytes > 0 ? step->message_bytes
                                            : bytes - offset;
        }
        name_write(names + signal->len, s, dtn_trial_tells(run), name, bytes);
        signal->len += NAME_BYTES;
    }
    if (run->device.streams) {
        name_write(names + signal->len, DTN_EXEC_WORDS, 0, run->device.words,
                   0);
        signal->len += NAME_BYTES;
    }
    return dtn_run_send(run, peer->rank, signal, names);
}

/* -------------------------------------------------------------- hearing --- */

/* No names: the peer wants the window.  No name of OUT, though the schedule has
 * steps for that: it is private memory there.  Once all READY came, all ranks
 * know whether one of them has said so.
 */
static void ready_asks(struct dtn_exec_run *run,
                       const struct dtn_signal *signal, size_t out_bytes)
{
    const struct dtn_exec *exec = run->exec;

    run->windowed |= exec->window && signal->len == 0;
    run->hidden |= exec->sched.nprivate > 0 && out_bytes == 0;
    if ((run->windowed || run->hidden)
        && run->progress.nready == exec->nready)
        run->progress.end = run->progress.step + 1;
}

bool dtn_ready_receive(struct dtn_exec_run *run, struct dtn_exec_peer *peer,
                       const struct dtn_signal *signal)
{
    const unsigned char *names = dtn_eager_data(run->ctx, peer->rank, signal);
    const struct dtn_exec_access *reach =
        &run->exec->reach[run->progress.nready++];
    unsigned char **mapped =
        &run->exec->base[dtn_exec_peer_base((int)(peer - run->exec->peers), 0)];
    size_t behind[DTN_EXEC_NNAMES] = { 0 };
    bool enough = signal->len <= READY_BYTES && signal->len % NAME_BYTES == 0;

    memset(peer->remote, 0, sizeof peer->remote);
    memset(mapped, 0, DTN_EXEC_NNAMES * sizeof *mapped);
    for (int at = 0; enough && at < signal->len; at += NAME_BYTES) {
        struct dtn_remote name;
        unsigned method;
        size_t bytes;
        int s = name_read(names + at, &method, &name, &bytes);

        if (s == DTN_EXEC_WORDS) {
            peer->again = !run->device.streams;
            peer->words = run->device.streams
                ? peer->tp->ops->map(peer->tp, peer->rank, name) : NULL;
            enough &= peer->again || peer->words;
            continue;
        }
        behind[s] = bytes;
        peer->remote[s] = name;
        dtn_trial_hears(run, peer, method);
        if (peer->tp->ops->map)
            mapped[s] = peer->tp->ops->map(peer->tp, peer->rank, name);
        if (name.key & DTN_KEY_DEVICE && mapped[s])
            dtn_direct_adopt(run);
    }
    ready_asks(run, signal, behind[DTN_OUT]);
    if (run->exec->window && signal->len == 0)
        return true;
    for (int s = 0; s < DTN_EXEC_NNAMES; s++)
        enough = enough && (reach->bytes[s] <= behind[s]
                            || (s == DTN_OUT && run->hidden));
    return enough;
}

/* ----------------------------------------------------- how far steps go --- */

/* The end of a step, in bytes from the start of its span. */
static size_t step_extent(const struct dtn_exec *exec,
                          const struct dtn_step *step,
                          const struct dtn_span *span)
{
    const struct dtn_box *box;
    const int64_t *stride;
    int64_t last = 0;

    if (step->box < 0)
        return step->bytes * exec->scale[span->space];
    box = &exec->sched.boxes[step->box];
    stride = span == &step->dst ? box->dst_stride : box->src_stride;
    for (int d = 0; d < box->ndim; d++)
        last += (box->size[d] - 1) * stride[d];
    return (size_t)(last + 1) * dtensor_dtype_size(exec->sched.dtype)
         * exec->scale[span->space];
}

/* A step accesses that span of a peer's memory after the READY number `which`.
 */
static void reach_note(struct dtn_exec *exec, int which,
                       const struct dtn_step *step, const struct dtn_span *span)
{
    size_t end = span->offset * exec->scale[span->space]
               + step_extent(exec, step, span);
    size_t *bytes;

    if (which < 0)
        return;
    bytes = &exec->reach[which].bytes[dtn_exec_name(span->space)];
    if (end > *bytes)
        *bytes = end;
}

/* latest[p]: the last READY of position p that was awaited. */
static void reach_step(struct dtn_exec *exec, const struct dtn_step *step,
                       const int latest[])
{
    const struct dtn_sched *sched = &exec->sched;

    if (step->op == DTN_OP_PUT)
        reach_note(exec, latest[step->peer], step, &step->dst);
    else if (step->op == DTN_OP_FOLD && step->src.rank < 0)
        for (int i = 0; i < dtn_sched_nterms(sched); i++)
            reach_note(exec, latest[dtn_sched_term(sched, i)], step,
                       &step->src);
    else if ((step->op == DTN_OP_COPY || step->op == DTN_OP_REDUCE)
             && step->src.rank != sched->me)
        reach_note(exec, latest[step->src.rank], step, &step->src);
}

static bool step_hears(const struct dtn_step *step)
{
    return step->op == DTN_OP_WAIT && step->tag == DTN_TAG_READY;
}

int dtn_ready_access(struct dtn_exec *exec, struct dtensor_error *err)
{
    const struct dtn_sched *sched = &exec->sched;
    const size_t n = (size_t)sched->n;
    int *latest = malloc(n * sizeof *latest), nready = 0;

    for (int s = 0; s < sched->nsteps; s++)
        nready += step_hears(&sched->steps[s]);
    exec->reach = calloc((size_t)nready + 1, sizeof *exec->reach);
    if (!latest || !exec->reach) {
        free(latest);
        return dtn_fail_nomem(err, sched->name, n * sizeof *latest
                              + (size_t)nready * sizeof *exec->reach);
    }
    memset(latest, -1, n * sizeof *latest);
    exec->nready = nready;
    nready = 0;
    for (int s = 0; s < sched->nsteps; s++) {
        if (step_hears(&sched->steps[s]))
            latest[sched->steps[s].peer] = nready++;
        else
            reach_step(exec, &sched->steps[s], latest);
    }
    for (int s = sched->nsteps; s < dtn_sched_all(sched); s++)
        reach_step(exec, &sched->steps[s], latest);
    free(latest);
    return 0;
}
