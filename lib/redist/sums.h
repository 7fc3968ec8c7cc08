/* sums.h - small allreduces of a batch that go together */
#ifndef DTN_REDIST_SUMS_H
#define DTN_REDIST_SUMS_H

#include "coll/pack.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtensor_plan;
struct dtn_cost;
struct dtn_phase;

/* Tensors packed one after another, as one of one dimension. */
struct dtn_sum_packed {
    struct dtensor_spec src, dst; /* of that                                  */
    struct dtensor_plan *plan;    /* its redistribute                         */
    struct dtn_pack pack;         /* the tensors; a single one is not packed  */
};

struct dtn_sums {
    struct dtn_sum_packed *sum;   /* [n]                                      */
    int n;                        /* entries                                  */
};

/* Room for n tensors; false: there is no memory.  fini: of what init, and make,
 * have done.
 */
bool dtn_sums_init(struct dtn_sums *sums, int n);
void dtn_sums_fini(struct dtn_sums *sums);

/* The most bytes of a sum that a tensor, which needs this one allreduce, may
 * be in; 0: it runs alone, since it is large, or parts of ranks differ, or that
 * costs less.  The result is the same on every rank.
 */
size_t dtn_sums_bound(const struct dtn_cost *cost,
                      const struct dtn_phase *reduce);

/* Add it as a part.  Returns the number of its sum. */
int dtn_sums_add(struct dtn_sums *sums, const struct dtn_phase *reduce,
                 size_t bound, struct dtn_pack_part *part);

/* Plan and allocate, after the last one was added.   Errors: ENOMEM */
int dtn_sums_make(struct dtn_sums *sums, struct dtensor_error *err);
int dtn_sums_run(const struct dtn_sums *sums, struct dtensor_error *err);

/* The share of a tensor of the predicted time of its sum; and in a context that
 * only plans: tell who counts of its share of the bytes.
 */
double dtn_sums_ns(const struct dtn_sum_packed *sum,
                   const struct dtn_pack_part *part);
void dtn_sums_follow(const struct dtn_sum_packed *sum,
                     const struct dtn_pack_part *part);

#endif
