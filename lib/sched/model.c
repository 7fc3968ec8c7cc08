/* model.c - what a collective is thought to cost
 *
 * The rank that has most to do hands over m messages, waits for h of others'
 * one after another, moves b bytes, and folds and copies some:
 *
 *     h * hop + m * message + b / bandwidth + folded / fold + copied / copy
 *
 * An allreduce of 1 MiB over 4 ranks that do not map, at 1.2 us, 0.2 us and
 * 12.1 GB/s as over InfiniBand, by the ring: 7 hops, 51 messages (blocks of 256
 * KiB go in 2 chunks) and 1.5 MiB moved are 8.4 + 10.2 + 130 us; by the tree, 5
 * hops, 9 messages and 4 MiB: 6 + 1.8 + 347 us.  Of 8 KiB the ring takes 14 us
 * and the tree 10.
 *
 * A call of more than the caches hold costs more for each byte beyond: the
 * rank's own memory, and its peers', come from further away.  Where ranks
 * outnumber CPUs, a hop also includes the time until the waiting rank gets a
 * CPU, and the ranks share the CPUs for everything else.
 *
 * Blocks of unequal sizes are shares of calls in which all are like them: of an
 * all-to-all over 3 ranks that sends 100 bytes and 1 MiB, one half is 50 bytes
 * in a signal, the other 512 KiB put, after the hops of a call that puts.  A
 * rank that alone knows its sizes predicts from what it sends and receives.
 * The choice must be the same on all ranks, so it uses the approximate block
 * size of the call.
 *
 * What an emitter takes of a rank is in its row (emitters.c); that these rows
 * are true to the schedules is shown by test_model, which plays the schedules
 * of all ranks with the same constants.
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

/* Of one wire: ns until a signal is seen by a rank that waits for it; ns to hand
 * over one more put or signal; bytes a ns (GB/s) that one rank moves while all
 * others move theirs.
 */
struct wire {
    double hop_ns;
    double message_ns;
    double bytes_per_ns;
};

/* Every constant and where it comes from.  [tuning] overrides each;
 * dtensor-bench --calibrate measures them.
 */
static const struct wire model_wires[] = {
    /* Two and four processes on two CPUs whose caches are near each other.  The
     * rate is that of bytes that one has just written and the other loads: with
     * 12 GB/s an allreduce of two ranks is predicted within 1.5 from 8 B to 8 MiB
     * (HACKING, on memory of dtensor_alloc()).  Of bytes that nobody has written
     * since the last call twice as many are loaded.
     */
    [DTN_WIRE_SHM] = { 140, 50, 12.0 },
    /* Kernel TCP: half a round trip through two sockets takes some 15 us; 2 us
     * for a send and its share of polling; the rate is that of 10 Gb/s Ethernet
     * less its headers.  Estimates.
     */
    [DTN_WIRE_TCP] = { 15000, 2000, 1.15 },
    /* InfiniBand and RoCE at 100 Gb/s, ib_write_lat and ib_write_bw as vendors
     * give them: 1.0 us one way, and noticing; 12.1 GB/s.  To post a write or a
     * signal is taken for 0.2 us.  Estimates.
     */
    [DTN_WIRE_RC] = { 1200, 200, 12.1 },
};

/* In the first caches, where calls live for which it decides. */
#define MODEL_FOLD_BYTES_PER_NS 60.0
#define MODEL_COPY_BYTES_PER_NS 60.0

/* Of the largest buffer of a call; and what a byte beyond costs. */
#define MODEL_CACHE_BYTES ((double)(1 << 20))
#define MODEL_UNCACHED 1.2

/* What switches lose when senders meet at one receiver, for each doubling of them.
 * An estimate: of 63 at once 5% make 1.3 times the time, where shifts by pairs
 * take 63 hops instead of one.
 */
#define MODEL_CONGESTION 0.05

/* To be given a CPU by one that waits, for each rank more than there are CPUs. */
#define MODEL_SWITCH_NS 1500.0

/* ------------------------------------------------------------ constants --- */

/* ns[] has those of a hop, a message and a byte, in this order. */
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
    model->uncached = conf->uncached_percent ? conf->uncached_percent / 100.0
                                             : MODEL_UNCACHED;
    model->crowding = 1;
    model->congestion = conf->congestion_percent
                      ? conf->congestion_percent / 100.0 : MODEL_CONGESTION;
    ns[DTENSOR_COST_FOLDED] = conf->fold_bandwidth
        ? 1e9 / (double)conf->fold_bandwidth : 1 / MODEL_FOLD_BYTES_PER_NS;
    ns[DTENSOR_COST_COPIED] = conf->copy_bandwidth
        ? 1e9 / (double)conf->copy_bandwidth : 1 / MODEL_COPY_BYTES_PER_NS;
}

void dtn_model_crowd(struct dtn_model *model, double crowding)
{
    if (crowding <= 1)
        return;
    model->crowding = crowding;
    for (int c = 0; c < DTENSOR_NCOSTS; c++)
        if (c != DTENSOR_COST_INTRA_HOPS && c != DTENSOR_COST_INTER_HOPS
            && c != DTENSOR_COST_INTER_BYTES)
            model->ns[c] *= crowding;
    model->ns[DTENSOR_COST_INTRA_HOPS] += (crowding - 1) * MODEL_SWITCH_NS;
    model->ns[DTENSOR_COST_INTER_HOPS] += (crowding - 1) * MODEL_SWITCH_NS;
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

/* A call, as weights see it. */
struct call_units {
    int n;
    double whole;
    double block;
    double chunk;
    double chunks;
};

static double term_value(struct dtn_term term, int n)
{
    int levels = 0;

    while (1 << levels < n)
        levels++;
    return term.constant + term.log2n * levels + term.per_peer * (n - 1)
         + (1 << levels != n ? term.not_power_of_two : 0);
}

static double units_value(const struct call_units *units, enum dtn_measure unit)
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

    return beyond > 0 && model->uncached > 1
         ? 1 + (model->uncached - 1) * beyond / whole : 1;
}

/* What a weight is over n ranks, inside a host or between hosts. */
static void load_add(const struct dtn_model *model,
                     const struct dtn_weight *weight, int n, double whole,
                     double sharers, double stretch,
                     double load[DTENSOR_NCOSTS])
{
    const struct dtn_term doublings = { .log2n = weight->incast
                                        ? model->congestion : 0 };
    struct call_units units = units_make(n, whole, weight);
    double hops = term_value(weight->hops, n);
    double moved = amount_value(&weight->moved, &units);
    double messages = term_value(weight->messages, n)
                    + term_value(weight->each_chunk, n) * units.chunks;
    double *link = load + (sharers > 0 ? DTENSOR_COST_INTER_HOPS
                                       : DTENSOR_COST_INTRA_HOPS);

    if (n < 2)
        return;
    if (units_value(&units, weight->message) > DTN_EAGER_MAX) {
        hops += 1;
        messages *= 3;
    } else if (weight->message != DTN_UNIT_NONE) {
        moved += amount_value(&weight->carried, &units);
        load[DTENSOR_COST_COPIED] += moved;       /* out of the signals        */
    }
    link[0] += hops;
    link[1] += messages;
    if (sharers == 0)
        link[2] += moved * stretch;
    else
        link[2] += moved * (weight->neighbours ? 1 : sharers)
                 * (1 + term_value(doublings, n - 1));
    load[DTENSOR_COST_FOLDED] += stretch * amount_value(&weight->folded, &units);
    load[DTENSOR_COST_COPIED] += stretch * amount_value(&weight->copied, &units);
}

/* A call whose largest buffer has `whole` bytes, in blocks that are all alike. */
static void load_even(const struct dtn_model *model, const struct dtn_call *call,
                      const struct dtn_emitter *emitter, double whole,
                      double stretch, double load[DTENSOR_NCOSTS])
{
    memset(load, 0, DTENSOR_NCOSTS * sizeof load[0]);
    if (emitter->needs != DTN_REACH_HOST) {
        load_add(model, &emitter->weight, call->n, whole,
                 model->hosts > 1 ? model->sharers : 0, stretch, load);
        return;
    }
    load_add(model, &emitter->weight, model->locals, whole, 0, stretch, load);
    load_add(model, &emitter->rails, model->hosts, whole / model->locals,
             model->sharers, stretch, load);
}

/* One of several that go on at the same time: they wait together. */
static void load_join(double load[DTENSOR_NCOSTS],
                      const double one[DTENSOR_NCOSTS], double share)
{
    for (int c = 0; c < DTENSOR_NCOSTS; c++)
        if (c != DTENSOR_COST_INTRA_HOPS && c != DTENSOR_COST_INTER_HOPS)
            load[c] += one[c] * share;
        else if (one[c] > load[c])
            load[c] = one[c];
}

/* A list of blocks, of which number `own` (-1: none) stays where it is. */
struct block_list {
    const size_t *counts;
    int own;
    size_t least, most;           /* elements, the own one aside               */
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

/* Each block costs its share of a call in which all blocks have its size; or
 * the largest block, as often as it goes through one rank, costs more than all
 * together.
 */
static void load_list(const struct dtn_model *model, const struct dtn_call *call,
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
    if (list->own >= 0 && shares > 0)   /* the own block has its own size      */
        load[DTENSOR_COST_COPIED] += emitter->weight.copied.block.constant * stretch
            * elem * ((double)list->counts[list->own] - list->sum / shares);
}

/* All sends of a call, or all its receives, each between two ranks. */
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

void dtn_model_load(const struct dtn_model *model, const struct dtn_call *call,
                    const struct dtn_emitter *emitter,
                    double load[DTENSOR_NCOSTS])
{
    const double whole = (double)dtn_call_bytes(call);
    const double stretch = dtn_model_cache_miss_factor(model, whole);
    const struct dtn_shape *shape = &dtn_shapes[call->coll];
    struct block_list list;

    if (!call->counts || dtn_call_private(call)) {
        load_even(model, call, emitter, whole, stretch, load);
        return;
    }
    list = list_make(call->counts, call->n, shape->in_at_root
                     || shape->out_at_root ? call->root : -1);
    load_list(model, call, emitter, &list, stretch, load);
}

/* What this rank sends or what it receives, whichever takes longer. */
void dtn_model_told(const struct dtn_model *model, const struct dtn_call *call,
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

/* ---------------------------------------------------------------- scratch --- */

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
        bytes += amount_value(&weight->caught, &units);
    if (dtn_shapes[call->coll].reduces && dtn_reduction_lifts(&how))
        acc += amount_value(&weight->lifted, &units);
    return bytes + acc * (double)(dtn_shapes[call->coll].reduces
                                  ? dtn_reduction_ratio(&how) : 1);
}

/* Of counts that only this rank knows, what comes with signals is all there is.
 */
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
         + weight_scratch(&emitter->rails, model->hosts,
                          model->uneven ? whole : whole / model->locals,
                          block, call);
}
