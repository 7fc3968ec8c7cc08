/* test_refused.c - wrong calls of tensors, by real processes
 *
 * Arguments that are wrong are refused in words and do no harm; placements that
 * differ on one rank are caught on every rank.
 *
 * Without this test, a wrong argument could leave half a tensor behind, and
 * ranks that disagree could read each other's bytes wrongly.
 */
#include "base/error.h"
#include "job/ctx.h"
#include "tensor/recorder.h"
#include "dtensor.h"
#include "tests/support/tensor_job.h"

#include <string.h>

#define refused(call, want)                                                   \
    do {                                                                      \
        need((call) == DTENSOR_EINVAL, "%s is not EINVAL", #call);            \
        need(strcmp(job->err.text, (want)) == 0, "%s: %s", #call,             \
             job->err.text);                                                  \
    } while (0)

static void errors(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec, other;
    struct dtensor *t = NULL, *terms = NULL, *none = NULL;
    float array[16] = { 0 };

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    spec = spec_of(job, mesh, DTENSOR_F32, (const int64_t[]){ 4, 2 }, "S(0)");
    refused(dtensor_from_local(&spec, array, 4, &none, &job->err),
            rank == 0 ? "from_local: 4 bytes, but rank 0 holds 16 of f32[4,2]  "
                        "S(0)  on world(world=2)"
                      : "from_local: 4 bytes, but rank 1 holds 16 of f32[4,2]  "
                        "S(0)  on world(world=2)");
    refused(dtensor_distribute(&spec, array, 2, &none, &job->err), "distribute:"
            " root 2 is no position of the mesh; expected 0 to 1, or -1");
    refused(dtensor_distribute(&spec, NULL, -1, &none, &job->err), rank == 0 ?
            "distribute: full is NULL on position 0, but root is -1" :
            "distribute: full is NULL on position 1, but root is -1");
    good(dtensor_zeros(&spec, &t, &job->err));
    refused(dtensor_full_tensor(t, array, 4, &job->err), "full_tensor: 4 "
            "bytes, but the whole is 32: f32[4,2]  S(0)  on world(world=2)");
    refused(dtensor_redistribute(t, "S(2)", &none, &job->err), "placements: "
            "word 1 of \"S(2)\" is \"S(2)\", but the tensor has 2 dimensions");
    other = spec;
    other.shape[0] = 5;
    refused(dtensor_redistribute_to(t, &other, &none, &job->err),
            "redistribute: f32[4,2]  S(0)  on world(world=2) cannot become "
            "f32[5,2]  S(0)  on world(world=2) (context, dtype and shape must "
            "be the same)");
    other = spec_of(job, mesh, DTENSOR_F32, (const int64_t[]){ 4, 2 }, "P");
    refused(dtensor_arange(&other, &none, &job->err), "arange: f32[4,2]  "
            "P(sum)  on world(world=2): no placement may be Partial (make it "
            "of R and redistribute)");
    good(dtensor_zeros(&other, &terms, &job->err));
    refused(dtensor_dropout(terms, 0.5, NULL, &none, NULL, &job->err),
            "dropout: f32[4,2]  P(sum)  on world(world=2): no placement may be "
            "Partial (make it of R and redistribute)");
    dtensor_destroy(terms);
    need(none == NULL, "an out parameter was written on failure");
    good(dtensor_redistribute(t, "S(1)", &none, &job->err));
    dtensor_destroy(none);
    dtensor_destroy(t);
    dtensor_fini(job->ctx);
}

/* One rank of 3 wants other placements: nobody gets wrong bytes. */
static void mismatch(int rank, int n, void *arg)
{
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;
    struct dtensor_spec spec;
    struct dtensor *t = NULL, *none = NULL;
    int rc;

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    spec = spec_of(job, mesh, DTENSOR_F32, (const int64_t[]){ 6, 6 }, "S(0)");
    good(dtensor_zeros(&spec, &t, &job->err));
    good(dtensor_redistribute(t, "R", &none, &job->err));    /* all connected */
    dtensor_destroy(none);
    none = NULL;
    rc = dtensor_redistribute(t, rank == 2 ? "R" : "S(1)", &none, &job->err);
    need(rc == DTENSOR_EMISMATCH || rc == DTENSOR_EABORT, "code %s: %s",
         dtensor_errname(rc), job->err.text);
    need(none == NULL, "an out parameter was written on failure");
    need(dtensor_redistribute(t, "S(1)", &none, &job->err) == rc,
         "the context is not poisoned");
    dtensor_destroy(t);
    dtensor_fini(job->ctx);
}

static int no_note(struct dtn_recorder *recorder,
                   const struct dtn_called *called, struct dtensor_error *err)
{
    return dtn_fail(err, DTENSOR_ENOMEM, "no memory for a note");
}

/* A tape has no memory for a redistribute that was started: there is no request
 * then, and the context is as good as before.
 */
static void no_request(int rank, int n, void *arg)
{
    struct dtn_recorder recorder = { .record = no_note };
    struct dtensor_request *request = NULL;
    struct job the_job, *job = &the_job;
    const struct dtensor_mesh *mesh;
    struct dtensor_plan *plan = NULL;
    struct dtensor_spec spec;
    struct dtensor *t = NULL, *to = NULL;

    job_open(job, rank, n, NULL);
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    spec = spec_of(job, mesh, DTENSOR_F32, (const int64_t[]){ 6, 6 }, "S(0)");
    good(dtensor_zeros(&spec, &t, &job->err));
    spec = spec_of(job, mesh, DTENSOR_F32, (const int64_t[]){ 6, 6 }, "S(1)");
    good(dtensor_zeros(&spec, &to, &job->err));
    good(dtensor_plan_create(dtensor_spec_of(t), &spec, NULL, &plan,
                             &job->err));
    job->ctx->recorder = &recorder;
    need(dtensor_plan_start(plan, t, to, &request, &job->err) ==
         DTENSOR_ENOMEM, "%s", job->err.text);
    need(request == NULL, "an out parameter was written on failure");
    job->ctx->recorder = NULL;
    good(dtensor_plan_start(plan, t, to, &request, &job->err));
    good(dtensor_wait(request, &job->err));
    dtensor_plan_destroy(plan);
    dtensor_destroy(to);
    dtensor_destroy(t);
    dtensor_fini(job->ctx);
}

int main(void)
{
    ok(ranks_run(2, 60, errors, NULL, NULL) == 0,
       "wrong arguments are EINVAL with words, and do no harm");
    ok(ranks_run(3, 60, mismatch, NULL, NULL) == 0,
       "different placements on one rank are caught, on every rank");
    ok(ranks_run(2, 60, no_request, NULL, NULL) == 0,
       "a redistribute that no tape can note leaves no request");
    return done();
}
