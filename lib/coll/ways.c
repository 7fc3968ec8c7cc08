/* ways.c - every emitter that can run a call, and its cost
 *
 * This is for dtensor_call_ways(): an allreduce of 1 MiB over 8 ranks on 2
 * hosts can run as ring, tree and six other algorithms; one of them is chosen.
 */
#include "base/error.h"
#include "coll/ask.h"
#include "coll/choose.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MODEL_WAYS_MAX 32             /* at least the rows of one collective  */

static int way_compare(const void *a, const void *b)
{
    const struct dtensor_way *x = a, *y = b;

    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* Does this kind of cost grow if a byte is not in a cache? */
static bool way_stretches(enum dtensor_cost cost)
{
    return cost == DTENSOR_COST_INTRA_BYTES || cost == DTENSOR_COST_FOLDED
        || cost == DTENSOR_COST_COPIED;
}

/* The number of emitters; the cheapest `max` of them, cheapest first, in
 * `ways`.
 */
static int ways_list(const struct dtn_call *call, const struct dtn_model *model,
                     struct dtensor_way ways[], int max)
{
    struct dtensor_way all[MODEL_WAYS_MAX];
    struct dtn_choice pick;
    int n = 0;

    dtn_choose(call, model, &pick);
    for (const struct dtn_emitter *e = dtn_emitters; e->emit; e++) {
        struct dtensor_way *way = &all[n];

        if (!dtn_emitter_runs(e, call, model) || n == MODEL_WAYS_MAX)
            continue;
        *way = (struct dtensor_way){ .name = e->name,
                                     .taken = e == pick.emitter,
                                     .tuned = e == pick.emitter && pick.tuned };
        dtn_model_own_load(model, call, e, way->amount);
        way->ns = dtn_model_ns(model, way->amount);
        way->stretch = dtn_model_cache_miss_factor(model,
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

int dtensor_call_ways(const struct dtensor_mesh *mesh,
                      const struct dtensor_call *call,
                      struct dtensor_way ways[], int max, int *np,
                      struct dtensor_error *err)
{
    const struct dtn_model *model;
    struct dtn_call c;
    int n, rc = dtn_ask(mesh, call, &c, &model, err);

    if (rc != 0)
        return rc;
    if (max < 1)
        return dtn_fail(err, DTENSOR_EINVAL, "call ways: room for %d (at least "
                        "1 is needed)", max);
    n = ways_list(&c, model, ways, max);
    if (np)
        *np = n;
    return 0;
}
