/* plan_bytes.c - the bytes that a plan moves, and the least that must move
 *
 * The bytes of an exchange are counted piece by piece.  Those of an allreduce
 * are counted in the schedules of its ranks, which are pure functions and can
 * be made for any rank.  An allreduce of 8 MiB by a ring of 4 sends 12 MiB from
 * each rank: 2 * 3/4 of the buffer.  The lower bound is what a rank needs and
 * does not have: from S(0) to S(1) on 4 ranks 3/4 of its part, which is exactly
 * what a direct exchange moves.
 */
#include "base/box.h"
#include "base/ranks.h"
#include "coll/choose.h"
#include "job/group.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/cross.h"
#include "redist/phases.h"
#include "redist/pieces.h"
#include "redist/plan.h"
#include "redist/predict.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/exchange.h"
#include "sched/model.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

/* The world rank whose bytes are counted; -1: all ranks. */
struct bytes_of {
    int from;
    int to;
};

static bool bytes_wanted(const struct bytes_of *of, int from, int to)
{
    return from != to && (of->from < 0 || of->from == from) &&
           (of->to < 0 || of->to == to);
}

/* ------------------------------------------------------------ exchanges --- */

/* The elements of these pieces that are counted; frees the pieces. */
static uint64_t bytes_pieces(const struct dtn_phase *phase,
                             struct dtn_pieces *pieces,
                             const struct bytes_of *of)
{
    uint64_t elems = 0;

    for (int i = 0; i < pieces->n; i++) {
        const struct dtn_piece *piece = &pieces->list[i];

        if (!dtn_phase_idle(phase, piece->receiver) &&
            bytes_wanted(of, dtensor_mesh_rank(phase->src.mesh, piece->source),
                         dtensor_mesh_rank(phase->dst.mesh, piece->receiver)))
            elems += (uint64_t)dtn_box_count(&piece->box);
    }
    dtn_pieces_fini(pieces);
    return elems;
}

/* Counted from the side on which fewer ranks are counted. */
static uint64_t bytes_exchange(const struct dtn_phase *phase,
                               const struct bytes_of *of)
{
    const bool sent = of->from >= 0;
    const struct dtensor_mesh *mesh = sent ? phase->src.mesh : phase->dst.mesh;
    const int rank = sent ? of->from : of->to;
    const int only = rank < 0 ? -1 : dtensor_mesh_index(mesh, rank);
    uint64_t elems = 0;

    for (int p = 0; p < mesh->group.n; p++) {
        struct dtn_pieces pieces = { 0 };

        if (rank >= 0 && p != only)
            continue;
        if (sent)
            dtn_pieces_sent(&phase->src, &phase->dst, p, &pieces, NULL);
        else
            dtn_pieces_received(&phase->src, &phase->dst, p, &pieces, NULL);
        elems += bytes_pieces(phase, &pieces, of);
    }
    return elems * dtensor_dtype_size(phase->dst.dtype);
}

/* ---------------------------------------------------------- collectives --- */

/* Add the bytes between ranks in one rank's schedule: those that it puts or
 * sends eagerly, and those that it loads from others.
 */
static uint64_t bytes_sched(const struct dtn_sched *sched,
                            const struct dtn_ranks *ranks,
                            const struct bytes_of *of)
{
    const int me = dtn_ranks_at(ranks, sched->me);
    uint64_t bytes = 0;

    for (int s = 0; s < sched->nsteps; s++) {
        const struct dtn_step *step = &sched->steps[s];
        const bool sends = step->op == DTN_OP_PUT ||
            (step->op == DTN_OP_SIGNAL && step->tag == DTN_TAG_EAGER);
        const bool loads = step->op == DTN_OP_COPY ||
            step->op == DTN_OP_REDUCE || step->op == DTN_OP_FOLD;

        if (sends && bytes_wanted(of, me, dtn_ranks_at(ranks, step->peer)))
            bytes += step->bytes;
        if (loads && step->src.rank >= 0 &&
            bytes_wanted(of, dtn_ranks_at(ranks, step->src.rank), me))
            bytes += step->bytes;
        for (int t = 0; loads && step->src.rank < 0
             && t < dtn_sched_nterms(sched); t++)
            if (bytes_wanted(of, dtn_ranks_at(ranks, dtn_sched_term(sched, t)),
                             me))
                bytes += step->bytes;
    }
    return bytes;
}

static uint64_t bytes_call(const struct dtn_phase *phase,
                           const struct dtn_group *group, size_t count,
                           const struct bytes_of *of)
{
    int *hosts = calloc((size_t)group->n, sizeof *hosts);
    struct dtn_call call = {
        .coll = phase->kind == DTN_PHASE_REDUCE ? DTN_COLL_ALLREDUCE
                                                : DTN_COLL_BROADCAST,
        .n = group->n, .dtype = phase->dst.dtype, .redop = phase->redop,
        .divisor = phase->divide, .count = count
    };
    struct dtn_choice pick;
    struct dtn_model model;
    struct dtn_sched sched;
    uint64_t bytes = 0;

    if (!hosts || dtn_model_make(group, hosts, &model, NULL) != 0) {
        free(hosts);
        return 0;
    }
    dtn_choose(&call, &model, &pick);
    call.hosts = hosts;
    for (call.me = 0; call.count > 0 && call.me < call.n; call.me++)
        if (pick.emitter->emit(&call, &sched, NULL) == 0) {
            bytes += bytes_sched(&sched, group->ranks, of);
            dtn_sched_fini(&sched);
        }
    free(hosts);
    return bytes;
}

static bool bytes_leads(const struct dtensor_mesh *mesh, unsigned dims,
                        int position)
{
    int coord[DTENSOR_MAX_DIMS];

    dtn_mesh_coord_of(mesh, position, coord);
    for (int m = 0; m < mesh->ndim; m++)
        if (dims >> m & 1 && coord[m] != 0)
            return false;
    return true;
}

/* May bytes that are asked for move between these ranks? */
static bool bytes_among(const struct bytes_of *of, const int rank[], int n)
{
    bool from = of->from < 0, to = of->to < 0;

    for (int i = 0; i < n; i++) {
        from |= rank[i] == of->from;
        to |= rank[i] == of->to;
    }
    return from && to;
}

/* One call for each group of the ranks, of `each` numbers for an element. */
static uint64_t bytes_calls(const struct dtn_phase *phase, size_t each,
                            const struct bytes_of *of)
{
    const struct dtensor_mesh *mesh = phase->src.mesh;
    int *rank = calloc((size_t)mesh->group.n, sizeof *rank);
    uint64_t bytes = 0;

    for (int p = 0; rank && p < mesh->group.n; p++) {
        struct dtn_ranks ranks = { .list = rank };
        struct dtn_group group = { .ctx = mesh->ctx, .ranks = &ranks };

        if (!bytes_leads(mesh, phase->dims, p))
            continue;
        group.n = ranks.n = dtn_mesh_along(mesh, phase->dims, p, rank);
        for (int i = 0; i < group.n; i++)
            rank[i] = dtensor_mesh_rank(mesh, rank[i]);
        if (bytes_among(of, rank, group.n))
            bytes += bytes_call(phase, &group,
                                (size_t)dtn_local_numel(&phase->dst, p) * each,
                                of);
    }
    free(rank);
    return bytes;
}

uint64_t dtensor_plan_bytes(const struct dtensor_plan *plan, int i, int from,
                            int to)
{
    const struct bytes_of of = { from, to };
    uint64_t bytes = 0;

    for (int s = 0; s < plan->nsteps; s++) {
        const struct dtn_phase *phase = &plan->step[s].phase;

        if (i >= 0 && s != i)
            continue;
        bytes += phase->kind == DTN_PHASE_EXCHANGE ? bytes_exchange(phase, &of)
                                                   : bytes_calls(phase, 1, &of);
    }
    return bytes;
}

uint64_t dtn_allreduce_bytes(const struct dtensor_spec *spec, unsigned dims,
                             size_t each)
{
    const struct dtn_phase phase = { .kind = DTN_PHASE_REDUCE, .src = *spec,
                                     .dst = *spec, .dims = dims,
                                     .redop = DTENSOR_SUM };

    return bytes_calls(&phase, each, &(struct bytes_of){ -1, -1 });
}

/* --------------------------------------------------------------- bounds --- */

/* The number of terms that become one. */
static uint64_t bound_terms(const struct dtensor_plan *plan)
{
    uint64_t terms = 1;

    for (int m = 0; m < plan->src.mesh->ndim; m++)
        if (plan->src.placement[m].kind == DTENSOR_PARTIAL &&
            plan->dst.placement[m].kind != DTENSOR_PARTIAL)
            terms *= (uint64_t)plan->src.mesh->size[m];
    return terms;
}

/* Without terms: what one exchange sends to a position.  With terms: each
 * element once, because it may be reduced anywhere.
 */
static uint64_t bound_at(const struct dtensor_plan *plan,
                         const struct dtn_phase *phase, int position)
{
    const struct bytes_of of = {
        -1, dtensor_mesh_rank(phase->dst.mesh, position)
    };
    const uint64_t terms = bound_terms(plan);
    struct dtn_pieces own = { 0 };
    uint64_t bytes = bytes_exchange(phase, &of);

    if (terms == 1 || dtn_phase_idle(phase, position))
        return bytes;
    dtn_pieces_between(&phase->src, &phase->dst, position, position, &own,
                       NULL);
    for (int i = 0; i < own.n; i++)
        bytes += (uint64_t)dtn_box_count(&own.list[i].box) *
                 dtensor_dtype_size(plan->dst.dtype);
    dtn_pieces_fini(&own);
    return bytes / terms;
}

uint64_t dtensor_plan_bound(const struct dtensor_plan *plan, int rank)
{
    const struct dtensor_mesh *mesh = plan->dst.mesh;
    const bool cross = plan->src.mesh != mesh;
    const int a = dtn_spec_partial(&plan->src);
    const int b = dtn_spec_partial(&plan->dst);
    struct dtn_phase phase;
    uint64_t bytes = 0;

    if ((a >= 0 && b >= 0 && a != b) || (cross && (a >= 0 || b >= 0)))
        return 0;
    phase = cross ? dtn_phase_cross(&plan->src, &plan->dst)
                  : dtn_phase_exchange(&plan->src, &plan->dst);
    for (int p = 0; p < mesh->group.n; p++)
        if (rank < 0 || dtensor_mesh_rank(mesh, p) == rank)
            bytes += cross ? bytes_exchange(&phase, &(struct bytes_of){
                                 -1, dtensor_mesh_rank(mesh, p) })
                           : bound_at(plan, &phase, p);
    return bytes;
}
