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
#include "base/dtype.h"
#include "cluster/cluster.h"
#include "cluster/host.h"
#include "cluster/world.h"
#include "coll/choose.h"
#include "coll/pack.h"
#include "job/ctx.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "redist/phases.h"
#include "sched/call.h"
#include "sched/model.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* The number of coordinates along mesh dimension m, with all others 0, whose
 * rank is on the host of position 0.  It goes through the ranks of that host:
 * those of the dimension may be the world.
 */
static int cost_per_host(const struct dtensor_mesh *mesh, int m)
{
    const struct dtn_host *host = dtn_host_of(mesh->ctx->world.cluster,
                                              dtensor_mesh_rank(mesh, 0));
    int step = 1, per_host = 0;

    for (int k = m + 1; k < mesh->ndim; k++)
        step *= mesh->size[k];
    for (int r = host->first_rank; r < host->first_rank + host->nranks; r++) {
        const int index = dtensor_mesh_index(mesh, r);

        per_host += index >= 0 && index % step == 0
                 && index / step < mesh->size[m];
    }
    return per_host;
}

/* Ranks of the mesh that share a network device with position 0. */
static double cost_ranks_per_device(const struct dtensor_mesh *mesh,
                                    const struct dtn_cost *cost)
{
    const struct dtensor_ctx *ctx = mesh->ctx;
    double devices = dtn_model_devices(
        ctx->world.cluster,
        dtn_world_host(&ctx->world, dtensor_mesh_rank(mesh, 0)));
    double ranks = 1;

    for (int m = 0; m < mesh->ndim; m++)
        ranks *= cost->per_host[m];
    return ranks > devices ? ranks / devices : 1;
}

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

void dtn_cost_init(const struct dtensor_mesh *mesh, struct dtn_cost *cost)
{
    cost->mesh = mesh;
    cost->kept = NULL;
    dtn_model_costs(mesh->ctx->world.cluster, &cost->model);
    for (int m = 0; m < mesh->ndim; m++)
        cost->per_host[m] = cost_per_host(mesh, m);
    cost->sharing = cost_ranks_per_device(mesh, cost);
    cost->model.ns[DTENSOR_COST_INTER_BYTES] *= cost->sharing;
    cost->hop = fmin(cost_near_link(cost)[0], cost_far_link(cost)[0]);
    cost->message = fmin(cost_near_link(cost)[1], cost_far_link(cost)[1]);
    cost->byte = fmin(cost_near_link(cost)[2], cost_far_link(cost)[2]);
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

/* What an exchange does along each mesh dimension. */
struct changes {
    bool cut[DTENSOR_MAX_DIMS];   /* it is cut before                         */
    bool cuts[DTENSOR_MAX_DIMS];  /* and after                                */
    bool same[DTENSOR_MAX_DIMS];  /* as before, or over one rank              */
};

/* Does a rank keep the same share of this dimension as each peer gets?  It does
 * not if a deeper cut of the same tensor dimension changes, too.
 */
static bool volume_aligned(const struct dtensor_spec *spec,
                           const struct dtensor_placement src[],
                           const struct dtensor_placement dst[],
                           const struct changes *c, int m)
{
    for (int k = 0; k < spec->mesh->ndim && c->cut[m] && c->cuts[m]; k++) {
        if (k == m || spec->mesh->size[k] == 1 || !c->cut[k] || !c->cuts[k])
            continue;
        if (c->same[k] ? k > m && (src[k].dim == src[m].dim ||
                                   src[k].dim == dst[m].dim)
                       : src[k].dim == dst[m].dim && dst[k].dim == src[m].dim)
            return false;
    }
    return true;
}

/* Mesh dimension m cuts as before.  Does it now cut other parts, because a mesh
 * dimension to its left has changed?
 */
static bool volume_dragged(const struct dtensor_placement src[],
                           const struct dtensor_placement dst[],
                           const struct changes *c, int m)
{
    for (int k = 0; k < m && c->cuts[m]; k++)
        if (!c->same[k] && ((c->cut[k] && src[k].dim == dst[m].dim) ||
                            (c->cuts[k] && dst[k].dim == dst[m].dim)))
            return true;
    return false;
}

/* The number of receivers that get a part of what one rank holds, by tensor
 * dimension: with 2 parts before and 8 after, each part overlaps 4.
 */
static double volume_meets(const struct dtensor_spec *spec,
                           const struct dtensor_placement src[],
                           const struct dtensor_placement dst[],
                           const struct changes *c)
{
    double cuts[DTENSOR_MAX_DIMS], meets = 1;
    bool shuffled[DTENSOR_MAX_DIMS] = { false };

    for (int d = 0; d < spec->ndim; d++)
        cuts[d] = 1;
    for (int m = 0; m < spec->mesh->ndim; m++) {
        const bool cyclic = spec->mesh->size[m] > 1 &&
                            (src[m].kind >= DTENSOR_STRIDED ||
                             dst[m].kind >= DTENSOR_STRIDED);

        if (c->cuts[m])
            cuts[dst[m].dim] *= spec->mesh->size[m];
        if (cyclic && c->cuts[m])
            shuffled[dst[m].dim] = true;
    }
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (c->cut[m] && !shuffled[src[m].dim])
            cuts[src[m].dim] /= spec->mesh->size[m];
    for (int d = 0; d < spec->ndim; d++)
        meets *= cuts[d] > 1 ? cuts[d] : 1;
    return meets;
}

static void volume_changes(const struct dtensor_mesh *mesh,
                           const struct dtensor_placement src[],
                           const struct dtensor_placement dst[],
                           struct changes *c)
{
    for (int m = 0; m < mesh->ndim; m++) {
        c->cut[m] = volume_cuts(&src[m]);
        c->cuts[m] = volume_cuts(&dst[m]);
        c->same[m] = mesh->size[m] == 1 ||
                     dtn_placement_equal(&src[m], &dst[m], mesh->size[m]);
    }
}

/* `local`: elements of a part before. */
static void volume_exchange(const struct dtn_cost *cost,
                            const struct dtensor_spec *spec,
                            const struct dtensor_placement src[],
                            const struct dtensor_placement dst[], double local,
                            struct volume *volume)
{
    double total = local, on_host = 1, reach = 1;
    double meets, keeps = 1;
    struct changes c;

    volume_changes(spec->mesh, src, dst, &c);
    meets = volume_meets(spec, src, dst, &c);
    for (int m = 0; m < spec->mesh->ndim; m++) {
        const int n = spec->mesh->size[m];
        const bool stays = dtn_placement_is_local(&src[m], &dst[m]);

        if (!stays && !c.cuts[m]) {
            total *= n;
            meets *= n;
        } else if (src[m].kind == DTENSOR_REPLICATE && c.cuts[m]) {
            total /= n;
            meets /= n;
        }
        if (n == 1 || (c.same[m] ? !volume_dragged(src, dst, &c, m) : stays))
            continue;
        on_host *= cost->per_host[m];
        reach *= n;
        if (c.same[m] || !volume_aligned(spec, src, dst, &c, m))
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

/* A step: READY, then DATA or DONE; and one put for each peer.  Between hosts a
 * message is posted while another one moves.
 */
static double cost_near_ns(const double link[], double messages, double bytes)
{
    return messages <= 0 ? 0 : 2 * link[0] + messages * 3 * link[1]
                             + bytes * link[2];
}

static double cost_far_ns(const double link[], double messages, double bytes)
{
    return messages <= 0 ? 0 : 2 * link[0] + messages * link[1]
                             + fmax(messages * 2 * link[1], bytes * link[2]);
}

/* Elements that a rank reads or writes in its own memory besides: terms and
 * their sums, neutral elements, a part that is divided.  `local`: elements of a
 * part after.
 */
static void volume_local_work(const struct dtensor_spec *spec,
                              const struct dtensor_placement src[],
                              const struct dtensor_placement dst[],
                              double local, const struct volume *v,
                              double *foldedp, double *copiedp)
{
    *foldedp = 0;
    *copiedp = v->kept;
    for (int m = 0; m < spec->mesh->ndim; m++) {
        const bool made = dst[m].kind == DTENSOR_PARTIAL;

        if (spec->mesh->size[m] == 1)
            continue;
        if (src[m].kind == DTENSOR_PARTIAL && !made)
            *foldedp = 2 * v->sent;
        if (volume_cuts(&src[m]) && dtn_placement_is_local(&src[m], &dst[m]))
            *copiedp += local;
        if (src[m].kind == DTENSOR_REPLICATE && made
            && dst[m].op == DTENSOR_SUM && dtn_dtype_is_float(spec->dtype))
            *copiedp += local;
    }
}

double dtn_cost_exchange(const struct dtn_cost *cost,
                         const struct dtensor_spec *spec,
                         const struct dtensor_placement src[],
                         const struct dtensor_placement dst[])
{
    const double elem = (double)dtensor_dtype_size(spec->dtype);
    const double before = dtn_volume_local(spec, src);
    const double after = dtn_volume_local(spec, dst);
    const double stretch = dtn_model_cache_miss_factor(
        &cost->model, elem * fmax(before, after));
    double folded, copied;
    struct volume v;

    volume_exchange(cost, spec, src, dst, before, &v);
    volume_local_work(spec, src, dst, after, &v, &folded, &copied);
    return cost_near_ns(cost_near_link(cost), v.messages * v.on_host,
                        v.sent * elem * v.on_host * stretch)
         + cost_far_ns(cost_far_link(cost), v.messages * (1 - v.on_host),
                       v.sent * elem * (1 - v.on_host))
         + stretch * elem * (copied * cost->model.ns[DTENSOR_COST_COPIED]
                             + folded * cost->model.ns[DTENSOR_COST_FOLDED]);
}

static bool cost_maps(const struct dtn_cost *cost)
{
    return cost->mesh->ctx->world.cluster->transport.intra_node == DTN_WIRE_SHM;
}

struct dtn_cost_packing dtn_cost_packing(const struct dtn_cost *cost,
                                         const struct dtn_phase *exchange)
{
    const struct dtensor_spec *spec = &exchange->dst;
    const struct dtensor_placement *src = exchange->src.placement;
    const double elem = (double)dtensor_dtype_size(spec->dtype);
    const double before = dtn_volume_local(spec, src);
    const double after = dtn_volume_local(spec, spec->placement);
    struct volume v;

    volume_exchange(cost, spec, src, spec->placement, before, &v);
    return (struct dtn_cost_packing){
        .messages = cost_near_ns(cost_near_link(cost), v.messages * v.on_host,
                                 0)
                  + cost_far_ns(cost_far_link(cost),
                                v.messages * (1 - v.on_host), 0),
        .copies = dtn_pack_copies(&cost->model, before * elem, after * elem,
                                  v.on_host > 0 && cost_maps(cost))
    };
}

static enum dtn_reach cost_reach(const struct dtn_cost *cost, int n,
                                 int per_host)
{
    if (!cost_maps(cost))
        return DTN_REACH_PUT;
    return per_host == n ? DTN_REACH_MAP
         : per_host > 1 ? DTN_REACH_HOST : DTN_REACH_PUT;
}

/* The model of a call over n ranks.  Of the ranks that share a device those of
 * other groups send, too.
 */
static struct dtn_model cost_model(const struct dtn_cost *cost, int n,
                                   int per_host)
{
    struct dtn_model model = cost->model;

    model.reach = cost_reach(cost, n, per_host);
    model.hosts = (n + per_host - 1) / per_host;
    model.locals = per_host;
    model.uneven = model.hosts * per_host != n;
    model.rails = n - (model.hosts - 1) * per_host;
    model.eager_bytes = dtn_model_group_eager(
        &model, &cost->mesh->ctx->world.cluster->transport, n);
    model.ranks_per_device = fmin(per_host, cost->sharing);
    model.ns[DTENSOR_COST_INTER_BYTES] /= model.ranks_per_device;
    return model;
}

static struct dtn_call cost_call(int n, double bytes)
{
    return (struct dtn_call){ .coll = DTN_COLL_ALLREDUCE, .n = n,
                              .dtype = DTENSOR_U8, .count = (size_t)bytes };
}

/* An allreduce of n ranks, with the algorithm that a call over them would use.
 */
static double cost_chosen(const struct dtn_cost *cost, int n, int per_host,
                          double bytes)
{
    const struct dtn_call call = cost_call(n, bytes);
    const struct dtn_model model = cost_model(cost, n, per_host);
    struct dtn_choice pick;

    dtn_choose(&call, &model, &pick);
    return pick.ns;
}

/* The same, if it is known already at once. */
static double cost_kept(const struct dtn_cost *cost, int n, int per_host,
                        double bytes)
{
    struct dtn_cost_kept *kept = cost->kept;
    double ns;

    for (int i = 0; kept && i < kept->n; i++)
        if (kept->level[i].bytes == bytes && kept->level[i].ranks == n &&
            kept->level[i].per_host == per_host)
            return kept->level[i].ns;
    ns = cost_chosen(cost, n, per_host, bytes);
    if (kept && kept->n < DTN_COST_LEVELS) {
        kept->level[kept->n].bytes = bytes;
        kept->level[kept->n].ns = ns;
        kept->level[kept->n].ranks = n;
        kept->level[kept->n++].per_host = per_host;
    }
    return ns;
}

/* The ranks along some mesh dimensions. */
static int cost_ranks(const struct dtn_cost *cost,
                      const struct dtensor_mesh *mesh, unsigned dims,
                      int *per_hostp)
{
    int n = 1;

    *per_hostp = 1;
    for (int m = 0; m < mesh->ndim; m++)
        if (dims >> m & 1) {
            *per_hostp *= cost->per_host[m];
            n *= mesh->size[m];
        }
    return n;
}

double dtn_cost_allreduce(const struct dtn_cost *cost,
                          const struct dtensor_mesh *mesh, unsigned dims,
                          double bytes)
{
    int per_host;
    const int n = cost_ranks(cost, mesh, dims, &per_host);

    return cost_kept(cost, n, per_host, bytes);
}

size_t dtn_cost_sum_bound(const struct dtn_cost *cost, unsigned dims,
                          double bytes)
{
    int per_host;
    const int n = cost_ranks(cost, cost->mesh, dims, &per_host);
    const struct dtn_call call = cost_call(n, bytes);
    const struct dtn_model model = cost_model(cost, n, per_host);

    return dtn_pack_bound(&call, &model);
}

/* --------------------------------------------------------------- phases --- */

/* To another mesh: a receiver takes its part from all ranks that hold some of
 * it, through the inter-node transport if there are several hosts.
 */
static double cost_cross(const struct dtn_cost *cost,
                         const struct dtensor_spec *src,
                         const struct dtensor_spec *dst)
{
    const double held = dtn_volume_local(src, src->placement);
    const double wanted = dtn_volume_local(dst, dst->placement);
    const double bytes = wanted * (double)dtensor_dtype_size(dst->dtype);
    const double peers = wanted > held && held > 0 ? wanted / held : 1;

    return dst->mesh->ctx->world.cluster->nhosts > 1
        ? cost_far_ns(cost_far_link(cost), peers, bytes)
        : cost_near_ns(cost_near_link(cost), peers, bytes);
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
