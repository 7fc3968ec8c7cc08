/* tensor.h - L5: tensors
 *
 * tensor.c   the object and its queries
 * create.c   zeros, full, arange, distribute, from_local
 * convert.c  redistribute, full_tensor
 */
#ifndef DTN_TENSOR_H
#define DTN_TENSOR_H

#include "spec/spec.h"

struct dtensor {
    struct dtensor_spec spec;
    size_t bytes;                 /* of the local part                         */
    void *local;                  /* in the arena, or NULL when bytes is 0     */
};

/* A tensor whose local part has unspecified content. */
int dtn_tensor_create(const struct dtensor_spec *spec, struct dtensor **tp,
                      struct dtensor_error *err);

#endif
