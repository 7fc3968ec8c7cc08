/* cross.c - from a spec on one mesh to a spec on another mesh
 *
 * The meshes may have different shapes and orders, and may share all, some or
 * none of their ranks.  Each receiver computes which positions of the other
 * mesh hold what it needs.  Partial values are reduced before they leave their
 * mesh, by a reduce-scatter along the longest dimension; Partial targets are
 * made from the value after it has arrived.  Example: f32[4096,4096] as [P] on
 * ranks 0-3 to [R] on ranks 4-7 is a reduce-scatter of 64 MiB among four ranks,
 * then four times 16 MiB to each of the other four.  No rank needs the whole
 * tensor in between.
 */
#include "redist/cross.h"
#include "base/error.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/phases.h"
#include "dtensor.h"

#include <stdlib.h>

struct dtn_phase dtn_phase_cross(const struct dtensor_spec *src,
                                 const struct dtensor_spec *dst)
{
    return (struct dtn_phase){
        .kind = DTN_PHASE_EXCHANGE, .src = *src, .dst = *dst,
        .redop = DTENSOR_SUM, .divide = 1
    };
}

/* The dimension along which a rank holds most: the best one for one more cut.
 */
static int cross_longest(const struct dtensor_spec *spec)
{
    int64_t held[DTENSOR_MAX_DIMS], best = 1;
    int dim = -1;

    for (int d = 0; d < spec->ndim; d++)
        held[d] = spec->shape[d];
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (dtn_placement_class(&spec->placement[m]) == DTENSOR_SHARD)
            held[spec->placement[m].dim] /= spec->mesh->size[m];
    for (int d = 0; d < spec->ndim; d++)
        if (held[d] > best) {
            best = held[d];
            dim = d;
        }
    return dim;
}

/* `spec` with its terms reduced: scattered if there is a dimension that can be
 * cut and the chosen shard lengths still add up.
 */
static struct dtensor_spec cross_leaves(struct dtensor_spec spec)
{
    for (int m = 0; m < spec.mesh->ndim; m++) {
        int dim = cross_longest(&spec);

        if (spec.placement[m].kind != DTENSOR_PARTIAL)
            continue;
        spec.placement[m] = (struct dtensor_placement){
            .kind = dim < 0 ? DTENSOR_REPLICATE : DTENSOR_SHARD,
            .dim = dim < 0 ? 0 : dim };
        if (!dtn_spec_lengths_fit(&spec))
            spec.placement[m].kind = DTENSOR_REPLICATE;
    }
    return spec;
}

int dtn_cross_phases(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst,
                     struct dtn_phase phase[DTN_CROSS_PHASES_MAX])
{
    const struct dtensor_spec leaves = cross_leaves(*src);
    const struct dtensor_spec arrives = dtn_spec_reduced(*dst);
    int n = dtn_phases(src, &leaves, phase);

    phase[n++] = dtn_phase_cross(&leaves, &arrives);
    return n + dtn_phases(&arrives, dst, phase + n);
}

static int cross_ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

int dtn_cross_mesh(const struct dtensor_mesh *a, const struct dtensor_mesh *b,
                   const struct dtensor_mesh **meshp,
                   struct dtensor_error *err)
{
    const size_t most = (size_t)(a->group.n + b->group.n);
    int *rank, n = 0, rc;

    if (a == b) {
        *meshp = a;
        return 0;
    }
    rank = malloc(most * sizeof *rank);
    if (!rank)
        return dtn_fail_nomem(err, "redistribute", most * sizeof *rank);
    for (int i = 0; i < a->group.n; i++)
        rank[n++] = dtensor_mesh_rank(a, i);
    for (int i = 0; i < b->group.n; i++)
        if (dtensor_mesh_index(a, dtensor_mesh_rank(b, i)) < 0)
            rank[n++] = dtensor_mesh_rank(b, i);
    qsort(rank, (size_t)n, sizeof *rank, cross_ascending);
    rc = dtensor_mesh_create(a->ctx, 1, &n, NULL, rank, meshp, err);
    free(rank);
    return rc;
}
