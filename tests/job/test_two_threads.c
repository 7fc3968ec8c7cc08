/* test_two_threads.c - a second thread calls while the first is in a call
 *
 * A context belongs to one thread at a time.  While a thread of rank 0 waits in
 * a barrier, another starts an allreduce, blocking or not: it is refused in
 * words, and the barrier ends well.  As rank 0 counts a call more than rank 1
 * now, the next call tells both so, and neither hangs.
 *
 * Without this test, the steps of two calls could mix: wrong numbers, or a wait
 * for ever.
 */
#include "base/compiler.h"
#include "coll/state.h"
#include "job/ctx.h"
#include "dtensor.h"
#include "tests/support/gate.h"
#include "tests/support/job.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

enum { CALLS_BEFORE = 3 };

static struct gate late;          /* before rank 1                            */

static const struct dtensor_call sum = {
    .coll = DTENSOR_ALLREDUCE, .count = 4, .dtype = DTENSOR_I32,
    .op = DTENSOR_SUM
};

struct waiter {
    const struct dtensor_mesh *mesh;
    struct dtensor_error err;
    int rc;
};

static void *wait_in_barrier(void *arg)
{
    struct waiter *waiter = arg;

    waiter->rc = dtensor_barrier(waiter->mesh, &waiter->err);
    return NULL;
}

static int reduce(struct job *job, const struct dtensor_mesh *mesh, bool starts)
{
    int32_t in[4] = { 1, 2, 3, 4 }, out[4];
    struct dtensor_request *request;

    return starts ? dtensor_call_start(mesh, &sum, in, out, &request, &job->err)
         : dtensor_allreduce(mesh, in, out, 4, DTENSOR_I32, DTENSOR_SUM,
                             &job->err);
}

/* Rank 0: its first thread calls while the second one waits. */
static void call_twice(struct job *job, const struct dtensor_mesh *mesh,
                       bool starts)
{
    struct waiter waiter = { .mesh = mesh };
    pthread_t thread;
    int rc;

    need(pthread_create(&thread, NULL, wait_in_barrier, &waiter) == 0, "%m");
    while (!atomic_load(&dtn_coll_of(job->ctx)->run))
        sched_yield();
    rc = reduce(job, mesh, starts);
    need(rc == DTENSOR_EINVAL && strstr(job->err.text, "in another thread"),
         "%s: %s", dtensor_errname(rc), job->err.text);
    gate_open(&late, 1);
    pthread_join(thread, NULL);
    need(waiter.rc == 0, "the barrier: %s", waiter.err.text);
}

static void rank_run(int rank, int n, void *arg)
{
    const bool *starts = arg;
    const struct dtensor_mesh *mesh;
    struct job made, *job = &made;
    int rc;

    job_open(job, rank, n, getenv("DTN_TEST_FILE"));
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    for (int i = 0; i < CALLS_BEFORE; i++)
        good(reduce(job, mesh, false));
    if (rank == 0) {
        call_twice(job, mesh, *starts);
    } else {
        gate_pass(&late);
        good(dtensor_barrier(mesh, &job->err));
    }
    rc = reduce(job, mesh, false);
    need(rc == DTENSOR_EMISMATCH, "the next call: %s: %s",
         dtensor_errname(rc), job->err.text);
    dtensor_fini(job->ctx);
}

int main(void)
{
    static const char *const wires[] = { "shm", "tcp" };
    const char *path;

    gate_make(&late);
    for (size_t i = 0; i < DTN_COUNT(wires); i++)
        for (int k = 0; k < 2; k++) {
            bool starts = k == 1;

            path = ranks_file(wires[i], 2, "op_timeout = 20s\n");
            setenv("DTN_TEST_FILE", path, 1);
            ok(ranks_run(2, 60, rank_run, &starts, NULL) == 0,
               "%s: %s by another thread is refused in words", wires[i],
               starts ? "a call started" : "a call");
            unlink(path);
        }
    return done();
}
