/* layout.c - which part of the global tensor a rank holds
 *
 * Shards follow torch.chunk: N elements over n ranks are cut every ceil(N/n).
 * Placements apply left to right, each to what the one before left: 5 rows on
 * a 2 x 2 mesh as S(0),S(0) are first 3 and 2, then 2, 1 and 1, 1 - a chunk of
 * a chunk, where a flat cut in four would be 2, 2, 1, 0.
 */
#include "spec/spec.h"

void dtn_chunk(int64_t N, int n, int r, int64_t *start, int64_t *size)
{
    int64_t full = N / n + (N % n != 0);
    int64_t nfull = full > 0 ? N / full : 0;      /* ranks with a full shard */

    *start = r <= nfull ? full * r : N;           /* full * r stays below N  */
    *size = r < nfull ? full : N - *start;
}

/* ------------------------------------------------------------------- cuts */

/* Cut in `block` pieces, each of them by the chunk rule; the last may be short.
 * 9 over 4 with 2 pieces of 5 and 4: rank 0 has 2 of the first, 1 of the last.
 */
static void cut_strided(int64_t pieces, int64_t N, int n, int r,
                        struct dtn_cut *cut)
{
    int64_t piece = N / pieces + (N % pieces != 0);

    if (N == 0)
        return;
    cut->stride = piece;
    cut->count = N / piece;
    dtn_chunk(piece, n, r, &cut->start, &cut->len);
    dtn_chunk(N % piece, n, r, &cut->last_start, &cut->last_len);
    cut->last_start += N - N % piece;
}

/* Block j to rank j % n; the last may be short. */
static void cut_cyclic(int64_t block, int64_t N, int n, int r,
                       struct dtn_cut *cut)
{
    int64_t blocks = N / block;

    if (blocks % n == r) {
        cut->last_start = blocks * block;
        cut->last_len = N % block;
    }
    if (r >= blocks)
        return;
    cut->start = r * block;
    cut->len = block;
    cut->count = (blocks - 1 - r) / n + 1;
    cut->stride = cut->count > 1 ? n * block : 0;
}

static void cut_lengths(const int64_t lengths[], int r, struct dtn_cut *cut)
{
    cut->count = 1;
    cut->len = lengths[r];
    for (int i = 0; i < r; i++)
        cut->start += lengths[i];
}

void dtn_cut_of(const struct dtensor_placement *p, int64_t N, int n, int r,
                struct dtn_cut *cut)
{
    *cut = (struct dtn_cut){ 0 };
    if (p->kind == DTENSOR_STRIDED) {
        cut_strided(p->block, N, n, r, cut);
    } else if (p->kind == DTENSOR_CYCLIC) {
        cut_cyclic(p->block, N, n, r, cut);
    } else if (p->sizes) {
        cut_lengths(p->sizes, r, cut);
    } else {
        cut->count = 1;
        dtn_chunk(N, n, r, &cut->start, &cut->len);
    }
}

int64_t dtn_cut_count(const struct dtn_cut *cut)
{
    return cut->count * cut->len + cut->last_len;
}

/* The place in what was cut of element `i` of what is left. */
static int64_t cut_place(const struct dtn_cut *cut, int64_t i)
{
    if (i >= cut->count * cut->len)
        return cut->last_start + i - cut->count * cut->len;
    return cut->start + i / cut->len * cut->stride + i % cut->len;
}

/* ------------------------------------------------------------- local parts */

void dtn_layout(const struct dtensor_spec *spec, int index, int64_t shape[],
                int64_t offset[])
{
    struct dtn_cut cut[DTENSOR_MAX_DIMS];
    int coord[DTENSOR_MAX_DIMS], m;

    dtn_mesh_coord_of(spec->mesh, index, coord);
    for (int d = 0; d < spec->ndim; d++) {
        shape[d] = spec->shape[d];
        offset[d] = 0;
    }
    for (m = 0; m < spec->mesh->ndim; m++) {
        const struct dtensor_placement *p = &spec->placement[m];

        if (dtn_placement_class(p) != DTENSOR_SHARD)
            continue;
        dtn_cut_of(p, shape[p->dim], spec->mesh->size[m], coord[m], &cut[m]);
        shape[p->dim] = dtn_cut_count(&cut[m]);
    }
    for (m--; m >= 0; m--) {                  /* back to the whole           */
        const struct dtensor_placement *p = &spec->placement[m];

        if (dtn_placement_class(p) == DTENSOR_SHARD && shape[p->dim] > 0)
            offset[p->dim] = cut_place(&cut[m], offset[p->dim]);
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
