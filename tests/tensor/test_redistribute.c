/* test_redistribute.c - a thousand redistributions drawn at random, by ranks
 *
 * Eight ranks draw the same cases: a mesh of some of them in some order, now
 * and then another for the result, a small tensor, two specs, a route.  Each
 * fills its part as the oracle says, redistributes over shared memory, and
 * asks the oracle about what it got; of a Partial result the whole is looked
 * at.  TEST_SEED=n draws others.
 *
 * Without this test, redistributes between meshes would be tested only with
 * cases that somebody thought of.
 */
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "redist/route.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/redist/oracle.h"
#include "tests/support/rand.h"
#include "tests/support/tensor_job.h"

#include <stdbool.h>
#include <string.h>

#define WORLD 8

struct draw {
    uint64_t state;
    struct dtensor_spec src, dst;
    enum dtensor_route route;
};

static const struct dtensor_mesh *draw_mesh(struct job *job, uint64_t *state)
{
    const struct dtensor_mesh *mesh = NULL;
    int sizes[3], ranks[WORLD], ndim = 0, left = 1 + rand_below(state, WORLD);

    for (int r = 0; r < WORLD; r++) {
        int other = rand_below(state, r + 1);

        ranks[r] = ranks[other];
        ranks[other] = r;
    }
    do {
        sizes[ndim] = 1 + rand_below(state, left);
        left /= sizes[ndim++];
    } while (ndim < 3 && left > 1);
    good(dtensor_mesh_create(job->ctx, ndim, sizes, NULL, ranks, &mesh,
                             &job->err));
    return mesh;
}

static void draw_placements(uint64_t *state, struct dtensor_spec *spec)
{
    static const enum dtensor_redop ops[] = { DTENSOR_SUM, DTENSOR_AVG,
        DTENSOR_MAX, DTENSOR_MIN, DTENSOR_PROD };
    enum dtensor_redop op = ops[rand_below(state, 5)];

    for (int m = 0; m < spec->mesh->ndim; m++) {
        struct dtensor_placement *p = &spec->placement[m];

        *p = (struct dtensor_placement){
            .kind = (enum dtensor_placement_kind)rand_below(state, 5),
            .dim = rand_below(state, spec->ndim), .op = op,
            .block = 1 + rand_below(state, 3)
        };
    }
}

static void draw_case(struct job *job, struct draw *draw)
{
    static const enum dtensor_route routes[] = { DTENSOR_ROUTE_AUTO,
        DTENSOR_ROUTE_AUTO, DTENSOR_ROUTE_DIRECT, DTENSOR_ROUTE_MERGED,
        DTENSOR_ROUTE_MIN_COST, DTENSOR_ROUTE_GREEDY };

    memset(&draw->src, 0, sizeof draw->src);
    draw->src.mesh = draw_mesh(job, &draw->state);
    draw->src.dtype = DTENSOR_F64;
    draw->src.ndim = 1 + rand_below(&draw->state, 3);
    for (int d = 0; d < draw->src.ndim; d++)
        draw->src.shape[d] = rand_below(&draw->state, 12);
    draw->dst = draw->src;
    if (rand_below(&draw->state, 4) == 0)
        draw->dst.mesh = draw_mesh(job, &draw->state);
    draw_placements(&draw->state, &draw->src);
    draw_placements(&draw->state, &draw->dst);
    draw->route = routes[rand_below(&draw->state, 6)];
}

/* Does this rank hold what it should?  Partial ones are reduced first. */
static bool right(struct job *job, const struct dtensor *t)
{
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    int64_t n = (int64_t)(dtensor_local_bytes(t) / sizeof(double));
    static double full[ORACLE_ELEMS];
    int position = dtensor_mesh_index(spec->mesh, job->rank);

    if (!is_partial(spec))
        return position < 0 || oracle_check(spec, position,
                                            dtensor_to_local(t), n);
    n = dtn_numel(spec->ndim, spec->shape);
    good(dtensor_full_tensor(t, full, (size_t)n * sizeof full[0], &job->err));
    for (int64_t g = 0; position >= 0 && g < n; g++)
        if (full[g] != oracle_value(g))
            return false;
    return true;
}

/* By the route drawn, or where there is no such, by any. */
static void redistribute(struct job *job, const struct draw *draw,
                         const struct dtensor *a, struct dtensor **bp)
{
    const struct dtensor_plan_options options = { .route = draw->route };
    struct dtensor_plan *plan = NULL;

    if (dtensor_plan_create(&draw->src, &draw->dst, &options, &plan,
                            &job->err) != 0) {
        good(dtensor_redistribute_to(a, &draw->dst, bp, &job->err));
        return;
    }
    good(dtensor_zeros(&draw->dst, bp, &job->err));
    good(dtensor_plan_run(plan, a, *bp, &job->err));
    dtensor_plan_destroy(plan);
}

static void one_case(struct job *job, struct draw *draw, int number)
{
    static double part[ORACLE_ELEMS];
    struct dtensor *a = NULL, *b = NULL;
    int64_t n = 0;
    int position;
    char from[300], to[300];

    draw_case(job, draw);
    position = dtensor_mesh_index(draw->src.mesh, job->rank);
    if (position >= 0)
        n = oracle_fill(&draw->src, position, part);
    good(dtensor_from_local(&draw->src, part, (size_t)n * sizeof part[0], &a,
                            &job->err));
    redistribute(job, draw, a, &b);
    need(right(job, b), "case %d by %s: %s -> %s is wrong (%s)", number,
         dtn_route_name(draw->route),
         dtn_spec_format(&draw->src, from, sizeof from),
         dtn_spec_format(&draw->dst, to, sizeof to),
         dtensor_last_plan(job->ctx));
    dtensor_destroy(b);
    dtensor_destroy(a);
}

static void cases(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    struct draw draw = { .state = rand_seed(20261120) };

    job_open(job, rank, n, NULL);
    for (int i = 0; i < *(const int *)arg; i++)
        one_case(job, &draw, i);
    dtensor_fini(job->ctx);
}

int main(void)
{
    int count = rounds_of(1000);

    ok(ranks_run(WORLD, 120, cases, &count, NULL) == 0,
       "%d random redistributions over shared memory are right (TEST_SEED=%llu)",
       count, (unsigned long long)rand_seed(20261120));
    return done();
}
