/* test_model_scale.c - the cost rules hold for as many ranks as there may be
 *
 * For every power of two of ranks, or of hosts, hosts of one rank, of eight, of
 * eight and four in turn, of six and of seven, the schedule of each algorithm
 * is simulated (sched/play.h) and compared with its rule in emitters.c.  `make
 * check` goes to 64 ranks; `make check-scale` goes to 131,072, and has hosts of
 * three, ten and twelve ranks, too.  It prints a table of the algorithms and a
 * line for each number of ranks, and names the algorithms that it leaves out
 * because their schedules have too many steps.
 * In the environment, DTN_SCALE_FROM is the least number of ranks,
 * DTN_SCALE_RANKS the largest, DTN_SCALE_STEPS the most steps, and
 * DTN_SCALE_ONLY part of the names of the algorithms.  DTN_SCALE_SIZES=all
 * takes more sizes, on both sides of each limit.
 *
 * Without this test, a rule that fits 16 ranks could be wrong at 100,000 and
 * choose an algorithm that is many times slower.
 */
#include "base/compiler.h"
#include "cluster/cluster.h"
#include "coll/choose.h"
#include "sched/call.h"
#include "sched/crossings.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "sched/play.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/sched/play.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EMITTERS_MAX 128
#define OFF_MAX 1.3               /* a rule that is off by more is wrong      */
#define HALF_MAX 1.05             /* half of the rules are off by less        */
#define SLOWER_MAX 1.1            /* rails take no longer than what there was */
#define STEPS_MAX (1 << 22)       /* that are simulated of a call             */
#define BLOCKS_FROM 2048          /* ranks from which on sizes are of blocks  */

/* How far the rule of an emitter is off. */
struct fit {
    int calls, beyond;            /* off by more than OFF_MAX                 */
    int left_out;                 /* calls that have too many steps           */
    int left_from;                /* ranks of the first of them               */
    double left_steps;            /* its steps                                */
    int most;                     /* ranks                                    */
    double worst;                 /* predicted / simulated                    */
    int n, hosts;                 /* of the worst                             */
    size_t bytes;
};

/* What is simulated, and how far the rules are off. */
struct scale {
    int ranks_from, ranks_max, n, capacity, calls, regrets;
    double steps_max;             /* of a call                                */
    const char *only;             /* part of the names of algorithms          */
    double *off;                  /* [n] |log| of predicted against simulated */
    int beyond;                   /* off by more than OFF_MAX                 */
    double worst, regret, worst_regret;
    int rails, slower;            /* calls by rails, and those of them that   */
                                  /* take longer than without                 */
    double worst_slower;          /* so many times as long                    */
    bool prints;
    bool all_sizes;               /* not only some                            */
    struct fit fit[EMITTERS_MAX]; /* by the place in dtn_emitters             */
};

/* Steps of the last rank, which is no root; 0: it cannot be made. */
static double steps_of(struct played *asked)
{
    struct dtensor_error err;
    struct dtn_sched sched;
    double steps;

    if (played_emit(asked, asked->call.n - 1, &sched, &err) != 0)
        return 0;
    steps = sched.nsteps;
    dtn_sched_fini(&sched);
    return steps;
}

/* The time in ns, by one host if all do the same; -1: *steps are too many. */
static double simulated(struct played *asked, const struct dtn_model *model,
                        double steps_max, double *steps)
{
    struct dtn_play_job job = { .n = asked->call.n, .emit = played_emit,
        .arg = asked, .stretch = dtn_model_cache_miss_factor(
            model, (double)dtn_call_bytes(&asked->call)) };
    struct dtn_play_result result = { .ns = -1 };
    struct dtn_play_machine machine;
    struct dtensor_error err;
    bool repeats = false;

    *steps = steps_of(asked) * model->locals;
    if (*steps > steps_max)
        return -1;
    if (!model->uneven
        && dtn_play_repeats(&job, model->locals, &repeats, &err) == 0
        && repeats)
        job.period = model->locals;
    else
        *steps *= model->hosts;
    if (*steps > steps_max)
        return -1;
    dtn_play_machine_of(model, &machine);
    machine.ranks = asked->call.n;
    if (dtn_play(&machine, &job, 1, NULL, &result, &err) != 0)
        note("%s %s, n %d: %s", dtn_coll_name(asked->call.coll),
             asked->emitter->name, asked->call.n, err.text);
    return result.ns;
}

static void scale_note(struct scale *scale, const struct played *asked,
                       const struct dtn_model *model, double told, double ns)
{
    struct fit *fit = &scale->fit[asked->emitter - dtn_emitters];
    const double off = fabs(log(told / ns));
    const bool beyond = off > log(OFF_MAX);

    if (scale->n < scale->capacity)
        scale->off[scale->n++] = off;
    fit->calls++;
    fit->most = asked->call.n > fit->most ? asked->call.n : fit->most;
    fit->beyond += beyond;
    scale->beyond += beyond;
    if (beyond)
        note("%s %s, n %d on %d hosts, %zu bytes: predicted %.2f us, simulated "
             "%.2f, %.2f", dtn_coll_name(asked->call.coll),
             asked->emitter->name, asked->call.n, model->hosts,
             dtn_call_bytes(&asked->call), told / 1e3, ns / 1e3, told / ns);
    scale->worst = fmax(scale->worst, off);
    if (fit->worst > 0 && off <= fabs(log(fit->worst)))
        return;
    fit->worst = told / ns;
    fit->n = asked->call.n;
    fit->hosts = model->hosts;
    fit->bytes = dtn_call_bytes(&asked->call);
}

static void scale_table(const struct scale *scale)
{
    printf("# %-16s %-13s %6s %7s %6s %6s  %s\n", "collective", "algorithm",
           "calls", "ranks", "beyond", "worst", "at");
    for (int e = 0; dtn_emitters[e].emit; e++) {
        const struct fit *fit = &scale->fit[e];

        if (fit->calls > 0)
            printf("# %-16s %-13s %6d %7d %6d %6.2f  %d ranks on %d hosts, %zu "
                   "bytes\n", dtn_coll_name(dtn_emitters[e].coll),
                   dtn_emitters[e].name, fit->calls, fit->most, fit->beyond,
                   fit->worst, fit->n, fit->hosts, fit->bytes);
    }
}

/* Algorithms whose schedules are too long for a simulation. */
static void scale_left_out(const struct scale *scale)
{
    for (int e = 0; dtn_emitters[e].emit; e++) {
        const struct fit *fit = &scale->fit[e];

        if (fit->left_out > 0)
            note("left out: %s %s from %d ranks on, %d calls; the first has "
                 "%.0f steps, more than %.0f",
                 dtn_coll_name(dtn_emitters[e].coll), dtn_emitters[e].name,
                 fit->left_from, fit->left_out, fit->left_steps,
                 scale->steps_max);
    }
}

static void scale_leave(struct fit *fit, int n, double steps)
{
    if (fit->left_out++ > 0)
        return;
    fit->left_from = n;
    fit->left_steps = steps;
}

/* The times of a call by the algorithms that can make it. */
struct times {
    double best;                  /* simulated: the least                     */
    double taken_told, taken;     /* predicted and simulated of the choice    */
    double plain_told, plain;     /* predicted and simulated: of what would   */
                                  /* be taken if there were no rails          */
};

static void times_add(struct times *times, const struct dtn_emitter *emitter,
                      const struct dtn_emitter *pick, double told, double ns)
{
    times->best = fmin(times->best, ns);
    if (emitter == pick) {
        times->taken_told = told;
        times->taken = ns;
    }
    if (emitter->algorithm != DTN_ALG_RAILS && told < times->plain_told) {
        times->plain_told = told;
        times->plain = ns;
    }
}

/* Rails were chosen: are they faster than what was chosen before? */
static void scale_rails(struct scale *scale, const struct played *asked,
                        const struct dtn_emitter *pick,
                        const struct times *times)
{
    const double factor = times->taken / times->plain;
    const double promise = times->plain_told / times->taken_told;

    if (pick->algorithm != DTN_ALG_RAILS || isinf(times->plain))
        return;
    scale->rails++;
    scale->slower += factor > 1;
    scale->worst_slower = fmax(scale->worst_slower, factor);
    if (factor > SLOWER_MAX || (scale->prints && factor > 1))
        note("%s, n %d, %zu bytes: %s takes %.2f times as long as without "
             "rails, which was predicted to take %.2f times as long",
             dtn_coll_name(asked->call.coll), asked->call.n,
             dtn_call_bytes(&asked->call), pick->name, factor, promise);
}

static void scale_call(struct scale *scale, struct played *asked,
                       const struct dtn_model *model)
{
    struct times times = { INFINITY, INFINITY, INFINITY, INFINITY, INFINITY };
    double load[DTENSOR_NCOSTS], told, ns, steps, factor;
    struct dtn_choice pick;

    dtn_choose(&asked->call, model, &pick);
    for (asked->emitter = dtn_emitters; asked->emitter->emit;
         asked->emitter++) {
        if (!dtn_emitter_runs(asked->emitter, &asked->call, model)
            || !strstr(asked->emitter->name, scale->only))
            continue;
        ns = simulated(asked, model, scale->steps_max, &steps);
        if (ns < 0) {
            scale_leave(&scale->fit[asked->emitter - dtn_emitters],
                        asked->call.n, steps);
            continue;
        }
        dtn_model_load(model, &asked->call, asked->emitter, load);
        told = dtn_model_ns(model, load);
        scale_note(scale, asked, model, told, ns);
        times_add(&times, asked->emitter, pick.emitter, told, ns);
    }
    scale->calls++;
    if (isinf(times.taken))
        return;
    factor = times.taken / times.best;
    scale->regrets++;
    scale->regret += factor - 1;
    if (factor > fmax(scale->worst_regret, 1.2)
        || (scale->prints && factor > 1.3))
        note("%s, n %d on %d hosts, %zu bytes: takes %s, %.2f times the "
             "fastest", dtn_coll_name(asked->call.coll), asked->call.n,
             model->hosts, dtn_call_bytes(&asked->call), pick.emitter->name,
             factor);
    scale->worst_regret = fmax(scale->worst_regret, factor);
    scale_rails(scale, asked, pick.emitter, &times);
}

/* Ranks on the hosts: of two hosts one has `most`, the other `least`. */
struct placing { int most, least; };

/* The number of hosts. */
static int placing_fill(struct placing placing, int n, int host[])
{
    const int pair = placing.most + placing.least;

    for (int r = 0; r < n; r++)
        host[r] = 2 * (r / pair) + (r % pair >= placing.most);
    return n > 0 ? host[n - 1] + 1 : 0;
}

static void scale_ranks(struct scale *scale, struct dtn_model *model,
                        const struct dtn_transport_conf *conf, int n,
                        struct placing placing)
{
    static const size_t wholes[] = { 64, 8 << 10, 32 << 10, 128 << 10,
                                     1 << 20, 64 << 20 };
    static const size_t all[] = { 64, 512, 2 << 10, 4 << 10, 6 << 10, 8 << 10,
        16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20, 4 << 20,
        16 << 20, 64 << 20 };
    static const size_t blocks[] = { 8, 64 << 10, 8 << 20 };
    const bool in_blocks = n >= BLOCKS_FROM;
    const size_t *sizes = in_blocks ? blocks : scale->all_sizes ? all : wholes;
    const size_t nsizes = in_blocks ? DTN_COUNT(blocks)
                        : scale->all_sizes ? DTN_COUNT(all) : DTN_COUNT(wholes);
    int *host = malloc((size_t)n * sizeof *host);
    struct played asked;

    model->host = host;
    model->hosts = host ? placing_fill(placing, n, host) : 0;
    model->locals = placing.most;
    model->rails = placing.least;
    model->uneven = placing.most != placing.least;
    if (host)
        model->crossings = dtn_crossings_count(host, n, model->hosts,
                                               model->locals);
    model->reach = placing.most > 1 ? DTN_REACH_HOST : DTN_REACH_PUT;
    model->ranks_per_device = placing.most;
    model->eager_bytes = dtn_model_group_eager(model, conf, n);
    for (size_t s = 0; host && s < nsizes; s++)
        for (int coll = 0; coll <= DTN_COLL_BARRIER; coll++) {
            asked.call = (struct dtn_call){ .coll = (enum dtn_coll)coll,
                .n = n, .dtype = DTENSOR_U8, .count = sizes[s],
                .hosts = host, .eager_bytes = model->eager_bytes };
            if (dtn_call_blocked(&asked.call) && !in_blocks)
                asked.call.count /= (size_t)n;
            if (coll == DTN_COLL_BARRIER)
                asked.call.count = 0;
            if ((coll == DTN_COLL_BARRIER && s > 0)
                || (coll != DTN_COLL_BARRIER && asked.call.count == 0))
                continue;
            scale_call(scale, &asked, model);
        }
    free(host);
}

static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int left_out(const struct scale *scale)
{
    int left = 0;

    for (int e = 0; dtn_emitters[e].emit; e++)
        left += scale->fit[e].left_out;
    return left;
}

/* Over so many ranks, and what came of it. */
static void scale_row(struct scale *scale, struct dtn_model *model,
                      const struct dtn_transport_conf *conf, int n,
                      struct placing placing)
{
    const double begin = cpu_seconds(), worst = scale->worst;
    const int before = scale->n, beyond = scale->beyond;
    const int left = left_out(scale);

    scale->worst = 0;
    scale_ranks(scale, model, conf, n, placing);
    if (scale->prints) {
        printf("# %d ranks, %d on a host: %d played, %d beyond, %.2f at worst, "
               "%d left out, %.0f s of CPU\n", n, placing.most,
               scale->n - before, scale->beyond - beyond, exp(scale->worst),
               left_out(scale) - left, cpu_seconds() - begin);
        fflush(stdout);
    }
    scale->worst = fmax(scale->worst, worst);
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void test_scale(struct scale *scale, const char *name,
                       enum dtn_wire wire, struct placing placing)
{
    const struct dtensor_cluster cluster = {
        .transport = { .intra_node = DTN_WIRE_SHM, .inter_node = wire },
        .redistribute.max_scratch_bytes = SIZE_MAX
    };
    struct dtn_model model = { .hosts = 0 };

    scale->n = scale->calls = scale->beyond = scale->regrets = 0;
    scale->worst = scale->regret = scale->worst_regret = 0;
    scale->rails = scale->slower = 0;
    scale->worst_slower = 1;
    memset(scale->fit, 0, sizeof scale->fit);
    dtn_model_costs(&cluster, &model);
    model.incast_factor = 0;      /* no switch that loses time is simulated   */
    for (int n = placing.most + placing.least; n <= scale->ranks_max; n *= 2)
        if (n >= scale->ranks_from)
            scale_row(scale, &model, &cluster.transport, n, placing);
    if (scale->n == 0) {
        note("%s: no such numbers of ranks", name);
        return;
    }
    if (scale->prints) {
        scale_table(scale);
        scale_left_out(scale);
    }
    qsort(scale->off, (size_t)scale->n, sizeof scale->off[0], ascending);
    ok(scale->n > 0 && exp(scale->off[scale->n / 2]) < HALF_MAX, "%s, to %d "
       "ranks: half of %d predictions are within %.2f of what is simulated",
       name, scale->ranks_max, scale->n, exp(scale->off[scale->n / 2]));
    ok(scale->beyond == 0, "none is off by more than %.1f: %d; %.2f at worst",
       OFF_MAX, scale->beyond, exp(scale->worst));
    ok(100 * scale->regret / scale->regrets < 4 && scale->worst_regret < 1.7,
       "what is taken takes %.1f %% longer than the fastest in the mean, %.2f "
       "times at worst", 100 * scale->regret / scale->regrets,
       scale->worst_regret);
    if (placing.most > 1)
        ok(scale->worst_slower <= SLOWER_MAX, "of %d calls by rails %d are "
           "slower than without, %.2f times at worst", scale->rails,
           scale->slower, scale->worst_slower);
}

int main(void)
{
    static const struct {
        const char *name;
        struct placing placing;
        int networks;             /* in make check: rc and tcp, or rc         */
    } hosts[] = {
        { "one rank on a host", { 1, 1 }, 2 },
        { "eight ranks on a host", { 8, 8 }, 2 },
        { "eight or four", { 8, 4 }, 2 },
        { "six ranks on a host", { 6, 6 }, 1 },
        { "seven ranks on a host", { 7, 7 }, 1 },
        { "three ranks on a host", { 3, 3 }, 0 },
        { "ten ranks on a host", { 10, 10 }, 0 },
        { "twelve ranks on a host", { 12, 12 }, 0 },
    };
    const char *ranks = getenv("DTN_SCALE_RANKS");
    const char *from = getenv("DTN_SCALE_FROM");
    const char *steps = getenv("DTN_SCALE_STEPS");
    const char *only = getenv("DTN_SCALE_ONLY");
    struct scale scale = { .ranks_from = from ? atoi(from) : 0,
                           .ranks_max = ranks ? atoi(ranks) : 64,
                           .steps_max = steps ? atof(steps) : STEPS_MAX,
                           .capacity = 20000,
                           .prints = ranks != NULL,
                           .all_sizes = getenv("DTN_SCALE_SIZES") != NULL,
                           .only = only ? only : "" };

    scale.off = calloc((size_t)scale.capacity, sizeof *scale.off);
    if (!scale.off)
        return 1;
    for (size_t h = 0; h < DTN_COUNT(hosts); h++)
        for (int w = 0; w < (scale.prints ? 2 : hosts[h].networks); w++) {
            char name[40];

            snprintf(name, sizeof name, "%s, %s", w == 0 ? "rc" : "tcp",
                     hosts[h].name);
            test_scale(&scale, name, w == 0 ? DTN_WIRE_RC : DTN_WIRE_TCP,
                       hosts[h].placing);
        }
    free(scale.off);
    return done();
}
