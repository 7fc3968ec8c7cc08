/* exchange.c - the exchange of a phase, on this rank
 *
 * An exchange is the pieces that this rank receives and those that it sends, as
 * one schedule.  Example: f32[1024,1536] on 4 ranks from S(0) to S(1).  Each
 * rank gets one piece of 256 x 384 from each other rank: 1.1 MiB, which is also
 * the least that has to move.  In step k position i receives from i+k and sends
 * to i+k, so that not all ranks access one rank at the same time (incast).
 */
#include "redist/exchange.h"
#include "base/error.h"
#include "base/ranks.h"
#include "coll/exec.h"
#include "job/ctx.h"
#include "job/group.h"
#include "layout/layout.h"
#include "mesh/mesh.h"
#include "redist/phases.h"
#include "redist/pieces.h"
#include "redist/plan.h"
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
static int exchange_rotate(struct dtn_pieces *pieces, int begin, bool sent,
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

/* Drop the pieces that this rank would send to itself or to ranks that get
 * nothing.
 */
static void exchange_drop(struct dtn_pieces *sent,
                          const struct dtn_phase *phase, int me)
{
    int n = 0;

    for (int i = 0; i < sent->n; i++)
        if (sent->list[i].receiver != me &&
            !dtn_phase_idle(phase, sent->list[i].receiver))
            sent->list[n++] = sent->list[i];
    sent->n = n;
}

/* In a scatter the root is the source of all pieces.  The source spec is
 * replicated, so a receiver's own coordinate would also hold each piece.
 */
static int exchange_scatter(const struct dtn_phase *phase, int root, int me,
                            struct dtn_pieces *received,
                            struct dtn_pieces *sent, struct dtensor_error *err)
{
    const int n = phase->src.mesh->group.n;
    int rc = dtn_pieces_received(&phase->src, &phase->dst, me, received, err);

    for (int i = 0; i < received->n; i++)
        received->list[i].source = root;
    for (int r = 0; rc == 0 && me == root && r < n; r++)
        if (r != root)
            rc = dtn_pieces_between(&phase->src, &phase->dst, r, r, sent, err);
    for (int i = 0; i < sent->n; i++)
        sent->list[i].source = root;
    return rc;
}

/* Between two meshes: positions in the mesh of all ranks of both meshes. */
static int exchange_cross(const struct dtn_phase *phase,
                          const struct dtensor_mesh *all, int rank,
                          struct dtn_pieces *received,
                          struct dtn_pieces *sent, struct dtensor_error *err)
{
    const struct dtensor_mesh *from = phase->src.mesh, *to = phase->dst.mesh;
    const int gives = dtensor_mesh_index(from, rank);
    const int gets = dtensor_mesh_index(to, rank);
    const int me = dtensor_mesh_index(all, rank);
    int rc = 0, n = 0;

    if (gets >= 0)
        rc = dtn_pieces_received(&phase->src, &phase->dst, gets, received, err);
    if (rc == 0 && gives >= 0)
        rc = dtn_pieces_sent(&phase->src, &phase->dst, gives, sent, err);
    for (int i = 0; i < received->n + sent->n; i++) {
        struct dtn_piece *piece = i < received->n
                                ? &received->list[i]
                                : &sent->list[i - received->n];

        piece->source = dtensor_mesh_index(all, dtensor_mesh_rank(from,
                                           piece->source));
        piece->receiver = dtensor_mesh_index(all, dtensor_mesh_rank(to,
                                             piece->receiver));
    }
    for (int i = 0; i < sent->n; i++)
        if (sent->list[i].receiver != me)
            sent->list[n++] = sent->list[i];
    sent->n = n;
    return rc;
}

/* List the pieces that position `me` receives, including its own, and those
 * that it sends to others.  Terms are taken in coordinate order.
 */
static int exchange_lists(const struct dtn_phase *phase, int root, int me,
                          struct dtn_pieces *received, struct dtn_pieces *sent,
                          struct dtensor_error *err)
{
    int rc;

    if (root != DTN_NO_ROOT) {
        rc = exchange_scatter(phase, root, me, received, sent, err);
    } else {
        rc = dtn_pieces_received(&phase->src, &phase->dst, me, received, err);
        if (rc == 0)
            rc = dtn_pieces_sent(&phase->src, &phase->dst, me, sent, err);
    }
    if (dtn_phase_idle(phase, me))
        received->n = 0;
    exchange_drop(sent, phase, me);
    if (rc == 0 && !dtn_phase_folds(phase))
        rc = exchange_rotate(received, me, false, err);
    return rc == 0 ? exchange_rotate(sent, me, true, err) : rc;
}

/* ------------------------------------------------------- any exchange --- */

static bool exchange_maps(const void *group, int position)
{
    return dtn_group_maps(group, position);
}

struct dtn_exchange dtn_exchange_of(const char *name,
                                    const struct dtn_phase *phase,
                                    const struct dtn_group *group)
{
    return (struct dtn_exchange){
        .name = name, .n = group->n, .me = group->me,
        .dtype = phase->dst.dtype, .redop = phase->redop,
        .neutral = phase->neutral, .scale = phase->divide,
        .folds = dtn_phase_folds(phase), .maps = exchange_maps,
        .whose = group, .row_bytes = dtn_group_row_bytes(group)
    };
}

void dtn_exchange_pieces(struct dtn_exchange *exchange,
                         const struct dtn_pieces *received,
                         const struct dtn_pieces *sent)
{
    exchange->nreceived = received->n;
    exchange->received = received->list;
    exchange->nsent = sent->n;
    exchange->sent = sent->list;
}

int dtn_exchange_exec(const struct dtn_group *group,
                      const struct dtn_exchange *exchange,
                      struct dtn_exec **execp, struct dtensor_error *err)
{
    struct dtn_sched sched;
    int rc = dtn_emit_exchange(exchange, &sched, err);

    if (rc != 0)
        return rc;
    rc = dtn_exec_create(group, &sched, execp, err);
    if (rc != 0)
        dtn_sched_fini(&sched);
    return rc;
}

/* -------------------------------------------------- of a step of a plan --- */

const struct dtn_group *dtn_exchange_group(const struct dtensor_plan *r,
                                           const struct dtn_phase *phase)
{
    return phase->src.mesh != phase->dst.mesh ? &r->all->group
                                              : &phase->src.mesh->group;
}

int dtn_step_exchange_init(const struct dtensor_plan *r,
                           const struct dtn_redist_step *step, int rank,
                           struct dtn_step_exchange *x,
                           struct dtensor_error *err)
{
    const struct dtn_phase *phase = &step->phase;
    const struct dtn_group *group = dtn_exchange_group(r, phase);
    const int from = dtensor_mesh_index(phase->src.mesh, rank);
    const int to = dtensor_mesh_index(phase->dst.mesh, rank);
    int rc;

    *x = (struct dtn_step_exchange){
        .exchange = dtn_exchange_of("redistribute", phase, group)
    };
    x->exchange.me = dtn_ranks_find(group->ranks, rank);
    x->exchange.window_bytes = step->window_bytes;
    if (to >= 0)
        x->exchange.out_count = (size_t)dtn_local_numel(&phase->dst, to);
    if (from >= 0 && (r->root == DTN_NO_ROOT || r->root == x->exchange.me))
        x->exchange.in_count = (size_t)dtn_local_numel(&phase->src, from);
    rc = phase->src.mesh != phase->dst.mesh
       ? exchange_cross(phase, r->all, rank, &x->received, &x->sent, err)
       : exchange_lists(phase, r->root, from, &x->received, &x->sent, err);
    dtn_exchange_pieces(&x->exchange, &x->received, &x->sent);
    return rc;
}

void dtn_step_exchange_fini(struct dtn_step_exchange *x)
{
    dtn_pieces_fini(&x->received);
    dtn_pieces_fini(&x->sent);
}

int dtn_exchange_emit(const struct dtensor_plan *r, int i,
                      struct dtn_sched *sched, struct dtensor_error *err)
{
    const int rank = r->all->ctx->world.rank;
    struct dtn_step_exchange x;
    int rc = dtn_step_exchange_init(r, &r->step[i], rank, &x, err);

    if (rc == 0)
        rc = dtn_emit_exchange(&x.exchange, sched, err);
    dtn_step_exchange_fini(&x);
    return rc;
}
