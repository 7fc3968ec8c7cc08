/* load.c - what a call costs the busiest rank: hops, messages, bytes
 *
 * A row of emitters.c says what an algorithm costs over n ranks, whoever they
 * are; links.c splits that between hosts.
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
#include "sched/links.h"
#include "sched/model.h"
#include "sched/units.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* A wait of the host for what its device does: a launch and the time to notice
 * that it has ended.  An estimate: no device was at hand.
 */
#define LOAD_DEVICE_WAIT_NS 10000.0

double dtn_model_cache_miss_factor(const struct dtn_model *model, double whole)
{
    double beyond = whole - model->cache_bytes;

    return beyond > 0 && model->cache_miss_factor > 1
         ? 1 + (model->cache_miss_factor - 1) * beyond / whole : 1;
}

/* Ranks of a host that send through one device at the same time, one for each
 * rail.
 */
static double load_sharing(const struct dtn_model *model)
{
    return fmax(1, model->ranks_per_device * dtn_model_rails(model)
                   / model->locals);
}

/* The blocks of the largest host, as a multiple of what each would have if all
 * had as many.  Where hosts forward those of others, only the shifts of few
 * blocks are longer.  In an all-to-all the ranks of the rails share what all
 * ranks of the host send to those of other hosts.
 */
static double load_largest(const struct dtn_model *model,
                           const struct dtn_call *call,
                           const struct dtn_emitter *emitter)
{
    const bool incast = emitter->between_hosts.incast;
    const double share = (double)model->locals * model->hosts / call->n;
    const double often = incast ? 1 : fmin(1, 8.0 / model->hosts);

    if (emitter->undivided)
        return (double)model->locals / dtn_model_rails(model)
             * (call->n - model->locals) / call->n
             * model->hosts / fmax(1, model->hosts - 1);
    return model->uneven && dtn_call_blocked(call)
         ? 1 + (share - 1) * often : 1;
}

/* On a host with more ranks than rails some ranks fold or load more than their
 * share, and the others do not signal each other.  In an all-to-all these load
 * from them what has come.
 */
static void load_unequal(const struct dtn_model *model,
                         const struct dtn_emitter *emitter, double bytes,
                         double load[DTENSOR_NCOSTS])
{
    const double n = model->locals, rails = dtn_model_rails(model);
    const double terms =
        dtn_term_value(emitter->weight.folded.whole, (int)n)
        + emitter->undivided;
    const double more = bytes * terms * (n / rails - 1);

    if (!model->uneven)
        return;
    load[DTENSOR_COST_INTRA_BYTES] += more * (n - 1) / n;
    load[DTENSOR_COST_INTRA_MESSAGES] *= (n + rails) / (2 * n);
    if (emitter->undivided) {
        load[DTENSOR_COST_INTRA_HOPS] += 2;
        load[DTENSOR_COST_INTRA_BYTES] += bytes;
        load[DTENSOR_COST_COPIED] += bytes;
    } else {
        load[DTENSOR_COST_FOLDED] += more;
    }
}

/* Are the messages between hosts too long to go with a signal? */
static bool rails_long(const struct dtn_model *model,
                       const struct dtn_weight *weight,
                       const struct dtn_units *units)
{
    return weight->message == DTN_UNIT_NONE
        || dtn_load_puts(model, weight, units);
}

/* The ranks of a host run the same algorithm on all rails.  If all levels move
 * as many bytes, they use the device in turn on all levels but the first and
 * the last, unless each message is a put and a signal: all signals are behind
 * the puts of all ranks then.  The first READY is under way while work of
 * inside_ns is done inside the host.
 */
static void load_rails(const struct dtn_model *model,
                       const struct dtn_emitter *emitter,
                       const struct dtn_units *units, double inside_ns,
                       double load[DTENSOR_NCOSTS])
{
    const struct dtn_weight *weight = &emitter->between_hosts;
    const bool too_long = rails_long(model, weight, units);
    const double levels = fmax(1, ceil(log2(model->hosts)));

    if (weight->moved.whole.log2n > 0 && levels > 2 && !too_long)
        dtn_load_turns(model, weight, load_sharing(model), 1 - 2 / levels,
                       load);
    if (emitter->algorithm == DTN_ALG_RAILS && too_long
        && weight->senders != DTN_SENDERS_TREES)
        load[DTENSOR_COST_INTER_HOPS] -=
            fmin(1, inside_ns / model->ns[DTENSOR_COST_INTER_HOPS]);
}

/* What a hierarchy costs between hosts.  On unequal hosts a rank puts each
 * block of its share: as many as the largest host has for a rail, or to each
 * host what that has, in the mean.
 */
static struct dtn_weight load_between(const struct dtn_model *model,
                                      const struct dtn_call *call,
                                      const struct dtn_emitter *emitter)
{
    const double rails = dtn_model_rails(model);
    const double blocks = dtn_coll_infos[call->coll].in == DTN_HOLDS_ONE
                        ? ceil(model->locals / rails)
                        : call->n / (rails * model->hosts);
    struct dtn_weight weight = emitter->between_hosts;

    if (dtn_call_blocked(call) && emitter->algorithm == DTN_ALG_HIERARCHICAL)
        weight.messages.per_peer += blocks - 1;
    if (!emitter->undivided)
        weight.busiest = load_largest(model, call, emitter);
    return weight;
}

/* A call whose largest buffer has `whole` bytes, in blocks of equal size. */
static void load_even(const struct dtn_model *model,
                      const struct dtn_call *call,
                      const struct dtn_emitter *emitter, double whole,
                      double stretch, double load[DTENSOR_NCOSTS])
{
    const double most = whole * load_largest(model, call, emitter);
    const double rails = emitter->undivided ? 1 : dtn_model_rails(model);
    const struct dtn_weight between = load_between(model, call, emitter);
    double late, inside, inside_ns, *bytes = &load[DTENSOR_COST_INTER_BYTES];
    struct dtn_units units;

    memset(load, 0, DTENSOR_NCOSTS * sizeof load[0]);
    if (emitter->needs != DTN_REACH_HOST) {
        if (model->hosts > 1)
            dtn_load_hosts(model, &emitter->weight, call->n, whole, stretch,
                           load);
        else
            dtn_load_add(model, &emitter->weight, call->n, whole, 0, stretch,
                         load);
        return;
    }
    dtn_load_add(model, &emitter->weight, model->locals, whole, 0, stretch,
                 load);
    load_unequal(model, emitter, whole * stretch, load);
    inside = load[DTENSOR_COST_INTRA_BYTES]
             * model->ns[DTENSOR_COST_INTRA_BYTES]
           + load[DTENSOR_COST_FOLDED] * model->ns[DTENSOR_COST_FOLDED];
    inside_ns = dtn_model_ns(model, load);
    dtn_load_add(model, &between, model->hosts,
                 most / rails, load_sharing(model), stretch, load);
    units = dtn_units_make(model->hosts, most / rails,
                           &between);
    load_rails(model, emitter, &units, inside_ns, load);
    inside /= model->ns[DTENSOR_COST_INTER_BYTES];
    late = *bytes - dtn_load_first(model, &between,
                                   model->hosts, most / rails,
                                   load_sharing(model));
    *bytes -= emitter->hides_own ? fmin(*bytes, inside / model->hosts)
                                 : emitter->hides * fmin(fmax(0, late), inside);
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
                      * dtn_term_value(emitter->weight.largest, call->n)
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
            dtn_load_add(model, &emitter->weight, 2, 2 * bytes, far, stretch,
                         one);
        load_join(load, one, 1);
    }
}

/* Devices that reach each other: what peers are told is waited for before.  An
 * allreduce "eager" over 2, 4 and 8 ranks waits 3, 6 and 10 times.
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

/* -------------------------------------------------------------- scratch --- */

static double weight_scratch(const struct dtn_model *model,
                             const struct dtn_weight *weight, int n,
                             double whole, double block,
                             const struct dtn_call *call)
{
    const struct dtn_reduction how = dtn_call_reduction(call);
    struct dtn_units units = dtn_units_make(n, whole, weight);
    double bytes, acc;

    if (call->n < 2)
        return 0;
    if (block > units.block)
        units.block = block;
    bytes = dtn_amount_value(&weight->tmp, &units);
    acc = dtn_amount_value(&weight->acc, &units);
    if (weight->message != DTN_UNIT_NONE
        && !dtn_load_puts(model, weight, &units))
        bytes += dtn_amount_value(&weight->eager_received, &units);
    if (dtn_coll_infos[call->coll].reduces && dtn_reduction_converts(&how))
        acc += dtn_amount_value(&weight->converted, &units);
    return bytes + acc * (double)(dtn_coll_infos[call->coll].reduces
                                  ? dtn_reduction_ratio(&how) : 1);
}

/* What a rank of a hierarchy forwards between hosts takes.  On unequal hosts it
 * has the blocks of several ranks, and once more those of its host.  In an
 * all-to-all it has what the ranks of its host send to several of each host,
 * and as much comes, in messages of several lengths.
 */
static double hosts_scratch(const struct dtn_model *model,
                            const struct dtn_call *call,
                            const struct dtn_emitter *emitter, double whole,
                            double block)
{
    const int rails = dtn_model_rails(model);
    const double share = ceil((double)model->locals / rails) * block;
    double bytes = emitter->undivided ? whole : whole / rails;
    double more = model->uneven ? share : 0;

    if (model->uneven && block > 0)
        bytes = fmin(whole, share * model->hosts);
    if (model->uneven && emitter->undivided)
        more = bytes *= model->locals;
    return weight_scratch(model, &emitter->between_hosts, model->hosts, bytes,
                          share, call) + more;
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
         + hosts_scratch(model, call, emitter, whole, block);
}
