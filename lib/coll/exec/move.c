/* move.c - the steps that copy and reduce
 *
 * A step reads this rank's memory and that of peers through pointers.  Private memory
 * of a peer, which no pointer reaches, is read by cross-memory attach (cma.c).
 */
#include "base/box.h"
#include "base/reduce.h"
#include "coll/exec/exec.h"
#include "coll/exec/terms.h"
#include "job/await.h"
#include "job/ctx.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

/* Runs are loaded through a pointer: the exchange has private memory staged. */
static int run_unmapped(struct exec_run *run, int position)
{
    int rank = run->plan->peers[position].rank;
    char name[320];

    return dtn_poison(run->ctx, DTENSOR_EPEER, rank, "%s named memory outside "
                      "its arena (its context is damaged)",
                      dtn_ctx_rank_name(run->ctx, rank, name, sizeof name));
}

/* A copy within this rank other than of its own part, which goes from IN to
 * OUT, is one that a faster way would not need.
 */
static void run_count(struct exec_run *run, const struct dtn_step *step)
{
    const struct dtn_sched *sched = &run->plan->sched;

    if (step->src.rank != sched->me
        || (step->src.space == DTN_IN && step->dst.space == DTN_OUT))
        return;
    run->ctx->copied_bytes += step->box < 0 ? step->bytes
        : (size_t)dtn_box_count(&sched->boxes[step->box])
          * dtensor_dtype_size(sched->dtype);
}

/* Is it from one kind of space to the other, so that elements are lifted or
 * dropped?
 */
static bool copy_folds(const struct dtn_step *step)
{
    return step->op == DTN_OP_COPY
        && (step->dst.space == DTN_ACC) != (step->src.space == DTN_ACC);
}

int dtn_run_copy(struct exec_run *run, const struct dtn_step *step)
{
    const struct dtn_sched *sched = &run->plan->sched;
    unsigned char *dst = dtn_run_at(run, &step->dst);
    const unsigned char *src = dtn_run_at(run, &step->src);

    if (dst != src)
        run_count(run, step);
    if (copy_folds(step))
        return dtn_run_reduce(run, step);
    if (!dtn_run_maps(run, &step->src))
        return step->box >= 0 ? run_unmapped(run, step->src.rank)
                              : dtn_cma_copy(run, dst, step);
    if (dst == src)
        return 0;                 /* in place: peers may be reading            */
    if (step->box >= 0)
        dtn_box_copy(&sched->boxes[step->box],
                     dtensor_dtype_size(sched->dtype), dst, src);
    else
        memcpy(dst, src, step->bytes * run->plan->scale[step->dst.space]);
    return 0;
}

int dtn_run_reduce(struct exec_run *run, const struct dtn_step *step)
{
    const struct dtn_sched *sched = &run->plan->sched;
    unsigned char *dst = dtn_run_at(run, &step->dst);
    int n = dtn_terms_count(sched, step);

    if (step->box >= 0 && !dtn_run_maps(run, &step->src))
        return run_unmapped(run, step->src.rank);
    if (step->box >= 0) {
        dtn_box_fold(&sched->boxes[step->box], &sched->how, dtn_terms_partial(step),
                     step->op == DTN_OP_REDUCE, dst,
                     dtn_run_at(run, &step->src));
        return 0;
    }
    for (int i = 0; i < n; i++) {
        struct dtn_span slot;
        const struct dtn_span *span = dtn_terms_span(sched, step, i, &slot);

        run->plan->terms[i] = dtn_run_at(run, span);
        if (!run->plan->terms[i] && !dtn_run_maps(run, span))
            return dtn_cma_reduce(run, step);
    }
    dtn_fold(&sched->how, dtn_terms_partial(step), dst, run->plan->terms, n,
             step->bytes / dtensor_dtype_size(sched->dtype));
    return 0;
}
