/* placement.h - placements: S(0), R, P(sum) */
#ifndef DTN_LAYOUT_PLACEMENT_H
#define DTN_LAYOUT_PLACEMENT_H

#include "dtensor.h"

#include <stdbool.h>

/* What a placement does with the tensor, whatever the rule: REPLICATE, SHARD
 * (for all that cut it), or PARTIAL.
 */
enum dtensor_placement_kind
dtn_placement_class(const struct dtensor_placement *p);

/* Fields that mean nothing for a kind do not count.  `n` is the size of the
 * mesh dimension.
 */
bool dtn_placement_equal(const struct dtensor_placement *a,
                         const struct dtensor_placement *b, int n);

/* Does an exchange with this change of a mesh dimension use only data of the
 * same coordinate?  A term stays, a replica is sharded in place, and a shard
 * becomes a term on its own rank.  Not so for an average: each of its terms is
 * the value, so a shard is gathered.
 */
bool dtn_placement_stays(const struct dtensor_placement *from,
                         const struct dtensor_placement *to);

/* May one tensor have both: are they one reduction, or sums and averages? */
bool dtn_redops_mix(enum dtensor_redop a, enum dtensor_redop b);

#endif
