/* words.h - calls in words */
#ifndef DTN_OP_WORDS_H
#define DTN_OP_WORDS_H

#include "base/compiler.h"
#include "dtensor.h"

#include <stddef.h>

/* "matmul of 16x8 f64 S(0), 8x12 f64 R": the operator and its inputs as they
 * lie.  Returns `buf`.
 */
char *dtn_op_words(const struct dtensor_op_call *call, char *buf, size_t size);

/* Fail with EINVAL: those words, ": " and the reason. */
int dtn_op_fail(const struct dtensor_op_call *call, struct dtensor_error *err,
                const char *fmt, ...) DTN_PRINTF(3, 4);

/* Entry `dim` of args.dim among n dimensions, of which negative ones count from
 * the end.   Errors: EINVAL
 */
int dtn_op_dim(const struct dtensor_op_call *call, int dim, int n, int *dimp,
               struct dtensor_error *err);

/* "16x8"; "scalar" without dimensions.  Returns `buf`. */
char *dtn_shape_words(int ndim, const int64_t shape[], char *buf, size_t size);

#endif
