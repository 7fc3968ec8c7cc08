/* device.c - computing where the tensors are: on the CPU or on a GPU
 *
 * A cat of two tensors is two launches; the second follows the first on the
 * stream of the device.
 */
#include "op/device.h"
#include "cuda/compute.h"
#include "cuda/compute_backward.h"
#include "cuda/compute_lines.h"
#include "cuda/compute_order.h"
#include "cuda/compute_rows.h"
#include "device/memory.h"
#include "math/norm_backward.h"
#include "math/order.h"
#include "math/select.h"
#include "math/softmax.h"

#include <stdbool.h>
#include <stdlib.h>

void dtn_op_launch(struct dtn_op_device *device, bool there,
                          struct dtn_launch *launch)
{
    device->lacks |= !there;
    if (device->memory && there && device->rc >= 0)
        device->rc = device->memory->ops->launch(device->memory, launch);
}

void dtn_op_copy(const struct dtn_parts *parts, const struct dtn_array *out,
                 const struct dtn_array *in)
{
    struct dtn_launch launch;

    if (!parts->device) {
        dtn_array_copy(out, in);
        return;
    }
    dtn_launch_copy(out, in, &launch);
    dtn_op_launch(parts->device, true, &launch);
}

void dtn_op_fill(const struct dtn_parts *parts, const struct dtn_array *out,
                 double value)
{
    struct dtn_launch launch;

    if (!parts->device) {
        dtn_array_fill(out, value);
        return;
    }
    dtn_launch_set(out, value, &launch);
    dtn_op_launch(parts->device, true, &launch);
}

void dtn_op_cast(const struct dtn_parts *parts, const struct dtn_array *out,
                 const struct dtn_array *in)
{
    struct dtn_launch launch;

    if (!parts->device)
        dtn_cast(out, in);
    else if (out->dtype == in->dtype)
        dtn_op_copy(parts, out, in);
    else
        dtn_op_launch(parts->device, dtn_launch_cast(out, in, &launch),
                      &launch);
}

void dtn_op_where(const struct dtn_parts *parts, const struct dtn_array *out,
                  const struct dtn_array *condition,
                  const struct dtn_array *yes, const struct dtn_array *no)
{
    struct dtn_launch launch;

    if (!parts->device) {
        dtn_where(out, condition, yes, no);
        return;
    }
    dtn_launch_where(out, condition, yes, no, &launch);
    dtn_op_launch(parts->device, true, &launch);
}

void dtn_op_pointwise(const struct dtn_parts *parts, enum dtn_pointwise op,
                      const struct dtn_array *out,
                      const struct dtn_array *const in[],
                      const double args[2])
{
    struct dtn_launch launch;

    if (parts->device)
        dtn_op_launch(parts->device,
                      dtn_launch_pointwise(op, out, in, args, &launch),
                      &launch);
    else
        dtn_pointwise(op, out, in, args);
}

/* ---------------------------------------------------------------- rows --- */

static void device_needs(struct dtn_op_device *device, size_t bytes)
{
    if (device->bytes < device->taken + bytes)
        device->bytes = device->taken + bytes;
}

/* What the local function has not taken. */
static void *device_work(const struct dtn_op_device *device)
{
    return device->work ? (char *)device->work + device->taken : NULL;
}

void *dtn_op_room(const struct dtn_parts *parts, size_t bytes)
{
    struct dtn_op_device *device = parts->device;
    void *room;

    if (!device)
        return parts->work;
    room = device_work(device);
    device->taken += (bytes + 63) / 64 * 64;
    device_needs(device, 0);
    return room;
}

/* Where launches are made. */
static struct dtn_launches *made_by(const struct dtn_parts *parts)
{
    return &parts->device->launches;
}

/* All of the device's launches, or note what they need. */
static void device_launch_all(struct dtn_op_device *device)
{
    struct dtn_launches *launches = &device->launches;

    device_needs(device, launches->bytes);
    for (int i = 0; i < launches->n; i++)
        dtn_op_launch(device, true, &launches->launch[i]);
}

void dtn_op_reduce(const struct dtn_parts *parts, enum dtn_reduction_kind kind,
                   const struct dtn_array *out, const struct dtn_array *in,
                   double p)
{
    if (!parts->device)
        dtn_reduce_dims(kind, out, in, p, parts->room);
    else if (dtn_launch_reduce(kind, out, in, p, device_work(parts->device),
                               made_by(parts)))
        device_launch_all(parts->device);
    else
        parts->device->lacks = true;
}

void dtn_op_softmax(const struct dtn_parts *parts, bool logarithm,
                    const struct dtn_array *out, const struct dtn_array *in,
                    int dim)
{
    if (!parts->device) {
        dtn_softmax(logarithm, out, in, dim, parts->room);
        return;
    }
    dtn_launch_softmax(logarithm, out, in, dim, device_work(parts->device),
                       made_by(parts));
    device_launch_all(parts->device);
}

void dtn_op_norm(const struct dtn_parts *parts, const struct dtn_norm *norm)
{
    if (!parts->device) {
        dtn_norm(norm);
        return;
    }
    dtn_launch_norm(norm, device_work(parts->device), made_by(parts));
    device_launch_all(parts->device);
}

void dtn_op_softmax_finish(const struct dtn_parts *parts,
                           const struct dtn_array *out,
                           const struct dtn_array *in,
                           const struct dtn_array *most,
                           const struct dtn_array *sum, int dim)
{
    if (!parts->device) {
        dtn_softmax_finish(false, out, in, most, sum);
        return;
    }
    dtn_launch_softmax_finish(out, in, most, sum, dim,
                              device_work(parts->device), made_by(parts));
    device_launch_all(parts->device);
}

void dtn_op_cross_entropy(const struct dtn_parts *parts,
                          const struct dtn_row_loss *of)
{
    if (!parts->device) {
        dtn_cross_entropy(of);
        return;
    }
    dtn_launch_cross_entropy(of, device_work(parts->device), made_by(parts));
    device_launch_all(parts->device);
}

void dtn_op_extreme(const struct dtn_parts *parts, bool largest,
                    const struct dtn_array *value,
                    const struct dtn_array *index,
                    const struct dtn_array *in, int dim)
{
    if (!parts->device) {
        dtn_extreme(largest, value, index, in, dim, parts->room);
        return;
    }
    dtn_launch_extreme(largest, value, index, in, dim,
                       device_work(parts->device), made_by(parts));
    device_launch_all(parts->device);
}

void dtn_op_softmax_backward(const struct dtn_parts *parts, bool logarithm,
                             const struct dtn_array *in_grad,
                             const struct dtn_array *grad,
                             const struct dtn_array *out, int dim)
{
    if (!parts->device) {
        dtn_softmax_backward(logarithm, in_grad, grad, out, dim);
        return;
    }
    dtn_launch_softmax_backward(logarithm, in_grad, grad, out, dim,
                                device_work(parts->device), made_by(parts));
    device_launch_all(parts->device);
}

void dtn_op_norm_backward(const struct dtn_parts *parts,
                          const struct dtn_norm_backward *norm)
{
    struct dtn_norm_backward here = *norm;
    here.sums = parts->work;
    if (!parts->device) {
        dtn_norm_backward(&here);
        return;
    }
    dtn_launch_norm_backward(norm, device_work(parts->device), made_by(parts));
    device_launch_all(parts->device);
}

/* --------------------------------------------------------------- index --- */

/* Copy to the host, and wait. */
static bool device_read(struct dtn_op_device *device, void *to,
                        const void *from, size_t bytes)
{
    const struct dtn_memory *memory = device->memory;

    if (device->rc >= 0)
        device->rc = memory->ops->copy(memory, to, from, bytes);
    if (device->rc >= 0)
        device->rc = dtn_memory_done(memory, device->rc);
    return device->rc == 0;
}

/* Which one it is: looked for by the CPU, in a copy. */
static int64_t index_find(struct dtn_op_device *device,
                          const struct dtn_array *index, int64_t size,
                          int64_t *value)
{
    const size_t bytes = (size_t)dtn_array_count(index) *
                         dtensor_dtype_size(index->dtype);
    struct dtn_array copy = *index;
    int64_t place = 0;

    *value = -1;
    copy.data = malloc(bytes);
    if (copy.data && device_read(device, copy.data, index->data, bytes))
        place = dtn_index_wrong(&copy, size, value);
    free(copy.data);
    return place;
}

/* The kernel sets a word, at which the CPU looks. */
int64_t dtn_op_index_wrong(const struct dtn_parts *parts,
                           const struct dtn_array *index, int64_t size,
                           int64_t *value)
{
    struct dtn_op_device *device = parts->device;
    uint32_t wrong = 0;
    struct dtn_launch launch;
    void *word;

    if (!device)
        return dtn_index_wrong(index, size, value);
    word = device_work(device);
    device_needs(device, sizeof wrong);
    if (!device->memory || dtn_array_count(index) == 0)
        return -1;
    device->rc = device->memory->ops->set(device->memory, word, 0,
                                          sizeof wrong);
    dtn_launch_index_check(index, size, word, &launch);
    dtn_op_launch(device, true, &launch);
    if (!device_read(device, &wrong, word, sizeof wrong) || !wrong)
        return -1;
    return index_find(device, index, size, value);
}

void dtn_op_gather(const struct dtn_parts *parts, const struct dtn_array *out,
                   const struct dtn_array *in, int dim,
                   const struct dtn_array *index, int64_t first)
{
    struct dtn_launch launch;

    if (!parts->device) {
        dtn_array_gather(out, in, dim, index, first);
        return;
    }
    dtn_launch_gather(out, in, dim, index, first, &launch);
    dtn_op_launch(parts->device, true, &launch);
}

/* A gather along dimension 0.  The rows of the table are broadcast to that
 * dimension.  A single index has no such dimension, so one of size 1 is put
 * first.
 */
void dtn_op_embedding(const struct dtn_parts *parts,
                      const struct dtn_array *out,
                      const struct dtn_array *table,
                      const struct dtn_array *index, int64_t first)
{
    const int more = out->ndim == 1, last = out->ndim - 1 + more;
    struct dtn_array to = *out, from = *out, at = *out;

    if (!parts->device) {
        dtn_embedding(out, table, index, first);
        return;
    }
    to.ndim = from.ndim = at.ndim = last + 1;
    for (int d = 0; d <= last; d++) {
        to.shape[d] = d < more ? 1 : out->shape[d - more];
        to.stride[d] = d < more ? out->shape[0] : out->stride[d - more];
        at.shape[d] = from.shape[d] = to.shape[d];
        at.stride[d] = d < last && d >= more ? index->stride[d - more] : 0;
        from.stride[d] = 0;
    }
    at.data = index->data;
    at.dtype = index->dtype;
    from.data = table->data;
    from.shape[0] = table->shape[0];
    from.stride[0] = table->stride[0];
    from.stride[last] = table->stride[1];
    dtn_op_gather(parts, &to, &from, 0, &at, first);
}

void dtn_op_index_select(const struct dtn_parts *parts,
                         const struct dtn_array *out,
                         const struct dtn_array *in, int dim,
                         const struct dtn_array *index, int64_t first)
{
    struct dtn_array at = *out;

    if (!parts->device) {
        dtn_index_select(out, in, dim, index, first);
        return;
    }
    at.data = index->data;
    at.dtype = index->dtype;
    for (int d = 0; d < out->ndim; d++)
        at.stride[d] = d == dim && index->ndim > 0 ? index->stride[0] : 0;
    dtn_op_gather(parts, out, in, dim, &at, first);
}

/* --------------------------------------------------------------- lines --- */

void dtn_op_scatter(const struct dtn_parts *parts, const struct dtn_array *out,
                    int dim, const struct dtn_array *index,
                    const struct dtn_array *from, bool adds)
{
    struct dtn_launch launch;

    if (!parts->device) {
        dtn_array_scatter(out, dim, index, from, adds);
        return;
    }
    dtn_launch_scatter(out, dim, index, from, adds, &launch);
    dtn_op_launch(parts->device, true, &launch);
}

void dtn_op_embedding_backward(const struct dtn_parts *parts,
                               const struct dtn_array *table,
                               const struct dtn_array *grad,
                               const struct dtn_array *index, int64_t first)
{
    struct dtn_launch launch;

    if (!parts->device) {
        dtn_embedding_backward(table, grad, index, first);
        return;
    }
    dtn_launch_embedding_backward(table, grad, index, first, &launch);
    dtn_op_launch(parts->device, true, &launch);
}

void dtn_op_triangle(const struct dtn_parts *parts, bool lower,
                     int64_t diagonal, const struct dtn_array *out,
                     const struct dtn_array *in)
{
    struct dtn_launch launch;

    if (!parts->device) {
        dtn_triangle(lower, diagonal, out, in);
        return;
    }
    dtn_launch_triangle(lower, diagonal, out, in, &launch);
    dtn_op_launch(parts->device, true, &launch);
}

void dtn_op_cumulate(const struct dtn_parts *parts, bool product,
                     const struct dtn_array *out, const struct dtn_array *in,
                     int dim)
{
    struct dtn_launch launch;

    if (parts->device)
        dtn_op_launch(parts->device,
                      dtn_launch_cumulate(product, out, in, dim, &launch),
                      &launch);
    else
        dtn_cumulate(product, out, in, dim, parts->room);
}

/* If the caller only asks, nothing is launched: all types have kernels. */
void dtn_op_order(const struct dtn_parts *parts, const struct dtn_order *order,
                  const struct dtn_array *in)
{
    struct dtn_op_device *device = parts->device;
    struct dtn_launch launch;

    if (!device) {
        dtn_order(order, in, parts->work);
        return;
    }
    device_needs(device, dtn_launch_order_bytes(order, in));
    for (int i = 0; device->memory
                    && dtn_launch_order(order, in, device_work(device), i,
                                        &launch); i++)
        dtn_op_launch(device, true, &launch);
}
