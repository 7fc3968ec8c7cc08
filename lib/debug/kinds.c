/* kinds.c - which collectives a redistribute counts as
 *
 * This depends on the change of placements, not on the route.  A redistribute
 * from S(0),P to R,S(0) is an all-gather along the first mesh dimension and a
 * reduce-scatter along the second, whichever route it takes.
 */
#include "debug/counters.h"
#include "mesh/mesh.h"

static bool shards(const struct dtensor_placement *p)
{
    return p->kind != DTENSOR_REPLICATE && p->kind != DTENSOR_PARTIAL;
}

/* What a mesh dimension does between two placements; -1: each rank keeps what
 * it has, or less of it.
 */
static int change_of(const struct dtensor_placement *from,
                     const struct dtensor_placement *to)
{
    if (from->kind == DTENSOR_PARTIAL)
        return to->kind == DTENSOR_REPLICATE ? DTENSOR_ALLREDUCE
             : shards(to) ? DTENSOR_REDUCE_SCATTER : -1;
    if (!shards(from))
        return -1;
    return to->kind == DTENSOR_REPLICATE ? DTENSOR_ALLGATHER
         : !shards(to) ? -1
         : from->kind == to->kind && from->dim == to->dim ? -1
         : DTENSOR_ALL_TO_ALL;
}

unsigned dtn_activity_kinds(const struct dtn_activity *a)
{
    const struct dtensor_spec *from = a->in, *to = a->out;
    unsigned kinds = 0;

    if (a->kind == DTN_WATCHED_CALL)
        return 1u << a->coll;
    if (a->scatters)
        return 1u << DTENSOR_SCATTER;
    if (from->mesh != to->mesh)
        return 1u << DTENSOR_DEBUG_EXCHANGE;
    for (int m = 0; m < from->mesh->ndim; m++) {
        const int kind = change_of(&from->placement[m], &to->placement[m]);

        kinds |= kind < 0 ? 0 : 1u << kind;
    }
    return kinds;
}
