/* placement.h - placements: S(0), R, P(sum) */
#ifndef DTN_LAYOUT_PLACEMENT_H
#define DTN_LAYOUT_PLACEMENT_H

#include "dtensor.h"

#include <stdbool.h>

/* Inline functions are asked some hundred times to choose a route. */

/* The class of a placement: REPLICATE, PARTIAL, or SHARD for every kind that
 * cuts the tensor.
 */
static inline enum dtensor_placement_kind
dtn_placement_class(const struct dtensor_placement *p)
{
    switch (p->kind) {
    case DTENSOR_SHARD: case DTENSOR_STRIDED: case DTENSOR_CYCLIC:
    case DTENSOR_HEADTAIL:
        return DTENSOR_SHARD;
    case DTENSOR_PARTIAL:
        return DTENSOR_PARTIAL;
    case DTENSOR_REPLICATE:
        break;
    }
    return DTENSOR_REPLICATE;
}

/* Of two shards: are the lengths that were chosen the same, or none? */
bool dtn_placement_lengths_equal(const struct dtensor_placement *a,
                                 const struct dtensor_placement *b, int n);

/* Fields without a meaning for the kind are not compared.  `n` is the size of
 * the mesh dimension.
 */
static inline bool dtn_placement_equal(const struct dtensor_placement *a,
                                       const struct dtensor_placement *b, int n)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case DTENSOR_REPLICATE:
        break;
    case DTENSOR_PARTIAL:
        return a->op == b->op;
    case DTENSOR_HEADTAIL:
        return a->dim == b->dim;
    case DTENSOR_STRIDED: case DTENSOR_CYCLIC:
        return a->dim == b->dim && a->block == b->block;
    case DTENSOR_SHARD:
        return a->dim == b->dim &&
               (a->sizes == b->sizes || dtn_placement_lengths_equal(a, b, n));
    }
    return true;
}

/* Can a rank make this change of one mesh dimension without data of other
 * coordinates?  A term stays a term, a replica is sharded in place, and a shard
 * becomes a term on its own rank.  If a shard becomes a term of an average,
 * other coordinates are needed, because each term is then the full value.
 */
static inline bool dtn_placement_is_local(const struct dtensor_placement *from,
                                          const struct dtensor_placement *to)
{
    if (from->kind == DTENSOR_REPLICATE)
        return true;
    return to->kind == DTENSOR_PARTIAL &&
           (from->kind == DTENSOR_PARTIAL || to->op != DTENSOR_AVG);
}

/* May one tensor have both reductions?  They must be equal, or be sums and
 * averages.
 */
bool dtn_redops_mix(enum dtensor_redop a, enum dtensor_redop b);

#endif
