/* dist.h - distributions */
#ifndef DTN_RANDOM_DIST_H
#define DTN_RANDOM_DIST_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtn_dist_kind {
    DTN_UNIFORM, DTN_NORMAL, DTN_LOG_NORMAL, DTN_EXPONENTIAL, DTN_BERNOULLI,
    DTN_TRUNC_NORMAL, DTN_INTEGERS, DTN_NDISTS
};

/* A distribution of elements of a type, made by one of the functions below. */
struct dtn_dist {
    enum dtn_dist_kind kind;      /* decides which of these fields count      */
    enum dtensor_dtype dtype;     /* of the elements                          */
    int words;                    /* of 32 bits for an element: 1 or 2        */
    double mul;                  /* UNIFORM: range; NORMAL: std; EXPONENTIAL: */
                                  /* -1/lambda; BERNOULLI: p                  */
    double add;                   /* UNIFORM: from; NORMAL: mean              */
    double from, to;              /* UNIFORM, TRUNC_NORMAL: the bounds        */
    double p_low, p_range;       /* TRUNC_NORMAL: probability below the lower */
                                  /* bound, and between the bounds            */
    bool mirrored;                /* TRUNC_NORMAL: these are of -to .. -from  */
    int64_t low;                  /* INTEGERS: the smallest                   */
    uint64_t range;               /* INTEGERS: how many; 0: 2^64              */
    bool remainder;               /* INTEGERS: x mod range, as CUDA's kernels */
    int vector;                   /* > 1: dropout, elements of a CUDA vector  */
};

/* Parameters as in dtensor.h; `what` names the caller in messages.
 * Errors: EINVAL  a parameter, or a type that the distribution does not have
 */
int dtn_dist_uniform(struct dtn_dist *dist, enum dtensor_dtype dtype,
                     double from, double to, struct dtensor_error *err);
int dtn_dist_normal(struct dtn_dist *dist, enum dtn_dist_kind kind,
                    enum dtensor_dtype dtype, double mean, double std,
                    struct dtensor_error *err);
int dtn_dist_exponential(struct dtn_dist *dist, enum dtensor_dtype dtype,
                         double lambda, struct dtensor_error *err);
int dtn_dist_bernoulli(struct dtn_dist *dist, enum dtensor_dtype dtype,
                       double p, struct dtensor_error *err);
int dtn_dist_trunc_normal(struct dtn_dist *dist, enum dtensor_dtype dtype,
                          const double param[4], struct dtensor_error *err);
int dtn_dist_integers(struct dtn_dist *dist, enum dtensor_dtype dtype,
                      int64_t low, int64_t high, struct dtensor_error *err);
int dtn_dist_bits(struct dtn_dist *dist, enum dtensor_dtype dtype,
                  struct dtensor_error *err);
/* Which elements of a tensor of `dtype` a dropout keeps, as bool. */
int dtn_dist_keep(struct dtn_dist *dist, enum dtensor_dtype dtype, double p,
                  struct dtensor_error *err);

/* Values from the words of `nblocks` blocks, at most DTN_CHUNK_BLOCKS and
 * 4 / dist->words from each, to an array of dist->dtype.
 */
#define DTN_CHUNK_BLOCKS 512
void dtn_dist_blocks(const struct dtn_dist *dist, int width,
                     const uint32_t *words, size_t nblocks, void *out);

#endif
