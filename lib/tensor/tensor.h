/* tensor.h - tensors
 *
 * recorder.h who is told of calls that write to tensors
 * tensor.c   the object and its queries
 * create.c   empty, zeros, full, arange, clone, distribute
 * local.c    of parts the ranks hold: from_local, checked and inferred
 * equal.c    comparing tensors, and the replicas of one
 * convert.c  redistribute, full_tensor
 * print.c    elements as text
 * random.c   random fills, rand, randn, randint, randperm
 * dropout.c  dropout
 * init.c     dtensor_init(), dtensor_fini()
 */
#ifndef DTN_TENSOR_TENSOR_H
#define DTN_TENSOR_TENSOR_H

#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

struct dtn_dist;
struct dtn_formula;

struct dtensor {
    struct dtensor_spec spec;     /* of the whole                             */
    size_t bytes;                 /* of the local part; 0 in a context that   */
                                  /* only plans                               */
    void *local;                  /* in the arena, or NULL when bytes is 0    */
    int holders;                  /* the program, until dtensor_destroy(),    */
                                  /* and tapes                                */
    uint64_t content;             /* number of what its elements are; no      */
                                  /* other content of the context has it      */
    uint64_t first;               /* the first of them, which says which of   */
                                  /* the context's tensors it is              */
};

/* It has other elements now. */
void dtn_tensor_renew(struct dtensor *t);

/* Hold it; dtensor_destroy() is the end of that.  Returns `t`. */
struct dtensor *dtn_tensor_hold(const struct dtensor *t);

/* A tensor whose local part has unspecified content.
 * Errors: EINVAL  the spec; ENOMEM
 */
int dtn_tensor_create(const struct dtensor_spec *spec, struct dtensor **tp,
                      struct dtensor_error *err);

/* The same inside a collective call.  A rank without memory sends its failure
 * to the peers, which would wait for it.
 */
int dtn_tensor_create_all(const struct dtensor_spec *spec, struct dtensor **tp,
                          struct dtensor_error *err);

/* End a collective call on the mesh with `rc` and its text `why`.  A rank that
 * alone has not enough memory sends its failure to the others.  Returns rc.
 */
int dtn_tensor_end_all(const struct dtensor_mesh *mesh, int rc,
                       const struct dtensor_error *why,
                       struct dtensor_error *err);

/* Give the caller a tensor, or destroy it if `rc` is a code.  Returns rc. */
int dtn_tensor_return(struct dtensor *t, int rc, struct dtensor **tp);

/* Element i of the whole tensor by a formula without inputs: the rows of this
 * rank's part, one after another.  Errors: as of the kind of memory
 */
int dtn_tensor_make(const struct dtensor *t, const struct dtn_formula *formula,
                    const void *how, struct dtensor_error *err);

/* Formulas.  create.c: element i is i; `how` is an enum dtensor_dtype.
 * dropout.c: of an array and the mask of what is kept.
 */
struct dtn_dropout {
    enum dtensor_dtype dtype;     /* of the array                             */
    double p;                     /* of an element to be zeroed               */
};
extern const struct dtn_formula dtn_index_formula, dtn_dropout_formula;

/* dtensor_dropout() of `in`, this rank's part, into `out` and `mask`, which lie
 * alike.  No call is noted.
 */
int dtn_dropout(const void *in, double p, struct dtensor_generator *gen,
                struct dtensor *out, struct dtensor *mask,
                struct dtensor_error *err);

/* Elements of the local part. */
size_t dtn_tensor_count(const struct dtensor *t);

/* The ranks that hold the same part as this one: the sub-mesh of the dimensions
 * along which the tensor is replicated.   Errors: ENOMEM
 */
int dtn_tensor_replicas(const struct dtensor *t,
                        const struct dtensor_mesh **meshp,
                        struct dtensor_error *err);

/* Elements that each rank makes of its own part cannot be terms of a sum.
 * Errors: EINVAL if some placement is Partial
 */
int dtn_refuse_partial(const char *what, const struct dtensor_spec *spec,
                       struct dtensor_error *err);

/* May a random tensor have these placements?  `what` names the caller.
 * Errors: EINVAL
 */
int dtn_random_check(const char *what, const struct dtensor_spec *spec,
                     const struct dtensor_generator *gen,
                     struct dtensor_error *err);

/* Fill a tensor of dist->dtype.   Errors: EINVAL */
int dtn_random_fill(const char *what, struct dtensor *t, struct dtn_dist *dist,
                    struct dtensor_generator *gen, struct dtensor_error *err);

#endif
