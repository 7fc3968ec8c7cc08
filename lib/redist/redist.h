/* redist.h - redistributes, as other rooms run them */
#ifndef DTN_REDIST_REDIST_H
#define DTN_REDIST_REDIST_H

#include "dtensor.h"

/* Bring `in`, this rank's part of `src`, to `out`, its part of `dst`.  Plans
 * are made at the first use of a pair of specs and kept.  Ranks outside the
 * mesh do nothing.
 */
int dtn_redistribute(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst, const void *in, void *out,
                     struct dtensor_error *err);

/* Bring `full`, a whole row-major array on position `root`, to `out`; root -1:
 * on every rank.
 */
int dtn_scatter(const struct dtensor_spec *dst, int root, const void *full,
                void *out, struct dtensor_error *err);

/* The same for an array of over [redistribute] pipeline bytes, from a root
 * only: in slabs of that size, so that little memory is needed besides.
 */
int dtn_scatter_slabs(const struct dtensor_spec *dst, int root,
                      const void *full, void *out, struct dtensor_error *err);

/* The same by a plan that somebody made.   Errors: EINVAL  it has other specs
 */
int dtn_redistribute_by(struct dtensor_plan *plan,
                        const struct dtensor_spec *src,
                        const struct dtensor_spec *dst, const void *in,
                        void *out, struct dtensor_error *err);

/* request.c: the same as dtn_redistribute_by(), started only. */
int dtn_request_redist(struct dtensor_plan *plan,
                      const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, const void *in,
                      void *out, struct dtensor_request **requestp,
                      struct dtensor_error *err);

/* batch.c: tensor `i` of the batch is this, with these parts on this rank,
 * until it is run.  Errors: EINVAL  it has other specs.  How many there are;
 * run it.
 */
int dtn_batch_take(struct dtensor_batch *batch, int i,
                   const struct dtensor_spec *src, const void *in,
                   const struct dtensor_spec *dst, void *out,
                   struct dtensor_error *err);
int dtn_batch_count(const struct dtensor_batch *batch);
int dtn_batch_run(struct dtensor_batch *batch, struct dtensor_error *err);

#endif
