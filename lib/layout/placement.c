/* placement.c - what a placement does, and when two placements do the same
 *
 * S(0), SS(0,2) and C(0,4) all cut dimension 0.  So most code asks only for the
 * class of a placement: it cuts, replicates or holds terms.  Two placements are
 * equal if all fields that have a meaning for their kind are equal.
 */
#include "layout/placement.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

bool dtn_redops_mix(enum dtensor_redop a, enum dtensor_redop b)
{
    const unsigned sums = 1u << DTENSOR_SUM | 1u << DTENSOR_AVG;

    return a == b || ((sums >> a & 1) && (sums >> b & 1));
}

bool dtn_placement_lengths_equal(const struct dtensor_placement *a,
                                 const struct dtensor_placement *b, int n)
{
    return !a->sizes == !b->sizes &&
           (!a->sizes ||
            memcmp(a->sizes, b->sizes, (size_t)n * sizeof a->sizes[0]) == 0);
}
