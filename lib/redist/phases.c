/* phases.c - which collectives lead from one spec to another
 *
 * One exchange can turn any placements into any others.  But if an exchange did
 * an allreduce, each of n ranks would read all n terms.  So P -> R is a
 * separate allreduce of the flat local part, and it is done where that part is
 * smallest.  Example: [P, P] -> [R, S(0)] of 8 MiB on a 2 x 4 mesh is first an
 * exchange to [P, S(0)], a reduce-scatter to 2 MiB, and then an allreduce of 2
 * MiB among 2 ranks.  The other order would allreduce 8 MiB.
 *
 * The phases do not depend on the calling rank, so all ranks get the same.
 */
#include "redist/phases.h"
#include "base/dtype.h"
#include "layout/layout.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>

/* ------------------------------------------------------ small questions --- */

static bool phases_is(const struct dtensor_spec *spec, int m,
                      enum dtensor_placement_kind kind)
{
    return dtn_placement_class(&spec->placement[m]) == kind;
}

/* The dimensions of kind `from` in src and of kind `to` in dst. */
static unsigned phases_dims(const struct dtensor_spec *src,
                            enum dtensor_placement_kind from,
                            const struct dtensor_spec *dst,
                            enum dtensor_placement_kind to)
{
    unsigned dims = 0;

    for (int m = 0; m < src->mesh->ndim; m++)
        if (phases_is(src, m, from) && phases_is(dst, m, to))
            dims |= 1u << m;
    return dims;
}

/* The dimensions of the set whose terms are reduced by this reduction. */
static unsigned phases_waiting(const struct dtensor_spec *spec, unsigned dims,
                               enum dtensor_redop op)
{
    unsigned waiting = 0;

    for (int m = 0; m < spec->mesh->ndim; m++)
        if (dims >> m & 1 && phases_is(spec, m, DTENSOR_PARTIAL) &&
            spec->placement[m].op == op)
            waiting |= 1u << m;
    return waiting;
}

static int phases_extent(const struct dtensor_mesh *mesh, unsigned dims)
{
    int n = 1;

    for (int m = 0; m < mesh->ndim; m++)
        if (dims >> m & 1)
            n *= mesh->size[m];
    return n;
}

/* `spec` with R on the dimensions in the set. */
static struct dtensor_spec phases_reduced(struct dtensor_spec spec,
                                          unsigned dims)
{
    for (int m = 0; m < spec.mesh->ndim; m++)
        if (dims >> m & 1)
            spec.placement[m].kind = DTENSOR_REPLICATE;
    return spec;
}

/* Over one rank all placements mean the same, so R replaces them. */
static struct dtensor_spec phases_plain(struct dtensor_spec spec)
{
    unsigned dims = 0;

    for (int m = 0; m < spec.mesh->ndim; m++)
        if (spec.mesh->size[m] == 1)
            dims |= 1u << m;
    return phases_reduced(spec, dims);
}

/* --------------------------------------------------------------- phases --- */

/* An average is a sum that is divided: phases_average(). */
static enum dtensor_redop phases_fold(int op)
{
    return op < 0 || op == DTENSOR_AVG ? DTENSOR_SUM : (enum dtensor_redop)op;
}

static struct dtn_phase phases_reduce(const struct dtensor_spec *src,
                                      const struct dtensor_spec *dst,
                                      unsigned dims)
{
    return (struct dtn_phase){
        .kind = DTN_PHASE_REDUCE, .src = *src, .dst = *dst, .dims = dims,
        .redop = phases_fold(dtn_spec_partial(src)), .divide = 1
    };
}

/* How a value becomes terms: x/n on each rank; x on each; or x and neutral
 * elements.
 */
static void phases_split(struct dtn_phase *phase, int op, unsigned split)
{
    const struct dtensor_spec *dst = &phase->dst;

    switch (op) {
    case DTENSOR_AVG: case DTENSOR_MIN: case DTENSOR_MAX:
    case DTENSOR_BAND: case DTENSOR_BOR:
        return;
    case DTENSOR_SUM:
        if (!dtn_dtype_is_float(dst->dtype))
            break;
        split = phases_waiting(dst, split, DTENSOR_SUM);
        phase->divide *= phases_extent(dst->mesh, split);
        return;
    default:
        break;
    }
    split &= ~phases_waiting(dst, split, DTENSOR_AVG);
    phase->first_only = split;
    phase->neutral = phase->neutral || split;
}

struct dtn_phase dtn_phase_exchange(const struct dtensor_spec *src,
                                    const struct dtensor_spec *dst)
{
    int from = dtn_spec_partial(src), to = dtn_spec_partial(dst);
    unsigned placed = phases_dims(src, DTENSOR_SHARD, dst, DTENSOR_PARTIAL);
    struct dtn_phase phase = {
        .kind = DTN_PHASE_EXCHANGE, .src = *src, .dst = *dst,
        .redop = phases_fold(from >= 0 ? from : to), .divide = 1,
        .neutral = (placed & ~phases_waiting(dst, placed, DTENSOR_AVG)) != 0
    };

    phases_split(&phase, to,
                 phases_dims(src, DTENSOR_REPLICATE, dst, DTENSOR_PARTIAL));
    return phase;
}

/* An average is divided in the step that adds its terms.  So its sum is not
 * rounded before, and does not overflow its type.
 */
static void phases_average(const struct dtensor_spec *src, unsigned all,
                           unsigned scattered, struct dtn_phase phase[], int n)
{
    for (int i = 0; i < n; i++) {
        const unsigned added = phase[i].kind == DTN_PHASE_REDUCE ? all
                                                                 : scattered;
        const unsigned averaged = phases_waiting(src, added, DTENSOR_AVG);

        if (averaged == 0)
            continue;
        phase[i].redop = DTENSOR_AVG;
        phase[i].divide *= phases_extent(src->mesh, averaged);
    }
}

bool dtn_phases_add_once(const struct dtensor_spec *src,
                         const struct dtensor_spec *dst)
{
    const unsigned added =
        phases_dims(src, DTENSOR_PARTIAL, dst, DTENSOR_REPLICATE) |
        phases_dims(src, DTENSOR_PARTIAL, dst, DTENSOR_SHARD);

    return !dtn_dtype_is_float(src->dtype) &&
           phases_waiting(src, added, DTENSOR_AVG) != 0;
}

/* src and dst have at most one reduction together. */
static int phases_direct(const struct dtensor_spec *src,
                         const struct dtensor_spec *dst,
                         struct dtn_phase phase[])
{
    unsigned all = phases_dims(src, DTENSOR_PARTIAL, dst, DTENSOR_REPLICATE);
    unsigned scattered = phases_dims(src, DTENSOR_PARTIAL, dst, DTENSOR_SHARD);
    struct dtensor_spec mid;
    int n = 0;

    if (dtn_spec_equal(src, dst))
        return 0;
    if (all && scattered && dtn_phases_add_once(src, dst)) {
        scattered |= all;
        all = 0;
    }
    if (all == 0) {
        phase[n++] = dtn_phase_exchange(src, dst);
    } else if (dtn_local_numel(src, 0) <= dtn_local_numel(dst, 0)) {
        mid = phases_reduced(*src, all);
        phase[n++] = phases_reduce(src, &mid, all);
        if (!dtn_spec_equal(&mid, dst))
            phase[n++] = dtn_phase_exchange(&mid, dst);
    } else {
        mid = *dst;
        for (int m = 0; m < mid.mesh->ndim; m++)
            if (all >> m & 1)
                mid.placement[m] = src->placement[m];
        phase[n++] = dtn_phase_exchange(src, &mid);
        phase[n++] = phases_reduce(&mid, dst, all);
    }
    phases_average(src, all, scattered, phase, n);
    return n;
}

/* The dimensions whose terms do not stay. */
static unsigned phases_leaving(const struct dtensor_spec *src,
                               const struct dtensor_spec *dst)
{
    unsigned leaving = 0;

    for (int m = 0; m < src->mesh->ndim; m++)
        if (phases_is(src, m, DTENSOR_PARTIAL) &&
            !dtn_placement_equal(&src->placement[m], &dst->placement[m],
                                 src->mesh->size[m]))
            leaving |= 1u << m;
    return leaving;
}

/* The spec between two reductions.  Terms that do not stay are reduced.
 * Otherwise the tensor is kept as small as both sides allow, if shards that
 * become terms still have the parts of the source.
 */
static struct dtensor_spec phases_middle(const struct dtensor_spec *src,
                                         const struct dtensor_spec *dst)
{
    const struct dtensor_spec reduced = phases_reduced(
        *src, phases_leaving(src, dst));
    struct dtensor_spec mid = reduced;

    for (int m = 0; m < mid.mesh->ndim; m++)
        if (phases_is(dst, m, DTENSOR_SHARD))
            mid.placement[m] = dst->placement[m];
    for (int m = 0; !dtn_spec_lengths_fit(&mid) && m < mid.mesh->ndim; m++)
        if (phases_is(&mid, m, DTENSOR_SHARD))
            mid.placement[m].sizes = NULL;
    for (int m = 0; m < mid.mesh->ndim; m++)
        if (phases_is(src, m, DTENSOR_SHARD) &&
            phases_is(dst, m, DTENSOR_PARTIAL) &&
            !dtn_spec_shards_alike(src, &mid, m))
            return reduced;
    return mid;
}

/* Must one reduction be done before the terms of the other are made?  Sums and
 * averages can be together, unless one becomes the other.
 */
static bool phases_clash(const struct dtensor_spec *src,
                         const struct dtensor_spec *dst)
{
    int a = dtn_spec_partial(src), b = dtn_spec_partial(dst);

    if (a < 0 || b < 0)
        return false;
    for (int m = 0; m < src->mesh->ndim; m++)
        if (phases_is(src, m, DTENSOR_PARTIAL) &&
            phases_is(dst, m, DTENSOR_PARTIAL) &&
            src->placement[m].op != dst->placement[m].op)
            return true;
    return phases_fold(a) != phases_fold(b);
}

int dtn_phases(const struct dtensor_spec *src, const struct dtensor_spec *dst,
               struct dtn_phase phase[DTN_MAX_PHASES])
{
    struct dtensor_spec from = phases_plain(*src), to = phases_plain(*dst);
    struct dtensor_spec mid;
    int n;

    if (!phases_clash(&from, &to))
        return phases_direct(&from, &to, phase);
    mid = phases_middle(&from, &to);
    n = phases_direct(&from, &mid, phase);
    return n + phases_direct(&mid, &to, phase + n);
}

int dtn_scatter_phases(const struct dtensor_spec *dst, bool apart,
                       struct dtn_phase phase[DTN_MAX_PHASES])
{
    unsigned every = (1u << dst->mesh->ndim) - 1, copies;
    struct dtensor_spec src = phases_reduced(*dst, every);
    int divide;

    phase[0] = dtn_phase_exchange(&src, dst);
    copies = every & ~phase[0].first_only &
             ~phases_dims(dst, DTENSOR_SHARD, dst, DTENSOR_SHARD);
    if (!apart || phases_extent(dst->mesh, copies) == 1)
        return 1;
    divide = phase[0].divide;
    phase[0].divide = 1;
    phase[0].first_only |= copies;
    phase[1] = (struct dtn_phase){
        .kind = DTN_PHASE_BROADCAST, .src = *dst, .dst = *dst, .dims = copies,
        .redop = phase[0].redop, .divide = divide
    };
    return 2;
}

/* A mesh dimension needs no peers if a value or a term is only kept, or if it
 * cuts in the same way what was cut in the same way before.
 */
int dtn_phase_peers(const struct dtn_phase *phase)
{
    const struct dtensor_spec *src = &phase->src, *dst = &phase->dst;
    unsigned moved = 0;                /* tensor dimensions cut otherwise     */
    int reach = 1;

    for (int m = 0; m < src->mesh->ndim; m++) {
        const struct dtensor_placement *from = &src->placement[m];
        const struct dtensor_placement *to = &dst->placement[m];
        const bool cut = phases_is(src, m, DTENSOR_SHARD);
        const bool cuts = phases_is(dst, m, DTENSOR_SHARD);

        if (src->mesh->size[m] == 1)
            continue;
        if (!dtn_placement_equal(from, to, src->mesh->size[m]))
            moved |= (cut ? 1u << from->dim : 0) | (cuts ? 1u << to->dim : 0);
        if (dtn_placement_is_local(from, to) ||
            (cut && cuts && from->dim == to->dim && !(moved >> to->dim & 1)))
            continue;
        reach *= src->mesh->size[m];
    }
    return reach;
}

bool dtn_phase_folds(const struct dtn_phase *phase)
{
    return phases_dims(&phase->src, DTENSOR_PARTIAL, &phase->dst,
                       DTENSOR_SHARD) != 0 ||
           phases_dims(&phase->src, DTENSOR_PARTIAL, &phase->dst,
                       DTENSOR_REPLICATE) != 0;
}

bool dtn_phase_idle(const struct dtn_phase *phase, int index)
{
    int coord[DTENSOR_MAX_DIMS];

    if (phase->first_only == 0)
        return false;
    dtn_mesh_coord_of(phase->src.mesh, index, coord);
    for (int m = 0; m < phase->src.mesh->ndim; m++)
        if (phase->first_only >> m & 1 && coord[m] != 0)
            return true;
    return false;
}
