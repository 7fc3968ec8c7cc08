/* host_costs.c - what signals and bytes cost two ranks of one host
 *
 * Signals: a call of k signals to and fro takes k hops and a start, one of k
 * signals to the same peer k posts.  Bytes: rank 0 copies or folds, after
 * both ranks have written and read the memory in the order that the state of
 * its lines asks for (sched/caches.h).
 */
#include "base/compiler.h"
#include "base/copy.h"
#include "base/reduce.h"
#include "base/wait.h"
#include "coll/exec.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "sched/sched.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/coll/host_costs.h"
#include "tests/coll/timing.h"
#include "tests/support/ranks.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { RUNS = 101, TURNS = 17, REPEATS = 9, TRIES = 5 };
#define SMALL_BYTES 512           /* copies of up to these are repeated       */
#define SIGNALS_NS 1e7            /* for the runs of one measurement          */
#define STEP_NS 1e7
#define CHECK_NS 1e6              /* or, whether they still hold              */
#define SETTLE_NS 600             /* until a gate's stores are done           */
#define AREA_BYTES ((size_t)1 << 20)     /* of a source or a destination      */

/* -------------------------------------------------------------- signals --- */

/* The time of a schedule of this rank, which is not used any more. */
static double sched_ns(const struct host_areas *areas, struct dtn_sched *sched,
                       double enough_ns)
{
    struct dtn_exec *exec;
    double ns;

    need(dtn_sched_finish(sched, NULL) == 0
         && dtn_exec_create(&areas->mesh->group, sched, &exec, NULL) == 0,
         "plan");
    ns = timing_exec(areas->mesh, exec, areas->in, areas->out, 1, enough_ns);
    dtn_exec_destroy(exec);
    return ns;
}

/* A turn is `posts` signals from rank 0 to rank 1, then as many back, and so
 * on; or both post at the same time.
 */
struct signals {
    int turns, posts;             /* so many                                  */
    bool both;                    /* at the same time                         */
    enum dtn_tag tag;             /* of all of them                           */
    int names;                    /* buffers of rank 0 that READY names       */
    size_t bytes;                 /* of each buffer, which are used before    */
};

static double signals_ns(const struct host_areas *areas,
                         const struct signals *signals, double enough_ns)
{
    const int me = areas->me;
    struct dtn_sched sched;

    dtn_sched_init(&sched, "signals", 2, me, DTENSOR_U8, DTENSOR_SUM);
    sched.bytes[DTN_IN] = sched.bytes[DTN_OUT] = signals->bytes;
    sched.exposed[DTN_IN] = me == 0 && signals->names > 0;
    sched.exposed[DTN_OUT] = me == 0 && signals->names > 1;
    for (int t = 0; t < signals->turns; t++)
        for (int i = 0; i < signals->posts; i++) {
            if (signals->both || t % 2 == me)
                dtn_sched_signal(&sched, 1 - me, signals->tag);
            if (signals->both || t % 2 != me)
                dtn_sched_wait(&sched, 1 - me, signals->tag);
        }
    return sched_ns(areas, &sched, enough_ns);
}

/* The least of some: other processes only add to it. */
static double signals_least(const struct host_areas *areas,
                             struct signals signals)
{
    double least = INFINITY;

    if (signals.bytes == 0)
        signals.bytes = dtn_cache_size(0);
    for (int i = 0; i < TRIES; i++)
        least = fmin(least, signals_ns(areas, &signals, SIGNALS_NS));
    return least;
}

/* In the first turn both ranks begin at the same time; before later ones the
 * receiver has asked for the line, so the sender must take it back.
 */
static void signals_measure(const struct host_areas *areas,
                            struct host_costs *costs)
{
    const struct signals once = { .turns = 1, .posts = 1, .tag = DTN_TAG_DATA };
    struct signals s = once;
    const double one = signals_least(areas, once);
    double turns, posts, turn;

    s.turns = 0;
    costs->start_ns = signals_least(areas, s);
    s.turns = TURNS;
    turns = signals_least(areas, s);
    s = once;
    s.posts = TURNS;
    posts = signals_least(areas, s);
    turn = (turns - one) / (TURNS - 1);
    costs->post_ns = fmax(1, (posts - one) / (TURNS - 1));
    costs->latency_ns = fmax(1, turn - costs->post_ns);
    s = once;
    s.both = true;
    costs->crossed_ns = fmax(0, signals_least(areas, s) - one);
    for (int i = 0; i < DTN_CACHE_SIZES; i++) {
        s = once;
        s.bytes = dtn_cache_size(i);
        costs->early_ns[i] = fmax(0, turn + costs->start_ns
                                     - signals_least(areas, s));
    }
    s = once;
    s.tag = DTN_TAG_READY;
    for (s.names = 0; s.names < 3; s.names++)
        costs->caches.ready_ns[s.names] =
            fmax(0, signals_least(areas, s) - one);
}

double host_costs_early(const struct host_costs *costs, size_t bytes)
{
    int i = 0;

    while (i < DTN_CACHE_SIZES - 1 && bytes > dtn_cache_size(i))
        i++;
    return costs->early_ns[i];
}

/* ---------------------------------------------------------------- bytes --- */

static void gate(const struct host_areas *areas)
{
    timing_largest(areas->mesh, 0);
}

/* Both ranks use that memory of rank 0, in that order. */
static void lines_set(const struct host_areas *areas, unsigned char *mem,
                      size_t bytes, enum dtn_lines lines, int run)
{
    const int writer = lines == DTN_LINES_THERE;

    if (areas->me == writer)
        memset(mem, run, bytes);
    gate(areas);
    if (areas->me == 1 && lines == DTN_LINES_READ)
        timing_read(mem, bytes);
    gate(areas);
}

/* What rank 0 does with them, median in ns. */
static double bytes_ns(const struct host_areas *areas, size_t bytes,
                       enum dtn_lines src, enum dtn_lines dst, size_t between)
{
    double times[RUNS];
    int64_t begin;

    for (int r = 0; r < RUNS; r++) {
        lines_set(areas, areas->src, bytes, src, r);
        lines_set(areas, areas->dst, bytes, dst, r);
        memset(areas->other, r, between);
        gate(areas);
        begin = dtn_now_ns();
        while (dtn_now_ns() - begin < SETTLE_NS)
            ;
        begin = dtn_now_ns();
        if (areas->me == 0)
            dtn_copy(areas->dst, areas->src, bytes);
        atomic_thread_fence(memory_order_seq_cst);
        times[r] = (double)(dtn_now_ns() - begin);
        gate(areas);
    }
    return timing_largest(areas->mesh, timing_median(times, RUNS));
}

/* A copy whose lines are all away tells the two ends together: half each. */
static void states_measure(const struct host_areas *areas,
                           struct dtn_cache_costs *costs, int i)
{
    const enum dtn_lines here = DTN_LINES_HERE, away = DTN_LINES_AWAY;
    const size_t bytes = dtn_cache_size(i), much = 2 * areas->cache_bytes;
    const double copy = bytes_ns(areas, bytes, here, here, 0);
    const double far = bytes_ns(areas, bytes, here, here, much);
    const double half = fmax(0, far - copy) / 2;

    for (enum dtn_lines s = here; s < DTN_NLINES_STATES; s++) {
        const enum dtn_lines last = s % away;
        const size_t between = s < away ? 0 : much;
        const double all = s < away ? copy : far - half;

        costs->load[s][i] =
            fmax(0, bytes_ns(areas, bytes, last, here, between) - all);
        costs->store[s][i] =
            fmax(0, bytes_ns(areas, bytes, here, last, between) - all);
    }
}

/* Both ranks copy half of as much as their shared cache holds to the other
 * half: the time for each byte of this rank, median.
 */
static double beyond_ns(const struct host_areas *areas)
{
    const size_t half = areas->shared_bytes / 2;
    double times[REPEATS];
    int64_t begin;

    for (int r = 0; r < REPEATS; r++) {
        gate(areas);
        begin = dtn_now_ns();
        dtn_copy(areas->other + r % 2 * half,
                 areas->other + (1 - r % 2) * half, half);
        times[r] = (double)(dtn_now_ns() - begin);
    }
    return timing_largest(areas->mesh, timing_median(times, REPEATS))
           / (double)half;
}

/* ---------------------------------------------------------------- steps --- */

enum measured { NOTHING, OWN_COPY, OWN_FOLD, LOADS, PUTS, NAMES_ONLY };

/* Rank 0 does such a step of so many bytes, and tells rank 1. */
static double step_once(const struct host_areas *areas, enum measured what,
                        size_t bytes, int times)
{
    const int me = areas->me;
    const struct dtn_span out = { me, DTN_OUT, 0 }, in = { me, DTN_IN, 0 };
    struct dtn_sched sched;

    dtn_sched_init(&sched, "step", 2, me, DTENSOR_F32, DTENSOR_SUM);
    for (int s = DTN_IN; s <= DTN_OUT; s++) {
        sched.bytes[s] = s == DTN_IN && what == OWN_FOLD ? 2 * bytes : bytes;
        sched.exposed[s] = me == 1 && ((s == DTN_IN && what == LOADS)
                                       || (s == DTN_OUT && what > LOADS));
    }
    if (me == 1)
        dtn_sched_signal(&sched, 0, DTN_TAG_READY);
    else
        dtn_sched_wait(&sched, 1, DTN_TAG_READY);
    if (me == 0 && what == PUTS)
        dtn_sched_put(&sched, 1, (struct dtn_span){ 1, DTN_OUT, 0 }, in, bytes);
    for (int i = 0; me == 0 && i < times; i++)
        if (what == OWN_COPY || what == LOADS)
            dtn_sched_copy(&sched, out, (struct dtn_span){ what == LOADS,
                                                           DTN_IN, 0 }, bytes);
        else if (what == OWN_FOLD)
            dtn_sched_fold_slots(&sched, out, in, bytes, 2);
    if (me == 0)
        dtn_sched_signal(&sched, 1, DTN_TAG_DATA);
    else
        dtn_sched_wait(&sched, 0, DTN_TAG_DATA);
    return sched_ns(areas, &sched, STEP_NS);
}

/* The least of some. */
static double step_ns(const struct host_areas *areas, enum measured what,
                      size_t bytes, int times)
{
    double least = INFINITY;

    for (int i = 0; i < TRIES; i++)
        least = fmin(least, step_once(areas, what, bytes, times));
    return least;
}

/* Rank 0 loads or puts, and rank 1 too, or not: the least of some. */
static double crossing_ns(const struct host_areas *areas, enum measured what,
                          size_t bytes, bool both)
{
    const int me = areas->me, peer = 1 - me;
    const int src = what == LOADS ? peer : me;
    double least = INFINITY;

    for (int i = 0; i < TRIES; i++) {
        struct dtn_sched sched;

        dtn_sched_init(&sched, "crossing", 2, me, DTENSOR_U8, DTENSOR_SUM);
        for (int s = DTN_IN; s <= DTN_OUT; s++) {
            sched.bytes[s] = bytes;
            sched.exposed[s] = true;
        }
        dtn_sched_signal(&sched, peer, DTN_TAG_READY);
        dtn_sched_wait(&sched, peer, DTN_TAG_READY);
        if ((me == 0 || both) && what == LOADS)
            dtn_sched_copy(&sched, (struct dtn_span){ me, DTN_OUT, 0 },
                           (struct dtn_span){ src, DTN_IN, 0 }, bytes);
        else if (me == 0 || both)
            dtn_sched_put(&sched, peer, (struct dtn_span){ peer, DTN_OUT, 0 },
                          (struct dtn_span){ src, DTN_IN, 0 }, bytes);
        dtn_sched_signal(&sched, peer, DTN_TAG_DATA);
        dtn_sched_wait(&sched, peer, DTN_TAG_DATA);
        least = fmin(least, sched_ns(areas, &sched, STEP_NS));
    }
    return least;
}

/* How much longer it takes if both do so. */
static double both_ns(const struct host_areas *areas, enum measured what,
                      size_t bytes)
{
    return fmax(0, crossing_ns(areas, what, bytes, true)
                   - crossing_ns(areas, what, bytes, false));
}

/* Rank 0 sends data in a signal: the least of some. */
static double eager_ns(const struct host_areas *areas, size_t bytes)
{
    const int me = areas->me;
    const struct dtn_span here = { me, me == 0 ? DTN_IN : DTN_OUT, 0 };
    double least = INFINITY;

    for (int i = 0; i < TRIES; i++) {
        struct dtn_sched sched;

        dtn_sched_init(&sched, "eager", 2, me, DTENSOR_U8, DTENSOR_SUM);
        sched.bytes[here.space] = bytes;
        if (me == 0)
            dtn_sched_send_eager(&sched, 1, here, bytes);
        else
            dtn_sched_recv_eager(&sched, 0, here, bytes);
        least = fmin(least, sched_ns(areas, &sched, STEP_NS));
    }
    return least;
}

/* What it takes more than 64 bytes, without what the sender does. */
static void slots_measure(const struct host_areas *areas,
                          struct dtn_cache_costs *costs)
{
    const double *copy = costs->copy, *store = costs->store[DTN_LINES_READ];
    const double least = eager_ns(areas, dtn_cache_size(0));

    for (int i = 0; i < DTN_CACHE_SIZES; i++)
        costs->slot[i] = dtn_cache_size(i) > DTN_EAGER_MAX ? 0
            : fmax(0, eager_ns(areas, dtn_cache_size(i)) - least
                      - fmax(0, copy[i] - copy[0])
                      - fmax(0, store[i] - store[0]));
}

/* Of 2 MiB all lines are away.  Small copies are repeated, since the clock
 * counts tens of ns.
 */
static void bytes_measure(const struct host_areas *areas,
                          struct dtn_cache_costs *costs)
{
    costs->capacity = (double)areas->cache_bytes;
    costs->shared = (double)areas->shared_bytes;
    for (int i = 0; i < DTN_CACHE_SIZES; i++) {
        const size_t bytes = dtn_cache_size(i);
        const int times = bytes <= SMALL_BYTES ? REPEATS : 1;
        const double none = step_ns(areas, NOTHING, bytes, 1);
        const double names = step_ns(areas, NAMES_ONLY, bytes, 1);
        const double copy =
            fmax(0, step_ns(areas, OWN_COPY, bytes, times) - none) / times;
        double *load = &costs->load[DTN_LINES_THERE][i];
        double *put = &costs->store[DTN_LINES_READ][i];

        costs->copy[i] = copy;
        costs->fold[i] =
            fmax(0, step_ns(areas, OWN_FOLD, bytes, times) - none) / times;
        if (bytes <= AREA_BYTES) {
            states_measure(areas, costs, i);
        } else {
            *load = load[-1] * (double)bytes / (double)dtn_cache_size(i - 1);
            *put = put[-1] * (double)bytes / (double)dtn_cache_size(i - 1);
            load = &costs->load[DTN_LINES_AWAY_THERE][i];
            put = &costs->store[DTN_LINES_AWAY_READ][i];
        }
        *load = fmax(0, step_ns(areas, LOADS, bytes, 1) - names - copy);
        *put = fmax(0, step_ns(areas, PUTS, bytes, 1) - names - copy);
        costs->both_load[i] = both_ns(areas, LOADS, bytes);
        costs->both_store[i] = both_ns(areas, PUTS, bytes);
    }
    slots_measure(areas, costs);
    costs->beyond_ns =
        fmax(0, beyond_ns(areas) - costs->copy[DTN_CACHE_SIZES - 1]
                / (double)dtn_cache_size(DTN_CACHE_SIZES - 1)) / 2;
}

/* ---------------------------------------------------------------- whole --- */

/* Of both ranks that of rank 0. */
static unsigned char *area_of(struct dtensor_ctx *ctx,
                              const struct host_areas *areas, void *mem,
                              size_t bytes)
{
    struct dtn_transport *tp = ctx->peers[1 - areas->me].tp;
    struct dtn_remote mine, all[2];
    struct dtensor_error err;

    need(tp->ops->reg(tp, mem, bytes, &mine) == 0, "reg");
    need(dtensor_allgather(areas->mesh, &mine, all, sizeof mine, DTENSOR_U8,
                           &err) == 0, "%s", err.text);
    if (areas->me == 1)
        mem = tp->ops->map(tp, 0, all[0]);
    need(mem != NULL, "map");
    return mem;
}

/* Bytes of the cache of that level of the first CPU.  The kernel tells what a
 * guest has; sysconf() may tell ten times as much.
 */
static size_t cache_bytes(int level, size_t otherwise)
{
    char path[80];
    unsigned long kib = 0;
    FILE *file;

    snprintf(path, sizeof path,
             "/sys/devices/system/cpu/cpu0/cache/index%d/size", level);
    file = fopen(path, "r");
    if (file && fscanf(file, "%luK", &kib) != 1)
        kib = 0;
    if (file)
        fclose(file);
    return kib > 0 ? (size_t)kib << 10 : otherwise;
}

void host_costs_begin(const struct dtensor_mesh *mesh, struct dtensor_ctx *ctx,
                      void *in, void *out, struct host_costs *costs)
{
    struct host_areas *areas = &costs->areas;
    struct dtensor_error err;
    void *other;

    areas->mesh = mesh;
    areas->me = dtensor_rank(ctx);
    areas->cache_bytes = cache_bytes(2, AREA_BYTES);
    areas->shared_bytes = cache_bytes(3, 32 * AREA_BYTES);
    need(dtensor_alloc(ctx, areas->shared_bytes, &other, &err) == 0, "%s",
         err.text);
    areas->other = memset(other, 0, areas->shared_bytes);
    gate(areas);
    areas->in = in;
    areas->out = out;
    areas->src = area_of(ctx, areas, in, AREA_BYTES);
    areas->dst = area_of(ctx, areas, out, AREA_BYTES);
}

void host_costs_end(struct dtensor_ctx *ctx, struct host_costs *costs)
{
    dtensor_free(ctx, costs->areas.other);
}

/* The machine may change meanwhile, so that signals and bytes do not belong
 * together.
 */
void host_costs_measure(struct host_costs *costs)
{
    for (int i = 0; i < TRIES; i++) {
        costs->caches = (struct dtn_cache_costs){ .capacity = 0 };
        signals_measure(&costs->areas, costs);
        bytes_measure(&costs->areas, &costs->caches);
        if (host_costs_hold(costs))
            break;
    }
}

bool host_costs_hold(const struct host_costs *costs)
{
    const double turn = costs->post_ns + costs->latency_ns;
    const struct signals signals = { .turns = TURNS, .posts = 1,
                                     .tag = DTN_TAG_DATA };
    const double now = (signals_ns(&costs->areas, &signals, CHECK_NS)
                        - costs->start_ns) / TURNS;

    return fabs(log(now / turn)) < log(4 / 3.0);
}
