/* hierarchy.c - collectives over hosts with several ranks each
 *
 * Ranks of one host load from each other; between hosts is a network, which is
 * slower and shared.  So each byte should cross the network as rarely as
 * possible, and the data should use all network devices.  Of a 12 MiB allreduce
 * over 2 hosts of 3 ranks, rank l of each host is responsible for 4 MiB, block
 * l:
 *
 *     inside     fold block l of the 3 INs of the host
 *     between    with rank l of the other host only, its *rail*: send it 2 MiB
 *                to finish, finish the other 2 MiB, send them back
 *     inside     load the 2 other blocks from the ranks that have them
 *
 * Each rank sends 4 MiB over the network.  A ring over all 6 ranks would send
 * 20 MiB through each link between hosts, one step after another.  If hosts
 * have different numbers of ranks there are as many rails as the smallest host
 * has ranks.  On the other hosts the ranks beyond them send nothing to other
 * hosts: a rank of a rail does it for them.
 *
 * Terms are folded in rank order within a host, and then in host order.  One
 * rank computes each element, so all ranks have the same bits.
 */
#include "sched/emit/hierarchy.h"
#include "base/error.h"
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

static int hierarchy_host(const struct dtn_call *call, int position)
{
    return call->hosts ? call->hosts[position] : 0;
}

/* Count the hosts, and their locals in start[host + 1]. */
static void hierarchy_number(struct dtn_hierarchy *h)
{
    const struct dtn_call *call = h->call;

    for (int p = 0; p < call->n; p++) {
        h->host_of[p] = hierarchy_host(call, p);
        if (h->host_of[p] == h->nhosts)
            h->nhosts++;
        h->local_of[p] = h->start[h->host_of[p] + 1]++;
    }
}

static void hierarchy_fill(struct dtn_hierarchy *h)
{
    hierarchy_number(h);
    h->nrails = h->start[1];
    for (int k = 1; k < h->nhosts; k++)
        if (h->start[k + 1] < h->nrails)
            h->nrails = h->start[k + 1];
    for (int k = 1; k < h->nhosts; k++)
        h->start[k + 1] += h->start[k];
    for (int p = 0; p < h->call->n; p++)
        h->member[h->start[h->host_of[p]] + h->local_of[p]] = p;
    h->host = h->host_of[h->call->me];
    h->local = h->local_of[h->call->me];
    h->owner = h->local < h->nrails;
}

int dtn_hierarchy_begin(struct dtn_hierarchy *h, const char *name,
                        const struct dtn_call *call, struct dtn_sched *sched,
                        struct dtensor_error *err)
{
    size_t n = (size_t)call->n;
    int *room = calloc(4 * n + 1, sizeof *room);

    if (!room)
        return dtn_fail_nomem(err, name, (4 * n + 1) * sizeof *room);
    *h = (struct dtn_hierarchy){ .sched = sched, .call = call, .host_of = room,
                                 .local_of = room + n, .member = room + 2 * n,
                                 .start = room + 3 * n };
    hierarchy_fill(h);
    dtn_emit_begin(sched, name, call);
    dtn_sched_terms(sched, &h->member[h->start[h->host]],
                    dtn_locals(h, h->host));
    return 0;
}

int dtn_hierarchy_end(struct dtn_hierarchy *h, struct dtensor_error *err)
{
    free(h->host_of);
    return dtn_emit_end(h->sched, err);
}

/* ----------------------------------------------------------------- signals */

static bool pair_speaks(const struct dtn_hierarchy *h, int from, int to,
                        enum dtn_local_pairs pairs)
{
    const bool near = dtn_rail_of(h, from) == dtn_rail_of(h, to);
    const bool leaves = dtn_is_owner(h, from), arrives = dtn_is_owner(h, to);

    switch (pairs) {
    case DTN_PAIRS_FROM_OWNER:
        return leaves;
    case DTN_PAIRS_TO_OWNER:
        return arrives;
    case DTN_PAIRS_GATHER:
        return leaves || (arrives && near);
    case DTN_PAIRS_SCATTER:
        return arrives || (leaves && near);
    default:
        return leaves || arrives;
    }
}

void dtn_local_signal(const struct dtn_hierarchy *h, enum dtn_tag tag,
                      enum dtn_local_pairs pairs)
{
    for (int i = 1; i < dtn_locals(h, h->host); i++) {
        int p = dtn_local_after(h, i);

        if (pair_speaks(h, h->call->me, p, pairs))
            dtn_sched_signal(h->sched, p, tag);
    }
}

void dtn_local_wait(const struct dtn_hierarchy *h, enum dtn_tag tag,
                    enum dtn_local_pairs pairs)
{
    for (int i = 1; i < dtn_locals(h, h->host); i++) {
        int p = dtn_local_after(h, i);

        if (pair_speaks(h, p, h->call->me, pairs))
            dtn_sched_wait(h->sched, p, tag);
    }
}

void dtn_rail_signal(const struct dtn_hierarchy *h, enum dtn_tag tag)
{
    for (int i = 1; h->owner && i < h->nhosts; i++)
        dtn_sched_signal(h->sched, dtn_rail_peer(h, i), tag);
}

void dtn_rail_wait(const struct dtn_hierarchy *h, enum dtn_tag tag)
{
    for (int i = 1; h->owner && i < h->nhosts; i++)
        dtn_sched_wait(h->sched, dtn_rail_peer(h, i), tag);
}

void dtn_rail_flush(const struct dtn_hierarchy *h)
{
    for (int i = 1; h->owner && i < h->nhosts; i++)
        dtn_sched_flush(h->sched, dtn_rail_peer(h, i));
}

/* ------------------------------------------------------------------ ranges */

size_t dtn_share_bytes(const struct dtn_hierarchy *h, int rail, int host,
                       int end)
{
    size_t bytes = 0;

    for (int l = rail; l < dtn_locals(h, host); l += h->nrails)
        if (l < end)
            bytes += dtn_call_block(h->call, dtn_local_at(h, host, l)).bytes;
    return bytes;
}

bool dtn_share_mixed(const struct dtn_hierarchy *h)
{
    return h->local + h->nrails < dtn_locals(h, h->host);
}

struct dtn_range dtn_rail_block(const struct dtn_hierarchy *h, int rail)
{
    return dtn_range_split(h->call->count * dtensor_dtype_size(h->call->dtype),
                           h->nrails, rail);
}

struct dtn_range dtn_rail_part(const struct dtn_hierarchy *h, int rail,
                               int host)
{
    struct dtn_range block = dtn_rail_block(h, rail);
    struct dtn_range part = dtn_range_split(block.bytes, h->nhosts, host);

    return (struct dtn_range){ block.offset + part.offset, part.bytes };
}

/* ------------------------------------------------------------------- share */

void dtn_hierarchy_share(const struct dtn_hierarchy *h)
{
    struct dtn_sched *sched = h->sched;
    int me = h->call->me;

    dtn_local_signal(h, DTN_TAG_DATA, DTN_PAIRS_FROM_OWNER);
    for (int i = 1; i < dtn_locals(h, h->host); i++) {
        int p = dtn_local_after(h, i);
        struct dtn_range block;

        if (!dtn_is_owner(h, p))
            continue;
        block = dtn_rail_block(h, dtn_rail_of(h, p));
        dtn_sched_wait(sched, p, DTN_TAG_DATA);
        dtn_sched_copy(sched, dtn_span_at(me, DTN_OUT, block.offset),
                       dtn_span_at(p, DTN_OUT, block.offset), block.bytes);
        dtn_sched_signal(sched, p, DTN_TAG_DONE);
    }
    dtn_local_wait(h, DTN_TAG_DONE, DTN_PAIRS_TO_OWNER);
}

/* -------------------------------------------------------------------- hand */

static bool hand_near(const struct dtn_hierarchy *h, int p)
{
    return dtn_rail_of(h, p) == dtn_rail_of(h, h->call->me);
}

void dtn_hierarchy_release(const struct dtn_hierarchy *h)
{
    for (int i = 1; i < dtn_locals(h, h->host); i++)
        if (!hand_near(h, dtn_local_after(h, i)))
            dtn_sched_signal(h->sched, dtn_local_after(h, i), DTN_TAG_DONE);
}

static void hand_load(const struct dtn_hierarchy *h, int owner,
                      dtn_load_f *load)
{
    dtn_sched_wait(h->sched, owner, DTN_TAG_DATA);
    load(h, owner);
    dtn_sched_signal(h->sched, owner, DTN_TAG_DONE);
}

void dtn_hierarchy_hand(const struct dtn_hierarchy *h, dtn_load_f *load)
{
    for (int i = 1; h->owner && i < dtn_locals(h, h->host); i++)
        if (hand_near(h, dtn_local_after(h, i)))
            dtn_sched_signal(h->sched, dtn_local_after(h, i), DTN_TAG_DATA);
    for (int i = 1; i < dtn_locals(h, h->host); i++) {
        int p = dtn_local_after(h, i);

        if (!h->owner && dtn_is_owner(h, p) && hand_near(h, p))
            hand_load(h, p, load);
        else if (dtn_is_owner(h, p) || (h->owner && hand_near(h, p)))
            dtn_sched_wait(h->sched, p, DTN_TAG_DONE);
    }
}
