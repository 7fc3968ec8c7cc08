/* schedule.c - what any rank does in a plan, as one schedule
 *
 * A plan is ready to run on the rank that made it.  A simulation needs the
 * steps of all ranks.  They follow from the placements alone: rank 5 of 8 asks
 * for the pieces of position 5.  The steps of several phases come one after the
 * other, with peers as positions in the mesh of all ranks of the plan.  An
 * allreduce over the columns of a 2 x 4 mesh has positions 0 and 1; for rank 5
 * they become 1 and 5.
 *
 * The result is for a simulation, which asks for peers and bytes.  Its offsets
 * belong to the buffers of each phase, and it cannot be executed.
 */
#include "redist/schedule.h"
#include "base/error.h"
#include "base/ranks.h"
#include "coll/choose.h"
#include "coll/exec.h"
#include "job/group.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/exchange.h"
#include "redist/phases.h"
#include "redist/plan.h"
#include "sched/call.h"
#include "sched/exchange.h"
#include "sched/model.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

/* The ranks of a step and where they stand in the mesh of all. */
struct members {
    int n, me;                    /* how many, and which is the rank          */
    int *at;                      /* [n] positions in the mesh of all         */
    int *rank;                    /* [n] of the world                         */
};

static void members_fini(struct members *members)
{
    free(members->at);
    free(members->rank);
}

/* The ranks of `mesh` that differ from a rank in the dimensions `dims` only. */
static int members_init(const struct dtensor_plan *plan,
                        const struct dtensor_mesh *mesh, unsigned dims,
                        int rank, struct members *members,
                        struct dtensor_error *err)
{
    const int index = dtensor_mesh_index(mesh, rank);
    const size_t bytes = (size_t)mesh->group.n * sizeof(int);

    *members = (struct members){ .me = -1, .at = malloc(bytes),
                                 .rank = malloc(bytes) };
    if (!members->at || !members->rank) {
        members_fini(members);
        return dtn_fail_nomem(err, "simulate", bytes);
    }
    members->n = index < 0 ? 0
               : dtn_mesh_along(mesh, dims, index, members->at);
    for (int i = 0; i < members->n; i++) {
        if (members->at[i] == index)
            members->me = i;
        members->rank[i] = dtensor_mesh_rank(mesh, members->at[i]);
        members->at[i] = dtensor_mesh_index(plan->all, members->rank[i]);
    }
    return 0;
}

/* ------------------------------------------------------------ exchanges --- */

/* A rank of the world in a group. */
struct viewer {
    const struct dtn_group *group;
    int rank;
};

static bool viewer_maps(const void *whose, int position)
{
    const struct viewer *viewer = whose;

    return dtn_ranks_map(viewer->group->ctx, viewer->rank,
                         dtn_ranks_at(viewer->group->ranks, position));
}

static int exchange_add(const struct dtensor_plan *plan,
                        const struct dtn_redist_step *step, int rank,
                        const struct members *members, struct dtn_sched *sched,
                        struct dtensor_error *err)
{
    const struct viewer viewer = {
        dtn_exchange_group(plan, &step->phase), rank
    };
    struct dtn_step_exchange x;
    struct dtn_sched one;
    int rc = dtn_step_exchange_init(plan, step, rank, &x, err);

    x.exchange.maps = viewer_maps;
    x.exchange.whose = &viewer;
    if (rc == 0)
        rc = dtn_emit_exchange(&x.exchange, &one, err);
    dtn_step_exchange_fini(&x);
    if (rc == 0) {
        dtn_sched_append(sched, &one, members->at);
        dtn_sched_fini(&one);
    }
    return rc;
}

/* ---------------------------------------------------------- collectives --- */

static int call_add(const struct dtn_redist_step *step,
                    const struct members *members, struct dtn_sched *sched,
                    struct dtensor_error *err)
{
    const struct dtn_phase *phase = &step->phase;
    const struct dtensor_mesh *mesh = phase->dst.mesh;
    const struct dtn_ranks ranks = { .n = members->n, .list = members->rank };
    const struct dtn_group group = { .ctx = mesh->ctx, .n = members->n,
                                     .me = members->me, .ranks = &ranks };
    const size_t bytes = (size_t)members->n * sizeof(int);
    struct dtn_call call = {
        .coll = phase->kind == DTN_PHASE_REDUCE ? DTN_COLL_ALLREDUCE
                                                : DTN_COLL_BROADCAST,
        .n = members->n, .me = members->me, .dtype = phase->dst.dtype,
        .redop = phase->redop, .divisor = phase->divide,
        .on_device = mesh->group.on_device,
        .count = (size_t)dtn_local_numel(&phase->dst, dtensor_mesh_index(mesh,
                                         members->rank[members->me]))
    };
    int *hosts = malloc(bytes), rc = 0;
    struct dtn_choice pick;
    struct dtn_model model;
    struct dtn_sched one;

    if (!hosts)
        return dtn_fail_nomem(err, "simulate", bytes);
    rc = call.count > 0 ? dtn_model_make(&group, hosts, &model, err) : 0;
    if (rc == 0 && call.count > 0) {
        call.hosts = hosts;
        dtn_choose(&call, &model, &pick);
        rc = dtn_emitter_emit(pick.emitter, &call, &model, &one, err);
        if (rc == 0) {
            dtn_sched_append(sched, &one, members->at);
            dtn_sched_fini(&one);
        }
    }
    free(hosts);
    return rc;
}

/* ---------------------------------------------------------------- whole --- */

static int step_add(const struct dtensor_plan *plan,
                    const struct dtn_redist_step *step, int rank,
                    struct dtn_sched *sched, struct dtensor_error *err)
{
    const struct dtn_phase *phase = &step->phase;
    const bool exchange = phase->kind == DTN_PHASE_EXCHANGE;
    const struct dtensor_mesh *mesh = !exchange
        || phase->src.mesh == phase->dst.mesh ? phase->dst.mesh : plan->all;
    struct members members;
    int rc = members_init(plan, mesh, exchange ? ~0u : phase->dims, rank,
                          &members, err);

    if (rc != 0)
        return rc;
    if (members.n > 0)
        rc = exchange ? exchange_add(plan, step, rank, &members, sched, err)
                      : call_add(step, &members, sched, err);
    members_fini(&members);
    return rc;
}

int dtn_plan_schedule(const struct dtensor_plan *plan, int position,
                      struct dtn_sched *sched, struct dtensor_error *err)
{
    const int rank = dtensor_mesh_rank(plan->all, position);
    int rc = 0;

    dtn_sched_init(sched, "redistribute", plan->all->group.n, position,
                   plan->dst.dtype, DTENSOR_SUM);
    for (int s = 0; s < plan->nsteps && rc == 0; s++)
        rc = step_add(plan, &plan->step[s], rank, sched, err);
    if (rc == 0)
        return dtn_sched_finish(sched, err);
    dtn_sched_fini(sched);
    return rc;
}
