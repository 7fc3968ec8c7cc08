/* test_persistent.c - persistent calls, by real processes
 *
 * Run over shared memory and TCP.  Allocations are counted by wrapping malloc()
 * and its kin: starting a persistent call again makes none.
 *
 * Without this test, the start of a persistent call could get slow without
 * anybody noticing, a second start could disturb the first, or an error could
 * name the call before it.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "dtensor.h"
#include "tests/coll/numbers.h"
#include "tests/support/allocations.h"
#include "tests/support/ranks.h"
#include "tests/support/world.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 4, LARGE = 100000 };

static int refused[2];            /* a pipe: a byte for each start refused    */

#define good(call) need((call) == 0, "%s", world->err.text)

/* Start it, and all but the last rank again, which is refused: it cannot be
 * over before the last has started it, who hears of theirs.  The refused start
 * counts among the calls over these ranks, so the last makes one too.
 */
static void start_twice(struct world *world,
                        struct dtensor_persistent *persistent,
                        struct dtensor_request **requestp, int32_t *out)
{
    const bool last = world->rank == world->n - 1;
    char byte = 0;

    for (int r = 0; last && r < world->n - 1; r++)
        need(read(refused[0], &byte, 1) == 1, "pipe: %m");
    good(dtensor_persistent_start(persistent, requestp, &world->err));
    if (last)
        need(dtensor_allreduce(world->mesh, NULL, out, LARGE, DTENSOR_I32,
                               DTENSOR_SUM, &world->err) == DTENSOR_EINVAL,
             "no buffer");
    else
        need(dtensor_persistent_start(persistent, requestp, &world->err)
             == DTENSOR_EINVAL && write(refused[1], &byte, 1) == 1,
             "started twice");
}

/* Starts after the first allocate nothing.  On a busy machine a rank that waits
 * long may allocate, for frames to other ranks: so it is said of the best of
 * five batches.
 */
static void persistent_repeat(struct world *world,
                              struct dtensor_persistent *const persistent[],
                              int n)
{
    long before = allocations, least = LONG_MAX;
    struct dtensor_request *request = NULL;

    need(before > 0, "the counter counts");
    for (int round = 1; round <= 50; round++) {
        for (int i = 0; i < n; i++) {
            good(dtensor_persistent_start(persistent[i], &request,
                                          &world->err));
            good(dtensor_wait(request, &world->err));
        }
        if (round % 10 != 0)
            continue;
        if (allocations - before < least)
            least = allocations - before;
        before = allocations;
    }
    need(least == 0, "%ld allocations in %d starts", least, 10 * n);
}

/* The words on the last call outlive it. */
static void destroy_last(struct world *world, struct dtensor_persistent *last)
{
    struct dtensor_request *request = NULL;
    char plan[200];

    good(dtensor_persistent_start(last, &request, &world->err));
    good(dtensor_wait(request, &world->err));
    snprintf(plan, sizeof plan, "%s", dtensor_last_plan(world->ctx));
    need(plan[0] != '\0', "a plan in words");
    dtensor_persistent_destroy(last);
    need(strcmp(dtensor_last_plan(world->ctx), plan) == 0,
         "the last plan is \"%s\", was \"%s\"", dtensor_last_plan(world->ctx),
         plan);
}

static void persistent_main(int rank, int n, void *arg)
{
    static const struct {
        enum dtensor_collective coll;
        size_t count;
        const char *name;             /* as dtensor_last_plan() begins        */
    } calls[] =
    {
        { DTENSOR_ALLREDUCE, 1, "allreduce " },
        { DTENSOR_ALLREDUCE, LARGE, "allreduce " },
        { DTENSOR_REDUCE_SCATTER, 3000, "reduce_scatter " },
        { DTENSOR_ALL_TO_ALL, 2000, "all_to_all " },
        { DTENSOR_GATHER, 5000, "gather " }, { DTENSOR_SCATTER, 700, "scatter " },
        { DTENSOR_BARRIER, 0, "barrier " }
    };
    enum { N = sizeof calls / sizeof calls[0] };
    struct dtensor_persistent *persistent[N] = { NULL };
    struct dtensor_request *request = NULL;
    struct world world_here, *world = &world_here;
    bool registered = arg != NULL;
    int32_t *in, *out;

    world_open(world);
    in = numbers(world->ctx, (size_t)n * LARGE, registered, rank);
    out = numbers(world->ctx, (size_t)n * LARGE, registered, 0);
    for (int i = 0; i < N; i++)
        good(dtensor_persistent_create(world->mesh, &(struct dtensor_call){
            .coll = calls[i].coll, .count = calls[i].count,
            .dtype = DTENSOR_I32 }, in, out, &persistent[i], &world->err));
    for (int i = 0; i < N; i++) {
        good(dtensor_persistent_start(persistent[i], &request, &world->err));
        good(dtensor_wait(request, &world->err));
        need(strncmp(dtensor_last_plan(world->ctx), calls[i].name,
                     strlen(calls[i].name)) == 0, "the last plan is \"%s\"",
             dtensor_last_plan(world->ctx));
    }
    persistent_repeat(world, persistent, N);
    memset(out, 0, LARGE * sizeof *out);
    start_twice(world, persistent[1], &request, out);
    good(dtensor_wait(request, &world->err));
    for (int i = 0; i < LARGE; i++)
        need(out[i] == n * (n - 1) / 2 + n * i, "element %d is %d", i, out[i]);
    good(dtensor_barrier(world->mesh, &world->err));
    for (int i = 0; i < N; i++)
        destroy_last(world, persistent[i]);
    dtensor_persistent_destroy(NULL);
    if (!registered) {
        free(in);
        free(out);
    }
    dtensor_fini(world->ctx);
}

/* Two ranks have one CPU, and are told of two: who waits for a request must let
 * the other run, as who waits in a call does.  Best times of ten barriers.
 */
static void sharing_main(int rank, int n, void *arg)
{
    struct dtensor_call call = { .coll = DTENSOR_BARRIER };
    int64_t best[2] = { INT64_MAX, INT64_MAX };
    struct dtensor_persistent *barrier;
    struct dtensor_request *request;
    struct world world_here, *world = &world_here;
    cpu_set_t one;

    world_open(world);
    good(dtensor_persistent_create(world->mesh, &call, NULL, NULL, &barrier,
                                   &world->err));
    CPU_ZERO(&one);
    CPU_SET(*(int *)arg, &one);
    need(sched_setaffinity(0, sizeof one, &one) == 0, "affinity: %m");
    for (int round = 0; round < 200; round++) {
        const int64_t start = dtn_now_ns();
        int64_t took;

        for (int i = 0; i < 10 && round % 2 == 0; i++)
            good(dtensor_barrier(world->mesh, &world->err));
        for (int i = 0; i < 10 && round % 2 == 1; i++) {
            good(dtensor_persistent_start(barrier, &request, &world->err));
            good(dtensor_wait(request, &world->err));
        }
        took = dtn_now_ns() - start;
        best[round % 2] = took < best[round % 2] ? took : best[round % 2];
    }
    need(best[1] < 10 * best[0], "%.1f us started, %.1f us called",
         (double)best[1] / 1e4, (double)best[0] / 1e4);
    dtensor_persistent_destroy(barrier);
    dtensor_fini(world->ctx);
}

static void run_sharing(void)
{
    const char *claim = "who waits for a request lets a rank on its CPU run";
    const char *path = ranks_file("shm", 2, NULL);
    cpu_set_t usable;
    int cpu = 0;

    setenv("DTN_CLUSTER", path, 1);
    if (sched_getaffinity(0, sizeof usable, &usable) < 0 ||
        CPU_COUNT(&usable) < 2 || timeless()) {
        skip(claim, "one CPU, or one that is slow");
    } else {
        while (!CPU_ISSET(cpu, &usable))
            cpu++;
        ok(ranks_run(2, 60, sharing_main, &cpu, NULL) == 0, "%s", claim);
    }
    unlink(path);
}

int main(void)
{
    static const int ranks[] = { 1, 2, RANKS };

    if (pipe(refused) < 0)
        return 99;
    for (int registered = 0; registered < 2; registered++)
        for (size_t i = 0; i < DTN_COUNT(ranks); i++)
            numbers_run(persistent_main, ranks[i], registered,
                        "persistent calls allocate nothing");
    run_sharing();
    return done();
}
