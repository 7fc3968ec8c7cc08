/* gather.c - attention with all keys and values gathered
 *
 * One exchange before the computation gives each rank all keys and values.  In
 * the backward each rank computes a term of the gradients of all keys and
 * values; one exchange then sums the terms and shards the sum.
 */
#include "attention/attention.h"
#include "base/dtype.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "math/pointwise.h"
#include "mesh/mesh.h"
#include "redist/redist.h"
#include "tensor/tensor.h"
#include "dtensor.h"

/* Keys or values. */
struct half {
    const struct dtensor_spec *spec;      /* as they lie                      */
    struct dtn_array part, whole;         /* here; of all ranks               */
    struct dtn_array grad, grads;         /* the same of the gradients        */
};

static struct dtensor_spec spec_as(const struct half *side, int dim,
                                   struct dtensor_placement placement,
                                   enum dtensor_dtype dtype)
{
    struct dtensor_spec spec = *side->spec;

    spec.placement[dim] = placement;
    spec.dtype = dtype;
    return spec;
}

/* The part with all rows of the sequence, placed in memory. */
static struct dtn_array widened(const struct half *side,
                                enum dtensor_dtype dtype, char *memory,
                                size_t *at)
{
    struct dtn_array made = side->part;

    made.shape[2] = side->spec->shape[2];
    made = dtn_array_packed(memory ? memory + *at : NULL, dtype, 4, made.shape);
    *at += ((size_t)dtn_array_count(&made) * dtn_dtype_size(dtype) + 63) / 64 *
           64;
    return made;
}

/* Places everything; without memory only counts. */
static size_t place(struct half side[2], const struct dtn_attention_call *call,
                    char *memory)
{
    size_t at = 0;

    for (int i = 0; i < 2; i++) {
        side[i].whole = widened(&side[i], side[i].part.dtype, memory, &at);
        if (call->back)
            side[i].grads = widened(&side[i], call->queries.work, memory, &at);
    }
    return at;
}

static int gather(const struct half *side, int dim, struct dtensor_error *err)
{
    const struct dtensor_spec whole = spec_as(side, dim,
        (struct dtensor_placement){ .kind = DTENSOR_REPLICATE },
        side->spec->dtype);

    dtn_watch_cause(whole.mesh->ctx, "attention", 0, "every rank attends to all "
                    "keys and values");
    return dtn_redistribute(side->spec, &whole, side->part.data,
                            side->whole.data, err);
}

static int scatter(const struct half *side, int dim, struct dtensor_error *err)
{
    const struct dtensor_spec terms = spec_as(side, dim,
        (struct dtensor_placement){ .kind = DTENSOR_PARTIAL,
                                    .op = DTENSOR_SUM }, side->grads.dtype);
    const struct dtensor_spec shards = spec_as(side, dim,
        side->spec->placement[dim], side->grads.dtype);

    dtn_watch_cause(terms.mesh->ctx, "attention", 0, "gradients of keys and "
                    "values are summed");
    return dtn_redistribute(&terms, &shards, side->grads.data,
                            side->grad.data, err);
}

static int gather_run(struct dtn_attention_call *call,
                      const struct half side[2], struct dtensor_error *err)
{
    const struct dtensor_run all = { 0, call->k_spec->shape[2] };
    const struct dtn_keys keys = { .rows = { 1, &all },
        .k = side[0].whole, .v = side[1].whole, .dk = side[0].grads,
        .dv = side[1].grads };
    const bool back = call->back, follows = call->k_spec->mesh->ctx->planning;
    const int dim = call->way->mesh_dim;
    int rc = 0;

    for (int i = 0; i < 2 && rc == 0; i++) {
        rc = gather(&side[i], dim, err);
        if (back && !follows)
            dtn_array_fill(&side[i].grads, 0);
    }
    if (rc == 0 && !follows)
        rc = back ? dtn_queries_back(&call->queries, &keys, err)
                  : dtn_queries_see(&call->queries, &keys, err);
    for (int i = 0; i < 2 && rc == 0 && back; i++)
        rc = scatter(&side[i], dim, err);
    return rc;
}

int dtn_attention_gather(struct dtn_attention_call *call,
                         struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = call->way->ring->group.ctx;
    struct half side[2] = {
        { .spec = call->k_spec, .part = call->k, .grad = call->dk },
        { .spec = call->v_spec, .part = call->v, .grad = call->dv } };
    const size_t bytes = place(side, call, NULL);
    struct dtensor_error why;
    void *memory;
    int rc;

    if (ctx->planning)
        return gather_run(call, side, err);
    rc = dtensor_alloc(ctx, bytes + 64 + dtn_queries_room(&call->queries,
                           call->k_spec->shape[2], call->v.shape[3]), &memory,
                           &why);

    if (rc != 0)
        return dtn_tensor_end_all(call->k_spec->mesh, rc, &why, err);
    place(side, call, memory);
    call->queries.room = (char *)memory + bytes;
    rc = gather_run(call, side, err);
    dtensor_free(ctx, memory);
    return rc;
}
