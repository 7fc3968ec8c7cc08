/* model.c - the predicted time of a collective
 *
 * The busiest rank posts m messages, waits for h signals one after another
 * (hops), moves b bytes, and folds and copies some bytes:
 *
 *     h * hop + m * message + b / bandwidth + folded / fold + copied / copy
 *
 * Example: an allreduce of 1 MiB over 4 ranks that do not map, with 1.2 us per
 * hop, 0.2 us per message and 12.1 GB/s as over InfiniBand.  The ring takes 7
 * hops, 51 messages (blocks of 256 KiB go in 2 chunks) and moves 1.5 MiB: 8.4 +
 * 10.2 + 130 us.  The tree takes 5 hops, 9 messages and moves 4 MiB: 6 + 1.8 +
 * 347 us.  For 8 KiB the ring takes 14 us and the tree 10 us.
 *
 * If a call uses more memory than the caches hold, each byte above that costs
 * more: memory of this rank and of its peers is read from DRAM.  If ranks
 * outnumber CPUs (oversubscription), a hop also includes the time until the
 * waiting rank gets a CPU, and the ranks share the CPUs for everything else.
 *
 * With blocks of unequal sizes, each block costs its share of a call in which
 * all blocks have that size.  Example: an all-to-all over 3 ranks sends 100
 * bytes and 1 MiB.  One half of the cost is 50 bytes in a signal, the other
 * half is 512 KiB put after the hops of a call that puts.  A rank with private
 * counts predicts from what it sends and receives.  The choice of the algorithm
 * must be the same on all ranks, so it uses the approximate block size of the
 * call instead.
 *
 * The cost of each emitter is in its row (emitters.c). test_model shows that
 * the rows agree with the schedules: it plays the schedules of all ranks with
 * the same constants.
 */
#include "sched/model.h"
#include "base/reduce.h"
#include "cluster/cluster.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

/* A wire is a way between two ranks. */
struct wire {
    double hop_ns;                /* from a signal to the rank that waits     */
    double message_ns;            /* to post one more put or signal           */
    double bytes_per_ns;          /* GB/s of one rank while all ranks move    */
};

/* The constants and where they come from.  [tuning] overrides each of them;
 * dtensor-bench --calibrate measures them.
 */
static const struct wire model_wires[] = {
    /* Two and four processes on two CPUs with close caches.  The rate is for
     * bytes that one rank has just written and the other loads: with 12 GB/s
     * the prediction of an allreduce of two ranks is within a factor of 1.5
     * from 8 B to 8 MiB.  Bytes that nobody has written since the last call
     * load twice as fast.
     */
    [DTN_WIRE_SHM] = { 140, 50, 12.0 },
    /* Kernel TCP: half a round trip through two sockets takes about 15 us, and
     * a send with its share of polling 2 us.  The rate is that of 10 Gb/s
     * Ethernet without headers.  Estimates.
     */
    [DTN_WIRE_TCP] = { 15000, 2000, 1.15 },
    /* InfiniBand and RoCE at 100 Gb/s: 1.0 us one way plus the time to notice,
     * and 12.1 GB/s, as vendors give them for ib_write_lat and ib_write_bw.
     * 0.2 us to post a write or a signal.  Estimates.
     */
    [DTN_WIRE_RC] = { 1200, 200, 12.1 },
};

/* Reductions and copies in the L1 and L2 caches: calls for which this cost
 * decides are small.
 */
#define MODEL_FOLD_BYTES_PER_NS 60.0
#define MODEL_COPY_BYTES_PER_NS 60.0

/* Cache capacity for a call, compared with its largest buffer; and the relative
 * cost of a byte above it.
 */
#define MODEL_CACHE_BYTES ((double)(1 << 20))
#define MODEL_UNCACHED 1.2

/* Incast: the relative loss in a switch when several senders share one
 * receiver, for each doubling of the senders.  An estimate: 63 senders at once
 * take 1.3 times as long at 5%, where pairwise shifts take 63 hops instead of
 * one.
 */
#define MODEL_CONGESTION 0.05

/* A wait of the host for what its device does: a launch and the time to notice
 * that it has ended.  An estimate: no device was at hand.
 */
#define MODEL_DEVICE_WAIT_NS 10000.0

/* Cost of a context switch in ns, for each rank per CPU above one. */
#define MODEL_SWITCH_NS 1500.0

/* ------------------------------------------------------------ constants --- */

/* ns[] receives the cost of a hop, a message and a byte, in this order. */
static void model_wire(double ns[], const struct wire *wire, int latency_ns,
                       int message_ns, uint64_t bandwidth)
{
    ns[0] = latency_ns > 0 ? latency_ns : wire->hop_ns;
    ns[1] = message_ns > 0 ? message_ns : wire->message_ns;
    ns[2] = bandwidth > 0 ? 1e9 / (double)bandwidth : 1 / wire->bytes_per_ns;
}

void dtn_model_costs(const struct dtensor_cluster *cluster,
                     struct dtn_model *model)
{
    const struct dtn_costs_conf *conf = &cluster->costs;
    double *ns = model->ns;

    model->tuning = cluster->tuning;
    model->max_scratch = (double)cluster->redistribute.max_scratch_bytes;
    model_wire(ns + DTENSOR_COST_INTRA_HOPS,
               &model_wires[cluster->transport.intra_node],
               conf->intra_latency_ns, conf->intra_message_ns,
               conf->intra_bandwidth);
    model_wire(ns + DTENSOR_COST_INTER_HOPS,
               &model_wires[cluster->transport.inter_node],
               conf->inter_latency_ns, conf->inter_message_ns,
               conf->inter_bandwidth);
    model->cache_bytes = conf->cache_bytes ? (double)conf->cache_bytes
                                           : MODEL_CACHE_BYTES;
    model->cache_miss_factor = conf->uncached_percent
                                   ? conf->uncached_percent / 100.0
                                   : MODEL_UNCACHED;
    model->ranks_per_cpu = 1;
    model->incast_factor = conf->congestion_percent
                      ? conf->congestion_percent / 100.0 : MODEL_CONGESTION;
    ns[DTENSOR_COST_FOLDED] = conf->fold_bandwidth
        ? 1e9 / (double)conf->fold_bandwidth : 1 / MODEL_FOLD_BYTES_PER_NS;
    ns[DTENSOR_COST_COPIED] = conf->copy_bandwidth
        ? 1e9 / (double)conf->copy_bandwidth : 1 / MODEL_COPY_BYTES_PER_NS;
}

void dtn_model_oversubscribe(struct dtn_model *model, double ranks_per_cpu)
{
    if (ranks_per_cpu <= 1)
        return;
    model->ranks_per_cpu = ranks_per_cpu;
    for (int c = 0; c < DTENSOR_NCOSTS; c++)
        if (c != DTENSOR_COST_INTRA_HOPS && c != DTENSOR_COST_INTER_HOPS
            && c != DTENSOR_COST_INTER_BYTES)
            model->ns[c] *= ranks_per_cpu;
    model->ns[DTENSOR_COST_INTRA_HOPS] += (ranks_per_cpu - 1) * MODEL_SWITCH_NS;
    model->ns[DTENSOR_COST_INTER_HOPS] += (ranks_per_cpu - 1) * MODEL_SWITCH_NS;
}

int dtn_model_devices(const struct dtensor_cluster *cluster, int host)
{
    const struct dtn_host *h = &cluster->hosts[host];
    char *const *hca = cluster->nodes[h->nodes].hca;
    int devices = 0, first;

    for (int r = 0; hca && r < h->nranks; r++) {
        for (first = 0; strcmp(hca[first], hca[r]) != 0; first++)
            ;
        devices += first == r;
    }
    return devices > 0 ? devices : 1;
}

/* ---------------------------------------------------------------- loads --- */

/* A call in the units of struct dtn_weight. */
struct call_units {
    int n;
    double whole;
    double block;
    double chunk;
    double chunks;
};

static double term_value(struct dtn_growth term, int n)
{
    int levels = 0;

    while (1 << levels < n)
        levels++;
    return term.constant + term.log2n * levels + term.per_peer * (n - 1)
         + (1 << levels != n ? term.not_power_of_two : 0);
}

static double units_value(const struct call_units *units, enum dtn_unit unit)
{
    return unit == DTN_UNIT_WHOLE ? units->whole
         : unit == DTN_UNIT_HALF ? units->whole / 2
         : unit == DTN_UNIT_BLOCK ? units->block : 0;
}

static double amount_value(const struct dtn_amount *amount,
                           const struct call_units *units)
{
    return term_value(amount->whole, units->n) * units->whole
         + term_value(amount->block, units->n) * units->block
         + term_value(amount->chunk, units->n) * units->chunk;
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

/* Add the cost of a weight over n ranks, inside a host or between hosts. */
static void load_add(const struct dtn_model *model,
                     const struct dtn_weight *weight, int n, double whole,
                     double ranks_per_device, double stretch,
                     double load[DTENSOR_NCOSTS])
{
    const struct dtn_growth doublings = { .log2n = weight->incast
                                        ? model->incast_factor : 0 };
    struct call_units units = units_make(n, whole, weight);
    double hops = term_value(weight->hops, n);
    double moved = amount_value(&weight->moved, &units);
    double messages = term_value(weight->messages, n)
                    + term_value(weight->each_chunk, n) * units.chunks;
    double *link = load + (ranks_per_device > 0 ? DTENSOR_COST_INTER_HOPS
                                       : DTENSOR_COST_INTRA_HOPS);

    if (n < 2)
        return;
    if (units_value(&units, weight->message) > DTN_EAGER_MAX) {
        hops += 1;
        messages *= 3;
    } else if (weight->message != DTN_UNIT_NONE) {
        moved += amount_value(&weight->eager_moved, &units);
        load[DTENSOR_COST_COPIED] += moved;       /* copied out of the        */
                                                  /* signals                  */
    }
    link[0] += hops;
    link[1] += messages;
    if (ranks_per_device == 0)
        link[2] += moved * stretch;
    else
        link[2] += moved * (weight->neighbours ? 1 : ranks_per_device)
                 * (1 + term_value(doublings, n - 1));
    load[DTENSOR_COST_FOLDED] +=
        stretch * amount_value(&weight->folded, &units);
    load[DTENSOR_COST_COPIED] +=
        stretch * amount_value(&weight->copied, &units);
}

/* A call whose largest buffer has `whole` bytes, in blocks of equal size. */
static void load_even(const struct dtn_model *model,
                      const struct dtn_call *call,
                      const struct dtn_emitter *emitter, double whole,
                      double stretch, double load[DTENSOR_NCOSTS])
{
    memset(load, 0, DTENSOR_NCOSTS * sizeof load[0]);
    if (emitter->needs != DTN_REACH_HOST) {
        load_add(model, &emitter->weight, call->n, whole,
                 model->hosts > 1 ? model->ranks_per_device : 0, stretch, load);
        return;
    }
    load_add(model, &emitter->weight, model->locals, whole, 0, stretch, load);
    load_add(model, &emitter->between_hosts, model->hosts,
             whole / model->locals, model->ranks_per_device, stretch, load);
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
            waits * MODEL_DEVICE_WAIT_NS / model->ns[DTENSOR_COST_INTRA_HOPS];
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

static double weight_scratch(const struct dtn_weight *weight, int n,
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
        && units_value(&units, weight->message) <= DTN_EAGER_MAX)
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
        return weight_scratch(&emitter->weight, call->n, whole, block, call);
    return weight_scratch(&emitter->weight, model->locals, whole, block, call)
         + weight_scratch(&emitter->between_hosts, model->hosts,
                          model->uneven ? whole : whole / model->locals,
                          block, call);
}
