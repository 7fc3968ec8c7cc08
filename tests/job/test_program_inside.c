/* test_program_inside.c - programs that ranks of a job start
 *
 * Such a program inherits DTN_RANK.  While its rank is in the job, there is
 * nobody to join: it must be told so at once, with the process that it comes
 * from, and the job must go on.  After dtensor_fini(), after exec, or with
 * another DTN_JOB, programs that all ranks start are a job of their own.
 *
 * Without this test, a rank that starts another program of the library could
 * wait for it until connect_timeout, or a script that runs two programs in turn
 * could be refused.
 */
#include "base/wait.h"
#include "dtensor.h"
#include "tests/support/world.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, JOINS = 11, REFUSED = 12, LATE = 13 };

enum way { INSIDE, AFTER, EXEC, OTHER_JOB };

/* The program: who it is says how it ends. */
static int program(void)
{
    const int64_t start = dtn_now_ns();
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err;
    char words[80];
    int rc = dtensor_init(NULL, &ctx, &err);

    if (rc == 0) {
        dtensor_fini(ctx);
        return JOINS;
    }
    snprintf(words, sizeof words, "boot: rank %s of job ", getenv("DTN_RANK"));
    if (rc != DTENSOR_ECONF || !strstr(err.text, words)
        || !strstr(err.text, getenv("TEST_PARENT"))
        || !strstr(err.text, "another DTN_JOB")
        || !dtensor_should_report(NULL, &err)) {
        printf("# %s\n", err.text);
        return 1;
    }
    return dtn_now_ns() - start < INT64_C(5000000000) ? REFUSED : LATE;
}

/* Run it by a shell, as programs do. */
static int program_start(void)
{
    char path[400], command[440];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    int status;

    need(n > 0, "no path");
    path[n] = '\0';
    snprintf(command, sizeof command, "'%s' inside; exit $?", path);
    status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void parent(int rank, int n, void *arg)
{
    const enum way way = *(const enum way *)arg;
    struct world world;
    char text[64];

    (void)n;
    snprintf(text, sizeof text, "is process %d", (int)getpid());
    setenv("TEST_PARENT", text, 1);
    world_open(&world);
    need(dtensor_barrier(world.mesh, &world.err) == 0, "%s", world.err.text);
    if (way == OTHER_JOB) {
        snprintf(text, sizeof text, "%s-inside", getenv("DTN_JOB"));
        setenv("DTN_JOB", text, 1);
    }
    if (way == AFTER)
        dtensor_fini(world.ctx);
    if (way == EXEC)
        execl("/proc/self/exe", "test_program_inside", "inside", NULL);
    if (way == INSIDE && rank == 1)
        need(program_start() == REFUSED, "it was not refused");
    if (way == AFTER || way == OTHER_JOB)
        need(program_start() == JOINS, "it did not join");
    if (way == AFTER)
        return;
    need(dtensor_barrier(world.mesh, &world.err) == 0, "%s", world.err.text);
    dtensor_fini(world.ctx);
}

static int parents_run(enum way way, int status[])
{
    int bad;

    setenv("DTN_CLUSTER", ranks_file("shm", RANKS, "connect_timeout = 30s\n"
                                     "dead_after = 20s\n"), 1);
    bad = ranks_run(RANKS, 30, parent, &way, status);
    unlink(getenv("DTN_CLUSTER"));
    return bad;
}

int main(int argc, char **argv)
{
    int status[RANKS] = { 0 };
    bool joined = true;

    (void)argv;
    if (argc > 1)
        return program();
    ok(parents_run(INSIDE, NULL) == 0, "a program that a rank starts is told "
       "at once, and the job goes on");
    ok(parents_run(AFTER, NULL) == 0, "programs that all ranks start after "
       "dtensor_fini() are a job");
    ok(parents_run(OTHER_JOB, NULL) == 0, "and those with another DTN_JOB");
    parents_run(EXEC, status);
    for (int r = 0; r < RANKS; r++)
        joined = joined && WIFEXITED(status[r])
              && WEXITSTATUS(status[r]) == JOINS;
    ok(joined, "and those that take the place of the ranks");
    return done();
}
