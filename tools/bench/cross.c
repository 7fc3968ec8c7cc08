/* cross.c - how many bytes a redistribution must bring into a rank
 *
 * A rank needs its box of the new spec and has its box of the old one; what
 * lies in the first and not in the second must come from elsewhere.  S(0) ->
 * S(1) of 1000 x 1000 over 4 ranks: each needs 250,000 elements and has 62,500
 * of them, so 187,500 come in.  S(0) -> R gives S(n-1)/n bytes, as for an
 * all-gather of S bytes.
 *
 * Where n ranks hold terms of a sum (Partial), either each receiver takes the
 * other terms of what it needs, or each first reduces an n-th of its box and
 * then takes the finished rest; the less of the two counts.  P -> S(0) gives
 * S(n-1)/n and P -> R gives 2S(n-1)/n, as reduce-scatter and allreduce do.
 */
#include "tools/bench/cross.h"
#include "dtensor.h"

#include <stdbool.h>

int64_t cross_overlap(int ndim, const int64_t shape_a[],
                      const int64_t offset_a[], const int64_t shape_b[],
                      const int64_t offset_b[])
{
    int64_t count = 1;

    for (int d = 0; d < ndim; d++) {
        int64_t first = offset_a[d] > offset_b[d] ? offset_a[d] : offset_b[d];
        int64_t end_a = offset_a[d] + shape_a[d];
        int64_t end_b = offset_b[d] + shape_b[d];
        int64_t end = end_a < end_b ? end_a : end_b;

        count *= end > first ? end - first : 0;
    }
    return count;
}

double cross_incoming(double have, double need, double both, int terms)
{
    double direct = need * terms - both;
    double share = have / terms;
    double staged = have - share + need - (share < both ? share : both);

    return terms == 1 || direct < staged ? direct : staged;
}

static bool cross_same_partial(const struct dtensor_placement *a,
                               const struct dtensor_placement *b)
{
    return b->kind == DTENSOR_PARTIAL && a->op == b->op;
}

/* Over how many ranks is a reduction carried out? */
static int cross_terms(const struct dtensor_spec *from,
                       const struct dtensor_spec *to)
{
    int terms = 1;

    for (int d = 0; d < dtensor_mesh_ndim(from->mesh); d++) {
        const struct dtensor_placement *p = &from->placement[d];

        if (p->kind == DTENSOR_PARTIAL &&
            !cross_same_partial(p, &to->placement[d]))
            terms *= dtensor_mesh_dim_size(from->mesh, d);
    }
    return terms;
}

static int64_t cross_count(int ndim, const int64_t shape[])
{
    int64_t count = 1;

    for (int d = 0; d < ndim; d++)
        count *= shape[d];
    return count;
}

static double cross_rank(const struct dtensor_spec *from,
                         const struct dtensor_spec *to, int rank, int terms)
{
    int64_t have[DTENSOR_MAX_DIMS], have_at[DTENSOR_MAX_DIMS];
    int64_t need[DTENSOR_MAX_DIMS], need_at[DTENSOR_MAX_DIMS];
    int n = from->ndim;

    dtensor_spec_local(from, rank, have, have_at);
    dtensor_spec_local(to, rank, need, need_at);
    return cross_incoming((double)cross_count(n, have),
                          (double)cross_count(n, need),
                          (double)cross_overlap(n, have, have_at, need,
                                                need_at), terms);
}

void cross_bytes(const struct dtensor_spec *from,
                 const struct dtensor_spec *to, double *totalp,
                 double *busiestp)
{
    double elem = (double)dtensor_dtype_size(from->dtype);
    int terms = cross_terms(from, to);
    double total = 0, busiest = 0, bytes;

    for (int i = 0; i < dtensor_mesh_size(from->mesh); i++) {
        bytes = elem * cross_rank(from, to, dtensor_mesh_rank(from->mesh, i),
                                  terms);
        total += bytes;
        if (bytes > busiest)
            busiest = bytes;
    }
    *totalp = total;
    *busiestp = busiest;
}
