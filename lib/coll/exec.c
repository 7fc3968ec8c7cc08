/* exec.c - runs a schedule over the transports
 *
 * A plan is a schedule with everything it needs at hand: connections, scratch
 * memory, room for what the peers say of their buffers.  Running it walks the
 * steps in order.  READY tells a peer where this rank's IN, OUT and TMP are:
 * three 16-byte names, which fill the 48 bytes of a signal; the peer puts into
 * them or, where its transport maps, loads from them.  Nothing is allocated,
 * and no data moves before the peer's fingerprint was found to be ours.
 */
#include "coll/exec.h"

#include <string.h>

_Static_assert(DTN_NSPACES * sizeof(struct dtn_remote) == DTN_PAYLOAD_MAX,
               "READY carries the names of all spaces");

/* ------------------------------------------------------------- exposing --- */

/* Name one space to the peers of every transport; EINVAL if one cannot. */
static int run_register(struct exec_run *run, enum dtn_space space)
{
    struct dtensor_ctx *ctx = run->ctx;
    size_t bytes = run->plan->sched.bytes[space];
    int rc = 0;

    for (int t = 0; t < ctx->ntransports && rc == 0; t++)
        rc = ctx->transports[t]->ops->reg(ctx->transports[t], run->base[space],
                                          bytes, &run->name[t][space]);
    return rc;
}

static void run_unregister(struct exec_run *run)
{
    struct dtensor_ctx *ctx = run->ctx;

    for (int t = 0; t < ctx->ntransports; t++)
        for (int s = 0; s < DTN_NSPACES; s++)
            if (run->name[t][s].addr || run->name[t][s].key)
                ctx->transports[t]->ops->unreg(ctx->transports[t],
                                               run->name[t][s]);
}

/* Make the space reachable for peers, where it stands or in a bounce buffer. */
static int run_expose(struct exec_run *run, enum dtn_space space)
{
    size_t bytes = run->plan->sched.bytes[space];
    unsigned char *bounce;
    int rc;

    if (!run->plan->sched.exposed[space] || bytes == 0)
        return 0;
    rc = run_register(run, space);
    run->refused = rc != 0 && rc != DTENSOR_EINVAL;
    if (rc == 0 || run->refused)
        return rc;
    bounce = dtn_ctx_bounce(run->ctx, space, bytes);
    if (!bounce)
        return DTENSOR_ENOMEM;
    if (space == DTN_IN) {
        memcpy(bounce, run->base[space], bytes);
        run->ctx->copied_bytes += bytes;
    }
    run->base[space] = bounce;
    rc = run_register(run, space);
    run->refused = rc != 0;
    return rc;
}

/* Memory there was enough, but a device would not have it: or there was not. */
static int run_unexposed(struct exec_run *run, int rc)
{
    const size_t *bytes = run->plan->sched.bytes;
    char in[32], out[32];

    dtn_format_size(bytes[DTN_IN], in, sizeof in);
    dtn_format_size(bytes[DTN_OUT], out, sizeof out);
    if (run->refused)
        return dtn_poison(run->ctx, rc, run->ctx->self.rank, "the device "
                          "refused to register memory of this call, %s in and "
                          "%s out (may enough be locked? see ulimit -l; "
                          "DTN_LOG=warn says why)", in, out);
    return dtn_poison(run->ctx, rc, run->ctx->self.rank, "no room to stage "
                      "memory that peers cannot reach, %s in and %s out (use "
                      "dtensor_alloc)", in, out);
}

/* ---------------------------------------------------------------- steps --- */

static unsigned char *run_at(const struct exec_run *run,
                             const struct dtn_span *span)
{
    unsigned char *base = span->rank == run->plan->sched.me
                        ? run->base[span->space]
                        : run->plan->peers[span->rank].mapped[span->space];

    return base ? base + span->offset : NULL;     /* a barrier has no bytes */
}

static int run_mismatch(struct exec_run *run, int rank, uint32_t theirs)
{
    char name[320], mine_words[64], their_words[64];
    char *mine = dtn_fingerprint_words(run->fingerprint, mine_words,
                                       sizeof mine_words);
    char *other = dtn_fingerprint_words(theirs, their_words,
                                        sizeof their_words);

    dtn_ctx_rank_name(run->ctx, rank, name, sizeof name);
    if (strcmp(mine, other) == 0)
        return dtn_poison(run->ctx, DTENSOR_EMISMATCH, rank, "%s called %s "
                          "too, but with another count, root, shape or mesh "
                          "(all ranks must make the same call)", name, mine);
    return dtn_poison(run->ctx, DTENSOR_EMISMATCH, rank, "%s called %s, this "
                      "rank %s (all ranks must make the same calls in the "
                      "same order)", name, other, mine);
}

static int run_signal(struct exec_run *run, const struct dtn_step *step)
{
    const struct exec_peer *peer = &run->plan->peers[step->peer];
    struct dtn_signal signal = { .fingerprint = run->fingerprint,
                                 .tag = (uint16_t)step->tag };
    int t = 0;

    if (step->tag == DTN_TAG_READY) {
        while (run->ctx->transports[t] != peer->tp)
            t++;
        signal.len = sizeof run->name[t];
        memcpy(signal.payload, run->name[t], sizeof run->name[t]);
    } else if (step->tag == DTN_TAG_CARRY && step->bytes > 0) {
        signal.len = (uint16_t)step->bytes;
        return dtn_carry(run->ctx, peer->rank, &signal,
                         run_at(run, &step->src));
    }
    return dtn_signal(run->ctx, peer->rank, &signal);
}

/* The peer said where its spaces are. */
static void run_take_ready(struct exec_peer *peer,
                           const struct dtn_signal *signal)
{
    memcpy(peer->remote, signal->payload, sizeof peer->remote);
    for (int s = 0; s < DTN_NSPACES; s++)
        peer->mapped[s] = peer->remote[s].addr || peer->remote[s].key
            ? peer->tp->ops->map(peer->tp, peer->rank, peer->remote[s]) : NULL;
}

static int run_wait(struct exec_run *run, const struct dtn_step *step)
{
    struct exec_peer *peer = &run->plan->peers[step->peer];
    const struct dtn_signal *signal;
    int rc = run->polls ? dtn_poll(run->ctx, peer->rank, &run->wait, &signal)
                        : dtn_await(run->ctx, peer->rank, &signal);

    if (rc != 0)
        return rc;
    run->wait.start_ns = 0;
    if (signal->fingerprint != run->fingerprint || signal->tag != step->tag)
        return run_mismatch(run, peer->rank, signal->fingerprint);
    if (step->tag == DTN_TAG_READY)
        run_take_ready(peer, signal);
    else if (signal->len != step->bytes)
        return run_mismatch(run, peer->rank, signal->fingerprint);
    else if (step->bytes > 0)
        memcpy(run_at(run, &step->dst),
               dtn_carried(run->ctx, peer->rank, signal), step->bytes);
    dtn_consume(run->ctx, peer->rank);
    return 0;
}

/* Run by run. */
static int run_put_box(struct exec_run *run, int rank, struct dtn_remote dst,
                       const struct dtn_step *step)
{
    struct dtn_box box = run->plan->sched.boxes[step->box];
    int64_t elem = (int64_t)dtensor_dtype_size(run->plan->sched.dtype);
    const unsigned char *src = run_at(run, &step->src);
    struct dtn_walk walk = { .box = &box };
    size_t bytes = dtn_box_take_run(&box) * (size_t)elem;
    int rc;

    do {
        struct dtn_remote to = dst;

        to.addr += (uint64_t)(walk.dst * elem);
        rc = dtn_put(run->ctx, rank, to, src + walk.src * elem, bytes);
    } while (rc == 0 && dtn_walk_next(&walk));
    return rc;
}

static int run_put(struct exec_run *run, const struct dtn_step *step)
{
    const struct exec_peer *peer = &run->plan->peers[step->peer];
    struct dtn_remote dst = peer->remote[step->dst.space];

    dst.addr += step->dst.offset;
    if (step->box >= 0)
        return run_put_box(run, peer->rank, dst, step);
    return dtn_put(run->ctx, peer->rank, dst, run_at(run, &step->src),
                   step->bytes);
}

/* A peer named memory that its transport cannot map. */
static int run_unmapped(struct exec_run *run, int position)
{
    int rank = run->plan->peers[position].rank;
    char name[320];

    return dtn_poison(run->ctx, DTENSOR_EPEER, rank, "%s named memory outside "
                      "its arena (its context is damaged)",
                      dtn_ctx_rank_name(run->ctx, rank, name, sizeof name));
}

static bool run_mapped(const struct exec_run *run, const struct dtn_span *span)
{
    return span->rank == run->plan->sched.me
        || run->plan->peers[span->rank].mapped[span->space];
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

static int run_move(struct exec_run *run, const struct dtn_step *step)
{
    const struct dtn_sched *sched = &run->plan->sched;
    size_t elem = dtensor_dtype_size(sched->dtype);
    const void *terms[2];
    unsigned char *dst;
    const unsigned char *src;

    if (!run_mapped(run, &step->src))
        return run_unmapped(run, step->src.rank);
    terms[0] = dst = run_at(run, &step->dst);
    terms[1] = src = run_at(run, &step->src);
    if (step->op == DTN_OP_COPY && dst != src)
        run_count(run, step);
    if (step->op == DTN_OP_COPY && step->box >= 0)
        dtn_box_copy(&sched->boxes[step->box], elem, dst, src);
    else if (step->op == DTN_OP_COPY && dst != src)
        memcpy(dst, src, step->bytes);
    else if (step->op == DTN_OP_COPY)
        return 0;                 /* in place: peers may be reading            */
    else if (step->box >= 0)
        dtn_box_reduce(&sched->boxes[step->box], sched->dtype, sched->redop,
                       dst, src);
    else
        dtn_reduce(sched->dtype, sched->redop, dst, terms, 2,
                   step->bytes / elem);
    return 0;
}

/* The terms are the same bytes of several ranks, or slots of the own memory. */
static int run_fold(struct exec_run *run, const struct dtn_step *step)
{
    const struct dtn_sched *sched = &run->plan->sched;
    struct dtn_span span = step->src;
    int nterms = step->src.rank >= 0 ? step->slots
               : sched->terms ? sched->nterms : sched->n;

    for (int p = 0; p < nterms; p++) {
        if (step->src.rank < 0)
            span.rank = sched->terms ? sched->terms[p] : p;
        if (!run_mapped(run, &span))
            return run_unmapped(run, span.rank);
        run->plan->terms[p] = run_at(run, &span);
        if (step->src.rank >= 0)
            span.offset += step->bytes;
    }
    dtn_reduce(sched->dtype, sched->redop, run_at(run, &step->dst),
               run->plan->terms, nterms,
               step->bytes / dtensor_dtype_size(sched->dtype));
    return 0;
}

static int run_step(struct exec_run *run, const struct dtn_step *step)
{
    const struct dtn_sched *sched = &run->plan->sched;
    size_t count;

    switch (step->op) {
    case DTN_OP_PUT:
        return run_put(run, step);
    case DTN_OP_FLUSH:
        return dtn_flush(run->ctx, run->plan->peers[step->peer].rank);
    case DTN_OP_SIGNAL:
        return run_signal(run, step);
    case DTN_OP_WAIT:
        return run_wait(run, step);
    case DTN_OP_COPY:
    case DTN_OP_REDUCE:
        return run_move(run, step);
    case DTN_OP_FOLD:
        return run_fold(run, step);
    case DTN_OP_SCALE:
    case DTN_OP_NEUTRAL:
        count = step->bytes / dtensor_dtype_size(sched->dtype);
        if (step->op == DTN_OP_SCALE)
            dtn_scale(sched->dtype, run_at(run, &step->dst), count,
                      sched->divisor);
        else
            dtn_fill_neutral(sched->dtype, sched->redop,
                             run_at(run, &step->dst), count);
        return 0;
    case DTN_NOPS:
        break;
    }
    return DTENSOR_EINVAL;
}

/* From where it stands to the end; EAGAIN: to a signal that is not there. */
static int run_steps(struct exec_run *run)
{
    const struct dtn_sched *sched = &run->plan->sched;
    int rc = 0;

    for (; run->step < sched->nsteps; run->step++) {
        rc = run_step(run, &sched->steps[run->step]);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int run_begin(struct exec_run *run, struct dtn_plan *plan,
                     const void *in, void *out, uint32_t fingerprint)
{
    int rc = 0;

    run->plan = plan;
    run->ctx = plan->group.ctx;
    run->fingerprint = fingerprint;
    run->out = out;
    run->ctx->calls++;
    run->base[DTN_IN] = (unsigned char *)(uintptr_t)in;
    run->base[DTN_OUT] = out;
    run->base[DTN_TMP] = plan->tmp;
    for (int s = 0; s < DTN_NSPACES && rc == 0; s++)
        rc = run_expose(run, (enum dtn_space)s);
    return rc == 0 ? 0 : run_unexposed(run, rc);
}

static int run_end(struct exec_run *run, int rc, struct dtensor_error *err)
{
    const size_t bytes = run->plan->sched.bytes[DTN_OUT];

    run_unregister(run);
    if (rc != 0)
        return dtn_ctx_check(run->ctx, err);
    if (run->base[DTN_OUT] != run->out) {
        memcpy(run->out, run->base[DTN_OUT], bytes);
        run->ctx->copied_bytes += bytes;
    }
    return 0;
}

int dtn_plan_run(struct dtn_plan *plan, const void *in, void *out,
                 uint32_t fingerprint, struct dtensor_error *err)
{
    struct exec_run run = { .step = 0 };
    int rc = dtn_ctx_check(plan->group.ctx, err);

    if (rc == 0 && plan->group.ctx->pending)
        rc = dtn_pending_finish(plan->group.ctx, err);
    if (rc != 0)
        return rc;
    rc = run_begin(&run, plan, in, out, fingerprint);
    if (rc == 0)
        rc = run_steps(&run);
    return run_end(&run, rc, err);
}

int dtn_plan_start(struct dtn_plan *plan, const void *in, void *out,
                   uint32_t fingerprint, struct dtensor_error *err)
{
    int rc = dtn_ctx_check(plan->group.ctx, err);

    if (rc != 0)
        return rc;
    plan->started = (struct exec_run){ .polls = true };
    rc = run_begin(&plan->started, plan, in, out, fingerprint);
    return rc == 0 ? 0 : run_end(&plan->started, rc, err);
}

int dtn_plan_poll(struct dtn_plan *plan, struct dtensor_error *err)
{
    int rc = dtn_ctx_check(plan->group.ctx, err);

    if (rc == 0)
        rc = run_steps(&plan->started);
    return rc == DTENSOR_EAGAIN ? rc : run_end(&plan->started, rc, err);
}
