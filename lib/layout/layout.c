/* layout.c - which part of the global tensor a rank holds
 *
 * Shards follow torch.chunk: N elements over n ranks are cut into chunks of
 * ceil(N/n).  Placements apply from left to right; each cuts what the one
 * before left.  Example: 5 rows as S(0),S(0) on a 2 x 2 mesh are first cut into
 * 3 and 2, then into 2, 1 and 1, 1.  This is a chunk of a chunk; one cut into
 * four would give 2, 2, 1, 0.
 */
#include "layout/layout.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

void dtn_chunk(int64_t N, int n, int r, int64_t *start, int64_t *size)
{
    int64_t full = N / n + (N % n != 0);
    int64_t nfull = full > 0 ? N / full : 0;      /* ranks with a full shard */

    *start = r <= nfull ? full * r : N;           /* full * r stays below N  */
    *size = r < nfull ? full : N - *start;
}

/* ----------------------------------------------------------------- shards */

/* Cut into `block` pieces, and each piece by the chunk rule; the last piece may
 * be short.  Example: 9 elements over 4 ranks with 2 pieces of 5 and 4: rank 0
 * has 2 elements of the first piece and 1 of the last.
 */
static void shard_strided(int64_t pieces, int64_t N, int n, int r,
                          struct dtn_shard *shard)
{
    int64_t piece = N / pieces + (N % pieces != 0);

    if (N == 0)
        return;
    shard->stride = piece;
    shard->count = N / piece;
    dtn_chunk(piece, n, r, &shard->start, &shard->len);
    dtn_chunk(N % piece, n, r, &shard->last_start, &shard->last_len);
    shard->last_start += N - N % piece;
}

/* Block j belongs to rank j % n; the last block may be short. */
static void shard_cyclic(int64_t block, int64_t N, int n, int r,
                         struct dtn_shard *shard)
{
    int64_t blocks = N / block;

    if (blocks % n == r) {
        shard->last_start = blocks * block;
        shard->last_len = N % block;
    }
    if (r >= blocks)
        return;
    shard->start = r * block;
    shard->len = block;
    shard->count = (blocks - 1 - r) / n + 1;
    shard->stride = shard->count > 1 ? n * block : 0;
}

/* A rank has as many elements as by the chunk rule: the first half of them, or
 * one more, from the front, the rest from the back.  Ranks take theirs in turn
 * from both ends, so that the last rank has the middle.
 */
static void shard_headtail(int64_t N, int n, int r, struct dtn_shard *shard)
{
    const int64_t full = N / n + (N % n != 0), nfull = full > 0 ? N / full : 0;
    const int64_t before = r < nfull ? r : nfull;
    int64_t start, len;

    dtn_chunk(N, n, r, &start, &len);
    shard->count = 1;
    shard->start = len > 0 ? before * (full - full / 2) : N;
    shard->len = len - len / 2;
    shard->last_len = len / 2;
    shard->last_start = N - before * (full / 2) - shard->last_len;
    if (shard->start + shard->len == shard->last_start) {
        shard->len = len;
        shard->last_len = 0;
    }
}

/* The lengths of a spec add up to N.  On the way from one spec to another they
 * may be applied to another N; then the last rank takes the rest.
 */
static void shard_lengths(const int64_t lengths[], int64_t N, int n, int r,
                          struct dtn_shard *shard)
{
    int64_t left = N;

    for (int i = 0; i < r; i++)
        left -= lengths[i] < left ? lengths[i] : left;
    shard->count = 1;
    shard->start = N - left;
    shard->len = r == n - 1 || lengths[r] > left ? left : lengths[r];
}

void dtn_shard_of(const struct dtensor_placement *p, int64_t N, int n, int r,
                  struct dtn_shard *shard)
{
    *shard = (struct dtn_shard){ 0 };
    if (p->kind == DTENSOR_STRIDED) {
        shard_strided(p->block, N, n, r, shard);
    } else if (p->kind == DTENSOR_CYCLIC) {
        shard_cyclic(p->block, N, n, r, shard);
    } else if (p->kind == DTENSOR_HEADTAIL) {
        shard_headtail(N, n, r, shard);
    } else if (p->sizes) {
        shard_lengths(p->sizes, N, n, r, shard);
    } else {
        shard->count = 1;
        dtn_chunk(N, n, r, &shard->start, &shard->len);
    }
}

int64_t dtn_shard_count(const struct dtn_shard *shard)
{
    return shard->count * shard->len + shard->last_len;
}

/* The index in the whole of element `i` of a shard.  *runp is the number of
 * contiguous elements from there on; it is reduced if this shard has fewer.
 */
static int64_t shard_place(const struct dtn_shard *shard, int64_t i,
                           int64_t *runp)
{
    const int64_t in_runs = shard->count * shard->len;
    const bool last = i >= in_runs;
    const int64_t left = last ? in_runs + shard->last_len - i
                              : shard->len - i % shard->len;

    if (left < *runp)
        *runp = left;
    if (last)
        return shard->last_start + (i - in_runs);
    return shard->start + i / shard->len * shard->stride + i % shard->len;
}

/* ------------------------------------------------------------------- parts */

static bool part_shards(const struct dtensor_spec *spec, int m, int dim)
{
    return dtn_placement_class(&spec->placement[m]) == DTENSOR_SHARD &&
           spec->placement[m].dim == dim;
}

void dtn_part_init(struct dtn_part *part, const struct dtensor_spec *spec,
                    int index)
{
    int coord[DTENSOR_MAX_DIMS];

    dtn_mesh_coord_of(spec->mesh, index, coord);
    part->spec = spec;
    for (int d = 0; d < spec->ndim; d++)
        part->shape[d] = spec->shape[d];
    for (int m = 0; m < spec->mesh->ndim; m++) {
        const struct dtensor_placement *p = &spec->placement[m];
        int64_t *size;

        if (dtn_placement_class(p) != DTENSOR_SHARD)
            continue;
        size = &part->shape[p->dim];
        dtn_shard_of(p, *size, spec->mesh->size[m], coord[m], &part->shard[m]);
        *size = dtn_shard_count(&part->shard[m]);
    }
}

int64_t dtn_part_at(const struct dtn_part *part, int dim, int64_t i,
                     int64_t *runp)
{
    const struct dtensor_spec *spec = part->spec;
    int64_t run = part->shape[dim] - i;

    for (int m = spec->mesh->ndim - 1; m >= 0; m--)
        if (part_shards(spec, m, dim))
            i = shard_place(&part->shard[m], i, &run);
    if (runp)
        *runp = run;
    return i;
}

/* ------------------------------------------------------------- local parts */

void dtn_layout(const struct dtensor_spec *spec, int index, int64_t shape[],
                int64_t offset[])
{
    struct dtn_part part;

    dtn_part_init(&part, spec, index);
    for (int d = 0; d < spec->ndim; d++) {
        shape[d] = part.shape[d];
        offset[d] = shape[d] > 0 ? dtn_part_at(&part, d, 0, NULL)
                                 : spec->shape[d];
    }
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

int64_t dtensor_spec_runs(const struct dtensor_spec *spec, int rank, int dim,
                          struct dtensor_run run[], int64_t max)
{
    int index = dtensor_mesh_index(spec->mesh, rank);
    int64_t n = 0, end = -1, start, size;
    struct dtn_part part;

    if (index < 0 || dim < 0 || dim >= spec->ndim)
        return 0;
    dtn_part_init(&part, spec, index);
    for (int64_t i = 0; i < part.shape[dim]; i += size) {
        start = dtn_part_at(&part, dim, i, &size);
        if (start == end && n <= max)
            run[n - 1].size += size;
        else if (start != end && n++ < max)
            run[n - 1] = (struct dtensor_run){ start, size };
        end = start + size;
    }
    return n;
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
    struct dtn_part part;

    dtn_part_init(&part, spec, index);
    return dtn_numel(spec->ndim, part.shape);
}

static bool strided_later(const struct dtensor_spec *spec, int m, int dim)
{
    while (++m < spec->mesh->ndim)
        if (part_shards(spec, m, dim) &&
            spec->placement[m].kind == DTENSOR_STRIDED)
            return true;
    return false;
}

/* The most of N elements that any rank has after the cuts from m on.  The first
 * shard is the longest, and it grows with the number of elements, except if it
 * is cut into pieces.  Example: SS(0,3) over 2 ranks gives rank 0 two pieces of
 * one element out of 4 elements, and three out of 3.  So if such a cut follows,
 * all lengths are tried.
 */
static int64_t most_along(const struct dtensor_spec *spec, int m, int dim,
                          int64_t N)
{
    const struct dtensor_placement *p = &spec->placement[m];
    const int n = m < spec->mesh->ndim ? spec->mesh->size[m] : 0;
    int64_t length = -1, most = 0, found;
    struct dtn_shard shard;

    if (n == 0)
        return N;
    if (!part_shards(spec, m, dim))
        return most_along(spec, m + 1, dim, N);
    for (int r = 0; r < n; r++) {
        dtn_shard_of(p, N, n, r, &shard);
        if (dtn_shard_count(&shard) == length)
            continue;
        length = dtn_shard_count(&shard);
        found = most_along(spec, m + 1, dim, length);
        most = found > most ? found : most;
        if (!p->sizes && !strided_later(spec, m, dim))
            break;
    }
    return most;
}

int64_t dtn_max_numel(const struct dtensor_spec *spec)
{
    int64_t size[DTENSOR_MAX_DIMS];

    for (int d = 0; d < spec->ndim; d++)
        size[d] = most_along(spec, 0, d, spec->shape[d]);
    return dtn_numel(spec->ndim, size);
}

void dtn_strides(int ndim, const int64_t shape[], int64_t stride[])
{
    int64_t step = 1;

    for (int d = ndim - 1; d >= 0; d--) {
        stride[d] = step;
        step *= shape[d];
    }
}
