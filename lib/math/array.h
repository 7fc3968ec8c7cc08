/* array.h - strided arrays in the memory of this rank */
#ifndef DTN_MATH_ARRAY_H
#define DTN_MATH_ARRAY_H

#include "dtensor.h"

#include <stddef.h>
#include <stdint.h>

/* An array of `ndim` dimensions; with none it is one element.  A stride is the
 * distance of two neighbours, in elements; with stride 0 all elements along the
 * dimension are the same one, which is how an array is broadcast.  Nothing is
 * owned.
 */
struct dtn_array {
    void *data;                   /* element 0, 0, ..., 0                     */
    enum dtensor_dtype dtype;     /* of an element                            */
    int ndim;                     /* dimensions in use, from 0                */
    int64_t shape[DTENSOR_MAX_DIMS];  /* elements along each dimension        */
    int64_t stride[DTENSOR_MAX_DIMS]; /* elements from one to the next        */
};

/* Row-major without gaps. */
struct dtn_array dtn_array_packed(void *data, enum dtensor_dtype dtype,
                                  int ndim, const int64_t shape[]);

int64_t dtn_array_count(const struct dtn_array *array);

/* The array with the shape of `like`, broadcast: its last dimension is the last
 * one of `like`; where it has size 1 or no dimension, the stride is 0.
 */
struct dtn_array dtn_array_expanded(const struct dtn_array *array,
                                    const struct dtn_array *like);

/* Dimensions a and b exchanged. */
struct dtn_array dtn_array_swapped(const struct dtn_array *array, int a, int b);

/* Dimension i of the result is dimension order[i] of the array. */
struct dtn_array dtn_array_permuted(const struct dtn_array *array,
                                    const int order[]);

/* `count` elements along dimension `dim`: element `first` and each `step`-th
 * after it; a negative step goes backward.
 */
struct dtn_array dtn_array_sliced(const struct dtn_array *array, int dim,
                                  int64_t first, int64_t count, int64_t step);

/* The array without dimension `dim`, at element `i` of it. */
struct dtn_array dtn_array_selected(const struct dtn_array *array, int dim,
                                    int64_t i);

/* out = in, elements of one type, two arrays of one shape that do not overlap.
 */
void dtn_array_copy(const struct dtn_array *out, const struct dtn_array *in);

#endif
