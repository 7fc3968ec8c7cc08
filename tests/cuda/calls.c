/* calls.c - what a function of lib/math and a kernel make of the same arrays */
#include "tests/cuda/calls.h"
#include "base/dtype.h"
#include "tests/math/sample.h"
#include "tests/support/tap.h"

#include <string.h>

static bool is_nan(enum dtensor_dtype dtype, const void *at)
{
    const double x = dtn_dtype_kind(dtype) == DTN_DTYPE_FLOAT
                   ? dtn_load(dtype, at, 0) : 0;

    return x != x;
}

static bool element_same(const struct dtn_array *got,
                         const struct dtn_array *want, const int64_t index[],
                         bool either_zero)
{
    const void *a = sample_at(got, index), *b = sample_at(want, index);

    return memcmp(a, b, dtn_dtype_size(got->dtype)) == 0
        || (is_nan(got->dtype, a) && is_nan(got->dtype, b))
        || (either_zero && dtn_load(got->dtype, a, 0) == 0
            && dtn_load(got->dtype, b, 0) == 0);
}

bool call_same(const char *what, const struct call *call, bool either_zero)
{
    const struct dtn_array *got = &call->got, *want = &call->want;
    int64_t index[DTENSOR_MAX_DIMS] = { 0 }, place = 0;

    if (dtn_array_count(got) == 0)
        return true;
    do {
        if (!element_same(got, want, index, either_zero)) {
            note("%s: element %lld of %s is %.17g and not %.17g", what,
                 (long long)place, dtensor_dtype_name(got->dtype),
                 dtn_load(got->dtype, sample_at(got, index), 0),
                 dtn_load(got->dtype, sample_at(want, index), 0));
            return false;
        }
        place++;
    } while (sample_next(got, index));
    return true;
}

void call_outputs(uint64_t *seed, struct call *call, enum dtensor_dtype dtype,
                  int ndim, const int64_t shape[], bool odd)
{
    uint64_t again = *seed;

    call->want = sample_new(&again, dtype, ndim, shape, odd);
    call->got = sample_new(seed, dtype, ndim, shape, odd);
}

void call_end(struct call *call)
{
    for (int i = 0; i < call->nin; i++)
        sample_free(&call->in[i]);
    sample_free(&call->want);
    sample_free(&call->got);
}
