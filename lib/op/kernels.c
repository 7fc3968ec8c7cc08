/* kernels.c - operators that kernels of a GPU compute
 *
 * A local function that calls the functions of device.h only, and not lib/math
 * itself, is run as it is: what it calls becomes launches.
 */
#include "op/kernels.h"
#include "op/device.h"
#include "op/local/backward.h"
#include "op/local/copy.h"
#include "op/local/math.h"
#include "op/local/rows.h"
#include "base/compiler.h"
#include "device/memory.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "math/array.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* The local functions that compute by the functions of device.h alone. */
static dtn_local_f *const computing[] = {
    dtn_local_pointwise, dtn_local_cast, dtn_local_where,
    dtn_local_same, dtn_local_fill, dtn_local_permute, dtn_local_repeat,
    dtn_local_cat, dtn_local_stack, dtn_local_split, dtn_local_unbind,
    dtn_local_select, dtn_local_slice, dtn_local_flip, dtn_local_pad,
    dtn_local_reduce, dtn_local_softmax, dtn_local_norm, dtn_local_product,
    dtn_local_embedding, dtn_local_gather, dtn_local_index_select,
    dtn_local_extreme, dtn_local_place, dtn_local_softmax_backward,
    dtn_local_norm_backward, dtn_local_loss, dtn_local_loss_backward,
    dtn_local_cumulate, dtn_local_embedding_backward, dtn_local_scatter,
    dtn_local_triangle, dtn_local_index, dtn_local_index_put,
    dtn_local_order,
};

bool dtn_op_has_kernels(const struct dtn_local *local,
                        const struct dtn_parts *parts, size_t *bytesp)
{
    struct dtn_op_device device = { .memory = NULL };
    struct dtn_parts asked = *parts;
    size_t i = 0;

    while (i < DTN_COUNT(computing) && computing[i] != local->run)
        i++;
    if (i == DTN_COUNT(computing) || parts->among)
        return false;
    asked.device = &device;
    if (local->run(local, &asked, NULL) != 0 || device.lacks)
        return false;
    *bytesp = device.bytes;
    return true;
}

bool dtn_op_launches(const struct dtensor_ctx *ctx)
{
    const struct dtn_memory *memory = ctx->device;

    return memory && memory->ops->computes && memory->ops->computes(memory);
}

/* An empty part has no address; the device is that of the context. */
int dtn_op_run_kernels(const struct dtn_local *local, struct dtn_parts *parts,
                       struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = parts->want->mesh->ctx;
    struct dtn_op_device device = { .work = parts->work };
    const void *mem = NULL;
    int rc, end;

    for (int i = 0; i < parts->nout && !mem; i++)
        mem = parts->out[i].data;
    if (!mem)
        return 0;
    rc = dtn_buffer_open(ctx, parts->op, mem, &device.memory, err);
    if (rc != 0)
        return rc;
    parts->device = &device;
    rc = local->run(local, parts, err);
    end = dtn_buffer_close(ctx, parts->op, device.memory, device.rc,
                           rc != 0 ? NULL : err);
    return rc != 0 ? rc : end;
}

static struct dtn_array whole_of(const struct dtensor_spec *spec)
{
    return dtn_array_packed(NULL, spec->dtype, spec->ndim, spec->shape);
}

static bool arrays_have_kernels(const struct dtn_decision *d,
                                const struct dtn_local *local,
                                struct dtn_array *in, struct dtn_array *out)
{
    const struct dtn_parts parts = {
        .op = d->op, .args = &d->call.args, .want = d->inferred.want,
        .spec = d->inferred.out, .nin = d->call.nin, .nout = d->inferred.nout,
        .in = in, .out = out
    };
    size_t bytes;

    for (int i = 0; i < parts.nout; i++)
        out[i] = whole_of(&parts.spec[i]);
    for (int i = 0; i < parts.nin; i++) {
        in[i] = whole_of(&parts.want[i]);
        if (local->flags & DTN_LOCAL_BROADCAST)
            in[i] = dtn_array_expanded(&in[i], &out[0]);
    }
    return dtn_op_has_kernels(local, &parts, &bytes);
}

/* Types and numbers of dimensions count, not sizes: the parts are the whole. */
bool dtn_op_infers_kernels(const struct dtn_decision *d)
{
    const struct dtn_local *local = dtn_local_of(d->op);
    const int nin = d->call.nin;
    struct dtn_array *arrays;
    bool has;

    if (local && local->fill)     /* by those of dtensor_rand() and its kin   */
        return true;
    if (!local || d->inferred.collective != 0
        || (local->takes && !local->takes(local, d->in[0].dtype)))
        return false;
    arrays = calloc((size_t)(nin + d->inferred.nout), sizeof arrays[0]);
    has = arrays && arrays_have_kernels(d, local, arrays, arrays + nin);
    free(arrays);
    return has;
}
