/* test_simulate.c - calls and plans on machines that are only described
 *
 * dtensor_simulate() by its contract: events and critical path fit the time,
 * two calls at once share links and have their own ends, a load says whose
 * memory it reads, topology, noise and slow ranks act, and what makes no sense
 * is refused and leaves the result alone.  All ranks of a plan
 * together move the bytes that dtensor_plan_bytes() counts.
 *
 * Without this test, a program could get times of another machine than the one
 * it describes.
 */
#include "dtensor.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static struct dtensor_ctx *ctx;
static const struct dtensor_mesh *world;
static const struct dtensor_call allreduce = { .coll = DTENSOR_ALLREDUCE,
                                               .dtype = DTENSOR_F32,
                                               .count = 1 << 18 };

static double simulated(const struct dtensor_machine *machine,
                        const char *algorithm, struct dtensor_error *err)
{
    const struct dtensor_simulated call = { world, &allreduce, algorithm, 0,
                                            NULL };
    struct dtensor_simulation result = { .ns = -1 };

    err->text[0] = '\0';
    dtensor_simulate(machine, &call, 1, NULL, NULL, &result, err);
    dtensor_simulation_fini(&result);
    return result.ns;
}

/* Events so far. */
struct seen {
    int events, wrong;
    double end_ns;
    uint64_t sent;
};

static dtensor_simulated_f see;

static void see(const struct dtensor_simulated_event *event, void *arg)
{
    struct seen *seen = arg;

    seen->events++;
    seen->wrong += event->end_ns < event->start_ns || event->rank < 0
                || event->rank >= 32 || event->peer < 0 || event->peer >= 32;
    seen->end_ns = fmax(seen->end_ns, event->end_ns);
    if (event->kind == DTENSOR_STEP_PUT || event->kind == DTENSOR_STEP_SIGNAL)
        seen->sent += event->bytes;
}

static void test_events(void)
{
    const struct dtensor_simulated call = { world, &allreduce, "ring", 0,
                                            NULL };
    struct dtensor_simulation whole, folded = { .ns = -1 };
    struct dtensor_error err;
    struct seen seen = { 0 };
    bool joined = true;

    if (dtensor_simulate(NULL, &call, 1, see, &seen, &whole, &err) != 0) {
        ok(false, "%s", err.text);
        return;
    }
    ok(seen.wrong == 0 && seen.end_ns == whole.ns && whole.ranks == 32
       && seen.sent == (uint64_t)2 * 31 * 4 * allreduce.count,
       "%d events of a ring of 32 ranks: each byte passes 31 links twice",
       seen.events);
    for (int i = 1; i < whole.npath; i++)
        joined = joined && whole.path[i].start_ns == whole.path[i - 1].end_ns;
    ok(whole.npath > 60 && joined && whole.path[0].start_ns == 0
       && whole.path[whole.npath - 1].end_ns == whole.ns,
       "the critical path has %d pieces without a gap", whole.npath);
    ok(whole.nlinks == 3 && whole.link[1].busy_ns > 0.5 * whole.ns
       && whole.link[1].busy_ns <= whole.ns, "%s:%d is busy for %.0f of %.0f",
       whole.link[1].kind, whole.link[1].number, whole.link[1].busy_ns,
       whole.ns);
    dtensor_simulate(NULL, &call, 1, NULL, NULL, &folded, &err);
    ok(folded.ranks == 8 && fabs(folded.ns - whole.ns) < 1e-6 * whole.ns,
       "one host of 8 ranks is played for all: %.0f ns", folded.ns);
    dtensor_simulation_fini(&whole);
    dtensor_simulation_fini(&folded);
}

/* Whose memory ranks load, as bits, and whose call that is. */
static dtensor_simulated_f see_loads;

static void see_loads(const struct dtensor_simulated_event *event, void *arg)
{
    if (event->kind == DTENSOR_STEP_LOAD)
        ((unsigned *)arg)[event->call] |= 1u << event->peer;
}

/* Ranks of one host load from each other. */
static void test_loads(void)
{
    static const int ranks[] = { 8, 9, 10, 11, 12, 13, 14, 15 }, n = 8;
    struct dtensor_simulated calls[2] = { { .call = &allreduce },
                                          { .call = &allreduce } };
    struct dtensor_simulation result = { .npath = 0 };
    struct dtensor_error err = { .text = "" };
    unsigned seen[2] = { 0, 0 };

    if (dtensor_mesh_create(ctx, 1, &n, "second", ranks, &calls[0].mesh, &err)
            != 0
        || dtensor_mesh_create(ctx, 1, &n, "first", NULL, &calls[1].mesh, &err)
               != 0
        || dtensor_simulate(NULL, calls, 2, see_loads, seen, &result, &err)
               != 0) {
        ok(false, "%s", err.text);
        return;
    }
    ok(seen[0] == 0xff00 && seen[1] == 0xff, "a load says whose memory it "
       "reads: ranks 8 to 15 of the first call (%x), 0 to 7 (%x)", seen[0],
       seen[1]);
    dtensor_simulation_fini(&result);
}

static void test_together(void)
{
    const struct dtensor_simulated calls[] = {
        { world, &allreduce, "ring", 0, NULL },
        { world, &allreduce, "ring", 0, NULL },
        { world, &allreduce, "ring", 1e9, NULL } };
    struct dtensor_simulation one, two, late;
    struct dtensor_error err;

    if (dtensor_simulate(NULL, calls, 1, NULL, NULL, &one, &err) != 0
        || dtensor_simulate(NULL, calls, 2, NULL, NULL, &two, &err) != 0
        || dtensor_simulate(NULL, calls + 1, 2, NULL, NULL, &late, &err)
               != 0) {
        ok(false, "%s", err.text);
        return;
    }
    ok(two.ns > 1.5 * one.ns && two.ns < 2.1 * one.ns, "two at once share the "
       "links: %.2f times as long", two.ns / one.ns);
    ok(fabs(late.ns - 1e9 - one.ns) < 1, "one after the other do not");
    ok(one.ncalls == 1 && one.call_ns[0] == one.ns && late.ncalls == 2
       && fabs(late.call_ns[0] - one.ns) < 1 && late.call_ns[1] == late.ns
       && late.path[0].call == 1, "each has its end: %.0f and %.0f ns",
       late.call_ns[0], late.call_ns[1]);
    dtensor_simulation_fini(&one);
    dtensor_simulation_fini(&two);
    dtensor_simulation_fini(&late);
}

/* Bytes that cross, whoever moves them. */
static dtensor_simulated_f see_bytes;

static void see_bytes(const struct dtensor_simulated_event *event, void *arg)
{
    if (event->kind == DTENSOR_STEP_PUT || event->kind == DTENSOR_STEP_SIGNAL
        || event->kind == DTENSOR_STEP_LOAD)
        *(uint64_t *)arg += event->bytes;
}

static int plan_make(const struct dtensor_mesh *from, const char *before,
                     const struct dtensor_mesh *to, const char *after,
                     enum dtensor_route route, struct dtensor_plan **planp,
                     struct dtensor_error *err)
{
    const struct dtensor_plan_options options = { .route = route };
    struct dtensor_spec src = { .mesh = from, .ndim = 2, .dtype = DTENSOR_F32,
                                .shape = { 192, 321 } };
    struct dtensor_spec dst = src;
    int rc;

    dst.mesh = to;
    rc = dtensor_placements_parse(from, before, 2, src.placement, err);
    if (rc == 0)
        rc = dtensor_placements_parse(to, after, 2, dst.placement, err);
    return rc == 0 ? dtensor_plan_create(&src, &dst, &options, planp, err) : rc;
}

/* Is there such a plan, and do its ranks move other bytes than it says? */
static bool plan_played(const struct dtensor_mesh *from, const char *before,
                        const struct dtensor_mesh *to, const char *after,
                        enum dtensor_route route, int *wrong)
{
    struct dtensor_simulated asked = { .mesh = NULL };
    struct dtensor_simulation result = { .npath = 0 };
    struct dtensor_error err = { .text = "" };
    struct dtensor_plan *plan = NULL;
    uint64_t moved = 0, said;

    if (plan_make(from, before, to, after, route, &plan, &err) != 0)
        return false;
    asked.plan = plan;
    said = dtensor_plan_bytes(plan, -1, -1, -1);
    if (dtensor_simulate(NULL, &asked, 1, see_bytes, &moved, &result, &err) != 0
        || moved != said) {
        ++*wrong;
        note("%s to %s, route %d: %llu bytes of %llu; %s", before, after,
             (int)route, (unsigned long long)moved, (unsigned long long)said,
             err.text);
    }
    dtensor_simulation_fini(&result);
    dtensor_plan_destroy(plan);
    return true;
}

static void test_plans(void)
{
    static const int sizes[] = { 8, 4 }, half[] = { 16 };
    static const int others[] = { 31, 30, 29, 28, 27, 26, 25, 24, 8, 9, 10, 11,
                                  12, 13, 14, 16 };
    static const struct {
        int from, to;
        const char *before, *after;
    } cases[] = {
        { 0, 0, "S(0)", "R" }, { 0, 0, "S(0)", "S(1)" }, { 0, 0, "P", "S(0)" },
        { 0, 0, "P", "R" }, { 0, 0, "R", "S(0)" },
        { 1, 1, "S(0),S(1)", "S(1),S(0)" }, { 1, 1, "P,S(0)", "S(0),R" },
        { 1, 1, "P,R", "R,S(1)" }, { 1, 1, "P,P", "R,R" },
        { 0, 2, "S(0)", "S(1)" }, { 2, 1, "S(0)", "S(1),R" },
    };
    const struct dtensor_mesh *meshes[3] = { world };
    int played = 0, wrong = 0;
    struct dtensor_error err;

    if (dtensor_mesh_create(ctx, 2, sizes, "a,b", NULL, &meshes[1], &err) != 0
        || dtensor_mesh_create(ctx, 1, half, "c", others, &meshes[2], &err)
               != 0) {
        ok(false, "%s", err.text);
        return;
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int route = 1; route < DTENSOR_NROUTES; route++)
            played += plan_played(meshes[cases[i].from], cases[i].before,
                                  meshes[cases[i].to], cases[i].after,
                                  (enum dtensor_route)route, &wrong);
    ok(played > 30 && wrong == 0, "%d plans, of one mesh and between meshes, "
       "move all their bytes", played);
}

/* A plan beside a call, and asked for wrongly. */
static void test_plan_and_call(void)
{
    struct dtensor_simulated asked[2] = {
        { world, &allreduce, "ring", 0, NULL }, { .mesh = NULL } };
    struct dtensor_simulation one, two, alone;
    struct dtensor_plan *plan = NULL;
    struct dtensor_error err;

    if (plan_make(world, "S(0)", world, "S(1)", DTENSOR_ROUTE_DIRECT, &plan,
                  &err) != 0) {
        ok(false, "%s", err.text);
        return;
    }
    ok(dtensor_simulate(NULL, asked, 2, NULL, NULL, &one, &err)
       == DTENSOR_EINVAL && strstr(err.text, "entry 1 has neither"), "%s",
       err.text);
    asked[1].plan = plan;
    asked[1].mesh = world;
    ok(dtensor_simulate(NULL, asked, 2, NULL, NULL, &one, &err)
       == DTENSOR_EINVAL && strstr(err.text, "entry 1 has a plan and a call"),
       "%s", err.text);
    asked[1].mesh = NULL;
    if (dtensor_simulate(NULL, asked, 1, NULL, NULL, &one, &err) != 0
        || dtensor_simulate(NULL, asked + 1, 1, NULL, NULL, &alone, &err) != 0
        || dtensor_simulate(NULL, asked, 2, NULL, NULL, &two, &err) != 0) {
        ok(false, "%s", err.text);
        return;
    }
    ok(two.ns > one.ns && two.ns < 1.01 * (one.ns + alone.ns),
       "a plan beside a call shares its links: %.0f, %.0f, together %.0f ns",
       one.ns, alone.ns, two.ns);
    dtensor_simulation_fini(&one);
    dtensor_simulation_fini(&alone);
    dtensor_simulation_fini(&two);
    dtensor_plan_destroy(plan);
}

static void test_machine(void)
{
    const struct dtensor_machine full = { .topology = "fat-tree:2/2x2" };
    const struct dtensor_machine thin = {
        .topology = "fat-tree:2/1x2,bandwidth=50M" };
    const struct dtensor_machine noisy = { .noise = "200000/400000" };
    const struct dtensor_machine slow = { .slow = "3:40,9:2" };
    const struct dtensor_machine gap = { .gap_ns = 50000, .notice_ns = 100 };
    const struct dtensor_machine down = { .topology = "fat-tree:2/2x2",
                                          .failed = "up1:0" };
    struct dtensor_error err;
    const double plain = simulated(NULL, "ring", &err);

    ok(simulated(&full, "ring", &err) > plain
       && simulated(&full, "ring", &err) < 1.2 * plain
       && simulated(&thin, "ring", &err) > 5 * plain,
       "switches add their latency; thin links between them their bandwidth");
    ok(simulated(&noisy, "ring", &err) > 1.05 * plain
       && simulated(&slow, "ring", &err) > 1.05 * plain
       && simulated(&gap, "ring", &err) > 1.2 * plain,
       "noise, slow CPUs and a gap between messages cost time");
    ok(simulated(&down, "ring", &err) >= simulated(&full, "ring", &err),
       "a link that is down does not make it faster");
}

static void test_refused(void)
{
    static const struct {
        struct dtensor_machine machine;
        const char *words;
    } wrong[] = {
        { { .topology = "fat-tree:2/1x1" }, "holds 2 hosts, the cluster has" },
        { { .topology = "fat-tree:2/1x2,bandwidth=0" }, "a bandwidth of 0" },
        { { .noise = "file:/nowhere" }, "cannot read" },
        { { .noise = "5" }, "LENGTH/EVERY" },
        { { .slow = "32:2" }, "ranks from 0 to 31" },
        { { .slow = "1:0.5" }, "factors of 1 to 1000000" },
        { { .slow = "1:1e300" }, "factors of 1 to 1000000" },
        { { .slow = "1:nan" }, "factors of 1 to 1000000" },
        { { .slow = "1:2;" }, "RANK:FACTOR" },
        { { .failed = "out:4" }, "from 0 to 3" },
        { { .failed = "in:0" }, "no way from rank" },
    };
    const struct dtensor_simulated none = { world, &allreduce, "turtle", 0,
                                            NULL };
    struct dtensor_simulation result = { .ns = 7 };
    struct dtensor_error err;
    int good = 0, n = (int)(sizeof wrong / sizeof wrong[0]);

    for (int i = 0; i < n; i++) {
        good += simulated(&wrong[i].machine, "ring", &err) == -1
             && strstr(err.text, wrong[i].words);
        note("%s", err.text);
    }
    ok(good == n, "%d machines that make no sense are refused", good);
    ok(dtensor_simulate(NULL, &none, 1, NULL, NULL, &result, &err)
           == DTENSOR_EINVAL && strstr(err.text, "turtle") && result.ns == 7
       && dtensor_simulate(NULL, &none, 0, NULL, NULL, &result, &err)
           == DTENSOR_EINVAL, "no such algorithm, no call: %s", err.text);
}

int main(void)
{
    struct dtensor_error err;

    if (dtensor_init_offline(NULL, 32, 8, &ctx, &err) != 0
        || dtensor_mesh_find(ctx, "world", &world, &err) != 0) {
        ok(false, "%s", err.text);
        return done();
    }
    test_events();
    test_together();
    test_loads();
    test_plans();
    test_plan_and_call();
    test_machine();
    test_refused();
    dtensor_fini(ctx);
    return done();
}
