/* test_model_uneven.c - predictions for blocks of unequal sizes
 *
 * A list of equal counts must have the same prediction as one count; more
 * bytes never take less time; and for unequal blocks the prediction is within
 * a factor of 4 of the simulated time (play.c), as test_model requires for
 * equal ones.  What only one rank knows changes its predictions, never the
 * choice.
 *
 * Without this test, ranks could choose different algorithms for the same
 * call, which is a deadlock.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "cluster/cluster.h"
#include "coll/choose.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "transport/transport.h"
#include "dtensor.h"
#include "tests/sched/coll_cases.h"
#include "tests/sched/play.h"
#include "tests/support/ranks.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { SHAPES = 5 };

static struct dtn_model model_of(enum dtn_reach reach, enum dtn_wire inter,
                                 int n)
{
    const struct dtensor_cluster cluster = {
        .transport = { .intra_node = DTN_WIRE_SHM, .inter_node = inter },
        .redistribute.max_scratch_bytes = SIZE_MAX
    };
    struct dtn_model model = { .reach = reach };

    dtn_model_costs(&cluster, &model);
    model.tuning = NULL;
    model.ranks_per_device = 1;
    model.hosts = reach == DTN_REACH_MAP ? 1 : n;
    model.locals = reach == DTN_REACH_MAP ? n : 1;
    return model;
}

/* ns of a call as rank `me` is told, by an emitter; NULL: the one chosen. */
static double told_ns(const struct dtn_model *model,
                      const struct dtn_call *call,
                      const struct dtn_emitter *emitter)
{
    double load[DTENSOR_NCOSTS];
    struct dtn_choice pick;

    dtn_choose(call, model, &pick);
    if (!emitter)
        return pick.ns;
    dtn_model_own_load(model, call, emitter, load);
    return dtn_model_ns(model, load);
}

/* -------------------------------------------------------- alike, and growth */

static const enum dtn_coll colls[] = {
    DTN_COLL_ALLGATHER, DTN_COLL_REDUCE_SCATTER, DTN_COLL_ALL_TO_ALL,
    DTN_COLL_GATHER, DTN_COLL_SCATTER
};

/* Equal blocks, said one by one, by every emitter. */
static int alike_wrong(const struct dtn_model *model, int n, size_t count)
{
    size_t counts[CASE_RANKS_MAX];
    int wrong = 0;

    for (int r = 0; r < n; r++)
        counts[r] = count;
    for (const struct dtn_emitter *e = dtn_emitters; e->emit; e++) {
        struct dtn_call one = { .coll = e->coll, .n = n, .dtype = DTENSOR_U8,
                                .count = count };
        struct dtn_call listed = one;

        if (!dtn_call_blocked(&one) || !dtn_emitter_runs(e, &one, model))
            continue;
        listed.counts = counts;
        listed.recv_counts = e->coll == DTN_COLL_ALL_TO_ALL ? counts : NULL;
        if (told_ns(model, &one, e) != told_ns(model, &listed, e)) {
            note("%s %s, n %d, %zu bytes each: %.0f ns, listed %.0f",
                 dtn_coll_name(e->coll), e->name, n, count,
                 told_ns(model, &one, e), told_ns(model, &listed, e));
            wrong++;
        }
    }
    return wrong;
}

/* The counts of a shape: all in one, rising, every other, two sizes, random. */
static void shape_fill(int shape, size_t mean, int n, size_t counts[],
                       uint64_t *seed)
{
    for (int i = 0; i < n; i++)
        counts[i] = shape == 0 ? (i == n / 2 ? mean * (size_t)n : 0)
                  : shape == 1 ? 2 * mean * (size_t)(i + 1) / (size_t)(n + 1)
                  : shape == 2 ? (i % 2 ? 2 * mean : 0)
                  : shape == 3 ? (i % 4 == 1 ? 3 * mean + mean / 2 : mean / 8)
                  : rand_next(seed) % 1024 * mean / 512;
}

/* How many blocks go with a signal? */
static int small_blocks(const size_t counts[], int n)
{
    int small = 0;

    for (int r = 0; r < n; r++)
        small += counts[r] <= DTN_EAGER_MAX;
    return small;
}

/* A longer list of the same shape never takes less, while the same blocks go
 * with signals: to put a block of a little more than 4 KiB may be quicker.
 */
static int growth_wrong(const struct dtn_model *model, int n, int shape)
{
    size_t counts[CASE_RANKS_MAX];
    int wrong = 0;

    for (size_t c = 0; c < DTN_COUNT(colls); c++) {
        double last = 0, ns;
        int small = -1;

        for (size_t mean = 8; mean <= 4 << 20; mean *= 2) {
            uint64_t seed = 7;
            struct dtn_call call = { .coll = colls[c], .n = n, .me = n - 1,
                                     .dtype = DTENSOR_U8, .counts = counts };

            if (colls[c] == DTN_COLL_ALL_TO_ALL)
                call.recv_counts = counts;
            shape_fill(shape, mean, n, counts, &seed);
            ns = told_ns(model, &call, NULL);
            if (ns < last && small == small_blocks(counts, n)) {
                note("%s, n %d, shape %d: %zu bytes each take %.0f ns, half "
                     "of it %.0f", dtn_coll_name(colls[c]), n, shape, mean, ns,
                     last);
                wrong++;
            }
            last = ns;
            small = small_blocks(counts, n);
        }
    }
    return wrong;
}

/* ------------------------------------------------------------------- played */

struct tally {
    int n;
    double off[4000];             /* |log| of predicted against played        */
};

/* The most that any rank is told. */
static double most_told(const struct coll_case *c,
                        const struct dtn_model *model)
{
    double most = 0;

    for (int r = 0; r < c->call.n; r++) {
        const struct dtn_call call = case_call(c, r);

        most = fmax(most, told_ns(model, &call, c->emitter));
    }
    return most;
}

static void try_case(struct coll_case *c, const struct dtn_model *model,
                      int shape, size_t mean, struct tally *tally)
{
    const struct dtn_call first = case_call(c, 0);
    double told, played, off;

    if (!dtn_emitter_runs(c->emitter, &first, model)
        || c->emitter->needs == DTN_REACH_HOST)
        return;
    told = most_told(c, model);
    played = play_case(c, dtn_call_own_bytes(&first), model);
    off = fabs(log(told / played));
    tally->off[tally->n++] = off;
    if (off > log(4))
        note("%s %s, n %d, shape %d of %zu bytes: predicted %.2f us, played "
             "%.2f", dtn_coll_name(c->call.coll), c->emitter->name, c->call.n,
             shape, mean, told / 1e3, played / 1e3);
}

static void play_shapes(const struct dtn_model *model, int n, size_t mean,
                        struct tally *tally)
{
    static size_t counts[CASE_RANKS_MAX * CASE_RANKS_MAX];
    static struct coll_case c;

    for (int shape = 0; shape < SHAPES; shape++)
        for (c.emitter = dtn_emitters; c.emitter->emit; c.emitter++) {
            const enum dtn_coll coll = c.emitter->coll;
            uint64_t seed = mean + (uint64_t)n;

            c.call = (struct dtn_call){ .coll = coll, .n = n, .root = n / 3,
                                        .dtype = DTENSOR_U8, .counts = counts };
            if (coll != DTN_COLL_PAIRS && !dtn_call_blocked(&c.call))
                continue;
            for (int i = 0; i < n; i++)
                shape_fill(shape, mean, n, counts + i * n, &seed);
            try_case(&c, model, shape, mean, tally);
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
    static const int ranks[] = { 2, 3, 5, 7, 16 };
    static const size_t means[] = { 16, 1 << 10, 8 << 10, 128 << 10, 1 << 20 };
    static struct tally tally;
    int alike = 0, growth = 0;

    tally.n = 0;
    for (size_t i = 0; i < DTN_COUNT(ranks); i++) {
        const struct dtn_model model = model_of(reach, inter, ranks[i]);

        for (size_t m = 0; m < DTN_COUNT(means); m++) {
            alike += alike_wrong(&model, ranks[i], means[m]);
            play_shapes(&model, ranks[i], means[m], &tally);
        }
        for (int shape = 0; shape < SHAPES; shape++)
            growth += growth_wrong(&model, ranks[i], shape);
    }
    qsort(tally.off, (size_t)tally.n, sizeof tally.off[0], ascending);
    ok(alike == 0, "%s: counts that are all alike are predicted as one", name);
    ok(growth == 0, "%s: more bytes never take less", name);
    ok(tally.n > 500 && exp(tally.off[tally.n / 2]) < 1.5, "%s: half of %d "
       "predictions of unequal blocks are within %.2f of what is played", name,
       tally.n, exp(tally.off[tally.n / 2]));
    ok(exp(tally.off[tally.n - 1]) < 4, "%s: all are within %.2f", name,
       exp(tally.off[tally.n - 1]));
}

/* ------------------------------------------------------------------ choices */

/* Over 64 hosts large blocks go pairwise and small ones at once; a rank's own
 * counts, be they large or small, change what it is told only.
 */
static void test_choice(void)
{
    static const size_t said[] = { 0, 100, 4 << 20 };
    static const char *const wanted[] = { "put", "put", "pairwise" };
    const struct dtn_model model = model_of(DTN_REACH_PUT, DTN_WIRE_RC, 64);
    size_t small[64], large[64];
    double told[2];

    for (int r = 0; r < 64; r++) {
        small[r] = (size_t)r;
        large[r] = (size_t)r << 20;
    }
    for (size_t i = 0; i < DTN_COUNT(said); i++) {
        bool same = true;

        for (int me = 0; me < 64; me++) {
            const struct dtn_call call = { .coll = DTN_COLL_ALL_TO_ALL, .n = 64,
                .me = me, .dtype = DTENSOR_U8, .count = said[i],
                .counts = me % 2 ? small : large,
                .recv_counts = me % 3 ? small : large };
            struct dtn_choice pick;

            dtn_choose(&call, &model, &pick);
            same = same && strcmp(pick.emitter->name, wanted[i]) == 0;
            if (me == 1 || me == 2)
                told[me - 1] = pick.ns;
        }
        ok(same && told[1] > 100 * told[0], "blocks of about %zu bytes: all "
           "ranks take %s, and are told what theirs take (%.0f us and %.0f)",
           said[i], wanted[i], told[0] / 1e3, told[1] / 1e3);
    }
}

/* [tuning] names an algorithm from a size on: of what was said. */
static void test_tuned(void)
{
    static const struct dtn_tuning tuning[DTN_NTUNED] = {
        [DTN_TUNED_ALL_TO_ALL] = { .n = 1, .entry = {
            { .from_bytes = 1 << 20, .algorithm = DTN_ALG_PAIRWISE } } }
    };
    const size_t counts[4] = { 1, 2, 3, 4 };
    struct dtn_model model = model_of(DTN_REACH_PUT, DTN_WIRE_RC, 4);
    struct dtn_call call = { .coll = DTN_COLL_ALL_TO_ALL, .n = 4,
                             .dtype = DTENSOR_U8, .counts = counts,
                             .recv_counts = counts };
    struct dtn_choice without, with;

    model.tuning = tuning;
    dtn_choose(&call, &model, &without);
    call.count = 1 << 18;
    dtn_choose(&call, &model, &with);
    ok(!without.tuned && with.tuned
       && with.emitter->algorithm == DTN_ALG_PAIRWISE,
       "[tuning] goes by what the call says of its blocks");
}

/* --------------------------------------------------------------- real ranks */

#define good(call) need((call) == 0, "%s", err.text)

static double call_us(const struct dtensor_mesh *world,
                      const struct dtensor_call *call, const void *in,
                      void *out)
{
    struct dtensor_error err;
    double least = 1e9, us;

    for (int i = 0; i < 200; i++) {
        const int64_t begin = dtn_now_ns();

        good(dtensor_call_run(world, call, in, out, &err));
        us = (double)(dtn_now_ns() - begin) / 1e3;
        least = us < least ? us : least;
    }
    return least;
}

/* 64 KiB on 2 ranks, half of it for the other: told as of blocks that are
 * alike, and by dtensor_last_plan() too.  What it takes is only noted: the
 * machine may be busy.
 */
static void told_main(int rank, int n, void *arg)
{
    const size_t counts[2] = { 8192, 8192 };
    const size_t row[2] = { rank ? 700 : 30, rank ? 40 : 9000 };
    const size_t column[2] = { rank ? 9000 : 30, rank ? 40 : 700 };
    struct dtensor_call call = { .coll = DTENSOR_ALL_TO_ALL, .count = 8192,
                                 .dtype = DTENSOR_F32 };
    const struct dtensor_mesh *world;
    struct dtensor_way even, listed, own;
    struct dtensor_ctx *ctx;
    struct dtensor_error err;
    void *in, *out;
    char plan[160];
    double us;

    (void)n;
    (void)arg;
    good(dtensor_init(NULL, &ctx, &err));
    good(dtensor_mesh_find(ctx, "world", &world, &err));
    good(dtensor_alloc(ctx, 1 << 16, &in, &err));
    good(dtensor_alloc(ctx, 1 << 16, &out, &err));
    good(dtensor_call_ways(world, &call, &even, 1, NULL, &err));
    call = (struct dtensor_call){ .coll = DTENSOR_ALL_TO_ALL, .counts = counts,
                                  .recv_counts = counts, .dtype = DTENSOR_F32 };
    good(dtensor_call_ways(world, &call, &listed, 1, NULL, &err));
    need(listed.ns == even.ns, "told %.0f ns, of equal blocks %.0f", listed.ns,
         even.ns);
    us = call_us(world, &call, in, out);
    snprintf(plan, sizeof plan, "(%.3g us", even.ns / 1e3);
    need(strstr(dtensor_last_plan(ctx), plan), "plan %s: expected %s",
         dtensor_last_plan(ctx), plan);
    if (rank == 0)
        note("64 KiB on 2 ranks: predicted %.1f us, took %.1f", even.ns / 1e3,
             us);
    call.counts = row;
    call.recv_counts = column;
    good(dtensor_call_ways(world, &call, &own, 1, NULL, &err));
    need(own.ns > 0.7 * even.ns && own.ns < 1.1 * even.ns, "9000 elements for "
         "the other, 700 back: told %.0f ns, of 8192 each way %.0f", own.ns,
         even.ns);
    good(dtensor_call_run(world, &call, in, out, &err));
    dtensor_fini(ctx);
}

int main(void)
{
    test_wire("shm", DTN_REACH_MAP, DTN_WIRE_RC);
    test_wire("rc", DTN_REACH_PUT, DTN_WIRE_RC);
    test_wire("tcp", DTN_REACH_PUT, DTN_WIRE_TCP);
    test_choice();
    test_tuned();
    ok(ranks_run(2, 60, told_main, NULL, NULL) == 0, "two ranks are told what "
       "their own blocks take");
    return done();
}
