/* test_simulate.c - collectives on machines that are only described
 *
 * dtensor_simulate() by its contract: events and critical path fit the time,
 * two calls at once share links, topology, noise and slow ranks act, and what
 * makes no sense is refused and leaves the result alone.
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
    const struct dtensor_simulated call = { world, &allreduce, algorithm, 0 };
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
    const struct dtensor_simulated call = { world, &allreduce, "ring", 0 };
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

static void test_together(void)
{
    const struct dtensor_simulated calls[] = {
        { world, &allreduce, "ring", 0 }, { world, &allreduce, "ring", 0 },
        { world, &allreduce, "ring", 1e9 } };
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
    dtensor_simulation_fini(&one);
    dtensor_simulation_fini(&two);
    dtensor_simulation_fini(&late);
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
        { { .slow = "1:0.5" }, "factors of 1 and more" },
        { { .slow = "1:2;" }, "RANK:FACTOR" },
        { { .failed = "out:4" }, "from 0 to 3" },
        { { .failed = "in:0" }, "no way from rank" },
    };
    const struct dtensor_simulated none = { world, &allreduce, "turtle", 0 };
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
    test_machine();
    test_refused();
    dtensor_fini(ctx);
    return done();
}
