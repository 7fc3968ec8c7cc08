/* redist_make.c - from the phases between two specs to plans of this rank
 *
 * An exchange becomes the pieces this rank gets and gives, emitted as one
 * schedule; an allreduce only needs its group.  Of f32[1024,1536] on 4 ranks
 * from S(0) to S(1), each rank gets from each other one piece of 256 x 384:
 * 1.1 MiB, which is also all that has to move.
 */
#include "spec/redist.h"

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- pieces --- */

/* Begin the list, ascending by `peer`, with the first at or above `begin`: at
 * step k position i gets from and gives to i+k, so that no rank is read by all
 * at once.
 */
static int redist_rotate(struct dtn_pieces *pieces, int begin, bool sent,
                         struct dtensor_error *err)
{
    const size_t elem = sizeof pieces->list[0];
    const size_t n = (size_t)pieces->n;
    struct dtn_piece *turned;
    size_t k = 0;

    while (k < n && (sent ? pieces->list[k].receiver
                          : pieces->list[k].source) < begin)
        k++;
    if (k == 0 || k == n)
        return 0;
    turned = malloc(n * elem);
    if (!turned)
        return dtn_fail_nomem(err, "redistribute", n * elem);
    memcpy(turned, pieces->list + k, (n - k) * elem);
    memcpy(turned + n - k, pieces->list, k * elem);
    free(pieces->list);
    pieces->list = turned;
    pieces->capacity = pieces->n;
    return 0;
}

/* Drop what this rank would send to itself, or to those that get nothing. */
static void redist_drop(struct dtn_pieces *sent, const struct dtn_phase *phase,
                        int me)
{
    int n = 0;

    for (int i = 0; i < sent->n; i++)
        if (sent->list[i].receiver != me &&
            !dtn_phase_idle(phase, sent->list[i].receiver))
            sent->list[n++] = sent->list[i];
    sent->n = n;
}

/* In a scatter the root stands for all sources: its part is whole wherever it
 * stands, so each receiver's own would do.
 */
static int redist_scattered(const struct dtn_phase *phase, int root,
                            struct dtn_pieces *received,
                            struct dtn_pieces *sent, struct dtensor_error *err)
{
    const struct dtn_group *group = &phase->src.mesh->group;
    int rc = dtn_pieces_received(&phase->src, &phase->dst, group->me, received,
                                 err);

    for (int i = 0; i < received->n; i++)
        received->list[i].source = root;
    for (int r = 0; rc == 0 && group->me == root && r < group->n; r++)
        if (r != root)
            rc = dtn_pieces_between(&phase->src, &phase->dst, r, r, sent, err);
    for (int i = 0; i < sent->n; i++)
        sent->list[i].source = root;
    return rc;
}

/* Between two meshes: positions in the mesh of all ranks of both. */
static int redist_crossing(const struct dtn_phase *phase,
                           const struct dtensor_mesh *all,
                           struct dtn_pieces *received,
                           struct dtn_pieces *sent, struct dtensor_error *err)
{
    const struct dtn_group *from = &phase->src.mesh->group;
    const struct dtn_group *to = &phase->dst.mesh->group;
    int rc = 0, n = 0;

    if (to->me >= 0)
        rc = dtn_pieces_received(&phase->src, &phase->dst, to->me, received,
                                 err);
    if (rc == 0 && from->me >= 0)
        rc = dtn_pieces_sent(&phase->src, &phase->dst, from->me, sent, err);
    for (int i = 0; i < received->n + sent->n; i++) {
        struct dtn_piece *piece = i < received->n
                                ? &received->list[i]
                                : &sent->list[i - received->n];

        piece->source = dtensor_mesh_index(all, from->ranks[piece->source]);
        piece->receiver = dtensor_mesh_index(all, to->ranks[piece->receiver]);
    }
    for (int i = 0; i < sent->n; i++)
        if (sent->list[i].receiver != all->group.me)
            sent->list[n++] = sent->list[i];
    sent->n = n;
    return rc;
}

/* List what this rank receives, its own pieces among it, and what it sends to
 * others.  Terms are taken in coordinate order.
 */
static int redist_lists(const struct dtn_phase *phase, int root,
                        struct dtn_pieces *received, struct dtn_pieces *sent,
                        struct dtensor_error *err)
{
    const int me = phase->src.mesh->group.me;
    int rc;

    if (root != DTN_NO_ROOT) {
        rc = redist_scattered(phase, root, received, sent, err);
    } else {
        rc = dtn_pieces_received(&phase->src, &phase->dst, me, received, err);
        if (rc == 0)
            rc = dtn_pieces_sent(&phase->src, &phase->dst, me, sent, err);
    }
    if (dtn_phase_idle(phase, me))
        received->n = 0;
    redist_drop(sent, phase, me);
    if (rc == 0 && !dtn_phase_folds(phase))
        rc = redist_rotate(received, me, false, err);
    return rc == 0 ? redist_rotate(sent, me, true, err) : rc;
}

/* --------------------------------------------------------------- making --- */

int dtn_redist_plan(const struct dtn_group *group,
                    const struct dtn_exchange *exchange,
                    struct dtn_plan **planp, struct dtensor_error *err)
{
    struct dtn_sched sched;
    bool *mapped = calloc((size_t)exchange->n, sizeof *mapped);
    int rc;

    if (!mapped)
        return dtn_fail_nomem(err, "redistribute", (size_t)exchange->n);
    dtn_group_mapped(group, mapped);
    rc = dtn_emit_exchange(exchange, mapped, &sched, err);
    free(mapped);
    if (rc != 0)
        return rc;
    rc = dtn_plan_create(group, &sched, planp, err);
    if (rc != 0)
        dtn_sched_fini(&sched);
    return rc;
}

/* Append to the text; what does not fit is cut. */
static void redist_say(struct dtensor_plan *r, const char *fmt, ...)
    DTN_PRINTF(2, 3);

static void redist_say(struct dtensor_plan *r, const char *fmt, ...)
{
    size_t used = strlen(r->text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->text + used, sizeof r->text - used, fmt, ap);
    va_end(ap);
}

/* "exchange shm 8 ranks, 6.0 MiB in 6 pieces": what comes from others. */
static void redist_say_exchange(struct dtensor_plan *r,
                                const struct dtn_group *group,
                                const struct dtn_pieces *received,
                                const struct dtn_pieces *sent)
{
    size_t elem = dtensor_dtype_size(r->dst.dtype), bytes = 0;
    char moved[32];
    int n = 0;

    for (int i = 0; i < received->n; i++)
        if (received->list[i].source != group->me) {
            bytes += (size_t)dtn_box_count(&received->list[i].box) * elem;
            n++;
        }
    if (n == 0 && sent->n == 0)
        redist_say(r, "local");
    else
        redist_say(r, "exchange %s %d ranks, %s in %d pieces",
                   dtn_group_wire(group), group->n,
                   dtn_format_size(bytes, moved, sizeof moved), n);
}

static int redist_make_exchange(struct dtensor_plan *r,
                                struct dtn_redist_step *step,
                                struct dtensor_error *err)
{
    const struct dtn_phase *phase = &step->phase;
    const bool cross = phase->src.mesh != phase->dst.mesh;
    const struct dtn_group *group = cross ? &r->all->group
                                          : &phase->src.mesh->group;
    struct dtn_pieces received = { 0 }, sent = { 0 };
    struct dtn_exchange exchange = {
        .name = "redistribute", .n = group->n, .me = group->me,
        .dtype = phase->dst.dtype, .redop = phase->redop,
        .out_count = step->count, .neutral = phase->neutral, .scale = 1,
        .row_bytes = dtn_group_row_bytes(group)
    };
    int rc;

    step->group = group;
    if (group->me < 0)                       /* of the other mesh            */
        return 0;
    if (phase->src.mesh->group.me >= 0 &&
        (r->root == DTN_NO_ROOT || r->root == group->me))
        exchange.in_count = (size_t)dtn_local_numel(&phase->src,
                                                phase->src.mesh->group.me);
    rc = cross ? redist_crossing(phase, r->all, &received, &sent, err)
               : redist_lists(phase, r->root, &received, &sent, err);
    if (rc == 0) {
        redist_say_exchange(r, group, &received, &sent);
        exchange.nreceived = received.n;
        exchange.received = received.list;
        exchange.nsent = sent.n;
        exchange.sent = sent.list;
        step->fingerprint = dtn_fingerprint(DTN_COLL_EXCHANGE, exchange.dtype,
                                            phase->redop, r->hash);
        rc = dtn_redist_plan(group, &exchange, &step->plan, err);
    }
    dtn_pieces_fini(&received);
    dtn_pieces_fini(&sent);
    return rc;
}

/* The plan of an allreduce or broadcast is kept by the coll room. */
static int redist_make_call(struct dtensor_plan *r,
                              struct dtn_redist_step *step,
                              struct dtensor_error *err)
{
    const struct dtensor_mesh *sub;
    char bytes[32];
    int rc = dtn_mesh_sub(step->phase.src.mesh, step->phase.dims, &sub, err);

    if (rc != 0)
        return rc;
    step->group = &sub->group;
    if (sub->group.me < 0)                   /* of the other mesh            */
        return 0;
    redist_say(r, "%s %s %d ranks of %s",
               step->phase.kind == DTN_PHASE_REDUCE ? "allreduce" : "broadcast",
               dtn_group_wire(step->group), step->group->n,
               dtn_format_size(step->count * dtensor_dtype_size(r->dst.dtype),
                               bytes, sizeof bytes));
    return 0;
}

/* Two buffers take turns between exchanges; an allreduce or broadcast works in
 * place, so what is before it goes where its own result goes.
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

static int redist_make_steps(struct dtensor_plan *r, struct dtensor_error *err)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < r->nsteps; i++) {
        struct dtn_redist_step *step = &r->step[i];

        redist_say(r, i ? ", then " : ": ");
        rc = step->phase.kind == DTN_PHASE_EXCHANGE
           ? redist_make_exchange(r, step, err)
           : redist_make_call(r, step, err);
    }
    if (r->nsteps == 0)
        redist_say(r, ": local");
    return rc;
}

/* The head of the text: what is turned into what. */
static void redist_title(struct dtensor_plan *r)
{
    char from[DTENSOR_MAX_DIMS * 12], to[DTENSOR_MAX_DIMS * 12];

    dtensor_placements_format(r->src.mesh, r->src.placement, from,
                              sizeof from);
    dtensor_placements_format(r->dst.mesh, r->dst.placement, to, sizeof to);
    if (r->root == DTN_NO_ROOT)
        redist_say(r, "redistribute %s -> %s", from, to);
    else
        redist_say(r, "distribute to %s", to);
}

/* ------------------------------------------------------------- the choice --- */

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
    redist_title(r);
    *planp = r;
    return 0;
}

static void redist_choices(struct dtensor_plan *r, const struct dtn_cost *cost,
                           const struct dtn_routes *routes)
{
    r->route = routes->chosen;
    r->why = routes->why;
    for (int i = 0; i < DTENSOR_NROUTES; i++)
        r->choice[i] = (struct dtn_choice){
            routes->route[i].nphases, routes->route[i].ns,
            routes->route[i].scratch, routes->route[i].refused
        };
    for (int i = 0; i < r->nsteps; i++)
        r->step[i].ns = dtn_cost_phase(cost, &r->step[i].phase);
}

/* Choose a route and make an empty plan of it. */
static int redist_route(const struct dtensor_spec *src,
                        const struct dtensor_spec *dst,
                        const struct dtensor_plan_options *options,
                        struct dtensor_plan **planp, struct dtensor_error *err)
{
    const struct dtn_redistribute_conf *conf =
        &dst->mesh->ctx->cluster->redistribute;
    struct dtn_phase phase[DTN_ROUTE_PHASES_MAX];
    enum dtensor_route want = options->route ? options->route : conf->planner;
    uint64_t bound = options->max_scratch ? options->max_scratch
                                          : conf->max_scratch_bytes;
    struct dtn_routes routes;
    struct dtn_cost cost;
    int n, rc;

    dtn_cost_init(dst->mesh, &cost);
    rc = dtn_routes_find(&cost, src, dst, want, bound, &routes, err);
    if (rc != 0)
        return rc;
    n = dtn_route_phases(&routes.route[routes.chosen], src, dst, phase);
    rc = redist_new(src, dst, DTN_NO_ROOT, phase, n, planp, err);
    if (rc == 0)
        redist_choices(*planp, &cost, &routes);
    return rc;
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
            dst, !dtn_group_mapped(&dst->mesh->group, NULL), phase), &r, err);
    if (rc != 0)
        return rc;
    r->hash = dtn_redist_hash(src, dst, root) + (uint32_t)r->route;
    if (!dst->mesh->ctx->planning && r->all->group.me >= 0)
        rc = redist_make_steps(r, err);
    if (rc != 0)
        dtensor_plan_destroy(r);
    else
        *planp = r;
    return rc;
}

void dtensor_plan_destroy(struct dtensor_plan *plan)
{
    if (!plan)
        return;
    for (int i = 0; i < plan->nsteps; i++)
        dtn_plan_destroy(plan->step[i].plan);
    free(plan);
}
