/* convert.c - the same elements in other placements
 *
 * All functions call dtn_redistribute(): into a new tensor, into an existing
 * one, or to all R, on all ranks or on one, directly into the caller's array.
 * For f32[4096,4096] the last one saves a copy of 64 MiB.
 */
#include "base/error.h"
#include "coll/request.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/redist.h"
#include "redist/sums.h"
#include "tensor/recorder.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdbool.h>

int dtensor_redistribute_to(const struct dtensor *t,
                            const struct dtensor_spec *spec,
                            struct dtensor **tp, struct dtensor_error *err)
{
    struct dtensor_spec to = *spec;
    struct dtensor *made;
    int rc = dtensor_spec_normalize(&to, err);

    if (rc == 0)
        rc = dtn_spec_check_same("redistribute", &t->spec, &to, err);
    if (rc == 0)
        rc = dtn_tensor_create_all(&to, &made, err);
    if (rc != 0)
        return rc;
    rc = dtn_redistribute(&t->spec, &to, t->local, made->local, err);
    if (rc == 0)
        rc = dtn_called_one("redistribute", t, made, err);
    return dtn_tensor_return(made, rc, tp);
}

int dtensor_redistribute(const struct dtensor *t, const char *placements,
                         struct dtensor **tp, struct dtensor_error *err)
{
    struct dtensor_spec spec = t->spec;
    int rc = dtensor_placements_parse(spec.mesh, placements, spec.ndim,
                                      spec.placement, err);

    return rc != 0 ? rc : dtensor_redistribute_to(t, &spec, tp, err);
}

int dtensor_redistribute_into(const struct dtensor *src, struct dtensor *dst,
                              struct dtensor_error *err)
{
    int rc = dtn_spec_check_same("redistribute", &src->spec, &dst->spec, err);

    if (rc != 0 || src == dst)
        return rc;
    rc = dtn_redistribute(&src->spec, &dst->spec, src->local, dst->local, err);
    return rc == 0 ? dtn_called_one("redistribute", src, dst, err) : rc;
}

int dtensor_from_local_grad(const struct dtensor_spec *spec,
                            const struct dtensor *grad, struct dtensor **tp,
                            struct dtensor_error *err)
{
    struct dtensor_spec to = *spec;
    char one[400], other[400];
    int rc = dtensor_spec_normalize(&to, err);

    if (rc != 0)
        return rc;
    to = dtn_spec_reduced(to);
    to.dtype = grad->spec.dtype;
    if (to.mesh != grad->spec.mesh ||
        !dtn_spec_same_tensor(&to, &grad->spec))
        return dtn_fail(err, DTENSOR_EINVAL, "gradient: %.200s is not a "
                        "gradient of %.200s (mesh and shape must be the same)",
                        dtn_spec_format(&grad->spec, one, sizeof one),
                        dtn_spec_format(spec, other, sizeof other));
    return dtensor_redistribute_to(grad, &to, tp, err);
}

int dtensor_plan_run(struct dtensor_plan *plan, const struct dtensor *src,
                     struct dtensor *dst, struct dtensor_error *err)
{
    int rc = dtn_redistribute_by(plan, &src->spec, &dst->spec, src->local,
                                 dst->local, err);

    return rc == 0 ? dtn_called_one("redistribute", src, dst, err) : rc;
}

int dtensor_plan_start(struct dtensor_plan *plan, const struct dtensor *src,
                       struct dtensor *dst, struct dtensor_request **requestp,
                       struct dtensor_error *err)
{
    struct dtensor_request *request = NULL;
    int rc = dtn_request_redist(plan, &src->spec, &dst->spec, src->local,
                                dst->local, &request, err);

    if (rc == 0)
        rc = dtn_called_one("redistribute", src, dst, err);
    if (rc == 0)
        *requestp = request;
    else
        dtensor_wait(request, NULL);
    return rc;
}

/* Tensor i of a batch begins; those of an allreduce are one. */
static void batch_tell(const struct dtensor_batch *batch, int i,
                       const struct dtensor *src, const struct dtensor *dst,
                       struct dtn_watcher *watcher)
{
    const struct dtn_pack_part *part;
    const struct dtn_sum_packed *sum = dtn_batch_sum(batch, i, &part);

    watcher->cause.operand = i;
    watcher->begin(watcher, &(struct dtn_activity){
        .kind = DTN_WATCHED_REDIST, .name = "redistribute", .nin = 1,
        .nout = 1, .in = &src->spec, .out = &dst->spec,
        .joins = sum && part != sum->pack.first,
        .ns = sum ? dtn_sums_ns(sum, part) : 0 });
}

/* Each tensor of a batch is a redistribute, all for the same reason. */
static int batch_run_told(struct dtensor_batch *batch,
                          const struct dtensor *const src[],
                          struct dtensor *const dst[],
                          struct dtn_watcher *watcher,
                          struct dtensor_error *err)
{
    const struct dtn_cause cause = watcher->cause;
    int rc;

    for (int i = 0; i < dtn_batch_count(batch); i++) {
        watcher->cause = cause;
        batch_tell(batch, i, src[i], dst[i], watcher);
        watcher->end(watcher);
    }
    watcher->begin(watcher, &(struct dtn_activity){
        .kind = DTN_WATCHED_BATCH, .name = "batch", .nin = 1, .nout = 1,
        .in = &src[0]->spec, .out = &dst[0]->spec });
    rc = dtn_batch_run(batch, err);
    watcher->end(watcher);
    return rc;
}

/* In a context that only plans: report what each tensor would move. */
static int batch_follow(struct dtensor_batch *batch,
                        const struct dtensor *const src[],
                        struct dtensor *const dst[],
                        struct dtn_watcher *watcher, struct dtensor_error *err)
{
    const struct dtn_cause cause = watcher->cause;
    const struct dtn_pack_part *part;
    const struct dtn_sum_packed *sum;
    int rc = 0;

    for (int i = 0; rc == 0 && i < dtn_batch_count(batch); i++) {
        watcher->cause = cause;
        sum = dtn_batch_sum(batch, i, &part);
        if (sum) {
            batch_tell(batch, i, src[i], dst[i], watcher);
            dtn_sums_follow(sum, part);
            watcher->end(watcher);
            continue;
        }
        watcher->cause.operand = i;
        rc = dtn_redistribute_by(dtn_batch_plan(batch, i), &src[i]->spec,
                                 &dst[i]->spec, NULL, NULL, err);
    }
    return rc;
}

static int batch_run(struct dtensor_batch *batch,
                     const struct dtensor *const src[],
                     struct dtensor *const dst[], struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = src[0]->spec.mesh->ctx;

    if (ctx->planning)
        return ctx->watcher ? batch_follow(batch, src, dst, ctx->watcher, err)
                            : 0;
    return ctx->watcher ? batch_run_told(batch, src, dst, ctx->watcher, err)
                        : dtn_batch_run(batch, err);
}

int dtensor_batch_run(struct dtensor_batch *batch,
                      const struct dtensor *const src[],
                      struct dtensor *const dst[], struct dtensor_error *err)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < dtn_batch_count(batch); i++)
        rc = dtn_batch_take(batch, i, &src[i]->spec, src[i]->local,
                            &dst[i]->spec, dst[i]->local, err);
    if (rc == 0)
        rc = batch_run(batch, src, dst, err);
    for (int i = 0; rc == 0 && i < dtn_batch_count(batch); i++)
        rc = dtn_called_one("redistribute", src[i], dst[i], err);
    return rc;
}

/* ------------------------------------------------------------ the whole --- */

/* May the whole be written to `full`?  `wanted`: this rank gets it. */
static int full_check(const struct dtensor_spec *spec, const void *full,
                      size_t size, bool wanted, struct dtensor_error *err)
{
    size_t bytes = (size_t)dtn_numel(spec->ndim, spec->shape) *
                   dtensor_dtype_size(spec->dtype);
    char text[400];

    if (size != bytes)
        return dtn_fail(err, DTENSOR_EINVAL, "full_tensor: %zu bytes, but the "
                        "whole is %zu: %s", size, bytes,
                        dtn_spec_format(spec, text, sizeof text));
    if (!full && bytes > 0 && wanted)
        return dtn_fail(err, DTENSOR_EINVAL, "full_tensor: full is NULL, but "
                        "the whole is %zu bytes", bytes);
    return dtn_ctx_check_buffer(spec->mesh->ctx, "full_tensor", full, size,
                                err);
}

/* All R on `mesh`, written to `full` by the ranks of that mesh. */
static int full_move(const struct dtensor *t, const struct dtensor_mesh *mesh,
                     void *full, struct dtensor_error *err)
{
    struct dtensor_spec spec = t->spec;

    spec.mesh = mesh;
    for (int m = 0; m < mesh->ndim; m++)
        spec.placement[m] =
            (struct dtensor_placement){ .kind = DTENSOR_REPLICATE };
    dtn_watch_cause(mesh->ctx, "full_tensor", 0,
                    "the program asked for the whole");
    return dtn_redistribute(&t->spec, &spec, t->local, full, err);
}

int dtensor_full_tensor(const struct dtensor *t, void *full, size_t size,
                        struct dtensor_error *err)
{
    const struct dtensor_mesh *mesh = t->spec.mesh;
    int rc = full_check(&t->spec, full, size, mesh->group.me >= 0, err);

    return rc != 0 ? rc : full_move(t, mesh, full, err);
}

/* A redistribute to the mesh of that one rank. */
int dtensor_full_tensor_at(const struct dtensor *t, int root, void *full,
                           size_t size, struct dtensor_error *err)
{
    const struct dtensor_mesh *mesh = t->spec.mesh, *one;
    const int rank = dtensor_mesh_rank(mesh, root), sizes[] = { 1 };
    int rc = 0;

    if (rank < 0)
        return dtn_fail(err, DTENSOR_EINVAL, "full_tensor: root %d is no "
                        "position of the mesh; expected 0 to %d", root,
                        mesh->group.n - 1);
    if (root == mesh->group.me)
        rc = full_check(&t->spec, full, size, true, err);
    if (rc == 0)
        rc = dtensor_mesh_create(mesh->ctx, 1, sizes, NULL, &rank, &one, err);
    return rc != 0 ? rc : full_move(t, one, full, err);
}
