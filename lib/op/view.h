/* view.h - the placements of views */
#ifndef DTN_OP_VIEW_H
#define DTN_OP_VIEW_H

#include "dtensor.h"

/* How the input of a view should lie, and how its output will lie: *want and
 * *out have the placements and shapes, and the mesh and dtype of the input.
 * Errors: EINVAL  the arguments; or parts that no placement of the output
 *                 describes: says which redistribute would help
 */
int dtn_view_infer(const struct dtensor_op_call *call,
                   struct dtensor_spec *want, struct dtensor_spec *out,
                   struct dtensor_error *err);

#endif
