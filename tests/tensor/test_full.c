/* test_full.c - the whole on one rank, and a value in every element
 *
 * For each kind of placement on meshes of one and of two dimensions, the whole
 * goes to each rank in turn: that one has every element, and the arrays of the
 * others stay as they are.  Ranks that do not agree who gets it are told.
 *
 * Without this test, a rank could get the elements of another order, all ranks
 * could need room for the whole, or a Partial could hold the value n times.
 */
#include "dtensor.h"
#include "tests/support/tensor_job.h"

#include <string.h>

static const char *const line[] = { "R", "S(0)", "S(1)", "P", "P(avg)",
                                    "P(max)", "C(0,2)", "HT(1)", NULL };
static const char *const square[] = { "R,R", "S(0),R", "R,S(1)", "S(0),S(0)",
                                      "P,R", "S(1),P", "P(max),S(0)",
                                      "SS(0,2),S(0)", NULL };

/* Is the whole on `root`, and nothing elsewhere? */
static void check_at(struct job *job, const struct dtensor *t, int root)
{
    const struct dtensor_spec *spec = dtensor_spec_of(t);
    const size_t size = (size_t)numel(spec) * dtensor_dtype_size(spec->dtype);
    const bool here = dtensor_mesh_index(spec->mesh, job->rank) == root;
    double full[ELEMS_MAX], before[ELEMS_MAX];

    memset(full, 0x5a, sizeof full);
    memcpy(before, full, sizeof full);
    good(dtensor_full_tensor_at(t, root, here ? full : NULL, here ? size : 0,
                                &job->err));
    for (int64_t i = 0; here && i < numel(spec); i++)
        need(get(spec->dtype, full, i) == whole_at(i), "element %d at root %d "
             "is %g", (int)i, root, get(spec->dtype, full, i));
    need(memcmp((char *)full + (here ? size : 0), before,
                sizeof full - (here ? size : 0)) == 0, "more was written");
}

static void check_mesh(struct job *job, const struct dtensor_mesh *mesh,
                       const char *const list[])
{
    const int64_t shape[] = { 7, 4 };

    for (int i = 0; list[i]; i++)
        for (int root = 0; root < dtensor_mesh_size(mesh); root++) {
            struct dtensor_spec spec = spec_of(job, mesh, i % 2 ? DTENSOR_I32
                                               : DTENSOR_F32, shape, list[i]);
            struct dtensor *t = make(job, &spec, -1);

            check_at(job, t, root);
            dtensor_destroy(t);
        }
}

static void gathered(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;

    job_open(job, rank, n, arg);
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    check_mesh(job, mesh, line);
    good(dtensor_mesh_create(job->ctx, 2, (int[]){ 2, 2 }, NULL,
                             (int[]){ 3, 1, 0, 2 }, &mesh, &job->err));
    check_mesh(job, mesh, square);
    good(dtensor_mesh_create(job->ctx, 1, (int[]){ 2 }, NULL,
                             (int[]){ 2, 1 }, &mesh, &job->err));
    check_mesh(job, mesh, line);       /* two ranks are outside               */
    dtensor_fini(job->ctx);
}

static void check_fill(struct job *job, const struct dtensor_mesh *mesh,
                       enum dtensor_dtype dtype, const char *placements)
{
    struct dtensor_spec spec = spec_of(job, mesh, dtype, (int64_t[]){ 7, 4 },
                                       placements);
    struct dtensor *t = make(job, &spec, -1);
    double full[28];

    good(dtensor_fill_value(t, 12, &job->err));
    good(dtensor_full_tensor(t, full, 28 * dtensor_dtype_size(dtype),
                             &job->err));
    for (int i = 0; i < 28; i++)
        need(get(dtype, full, i) == 12, "%s: element %d is %g", placements, i,
             get(dtype, full, i));
    dtensor_destroy(t);
}

/* The terms of whole numbers are the value and neutral elements. */
static void filled(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;

    job_open(job, rank, n, arg);
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    for (int i = 0; line[i]; i++) {
        check_fill(job, mesh, DTENSOR_F64, line[i]);
        check_fill(job, mesh, DTENSOR_I32, line[i]);
    }
    dtensor_fini(job->ctx);
}

static void refused(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec;
    struct dtensor *t = NULL;
    float full[8];

    job_open(job, rank, n, arg);
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    spec = spec_of(job, mesh, DTENSOR_F32, (int64_t[]){ 4, 2 }, "S(0)");
    t = make(job, &spec, -1);
    for (int root = -1; root <= n; root += n + 1) {
        need(dtensor_full_tensor_at(t, root, full, sizeof full, &job->err)
             == DTENSOR_EINVAL, "root %d", root);
        need(strstr(job->err.text, "is no position of the mesh; expected 0 to "
                    "1"), "%s", job->err.text);
    }
    need(dtensor_full_tensor_at(t, rank, full, 31, &job->err)
         == DTENSOR_EINVAL && strstr(job->err.text, "31 bytes, but the whole "
         "is 32"), "%s", job->err.text);
    need(dtensor_full_tensor_at(t, rank, NULL, 32, &job->err)
         == DTENSOR_EINVAL && strstr(job->err.text, "full is NULL"), "%s",
         job->err.text);
    check_at(job, t, 1);               /* the context is as it was            */
    dtensor_destroy(t);
    dtensor_fini(job->ctx);
}

/* Each rank wants the whole. */
static void mismatch(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec;
    struct dtensor *t;
    float full[8];
    int rc;

    job_open(job, rank, n, arg);
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    spec = spec_of(job, mesh, DTENSOR_F32, (int64_t[]){ 4, 2 }, "S(0)");
    t = make(job, &spec, -1);
    rc = dtensor_full_tensor_at(t, rank, full, sizeof full, &job->err);
    need(rc == DTENSOR_EMISMATCH || rc == DTENSOR_EABORT, "code %s: %s",
         dtensor_errname(rc), job->err.text);
    dtensor_destroy(t);
    dtensor_fini(job->ctx);
}

int main(void)
{
    ok(ranks_run(4, 60, gathered, NULL, NULL) == 0,
       "any rank gets the whole, from any placement, and no other does");
    ok(ranks_run(3, 60, filled, NULL, NULL) == 0,
       "a value fills a tensor of any placement");
    ok(ranks_run(2, 60, refused, NULL, NULL) == 0,
       "a wrong root, size or array is EINVAL, and does no harm");
    ok(ranks_run(3, 60, mismatch, NULL, NULL) == 0,
       "ranks that do not agree on the root are told");
    return done();
}
