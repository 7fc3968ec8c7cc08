/* random_calls.h - every random call by number
 *
 * What holds for one is so asked of all: call_it(UNIFORM, &fine[UNIFORM], t,
 * gen, &out, &err) fills t, call_it(RAND, ...) makes *out of t's spec.
 */
#ifndef TESTS_RANDOM_CALLS_H
#define TESTS_RANDOM_CALLS_H

#include "dtensor.h"
#include "tests/support/tensor_job.h"

#include <stdint.h>

enum call {
    UNIFORM, NORMAL, LOG_NORMAL, EXPONENTIAL, TRUNC_NORMAL, BERNOULLI, INTEGERS,
    BITS, IN_PLACE, RAND = IN_PLACE, RANDN, RANDINT, RANDPERM,
    DROPOUT, NCALLS
};

extern const char *const names[NCALLS];

struct numbers {
    double p[4];
    int64_t from, to;
};

/* Some that are right. */
extern const struct numbers fine[NCALLS];

/* `t` is filled, or its spec is that of *outp. */
int call_it(enum call call, const struct numbers *x, struct dtensor *t,
            struct dtensor_generator *gen, struct dtensor **outp,
            struct dtensor_error *err);

/* A type that the call has. */
enum dtensor_dtype dtype_of(enum call call);

/* A tensor of 12 elements in one dimension, all 3 (bool: true). */
struct dtensor *make_tensor(struct job *job, const char *placements,
                            enum dtensor_dtype dtype);
struct dtensor_random_rule rule_of(int tracker, int fill);

#endif
