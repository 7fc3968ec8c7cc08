/* test_private_memory_death.c - a peer dies while its private memory is read
 *
 * Private memory of 4 MiB is read straight out of the peer's process
 * (process_vm_readv).  A timer kills the peer at a random time, during a read
 * as well as between calls.  The other rank must name the dead one soon, and
 * every call that succeeded must have brought the right bytes.
 *
 * Without this test, a death in the middle of a read could hang the reader, or
 * give it half of a message as a success.
 */
#include "dtensor.h"
#include "tests/support/world.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { COUNT = 1 << 20 };

static uint64_t seed = 20260101;

static int gather(struct world *world, int32_t *in, int32_t *out, int turn)
{
    for (size_t i = 0; i < COUNT; i++)
        in[i] = (int32_t)i + (world->rank + 1) * turn;
    return dtensor_allgather(world->mesh, in, out, COUNT, DTENSOR_I32,
                             &world->err);
}

static int reduce(struct world *world, int32_t *in, int32_t *out, int turn)
{
    for (size_t i = 0; i < COUNT; i++)
        in[i] = (int32_t)i + (world->rank + 1) * turn;
    return dtensor_allreduce(world->mesh, in, out, COUNT, DTENSOR_I32,
                             DTENSOR_SUM, &world->err);
}

static void check(const struct world *world, const int32_t *out, int turn,
                  bool sum)
{
    for (size_t i = 0; i < COUNT && sum; i++)
        need(out[i] == 2 * (int32_t)i + 3 * turn, "%zu of a sum is %d", i,
             (int)out[i]);
    for (size_t i = 0; i < COUNT && !sum; i++)
        need(out[i] == (int32_t)i + turn
             && out[COUNT + i] == (int32_t)i + 2 * turn, "%zu is %d and %d", i,
             (int)out[i], (int)out[COUNT + i]);
    (void)world;
}

/* Rank 1 dies after `us` of calls. */
static void bereaved(int rank, int n, void *arg)
{
    const int us = *(int *)arg;
    const bool sum = us % 2 != 0;
    struct itimerval timer = { .it_value = { .tv_usec = us } };
    int32_t *in = malloc(COUNT * sizeof *in);
    int32_t *out = malloc(2 * COUNT * sizeof *out);
    struct world world;
    uint64_t copied;
    int rc, turn = 1;

    (void)n;
    world_open(&world);
    need(in && out, "no memory");
    need(gather(&world, in, out, 0) == 0, "%s", world.err.text);
    copied = dtensor_copied_bytes(world.ctx);
    need(gather(&world, in, out, 0) == 0, "%s", world.err.text);
    if (dtensor_copied_bytes(world.ctx) - copied > COUNT)
        _exit(77);
    signal(SIGALRM, SIG_DFL);
    if (rank == 1)
        need(setitimer(ITIMER_REAL, &timer, NULL) == 0, "setitimer");
    do {
        rc = sum ? reduce(&world, in, out, turn) : gather(&world, in, out,
                                                          turn);
        if (rc == 0)
            check(&world, out, turn, sum);
    } while (rc == 0 && ++turn < 100000);
    need(rc == DTENSOR_EPEER && world.err.rank == 1
         && strstr(world.err.text, " died or left"), "after %d calls: %s, %s",
         turn, dtensor_errname(rc), world.err.text);
    rc = dtensor_barrier(world.mesh, &world.err);
    need(rc == DTENSOR_EPEER, "the context is good again");
    dtensor_fini(world.ctx);
    free(in);
    free(out);
}

int main(void)
{
    int status[2], bad, us, wrong = 0;

    note("seed %llu", (unsigned long long)seed);
    setenv("DTN_CLUSTER", ranks_file("shm", 2, "op_timeout = 20s\n"), 1);
    for (int i = 0; i < 12; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        us = 1 + (int)(seed >> 40) % (20000 << i % 4);
        bad = ranks_run(2, 60, bereaved, &us, status);
        if (WIFEXITED(status[0]) && WEXITSTATUS(status[0]) == 77) {
            skip("a fetch from a process that dies", "processes here may not "
                 "read each other's memory");
            unlink(getenv("DTN_CLUSTER"));
            return done();
        }
        if (bad != 1 || !WIFSIGNALED(status[1])) {
            note("killed after %d us", us);
            wrong++;
        }
    }
    unlink(getenv("DTN_CLUSTER"));
    ok(wrong == 0, "12 times a process dies that is fetched from: EPEER in "
       "words, and no wrong byte before");
    return done();
}
