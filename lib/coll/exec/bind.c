/* bind.c - binds the steps of an executable, once
 *
 * A step names ranks, spaces and bytes.  A bound step has all that a run needs:
 * the peer's struct, addresses as an index in exec->base and an offset, sizes
 * in bytes of memory, and the terms of a reduction.  A run sets exec->base for
 * this rank's buffers, and a peer's READY sets the entries of that peer.  So a
 * step looks up nothing while it runs.
 */
#include "coll/exec/bind.h"
#include "base/error.h"
#include "base/reduce.h"
#include "coll/exec/exec.h"
#include "coll/exec/peer.h"
#include "coll/exec/step.h"
#include "coll/exec/terms.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* The base of a span of this rank: the exposed OUT if the span is in the part
 * that peers access.
 */
static int own_base(const struct dtn_sched *sched, const struct dtn_span *span)
{
    const struct dtn_range *shown = &sched->exposed_range[span->space];

    return span->space == DTN_OUT
        && (shown->bytes == 0 || span->offset - shown->offset < shown->bytes)
         ? DTN_EXEC_OUT_EXPOSED : (int)span->space;
}

static struct dtn_exec_at bind_span(const struct dtn_exec *exec,
                                const struct dtn_span *span)
{
    return (struct dtn_exec_at){
        .base = span->rank == exec->sched.me ? own_base(&exec->sched, span)
              : dtn_exec_peer_base(span->rank, dtn_exec_name(span->space)),
        .offset = span->offset * exec->scale[span->space] };
}

/* Does a copy convert between elements and partial results? */
static bool copy_converts(const struct dtn_step *step)
{
    return step->op == DTN_OP_COPY
        && (step->dst.space == DTN_ACC) != (step->src.space == DTN_ACC);
}

static int bind_nterms(const struct dtn_sched *sched,
                       const struct dtn_step *step)
{
    return step->op == DTN_OP_REDUCE || step->op == DTN_OP_FOLD
        || copy_converts(step) ? dtn_terms_count(sched, step) : 0;
}

/* Which terms are partial results, and whether the destination is: for
 * dtn_fold().
 */
static unsigned bind_partial(const struct dtn_step *step)
{
    const bool dst = step->dst.space == DTN_ACC,
               src = step->src.space == DTN_ACC;
    const bool first = step->op == DTN_OP_REDUCE ? dst : src;

    return (dst ? DTN_PARTIAL_DST : 0) | (first ? DTN_PARTIAL_FIRST : 0)
         | (src ? DTN_PARTIAL_REST : 0);
}

/* The loop of a reduction of two terms, if it is no more than that. */
static dtn_fold_f *bind_fold(const struct dtn_sched *sched,
                             const struct dtn_exec_step *bound)
{
    const bool folds = bound->step->op == DTN_OP_REDUCE
                    || bound->step->op == DTN_OP_FOLD;

    return folds && bound->nterms == 2 && bound->step->box < 0
         ? dtn_fold_loop(&sched->reduction, bound->partial, bound->count)
         : NULL;
}

static void bind_step(struct dtn_exec *exec, const struct dtn_step *step,
                      struct dtn_exec_at *terms, struct dtn_exec_step *bound)
{
    const struct dtn_sched *sched = &exec->sched;
    const bool gives = step->op == DTN_OP_PUT || step->op == DTN_OP_SIGNAL;
    const struct dtn_span *moved = gives ? &step->src : &step->dst;

    *bound = (struct dtn_exec_step){
        .step = step, .peer = &exec->peers[step->peer],
        .dst = bind_span(exec, &step->dst), .src = bind_span(exec, &step->src),
        .bytes = step->bytes * exec->scale[moved->space],
        .count = step->bytes / dtensor_dtype_size(sched->dtype),
        .terms = terms, .nterms = bind_nterms(sched, step),
        .partial = (uint16_t)bind_partial(step) };
    bound->fold = bind_fold(sched, bound);
    bound->run = dtn_step_function(bound);
    for (int i = 0; i < bound->nterms; i++) {
        struct dtn_span slot;

        terms[i] = bind_span(exec, dtn_terms_span(sched, step, i, &slot));
    }
}

static bool span_is(const struct dtn_span *a, const struct dtn_span *b)
{
    return a->rank == b->rank && a->space == b->space && a->offset == b->offset;
}

/* How many puts of what a fold has stored follow it? */
static uint16_t bind_nputs(const struct dtn_sched *sched, size_t s)
{
    const struct dtn_step *fold = &sched->steps[s];
    uint16_t n = 0;

    if (fold->op != DTN_OP_FOLD || fold->dst.space == DTN_ACC)
        return 0;
    for (const struct dtn_step *put = fold + 1;
         put < sched->steps + sched->nsteps && put->op == DTN_OP_PUT
         && put->box < 0 && put->bytes == fold->bytes
         && put->dst.space != DTN_ACC && span_is(&put->src, &fold->dst)
         && n < sched->n - 1 && n < UINT16_MAX; put++)
        n++;
    return n;
}

/* How many short messages do the steps begin with? */
static int bind_nfirst(const struct dtn_exec *exec)
{
    int n = 0;

    while (n < exec->sched.nsteps && dtn_step_is_short(&exec->steps[n])
           && exec->steps[n].step->op == DTN_OP_SIGNAL)
        n++;
    return n;
}

int dtn_exec_bind(struct dtn_exec *exec, struct dtensor_error *err)
{
    const struct dtn_sched *sched = &exec->sched;
    const size_t nsteps = (size_t)dtn_sched_all(sched);
    struct dtn_exec_at *terms;
    size_t size, nterms = 0;

    for (size_t s = 0; s < nsteps; s++)
        nterms += (size_t)bind_nterms(sched, &sched->steps[s]);
    size = nsteps * sizeof *exec->steps + nterms * sizeof *terms;
    exec->steps = malloc(size + 1);
    if (!exec->steps)
        return dtn_fail_nomem(err, sched->name, size);
    terms = (struct dtn_exec_at *)(exec->steps + nsteps);
    for (size_t s = 0; s < nsteps; s++) {
        bind_step(exec, &sched->steps[s], terms, &exec->steps[s]);
        exec->steps[s].nputs = bind_nputs(sched, s);
        terms += exec->steps[s].nterms;
    }
    exec->nfirst = bind_nfirst(exec);
    return 0;
}
