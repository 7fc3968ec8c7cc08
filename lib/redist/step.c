/* step.c - what a change of one placement costs
 *
 * Routes are made of such steps, and a decision of an operator looks for
 * hundreds of routes.  So their costs are kept while it is made.  Example: for
 * the product of two matrices on a mesh of 2 x 2 x 2, 50 routes ask 1,200 times
 * for 290 steps.
 */
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

enum { TRIES = 8 };               /* entries that a hash may lead to          */

/* A placement as a byte; 0: it has more to it. */
static unsigned placement_code(const struct dtensor_placement *p)
{
    if (p->kind == DTENSOR_SHARD)
        return p->sizes ? 0 : 2 + (unsigned)p->dim;
    if (p->kind == DTENSOR_PARTIAL)
        return 2 + DTENSOR_MAX_DIMS + (unsigned)p->op;
    return p->kind == DTENSOR_REPLICATE;
}

struct dtn_step_from dtn_step_from(const struct dtn_cost *cost,
                                   const struct dtensor_spec *spec,
                                   const struct dtensor_placement placement[])
{
    struct dtn_step_from from = { .placement = placement };

    if (!cost->kept)
        return from;
    from.bytes = (double)dtensor_dtype_size(spec->dtype);
    for (int d = 0; d < spec->ndim; d++)
        from.bytes *= (double)spec->shape[d];
    for (int m = 0; m < spec->mesh->ndim && from.bytes > 0; m++) {
        const unsigned code = placement_code(&placement[m]);

        if (code == 0) {
            from.code = 0;
            break;
        }
        from.code = from.code << 8 | code;
    }
    return from;
}

/* Where the cost is kept, or should be; NULL: it cannot be. */
static struct dtn_cost_step *step_find(struct dtn_cost_kept *kept,
                                       const struct dtn_step_from *from,
                                       unsigned to)
{
    const uint64_t hash = ((from->code ^ (uint64_t)from->bytes) * 31 + to) *
                          UINT64_C(0x9e3779b97f4a7c15);

    if (!kept->steps)
        memset(kept->step, 0, sizeof kept->step);
    kept->steps = true;
    for (unsigned i = 0; i < TRIES; i++) {
        struct dtn_cost_step *step =
            &kept->step[((hash >> 48) + i) % DTN_COST_STEPS];

        if (step->bytes == 0) {
            *step = (struct dtn_cost_step){ .bytes = from->bytes, .ns = -1,
                                            .from = from->code, .to = to };
            return step;
        }
        if (step->from == from->code && step->to == to &&
            step->bytes == from->bytes)
            return step;
    }
    return NULL;
}

static double step_compute(const struct dtn_cost *cost,
                           const struct dtensor_spec *spec,
                           const struct dtensor_placement src[], int m,
                           const struct dtensor_placement *to)
{
    struct dtensor_placement dst[DTENSOR_MAX_DIMS];

    if (src[m].kind == DTENSOR_PARTIAL && to->kind == DTENSOR_REPLICATE)
        return dtn_cost_allreduce(cost, spec->mesh, 1u << m,
                                  dtn_volume_local(spec, src) *
                                  (double)dtensor_dtype_size(spec->dtype));
    memcpy(dst, src, (size_t)spec->mesh->ndim * sizeof dst[0]);
    dst[m] = *to;
    return dtn_cost_exchange(cost, spec, src, dst);
}

double dtn_cost_step(const struct dtn_cost *cost,
                     const struct dtensor_spec *spec,
                     const struct dtn_step_from *from, int m,
                     const struct dtensor_placement *to)
{
    const unsigned code = from->code ? placement_code(to) : 0;
    struct dtn_cost_step *kept = code == 0 ? NULL
        : step_find(cost->kept, from, code << 16 | (unsigned)m << 8 |
                                      (unsigned)spec->dtype);
    double ns;

    if (spec->mesh->size[m] == 1)
        return 0;
    if (kept && kept->ns >= 0)
        return kept->ns;
    ns = step_compute(cost, spec, from->placement, m, to);
    if (kept)
        kept->ns = ns;
    return ns;
}
