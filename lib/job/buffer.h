/* buffer.h - operations on a buffer of either kind, outside of a run */
#ifndef DTN_JOB_BUFFER_H
#define DTN_JOB_BUFFER_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_elements;
struct dtn_formula;

/* The operations of struct dtn_memory_ops, complete when they return.  They
 * return 0, or a code, and then the context is poisoned.
 */
int dtn_buffer_copy(struct dtensor_ctx *ctx, void *dst, const void *src,
                    size_t bytes, struct dtensor_error *err);
int dtn_buffer_zero(struct dtensor_ctx *ctx, void *dst, size_t bytes,
                    struct dtensor_error *err);
int dtn_buffer_scale(struct dtensor_ctx *ctx, enum dtensor_dtype dtype,
                     void *array, size_t count, int n,
                     struct dtensor_error *err);
int dtn_buffer_neutral(struct dtensor_ctx *ctx, enum dtensor_dtype dtype,
                       enum dtensor_redop op, void *array, size_t count,
                       struct dtensor_error *err);
int dtn_buffer_make(struct dtensor_ctx *ctx, const struct dtn_formula *formula,
                    const struct dtn_elements *elements, void *out,
                    const void *const in[], struct dtensor_error *err);
int dtn_buffer_equal(struct dtensor_ctx *ctx, enum dtensor_dtype dtype,
                     const void *left, const void *right, size_t count,
                     bool *equalp, struct dtensor_error *err);

/* Launches by the kind of the device, which `mem` is of.  Between the two,
 * (*memoryp)->ops->launch() may be called any number of times; `rc` is 0,
 * DTN_LAUNCHED or what the last of them returned.  When close has returned,
 * all are complete.
 */
struct dtn_memory;
int dtn_buffer_open(struct dtensor_ctx *ctx, const char *what, const void *mem,
                    const struct dtn_memory **memoryp,
                    struct dtensor_error *err);
int dtn_buffer_close(struct dtensor_ctx *ctx, const char *what,
                     const struct dtn_memory *memory, int rc,
                     struct dtensor_error *err);

#endif
