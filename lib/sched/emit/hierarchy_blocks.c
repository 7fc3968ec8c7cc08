/* hierarchy_blocks.c - all-gather and reduce-scatter over hosts
 *
 * Each position has its own block.  An owner is responsible for the blocks of
 * its rail, its *share*: with equal hosts its own block.  In an all-gather over
 * hosts {0 1} and {2 3} rank 0 puts block 0 into the OUT of rank 2, from which
 * ranks 2 and 3 share it; ranks 1 and 3 do the same with their blocks.  In a
 * reduce-scatter rank 0 folds blocks 0 and 2 over its host and puts its sum of
 * block 2 into a slot of rank 2, which folds the slots of all hosts.
 *
 * ACC of an owner in a reduce-scatter, for its share {a, b} and 2 hosts:
 *
 *     slots of a, slots of b   |   sums to send   |   results of other locals
 */
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/emit/hierarchy.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>

/* ------------------------------------------------------------- all-gather */

/* Load block b from position p's OUT or IN. */
static void gather_load(const struct dtn_hierarchy *h, int b, int p,
                        enum dtn_space space)
{
    struct dtn_range block = dtn_call_block(h->call, b);

    dtn_sched_copy(h->sched, dtn_span_at(h->call->me, DTN_OUT, block.offset),
                   dtn_span_at(p, space, space == DTN_IN ? 0 : block.offset),
                   block.bytes);
}

/* An owner loads its share and puts it into the OUT of the rail's other owners.
 */
static void gather_send(const struct dtn_hierarchy *h)
{
    struct dtn_sched *sched = h->sched;
    int me = h->call->me;

    for (int l = h->local; l < dtn_locals(h, h->host); l += h->nrails)
        if (dtn_local_at(h, h->host, l) != me)
            gather_load(h, dtn_local_at(h, h->host, l),
                        dtn_local_at(h, h->host, l), DTN_IN);
    for (int i = 1; i < h->nhosts; i++) {
        int peer = dtn_rail_peer(h, i);

        dtn_sched_wait(sched, peer, DTN_TAG_READY);
        for (int l = h->local; l < dtn_locals(h, h->host); l += h->nrails) {
            int p = dtn_local_at(h, h->host, l);
            struct dtn_range block = dtn_call_block(h->call, p);

            dtn_sched_put(sched, peer, dtn_span_at(peer, DTN_OUT, block.offset),
                          p == me ? dtn_span_at(me, DTN_IN, 0)
                                  : dtn_span_at(me, DTN_OUT, block.offset),
                          block.bytes);
        }
        dtn_sched_signal(sched, peer, DTN_TAG_DATA);
    }
}

/* Load the rest of an owner's rail from its OUT. */
static void gather_share(const struct dtn_hierarchy *h, int owner)
{
    for (int k = 0; k < h->nhosts; k++)
        for (int l = dtn_rail_of(h, owner); l < dtn_locals(h, k);
             l += h->nrails) {
            int p = dtn_local_at(h, k, l);

            if (p != owner && p != h->call->me)
                gather_load(h, p, owner, DTN_OUT);
        }
}

/* Is the owner's OUT needed, or does its IN have all blocks of its rail? */
static bool gather_shares(const struct dtn_hierarchy *h)
{
    return h->nhosts > 1;
}

static void gather_local(const struct dtn_hierarchy *h)
{
    for (int i = 1; i < dtn_locals(h, h->host); i++) {
        int p = dtn_local_after(h, i);

        if (dtn_is_owner(h, p))
            gather_load(h, p, p, DTN_IN);
    }
    if (h->owner)
        dtn_rail_wait(h, DTN_TAG_DATA);
    if (gather_shares(h))
        dtn_local_signal(h, DTN_TAG_DATA, DTN_PAIRS_FROM_OWNER);
    for (int i = 1; i < dtn_locals(h, h->host); i++) {
        int p = dtn_local_after(h, i);

        if (!dtn_is_owner(h, p))
            continue;
        if (gather_shares(h)) {
            dtn_sched_wait(h->sched, p, DTN_TAG_DATA);
            gather_share(h, p);
        }
        dtn_sched_signal(h->sched, p, DTN_TAG_DONE);
    }
    dtn_local_wait(h, DTN_TAG_DONE, DTN_PAIRS_TO_OWNER);
}

int dtn_emit_allgather_hierarchical(const struct dtn_call *call,
                                    struct dtn_sched *sched,
                                    struct dtensor_error *err)
{
    struct dtn_hierarchy h;
    int rc = dtn_hierarchy_begin(&h, "allgather hierarchical", call, sched,
                                 err);

    if (rc != 0)
        return rc;
    sched->exposed[DTN_IN] = true;
    sched->exposed[DTN_OUT] = h.owner && h.nhosts > 1;
    dtn_local_signal(&h, DTN_TAG_READY, DTN_PAIRS_GATHER);
    dtn_rail_signal(&h, DTN_TAG_READY);
    dtn_local_wait(&h, DTN_TAG_READY, DTN_PAIRS_GATHER);
    gather_load(&h, call->me, call->me, DTN_IN);
    if (h.owner)
        gather_send(&h);
    gather_local(&h);
    dtn_rail_flush(&h);
    return dtn_hierarchy_end(&h, err);
}

/* --------------------------------------------------------- reduce-scatter */

/* The slot number `slot` for the block of local l of a host. */
static struct dtn_span block_slot(const struct dtn_hierarchy *h, int host,
                                  int l, int slot)
{
    int rail = l % h->nrails, p = dtn_local_at(h, host, l);
    size_t before = (size_t)h->nhosts * dtn_share_bytes(h, rail, host, l);

    return dtn_span_at(dtn_local_at(h, host, rail), DTN_ACC,
                       before
                           + (size_t)slot * dtn_call_block(h->call, p).bytes);
}

/* The place at this host's owner of the result for local l. */
static struct dtn_span block_result(const struct dtn_hierarchy *h, int l)
{
    int rail = l % h->nrails, p = dtn_local_at(h, h->host, l);
    int owner = dtn_local_at(h, h->host, rail);
    size_t offset = (size_t)h->nhosts
                  * dtn_share_bytes(h, rail, h->host, h->call->n);

    if (p == owner)
        return dtn_span_at(p, DTN_OUT, 0);
    for (int k = 0; k < h->nhosts; k++)
        if (k != h->host)
            offset += dtn_share_bytes(h, rail, k, h->call->n);
    return dtn_span_at(owner, DTN_ACC, offset
                       + dtn_share_bytes(h, rail, h->host, l)
                       - dtn_call_block(h->call, owner).bytes);
}

/* Bytes of an owner's ACC. */
static size_t scatter_room(const struct dtn_hierarchy *h)
{
    size_t own = dtn_share_bytes(h, h->local, h->host, h->call->n);
    size_t bytes = (size_t)h->nhosts * own + own
                 - dtn_call_block(h->call, h->call->me).bytes;

    for (int k = 0; k < h->nhosts; k++)
        if (k != h->host)
            bytes += dtn_share_bytes(h, h->local, k, h->call->n);
    return bytes;
}

/* An owner folds its host's terms for the share of the i-th host after it, and
 * puts the sums into the slots there; `sending` is the next free place for a
 * sum.
 */
static void scatter_send(const struct dtn_hierarchy *h, int i,
                         struct dtn_span *sending)
{
    struct dtn_sched *sched = h->sched;
    int host = dtn_host_after(h, i), peer = dtn_rail_peer(h, i);
    bool away = host != h->host;

    if (away)
        dtn_sched_wait(sched, peer, DTN_TAG_READY);
    for (int l = h->local; l < dtn_locals(h, host); l += h->nrails) {
        struct dtn_range block =
            dtn_call_block(h->call, dtn_local_at(h, host, l));
        struct dtn_span slot = block_slot(h, host, l, h->host);

        dtn_sched_fold(sched, away ? *sending : slot,
                       dtn_span_at(-1, DTN_IN, block.offset), block.bytes);
        if (!away)
            continue;
        dtn_sched_put(sched, peer, slot, *sending, block.bytes);
        sending->offset += block.bytes;
    }
    if (away)
        dtn_sched_signal(sched, peer, DTN_TAG_DATA);
}

static void scatter_own(const struct dtn_hierarchy *h)
{
    struct dtn_span sending = dtn_span_at(
        h->call->me, DTN_ACC,
        (size_t)h->nhosts * dtn_share_bytes(h, h->local, h->host, h->call->n));

    for (int i = 1; i <= h->nhosts; i++)
        scatter_send(h, i, &sending);
    dtn_hierarchy_release(h);
    dtn_rail_wait(h, DTN_TAG_DATA);
    for (int l = h->local; l < dtn_locals(h, h->host); l += h->nrails)
        dtn_sched_fold_slots(h->sched, block_result(h, l),
                             block_slot(h, h->host, l, 0),
                             dtn_call_block(h->call,
                                            dtn_local_at(h, h->host, l))
                             .bytes, h->nhosts);
}

static void block_load(const struct dtn_hierarchy *h, int owner)
{
    dtn_sched_copy(h->sched, dtn_span_at(h->call->me, DTN_OUT, 0),
                   block_result(h, h->local), h->sched->bytes[DTN_OUT]);
}

int dtn_emit_reduce_scatter_hierarchical(const struct dtn_call *call,
                                         struct dtn_sched *sched,
                                         struct dtensor_error *err)
{
    struct dtn_hierarchy h;
    int rc = dtn_hierarchy_begin(&h, "reduce_scatter hierarchical", call,
                                 sched, err);

    if (rc != 0)
        return rc;
    if (call->n == 1) {
        dtn_emit_alone(sched);
        return dtn_hierarchy_end(&h, err);
    }
    if (h.owner)
        sched->bytes[DTN_ACC] = scatter_room(&h);
    sched->exposed[DTN_IN] = true;
    sched->exposed[DTN_ACC] = sched->bytes[DTN_ACC] > 0;
    dtn_local_signal(&h, DTN_TAG_READY, DTN_PAIRS_SCATTER);
    dtn_rail_signal(&h, DTN_TAG_READY);
    dtn_local_wait(&h, DTN_TAG_READY, DTN_PAIRS_SCATTER);
    if (h.owner)
        scatter_own(&h);
    dtn_hierarchy_hand(&h, block_load);
    dtn_rail_flush(&h);
    return dtn_hierarchy_end(&h, err);
}
