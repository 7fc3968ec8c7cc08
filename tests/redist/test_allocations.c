/* test_allocations.c - a redistribute that is repeated allocates nothing
 *
 * The test counts malloc() and its kin (allocations.h) and the allocations of
 * the arena.  Redistributes by spec, by plan, started, and in a batch; by
 * every route, with intermediate results, partial values, and pieces that are
 * packed.
 *
 * Without this test, a cached redistribute could get slower by an allocation
 * that nobody sees.
 */
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "tensor/tensor.h"
#include "transport/arena.h"
#include "dtensor.h"
#include "tests/support/allocations.h"
#include "tests/support/tensor_job.h"

#include <limits.h>

void *__real_dtn_arena_alloc(struct dtn_arena *arena, size_t size);
void *__wrap_dtn_arena_alloc(struct dtn_arena *arena, size_t size);

void *__wrap_dtn_arena_alloc(struct dtn_arena *arena, size_t size)
{
    allocations++;
    return __real_dtn_arena_alloc(arena, size);
}

/* -------------------------------------------------------------------- runs */

static const char *const pairs[][2] = {
    { "S(0),S(1)", "S(1),S(0)" }, { "S(0),S(0)", "R,R" },
    { "P,S(0)", "R,S(1)" }, { "P(avg),P", "S(1),S(0)" },
    { "R,R", "P,S(1)" }, { "S(1),S(1)", "P,R" }, { "R,R", "R,R" },
    { "SS(0,2),R", "C(1,1),S(0)" }, { "P(sum),R", "P(max),R" },
};
enum { PAIRS = sizeof pairs / sizeof pairs[0], AGAIN = 10 };

struct tensors {
    struct dtensor_spec src[PAIRS], dst[PAIRS];
    struct dtensor *a[PAIRS], *b[PAIRS];
};

/* The least of many runs after the first, since a long wait may hear from the
 * bootstrap, which allocates.
 */
#define again_nothing(call, ...)                                              \
    do {                                                                      \
        long least = LONG_MAX;                                                \
                                                                              \
        for (int k = 0; k < AGAIN; k++) {                                     \
            const long before = allocations;                                  \
                                                                              \
            good(call);                                                       \
            if (k > 0 && allocations - before < least)                        \
                least = allocations - before;                                 \
        }                                                                     \
        need(least == 0, __VA_ARGS__);                                        \
    } while (0)

static void by_spec(struct job *job, struct tensors *t)
{
    for (int i = 0; i < PAIRS; i++)
        again_nothing(dtensor_redistribute_into(t->a[i], t->b[i], &job->err),
                      "%s -> %s: %ld allocations", pairs[i][0], pairs[i][1],
                      least);
}

static void by_plan(struct job *job, struct tensors *t)
{
    for (int i = 0; i < PAIRS; i++)
        for (int r = DTENSOR_ROUTE_AUTO; r < DTENSOR_NROUTES; r++) {
            const struct dtensor_plan_options options = {
                .route = (enum dtensor_route)r };
            struct dtensor_plan *plan = NULL;

            if (dtensor_plan_create(&t->src[i], &t->dst[i], &options, &plan,
                                    NULL) != 0)
                continue;
            again_nothing(dtensor_plan_run(plan, t->a[i], t->b[i], &job->err),
                          "%s -> %s by route %d: %ld allocations", pairs[i][0],
                          pairs[i][1], r, least);
            dtensor_plan_destroy(plan);
        }
}

static void by_batch(struct job *job, struct tensors *t)
{
    struct dtensor_batch *batch = NULL;

    good(dtensor_batch_create(PAIRS, t->src, t->dst, &batch, &job->err));
    again_nothing(dtensor_batch_run(batch, (const struct dtensor *const *)t->a,
                                    t->b, &job->err),
                  "a batch: %ld allocations", least);
    dtensor_batch_destroy(batch);
}

static void runs(int rank, int n, void *arg)
{
    static const int sizes[] = { 2, 2 };
    const int64_t shape[] = { 37, 10 };
    const struct dtensor_mesh *mesh;
    struct job the_job, *job = &the_job;
    struct tensors t;

    job_open(job, rank, n, arg);
    good(dtensor_mesh_create(job->ctx, 2, sizes, NULL, NULL, &mesh, &job->err));
    for (int i = 0; i < PAIRS; i++) {
        t.src[i] = spec_of(job, mesh, DTENSOR_F64, shape, pairs[i][0]);
        t.dst[i] = spec_of(job, mesh, DTENSOR_F64, shape, pairs[i][1]);
        good(dtensor_ones(&t.src[i], &t.a[i], &job->err));
        good(dtensor_zeros(&t.dst[i], &t.b[i], &job->err));
    }
    by_spec(job, &t);
    by_plan(job, &t);
    by_batch(job, &t);
    for (int i = 0; i < PAIRS; i++) {
        dtensor_destroy(t.a[i]);
        dtensor_destroy(t.b[i]);
    }
    dtensor_fini(job->ctx);
}

int main(void)
{
    static const char *const wires[] = { "shm", "tcp" };
    const char *path;

    for (int w = 0; w < 2; w++) {
        path = ranks_file(wires[w], 4, NULL);
        ok(ranks_run(4, 60, runs, (void *)(uintptr_t)path, NULL) == 0,
           "over %s what was run once allocates nothing when run again",
           wires[w]);
        unlink(path);
    }
    return done();
}
