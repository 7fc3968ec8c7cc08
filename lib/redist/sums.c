/* sums.c - small allreduces of a batch, done together
 *
 * The gradient of a norm is a few KiB, and an allreduce of a few KiB costs as
 * much as its messages.  So Partial tensors whose every rank holds a term of
 * the whole, with equal placements, are packed one after another and
 * redistributed as one tensor of one dimension: over tcp 10 gradients of 4 KiB
 * are one allreduce of 40 KiB.  Which ones are is the rule of coll/pack.c.
 */
#include "redist/sums.h"
#include "coll/pack.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "redist/phases.h"
#include "redist/plan.h"
#include "redist/run.h"
#include "sched/call.h"
#include "sched/sched.h"

#include <stdlib.h>

bool dtn_sums_init(struct dtn_sums *sums, int n)
{
    sums->sum = calloc((size_t)n, sizeof sums->sum[0]);
    return sums->sum;
}

void dtn_sums_fini(struct dtn_sums *sums)
{
    for (int s = 0; s < sums->n; s++) {
        struct dtn_sum_packed *sum = &sums->sum[s];

        dtensor_plan_destroy(sum->plan);
        dtn_pack_free(sum->src.mesh->ctx, &sum->pack);
    }
    free(sums->sum);
}

/* --------------------------------------------------------------- making --- */

static size_t spec_bytes(const struct dtensor_spec *spec)
{
    return (size_t)dtn_numel(spec->ndim, spec->shape) *
           dtensor_dtype_size(spec->dtype);
}

/* Does every rank have all elements, as a term or a replica? */
static bool sum_whole(const struct dtn_phase *reduce)
{
    for (int m = 0; m < reduce->src.mesh->ndim; m++)
        if ((reduce->src.placement[m].kind != DTENSOR_PARTIAL &&
             reduce->src.placement[m].kind != DTENSOR_REPLICATE) ||
            reduce->dst.placement[m].kind != DTENSOR_REPLICATE)
            return false;
    return true;
}

size_t dtn_sums_bound(const struct dtn_cost *cost,
                      const struct dtn_phase *reduce)
{
    return !sum_whole(reduce) ? 0
         : dtn_cost_sum_bound(cost, reduce->dims,
                              (double)spec_bytes(&reduce->src));
}

/* As many elements in one dimension. */
static struct dtensor_spec flat(const struct dtensor_spec *spec, size_t count)
{
    struct dtensor_spec made = *spec;

    made.ndim = 1;
    made.shape[0] = (int64_t)count;
    for (int d = 1; d < DTENSOR_MAX_DIMS; d++)
        made.shape[d] = 0;
    return made;
}

/* Does it lie as those of the sum, and is there room? */
static bool sum_takes(const struct dtn_sum_packed *sum,
                      const struct dtensor_spec *src, size_t bound)
{
    const struct dtensor_spec like = flat(src, (size_t)sum->src.shape[0]);

    return dtn_spec_equal(&sum->src, &like) &&
           spec_bytes(&sum->src) + spec_bytes(src) <= bound;
}

int dtn_sums_add(struct dtn_sums *sums, const struct dtn_phase *reduce,
                 size_t bound, struct dtn_pack_part *part)
{
    const struct dtensor_spec *src = &reduce->src;
    struct dtn_sum_packed *sum;
    int s = sums->n - 1;

    while (s >= 0 && !sum_takes(&sums->sum[s], src, bound))
        s--;
    if (s < 0) {
        s = sums->n++;
        sums->sum[s].src = flat(src, 0);
        sums->sum[s].dst = flat(&reduce->dst, 0);
    }
    sum = &sums->sum[s];
    sum->src.shape[0] += dtn_numel(src->ndim, src->shape);
    sum->dst.shape[0] = sum->src.shape[0];
    part->bytes[DTN_IN] = part->bytes[DTN_OUT] = spec_bytes(src);
    dtn_pack_add(&sum->pack, part);
    return s;
}

int dtn_sums_make(struct dtn_sums *sums, struct dtensor_error *err)
{
    static const struct dtensor_plan_options direct = {
        .route = DTENSOR_ROUTE_DIRECT };
    int rc = 0;

    for (int s = 0; s < sums->n && rc == 0; s++) {
        struct dtn_sum_packed *sum = &sums->sum[s];
        const struct dtensor_mesh *mesh = sum->src.mesh;

        rc = dtensor_plan_create(&sum->src, &sum->dst, &direct, &sum->plan,
                                 err);
        if (rc != 0 || sum->pack.first == sum->pack.last ||
            mesh->ctx->planning || mesh->group.me < 0)
            continue;
        sum->pack.blocks[DTN_IN] = sum->pack.blocks[DTN_OUT] = 1;
        rc = dtn_pack_alloc(mesh->ctx, &sum->pack, "batch", err);
    }
    return rc;
}

/* -------------------------------------------------------------- running --- */

static int sum_run(const struct dtn_sum_packed *sum, struct dtensor_error *err)
{
    const struct dtn_pack *pack = &sum->pack;
    struct dtensor_ctx *ctx = sum->src.mesh->ctx;
    int rc;

    if (pack->first == pack->last)
        return dtn_redist_run(sum->plan, pack->first->in, pack->first->out,
                              err);
    rc = dtn_pack_copy(ctx, pack, DTN_IN, err);
    if (rc == 0)
        rc = dtn_redist_run(sum->plan, pack->mem[DTN_IN], pack->mem[DTN_OUT],
                            err);
    return rc == 0 ? dtn_pack_copy(ctx, pack, DTN_OUT, err) : rc;
}

int dtn_sums_run(const struct dtn_sums *sums, struct dtensor_error *err)
{
    int rc = 0;

    for (int s = 0; s < sums->n && rc == 0; s++)
        if (sums->sum[s].src.mesh->group.me >= 0)
            rc = sum_run(&sums->sum[s], err);
    return rc;
}

/* -------------------------------------------------------------- telling --- */

double dtn_sums_ns(const struct dtn_sum_packed *sum,
                   const struct dtn_pack_part *part)
{
    return sum->plan->step[0].ns * (double)part->bytes[DTN_IN] /
           (double)sum->pack.bytes[DTN_IN];
}

/* Of 100 bytes two tensors of 1 and 2 elements have 33 and 67. */
void dtn_sums_follow(const struct dtn_sum_packed *sum,
                     const struct dtn_pack_part *part)
{
    struct dtn_watcher *watcher = sum->src.mesh->ctx->watcher;
    const uint64_t bytes = dtensor_plan_bytes(sum->plan, 0, -1, -1);
    const uint64_t at = part->at[DTN_IN], all = sum->pack.bytes[DTN_IN];

    watcher->begin(watcher, &(struct dtn_activity){
        .kind = DTN_WATCHED_CALL, .name = "allreduce",
        .coll = DTN_COLL_ALLREDUCE, .ns = dtn_sums_ns(sum, part),
        .bytes = bytes * (at + part->bytes[DTN_IN]) / all - bytes * at / all });
    watcher->end(watcher);
}
