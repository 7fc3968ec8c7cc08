/* test_from_local.c - replicas made equal, and gradients of local parts
 *
 * Each rank fills its part with its own number.  Replicas all get the part of
 * the first of them; shards and terms keep their values.
 *
 * Without this test, replicas could stay different, or a gradient could be
 * counted once for each replica.
 */
#include "base/compiler.h"
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/tensor_job.h"

#include <stdbool.h>
#include <string.h>

static const int64_t shape[] = { 5, 6 };

static const struct dtensor_mesh *square_of(struct job *job)
{
    const struct dtensor_mesh *mesh;

    good(dtensor_mesh_create(job->ctx, 2, (const int[]){ 2, 2 }, NULL, NULL,
                             &mesh, &job->err));
    return mesh;
}

/* -------------------------------------------------------------- broadcasts */

/* A part of this rank's number, made by the one call or the other. */
static int part_of(struct job *job, const struct dtensor_spec *spec,
                   bool broadcasts, struct dtensor **tp)
{
    int64_t local[2], offset[2];
    double part[30];

    for (int i = 0; i < 30; i++)
        part[i] = job->rank;
    dtensor_spec_local(spec, job->rank, local, offset);
    return broadcasts ? dtensor_from_local_broadcast(spec, part, local, tp,
                                                     &job->err)
                      : dtensor_from_local_checked(spec, part, local, tp,
                                                   &job->err);
}

/* Every element is `want`; are the replicas the same? */
static void holds(struct job *job, const struct dtensor *t, int want,
                  int replicas, const char *what)
{
    int equal = 9;

    for (size_t i = 0; i < dtensor_local_bytes(t) / sizeof(double); i++)
        need(((double *)dtensor_to_local(t))[i] == want, "%s: element %zu is "
             "%g, not %d", what, i, ((double *)dtensor_to_local(t))[i], want);
    good(dtensor_replicas_equal(t, &equal, &job->err));
    need(equal == replicas, "%s: replicas_equal says %d", what, equal);
}

/* firsts[r]: whose part rank r ends with. */
static void alike(struct job *job, const char *placements,
                  const int firsts[4])
{
    struct dtensor_spec spec = spec_of(job, square_of(job), DTENSOR_F64, shape,
                                       placements);
    struct dtensor *t = NULL;
    bool torn = false;

    for (int r = 0; r < 4; r++)
        torn = torn || firsts[r] != r;
    good(part_of(job, &spec, true, &t));
    holds(job, t, firsts[job->rank], 1, placements);
    dtensor_destroy(t);
    good(part_of(job, &spec, false, &t));
    holds(job, t, job->rank, !torn, placements);
    dtensor_destroy(t);
}

static void broadcasts(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *two;
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    job_open(job, rank, n, arg);
    alike(job, "R,R", (const int[]){ 0, 0, 0, 0 });
    alike(job, "S(0),R", (const int[]){ 0, 0, 2, 2 });
    alike(job, "R,S(1)", (const int[]){ 0, 1, 0, 1 });
    alike(job, "R,P", (const int[]){ 0, 1, 0, 1 });
    alike(job, "S(0:0,5),R", (const int[]){ 0, 0, 2, 2 });
    alike(job, "S(0),S(1)", (const int[]){ 0, 1, 2, 3 });
    good(dtensor_mesh_create(job->ctx, 1, (const int[]){ 2 }, NULL,
                             (const int[]){ 2, 1 }, &two, &job->err));
    spec = spec_of(job, two, DTENSOR_F64, shape, "R");
    good(part_of(job, &spec, true, &t));
    need(dtensor_local_bytes(t) == (rank == 1 || rank == 2 ? 240 : 0),
         "rank %d of a mesh of 2 and 1", rank);
    holds(job, t, 2, 1, "a mesh of 2 and 1");
    dtensor_destroy(t);
    t = NULL;
    spec = spec_of(job, square_of(job), DTENSOR_F64, shape, "R,R");
    need(part_of(job, &spec, rank != 3, &t) == DTENSOR_EINVAL && !t &&
         job->err.rank == 3 && strstr(job->err.text, "makes another call"),
         "rank 3 does not broadcast: %s", job->err.text);
    spec.shape[0] = 4;
    need(dtensor_from_local_broadcast(&spec, &job, (int64_t[]){ 4,
         rank == 1 ? 5 : 6 }, &t, &job->err) == DTENSOR_EINVAL && !t &&
         job->err.rank == 1 && strstr(job->err.text, "rank 1 holds [4,5]"),
         "a part that does not fit: %s", job->err.text);
    dtensor_fini(job->ctx);
}

/* --------------------------------------------------------------- gradients */

/* The tensor, its gradient as it arrives, and as it is of the local part. */
static const struct { const char *tensor, *grad, *local; } cases[] = {
    { "R,R", "R,R", "R,R" }, { "S(0),R", "R,R", "S(0),R" },
    { "P,R", "R,R", "R,R" }, { "P,R", "P,R", "R,R" },
    { "P,P", "P,P", "R,R" }, { "P(avg),R", "R,S(1)", "R,R" },
    { "P(max),S(1)", "P,S(1)", "R,S(1)" }, { "R,S(0)", "P,S(1)", "R,S(0)" },
    { "P,S(0:1,4)", "S(0),R", "R,S(0:1,4)" },
    { "SS(0,2),P", "S(0),P", "SS(0,2),R" },
};

static void gradients(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec, at;
    struct dtensor *grad, *local = NULL;
    char text[60];

    job_open(job, rank, n, arg);
    mesh = square_of(job);
    for (size_t c = 0; c < DTN_COUNT(cases); c++) {
        spec = spec_of(job, mesh, DTENSOR_F32, shape, cases[c].tensor);
        at = spec_of(job, mesh, DTENSOR_F64, shape, cases[c].grad);
        grad = make(job, &at, -1);
        make_uneven(job, grad);
        good(dtensor_from_local_grad(&spec, grad, &local, &job->err));
        dtensor_placements_format(mesh, dtensor_spec_of(local)->placement,
                                  text, sizeof text);
        need(strcmp(text, cases[c].local) == 0 && local_is_right(job, local),
             "of %s, arrives as %s: is %s", cases[c].tensor, cases[c].grad,
             text);
        dtensor_destroy(grad);
        dtensor_destroy(local);
        local = NULL;
    }
    at = spec_of(job, mesh, DTENSOR_F64, (const int64_t[]){ 6, 5 }, "R,R");
    grad = make(job, &at, -1);
    need(dtensor_from_local_grad(&spec, grad, &local, &job->err) ==
         DTENSOR_EINVAL && !local &&
         strstr(job->err.text, "mesh and shape must be the same"), "another "
         "shape: %s", job->err.text);
    dtensor_destroy(grad);
    dtensor_fini(job->ctx);
}

int main(void)
{
    ok(ranks_run(4, 60, broadcasts, NULL, NULL) == 0, "from_local_broadcast: "
       "replicas become the first of them, shards and terms stay");
    ok(ranks_run(4, 60, gradients, NULL, NULL) == 0, "from_local_grad: whole "
       "where the tensor is terms, and undivided");
    return done();
}
