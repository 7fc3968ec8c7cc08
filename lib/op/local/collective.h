/* collective.h - operators on rows that are sharded over ranks
 *
 * The dimensions of a row are a bit set.  All of these functions reduce over
 * the ranks of parts->among.  Their workspace is as large as dtn_work_sharded()
 * says.
 * Errors: as dtensor_allreduce()
 */
#ifndef DTN_OP_LOCAL_COLLECTIVE_H
#define DTN_OP_LOCAL_COLLECTIVE_H

#include "math/norm.h"
#include "math/norm_backward.h"
#include "math/reduction.h"
#include "op/local/local.h"

/* 0 if rows are whole. */
size_t dtn_work_sharded(const struct dtn_parts *parts, unsigned row);

int dtn_softmax_sharded(bool logarithm, const struct dtn_parts *parts,
                        unsigned row, struct dtensor_error *err);
int dtn_softmax_backward_sharded(bool logarithm, const struct dtn_parts *parts,
                                 unsigned row, struct dtensor_error *err);

/* LOGSUMEXP, VAR, STD and NORM; `p` as of dtn_reduce_dims(). */
int dtn_reduce_sharded(enum dtn_reduction_kind kind,
                       const struct dtn_parts *parts, unsigned row, double p,
                       struct dtensor_error *err);

/* The extremes along `dim`, and the first place of each in the whole row.  This
 * rank holds the elements from `first` on.  `value` or `index` may be NULL.
 */
int dtn_extreme_sharded(bool largest, const struct dtn_parts *parts, int dim,
                        int64_t first, const struct dtn_array *value,
                        const struct dtn_array *index,
                        struct dtensor_error *err);

/* norm->mean and norm->rstd may be NULL. */
int dtn_norm_sharded(const struct dtn_norm *norm, const struct dtn_parts *parts,
                     struct dtensor_error *err);

/* The losses of rows along the last dimension.  This rank holds the classes
 * from `first` on.  Outputs 1 and 2 are written if they exist.
 */
int dtn_cross_entropy_sharded(const struct dtn_array *losses,
                              const struct dtn_array *target, int64_t first,
                              const struct dtn_parts *parts,
                              struct dtensor_error *err);

/* The same of log-probabilities: their own one, and 0 of others.  `mean` is one
 * number: the mean of all rows, of which any may be sharded.
 */
int dtn_nll_loss_sharded(const struct dtn_array *losses,
                         const struct dtn_array *target, int64_t first,
                         const struct dtn_parts *parts,
                         struct dtensor_error *err);
int dtn_nll_mean_sharded(const struct dtn_array *mean,
                         const struct dtn_array *losses,
                         const struct dtn_array *target, int64_t first,
                         const struct dtn_parts *parts,
                         struct dtensor_error *err);

/* Gradients.  Norm: the operands are those of dtn_norm_backward(); the input is
 * input 1.
 */
int dtn_norm_backward_sharded(const struct dtn_norm_backward *norm,
                              const struct dtn_parts *parts,
                              struct dtensor_error *err);

/* Gradient of a loss: subtract 1 from output 0 at the targets among the classes
 * of this rank, which begin at `first`.
 */
void dtn_take_one_sharded(const struct dtn_array *target, int64_t first,
                          const struct dtn_parts *parts);

/* The parts from input 1 on, of which the first has the rows. */
struct dtn_parts dtn_parts_after(const struct dtn_parts *parts);

/* The index of the first element of input i, along its last dimension, that
 * this rank holds.
 */
int64_t dtn_shard_first(const struct dtn_parts *parts, int i);

#endif
