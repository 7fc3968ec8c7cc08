/* signals.c - signals that devices send to each other
 *
 * The hosts exchange READY at once, before the device has done the work that
 * the program gave it.  READY also carries the address of words on the device.
 * From then on the devices say READY, DATA and DONE: one device writes a word
 * of the other after its copies and reductions, and the other waits for that
 * word.  The host waits once, at the end.  This needs a schedule that allows
 * it, and all buffers of this rank on its device.
 *
 * A peer may have no words, because its buffers are elsewhere, or because its
 * call was started and not run.  Then the hosts of the two ranks signal, and
 * this rank sends READY again when its memory is ready.
 *
 * A persistent call is a graph (graph.c).  In it the device says READY to all
 * peers after the last READY of the hosts.
 *
 * A device waits for no peer before it has told all peers that it is ready.
 */
#include "coll/exec/signals.h"
#include "base/log.h"
#include "coll/exec/apart.h"
#include "coll/exec/bind.h"
#include "coll/exec/exec.h"
#include "coll/exec/graph.h"
#include "coll/exec/launch.h"
#include "coll/exec/peer.h"
#include "coll/exec/run.h"
#include "coll/words.h"
#include "device/memory.h"
#include "job/ctx.h"
#include "job/path.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

/* Is all that peers and this rank use on the device, where peers reach it? */
static bool signals_able(const struct dtn_exec_run *run)
{
    const struct dtn_exec *exec = run->exec;
    const struct dtn_memory_ops *ops = run->memory->ops;

    if (run->polls != run->device.apart || run->memory == &dtn_host
        || run->ctx->path.why[0]
        || !ops->signals || exec->sched.reduction.fn
        || !ops->signals(run->memory))
        return false;
    for (int s = DTN_IN; s <= DTN_OUT; s++)
        if (exec->sched.bytes[s] > 0
            && (run->exposed.bounce[s]
                || !dtn_run_is_device(run, exec->base[s])))
            return false;
    return true;
}

static bool signals_name(struct dtn_exec_run *run)
{
    const struct dtn_device_words *words = dtn_words_of(run->ctx);
    struct dtensor_ctx *ctx = run->ctx;
    bool named = words != NULL;

    for (int t = 0; t < ctx->ntransports && named; t++)
        if (run->exec->wires >> t & 1)
            named = ctx->transports[t]->ops->map
                 && ctx->transports[t]->ops->reg(ctx->transports[t], words->mem,
                                                 words->bytes,
                                                 &run->device.words)
                    == 0;
    return named;
}

int dtn_signals_begin(struct dtn_exec_run *run)
{
    struct dtn_exec *exec = run->exec;

    for (int i = 0; i < exec->nmet; i++) {
        struct dtn_exec_peer *peer = &exec->peers[exec->met[i]];

        peer->words = NULL;
        peer->again = peer->meets = false;
    }
    run->device.streams = signals_able(run) && signals_name(run);
    run->device.defers = run->device.streams && dtn_graph_wanted(exec);
    run->ctx->path.streams = run->device.streams;
    return run->device.apart && !run->device.streams ? dtn_apart_leave(run) : 0;
}

static int signals_post(struct dtn_exec_run *run, struct dtn_exec_peer *peer,
                        enum dtn_tag tag)
{
    struct dtn_device_words *words = dtn_words_of(run->ctx);
    const size_t there = dtn_word_of(run->ctx->world.rank, tag);

    return dtn_run_done(run, run->memory->ops->post(
        run->memory, peer->words + there * sizeof words->posted[0],
        ++words->posted[dtn_word_of(peer->rank, tag)]));
}

static int signals_hold(struct dtn_exec_run *run, struct dtn_exec_peer *peer,
                        enum dtn_tag tag)
{
    struct dtn_device_words *words = dtn_words_of(run->ctx);
    const size_t word = dtn_word_of(peer->rank, tag);

    return dtn_run_done(run, run->memory->ops->hold(
        run->memory, words->mem + word * sizeof words->held[0],
        ++words->held[word]));
}

/* The last READY came: the device says that it is ready, and waits for those of
 * all peers.
 */
static int signals_ready(struct dtn_exec_run *run)
{
    struct dtn_exec *exec = run->exec;
    int rc = 0;

    for (int i = 0; i < exec->nmet && rc == 0; i++)
        if (exec->peers[exec->met[i]].words && run->device.defers)
            rc = signals_post(run, &exec->peers[exec->met[i]], DTN_TAG_READY);
    for (int i = 0; i < exec->nmet && rc == 0; i++)
        if (exec->peers[exec->met[i]].words)
            rc = signals_hold(run, &exec->peers[exec->met[i]], DTN_TAG_READY);
    return rc;
}

/* To a peer without words. */
static int signals_again(struct dtn_exec_run *run,
                         const struct dtn_exec_step *bound)
{
    struct dtn_signal signal = {
        .fingerprint = run->fingerprint ^ bound->step->match_bits,
        .tag = DTN_TAG_READY,
    };
    int rc = dtn_run_settle(run, !run->polls);

    return rc == 0 ? dtn_run_send(run, bound->peer->rank, &signal, NULL) : rc;
}

/* Say to a peer whose READY came that this rank is ready. */
static int signals_answer(struct dtn_exec_run *run,
                          const struct dtn_exec_step *bound)
{
    if (!bound->peer->words)
        return signals_again(run, bound);
    return run->device.defers
         ? 0 : signals_post(run, bound->peer, DTN_TAG_READY);
}

int dtn_signals_meet(struct dtn_exec_run *run,
                     const struct dtn_exec_step *bound)
{
    int rc;

    bound->peer->meets = true;
    rc = signals_answer(run, bound);
    if (rc != 0)
        return rc;
    bound->peer->meets = false;
    if (run->progress.nready < run->exec->nready)
        return 0;
    rc = run->device.defers ? dtn_graph_meet(run) : DTN_UNRECORDED;
    return rc == DTN_UNRECORDED ? signals_ready(run) : rc;
}

int dtn_signals_post(struct dtn_exec_run *run, struct dtn_exec_peer *peer,
                     enum dtn_tag tag)
{
    int rc;

    if (!run->device.records)
        return signals_post(run, peer, tag);
    rc = dtn_graph_note(run, peer, tag, true);
    return rc == DTN_UNRECORDED ? signals_ready(run) : rc;
}

int dtn_signals_hold(struct dtn_exec_run *run, struct dtn_exec_peer *peer,
                     enum dtn_tag tag)
{
    int rc;

    if (!run->device.records)
        return signals_hold(run, peer, tag);
    rc = dtn_graph_note(run, peer, tag, false);
    return rc == DTN_UNRECORDED ? signals_ready(run) : rc;
}
