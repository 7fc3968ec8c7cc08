/* test_partial.c - the partial values that a redistribute leaves, rank by rank
 *
 * It is not enough that partial values make the right total: R -> P(max)
 * leaves the value on every rank, and not on one with minus infinity on the
 * others, whatever the route.  Every pair of placements with a P in the target
 * is carried out in this process (oracle.c) on every mesh of up to 8 ranks,
 * for each reduction of floats and of integers, by each route, where bytes are
 * cheap and where they are dear; every element of every rank is compared with
 * the contract of dtensor_redistribute().  Two processes take the cases in
 * turn.
 *
 * Without this test, a partial tensor could hold other values than its
 * contract says, depending on the route.
 */
#include "base/compiler.h"
#include "job/ctx.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/cost.h"
#include "redist/cross.h"
#include "redist/phases.h"
#include "redist/plan.h"
#include "redist/route.h"
#include "dtensor.h"
#include "tests/redist/mesh_shapes.h"
#include "tests/redist/oracle.h"
#include "tests/support/rand.h"
#include "tests/support/ranks.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

enum { RANKS = 8 };

static struct dtensor_ctx *ctx;                /* of a context that plans     */
static uint64_t *cases;                        /* [2], by process             */
static int process;

/* What P may be in the source and in the target; none: the one before.  Where
 * they differ, one reduction gives way to another.
 */
static const struct family {
    enum dtensor_dtype dtype;
    enum dtensor_redop from[2], to[2];
} families[] = {
#define ONE(dtype, op) { dtype, { op, op }, { op, op } }
    { DTENSOR_F64, { DTENSOR_SUM, DTENSOR_AVG }, { DTENSOR_SUM, DTENSOR_AVG } },
    ONE(DTENSOR_F64, DTENSOR_PROD), ONE(DTENSOR_F64, DTENSOR_MIN),
    ONE(DTENSOR_F64, DTENSOR_MAX),
    { DTENSOR_F64, { DTENSOR_MAX, DTENSOR_MAX }, { DTENSOR_MIN, DTENSOR_MIN } },
    { DTENSOR_F64, { DTENSOR_SUM, DTENSOR_AVG }, { DTENSOR_MAX, DTENSOR_MAX } },
    { DTENSOR_F64, { DTENSOR_PROD, DTENSOR_PROD },
      { DTENSOR_SUM, DTENSOR_AVG } },
    { DTENSOR_I64, { DTENSOR_SUM, DTENSOR_AVG }, { DTENSOR_SUM, DTENSOR_AVG } },
    ONE(DTENSOR_I64, DTENSOR_PROD), ONE(DTENSOR_I64, DTENSOR_MIN),
    ONE(DTENSOR_I64, DTENSOR_MAX), ONE(DTENSOR_I64, DTENSOR_BAND),
    ONE(DTENSOR_I64, DTENSOR_BOR), ONE(DTENSOR_I64, DTENSOR_BXOR),
    { DTENSOR_I64, { DTENSOR_MAX, DTENSOR_MAX },
      { DTENSOR_SUM, DTENSOR_AVG } },
    { DTENSOR_I64, { DTENSOR_SUM, DTENSOR_AVG },
      { DTENSOR_BXOR, DTENSOR_BXOR } },
#undef ONE
};

static int nops(const enum dtensor_redop ops[])
{
    return ops[0] == ops[1] ? 1 : 2;
}

/* Placements number `code`: of each mesh dimension R, P of each kind, S of each
 * tensor dimension.  false: there is no such number.
 */
static bool place(struct dtensor_spec *spec, int code,
                  const enum dtensor_redop ops[])
{
    const int kinds = 1 + nops(ops) + spec->ndim;

    for (int m = 0; m < spec->mesh->ndim; m++, code /= kinds) {
        const int one = code % kinds, shard = one - 1 - nops(ops);

        spec->placement[m] = (struct dtensor_placement){
            .kind = one == 0 ? DTENSOR_REPLICATE
                  : shard < 0 ? DTENSOR_PARTIAL : DTENSOR_SHARD,
            .op = one > 0 && shard < 0 ? ops[one - 1] : DTENSOR_SUM,
            .dim = shard < 0 ? 0 : shard
        };
    }
    return code == 0;
}

static void one_route(const struct dtensor_spec *src,
                      const struct dtensor_spec *dst, enum dtensor_route route,
                      const struct dtn_phase phase[], int n)
{
    uint64_t moved = 0, least = 0;

    need(oracle_phases(src, dst, route, phase, n, &moved, &least), "%s",
         oracle_complaint);
    cases[process]++;
}

/* Was the way tried for this pair, as another route or at another price? */
static bool route_tried(const struct dtn_route *route, int ndim, bool first)
{
    enum { MOST = 2 * DTENSOR_NROUTES };
    static struct dtn_route tried[MOST];
    static int n;
    int t = 0, h = 0;

    n = first ? 0 : n;
    for (; t < n; t++) {
        for (h = 0; h < route->nhops; h++)
            if (tried[t].nhops != route->nhops ||
                memcmp(tried[t].hop[h], route->hop[h],
                       (size_t)ndim * sizeof route->hop[0][0]) != 0)
                break;
        if (h == route->nhops)
            return true;
    }
    tried[n++] = *route;
    return false;
}

/* Each way that is not direct's, where bytes cost so many times more; what auto
 * takes is one of them.
 */
static void all_routes(const struct dtensor_spec *src,
                       const struct dtensor_spec *dst, double price)
{
    static struct dtn_phase phase[DTN_ROUTE_PHASES_MAX];
    static struct dtn_routes routes;
    bool first = price <= 1;
    struct dtn_cost cost;
    char a[300], b[300];
    int n;

    dtn_cost_init(src->mesh, &cost);
    cost.model.ns[DTENSOR_COST_INTRA_BYTES] *= price;
    need(dtn_routes_find(&cost, src, dst, DTENSOR_ROUTE_MIN_COST, UINT64_MAX,
                         &routes, NULL) == 0, "%s -> %s: %s",
         dtn_spec_format(src, a, sizeof a), dtn_spec_format(dst, b, sizeof b),
         routes.route[DTENSOR_ROUTE_MIN_COST].refused);
    for (int r = DTENSOR_ROUTE_MERGED; r < DTENSOR_NROUTES; r++) {
        if (routes.route[r].refused || routes.route[r].nhops < 2)
            continue;
        if (route_tried(&routes.route[r], src->mesh->ndim, first))
            continue;
        first = false;
        n = dtn_route_phases(&routes.route[r], src, dst, phase);
        one_route(src, dst, (enum dtensor_route)r, phase, n);
    }
}

static void one_pair(const struct dtensor_spec *src,
                     const struct dtensor_spec *dst)
{
    static struct dtn_phase phase[DTN_ROUTE_PHASES_MAX];
    const bool crosses = src->mesh != dst->mesh;

    one_route(src, dst, DTENSOR_ROUTE_DIRECT, phase,
              crosses ? dtn_cross_phases(src, dst, phase)
                      : dtn_phases(src, dst, phase));
    if (crosses)
        return;
    all_routes(src, dst, 1);
    all_routes(src, dst, 1e6);
}

/* Every pair between two meshes that is this process's. */
static void all_pairs(const struct family *family,
                      const struct dtensor_mesh *from,
                      const struct dtensor_mesh *to, int ndim, int step)
{
    static int turn;
    struct dtensor_spec src = { .mesh = from, .dtype = family->dtype,
                                .ndim = ndim, .shape = { 5, 2 } }, dst;

    if (ndim == 1)
        src.shape[0] = 7;
    dst = src;
    dst.mesh = to;
    for (int a = 0; place(&src, a, family->from); a++)
        for (int b = 0; place(&dst, b, family->to); b++)
            if (dtn_spec_partial(&dst) >= 0 && ++turn % step == 0 &&
                rounds_pick())
                one_pair(&src, &dst);
}

static void half(int rank, int n, void *arg)
{
    process = rank;
    for (size_t f = 0; f < DTN_COUNT(families); f++)
        for (int i = 0; i < nmeshes; i++) {
            const struct dtensor_mesh *mesh = meshes[i];

            if ((i + (int)f) % n != rank)
                continue;
            all_pairs(&families[f], mesh, mesh, mesh->ndim < 3 ? 2 : 1, 1);
            all_pairs(&families[f], mesh, meshes[(i * 7 + 3) % nmeshes], 1, 9);
        }
}

int main(void)
{
    int sizes[DTENSOR_MAX_DIMS] = { 1, 2, 1 }, bad;

    if (dtensor_init_offline(NULL, RANKS, 0, &ctx, NULL) != 0)
        return skip_all("no context");
    mesh_add(ctx, 3, sizes);
    mesh_grow(ctx, 0, sizes, RANKS);
    cases = mmap(NULL, 2 * sizeof *cases, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (cases == MAP_FAILED)
        return skip_all("no shared memory");
    bad = ranks_run(2, 120, half, NULL, NULL);
    ok(bad == 0, "every term is that of the "
       "contract, by every route, on %d meshes of up to %d ranks (%llu cases)",
       nmeshes, RANKS, (unsigned long long)(cases[0] + cases[1]));
    dtensor_fini(ctx);
    return done();
}
