/* sums.h - small allreduces of a batch that go together */
#ifndef DTN_REDIST_SUMS_H
#define DTN_REDIST_SUMS_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtensor_plan;
struct dtn_cost;
struct dtn_phase;

/* A tensor. */
struct dtn_summed {
    int sum;                      /* which one it is in                       */
    size_t at, count;             /* its elements there                       */
    const void *in;               /* while it is run                          */
    void *out;                    /* see above                                */
};

/* Tensors one after another, as one of one dimension. */
struct dtn_sum_packed {
    struct dtensor_spec src, dst; /* of that                                  */
    struct dtensor_plan *plan;    /* its redistribute                         */
    int n;                        /* tensors in it                            */
    unsigned char *in, *out;      /* where they are packed; NULL: it has one  */
};

struct dtn_sums {
    struct dtn_summed *tensor;    /* [n]                                      */
    struct dtn_sum_packed *sum;   /* [nsums]                                  */
    int n, nsums;                 /* entries                                  */
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

/* Add it.  Returns its number. */
int dtn_sums_add(struct dtn_sums *sums, const struct dtn_phase *reduce,
                 size_t bound);

/* Plan and allocate, after the last one was added.   Errors: ENOMEM */
int dtn_sums_make(struct dtn_sums *sums, struct dtensor_error *err);

/* take: tensor k has these parts for the next run. */
void dtn_sums_take(struct dtn_sums *sums, int k, const void *in, void *out);
int dtn_sums_run(const struct dtn_sums *sums, struct dtensor_error *err);

/* Is tensor k not the first one of its allreduce? */
bool dtn_sums_joins(const struct dtn_sums *sums, int k);

/* The share of tensor k of the predicted time; and in a context that only
 * plans: tell who counts of its share of the bytes.
 */
double dtn_sums_ns(const struct dtn_sums *sums, int k);
void dtn_sums_follow(const struct dtn_sums *sums, int k);

#endif
