/* test_program_faults.c - what the program itself does to its job
 *
 * Rank 1 leaves from a signal handler in the middle of a call, is killed while
 * a forked child of it keeps all its sockets and memory open, or closes all its
 * descriptors between two calls.  The others must end with an error that names
 * it; none may wait for ever.  And a program whose timer interrupts every
 * system call must get the right values.
 *
 * Without this test, a child that outlives its parent could keep a dead rank
 * alive for its peers, and a profiler's timer could break a call.
 */
#include "dtensor.h"
#include "tests/support/world.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

enum { RANKS = 3, CULPRIT = 1, COUNT = 50000, STORM_US = 100 };

static int ends[2];              /* a pipe: its end tells children to leave */
static volatile sig_atomic_t alarms;

/* -------------------------------------------------- what rank 1 does ------ */

static void leave(int sig)
{
    (void)sig;
    _exit(0);
}

static void leave_in_a_call(struct world *world)
{
    const struct itimerval soon = { .it_value = { .tv_usec = 30000 } };

    (void)world;
    signal(SIGALRM, leave);
    need(setitimer(ITIMER_REAL, &soon, NULL) == 0, "setitimer: %m");
}

/* The child waits until the test has ended. */
static void leave_a_child(struct world *world)
{
    struct pollfd ended = { .fd = ends[0] };

    (void)world;
    if (fork() == 0) {
        close(ends[1]);
        poll(&ended, 1, 60000);
        _exit(0);
    }
    raise(SIGKILL);
}

static void close_all(struct world *world)
{
    (void)world;
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
}

static const struct fault {
    const char *what;
    void (*happens)(struct world *world);
} faults[] = {
    { "that leaves with exit(0) in the middle of a call", leave_in_a_call },
    { "that is killed while a child keeps its sockets", leave_a_child },
    { "that closes what the library opened", close_all },
};

/* Calls until one fails; those that succeed have the right value. */
static int call_until_error(struct world *world, float *buffer)
{
    int rc = 0;

    while (rc == 0) {
        for (int i = 0; i < COUNT; i++)
            buffer[i] = (float)world->rank;
        rc = dtensor_allreduce(world->mesh, buffer, buffer, COUNT, DTENSOR_F32,
                               DTENSOR_SUM, &world->err);
        need(rc != 0 || (buffer[0] == 3 && buffer[COUNT - 1] == 3),
             "the sum is %g", (double)buffer[0]);
    }
    return rc;
}

static void with_fault(int rank, int n, void *arg)
{
    const struct fault *fault = arg;
    struct world world;
    float *buffer = malloc(COUNT * sizeof *buffer);
    int rc;

    (void)n;
    world_open(&world);
    for (int i = 0; i < 3; i++)
        need(dtensor_barrier(world.mesh, &world.err) == 0, "%s",
             world.err.text);
    if (rank != CULPRIT)
        close(ends[1]);
    else
        fault->happens(&world);
    rc = call_until_error(&world, buffer);
    need(world.err.rank == CULPRIT
         && (rank != CULPRIT || strstr(world.err.text, "did not open")),
         "%s: %s", dtensor_errname(rc), world.err.text);
    free(buffer);
    dtensor_fini(world.ctx);
}

static void test_fault(const char *wire, const struct fault *fault)
{
    int status[RANKS];

    need(pipe(ends) == 0, "pipe: %m");
    ranks_run(RANKS, 30, with_fault, (void *)fault, status);
    ok(status[0] == 0 && status[2] == 0
       && (fault->happens != close_all || status[CULPRIT] == 0),
       "%s: a rank %s: the others end, and name it", wire, fault->what);
    close(ends[0]);
    close(ends[1]);
}

/* ---------------------------------------------------- a storm of signals -- */

static void count_alarm(int sig)
{
    (void)sig;
    alarms++;
}

static void in_a_storm(int rank, int n, void *arg)
{
    const struct sigaction action = { .sa_handler = count_alarm };
    const struct itimerval often = {
        { 0, STORM_US }, { 0, STORM_US }
    };
    static float buffer[COUNT];
    struct world world;

    (void)arg;
    need(sigaction(SIGALRM, &action, NULL) == 0
         && setitimer(ITIMER_REAL, &often, NULL) == 0, "setitimer: %m");
    world_open(&world);
    for (int count = 1; count <= COUNT; count *= 3) {
        for (int i = 0; i < count; i++)
            buffer[i] = (float)(rank + i);
        need(dtensor_allreduce(world.mesh, buffer, buffer, (size_t)count,
                               DTENSOR_F32, DTENSOR_SUM, &world.err) == 0,
             "%s", world.err.text);
        for (int i = 0; i < count; i++)
            need(buffer[i] == (float)(n * i + n * (n - 1) / 2),
                 "element %d is %g", i, (double)buffer[i]);
    }
    for (int i = 0; i < 50; i++)
        need(dtensor_barrier(world.mesh, &world.err) == 0, "%s",
             world.err.text);
    dtensor_fini(world.ctx);
    need(alarms > 10, "%d signals are no storm", (int)alarms);
}

static void run(const char *wire)
{
    char file[64];

    snprintf(file, sizeof file, "%s", ranks_file(wire, RANKS, NULL));
    setenv("DTN_CLUSTER", file, 1);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        test_fault(wire, &faults[i]);
    ok(ranks_run(RANKS, 30, in_a_storm, NULL, NULL) == 0,
       "%s: a signal every %d us, from the start to the end: right values",
       wire, STORM_US);
    unlink(file);
}

int main(void)
{
    run("shm");
    run("tcp");
    return done();
}
