/* attention.c - dtensor_attention()
 *
 * If no rank holds only a part of the sequence, the operator computes it.  If
 * the sequence is sharded, way.c chooses one of four ways: the ring (ring.c), a
 * gather of keys and values (gather.c), heads that are sharded instead of the
 * sequence, or whole tensors.  In the last two the operator runs between
 * redistributes, and the tape notes these calls one by one.  The tape notes the
 * first two ways as one call, for which it keeps q, k, v, the result, and the
 * logarithms of the sums.
 */
#include "attention/attention.h"
#include "base/dtype.h"
#include "base/error.h"
#include "job/await.h"
#include "job/ctx.h"
#include "layout/layout.h"
#include "math/matmul.h"
#include "math/pointwise.h"
#include "mesh/mesh.h"
#include "tensor/recorder.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------- rows of all ranks --- */

/* Which rows each rank of the ring has: `rows` and what they point to are one
 * piece of memory.
 */
static int rows_make(const struct dtensor_spec *spec,
                     const struct dtensor_mesh *ring, struct dtn_spans **rowsp,
                     struct dtensor_error *err)
{
    const int n = ring->group.n;
    int64_t all = 0;
    struct dtensor_run none, *run;
    struct dtn_spans *rows;
    size_t bytes;

    for (int i = 0; i < n; i++)
        all += dtensor_spec_runs(spec, dtensor_mesh_rank(ring, i), 2, &none, 0);
    bytes = (size_t)n * sizeof *rows + (size_t)all * sizeof *run;
    rows = malloc(bytes);
    if (!rows)
        return dtn_fail_nomem(err, "attention", bytes);
    run = (struct dtensor_run *)(rows + n);
    for (int i = 0; i < n; i++) {
        rows[i].run = run;
        rows[i].n = dtensor_spec_runs(spec, dtensor_mesh_rank(ring, i), 2, run,
                                      all);
        run += rows[i].n;
        all -= rows[i].n;
    }
    *rowsp = rows;
    return 0;
}

/* ------------------------------------------------------------ one call --- */

/* The tensors of a call, and memory for those whose type is not that of the
 * computation.
 */
struct operands {
    const struct dtensor *const *in;   /* q, k, v                             */
    struct dtensor *out, *lse;         /* results                             */
    const struct dtensor *grad;        /* of the result; NULL: forward        */
    struct dtensor **grads;            /* [3] backward: made before           */
    double scale;                      /* of the scores                       */
    bool causal;                       /* query i sees the keys 0 to i        */
    void *wide;                        /* the memory; or NULL                 */
};

/* This rank's part of a tensor. */
static struct dtn_array part_of(const struct dtensor *t)
{
    const struct dtensor_spec *spec = &t->spec;
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];

    dtn_layout(spec, spec->mesh->group.me, shape, offset);
    return dtn_array_packed(t->local, spec->dtype, spec->ndim, shape);
}

/* The same in the type of the computation: itself, or in memory, of which *at
 * bytes are used.
 */
static struct dtn_array wide_of(const struct dtensor *t,
                                enum dtensor_dtype work, char *memory,
                                size_t *at)
{
    struct dtn_array part = part_of(t);

    if (part.dtype == work)
        return part;
    part = dtn_array_packed(memory ? memory + *at : NULL, work, part.ndim,
                            part.shape);
    *at += (size_t)dtn_array_count(&part) * dtn_dtype_size(work);
    return part;
}

/* Places what is computed; without memory only counts. */
static size_t tensors_place(const struct operands *tensors,
                            struct dtn_attention_call *call, char *memory)
{
    struct dtn_queries *queries = &call->queries;
    size_t at = 0;

    if (!tensors->grad) {
        queries->out = wide_of(tensors->out, queries->work, memory, &at);
        return at;
    }
    queries->out = part_of(tensors->out);
    queries->grad = part_of(tensors->grad);
    queries->dq = wide_of(tensors->grads[0], queries->work, memory, &at);
    call->dk = wide_of(tensors->grads[1], queries->work, memory, &at);
    call->dv = wide_of(tensors->grads[2], queries->work, memory, &at);
    return at;
}

static void narrow(const struct dtensor *t, const struct dtn_array *wide)
{
    const struct dtn_array part = part_of(t);

    if (part.data != wide->data && dtn_array_count(&part) > 0)
        dtn_cast(&part, wide);
}

static struct dtn_attention_call call_of(const struct operands *tensors,
                                         const struct dtn_attention_way *way,
                                         const struct dtn_spans *rows)
{
    const struct dtensor *q = tensors->in[0];
    const struct dtensor_cluster *cluster = q->spec.mesh->ctx->world.cluster;
    const double width = (double)q->spec.shape[3];

    return (struct dtn_attention_call){ .way = way, .rows = rows,
        .back = tensors->grad != NULL,
        .k_spec = &tensors->in[1]->spec, .v_spec = &tensors->in[2]->spec,
        .k = part_of(tensors->in[1]), .v = part_of(tensors->in[2]),
        .queries = { .causal = tensors->causal, .work = way->lse.dtype,
                     .scale = tensors->scale != 0 ? tensors->scale
                            : width > 0 ? 1 / sqrt(width) : 1,
                     .flags = cluster->repro ? DTN_MATMUL_REPRO : 0,
                     .q = part_of(q), .lse = part_of(tensors->lse) } };
}

/* In a context that only plans: what it sends. */
static int call_follow(struct dtn_attention_call *call,
                       struct dtensor_error *err)
{
    call->dk.dtype = call->dv.dtype = call->queries.work;
    return call->way->method == DTENSOR_ATTENTION_RING
         ? dtn_attention_ring(call, err) : dtn_attention_gather(call, err);
}

static int call_compute(const struct operands *tensors,
                        struct dtn_attention_call *call,
                        struct dtensor_error *err)
{
    const struct dtn_queries *queries = &call->queries;
    int rc;

    if (tensors->grad)
        dtn_array_fill(&queries->dq, 0);
    else
        dtn_queries_begin(queries);
    rc = call->way->method == DTENSOR_ATTENTION_RING
       ? dtn_attention_ring(call, err) : dtn_attention_gather(call, err);
    if (rc == 0 && !tensors->grad)
        narrow(tensors->out, &queries->out);
    if (rc == 0 && tensors->grad) {
        narrow(tensors->grads[0], &queries->dq);
        narrow(tensors->grads[1], &call->dk);
        narrow(tensors->grads[2], &call->dv);
    }
    return rc;
}

/* Compute it, forward or backward; ranks outside the mesh have nothing to do.
 */
static int attention_run(struct operands *tensors,
                         const struct dtn_attention_way *way,
                         struct dtensor_error *err)
{
    const struct dtensor_mesh *mesh = tensors->in[0]->spec.mesh;
    struct dtn_spans *queries = NULL, *keys = NULL;
    struct dtn_attention_call call;
    struct dtensor_error why;
    int rc;

    if (way->me < 0)
        return 0;
    rc = rows_make(&tensors->in[0]->spec, way->ring, &queries, &why);
    if (rc == 0)
        rc = rows_make(&tensors->in[1]->spec, way->ring, &keys, &why);
    if (rc == 0) {
        call = call_of(tensors, way, keys);
        call.queries.rows = queries[way->me];
        if (!mesh->ctx->planning)
            rc = dtensor_alloc(mesh->ctx,
                               tensors_place(tensors, &call, NULL) + 64,
                               &tensors->wide, &why);
    }
    if (rc == 0 && mesh->ctx->planning) {
        rc = call_follow(&call, err);
    } else if (rc == 0) {
        tensors_place(tensors, &call, tensors->wide);
        rc = call_compute(tensors, &call, err);
        dtensor_free(mesh->ctx, tensors->wide);
    } else {
        rc = dtn_tensor_end_all(mesh, rc, &why, err);
    }
    free(queries);
    free(keys);
    return rc;
}

/* ------------------------------------------------------------- results --- */

static int attention_forward(const struct dtensor *const in[3],
                             const struct dtensor_attention_options *options,
                             const struct dtn_attention_way *way,
                             struct dtensor **outp, struct dtensor_error *err)
{
    const struct dtensor_op_args args = { .value = options->scale,
        .causal = options->causal != 0, .count = way->method };
    struct operands tensors = { .in = in, .scale = options->scale,
                                .causal = options->causal != 0 };
    int rc = dtn_tensor_create_all(&way->out, &tensors.out, err);

    if (rc == 0)
        rc = dtn_tensor_create_all(&way->lse, &tensors.lse, err);
    if (rc == 0)
        rc = attention_run(&tensors, way, err);
    if (rc == 0)
        rc = dtn_called(&(struct dtn_called){
            .op = DTN_SHARDED_ATTENTION, .args = &args, .nin = 3, .nout = 2,
            .in = in,
            .out = (struct dtensor *[]){ tensors.out, tensors.lse } }, err);
    dtensor_destroy(tensors.lse);
    return dtn_tensor_return(tensors.out, rc, outp);
}

int dtn_attention_gradients(const struct dtensor *const in[5],
                            const struct dtensor_op_args *args,
                            const struct dtensor *grad,
                            struct dtensor *grads[3],
                            struct dtensor_error *err)
{
    const struct dtensor_spec spec[3] = { in[0]->spec, in[1]->spec,
                                          in[2]->spec };
    const struct dtensor_attention_options options = { .scale = args->value,
        .causal = args->causal,
        .method = (enum dtensor_attention_method)args->count };
    struct operands tensors = { .in = in, .scale = args->value, .grad = grad,
                                .causal = args->causal, .grads = grads,
                                .out = dtn_tensor_hold(in[3]),
                                .lse = dtn_tensor_hold(in[4]) };
    struct dtn_attention_way way;
    int rc = dtn_attention_way(spec, &options, &way, err);

    for (int i = 0; i < 3 && rc == 0; i++)
        rc = dtn_tensor_create_all(&in[i]->spec, &grads[i], err);
    if (rc == 0)
        rc = attention_run(&tensors, &way, err);
    dtensor_destroy(tensors.out);
    dtensor_destroy(tensors.lse);
    return rc;
}

/* Heads are sharded in place of the sequence. */
static int heads_forward(const struct dtensor *const in[3],
                         const struct dtensor_attention_options *options,
                         const struct dtn_attention_way *way,
                         struct dtensor **outp, struct dtensor_error *err)
{
    const struct dtensor_op_args args = { .causal = options->causal != 0,
                                          .value = options->scale };
    struct dtensor *moved[3] = { NULL, NULL, NULL }, *out = NULL;
    int rc = 0;

    for (int i = 0; i < 3 && rc == 0; i++) {
        struct dtensor_spec spec = in[i]->spec;

        spec.placement[way->mesh_dim] = (struct dtensor_placement){
            .kind = DTENSOR_SHARD, .dim = 1 };
        rc = dtensor_redistribute_to(in[i], &spec, &moved[i], err);
    }
    if (rc == 0)
        rc = dtensor_op("attention", 3, (const struct dtensor *const *)moved,
                        &args, 1, &out, err);
    if (rc == 0)
        rc = dtensor_redistribute_to(out, &way->out, outp, err);
    for (int i = 0; i < 3; i++)
        dtensor_destroy(moved[i]);
    dtensor_destroy(out);
    return rc;
}

/* -------------------------------------------------------------- public --- */

static const struct dtensor_attention_options no_options;

int dtensor_attention(const struct dtensor *q, const struct dtensor *k,
                      const struct dtensor *v,
                      const struct dtensor_attention_options *options,
                      struct dtensor **outp, struct dtensor_error *err)
{
    const struct dtensor *const in[3] = { q, k, v };
    const struct dtensor_attention_options *how = options ? options
                                                          : &no_options;
    const struct dtensor_op_args args = { .causal = how->causal != 0,
                                          .value = how->scale };
    struct dtn_attention_way way;
    int rc;

    if (!q || !k || !v || !outp)
        return dtn_fail(err, DTENSOR_EINVAL, "attention: %s is NULL",
                        !q ? "q" : !k ? "k" : !v ? "v" : "outp");
    rc = dtn_ctx_follows(q->spec.mesh->ctx, err);
    if (rc == 0)
        rc = dtn_attention_way((struct dtensor_spec[]){ q->spec, k->spec,
                               v->spec }, how, &way, err);
    if (rc != 0)
        return rc;
    if (way.method == DTENSOR_ATTENTION_WHOLE)
        return dtensor_op("attention", 3, in, &args, 1, outp, err);
    if (way.method == DTENSOR_ATTENTION_HEADS)
        return heads_forward(in, how, &way, outp, err);
    return attention_forward(in, how, &way, outp, err);
}

int dtensor_attention_predict(const struct dtensor_spec in[3],
                              const struct dtensor_attention_options *options,
                              struct dtensor_attention_info *info,
                              struct dtensor_error *err)
{
    struct dtn_attention_way way;
    int rc = dtn_attention_way(in, options ? options : &no_options, &way, err);

    if (rc != 0)
        return rc;
    info->method = way.method;
    info->why = way.why;
    for (int i = 0; i < DTENSOR_ATTENTION_METHODS; i++)
        info->predicted_us[i] = way.ns[i] / 1000;
    return 0;
}
