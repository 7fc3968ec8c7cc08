/* links.c - what a weight costs over the links inside a host and between hosts
 *
 * With several ranks on a host some of what an algorithm does stays inside.
 * Example: 4 hosts of 8 ranks that share a network device.  In an all-to-all of
 * 1 MiB a rank has 31 peers: 7 blocks stay inside, and 24 blocks of each of 8
 * ranks go through the device.  In a tree the first rank of a host alone sends
 * to other hosts, and in a ring the last one does.
 */
#include "sched/links.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "sched/units.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>

/* Add the hops, messages and bytes of a part of a weight. */
static void load_link(const struct dtn_model *model,
                      const struct dtn_weight *weight,
                      const struct dtn_units *units,
                      const struct dtn_peers *part,
                      double stretch, double load[DTENSOR_NCOSTS])
{
    const struct dtn_growth doublings = { .log2n = weight->incast
                                        ? model->incast_factor : 0 };
    double hops = dtn_term_part(weight->hops, part);
    double moved = dtn_amount_part(&weight->moved, units, part)
                 + (part->constants ? weight->thinned * units->whole
                                      * -log2(units->filled) : 0);
    double rooted = dtn_amount_part(&weight->rooted, units, part)
                  + (part->sharing > 0 ? dtn_fanned_part(weight, units, part)
                                       : 0);
    double messages = dtn_term_part(weight->messages, part)
                    + dtn_term_part(weight->puts, part) * units->filled
                    + dtn_term_part(weight->each_chunk, part) * units->chunks;
    double offers = dtn_term_part(weight->offers, part);
    const int first = part->sharing > 0 ? DTENSOR_COST_INTER_HOPS
                                        : DTENSOR_COST_INTRA_HOPS;
    const double *ns = model->ns + first;
    double *link = load + first, bytes;

    if (dtn_units_value(units, weight->message) > dtn_model_eager(model)) {
        hops += part->constants;
        offers = messages;
        messages *= 3;
    } else if (weight->message != DTN_UNIT_NONE) {
        moved += dtn_amount_part(&weight->eager_moved, units, part);
        load[DTENSOR_COST_COPIED] += moved;       /* copied out of the        */
                                                  /* signals                  */
    }
    link[0] += hops;
    link[1] += messages;
    if (part->sharing > 0)
        bytes = (moved * part->sharing + rooted)
              * (1 + dtn_term_value(doublings, part->n - 1));
    else
        bytes = (moved + rooted) * stretch;
    link[2] += bytes;
    if (part->sharing > 0 && weight->overlaps > 0)
        link[2] -= weight->overlaps
                 * fmin(bytes, (messages - offers) * ns[1] / ns[2]);
}

/* Add what a rank of n does in its own memory. */
static void load_local(const struct dtn_weight *weight,
                       const struct dtn_units *units, double stretch,
                       double load[DTENSOR_NCOSTS])
{
    load[DTENSOR_COST_FOLDED] +=
        stretch * dtn_amount_value(&weight->folded, units);
    load[DTENSOR_COST_COPIED] +=
        stretch * dtn_amount_value(&weight->copied, units);
}

/* Add the cost of a weight over n ranks, inside a host or between hosts. */
void dtn_load_add(const struct dtn_model *model,
                  const struct dtn_weight *weight, int n, double whole,
                  double sharing, double stretch,
                  double load[DTENSOR_NCOSTS])
{
    const struct dtn_units units = dtn_units_make(n, whole, weight);

    if (n < 2)
        return;
    load_link(model, weight, &units, &(struct dtn_peers){ 1, n, true, sharing },
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
                      const struct dtn_units *units, double stretch,
                      double load[DTENSOR_NCOSTS])
{
    const bool locked = weight->senders == DTN_SENDERS_LOCKSTEP;
    const double inside = (weight->hops.per_peer - locked)
                        * (units->n - model->hosts);
    double posted, passed = 0;

    if (weight->each_chunk.per_peer == 0 && weight->messages.per_peer == 0)
        passed = 2 * weight->hops.per_peer;
    load_link(model, weight, units, &(struct dtn_peers){ 1, units->n, true, 1 },
              stretch, load);
    posted = model->locals > 1 ? load[DTENSOR_COST_INTER_MESSAGES] / 2 : 0;
    load[DTENSOR_COST_INTER_HOPS] -= inside;
    load[DTENSOR_COST_INTRA_HOPS] += inside;
    load[DTENSOR_COST_INTER_MESSAGES] += passed * (model->hosts - 1) - posted;
    load[DTENSOR_COST_INTRA_MESSAGES] += passed * (units->n - model->hosts)
                                       + posted;
}

/* Shifts by 1, 2, 4 lead only the last ranks of a host to the next one, but all
 * wait for them in the end: once in log2 n rounds, in each of n - 1.  The ranks
 * of a host use the device in turn, and wait while others use it; with log2 n
 * rounds a third of the time.
 */
static void load_shift(const struct dtn_model *model,
                       const struct dtn_weight *weight,
                       const struct dtn_peers *beyond,
                       double load[DTENSOR_NCOSTS])
{
    const double *ns = model->ns;
    const double late = weight->hops.per_peer * (beyond->below - 1);
    const double hidden = weight->hops.per_peer > 0 ? 1 : 1 / 3.0;
    double own;

    if (weight->hops.log2n > 0)
        load[DTENSOR_COST_INTER_HOPS] += weight->hops.log2n;
    load[DTENSOR_COST_INTER_HOPS] += late;
    load[DTENSOR_COST_INTRA_HOPS] -= late;
    own = load[DTENSOR_COST_INTER_HOPS] * ns[DTENSOR_COST_INTER_HOPS]
        + load[DTENSOR_COST_INTER_MESSAGES] * ns[DTENSOR_COST_INTER_MESSAGES];
    load[DTENSOR_COST_INTER_BYTES] -=
        fmin(own * hidden / ns[DTENSOR_COST_INTER_BYTES],
             load[DTENSOR_COST_INTER_BYTES] * (1 - 1 / beyond->sharing));
}

/* How many ranks of a host send to others at the same time.  Of two trees
 * between two hosts only half of the edges at the top cross.
 */
static double load_senders(const struct dtn_model *model,
                           const struct dtn_weight *weight)
{
    const double all = model->ranks_per_device;

    if (weight->senders <= DTN_SENDERS_SHIFT)
        return all;
    if (weight->senders == DTN_SENDERS_TWO)
        return fmin(all, 2 - 2.0 / model->hosts / model->hosts);
    return 1;
}

/* What the CPU does while the network moves bytes: it moves those inside the
 * host if all is posted at once, and reduces the chunks before.
 */
static void load_hide(const struct dtn_model *model,
                      const struct dtn_weight *weight,
                      const struct dtn_units *units,
                      double load[DTENSOR_NCOSTS])
{
    const double network = load[DTENSOR_COST_INTER_BYTES]
                         * model->ns[DTENSOR_COST_INTER_BYTES];
    const bool posts = weight->overlaps > 0;
    const enum dtensor_cost cost = posts ? DTENSOR_COST_INTRA_BYTES
                                         : DTENSOR_COST_FOLDED;
    const double share = posts ? weight->overlaps : 1 - 1 / units->chunks;

    if (posts ? weight->senders != DTN_SENDERS_ROOT
              : weight->senders == DTN_SENDERS_LOCKSTEP && model->locals == 1)
        load[cost] -= share * fmin(load[cost], network / model->ns[cost]);
}

/* Add the cost of a weight over all ranks of several hosts.  Two trees leave a
 * host one level below its ranks: over hosts of 8, 8 is the parent of 4.
 */
void dtn_load_hosts(const struct dtn_model *model,
                    const struct dtn_weight *weight, int n, double whole,
                    double stretch, double load[DTENSOR_NCOSTS])
{
    const struct dtn_units units = dtn_units_make(n, whole, weight);
    const int locals = model->uneven ? 1 : model->locals;
    const int own = weight->senders == DTN_SENDERS_TWO ? (locals + 1) / 2
                                                       : locals;
    const struct dtn_peers inside = { 1, own, false, 0 };
    const struct dtn_peers beyond = { own, n, true,
                                      load_senders(model, weight) };

    if (weight->senders >= DTN_SENDERS_RING) {
        load_ring(model, weight, &units, stretch, load);
    } else {
        load_link(model, weight, &units, &beyond, stretch, load);
        load_link(model, weight, &units, &inside, stretch, load);
    }
    if (weight->senders == DTN_SENDERS_SHIFT && own > 1)
        load_shift(model, weight, &beyond, load);
    load_local(weight, &units, stretch, load);
    load_hide(model, weight, &units, load);
}
