/* hierarchy_rails.c - collectives over hosts whose rails run flat algorithms
 *
 * What is done inside the host is as in the other hierarchies: fold before,
 * load after.  What is between the hosts is a collective of the same kind among
 * the ranks of a rail (rails.c).
 *
 *     allreduce         fold block r over the host; allreduce of the block;
 *                       load the others' blocks
 *     reduce-scatter    fold the rail's share of all hosts over this one;
 *                       reduce-scatter of it; load the result from its owner
 *     all-gather        all-gather of the rail's share into TMP; load that of
 *                       all rails
 *     all-to-all        load what the ranks of this host send to the shares of
 *                       the rail; all-to-all of these blocks; load the result
 *                       from its owner
 *
 * In an all-to-all over 8 hosts of 8 ranks a rank sends 7 messages of 8 blocks
 * instead of 56 of one block, and the first copy stays inside the host.
 */
#include "sched/call.h"
#include "sched/emit/emit.h"
#include "sched/emit/hierarchy.h"
#include "sched/emit/rails.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>

/* The locals may load from this rank, and it from them. */
static void rails_meet(const struct dtn_hierarchy *h,
                       enum dtn_local_pairs pairs)
{
    dtn_local_signal(h, DTN_TAG_READY, pairs);
    dtn_local_wait(h, DTN_TAG_READY, pairs);
}

/* A group of one rank copies its only block. */
static int rails_alone(struct dtn_hierarchy *h, struct dtensor_error *err)
{
    dtn_sched_copy(h->sched, dtn_span_at(0, DTN_OUT, 0),
                   dtn_span_at(0, DTN_IN, 0), h->sched->bytes[DTN_IN]);
    return dtn_hierarchy_end(h, err);
}

/* -------------------------------------------------------------- allreduce */

/* An owner folds its block over the host, and the rail over the hosts. */
static void allreduce_own(const struct dtn_hierarchy *h, dtn_emit_f *emit)
{
    struct dtn_rail rail = dtn_rail_make(h);
    const struct dtn_range block = dtn_rail_block(h, h->local);
    const struct dtn_call among =
        dtn_rail_call(h, block.bytes / dtensor_dtype_size(h->call->dtype));
    const int me = h->call->me;

    rail.place[DTN_IN].space = DTN_ACC;
    rail.place[DTN_OUT].offset = block.offset;
    rail.place[DTN_ACC].offset = block.bytes;
    if (h->nhosts > 1 && block.bytes > 0)
        dtn_rail_open(&rail, &among, emit);
    rails_meet(h, DTN_PAIRS_ANY_OWNER);
    dtn_sched_fold(h->sched, h->nhosts > 1 ? dtn_span_at(me, DTN_ACC, 0)
                   : dtn_span_at(me, DTN_OUT, block.offset),
                   dtn_span_at(-1, DTN_IN, block.offset), block.bytes);
    dtn_rail_run(&rail);
}

static int allreduce_rails(const struct dtn_call *call, const char *name,
                           dtn_emit_f *emit, struct dtn_sched *sched,
                           struct dtensor_error *err)
{
    struct dtn_hierarchy h;
    int rc = dtn_hierarchy_begin(&h, name, call, sched, err);

    if (rc != 0)
        return rc;
    for (int s = 0; s < DTN_NSPACES; s++)
        sched->exposed[s] = sched->bytes[s] > 0;
    if (h.owner)
        allreduce_own(&h, emit);
    else
        rails_meet(&h, DTN_PAIRS_ANY_OWNER);
    dtn_hierarchy_share(&h);
    return dtn_hierarchy_end(&h, err);
}

int dtn_emit_allreduce_rail_doubling(const struct dtn_call *call,
                                     struct dtn_sched *sched,
                                     struct dtensor_error *err)
{
    return allreduce_rails(call, "allreduce rail-doubling",
                           dtn_emit_allreduce_doubling, sched, err);
}

int dtn_emit_allreduce_rail_halving(const struct dtn_call *call,
                                    struct dtn_sched *sched,
                                    struct dtensor_error *err)
{
    return allreduce_rails(call, "allreduce rail-halving",
                           dtn_emit_allreduce_halving_apart, sched, err);
}

/* --------------------------------------------------------- reduce-scatter */

/* The place of the result for local l at the owner of its rail: in place of the
 * terms, which have been sent by then, or at once in OUT.
 */
static struct dtn_span scatter_result(const struct dtn_hierarchy *h, int l)
{
    const int rail = l % h->nrails, owner = dtn_local_at(h, h->host, rail);

    if (rail + h->nrails >= dtn_locals(h, h->host))
        return dtn_span_at(owner, DTN_OUT, 0);
    return dtn_span_at(owner, DTN_ACC, dtn_share_bytes(h, rail, h->host, l));
}

/* Load it. */
static void scatter_load(const struct dtn_hierarchy *h, int owner)
{
    dtn_sched_copy(h->sched, dtn_span_at(h->call->me, DTN_OUT, 0),
                   scatter_result(h, h->local), h->sched->bytes[DTN_OUT]);
}

/* Fold the share of all hosts over this one. */
static void scatter_fold(const struct dtn_hierarchy *h, struct dtn_span sum)
{
    for (int k = 0; k < h->nhosts; k++)
        for (int l = h->local; l < dtn_locals(h, k); l += h->nrails) {
            struct dtn_range block =
                dtn_call_block(h->call, dtn_local_at(h, k, l));

            dtn_sched_fold(h->sched, sum, dtn_span_at(-1, DTN_IN, block.offset),
                           block.bytes);
            sum.offset += block.bytes;
        }
}

/* The rail reduces its share and scatters it over the hosts. */
static void scatter_own(const struct dtn_hierarchy *h)
{
    struct dtn_rail rail = dtn_rail_make(h);
    struct dtn_call among = dtn_rail_call(h, h->call->count);
    const struct dtn_span result = scatter_result(h, h->local);

    dtn_rail_blocks(&rail, &among);
    rail.place[DTN_IN].space = DTN_ACC;
    rail.place[DTN_OUT] = result;
    rail.place[DTN_ACC].offset = dtn_call_blocks(&among, 0, h->nhosts).bytes;
    if (h->nhosts > 1)
        dtn_rail_open(&rail, &among, dtn_emit_reduce_scatter_halving);
    rails_meet(h, DTN_PAIRS_SCATTER);
    scatter_fold(h, dtn_span_at(h->call->me, h->nhosts > 1 ? DTN_ACC : DTN_OUT,
                                0));
    dtn_hierarchy_release(h);
    dtn_rail_run(&rail);
    if (result.space == DTN_ACC)
        scatter_load(h, h->call->me);
}

int dtn_emit_reduce_scatter_rail_halving(const struct dtn_call *call,
                                         struct dtn_sched *sched,
                                         struct dtensor_error *err)
{
    struct dtn_hierarchy h;
    int rc = dtn_hierarchy_begin(&h, "reduce_scatter rail-halving", call,
                                 sched, err);

    if (rc != 0)
        return rc;
    sched->exposed[DTN_IN] = true;
    if (h.owner)
        scatter_own(&h);
    else
        rails_meet(&h, DTN_PAIRS_SCATTER);
    dtn_hierarchy_hand(&h, scatter_load);
    return dtn_hierarchy_end(&h, err);
}

/* ------------------------------------------------------------- all-gather */

/* Load the share of the rail of `owner`, of all hosts, from its TMP. */
static void gather_rail(const struct dtn_hierarchy *h, int owner)
{
    size_t at = 0;

    for (int k = 0; k < h->nhosts; k++)
        for (int l = dtn_rail_of(h, owner); l < dtn_locals(h, k);
             l += h->nrails) {
            struct dtn_range block =
                dtn_call_block(h->call, dtn_local_at(h, k, l));

            dtn_sched_copy(h->sched,
                           dtn_span_at(h->call->me, DTN_OUT, block.offset),
                           dtn_span_at(owner, DTN_TMP, at), block.bytes);
            at += block.bytes;
        }
}

/* Load the share of this host. */
static void gather_load(const struct dtn_hierarchy *h, struct dtn_span place)
{
    for (int l = h->local; l < dtn_locals(h, h->host); l += h->nrails) {
        const int p = dtn_local_at(h, h->host, l);
        const size_t bytes = dtn_call_block(h->call, p).bytes;

        dtn_sched_copy(h->sched, place, dtn_span_at(p, DTN_IN, 0), bytes);
        place.offset += bytes;
    }
}

/* The rail gathers its share in TMP. */
static void gather_own(const struct dtn_hierarchy *h)
{
    struct dtn_rail rail = dtn_rail_make(h);
    struct dtn_call among = dtn_rail_call(h, h->call->count);
    size_t all;

    dtn_rail_blocks(&rail, &among);
    all = dtn_call_blocks(&among, 0, h->nhosts).bytes;
    rail.place[DTN_OUT].space = DTN_TMP;
    rail.place[DTN_TMP].offset = all;
    if (dtn_share_mixed(h)) {
        rail.place[DTN_IN] = dtn_span_at(h->call->me, DTN_TMP, all);
        rail.place[DTN_TMP].offset += dtn_call_block(&among, h->host).bytes;
    }
    dtn_rail_open(&rail, &among, dtn_emit_allgather_bruck);
    h->sched->exposed[DTN_TMP] = true;
    rails_meet(h, DTN_PAIRS_GATHER);
    if (dtn_share_mixed(h))
        gather_load(h, rail.place[DTN_IN]);
    dtn_rail_run(&rail);
    dtn_local_signal(h, DTN_TAG_DATA, DTN_PAIRS_FROM_OWNER);
    gather_rail(h, h->call->me);
}

int dtn_emit_allgather_rail_bruck(const struct dtn_call *call,
                                  struct dtn_sched *sched,
                                  struct dtensor_error *err)
{
    struct dtn_hierarchy h;
    int rc = dtn_hierarchy_begin(&h, "allgather rail-bruck", call, sched, err);

    if (rc != 0)
        return rc;
    if (call->n == 1)
        return rails_alone(&h, err);
    sched->exposed[DTN_IN] = !h.owner;
    if (h.owner)
        gather_own(&h);
    else
        rails_meet(&h, DTN_PAIRS_GATHER);
    for (int i = 1; i < dtn_locals(&h, h.host); i++) {
        int p = dtn_local_after(&h, i);

        if (!dtn_is_owner(&h, p))
            continue;
        dtn_sched_wait(sched, p, DTN_TAG_DATA);
        gather_rail(&h, p);
        dtn_sched_signal(sched, p, DTN_TAG_DONE);
    }
    dtn_local_wait(&h, DTN_TAG_DONE, DTN_PAIRS_TO_OWNER);
    return dtn_hierarchy_end(&h, err);
}

/* ------------------------------------------------------------- all-to-all */

/* Load what the locals send to the rail's share of a host: for each of its
 * ranks a block of each local.
 */
static void swap_collect(const struct dtn_hierarchy *h, int host,
                         struct dtn_span place)
{
    for (int l = h->local; l < dtn_locals(h, host); l += h->nrails) {
        const struct dtn_range block =
            dtn_call_sent(h->call, dtn_local_at(h, host, l));

        for (int i = 0; i < dtn_locals(h, h->host); i++) {
            dtn_sched_copy(h->sched, place,
                           dtn_span_at(dtn_local_at(h, h->host, i), DTN_IN,
                                       block.offset), block.bytes);
            place.offset += block.bytes;
        }
    }
}

/* Do all owners have one rank's blocks, in the order of their places? */
static bool swap_straight(const struct dtn_hierarchy *h)
{
    bool straight = h->call->n == h->nhosts * h->nrails;

    for (int p = 0; p < h->call->n; p++)
        straight = straight && h->member[p] == p;
    return straight;
}

/* Copy the blocks to the places of their ranks, from the TMP of an owner, where
 * those of each host are together.
 */
static void swap_load(const struct dtn_hierarchy *h, int owner)
{
    const int rail = dtn_rail_of(h, owner);
    const size_t bytes = dtn_call_block(h->call, owner).bytes;
    const size_t all = dtn_share_bytes(h, rail, h->host, h->call->n);
    const size_t before = dtn_share_bytes(h, rail, h->host, h->local);

    for (int k = 0; k < h->nhosts; k++)
        for (int i = 0; i < dtn_locals(h, k); i++) {
            const struct dtn_range place =
                dtn_call_received(h->call, dtn_local_at(h, k, i));
            const size_t at = (size_t)h->start[k] * all
                            + (size_t)dtn_locals(h, k) * before
                            + (size_t)i * bytes;

            dtn_sched_copy(h->sched,
                           dtn_span_at(h->call->me, DTN_OUT, place.offset),
                           dtn_span_at(owner, DTN_TMP, at), bytes);
        }
}

/* An owner exchanges what its rail's ranks send and receive.  What comes is in
 * OUT, or at the start of TMP; what goes is in TMP.
 */
static void swap_own(const struct dtn_hierarchy *h, dtn_emit_f *emit)
{
    const bool straight = swap_straight(h);
    const size_t share = dtn_share_bytes(h, h->local, h->host, h->call->n);
    const size_t come = straight ? 0 : share * (size_t)h->call->n;
    struct dtn_rail rail = dtn_rail_make(h);
    struct dtn_call among = dtn_rail_call(h, h->call->count
                                             * (size_t)h->nrails);
    size_t go;

    dtn_rail_pairs(&rail, &among);
    dtn_call_bytes_of(&among, DTN_IN, &go);
    rail.place[DTN_IN] = dtn_span_at(0, DTN_TMP, come);
    rail.place[DTN_OUT].space = straight ? DTN_OUT : DTN_TMP;
    rail.place[DTN_TMP].offset = come + go;
    dtn_rail_open(&rail, &among, emit);
    h->sched->exposed[DTN_TMP] |= !straight;
    rails_meet(h, DTN_PAIRS_SCATTER);
    for (int i = 0; i < h->nhosts; i++) {
        const int k = dtn_host_after(h, i);

        swap_collect(h, k, dtn_span_at(h->call->me, DTN_TMP, come
                                       + dtn_call_sent(&among, k).offset));
    }
    dtn_hierarchy_release(h);
    dtn_rail_run(&rail);
    if (!straight)
        swap_load(h, h->call->me);
}

static int swap_rails(const struct dtn_call *call, const char *name,
                      dtn_emit_f *emit, struct dtn_sched *sched,
                      struct dtensor_error *err)
{
    struct dtn_hierarchy h;
    int rc = dtn_hierarchy_begin(&h, name, call, sched, err);

    if (rc != 0)
        return rc;
    if (call->n == 1)
        return rails_alone(&h, err);
    sched->exposed[DTN_IN] = true;
    if (h.owner)
        swap_own(&h, emit);
    else
        rails_meet(&h, DTN_PAIRS_SCATTER);
    dtn_hierarchy_hand(&h, swap_load);
    return dtn_hierarchy_end(&h, err);
}

int dtn_emit_all_to_all_rail_put(const struct dtn_call *call,
                                 struct dtn_sched *sched,
                                 struct dtensor_error *err)
{
    return swap_rails(call, "all_to_all rail-put", dtn_emit_all_to_all_put,
                      sched, err);
}

int dtn_emit_all_to_all_rail_bruck(const struct dtn_call *call,
                                   struct dtn_sched *sched,
                                   struct dtensor_error *err)
{
    return swap_rails(call, "all_to_all rail-bruck", dtn_emit_all_to_all_bruck,
                      sched, err);
}
