/* permute.h - random permutations */
#ifndef DTN_RANDOM_PERMUTE_H
#define DTN_RANDOM_PERMUTE_H

#include "dtensor.h"

#include <stdint.h>

struct dtn_permute {
    uint64_t seed, block;
    int64_t n;
    int half_bits;
    int64_t *sorted;              /* of a small one: all of it                 */
};

/* Uses four words of every stream from `offset` on.   Errors: ENOMEM */
int dtn_permute_init(struct dtn_permute *permute, uint64_t seed,
                     int64_t offset, int64_t n, struct dtensor_error *err);
void dtn_permute_fini(struct dtn_permute *permute);
int64_t dtn_permute_at(const struct dtn_permute *permute, int64_t i);

#endif
