/* test_coll_failures.c - collectives that fail, by real processes
 *
 * One rank calls another collective than the others, is killed, or stays away,
 * over every transport of this machine: all ranks get the same error in time,
 * and no data is written.  `test_coll_failures rc` runs over one wire only.
 *
 * Without this test, a wrong call on one rank could write wrong bytes on the
 * others, and a death could hang them.
 */
#include "base/compiler.h"
#include "dtensor.h"
#include "tests/support/gate.h"
#include "tests/support/ranks.h"
#include "tests/support/rdma.h"
#include "tests/support/world.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

static void mismatched(int rank, int n, void *arg)
{
    const char *how = arg, *mine = "allreduce of 4 f32 sum", *theirs = mine;
    float in[4] = { 1, 2, 3, 4 }, out[24] = { -1 };
    struct world world;
    int odd = n - 1, rc;

    world_open(&world);
    if (strcmp(how, "count") == 0)
        theirs = "allreduce of 3 f32 sum";
    if (strcmp(how, "number") == 0)
        theirs = "allreduce of 4 f32 sum as call 2 over these ranks";
    if (strcmp(how, "reduction") == 0)
        theirs = "allreduce of 4 f32 max";
    if (strcmp(how, "collective") == 0)
        theirs = "allgather of 4 f32";
    if (strcmp(how, "number") == 0 && rank == odd)
        need(dtensor_allreduce(world.mesh, in, out, 4, DTENSOR_F32,
                               DTENSOR_BXOR, NULL) == DTENSOR_EINVAL,
             "bxor of floats");
    if (rank != odd || strcmp(how, "number") == 0)
        rc = dtensor_allreduce(world.mesh, in, out, 4, DTENSOR_F32,
                               DTENSOR_SUM, &world.err);
    else if (strcmp(how, "count") == 0)
        rc = dtensor_allreduce(world.mesh, in, out, 3, DTENSOR_F32,
                               DTENSOR_SUM, &world.err);
    else if (strcmp(how, "reduction") == 0)
        rc = dtensor_allreduce(world.mesh, in, out, 4, DTENSOR_F32,
                               DTENSOR_MAX, &world.err);
    else
        rc = dtensor_allgather(world.mesh, in, out, 4, DTENSOR_F32,
                               &world.err);
    need(rc == DTENSOR_EMISMATCH, "rc is %s: %s", dtensor_errname(rc),
         rc ? world.err.text : "");
    need(n > 4 || out[0] == -1, "data was written in spite of the mismatch");
    need(strstr(world.err.text, mine) && strstr(world.err.text, theirs)
         && strstr(world.err.text, "rank "), "both sides are not described: "
         "%s", world.err.text);
    rc = dtensor_barrier(world.mesh, NULL);
    need(rc == DTENSOR_EMISMATCH, "the context is not poisoned: %s",
         dtensor_errname(rc));
    dtensor_fini(world.ctx);
}

static void murdered(int rank, int n, void *arg)
{
    struct world world;
    int victim = n / 2, rc = 0;
    float x = 1;

    world_open(&world);
    for (int i = 0; i < 50 && rc == 0; i++)
        rc = dtensor_allreduce(world.mesh, &x, &x, 1, DTENSOR_F32,
                               DTENSOR_MAX, &world.err);
    need(rc == 0, "before the murder: %s", world.err.text);
    if (rank == victim)
        raise(SIGKILL);
    while (rc == 0)
        rc = dtensor_allreduce(world.mesh, &x, &x, 1, DTENSOR_F32,
                               DTENSOR_MAX, &world.err);
    need(rc == DTENSOR_EPEER && world.err.rank == victim
         && strstr(world.err.text, " died or left"),
         "got %s for rank %d: %s", dtensor_errname(rc), world.err.rank,
         world.err.text);
    dtensor_fini(world.ctx);
}

/* Rank 0 lives until the others have given up. */
static void absent(int rank, int n, void *arg)
{
    const struct gate *given_up = arg;
    struct world world;
    int rc;

    world_open(&world);
    if (rank == 0) {
        for (int i = 1; i < n; i++)
            gate_pass(given_up);
        _exit(0);
    }
    rc = dtensor_barrier(world.mesh, &world.err);
    gate_open(given_up, 1);
    need(rc == DTENSOR_ETIME || rc == DTENSOR_EABORT, "got %s: %s",
         dtensor_errname(rc), world.err.text);
    need(world.err.rank == 0, "blames rank %d: %s", world.err.rank,
         world.err.text);
    dtensor_fini(world.ctx);
}

#define PATIENT "connect_timeout = 20s\nop_timeout = 20s\n"
#define RING "[tuning]\nallreduce = 0-inf:ring\nallgather = 0-inf:ring\n"

static void run_failures(const char *wire)
{
    static const char *const how[] = { "count", "reduction", "collective",
                                       "number" };
    const char *absent_wire = strcmp(wire, "rc") == 0 ? rdma_absent() : NULL;
    struct gate given_up;
    int status[4], bad;

    if (absent_wire) {
        skip("failures over rc", absent_wire);
        return;
    }
    gate_make(&given_up);
    setenv("DTN_CLUSTER", ranks_file(wire, 4, PATIENT), 1);
    for (size_t i = 0; i < DTN_COUNT(how); i++) {
        bad = ranks_run(4, 30, mismatched, (void *)(uintptr_t)how[i], NULL);
        ok(bad == 0, "%s: another %s on one of 4 ranks is EMISMATCH before "
           "data moves", wire, how[i]);
    }
    unlink(getenv("DTN_CLUSTER"));
    setenv("DTN_CLUSTER",
           ranks_file(wire, 6, PATIENT RING), 1);
    for (size_t i = 0; i < DTN_COUNT(how); i++) {
        bad = ranks_run(6, 30, mismatched, (void *)(uintptr_t)how[i], NULL);
        ok(bad == 0, "%s: in a ring of 6 those who never meet the rank with "
           "another %s say the same", wire, how[i]);
    }
    unlink(getenv("DTN_CLUSTER"));
    setenv("DTN_CLUSTER", ranks_file(wire, 4, PATIENT), 1);
    bad = ranks_run(4, 30, murdered, NULL, status);
    ok(bad == 1 && WIFSIGNALED(status[2]), "%s: rank 2 of 4 killed: EPEER for "
       "rank 2 on all others", wire);
    unlink(getenv("DTN_CLUSTER"));
    setenv("DTN_CLUSTER", ranks_file(wire, 4, "op_timeout = 2s\n"), 1);
    bad = ranks_run(4, 30, absent, &given_up, NULL);
    ok(bad == 0, "%s: rank 0 stays away: ETIME at op_timeout, naming rank 0",
       wire);
    unlink(getenv("DTN_CLUSTER"));
}

int main(int argc, char **argv)
{
    static const char *const wires[] = { "shm", "tcp", "rc" };

    for (size_t w = 0; w < DTN_COUNT(wires); w++)
        if (argc < 2 || strcmp(argv[1], wires[w]) == 0)
            run_failures(wires[w]);
    return done();
}
