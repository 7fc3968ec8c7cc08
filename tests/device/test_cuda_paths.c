/* test_cuda_paths.c - which way buffers of a GPU take to the peers, in words
 *
 * Two ranks on the driver in tests/standin.  The same over RDMA devices is in
 * tests/rdma/gpujob.c.
 *
 * Without this test, buffers could be staged and nobody would say why, and
 * [device] direct = required could let it pass.
 */
#include "base/compiler.h"
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/support/job.h"
#include "tests/support/standin.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE "connect_timeout = 20s\nop_timeout = 20s\n"
#define ON_GPU "[mesh \"world\"]\ndims = x=2\nmemory = cuda\n"

enum { COUNT = 30000 };           /* elements, more than an eager message     */

static char file[64];

static const struct dtensor_mesh *world(struct job *job)
{
    const struct dtensor_mesh *mesh = NULL;

    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    return mesh;
}

static int allreduce(struct job *job, void *mem)
{
    return dtensor_allreduce(world(job), mem, mem, COUNT, DTENSOR_F32,
                             DTENSOR_SUM, &job->err);
}

/* The last plan has these words for memory of the GPU only. */
static void rank_words(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    void *gpu = NULL, *host = NULL;
    const char *words = arg;

    job_open(job, rank, n, file);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, COUNT * sizeof(float), &gpu,
                          &job->err));
    good(dtensor_alloc(job->ctx, COUNT * sizeof(float), &host, &job->err));
    for (int turn = 0; turn < 2; turn++) {
        good(allreduce(job, gpu));
        need(strstr(dtensor_last_plan(job->ctx), words), "%s",
             dtensor_last_plan(job->ctx));
        good(allreduce(job, host));
        need(strncmp(dtensor_last_plan(job->ctx), "allreduce", 9) == 0
             && !strstr(dtensor_last_plan(job->ctx), "GPU"), "%s",
             dtensor_last_plan(job->ctx));
    }
    dtensor_free(job->ctx, gpu);
    dtensor_free(job->ctx, host);
    dtensor_fini(job->ctx);
}

/* Staging is an error of both ranks, which says why, or who said so. */
static void rank_required(int rank, int n, void *arg)
{
    struct job made, *job = &made;
    void *gpu = NULL;
    int rc;

    job_open(job, rank, n, file);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, COUNT * sizeof(float), &gpu,
                          &job->err));
    rc = allreduce(job, gpu);
    need(rc == DTENSOR_ENODEV ? strstr(job->err.text, arg) != NULL
                              : rc == DTENSOR_EABORT, "%s", job->err.text);
    need(allreduce(job, gpu) == rc, "the context is not poisoned");
    _exit(0);
}

/* A plan of a mesh on GPUs says what is to be expected. */
static void rank_plan(int rank, int n, void *arg)
{
    const int64_t shape[] = { 64, 64 };
    struct dtensor_spec rows, cols;
    struct dtensor_plan *plan = NULL;
    struct job made, *job = &made;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    job_open(job, rank, n, file);
    good(dtensor_spec_on(&rows, world(job), "S(0)", DTENSOR_F32, 2, shape,
                         &job->err));
    good(dtensor_spec_on(&cols, world(job), "S(1)", DTENSOR_F32, 2, shape,
                         &job->err));
    good(dtensor_plan_create(&rows, &cols, NULL, &plan, &job->err));
    dtensor_plan_print(plan, stream);
    fclose(stream);
    need(strstr(text, arg), "%s", text);
    free(text);
    dtensor_plan_destroy(plan);
    dtensor_fini(job->ctx);
}

static const struct {
    const char *claim, *wire, *more;
    rank_main_f *run;
    const char *words;            /* that must be seen                        */
} cases[] = {
    { "tcp stages, and the last plan says so", "tcp", PATIENCE, rank_words,
      "; GPU memory staged: tcp reaches host memory only" },
    { "shm stages, and the last plan says so", "shm", PATIENCE, rank_words,
      "; GPU memory staged: shm reaches host memory only" },
    { "direct = required: staging is an error", "shm",
      PATIENCE "[device]\ndirect = required\n", rank_required,
      "[device] direct = required, but memory of the GPU has to be staged: "
      "shm reaches host memory only" },
    { "a plan over tcp", "tcp", PATIENCE ON_GPU, rank_plan,
      "memory of GPUs: over tcp staged in host memory\n" },
};

int main(void)
{
    const char *why = standin_use();

    if (why)
        return skip_all(why);
    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        strcpy(file, ranks_file(cases[i].wire, 2, cases[i].more));
        ok(ranks_run(2, 60, cases[i].run, (void *)(uintptr_t)cases[i].words,
                     NULL) == 0, "%s", cases[i].claim);
        unlink(file);
    }
    return done();
}
