/* permute.h - random permutations */
#ifndef DTN_RANDOM_PERMUTE_H
#define DTN_RANDOM_PERMUTE_H

#include "dtensor.h"

#include <stdint.h>

/* A permutation of 0 .. n-1. */
struct dtn_permute {
    uint64_t seed;                /* the Philox key                           */
    uint64_t block;               /* the Philox counter                       */
    int64_t n;                    /* elements                                 */
    int half_bits;                /* bits of each half of the Feistel network */
    int64_t *sorted;              /* [n] the whole of a small permutation, or */
                                  /* NULL                                     */
};

/* Uses one block of each stream, at `offset`.   Errors: ENOMEM */
int dtn_permute_init(struct dtn_permute *permute, uint64_t seed,
                     int64_t offset, int64_t n, struct dtensor_error *err);
void dtn_permute_fini(struct dtn_permute *permute);

/* Element i of the permutation. */
int64_t dtn_permute_at(const struct dtn_permute *permute, int64_t i);

#endif
