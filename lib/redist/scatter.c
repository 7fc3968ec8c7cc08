/* scatter.c - scatters a whole array from one rank, slab by slab
 *
 * The array may be in memory of the root that peers cannot access, and staging
 * it would need the same memory again.  So it is cut into contiguous slabs of
 * at most [redistribute] pipeline = 4M, and each slab is one exchange:
 * f32[4096,4096] goes in 16 slabs of 256 rows.  For the exchange the slabs are
 * the shards of an imaginary mesh with one rank for each slab; all these ranks
 * are the root.  pieces.c finds who gets what.  No rank needs more than the
 * array, its own part, and two slabs.
 */
#include "coll/exec.h"
#include "job/await.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "job/group.h"
#include "job/last_plan.h"
#include "layout/layout.h"
#include "mesh/mesh.h"
#include "redist/exchange.h"
#include "redist/fail.h"
#include "redist/phases.h"
#include "redist/pieces.h"
#include "redist/plan.h"
#include "redist/redist.h"
#include "sched/call.h"
#include "sched/exchange.h"
#include "sched/fingerprint.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

struct scatter {
    const struct dtensor_spec *dst;
    int root;
    uint64_t hash;                     /* of both, the same on all ranks      */
    struct dtn_phase phase[DTN_MAX_PHASES];
    struct dtensor_mesh slabs;         /* as many ranks as there are slabs    */
    struct dtensor_spec src;           /* the array cut over them             */
};

/* ---------------------------------------------------------------- slabs --- */

/* Cut the first dimension into pieces that fit.  If one index of it does not
 * fit, cut it into single indices and continue with the next dimension.
 */
static void scatter_cut(struct scatter *scatter, size_t limit)
{
    const struct dtensor_spec *dst = scatter->dst;
    struct dtensor_mesh *slabs = &scatter->slabs;
    size_t bytes = (size_t)dtn_numel(dst->ndim, dst->shape) *
                   dtensor_dtype_size(dst->dtype);

    slabs->ctx = dst->mesh->ctx;
    slabs->root = dst->mesh->root;
    slabs->origin = -1;                /* no rank of the world is in it       */
    scatter->src = *dst;
    scatter->src.mesh = slabs;
    for (int d = 0; d < dst->ndim && bytes > limit; d++) {
        size_t n = (size_t)dst->shape[d], row = bytes / n;
        size_t rows = row < limit ? limit / row : 1;

        scatter->src.placement[slabs->ndim] =
            (struct dtensor_placement){ .kind = DTENSOR_SHARD, .dim = d };
        slabs->size[slabs->ndim++] = (int)((n + rows - 1) / rows);
        bytes = row * rows;
        if (rows > 1)
            break;
    }
}

static int scatter_nslabs(const struct scatter *scatter)
{
    int n = 1;

    for (int m = 0; m < scatter->slabs.ndim; m++)
        n *= scatter->slabs.size[m];
    return n;
}

/* ------------------------------------------------------------- one slab --- */

/* Append the pieces of a slab that position `receiver` gets, packed one after
 * another.
 */
static int slab_pieces(const struct scatter *scatter, int slab, int receiver,
                       struct dtn_pieces *pieces, struct dtensor_error *err)
{
    const int begin = pieces->n;
    int rc;

    if (dtn_phase_idle(&scatter->phase[0], receiver))
        return 0;
    rc = dtn_pieces_between(&scatter->src, scatter->dst, slab, receiver, pieces,
                            err);
    for (int i = begin; i < pieces->n; i++)
        pieces->list[i].source = scatter->root;
    return rc;
}

/* Exchange the pieces of a slab; `in` is on the root. */
static int slab_move(const struct scatter *scatter, int slab,
                     const struct dtn_exchange *exchange, const void *in,
                     void *out, struct dtensor_error *err)
{
    uint64_t fingerprint =
        dtn_fingerprint(DTN_COLL_EXCHANGE, exchange->dtype, exchange->redop,
                        scatter->hash + (uint64_t)slab);
    struct dtn_exec *exec;
    int rc = dtn_exchange_exec(&scatter->dst->mesh->group, exchange, &exec,
                               err);

    if (rc != 0)
        return rc;
    rc = dtn_exec_run(exec, in, out, fingerprint, err);
    dtn_exec_destroy(exec);
    return rc;
}

/* Where a slab begins in the array, in elements, and how many it has. */
static size_t slab_begin(const struct scatter *scatter, int slab,
                         size_t *countp)
{
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];
    int64_t stride[DTENSOR_MAX_DIMS], begin = 0;
    const struct dtensor_spec *src = &scatter->src;

    dtn_layout(src, slab, shape, offset);
    dtn_strides(src->ndim, src->shape, stride);
    for (int d = 0; d < src->ndim; d++)
        begin += offset[d] * stride[d];
    *countp = (size_t)dtn_numel(src->ndim, shape);
    return (size_t)begin;
}

static int slab_run(const struct scatter *scatter, int slab, const void *full,
                    void *out, struct dtensor_error *err)
{
    const struct dtn_group *group = &scatter->dst->mesh->group;
    const bool is_root = group->me == scatter->root;
    struct dtn_pieces received = { 0 }, sent = { 0 };
    struct dtn_exchange exchange = dtn_exchange_of("distribute",
                                                   &scatter->phase[0], group);
    size_t begin = slab_begin(scatter, slab, &exchange.in_count);
    const unsigned char *in = full;
    int rc;

    exchange.neutral = false;          /* scatter_run() does both, for all    */
    exchange.scale = 1;
    exchange.out_count = (size_t)dtn_local_numel(scatter->dst, group->me);
    if (exchange.in_count == 0)
        return 0;
    if (is_root)
        in += begin * dtensor_dtype_size(exchange.dtype);
    else
        exchange.in_count = 0;
    rc = slab_pieces(scatter, slab, group->me, &received, err);
    for (int r = 0; rc == 0 && is_root && r < group->n; r++)
        if (r != group->me)
            rc = slab_pieces(scatter, slab, r, &sent, err);
    if (rc == 0) {
        dtn_exchange_pieces(&exchange, &received, &sent);
        rc = slab_move(scatter, slab, &exchange, in, out, err);
    }
    dtn_pieces_fini(&received);
    dtn_pieces_fini(&sent);
    return rc;
}

/* ------------------------------------------------------------------ all --- */

/* Broadcast from the first rank of those that hold the same part. */
static int scatter_spread(const struct dtn_phase *phase, size_t count,
                          void *out, struct dtensor_error *err)
{
    struct dtn_call call = { .coll = DTN_COLL_BROADCAST, .count = count,
                             .dtype = phase->dst.dtype };
    const struct dtensor_mesh *sub;
    int rc = dtn_mesh_sub(phase->dst.mesh, phase->dims, &sub, err);

    if (rc == 0 && count > 0)
        rc = dtn_call_run(&sub->group, &call, out, out, err);
    return rc;
}

static void scatter_say(const struct scatter *scatter)
{
    const struct dtensor_spec *dst = scatter->dst;
    struct dtensor_ctx *ctx = dst->mesh->ctx;
    char to[DTENSOR_MAX_DIMS * 20];
    char text[DTN_LAST_PLAN];

    dtensor_placements_format(dst->mesh, dst->placement, to, sizeof to);
    snprintf(text, sizeof text, "distribute to %.100s: %d slabs", to,
             scatter_nslabs(scatter));
    dtn_last_plan_is(&ctx->last_plan, text);
    dtn_last_plan_keep(&ctx->last_plan, text);
}

static int scatter_run(struct scatter *scatter, const void *full, void *out,
                       struct dtensor_error *err)
{
    const struct dtensor_spec *dst = scatter->dst;
    size_t count = (size_t)dtn_local_numel(dst, dst->mesh->group.me);
    int nphases = dtn_scatter_phases(dst, !dtn_group_mapped(&dst->mesh->group),
                                     scatter->phase);
    int rc = 0;

    if (scatter->phase[0].neutral && count > 0)
        rc = dtn_buffer_neutral(dst->mesh->ctx, dst->dtype,
                                scatter->phase[0].redop, out, count, err);
    for (int s = 0; rc == 0 && s < scatter_nslabs(scatter); s++)
        rc = slab_run(scatter, s, full, out, err);
    for (int i = 0; rc == 0 && i < nphases; i++) {
        if (scatter->phase[i].kind == DTN_PHASE_BROADCAST)
            rc = scatter_spread(&scatter->phase[i], count, out, err);
        if (rc == 0 && scatter->phase[i].divide > 1)
            rc = dtn_buffer_scale(dst->mesh->ctx, dst->dtype, out, count,
                                  scatter->phase[i].divide, err);
    }
    return rc;
}

int dtn_scatter_slabs(const struct dtensor_spec *dst, int root,
                      const void *full, void *out, struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = dst->mesh->ctx;
    size_t limit = ctx->world.cluster->redistribute.pipeline_bytes;
    struct scatter scatter = { .dst = dst, .root = root };
    struct dtensor_error why;
    int rc = dtn_ctx_ready(ctx, err);

    if (rc != 0 || dst->mesh->group.me < 0)
        return rc;
    scatter.hash = dtn_redist_hash(dst, dst, root);
    scatter_cut(&scatter, limit ? limit : 1);
    rc = scatter_run(&scatter, full, out, &why);
    if (rc != 0)
        return dtn_redist_give_up(dst, dst, rc, &why, err);
    scatter_say(&scatter);
    return 0;
}
