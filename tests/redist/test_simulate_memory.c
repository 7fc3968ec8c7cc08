/* test_simulate_memory.c - simulations that run out of memory
 *
 * A call that repeats host by host, two calls at once with a visitor, noise and
 * slow ranks on a fat tree, and a plan of an exchange: in dtensor_simulate()
 * each allocation fails once, the first, the second and so on.  It has to
 * return ENOMEM, leave the result alone, and free all that it allocated.
 *
 * Without this test, a simulation for which memory is too small could keep what
 * it has, and the next one would have even less.
 */
#include "base/compiler.h"
#include "dtensor.h"
#include "tests/job/held.h"
#include "tests/support/tap.h"

#include <stdbool.h>

static const struct dtensor_call allreduce = { .coll = DTENSOR_ALLREDUCE,
                                               .dtype = DTENSOR_F32,
                                               .count = 5000 };
static const struct dtensor_call broadcast = { .coll = DTENSOR_BROADCAST,
                                               .dtype = DTENSOR_U8,
                                               .count = 70000 };

/* What is simulated. */
struct asked {
    const char *what;
    struct dtensor_machine machine;
    struct dtensor_simulated call[2];
    int n;
    dtensor_simulated_f *visit;
};

static dtensor_simulated_f see;

static void see(const struct dtensor_simulated_event *event, void *arg)
{
    (void)event;
    (void)arg;
}

/* Allocation `fails` fails.  False: it was not reached.  A failure that is no
 * error is one of memory that would only have saved time.
 */
static bool simulate_once(const struct asked *asked, long fails, bool *goodp)
{
    struct dtensor_simulation result = { .ns = -1 };
    const long before = nlive;
    struct dtensor_error err;
    bool reached;
    int rc;

    allocations_left = fails;
    rc = dtensor_simulate(&asked->machine, asked->call, asked->n, asked->visit,
                          NULL, &result, &err);
    reached = fails >= 0 && allocations_left < 0;
    allocations_left = -1;
    if (rc == 0)
        dtensor_simulation_fini(&result);
    *goodp = nlive == before && (rc == 0 || (rc == DTENSOR_ENOMEM &&
                                             result.ns == -1));
    if (!*goodp)
        note("%s, allocation %ld fails: %d, %ld blocks are kept", asked->what,
             fails, rc, nlive - before);
    return reached;
}

static void walk(const struct asked *asked)
{
    long fails = 0, wrong = 0;
    bool good;

    simulate_once(asked, -1, &good);           /* what the context keeps      */
    while (simulate_once(asked, fails++, &good))
        wrong += !good;
    ok(wrong == 0 && good, "%s: %ld allocations fail in turn", asked->what,
       fails - 1);
}

int main(void)
{
    struct dtensor_ctx *ctx = NULL;
    const struct dtensor_mesh *world = NULL;
    struct dtensor_spec from, to;
    struct dtensor_plan *plan = NULL;
    struct dtensor_error err;

    if (dtensor_init_offline(NULL, 8, 2, &ctx, &err) != 0 ||
        dtensor_mesh_find(ctx, "world", &world, &err) != 0 ||
        dtensor_spec_on(&from, world, "S(0)", DTENSOR_F32, 2,
                        (int64_t[]){ 70, 90 }, &err) != 0 ||
        dtensor_spec_on(&to, world, "S(1)", DTENSOR_F32, 2,
                        (int64_t[]){ 70, 90 }, &err) != 0 ||
        dtensor_plan_create(&from, &to, NULL, &plan, &err) != 0) {
        ok(false, "%s", err.text);
        return done();
    }

    const struct asked asked[] = {
        { "a call", { .topology = NULL }, { { .mesh = world,
          .call = &allreduce } }, 1, NULL },
        { "two calls", { .noise = "20000/40000", .slow = "3:4",
          .topology = "fat-tree:2/2x2" },
          { { .mesh = world, .call = &allreduce },
            { .mesh = world, .call = &broadcast, .start_ns = 100 } }, 2, see },
        { "a plan", { .gap_ns = 50 }, { { .plan = plan } }, 1, see },
    };

    for (size_t i = 0; i < DTN_COUNT(asked); i++)
        walk(&asked[i]);
    dtensor_plan_destroy(plan);
    dtensor_fini(ctx);
    return done();
}
