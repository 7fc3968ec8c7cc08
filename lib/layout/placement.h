/* placement.h - placements: S(0), R, P(sum) */
#ifndef DTN_LAYOUT_PLACEMENT_H
#define DTN_LAYOUT_PLACEMENT_H

#include "dtensor.h"

#include <stdbool.h>

/* The class of a placement: REPLICATE, PARTIAL, or SHARD for every kind that
 * cuts the tensor.
 */
enum dtensor_placement_kind
dtn_placement_class(const struct dtensor_placement *p);

/* Fields without a meaning for the kind are not compared.  `n` is the size of
 * the mesh dimension.
 */
bool dtn_placement_equal(const struct dtensor_placement *a,
                         const struct dtensor_placement *b, int n);

/* Can a rank make this change of one mesh dimension without data of other
 * coordinates?  A term stays a term, a replica is sharded in place, and a shard
 * becomes a term on its own rank.  If a shard becomes a term of an average,
 * other coordinates are needed, because each term is then the full value.
 */
bool dtn_placement_is_local(const struct dtensor_placement *from,
                            const struct dtensor_placement *to);

/* May one tensor have both reductions?  They must be equal, or be sums and
 * averages.
 */
bool dtn_redops_mix(enum dtensor_redop a, enum dtensor_redop b);

#endif
