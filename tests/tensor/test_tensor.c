/* test_tensor.c - tensors, by real processes
 *
 * Every pair of placements on meshes of one and two dimensions, with shapes
 * that do not divide, over every transport of this machine: what each rank
 * ends with is compared with the whole, which every rank can compute.  Values
 * are multiples of 60, so that dividing by up to 6 ranks is exact.
 *
 * `test_tensor rc 3` runs over one wire only, with 3 ranks at most;
 * `test_tensor member` is one rank of the job that DTN_CLUSTER and its kin
 * describe.
 *
 * Without this test, tensors could be wrong over one transport while the plans
 * are right.
 */
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/rdma.h"
#include "tests/support/tensor_job.h"

#include <math.h>
#include <string.h>

/* --------------------------------------------------- every redistribute --- */

static void one_pair(struct job *job, const struct dtensor_spec *src,
                     const struct dtensor_spec *dst)
{
    struct dtensor *a = make(job, src, -1), *b = NULL;
    char from[80], to[80];

    dtensor_placements_format(src->mesh, src->placement, from, sizeof from);
    dtensor_placements_format(dst->mesh, dst->placement, to, sizeof to);
    make_uneven(job, a);
    good(dtensor_redistribute_to(a, dst, &b, &job->err));
    need(is_partial(dst) ? whole_is_right(job, b) : local_is_right(job, b),
         "%s %dx%d on %d ranks, %s -> %s is wrong (%s)",
         dtensor_dtype_name(src->dtype), (int)src->shape[0],
         (int)src->shape[1], dtensor_mesh_size(src->mesh), from, to,
         dtensor_last_plan(job->ctx));
    dtensor_destroy(b);
    dtensor_destroy(a);
}

/* Placement number `code`: R, S(0), S(1), P on each mesh dimension. */
static void place(struct dtensor_spec *spec, int code, enum dtensor_redop op)
{
    static const enum dtensor_placement_kind kinds[] = {
        DTENSOR_REPLICATE, DTENSOR_SHARD, DTENSOR_SHARD, DTENSOR_PARTIAL
    };

    for (int m = 0; m < dtensor_mesh_ndim(spec->mesh); m++, code /= 4)
        spec->placement[m] = (struct dtensor_placement){
            .kind = kinds[code % 4], .dim = code % 4 == 2, .op = op
        };
}

static void all_pairs(struct job *job, const struct dtensor_mesh *mesh,
                      const int64_t shape[2], int every)
{
    int n = dtensor_mesh_ndim(mesh) == 1 ? 4 : 16;
    struct dtensor_spec src = { mesh, DTENSOR_F32, 2, { shape[0], shape[1] },
                                { { 0 } } }, dst = src;

    for (int i = 0; i < n * n; i += every) {
        place(&src, i / n, DTENSOR_SUM);
        place(&dst, i % n, DTENSOR_SUM);
        one_pair(job, &src, &dst);
    }
}

static void all_meshes(struct job *job, int every)
{
    static const int64_t shapes[][2] = { { 10, 5 }, { 9, 5 }, { 3, 5 },
        { 1, 3 }, { 5, 3 }, { 2, 8 }, { 0, 4 } };
    const struct dtensor_mesh *mesh;
    int sizes[2];

    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        good(dtensor_mesh_create(job->ctx, 1, &job->n, NULL, NULL, &mesh,
                                 &job->err));
        all_pairs(job, mesh, shapes[s], 1);
        for (sizes[0] = 1; sizes[0] <= job->n; sizes[0]++) {
            sizes[1] = job->n / sizes[0];
            if (sizes[0] * sizes[1] != job->n ||
                (job->n > 3 && (sizes[0] == 1 || sizes[1] == 1)))
                continue;
            good(dtensor_mesh_create(job->ctx, 2, sizes, NULL, NULL, &mesh,
                                     &job->err));
            all_pairs(job, mesh, shapes[s], every);
        }
    }
}

/* Pairs of all placements there are; lengths where they add up. */
static void any_pairs(struct job *job, int every)
{
    static const char *const words[] = {
        "R,R", "S(0),S(1)", "SS(0,2),S(0)", "SS(0,3),SS(0,2)", "C(0,1),C(1,2)",
        "C(1,3),R", "P,C(0,2)", "P,P(avg)", "S(0:4,5),R", "S(1:0,5),C(0,2)",
        "SS(1,2),P", "C(0,2),S(0)", "P(avg),SS(0,4)", "R,S(1:1,4)"
    };
    enum { N = sizeof words / sizeof words[0] };
    const int sizes[] = { 2, 2 };
    const int64_t shape[] = { 9, 5 };
    const struct dtensor_mesh *mesh;

    good(dtensor_mesh_create(job->ctx, 2, sizes, NULL, NULL, &mesh,
                             &job->err));
    for (int i = 0; i < N * N; i += every) {
        struct dtensor_spec src, dst;

        src = spec_of(job, mesh, DTENSOR_F64, shape, words[i / N]);
        dst = spec_of(job, mesh, DTENSOR_F64, shape, words[i % N]);
        one_pair(job, &src, &dst);
    }
}

static void any_placement(int rank, int n, void *arg)
{
    struct job job;

    job_open(&job, rank, n, arg);
    any_pairs(&job, arg ? 3 : 1);
    dtensor_fini(job.ctx);
}

static void redistribute_shm(int rank, int n, void *arg)
{
    struct job job;

    job_open(&job, rank, n, NULL);
    all_meshes(&job, n > 4 ? 3 : 1);
    dtensor_fini(job.ctx);
}

/* A seventh of the pairs: between wires, only how bytes move differs. */
static void redistribute_wire(int rank, int n, void *arg)
{
    struct job job;

    job_open(&job, rank, n, arg);
    all_meshes(&job, 7);
    dtensor_fini(job.ctx);
}

/* Every reduction into every other, of floats and of integers. */
static void reductions(int rank, int n, void *arg)
{
    static const enum dtensor_redop ops[] = { DTENSOR_SUM, DTENSOR_AVG,
        DTENSOR_PROD, DTENSOR_MIN, DTENSOR_MAX };
    static const enum dtensor_dtype dtypes[] = { DTENSOR_F64, DTENSOR_I32 };
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;
    struct dtensor_spec src = { .ndim = 2, .shape = { 5, 3 } }, dst;

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_create(job->ctx, 2, (const int[]){ 2, n / 2 }, NULL,
                             NULL, &mesh, &job->err));
    src.mesh = mesh;
    for (int i = 0; i < 2 * 5 * 5; i++)
        for (int pair = 0; pair < 256; pair += 5) {
            src.dtype = dtypes[i / 25];
            dst = src;
            place(&src, pair / 16, ops[i / 5 % 5]);
            place(&dst, pair % 16, ops[i % 5]);
            one_pair(job, &src, &dst);
        }
    dtensor_fini(job->ctx);
}

/* ------------------------------------------------------------- creation --- */

static void check_full(struct job *job, const struct dtensor_mesh *mesh,
                       const char *placements, enum dtensor_dtype dtype)
{
    const int64_t shape[] = { 5, 3 };
    struct dtensor_spec spec = spec_of(job, mesh, dtype, shape, placements);
    struct dtensor *t = NULL;
    double full[ELEMS_MAX];

    good(dtensor_full(&spec, 12, &t, &job->err));
    good(dtensor_full_tensor(t, full, 15 * dtensor_dtype_size(dtype),
                             &job->err));
    for (int i = 0; i < 15; i++)
        need(get(dtype, full, i) == 12, "full %s as %s: element %d is %g",
             dtensor_dtype_name(dtype), placements, i, get(dtype, full, i));
    dtensor_destroy(t);
}

/* An integer has the lowest bits of its index. */
static void check_wraps(struct job *job, const struct dtensor_mesh *mesh)
{
    const int64_t shape[] = { 80, 4 };
    struct dtensor_spec spec = spec_of(job, mesh, DTENSOR_I8, shape, "S(0)");
    struct dtensor *t = NULL;
    int64_t local[2], offset[2];

    good(dtensor_arange(&spec, &t, &job->err));
    dtensor_spec_local(&spec, job->rank, local, offset);
    for (int64_t i = 0; i < local[0] * 4; i++)
        need(((const int8_t *)dtensor_to_local(t))[i] ==
             (int8_t)(uint8_t)(offset[0] * 4 + i), "arange of i8: element %d "
             "is %g", (int)i, get(DTENSOR_I8, dtensor_to_local(t), i));
    dtensor_destroy(t);
}

static void check_create(struct job *job, const struct dtensor_mesh *mesh)
{
    static const char *const placements[] = { "R", "S(0)", "S(1)", "P",
        "P(avg)", "P(prod)", "P(max)", "P(min)" };
    const int64_t shape[] = { 7, 4 };
    struct dtensor_spec spec = spec_of(job, mesh, DTENSOR_F32, shape, "S(0)");
    struct dtensor *t = NULL;
    int64_t local[2], offset[2];

    for (size_t i = 0; i < sizeof placements / sizeof placements[0]; i++) {
        check_full(job, mesh, placements[i], DTENSOR_F64);
        check_full(job, mesh, placements[i], DTENSOR_I32);
    }
    good(dtensor_arange(&spec, &t, &job->err));
    dtensor_spec_local(&spec, job->rank, local, offset);
    for (int64_t i = 0; i < local[0] * 4; i++)
        need(get(DTENSOR_F32, dtensor_to_local(t), i) ==
             (double)(offset[0] * 4 + i), "arange: element %d", (int)i);
    dtensor_destroy(t);
    good(dtensor_zeros(&spec, &t, &job->err));
    for (int64_t i = 0; i < local[0] * 4; i++)
        need(get(DTENSOR_F32, dtensor_to_local(t), i) == 0, "zeros are not");
    dtensor_destroy(t);
    check_wraps(job, mesh);
}

static void check_root(struct job *job, const struct dtensor_mesh *mesh,
                       enum dtensor_dtype dtype, const char *placements,
                       int root)
{
    struct dtensor_spec spec = spec_of(job, mesh, dtype,
                                       (const int64_t[]){ 7, 4 }, placements);
    struct dtensor *t = make(job, &spec, root);

    need(is_partial(&spec) || local_is_right(job, t), "distribute %s from %d "
         "to %s", dtensor_dtype_name(dtype), root, placements);
    need(whole_is_right(job, t), "full_tensor of %s from %d", placements, root);
    dtensor_destroy(t);
}

static void check_roots(struct job *job, const struct dtensor_mesh *mesh)
{
    static const char *const placements[2][9] = {
        { "R", "S(0)", "S(1)", "P", "P(max)", "P(prod)" },
        { "R,R", "S(0),R", "R,S(1)", "S(0),S(0)", "P,R", "S(1),P", "P,P",
          "R,P(avg)", "P(max),S(0)" }
    };
    const char *const *list = placements[dtensor_mesh_ndim(mesh) - 1];

    for (int root = -1; root < dtensor_mesh_size(mesh); root++)
        for (int i = 0; i < 9 && list[i]; i++) {
            check_root(job, mesh, DTENSOR_F32, list[i], root);
            check_root(job, mesh, DTENSOR_I32, list[i], root);
        }
}

/* from_local, to_local; redistribute into a tensor that exists, twice. */
static void check_into(struct job *job, const struct dtensor_mesh *mesh)
{
    const int64_t shape[] = { 7, 4 };
    struct dtensor_spec rows = spec_of(job, mesh, DTENSOR_F32, shape, "S(0)");
    struct dtensor_spec cols = spec_of(job, mesh, DTENSOR_F32, shape, "S(1)");
    struct dtensor *a = make(job, &rows, -1), *b = NULL, *c = NULL;

    good(dtensor_from_local(&rows, dtensor_to_local(a), dtensor_local_bytes(a),
                            &b, &job->err));
    need(local_is_right(job, b), "from_local");
    good(dtensor_zeros(&cols, &c, &job->err));
    for (int i = 0; i < 2; i++) {
        good(dtensor_redistribute_into(b, c, &job->err));
        need(local_is_right(job, c), "redistribute_into, time %d", i);
        if (dtensor_local_bytes(c) > 0)
            memset(dtensor_to_local(c), 0, dtensor_local_bytes(c));
    }
    good(dtensor_redistribute_into(b, b, &job->err));
    need(local_is_right(job, b), "redistribute_into itself");
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_destroy(c);
}

static void check_scalar(struct job *job, const struct dtensor_mesh *mesh)
{
    struct dtensor_spec spec = { .mesh = mesh, .dtype = DTENSOR_F64 };
    struct dtensor *t = NULL;
    double value = 0;

    spec.placement[0].kind = DTENSOR_PARTIAL;
    good(dtensor_full(&spec, 2.5, &t, &job->err));
    good(dtensor_full_tensor(t, &value, sizeof value, &job->err));
    need(fabs(value - 2.5) < 1e-12, "a scalar is %g", value);
    dtensor_destroy(t);
}

static void creation(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;

    job_open(job, rank, n, arg);
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    check_create(job, mesh);
    check_roots(job, mesh);
    if (n == 4) {
        good(dtensor_mesh_create(job->ctx, 2, (const int[]){ 2, 2 }, NULL,
                                 NULL, &mesh, &job->err));
        check_roots(job, mesh);
        good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    }
    check_into(job, mesh);
    check_scalar(job, mesh);
    dtensor_fini(job->ctx);
}

/* Ranks 1 and 2 of 4 are a mesh; the others make the same calls. */
static void outsiders(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec;
    struct dtensor *a, *b = NULL;
    char full[28 * 4] = "";

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_create(job->ctx, 1, (const int[]){ 2 }, NULL,
                             (const int[]){ 2, 1 }, &mesh, &job->err));
    spec = spec_of(job, mesh, DTENSOR_F32, (const int64_t[]){ 7, 4 }, "S(0)");
    a = make(job, &spec, 0);
    good(dtensor_redistribute(a, "S(1)", &b, &job->err));
    if (rank == 1 || rank == 2)
        need(local_is_right(job, b), "a member has its part");
    else
        need(dtensor_local_bytes(b) == 0, "an outsider has none");
    good(dtensor_full_tensor(b, full, sizeof full, &job->err));
    need(rank == 1 || rank == 2 || full[0] == '\0',
         "an outsider's buffer is left alone");
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_fini(job->ctx);
}

/* ---------------------------------------------------------------- plans --- */

/* On a device the plan goes on with "; GPU memory ...". */
static void check_plan(struct job *job, const char *from, const char *to,
                       const char *want)
{
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec;
    struct dtensor *a, *b = NULL;
    const char *plan;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    spec = spec_of(job, mesh, DTENSOR_F32, (const int64_t[]){ 8, 8 }, from);
    good(dtensor_zeros(&spec, &a, &job->err));
    good(dtensor_redistribute(a, to, &b, &job->err));
    plan = dtensor_last_plan(job->ctx);
    need(strncmp(plan, want, strlen(want)) == 0
         && strchr(";", plan[strlen(want)]), "the plan is \"%s\", not \"%s\"",
         plan, want);
    dtensor_destroy(a);
    dtensor_destroy(b);
}

static void plans(int rank, int n, void *arg)
{
    struct job job;

    job_open(&job, rank, n, NULL);
    check_plan(&job, "R", "R", "redistribute R -> R: local");
    check_plan(&job, "R", "S(0)", "redistribute R -> S(0): local");
    check_plan(&job, "S(0)", "P", "redistribute S(0) -> P(sum): local");
    check_plan(&job, "S(0)", "S(1)", "redistribute S(0) -> S(1): exchange shm "
               "4 ranks, 48 bytes in 3 pieces");
    check_plan(&job, "S(0)", "R", "redistribute S(0) -> R: exchange shm 4 "
               "ranks, 192 bytes in 3 pieces");
    check_plan(&job, "P", "R", "redistribute P(sum) -> R: allreduce shm 4 "
               "ranks of 256 bytes");
    check_plan(&job, "P(sum)", "P(max)", "redistribute P(sum) -> P(max): "
               "allreduce shm 4 ranks of 256 bytes, then local");
    dtensor_fini(job.ctx);
}

static void run_shm(int most)
{
    static const int sizes[] = { 1, 2, 3, 4, 6 };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (sizes[i] > most)
            continue;
        ok(ranks_run(sizes[i], 60, creation, NULL, NULL) == 0,
           "%d ranks: zeros, full, arange, from_local, distribute, into",
           sizes[i]);
        ok(ranks_run(sizes[i], 120, redistribute_shm, NULL, NULL) == 0,
           "%d ranks: every placement pair over shared memory", sizes[i]);
    }
}

static void run_wire(const char *wire, int most)
{
    const char *path, *absent = strcmp(wire, "rc") == 0 ? rdma_absent() : NULL;

    if (absent) {
        skip("tensors over rc", absent);
        return;
    }
    for (int n = 2; n <= 4 && n <= most; n++) {
        path = ranks_file(wire, n, NULL);
        ok(ranks_run(n, 60, creation, (void *)(uintptr_t)path, NULL) == 0,
           "%d ranks: creation over %s", n, wire);
        ok(ranks_run(n, 120, redistribute_wire, (void *)(uintptr_t)path, NULL)
           == 0, "%d ranks: placement pairs over %s", n, wire);
        if (n == 4)
            ok(ranks_run(n, 120, any_placement, (void *)(uintptr_t)path, NULL)
               == 0, "2 x 2: strided, chosen, block-cyclic over %s", wire);
        unlink(path);
    }
}

/* What does not depend on the wire. */
static void run_rest(void)
{
    ok(ranks_run(4, 120, any_placement, NULL, NULL) == 0,
       "2 x 2: strided, chosen lengths, block-cyclic, each into every other");
    ok(ranks_run(4, 60, reductions, NULL, NULL) == 0,
       "2 x 2: every reduction into every other, floats and integers");
    ok(ranks_run(4, 60, outsiders, NULL, NULL) == 0,
       "ranks outside the mesh make the same calls and hold nothing");
    ok(ranks_run(4, 60, plans, NULL, NULL) == 0,
       "dtensor_last_plan() says what moved, or that nothing did");
}

/* One rank of a job that others started. */
static int member(void)
{
    struct job job;

    job_open(&job, 0, 0, NULL);
    job.rank = dtensor_rank(job.ctx);
    job.n = dtensor_world_size(job.ctx);
    all_meshes(&job, 7);
    dtensor_fini(job.ctx);
    return 0;
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    int most = argc > 2 ? atoi(argv[2]) : 6;

    if (strcmp(only, "member") == 0)
        return member();
    if (!*only || strcmp(only, "shm") == 0)
        run_shm(most);
    if (!*only || strcmp(only, "tcp") == 0)
        run_wire("tcp", most);
    if (!*only || strcmp(only, "rc") == 0)
        run_wire("rc", most);
    if (!*only)
        run_rest();
    return done();
}
