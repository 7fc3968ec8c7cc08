/* gpulate.c - bytes that a card has not yet written into a GPU are waited for
 *
 * Two ranks on the driver of tests/standin, and cards whose writes are as late
 * as they may be (late_card.c).  With READs where they are needed, on each rail
 * that carried bytes, all results are right.  Without, as a library that forgot
 * them would do, a result is wrong: so these calls show it.
 *
 * Without this test, nothing but the number of READs would say that they come
 * before the GPU uses the bytes.
 */
#include "base/compiler.h"
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/rdma/gpucalls.h"
#include "tests/rdma/late_card.h"
#include "tests/support/job.h"
#include "tests/support/standin.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { WRONG = 3 };               /* a rank's status if a result is wrong     */

static const struct trial {
    const char *what;
    const char *flush;            /* [transport] gpu_flush                    */
    const char *hca;              /* NULL: one rail                           */
    int forgotten;                /* 1 + a rail whose READs are forgotten     */
    bool right;                   /* must all results be right?               */
} trials[] = {
    { "gpu_flush = auto: a READ brings what is late", "auto", NULL, 0, true },
    { "gpu_flush = always", "always", NULL, 0, true },
    { "two rails: each brings its own", "auto", "rxe0+rxe1", 0, true },
    { "... a library that never reads is noticed", "never", NULL, 0, false },
    { "... and one that forgets the second rail", "auto", "rxe0+rxe1", 2,
      false },
};

static char file[64];

static void rank_late(int rank, int n, void *arg)
{
    const size_t bytes = (size_t)GPU_LARGE * sizeof(float);
    const struct trial *trial = arg;
    struct job made, *job = &made;
    void *in = NULL, *out = NULL;
    bool right;

    job_open(job, rank, n, file);
    gpu_enter(job);
    late_card_forgets(trial->forgotten - 1);
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, bytes, &in, &job->err));
    good(dtensor_alloc_on(job->ctx, DTENSOR_CUDA, bytes, &out, &job->err));
    right = gpu_collectives(job, in, out, GPU_SMALL);
    right = gpu_collectives(job, in, out, GPU_LARGE) && right;
    need(!gpu_staged(job), "a buffer was staged");
    right = gpu_redistribute(job) && right;
    need(strcmp(trial->flush, "never") == 0 || late_card_flushed > 0,
         "nothing was late");
    dtensor_free(job->ctx, in);
    dtensor_free(job->ctx, out);
    gpu_close(job);
    if (!right)
        _exit(WRONG);
}

static void run(const struct trial *trial)
{
    int status[2], bad = 0, wrong = 0;
    char more[200];

    snprintf(more, sizeof more, "connect_timeout = 30s\ngpu_flush = %s\n"
             "[mesh \"world\"]\ndims = x=2\nmemory = cuda\n[device]\n"
             "direct = required\n", trial->flush);
    if (trial->hca)
        setenv("DTN_TEST_HCA", trial->hca, 1);
    snprintf(file, sizeof file, "%s", ranks_file("rc", 2, more));
    bad = ranks_run(2, 120, rank_late, (void *)(uintptr_t)trial, status);
    for (int r = 0; r < 2; r++)
        wrong += WIFEXITED(status[r]) && WEXITSTATUS(status[r]) == WRONG;
    ok(bad == wrong && (wrong == 0) == trial->right, "%s", trial->what);
    remove(file);
    unsetenv("DTN_TEST_HCA");
}

int main(void)
{
    setenv("DTN_STANDIN_ATTRIBUTES", "118=0", 1);
    for (size_t i = 0; i < DTN_COUNT(trials); i++)
        run(&trials[i]);
    return done();
}
