/* staged.c - operators on tensors in memory of a device
 *
 * The CPU computes: the inputs are copied to the host, the outputs back.  What
 * the local function works with comes first in the host's memory, then a copy
 * of each part.
 */
#include "op/staged.h"
#include "job/buffer.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>

/* The memory after that of the local function. */
static char *staged_begin(const struct dtn_op_bound *b,
                          const struct dtn_parts *parts)
{
    size_t own = 0;

    if (b->local->work)
        own = dtn_op_aligned(b->local->work(b->local, parts));
    return (char *)parts->work + own;
}

static size_t output_bytes(const struct dtn_array *out)
{
    return (size_t)dtn_array_count(out) * dtensor_dtype_size(out->dtype);
}

int dtn_op_staged(struct dtn_op_bound *b, struct dtn_parts *parts,
                  struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = parts->want->mesh->ctx;
    char *at = staged_begin(b, parts);
    int rc = 0;

    for (int i = 0; i < parts->nin && rc == 0; i++) {
        if (b->input[i].bytes > 0)
            rc = dtn_buffer_copy(ctx, at, b->in[i].data, b->input[i].bytes,
                                 err);
        b->in[i].data = at;
        at += dtn_op_aligned(b->input[i].bytes);
    }
    for (int i = 0; i < parts->nout; i++) {
        b->place[i] = b->out[i].data;
        b->out[i].data = at;
        at += dtn_op_aligned(output_bytes(&b->out[i]));
    }
    if (rc == 0)
        rc = b->local->run(b->local, parts, err);
    for (int i = 0; i < parts->nout && rc == 0; i++)
        if (output_bytes(&b->out[i]) > 0)
            rc = dtn_buffer_copy(ctx, b->place[i], b->out[i].data,
                                 output_bytes(&b->out[i]), err);
    return rc;
}
