/* cost.c - what a redistribution is thought to cost
 *
 * A step in which a rank sends m messages with b bytes in all takes it
 * l + m * alpha + b / beta: l is the wait for the last of them, alpha the work
 * on one however short it is, beta what a link carries.  256 MiB on 8 ranks of
 * one host from S(0) to S(1) is 7 messages of 4 MiB from each: 1.2 us + 7 * 0.4
 * us + 28 MiB / 4 GB/s = 7.3 ms, of which the messages are nothing.  Of 32 KiB
 * on 512 ranks they are nearly all, and a route with fewer may win though it
 * moves more.
 *
 * Volumes are those of an even division, found from the placements alone, so
 * that 1,024 ranks cost no more to plan for than 8.  They choose between routes
 * and predict times; what a plan promises is counted piece by piece.
 */
#include "spec/cost.h"

#include <string.h>

/* Every constant, its unit (ns a message; bytes a ns, which is GB/s) and where
 * it comes from.  They are round estimates that put routes in order, fitted to
 * no machine; [redistribute] in the cluster file overrides the links.
 */
static const struct dtn_link cost_wires[] = {
    /* Two processes of one host: READY, the loads and DONE are some ten
     * cache-line hops of 0.1 us; a further peer adds three signals; a copy
     * between two address spaces reads and writes memory at 8 GB/s.
     */
    [DTN_WIRE_SHM] = { 1200, 400, 4.0 },
    /* Kernel TCP: half a round trip through two sockets takes some 15 us, twice;
     * 4 us for a send and its share of polling; the rate is that of 10 Gb/s
     * Ethernet less its headers.
     */
    [DTN_WIRE_TCP] = { 30000, 4000, 1.15 },
    /* InfiniBand and RoCE at 100 Gb/s, ib_write_lat and ib_write_bw as vendors
     * give them: 1.0 us one way, twice, and noticing; 12.1 GB/s.  To post a
     * write and a signal is taken for 0.2 us.
     */
    [DTN_WIRE_RC] = { 2500, 200, 12.1 },
};

/* A reduction of f32 out of cache, and memcpy: bytes of a term per ns at the
 * 10 GB/s or so that one core of a server reads and writes.
 */
#define COST_FOLD_BYTES_PER_NS 5.0
#define COST_COPY_BYTES_PER_NS 5.0

/* ------------------------------------------------------------ constants --- */

static struct dtn_link cost_link(enum dtn_wire wire, int latency_ns,
                                 int message_ns, uint64_t bandwidth)
{
    struct dtn_link link = cost_wires[wire];

    if (latency_ns > 0)
        link.latency_ns = latency_ns;
    if (message_ns > 0)
        link.message_ns = message_ns;
    if (bandwidth > 0)
        link.bytes_per_ns = (double)bandwidth / 1e9;
    return link;
}

/* Coordinates along mesh dimension m whose rank, all others 0, is on the host
 * of position 0.
 */
static int cost_near(const struct dtensor_mesh *mesh, int m)
{
    const struct dtensor_ctx *ctx = mesh->ctx;
    int host = dtn_ctx_host(ctx, mesh->group.ranks[0]), step = 1, near = 0;

    for (int k = m + 1; k < mesh->ndim; k++)
        step *= mesh->size[k];
    for (int c = 0; c < mesh->size[m]; c++)
        near += dtn_ctx_host(ctx, mesh->group.ranks[c * step]) == host;
    return near;
}

/* Ranks of the mesh that share a network device with position 0. */
static double cost_sharers(const struct dtensor_mesh *mesh,
                           const struct dtn_cost *cost)
{
    const struct dtensor_cluster *cluster = mesh->ctx->cluster;
    const struct dtn_host *host =
        &cluster->hosts[dtn_ctx_host(mesh->ctx, mesh->group.ranks[0])];
    char *const *hca = cluster->nodes[host->nodes].hca;
    double ranks = 1;
    int devices = 0;

    for (int m = 0; m < mesh->ndim; m++)
        ranks *= cost->near[m];
    for (int r = 0; hca && r < host->nranks; r++) {
        int first = 0;

        while (strcmp(hca[first], hca[r]) != 0)
            first++;
        devices += first == r;
    }
    return devices > 1 && ranks > devices ? ranks / devices
         : devices > 1 ? 1 : ranks;
}

void dtn_cost_init(const struct dtensor_mesh *mesh, struct dtn_cost *cost)
{
    const struct dtensor_cluster *cluster = mesh->ctx->cluster;
    const struct dtn_redistribute_conf *conf = &cluster->redistribute;

    cost->mesh = mesh;
    cost->intra = cost_link(cluster->transport.intra_node,
                            conf->intra_latency_ns, conf->intra_message_ns,
                            conf->intra_bandwidth);
    cost->inter = cost_link(cluster->transport.inter_node,
                            conf->inter_latency_ns, conf->inter_message_ns,
                            conf->inter_bandwidth);
    cost->fold_bytes_per_ns = COST_FOLD_BYTES_PER_NS;
    cost->copy_bytes_per_ns = COST_COPY_BYTES_PER_NS;
    for (int m = 0; m < mesh->ndim; m++)
        cost->near[m] = cost_near(mesh, m);
    cost->inter.bytes_per_ns /= cost_sharers(mesh, cost);
}

/* -------------------------------------------------------------- volumes --- */

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

/* Is what a rank keeps of this dimension the same share as each peer gets?
 * Not where a deeper cut of the same tensor dimension moves along.
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

/* Is mesh dimension m, which cuts as before, cut from other parts now, since one
 * to its left has changed?
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

/* How many receivers have a part of what one rank holds, by tensor dimension:
 * with 2 cuts before and 8 after, each part meets 4.
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

void dtn_volume_exchange(const struct dtn_cost *cost,
                         const struct dtensor_spec *spec,
                         const struct dtensor_placement src[],
                         const struct dtensor_placement dst[],
                         struct dtn_volume *volume)
{
    double total = dtn_volume_local(spec, src), near = 1, reach = 1;
    double meets = volume_meets(spec, src, dst), keeps = 1;

    for (int m = 0; m < spec->mesh->ndim; m++) {
        const int n = spec->mesh->size[m];
        const bool from = volume_cuts(&src[m]), to = volume_cuts(&dst[m]);
        const bool same = dtn_placement_equal(&src[m], &dst[m], n);

        if (from && dst[m].kind == DTENSOR_REPLICATE) {
            total *= n;
            meets *= n;
        } else if (src[m].kind == DTENSOR_REPLICATE && to) {
            total /= n;
            meets /= n;
        }
        if (n == 1 || (same ? !volume_dragged(spec, src, dst, m)
                            : src[m].kind == DTENSOR_REPLICATE ||
                              dst[m].kind == DTENSOR_PARTIAL))
            continue;
        near *= cost->near[m];
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
    volume->near = reach > 1 && near > 1 ? (near - 1) / (reach - 1) : 0;
    if (near == reach)
        volume->near = 1;
}

/* ---------------------------------------------------------------- times --- */

static double cost_link_ns(const struct dtn_link *link, double messages,
                           double bytes)
{
    return messages <= 0 ? 0 : link->latency_ns + messages * link->message_ns
                             + bytes / link->bytes_per_ns;
}

double dtn_cost_exchange(const struct dtn_cost *cost,
                         const struct dtensor_spec *spec,
                         const struct dtensor_placement src[],
                         const struct dtensor_placement dst[])
{
    const double elem = (double)dtensor_dtype_size(spec->dtype);
    struct dtn_volume v;
    double ns, folded = 0;

    dtn_volume_exchange(cost, spec, src, dst, &v);
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (src[m].kind == DTENSOR_PARTIAL && volume_cuts(&dst[m]))
            folded = v.sent;
    ns = cost_link_ns(&cost->intra, v.messages * v.near, v.sent * elem * v.near);
    ns += cost_link_ns(&cost->inter, v.messages * (1 - v.near),
                       v.sent * elem * (1 - v.near));
    return ns + v.kept * elem / cost->copy_bytes_per_ns
              + folded * elem / cost->fold_bytes_per_ns;
}

/* Rounds of doubling until n are reached. */
static int cost_rounds(int n)
{
    int rounds = 0;

    for (int64_t reached = 1; reached < n; reached *= 2)
        rounds++;
    return rounds;
}

/* One level of ranks: short ones go up and down a tree, long ones are scattered
 * and gathered, each byte of the result sent twice but for the own share.
 */
static double cost_level(const struct dtn_cost *cost,
                         const struct dtn_link *link, int n, double bytes)
{
    const double share = 2 * (double)(n - 1) / n * bytes;
    const double tree = 2 * cost_rounds(n) *
                        cost_link_ns(link, 1, bytes);
    const double ring = 2 * (n - 1) * cost_link_ns(link, 1, share / 2 / (n - 1))
                      + share / 2 / cost->fold_bytes_per_ns;

    return n == 1 ? 0 : tree < ring ? tree : ring;
}

double dtn_cost_allreduce(const struct dtn_cost *cost,
                          const struct dtensor_mesh *mesh, unsigned dims,
                          double bytes)
{
    int near = 1, n = 1;

    for (int m = 0; m < mesh->ndim; m++)
        if (dims >> m & 1) {
            near *= cost->near[m];
            n *= mesh->size[m];
        }
    return cost_level(cost, &cost->intra, near, bytes)
         + cost_level(cost, &cost->inter, n / near, bytes);
}

/* To another mesh: a receiver takes its part from as many as hold some of it, by
 * the wire between hosts if there is one.
 */
static double cost_cross(const struct dtn_cost *cost,
                         const struct dtensor_spec *src,
                         const struct dtensor_spec *dst)
{
    const double held = dtn_volume_local(src, src->placement);
    const double wanted = dtn_volume_local(dst, dst->placement);
    const struct dtn_link *link = dst->mesh->ctx->cluster->nhosts > 1
                                ? &cost->inter : &cost->intra;

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
