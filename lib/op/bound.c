/* bound.c - a decision made ready to run on this rank
 *
 * What is the same in every run of a decision is computed once: the function
 * that does it, the shapes and strides of this rank's parts, which inputs move
 * and where they lie after that.  A run only sets addresses.
 */
#include "op/bound.h"
#include "op/kernels.h"
#include "op/local/local.h"
#include "op/own.h"
#include "op/words.h"
#include "base/error.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdint.h>
#include <stdlib.h>

/* One block: the struct, then its arrays. */
static struct dtn_op_bound *bound_alloc(size_t nin, size_t nout)
{
    const size_t arrays = (nin + nout) * sizeof(struct dtn_array);
    const size_t inputs = nin * sizeof(struct dtn_op_input);
    struct dtn_op_bound *b = calloc(1, sizeof *b + arrays + inputs +
                                    2 * nout * sizeof b->made[0] +
                                    nout * sizeof b->last[0]);

    if (!b)
        return NULL;
    b->in = (struct dtn_array *)(b + 1);
    b->out = b->in + nin;
    b->input = (struct dtn_op_input *)(b->out + nout);
    b->made = (struct dtensor **)(b->input + nin);
    b->place = (void **)(b->made + nout);
    b->last = (uint64_t *)(b->place + nout);
    return b;
}

/* The part of this rank; outside the mesh it is empty. */
static struct dtn_array part_of(const struct dtensor_spec *spec)
{
    int64_t shape[DTENSOR_MAX_DIMS] = { 0 }, offset[DTENSOR_MAX_DIMS];

    if (spec->mesh->group.me >= 0)
        dtn_layout(spec, spec->mesh->group.me, shape, offset);
    return dtn_array_packed(NULL, spec->dtype, spec->ndim, shape);
}

static size_t part_bytes(const struct dtn_array *part)
{
    return (size_t)dtn_array_count(part) * dtensor_dtype_size(part->dtype);
}

/* Does any rank send for it?  What is whole on all ranks can be sharded, or be
 * made a term, where it is.
 */
static bool input_sends(const struct dtensor_spec *have,
                        const struct dtensor_spec *want)
{
    for (int m = 0; m < have->mesh->ndim; m++) {
        const struct dtensor_placement *p = &have->placement[m];

        if (p->kind == DTENSOR_REPLICATE || have->mesh->size[m] == 1)
            continue;
        if (!dtn_placement_equal(p, &want->placement[m], have->mesh->size[m]) ||
            (dtn_placement_class(p) == DTENSOR_SHARD &&
             !dtn_spec_shards_alike(have, want, m)))
            return true;
    }
    return false;
}

static void bind_inputs(const struct dtn_decision *d, struct dtn_op_bound *b)
{
    for (int i = 0; i < d->call.nin; i++) {
        const struct dtensor_spec *want = &d->inferred.want[i];
        struct dtn_op_input *input = &b->input[i];

        b->in[i] = part_of(want);
        input->bytes = part_bytes(&b->in[i]);
        input->moves = !dtn_spec_equal(&d->in[i], want);
        if (!input->moves)
            continue;
        input->sends = input_sends(&d->in[i], want);
        input->at = b->scratch;
        b->scratch += dtn_op_aligned(input->bytes);
        b->moves = true;
        b->sends |= input->sends;
    }
}

static void bind_outputs(const struct dtn_decision *d, struct dtn_op_bound *b)
{
    for (int i = 0; i < d->inferred.nout; i++)
        b->out[i] = part_of(&d->inferred.out[i]);
    for (int i = 0; i < d->call.nin && b->local->flags & DTN_LOCAL_BROADCAST;
         i++)
        b->in[i] = dtn_array_expanded(&b->in[i], &b->out[0]);
}

/* Memory of the host, for the local function, and for copies of what is in
 * memory of a device; or of the device, where kernels do it.
 */
static void bind_work(const struct dtn_decision *d, struct dtn_op_bound *b)
{
    const struct dtensor_mesh *mesh = d->in[0].mesh;
    const struct dtn_parts parts = {
        .op = d->op, .args = &d->call.args, .want = d->inferred.want,
        .spec = d->inferred.out, .nin = d->call.nin, .nout = d->inferred.nout,
        .me = mesh->group.me, .among = b->among, .in = b->in, .out = b->out
    };
    size_t bytes = 0;

    if (b->local->work && parts.me >= 0)
        b->work = dtn_op_aligned(b->local->work(b->local, &parts));
    b->staged = !b->local->fill && !mesh->ctx->planning &&
                (mesh->memory == DTENSOR_CUDA ||
                                    mesh->ctx->all_on_device);
    b->kernels = b->staged && dtn_op_launches(mesh->ctx) && parts.me >= 0 &&
                 dtn_op_has_kernels(b->local, &parts, &bytes);
    b->staged = b->staged && !b->kernels;
    if (b->kernels)
        b->work = dtn_op_aligned(bytes);
    for (int i = 0; i < d->call.nin && b->staged; i++)
        b->work += dtn_op_aligned(b->input[i].bytes);
    for (int i = 0; i < d->inferred.nout && b->staged; i++)
        b->work += dtn_op_aligned(part_bytes(&b->out[i]));
    b->shared = SIZE_MAX;
    if ((b->among && !b->staged) || b->kernels) {
        b->shared = b->scratch;
        b->scratch += b->work;
        b->work = 0;
    }
}

/* The ranks that have the same rows as this one. */
static int bind_among(const struct dtn_decision *d, struct dtn_op_bound *b,
                      struct dtensor_error *err)
{
    if (d->inferred.collective == 0)
        return 0;
    return dtn_mesh_sub(d->in[0].mesh, d->inferred.collective, &b->among, err);
}

static int bind_local(const struct dtn_decision *d,
                      const struct dtn_local **localp,
                      struct dtensor_error *err)
{
    const struct dtn_own *own = dtn_own_find(d->in[0].mesh->ctx, d->op);
    const struct dtn_local *local = own && own->def.local
                                  ? &own->local : dtn_local_of(d->op);

    if (!local)
        return dtn_op_fail(&d->call, err, "its placements can be inferred, but "
                           "it is not computed by this library (see "
                           "dtensor_op(3))");
    if (local->takes && !local->takes(local, d->in[0].dtype))
        return dtn_op_fail(&d->call, err, "it is not computed for %s (cast the "
                           "inputs)", dtensor_dtype_name(d->in[0].dtype));
    *localp = local;
    return 0;
}

int dtn_bind(struct dtn_decision *d, struct dtensor_error *err)
{
    const struct dtn_local *local = NULL;
    struct dtn_op_bound *b;
    int rc;

    if (d->bound)
        return 0;
    rc = bind_local(d, &local, err);
    if (rc != 0)
        return rc;
    b = bound_alloc((size_t)d->call.nin, (size_t)d->inferred.nout);
    if (!b)
        return dtn_fail_nomem(err, "op", sizeof *b);
    b->local = local;
    rc = bind_among(d, b, err);
    if (rc != 0) {
        free(b);
        return rc;
    }
    bind_inputs(d, b);
    bind_outputs(d, b);
    bind_work(d, b);
    d->bound = b;
    return 0;
}

int dtn_bound_bytes(struct dtn_decision *d, size_t *bytesp,
                    struct dtensor_error *err)
{
    struct dtensor_error why;
    const int rc = dtn_bind(d, &why);

    if (rc == 0 || rc == DTENSOR_EINVAL) {
        *bytesp = rc == 0 ? d->bound->scratch + d->bound->work : 0;
        return 0;
    }
    if (err)
        *err = why;
    return rc;
}
