/* plan_info.c - queries of a plan, and its printed form
 *
 * dtensor_plan_print() says in one sentence what moves, how long it takes and
 * why by this route; then come the steps and the routes, with bytes and
 * predicted times.  The number of rounds of an exchange is taken from its
 * schedule, which is emitted for this.
 */
#include "base/error.h"
#include "base/units.h"
#include "job/group.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "redist/exchange.h"
#include "redist/phases.h"
#include "redist/plan.h"
#include "redist/route.h"
#include "sched/sched.h"
#include "dtensor.h"

/* ------------------------------------------------------------ questions --- */

void dtensor_plan_info(const struct dtensor_plan *plan,
                       struct dtensor_plan_info *info)
{
    *info = (struct dtensor_plan_info){
        .route = plan->route, .nsteps = plan->nsteps,
        .scratch_bytes = plan->scratch[DTN_TARGET_EVEN] +
                         plan->scratch[DTN_TARGET_ODD],
        .text = plan->text, .why = plan->why
    };
    for (int i = 0; i < plan->nsteps; i++)
        info->predicted_us += plan->step[i].ns / 1e3;
}

int dtensor_plan_choice(const struct dtensor_plan *plan,
                        enum dtensor_route route,
                        struct dtensor_plan_choice *choice,
                        struct dtensor_error *err)
{
    struct dtn_routes routes;
    const struct dtn_route *c;
    struct dtn_cost cost;

    if ((unsigned)route >= DTENSOR_NROUTES || route == DTENSOR_ROUTE_AUTO)
        return dtn_fail(err, DTENSOR_EINVAL, "plan: there is no route %d; "
                        "expected direct, merged, min-cost or greedy",
                        (int)route);
    dtn_cost_init(plan->dst.mesh, &cost);
    dtn_routes_find(&cost, &plan->src, &plan->dst, route, plan->max_scratch,
                    &routes, NULL);
    c = &routes.route[route];
    *choice = (struct dtensor_plan_choice){ .refused = c->refused };
    if (c->refused)
        return 0;
    choice->nsteps = c->nphases;
    choice->predicted_us = c->ns / 1e3;
    choice->scratch_bytes = (uint64_t)c->scratch;
    return 0;
}

/* The collective that an exchange does along the dimensions that it changes, if
 * it is a single one.
 */
static const char *step_what(const struct dtn_phase *phase)
{
    const struct dtensor_mesh *mesh = phase->src.mesh;
    const char *what = NULL, *one;

    if (phase->kind != DTN_PHASE_EXCHANGE)
        return phase->kind == DTN_PHASE_REDUCE ? "allreduce" : "broadcast";
    if (mesh != phase->dst.mesh)
        return "exchange";
    for (int m = 0; m < mesh->ndim; m++) {
        const struct dtensor_placement *from = &phase->src.placement[m];
        const struct dtensor_placement *to = &phase->dst.placement[m];

        if (dtn_placement_equal(from, to, mesh->size[m]) ||
            dtn_placement_is_local(from, to))
            continue;
        one = from->kind == DTENSOR_PARTIAL ? "reduce-scatter"
            : dtn_placement_class(to) == DTENSOR_SHARD ? "all-to-all"
                                                       : "all-gather";
        what = !what || what == one ? one : "exchange";
    }
    return what ? what : "local";
}

static int step_ranks(const struct dtn_phase *phase)
{
    int ranks = 1;

    for (int m = 0; m < phase->src.mesh->ndim; m++)
        if (phase->kind == DTN_PHASE_EXCHANGE
            ? !dtn_placement_equal(&phase->src.placement[m],
                                   &phase->dst.placement[m],
                                   phase->src.mesh->size[m])
            : phase->dims >> m & 1)
            ranks *= phase->src.mesh->size[m];
    return ranks;
}

/* The rounds of an exchange and what it packs, from its schedule. */
static int step_packing(const struct dtensor_plan *plan, int i,
                        struct dtensor_plan_step *step,
                        struct dtensor_error *err)
{
    const struct dtn_phase *phase = &plan->step[i].phase;
    struct dtn_sched sched;
    int rc;

    step->rounds = 1;
    if (phase->kind != DTN_PHASE_EXCHANGE ||
        dtn_exchange_group(plan, phase)->me < 0)
        return 0;
    rc = dtn_exchange_emit(plan, i, &sched, err);
    if (rc != 0)
        return rc;
    step->rounds = sched.rounds;
    step->scratch_bytes = sched.bytes[DTN_TMP];
    dtn_sched_fini(&sched);
    return 0;
}

int dtensor_plan_step(const struct dtensor_plan *plan, int i,
                      struct dtensor_plan_step *step,
                      struct dtensor_error *err)
{
    struct dtensor_plan_step made;
    int rc;

    if (i < 0 || i >= plan->nsteps)
        return dtn_fail(err, DTENSOR_EINVAL, "plan: no step %d (it has %d)", i,
                        plan->nsteps);
    made = (struct dtensor_plan_step){
        .what = step_what(&plan->step[i].phase),
        .src = plan->step[i].phase.src, .dst = plan->step[i].phase.dst,
        .ranks = plan->step[i].phase.src.mesh != plan->step[i].phase.dst.mesh
               ? plan->all->group.n : step_ranks(&plan->step[i].phase),
        .predicted_us = plan->step[i].ns / 1e3
    };
    rc = step_packing(plan, i, &made, err);
    if (rc == 0)
        *step = made;
    return rc;
}

static const char *print_time(double us, char *buf, size_t size)
{
    return dtn_format_time((int64_t)(us * 1e3 + 0.5), buf, size);
}

/* "256 MiB moves between 8 ranks in about 3.4 ms, by route direct: predicted to
 * be the fastest."
 */
static void print_sentence(const struct dtensor_plan *plan,
                           const struct dtensor_plan_info *info, FILE *stream)
{
    const uint64_t moved = dtensor_plan_bytes(plan, -1, -1, -1);
    char bytes[32], time[32];

    if (moved == 0)
        fputs("Nothing moves between ranks", stream);
    else
        fprintf(stream, "%s moves between %d ranks in about %s",
                dtn_format_size(moved, bytes, sizeof bytes), plan->all->group.n,
                print_time(info->predicted_us, time, sizeof time));
    fprintf(stream, ", by route %s: %s.\n", dtn_route_name(info->route),
            info->why);
}

/* "step 1 all-to-all to S(1): 1.0 MiB over 4 ranks, 3 rounds, 12.1 us" */
static void print_step(const struct dtensor_plan *plan, int i, FILE *stream)
{
    struct dtensor_plan_step step;
    char to[400], bytes[32], time[32];

    if (dtensor_plan_step(plan, i, &step, NULL) != 0)
        return;
    dtensor_placements_format(step.dst.mesh, step.dst.placement, to,
                              sizeof to);
    fprintf(stream, "step %d %-14s to %s: %s over %d ranks, ", i + 1,
            step.what, to,
            dtn_format_size(dtensor_plan_bytes(plan, i, -1, -1), bytes,
                            sizeof bytes), step.ranks);
    if (step.scratch_bytes > 0)
        fprintf(stream, "%d round%s by %s, ", step.rounds,
                step.rounds == 1 ? "" : "s",
                dtn_format_size(step.scratch_bytes, bytes, sizeof bytes));
    fprintf(stream, "%s\n", print_time(step.predicted_us, time, sizeof time));
}

/* Where the bytes of a GPU go, on the way to a peer. */
static void print_path(const struct dtensor_plan *plan, FILE *stream)
{
    dtensor_mesh_path(dtensor_mesh_memory(plan->src.mesh) == DTENSOR_CUDA
                      ? plan->src.mesh : plan->dst.mesh, stream);
}

/* "route  merged     2 steps  3.9 ms" */
static void print_route(const struct dtensor_plan *plan,
                        enum dtensor_route route, FILE *stream)
{
    struct dtensor_plan_choice choice;
    char time[32];

    if (dtensor_plan_choice(plan, route, &choice, NULL) != 0)
        return;
    fprintf(stream, "route  %-9s ", dtn_route_name(route));
    if (choice.refused)
        fprintf(stream, "impossible: %s\n", choice.refused);
    else
        fprintf(stream, "%2d step%s  %s%s\n", choice.nsteps,
                choice.nsteps == 1 ? " " : "s",
                print_time(choice.predicted_us, time, sizeof time),
                route == plan->route ? "  taken" : "");
}

void dtensor_plan_print(const struct dtensor_plan *plan, FILE *stream)
{
    struct dtensor_plan_info info;
    char from[400], to[400];

    dtensor_plan_info(plan, &info);
    print_sentence(plan, &info, stream);
    fprintf(stream, "from   %s\nto     %s\n",
            dtn_spec_format(&plan->src, from, sizeof from),
            dtn_spec_format(&plan->dst, to, sizeof to));
    for (int i = 0; i < info.nsteps; i++)
        print_step(plan, i, stream);
    fprintf(stream, "least  %s, by any route\n",
            dtn_format_size(dtensor_plan_bound(plan, -1), to, sizeof to));
    print_path(plan, stream);
    for (int i = DTENSOR_ROUTE_DIRECT; i < DTENSOR_NROUTES; i++)
        print_route(plan, (enum dtensor_route)i, stream);
}
