/* move.c - the steps that copy and reduce
 *
 * What they read of a peer stands at a mapped pointer, or where none reaches,
 * in private memory of a process of this host, has to be fetched.  A copy is
 * fetched straight to where it goes.  Terms of a reduction are fetched a piece
 * at a time, 64 KiB of each of two, so that they are folded while they are in
 * this CPU's cache: 2 MiB of f32 in 32 pieces of 7 us to fetch and 2 to fold.
 */
#include "base/box.h"
#include "base/compiler.h"
#include "base/reduce.h"
#include "coll/exec/exec.h"
#include "job/await.h"
#include "job/ctx.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

#define PIECES_BYTES ((size_t)128 << 10)         /* of all terms              */
#define PIECE_MIN_BYTES ((size_t)8 << 10)

static bool run_mapped(const struct exec_run *run, const struct dtn_span *span)
{
    return span->rank == run->plan->sched.me
        || run->plan->peers[span->rank].mapped[exec_name(span->space)];
}

/* Read a peer's memory that is not mapped; `bytes` as a step counts them. */
static int run_fetch(struct exec_run *run, void *dst,
                     const struct dtn_span *span, size_t bytes)
{
    const struct exec_peer *peer = &run->plan->peers[span->rank];
    struct dtn_remote src = peer->remote[exec_name(span->space)];
    const size_t scale = run->plan->scale[span->space];

    src.addr += span->offset * scale;
    return dtn_fetch(run->ctx, peer->rank, dst, src, bytes * scale);
}

static int run_copy_fetched(struct exec_run *run, void *dst,
                            const struct dtn_step *step)
{
    int rc = run_fetch(run, dst, &step->src, step->bytes);

    return rc != 0 ? rc
         : dtn_fetched(run->ctx, run->plan->peers[step->src.rank].rank);
}

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
    if (!run_mapped(run, &step->src))
        return step->box >= 0 ? run_unmapped(run, step->src.rank)
                              : run_copy_fetched(run, dst, step);
    if (dst == src)
        return 0;                 /* in place: peers may be reading            */
    if (step->box >= 0)
        dtn_box_copy(&sched->boxes[step->box],
                     dtensor_dtype_size(sched->dtype), dst, src);
    else
        memcpy(dst, src, step->bytes * run->plan->scale[step->dst.space]);
    return 0;
}

/* The terms of a reduction: of a copy one; the destination and a source; the
 * same bytes of several ranks; or slots of the own memory.
 */
static int run_nterms(const struct dtn_sched *sched,
                      const struct dtn_step *step)
{
    if (step->op != DTN_OP_FOLD)
        return step->op == DTN_OP_REDUCE ? 2 : 1;
    if (step->src.rank >= 0)
        return step->terms;
    return sched->terms ? sched->nterms : sched->n;
}

/* `slot` is room for the span of a term that has none of its own. */
static const struct dtn_span *run_term(const struct dtn_sched *sched,
                                       const struct dtn_step *step, int i,
                                       struct dtn_span *slot)
{
    if (step->op != DTN_OP_FOLD)
        return step->op == DTN_OP_REDUCE && i == 0 ? &step->dst : &step->src;
    if (i == step->own_term)
        return &step->own;
    *slot = step->src;
    if (step->src.rank >= 0)
        slot->offset += (size_t)(i - (step->own_term >= 0
                                      && i > step->own_term)) * step->bytes;
    else
        slot->rank = sched->terms ? sched->terms[i] : i;
    return slot;
}

/* Which of them, and the destination, are partial results, for dtn_fold(). */
static unsigned run_partial(const struct dtn_step *step)
{
    const bool dst = step->dst.space == DTN_ACC, src = step->src.space == DTN_ACC;
    const bool first = step->op == DTN_OP_REDUCE ? dst : src;

    return (dst ? DTN_PARTIAL_DST : 0) | (first ? DTN_PARTIAL_FIRST : 0)
         | (src ? DTN_PARTIAL_REST : 0);
}

/* Bytes from `at` on of every term, where this CPU can read them. */
static int run_terms(struct exec_run *run, const struct dtn_step *step,
                     size_t at, size_t bytes, unsigned char *scratch)
{
    const struct dtn_sched *sched = &run->plan->sched;
    int n = run_nterms(sched, step), rc = 0;

    for (int i = 0; i < n && rc == 0; i++) {
        struct dtn_span slot, span = *run_term(sched, step, i, &slot);

        span.offset += at;
        if (run_mapped(run, &span)) {
            run->plan->terms[i] = dtn_run_at(run, &span);
            continue;
        }
        rc = run_fetch(run, scratch, &span, bytes);
        run->plan->terms[i] = scratch;
        scratch += bytes * run->plan->scale[span.space];
    }
    return rc;
}

/* Was all that was fetched the peers' own?  Asked once for all pieces. */
static int run_terms_own(struct exec_run *run, const struct dtn_step *step)
{
    const struct dtn_sched *sched = &run->plan->sched;
    int n = run_nterms(sched, step), rc = 0;

    for (int i = 0; i < n && rc == 0; i++) {
        struct dtn_span slot;
        const struct dtn_span *span = run_term(sched, step, i, &slot);

        if (!run_mapped(run, span))
            rc = dtn_fetched(run->ctx, run->plan->peers[span->rank].rank);
    }
    return rc;
}

/* Some terms are not mapped: piece by piece. */
static int run_reduce_fetched(struct exec_run *run, const struct dtn_step *step)
{
    const struct dtn_sched *sched = &run->plan->sched;
    size_t elem = dtensor_dtype_size(sched->dtype), bytes;
    int n = run_nterms(sched, step), rc;
    size_t scale = run->plan->scale[step->src.space];
    size_t piece = PIECES_BYTES / ((size_t)n * scale) / DTN_CACHE_LINE
                 * DTN_CACHE_LINE;
    unsigned char *dst = dtn_run_at(run, &step->dst), *scratch;

    if (piece < PIECE_MIN_BYTES)
        piece = PIECE_MIN_BYTES;
    scratch = dtn_ctx_bounce(run->ctx, DTN_TMP, (size_t)n * scale * piece);
    if (!scratch)
        return dtn_poison(run->ctx, DTENSOR_ENOMEM, run->ctx->self.rank,
                          "no room for %zu bytes to fetch terms into",
                          (size_t)n * piece);
    for (size_t at = 0; at < step->bytes; at += bytes) {
        bytes = step->bytes - at < piece ? step->bytes - at : piece;
        rc = run_terms(run, step, at, bytes, scratch);
        if (rc != 0)
            return rc;
        dtn_fold(&sched->how, run_partial(step),
                 dst + at * run->plan->scale[step->dst.space],
                 run->plan->terms, n, bytes / elem);
    }
    return run_terms_own(run, step);
}

int dtn_run_reduce(struct exec_run *run, const struct dtn_step *step)
{
    const struct dtn_sched *sched = &run->plan->sched;
    unsigned char *dst = dtn_run_at(run, &step->dst);
    int n = run_nterms(sched, step);

    if (step->box >= 0 && !run_mapped(run, &step->src))
        return run_unmapped(run, step->src.rank);
    if (step->box >= 0) {
        dtn_box_fold(&sched->boxes[step->box], &sched->how, run_partial(step),
                     step->op == DTN_OP_REDUCE, dst,
                     dtn_run_at(run, &step->src));
        return 0;
    }
    for (int i = 0; i < n; i++) {
        struct dtn_span slot;
        const struct dtn_span *span = run_term(sched, step, i, &slot);

        run->plan->terms[i] = dtn_run_at(run, span);
        if (!run->plan->terms[i] && !run_mapped(run, span))
            return run_reduce_fetched(run, step);
    }
    dtn_fold(&sched->how, run_partial(step), dst, run->plan->terms, n,
             step->bytes / dtensor_dtype_size(sched->dtype));
    return 0;
}
