/* cma.c - reads private memory of peers by cross-memory attach
 *
 * A peer on this host may expose memory that this rank cannot map.  Then one
 * system call, process_vm_readv(), copies it.  A copy goes straight to its
 * destination.  Terms of a reduction are read in pieces, 64 KiB of each of two
 * terms, so that they are still in this CPU's cache when they are reduced: 2
 * MiB of f32 are 32 pieces, each with 7 us to read and 2 us to reduce.
 *
 * The kernel finds the memory by process id.  After the peer's death another
 * process may get that id.  So after the last read this checks that the peer is
 * alive.
 */
#include "coll/exec/cma.h"
#include "base/compiler.h"
#include "base/reduce.h"
#include "coll/exec/bind.h"
#include "coll/exec/exec.h"
#include "coll/exec/launch.h"
#include "coll/exec/peer.h"
#include "coll/exec/run.h"
#include "coll/exec/terms.h"
#include "job/await.h"
#include "job/bounce.h"
#include "job/ctx.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"

#define PIECES_BYTES ((size_t)128 << 10)         /* of all terms              */
#define PIECE_MIN_BYTES ((size_t)8 << 10)

/* `bytes` are those of the step, not of memory. */
static int cma_read(const struct dtn_exec_run *run, void *dst,
                    const struct dtn_span *span, size_t bytes)
{
    const struct dtn_exec_peer *peer = &run->exec->peers[span->rank];
    struct dtn_remote src = peer->remote[dtn_exec_name(span->space)];
    const size_t scale = run->exec->scale[span->space];

    src.addr += span->offset * scale;
    return dtn_fetch(run->ctx, peer->rank, dst, src, bytes * scale);
}

static int cma_no_room(struct dtn_exec_run *run, size_t bytes)
{
    return dtn_poison(run->ctx, DTENSOR_ENOMEM, run->ctx->world.rank,
                      "no room for %zu bytes to fetch terms into", bytes);
}

static struct dtn_bounce *cma_take(const struct dtn_exec_run *run, size_t bytes)
{
    return dtn_bounce_take(run->ctx, DTN_BOUNCE_TERMS, run->memory, bytes);
}

/* Copy to a device through host memory. */
static int cma_copy_device(struct dtn_exec_run *run, void *dst,
                           const struct dtn_exec_step *bound)
{
    struct dtn_bounce *scratch = cma_take(run, bound->bytes);
    int rc;

    if (!scratch)
        return cma_no_room(run, bound->bytes);
    rc = cma_read(run, scratch->mem, &bound->step->src, bound->step->bytes);
    if (rc == 0)
        rc = dtn_run_download(run, dst, scratch->mem, bound->bytes);
    dtn_bounce_give(run->ctx, scratch);
    return rc;
}

int dtn_cma_copy(struct dtn_exec_run *run, void *dst,
                 const struct dtn_exec_step *bound)
{
    const struct dtn_step *step = bound->step;
    int rc = dtn_run_is_device(run, dst)
           ? cma_copy_device(run, dst, bound)
           : cma_read(run, dst, &step->src, step->bytes);

    return rc != 0 ? rc
         : dtn_fetched(run->ctx, run->exec->peers[step->src.rank].rank);
}

/* Make bytes from `at` on of every term readable for this CPU. */
static int cma_terms(struct dtn_exec_run *run,
                     const struct dtn_exec_step *bound,
                     size_t at, size_t bytes, unsigned char *scratch)
{
    const struct dtn_sched *sched = &run->exec->sched;
    int rc = 0;

    for (int i = 0; i < bound->nterms && rc == 0; i++) {
        struct dtn_span slot, span = *dtn_terms_span(sched, bound->step, i,
                                                     &slot);
        const size_t scale = run->exec->scale[span.space];

        if (dtn_run_maps(run, bound->terms[i])) {
            run->exec->terms[i] = dtn_run_at(run, bound->terms[i]) + at * scale;
            continue;
        }
        span.offset += at;
        rc = cma_read(run, scratch, &span, bytes);
        run->exec->terms[i] = scratch;
        scratch += bytes * scale;
    }
    return rc;
}

/* Are all peers alive whose memory was read? */
static int cma_check(const struct dtn_exec_run *run,
                     const struct dtn_exec_step *bound)
{
    int rc = 0;

    for (int i = 0; i < bound->nterms && rc == 0; i++) {
        struct dtn_span slot;

        if (!dtn_run_maps(run, bound->terms[i]))
            rc = dtn_fetched(run->ctx, run->exec->peers[
                dtn_terms_span(&run->exec->sched, bound->step, i, &slot)->rank]
                .rank);
    }
    return rc;
}

/* Reduce piece by piece; `scratch` has room for a piece of each term. */
static int cma_pieces(struct dtn_exec_run *run,
                      const struct dtn_exec_step *bound, size_t piece,
                      unsigned char *scratch)
{
    const struct dtn_step *step = bound->step;
    const struct dtn_sched *sched = &run->exec->sched;
    const size_t elem = dtensor_dtype_size(sched->dtype),
                 scale = run->exec->scale[step->dst.space];
    unsigned char *dst = dtn_run_at(run, bound->dst);
    size_t bytes;
    int rc = 0;

    for (size_t at = 0; at < step->bytes && rc == 0; at += bytes) {
        bytes = step->bytes - at < piece ? step->bytes - at : piece;
        rc = cma_terms(run, bound, at, bytes, scratch);
        if (rc == 0)
            rc = dtn_run_done(run, run->memory->ops->fold(
                run->memory, &sched->reduction, bound->partial,
                dst + at * scale, run->exec->terms, bound->nterms,
                bytes / elem));
        if (rc == 0)
            rc = dtn_run_settle(run, true);        /* scratch is free again   */
    }
    return rc;
}

/* Bytes of scratch for the terms of a reduction, of which it reads `piece` at a
 * time.
 */
static size_t cma_scratch(const struct dtn_exec_run *run,
                          const struct dtn_exec_step *bound, size_t *piece)
{
    const size_t terms = (size_t)bound->nterms
                       * run->exec->scale[bound->step->src.space];

    *piece = PIECES_BYTES / terms / DTN_CACHE_LINE * DTN_CACHE_LINE;
    if (*piece < PIECE_MIN_BYTES)
        *piece = PIECE_MIN_BYTES;
    return terms * *piece;
}

int dtn_cma_reduce(struct dtn_exec_run *run, const struct dtn_exec_step *bound)
{
    size_t piece;
    const size_t bytes = cma_scratch(run, bound, &piece);
    struct dtn_bounce *scratch = cma_take(run, bytes);
    int rc;

    if (!scratch)
        return cma_no_room(run, bytes);
    rc = cma_pieces(run, bound, piece, scratch->mem);
    dtn_bounce_give(run->ctx, scratch);
    return rc == 0 ? cma_check(run, bound) : rc;
}

int dtn_cma_warm(struct dtn_exec_run *run)
{
    const struct dtn_exec *exec = run->exec;
    struct dtn_bounce *scratch;
    size_t most = 0, piece;

    for (int s = 0; s < dtn_sched_all(&exec->sched); s++) {
        const struct dtn_exec_step *bound = &exec->steps[s];
        const size_t bytes = bound->nterms > 0 && bound->step->box < 0
                           ? cma_scratch(run, bound, &piece) : 0;

        most = bytes > most ? bytes : most;
    }
    if (most == 0)
        return 0;
    scratch = cma_take(run, most);
    if (!scratch)
        return cma_no_room(run, most);
    dtn_bounce_give(run->ctx, scratch);
    return 0;
}
