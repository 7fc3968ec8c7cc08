/* test_model.c - the predictions of algorithms agree with their schedules
 *
 * The schedules of all ranks are played with the constants of the model
 * (play.c).  The last clock is compared with the prediction, and the algorithm
 * that the model chooses with the one that was the fastest in the play.
 *
 * Without this test, the weights of an emitter could differ from what its
 * schedule does, and slow algorithms would be chosen.
 */
#include "base/compiler.h"
#include "base/reduce.h"
#include "cluster/cluster.h"
#include "coll/choose.h"
#include "job/ctx.h"
#include "job/group.h"
#include "mesh/mesh.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/sched/coll_cases.h"
#include "tests/sched/play.h"
#include "tests/support/ranks.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ tests */

struct tally {
    int n;
    double off[4000];             /* |log| of predicted against played        */
    double worst;
    double regret, worst_regret;
    int calls;
};

static void try_call(struct coll_case *c, const struct dtn_model *model,
                     struct tally *tally)
{
    double best = INFINITY, taken = 0, load[DTENSOR_NCOSTS], ns, off;
    struct dtn_choice pick;

    dtn_choose(&c->call, model, &pick);
    for (c->emitter = dtn_emitters; c->emitter->emit; c->emitter++) {
        if (!dtn_emitter_runs(c->emitter, &c->call, model)
            || c->emitter->needs == DTN_REACH_HOST)
            continue;
        ns = play_case(c, dtn_call_bytes(&c->call), model);
        dtn_model_load(model, &c->call, c->emitter, load);
        off = fabs(log(dtn_model_ns(model, load) / ns));
        tally->off[tally->n++] = off;
        if (off > tally->worst || off > log(3))
            note("%s %s, n %d, %zu bytes: predicted %.2f us, played %.2f",
                 dtn_coll_name(c->call.coll), c->emitter->name, c->call.n,
                 dtn_call_bytes(&c->call), dtn_model_ns(model, load) / 1e3,
                 ns / 1e3);
        tally->worst = fmax(tally->worst, off);
        best = fmin(best, ns);
        if (c->emitter == pick.emitter)
            taken = ns;
    }
    tally->calls++;
    tally->regret += taken / best - 1;
    if (taken / best > tally->worst_regret) {
        tally->worst_regret = taken / best;
        note("%s, n %d, %zu bytes: takes %s, %.2f us, the fastest %.2f",
             dtn_coll_name(c->call.coll), c->call.n, dtn_call_bytes(&c->call),
             pick.emitter->name, taken / 1e3, best / 1e3);
    }
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void test_wire(const char *name, enum dtn_reach reach,
                      enum dtn_wire inter)
{
    static const int ranks[] = { 2, 3, 4, 5, 8, 13, 16 };
    static const size_t sizes[] = { 64, 1 << 10, 8 << 10, 64 << 10, 1 << 20 };
    const struct dtensor_cluster cluster = {
        .transport = { .intra_node = DTN_WIRE_SHM, .inter_node = inter },
        .redistribute.max_scratch_bytes = SIZE_MAX
    };
    struct dtn_model model = { .reach = reach };
    static struct tally tally;
    struct coll_case c;

    memset(&tally, 0, sizeof tally);
    dtn_model_costs(&cluster, &model);
    model.ranks_per_device = 1;
    for (size_t i = 0; i < DTN_COUNT(ranks); i++)
        for (size_t s = 0; s < DTN_COUNT(sizes); s++)
            for (int coll = 0; coll < DTN_COLL_BARRIER; coll++) {
                memset(&c, 0, sizeof c);
                c.call = (struct dtn_call){ .coll = (enum dtn_coll)coll,
                    .n = ranks[i], .dtype = DTENSOR_U8, .count = sizes[s] };
                if (dtn_call_blocked(&c.call))
                    c.call.count /= (size_t)ranks[i];
                model.hosts = reach == DTN_REACH_MAP ? 1 : ranks[i];
                model.locals = reach == DTN_REACH_MAP ? ranks[i] : 1;
                try_call(&c, &model, &tally);
            }
    qsort(tally.off, (size_t)tally.n, sizeof tally.off[0], ascending);
    ok(exp(tally.off[tally.n / 2]) < 1.25, "%s: half of %d predictions are "
       "within %.2f of what is played", name, tally.n,
       exp(tally.off[tally.n / 2]));
    ok(exp(tally.worst) < 4, "%s: all are within %.2f", name,
       exp(tally.worst));
    ok(tally.regret / tally.calls < 0.1, "%s: what is taken is %.1f%% slower "
       "than the fastest in the mean of %d calls", name,
       100 * tally.regret / tally.calls, tally.calls);
    ok(tally.worst_regret < 2, "%s: and %.2f times at worst", name,
       tally.worst_regret);
}

/* ---------------------------------------------------------------- scratch */

static const struct layout {
    int n, hosts, locals;
    int host[CASE_RANKS_MAX];
} layouts[] = {
    { 1, 1, 1, { 0 } }, { 2, 1, 2, { 0 } }, { 3, 1, 3, { 0 } },
    { 4, 1, 4, { 0 } }, { 5, 1, 5, { 0 } }, { 8, 1, 8, { 0 } },
    { 13, 1, 13, { 0 } }, { 16, 1, 16, { 0 } },
    { 4, 2, 2, { 0, 0, 1, 1 } }, { 5, 2, 3, { 0, 0, 0, 1, 1 } },
    { 7, 3, 3, { 0, 0, 0, 1, 1, 1, 2 } },
    { 9, 3, 3, { 0, 0, 0, 1, 1, 1, 2, 2, 2 } },
    { 12, 3, 5, { 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2 } },
};

/* Ranks on the host with the fewest. */
static int layout_rails(const struct layout *layout)
{
    int ranks[CASE_RANKS_MAX] = { 0 }, least = layout->n;

    for (int r = 0; r < layout->n; r++)
        ranks[layout->host[r]]++;
    for (int k = 0; k < layout->hosts; k++)
        least = ranks[k] < least ? ranks[k] : least;
    return least;
}

/* The most that a rank's schedule takes. */
static double scratch_taken(struct coll_case *c)
{
    struct dtensor_error err;
    size_t most = 0;

    if (case_emit(c, &err) != 0)
        return -1;
    for (int r = 0; r < c->call.n; r++)
        if (dtn_sched_scratch(&c->scheds[r]) > most)
            most = dtn_sched_scratch(&c->scheds[r]);
    case_fini(c);
    return (double)most;
}

/* Rounding: of blocks to elements and lines, for each rank; of partial results,
 * to as many more as they are wide.
 */
static double scratch_slack(const struct coll_case *c)
{
    const struct dtn_reduction how = dtn_call_reduction(&c->call);
    const double ratio = (double)dtn_reduction_ratio(&how);

    return c->call.n == 1 ? 0 : 128 * fmax(2, ratio) * c->call.n;
}

/* What is said is no less than what is taken; what is chosen keeps to any bound
 * to which something is said to, or else takes no more than the least said.
 */
static int scratch_wrong(struct coll_case *c, struct dtn_model *model)
{
    static const double bounds[] = { 0, 4096, 100000, 1 << 20 };
    double said, taken, least = INFINITY;
    struct dtn_choice pick;
    int wrong = 0;

    for (c->emitter = dtn_emitters; c->emitter->emit; c->emitter++) {
        if (!dtn_emitter_runs(c->emitter, &c->call, model))
            continue;
        said = dtn_model_scratch(model, &c->call, c->emitter);
        taken = scratch_taken(c);
        least = fmin(least, said);
        if (taken < 0 || taken > said + scratch_slack(c)) {
            note("%s %s, n %d on %d hosts, %zu bytes of %s: %.0f bytes of "
                 "scratch, said %.0f", dtn_coll_name(c->call.coll),
                 c->emitter->name, c->call.n, model->hosts,
                 dtn_call_bytes(&c->call), dtensor_dtype_name(c->call.dtype),
                 taken, said);
            wrong++;
        }
    }
    for (size_t b = 0; b < DTN_COUNT(bounds); b++) {
        model->max_scratch = bounds[b];
        dtn_choose(&c->call, model, &pick);
        c->emitter = pick.emitter;
        taken = scratch_taken(c);
        if (taken > fmax(bounds[b], least) + scratch_slack(c)) {
            note("%s, n %d, %zu bytes: %s takes %.0f, more than %.0f; said "
                 "least %.0f", dtn_coll_name(c->call.coll), c->call.n,
                 dtn_call_bytes(&c->call), pick.emitter->name, taken,
                 bounds[b], least);
            wrong++;
        }
    }
    return wrong;
}

static void test_scratch(void)
{
    static const size_t sizes[] = { 3, 64, 1 << 10, 8 << 10, 64 << 10, 1 << 20,
                                    5 << 20 };
    static const struct {
        enum dtensor_dtype dtype;
        enum dtensor_redop op;
    } types[] = { { DTENSOR_U8, DTENSOR_SUM }, { DTENSOR_BF16, DTENSOR_SUM },
                  { DTENSOR_U8, DTENSOR_AVG } };
    static const enum dtn_reach reaches[] = { DTN_REACH_PUT, DTN_REACH_HOST,
                                              DTN_REACH_MAP };
    const struct dtensor_cluster cluster = {
        .transport = { .intra_node = DTN_WIRE_SHM, .inter_node = DTN_WIRE_RC }
    };
    int calls = 0, wrong = 0;

    for (size_t l = 0; l < DTN_COUNT(layouts); l++)
        for (size_t s = 0; s < DTN_COUNT(types) * DTN_COUNT(sizes); s++)
            for (int i = 0; i < 3 * DTN_COLL_BARRIER; i++) {
                const struct layout *layout = &layouts[l];
                struct dtn_model model = { .reach = reaches[i % 3],
                    .hosts = layout->hosts, .locals = layout->locals,
                    .uneven = layout->hosts * layout->locals != layout->n,
                    .rails = layout_rails(layout),
                    .ranks_per_device = 1 };
                static struct coll_case c;

                if ((model.reach == DTN_REACH_HOST) != (layout->hosts > 1))
                    continue;
                memset(&c, 0, sizeof c);
                c.call = (struct dtn_call){ .coll = (enum dtn_coll)(i / 3),
                    .n = layout->n, .dtype = types[s % 3].dtype,
                    .redop = types[s % 3].op, .count = sizes[s / 3],
                    .root = layout->n / 2,
                    .hosts = model.reach == DTN_REACH_HOST ? layout->host
                                                           : NULL };
                if (dtn_call_blocked(&c.call))
                    c.call.count = (c.call.count + 1) / (size_t)layout->n;
                dtn_model_costs(&cluster, &model);
                wrong += scratch_wrong(&c, &model);
                calls++;
            }
    ok(wrong == 0 && calls > 500, "scratch of %d calls: no more than said, "
       "none by one rank, and what is taken keeps to the bound", calls);
}

/* The same for all ranks: nothing but what all know is asked. */
static void test_same(void)
{
    const struct dtensor_cluster cluster = {
        .transport = { .intra_node = DTN_WIRE_SHM, .inter_node = DTN_WIRE_RC },
        .redistribute.max_scratch_bytes = SIZE_MAX
    };
    struct dtn_model model = { .reach = DTN_REACH_PUT, .hosts = 8, .locals = 1,
                               .ranks_per_device = 1 };
    struct dtn_choice mine, others;
    bool same = true;

    dtn_model_costs(&cluster, &model);
    for (int me = 0; me < 8; me++) {
        struct dtn_call call = { .coll = DTN_COLL_ALLREDUCE, .n = 8, .me = me,
                                 .dtype = DTENSOR_F32, .count = 5000 };

        dtn_choose(&call, &model, &mine);
        call.me = 0;
        dtn_choose(&call, &model, &others);
        same = same && mine.emitter == others.emitter;
    }
    ok(same, "every rank takes the same");
}

/* Beyond a cache bytes cost more; where ranks share CPUs hops do. */
static void test_growth(void)
{
    struct dtensor_cluster cluster = { .costs = { .cache_bytes = 1000,
        .uncached_percent = 300, .congestion_percent = 10 },
        .redistribute.max_scratch_bytes = SIZE_MAX,
        .transport = { .intra_node = DTN_WIRE_SHM,
                       .inter_node = DTN_WIRE_RC } };
    struct dtensor_ctx ctx = { .world.cluster = &cluster,
                               .cpus.ranks_per_cpu = 2 };
    struct dtn_host host = { .nranks = 1 };
    struct dtn_nodes nodes = { .hca = NULL };
    struct dtn_group group = { .ctx = &ctx, .n = 0 };
    struct dtn_model model, oversubscribed;
    int hosts[1] = { 0 };

    cluster.hosts = &host;
    cluster.nodes = &nodes;
    dtn_model_costs(&cluster, &model);
    ok(dtn_model_cache_miss_factor(&model, 1000) == 1
       && dtn_model_cache_miss_factor(&model, 2000) == 2
       && dtn_model_cache_miss_factor(&model, 4000) == 2.5,
       "of 2000 bytes with a cache for 1000 each costs twice as much");
    dtn_model_make(&group, hosts, &oversubscribed, NULL);
    ok(oversubscribed.ns[DTENSOR_COST_INTRA_HOPS]
               > model.ns[DTENSOR_COST_INTRA_HOPS] + 1000
           && oversubscribed.ns[DTENSOR_COST_FOLDED]
                  == 2 * model.ns[DTENSOR_COST_FOLDED],
       "two ranks for each CPU: hops take a switch, folds turns");
}

/* Constants of [tuning] are those of the model. */
static void test_constants(void)
{
    struct dtensor_cluster cluster = { .costs = { .intra_latency_ns = 7,
        .inter_message_ns = 11, .inter_bandwidth = 500000000,
        .fold_bandwidth = 2000000000 } };
    struct dtn_model model, plain;

    dtn_model_costs(&cluster, &model);
    memset(&cluster.costs, 0, sizeof cluster.costs);
    dtn_model_costs(&cluster, &plain);
    ok(model.ns[DTENSOR_COST_INTRA_HOPS] == 7
       && model.ns[DTENSOR_COST_INTER_MESSAGES] == 11
       && model.ns[DTENSOR_COST_INTER_BYTES] == 2
       && model.ns[DTENSOR_COST_FOLDED] == 0.5, "[tuning] sets constants");
    ok(model.ns[DTENSOR_COST_INTER_HOPS] == plain.ns[DTENSOR_COST_INTER_HOPS]
       && plain.ns[DTENSOR_COST_INTRA_HOPS] > 7, "what it does not set is "
       "built in");
}

/* The public question: all ways, least first, and one of them taken. */
static void test_ways(void)
{
    struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE, .count = 1000,
                                 .dtype = DTENSOR_F32 };
    const struct dtensor_mesh *mesh;
    struct dtensor_way ways[16], one[1];
    struct dtensor_error err;
    struct dtensor_ctx *ctx;
    int n = 0, taken = 0;
    bool sorted = true, sums = true;
    double sum;

    if (dtensor_init_offline(NULL, 16, 4, &ctx, &err) != 0
        || dtensor_mesh_find(ctx, "world", &mesh, &err) != 0
        || dtensor_call_ways(mesh, &call, ways, 16, &n, &err) != 0) {
        ok(false, "ways of an allreduce: %s", err.text);
        return;
    }
    for (int i = 0; i < n; i++) {
        sum = 0;
        for (int c = 0; c < DTENSOR_NCOSTS; c++)
            sum += ways[i].part_ns[c];
        sums = sums && fabs(sum - ways[i].ns) < 1e-6 * sum;
        sorted = sorted && (i == 0 || ways[i - 1].ns <= ways[i].ns);
        taken += ways[i].taken;
    }
    ok(n >= 7 && sorted && sums && taken == 1 && ways[0].taken,
       "%d ways for an allreduce over 4 hosts, least first, whose parts sum up",
       n);
    ok(dtensor_call_ways(mesh, &call, one, 1, &n, &err) == 0 && n >= 7
       && one[0].ns == ways[0].ns, "room for one gets the least of them");
    call.op = DTENSOR_BXOR;
    ok(dtensor_call_ways(mesh, &call, one, 1, NULL, &err) == DTENSOR_EINVAL
       && strstr(err.text, "bxor"), "a reduction that does not fit: %s",
       err.text);
    call.op = DTENSOR_SUM;
    ok(dtensor_call_ways(mesh, &call, one, 0, NULL, &err) == DTENSOR_EINVAL,
       "no room is EINVAL");
    dtensor_fini(ctx);
}

/* Can an allreduce of so many bytes be eager, over n ranks and this wire? */
static bool eager_over(const char *wire, int n, size_t bytes)
{
    struct dtensor_call call = { .coll = DTENSOR_ALLREDUCE, .count = bytes,
                                 .dtype = DTENSOR_U8 };
    const char *path = ranks_file(wire, n, NULL);
    const struct dtensor_mesh *mesh;
    struct dtensor_way ways[16];
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err;
    bool eager = false;
    int ways_n = 0;

    if (dtensor_init_offline(path, 0, 0, &ctx, &err) != 0
        || dtensor_mesh_find(ctx, "world", &mesh, &err) != 0
        || dtensor_call_ways(mesh, &call, ways, 16, &ways_n, &err) != 0)
        note("%s, %d ranks: %s", wire, n, err.text);
    for (int i = 0; i < ways_n; i++)
        eager |= strcmp(ways[i].name, "eager") == 0;
    dtensor_fini(ctx);
    remove(path);
    return eager;
}

/* What comes to a rank unasked is bounded: 1 MiB, or 4 KiB of each, or what
 * is faster than a load.
 */
static void test_eager(void)
{
    unsetenv("DTN_TEST_WIRE");    /* the wires are those named here           */
    ok(eager_over("tcp", 2, 65536) && eager_over("tcp", 16, 65536)
       && !eager_over("tcp", 2, 65537), "over tcp 64 KiB are eager");
    ok(eager_over("tcp", 64, 16384) && !eager_over("tcp", 64, 16385)
       && eager_over("tcp", 300, 4096) && !eager_over("tcp", 300, 4097),
       "for 64 ranks 16 KiB are, for 300 4");
    ok(eager_over("shm", 2, 2048) && !eager_over("shm", 2, 2049),
       "over shm 2 KiB are");
}

int main(void)
{
    test_ways();
    test_eager();
    test_wire("shm", DTN_REACH_MAP, DTN_WIRE_RC);
    test_wire("rc", DTN_REACH_PUT, DTN_WIRE_RC);
    test_wire("tcp", DTN_REACH_PUT, DTN_WIRE_TCP);
    test_scratch();
    test_same();
    test_constants();
    test_growth();
    return done();
}
