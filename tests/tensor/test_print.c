/* test_print.c - tensors as text
 *
 * Whole small tensors of every kind of dtype, corners of large ones, terms that
 * are reduced, and replicas, on meshes of four ranks: what the first rank
 * prints is compared with the text that it should be.  All placements print the
 * same.
 *
 * Without this test, a person could be shown elements that the tensor has not.
 */
#include "dtensor.h"
#include "tests/support/job.h"

#include <math.h>
#include <string.h>

/* What `t` prints; "" on all but the first rank. */
static const char *printed(struct job *job, const struct dtensor *t)
{
    static char text[4000];
    FILE *stream = tmpfile();
    size_t n;

    good(dtensor_print(t, stream, &job->err));
    rewind(stream);
    n = fread(text, 1, sizeof text - 1, stream);
    text[n] = '\0';
    fclose(stream);
    return text;
}

static void prints(struct job *job, const struct dtensor *t, const char *want)
{
    const char *got = printed(job, t);

    need(strcmp(got, job->rank == 0 ? want : "") == 0, "printed\n%s\nnot\n%s",
         got, want);
}

static void arange_prints(struct job *job, const struct dtensor_mesh *mesh,
                          const char *placements, enum dtensor_dtype dtype,
                          int ndim, const int64_t shape[], const char *want)
{
    struct dtensor_spec spec;
    struct dtensor *t;

    good(dtensor_spec_on(&spec, mesh, placements, dtype, ndim, shape,
                         &job->err));
    good(dtensor_arange(&spec, &t, &job->err));
    prints(job, t, want);
    dtensor_destroy(t);
}

/* The lines after the first are the same whatever the placements. */
static void placements_print(struct job *job, const struct dtensor_mesh *grid)
{
    static const char *const placements[] = { "S(0),S(1)", "R,R", "S(1),R",
        "SS(0,2),S(0)", "C(1,3),S(0)", "HT(0),R", "S(0:1,11),R" };
    struct dtensor_spec spec;
    struct dtensor *t;
    char first[4000] = "";

    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++) {
        const char *text;

        good(dtensor_spec_on(&spec, grid, placements[i], DTENSOR_I32, 2,
                             (const int64_t[]){ 12, 100 }, &job->err));
        good(dtensor_arange(&spec, &t, &job->err));
        text = printed(job, t);
        text = job->rank == 0 ? strchr(text, '\n') + 1 : text;
        if (i == 0)
            strcpy(first, text);
        need(strcmp(first, text) == 0, "%s prints\n%s", placements[i], text);
        dtensor_destroy(t);
    }
    need(job->rank != 0 ||
         strcmp(first, "[[   0    1    2 ...   97   98   99]\n"
                       " [ 100  101  102 ...  197  198  199]\n"
                       " [ 200  201  202 ...  297  298  299]\n"
                       " ...\n"
                       " [ 900  901  902 ...  997  998  999]\n"
                       " [1000 1001 1002 ... 1097 1098 1099]\n"
                       " [1100 1101 1102 ... 1197 1198 1199]]\n") == 0,
         "printed\n%s", first);
}

static void dtypes_print(struct job *job, const struct dtensor_mesh *world)
{
    const int64_t three[] = { 3 }, shape[] = { 2, 1, 3 };

    arange_prints(job, world, "S(0)", DTENSOR_F32, 1, three,
                  "f32[3]  S(0)  on world(world=4)\n[0 1 2]\n");
    arange_prints(job, world, "S(0)", DTENSOR_BF16, 1, three,
                  "bf16[3]  S(0)  on world(world=4)\n[0 1 2]\n");
    arange_prints(job, world, "R", DTENSOR_BOOL, 1, three,
                  "bool[3]  R  on world(world=4)\n[false  true  true]\n");
    arange_prints(job, world, "S(0)", DTENSOR_C64, 1, three,
                  "c64[3]  S(0)  on world(world=4)\n[0+0i 1+0i 2+0i]\n");
    arange_prints(job, world, "S(0)", DTENSOR_U64, 3, shape,
                  "u64[2,1,3]  S(0)  on world(world=4)\n"
                  "[[[0 1 2]]\n\n [[3 4 5]]]\n");
    arange_prints(job, world, "R", DTENSOR_F64, 0, three,
                  "f64[]  R  on world(world=4)\n0\n");
    arange_prints(job, world, "S(0)", DTENSOR_F64, 1, (const int64_t[]){ 0 },
                  "f64[0]  S(0)  on world(world=4)\n[]\n");
}

/* Bits that an addition of zeros would change; a NaN, which has no sign in
 * NumPy's text; terms; ranks outside.
 */
static void values_print(struct job *job, const struct dtensor_mesh *world,
                         const struct dtensor_mesh *grid)
{
    const float values[] = { -0.0f, -NAN, 1e-20f, INFINITY };
    const int two[] = { 2, 3 };
    const struct dtensor_mesh *part;
    struct dtensor_spec spec;
    struct dtensor *t;

    good(dtensor_spec_on(&spec, world, "S(0)", DTENSOR_F32, 1,
                         (const int64_t[]){ 4 }, &job->err));
    good(dtensor_distribute(&spec, values, -1, &t, &job->err));
    prints(job, t, "f32[4]  S(0)  on world(world=4)\n"
                   "[   -0   nan 1e-20   inf]\n");
    dtensor_destroy(t);
    good(dtensor_spec_on(&spec, grid, "P(sum),P(avg)", DTENSOR_F32, 1,
                         (const int64_t[]){ 2 }, &job->err));
    good(dtensor_full(&spec, 6.5, &t, &job->err));
    prints(job, t, "f32[2]  P(sum),P(avg)  on mesh(a=2,b=2)\n[6.5 6.5]\n");
    dtensor_destroy(t);
    good(dtensor_mesh_create(job->ctx, 1, (const int[]){ 2 }, "x", two, &part,
                             &job->err));
    good(dtensor_spec_on(&spec, part, "S(0)", DTENSOR_I8, 1,
                         (const int64_t[]){ 2 }, &job->err));
    good(dtensor_full(&spec, -7, &t, &job->err));
    need(strstr(printed(job, t), "[-7 -7]\n") || job->rank != 2,
         "the first rank of the mesh printed nothing");
    dtensor_destroy(t);
}

static void rank_main(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *world, *grid;

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    good(dtensor_mesh_create(job->ctx, 2, (const int[]){ 2, 2 }, "a,b", NULL,
                             &grid, &job->err));
    placements_print(job, grid);
    dtypes_print(job, world);
    values_print(job, world, grid);
    dtensor_fini(job->ctx);
}

int main(void)
{
    ok(ranks_run(4, 60, rank_main, NULL, NULL) == 0, "the elements are printed "
       "as they are");
    return done();
}
