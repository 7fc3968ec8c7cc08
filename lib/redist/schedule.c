/* schedule.c - what any rank does in a plan, as one schedule
 *
 * A plan is ready to run on the rank that made it.  A simulation needs the
 * steps of all ranks.  They follow from the placements alone: rank 5 of 8 asks
 * for the pieces of position 5.  The steps of several phases come one after the
 * other, with peers as positions in the mesh of all ranks of the plan.  An
 * allreduce over the columns of a 2 x 4 mesh has positions 0 and 1; for rank 5
 * they become 1 and 5.  What a group of ranks has in common, their list, hosts
 * and costs, is made once.
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

/* The ranks of a group of a step, and where they stand in the mesh of all. */
struct members {
    int n;                        /* how many                                 */
    int *at;                      /* [n] positions in the mesh of all         */
    int *rank;                    /* [n] of the world                         */
    int *host;                    /* [n] hosts, for a call                    */
    struct dtn_model model;       /* costs of a call                          */
};

/* The groups of a step: ranks of `mesh` that differ in the dimensions `dims`
 * only.  Over a mesh of 16384 x 8, 8 groups are made, not one for each rank.
 */
struct groups {
    const struct dtensor_mesh *mesh;
    unsigned dims;
    struct members **led;         /* [ranks of mesh] by the first position of */
                                  /* a group; NULL: not made yet              */
};

struct dtn_schedules {
    const struct dtensor_plan *plan;
    struct groups groups[];       /* [plan->nsteps]                           */
};

static void members_destroy(struct members *members)
{
    if (!members)
        return;
    free(members->at);
    free(members->rank);
    free(members->host);
    free(members);
}

/* The costs and hosts of a call over them. */
static int members_model(const struct dtensor_mesh *mesh,
                         struct members *members, struct dtensor_error *err)
{
    const struct dtn_ranks ranks = { .n = members->n, .list = members->rank };
    const struct dtn_group group = { .ctx = mesh->ctx, .n = members->n,
                                     .ranks = &ranks };

    return dtn_model_make(&group, members->host, &members->model, err);
}

static int members_create(const struct dtensor_plan *plan,
                          const struct groups *groups, int leader,
                          struct members **membersp, struct dtensor_error *err)
{
    const struct dtensor_mesh *mesh = groups->mesh;
    const size_t bytes = (size_t)mesh->group.n * sizeof(int);
    struct members *members = calloc(1, sizeof *members);
    int rc = 0;

    if (members) {
        members->at = malloc(bytes);
        members->rank = malloc(bytes);
        members->host = malloc(bytes);
    }
    if (!members || !members->at || !members->rank || !members->host) {
        members_destroy(members);
        return dtn_fail_nomem(err, "simulate", bytes);
    }
    members->n = dtn_mesh_along(mesh, groups->dims, leader, members->at);
    for (int i = 0; i < members->n; i++) {
        members->rank[i] = dtensor_mesh_rank(mesh, members->at[i]);
        members->at[i] = dtensor_mesh_index(plan->all, members->rank[i]);
    }
    rc = members_model(mesh, members, err);
    if (rc != 0)
        members_destroy(members);
    else
        *membersp = members;
    return rc;
}

/* The first position of the group of a position, and its place among them. */
static int group_leader(const struct groups *groups, int index, int *placep)
{
    const struct dtensor_mesh *mesh = groups->mesh;
    int coord[DTENSOR_MAX_DIMS], leader = 0, place = 0;

    dtn_mesh_coord_of(mesh, index, coord);
    for (int d = 0; d < mesh->ndim; d++) {
        const bool along = groups->dims >> d & 1;

        leader = leader * mesh->size[d] + (along ? 0 : coord[d]);
        place = along ? place * mesh->size[d] + coord[d] : place;
    }
    *placep = place;
    return leader;
}

/* The group of a rank, and its place there; NULL: it has none. */
static int group_of(const struct dtensor_plan *plan, struct groups *groups,
                    int rank, const struct members **membersp, int *placep,
                    struct dtensor_error *err)
{
    const int index = dtensor_mesh_index(groups->mesh, rank);
    struct members **led;
    int rc = 0;

    *membersp = NULL;
    if (index < 0)
        return 0;
    led = &groups->led[group_leader(groups, index, placep)];
    if (!*led)
        rc = members_create(plan, groups, (int)(led - groups->led), led, err);
    *membersp = *led;
    return rc;
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
                    const struct members *members, int place,
                    struct dtn_sched *sched, struct dtensor_error *err)
{
    const struct dtn_phase *phase = &step->phase;
    const struct dtensor_mesh *mesh = phase->dst.mesh;
    const struct dtn_call call = {
        .coll = phase->kind == DTN_PHASE_REDUCE ? DTN_COLL_ALLREDUCE
                                                : DTN_COLL_BROADCAST,
        .n = members->n, .me = place, .dtype = phase->dst.dtype,
        .redop = phase->redop, .divisor = phase->divide,
        .on_device = mesh->group.on_device, .hosts = members->host,
        .count = (size_t)dtn_local_numel(&phase->dst, dtensor_mesh_index(mesh,
                                         members->rank[place]))
    };
    struct dtn_choice pick;
    struct dtn_sched one;
    int rc;

    if (call.count == 0)
        return 0;
    dtn_choose(&call, &members->model, &pick);
    rc = dtn_emitter_emit(pick.emitter, &call, &members->model, &one, err);
    if (rc == 0) {
        dtn_sched_append(sched, &one, members->at);
        dtn_sched_fini(&one);
    }
    return rc;
}

/* ---------------------------------------------------------------- whole --- */

static int step_add(struct dtn_schedules *s, int number, int rank,
                    struct dtn_sched *sched, struct dtensor_error *err)
{
    const struct dtn_redist_step *step = &s->plan->step[number];
    const struct members *members;
    int place, rc = group_of(s->plan, &s->groups[number], rank, &members,
                             &place, err);

    if (rc != 0 || !members)
        return rc;
    if (step->phase.kind == DTN_PHASE_EXCHANGE)
        return exchange_add(s->plan, step, rank, members, sched, err);
    return call_add(step, members, place, sched, err);
}

/* An exchange is among all ranks of its mesh. */
static void groups_of_phase(const struct dtensor_plan *plan,
                            const struct dtn_phase *phase,
                            struct groups *groups)
{
    const bool exchange = phase->kind == DTN_PHASE_EXCHANGE;

    groups->mesh = !exchange || phase->src.mesh == phase->dst.mesh
                 ? phase->dst.mesh : plan->all;
    groups->dims = exchange ? ~0u : phase->dims;
}

int dtn_schedules_create(const struct dtensor_plan *plan,
                         struct dtn_schedules **sp, struct dtensor_error *err)
{
    const size_t bytes = sizeof(struct dtn_schedules)
                       + (size_t)plan->nsteps * sizeof(struct groups);
    struct dtn_schedules *s = calloc(1, bytes);

    if (!s)
        return dtn_fail_nomem(err, "simulate", bytes);
    s->plan = plan;
    for (int i = 0; i < plan->nsteps; i++) {
        struct groups *groups = &s->groups[i];
        size_t n;

        groups_of_phase(plan, &plan->step[i].phase, groups);
        n = (size_t)groups->mesh->group.n;
        groups->led = calloc(n, sizeof(struct members *));
        if (!groups->led) {
            dtn_schedules_destroy(s);
            return dtn_fail_nomem(err, "simulate", n * sizeof(void *));
        }
    }
    *sp = s;
    return 0;
}

void dtn_schedules_destroy(struct dtn_schedules *s)
{
    for (int i = 0; s && i < s->plan->nsteps; i++) {
        struct groups *groups = &s->groups[i];

        for (int p = 0; groups->led && p < groups->mesh->group.n; p++)
            members_destroy(groups->led[p]);
        free(groups->led);
    }
    free(s);
}

int dtn_schedules_emit(struct dtn_schedules *s, int position,
                       struct dtn_sched *sched, struct dtensor_error *err)
{
    const struct dtensor_plan *plan = s->plan;
    const int rank = dtensor_mesh_rank(plan->all, position);
    int rc = 0;

    dtn_sched_init(sched, "redistribute", plan->all->group.n, position,
                   plan->dst.dtype, DTENSOR_SUM);
    for (int i = 0; i < plan->nsteps && rc == 0; i++)
        rc = step_add(s, i, rank, sched, err);
    if (rc == 0)
        rc = dtn_sched_finish(sched, err);
    if (rc != 0)
        dtn_sched_fini(sched);
    return rc;
}
