/* tracker.h - the place of a part in the random stream */
#ifndef DTN_RANDOM_TRACKER_H
#define DTN_RANDOM_TRACKER_H

#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

struct dtn_dist;

/* Where one operation on one position of the mesh takes its random numbers. */
struct dtn_stream_part {
    uint64_t seed;                /* the Philox key                           */
    int64_t offset;               /* of its first number in the stream        */
    int64_t after;                /* the generator's offset afterwards        */
    int64_t numel;                /* elements that are counted: of the part,  */
    bool global;                  /* or, if global, of the whole              */
};

/* index -1: a rank outside the mesh.   Errors: EINVAL  beyond the last offset
 */
int dtn_stream_part_of(const struct dtensor_generator *gen,
                       const struct dtn_dist *dist,
                       const struct dtensor_spec *spec, int index,
                       struct dtn_stream_part *draw, struct dtensor_error *err);

/* Tracker `offset`: where a position's part begins, and where the operation
 * ends, from the generator's offset.  Sums that are too large are INT64_MAX.
 */
void dtn_stream_offsets(const struct dtensor_random_rule *rule,
                        const struct dtn_dist *dist,
                        const struct dtensor_spec *spec, int index,
                        int64_t *startp, int64_t *endp);

#endif
