/* plan_growth.c - does the time to make plans and batches grow linearly?
 *
 * Batches, plans, meshes, groups of calls, started calls and predictions, each
 * at four sizes.  The output is the microseconds for one tensor, rank or call,
 * and a verdict: linear, if the largest size takes at most three times as long
 * as the best.  A batch that takes 12 us a tensor with 100 tensors, and 1,025
 * us with 6,400, is not linear.
 * Times are CPU times, the least of three tries, so that other programs on the
 * machine matter little.  make bench-plans runs it.
 */
#include "base/compiler.h"
#include "coll/request.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { SIZES = 4, TRIES = 3, RANKS = 4, LARGEST = 3 };

/* What is measured with: the job, or a context that only plans. */
struct room {
    struct dtensor_ctx *ctx;
    const struct dtensor_mesh *world;
    int rank;
    struct dtensor_error err;
};

#define good(call) need((call) == 0, "%s", room->err.text)

/* Something that is made: of so many, in a job of 4 ranks or planned for. */
struct made {
    const char *name, *unit;
    bool planned;                 /* for as many ranks as the size says       */
    int size[SIZES];
    double (*seconds)(struct room *room, int size);
};

static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* -------------------------------------------------------- in a job of ranks */

static double batch_seconds(struct room *room, int n)
{
    struct dtensor_spec *src = calloc((size_t)n, sizeof *src);
    struct dtensor_spec *dst = calloc((size_t)n, sizeof *dst);
    struct dtensor_batch *batch = NULL;
    double begin, took;

    for (int i = 0; i < n; i++) {
        const int64_t shape[] = { 16 + i % 7, 12 + i % 5 };

        good(dtensor_spec_init(&src[i], room->ctx, "world", "S(0)",
                               DTENSOR_F32, 2, shape, &room->err));
        good(dtensor_spec_init(&dst[i], room->ctx, "world", "S(1)",
                               DTENSOR_F32, 2, shape, &room->err));
    }
    begin = cpu_seconds();
    good(dtensor_batch_create(n, src, dst, &batch, &room->err));
    took = cpu_seconds() - begin;
    dtensor_batch_destroy(batch);
    free(src);
    free(dst);
    return took;
}

/* Small allreduces of many lengths: nothing but their number is large. */
static double group_seconds(struct room *room, int n)
{
    float *in = calloc((size_t)n * 8, sizeof *in);
    float *out = calloc((size_t)n * 8, sizeof *out);
    double begin = cpu_seconds(), took;

    good(dtensor_group_begin(room->ctx, &room->err));
    for (int i = 0; i < n; i++)
        good(dtensor_allreduce(room->world, in + 8 * i, out + 8 * i,
                               (size_t)(1 + i % 8), DTENSOR_F32,
                               i % 2 ? DTENSOR_SUM : DTENSOR_MAX, &room->err));
    good(dtensor_group_end(room->ctx, &room->err));
    took = cpu_seconds() - begin;
    free(in);
    free(out);
    return took;
}

/* Everyone sends to the next rank, and receives from the one before. */
static double messages_seconds(struct room *room, int n)
{
    const int next = (room->rank + 1) % RANKS;
    const int before = (room->rank + RANKS - 1) % RANKS;
    float *in = calloc((size_t)n * 8, sizeof *in);
    float *out = calloc((size_t)n * 8, sizeof *out);
    double begin = cpu_seconds(), took;

    good(dtensor_group_begin(room->ctx, &room->err));
    for (int i = 0; i < n; i++) {
        good(dtensor_send(room->world, next, in + 8 * i, 8, DTENSOR_F32,
                          &room->err));
        good(dtensor_recv(room->world, before, out + 8 * i, 8, DTENSOR_F32,
                          &room->err));
    }
    good(dtensor_group_end(room->ctx, &room->err));
    took = cpu_seconds() - begin;
    free(in);
    free(out);
    return took;
}

static double started_seconds(struct room *room, int n)
{
    struct dtensor_request **request = calloc((size_t)n, sizeof(void *));
    struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE, .count = 4,
                                 .dtype = DTENSOR_F32 };
    float *in = calloc((size_t)n * 4, sizeof *in);
    float *out = calloc((size_t)n * 4, sizeof *out);
    double begin, took;

    good(dtensor_barrier(room->world, &room->err));
    begin = cpu_seconds();
    for (int i = 0; i < n; i++)
        good(dtensor_call_start(room->world, &call, in + 4 * i, out + 4 * i,
                                &request[i], &room->err));
    for (int i = 0; i < n; i++)
        good(dtensor_wait(request[i], &room->err));
    took = cpu_seconds() - begin;
    free(request);
    free(in);
    free(out);
    return took;
}

/* ------------------------------------------------------------- planned only */

static double ways_seconds(struct room *room, int n)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
                                       .count = 1 << 20 };
    struct dtensor_way way[1];
    const double begin = cpu_seconds();

    (void)n;
    good(dtensor_call_ways(room->world, &call, way, 1, NULL, &room->err));
    return cpu_seconds() - begin;
}

static double plan_seconds(struct room *room, int n)
{
    const int64_t shape[] = { 1 << 20, 1 << 20 };
    struct dtensor_spec src, dst;
    struct dtensor_plan *plan = NULL;
    double begin = cpu_seconds();

    (void)n;
    good(dtensor_spec_init(&src, room->ctx, "world", "S(0)",
                               DTENSOR_F32, 2, shape, &room->err));
    good(dtensor_spec_init(&dst, room->ctx, "world", "S(1)",
                               DTENSOR_F32, 2, shape, &room->err));
    good(dtensor_plan_create(&src, &dst, NULL, &plan, &room->err));
    begin = cpu_seconds() - begin;
    dtensor_plan_destroy(plan);
    return begin;
}

/* All slices along the second dimension of n/8 x 8 ranks. */
static double slices_seconds(struct room *room, int n)
{
    const int sizes[] = { n / 8, 8 };
    const struct dtensor_mesh *mesh, *slice, *copy;
    double begin;

    good(dtensor_mesh_create(room->ctx, 2, sizes, "a,b", NULL, &mesh,
                             &room->err));
    begin = cpu_seconds();
    good(dtensor_mesh_slice(mesh, "b", &slice, &room->err));
    for (int i = 0; i < n / 8; i++)
        good(dtensor_mesh_copy(slice, i, &copy, &room->err));
    return cpu_seconds() - begin;
}

static double mesh_seconds(struct room *room, int n)
{
    const int sizes[] = { n / 8, 8 };
    const struct dtensor_mesh *mesh;
    const double begin = cpu_seconds();

    good(dtensor_mesh_create(room->ctx, 2, sizes, "c,d", NULL, &mesh,
                             &room->err));
    return cpu_seconds() - begin;
}

/* ----------------------------------------------------------------- verdicts */

static const struct made rows[] = {
    { "batch_create", "tensor", false, { 100, 400, 1600, 6400 },
      batch_seconds },
    { "group of allreduces", "call", false, { 100, 400, 1600, 6400 },
      group_seconds },
    { "group of sends", "call", false, { 100, 400, 1600, 6400 },
      messages_seconds },
    { "calls started", "call", false, { 400, 1600, 6400, 25600 },
      started_seconds },
    { "call_ways", "rank", true, { 1024, 4096, 16384, 65536 }, ways_seconds },
    { "plan_create", "rank", true, { 1024, 4096, 16384, 65536 },
      plan_seconds },
    { "mesh_create", "rank", true, { 1024, 4096, 16384, 65536 },
      mesh_seconds },
    { "mesh_copy, all", "rank", true, { 1024, 4096, 16384, 65536 },
      slices_seconds },
};

/* The least of several tries; what is planned for is made anew for each. */
static double made_seconds(const struct made *made, struct room *room, int size)
{
    double least = 1e9, took;

    for (int t = 0; t < TRIES; t++) {
        if (made->planned) {
            good(dtensor_init_offline(NULL, size, 8, &room->ctx, &room->err));
            good(dtensor_mesh_find(room->ctx, "world", &room->world,
                                   &room->err));
        }
        took = made->seconds(room, size);
        least = took < least ? took : least;
        if (made->planned)
            dtensor_fini(room->ctx);
    }
    return least;
}

static void made_judge(const struct made *made, struct room *room)
{
    double us[SIZES], least = 1e9;

    for (int s = 0; s < SIZES; s++) {
        us[s] = made_seconds(made, room, made->size[s]) * 1e6 / made->size[s];
        least = us[s] < least ? us[s] : least;
    }
    if (room->rank != 0)
        return;
    printf("%-20s", made->name);
    for (int s = 0; s < SIZES; s++)
        printf(" %9.3f", us[s]);
    printf("  us for a %s of %d to %d: %s\n", made->unit, made->size[0],
           made->size[SIZES - 1], us[SIZES - 1] <= LARGEST * least ? "linear"
           : "MORE THAN LINEAR");
    fflush(stdout);
}

static void job_main(int rank, int n, void *arg)
{
    struct room here = { .rank = rank }, *room = &here;

    (void)n;
    (void)arg;
    good(dtensor_init(NULL, &room->ctx, &room->err));
    good(dtensor_mesh_find(room->ctx, "world", &room->world, &room->err));
    for (size_t i = 0; i < DTN_COUNT(rows); i++)
        if (!rows[i].planned)
            made_judge(&rows[i], room);
    dtensor_fini(room->ctx);
}

int main(void)
{
    struct room room = { .rank = 0 };

    setenv("DTN_RANK", "0", 0);
    for (size_t i = 0; i < DTN_COUNT(rows); i++)
        if (rows[i].planned)
            made_judge(&rows[i], &room);
    return ranks_run(RANKS, 600, job_main, NULL, NULL) != 0;
}
