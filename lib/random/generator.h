/* generator.h - seed, offset and rule */
#ifndef DTN_RANDOM_GENERATOR_H
#define DTN_RANDOM_GENERATOR_H

#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>

struct dtensor_generator {
    uint64_t seed;                /* any 64 bits                              */
    int64_t offset;               /* a multiple of 4                          */
    struct dtensor_random_rule rule;      /* tracker and fill                 */
    bool kept;                    /* a context owns it                        */
    bool from_file;               /* the seed is still what [seed] says       */
};

/* Give the context its default generator.   Errors: ENOMEM */
int dtn_generator_init(struct dtensor_ctx *ctx, struct dtensor_error *err);

/* `gen`, or the context's when it is NULL. */
struct dtensor_generator *dtn_generator_of(const struct dtensor_mesh *mesh,
                                           struct dtensor_generator *gen);

#endif
