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
#include "sched/levels.h"
#include "sched/model.h"
#include "sched/rings.h"
#include "sched/units.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>

bool dtn_load_puts(const struct dtn_model *model,
                   const struct dtn_weight *weight,
                   const struct dtn_units *units)
{
    const double bytes = dtn_units_value(units, weight->message);

    return bytes > dtn_model_eager(model) * fmax(1, weight->busiest);
}

/* Between hosts a rank posts a put and a signal to each of its children. */
static double load_fanned(const struct dtn_model *model,
                          const struct dtn_weight *weight,
                          const struct dtn_units *units,
                          const struct dtn_peers *part)
{
    const double piece = units->whole / dtn_pieces(units->whole);
    const double posted = piece * model->ns[DTENSOR_COST_INTER_BYTES]
                        / (2 * model->ns[DTENSOR_COST_INTER_MESSAGES]);

    return part->sharing > 0 && !part->counted
         ? dtn_fanned_part(weight, units, part, posted) : 0;
}

static bool load_in_trees(const struct dtn_weight *weight)
{
    return weight->senders == DTN_SENDERS_TWO
        || weight->senders == DTN_SENDERS_TREES;
}

/* Bytes of the first chunk on its way through a tree.  Between two hosts of
 * several ranks each has one child on the other, not two.  What is copied to
 * children on the same host is counted.
 */
static double load_path(const struct dtn_model *model,
                        const struct dtn_weight *weight,
                        const struct dtn_units *units,
                        const struct dtn_peers *part)
{
    const bool one = part->sharing > 0 && model->hosts == 2
                  && load_in_trees(weight);
    const double rails = weight->senders == DTN_SENDERS_TREES
                       ? part->sharing : 1;

    if (part->counted && part->sharing <= 0 && load_in_trees(weight))
        return weight->moved.chunk.log2n / 2 * units->chunk
             * model->crossings.copied;
    return dtn_term_part(weight->moved.chunk, part) * units->chunk * rails
         * (one ? 0.5 : 1);
}

/* Chunks that delay the next by what is posted for them.  In each tick a host
 * waits for a chunk of both trees, and its parents in them wait for others.  In
 * a reduction a chunk also waits for its place.
 */
static double load_ticks(const struct dtn_weight *weight,
                         const struct dtn_units *units)
{
    const bool waits = units->n > 2
                    || dtn_amount_value(&weight->folded, units) > 0;

    return weight->senders == DTN_SENDERS_TREES && waits
         ? units->chunks - 1 : 0;
}

/* Chunks of two trees that come a hop later: those of several ranks go through
 * a device one after another, unless they are long enough to go in turn.
 */
static double load_queued(const struct dtn_model *model,
                          const struct dtn_weight *weight,
                          const struct dtn_units *units,
                          const struct dtn_peers *part)
{
    return weight->senders == DTN_SENDERS_TWO && part->sharing > 0
        && model->ranks_per_device > 1 && dtn_pieces(units->chunk) <= 1
         ? units->chunks - 1 : 0;
}

/* Of two hosts each has one child, not two. */
static double load_chunk_messages(const struct dtn_weight *weight,
                                  const struct dtn_units *units,
                                  const struct dtn_peers *part)
{
    const bool one = weight->senders == DTN_SENDERS_TREES && units->n == 2;

    return dtn_term_part(weight->each_chunk, part) * (one ? 0.5 : 1);
}

/* Bytes that move after the first chunk of each tree, which an allreduce moves
 * up and down; or all.  Those that a tree moves at a level may come in turn.
 */
static double load_moved(const struct dtn_weight *weight,
                         const struct dtn_units *units,
                         const struct dtn_peers *part)
{
    const double thinned = part->constants ? weight->thinned * units->whole
                                             * -log2(units->filled) : 0;
    const double first = part->sharing > 0 && load_in_trees(weight)
                       ? fmin(2, units->n - 1) * units->chunk
                         * weight->moved.whole.constant : 0;
    const double late = part->counted
                      ? (part->counted->waits - 1) * part->counted->levels
                        * weight->moved.whole.log2n * units->whole : 0;

    return dtn_amount_part(&weight->moved, units, part) + late + thinned - first
         - dtn_term_part(weight->moved.chunk, part) * units->chunk;
}

/* Add the hops, messages and bytes of a part of a weight.  READY comes to a
 * root that sends all, it posts none.
 */
static void load_link(const struct dtn_model *model,
                      const struct dtn_weight *weight,
                      const struct dtn_units *units,
                      const struct dtn_peers *part,
                      double stretch, double load[DTENSOR_NCOSTS])
{
    const struct dtn_growth doublings = { .log2n = weight->incast
                                        ? model->incast_factor : 0 };
    const double ticks = load_ticks(weight, units);
    const double each = load_chunk_messages(weight, units, part);
    double hops = dtn_term_part(weight->hops, part)
                + (units->n > 2 ? ticks : 0)
                + load_queued(model, weight, units, part);
    double moved = load_moved(weight, units, part);
    double rooted = dtn_amount_part(&weight->rooted, units, part)
                  + load_path(model, weight, units, part)
                  + load_fanned(model, weight, units, part);
    double messages = fmax(0, dtn_term_part(weight->messages, part))
                    + dtn_term_part(weight->puts, part) * units->filled
                    + each * units->chunks;
    double offers = dtn_term_part(weight->offers, part)
                  + each * ticks;
    const int first = part->sharing > 0 ? DTENSOR_COST_INTER_HOPS
                                        : DTENSOR_COST_INTRA_HOPS;
    const double *ns = model->ns + first;
    double *link = load + first, bytes;

    if (dtn_load_puts(model, weight, units)) {
        const bool offers_too = weight->senders != DTN_SENDERS_ROOT;

        hops += part->constants;
        offers = offers_too ? messages : 0;
        messages *= offers_too ? 3 : 2;
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
    load_link(model, weight, &units,
              &(struct dtn_peers){ 1, n, true, sharing, NULL }, stretch, load);
    load_local(weight, &units, stretch, load);
}

double dtn_load_first(const struct dtn_model *model,
                      const struct dtn_weight *weight, int n, double whole,
                      double sharing)
{
    const struct dtn_units units = dtn_units_make(n, whole, weight);

    return load_path(model, weight, &units,
                     &(struct dtn_peers){ 1, n, true, sharing, NULL });
}

/* `sharing` ranks work for own_ns and then use a device, which takes bytes_ns
 * for all of them, again and again: how long a rank is there.  A rank that
 * comes finds in the mean those of the other ranks that are there (mean value
 * analysis of a closed queue, with Schweitzer's estimate).  If the device is
 * slow, that is all the time that the others do not hide; if it is fast, its
 * own share.
 */
static double load_wait(double own_ns, double bytes_ns, double sharing)
{
    const double late = bytes_ns - own_ns;

    return (late + sqrt(late * late + 4 * own_ns * bytes_ns / sharing)) / 2;
}

/* The ranks of a host use the device in turn, and wait while others use it: all
 * the time if all shifts or levels are as long, else a third of it.
 */
void dtn_load_turns(const struct dtn_model *model,
                    const struct dtn_weight *weight, double sharing,
                    double filled, double load[DTENSOR_NCOSTS])
{
    const double *ns = model->ns;
    const bool even = weight->hops.per_peer > 0
                   || weight->moved.whole.log2n > 0;
    const double hidden = (even ? 1 : 1 / 3.0) * filled;
    const double own =
        load[DTENSOR_COST_INTER_HOPS] * ns[DTENSOR_COST_INTER_HOPS]
        + load[DTENSOR_COST_INTER_MESSAGES] * ns[DTENSOR_COST_INTER_MESSAGES];

    if (weight->senders <= DTN_SENDERS_SHIFT && sharing > 1)
        load[DTENSOR_COST_INTER_BYTES] =
            load_wait(own * hidden, load[DTENSOR_COST_INTER_BYTES]
                                    * ns[DTENSOR_COST_INTER_BYTES], sharing)
            / ns[DTENSOR_COST_INTER_BYTES];
}

/* In n - 1 shifts the ranks near the end of a host wait for other hosts, too.
 */
static void load_shift(const struct dtn_model *model,
                       const struct dtn_weight *weight,
                       const struct dtn_peers *beyond,
                       double load[DTENSOR_NCOSTS])
{
    const double late = weight->hops.per_peer * (beyond->below - 1);

    load[DTENSOR_COST_INTER_HOPS] += late;
    load[DTENSOR_COST_INTRA_HOPS] -= late;
    dtn_load_turns(model, weight, beyond->sharing, 1, load);
}

/* Ranks of the host that is waited for: the smallest, whose ranks have the most
 * peers on others.  A root is on the largest, as rank 0 is.  Between two hosts
 * the edges of two trees are those of the largest, and if all send to all, each
 * has as many peers there as the other has ranks.
 */
static int load_locals(const struct dtn_model *model,
                       const struct dtn_weight *weight)
{
    const bool rooted = weight->senders == DTN_SENDERS_ONE
                     || weight->senders == DTN_SENDERS_ROOT;

    if (rooted || (weight->senders == DTN_SENDERS_TWO && model->hosts == 2))
        return model->locals;
    if (weight->senders == DTN_SENDERS_ALL && model->hosts == 2)
        return (model->locals + dtn_model_rails(model)) / 2;
    return dtn_model_rails(model);
}

/* How often a device sends what a rank of two trees does.  Each edge carries
 * half of it, in an allreduce up and down.  A rank that puts inside its host
 * takes as long as a device that sends as often as `near`.
 */
static double load_trees(const struct dtn_model *model,
                         const struct dtn_weight *weight, double stretch)
{
    const double near = stretch * model->ns[DTENSOR_COST_INTRA_BYTES]
                      / model->ns[DTENSOR_COST_INTER_BYTES];
    const struct dtn_tree_edges few = { 3, 4 }, many = { 4, 6 },
        *counted = &model->crossings.trees,
        *edges = counted->both > 0 ? counted : model->hosts == 2 ? &few : &many;

    return fmax(near, weight->moved.whole.constant > 1 ? edges->both / 4.0
                                                       : edges->one_way / 2.0);
}

/* How many ranks of a host send to others at the same time.  A rank of the
 * largest host has fewer peers on other hosts than one of the smallest.  A port
 * that one rank has to itself serves its children in turn, piece by piece: the
 * longer a chunk is, the less do they wait.
 */
static double load_senders(const struct dtn_model *model,
                           const struct dtn_weight *weight,
                           const struct dtn_units *units, double stretch)
{
    const int n = units->n, rails = load_locals(model, weight);
    const double all = model->ranks_per_device
                     * (n - model->locals) / fmax(1, n - rails);

    if (weight->senders == DTN_SENDERS_ALL && weight->hops.log2n > 0
        && model->crossings.counted)
        return (double)model->crossings.queued
             / fmax(1, model->crossings.rounds.beyond);
    if (weight->senders == DTN_SENDERS_SHIFT && model->crossings.counted
        && weight->moved.whole.log2n > 0)
        return model->ranks_per_device * model->crossings.shifters
             / model->locals;
    if (weight->senders <= DTN_SENDERS_SHIFT)
        return all;
    if (weight->senders == DTN_SENDERS_TWO && all <= 1)
        return 1 + (weight->stalls - 1) / dtn_pieces(units->chunk);
    if (weight->senders == DTN_SENDERS_TWO)
        return fmin(all, load_trees(model, weight, stretch));
    return 1;
}

/* If all is posted at once, the CPU moves the bytes inside the host while the
 * network moves the others; but not those that these wait for, `path`.
 */
static void load_hide(const struct dtn_model *model,
                      const struct dtn_weight *weight, double path,
                      double load[DTENSOR_NCOSTS])
{
    const double *ns = model->ns;
    double *inside = &load[DTENSOR_COST_INTRA_BYTES];
    const double hops = weight->senders == DTN_SENDERS_ONE
                      ? load[DTENSOR_COST_INTER_HOPS] : 0;
    const double network = load[DTENSOR_COST_INTER_BYTES]
                         * ns[DTENSOR_COST_INTER_BYTES]
                         + hops * ns[DTENSOR_COST_INTER_HOPS];

    if (weight->senders != DTN_SENDERS_ROOT)
        *inside -= weight->overlaps
                 * fmin(*inside - path, network / ns[DTENSOR_COST_INTRA_BYTES]);
}

/* Is it a ring, or a pipeline of two ranks, which is a ring of two? */
static bool load_is_ring(const struct dtn_weight *weight, int n)
{
    return weight->senders >= DTN_SENDERS_RING
        || (weight->senders == DTN_SENDERS_TWO && n == 2);
}

/* In doubling the ranks of a host are in step in the first round between hosts.
 * If each message is a put and a signal, the signals of all are behind the puts
 * of all, and they are in step later, too, for the most part.
 */
static void load_rounds(const struct dtn_model *model,
                        const struct dtn_weight *weight,
                        const struct dtn_units *units,
                        const struct dtn_peers *beyond,
                        double load[DTENSOR_NCOSTS])
{
    const struct dtn_growth levels = { .log2n = 1 };
    const double rounds = fmax(1, dtn_term_part(levels, beyond));

    dtn_load_turns(model, weight, beyond->sharing,
                   dtn_load_puts(model, weight, units) ? 1 / 3.0
                                                       : 1 - 1 / rounds, load);
}

/* Up a tree a READY between hosts is under way while the levels inside pass.
 * In doubling those that are waited for are counted.
 */
static void load_ready(const struct dtn_model *model,
                       const struct dtn_weight *weight,
                       const struct dtn_units *units,
                       const struct dtn_peers *inside,
                       double load[DTENSOR_NCOSTS])
{
    const double *ns = model->ns;
    const bool up = weight->senders == DTN_SENDERS_ONE
                 && weight->hops.log2n > 0 && weight->fanned.log2n <= 0;
    const bool rounds = weight->senders == DTN_SENDERS_ALL && inside->counted;
    const struct dtn_crossings *counted = &model->crossings;
    double inside_ns = 0, waited = 1;

    if ((!up && !rounds) || !dtn_load_puts(model, weight, units))
        return;
    for (int c = DTENSOR_COST_INTRA_HOPS; c <= DTENSOR_COST_INTRA_BYTES; c++)
        inside_ns += load[c] * ns[c];
    if (rounds) {
        waited = counted->ready - counted->rounds.beyond;
        load[DTENSOR_COST_INTER_HOPS] += waited - 1;
        inside_ns *= (units->n & (units->n - 1)) != 0 ? 0.5 : 0;
    }
    load[DTENSOR_COST_INTER_HOPS] -=
        fmin(waited, inside_ns / ns[DTENSOR_COST_INTER_HOPS]);
}

/* Add the cost of a weight over all ranks of several hosts.  Two trees, and
 * shifts by 1, 2, 4, leave a host one level below its ranks: over hosts of 8, 8
 * is the parent of 4, and a shift by 4 leads half of the ranks to the next one.
 */
void dtn_load_hosts(const struct dtn_model *model,
                    const struct dtn_weight *weight, int n, double whole,
                    double stretch, double load[DTENSOR_NCOSTS])
{
    const struct dtn_units units = dtn_units_make(n, whole, weight);
    const int locals = load_locals(model, weight);
    const bool early = weight->senders == DTN_SENDERS_TWO
        || (weight->senders == DTN_SENDERS_SHIFT && weight->hops.log2n > 0);
    const int own = early ? (locals + 1) / 2 : locals;
    struct dtn_peers inside = { 1, own, false, 0, NULL };
    struct dtn_peers beyond = { own, n, true,
                                load_senders(model, weight, &units, stretch),
                                NULL };
    struct dtn_levels_part near, far;

    if (load_is_ring(weight, n)) {
        dtn_load_ring(model, weight, &units, stretch, load);
        load[DTENSOR_COST_COPIED] +=
            stretch * dtn_amount_value(&weight->copied, &units);
        return;
    }
    if (dtn_levels_count(model, weight, &units, stretch, &far, &near)) {
        inside.counted = &near;
        beyond.counted = &far;
    }
    load_link(model, weight, &units, &beyond, stretch, load);
    load_link(model, weight, &units, &inside, stretch, load);
    load_ready(model, weight, &units, &inside, load);
    if (weight->senders == DTN_SENDERS_SHIFT && locals > 1)
        load_shift(model, weight, &beyond, load);
    if (weight->senders == DTN_SENDERS_ALL && weight->hops.log2n > 0)
        load_rounds(model, weight, &units, &beyond, load);
    load_local(weight, &units, stretch, load);
    load_hide(model, weight,
              stretch * load_path(model, weight, &units, &inside), load);
}
