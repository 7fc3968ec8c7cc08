/* test_mismatch.c - ranks that make different calls are told so, with values
 *
 * One of four ranks makes another call.  Every rank, also one that never meets
 * it, must end with EMISMATCH and read what both sides called: counts, types,
 * reductions, roots.  `op_timeout` is so long that nothing here can end by
 * it.  Over shared memory and tcp; up to 4 KiB, which are sent eagerly, and
 * more, which wait for READY.
 *
 * Without this test, ranks with different counts could overwrite memory, or
 * wait until the timeout with no cause named.
 */
#include "base/compiler.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/gate.h"
#include "tests/support/world.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#define N 4
#define ODD 3
#define LARGE 100000

static float in[N * 2 * LARGE], out[N * 2 * LARGE];

struct test {
    const char *name;
    struct dtensor_call call[2];  /* of the others, of the odd one            */
    const char *words[2];
};

#define SUM(n) { .coll = DTENSOR_ALLREDUCE, .count = n, .dtype = DTENSOR_F32,  \
                 .op = DTENSOR_SUM }
#define BROADCAST(n, r) { .coll = DTENSOR_BROADCAST, .root = r, .count = n,    \
                          .dtype = DTENSOR_F32 }
#define REDUCE(n, r) { .coll = DTENSOR_REDUCE, .root = r, .count = n,          \
                       .dtype = DTENSOR_F32, .op = DTENSOR_SUM }
#define GATHERV(c) { .coll = DTENSOR_ALLGATHER, .counts = c,                   \
                     .dtype = DTENSOR_F32 }

static const size_t listed[] = { 3, 0, 2, 5 }, other[] = { 3, 0, 2, 6 };

static const struct test tests[] = {
    { "count", { SUM(4), SUM(3) },
      { "allreduce of 4 f32 sum", "allreduce of 3 f32 sum" } },
    { "large count", { SUM(LARGE), SUM(LARGE + 1) },
      { "allreduce of 100000 f32 sum", "allreduce of 100001 f32 sum" } },
    { "dtype", { SUM(4), { .coll = DTENSOR_ALLREDUCE, .count = 4,
                           .dtype = DTENSOR_I32, .op = DTENSOR_SUM } },
      { "allreduce of 4 f32 sum", "allreduce of 4 i32 sum" } },
    { "reduction", { SUM(4), { .coll = DTENSOR_ALLREDUCE, .count = 4,
                               .dtype = DTENSOR_F32, .op = DTENSOR_MAX } },
      { "allreduce of 4 f32 sum", "allreduce of 4 f32 max" } },
    { "collective", { SUM(4), { .coll = DTENSOR_ALLGATHER, .count = 4,
                                .dtype = DTENSOR_F32 } },
      { "allreduce of 4 f32 sum", "allgather of 4 f32" } },
    { "list of counts", { GATHERV(listed), GATHERV(other) },
      { "allgather of 10 f32 in all, a count for each rank",
        "allgather of 11 f32 in all, a count for each rank" } },
    { "root of a small broadcast", { BROADCAST(4, 0), BROADCAST(4, ODD) },
      { "broadcast of 4 f32 with root 0",
        "broadcast of 4 f32 with root 3" } },
    { "root of a large broadcast",
      { BROADCAST(LARGE, 0), BROADCAST(LARGE, ODD) },
      { "broadcast of 100000 f32 with root 0",
        "broadcast of 100000 f32 with root 3" } },
    { "root of a large reduce", { REDUCE(LARGE, 0), REDUCE(LARGE, ODD) },
      { "reduce of 100000 f32 sum with root 0",
        "reduce of 100000 f32 sum with root 3" } },
};

static void mismatched(int rank, int n, void *arg)
{
    const struct test *test = arg;
    struct world world;
    int rc;

    (void)n;
    world_open(&world);
    rc = dtensor_call_run(world.mesh, &test->call[rank == ODD], in, out,
                          &world.err);
    for (int i = 0; i < 3 && rc == 0; i++)
        rc = dtensor_barrier(world.mesh, &world.err);
    need(rc == DTENSOR_EMISMATCH, "rc is %s: %s", dtensor_errname(rc),
         rc ? world.err.text : "");
    need(strstr(world.err.text, test->words[0])
         && strstr(world.err.text, test->words[1]),
         "not both sides are worded: %s", world.err.text);
    rc = dtensor_barrier(world.mesh, NULL);
    need(rc == DTENSOR_EMISMATCH, "the context is good again");
    dtensor_fini(world.ctx);
}

/* ------------------------------------------------------------- messages --- */

/* Rank 0 sends to `to`, rank 1 receives from 0. */
struct pair {
    const char *name;
    int to;
    size_t sent, received;
    enum dtensor_dtype type_sent, type_received;
    bool refused;                 /* a send before, for its buffer is NULL    */
    const char *words[2];
};

static const struct pair pairs[] = {
    { "count", 1, 4, 5, DTENSOR_F32, DTENSOR_F32, false,
      { "send of 4 f32 to rank 1", "recv of 5 f32 from rank 0 (a send and its "
        "recv need the same number and type of elements)" } },
    { "large count", 1, LARGE, LARGE + 1, DTENSOR_F32, DTENSOR_F32, false,
      { "send of 100000 f32 to rank 1", "recv of 100001 f32 from rank 0" } },
    { "large count for a small one", 1, LARGE, 4, DTENSOR_F32, DTENSOR_F32,
      false, { "send of 100000 f32 to rank 1", "recv of 4 f32 from rank 0" } },
    { "small count for a large one", 1, 4, LARGE, DTENSOR_F32, DTENSOR_F32,
      false, { "send of 4 f32 to rank 1", "recv of 100000 f32 from rank 0" } },
    { "dtype", 1, 4, 4, DTENSOR_F32, DTENSOR_I32, false,
      { "send of 4 f32 to rank 1", "recv of 4 i32 from rank 0" } },
    { "large dtype", 1, LARGE, LARGE, DTENSOR_F32, DTENSOR_I32, false,
      { "send of 100000 f32 to rank 1", "recv of 100000 i32 from rank 0" } },
    { "peer", 2, 4, 4, DTENSOR_F32, DTENSOR_F32, false,
      { "of 4 f32", "called barrier" } },
    { "number", 1, 4, 4, DTENSOR_F32, DTENSOR_F32, true,
      { "send of 4 f32 to rank 1 as message 2 between them",
        "recv of 4 f32 from rank 0 as message 1 between them" } },
    { "large number", 1, LARGE, LARGE, DTENSOR_F32, DTENSOR_F32, true,
      { "send of 100000 f32 to rank 1 as message 2 between them",
        "recv of 100000 f32 from rank 0 as message 1 between them" } },
};

static void paired(int rank, int n, void *arg)
{
    const struct pair *pair = arg;
    struct world world;
    int rc = 0;

    (void)n;
    world_open(&world);
    out[0] = -1;
    if (rank == 0 && pair->refused)
        need(dtensor_send(world.mesh, pair->to, NULL, pair->sent,
                          pair->type_sent, NULL) == DTENSOR_EINVAL, "sent");
    if (rank == 0)
        rc = dtensor_send(world.mesh, pair->to, in, pair->sent,
                          pair->type_sent, &world.err);
    if (rank == 1) {
        rc = dtensor_recv(world.mesh, 0, out, pair->received,
                          pair->type_received, &world.err);
        need(rc == DTENSOR_EMISMATCH && out[0] == -1, "received: %s, %g",
             dtensor_errname(rc), (double)out[0]);
    }
    for (int i = 0; i < 3 && rc == 0; i++)
        rc = dtensor_barrier(world.mesh, &world.err);
    need(rc == DTENSOR_EMISMATCH, "rc is %s: %s", dtensor_errname(rc),
         rc ? world.err.text : "");
    need(strstr(world.err.text, pair->words[0])
         && strstr(world.err.text, pair->words[1]),
         "not both sides are worded: %s", world.err.text);
    dtensor_fini(world.ctx);
}

static struct gate over;

/* Rank 1 receives what nobody sends; rank 0 lives until then, or dies. */
static void unsent(int rank, int n, void *arg)
{
    const bool dies = arg != NULL;
    struct world world;
    int rc;

    (void)n;
    world_open(&world);
    need(dtensor_barrier(world.mesh, &world.err) == 0, "%s", world.err.text);
    if (rank == 0 && dies)
        raise(SIGKILL);
    if (rank == 0)
        gate_pass(&over);
    if (rank == 1) {
        rc = dtensor_recv(world.mesh, 0, out, 4, DTENSOR_F32, &world.err);
        need(rc == (dies ? DTENSOR_EPEER : DTENSOR_ETIME), "rc is %s",
             dtensor_errname(rc));
        need(world.err.rank == 0 && strstr(world.err.text, "rank 0 on ")
             && strstr(world.err.text, dies ? "died" : "op_timeout"),
             "words: %s", world.err.text);
        gate_open(&over, !dies);
    }
    dtensor_fini(world.ctx);
}

static void test_messages(const char *wire)
{
    int status[2], bad;

    setenv("DTN_CLUSTER", ranks_file(wire, N, "op_timeout = 60s\n"), 1);
    for (size_t t = 0; t < DTN_COUNT(pairs); t++) {
        bad = ranks_run(N, 30, paired, (void *)(uintptr_t)&pairs[t], NULL);
        ok(bad == 0, "%s: send and recv with another %s: both in words on all",
           wire, pairs[t].name);
    }
    unlink(getenv("DTN_CLUSTER"));
    setenv("DTN_CLUSTER", ranks_file(wire, 2, "op_timeout = 2s\n"), 1);
    bad = ranks_run(2, 30, unsent, NULL, NULL);
    ok(bad == 0, "%s: a recv that nobody sends for ends by op_timeout", wire);
    bad = ranks_run(2, 30, unsent, status, status);
    ok(bad == 1 && WIFSIGNALED(status[0]), "%s: and when its peer dies", wire);
    unlink(getenv("DTN_CLUSTER"));
}

/* -------------------------------------------------------------- blocks --- */

/* What rank 1 does wrong in an all-to-all with counts of 1 and `large`: it
 * sends rank 0 one more, or expects one more, or both.
 */
struct uneven {
    const char *name;
    size_t count;                 /* of all other blocks                      */
    size_t sent, received;        /* more, to and from rank 0                 */
    bool both;                    /* rank 0 expects one less of each          */
    const char *words;            /* on all ranks                             */
};

static const struct uneven unevens[] = {
    { "more sent", 1, 1, 0, false, "rank 1 on localhost called all_to_allv of "
      "f32, 2 to rank 0, rank 0 on localhost called all_to_allv of f32, 1 from "
      "rank 1 (a block needs the same number and type of elements" },
    { "more expected", 1, 0, 1, false, "rank 1 on localhost called all_to_allv "
      "of f32, 2 from rank 0, rank 0 on localhost called all_to_allv of f32, 1 "
      "to rank 1 (a block" },
    { "more of both", 1, 1, 1, true, "rank 1 on localhost called all_to_allv "
      "of f32, 2 to rank 0, rank 0 on localhost called all_to_allv of f32, 0 "
      "from rank 1 (a block" },
    { "more sent of a large one", LARGE / N, 1, 0, false, "rank 1 on localhost "
      "called all_to_allv of f32, 25001 to rank 0, rank 0 on localhost called "
      "all_to_allv of f32, 25000 from rank 1 (a block" },
    { "more expected of a large one", LARGE / N, 0, 1, false, "rank 1 on "
      "localhost called all_to_allv of f32, 25001 from rank 0, rank 0 on "
      "localhost called all_to_allv of f32, 25000 to rank 1 (a block" }
};

/* Both ranks of the pair fail in this call, the others at the next. */
static void uneven(int rank, int n, void *arg)
{
    const struct uneven *test = arg;
    size_t sent[N], received[N];
    struct world world;
    int rc;

    for (int r = 0; r < n; r++)
        sent[r] = received[r] = test->count;
    if (rank == 1) {
        sent[0] += test->sent;
        received[0] += test->received;
    }
    if (rank == 0 && test->both)
        sent[1] = received[1] = 0;
    world_open(&world);
    rc = dtensor_all_to_allv(world.mesh, in, sent, out, received, DTENSOR_F32,
                             &world.err);
    need(rc == DTENSOR_EMISMATCH || (rank > 1 && rc == 0), "rc is %s",
         dtensor_errname(rc));
    while (rc == 0)
        rc = dtensor_barrier(world.mesh, &world.err);
    need(rc == DTENSOR_EMISMATCH && strstr(world.err.text, test->words),
         "words: %s: %s", dtensor_errname(rc), world.err.text);
    dtensor_fini(world.ctx);
}

static void test_blocks(const char *wire)
{
    int bad;

    setenv("DTN_CLUSTER", ranks_file(wire, N, "op_timeout = 60s\n"), 1);
    for (size_t t = 0; t < DTN_COUNT(unevens); t++) {
        bad = ranks_run(N, 30, uneven, (void *)(uintptr_t)&unevens[t], NULL);
        ok(bad == 0, "%s: all-to-all, %s: both ends fail in the call, and all "
           "name both", wire, unevens[t].name);
    }
    unlink(getenv("DTN_CLUSTER"));
}

/* ------------------------------------------------------- the first call --- */

/* Rank 1 broadcasts where rank 0 sums, before they have met. */
static void first(int rank, int n, void *arg)
{
    const struct dtensor_call call[2] = { SUM(4), BROADCAST(4, *(int *)arg) };
    struct world world;
    int rc;

    (void)n;
    world_open(&world);
    rc = dtensor_call_run(world.mesh, &call[rank], in, out, &world.err);
    need(rc == DTENSOR_EMISMATCH, "rc is %s: %s", dtensor_errname(rc),
         rc ? world.err.text : "");
    need(strstr(world.err.text, rank ? ": broadcast " : ": allreduce ")
         && strstr(world.err.text, ", call 1: rank 1 on localhost called "
                   "broadcast of 4 f32 with root ")
         && strstr(world.err.text, "rank 0 on localhost called allreduce of 4 "
                   "f32 sum"), "words: %s", world.err.text);
    dtensor_fini(world.ctx);
}

/* Rank 1 has two columns more. */
static void turned(int rank, int n, void *arg)
{
    const int64_t shape[2] = { 8, rank == 1 ? 8 : 6 };
    struct dtensor *from, *to;
    struct dtensor_spec spec;
    struct world world;
    int rc;

    (void)n;
    (void)arg;
    world_open(&world);
    need(dtensor_spec_init(&spec, world.ctx, "world", "S(0)", DTENSOR_F32, 2,
                           shape, &world.err) == 0
         && dtensor_zeros(&spec, &from, &world.err) == 0, "%s", world.err.text);
    rc = dtensor_redistribute(from, "R", &to, &world.err);
    need(rc == DTENSOR_EMISMATCH && world.err.rank == 1, "rc is %s",
         dtensor_errname(rc));
    need(strstr(world.err.text, ", call 1: rank 1 on localhost called "
                "redistribute of f32[8,8] S(0) -> R on world, rank 0 on "
                "localhost called redistribute of f32[8,6] S(0) -> R on world "
                "(all"), "words: %s", world.err.text);
    dtensor_destroy(from);
    dtensor_fini(world.ctx);
}

/* Rank 1 wants rows, the others the whole: both are an allreduce. */
static void apart(int rank, int n, void *arg)
{
    const int64_t shape[2] = { 8, 6 };
    const bool starts = *(bool *)arg;
    const char *want = rank == 1 ? "S(0)" : "R";
    struct dtensor_request *request = NULL;
    struct dtensor_plan *plan = NULL;
    struct dtensor *from, *to = NULL;
    struct dtensor_spec has, made;
    struct world world;
    int rc;

    (void)n;
    world_open(&world);
    need(dtensor_spec_init(&has, world.ctx, "world", "P", DTENSOR_F32, 2,
                           shape, &world.err) == 0
         && dtensor_spec_init(&made, world.ctx, "world", want, DTENSOR_F32, 2,
                              shape, &world.err) == 0
         && dtensor_zeros(&has, &from, &world.err) == 0
         && (!starts || dtensor_zeros(&made, &to, &world.err) == 0)
         && dtensor_plan_create(&has, &made, NULL, &plan, &world.err) == 0,
         "%s", world.err.text);
    rc = starts ? dtensor_plan_start(plan, from, to, &request, &world.err)
                : dtensor_redistribute(from, want, &to, &world.err);
    if (rc == 0 && starts)
        rc = dtensor_wait(request, &world.err);
    need(rc == DTENSOR_EMISMATCH && world.err.rank == 1, "rc is %s",
         dtensor_errname(rc));
    need(strstr(world.err.text, "rank 1 on localhost called redistribute of "
                "f32[8,6] P(sum) -> S(0) on world, rank 0 on localhost "
                "called redistribute of f32[8,6] P(sum) -> R on world (all"),
         "words: %s", world.err.text);
    dtensor_plan_destroy(plan);
    dtensor_destroy(to);
    dtensor_destroy(from);
    dtensor_fini(world.ctx);
}

static void test_apart(const char *wire)
{
    int bad;

    setenv("DTN_CLUSTER", ranks_file(wire, N, "op_timeout = 60s\n"), 1);
    for (int starts = 0; starts < 2; starts++) {
        bad = ranks_run(N, 30, apart, &(bool){ starts }, NULL);
        ok(bad == 0, "%s: redistributes P to R and P to S(0), %s: both in "
           "words", wire, starts ? "started" : "blocking");
    }
    unlink(getenv("DTN_CLUSTER"));
}

static void test_first(const char *wire)
{
    int bad;

    setenv("DTN_CLUSTER", ranks_file(wire, 2, "op_timeout = 60s\n"), 1);
    for (int root = 0; root < 2; root++) {
        bad = ranks_run(2, 30, first, &root, NULL);
        ok(bad == 0,
           "%s: allreduce against broadcast from rank %d as the first "
           "call: both in words on both", wire, root);
    }
    unlink(getenv("DTN_CLUSTER"));
    for (int n = 2; n <= N; n += 2) {
        setenv("DTN_CLUSTER", ranks_file(wire, n, "op_timeout = 60s\n"), 1);
        bad = ranks_run(n, 30, turned, NULL, NULL);
        ok(bad == 0, "%s: redistributes of other shapes over %d ranks: both "
           "with shape, placements and mesh", wire, n);
        unlink(getenv("DTN_CLUSTER"));
    }
}

static void test_wire(const char *wire)
{
    int bad;

    setenv("DTN_CLUSTER", ranks_file(wire, N, "op_timeout = 60s\n"), 1);
    for (size_t t = 0; t < DTN_COUNT(tests); t++) {
        bad = ranks_run(N, 30, mismatched, (void *)(uintptr_t)&tests[t], NULL);
        ok(bad == 0, "%s: another %s on rank %d of %d: both in words on all",
           wire, tests[t].name, ODD, N);
    }
    unlink(getenv("DTN_CLUSTER"));
}

int main(void)
{
    gate_make(&over);
    test_wire("shm");
    test_wire("tcp");
    test_first("shm");
    test_first("tcp");
    test_apart("shm");
    test_apart("tcp");
    test_messages("shm");
    test_messages("tcp");
    test_blocks("shm");
    test_blocks("tcp");
    return done();
}
