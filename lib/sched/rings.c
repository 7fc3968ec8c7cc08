/* rings.c - what a ring costs over several hosts
 *
 * Each rank passes on to the next one what has come to it, and only the last
 * rank of a host sends to another host.  So a pass takes as long as the longer
 * of two things: the path of one chunk past all ranks, most of whose hops are
 * short, and the work of the busiest rank, which sends every chunk.  Example:
 * an all-gather over 8 hosts of 8 ranks by TCP, in blocks of 128 bytes.  On its
 * path a block has 7 hops between hosts, of 19 us with the posts, and 56
 * inside, of 0.25 us: 147 us.  The last rank of a host posts 63 puts and
 * signals, of 4 us: 252 us.
 *
 * In a reduction the next rank has two slots, and a slot is free again when its
 * content has been passed on.  So for each item half of a round trip counts: to
 * the next rank, on to the one after it, and READY back.
 *
 * A chain is one pass of several chunks: the path of the first, then the others
 * as fast as the busiest rank can.
 */
#include "sched/rings.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "sched/units.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

/* One pass around the ring, or along the chain. */
struct lap {
    const struct dtn_model *model;
    const struct dtn_weight *weight;
    const struct dtn_units *units;
    int locals;                   /* ranks on each host                       */
    double hops;                  /* that the first chunk has                 */
    bool ends;                    /* the receiver is the end of the chain     */
    double stretch;               /* of a byte inside a host                  */
    double folds;                 /* bytes of terms read for each one moved   */
};

/* What is sent at once: a block of several chunks, or one chunk. */
struct item {
    double bytes, messages;       /* of data, and its puts and signals        */
};

/* Add `times` times so many hops, messages and bytes of one kind of link. */
static void ring_add(const struct lap *lap, bool far, double times,
                     double hops, double messages, double bytes,
                     double load[DTENSOR_NCOSTS])
{
    const int first = far ? DTENSOR_COST_INTER_HOPS : DTENSOR_COST_INTRA_HOPS;

    load[first] += times * hops;
    load[first + 1] += times * messages;
    load[first + 2] += times * bytes * (far ? 1 : lap->stretch);
}

static void ring_fold(const struct lap *lap, double bytes,
                      double load[DTENSOR_NCOSTS])
{
    load[DTENSOR_COST_FOLDED] += bytes * lap->folds * lap->stretch;
}

/* Keep the load that takes longer. */
static void ring_longer(const struct lap *lap, double load[DTENSOR_NCOSTS],
                        const double other[DTENSOR_NCOSTS])
{
    if (dtn_model_ns(lap->model, other) > dtn_model_ns(lap->model, load))
        memcpy(load, other, DTENSOR_NCOSTS * sizeof load[0]);
}

/* Add what the busiest rank does with so many items, at the border of a host or
 * inside: it posts while the network moves bytes, but moves those inside a host
 * itself.  Bytes that it sends to the next host make READY to the one before
 * wait.
 */
static void ring_busy(const struct lap *lap, struct item item, double times,
                      bool locked, double load[DTENSOR_NCOSTS])
{
    const bool near = lap->locals > 1;
    double busiest[DTENSOR_NCOSTS] = { 0 }, one[DTENSOR_NCOSTS] = { 0 };

    ring_add(lap, true, times, 0, 0, item.bytes, busiest);
    if (locked) {
        ring_add(lap, true, times, 1, near || lap->ends
                 ? (item.messages + 1) / 2 : item.messages + 0.5,
                 lap->ends ? item.bytes / 2 : item.bytes, one);
    } else {
        ring_add(lap, true, times, 0, item.messages, 0, one);
    }
    ring_fold(lap, times * lap->units->chunk, one);
    ring_longer(lap, busiest, one);
    if (near) {
        memset(one, 0, sizeof one);
        ring_add(lap, false, times, 0, item.messages, item.bytes, one);
        ring_fold(lap, times * item.bytes, one);
        ring_longer(lap, busiest, one);
    }
    for (int c = 0; c < DTENSOR_NCOSTS; c++)
        load[c] += busiest[c];
}

/* Add the hops of one chunk past the ranks. */
static void ring_path(const struct lap *lap, double load[DTENSOR_NCOSTS])
{
    const double chunk = lap->units->chunk;
    const double near = lap->locals > 1
                      ? lap->units->n - lap->model->hosts : 0;

    ring_add(lap, true, lap->hops - near, 1, 2, chunk, load);
    ring_add(lap, false, near, 1, 2, chunk, load);
    ring_fold(lap, lap->hops * chunk, load);
}

/* Several chunks one after another, past all ranks. */
static void ring_chain(const struct lap *lap, bool locked,
                       double load[DTENSOR_NCOSTS])
{
    const struct dtn_units *units = lap->units;
    const struct item chunk = { units->chunk, 2 };

    ring_path(lap, load);
    ring_busy(lap, chunk, units->chunks - 1, locked, load);
}

/* The blocks of all ranks around the ring, none waiting for a slot. */
static void ring_around(const struct lap *lap, double load[DTENSOR_NCOSTS])
{
    const struct dtn_units *units = lap->units;
    const struct item block = { units->block, 2 * units->chunks };
    const struct item chunk = { units->chunk, 2 };
    double path[DTENSOR_NCOSTS] = { 0 }, busy[DTENSOR_NCOSTS] = { 0 };

    ring_path(lap, path);
    ring_busy(lap, chunk, units->chunks - 1, false, path);
    ring_busy(lap, block, units->n - 1, false, busy);
    ring_add(lap, true, 1, 1, 0, 0, busy);
    ring_longer(lap, path, busy);
    for (int c = 0; c < DTENSOR_NCOSTS; c++)
        load[c] += path[c];
}

void dtn_load_ring(const struct dtn_model *model,
                   const struct dtn_weight *weight,
                   const struct dtn_units *units, double stretch,
                   double load[DTENSOR_NCOSTS])
{
    const bool locked = weight->senders != DTN_SENDERS_RING
                     && dtn_amount_value(&weight->folded, units) > 0;
    const bool chain = weight->chunk.of != DTN_UNIT_BLOCK;
    const struct item block = { units->block, 2 * units->chunks };
    const double hops = chain ? dtn_term_value(weight->hops, units->n)
                                - weight->hops.constant : units->n - 1;
    struct lap lap = { model, weight, units,
        dtn_model_rails(model), hops, chain && hops == 1, stretch,
        locked ? 2 : 0 };

    ring_add(&lap, true, 1, weight->hops.constant, 1, 0, load);
    if (chain) {
        ring_chain(&lap, locked, load);
        return;
    }
    if (locked)
        ring_busy(&lap, block, units->n - 1, true, load);
    lap.folds = 0;               /* what is gathered is not reduced          */
    if (weight->hops.per_peer > locked)
        ring_around(&lap, load);
}
