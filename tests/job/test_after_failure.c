/* test_after_failure.c - calls after a failure and after fork()
 *
 * After a job has failed every call must return the same error at once, and in
 * a forked child every call is refused.
 *
 * Without this test, a program that goes on after an error could hang, or a
 * child could send signals in the name of its parent.
 */
#include "base/log.h"
#include "dtensor.h"
#include "tests/support/world.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static int add_up(struct world *world, struct dtensor_error *err)
{
    float x = 1;
    int rc = dtensor_allreduce(world->mesh, &x, &x, 1, DTENSOR_F32,
                               DTENSOR_SUM, err);

    need(rc != 0 || x == (float)world->n, "the sum is %g", (double)x);
    return rc;
}

static void after_failure(int rank, int n, void *arg)
{
    struct dtensor_error first, second;
    struct world world;
    int rc = 0;

    world_open(&world);
    for (int i = 0; i < 10 && rc == 0; i++)
        rc = add_up(&world, &first);
    need(rc == 0, "before: %s", first.text);
    need(strstr(dtensor_last_plan(world.ctx), " us"),
         "the plan has no costs: %s",
         dtensor_last_plan(world.ctx));
    if (rank == n - 1)
        raise(SIGKILL);
    while (rc == 0)
        rc = add_up(&world, &first);
    need(rc == DTENSOR_EPEER, "%s", first.text);
    need(strncmp(first.text, "rank ", 5) == 0 && strstr(first.text, "allreduce")
         && !strstr(first.text, " us"), "the first: %s", first.text);
    for (int i = 0; i < 3; i++) {
        need(add_up(&world, &second) == rc && second.rank == first.rank
             && strncmp(second.text, "context: an earlier call failed", 31) == 0
             && strstr(second.text, "(leave the job")
             && strstr(second.text, first.text), "the next: %s", second.text);
        need(dtensor_barrier(world.mesh, &second) == rc
             && strstr(second.text, first.text), "a barrier: %s", second.text);
    }
    dtensor_fini(world.ctx);
}

/* The child finds the call among those made before, and must not make it. */
static void child(struct world *world)
{
    struct dtensor_error err;
    bool good = add_up(world, &err) == DTENSOR_EINVAL
             && strstr(err.text, "forked")
             && dtensor_barrier(world->mesh, &err) == DTENSOR_EINVAL
             && strstr(err.text, "forked");

    dtensor_fini(world->ctx);
    _exit(good ? 0 : 1);
}

static void after_fork(int rank, int n, void *arg)
{
    struct world world;
    int status = 0;
    pid_t pid;

    world_open(&world);
    for (int i = 0; i < 10; i++)
        need(add_up(&world, &world.err) == 0, "before: %s", world.err.text);
    if (rank == 0) {
        pid = fork();
        if (pid == 0)
            child(&world);
        need(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
             "the child: %d", status);
    }
    for (int i = 0; i < 100; i++)
        need(add_up(&world, &world.err) == 0, "after: %s", world.err.text);
    need(dtensor_barrier(world.mesh, &world.err) == 0, "%s", world.err.text);
    dtensor_fini(world.ctx);
}

static void run(const char *wire)
{
    char file[64];

    snprintf(file, sizeof file, "%s", ranks_file(wire, 3, NULL));
    setenv("DTN_CLUSTER", file, 1);
    ok(ranks_run(3, 30, after_failure, NULL, NULL) == 1, "%s: the first error "
       "has no predictions, later ones say what came first", wire);
    ok(ranks_run(3, 30, after_fork, NULL, NULL) == 0,
       "%s: a forked child's call "
       "is EINVAL, its fini disturbs nobody", wire);
    unlink(file);
}

/* -------------------------------------------------------------- logging --- */

/* A pipe that nobody reads is full after 64 KiB. */
static void test_log(void)
{
    struct dtn_log log;
    int ends[2], saved = dup(2);
    char got[1 << 16] = "";
    ssize_t n;
    char *at;

    need(saved >= 0 && pipe(ends) == 0, "no pipe");
    dup2(ends[1], 2);
    setenv("DTN_LOG", "warn", 1);
    dtn_log_init(&log);
    alarm(20);
    for (int i = 0; i < 5000; i++)
        dtn_log(&log, DTN_LOG_WARN, "line %d of many, none of them short", i);
    n = read(ends[0], got, sizeof got - 1);
    dtn_log(&log, DTN_LOG_WARN, "after");
    ok(n > 4096, "5000 lines into a pipe that nobody reads do not block");
    memset(got, 0, sizeof got);
    for (n = 0; !strstr(got, "after"); )
        n += read(ends[0], got + n, sizeof got - 1 - (size_t)n);
    dup2(saved, 2);
    alarm(0);
    at = strstr(got, "lines were dropped");
    ok(at && strstr(at, "after"), "how many were dropped is said before the "
       "next: %.60s", at ? at - 5 : got);
    unsetenv("DTN_LOG");
}

int main(void)
{
    test_log();
    run("shm");
    run("tcp");
    return done();
}
