/* exec.c - makes a schedule ready to run
 *
 * An executable has scratch, and room for what peers will send, so a run
 * allocates nothing.  The first run connects to every peer that a step names:
 * in a ring over 8 ranks these are two, in an exchange the ranks that exchange
 * data with this one.  A first run that is started connects without waiting for
 * them.
 */
#include "coll/exec/exec.h"
#include "base/error.h"
#include "base/ranks.h"
#include "base/reduce.h"
#include "base/sparse.h"
#include "boot/boot.h"
#include "coll/exec.h"
#include "coll/exec/bind.h"
#include "coll/exec/graph.h"
#include "coll/exec/peer.h"
#include "coll/exec/ready.h"
#include "coll/exec/window.h"
#include "coll/record.h"
#include "coll/state.h"
#include "device/memory.h"
#include "job/ctx.h"
#include "job/group.h"
#include "sched/call.h"
#include "sched/fingerprint.h"
#include "sched/sched.h"
#include "transport/arena.h"
#include "transport/arena_size.h"
#include "transport/transport.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Does a step need something of the peer that it names? */
static bool exec_meets(const struct dtn_step *step)
{
    return step->op == DTN_OP_SIGNAL || step->op == DTN_OP_WAIT
        || step->op == DTN_OP_PUT;
}

static int exec_compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Sort the positions, and leave out those that are there already. */
static int exec_distinct(int list[], int n)
{
    int kept = 0;

    qsort(list, (size_t)n, sizeof list[0], exec_compare);
    for (int i = 0; i < n; i++)
        if (kept == 0 || list[kept - 1] != list[i])
            list[kept++] = list[i];
    return kept;
}

/* List the positions that steps name, and this one. */
static int exec_meeting(struct dtn_exec *exec, struct dtensor_error *err)
{
    const struct dtn_sched *sched = &exec->sched;
    const size_t bytes = ((size_t)sched->nsteps + 1) * sizeof *exec->met;
    int n = 0;

    exec->met = malloc(bytes);
    if (!exec->met)
        return dtn_fail_nomem(err, sched->name, bytes);
    if (sched->me >= 0)
        exec->met[n++] = sched->me;
    for (int s = 0; s < sched->nsteps; s++)
        if (exec_meets(&sched->steps[s]))
            exec->met[n++] = sched->steps[s].peer;
    exec->nmet = exec_distinct(exec->met, n);
    return 0;
}

/* Describe these peers. */
static void exec_describe(struct dtn_exec *exec)
{
    struct dtensor_ctx *ctx = exec->group.ctx;

    for (int i = 0; i < exec->nmet; i++) {
        struct dtn_exec_peer *peer = &exec->peers[exec->met[i]];

        peer->rank = dtn_ranks_at(exec->group.ranks, exec->met[i]);
        peer->tp = dtn_wire_to(ctx, peer->rank);
        while (peer->tp && ctx->transports[peer->transport] != peer->tp)
            peer->transport++;
        exec->wires |= peer->tp ? 1u << peer->transport : 0;
    }
}

/* The first run of the executable connects to every peer that a step names. */
static int exec_unmet(struct dtn_exec *exec, struct dtensor_error *err)
{
    const size_t bytes = ((size_t)exec->nmet + 1) * sizeof *exec->unmet;

    exec->unmet = malloc(bytes);
    if (!exec->unmet)
        return dtn_fail_nomem(err, exec->sched.name, bytes);
    for (int i = 0; i < exec->nmet; i++)
        exec->unmet[exec->nunmet++] = dtn_ranks_at(exec->group.ranks,
                                                   exec->met[i]);
    return 0;
}

/* A mismatch found while ranks connect is reported with the call of the
 * executable.
 */
static int exec_meet(struct dtn_exec *exec, bool waits,
                     struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = exec->group.ctx;
    int rc;

    ctx->connecting_call = &exec->record;
    rc = waits ? dtn_ctx_connect(ctx, exec->unmet, exec->nunmet, err)
               : dtn_poll_connect(ctx, exec->unmet, exec->nunmet,
                                  &exec->meeting, err);
    ctx->connecting_call = NULL;
    if (rc != 0)
        return rc;
    free(exec->unmet);
    exec->unmet = NULL;
    return 0;
}

int dtn_exec_connect(struct dtn_exec *exec, struct dtensor_error *err)
{
    return exec->unmet ? exec_meet(exec, true, err) : 0;
}

int dtn_exec_meet(struct dtn_exec *exec, struct dtensor_error *err)
{
    return exec->unmet ? exec_meet(exec, false, err) : 0;
}

/* Which spaces do peers access, and from which buffers of the user are puts? */
static void exec_spaces(struct dtn_exec *exec)
{
    const struct dtn_sched *sched = &exec->sched;
    bool puts[DTN_NSPACES] = { false };

    for (int s = 0; s < sched->nsteps; s++)
        if (sched->steps[s].op == DTN_OP_PUT)
            puts[sched->steps[s].src.space] = true;
    for (int s = 0; s < DTN_NSPACES; s++)
        if (sched->bytes[s] > 0
            && (sched->exposed[s] || (puts[s] && s <= DTN_OUT)))
            exec->spaces[exec->nspaces++] = (enum dtn_space)s;
}

/* Does a step send READY, or does a peer access a space? */
static bool exec_names(const struct dtn_sched *sched)
{
    bool names = false;

    for (int s = 0; s < DTN_NSPACES; s++)
        names |= sched->exposed[s];
    for (int s = 0; s < sched->nsteps; s++)
        names |= sched->steps[s].op == DTN_OP_SIGNAL
              && sched->steps[s].tag == DTN_TAG_READY;
    return names;
}

/* May its exposed buffers be private memory that is not always staged? */
static bool exec_tries(const struct dtn_exec *exec)
{
    const struct dtensor_ctx *ctx = exec->group.ctx;
    const struct dtn_sched *sched = &exec->sched;
    bool fetches = false;

    for (int t = 0; t < ctx->ntransports; t++)
        fetches |= ctx->transports[t]->ops->fetch != NULL;
    return fetches && (sched->exposed[DTN_IN] || sched->exposed[DTN_OUT])
        && sched->expose != DTN_EXPOSE_STAGED_ONLY;
}

/* Of long data a socket may take a part.  The rest must leave before the call
 * ends: after it this rank may compute for long, or wait for the peer without
 * the library.  So the last steps flush.
 */
static int exec_flush_long(struct dtn_exec *exec, struct dtensor_error *err)
{
    struct dtn_sched *sched = &exec->sched;
    const int nsteps = sched->nsteps;

    for (int s = 0; s < nsteps; s++) {
        const struct dtn_step *step = &sched->steps[s];

        if (step->op == DTN_OP_SIGNAL
            && step->bytes * exec->scale[step->src.space] > DTN_EAGER_MAX)
            dtn_sched_flush(sched, step->peer);
    }
    return dtn_sched_finish(sched, err);
}

/* Allocate what is indexed by position. */
static int exec_positions(struct dtn_exec *exec, struct dtensor_error *err)
{
    exec->npeers = (size_t)exec->sched.n;
    exec->peers = dtn_sparse_new(exec->npeers, sizeof *exec->peers);
    exec->base = dtn_sparse_new(dtn_exec_nbase(exec), sizeof *exec->base);
    return exec->peers && exec->base ? 0
         : dtn_fail_nomem(err, exec->sched.name,
                          exec->npeers * sizeof *exec->peers);
}

/* Allocate what is indexed by the terms of a step, or by its puts. */
static int exec_terms(struct dtn_exec *exec, struct dtensor_error *err)
{
    size_t most = 1;

    for (int s = 0; s < dtn_sched_all(&exec->sched); s++) {
        const struct dtn_exec_step *step = &exec->steps[s];

        most = (size_t)step->nterms > most ? (size_t)step->nterms : most;
        most = step->nputs > most ? step->nputs : most;
    }
    exec->terms = calloc(most + 1, sizeof *exec->terms);
    exec->places = calloc(most + 1, sizeof *exec->places);
    return exec->terms && exec->places ? 0
         : dtn_fail_nomem(err, exec->sched.name, most * sizeof *exec->terms);
}

static int exec_fill(struct dtn_exec *exec, struct dtensor_error *err)
{
    struct dtensor_ctx *ctx = exec->group.ctx;
    size_t scratch = dtn_sched_scratch(&exec->sched);
    int rc;

    exec->named = exec_names(&exec->sched);
    exec_spaces(exec);
    exec->tries = exec_tries(exec);
    exec->trials.best = -1;
    rc = exec_positions(exec, err);
    if (rc == 0)
        rc = exec_meeting(exec, err);
    if (rc != 0)
        return rc;
    exec_describe(exec);
    for (int s = 0; s < DTN_NSPACES; s++)
        exec->scale[s] = s == DTN_ACC
                       ? dtn_reduction_ratio(&exec->sched.reduction) : 1;
    if (scratch > 0 && !exec->sched.lent) {
        exec->tmp = dtn_arena_alloc(&ctx->arena, scratch);
        if (!exec->tmp)
            return dtn_arena_fail(&ctx->arena, exec->sched.name, scratch, err);
        exec->acc = exec->tmp + scratch - exec->sched.bytes[DTN_ACC]
                                          * exec->scale[DTN_ACC];
    }
    exec->base[DTN_TMP] = exec->tmp;
    exec->base[DTN_ACC] = exec->acc;
    rc = exec_flush_long(exec, err);
    if (rc == 0)
        rc = dtn_exec_bind(exec, err);
    if (rc == 0)
        rc = exec_terms(exec, err);
    if (rc == 0)
        rc = dtn_ready_access(exec, err);
    return rc == 0 ? exec_unmet(exec, err) : rc;
}

int dtn_exec_create(const struct dtn_group *group, struct dtn_sched *sched,
                    struct dtn_exec **execp, struct dtensor_error *err)
{
    struct dtn_exec *exec = calloc(1, sizeof *exec);
    int rc;

    if (!exec)
        return dtn_fail_nomem(err, sched->name, sizeof *exec);
    exec->group = *group;
    exec->sched = *sched;
    rc = exec_fill(exec, err);
    if (rc != 0) {
        *sched = exec->sched;
        memset(&exec->sched, 0, sizeof exec->sched);
        dtn_exec_destroy(exec);
        return rc;
    }
    memset(sched, 0, sizeof *sched);
    *execp = exec;
    return 0;
}

void dtn_exec_set_record(struct dtn_exec *exec,
                         const struct dtn_call_record *said,
                         double predicted_ns)
{
    exec->record = *said;
    exec->predicted_ns = predicted_ns;
    exec->messages = dtn_fingerprint_coll(said->base) == DTN_COLL_PAIRS;
}

void dtn_exec_set_text(struct dtn_exec *exec, uint64_t base, const char *text)
{
    exec->record.kind = DTN_RECORD_WORDED;
    exec->record.base = base;
    exec->record.text = text;
}

/* Each message has one step with match bits: the step that is not DATA. */
void dtn_exec_count_messages(struct dtn_exec *exec)
{
    struct dtn_coll_state *coll = dtn_coll_of(exec->group.ctx);

    for (int s = 0; s < exec->sched.nsteps; s++) {
        struct dtn_step *step = &exec->sched.steps[s];
        struct dtn_exec_peer *peer;
        uint64_t turn;

        if ((step->op != DTN_OP_SIGNAL && step->op != DTN_OP_WAIT)
            || step->tag == DTN_TAG_DATA)
            continue;
        peer = &exec->peers[step->peer];
        turn = dtn_fingerprint_mix(DTN_MIX_TURN,
                                    ++coll->peers[peer->rank]
                                          .messages[step->is_recv]);
        step->match_bits ^= peer->turn[step->is_recv] ^ turn;
        peer->turn[step->is_recv] = turn;
    }
}

void dtn_exec_destroy(struct dtn_exec *exec)
{
    if (!exec)
        return;
    dtn_graph_destroy(exec);
    if (exec->window)
        dtn_exec_destroy(exec->window->exec);
    free(exec->window);
    dtn_arena_free(&exec->group.ctx->arena, exec->tmp);
    if (exec->far)
        dtn_arena_free(exec->group.ctx->device->arena, exec->far);
    dtn_sched_fini(&exec->sched);
    dtn_sparse_free(exec->peers, exec->npeers, sizeof *exec->peers);
    dtn_sparse_free(exec->base, dtn_exec_nbase(exec), sizeof *exec->base);
    free(exec->terms);
    free(exec->places);
    free(exec->met);
    free(exec->steps);
    free(exec->unmet);
    free(exec->reach);
    free(exec);
}

const struct dtn_sched *dtn_exec_sched(const struct dtn_exec *exec)
{
    return &exec->sched;
}

struct dtn_ranks dtn_exec_met(const struct dtn_exec *exec)
{
    return (struct dtn_ranks){ .n = exec->nmet, .list = exec->met };
}
