/* watch.c - waits for a device that waits for the devices of peers
 *
 * A device waits for a word without a deadline, so the host watches it.  The
 * host checks the clock, and the health of each peer whose words have not
 * arrived.  If it gives up, it first poisons the context and then releases its
 * device.  After that, what the device tells the peers is wrong.  So a peer
 * whose device is done checks whether this rank gave up, and returns that
 * error.
 */
#include "coll/exec/watch.h"
#include "base/wait.h"
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "coll/exec/exec.h"
#include "coll/exec/peer.h"
#include "coll/exec/run.h"
#include "coll/words.h"
#include "device/memory.h"
#include "job/await.h"
#include "job/ctx.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

static int peer_health(struct dtensor_ctx *ctx, int rank)
{
    struct dtn_transport *tp = ctx->peers[rank].tp;
    int culprit, code;

    return tp->ops->health(tp, rank, &culprit, &code);
}

/* Does the device wait for a word of this peer that has not arrived? */
static bool peer_owes(const struct dtn_device_words *words, int rank)
{
    bool owes = false;

    for (int tag = 0; tag < DTN_NTAGS; tag++) {
        const size_t word = dtn_word_of(rank, (enum dtn_tag)tag);

        owes |= words->seen[word] < words->held[word];
    }
    return owes;
}

static int watch_look(struct dtn_exec_run *run, struct dtn_device_words *words)
{
    int rc = run->memory->ops->look(run->memory, words->seen, words->mem,
                                    words->bytes);

    return rc == 0 ? 0
         : dtn_poison(run->ctx, rc, run->ctx->world.rank, "%s in %s memory: %s",
                      run->exec->sched.name, run->memory->ops->name,
                      run->memory->ops->why(run->memory));
}

/* A peer that ended without error may have left; then its words have arrived.
 * They are read after the peer's health.
 */
static int watch_peers(struct dtn_exec_run *run, struct dtn_device_words *words)
{
    const struct dtn_exec *exec = run->exec;
    int rc = 0;

    for (int i = 0; i < exec->nmet && rc == 0; i++) {
        const struct dtn_exec_peer *peer = &exec->peers[exec->met[i]];

        if (!peer->words || peer_health(run->ctx, peer->rank) == 0)
            continue;
        rc = watch_look(run, words);
        if (rc == 0 && peer_owes(words, peer->rank))
            rc = dtn_fetched(run->ctx, peer->rank);
    }
    return rc;
}

/* The deadline has passed. */
static int watch_late(struct dtn_exec_run *run, struct dtn_device_words *words)
{
    const struct dtn_exec *exec = run->exec;
    struct dtensor_ctx *ctx = run->ctx;
    const long long ms = (long long)(
        ctx->world.cluster->transport.op_timeout_ns / 1000000);
    int rc = watch_look(run, words), late = -1;
    char name[320];

    for (int i = exec->nmet - 1; i >= 0; i--) {
        const struct dtn_exec_peer *peer = &exec->peers[exec->met[i]];

        if (peer->words && peer_owes(words, peer->rank))
            late = peer->rank;
    }
    if (rc == 0 && late < 0)
        return dtn_poison(ctx, DTENSOR_ETIME, ctx->world.rank, "%s: the GPU of "
                          "this rank has not finished after %lld ms (what does "
                          "the program's stream wait for?)", exec->sched.name,
                          ms);
    return rc != 0 ? rc
         : dtn_poison(ctx, DTENSOR_ETIME, late, "the GPU of this rank waited "
                      "%lld ms for that of %s, which is alive (is it in "
                      "another call, or stopped? see [transport] op_timeout)",
                      ms, dtn_world_rank_name(&ctx->world, late, name,
                                              sizeof name));
}

/* Did a peer give up?  Then the words of its device may be wrong. */
static int watch_end(struct dtn_exec_run *run)
{
    const struct dtn_exec *exec = run->exec;
    int rc = 0;

    for (int i = 0; i < exec->nmet && rc == 0; i++) {
        const struct dtn_exec_peer *peer = &exec->peers[exec->met[i]];

        if (peer->words
            && peer_health(run->ctx, peer->rank) == DTENSOR_EABORT)
            rc = dtn_fetched(run->ctx, peer->rank);
    }
    return rc;
}

int dtn_watch_settle(struct dtn_exec_run *run)
{
    struct dtn_device_words *words = dtn_words_of(run->ctx);
    struct dtensor_ctx *ctx = run->ctx;
    struct dtn_wait wait;
    int rc;

    dtn_ctx_wait(ctx, &wait);
    while ((rc = run->memory->ops->settle(run->memory, false))
           == DTENSOR_EAGAIN) {
        dtn_ctx_progress(ctx);
        switch (dtn_wait_pause(&wait)) {
        case DTN_WAIT_POLL:
            continue;
        case DTN_WAIT_CHECK:
            rc = watch_peers(run, words);
            break;
        case DTN_WAIT_EXPIRED:
            rc = watch_late(run, words);
            break;
        }
        if (rc != 0)
            return rc;
    }
    return rc == 0 ? watch_end(run) : rc;
}

int dtn_watch_poll(struct dtn_exec_run *run)
{
    struct dtensor_ctx *ctx = run->ctx;
    struct dtn_wait *wait = &run->wait;
    const int64_t now = dtn_now_ns();
    int rc = run->memory->ops->settle(run->memory, false);

    if (rc != DTENSOR_EAGAIN)
        return rc == 0 ? watch_end(run) : rc;
    dtn_ctx_progress(ctx);
    if (wait->start_ns <= 0)
        wait->start_ns = wait->next_look_ns = now;
    if (now - wait->start_ns > ctx->world.cluster->transport.op_timeout_ns)
        return watch_late(run, dtn_words_of(ctx));
    if (now < wait->next_look_ns)
        return DTENSOR_EAGAIN;
    wait->next_look_ns = now + 1000000;
    rc = watch_peers(run, dtn_words_of(ctx));
    return rc == 0 ? DTENSOR_EAGAIN : rc;
}

/* The context is poisoned. */
void dtn_watch_give_up(struct dtn_exec_run *run)
{
    struct dtn_device_words *words = dtn_words_of(run->ctx);

    run->device.streams = false;
    run->memory->ops->unhold(run->memory, words->mem, words->bytes);
}
