/* parallel.h - steps of dtensor_parallelize() */
#ifndef DTN_MODULE_PARALLEL_H
#define DTN_MODULE_PARALLEL_H

#include "dtensor.h"

/* Find the modules that the pattern of an entry matches; the style waits there,
 * with its pattern, until it is applied or taken back.
 * Errors: EINVAL  as of dtensor_parallelize(), without the pattern in front
 */
int dtn_entry_match(struct dtensor_module *top,
                    const struct dtensor_style *style,
                    const struct dtensor_mesh *mesh, struct dtensor_error *err);

/* Does a module lack a parameter that the style that waits there cuts?
 * Errors: EINVAL
 */
int dtn_style_lacks(const struct dtensor_module *module,
                    struct dtensor_error *err);

/* The placements that the style gives a parameter: for struct dtn_placing. */
const char *dtn_style_choose(const struct dtensor_module *module,
                             const char *param, void *arg);

/* Take styles back that wait: for dtensor_module_walk(). */
dtensor_visit_f dtn_style_take_back;

/* Has the mesh one dimension?   Errors: EINVAL */
int dtn_parallel_mesh(const struct dtensor_mesh *mesh,
                      struct dtensor_error *err);

#endif
