/* layout.c - which box of the global tensor a rank holds
 *
 * Shards follow torch.chunk: N elements over n ranks are cut every ceil(N/n).
 * Placements apply left to right, each to what the one before left: 5 rows on
 * a 2 x 2 mesh as S(0),S(0) are first 3 and 2, then 2, 1 and 1, 1 - a chunk of
 * a chunk, where a flat cut in four would be 2, 2, 1, 0.
 */
#include "spec/spec.h"

#include <string.h>

void dtn_chunk(int64_t N, int n, int r, int64_t *start, int64_t *size)
{
    int64_t full = N / n + (N % n != 0);
    int64_t nfull = full > 0 ? N / full : 0;      /* ranks with a full shard */

    *start = r <= nfull ? full * r : N;           /* full * r stays below N  */
    *size = r < nfull ? full : N - *start;
}

void dtn_layout(const struct dtensor_spec *spec, int index, int64_t shape[],
                int64_t offset[])
{
    int coord[DTENSOR_MAX_DIMS];
    int64_t start;

    dtn_mesh_coord_of(spec->mesh, index, coord);
    for (int d = 0; d < spec->ndim; d++) {
        shape[d] = spec->shape[d];
        offset[d] = 0;
    }
    for (int m = 0; m < spec->mesh->ndim; m++) {
        int d = spec->placement[m].dim;

        if (spec->placement[m].kind != DTENSOR_SHARD)
            continue;
        dtn_chunk(shape[d], spec->mesh->size[m], coord[m], &start, &shape[d]);
        offset[d] += start;
    }
    for (int d = 0; d < spec->ndim; d++)
        if (shape[d] == 0)
            offset[d] = spec->shape[d];
}

void dtensor_spec_local(const struct dtensor_spec *spec, int rank,
                        int64_t local_shape[], int64_t offset[])
{
    int index = dtensor_mesh_index(spec->mesh, rank);

    if (index >= 0) {
        dtn_layout(spec, index, local_shape, offset);
        return;
    }
    for (int d = 0; d < spec->ndim; d++) {
        local_shape[d] = 0;
        offset[d] = spec->shape[d];
    }
}

int64_t dtn_numel(int ndim, const int64_t shape[])
{
    int64_t n = 1;

    for (int d = 0; d < ndim; d++)
        n *= shape[d];
    return n;
}

int64_t dtn_local_numel(const struct dtensor_spec *spec, int index)
{
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];

    dtn_layout(spec, index, shape, offset);
    return dtn_numel(spec->ndim, shape);
}

void dtn_strides(int ndim, const int64_t shape[], int64_t stride[])
{
    int64_t step = 1;

    for (int d = ndim - 1; d >= 0; d--) {
        stride[d] = step;
        step *= shape[d];
    }
}

bool dtn_spec_congruent(const struct dtensor_spec *a,
                        const struct dtensor_spec *b)
{
    return a->mesh == b->mesh && a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape,
                  (size_t)a->ndim * sizeof a->shape[0]) == 0;
}

bool dtn_placement_equal(const struct dtensor_placement *a,
                         const struct dtensor_placement *b)
{
    return a->kind == b->kind &&
           (a->kind != DTENSOR_SHARD || a->dim == b->dim) &&
           (a->kind != DTENSOR_PARTIAL || a->op == b->op);
}

bool dtn_spec_equal(const struct dtensor_spec *a, const struct dtensor_spec *b)
{
    if (!dtn_spec_congruent(a, b))
        return false;
    for (int m = 0; m < a->mesh->ndim; m++)
        if (!dtn_placement_equal(&a->placement[m], &b->placement[m]))
            return false;
    return true;
}
