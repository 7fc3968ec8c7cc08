/* naive_parts.c - parts of whole arrays: which element goes where */
#include "tests/op/naive.h"

#include <string.h>

static bool is(const char *op, const char *name)
{
    return strcmp(op, name) == 0;
}

/* Where the element of output `k` at `index` comes from: the input, and the
 * place in it.  False: nowhere.
 */
struct source {
    int input;
    int64_t at[DTENSOR_MAX_DIMS];
};

static void at_insert(int64_t at[], const int64_t index[], int d, int64_t i)
{
    memcpy(at, index, (size_t)d * sizeof at[0]);
    at[d] = i;
    memcpy(at + d + 1, index + d,
           (size_t)(DTENSOR_MAX_DIMS - 1 - d) * sizeof at[0]);
}

static void at_remove(int64_t at[], const int64_t index[], int d)
{
    memcpy(at, index, (size_t)d * sizeof at[0]);
    memcpy(at + d, index + d + 1,
           (size_t)(DTENSOR_MAX_DIMS - 1 - d) * sizeof at[0]);
}

static int dim_of(const struct dtensor_op_call *call, int i, int ndim)
{
    return (call->args.dim[i] + ndim) % ndim;
}

static bool source_permuted(const struct dtensor_op_call *call, int ndim,
                            const int64_t index[], struct source *from)
{
    const int a = dim_of(call, 0, ndim);

    if (is(call->op, "transpose")) {
        from->at[a] = index[dim_of(call, 1, ndim)];
        from->at[dim_of(call, 1, ndim)] = index[a];
        return true;
    }
    for (int i = 0; i < ndim; i++)
        from->at[dim_of(call, i, ndim)] = index[i];
    return true;
}

/* The place in a table of the element at `index`, by the indices from input
 * `first` on; where the dimensions of the index begin.
 */
static int table_place(const struct dtensor_op_call *call,
                       const struct whole in[], int first,
                       const int64_t index[], int64_t at[])
{
    const int ndim = in->ndim, n = call->nin - first, wide = in[first].ndim;
    bool named[DTENSOR_MAX_DIMS] = { false };
    int least = ndim, most = 0, start, from = 0;

    for (int k = 0; k < n; k++) {
        const int d = dim_of(call, k, ndim);

        named[d] = true;
        least = d < least ? d : least;
        most = d > most ? d : most;
    }
    start = most - least + 1 == n ? least : 0;
    for (int d = 0; d < ndim; d++) {
        from += from == start ? wide : 0;
        if (!named[d])
            at[d] = index[from++];
    }
    for (int k = 0; k < n; k++)
        at[dim_of(call, k, ndim)] =
            (int64_t)whole_at_place(&in[first + k], wide, index + start);
    return start;
}

static bool source_of(const struct dtensor_op_call *call,
                      const struct whole in[], int k, const int64_t index[],
                      struct source *from)
{
    const struct dtensor_op_args *args = &call->args;
    const char *op = call->op;
    const int ndim = in->ndim, d = args->ndims ? dim_of(call, 0, ndim) : 0;

    *from = (struct source){ .input = 0 };
    memcpy(from->at, index, sizeof from->at);
    if (is(op, "permute") || is(op, "transpose"))
        return source_permuted(call, ndim, index, from);
    if (is(op, "repeat")) {
        for (int i = 0; i < ndim; i++)
            from->at[i] = index[i + args->ndim - ndim] % in->shape[i];
    } else if (is(op, "cat")) {
        while (from->at[d] >= in[from->input].shape[d])
            from->at[d] -= in[from->input++].shape[d];
    } else if (is(op, "stack")) {
        const int at = (args->dim[0] + ndim + 1) % (ndim + 1);

        from->input = (int)index[at];
        at_remove(from->at, index, at);
    } else if (is(op, "split")) {
        from->at[d] += k * args->count;
    } else if (is(op, "unbind") || is(op, "select")) {
        at_insert(from->at, index, d, is(op, "select") ? args->start : k);
    } else if (is(op, "slice")) {
        from->at[d] = args->start + index[d] * (args->step > 1 ? args->step
                                                               : 1);
    } else if (is(op, "flip")) {
        for (int i = 0; i < args->ndims; i++)
            from->at[dim_of(call, i, ndim)] =
                in->shape[dim_of(call, i, ndim)] - 1 -
                index[dim_of(call, i, ndim)];
    } else if (is(op, "pad")) {
        from->at[d] -= args->start;
        from->input = from->at[d] < 0 || from->at[d] >= in->shape[d] ? -1 : 0;
    } else if (is(op, "gather")) {
        from->at[d] = (int64_t)whole_at_place(&in[1], ndim, index);
    } else if (is(op, "index_select")) {
        from->at[d] = (int64_t)in[1].at[index[d]];
    } else if (is(op, "index")) {
        table_place(call, in, 1, index, from->at);
    } else if (is(op, "tril")) {
        from->input = index[ndim - 1] <= index[ndim - 2] ? 0 : -1;
    } else if (is(op, "triu")) {
        from->input = index[ndim - 1] >= index[ndim - 2] ? 0 : -1;
    } else {
        return false;
    }
    return true;
}

static void embedding(const struct whole in[], struct whole *out)
{
    const int64_t width = in->shape[1];

    for (int64_t i = 0; i < whole_count(out); i++)
        out->at[i] = in->at[(int64_t)in[1].at[i / width] * width + i % width];
}

static void embedding_backward(const struct dtensor_op_call *call,
                               const struct whole in[], struct whole *out)
{
    const int64_t width = out->shape[1];

    memset(out->at, 0, sizeof out->at);
    if (call->nin > 2)
        memcpy(out->at, in[2].at, sizeof out->at);
    for (int64_t i = 0; i < whole_count(in); i++)
        out->at[(int64_t)in[1].at[i / width] * width + i % width] += in->at[i];
}

static void scatter(const struct dtensor_op_call *call, const struct whole in[],
                    struct whole *out)
{
    const int d = dim_of(call, 0, in->ndim);
    int64_t index[DTENSOR_MAX_DIMS] = { 0 };

    memcpy(out->at, in->at, sizeof out->at);
    do {
        int64_t to = 0;

        for (int k = 0; k < in->ndim; k++)
            to = to * in->shape[k] + (k == d
                 ? (int64_t)whole_at_place(&in[1], in->ndim, index) : index[k]);
        if (is(call->op, "scatter"))
            out->at[to] = 0;
        out->at[to] += whole_at_place(&in[2], in->ndim, index);
    } while (place_next(in->ndim, in[1].shape, index));
}

/* The shape of the elements that are put. */
static int put_shape(const struct dtensor_op_call *call,
                     const struct whole in[], int64_t shape[])
{
    const int64_t none[DTENSOR_MAX_DIMS] = { 0 };
    const int wide = in[2].ndim;
    int64_t at[DTENSOR_MAX_DIMS];
    const int start = table_place(call, in, 2, none, at);
    int n = 0;

    for (int d = 0; d <= in->ndim; d++) {
        bool named = d == in->ndim;

        if (n == start) {
            memcpy(shape + n, in[2].shape, (size_t)wide * sizeof shape[0]);
            n += wide;
        }
        for (int k = 2; k < call->nin; k++)
            named = named || dim_of(call, k - 2, in->ndim) == d;
        if (!named)
            shape[n++] = in->shape[d];
    }
    return n;
}

static void index_put(const struct dtensor_op_call *call,
                      const struct whole in[], struct whole *out)
{
    int64_t shape[DTENSOR_MAX_DIMS], index[DTENSOR_MAX_DIMS] = { 0 };
    const int ndim = put_shape(call, in, shape);

    memcpy(out->at, in->at, sizeof out->at);
    do {
        int64_t at[DTENSOR_MAX_DIMS], to = 0;

        table_place(call, in, 2, index, at);
        for (int d = 0; d < in->ndim; d++)
            to = to * in->shape[d] + at[d];
        if (is(call->op, "index_put"))
            out->at[to] = 0;
        out->at[to] += whole_at_place(&in[1], ndim, index);
    } while (place_next(ndim, shape, index));
}

static bool naive_indexed(const struct dtensor_op_call *call,
                          const struct whole in[], struct whole *out)
{
    if (is(call->op, "embedding"))
        embedding(in, out);
    else if (is(call->op, "embedding_backward"))
        embedding_backward(call, in, out);
    else if (is(call->op, "scatter") || is(call->op, "scatter_add"))
        scatter(call, in, out);
    else if (is(call->op, "index_put") || is(call->op, "index_put_add"))
        index_put(call, in, out);
    else
        return false;
    return true;
}

bool naive_parts(const struct dtensor_op_call *call, const struct whole in[],
                 int nout, struct whole out[])
{
    const int64_t first[DTENSOR_MAX_DIMS] = { 0 };
    struct source from;

    if (naive_indexed(call, in, out))
        return true;
    if (whole_count(in) > 0 && !source_of(call, in, 0, first, &from))
        return false;
    for (int k = 0; k < nout; k++) {
        int64_t index[DTENSOR_MAX_DIMS] = { 0 }, at = 0;

        if (whole_count(&out[k]) == 0)
            continue;
        do {
            source_of(call, in, k, index, &from);
            out[k].at[at++] = from.input < 0 ? is(call->op, "pad")
                            ? call->args.value : 0
                            : whole_at_place(&in[from.input],
                                             in[from.input].ndim, from.at);
        } while (place_next(out[k].ndim, out[k].shape, index));
    }
    return true;
}
