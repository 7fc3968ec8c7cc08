/* view_map.c - which dimensions of a view are which of its input
 *
 * Every tensor here is row-major, so a view is a list of groups: some
 * neighbouring dimensions of the input have the elements of some neighbouring
 * dimensions of the output, in one order.  Of 2x3x4 as 6x4 the groups are
 * {2,3} -> {6} and {4} -> {4}.
 */
#include "op/view_map.h"
#include "op/words.h"
#include "layout/layout.h"
#include "dtensor.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static void map_group(struct dtn_view_map *map, enum dtn_view_kind kind,
                      const int from[2], const int to[2])
{
    map->group[map->n++] = (struct dtn_view_group){ kind, from[0], from[1],
                                                    to[0], to[1] };
}

/* One dimension of the input, or none (-1), becomes the next of the output, or
 * none (size -1).
 */
static void map_one(struct dtn_view_map *map, enum dtn_view_kind kind, int in,
                    int64_t size)
{
    map_group(map, kind, (const int[2]){ in < 0 ? 0 : in, in >= 0 },
              (const int[2]){ map->ndim, size >= 0 });
    if (size >= 0)
        map->shape[map->ndim++] = size;
}

/* ------------------------------------------------------- view, reshape --- */

/* Walk both shapes: take one dimension of each, then more of the side whose
 * product is smaller, until the products are equal.  A dimension of size 1 on
 * one side only is a group of its own.
 */
static void view_groups(const struct dtensor_spec *in, struct dtn_view_map *map)
{
    const int64_t *a = in->shape, *b = map->shape;
    int i = 0, j = 0;

    while (i < in->ndim || j < map->ndim) {
        const int from[2] = { i, 1 }, to[2] = { j, 1 };
        int64_t f = i < in->ndim ? a[i] : 1, t = j < map->ndim ? b[j] : 1;
        int nin, nout;

        if (i < in->ndim && f == 1 && t != 1) {
            map_group(map, DTN_VIEW_DROP, from, (const int[2]){ j, 0 });
            i++;
            continue;
        }
        if (j < map->ndim && t == 1 && (f != 1 || i == in->ndim)) {
            map_group(map, DTN_VIEW_KEEP, (const int[2]){ i, 0 }, to);
            j++;
            continue;
        }
        if (j == map->ndim) {
            map_group(map, DTN_VIEW_DROP, from, (const int[2]){ j, 0 });
            i++;
            continue;
        }
        for (nin = nout = 1; f != t; )
            if (f < t)
                f *= a[i + nin++];
            else
                t *= b[j + nout++];
        map_group(map, DTN_VIEW_KEEP, (const int[2]){ i, nin },
                  (const int[2]){ j, nout });
        i += nin;
        j += nout;
    }
}

/* args.shape, where one size may be -1. */
static int view_shape(const struct dtensor_op_call *call,
                      struct dtn_view_map *map, struct dtensor_error *err)
{
    const struct dtensor_spec *in = &call->in[0];
    const struct dtensor_op_args *args = &call->args;
    const int64_t all = dtn_numel(in->ndim, in->shape);
    char text[170];
    int64_t known = 1;
    int open = -1;

    map->ndim = args->ndim;
    for (int d = 0; d < args->ndim; d++) {
        map->shape[d] = args->shape[d];
        if (args->shape[d] == -1 && open < 0)
            open = d;
        else if (args->shape[d] < 0 || (args->shape[d] > 0 &&
                 known > INT64_MAX / args->shape[d]))
            known = -1;
        else
            known *= args->shape[d];
        if (known < 0)
            break;
    }
    if (open >= 0 && known > 0 && all % known == 0)
        map->shape[open] = all / known;
    else if (known != all || open >= 0)
        return dtn_op_fail(call, err, "%" PRId64 " elements do not become %s "
                           "(expected sizes of as many elements, of which one "
                           "may be -1)", all,
                           dtn_shape_words(args->ndim, args->shape, text,
                                           sizeof text));
    return 0;
}

static int map_view(const struct dtensor_op_call *call,
                    struct dtn_view_map *map, struct dtensor_error *err)
{
    const struct dtensor_spec *in = &call->in[0];
    int rc = view_shape(call, map, err);

    if (rc != 0)
        return rc;
    if (dtn_numel(in->ndim, in->shape) > 0) {
        view_groups(in, map);
        return 0;
    }
    for (int d = 0; d < in->ndim; d++)           /* no elements: none to keep */
        map_group(map, DTN_VIEW_SPREAD, (const int[2]){ d, 1 },
                  (const int[2]){ 0, 0 });
    return 0;
}

/* ------------------------------------------------------- expand, repeat --- */

static int map_expand(const struct dtensor_op_call *call,
                      struct dtn_view_map *map, struct dtensor_error *err)
{
    const struct dtensor_spec *in = &call->in[0];
    const int pad = call->args.ndim - in->ndim;
    char text[170];

    for (int d = 0; d < call->args.ndim && pad >= 0; d++) {
        const int64_t have = d < pad ? 1 : in->shape[d - pad];
        const int64_t size = call->args.shape[d] == -1 ? have
                                                       : call->args.shape[d];

        if (size < 0 || (size != have && have != 1))
            return dtn_op_fail(call, err, "it does not expand to %s",
                               dtn_shape_words(call->args.ndim,
                                               call->args.shape, text,
                                               sizeof text));
        map_one(map, size == have ? DTN_VIEW_KEEP : DTN_VIEW_SPREAD,
                d < pad ? -1 : d - pad, size);
    }
    return pad >= 0 ? 0
         : dtn_op_fail(call, err, "args.shape has %d dimensions (expected %d "
                       "or more)", call->args.ndim, in->ndim);
}

static int map_repeat(const struct dtensor_op_call *call,
                      struct dtn_view_map *map, struct dtensor_error *err)
{
    const struct dtensor_spec *in = &call->in[0];
    const int pad = call->args.ndim - in->ndim;

    for (int d = 0; d < call->args.ndim && pad >= 0; d++) {
        const int64_t times = call->args.shape[d];
        const int64_t size = d < pad ? 1 : in->shape[d - pad];

        if (times < 0 || (size > 0 && times > INT64_MAX / size))
            return dtn_op_fail(call, err, "args.shape[%d] is %" PRId64
                               " (expected 0 or more, and less than 2^63 "
                               "elements)", d, times);
        map_one(map, times == 1 ? DTN_VIEW_KEEP : DTN_VIEW_SPREAD,
                d < pad ? -1 : d - pad, times * size);
    }
    return pad >= 0 ? 0
         : dtn_op_fail(call, err, "args.shape has %d counts (expected %d or "
                       "more)", call->args.ndim, in->ndim);
}

/* ---------------------------------------------------- by args.dim --- */

static int map_squeeze(const struct dtensor_op_call *call,
                       struct dtn_view_map *map, struct dtensor_error *err)
{
    const struct dtensor_spec *in = &call->in[0];
    bool named[DTENSOR_MAX_DIMS] = { false };
    int dim, rc = 0;

    for (int i = 0; i < call->args.ndims && rc == 0; i++) {
        rc = dtn_op_dim(call, call->args.dim[i], in->ndim, &dim, err);
        if (rc == 0)
            named[dim] = true;
    }
    for (int d = 0; d < in->ndim && rc == 0; d++)
        if ((named[d] || call->args.ndims == 0) && in->shape[d] == 1)
            map_one(map, DTN_VIEW_DROP, d, -1);
        else
            map_one(map, DTN_VIEW_KEEP, d, in->shape[d]);
    return rc;
}

static int map_unsqueeze(const struct dtensor_op_call *call,
                         struct dtn_view_map *map, struct dtensor_error *err)
{
    const struct dtensor_spec *in = &call->in[0];
    int dim, rc;

    if (call->args.ndims != 1 || in->ndim == DTENSOR_MAX_DIMS)
        return dtn_op_fail(call, err, "args.dim names %d dimensions of %d "
                           "(expected one of at most %d)", call->args.ndims,
                           in->ndim, DTENSOR_MAX_DIMS - 1);
    rc = dtn_op_dim(call, call->args.dim[0], in->ndim + 1, &dim, err);
    for (int d = 0; d <= in->ndim && rc == 0; d++) {
        if (d == dim)
            map_one(map, DTN_VIEW_KEEP, -1, 1);
        if (d < in->ndim)
            map_one(map, DTN_VIEW_KEEP, d, in->shape[d]);
    }
    return rc;
}

/* transpose: two dimensions change places; permute: all have new ones. */
static int map_permute(const struct dtensor_op_call *call,
                       struct dtn_view_map *map, struct dtensor_error *err)
{
    const struct dtensor_spec *in = &call->in[0];
    const bool swap = strcmp(call->op, "transpose") == 0;
    const int want = swap ? 2 : in->ndim;
    int order[DTENSOR_MAX_DIMS], dim[DTENSOR_MAX_DIMS], rc = 0;
    unsigned seen = 0;

    if (call->args.ndims != want)
        return dtn_op_fail(call, err, "args.dim names %d dimensions (expected "
                           "%d)", call->args.ndims, want);
    for (int i = 0; i < want && rc == 0; i++) {
        rc = dtn_op_dim(call, call->args.dim[i], in->ndim, &dim[i], err);
        if (rc == 0 && !swap && seen >> dim[i] & 1)
            rc = dtn_op_fail(call, err, "dimension %d is named twice",
                             call->args.dim[i]);
        if (rc == 0)
            seen |= 1u << dim[i];
    }
    for (int d = 0; d < in->ndim && rc == 0; d++)
        order[d] = !swap ? dim[d] : d == dim[0] ? dim[1]
                 : d == dim[1] ? dim[0] : d;
    for (int d = 0; d < in->ndim && rc == 0; d++)
        map_one(map, DTN_VIEW_KEEP, order[d], in->shape[order[d]]);
    return rc;
}

int dtn_view_map(const struct dtensor_op_call *call, struct dtn_view_map *map,
                 struct dtensor_error *err)
{
    static const struct {
        const char *name;
        int (*map)(const struct dtensor_op_call *call,
                   struct dtn_view_map *map, struct dtensor_error *err);
    } ops[] = {
        { "view", map_view }, { "reshape", map_view },
        { "expand", map_expand }, { "repeat", map_repeat },
        { "squeeze", map_squeeze }, { "unsqueeze", map_unsqueeze },
        { "transpose", map_permute }, { "permute", map_permute }
    };
    size_t i = 0;

    *map = (struct dtn_view_map){ .ndim = 0 };
    if (call->nin != 1)
        return dtn_op_fail(call, err, "there are %d inputs (expected 1)",
                           call->nin);
    if (call->args.ndim < 0 || call->args.ndim > DTENSOR_MAX_DIMS ||
        call->args.ndims < 0 || call->args.ndims > DTENSOR_MAX_DIMS)
        return dtn_op_fail(call, err, "args.ndim is %d and args.ndims %d "
                           "(expected 0 to %d)", call->args.ndim,
                           call->args.ndims, DTENSOR_MAX_DIMS);
    while (strcmp(ops[i].name, call->op) != 0)
        i++;
    return ops[i].map(call, map, err);
}
