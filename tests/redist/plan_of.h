/* plan_of.h - plans from text
 *
 * planner_of() is a context that only plans.  It, mesh_of() and spec_at() end
 * the test if there is no such thing; plan_of() says why there is no plan, and
 * is NULL.
 */
#ifndef TESTS_PLAN_OF_H
#define TESTS_PLAN_OF_H

#include "dtensor.h"

#include <stdint.h>

struct dtensor_ctx *planner_of(int nranks, int per_host);
const struct dtensor_mesh *mesh_of(struct dtensor_ctx *planner, int ndim,
                                   const int sizes[]);
struct dtensor_spec spec_at(const struct dtensor_mesh *mesh, int ndim,
                            const int64_t shape[], const char *text);
struct dtensor_plan *plan_of(const struct dtensor_spec *src,
                             const struct dtensor_spec *dst,
                             enum dtensor_route route);

#endif
