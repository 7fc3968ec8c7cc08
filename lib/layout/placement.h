/* placement.h - placements: S(0), R, P(sum) */
#ifndef DTN_LAYOUT_PLACEMENT_H
#define DTN_LAYOUT_PLACEMENT_H

#include "dtensor.h"

#include <stdbool.h>

/* What a placement does with the tensor: REPLICATE, PARTIAL, or SHARD for every
 * kind that cuts it.
 */
enum dtensor_placement_kind
dtn_placement_class(const struct dtensor_placement *p);

/* Fields that have no meaning for the kind are not compared.  `n` is the size
 * of the mesh dimension.
 */
bool dtn_placement_equal(const struct dtensor_placement *a,
                         const struct dtensor_placement *b, int n);

/* Does this change of a mesh dimension need no data of other coordinates?  A
 * term stays, a replica is sharded in place, and a shard becomes a term on its
 * own rank.  A shard that becomes an average needs them: each term is the
 * value.
 */
bool dtn_placement_is_local(const struct dtensor_placement *from,
                            const struct dtensor_placement *to);

/* May one tensor have both: are they one reduction, or sums and averages? */
bool dtn_redops_mix(enum dtensor_redop a, enum dtensor_redop b);

#endif
