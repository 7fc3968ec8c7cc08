/* redist.h - redistributes, as other rooms run them */
#ifndef DTN_REDIST_REDIST_H
#define DTN_REDIST_REDIST_H

#include "dtensor.h"

struct dtn_pack_part;
struct dtn_sum_packed;

/* Redistribute `in`, this rank's part of `src`, to `out`, its part of `dst`.  A
 * plan is made at the first use of a pair of specs and kept.  Ranks outside the
 * mesh do nothing.
 */
int dtn_redistribute(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst, const void *in, void *out,
                     struct dtensor_error *err);

/* Scatter `full`, a whole row-major array on position `root`, to `out`.  root
 * -1: every rank has the array.
 */
int dtn_scatter(const struct dtensor_spec *dst, int root, const void *full,
                void *out, struct dtensor_error *err);

/* The same for an array of more than [redistribute] pipeline bytes on one root:
 * it is sent in slabs of that size, so that little more memory is needed.
 */
int dtn_scatter_slabs(const struct dtensor_spec *dst, int root,
                      const void *full, void *out, struct dtensor_error *err);

/* The same with the caller's plan.   Errors: EINVAL  it has other specs */
int dtn_redistribute_by(struct dtensor_plan *plan,
                        const struct dtensor_spec *src,
                        const struct dtensor_spec *dst, const void *in,
                        void *out, struct dtensor_error *err);

/* request.c: the same as dtn_redistribute_by(), but only started. */
int dtn_request_redist(struct dtensor_plan *plan,
                      const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, const void *in,
                      void *out, struct dtensor_request **requestp,
                      struct dtensor_error *err);

/* batch.c: the plan of tensor `i`, in a context that only plans; or the sum of
 * which it is *partp, NULL: it is in none.
 */
struct dtensor_plan *dtn_batch_plan(const struct dtensor_batch *batch, int i);
const struct dtn_sum_packed *dtn_batch_sum(const struct dtensor_batch *batch,
                                           int i,
                                           const struct dtn_pack_part **partp);

/* batch.c: take: tensor `i` of the batch has these parts on this rank until the
 * batch is run.  Errors: EINVAL  it has other specs.  count: the number of
 * tensors.  run: run the batch.
 */
int dtn_batch_take(struct dtensor_batch *batch, int i,
                   const struct dtensor_spec *src, const void *in,
                   const struct dtensor_spec *dst, void *out,
                   struct dtensor_error *err);
int dtn_batch_count(const struct dtensor_batch *batch);
int dtn_batch_run(struct dtensor_batch *batch, struct dtensor_error *err);

#endif
