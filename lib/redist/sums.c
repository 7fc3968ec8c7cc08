/* sums.c - small allreduces of a batch, done together
 *
 * The gradient of a norm is a few KiB, and an allreduce of a few KiB costs as
 * much as its messages.  So Partial tensors whose every rank holds a term of
 * the whole, with equal placements, are packed one after another and
 * redistributed as one tensor of one dimension: 10 gradients of 4 KiB are one
 * allreduce of 40 KiB. Above 64 KiB packing costs more than it saves.
 */
#include "redist/sums.h"
#include "base/error.h"
#include "job/buffer.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "redist/run.h"
#include "sched/call.h"
#include "transport/arena.h"
#include "transport/arena_size.h"

#include <stdlib.h>

#define SUM_MAX_BYTES ((size_t)64 << 10)

bool dtn_sums_init(struct dtn_sums *sums, int n)
{
    sums->tensor = calloc((size_t)n, sizeof sums->tensor[0]);
    sums->sum = calloc((size_t)n, sizeof sums->sum[0]);
    return sums->tensor && sums->sum;
}

void dtn_sums_fini(struct dtn_sums *sums)
{
    for (int s = 0; s < sums->nsums; s++) {
        struct dtn_sum_packed *sum = &sums->sum[s];

        dtensor_plan_destroy(sum->plan);
        dtn_arena_free(&sum->src.mesh->ctx->arena, sum->in);
        dtn_arena_free(&sum->src.mesh->ctx->arena, sum->out);
    }
    free(sums->tensor);
    free(sums->sum);
}

/* --------------------------------------------------------------- making --- */

bool dtn_sums_fit(const struct dtensor_spec *src,
                  const struct dtensor_spec *dst)
{
    const size_t count = (size_t)dtn_numel(src->ndim, src->shape);

    for (int m = 0; m < src->mesh->ndim; m++)
        if ((src->placement[m].kind != DTENSOR_PARTIAL &&
             src->placement[m].kind != DTENSOR_REPLICATE) ||
            dst->placement[m].kind != DTENSOR_REPLICATE)
            return false;
    return count > 0 &&
           count * dtensor_dtype_size(src->dtype) <= SUM_MAX_BYTES;
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
                      const struct dtensor_spec *src, size_t count)
{
    const size_t had = (size_t)sum->src.shape[0];
    const struct dtensor_spec like = flat(src, had);

    return dtn_spec_equal(&sum->src, &like) &&
           (had + count) * dtensor_dtype_size(src->dtype) <= SUM_MAX_BYTES;
}

int dtn_sums_add(struct dtn_sums *sums, const struct dtensor_spec *src,
                 const struct dtensor_spec *dst)
{
    const size_t count = (size_t)dtn_numel(src->ndim, src->shape);
    struct dtn_sum_packed *sum;
    int s = sums->nsums - 1;

    while (s >= 0 && !sum_takes(&sums->sum[s], src, count))
        s--;
    if (s < 0) {
        s = sums->nsums++;
        sums->sum[s].src = flat(src, 0);
        sums->sum[s].dst = flat(dst, 0);
    }
    sum = &sums->sum[s];
    sums->tensor[sums->n] = (struct dtn_summed){ .sum = s, .count = count,
        .at = (size_t)sum->src.shape[0] };
    sum->src.shape[0] = sum->dst.shape[0] += (int64_t)count;
    sum->n++;
    return sums->n++;
}

int dtn_sums_make(struct dtn_sums *sums, struct dtensor_error *err)
{
    static const struct dtensor_plan_options direct = {
        .route = DTENSOR_ROUTE_DIRECT };
    int rc = 0;

    for (int s = 0; s < sums->nsums && rc == 0; s++) {
        struct dtn_sum_packed *sum = &sums->sum[s];
        const struct dtensor_mesh *mesh = sum->src.mesh;
        const size_t bytes = (size_t)sum->src.shape[0] *
                             dtensor_dtype_size(sum->src.dtype);

        rc = dtensor_plan_create(&sum->src, &sum->dst, &direct, &sum->plan,
                                 err);
        if (rc != 0 || sum->n == 1 || mesh->ctx->planning ||
            mesh->group.me < 0)
            continue;
        sum->in = dtn_arena_alloc(&mesh->ctx->arena, bytes);
        sum->out = dtn_arena_alloc(&mesh->ctx->arena, bytes);
        if (!sum->in || !sum->out)
            rc = dtn_arena_fail(&mesh->ctx->arena, "batch", bytes, err);
    }
    return rc;
}

/* -------------------------------------------------------------- running --- */

void dtn_sums_take(struct dtn_sums *sums, int k, const void *in, void *out)
{
    sums->tensor[k].in = in;
    sums->tensor[k].out = out;
}

/* Into the memory of the sum, or out of it. */
static int sum_copy(const struct dtn_sums *sums, int s, bool back,
                    struct dtensor_error *err)
{
    const struct dtn_sum_packed *sum = &sums->sum[s];
    const size_t size = dtensor_dtype_size(sum->src.dtype);
    int rc = 0;

    for (int k = 0; k < sums->n && rc == 0; k++) {
        const struct dtn_summed *t = &sums->tensor[k];

        if (t->sum == s)
            rc = dtn_buffer_copy(sum->src.mesh->ctx,
                                 back ? t->out : sum->in + t->at * size,
                                 back ? sum->out + t->at * size : t->in,
                                 t->count * size, err);
    }
    return rc;
}

static int sum_run(const struct dtn_sums *sums, int s,
                   struct dtensor_error *err)
{
    const struct dtn_sum_packed *sum = &sums->sum[s];
    int rc, k = 0;

    if (sum->n == 1) {
        while (sums->tensor[k].sum != s)
            k++;
        return dtn_redist_run(sum->plan, sums->tensor[k].in,
                              sums->tensor[k].out, err);
    }
    rc = sum_copy(sums, s, false, err);
    if (rc == 0)
        rc = dtn_redist_run(sum->plan, sum->in, sum->out, err);
    return rc == 0 ? sum_copy(sums, s, true, err) : rc;
}

int dtn_sums_run(const struct dtn_sums *sums, struct dtensor_error *err)
{
    int rc = 0;

    for (int s = 0; s < sums->nsums && rc == 0; s++)
        if (sums->sum[s].src.mesh->group.me >= 0)
            rc = sum_run(sums, s, err);
    return rc;
}

/* -------------------------------------------------------------- telling --- */

bool dtn_sums_joins(const struct dtn_sums *sums, int k)
{
    return sums->tensor[k].at > 0;
}

double dtn_sums_ns(const struct dtn_sums *sums, int k)
{
    const struct dtn_summed *t = &sums->tensor[k];
    const struct dtn_sum_packed *sum = &sums->sum[t->sum];

    return sum->plan->step[0].ns * (double)t->count /
           (double)sum->src.shape[0];
}

/* Of 100 bytes two tensors of 1 and 2 elements have 33 and 67. */
void dtn_sums_follow(const struct dtn_sums *sums, int k)
{
    const struct dtn_summed *t = &sums->tensor[k];
    const struct dtn_sum_packed *sum = &sums->sum[t->sum];
    struct dtn_watcher *watcher = sum->src.mesh->ctx->watcher;
    const uint64_t all = (uint64_t)sum->src.shape[0];
    const uint64_t bytes = dtensor_plan_bytes(sum->plan, 0, -1, -1);

    watcher->begin(watcher, &(struct dtn_activity){
        .kind = DTN_WATCHED_CALL, .name = "allreduce",
        .coll = DTN_COLL_ALLREDUCE, .ns = dtn_sums_ns(sums, k),
        .bytes = bytes * (t->at + t->count) / all - bytes * t->at / all });
    watcher->end(watcher);
}
