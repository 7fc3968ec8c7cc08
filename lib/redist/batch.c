/* batch.c - several tensors redistributed together
 *
 * A model has hundreds of small tensors, and redistributing a small tensor
 * costs as much as its messages.  So tensors of a batch that need one exchange
 * each, with the same dtype and reduction, are packed one after another and
 * exchanged together.  100 tensors of 4 KiB from S(0) to S(1) on 8 ranks take 7
 * messages per rank instead of 700, at the price of two copies of 400 KiB.  A
 * tensor joins if its copies cost less than its messages: on 2 ranks inside a
 * host up to 800 B of each rank, over tcp up to 900 KiB.  Small tensors that
 * need an allreduce go together, too (sums.c).  All others, and those that do
 * not fit into [redistribute] max_scratch, run one by one.
 */
#include "base/error.h"
#include "coll/exec.h"
#include "coll/pack.h"
#include "coll/request.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/group.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/batch.h"
#include "redist/cost.h"
#include "redist/exchange.h"
#include "redist/fail.h"
#include "redist/plan.h"
#include "redist/redist.h"
#include "redist/run.h"
#include "sched/call.h"
#include "sched/exchange.h"
#include "sched/fingerprint.h"
#include "sched/model.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* ----------------------------------------------------------- who shares --- */

static bool batch_fits(const struct dtn_phase *a, const struct dtn_phase *b)
{
    return a->dst.mesh == b->dst.mesh && a->dst.dtype == b->dst.dtype &&
           a->redop == b->redop && a->neutral == b->neutral &&
           a->divide == b->divide;
}

/* The constants for a mesh, the same on every rank. */
static const struct dtn_cost *batch_cost(struct dtensor_batch *batch,
                                         const struct dtensor_mesh *mesh)
{
    struct dtn_cost *cost = &batch->cost;

    if (cost->mesh != mesh) {
        dtn_cost_init(mesh, cost);
        dtn_model_oversubscribe(&cost->model, batch->ctx->cpus.ranks_per_cpu);
    }
    return cost;
}

static void batch_share(struct dtensor_batch *batch,
                        struct dtn_batch_item *item,
                        const struct dtn_cost_packing *ns)
{
    const int me = item->phase.dst.mesh->group.me;
    const size_t elem = dtensor_dtype_size(item->phase.dst.dtype);
    struct dtn_batch_share *share;
    int s = 0;

    while (s < batch->nshares && !batch_fits(&batch->share[s].phase,
                                             &item->phase))
        s++;
    share = &batch->share[s];
    if (s == batch->nshares) {
        share->phase = item->phase;
        batch->nshares++;
    }
    share->hash = dtn_fingerprint_hash(DTN_MIX_CALL, share->hash)
                + dtn_redist_hash(&item->src, &item->dst, DTN_NO_ROOT);
    share->saved_ns += ns->messages - ns->copies;
    share->messages_ns = fmax(share->messages_ns, ns->messages);
    if (me >= 0) {
        item->part.bytes[DTN_IN] =
            elem * (size_t)dtn_local_numel(&item->phase.src, me);
        item->part.bytes[DTN_OUT] =
            elem * (size_t)dtn_local_numel(&item->phase.dst, me);
    }
    dtn_pack_add(&share->pack, &item->part);
}

/* Is there room to pack it with the others?  It needs both parts, and on the
 * rank that receives most, each term.  The result is the same on every rank.
 */
static bool batch_has_room(struct dtensor_batch *batch,
                           const struct dtn_phase *phase)
{
    const uint64_t bound =
        batch->ctx->world.cluster->redistribute.max_scratch_bytes;
    const double in = (double)dtn_max_numel(&phase->src);
    const double out = (double)dtn_max_numel(&phase->dst);
    double terms = 1, bytes;

    for (int m = 0; m < phase->src.mesh->ndim; m++)
        if (phase->src.placement[m].kind == DTENSOR_PARTIAL)
            terms *= phase->src.mesh->size[m];
    bytes = (2 * in + (1 + terms) * out) *
            (double)dtensor_dtype_size(phase->dst.dtype);
    if (batch->bytes + bytes > (double)bound)
        return false;
    batch->bytes += bytes;
    return true;
}

static int batch_add_alone(struct dtn_batch_item *item,
                           struct dtensor_error *err)
{
    return dtensor_plan_create(&item->src, &item->dst, NULL, &item->alone, err);
}

static int batch_add_reduce(struct dtensor_batch *batch,
                            struct dtn_batch_item *item,
                            const struct dtn_phase *reduce,
                            struct dtensor_error *err)
{
    const size_t bound = dtn_sums_bound(batch_cost(batch, item->dst.mesh),
                                        reduce);

    if (bound == 0 || !batch_has_room(batch, reduce))
        return batch_add_alone(item, err);
    item->sum = dtn_sums_add(&batch->sums, reduce, bound, &item->part);
    return 0;
}

static int batch_add_exchange(struct dtensor_batch *batch,
                              struct dtn_batch_item *item,
                              const struct dtn_phase *exchange,
                              struct dtensor_error *err)
{
    const struct dtn_cost_packing ns =
        dtn_cost_packing(batch_cost(batch, item->dst.mesh), exchange);

    if (ns.copies >= ns.messages || !batch_has_room(batch, exchange))
        return batch_add_alone(item, err);
    item->phase = *exchange;
    batch_share(batch, item, &ns);
    return 0;
}

/* A tensor shares an exchange or an allreduce if it needs just one, and packing
 * costs less; otherwise it runs alone.
 */
static int batch_add(struct dtensor_batch *batch, struct dtn_batch_item *item,
                     const struct dtensor_spec *src,
                     const struct dtensor_spec *dst, struct dtensor_error *err)
{
    struct dtn_phase phase[DTN_MAX_PHASES];

    item->src = *src;
    item->dst = *dst;
    item->sum = -1;
    if (src->mesh != dst->mesh || dtn_phases(src, dst, phase) != 1)
        return batch_add_alone(item, err);
    if (phase[0].kind == DTN_PHASE_REDUCE)
        return batch_add_reduce(batch, item, &phase[0], err);
    if (phase[0].kind == DTN_PHASE_EXCHANGE)
        return batch_add_exchange(batch, item, &phase[0], err);
    return batch_add_alone(item, err);
}

/* --------------------------------------------------------------- making --- */

static int batch_make(const struct dtensor_batch *batch, int s,
                      struct dtensor_error *err)
{
    struct dtn_batch_share *share = &batch->share[s];
    const struct dtn_group *group = &share->phase.dst.mesh->group;
    struct dtn_pieces received = { .n = 0 }, sent = { .n = 0 };
    struct dtn_exchange exchange = dtn_exchange_of("batch", &share->phase,
                                                   group);
    const size_t elem = dtensor_dtype_size(share->phase.dst.dtype);
    int rc;

    share->pack.blocks[DTN_IN] = share->pack.blocks[DTN_OUT] = 1;
    rc = dtn_pack_alloc(batch->ctx, &share->pack, "batch", err);
    exchange.in_count = share->pack.bytes[DTN_IN] / elem;
    exchange.out_count = share->pack.bytes[DTN_OUT] / elem;
    if (rc == 0)
        rc = dtn_batch_pieces(share, &received, &sent, err);
    if (rc == 0) {
        dtn_exchange_pieces(&exchange, &received, &sent);
        rc = dtn_exchange_exec(group, &exchange, &share->exec, err);
    }
    if (rc == 0)
        rc = dtn_exec_connect(share->exec, err);
    dtn_pieces_fini(&received);
    dtn_pieces_fini(&sent);
    return rc;
}

/* Make the exchange of a share.  It has messages itself, as many as the tensor
 * that needs most.  If it saves less, the tensors run alone.  In a context that
 * only plans each stands for its part of the exchange.
 */
static int batch_settle(struct dtensor_batch *batch, int s,
                        struct dtensor_error *err)
{
    static const struct dtensor_plan_options direct = {
        .route = DTENSOR_ROUTE_DIRECT };
    const struct dtn_batch_share *share = &batch->share[s];
    const bool pays = share->saved_ns > share->messages_ns;
    int rc = 0;

    if (pays && !batch->ctx->planning)
        return share->phase.dst.mesh->group.me < 0 ? 0
             : batch_make(batch, s, err);
    for (struct dtn_pack_part *p = share->pack.first; rc == 0 && p;
         p = p->next) {
        struct dtn_batch_item *item = dtn_batch_item_of(p);

        rc = dtensor_plan_create(&item->src, &item->dst, pays ? &direct : NULL,
                                 &item->alone, err);
    }
    return rc;
}

/* An empty batch with room for n tensors. */
static int batch_new(struct dtensor_ctx *ctx, int n,
                     struct dtensor_batch **batchp, struct dtensor_error *err)
{
    struct dtensor_batch *batch = calloc(1, sizeof *batch);
    const size_t count = (size_t)n;

    if (!batch)
        return dtn_fail_nomem(err, "batch", sizeof *batch);
    batch->ctx = ctx;
    dtn_ctx_hold(ctx);
    batch->item = calloc(count, sizeof *batch->item);
    batch->share = calloc(count, sizeof *batch->share);
    if (!batch->item || !batch->share ||
        !dtn_sums_init(&batch->sums, n)) {
        dtensor_batch_destroy(batch);
        return dtn_fail_nomem(err, "batch", count * sizeof *batch->item);
    }
    *batchp = batch;
    return 0;
}

static int batch_fill(struct dtensor_batch *batch, int n,
                      const struct dtensor_spec src[],
                      const struct dtensor_spec dst[],
                      struct dtensor_error *err)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < n; i++) {
        struct dtensor_spec from = src[i], to = dst[i];

        rc = dtensor_spec_normalize(&from, err);
        if (rc == 0)
            rc = dtensor_spec_normalize(&to, err);
        if (rc == 0 && (from.mesh->ctx != batch->ctx ||
                        !dtn_spec_same_tensor(&from, &to)))
            rc = dtn_fail(err, DTENSOR_EINVAL, "batch: tensor %d changes its "
                          "shape, dtype or context (only the mesh and the "
                          "placements may change)", i);
        if (rc == 0)
            rc = batch_add(batch, &batch->item[batch->n++], &from, &to, err);
    }
    if (rc == 0)
        rc = dtn_sums_make(&batch->sums, err);
    for (int s = 0; rc == 0 && s < batch->nshares; s++)
        rc = batch_settle(batch, s, err);
    return rc;
}

int dtensor_batch_create(int n, const struct dtensor_spec src[],
                         const struct dtensor_spec dst[],
                         struct dtensor_batch **batchp,
                         struct dtensor_error *err)
{
    struct dtensor_batch *batch = NULL;
    struct dtensor_error why;
    int rc;

    if (n < 1 || !src[0].mesh)
        return dtn_fail(err, DTENSOR_EINVAL, "batch: %d tensors; expected 1 or "
                        "more, each with a mesh", n);
    rc = dtn_ctx_follows(src[0].mesh->ctx, err);
    if (rc != 0)
        return rc;
    rc = batch_new(src[0].mesh->ctx, n, &batch, &why);
    if (rc == 0)
        rc = batch_fill(batch, n, src, dst, &why);
    if (rc == 0) {
        *batchp = batch;
        return 0;
    }
    dtensor_batch_destroy(batch);
    return dtn_redist_give_up(&src[0], &dst[0], rc, &why, err);
}

void dtensor_batch_destroy(struct dtensor_batch *batch)
{
    struct dtensor_ctx *ctx;

    if (!batch)
        return;
    ctx = batch->ctx;
    for (int i = 0; i < batch->n; i++)
        dtensor_plan_destroy(batch->item[i].alone);
    for (int s = 0; s < batch->nshares; s++) {
        dtn_exec_destroy(batch->share[s].exec);
        dtn_pack_free(batch->ctx, &batch->share[s].pack);
    }
    dtn_sums_fini(&batch->sums);
    free(batch->share);
    free(batch->item);
    free(batch);
    dtn_ctx_release(ctx);
}

/* -------------------------------------------------------------- running --- */

/* Run one share: pack the tensors, exchange, unpack. */
static int batch_run_share(const struct dtensor_batch *batch, int s,
                           struct dtensor_error *err)
{
    const struct dtn_batch_share *share = &batch->share[s];
    const struct dtn_phase *phase = &share->phase;
    int rc = dtn_pack_copy(batch->ctx, &share->pack, DTN_IN, err);

    if (rc == 0)
        rc = dtn_exec_run(share->exec, share->pack.mem[DTN_IN],
                          share->pack.mem[DTN_OUT],
                          dtn_fingerprint(DTN_COLL_EXCHANGE, phase->dst.dtype,
                                          phase->redop, share->hash), err);
    return rc == 0 ? dtn_pack_copy(batch->ctx, &share->pack, DTN_OUT, err) : rc;
}

static int take_fail(const char *side, int i, const struct dtensor_spec *has,
                     const struct dtensor_spec *made,
                     struct dtensor_error *err)
{
    char one[300], other[300];

    return dtn_fail(err, DTENSOR_EINVAL, "batch: the %s of tensor %d is %s, "
                    "but the batch was made for %s", side, i,
                    dtn_spec_format(has, one, sizeof one),
                    dtn_spec_format(made, other, sizeof other));
}

int dtn_batch_take(struct dtensor_batch *batch, int i,
                   const struct dtensor_spec *src, const void *in,
                   const struct dtensor_spec *dst, void *out,
                   struct dtensor_error *err)
{
    struct dtn_batch_item *item = &batch->item[i];

    if (!dtn_spec_equal(src, &item->src))
        return take_fail("source", i, src, &item->src, err);
    if (!dtn_spec_equal(dst, &item->dst))
        return take_fail("destination", i, dst, &item->dst, err);
    item->part.in = in;
    item->part.out = out;
    return 0;
}

struct dtensor_plan *dtn_batch_plan(const struct dtensor_batch *batch, int i)
{
    return batch->item[i].alone;
}

const struct dtn_sum_packed *dtn_batch_sum(const struct dtensor_batch *batch,
                                           int i,
                                           const struct dtn_pack_part **partp)
{
    const struct dtn_batch_item *item = &batch->item[i];

    *partp = &item->part;
    return item->sum >= 0 ? &batch->sums.sum[item->sum] : NULL;
}

int dtn_batch_count(const struct dtensor_batch *batch)
{
    return batch->n;
}

static int batch_run_alone(const struct dtn_batch_item *item,
                           struct dtensor_error *err)
{
    struct dtensor_error why;
    int rc = dtn_redist_run(item->alone, item->part.in, item->part.out, &why);

    return rc == 0 ? 0
         : dtn_redist_give_up(&item->src, &item->dst, rc, &why, err);
}

int dtn_batch_run(struct dtensor_batch *batch, struct dtensor_error *err)
{
    int rc = dtn_ctx_ready(batch->ctx, err);

    if (rc == 0)
        rc = dtn_requests_finish(batch->ctx, err);
    for (int s = 0; rc == 0 && s < batch->nshares; s++)
        if (batch->share[s].exec)
            rc = batch_run_share(batch, s, err);
    if (rc == 0)
        rc = dtn_sums_run(&batch->sums, err);
    for (int i = 0; rc == 0 && i < batch->n; i++) {
        const struct dtn_batch_item *item = &batch->item[i];

        if (item->alone && item->alone->all->group.me >= 0)
            rc = batch_run_alone(item, err);
    }
    return rc;
}
