/* sample.c - arrays to compute with in tests */
#include "tests/math/sample.h"
#include "base/dtype.h"
#include "tests/support/rand.h"

#include <math.h>
#include <stdlib.h>

struct dtn_array sample_new(uint64_t *seed, enum dtensor_dtype dtype, int ndim,
                            const int64_t shape[], bool odd)
{
    struct dtn_array array = { .dtype = dtype, .ndim = ndim };
    int64_t size = 1;
    int order[DTENSOR_MAX_DIMS] = { 0 };

    for (int d = 0; d < ndim; d++) {
        const int other = odd ? rand_below(seed, d + 1) : d;

        order[d] = order[other];
        order[other] = d;
    }
    for (int i = ndim - 1; i >= 0; i--) {
        const int d = odd ? order[i] : i;

        array.shape[d] = shape[d];
        array.stride[d] = size;
        size *= shape[d] + (odd ? rand_below(seed, 2) : 0);
        size += odd && rand_below(seed, 4) == 0;
    }
    array.data = calloc((size_t)size + 1, dtn_dtype_size(dtype));
    return array;
}

void sample_free(struct dtn_array *array)
{
    free(array->data);
    array->data = NULL;
}

static void fill_one(uint64_t *seed, enum dtensor_dtype dtype, void *element,
                     bool special)
{
    static const double odd[] = { 0.0, -0.0, (double)INFINITY,
                                  (double)-INFINITY, (double)NAN };
    const double value = (rand_below(seed, 257) - 128) / 16.0;

    if (dtn_dtype_kind(dtype) == DTN_DTYPE_COMPLEX) {
        const enum dtensor_dtype part = dtype == DTENSOR_C64 ? DTENSOR_F32
                                                             : DTENSOR_F64;

        dtn_store(part, element, 0, value);
        dtn_store(part, element, 1, (rand_below(seed, 257) - 128) / 16.0);
    } else if (dtype == DTENSOR_BOOL) {
        dtn_store(dtype, element, 0, rand_below(seed, 2));
    } else if (!dtn_dtype_is_float(dtype)) {
        dtn_store_int(dtype, element, 0, rand_below(seed, 4) == 0
                          ? (int64_t)rand_next(seed)
                          : rand_below(seed, 41) - 20);
    } else {
        dtn_store(dtype, element, 0, special && rand_below(seed, 6) == 0
                                         ? odd[rand_below(seed, 5)] : value);
    }
}

void sample_fill(uint64_t *seed, const struct dtn_array *array, bool special)
{
    int64_t index[DTENSOR_MAX_DIMS] = { 0 };

    if (dtn_array_count(array) == 0)
        return;
    do
        fill_one(seed, array->dtype, sample_at(array, index), special);
    while (sample_next(array, index));
}

void sample_shape(uint64_t *seed, int ndim, int most, int64_t shape[])
{
    for (int d = 0; d < ndim; d++) {
        const int kind = rand_below(seed, 12);

        shape[d] = kind == 0 ? 0 : kind < 3 ? 1 : 1 + rand_below(seed, most);
    }
}

void *sample_at(const struct dtn_array *array, const int64_t index[])
{
    int64_t at = 0;

    for (int d = 0; d < array->ndim; d++)
        at += index[d] * array->stride[d];
    return (char *)array->data + at * (int64_t)dtn_dtype_size(array->dtype);
}

bool sample_next(const struct dtn_array *array, int64_t index[])
{
    for (int d = array->ndim - 1; d >= 0; d--) {
        if (++index[d] < array->shape[d])
            return true;
        index[d] = 0;
    }
    return false;
}

void sample_broadcast(const struct dtn_array *operand, int ndim,
                      const int64_t index[], int64_t found[])
{
    for (int d = 0; d < operand->ndim; d++)
        found[d] = operand->shape[d] == 1 ? 0
                 : index[ndim - operand->ndim + d];
}

/* The distance of a value's neighbours in the type. */
static double unit_of(enum dtensor_dtype dtype, double value)
{
    static const struct { int digits, least; } types[] = {
        [DTENSOR_F32] = { 23, -149 },  [DTENSOR_F64] = { 52, -1074 },
        [DTENSOR_F16] = { 10, -24 },   [DTENSOR_BF16] = { 7, -133 },
        [DTENSOR_F8E4M3] = { 3, -9 },  [DTENSOR_F8E5M2] = { 2, -16 },
        [DTENSOR_C64] = { 23, -149 },  [DTENSOR_C128] = { 52, -1074 },
    };
    int exponent;

    frexp(value, &exponent);
    exponent -= 1 + types[dtype].digits;
    return ldexp(1.0, exponent > types[dtype].least ? exponent
                                                    : types[dtype].least);
}

bool sample_close(enum dtensor_dtype dtype, double got, double want,
                  double ulps, double least)
{
    char element[16];

    dtn_store(dtype, element, 0, want);
    want = dtn_load(dtype, element, 0);
    if (want != want || got != got)
        return want != want && got != got;
    if (isinf(want) || isinf(got))
        return want == got;
    return fabs(got - want) <= ulps * unit_of(dtype, want) ||
           fabs(got - want) <= least;
}
