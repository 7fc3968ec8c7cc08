/* copy.c - operators that copy elements of this rank, and nothing else
 *
 * Each is a copy between two views of the same shape.  The second half of a cat
 * along dimension 1 of 4x3 and 4x5 is columns 3 to 7 of the output, 4x8.  What
 * is sharded between ranks is sharded alike on both sides, so the copy is the
 * same as that of the whole.
 */
#include "op/local/copy.h"
#include "op/device.h"
#include "base/dtype.h"
#include "dtensor.h"

#include <stdint.h>
#include <string.h>

int dtn_local_same(const struct dtn_local *local, const struct dtn_parts *parts,
                   struct dtensor_error *err)
{
    const struct dtn_array *in = &parts->in[parts->nin - 1];
    struct dtn_array like = *in;

    if (local->flags & DTN_LOCAL_BROADCAST)
        like = parts->out[0];
    like.data = parts->out[0].data;
    if (like.data != in->data)
        dtn_op_copy(parts, &like, in);
    return 0;
}

int dtn_local_fill(const struct dtn_local *local, const struct dtn_parts *parts,
                   struct dtensor_error *err)
{
    const double value = local->which == DTN_FILL_ZEROS ? 0
                       : local->which == DTN_FILL_ONES ? 1
                       : parts->args->value;

    dtn_op_fill(parts, &parts->out[0], value);
    return 0;
}

/* transpose names two dimensions, permute all. */
int dtn_local_permute(const struct dtn_local *local,
                      const struct dtn_parts *parts, struct dtensor_error *err)
{
    const int ndim = parts->in->ndim;
    struct dtn_array view = *parts->in;
    int order[DTENSOR_MAX_DIMS];

    for (int i = 0; i < parts->args->ndims; i++)
        order[i] = dtn_local_dim(parts, i, ndim);
    view = local->which ? dtn_array_swapped(&view, order[0], order[1])
                        : dtn_array_permuted(&view, order);
    dtn_op_copy(parts, &parts->out[0], &view);
    return 0;
}

/* Of the first `done` elements along a dimension make `all`: double what is
 * there again and again.
 */
static void repeat_along(const struct dtn_parts *parts,
                         const struct dtn_array *out, int dim, int64_t done)
{
    const int64_t all = out->shape[dim];
    struct dtn_array to, from;

    for (int64_t more; done < all; done += more) {
        more = all - done < done ? all - done : done;
        to = dtn_array_sliced(out, dim, done, more, 1);
        from = dtn_array_sliced(out, dim, 0, more, 1);
        dtn_op_copy(parts, &to, &from);
    }
}

/* The input becomes the first corner of the output, which then grows along one
 * dimension after another, the last one first.
 */
int dtn_local_repeat(const struct dtn_local *local,
                     const struct dtn_parts *parts, struct dtensor_error *err)
{
    const int missing = parts->out->ndim - parts->in->ndim;
    struct dtn_array corner = parts->out[0], in;
    int64_t shape[DTENSOR_MAX_DIMS];

    if (dtn_array_count(&corner) == 0)
        return 0;
    for (int d = 0; d < corner.ndim; d++)
        shape[d] = d < missing ? 1 : parts->in->shape[d - missing];
    memcpy(corner.shape, shape, sizeof shape);
    in = dtn_array_packed(parts->in->data, parts->in->dtype, corner.ndim,
                          shape);
    dtn_op_copy(parts, &corner, &in);
    for (int d = corner.ndim - 1; d >= 0; d--) {
        corner.shape[d] = parts->out->shape[d];
        repeat_along(parts, &corner, d, shape[d]);
    }
    return 0;
}

/* What an array has of each row of the result of a cat along dimension dim > 0.
 */
static size_t row_bytes(const struct dtn_array *array, int dim)
{
    return (size_t)array->stride[dim - 1] * dtn_dtype_size(array->dtype);
}

/* Line by line: for some places of the two rows in their pages memcpy() of 2
 * KiB goes backward, and takes twice as long.
 */
static void row_copy(char *to, const char *from, size_t bytes)
{
    enum { LINE = 64 };
    size_t at = 0;

    for (; at + LINE <= bytes; at += LINE)
        memcpy(to + at, from + at, LINE);
    memcpy(to + at, from + at, bytes - at);
}

/* A row of each input in turn: so the output, the larger part of the memory, is
 * written from its start to its end.
 */
static void cat_rows(const struct dtn_parts *parts, int dim)
{
    const struct dtn_array *out = parts->out;
    const int64_t rows = dtn_array_count(out) / out->stride[dim - 1];
    char *to = out->data;

    for (int64_t r = 0; r < rows; r++)
        for (int i = 0; i < parts->nin; i++) {
            const size_t bytes = row_bytes(&parts->in[i], dim);

            if (bytes > 0)
                row_copy(to, (const char *)parts->in[i].data +
                             (size_t)r * bytes, bytes);
            to += bytes;
        }
}

int dtn_local_cat(const struct dtn_local *local, const struct dtn_parts *parts,
                  struct dtensor_error *err)
{
    enum { LONG = 1024 };
    const int dim = dtn_local_dim(parts, 0, parts->out->ndim);
    int64_t at = 0;

    if (!parts->device && dim > 0 && row_bytes(parts->out, dim) >= LONG) {
        cat_rows(parts, dim);
        return 0;
    }
    for (int i = 0; i < parts->nin; i++) {
        const int64_t size = parts->in[i].shape[dim];
        const struct dtn_array view = dtn_array_sliced(&parts->out[0], dim, at,
                                                       size, 1);

        dtn_op_copy(parts, &view, &parts->in[i]);
        at += size;
    }
    return 0;
}

int dtn_local_stack(const struct dtn_local *local,
                    const struct dtn_parts *parts, struct dtensor_error *err)
{
    const int dim = dtn_local_dim(parts, 0, parts->out->ndim);

    for (int i = 0; i < parts->nin; i++) {
        const struct dtn_array view = dtn_array_selected(&parts->out[0], dim,
                                                         i);

        dtn_op_copy(parts, &view, &parts->in[i]);
    }
    return 0;
}

int dtn_local_split(const struct dtn_local *local,
                    const struct dtn_parts *parts, struct dtensor_error *err)
{
    const int dim = dtn_local_dim(parts, 0, parts->in->ndim);

    for (int i = 0; i < parts->nout; i++) {
        const struct dtn_array view = dtn_array_sliced(
            parts->in, dim, i * parts->args->count, parts->out[i].shape[dim],
            1);

        dtn_op_copy(parts, &parts->out[i], &view);
    }
    return 0;
}

int dtn_local_unbind(const struct dtn_local *local,
                     const struct dtn_parts *parts, struct dtensor_error *err)
{
    const int dim = dtn_local_dim(parts, 0, parts->in->ndim);

    for (int i = 0; i < parts->nout; i++) {
        const struct dtn_array view = dtn_array_selected(parts->in, dim, i);

        dtn_op_copy(parts, &parts->out[i], &view);
    }
    return 0;
}

int dtn_local_select(const struct dtn_local *local,
                     const struct dtn_parts *parts, struct dtensor_error *err)
{
    const int dim = dtn_local_dim(parts, 0, parts->in->ndim);
    const struct dtn_array view = dtn_array_selected(parts->in, dim,
                                                     parts->args->start);

    dtn_op_copy(parts, &parts->out[0], &view);
    return 0;
}

/* A slice of everything may be sharded along its dimension; then it is a copy.
 */
int dtn_local_slice(const struct dtn_local *local,
                    const struct dtn_parts *parts, struct dtensor_error *err)
{
    const struct dtensor_op_args *args = parts->args;
    const int dim = dtn_local_dim(parts, 0, parts->in->ndim);
    const bool full = parts->want->shape[dim] == parts->spec->shape[dim];
    const struct dtn_array view = dtn_array_sliced(
        parts->in, dim, full ? 0 : args->start, parts->out->shape[dim],
        args->step > 1 ? args->step : 1);

    dtn_op_copy(parts, &parts->out[0], &view);
    return 0;
}

int dtn_local_flip(const struct dtn_local *local, const struct dtn_parts *parts,
                   struct dtensor_error *err)
{
    struct dtn_array view = *parts->in;

    for (int i = 0; i < parts->args->ndims; i++) {
        const int dim = dtn_local_dim(parts, i, view.ndim);

        view = dtn_array_sliced(&view, dim, view.shape[dim] - 1,
                                view.shape[dim], -1);
    }
    dtn_op_copy(parts, &parts->out[0], &view);
    return 0;
}

int dtn_local_pad(const struct dtn_local *local, const struct dtn_parts *parts,
                  struct dtensor_error *err)
{
    const int dim = dtn_local_dim(parts, 0, parts->in->ndim);
    const struct dtn_array inside = dtn_array_sliced(
        &parts->out[0], dim, parts->args->start, parts->in->shape[dim], 1);

    dtn_op_fill(parts, &parts->out[0], parts->args->value);
    dtn_op_copy(parts, &inside, parts->in);
    return 0;
}
