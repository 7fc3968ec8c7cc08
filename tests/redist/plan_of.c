/* plan_of.c - plans from text */
#include "tests/redist/plan_of.h"
#include "tests/support/tap.h"

#include <stdlib.h>
#include <string.h>

struct dtensor_ctx *planner_of(int nranks, int per_host)
{
    struct dtensor_ctx *lone = NULL;
    struct dtensor_error err;

    if (dtensor_init_offline(NULL, nranks, per_host, &lone, &err) != 0) {
        note("%s", err.text);
        exit(1);
    }
    return lone;
}

const struct dtensor_mesh *mesh_of(struct dtensor_ctx *planner, int ndim,
                                   const int sizes[])
{
    const struct dtensor_mesh *mesh = NULL;
    struct dtensor_error err;

    if (dtensor_mesh_create(planner, ndim, sizes, NULL, NULL, &mesh, &err) !=
        0) {
        note("%s", err.text);
        exit(1);
    }
    return mesh;
}

struct dtensor_spec spec_at(const struct dtensor_mesh *mesh, int ndim,
                            const int64_t shape[], const char *text)
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

struct dtensor_plan *plan_of(const struct dtensor_spec *src,
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
