/* layout.h - which part of a tensor a rank holds */
#ifndef DTN_LAYOUT_LAYOUT_H
#define DTN_LAYOUT_LAYOUT_H

#include "dtensor.h"

#include <stdint.h>

/* The chunk rule: rank `r` of `n` holds [*start, *start + *size) of N. */
void dtn_chunk(int64_t N, int n, int r, int64_t *start, int64_t *size);

/* The shard of one dimension that a rank holds: `count` runs of `len`
 * elements, one every `stride` elements, and perhaps one shorter last run.
 */
struct dtn_shard {
    int64_t start;                             /* of the first run            */
    int64_t len;                               /* elements of each run        */
    int64_t stride;                           /* from run to run, in elements */
    int64_t count;                             /* runs; 0: none               */
    int64_t last_start;                        /* of the last, shorter run    */
    int64_t last_len;                       /* its elements; 0: there is none */
};

/* The elements, out of N, that coordinate `r` of `n` gets along a mesh
 * dimension whose placement shards them.
 */
void dtn_shard_of(const struct dtensor_placement *p, int64_t N, int n, int r,
                  struct dtn_shard *shard);
int64_t dtn_shard_count(const struct dtn_shard *shard);

/* Where the elements of a position's part are in the whole tensor. */
struct dtn_part {
    const struct dtensor_spec *spec;           /* of the whole                */
    int64_t shape[DTENSOR_MAX_DIMS];           /* of the part                 */
    struct dtn_shard shard[DTENSOR_MAX_DIMS];  /* of placements that shard    */
};

void dtn_part_init(struct dtn_part *part, const struct dtensor_spec *spec,
                    int index);

/* The global index along `dim` of local index i.  *runp (may be NULL) is the
 * number of elements from there on that are contiguous in both the part and the
 * whole.
 */
int64_t dtn_part_at(const struct dtn_part *part, int dim, int64_t i,
                     int64_t *runp);

/* The same as dtensor_spec_local(), by position in the mesh. */
void dtn_layout(const struct dtensor_spec *spec, int index, int64_t shape[],
                int64_t offset[]);

/* Number of elements: of a shape; of the local part of position `index`; of the
 * whole.  dtensor_spec_check() has checked that they do not overflow.
 */
int64_t dtn_numel(int ndim, const int64_t shape[]);
int64_t dtn_local_numel(const struct dtensor_spec *spec, int index);
int64_t dtn_max_numel(const struct dtensor_spec *spec);   /* the largest part */

/* Row-major strides of a shape, in elements. */
void dtn_strides(int ndim, const int64_t shape[], int64_t stride[]);

#endif
