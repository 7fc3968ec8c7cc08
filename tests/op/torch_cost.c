/* torch_cost.c - what PyTorch 2.15 thinks that a redistribute costs
 *
 * Its steps are those of the greedy route; each costs a base latency of 6.6 us,
 * 0.6 us for each further rank of a ring, and its bytes at 87.7 GB/s.  Making a
 * shard of a replica is free, a term of a shard impossible.
 */
#include "tests/op/torch_cost.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define BASE_US 6.6
#define HOP_US 0.6
#define ALL_TO_ALL_US 1.0
#define GIB_PER_US (87.7 / 1e6)

static bool cuts(const struct dtensor_placement *p)
{
    return p->kind == DTENSOR_SHARD || p->kind == DTENSOR_STRIDED;
}

static bool same(const struct dtensor_placement *a,
                 const struct dtensor_placement *b)
{
    return a->kind == b->kind &&
           (a->kind == DTENSOR_REPLICATE ||
            (a->kind == DTENSOR_PARTIAL ? a->op == b->op
             : a->dim == b->dim &&
               (a->kind != DTENSOR_STRIDED || a->block == b->block)));
}

/* One mesh dimension of n ranks; *gib is what a rank holds, also after it. */
static double step_us(const struct dtensor_placement *a,
                      const struct dtensor_placement *b, int n, double *gib)
{
    const double hops = BASE_US + (n - 1) * HOP_US;
    const bool gathers = b->kind == DTENSOR_REPLICATE;
    double us;

    if (b->kind == DTENSOR_PARTIAL)
        return a->kind == DTENSOR_REPLICATE ? 0 : HUGE_VAL;
    if (cuts(a)) {
        *gib *= gathers ? n : 1;
        return hops + *gib * (n - 1) / n / GIB_PER_US +
               (gathers ? 0 : ALL_TO_ALL_US);
    }
    if (a->kind == DTENSOR_PARTIAL && gathers)
        return BASE_US + 2 * (n - 1) * HOP_US +
               *gib * 2 * (n - 1) / n / GIB_PER_US;
    us = a->kind == DTENSOR_PARTIAL ? hops + *gib * (n - 1) / n / GIB_PER_US
                                    : 0;
    if (!gathers)
        *gib /= n;
    return us;
}

/* --------------------------------------------------------------- greedy --- */

struct greedy {
    const struct dtensor_mesh *mesh;       /* of the tensor                   */
    struct dtensor_placement now[DTENSOR_MAX_DIMS];
    double gib, us;                        /* held now; so far                */
};

static void greedy_step(struct greedy *g, int m,
                        const struct dtensor_placement *to)
{
    if (same(&g->now[m], to))
        return;
    g->us += step_us(&g->now[m], to, dtensor_mesh_dim_size(g->mesh, m),
                     &g->gib);
    g->now[m] = *to;
}

/* Would the cut of mesh dimension m come before one to its left? */
static bool greedy_waits(const struct greedy *g, const struct dtensor_spec *dst,
                         int m)
{
    for (int k = 0; k < m; k++)
        if (same(&g->now[k], &dst->placement[m]) !=
            same(&dst->placement[k], &dst->placement[m]))
            return true;
    return false;
}

double torch_cost(const void *arg, const struct dtensor_spec *src,
                  const struct dtensor_spec *dst, double limit)
{
    static const struct dtensor_placement whole = { .kind = DTENSOR_REPLICATE };
    const int ndim = dtensor_mesh_ndim(src->mesh);
    struct greedy g = { .mesh = src->mesh };
    int shards = 1;

    (void)arg;
    (void)limit;
    g.gib = (double)dtensor_dtype_size(src->dtype) / (1 << 30);
    for (int d = 0; d < src->ndim; d++)
        g.gib *= (double)src->shape[d];
    for (int m = 0; m < ndim; m++)
        if (cuts(&src->placement[m])) {
            shards *= dtensor_mesh_dim_size(src->mesh, m);
            g.gib /= dtensor_mesh_dim_size(src->mesh, m);
        }
    memcpy(g.now, src->placement, sizeof g.now);
    for (int m = ndim - 1; m >= 0 && shards > 1 && ndim > 1; m--)
        greedy_step(&g, m, cuts(&dst->placement[m]) && greedy_waits(&g, dst, m)
                           ? &whole : &dst->placement[m]);
    for (int m = 0; m < ndim; m++)
        greedy_step(&g, m, &dst->placement[m]);
    return g.us;
}

double torch_cost_least(const void *arg, const struct dtensor_spec *src,
                        const struct dtensor_placement dst[])
{
    (void)arg;
    (void)src;
    (void)dst;
    return 0;
}
