/* loop.c - walking over several arrays at once
 *
 * For arrays of 2 x 3 x 4 without gaps there is one run of 24.  If the second
 * array is broadcast along the first dimension, its stride is 0 there: two runs
 * of 12.
 */
#include "math/loop.h"
#include "base/dtype.h"
#include "dtensor.h"

/* Is dimension d contiguous, in all arrays, with the last dimension of the
 * loop?
 */
static bool loop_flat(const struct dtn_loop *loop,
                      const struct dtn_array arrays[], int d)
{
    for (int i = 0; i < loop->narrays; i++)
        if (loop->stride[i][loop->ndim - 1] !=
            arrays[i].shape[d] * arrays[i].stride[d])
            return false;
    return true;
}

static void loop_add(struct dtn_loop *loop, const struct dtn_array arrays[],
                     int d)
{
    if (arrays[0].shape[d] == 1)
        return;
    if (loop->ndim > 0 && loop_flat(loop, arrays, d))
        loop->shape[loop->ndim - 1] *= arrays[0].shape[d];
    else
        loop->shape[loop->ndim++] = arrays[0].shape[d];
    for (int i = 0; i < loop->narrays; i++)
        loop->stride[i][loop->ndim - 1] = arrays[i].stride[d];
}

/* The last dimension becomes the run; the strides of the others become bytes.
 */
static void loop_take_run(struct dtn_loop *loop)
{
    if (loop->ndim == 0)
        return;
    loop->run = loop->shape[--loop->ndim];
    for (int i = 0; i < loop->narrays; i++) {
        loop->step[i] = loop->stride[i][loop->ndim];
        for (int d = 0; d < loop->ndim; d++)
            loop->stride[i][d] *= (int64_t)loop->size[i];
    }
}

void dtn_loop_begin(struct dtn_loop *loop, const struct dtn_array arrays[],
                    int narrays)
{
    loop->narrays = narrays;
    loop->ndim = 0;
    loop->run = 1;
    loop->empty = dtn_array_count(&arrays[0]) == 0;
    for (int i = 0; i < narrays; i++) {
        loop->at[i] = arrays[i].data;
        loop->size[i] = dtn_dtype_size(arrays[i].dtype);
        loop->step[i] = 1;
    }
    for (int d = 0; d < arrays[0].ndim; d++)
        loop_add(loop, arrays, d);
    loop_take_run(loop);
    for (int d = 0; d < loop->ndim; d++)
        loop->index[d] = 0;
}

bool dtn_loop_next(struct dtn_loop *loop)
{
    for (int d = loop->ndim - 1; d >= 0; d--) {
        const bool over = ++loop->index[d] == loop->shape[d];
        const int64_t back = over ? loop->shape[d] - 1 : -1;

        for (int i = 0; i < loop->narrays; i++)
            loop->at[i] -= back * loop->stride[i][d];
        if (!over)
            return true;
        loop->index[d] = 0;
    }
    return false;
}
