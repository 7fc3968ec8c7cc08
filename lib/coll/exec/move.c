/* move.c - the steps that copy and reduce
 *
 * A step reads memory of this rank and of peers through pointers.  Private
 * memory of a peer has no pointer here; it is read by cross-memory attach
 * (cma.c).
 */
#include "coll/exec/move.h"
#include "base/compiler.h"
#include "base/reduce.h"
#include "cluster/world.h"
#include "coll/exec/bind.h"
#include "coll/exec/cma.h"
#include "coll/exec/direct.h"
#include "coll/exec/exec.h"
#include "coll/exec/launch.h"
#include "coll/exec/run.h"
#include "device/memory.h"
#include "job/await.h"
#include "job/ctx.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>

/* Runs of a box are loaded through a pointer; the exchange always stages
 * private memory.
 */
static int run_unmapped(struct dtn_exec_run *run, int position)
{
    int rank = run->exec->peers[position].rank;
    char name[320];

    return dtn_poison(
        run->ctx, DTENSOR_EPEER, rank,
        "%s named memory outside "
        "its arena (its context is damaged)",
        dtn_world_rank_name(&run->ctx->world, rank, name, sizeof name));
}

/* Count copied bytes: a copy within this rank counts, unless it moves this
 * rank's part from IN to OUT.  A faster algorithm would not need the copies
 * that count.
 */
static void run_count(struct dtn_exec_run *run, const struct dtn_step *step)
{
    const struct dtn_sched *sched = &run->exec->sched;

    if (step->src.rank != sched->me
        || (step->src.space == DTN_IN && step->dst.space == DTN_OUT))
        return;
    run->ctx->copied_bytes += dtn_step_bytes(sched, step);
}

int dtn_run_copy(struct dtn_exec_run *run, const struct dtn_exec_step *bound)
{
    const struct dtn_sched *sched = &run->exec->sched;
    const struct dtn_step *step = bound->step;
    unsigned char *dst = dtn_run_at(run, bound->dst);
    const unsigned char *src = dtn_run_at(run, bound->src);

    if (dst != src)
        run_count(run, step);
    if (bound->nterms > 0)
        return dtn_run_reduce(run, bound);
    if (!dtn_run_maps(run, bound->src))
        return step->box >= 0 ? run_unmapped(run, step->src.rank)
                              : dtn_cma_copy(run, dst, bound);
    if (dst == src)
        return 0;                 /* in place: peers may be reading           */
    if (step->box >= 0)
        return dtn_run_done(run, run->memory->ops->copy_box(
            run->memory, &sched->boxes[step->box],
            dtensor_dtype_size(sched->dtype), dst, src));
    return dtn_run_done(run, run->memory->ops->copy(run->memory, dst, src,
                                                    bound->bytes));
}

/* A fold with the puts of its result, if all of them go to memory that this
 * rank's device reaches; else the fold.  Its terms are set.
 */
static DTN_NOINLINE int run_fold_to(struct dtn_exec_run *run,
                                    const struct dtn_exec_step *bound)
{
    const struct dtn_memory_ops *ops = run->memory->ops;
    void **places = run->exec->places;
    int n = run->memory != &dtn_host && ops->fold_to ? 1 + bound->nputs : 1;

    places[0] = dtn_run_at(run, bound->dst);
    for (int i = 1; i < n; i++) {
        places[i] = dtn_direct_put_at(run, bound + i);
        if (!places[i])
            n = 1;
    }
    if (n == 1)
        return dtn_run_done(run, ops->fold(
            run->memory, &run->exec->sched.reduction, bound->partial,
            places[0], run->exec->terms, bound->nterms, bound->count));
    run->progress.step += n - 1;
    return dtn_run_done(run, ops->fold_to(
        run->memory, &run->exec->sched.reduction, bound->partial, places, n,
        run->exec->terms, bound->nterms, bound->count));
}

static DTN_NOINLINE int run_reduce(struct dtn_exec_run *run,
                                   const struct dtn_exec_step *bound)
{
    const struct dtn_sched *sched = &run->exec->sched;
    const struct dtn_step *step = bound->step;
    const void **terms = run->exec->terms;
    unsigned char *dst = dtn_run_at(run, bound->dst);

    if (step->box >= 0 && !dtn_run_maps(run, bound->src))
        return run_unmapped(run, step->src.rank);
    if (step->box >= 0)
        return dtn_run_done(run, run->memory->ops->fold_box(
            run->memory, &sched->boxes[step->box], &sched->reduction,
            bound->partial,
            step->op == DTN_OP_REDUCE, dst, dtn_run_at(run, bound->src)));
    for (int i = 0; i < bound->nterms; i++) {
        terms[i] = dtn_run_at(run, bound->terms[i]);
        if (!terms[i] && !dtn_run_maps(run, bound->terms[i]))
            return dtn_cma_reduce(run, bound);
    }
    if (bound->nputs > 0)
        return run_fold_to(run, bound);
    return dtn_run_done(run, run->memory->ops->fold(
        run->memory, &sched->reduction, bound->partial, dst, terms,
        bound->nterms, bound->count));
}

/* A reduction that is one loop over two terms, if both can be loaded. */
static bool run_fold_two(struct dtn_exec_run *run,
                         const struct dtn_exec_step *bound)
{
    const void *a, *b;

    if (!bound->fold || run->memory != &dtn_host)
        return false;
    a = dtn_run_at(run, bound->terms[0]);
    b = dtn_run_at(run, bound->terms[1]);
    if (!a || !b)
        return false;
    bound->fold(dtn_run_at(run, bound->dst), a, b, bound->count);
    return true;
}

int dtn_run_reduce(struct dtn_exec_run *run, const struct dtn_exec_step *bound)
{
    if (run_fold_two(run, bound))
        return 0;
    return run_reduce(run, bound);
}
