/* redist_ready.c - a plan made ready to run on this rank
 *
 * Planning looks at placements only, so it costs the same for 8 ranks and for
 * 1,024.  Before the first run each exchange becomes the pieces this rank gets
 * and gives, emitted as one schedule; an allreduce only needs its group.  Of
 * f32[1024,1536] on 4 ranks from S(0) to S(1), each rank gets from each other one
 * piece of 256 x 384: 1.1 MiB, which is also all that has to move.
 */
#include "base/box.h"
#include "base/error.h"
#include "base/units.h"
#include "boot/boot.h"
#include "coll/exec.h"
#include "coll/exec/exec.h"
#include "job/group.h"
#include "layout/layout.h"
#include "mesh/mesh.h"
#include "redist/phases.h"
#include "redist/pieces.h"
#include "redist/plan.h"
#include "sched/call.h"
#include "sched/exchange.h"
#include "sched/fingerprint.h"
#include "sched/sched.h"
#include "dtensor.h"

#include <stdbool.h>
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

/* ------------------------------------------------------------- schedules --- */

/* All that an exchange is on this rank. */
struct redist_exchange {
    struct dtn_exchange exchange;
    struct dtn_pieces received, sent;
};

static bool redist_maps(const void *group, int position)
{
    return dtn_group_maps(group, position);
}

static const struct dtn_group *redist_group(const struct dtensor_plan *r,
                                            const struct dtn_phase *phase)
{
    return phase->src.mesh != phase->dst.mesh ? &r->all->group
                                              : &phase->src.mesh->group;
}

static int redist_exchange_init(const struct dtensor_plan *r,
                                const struct dtn_redist_step *step,
                                struct redist_exchange *x,
                                struct dtensor_error *err)
{
    const struct dtn_phase *phase = &step->phase;
    const struct dtn_group *group = redist_group(r, phase);
    const struct dtn_group *from = &phase->src.mesh->group;
    int rc;

    *x = (struct redist_exchange){ .exchange = {
        .name = "redistribute", .n = group->n, .me = group->me,
        .dtype = phase->dst.dtype, .redop = phase->redop,
        .out_count = step->count, .neutral = phase->neutral,
        .scale = phase->divide,
        .folds = dtn_phase_folds(phase), .maps = redist_maps, .whose = group,
        .row_bytes = dtn_group_row_bytes(group),
        .window_bytes = step->window_bytes
    } };
    if (from->me >= 0 && (r->root == DTN_NO_ROOT || r->root == group->me))
        x->exchange.in_count = (size_t)dtn_local_numel(&phase->src, from->me);
    rc = phase->src.mesh != phase->dst.mesh
       ? redist_crossing(phase, r->all, &x->received, &x->sent, err)
       : redist_lists(phase, r->root, &x->received, &x->sent, err);
    x->exchange.nreceived = x->received.n;
    x->exchange.received = x->received.list;
    x->exchange.nsent = x->sent.n;
    x->exchange.sent = x->sent.list;
    return rc;
}

static void redist_exchange_fini(struct redist_exchange *x)
{
    dtn_pieces_fini(&x->received);
    dtn_pieces_fini(&x->sent);
}

int dtn_redist_emit(const struct dtensor_plan *r, int i,
                    struct dtn_sched *sched, struct dtensor_error *err)
{
    struct redist_exchange x;
    int rc = redist_exchange_init(r, &r->step[i], &x, err);

    if (rc == 0)
        rc = dtn_emit_exchange(&x.exchange, sched, err);
    redist_exchange_fini(&x);
    return rc;
}

int dtn_redist_plan(const struct dtn_group *group,
                    const struct dtn_exchange *exchange,
                    struct dtn_plan **planp, struct dtensor_error *err)
{
    struct dtn_exchange placed = *exchange;
    struct dtn_sched sched;
    int rc;

    placed.maps = redist_maps;
    placed.whose = group;
    rc = dtn_emit_exchange(&placed, &sched, err);
    if (rc != 0)
        return rc;
    rc = dtn_plan_create(group, &sched, planp, err);
    if (rc != 0)
        dtn_sched_fini(&sched);
    return rc;
}

void dtn_redist_says(struct dtn_plan *plan, const struct dtn_group *group,
                     uint64_t fingerprint, const char *text)
{
    dtn_plan_set_record(plan, &(struct dtn_call_record){
        .kind = DTN_RECORD_WORDED, .base = fingerprint, .group = group->hash,
        .fingerprint = fingerprint, .n = (uint32_t)group->n, .text = text });
}

/* --------------------------------------------------------------- making --- */

/* "exchange shm 8 ranks, 6.0 MiB in 6 pieces": what comes from others. */
static void redist_say_exchange(struct dtensor_plan *r,
                                const struct dtn_group *group,
                                const struct redist_exchange *x, int rounds)
{
    size_t elem = dtensor_dtype_size(r->dst.dtype), bytes = 0;
    char moved[32];
    int n = 0;

    for (int i = 0; i < x->received.n; i++)
        if (x->received.list[i].source != group->me) {
            bytes += (size_t)dtn_box_count(&x->received.list[i].box) * elem;
            n++;
        }
    if (n == 0 && x->sent.n == 0)
        dtn_redist_say(r, "local");
    else
        dtn_redist_say(r, "exchange %s %d ranks, %s in %d pieces",
                       dtn_group_wire(group), group->n,
                       dtn_format_size(bytes, moved, sizeof moved), n);
    if (rounds > 1)
        dtn_redist_say(r, " and %d rounds", rounds);
}

static int ready_exchange(struct dtensor_plan *r, struct dtn_redist_step *step,
                          struct dtensor_error *err)
{
    const struct dtn_phase *phase = &step->phase;
    struct redist_exchange x;
    int rc;

    step->group = redist_group(r, phase);
    if (step->group->me < 0)                 /* of the other mesh            */
        return 0;
    rc = redist_exchange_init(r, step, &x, err);
    if (rc == 0)
        rc = dtn_redist_plan(step->group, &x.exchange, &step->plan, err);
    if (rc == 0)
        redist_say_exchange(r, step->group, &x,
                            dtn_plan_sched(step->plan)->rounds);
    step->fingerprint = dtn_fingerprint(DTN_COLL_EXCHANGE, phase->dst.dtype,
                                        phase->redop, r->hash);
    if (step->plan)
        dtn_redist_says(step->plan, step->group, step->fingerprint, r->said);
    redist_exchange_fini(&x);
    return rc;
}

/* The plan of an allreduce or broadcast is kept by the coll room. */
static int ready_call(struct dtensor_plan *r, struct dtn_redist_step *step,
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
    dtn_redist_say(r, "%s %s %d ranks of %s",
                   step->phase.kind == DTN_PHASE_REDUCE ? "allreduce"
                                                        : "broadcast",
                   dtn_group_wire(step->group), step->group->n,
                   dtn_format_size(step->count *
                                   dtensor_dtype_size(r->dst.dtype),
                                   bytes, sizeof bytes));
    return 0;
}

int dtn_redist_connect(struct dtensor_plan *r, struct dtensor_error *err)
{
    int rc = dtn_redist_ready(r, err);

    for (int i = 0; rc == 0 && i < r->nsteps; i++)
        if (r->step[i].plan)
            rc = dtn_plan_connect(r->step[i].plan, err);
    return rc;
}

int dtn_redist_ready(struct dtensor_plan *r, struct dtensor_error *err)
{
    int rc = 0;

    if (r->ready || r->all->group.me < 0)
        return 0;
    for (int i = 0; rc == 0 && i < r->nsteps; i++) {
        struct dtn_redist_step *step = &r->step[i];

        dtn_redist_say(r, i ? ", then " : ": ");
        rc = step->phase.kind == DTN_PHASE_EXCHANGE
           ? ready_exchange(r, step, err) : ready_call(r, step, err);
    }
    if (r->nsteps == 0)
        dtn_redist_say(r, ": local");
    r->ready = rc == 0;
    return rc;
}
