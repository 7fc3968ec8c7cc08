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
 * The cost of each emitter is in its row (emitters.c), and load.c counts it.
 * test_model shows that the rows agree with the schedules: it plays the
 * schedules of all ranks with the same constants.
 */
#include "sched/model.h"
#include "cluster/cluster.h"
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
    model->eager_bytes = DTN_EAGER_MAX;
    model->crossings = (struct dtn_crossings){ .counted = false };
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

double dtn_model_ns(const struct dtn_model *model,
                    const double load[DTENSOR_NCOSTS])
{
    double ns = 0;

    for (int c = 0; c < DTENSOR_NCOSTS; c++)
        ns += load[c] * model->ns[c];
    return ns;
}
