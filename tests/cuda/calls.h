/* calls.h - what a function of lib/math and a kernel make of the same arrays */
#ifndef TESTS_CUDA_CALLS_H
#define TESTS_CUDA_CALLS_H

#include "math/array.h"

#include <stdbool.h>
#include <stdint.h>

enum { OPERANDS = 3 };

/* One call: what comes out here and there has the same layout. */
struct call {
    struct dtn_array in[OPERANDS], want, got;
    const struct dtn_array *at[OPERANDS];
    int nin;
};

/* Make call->want and call->got, alike and zeroed; `odd` as of sample_new(). */
void call_outputs(uint64_t *seed, struct call *call, enum dtensor_dtype dtype,
                  int ndim, const int64_t shape[], bool odd);
void call_end(struct call *call);

/* Have both the same bytes in each element?  Two NaN are the same, and with
 * `either_zero` 0 and -0 are.  Else `what` is noted, and the first difference.
 */
bool call_same(const char *what, const struct call *call, bool either_zero);

#endif
