/* plan.c - from two specs to a plan
 *
 * A plan is a route, its phases as steps, and the scratch memory that the steps
 * need.  Nothing in it grows with the number of ranks: a plan for 1,024 ranks
 * as 16 x 8 x 8 is made in about 20 us, and peers are found at its first run.
 * Example: the greedy route from [S(0),S(1)] to [S(1),S(0)] of 4 MiB on 4 x 4
 * ranks has three exchanges and two results of 1 MiB between them.  The rest of
 * 256 MiB of scratch is for packing, a third of it for each exchange.
 */
#include "redist/plan.h"
#include "base/error.h"
#include "cluster/cluster.h"
#include "coll/exec.h"
#include "coll/record.h"
#include "job/await.h"
#include "job/ctx.h"
#include "job/last_plan.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "redist/cross.h"
#include "redist/fail.h"
#include "redist/phases.h"
#include "redist/plan_text.h"
#include "redist/ready.h"
#include "redist/route.h"
#include "sched/exchange.h"
#include "dtensor.h"

#include <stdlib.h>

/* With a smaller window for each peer, most of the time would go to signals. */
enum { WINDOW_MIN_BYTES = 1024 };

/* -------------------------------------------------------------- scratch --- */

/* The largest number of peers of one rank. */
static int redist_peers(const struct dtensor_plan *r,
                        const struct dtn_phase *phase)
{
    return phase->src.mesh != phase->dst.mesh ? r->all->group.n - 1
         : r->root != DTN_NO_ROOT ? phase->dst.mesh->group.n - 1
         : dtn_phase_peers(phase) - 1;
}

/* Divide the rest of `bound` into windows of at most [redistribute] pipeline
 * bytes.
 */
static void redist_windows(struct dtensor_plan *r, uint64_t bound,
                           uint64_t results)
{
    uint64_t left = bound > results ? bound - results : 0, window;
    uint64_t pipeline =
        r->dst.mesh->ctx->world.cluster->redistribute.pipeline_bytes;
    int exchanges = 0, peers;

    for (int i = 0; i < r->nsteps; i++)
        exchanges += r->step[i].phase.kind == DTN_PHASE_EXCHANGE;
    for (int i = 0; i < r->nsteps; i++) {
        if (r->step[i].phase.kind != DTN_PHASE_EXCHANGE)
            continue;
        peers = redist_peers(r, &r->step[i].phase);
        window = peers ? left / (unsigned)exchanges / DTN_EXCHANGE_WINDOWS /
                         (unsigned)peers : pipeline;
        window = window < pipeline ? window : pipeline;
        r->step[i].window_bytes = window > WINDOW_MIN_BYTES
                                ? (size_t)window : WINDOW_MIN_BYTES;
    }
}

/* Exchanges write to two buffers in turn.  An allreduce or broadcast works in
 * place, so the step before it writes to where its result will be.
 */
static void redist_targets(struct dtensor_plan *r)
{
    const size_t elem = dtensor_dtype_size(r->dst.dtype);
    enum dtn_target target = DTN_TARGET_OUT;

    for (int i = r->nsteps - 1; i >= 0; i--) {
        struct dtn_redist_step *step = &r->step[i];

        if (i + 1 < r->nsteps && step[1].phase.kind == DTN_PHASE_EXCHANGE)
            target = target == DTN_TARGET_EVEN ? DTN_TARGET_ODD
                                               : DTN_TARGET_EVEN;
        step->target = target;
        if (target != DTN_TARGET_OUT && step->count * elem > r->scratch[target])
            r->scratch[target] = step->count * elem;
    }
}

static void redist_counts(struct dtensor_plan *r)
{
    const int me = r->dst.mesh->group.me;

    for (int i = 0; i < r->nsteps; i++) {
        const struct dtensor_spec *to = &r->step[i].phase.dst;

        if (to->mesh->group.me >= 0)
            r->step[i].count = (size_t)dtn_local_numel(to, to->mesh->group.me);
    }
    if (me >= 0)
        r->out_bytes = (size_t)dtn_local_numel(&r->dst, me) *
                       dtensor_dtype_size(r->dst.dtype);
}

/* ----------------------------------------------------------- the choice --- */

/* An empty plan with room for its phases. */
static int redist_new(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, int root,
                      const struct dtn_phase phase[], int nphases,
                      struct dtensor_plan **planp, struct dtensor_error *err)
{
    const size_t size = sizeof(struct dtensor_plan) +
                        (size_t)nphases * sizeof(struct dtn_redist_step);
    struct dtensor_plan *r;
    const struct dtensor_mesh *all;
    int rc = dtn_cross_mesh(src->mesh, dst->mesh, &all, err);

    if (rc != 0)
        return rc;
    r = calloc(1, size);
    if (!r)
        return dtn_fail_nomem(err, "redistribute", size);
    dtn_ctx_hold(dst->mesh->ctx);
    r->all = all;
    r->src = *src;
    r->dst = *dst;
    r->root = root;
    r->route = DTENSOR_ROUTE_DIRECT;
    r->why = "";
    r->nsteps = nphases;
    for (int i = 0; i < nphases; i++)
        r->step[i].phase = phase[i];
    redist_counts(r);
    redist_targets(r);
    dtn_redist_title(r);
    *planp = r;
    return 0;
}

static void redist_chosen(struct dtensor_plan *r, const struct dtn_cost *cost,
                          const struct dtn_routes *routes, uint64_t max_scratch)
{
    r->route = routes->chosen;
    r->why = routes->why;
    r->max_scratch = max_scratch;
    for (int i = 0; i < r->nsteps; i++)
        r->step[i].ns = dtn_cost_phase(cost, &r->step[i].phase);
}

/* An empty plan of a route.  Its phases, 700 bytes each, do not go on the
 * stack.
 */
static int redist_of_route(const struct dtn_route *route,
                           const struct dtensor_spec *src,
                           const struct dtensor_spec *dst,
                           struct dtensor_plan **planp,
                           struct dtensor_error *err)
{
    const size_t size = (size_t)(route->nphases + 1) * sizeof(struct dtn_phase);
    struct dtn_phase *phase = malloc(size);
    int rc;

    if (!phase)
        return dtn_fail_nomem(err, "redistribute", size);
    rc = redist_new(src, dst, DTN_NO_ROOT, phase,
                    dtn_route_phases(route, src, dst, phase), planp, err);
    free(phase);
    return rc;
}

/* Choose a route and make an empty plan of it. */
static int redist_route(const struct dtensor_spec *src,
                        const struct dtensor_spec *dst,
                        const struct dtensor_plan_options *options,
                        struct dtensor_plan **planp, struct dtensor_error *err)
{
    const struct dtn_redistribute_conf *conf =
        &dst->mesh->ctx->world.cluster->redistribute;
    enum dtensor_route want = options->route ? options->route : conf->planner;
    uint64_t bound = options->max_scratch ? options->max_scratch
                                          : conf->max_scratch_bytes;
    struct dtn_routes routes;
    struct dtn_cost cost;
    int rc;

    dtn_cost_init(dst->mesh, &cost);
    rc = dtn_routes_find(&cost, src, dst, want, bound, &routes, err);
    if (rc != 0)
        return rc;
    rc = redist_of_route(&routes.route[routes.chosen], src, dst, planp, err);
    if (rc != 0)
        return rc;
    redist_chosen(*planp, &cost, &routes, bound);
    redist_windows(*planp, bound,
                   (uint64_t)routes.route[routes.chosen].scratch);
    return 0;
}

uint64_t dtn_redist_hash(const struct dtensor_spec *src,
                         const struct dtensor_spec *dst, int root)
{
    return dtn_spec_hash(dst, dtn_spec_hash(src, (uint64_t)root));
}

int dtn_redist_create(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, int root,
                      const struct dtensor_plan_options *options,
                      struct dtensor_plan **planp, struct dtensor_error *err)
{
    struct dtn_phase phase[DTN_MAX_PHASES];
    struct dtensor_plan *r;
    int rc;

    if (root == DTN_NO_ROOT)
        rc = redist_route(src, dst, options, &r, err);
    else
        rc = redist_new(src, dst, root, phase, dtn_scatter_phases(
            dst, !dtn_group_mapped(&dst->mesh->group), phase), &r, err);
    if (rc != 0)
        return rc;
    if (root != DTN_NO_ROOT)
        redist_windows(r, dst->mesh->ctx->world.cluster->redistribute
                          .max_scratch_bytes, 0);
    r->hash = dtn_redist_hash(src, dst, root) + (uint64_t)r->route;
    *planp = r;
    return 0;
}

static int plan_check(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst,
                      const struct dtensor_plan_options *options,
                      struct dtensor_error *err)
{
    if ((unsigned)options->route >= DTENSOR_NROUTES)
        return dtn_fail(err, DTENSOR_EINVAL, "plan: there is no route %d "
                        "(see enum dtensor_route)", (int)options->route);
    return dtn_spec_check_same("plan", src, dst, err);
}

int dtensor_plan_create(const struct dtensor_spec *src,
                        const struct dtensor_spec *dst,
                        const struct dtensor_plan_options *options,
                        struct dtensor_plan **planp,
                        struct dtensor_error *err)
{
    static const struct dtensor_plan_options defaults;
    struct dtensor_spec from = *src, to = *dst;
    struct dtensor_plan *plan = NULL;
    struct dtensor_error why;
    int rc = dtensor_spec_normalize(&from, err);

    if (!options)
        options = &defaults;
    if (rc == 0)
        rc = dtensor_spec_normalize(&to, err);
    if (rc == 0)
        rc = plan_check(&from, &to, options, err);
    if (rc == 0 && !to.mesh->ctx->planning)
        rc = dtn_ctx_ready(to.mesh->ctx, err);
    if (rc != 0)
        return rc;
    rc = dtn_redist_create(&from, &to, DTN_NO_ROOT, options, &plan, &why);
    if (rc == 0 && options->connect && !to.mesh->ctx->planning)
        rc = dtn_redist_connect(plan, &why);
    if (rc == 0) {
        *planp = plan;
        return 0;
    }
    dtensor_plan_destroy(plan);
    return dtn_redist_give_up(&from, &to, rc, &why, err);
}

void dtensor_plan_destroy(struct dtensor_plan *plan)
{
    struct dtensor_ctx *ctx;

    if (!plan)
        return;
    ctx = plan->dst.mesh->ctx;
    for (int i = 0; i < plan->nsteps; i++)
        dtn_exec_destroy(plan->step[i].exec);
    dtn_last_plan_keep(&ctx->last_plan, plan->text);
    dtn_record_forget(ctx, plan->call);
    free(plan);
    dtn_ctx_release(ctx);
}
