/* slabs.c - the byte ranges of a file that a rank writes and reads
 *
 * The elements in a file are row-major.  So a rank that holds whole rows writes
 * one range, and a rank that holds columns writes a short range for each row.
 * Before a tensor is written it is sharded along its first dimension that has
 * at least one element for each rank.  f32[2,512,1024] on 4 ranks is sharded
 * along dimension 1: each rank has 2 ranges of 128 * 1024 elements, 512 KiB.
 */
#include "file/slabs.h"
#include "layout/layout.h"
#include "mesh/mesh.h"
#include "dtensor.h"

/* The first dimension that is long enough, else the longest. */
static int slabs_dim(const struct dtensor_spec *spec)
{
    int longest = 0;

    for (int d = 0; d < spec->ndim; d++) {
        if (spec->shape[d] >= spec->mesh->group.n)
            return d;
        if (spec->shape[d] > spec->shape[longest])
            longest = d;
    }
    return longest;
}

void dtn_slabs_spec(const struct dtensor_spec *spec,
                    struct dtensor_spec *slabs)
{
    const int dim = slabs_dim(spec);

    *slabs = *spec;
    for (int m = 0; m < spec->mesh->ndim; m++)
        slabs->placement[m] = (struct dtensor_placement){
            .kind = spec->ndim > 0 ? DTENSOR_SHARD : DTENSOR_REPLICATE,
            .dim = spec->ndim > 0 ? dim : 0 };
}

void dtn_slabs_of(const struct dtensor_spec *slabs, int index,
                  struct dtn_slabs *made)
{
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];
    const int dim = slabs_dim(slabs);
    uint64_t inner = dtensor_dtype_size(slabs->dtype);

    *made = (struct dtn_slabs){ 1, 0, 0, inner };
    if (slabs->ndim == 0)
        return;
    dtn_layout(slabs, index, shape, offset);
    for (int d = dim + 1; d < slabs->ndim; d++)
        inner *= (uint64_t)slabs->shape[d];
    made->count = dtn_numel(dim, slabs->shape);
    made->at = (uint64_t)offset[dim] * inner;
    made->step = (uint64_t)slabs->shape[dim] * inner;
    made->bytes = (uint64_t)shape[dim] * inner;
    if (made->bytes == 0)
        made->count = 0;
}
