/* test_parts.c - tensors made of the parts that ranks hold, and tensors
 * compared
 *
 * If one rank passes a wrong part, all ranks must get the error, in the same
 * words, and go on.  Parts that are only unusual must become a tensor with
 * every element in its place.
 *
 * Without this test, one rank's mistake could leave the others in a call that
 * never ends.
 */
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/tensor_job.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const struct dtensor_mesh *world_of(struct job *job)
{
    const struct dtensor_mesh *mesh;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    return mesh;
}

static const struct dtensor_mesh *grid_of(struct job *job, int rows)
{
    const int sizes[] = { rows, job->n / rows };
    const struct dtensor_mesh *mesh;

    good(dtensor_mesh_create(job->ctx, 2, sizes, "a,b", NULL, &mesh,
                             &job->err));
    return mesh;
}

/* The whole as rank `rank` should hold it, from the element (row, column). */
static void fill(float *local, const int64_t shape[2], int64_t row,
                 int64_t column, int64_t columns)
{
    for (int64_t i = 0; i < shape[0]; i++)
        for (int64_t j = 0; j < shape[1]; j++)
            local[i * shape[1] + j] =
                (float)whole_at((row + i) * columns + column + j);
}

static struct dtensor_spec part_spec(struct job *job,
                                     const struct dtensor_mesh *mesh,
                                     const char *placements,
                                     const int64_t shape[2])
{
    return spec_of(job, mesh, DTENSOR_F32, shape, placements);
}

/* A tensor was made: is it this one? */
static void need_spec(struct job *job, const struct dtensor *t,
                      const char *placements, int64_t rows, int64_t columns)
{
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    char text[200];

    dtensor_placements_format(spec->mesh, spec->placement, text, sizeof text);
    need(spec->ndim == 2 && spec->shape[0] == rows &&
         spec->shape[1] == columns && strcmp(text, placements) == 0,
         "made %s of [%d,%d], not %s of [%d,%d]", text, (int)spec->shape[0],
         (int)spec->shape[1], placements, (int)rows, (int)columns);
    need(local_is_right(job, t) && whole_is_right(job, t), "wrong elements");
}

/* ----------------------------------------------------------- from parts --- */

/* Rank r holds rows[r] rows of 3 columns. */
static void parts_of_rows(struct job *job, const int rows[], const char *want)
{
    const struct dtensor_mesh *mesh = world_of(job);
    int64_t shape[] = { rows[job->rank], 3 }, begin = 0, total = 0;
    struct dtensor_spec spec = part_spec(job, mesh, "S(0)", shape);
    struct dtensor *t;
    float local[64];

    for (int r = 0; r < job->n; r++) {
        total += rows[r];
        begin += r < job->rank ? rows[r] : 0;
    }
    fill(local, shape, begin, 0, 3);
    good(dtensor_from_parts(&spec, local, &t, &job->err));
    need_spec(job, t, want, total, 3);
    dtensor_destroy(t);
}

/* Rank r holds r columns: 5 x 6 on four ranks. */
static void parts_of_columns(struct job *job)
{
    const struct dtensor_mesh *mesh = world_of(job);
    int64_t shape[] = { 5, job->rank };
    struct dtensor_spec spec = part_spec(job, mesh, "S(-1)", shape);
    struct dtensor *t;
    float local[64];

    fill(local, shape, 0, job->rank * (job->rank - 1) / 2, 6);
    good(dtensor_from_parts(&spec, local, &t, &job->err));
    need_spec(job, t, "S(1:0,1,2,3)", 5, 6);
    dtensor_destroy(t);
}

/* Any spec whose parts follow the rules is found again from its parts. */
static void parts_of(struct job *job, const struct dtensor_mesh *mesh,
                     const char *placements, int64_t rows, int64_t columns)
{
    struct dtensor_spec spec = part_spec(job, mesh, placements,
                                         (int64_t[]){ rows, columns });
    struct dtensor *a = make(job, &spec, -1), *b, *c;
    int64_t shape[2], offset[2];
    int same = 0;

    dtensor_spec_local(&spec, job->rank, shape, offset);
    memcpy(spec.shape, shape, sizeof shape);
    good(dtensor_from_parts(&spec, dtensor_to_local(a), &b, &job->err));
    good(dtensor_equal(a, b, &same, &job->err));
    need(same && dtensor_is_same_size(a, b), "%s of [%d,%d] from its parts",
         placements, (int)rows, (int)columns);
    good(dtensor_from_local_checked(dtensor_spec_of(a), dtensor_to_local(b),
                                    shape, &c, &job->err));
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_destroy(c);
}

static void parts(int rank, int n, void *arg)
{
    static const char *const placements[] = { "R,R", "S(0),S(0)", "S(0),S(1)",
        "S(1),S(0)", "R,S(0)", "S(1),S(1)", "P,S(0)", "S(0),P(sum)" };
    struct job the_job, *job = &the_job;

    job_open(job, rank, n, NULL);
    parts_of_rows(job, (int[]){ 3, 3, 3, 1 }, "S(0)");
    parts_of_rows(job, (int[]){ 1, 1, 0, 0 }, "S(0)");
    parts_of_rows(job, (int[]){ 0, 0, 0, 0 }, "S(0)");
    parts_of_rows(job, (int[]){ 3, 5, 2, 4 }, "S(0:3,5,2,4)");
    parts_of_rows(job, (int[]){ 0, 0, 0, 4 }, "S(0:0,0,0,4)");
    parts_of_columns(job);
    for (size_t i = 0; i < sizeof placements / sizeof placements[0]; i++)
        for (int64_t rows = 0; rows < 8; rows++)
            parts_of(job, grid_of(job, 2), placements[i], rows, 5);
    dtensor_fini(job->ctx);
}

/* On a 2 x 2 mesh one dimension may be uneven and the other as the rule. */
static void parts_grid(int rank, int n, void *arg)
{
    static const int64_t rows[] = { 1, 4 };
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec;
    struct dtensor *t;
    int64_t shape[2];
    float local[64];

    job_open(job, rank, n, NULL);
    mesh = grid_of(job, 2);
    shape[0] = rows[rank / 2];
    shape[1] = rank % 2 ? 1 : 2;
    spec = part_spec(job, mesh, "S(0),S(1)", shape);
    fill(local, shape, rank / 2, rank % 2 * 2, 3);
    good(dtensor_from_parts(&spec, local, &t, &job->err));
    need_spec(job, t, "S(0:1,4),S(1)", 5, 3);
    dtensor_destroy(t);
    dtensor_fini(job->ctx);
}

/* -------------------------------------------------------------- refused --- */

/* Every rank must have got these words, and rank `odd` for a culprit. */
static void need_refused(struct job *job, int rc, int odd, const char *want)
{
    need(rc == DTENSOR_EINVAL, "%s, not EINVAL, but %s", dtensor_errname(rc),
         want);
    need(strcmp(job->err.text, want) == 0, "\"%s\" is not \"%s\"",
         job->err.text, want);
    need(job->err.rank == odd, "culprit %d, not %d", job->err.rank, odd);
    good(dtensor_barrier(world_of(job), &job->err));
}

/* from_local_checked() of a part that is right but on rank 2. */
static void checked(struct job *job, const int64_t wrong[2], bool null,
                    const char *want)
{
    const int64_t whole[] = { 10, 4 };
    struct dtensor_spec spec = part_spec(job, world_of(job), "S(0)", whole);
    struct dtensor *t = NULL;
    float local[64] = { 0 };
    int64_t shape[2], offset[2];
    int rc;

    dtensor_spec_local(&spec, job->rank, shape, offset);
    rc = dtensor_from_local_checked(&spec, null && job->rank == 2 ? NULL
                                    : local,
                                    job->rank == 2 ? wrong : shape, &t,
                                    &job->err);
    need(t == NULL, "the result was written");
    need_refused(job, rc, 2, want);
}

/* One rank says something else of the whole. */
static void disagree(struct job *job, int what, const char *want)
{
    const int64_t whole[] = { 12, 4 }, other[] = { 11, 4 };
    const bool odd = job->rank == 2;
    struct dtensor_spec spec = part_spec(job, world_of(job),
        odd && what == 0 ? "S(1)" : "S(0)", odd && what == 1 ? other : whole);
    struct dtensor *t = NULL;
    float local[64] = { 0 };
    int rc;

    if (odd && what == 2)
        spec.dtype = DTENSOR_I32;
    if (odd && what == 3) {
        spec.ndim = 3;
        spec.shape[2] = 1;
    }
    if (odd && what == 4)
        rc = dtensor_from_parts(&spec, local, &t, &job->err);
    else
        rc = dtensor_from_local_checked(&spec, local, (int64_t[]){ 3, 4, 1 },
                                        &t, &job->err);
    need(t == NULL, "the result was written");
    need_refused(job, rc, 2, want);
}

/* Parts that no rule puts together. */
static void misfit(struct job *job, const char *placements,
                   const int64_t shapes[4][2], int odd, const char *want)
{
    struct dtensor_spec spec = part_spec(job, grid_of(job, 2), placements,
                                         shapes[job->rank]);
    struct dtensor *t = NULL;
    float local[64] = { 0 };
    int rc = dtensor_from_parts(&spec, local, &t, &job->err);

    need(t == NULL, "the result was written");
    need_refused(job, rc, odd, want);
}

static void refusals(int rank, int n, void *arg)
{
    static const int64_t replicas[4][2] = { { 2, 3 }, { 2, 3 }, { 2, 4 },
                                            { 2, 3 } };
    static const int64_t torn[4][2] = { { 1, 3 }, { 2, 3 }, { 3, 3 },
                                        { 1, 3 } };
    static const int64_t huge[4][2] = { { INT64_MAX / 8, 0 },
        { INT64_MAX / 8, 0 }, { INT64_MAX / 8, 0 }, { INT64_MAX / 8, 0 } };
    struct job the_job, *job = &the_job;

    job_open(job, rank, n, NULL);
    checked(job, (int64_t[]){ 2, 4 }, false, "parts: rank 2 holds [2,4], but "
            "[3,4] is its part of f32[10,4]  S(0)  on world(world=4)");
    checked(job, (int64_t[]){ 4, 3 }, false, "parts: rank 2 holds [4,3], but "
            "[3,4] is its part of f32[10,4]  S(0)  on world(world=4)");
    checked(job, (int64_t[]){ 3, 4 }, true, "parts: rank 2 has no part, unlike "
            "rank 0 (every rank must give a part and the same arguments)");
    disagree(job, 0, "parts: rank 2 has other placements, or another mesh, "
             "unlike rank 0 (every rank must give a part and the same "
             "arguments)");
    disagree(job, 1, "parts: rank 2 has another global shape, unlike rank 0 "
             "(every rank must give a part and the same arguments)");
    disagree(job, 2, "parts: rank 2 has another dtype, unlike rank 0 (every "
             "rank must give a part and the same arguments)");
    disagree(job, 3, "parts: rank 2 has another number of dimensions, unlike "
             "rank 0 (every rank must give a part and the same arguments)");
    disagree(job, 4, "parts: rank 2 makes another call, unlike rank 0 (every "
             "rank must give a part and the same arguments)");
    misfit(job, "R,S(0)", replicas, 2, "parts: rank 2 holds [2,4], but [2,3] "
           "is its part of f32[4,3]  R,S(0)  on mesh(a=2,b=2)");
    misfit(job, "S(0),S(0)", torn, 0, "parts: rank 0 holds [1,3], but [2,3] is "
           "its part of f32[7,3]  S(0),S(0)  on mesh(a=2,b=2)");
    misfit(job, "S(0),S(0)", huge, -1, "spec: f32[4611686018427387900,"
           "0] has over 2^63 bytes (a size of 0 counts as 1)");
    dtensor_fini(job->ctx);
}

/* ---------------------------------------------------------------- equal --- */

static void need_equal(struct job *job, const struct dtensor *a,
                       const struct dtensor *b, int want, const char *what)
{
    int same = 9;

    good(dtensor_equal(a, b, &same, &job->err));
    need(same == want, "%s: %d", what, same);
}

/* Change element 0 of one rank's part, if it has one. */
static void change(struct job *job, struct dtensor *t, int rank, double value)
{
    if (job->rank == rank && dtensor_local_bytes(t) > 0)
        set(DTENSOR_F32, dtensor_to_local(t), 0, value);
}

static void compare(struct job *job, const char *placements)
{
    struct dtensor_spec spec = part_spec(job, world_of(job), placements,
                                         (int64_t[]){ 5, 3 });
    struct dtensor *a = make(job, &spec, -1), *b;
    bool partial = is_partial(&spec);

    good(dtensor_clone(a, &b, &job->err));
    need_equal(job, a, b, 1, "a clone");
    if (dtensor_local_bytes(a) > 0)
        need(dtensor_to_local(a) != dtensor_to_local(b), "it is no clone");
    change(job, b, 0, 7);
    need_equal(job, a, b, 0, "the first rank's differs");
    change(job, a, 0, 7);
    need_equal(job, a, b, 1, "and the same again");
    change(job, a, 0, 0.0);
    change(job, b, 0, -0.0);
    need_equal(job, a, b, 1, "zero is minus zero");
    change(job, a, 0, NAN);
    change(job, b, 0, NAN);
    need_equal(job, a, b, 0, "a NaN is not itself");
    change(job, a, 0, 3);
    change(job, b, 0, partial && job->n > 1 ? 2 : 3);
    if (partial && job->n > 1) {
        change(job, a, 1, 5);
        change(job, b, 1, 6);
    }
    need_equal(job, a, b, 1, "terms that add up to the same");
    dtensor_destroy(a);
    dtensor_destroy(b);
}

static void comparisons(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    struct dtensor_spec spec, other;
    struct dtensor *a, *b, *c;

    job_open(job, rank, n, NULL);
    compare(job, "R");
    compare(job, "S(0)");
    compare(job, "S(1)");
    compare(job, "P");
    spec = part_spec(job, world_of(job), "S(0)", (int64_t[]){ 5, 3 });
    other = part_spec(job, world_of(job), "S(0)", (int64_t[]){ 3, 5 });
    good(dtensor_ones(&spec, &a, &job->err));
    good(dtensor_ones(&other, &b, &job->err));
    need(!dtensor_is_same_size(a, b) && dtensor_is_same_size(a, a),
         "is_same_size");
    need_equal(job, a, b, 0, "another shape");
    good(dtensor_redistribute(a, "R", &c, &job->err));
    need(dtensor_is_same_size(a, c), "is_same_size looks at the whole");
    need_equal(job, a, c, 1, "other placements");
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_destroy(c);
    dtensor_fini(job->ctx);
}

/* ----------------------------------------------------------- the others --- */

static void made_alike(struct job *job)
{
    struct dtensor_spec spec = part_spec(job, world_of(job), "S(0)",
                                         (int64_t[]){ 5, 3 });
    struct dtensor *a, *b, *c;
    const float *one;

    good(dtensor_empty(&spec, &a, &job->err));
    good(dtensor_ones(dtensor_spec_of(a), &b, &job->err));
    good(dtensor_full(dtensor_spec_of(a), 1, &c, &job->err));
    need(dtensor_local_bytes(a) == dtensor_local_bytes(b), "empty's size");
    one = dtensor_to_local(b);
    for (size_t i = 0; i < dtensor_local_bytes(b) / sizeof *one; i++)
        need(one[i] == 1, "ones are %g", (double)one[i]);
    need_equal(job, b, c, 1, "ones are full of 1");
    dtensor_destroy(a);
    dtensor_destroy(b);
    dtensor_destroy(c);
}

/* Ranks 2 and 1 of 4 are a mesh; the others make the same calls. */
static void outsiders(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;
    const int64_t part[] = { rank == 1 ? 1 : 4, 3 };
    struct dtensor_spec spec;
    struct dtensor *a, *b;
    float local[64];

    job_open(job, rank, n, NULL);
    made_alike(job);
    good(dtensor_mesh_create(job->ctx, 1, (const int[]){ 2 }, NULL,
                             (const int[]){ 2, 1 }, &mesh, &job->err));
    spec = part_spec(job, mesh, "S(0)", part);
    fill(local, part, rank == 1 ? 4 : 0, 0, 3);
    good(dtensor_from_parts(&spec, local, &a, &job->err));
    good(dtensor_clone(a, &b, &job->err));
    if (rank == 1 || rank == 2) {
        need_spec(job, a, "S(0:4,1)", 5, 3);
        need_equal(job, a, b, 1, "a clone");
        change(job, b, 1, 0);
        need_equal(job, a, b, 0, "one member's differs");
    } else {
        need(dtensor_spec_of(a)->shape[0] == 0 && dtensor_local_bytes(a) == 0,
             "an outsider holds nothing");
        need_equal(job, a, b, 1, "an outsider agrees");
        need_equal(job, a, b, 1, "with anything");
    }
    dtensor_destroy(a);
    dtensor_destroy(b);
    spec = part_spec(job, mesh, "S(0)", (int64_t[]){ 7, 3 });
    if (rank == 1 || rank == 2) {
        good(dtensor_from_local_checked(&spec, local, (int64_t[]){
             rank == 1 ? 3 : 4, 3 }, &a, &job->err));
    } else {
        good(dtensor_from_local_checked(&spec, NULL, part, &a, &job->err));
        need(dtensor_local_bytes(a) == 0, "an outsider holds nothing");
    }
    dtensor_destroy(a);
    dtensor_fini(job->ctx);
}

int main(void)
{
    ok(ranks_run(4, 60, parts, NULL, NULL) == 0,
       "4 ranks: the whole is found from its parts, even or not");
    ok(ranks_run(4, 60, parts_grid, NULL, NULL) == 0,
       "2 x 2: lengths along one dimension, the rule along the other");
    ok(ranks_run(4, 60, refusals, NULL, NULL) == 0,
       "a part that does not fit is refused on every rank in the same words");
    for (int n = 1; n <= 4; n++)
        ok(ranks_run(n, 60, comparisons, NULL, NULL) == 0,
           "%d ranks: equal, clone, is_same_size", n);
    ok(ranks_run(4, 60, outsiders, NULL, NULL) == 0,
       "ranks outside the mesh make the same calls and disturb nobody");
    return done();
}
