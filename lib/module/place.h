/* place.h - parameters of a tree, placed together or not at all */
#ifndef DTN_MODULE_PLACE_H
#define DTN_MODULE_PLACE_H

#include "dtensor.h"

/* How parameters are to be placed. */
struct dtn_placing {
    const struct dtensor_mesh *mesh;  /* the mesh they get                    */
    int root;                     /* position whose values count; -1: each    */
                                  /* rank cuts its own                        */
    /* The placements of a parameter as text; NULL: R along all dimensions;
     * dtn_placed: it stays as it is.
     */
    const char *(*choose)(const struct dtensor_module *module,
                          const char *param, void *arg);
    void *arg;                    /* of choose                                */
};

extern const char dtn_placed[];

/* Place the parameters of `top` and all below it.  On failure they are as
 * before.
 */
int dtn_place(struct dtensor_module *top, const struct dtn_placing *placing,
              struct dtensor_error *err);

/* How parameter `i` of a module would lie.
 * Errors: EINVAL  it cannot lie so, or is not whole: names module and parameter
 */
int dtn_place_plan(const struct dtensor_module *module, int i,
                   const struct dtn_placing *placing, const char *text,
                   struct dtensor_spec *spec, struct dtensor_error *err);

/* The mesh that a program names, or the one entered last.   Errors: EINVAL */
int dtn_place_mesh(const struct dtensor_module *top,
                   const struct dtensor_mesh *mesh,
                   const struct dtensor_mesh **meshp,
                   struct dtensor_error *err);

#endif
