/* style.h - tensor-parallel styles, of modules */
#ifndef DTN_MODULE_STYLE_H
#define DTN_MODULE_STYLE_H

#include "cluster/style.h"
#include "dtensor.h"

#include <stdbool.h>

/* The layouts of the inputs or outputs of a call. */
struct dtn_layouts {
    int n;                        /* entries; 0: they stay as they are        */
    char text[DTN_LAYOUTS][DTN_LAYOUT_SIZE]; /* of each; "-": stays           */
    int ndim[DTN_LAYOUTS];        /* of the last tensor brought to it, plus 1 */
    struct dtensor_placement placement[DTN_LAYOUTS]; /* that it got           */
};

/* The style of one module. */
struct dtn_styled {
    const struct dtn_style_row *row;  /* of the table                         */
    const struct dtensor_mesh *mesh;  /* of one dimension                     */
    const char *pattern;          /* of the plan; until it is applied only    */
    char text[DTN_LAYOUT_SIZE];   /* as in the plan                           */
    struct dtn_layouts side[DTN_STYLE_SIDES]; /* inputs, outputs              */
};

/* Read "colwise output=R" for a module.
 * Errors: EINVAL  style, option, layout, or the type of the module
 */
int dtn_style_read(const struct dtensor_module *module, const char *text,
                   const struct dtensor_mesh *mesh, struct dtn_styled *styled,
                   struct dtensor_error *err);

/* The placement of a parameter, NULL: R. */
const char *dtn_style_param(const struct dtn_styled *styled, const char *param);

/* A hook on inputs, and one on outputs, which bring tensors to their layouts;
 * the argument is a struct dtn_styled.
 */
int dtn_style_on_input(const struct dtensor_hook *call,
                       struct dtensor_error *err);
int dtn_style_on_output(const struct dtensor_hook *call,
                        struct dtensor_error *err);

#endif
