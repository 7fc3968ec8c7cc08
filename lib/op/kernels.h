/* kernels.h - operators that kernels of a GPU compute */
#ifndef DTN_OP_KERNELS_H
#define DTN_OP_KERNELS_H

#include "op/cache.h"
#include "op/local/local.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

/* Would kernels do all that the local function does?  It is asked with the
 * shapes and types of `parts`.  *bytesp: of memory that they work with.
 */
bool dtn_op_has_kernels(const struct dtn_local *local,
                        const struct dtn_parts *parts, size_t *bytesp);

/* Can kernels be launched on the device of this context? */
bool dtn_op_launches(const struct dtensor_ctx *ctx);

/* Run the local function by kernels, with parts->work on the device.
 * Errors: as of the local function, and of the device
 */
int dtn_op_run_kernels(const struct dtn_local *local, struct dtn_parts *parts,
                       struct dtensor_error *err);

/* Would kernels compute this call, if its tensors were in memory of a GPU? */
bool dtn_op_infers_kernels(const struct dtn_decision *d);

#endif
