/* ways.c - every emitter that can run a call, and its cost
 *
 * For dtensor_call_ways(): an allreduce of 1 MiB over 8 ranks of 2 hosts may go by
 * ring, tree and six more, of which one is taken.
 */
#include "coll/choose.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MODEL_WAYS_MAX 32             /* rows of one collective, and more      */

static int way_compare(const void *a, const void *b)
{
    const struct dtensor_way *x = a, *y = b;

    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* Does a byte of this call cost more if it is not in a cache? */
static bool way_stretches(enum dtensor_cost cost)
{
    return cost == DTENSOR_COST_INTRA_BYTES || cost == DTENSOR_COST_FOLDED
        || cost == DTENSOR_COST_COPIED;
}

int dtn_model_ways(const struct dtn_call *call, const struct dtn_model *model,
                   struct dtensor_way ways[], int max)
{
    struct dtensor_way all[MODEL_WAYS_MAX];
    struct dtn_pick pick;
    int n = 0;

    dtn_choose(call, model, &pick);
    for (const struct dtn_emitter *e = dtn_emitters; e->emit; e++) {
        struct dtensor_way *way = &all[n];

        if (!dtn_emitter_runs(e, call, model) || n == MODEL_WAYS_MAX)
            continue;
        *way = (struct dtensor_way){ .name = e->name, .taken = e == pick.emitter,
                                     .tuned = e == pick.emitter && pick.tuned };
        dtn_model_told(model, call, e, way->amount);
        way->ns = dtn_model_ns(model, way->amount);
        way->stretch = dtn_model_stretch(model,
                                         (double)dtn_call_own_bytes(call));
        for (int c = 0; c < DTENSOR_NCOSTS; c++) {
            way->part_ns[c] = way->amount[c] * model->ns[c];
            if (way_stretches((enum dtensor_cost)c))
                way->amount[c] /= way->stretch;
        }
        n++;
    }
    qsort(all, (size_t)n, sizeof all[0], way_compare);
    memcpy(ways, all, (size_t)(n < max ? n : max) * sizeof all[0]);
    return n;
}
