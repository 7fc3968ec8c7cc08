/* fill.h - which block and lane an element gets */
#ifndef DTN_RANDOM_FILL_H
#define DTN_RANDOM_FILL_H

#include "dtensor.h"

#include <stdint.h>

struct dtn_dist;
struct dtn_elements;
struct dtn_formula;
struct dtn_launch;

/* The random numbers of one operation. */
struct dtn_random_stream {
    uint64_t seed;                /* the Philox key                           */
    uint64_t block;               /* first counter: offset / 4                */
    int64_t numel;                /* elements of the operation                */
    int64_t threads;              /* of the CUDA grid; 0: sequential          */
};

struct dtn_random_stream
dtn_random_stream_of(const struct dtensor_random_rule *rule, uint64_t seed,
                     int64_t offset, int64_t numel);

/* Adapt the distribution to the rule's fill.  To be called before the functions
 * below.
 */
void dtn_fill_adapt(const struct dtensor_random_rule *rule,
                    struct dtn_dist *dist);

/* By how much an operation on `numel` elements advances the offset. */
int64_t dtn_fill_need(const struct dtensor_random_rule *rule,
                      const struct dtn_dist *dist, int64_t numel);

/* The same for memory of any kind: `how` is a struct dtn_fill_how. */
struct dtn_fill_how {
    const struct dtn_random_stream *stream; /* where the numbers come from    */
    const struct dtn_dist *dist;          /* what is made of them             */
};
extern const struct dtn_formula dtn_fill_formula;

/* fill_kernel.c: the same as a launch of a kernel; see struct dtn_formula. */
void dtn_fill_launch(const struct dtn_elements *elements, void *out,
                     const void *const in[], struct dtn_launch *launch);

/* Write elements first .. first + count - 1 to `out`. */
void dtn_fill(const struct dtn_random_stream *stream,
              const struct dtn_dist *dist, int64_t first, int64_t count,
              void *out);

#endif
