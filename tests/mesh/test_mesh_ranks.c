/* test_mesh_ranks.c - meshes among eight real ranks
 *
 * Slices, flattened and unflattened meshes are made without communication, and
 * collectives over them reach the ranks they name.  The collectives are those
 * of PyTorch's tests of DeviceMesh, with its numbers.
 *
 * Without this test, ranks could disagree on who is in a slice, and a
 * collective over it would hang.
 */
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/tensor_job.h"

#include <string.h>

enum { WORLD = 8 };

static const struct dtensor_mesh *cube(struct job *job)
{
    static const int sizes[] = { 2, 2, 2 };
    const struct dtensor_mesh *mesh = NULL;

    good(dtensor_mesh_create(job->ctx, 3, sizes, "pp,dp,tp", NULL, &mesh,
                             &job->err));
    return mesh;
}

static const struct dtensor_mesh *line(struct job *job)
{
    const struct dtensor_mesh *mesh = NULL;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    return mesh;
}

/* -------------------------------------------------------------- no signal */

static uint64_t signals_sent(const struct job *job)
{
    uint64_t sent = 0;

    for (int r = 0; r < job->n; r++)
        sent += job->ctx->peers[r].sent;
    return sent;
}

/* Only one rank of the eight makes them: nobody is waited for. */
static void made_alone(struct job *job)
{
    static const int two_two[] = { 2, 2 };
    const struct dtensor_mesh *mesh = cube(job), *made, *parts[2];
    uint64_t before;

    good(dtensor_barrier(line(job), &job->err));
    before = signals_sent(job);
    if (job->rank == 5) {
        good(dtensor_mesh_slice(mesh, "pp,tp", &made, &job->err));
        good(dtensor_mesh_flatten(made, NULL, &made, &job->err));
        good(dtensor_mesh_unflatten(made, 0, 2, two_two, "a,b", &made,
                                    &job->err));
        good(dtensor_mesh_along(mesh, 1, &parts[0], &job->err));
        good(dtensor_mesh_slice(mesh, "tp", &parts[1], &job->err));
        good(dtensor_mesh_concatenate(2, parts, &made, &job->err));
        good(dtensor_mesh_copy(made, 0, &made, &job->err));
    }
    need(signals_sent(job) == before, "a mesh was made with signals");
}

/* ------------------------------------------------------------ collectives */

static void one_dimension(struct job *job)
{
    const struct dtensor_mesh *mesh = line(job);
    float x[27 * WORLD], own[27];

    for (int i = 0; i < 27; i++)
        x[i] = (float)job->rank;
    good(dtensor_broadcast(mesh, 0, x, 27, DTENSOR_F32, &job->err));
    for (int i = 0; i < 27; i++)
        need(x[i] == 0, "broadcast: %g", (double)x[i]);
    for (int i = 0; i < 27 * WORLD; i++)
        x[i] = (float)i;
    good(dtensor_scatter(mesh, 0, job->rank == 0 ? x : NULL, own, 27,
                         DTENSOR_F32, &job->err));
    for (int i = 0; i < 27; i++)
        need(own[i] == (float)(27 * job->rank + i), "scatter: %g",
             (double)own[i]);
}

/* 11 x 9 scattered from one rank, and gathered again, by rows and columns. */
static void uneven(struct job *job)
{
    const int64_t shape[] = { 11, 9 };
    int64_t local[2], offset[2];
    float x[99], all[99];

    for (int i = 0; i < 99; i++)
        x[i] = (float)i;
    for (int dim = 0; dim < 2; dim++) {
        struct dtensor_spec spec = spec_of(job, line(job), DTENSOR_F32, shape,
                                           dim ? "S(1)" : "S(0)");
        struct dtensor *t = NULL;

        good(dtensor_distribute(&spec, job->rank == 0 ? x : NULL, 0, &t,
                                &job->err));
        dtensor_spec_local(&spec, job->rank, local, offset);
        for (int64_t i = 0; i < local[0] * local[1]; i++)
            need(((float *)dtensor_to_local(t))[i] ==
                 (float)((offset[0] + i / local[1]) * 9 + offset[1] +
                         i % local[1]), "scatter_uneven, dimension %d", dim);
        memset(all, 0, sizeof all);
        good(dtensor_full_tensor(t, all, sizeof all, &job->err));
        need(memcmp(all, x, sizeof x) == 0, "all_gather_uneven, dimension %d",
             dim);
        dtensor_destroy(t);
    }
}

/* Terms of the same numbers times rank + 1, or of the rank alone. */
static void reduce_scattered(struct job *job)
{
    struct dtensor_spec spec = spec_of(job, line(job), DTENSOR_F32,
                                       (const int64_t[]){ 8, 2 }, "P");
    struct dtensor *t = NULL, *own = NULL;
    float *x;

    good(dtensor_empty(&spec, &t, &job->err));
    x = dtensor_to_local(t);
    for (int i = 0; i < 16; i++)
        x[i] = (float)((i / 2 * 32 + i % 2) * (job->rank + 1));
    good(dtensor_redistribute(t, "S(0)", &own, &job->err));
    x = dtensor_to_local(own);
    need(dtensor_local_bytes(own) == 8 && x[0] == (float)(1152 * job->rank) &&
         x[1] == (float)(1152 * job->rank + 36), "reduce_scatter: %g, %g",
         (double)x[0], (double)x[1]);
    dtensor_destroy(t);
    dtensor_destroy(own);

    spec = spec_of(job, line(job), DTENSOR_F32, (const int64_t[]){ 11, 9 },
                   "P");
    good(dtensor_empty(&spec, &t, &job->err));
    x = dtensor_to_local(t);
    for (int i = 0; i < 99; i++)
        x[i] = (float)job->rank;
    for (int dim = 0; dim < 2; dim++) {
        good(dtensor_redistribute(t, dim ? "S(1)" : "S(0)", &own, &job->err));
        x = dtensor_to_local(own);
        for (size_t i = 0; i < dtensor_local_bytes(own) / sizeof *x; i++)
            need(x[i] == 28, "reduce_scatter_uneven: %g", (double)x[i]);
        dtensor_destroy(own);
    }
    dtensor_destroy(t);
}

/* Over each dimension of 2 x 2 x 2: the group's first rank, and the own. */
static void each_dimension(struct job *job)
{
    const struct dtensor_mesh *mesh = cube(job), *group;

    for (int dim = 0; dim < 3; dim++) {
        int x = job->rank, all[2], first = job->rank & ~(4 >> dim);

        good(dtensor_mesh_along(mesh, dim, &group, &job->err));
        need(dtensor_mesh_rank(group, 0) == first, "the group along %d", dim);
        good(dtensor_broadcast(group, 0, &x, 1, DTENSOR_I32, &job->err));
        need(x == first, "broadcast along %d: %d", dim, x);
        all[0] = dtensor_mesh_rank(group, 0);
        all[1] = dtensor_mesh_rank(group, 1);
        good(dtensor_scatter(group, 0, all, &x, 1, DTENSOR_I32, &job->err));
        need(x == job->rank, "scatter along %d: %d", dim, x);
    }
}

static void flattened(struct job *job)
{
    const struct dtensor_mesh *mesh = cube(job), *group;
    float x = (float)job->rank;

    good(dtensor_mesh_slice(mesh, "pp", &group, &job->err));
    good(dtensor_allreduce(group, &x, &x, 1, DTENSOR_F32, DTENSOR_SUM,
                           &job->err));
    need(x == (float)(2 * (job->rank % 4 + 2)), "over pp: %g", (double)x);
    x = (float)job->rank;
    good(dtensor_mesh_flatten(mesh, "all", &group, &job->err));
    good(dtensor_allreduce(group, &x, &x, 1, DTENSOR_F32, DTENSOR_SUM,
                           &job->err));
    need(x == 28, "over all flattened: %g", (double)x);
    x = (float)job->rank;
    good(dtensor_mesh_slice(mesh, "pp,tp", &group, &job->err));
    good(dtensor_mesh_flatten(group, NULL, &group, &job->err));
    good(dtensor_allreduce(group, &x, &x, 1, DTENSOR_F32, DTENSOR_SUM,
                           &job->err));
    need(x == (job->rank & 2 ? 18 : 10), "over pp_tp: %g", (double)x);
}

/* ------------------------------------------------------------------ parts */

/* [5,rank] on eight ranks is [5,28]; on 2 x 3, four rows and six terms. */
static void odd_parts(struct job *job)
{
    const int64_t part[] = { 5, job->rank }, four[] = { 4, 1 };
    static const int sizes[] = { 2, 3 }, held[] = { 1, 1, 0, 1, 1, 0 };
    static const int at[] = { 0, 1, 0, 2, 3, 0 };
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec = spec_of(job, line(job), DTENSOR_F32, part,
                                       "S(1)");
    struct dtensor *t = NULL, *own = NULL;
    float x[64] = { 0 };

    good(dtensor_from_parts(&spec, x, &t, &job->err));
    need(dtensor_spec_of(t)->shape[0] == 5 &&
         dtensor_spec_of(t)->shape[1] == 28, "the whole of parts");
    dtensor_destroy(t);
    good(dtensor_mesh_create(job->ctx, 2, sizes, NULL, NULL, &mesh, &job->err));
    spec = spec_of(job, mesh, DTENSOR_F32, four, "P,P");
    good(dtensor_empty(&spec, &t, &job->err));
    for (size_t i = 0; i < dtensor_local_bytes(t) / sizeof(float); i++)
        ((float *)dtensor_to_local(t))[i] = (float)i;
    good(dtensor_redistribute(t, "S(0),S(0)", &own, &job->err));
    need(dtensor_local_bytes(own) ==
         (job->rank < 6 ? (size_t)held[job->rank] * sizeof(float) : 0),
         "rank %d holds %zu bytes", job->rank, dtensor_local_bytes(own));
    if (dtensor_local_bytes(own) > 0)
        need(*(float *)dtensor_to_local(own) == (float)(6 * at[job->rank]),
             "its row is %g", (double)*(float *)dtensor_to_local(own));
    dtensor_destroy(t);
    dtensor_destroy(own);
}

/* ------------------------------------------------------------------ specs */

/* Element i of a tensor is i, before and after it is turned. */
static void turned_on(struct job *job, const struct dtensor_mesh *mesh,
                      const char *from, const char *to)
{
    const int64_t shape[] = { 7, 5 };
    struct dtensor_spec spec;
    struct dtensor *t = NULL, *turned = NULL;
    double full[35] = { 0 };

    good(dtensor_spec_on(&spec, mesh, from, DTENSOR_F64, 2, shape, &job->err));
    need(spec.mesh == mesh, "the spec is on another mesh");
    good(dtensor_arange(&spec, &t, &job->err));
    good(dtensor_redistribute(t, to, &turned, &job->err));
    good(dtensor_full_tensor(turned, full, sizeof full, &job->err));
    for (int i = 0; i < 35 && dtensor_local_bytes(turned) > 0; i++)
        need(full[i] == i, "%s -> %s: element %d is %g", from, to, i, full[i]);
    dtensor_destroy(t);
    dtensor_destroy(turned);
}

/* Meshes that have no name: a slice, flattened, cut, created, a copy. */
static void specs_on(struct job *job)
{
    static const int ranks[] = { 6, 1, 4, 3 }, two_two[] = { 2, 2 };
    const struct dtensor_mesh *mesh = cube(job), *made;
    struct dtensor_spec spec = { .ndim = 77 };
    const int64_t shape[] = { 7, 5 };

    good(dtensor_mesh_slice(mesh, "pp,tp", &made, &job->err));
    turned_on(job, made, "S(0),S(1)", "R,S(0)");
    good(dtensor_mesh_flatten(made, NULL, &made, &job->err));
    turned_on(job, made, "S(0)", "S(1)");
    good(dtensor_mesh_unflatten(made, 0, 2, two_two, "a,b", &made, &job->err));
    turned_on(job, made, "R,S(1)", "SS(0,2),S(0)");
    good(dtensor_mesh_create(job->ctx, 2, two_two, NULL, ranks, &made,
                             &job->err));
    turned_on(job, made, "S(1),S(1)", "S(0),R");
    good(dtensor_mesh_along(mesh, 1, &made, &job->err));
    turned_on(job, made, "S(0)", "C(1,2)");
    need(dtensor_spec_on(&spec, NULL, "R", DTENSOR_F64, 2, shape, &job->err) ==
         DTENSOR_EINVAL && strcmp(job->err.text, "spec: it has no mesh") == 0,
         "no mesh: %s", job->err.text);
    need(dtensor_spec_on(&spec, made, "R,R", DTENSOR_F64, 2, shape,
                         &job->err) == DTENSOR_EINVAL && spec.ndim == 77,
         "two placements on one dimension");
}

/* ------------------------------------------------------------ distributed */

/* Everyone has the array: nobody sends any of it. */
static void distributed_alone(struct job *job)
{
    static const char *const placements[] = { "R,R,R", "S(0),S(1),R",
        "S(0),S(0),S(0)", "P,S(1),R", "SS(0,2),S(0),P(sum)", "C(0,1),R,S(1)" };
    const int64_t shape[] = { 7, 5 };
    uint64_t before = signals_sent(job);

    for (size_t i = 0; i < sizeof placements / sizeof placements[0]; i++) {
        struct dtensor_spec spec = spec_of(job, cube(job), DTENSOR_F64, shape,
                                           placements[i]);
        struct dtensor *t = make(job, &spec, -1);

        need(is_partial(&spec) || local_is_right(job, t), "%s", placements[i]);
        dtensor_destroy(t);
    }
    need(signals_sent(job) == before, "distributing from nobody sends signals");
}

static void meshes(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;

    job_open(job, rank, n, arg);
    made_alone(job);
    one_dimension(job);
    uneven(job);
    reduce_scattered(job);
    each_dimension(job);
    flattened(job);
    odd_parts(job);
    specs_on(job);
    good(dtensor_barrier(line(job), &job->err));
    distributed_alone(job);
    dtensor_fini(job->ctx);
}

int main(void)
{
    ok(ranks_run(WORLD, 60, meshes, NULL, NULL) == 0, "eight ranks: meshes "
       "made alone, collectives over their groups, and tensors on them");
    return done();
}
