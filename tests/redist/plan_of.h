/* plan_of.h - plans from text
 *
 * planner_of() is a context that only plans.  It, mesh_of() and spec_at() end
 * the test if there is no such thing; plan_of() says why there is no plan, and
 * is NULL.
 */
#ifndef PLAN_OF_H
#define PLAN_OF_H

#include "dtensor.h"
#include "tests/tap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline struct dtensor_ctx *planner_of(int nranks, int per_host)
{
    struct dtensor_ctx *lone = NULL;
    struct dtensor_error err;

    if (dtensor_init_plan(NULL, nranks, per_host, &lone, &err) != 0) {
        note("%s", err.text);
        exit(1);
    }
    return lone;
}

static inline const struct dtensor_mesh *mesh_of(struct dtensor_ctx *planner,
                                                 int ndim, const int sizes[])
{
    const struct dtensor_mesh *mesh = NULL;
    struct dtensor_error err;

    if (dtensor_mesh_create(planner, ndim, sizes, NULL, NULL, &mesh, &err) != 0) {
        note("%s", err.text);
        exit(1);
    }
    return mesh;
}

static inline struct dtensor_spec spec_at(const struct dtensor_mesh *mesh,
                                          int ndim, const int64_t shape[],
                                          const char *text)
{
    struct dtensor_spec spec = { .mesh = mesh, .dtype = DTENSOR_F32,
                                 .ndim = ndim };
    struct dtensor_error err;

    memcpy(spec.shape, shape, (size_t)ndim * sizeof shape[0]);
    if (dtensor_placements_parse(mesh, text, ndim, spec.placement, &err) != 0 ||
        dtensor_spec_normalize(&spec, &err) != 0) {
        note("%s", err.text);
        exit(1);
    }
    return spec;
}

static inline struct dtensor_plan *plan_of(const struct dtensor_spec *src,
                                           const struct dtensor_spec *dst,
                                           enum dtensor_route route)
{
    const struct dtensor_plan_options options = { .route = route };
    struct dtensor_plan *plan = NULL;
    struct dtensor_error err;

    if (dtensor_plan_create(src, dst, &options, &plan, &err) != 0)
        note("%s", err.text);
    return plan;
}

#endif
