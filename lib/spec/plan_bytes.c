/* plan_bytes.c - what a plan moves, counted, and what has to move
 *
 * An exchange is counted piece by piece; an allreduce by the schedules of its
 * ranks, which are pure functions and can be had for anybody.  8 MiB allreduced
 * by a ring of 4 is 12 MiB from each rank: 2 * 3/4 of the buffer.  The bound is
 * what a rank is to hold and does not hold: from S(0) to S(1) on 4 ranks 3/4 of
 * its part, which is what a direct exchange brings it.
 */
#include "spec/redist.h"

#include <stdlib.h>

/* Whose bytes are asked for: positions in the mesh, -1 all. */
struct bytes_of {
    int from;
    int to;
};

static bool bytes_wanted(const struct bytes_of *of, int from, int to)
{
    return from != to && (of->from < 0 || of->from == from) &&
           (of->to < 0 || of->to == to);
}

/* ------------------------------------------------------------- exchanges --- */

static uint64_t bytes_exchange(const struct dtn_phase *phase, int root,
                               const struct bytes_of *of)
{
    const int end = of->to < 0 ? phase->dst.mesh->group.n : of->to + 1;
    struct dtn_pieces pieces = { 0 };
    uint64_t elems = 0;
    int rc = 0;

    for (int to = of->to < 0 ? 0 : of->to; rc == 0 && to < end; to++) {
        pieces.n = 0;
        rc = dtn_redist_received(phase, root, of->from, to, &pieces, NULL);
        for (int i = 0; i < pieces.n; i++)
            if (bytes_wanted(of, pieces.list[i].source, to))
                elems += (uint64_t)dtn_box_count(&pieces.list[i].box);
    }
    dtn_pieces_fini(&pieces);
    return rc != 0 ? UINT64_MAX : elems * dtensor_dtype_size(phase->dst.dtype);
}

/* ------------------------------------------------------------ collectives --- */

/* Add what goes between ranks in one rank's schedule: what it puts and carries,
 * and what it loads from others.
 */
static uint64_t bytes_sched(const struct dtn_sched *sched, const int position[],
                            const struct bytes_of *of)
{
    const int me = position[sched->me];
    uint64_t bytes = 0;

    for (int s = 0; s < sched->nsteps; s++) {
        const struct dtn_step *step = &sched->steps[s];
        const bool sends = step->op == DTN_OP_PUT ||
            (step->op == DTN_OP_SIGNAL && step->tag == DTN_TAG_CARRY);
        const bool loads = step->op == DTN_OP_COPY ||
            step->op == DTN_OP_REDUCE || step->op == DTN_OP_FOLD;

        if (sends && bytes_wanted(of, me, position[step->peer]))
            bytes += step->bytes;
        if (loads && step->src.rank >= 0 &&
            bytes_wanted(of, position[step->src.rank], me))
            bytes += step->bytes;
        for (int p = 0; loads && step->src.rank < 0 && p < sched->n; p++)
            if (bytes_wanted(of, position[p], me))
                bytes += step->bytes;
    }
    return bytes;
}

static uint64_t bytes_call(const struct dtn_phase *phase,
                           const struct dtn_group *group, const int position[],
                           const struct bytes_of *of)
{
    struct dtensor_ctx *ctx = group->ctx;
    int *hosts = calloc((size_t)group->n, sizeof *hosts);
    struct dtn_call call = {
        .coll = phase->kind == DTN_PHASE_REDUCE ? DTN_COLL_ALLREDUCE
                                                : DTN_COLL_BROADCAST,
        .n = group->n, .dtype = phase->dst.dtype, .redop = phase->redop,
        .count = (size_t)dtn_local_numel(&phase->dst, position[0])
    };
    const struct dtn_emitter *emitter;
    struct dtn_sched sched;
    uint64_t bytes = 0;

    if (!hosts)
        return UINT64_MAX;
    emitter = dtn_choose(&call, dtn_group_reach(group, hosts),
                         ctx->cluster->tuning);
    call.hosts = hosts;
    for (call.me = 0; call.count > 0 && call.me < call.n; call.me++)
        if (emitter->emit(&call, &sched, NULL) == 0) {
            bytes += bytes_sched(&sched, position, of);
            dtn_sched_fini(&sched);
        }
    free(hosts);
    return bytes;
}

/* The positions that share with `first` the coordinates not in `dims`, as a
 * group; `first` has coordinate 0 along them.
 */
static int bytes_group(const struct dtensor_mesh *mesh, unsigned dims,
                       int first, int position[], int rank[])
{
    int n = 1;

    position[0] = first;
    for (int m = mesh->ndim - 1, step = 1; m >= 0; step *= mesh->size[m--]) {
        const int before = n;

        for (int c = 1; dims >> m & 1 && c < mesh->size[m]; c++)
            for (int i = 0; i < before; i++)
                position[n++] = position[i] + c * step;
    }
    for (int i = 0; i < n; i++)
        rank[i] = mesh->group.ranks[position[i]];
    return n;
}

static int bytes_ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static uint64_t bytes_calls(const struct dtn_phase *phase,
                            const struct bytes_of *of)
{
    const struct dtensor_mesh *mesh = phase->src.mesh;
    int *position = calloc(2 * (size_t)mesh->group.n, sizeof *position);
    int *rank = position + mesh->group.n, coord[DTENSOR_MAX_DIMS];
    uint64_t bytes = 0;

    for (int p = 0; position && p < mesh->group.n; p++) {
        struct dtn_group group = { .ctx = mesh->ctx, .ranks = rank };
        bool leads = true;

        dtn_mesh_coord_of(mesh, p, coord);
        for (int m = 0; m < mesh->ndim; m++)
            leads &= !(phase->dims >> m & 1) || coord[m] == 0;
        if (!leads)
            continue;
        group.n = bytes_group(mesh, phase->dims, p, position, rank);
        qsort(position, (size_t)group.n, sizeof *position, bytes_ascending);
        for (int i = 0; i < group.n; i++)
            rank[i] = mesh->group.ranks[position[i]];
        bytes += bytes_call(phase, &group, position, of);
    }
    free(position);
    return bytes;
}

/* -------------------------------------------------------------- questions --- */

uint64_t dtensor_plan_bytes(const struct dtensor_plan *plan, int i, int from,
                            int to)
{
    const struct dtensor_mesh *mesh = plan->dst.mesh;
    const struct bytes_of of = {
        from < 0 ? -1 : dtensor_mesh_index(mesh, from),
        to < 0 ? -1 : dtensor_mesh_index(mesh, to)
    };
    uint64_t bytes = 0;

    if ((from >= 0 && of.from < 0) || (to >= 0 && of.to < 0))
        return 0;
    for (int s = 0; s < plan->nsteps; s++) {
        const struct dtn_phase *phase = &plan->step[s].phase;

        if (i >= 0 && s != i)
            continue;
        bytes += phase->kind == DTN_PHASE_EXCHANGE
               ? bytes_exchange(phase, plan->root, &of)
               : bytes_calls(phase, &of);
    }
    return bytes;
}

/* How many terms are to be reduced to one. */
static uint64_t bound_terms(const struct dtensor_plan *plan)
{
    uint64_t terms = 1;

    for (int m = 0; m < plan->src.mesh->ndim; m++)
        if (plan->src.placement[m].kind == DTENSOR_PARTIAL &&
            plan->dst.placement[m].kind != DTENSOR_PARTIAL)
            terms *= (uint64_t)plan->src.mesh->size[m];
    return terms;
}

/* Without terms, what one exchange brings to a position; with terms, each
 * element once, wherever it is reduced.
 */
static uint64_t bound_at(const struct dtensor_plan *plan,
                         const struct dtn_phase *phase, int position)
{
    const struct bytes_of of = { -1, position };
    const uint64_t terms = bound_terms(plan);
    uint64_t bytes = bytes_exchange(phase, plan->root, &of);
    struct dtn_pieces own = { 0 };

    if (terms == 1)
        return bytes;
    dtn_redist_received(phase, plan->root, position, position, &own, NULL);
    for (int i = 0; i < own.n; i++)
        bytes += (uint64_t)dtn_box_count(&own.list[i].box) *
                 dtensor_dtype_size(plan->dst.dtype);
    dtn_pieces_fini(&own);
    return bytes / terms;
}

/* Among how many ranks a value may be cut into terms as they please: one could
 * get all of it and the others nothing.
 */
static uint64_t bound_choices(const struct dtensor_plan *plan)
{
    uint64_t choices = 1;

    for (int m = 0; m < plan->src.mesh->ndim; m++)
        if (plan->dst.placement[m].kind == DTENSOR_PARTIAL &&
            dtn_placement_class(&plan->src.placement[m]) != DTENSOR_SHARD)
            choices *= (uint64_t)plan->src.mesh->size[m];
    return choices;
}

uint64_t dtensor_plan_bound(const struct dtensor_plan *plan, int rank)
{
    const struct dtensor_mesh *mesh = plan->dst.mesh;
    const int a = dtn_spec_partial(&plan->src);
    const int b = dtn_spec_partial(&plan->dst);
    struct dtn_phase phase;
    uint64_t bytes = 0;

    if ((a >= 0 && b >= 0 && a != b) ||
        (rank >= 0 && bound_choices(plan) > 1))
        return 0;
    phase = dtn_phase_exchange(&plan->src, &plan->dst);
    for (int p = 0; p < mesh->group.n; p++)
        if (rank < 0 || mesh->group.ranks[p] == rank)
            bytes += bound_at(plan, &phase, p);
    return bytes / bound_choices(plan);
}
