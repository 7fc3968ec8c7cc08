/* hierarchy_buffer.c - allreduce, reduce, broadcast and barrier over hosts
 *
 * The buffer is cut into one block for each rail, and a block into one part for
 * each host.  In an allreduce the owner of a rail does four things: it folds
 * its block over its host; it puts each part into a slot in the ACC of the
 * owner on the host with the part's number; it folds the slots of its own part
 * into OUT; and it puts the result into the OUT of all other owners of its
 * rail.  ACC with 3 hosts on host 1:
 *
 *     slots 0 1 2 of part 1   |   part 0, part 1 (unused), part 2, to be sent
 *
 * A broadcast is the second half of this: the root's host puts one part of each
 * block to every other host, and these hosts put the parts to each other.
 */
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/emit/hierarchy.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>

/* Places in the ACC of an owner. */
static struct dtn_span slot_at(const struct dtn_hierarchy *h, int rail,
                               int host, int slot)
{
    return dtn_span_at(dtn_local_at(h, host, rail), DTN_ACC,
                       (size_t)slot * dtn_rail_part(h, rail, host).bytes);
}

static struct dtn_span sending_at(const struct dtn_hierarchy *h, int host)
{
    struct dtn_span span = slot_at(h, h->local, h->host, h->nhosts);

    span.offset += dtn_rail_part(h, h->local, host).offset
                 - dtn_rail_block(h, h->local).offset;
    return span;
}

/* Owners fold their block over the host and put its parts to the other hosts.
 * Then this rank's part is in as many slots as there are hosts.
 */
static void buffer_fold(const struct dtn_hierarchy *h)
{
    struct dtn_sched *sched = h->sched;
    int rail = h->local;

    for (int i = 1; i <= h->nhosts; i++) {
        int host = dtn_host_after(h, i), peer = dtn_rail_peer(h, i);
        struct dtn_range part = dtn_rail_part(h, rail, host);
        struct dtn_span sum = i < h->nhosts ? sending_at(h, host)
                            : slot_at(h, rail, host, host);

        dtn_sched_fold(sched, sum, dtn_span_at(-1, DTN_IN, part.offset),
                       part.bytes);
        if (i == h->nhosts)
            break;
        dtn_sched_wait(sched, peer, DTN_TAG_READY);
        dtn_sched_put(sched, peer, slot_at(h, rail, host, h->host), sum,
                      part.bytes);
        dtn_sched_signal(sched, peer, DTN_TAG_DATA);
    }
    dtn_rail_wait(h, DTN_TAG_DATA);
}

/* ACC of owners: slots for this rank's part, and the block to send. */
static void buffer_room(const struct dtn_hierarchy *h)
{
    if (h->owner && h->nhosts > 1)
        h->sched->bytes[DTN_ACC] =
            (size_t)h->nhosts * dtn_rail_part(h, h->local, h->host).bytes
            + dtn_rail_block(h, h->local).bytes;
    for (int s = 0; s < DTN_NSPACES; s++)
        h->sched->exposed[s] = h->sched->bytes[s] > 0;
}

/* Fold this rank's block, or only its part, into `out`; `out` is the place of
 * the block's first byte.
 */
static void buffer_reduce(const struct dtn_hierarchy *h, struct dtn_span out)
{
    struct dtn_range block = dtn_rail_block(h, h->local);
    struct dtn_range part = dtn_rail_part(h, h->local, h->host);

    if (h->nhosts == 1) {
        dtn_sched_fold(h->sched, out, dtn_span_at(-1, DTN_IN, block.offset),
                       block.bytes);
        return;
    }
    buffer_fold(h);
    out.offset += part.offset - block.offset;
    dtn_sched_fold_slots(h->sched, out, slot_at(h, h->local, h->host, 0),
                         part.bytes, h->nhosts);
}

int dtn_emit_allreduce_hierarchical(const struct dtn_call *call,
                                    struct dtn_sched *sched,
                                    struct dtensor_error *err)
{
    struct dtn_hierarchy h;
    struct dtn_range block, part;
    int me = call->me;
    int rc = dtn_hierarchy_begin(&h, "allreduce hierarchical", call, sched,
                                 err);

    if (rc != 0)
        return rc;
    buffer_room(&h);
    dtn_local_signal(&h, DTN_TAG_READY, DTN_PAIRS_ANY_OWNER);
    dtn_rail_signal(&h, DTN_TAG_READY);
    dtn_local_wait(&h, DTN_TAG_READY, DTN_PAIRS_ANY_OWNER);
    if (h.owner) {
        block = dtn_rail_block(&h, h.local);
        part = dtn_rail_part(&h, h.local, h.host);
        buffer_reduce(&h, dtn_span_at(me, DTN_OUT, block.offset));
        for (int i = 1; i < h.nhosts; i++)
            dtn_sched_put(
                sched, dtn_rail_peer(&h, i),
                dtn_span_at(dtn_rail_peer(&h, i), DTN_OUT, part.offset),
                dtn_span_at(me, DTN_OUT, part.offset), part.bytes);
        dtn_rail_signal(&h, DTN_TAG_DATA);
        dtn_rail_wait(&h, DTN_TAG_DATA);
    }
    dtn_hierarchy_share(&h);
    dtn_rail_flush(&h);
    return dtn_hierarchy_end(&h, err);
}

/* ------------------------------------------------------------------ reduce */

/* Is the root on this host? */
static bool root_is_near(const struct dtn_hierarchy *h)
{
    return h->host == h->host_of[h->call->root];
}

/* The place on the root's host where the block of a rail is collected.  A root
 * that is an owner receives results.  Another owner receives partial results,
 * which the root finalises.
 */
static struct dtn_span result_at(const struct dtn_hierarchy *h, int rail)
{
    int host = h->host_of[h->call->root];
    int owner = dtn_local_at(h, host, rail);

    if (owner == h->call->root)
        return dtn_span_at(owner, DTN_OUT, dtn_rail_block(h, rail).offset);
    if (h->nhosts == 1)
        return dtn_span_at(owner, DTN_ACC, 0);
    return dtn_span_at(owner, DTN_ACC,
                       (size_t)h->nhosts * dtn_rail_part(h, rail, host).bytes
                       + dtn_rail_block(h, rail).bytes);
}

/* Put the owner's finished part to the place where its block is collected. */
static void reduce_deliver(const struct dtn_hierarchy *h)
{
    struct dtn_range block = dtn_rail_block(h, h->local);
    struct dtn_range part = dtn_rail_part(h, h->local, h->host);
    struct dtn_span to = result_at(h, h->local);
    struct dtn_span from = to.space == DTN_ACC ? sending_at(h, h->host)
                         : dtn_span_at(h->call->me, DTN_TMP, 0), begin = from;

    if (root_is_near(h)) {
        buffer_reduce(h, to);
        dtn_rail_wait(h, DTN_TAG_DATA);
        return;
    }
    if (from.space == DTN_TMP)
        h->sched->bytes[DTN_TMP] = part.bytes;
    begin.offset -= part.offset - block.offset;
    buffer_reduce(h, begin);
    to.offset += part.offset - block.offset;
    dtn_sched_put(h->sched, to.rank, to, from, part.bytes);
    dtn_sched_signal(h->sched, to.rank, DTN_TAG_DATA);
}

/* The root loads the blocks from the owners of its host. */
static void reduce_collect(const struct dtn_hierarchy *h)
{
    for (int i = 1; i < dtn_locals(h, h->host); i++) {
        int p = dtn_local_after(h, i), rail = dtn_rail_of(h, p);
        struct dtn_range block = dtn_rail_block(h, rail);

        if (!dtn_is_owner(h, p))
            continue;
        dtn_sched_wait(h->sched, p, DTN_TAG_DATA);
        dtn_sched_copy(h->sched,
                       dtn_span_at(h->call->me, DTN_OUT, block.offset),
                       result_at(h, rail), block.bytes);
        dtn_sched_signal(h->sched, p, DTN_TAG_DONE);
    }
}

/* READY: owners load from all ranks of their host, and the root from the
 * owners.
 */
static void reduce_invite(const struct dtn_hierarchy *h)
{
    int me = h->call->me, root = h->call->root;
    bool extra = root_is_near(h) && !dtn_is_owner(h, root);

    dtn_local_signal(h, DTN_TAG_READY, DTN_PAIRS_TO_OWNER);
    dtn_rail_signal(h, DTN_TAG_READY);
    if (extra && h->owner)
        dtn_sched_signal(h->sched, root, DTN_TAG_READY);
    dtn_local_wait(h, DTN_TAG_READY, DTN_PAIRS_TO_OWNER);
    for (int l = 0; extra && me == root && l < h->nrails; l++)
        dtn_sched_wait(h->sched, dtn_local_at(h, h->host, l), DTN_TAG_READY);
}

/* Does an owner tell a local with DONE that it has read its IN?  It tells the
 * root with DATA.  A root that is an owner tells the other owners when it has
 * loaded their blocks.
 */
static bool reduce_releases(const struct dtn_hierarchy *h, int owner, int p)
{
    int root = h->call->root;

    return p != root && !(owner == root && dtn_is_owner(h, p));
}

/* Owners release the INs they have read; the root releases the owners' memory.
 */
static void reduce_release(const struct dtn_hierarchy *h)
{
    int me = h->call->me, root = h->call->root;

    for (int i = 1; i < dtn_locals(h, h->host); i++)
        if (reduce_releases(h, me, dtn_local_after(h, i)))
            dtn_sched_signal(h->sched, dtn_local_after(h, i), DTN_TAG_DONE);
    if (me == root || !root_is_near(h))
        return;
    dtn_sched_signal(h->sched, root, DTN_TAG_DATA);
    dtn_sched_wait(h->sched, root, DTN_TAG_DONE);
}

/* Wait until all owners have read this rank's IN. */
static void reduce_wait(const struct dtn_hierarchy *h)
{
    for (int i = 1; i < dtn_locals(h, h->host); i++) {
        int p = dtn_local_after(h, i);

        if (dtn_is_owner(h, p) && reduce_releases(h, p, h->call->me))
            dtn_sched_wait(h->sched, p, DTN_TAG_DONE);
    }
}

int dtn_emit_reduce_hierarchical(const struct dtn_call *call,
                                 struct dtn_sched *sched,
                                 struct dtensor_error *err)
{
    struct dtn_hierarchy h;
    bool root = call->me == call->root;
    int rc = dtn_hierarchy_begin(&h, "reduce hierarchical", call, sched, err);

    if (rc != 0)
        return rc;
    buffer_room(&h);
    if (h.owner && !root && root_is_near(&h)) {
        sched->bytes[DTN_ACC] += dtn_rail_block(&h, h.local).bytes;
        sched->exposed[DTN_ACC] = true;
    }
    reduce_invite(&h);
    if (h.owner)
        reduce_deliver(&h);
    if (h.owner)
        reduce_release(&h);
    if (root)
        reduce_collect(&h);
    reduce_wait(&h);
    dtn_rail_flush(&h);
    return dtn_hierarchy_end(&h, err);
}

/* --------------------------------------------------------------- broadcast */

/* An owner on the root's host puts each other host its part.  It also puts the
 * part with the number of the root's host, which no other host would send.
 */
static void broadcast_leave(const struct dtn_hierarchy *h)
{
    struct dtn_sched *sched = h->sched;
    int me = h->call->me;
    enum dtn_space space = me == h->call->root ? DTN_IN : DTN_OUT;

    for (int i = 1; i < h->nhosts; i++) {
        const int hosts[] = { dtn_host_after(h, i), h->host };
        int peer = dtn_rail_peer(h, i);

        dtn_sched_wait(sched, peer, DTN_TAG_READY);
        for (int k = 0; k < 2; k++) {
            struct dtn_range part = dtn_rail_part(h, h->local, hosts[k]);

            dtn_sched_put(sched, peer, dtn_span_at(peer, DTN_OUT, part.offset),
                          dtn_span_at(me, space, part.offset), part.bytes);
        }
        dtn_sched_signal(sched, peer, DTN_TAG_DATA);
    }
}

/* An owner on another host forwards what it receives to the other hosts. */
static void broadcast_arrive(const struct dtn_hierarchy *h)
{
    struct dtn_sched *sched = h->sched;
    struct dtn_range part = dtn_rail_part(h, h->local, h->host);
    int source = dtn_local_at(h, h->host_of[h->call->root], h->local);

    dtn_rail_signal(h, DTN_TAG_READY);
    dtn_sched_wait(sched, source, DTN_TAG_DATA);
    for (int i = 1; i < h->nhosts; i++) {
        int peer = dtn_rail_peer(h, i);

        if (peer == source)
            continue;
        dtn_sched_wait(sched, peer, DTN_TAG_READY);
        dtn_sched_put(sched, peer, dtn_span_at(peer, DTN_OUT, part.offset),
                      dtn_span_at(h->call->me, DTN_OUT, part.offset),
                      part.bytes);
        dtn_sched_signal(sched, peer, DTN_TAG_DATA);
    }
    for (int i = 1; i < h->nhosts; i++)
        if (dtn_rail_peer(h, i) != source)
            dtn_sched_wait(sched, dtn_rail_peer(h, i), DTN_TAG_DATA);
}

/* Load from the root's IN into OUT. */
static void broadcast_load(const struct dtn_hierarchy *h, size_t begin,
                           size_t end)
{
    dtn_sched_copy(h->sched, dtn_span_at(h->call->me, DTN_OUT, begin),
                   dtn_span_at(h->call->root, DTN_IN, begin), end - begin);
}

/* On the root's host all ranks load from the root.  Owners load their block
 * first, so that they can put it early.
 */
static void broadcast_near(const struct dtn_hierarchy *h)
{
    int me = h->call->me, root = h->call->root;
    struct dtn_range block = { 0, 0 };

    if (h->owner)
        block = dtn_rail_block(h, h->local);
    for (int i = 1; me == root && i < dtn_locals(h, h->host); i++)
        dtn_sched_signal(h->sched, dtn_local_after(h, i), DTN_TAG_READY);
    if (me != root) {
        dtn_sched_wait(h->sched, root, DTN_TAG_READY);
        broadcast_load(h, block.offset, block.offset + block.bytes);
    }
    if (h->owner)
        broadcast_leave(h);
    if (me == root)
        block.bytes = 0;
    broadcast_load(h, 0, block.offset);
    broadcast_load(h, block.offset + block.bytes, h->sched->bytes[DTN_OUT]);
    if (me != root)
        dtn_sched_signal(h->sched, root, DTN_TAG_DONE);
    for (int i = 1; me == root && i < dtn_locals(h, h->host); i++)
        dtn_sched_wait(h->sched, dtn_local_after(h, i), DTN_TAG_DONE);
}

/* Flush the puts to all hosts but the root's, which got none. */
static void broadcast_flush(const struct dtn_hierarchy *h)
{
    for (int i = 1; h->owner && i < h->nhosts; i++)
        if (dtn_host_after(h, i) != h->host_of[h->call->root])
            dtn_sched_flush(h->sched, dtn_rail_peer(h, i));
}

int dtn_emit_broadcast_hierarchical(const struct dtn_call *call,
                                    struct dtn_sched *sched,
                                    struct dtensor_error *err)
{
    struct dtn_hierarchy h;
    int rc = dtn_hierarchy_begin(&h, "broadcast hierarchical", call, sched,
                                 err);

    if (rc != 0)
        return rc;
    sched->exposed[DTN_IN] = call->me == call->root;
    if (root_is_near(&h)) {
        broadcast_near(&h);
    } else {
        sched->exposed[DTN_OUT] = h.owner;
        dtn_local_signal(&h, DTN_TAG_READY, DTN_PAIRS_FROM_OWNER);
        dtn_local_wait(&h, DTN_TAG_READY, DTN_PAIRS_FROM_OWNER);
        if (h.owner)
            broadcast_arrive(&h);
        dtn_hierarchy_share(&h);
    }
    broadcast_flush(&h);
    return dtn_hierarchy_end(&h, err);
}

/* ----------------------------------------------------------------- barrier */

/* Signals to the first rank of each host; a barrier of these ranks as in
 * tree.c; signals back.
 */
int dtn_emit_barrier_hierarchical(const struct dtn_call *call,
                                  struct dtn_sched *sched,
                                  struct dtensor_error *err)
{
    struct dtn_hierarchy h;
    struct dtn_span nothing = dtn_span_at(call->me, DTN_TMP, 0);
    int first, rc = dtn_hierarchy_begin(&h, "barrier hierarchical", call,
                                        sched, err);

    if (rc != 0)
        return rc;
    first = dtn_local_at(&h, h.host, 0);
    if (call->me != first) {
        dtn_sched_send_eager(sched, first, nothing, 0);
        dtn_sched_recv_eager(sched, first, nothing, 0);
        return dtn_hierarchy_end(&h, err);
    }
    for (int l = 1; l < dtn_locals(&h, h.host); l++)
        dtn_sched_recv_eager(sched, dtn_local_at(&h, h.host, l), nothing, 0);
    for (int d = 1; d < h.nhosts; d *= 2) {
        int from = dtn_host_after(&h, h.nhosts - d);

        dtn_sched_send_eager(sched, dtn_local_at(&h, dtn_host_after(&h, d), 0),
                             nothing, 0);
        dtn_sched_recv_eager(sched, dtn_local_at(&h, from, 0), nothing, 0);
    }
    for (int l = 1; l < dtn_locals(&h, h.host); l++)
        dtn_sched_send_eager(sched, dtn_local_at(&h, h.host, l), nothing, 0);
    return dtn_hierarchy_end(&h, err);
}
