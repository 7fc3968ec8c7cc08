/* life.c - a whole life in steps: join, all kinds of calls, leave */
#include "base/compiler.h"
#include "tests/job/life.h"
#include "tests/job/life_values.h"
#include "tests/support/ranks.h"

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = -3;                     /* ".", ".." and the directory itself    */

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static char untouched;

/* ---------------------------------------------------------------- steps --- */

static int step_init(struct life *life, struct dtensor_error *err)
{
    return dtensor_init(life->path, &life->made[CTX].ctx, err);
}

static int step_find(struct life *life, struct dtensor_error *err)
{
    return dtensor_mesh_find(life->made[CTX].ctx, "world",
                             &life->made[WORLD].mesh, err);
}

static int step_grid(struct life *life, struct dtensor_error *err)
{
    const int sizes[] = { 1, dtensor_world_size(life->made[CTX].ctx) };

    return dtensor_mesh_create(life->made[CTX].ctx, 2, sizes, "dp,tp", NULL,
                               &life->made[GRID].mesh, err);
}

static int step_slice(struct life *life, struct dtensor_error *err)
{
    return dtensor_mesh_slice(life->made[GRID].mesh, "tp",
                              &life->made[SLICE].mesh, err);
}

static int step_flatten(struct life *life, struct dtensor_error *err)
{
    return dtensor_mesh_flatten(life->made[GRID].mesh, "all",
                                &life->made[FLAT].mesh, err);
}

static int step_unflatten(struct life *life, struct dtensor_error *err)
{
    const int sizes[] = { dtensor_world_size(life->made[CTX].ctx), 1 };

    return dtensor_mesh_unflatten(life->made[FLAT].mesh, 0, 2, sizes, "a,b",
                                  &life->made[CUT].mesh, err);
}

static int step_concatenate(struct life *life, struct dtensor_error *err)
{
    const struct dtensor_mesh *const one[] = { life->made[FLAT].mesh };

    return dtensor_mesh_concatenate(1, one, &life->made[JOINED].mesh, err);
}

static int step_enter(struct life *life, struct dtensor_error *err)
{
    return dtensor_mesh_enter(life->made[FLAT].mesh, err);
}

static int step_spec(struct life *life, struct dtensor_error *err)
{
    const int64_t shape[] = { ROWS, COLUMNS };

    return dtensor_spec_init(&life->spec, life->made[CTX].ctx, "world", "S(0)",
                             DTENSOR_F32, 2, shape, err);
}

static int step_alloc(struct life *life, struct dtensor_error *err)
{
    return dtensor_alloc(life->made[CTX].ctx, 1000, &life->made[MEM].any, err);
}

static int step_arange(struct life *life, struct dtensor_error *err)
{
    return dtensor_arange(&life->spec, &life->made[ROWWISE].tensor, err);
}

static int step_terms(struct life *life, struct dtensor_error *err)
{
    struct dtensor_spec spec = life->spec;

    spec.placement[0] = (struct dtensor_placement){ .kind = DTENSOR_PARTIAL };
    return dtensor_full(&spec, 8, &life->made[TERMS].tensor, err);
}

static int allreduce(struct life *life, size_t count,
                     struct dtensor_error *err)
{
    const int rc = dtensor_allreduce(life->made[SLICE].mesh, life->buffer[0],
                                     life->buffer[1], count, DTENSOR_F32,
                                     DTENSOR_SUM, err);

    life_expect(life, rc, DTENSOR_ALLREDUCE, count, life->buffer[1]);
    return rc;
}

static int step_few(struct life *life, struct dtensor_error *err)
{
    return allreduce(life, 3, err);
}

static int step_many(struct life *life, struct dtensor_error *err)
{
    return allreduce(life, COUNT, err);
}

static int step_turn(struct life *life, struct dtensor_error *err)
{
    return dtensor_redistribute(life->made[ROWWISE].tensor, "S(1)",
                                &life->made[COLUMNWISE].tensor, err);
}

static int step_reduce(struct life *life, struct dtensor_error *err)
{
    return dtensor_redistribute(life->made[TERMS].tensor, "R",
                                &life->made[WHOLE].tensor, err);
}

static int step_back(struct life *life, struct dtensor_error *err)
{
    return dtensor_redistribute_into(life->made[COLUMNWISE].tensor,
                                     life->made[ROWWISE].tensor, err);
}

static int step_distribute(struct life *life, struct dtensor_error *err)
{
    return dtensor_distribute(&life->spec, life->buffer[0], 0,
                              &life->made[GIVEN].tensor, err);
}

/* Of 20 kB, in slabs where the file says so. */
static int step_slabs(struct life *life, struct dtensor_error *err)
{
    struct dtensor_spec spec = life->spec;

    spec.shape[0] = COUNT / 50;
    spec.shape[1] = 50;
    return dtensor_distribute(&spec, life->buffer[0], 0,
                              &life->made[SLABS].tensor, err);
}

static int step_checked(struct life *life, struct dtensor_error *err)
{
    int64_t shape[2], offset[2];

    dtensor_spec_local(&life->spec, dtensor_rank(life->made[CTX].ctx), shape,
                       offset);
    return dtensor_from_local_checked(&life->spec, life->buffer[0], shape,
                                      &life->made[CHECKED].tensor, err);
}

static int step_parts(struct life *life, struct dtensor_error *err)
{
    struct dtensor_spec parts = life->spec;

    parts.shape[0] = 2;
    return dtensor_from_parts(&parts, life->buffer[0],
                              &life->made[PARTS].tensor, err);
}

static int step_equal(struct life *life, struct dtensor_error *err)
{
    int same = 0;
    const int rc = dtensor_equal(life->made[TERMS].tensor,
                                 life->made[TERMS].tensor, &same, err);

    if (rc == 0 && !same)
        life->wrong = "a tensor does not equal itself";
    return rc;
}

static int step_full(struct life *life, struct dtensor_error *err)
{
    const int rc = dtensor_full_tensor(life->made[ROWWISE].tensor,
                                       life->buffer[1],
                                       sizeof(float) * ROWS * COLUMNS, err);

    for (int i = 0; rc == 0 && i < ROWS * COLUMNS; i++)
        if (life->buffer[1][i] != (float)i)
            life->wrong = "the full tensor has wrong values";
    return rc;
}

/* A call of that kind, of 300 elements in each block; over the world. */
static int call_of(struct life *life, enum dtensor_collective coll,
                   const size_t *counts, struct dtensor_error *err)
{
    const struct dtensor_call call = {
        .coll = coll, .dtype = DTENSOR_F32, .count = 300, .counts = counts,
        .recv_counts = coll == DTENSOR_ALL_TO_ALL ? counts : NULL
    };
    const int rc = dtensor_call_run(life->made[WORLD].mesh, &call,
                                    life->buffer[0], life->buffer[1], err);

    life_expect(life, rc, coll, counts ? counts[0] : 300, life->buffer[1]);
    return rc;
}

/* Blocks of 300 elements, and of 200 for each rank. */
static int step_calls(struct life *life, struct dtensor_error *err)
{
    int rc = 0;

    for (int c = 0; rc == 0 && c < DTENSOR_BARRIER; c++)
        if (c != DTENSOR_ALLREDUCE && c != DTENSOR_BROADCAST)
            rc = call_of(life, (enum dtensor_collective)c, NULL, err);
    return rc;
}

static int step_lists(struct life *life, struct dtensor_error *err)
{
    static const enum dtensor_collective listed[] = {
        DTENSOR_ALLGATHER, DTENSOR_REDUCE_SCATTER, DTENSOR_GATHER,
        DTENSOR_SCATTER, DTENSOR_ALL_TO_ALL
    };
    const size_t counts[] = { 200, 200 };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < DTN_COUNT(listed); i++)
        rc = call_of(life, listed[i], counts, err);
    return rc;
}

static int step_broadcast(struct life *life, struct dtensor_error *err)
{
    int rc;

    if (dtensor_rank(life->made[CTX].ctx) == 0)
        memcpy(life->buffer[1], life->buffer[0], sizeof life->buffer[1]);
    rc = dtensor_broadcast(life->made[WORLD].mesh, 0, life->buffer[1], COUNT,
                           DTENSOR_F32, err);
    life_expect(life, rc, DTENSOR_BROADCAST, COUNT, life->buffer[1]);
    return rc;
}

/* 10, 200 and 4,000 elements from the first of two ranks to the second. */
static int step_messages(struct life *life, struct dtensor_error *err)
{
    const struct dtensor_mesh *world = life->made[WORLD].mesh;
    const bool first = dtensor_rank(life->made[CTX].ctx) == 0;
    int rc = 0;

    for (size_t n = 10; rc == 0 && n <= COUNT && dtensor_mesh_size(world) == 2;
         n *= 20) {
        rc = first
           ? dtensor_send(world, 1, life->buffer[0], n, DTENSOR_F32, err)
           : dtensor_recv(world, 0, life->buffer[1], n, DTENSOR_F32, err);
        if (!first)
            life_expect(life, rc, DTENSOR_BROADCAST, n, life->buffer[1]);
    }
    return rc;
}

/* End the group, at once or by starting it. */
static int group_close(struct dtensor_ctx *ctx, bool starts,
                       struct dtensor_error *err)
{
    struct dtensor_request *request = NULL;
    int rc;

    if (!starts)
        return dtensor_group_end(ctx, err);
    rc = dtensor_group_start(ctx, &request, err);
    return rc == 0 ? dtensor_wait(request, err) : rc;
}

/* Two allreduces that become one, and an all-gather. */
static int group_of(struct life *life, bool starts, struct dtensor_error *err)
{
    const struct dtensor_mesh *world = life->made[WORLD].mesh;
    float *in = life->buffer[0], *out = life->buffer[1];
    int rc = dtensor_group_begin(life->made[CTX].ctx, err), ended;

    if (rc != 0)
        return rc;
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = dtensor_allreduce(world, in + 100 * i, out + 100 * i, 100,
                               DTENSOR_F32, DTENSOR_SUM, err);
    if (rc == 0)
        rc = dtensor_allgather(world, in, out + 200, 100, DTENSOR_F32, err);
    ended = group_close(life->made[CTX].ctx, starts, rc == 0 ? err : NULL);
    rc = rc != 0 ? rc : ended;
    life_expect(life, rc, DTENSOR_ALLREDUCE, 200, out);
    life_expect(life, rc, DTENSOR_ALLGATHER, 100, out + 200);
    return rc;
}

static int step_group(struct life *life, struct dtensor_error *err)
{
    return group_of(life, false, err);
}

static int step_group_started(struct life *life, struct dtensor_error *err)
{
    return group_of(life, true, err);
}

static int step_started(struct life *life, struct dtensor_error *err)
{
    const struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE,
                                       .dtype = DTENSOR_F32, .count = 400 };
    struct dtensor_request *request = NULL;
    int rc = dtensor_call_start(life->made[WORLD].mesh, &call, life->buffer[0],
                                life->buffer[1], &request, err);

    if (rc == 0)
        rc = dtensor_wait(request, err);
    life_expect(life, rc, DTENSOR_ALLREDUCE, 400, life->buffer[1]);
    return rc;
}

static int step_persistent(struct life *life, struct dtensor_error *err)
{
    const struct dtensor_call call = { .coll = DTENSOR_REDUCE_SCATTER,
                                       .dtype = DTENSOR_F32, .count = 500 };
    struct dtensor_persistent *persistent = NULL;
    struct dtensor_request *request = NULL;
    int rc = dtensor_persistent_create(life->made[WORLD].mesh, &call,
                                       life->buffer[0], life->buffer[1],
                                       &persistent, err);

    if (rc == 0)
        rc = dtensor_persistent_start(persistent, &request, err);
    if (rc == 0)
        rc = dtensor_wait(request, err);
    life_expect(life, rc, DTENSOR_REDUCE_SCATTER, 500, life->buffer[1]);
    dtensor_persistent_destroy(persistent);
    return rc;
}

static int step_plan(struct life *life, struct dtensor_error *err)
{
    struct dtensor *rows = life->made[ROWWISE].tensor;
    struct dtensor *columns = life->made[COLUMNWISE].tensor;
    const struct dtensor_plan_options options = {
        .route = DTENSOR_ROUTE_GREEDY, .connect = 1 };
    struct dtensor_plan *plan = NULL;
    struct dtensor_request *request = NULL;
    int rc = dtensor_plan_create(dtensor_spec_of(rows),
                                 dtensor_spec_of(columns), &options, &plan,
                                 err);

    if (rc == 0)
        rc = dtensor_plan_run(plan, rows, columns, err);
    if (rc == 0)
        rc = dtensor_plan_start(plan, rows, columns, &request, err);
    if (rc == 0)
        rc = dtensor_wait(request, err);
    dtensor_plan_destroy(plan);
    return rc;
}

static int step_batch(struct life *life, struct dtensor_error *err)
{
    struct dtensor *const to[] = { life->made[COLUMNWISE].tensor,
                                   life->made[WHOLE].tensor };
    const struct dtensor *const from[] = { life->made[ROWWISE].tensor,
                                           life->made[TERMS].tensor };
    const struct dtensor_spec src[] = { *dtensor_spec_of(from[0]),
                                        *dtensor_spec_of(from[1]) };
    const struct dtensor_spec dst[] = { *dtensor_spec_of(to[0]),
                                        *dtensor_spec_of(to[1]) };
    struct dtensor_batch *batch = NULL;
    int rc = dtensor_batch_create(2, src, dst, &batch, err);

    if (rc == 0)
        rc = dtensor_batch_run(batch, from, to, err);
    dtensor_batch_destroy(batch);
    return rc;
}

static int step_random(struct life *life, struct dtensor_error *err)
{
    struct dtensor_generator *generator = NULL;
    struct dtensor *made = NULL;
    int rc = dtensor_generator_create(5, &generator, err);

    if (rc == 0)
        rc = dtensor_randn(&life->spec, generator, &made, err);
    dtensor_destroy(made);
    dtensor_generator_destroy(generator);
    return rc;
}

static int step_barrier(struct life *life, struct dtensor_error *err)
{
    return dtensor_barrier(life->made[WORLD].mesh, err);
}

const struct step steps[NSTEPS] = {
    { "init", step_init, true },
    { "mesh_find", step_find, false },
    { "mesh_create", step_grid, false },
    { "mesh_slice", step_slice, false },
    { "mesh_flatten", step_flatten, false },
    { "mesh_unflatten", step_unflatten, false },
    { "mesh_concatenate", step_concatenate, false },
    { "mesh_enter", step_enter, false },
    { "spec_init", step_spec, false },
    { "alloc", step_alloc, false },
    { "arange", step_arange, false },
    { "full", step_terms, false },
    { "random", step_random, false },
    { "allreduce of 12 bytes", step_few, true },
    { "allreduce of 20 kB", step_many, true },
    { "redistribute S(0) to S(1)", step_turn, true },
    { "redistribute P to R", step_reduce, true },
    { "redistribute_into", step_back, true },
    { "distribute", step_distribute, true },
    { "distribute in slabs", step_slabs, true },
    { "from_local_checked", step_checked, true },
    { "from_parts", step_parts, true },
    { "equal", step_equal, true },
    { "full_tensor", step_full, true },
    { "barrier", step_barrier, true },
    { "calls of equal blocks", step_calls, true },
    { "calls of listed blocks", step_lists, true },
    { "broadcast", step_broadcast, true },
    { "send and recv", step_messages, true },
    { "a group", step_group, true },
    { "a group that is started", step_group_started, true },
    { "a started call", step_started, true },
    { "a persistent call", step_persistent, true },
    { "a plan", step_plan, true },
    { "a batch", step_batch, true },
};

void life_begin(struct life *life, const char *path)
{
    memset(life, 0, sizeof *life);
    life->path = path;
    for (int i = 0; i < NAMES; i++)
        life->made[i].any = &untouched;
}

void life_end(struct life *life)
{
    for (int i = ROWWISE; i < NAMES; i++)
        if (life->made[i].any != &untouched)
            dtensor_destroy(life->made[i].tensor);
    if (life->made[MEM].any != &untouched)
        dtensor_free(life->made[CTX].ctx, life->made[MEM].any);
    if (life->made[CTX].any != &untouched)
        dtensor_fini(life->made[CTX].ctx);
}

int life_step(struct life *life, const struct step *step,
              struct dtensor_error *err, const char **wrong)
{
    union made before[NAMES];
    int rc;

    if (life->made[CTX].any != &untouched)
        for (size_t i = 0; i < COUNT; i++)
            life->buffer[0][i] =
                life_given(dtensor_rank(life->made[CTX].ctx), i);
    memset(life->buffer[1], 0xff, sizeof life->buffer[1]);
    memcpy(before, life->made, sizeof before);
    memset(err, 0, sizeof *err);
    err->rank = -1;
    rc = step->run(life, err);
    if (life->wrong)
        *wrong = life->wrong;
    if (rc == 0)
        return 0;
    if (memcmp(before, life->made, sizeof before) != 0)
        *wrong = "an output was written";
    else if (err->code != rc || !*err->text || strchr(err->text, '\n'))
        *wrong = "the error was not explained";
    return rc;
}

bool says_memory(const struct dtensor_error *err)
{
    return strstr(err->text, "out of memory") ||
           strstr(err->text, "Cannot allocate memory") ||
           strstr(err->text, "no room to stage");
}
