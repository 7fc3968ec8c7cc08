/* levels.c - levels of trees and butterflies where hosts were counted
 *
 * Example: 56 ranks on hosts of seven.  The longest path of a binomial tree
 * leads from 0 by 32 and 48 to 52, each on another host.  Each of the three
 * sends to three ranks of other hosts at once, so long messages take as long as
 * nine; and as eleven with those that 6 and 34 send on the hosts of 0 and 32.
 */
#include "sched/levels.h"
#include "sched/crossings.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "sched/units.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* Levels of trees and butterflies between unequal hosts and inside them; NULL:
 * they follow from the ranks of a host.
 */
static const struct dtn_levels *levels_of(const struct dtn_model *model,
                                          const struct dtn_weight *weight)
{
    const struct dtn_crossings *counted = &model->crossings;

    if (!counted->counted || weight->hops.log2n <= 0)
        return NULL;
    switch (weight->senders) {
    case DTN_SENDERS_ONE:
        return &counted->tree;
    case DTN_SENDERS_TWO:
        return &counted->pair;
    case DTN_SENDERS_SHIFT:
        return weight->moved.block.per_peer > 0 ? &counted->skips
                                                : &counted->shifts;
    case DTN_SENDERS_ALL:
        return &counted->rounds;
    default:
        return NULL;
    }
}

/* Messages between hosts that come to the root of a tree, or leave it, in turn:
 * those on one path, or those of all ranks of its hosts, some of which begin
 * only when bytes were moved inside.
 */
static double levels_queue(const struct dtn_model *model,
                           const struct dtn_weight *weight,
                           const struct dtn_units *units, double stretch)
{
    const struct dtn_crossings *counted = &model->crossings;
    const double down = weight->fanned.log2n / weight->moved.whole.log2n;
    const double inside = counted->tree.inside * stretch
                        * model->ns[DTENSOR_COST_INTRA_BYTES]
                        / model->ns[DTENSOR_COST_INTER_BYTES];
    const double levels = counted->tree.beyond, edges = counted->edges;
    const double others = 1 - 1 / dtn_pieces(units->whole);

    return down * fmax(levels + others * (counted->fan - levels),
                       edges + others * (counted->fans - inside - edges))
         + (1 - down) * fmax(levels, counted->turns - inside);
}

bool dtn_levels_count(const struct dtn_model *model,
                      const struct dtn_weight *weight,
                      const struct dtn_units *units, double stretch,
                      struct dtn_levels_part *beyond,
                      struct dtn_levels_part *inside)
{
    const struct dtn_levels *levels = levels_of(model, weight);

    if (!levels)
        return false;
    *beyond = (struct dtn_levels_part){ levels->beyond, false, 1 };
    *inside = (struct dtn_levels_part){ levels->inside, false, 1 };
    if (levels->beyond > 0 && weight->senders == DTN_SENDERS_ONE)
        beyond->waits = levels_queue(model, weight, units, stretch)
                      / levels->beyond;
    return true;
}
