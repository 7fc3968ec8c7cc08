/* cost.c - the predicted cost of a redistribute
 *
 * A step in which a rank sends m messages with b bytes in total takes two hops,
 * 3 m messages and b / bandwidth.  The constants are those by which algorithms
 * of collectives are chosen (sched/model.c).  Example: 256 MiB on 8 ranks of
 * one host from S(0) to S(1) are 7 messages of 4 MiB from each rank, at 0.1 us,
 * 0.05 us and 12 GB/s: 0.2 us + 1 us + 2.4 ms.  For 32 KiB on 512 ranks the
 * messages are nearly the whole cost, and a route with fewer messages may win
 * even if it moves more bytes.
 *
 * Volumes are computed from the placements alone, as if all shards were even.
 * So a plan for 1,024 ranks costs no more time than a plan for 8.  These
 * volumes are used to choose a route and to predict times; the bytes that a
 * plan reports are counted piece by piece.
 */
#include "redist/cost.h"
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "coll/choose.h"
#include "job/ctx.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "redist/phases.h"
#include "sched/call.h"
#include "sched/model.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

/* The number of coordinates along mesh dimension m, with all others 0, whose
 * rank is on the host of position 0.
 */
static int cost_per_host(const struct dtensor_mesh *mesh, int m)
{
    const struct dtensor_ctx *ctx = mesh->ctx;
    int host = dtn_world_host(&ctx->world, mesh->group.ranks[0]), step = 1,
        per_host = 0;

    for (int k = m + 1; k < mesh->ndim; k++)
        step *= mesh->size[k];
    for (int c = 0; c < mesh->size[m]; c++)
        per_host += dtn_world_host(&ctx->world, mesh->group.ranks[c * step]) ==
                host;
    return per_host;
}

/* Ranks of the mesh that share a network device with position 0. */
static double cost_ranks_per_device(const struct dtensor_mesh *mesh,
                                    const struct dtn_cost *cost)
{
    const struct dtensor_ctx *ctx = mesh->ctx;
    double devices = dtn_model_devices(
        ctx->world.cluster, dtn_world_host(&ctx->world, mesh->group.ranks[0]));
    double ranks = 1;

    for (int m = 0; m < mesh->ndim; m++)
        ranks *= cost->per_host[m];
    return ranks > devices ? ranks / devices : 1;
}

void dtn_cost_init(const struct dtensor_mesh *mesh, struct dtn_cost *cost)
{
    cost->mesh = mesh;
    dtn_model_costs(mesh->ctx->world.cluster, &cost->model);
    for (int m = 0; m < mesh->ndim; m++)
        cost->per_host[m] = cost_per_host(mesh, m);
    cost->model.ns[DTENSOR_COST_INTER_BYTES] *=
        cost_ranks_per_device(mesh, cost);
}

/* -------------------------------------------------------------- volumes --- */

/* What one rank of an exchange moves if all shards are even: the rank that
 * sends most, to within one chunk.
 */
struct volume {
    double sent;                  /* elements to others                       */
    double kept;                  /* elements that stay on this rank          */
    double messages;              /* peers that get any                       */
    double on_host;               /* share of the peers that is on the host   */
};

static bool volume_cuts(const struct dtensor_placement *p)
{
    return dtn_placement_class(p) == DTENSOR_SHARD;
}

double dtn_volume_local(const struct dtensor_spec *spec,
                        const struct dtensor_placement placement[])
{
    double n = 1;

    for (int d = 0; d < spec->ndim; d++)
        n *= (double)spec->shape[d];
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (volume_cuts(&placement[m]))
            n /= spec->mesh->size[m];
    return n;
}

/* Does a rank keep the same share of this dimension as each peer gets?  It does
 * not if a deeper cut of the same tensor dimension changes, too.
 */
static bool volume_aligned(const struct dtensor_spec *spec,
                           const struct dtensor_placement src[],
                           const struct dtensor_placement dst[], int m)
{
    for (int k = 0; k < spec->mesh->ndim; k++) {
        const bool moves = !dtn_placement_equal(&src[k], &dst[k],
                                                spec->mesh->size[k]);

        if (k == m || spec->mesh->size[k] == 1)
            continue;
        if (volume_cuts(&dst[m]) && volume_cuts(&src[m]) &&
            volume_cuts(&src[k]) && volume_cuts(&dst[k]) &&
            (moves ? src[k].dim == dst[m].dim && dst[k].dim == src[m].dim
                   : k > m && (src[k].dim == src[m].dim ||
                               src[k].dim == dst[m].dim)))
            return false;
    }
    return true;
}

/* Mesh dimension m cuts as before.  Does it now cut other parts, because a mesh
 * dimension to its left has changed?
 */
static bool volume_dragged(const struct dtensor_spec *spec,
                           const struct dtensor_placement src[],
                           const struct dtensor_placement dst[], int m)
{
    for (int k = 0; k < m && volume_cuts(&dst[m]); k++)
        if (!dtn_placement_equal(&src[k], &dst[k], spec->mesh->size[k]) &&
            spec->mesh->size[k] > 1 &&
            ((volume_cuts(&src[k]) && src[k].dim == dst[m].dim) ||
             (volume_cuts(&dst[k]) && dst[k].dim == dst[m].dim)))
            return true;
    return false;
}

/* The number of receivers that get a part of what one rank holds, by tensor
 * dimension: with 2 parts before and 8 after, each part overlaps 4.
 */
static double volume_meets(const struct dtensor_spec *spec,
                           const struct dtensor_placement src[],
                           const struct dtensor_placement dst[])
{
    double cuts[DTENSOR_MAX_DIMS], meets = 1;
    bool shuffled[DTENSOR_MAX_DIMS] = { false };

    for (int d = 0; d < spec->ndim; d++)
        cuts[d] = 1;
    for (int m = 0; m < spec->mesh->ndim; m++) {
        const bool cyclic = src[m].kind >= DTENSOR_STRIDED ||
                            dst[m].kind >= DTENSOR_STRIDED;

        if (volume_cuts(&dst[m]))
            cuts[dst[m].dim] *= spec->mesh->size[m];
        if (cyclic && volume_cuts(&dst[m]))
            shuffled[dst[m].dim] = true;
    }
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (volume_cuts(&src[m]) && !shuffled[src[m].dim])
            cuts[src[m].dim] /= spec->mesh->size[m];
    for (int d = 0; d < spec->ndim; d++)
        meets *= cuts[d] > 1 ? cuts[d] : 1;
    return meets;
}

static void volume_exchange(const struct dtn_cost *cost,
                            const struct dtensor_spec *spec,
                            const struct dtensor_placement src[],
                            const struct dtensor_placement dst[],
                            struct volume *volume)
{
    double total = dtn_volume_local(spec, src), on_host = 1, reach = 1;
    double meets = volume_meets(spec, src, dst), keeps = 1;

    for (int m = 0; m < spec->mesh->ndim; m++) {
        const int n = spec->mesh->size[m];
        const bool to = volume_cuts(&dst[m]);
        const bool stays = dtn_placement_is_local(&src[m], &dst[m]);
        const bool same = dtn_placement_equal(&src[m], &dst[m], n);

        if (!stays && !to) {
            total *= n;
            meets *= n;
        } else if (src[m].kind == DTENSOR_REPLICATE && to) {
            total /= n;
            meets /= n;
        }
        if (n == 1 || (same ? !volume_dragged(spec, src, dst, m)
                            : stays))
            continue;
        on_host *= cost->per_host[m];
        reach *= n;
        if (same || !volume_aligned(spec, src, dst, m))
            keeps = 0;
    }
    if (meets < 1)
        meets = 1;
    if (meets > reach)
        meets = reach;
    volume->kept = keeps * total / meets;
    volume->sent = reach > 1 ? total - volume->kept : 0;
    volume->messages = reach > 1 ? (meets > 1 ? meets - keeps : 1) : 0;
    volume->on_host =
        reach > 1 && on_host > 1 ? (on_host - 1) / (reach - 1) : 0;
    if (on_host == reach)
        volume->on_host = 1;
}

/* ---------------------------------------------------------------- times --- */

/* Time of a hop, a message and a byte in ns: inside a host, and between hosts.
 */
static const double *cost_near_link(const struct dtn_cost *cost)
{
    return cost->model.ns + DTENSOR_COST_INTRA_HOPS;
}

static const double *cost_far_link(const struct dtn_cost *cost)
{
    return cost->model.ns + DTENSOR_COST_INTER_HOPS;
}

/* A step: READY, then DATA or DONE; and one put for each peer. */
static double cost_link_ns(const double link[], double messages, double bytes)
{
    return messages <= 0 ? 0 : 2 * link[0] + messages * 3 * link[1]
                             + bytes * link[2];
}

double dtn_cost_exchange(const struct dtn_cost *cost,
                         const struct dtensor_spec *spec,
                         const struct dtensor_placement src[],
                         const struct dtensor_placement dst[])
{
    const double elem = (double)dtensor_dtype_size(spec->dtype);
    struct volume v;
    double ns, folded = 0, filled = 0;

    volume_exchange(cost, spec, src, dst, &v);
    for (int m = 0; m < spec->mesh->ndim; m++) {
        if (src[m].kind == DTENSOR_PARTIAL && dst[m].kind != DTENSOR_PARTIAL)
            folded = v.sent;
        if (volume_cuts(&src[m]) && dtn_placement_is_local(&src[m], &dst[m]))
            filled = dtn_volume_local(spec, dst);    /* neutral elements      */
    }
    ns = cost_link_ns(cost_near_link(cost), v.messages * v.on_host,
                      v.sent * elem * v.on_host);
    ns += cost_link_ns(cost_far_link(cost), v.messages * (1 - v.on_host),
                       v.sent * elem * (1 - v.on_host));
    return ns + (v.kept + filled) * elem
                * cost->model.ns[DTENSOR_COST_COPIED]
              + folded * elem * cost->model.ns[DTENSOR_COST_FOLDED];
}

/* The time of one level of ranks, with the algorithm that a call over them
 * would use.
 */
static double cost_level(const struct dtn_cost *cost,
                         const double link[], enum dtn_reach reach, int n,
                         double bytes)
{
    const struct dtn_call call = { .coll = DTN_COLL_ALLREDUCE, .n = n,
                                   .dtype = DTENSOR_U8,
                                   .count = (size_t)bytes };
    struct dtn_model model = cost->model;
    struct dtn_choice pick;

    model.reach = reach;
    memcpy(model.ns + DTENSOR_COST_INTRA_HOPS, link, 3 * sizeof *link);
    model.hosts = 1;
    model.locals = n;
    dtn_choose(&call, &model, &pick);
    return pick.ns;
}

double dtn_cost_allreduce(const struct dtn_cost *cost,
                          const struct dtensor_mesh *mesh, unsigned dims,
                          double bytes)
{
    const enum dtn_wire wire = mesh->ctx->world.cluster->transport.intra_node;
    const enum dtn_reach near_reach = wire == DTN_WIRE_SHM ? DTN_REACH_MAP
                                                           : DTN_REACH_PUT;
    int per_host = 1, n = 1;

    for (int m = 0; m < mesh->ndim; m++)
        if (dims >> m & 1) {
            per_host *= cost->per_host[m];
            n *= mesh->size[m];
        }
    return cost_level(cost, cost_near_link(cost), near_reach, per_host, bytes)
         + cost_level(cost, cost_far_link(cost), DTN_REACH_PUT, n / per_host,
                      bytes);
}

/* To another mesh: a receiver takes its part from all ranks that hold some of
 * it, through the inter-node transport if there are several hosts.
 */
static double cost_cross(const struct dtn_cost *cost,
                         const struct dtensor_spec *src,
                         const struct dtensor_spec *dst)
{
    const double held = dtn_volume_local(src, src->placement);
    const double wanted = dtn_volume_local(dst, dst->placement);
    const double *link = dst->mesh->ctx->world.cluster->nhosts > 1
                       ? cost_far_link(cost) : cost_near_link(cost);

    return cost_link_ns(link, wanted > held && held > 0 ? wanted / held : 1,
                        wanted * (double)dtensor_dtype_size(dst->dtype));
}

double dtn_cost_phase(const struct dtn_cost *cost,
                      const struct dtn_phase *phase)
{
    const struct dtensor_spec *spec = &phase->dst;
    const double bytes = dtn_volume_local(spec, spec->placement) *
                         (double)dtensor_dtype_size(spec->dtype);

    if (cost->mesh != spec->mesh) {          /* on the way to another        */
        struct dtn_cost own;

        dtn_cost_init(spec->mesh, &own);
        return dtn_cost_phase(&own, phase);
    }
    if (phase->src.mesh != spec->mesh)
        return cost_cross(cost, &phase->src, spec);
    if (phase->kind != DTN_PHASE_EXCHANGE)
        return dtn_cost_allreduce(cost, spec->mesh, phase->dims, bytes);
    return dtn_cost_exchange(cost, spec, phase->src.placement,
                             spec->placement);
}
