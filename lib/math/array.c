/* array.c - strided arrays: other views of the same elements
 *
 * A view changes shape and strides, never an element.  Every second column of
 * 4 x 6, from column 1 on, is dtn_array_sliced(a, 1, 1, 3, 2): shape 4 x 3,
 * strides 6 and 2, its first element one further.
 */
#include "math/array.h"
#include "base/box.h"
#include "base/dtype.h"
#include "dtensor.h"

struct dtn_array dtn_array_packed(void *data, enum dtensor_dtype dtype,
                                  int ndim, const int64_t shape[])
{
    struct dtn_array array = { .data = data, .dtype = dtype, .ndim = ndim };
    int64_t stride = 1;

    for (int d = ndim - 1; d >= 0; d--) {
        array.shape[d] = shape[d];
        array.stride[d] = stride;
        stride *= shape[d];
    }
    return array;
}

int64_t dtn_array_count(const struct dtn_array *array)
{
    int64_t count = 1;

    for (int d = 0; d < array->ndim; d++)
        count *= array->shape[d];
    return count;
}

struct dtn_array dtn_array_expanded(const struct dtn_array *array,
                                    const struct dtn_array *like)
{
    const int missing = like->ndim - array->ndim;
    struct dtn_array view = { .data = array->data, .dtype = array->dtype,
                              .ndim = like->ndim };

    for (int d = 0; d < like->ndim; d++) {
        const bool has = d >= missing && array->shape[d - missing] != 1;

        view.shape[d] = like->shape[d];
        view.stride[d] = has ? array->stride[d - missing] : 0;
    }
    return view;
}

struct dtn_array dtn_array_swapped(const struct dtn_array *array, int a, int b)
{
    struct dtn_array view = *array;

    view.shape[a] = array->shape[b];
    view.stride[a] = array->stride[b];
    view.shape[b] = array->shape[a];
    view.stride[b] = array->stride[a];
    return view;
}

struct dtn_array dtn_array_permuted(const struct dtn_array *array,
                                    const int order[])
{
    struct dtn_array view = *array;

    for (int d = 0; d < array->ndim; d++) {
        view.shape[d] = array->shape[order[d]];
        view.stride[d] = array->stride[order[d]];
    }
    return view;
}

/* An empty view keeps the address: there may be no element `first`.  The step
 * after the last element may be up to 2^63.
 */
struct dtn_array dtn_array_sliced(const struct dtn_array *array, int dim,
                                  int64_t first, int64_t count, int64_t step)
{
    struct dtn_array view = *array;

    view.shape[dim] = count;
    if (count > 1)
        view.stride[dim] *= step;
    if (count > 0)
        view.data = (char *)array->data + first * array->stride[dim] *
                    (int64_t)dtn_dtype_size(array->dtype);
    return view;
}

struct dtn_array dtn_array_selected(const struct dtn_array *array, int dim,
                                    int64_t i)
{
    struct dtn_array view = dtn_array_sliced(array, dim, i, 1, 1);

    view.ndim--;
    for (int d = dim; d < view.ndim; d++) {
        view.shape[d] = view.shape[d + 1];
        view.stride[d] = view.stride[d + 1];
    }
    return view;
}

void dtn_array_copy(const struct dtn_array *out, const struct dtn_array *in)
{
    struct dtn_box box = { .ndim = out->ndim };

    for (int d = 0; d < out->ndim; d++) {
        box.size[d] = out->shape[d];
        box.dst_stride[d] = out->stride[d];
        box.src_stride[d] = in->stride[d];
    }
    dtn_box_copy(&box, dtn_dtype_size(out->dtype), out->data, in->data);
}
