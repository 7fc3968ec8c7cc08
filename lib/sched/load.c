/* load.c - what a call costs the busiest rank: hops, messages, bytes
 *
 * A row of emitters.c says what an algorithm costs over n ranks, whoever they
 * are.  With several ranks on a host some of it stays inside.  Example: 4 hosts
 * of 8 ranks that share a network device.  In an all-to-all of 1 MiB a rank has
 * 31 peers: 7 blocks stay inside, and 24 blocks of each of 8 ranks go through
 * the device.  In a tree the first rank of a host alone sends to other hosts,
 * and in a ring the last one does.
 *
 * With blocks of unequal sizes, each block costs its share of a call in which
 * all blocks have that size.  Example: an all-to-all over 3 ranks sends 100
 * bytes and 1 MiB.  One half of the cost is 50 bytes in a signal, the other
 * half is 512 KiB put after the hops of a call that puts.  A rank with private
 * counts predicts from what it sends and receives.  The choice of the algorithm
 * must be the same on all ranks, so it uses the approximate block size of the
 * call instead.
 */
#include "base/reduce.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* A wait of the host for what its device does: a launch and the time to notice
 * that it has ended.  An estimate: no device was at hand.
 */
#define LOAD_DEVICE_WAIT_NS 10000.0

/* A call in the units of struct dtn_weight. */
struct call_units {
    int n;
    double whole;
    double block;
    double chunk;
    double chunks;
};

static int levels_of(int n)
{
    int levels = 0;

    while (1 << levels < n)
        levels++;
    return levels;
}

/* Of the levels of a tree or butterfly, those inside hosts of `below` ranks: no
 * level is if hosts begin at other places than its pairs.
 */
static int levels_inside(int below)
{
    const int levels = levels_of(below);

    return 1 << levels == below ? levels : 0;
}

/* A part of what a weight says: with some of the peers, by one kind of link.
 * With 8 ranks on each of 4 hosts 24 of 31 peers are on other hosts, and 2 of 5
 * levels of a tree lead there.
 */
struct part {
    int below, n;                 /* the peers beyond the first `below` ranks */
                                  /* of n; 1: all                             */
    bool constants;               /* with what does not grow with n           */
    double sharing;               /* ranks that send by one network device at */
                                  /* the same time; 0: inside a host          */
};

static double term_part(struct dtn_growth term, const struct part *part)
{
    const int levels = levels_of(part->n);
    const double grown =
        term.log2n * (levels - levels_inside(part->below))
        + term.per_peer * (part->n - part->below);

    if (!part->constants)
        return grown;
    return term.constant + grown
         + (1 << levels != part->n ? term.not_power_of_two : 0);
}

static double term_value(struct dtn_growth term, int n)
{
    return term_part(term, &(struct part){ 1, n, true, 0 });
}

static double units_value(const struct call_units *units, enum dtn_unit unit)
{
    return unit == DTN_UNIT_WHOLE ? units->whole
         : unit == DTN_UNIT_HALF ? units->whole / 2
         : unit == DTN_UNIT_BLOCK ? units->block : 0;
}

static double amount_part(const struct dtn_amount *amount,
                          const struct call_units *units,
                          const struct part *part)
{
    return term_part(amount->whole, part) * units->whole
         + term_part(amount->block, part) * units->block
         + term_part(amount->chunk, part) * units->chunk;
}

static double amount_value(const struct dtn_amount *amount,
                           const struct call_units *units)
{
    return amount_part(amount, units,
                       &(struct part){ 1, units->n, true, 0 });
}

static struct call_units units_make(int n, double whole,
                                    const struct dtn_weight *weight)
{
    struct call_units units = { .n = n, .whole = whole, .block = whole / n,
                                .chunks = 1 };
    double cut = units_value(&units, weight->chunk.of);

    while (units.chunks < weight->chunk.most
           && cut >= (units.chunks + 1) * (double)weight->chunk.bytes)
        units.chunks++;
    units.chunk = cut / units.chunks;
    return units;
}

double dtn_model_cache_miss_factor(const struct dtn_model *model, double whole)
{
    double beyond = whole - model->cache_bytes;

    return beyond > 0 && model->cache_miss_factor > 1
         ? 1 + (model->cache_miss_factor - 1) * beyond / whole : 1;
}

/* Add the hops, messages and bytes of a part of a weight. */
static void load_link(const struct dtn_model *model,
                      const struct dtn_weight *weight,
                      const struct call_units *units, const struct part *part,
                      double stretch, double load[DTENSOR_NCOSTS])
{
    const struct dtn_growth doublings = { .log2n = weight->incast
                                        ? model->incast_factor : 0 };
    double hops = term_part(weight->hops, part);
    double moved = amount_part(&weight->moved, units, part);
    double rooted = amount_part(&weight->rooted, units, part);
    double messages = term_part(weight->messages, part)
                    + term_part(weight->each_chunk, part) * units->chunks;
    const int first = part->sharing > 0 ? DTENSOR_COST_INTER_HOPS
                                        : DTENSOR_COST_INTRA_HOPS;
    const double *ns = model->ns + first;
    double *link = load + first, bytes;

    if (units_value(units, weight->message) > dtn_model_eager(model)) {
        hops += part->constants;
        messages *= 3;
    } else if (weight->message != DTN_UNIT_NONE) {
        moved += amount_part(&weight->eager_moved, units, part);
        load[DTENSOR_COST_COPIED] += moved;       /* copied out of the        */
                                                  /* signals                  */
    }
    link[0] += hops;
    link[1] += messages;
    if (part->sharing > 0)
        bytes = (moved * part->sharing + rooted)
              * (1 + term_value(doublings, part->n - 1));
    else
        bytes = (moved + rooted) * stretch;
    link[2] += bytes;
    if (part->sharing > 0 && weight->overlaps)
        link[1] -= fmin(messages, bytes * ns[2] / ns[1]);
}

/* Add what a rank of n does in its own memory. */
static void load_local(const struct dtn_weight *weight,
                       const struct call_units *units, double stretch,
                       double load[DTENSOR_NCOSTS])
{
    load[DTENSOR_COST_FOLDED] +=
        stretch * amount_value(&weight->folded, units);
    load[DTENSOR_COST_COPIED] +=
        stretch * amount_value(&weight->copied, units);
}

/* Add the cost of a weight over n ranks, inside a host or between hosts. */
static void load_add(const struct dtn_model *model,
                     const struct dtn_weight *weight, int n, double whole,
                     double sharing, double stretch,
                     double load[DTENSOR_NCOSTS])
{
    const struct call_units units = units_make(n, whole, weight);

    if (n < 2)
        return;
    load_link(model, weight, &units, &(struct part){ 1, n, true, sharing },
              stretch, load);
    load_local(weight, &units, stretch, load);
}

/* A ring over several hosts: every rank takes part, and those at the borders of
 * hosts count.  Half of what they post goes to the other host, half stays
 * inside.  What is passed on at once leaves a host once on its way past all its
 * ranks; if it takes no messages that grow with the ranks, it is posted and
 * offered at each.  The first pass of a ring in lockstep waits at each step for
 * the next host, a second one passes on.
 */
static void load_ring(const struct dtn_model *model,
                      const struct dtn_weight *weight,
                      const struct call_units *units, double stretch,
                      double load[DTENSOR_NCOSTS])
{
    const bool locked = weight->senders == DTN_SENDERS_LOCKSTEP;
    const double inside = (weight->hops.per_peer - locked)
                        * (units->n - model->hosts);
    double posted, passed = 0;

    if (weight->each_chunk.per_peer == 0 && weight->messages.per_peer == 0)
        passed = 2 * weight->hops.per_peer;
    load_link(model, weight, units, &(struct part){ 1, units->n, true, 1 },
              stretch, load);
    posted = load[DTENSOR_COST_INTER_MESSAGES] / 2;
    load[DTENSOR_COST_INTER_HOPS] -= inside;
    load[DTENSOR_COST_INTRA_HOPS] += inside;
    load[DTENSOR_COST_INTER_MESSAGES] += passed * model->hosts - posted;
    load[DTENSOR_COST_INTRA_MESSAGES] += passed * (units->n - model->hosts)
                                       + posted;
}

/* Add the cost of a weight over all ranks of several hosts. */
static void load_hosts(const struct dtn_model *model,
                       const struct dtn_weight *weight, int n, double whole,
                       double stretch, double load[DTENSOR_NCOSTS])
{
    const struct call_units units = units_make(n, whole, weight);
    const double most = weight->senders == DTN_SENDERS_ALL
        ? model->ranks_per_device : weight->senders == DTN_SENDERS_TWO ? 2 : 1;
    const int own = model->uneven ? 1 : model->locals;
    const struct part inside = { 1, own, false, 0 };
    const struct part beyond = { own, n, true,
        most < model->ranks_per_device ? most : model->ranks_per_device };

    if (weight->senders >= DTN_SENDERS_RING && model->locals > 1) {
        load_ring(model, weight, &units, stretch, load);
    } else {
        load_link(model, weight, &units, &beyond, stretch, load);
        load_link(model, weight, &units, &inside, stretch, load);
    }
    load_local(weight, &units, stretch, load);
}

/* A call whose largest buffer has `whole` bytes, in blocks of equal size. */
static void load_even(const struct dtn_model *model,
                      const struct dtn_call *call,
                      const struct dtn_emitter *emitter, double whole,
                      double stretch, double load[DTENSOR_NCOSTS])
{
    double inside;

    memset(load, 0, DTENSOR_NCOSTS * sizeof load[0]);
    if (emitter->needs != DTN_REACH_HOST) {
        if (model->hosts > 1)
            load_hosts(model, &emitter->weight, call->n, whole, stretch, load);
        else
            load_add(model, &emitter->weight, call->n, whole, 0, stretch, load);
        return;
    }
    load_add(model, &emitter->weight, model->locals, whole, 0, stretch, load);
    inside = load[DTENSOR_COST_INTRA_BYTES]
             * model->ns[DTENSOR_COST_INTRA_BYTES]
           + load[DTENSOR_COST_FOLDED] * model->ns[DTENSOR_COST_FOLDED];
    load_add(model, &emitter->between_hosts, model->hosts,
             whole / model->locals, model->ranks_per_device, stretch, load);
    if (emitter->hides)
        load[DTENSOR_COST_INTER_BYTES] -= fmin(load[DTENSOR_COST_INTER_BYTES],
            inside / model->ns[DTENSOR_COST_INTER_BYTES]);
}

/* Add one of several transfers that run at the same time: their hops overlap.
 */
static void load_join(double load[DTENSOR_NCOSTS],
                      const double one[DTENSOR_NCOSTS], double share)
{
    for (int c = 0; c < DTENSOR_NCOSTS; c++)
        if (c != DTENSOR_COST_INTRA_HOPS && c != DTENSOR_COST_INTER_HOPS)
            load[c] += one[c] * share;
        else if (one[c] > load[c])
            load[c] = one[c];
}

/* A list of blocks.  Block `own` (-1: none) does not leave this rank. */
struct block_list {
    const size_t *counts;
    int own;
    size_t least, most;           /* elements, without the own block          */
    double sum;
};

static struct block_list list_make(const size_t counts[], int n, int own)
{
    struct block_list list = { .counts = counts, .own = own,
                               .least = SIZE_MAX };

    for (int r = 0; r < n; r++) {
        if (r == own)
            continue;
        list.least = counts[r] < list.least ? counts[r] : list.least;
        list.most = counts[r] > list.most ? counts[r] : list.most;
        list.sum += (double)counts[r];
    }
    return list;
}

/* The larger of two costs: the sum, in which each block costs its share of a
 * call with all blocks of its size; or the largest block, times how often it
 * passes one rank.
 */
static void load_list(const struct dtn_model *model,
                      const struct dtn_call *call,
                      const struct dtn_emitter *emitter,
                      const struct block_list *list, double stretch,
                      double load[DTENSOR_NCOSTS])
{
    const double elem = (double)dtensor_dtype_size(call->dtype);
    const int shares = call->n - (list->own >= 0);
    const double most = (double)list->most
                      * term_value(emitter->weight.largest, call->n)
                      / (call->n - 1 + (call->n == 1));
    double one[DTENSOR_NCOSTS];
    size_t last = 0;

    if (list->least >= list->most) {
        load_even(model, call, emitter, (double)list->most * elem * call->n,
                  stretch, load);
    } else if (most * shares > list->sum) {
        load_even(model, call, emitter, most * elem * call->n, stretch, load);
    } else {
        memset(load, 0, sizeof one);
        for (int r = 0, seen = 0; r < call->n; r++) {
            if (r == list->own)
                continue;
            if (seen++ == 0 || list->counts[r] != last)
                load_even(model, call, emitter, (double)list->counts[r] * elem
                          * call->n, stretch, one);
            last = list->counts[r];
            load_join(load, one, 1.0 / shares);
        }
    }
    if (list->own >= 0 && shares > 0)   /* the own block has its own size     */
        load[DTENSOR_COST_COPIED] += emitter->weight.copied.block.constant
            * stretch * elem
            * ((double)list->counts[list->own] - list->sum / shares);
}

/* All sends of a call, or all its receives.  Each is between two ranks. */
static void load_edges(const struct dtn_model *model,
                       const struct dtn_call *call,
                       const struct dtn_emitter *emitter, bool sent,
                       double stretch, double load[DTENSOR_NCOSTS])
{
    memset(load, 0, DTENSOR_NCOSTS * sizeof load[0]);
    for (int i = 0; i < call->nedges; i++) {
        const struct dtn_edge *edge = &call->edges[i];
        const double bytes = (double)(sent ? edge->sent.bytes
                                           : edge->received.bytes);
        const bool far = model->hosts > 1
            && (!model->host
                || model->host[edge->peer] != model->host[call->me]);
        double one[DTENSOR_NCOSTS] = { 0 };

        if (!(sent ? edge->sends : edge->receives))
            continue;
        if (edge->peer == call->me)
            one[DTENSOR_COST_COPIED] = bytes * stretch;
        else
            load_add(model, &emitter->weight, 2, 2 * bytes, far, stretch, one);
        load_join(load, one, 1);
    }
}

/* Devices that reach each other: what peers are told is waited for before.  An
 * allreduce "carry" over 2, 4 and 8 ranks waits 3, 6 and 10 times.
 */
static void load_waits(const struct dtn_model *model,
                       const struct dtn_call *call,
                       const struct dtn_emitter *emitter,
                       double load[DTENSOR_NCOSTS])
{
    const double waits = emitter->weight.waits > 0 ? emitter->weight.waits
                       : call->n + 2;

    if (call->on_device && model->reach == DTN_REACH_MAP && call->n > 1)
        load[DTENSOR_COST_INTRA_HOPS] +=
            waits * LOAD_DEVICE_WAIT_NS / model->ns[DTENSOR_COST_INTRA_HOPS];
}

void dtn_model_load(const struct dtn_model *model, const struct dtn_call *call,
                    const struct dtn_emitter *emitter,
                    double load[DTENSOR_NCOSTS])
{
    const double whole = (double)dtn_call_bytes(call);
    const double stretch = dtn_model_cache_miss_factor(model, whole);
    const struct dtn_coll_info *shape = &dtn_coll_infos[call->coll];
    struct block_list list;

    if (!call->counts || dtn_call_private(call)) {
        load_even(model, call, emitter, whole, stretch, load);
    } else {
        list = list_make(call->counts, call->n, shape->in_at_root
                         || shape->out_at_root ? call->root : -1);
        load_list(model, call, emitter, &list, stretch, load);
    }
    load_waits(model, call, emitter, load);
}

/* The sends of this rank or its receives, whichever take longer. */
void dtn_model_own_load(const struct dtn_model *model,
                        const struct dtn_call *call,
                        const struct dtn_emitter *emitter,
                        double load[DTENSOR_NCOSTS])
{
    const double whole = (double)dtn_call_own_bytes(call);
    const double stretch = dtn_model_cache_miss_factor(model, whole);
    double got[DTENSOR_NCOSTS];
    struct block_list list;

    if (!dtn_call_private(call)) {
        dtn_model_load(model, call, emitter, load);
        return;
    }
    if (call->coll == DTN_COLL_PAIRS) {
        load_edges(model, call, emitter, true, stretch, load);
        load_edges(model, call, emitter, false, stretch, got);
    } else {
        list = list_make(call->counts, call->n, call->me);
        load_list(model, call, emitter, &list, stretch, load);
        list = list_make(call->recv_counts, call->n, call->me);
        load_list(model, call, emitter, &list, stretch, got);
    }
    if (dtn_model_ns(model, got) > dtn_model_ns(model, load))
        memcpy(load, got, sizeof got);
}

double dtn_model_ns(const struct dtn_model *model,
                    const double load[DTENSOR_NCOSTS])
{
    double ns = 0;

    for (int c = 0; c < DTENSOR_NCOSTS; c++)
        ns += load[c] * model->ns[c];
    return ns;
}

/* -------------------------------------------------------------- scratch --- */

static double weight_scratch(const struct dtn_model *model,
                             const struct dtn_weight *weight, int n,
                             double whole, double block,
                             const struct dtn_call *call)
{
    const struct dtn_reduction how = dtn_call_reduction(call);
    struct call_units units = units_make(n, whole, weight);
    double bytes, acc;

    if (call->n < 2)
        return 0;
    if (block > units.block)
        units.block = block;
    bytes = amount_value(&weight->tmp, &units);
    acc = amount_value(&weight->acc, &units);
    if (weight->message != DTN_UNIT_NONE
        && units_value(&units, weight->message) <= dtn_model_eager(model))
        bytes += amount_value(&weight->eager_received, &units);
    if (dtn_coll_infos[call->coll].reduces && dtn_reduction_converts(&how))
        acc += amount_value(&weight->converted, &units);
    return bytes + acc * (double)(dtn_coll_infos[call->coll].reduces
                                  ? dtn_reduction_ratio(&how) : 1);
}

/* With private counts the only scratch is that of eager messages. */
double dtn_model_scratch(const struct dtn_model *model,
                         const struct dtn_call *call,
                         const struct dtn_emitter *emitter)
{
    double whole = dtn_call_private(call) ? 0 : (double)dtn_call_bytes(call);
    double block = !dtn_call_private(call) && dtn_call_blocked(call)
                 ? (double)dtn_call_edge_bytes(call) : 0;

    if (emitter->needs != DTN_REACH_HOST)
        return weight_scratch(model, &emitter->weight, call->n, whole, block,
                              call);
    return weight_scratch(model, &emitter->weight, model->locals, whole, block,
                          call)
         + weight_scratch(model, &emitter->between_hosts, model->hosts,
                          model->uneven ? whole : whole / model->locals,
                          block, call);
}
