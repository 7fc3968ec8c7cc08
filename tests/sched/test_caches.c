/* test_caches.c - the simulator follows who has which cache lines
 *
 * Costs are round numbers that tell the states apart: of 64 bytes a copy takes
 * 1 ns, a fold 2, and what lines cost that are elsewhere 10 to 600.
 *
 * Without this test, a simulation on one host could take all lines to be in the
 * own cache, and be off by a factor of six.
 */
#include "sched/caches.h"
#include "sched/play.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <math.h>

#define LINE 64
#define CAPACITY 4096

static const struct dtn_cache_costs costs = {
    .capacity = CAPACITY, .shared = 16 * CAPACITY, .ready_ns = { 0, 7000 },
    .beyond_ns = 1000.0 / LINE,
    .copy = { 1, 8, 64, 512, 4096, 32768 },
    .slot = { 0, 5000 },
    .fold = { 2, 16, 128, 1024, 8192, 65536 },
    .load = { { 0 }, { 10, 80 }, { 20, 160 }, { 30 }, { 40 }, { 50 } },
    .store = { { 0 }, { 100, 800 }, { 200, 1600 }, { 300 }, { 400 }, { 500 } },
    .both_load = { 30000 }, .both_store = { 60000 },
};

static struct dtn_caches *fresh(void)
{
    struct dtn_caches *caches;

    if (dtn_caches_create(&costs, 2, &caches, NULL) != 0)
        return NULL;
    for (int r = 0; r < 2; r++)
        for (int s = DTN_IN; s <= DTN_OUT; s++)
            dtn_caches_touch(caches, r, (enum dtn_space)s, LINE, true);
    return caches;
}

/* Rank 0 does that step. */
static double step_later_ns(struct dtn_caches *caches, enum dtn_op op,
                            int src_rank, int dst_rank, size_t bytes,
                            double now_ns)
{
    const struct dtn_sched sched = { .n = 2, .me = 0, .dtype = DTENSOR_F32 };
    const struct dtn_step step = { .op = op, .peer = 1, .box = -1,
        .terms = 2, .own_term = -1, .bytes = bytes,
        .dst = { dst_rank, DTN_OUT, 0 }, .src = { src_rank, DTN_IN, 0 } };

    return dtn_caches_step(caches, &sched, &step, now_ns);
}

static double step_ns(struct dtn_caches *caches, enum dtn_op op, int src_rank,
                      int dst_rank, size_t bytes)
{
    return step_later_ns(caches, op, src_rank, dst_rank, bytes, 0);
}

static void near_to(double ns, double wanted, const char *what)
{
    ok(fabs(ns - wanted) < 0.01, "%s: %.1f ns, not %.1f", what, ns, wanted);
}

static void test_states(void)
{
    struct dtn_caches *caches = fresh();

    near_to(step_ns(caches, DTN_OP_COPY, 0, 0, LINE), 1, "own lines");
    near_to(step_ns(caches, DTN_OP_COPY, 1, 0, LINE), 11, "a peer wrote it");
    near_to(step_ns(caches, DTN_OP_COPY, 1, 0, LINE), 1, "and it was loaded");
    near_to(step_ns(caches, DTN_OP_PUT, 0, 1, LINE), 101, "to a peer's lines");
    near_to(step_ns(caches, DTN_OP_PUT, 0, 1, LINE), 1, "which are own now");
    dtn_caches_touch(caches, 1, DTN_OUT, LINE, false);
    near_to(step_ns(caches, DTN_OP_PUT, 0, 1, LINE), 201, "the peer read them");
    dtn_caches_touch(caches, 1, DTN_IN, LINE, true);
    near_to(step_ns(caches, DTN_OP_FOLD, -1, 0, LINE), 12,
            "a fold with a term that a peer wrote");
    dtn_caches_destroy(caches);
}

/* Rank 0 sends or takes data in a signal.  The peer has read the slot before;
 * what is taken comes as it is sent.
 */
static double eager_ns(struct dtn_caches *caches, enum dtn_op op, size_t bytes)
{
    const struct dtn_sched sched = { .n = 2, .me = 0, .dtype = DTENSOR_F32 };
    const struct dtn_step step = { .op = op, .tag = DTN_TAG_EAGER, .peer = 1,
        .box = -1, .bytes = bytes, .dst = { 0, DTN_OUT, 0 },
        .src = { 0, DTN_IN, 0 } };

    return dtn_caches_step(caches, &sched, &step, 0);
}

static void test_eager(void)
{
    struct dtn_caches *caches = fresh();

    near_to(eager_ns(caches, DTN_OP_SIGNAL, LINE), 0, "64 bytes in a signal");
    near_to(eager_ns(caches, DTN_OP_WAIT, LINE), 0, "and taken from one");
    near_to(eager_ns(caches, DTN_OP_SIGNAL, 512), 8 - 1 + 1600 - 200,
            "512 bytes in a signal");
    near_to(eager_ns(caches, DTN_OP_WAIT, 512), 5000, "and taken from one");
    dtn_caches_destroy(caches);
}

/* Half as much again as a cache holds takes all of it. */
static void test_capacity(void)
{
    struct dtn_caches *caches = fresh();
    double ns;

    dtn_caches_touch(caches, 1, DTN_TMP, CAPACITY, true);
    ns = step_ns(caches, DTN_OP_COPY, 1, 0, LINE);
    ok(ns > 20 && ns < 40, "a full cache has lost some of it: %.1f ns", ns);
    dtn_caches_touch(caches, 1, DTN_TMP, 7 * CAPACITY / 4, true);
    dtn_caches_touch(caches, 1, DTN_OUT, LINE, false);
    dtn_caches_touch(caches, 0, DTN_TMP, 7 * CAPACITY / 4, true);
    near_to(step_ns(caches, DTN_OP_COPY, 0, 0, LINE), 331, "own lines away");
    for (int i = 0; i < 25; i++)
        dtn_caches_touch(caches, 0, DTN_TMP, CAPACITY, true);
    near_to(step_ns(caches, DTN_OP_COPY, 0, 0, LINE), 331,
            "memory that is used again and again fills a shared cache once");
    dtn_caches_touch(caches, 1, DTN_TMP, 25 * CAPACITY, true);
    near_to(step_ns(caches, DTN_OP_COPY, 0, 0, LINE), 2001,
            "own lines, but beyond the shared cache");
    dtn_caches_destroy(caches);
}

/* A peer is in the middle of a copy: what it will have used does not count. */
static void test_at_once(void)
{
    const struct dtn_sched sched = { .n = 2, .me = 1, .dtype = DTENSOR_F32 };
    const struct dtn_step step = { .op = DTN_OP_COPY, .box = -1,
        .bytes = CAPACITY, .dst = { 1, DTN_TMP, CAPACITY },
        .src = { 1, DTN_TMP, 0 } };
    struct dtn_caches *caches = fresh();

    dtn_caches_touch(caches, 1, DTN_TMP, 2 * CAPACITY, true);
    dtn_caches_touch(caches, 1, DTN_OUT, LINE, true);
    dtn_caches_step(caches, &sched, &step, 0);
    near_to(step_ns(caches, DTN_OP_PUT, 0, 1, LINE), 101,
            "to a peer's lines, before it uses others");
    dtn_caches_destroy(caches);
    caches = fresh();
    dtn_caches_step(caches, &sched, &step, -1e6);
    near_to(step_ns(caches, DTN_OP_PUT, 0, 1, LINE), 401, "and after");
    dtn_caches_destroy(caches);
}

/* Rank 1 loads what rank 0 wrote, and rank 0 puts it to rank 1: who begins
 * second pays for the part of the first one's step that it meets.
 */
static void test_both(void)
{
    static const double later[] = { 0, 11 / 2.0, 11 };
    const struct dtn_sched sched = { .n = 2, .me = 1, .dtype = DTENSOR_F32 };
    const struct dtn_step load = { .op = DTN_OP_COPY, .box = -1, .bytes = LINE,
        .dst = { 1, DTN_IN, 0 }, .src = { 0, DTN_IN, 0 } };

    for (int i = 0; i < 3; i++) {
        struct dtn_caches *caches = fresh();

        near_to(dtn_caches_step(caches, &sched, &load, 0), 11, "one loads");
        near_to(step_later_ns(caches, DTN_OP_PUT, 0, 1, LINE, later[i]),
                121 + (1 - i / 2.0) * 90000, "and another puts, later");
        dtn_caches_destroy(caches);
    }
}

/* Lines that a rank reads again after they left its cache are as if another
 * rank had read them, for one that stores there.
 */
static void test_read_again(void)
{
    struct dtn_caches *caches = fresh();

    dtn_caches_touch(caches, 1, DTN_OUT, LINE, false);
    near_to(step_ns(caches, DTN_OP_PUT, 0, 1, LINE), 101,
            "to lines that a peer wrote, and read in its cache");
    dtn_caches_touch(caches, 1, DTN_OUT, LINE, true);
    dtn_caches_touch(caches, 1, DTN_TMP, 7 * CAPACITY / 4, true);
    dtn_caches_touch(caches, 1, DTN_OUT, LINE, false);
    near_to(step_ns(caches, DTN_OP_PUT, 0, 1, LINE), 201,
            "or after they had left it");
    dtn_caches_destroy(caches);
}

/* READY names a place, where the peer's OUT begins for this rank. */
static void test_places(void)
{
    const struct dtn_step ready = { .op = DTN_OP_SIGNAL, .tag = DTN_TAG_READY,
        .src = { 1, DTN_OUT, 1024 }, .message_bytes = LINE };
    const struct dtn_sched sender = { .n = 2, .me = 1,
                                      .exposed[DTN_OUT] = true };
    struct dtn_caches *caches = fresh();

    dtn_caches_touch(caches, 1, DTN_OUT, 1024, true);
    near_to(dtn_caches_ready(caches, 0, 1, &sender, &ready), 7000,
            "a READY that names a buffer");
    near_to(step_ns(caches, DTN_OP_PUT, 0, 1, LINE), 301,
            "a place that nobody has used");
    dtn_caches_destroy(caches);
}

/* -------------------------------------------------------------- played --- */

/* Rank 1 loads what rank 0 has written.  The READY names it, or nothing. */
static int emit_load(void *arg, int me, struct dtn_sched *sched,
                     struct dtensor_error *err)
{
    dtn_sched_init(sched, "load", 2, me, DTENSOR_F32, DTENSOR_SUM);
    sched->bytes[DTN_IN] = sched->bytes[DTN_OUT] = LINE;
    sched->exposed[DTN_IN] = *(const bool *)arg;
    if (me == 0) {
        dtn_sched_signal(sched, 1, DTN_TAG_READY);
    } else {
        dtn_sched_wait(sched, 0, DTN_TAG_READY);
        dtn_sched_copy(sched, (struct dtn_span){ 1, DTN_OUT, 0 },
                       (struct dtn_span){ 0, DTN_IN, 0 }, LINE);
    }
    return dtn_sched_finish(sched, err);
}

static void test_played(void)
{
    const double slow[] = { 2, 1 };
    struct dtn_play_machine machine = { .ranks = 2, .per_host = 2, .rails = 1,
        .near = { .latency_ns = 100, .post_ns = 50, .byte_ns = 1 },
        .early_ns = 30, .slow = slow };
    bool names = true;
    const struct dtn_play_job job = { .n = 2, .emit = emit_load,
                                      .arg = &names };
    struct dtn_play_result result = { .ns = 0 };
    struct dtensor_error err;

    machine.caches = fresh();
    if (dtn_play(&machine, &job, 1, NULL, &result, &err) != 0)
        note("%s", err.text);
    near_to(result.ns, 100 + 100 + 7000 + 11,
            "a peer that has waited for long");
    names = false;
    machine.slow = NULL;
    dtn_caches_touch(machine.caches, 0, DTN_IN, LINE, true);
    if (dtn_play(&machine, &job, 1, NULL, &result, &err) != 0)
        note("%s", err.text);
    near_to(result.ns, 50 + 100 - 30 + 11, "or no longer than a post");
    dtn_caches_destroy(machine.caches);
    dtn_caches_destroy(NULL);
}

/* Both ranks signal and wait, twice. */
static int emit_turns(void *arg, int me, struct dtn_sched *sched,
                      struct dtensor_error *err)
{
    dtn_sched_init(sched, "turns", 2, me, DTENSOR_F32, DTENSOR_SUM);
    for (int i = 0; i < *(const int *)arg; i++) {
        dtn_sched_signal(sched, 1 - me, DTN_TAG_DATA);
        dtn_sched_wait(sched, 1 - me, DTN_TAG_DATA);
    }
    return dtn_sched_finish(sched, err);
}

/* Only of the first signal the receiver has not asked for the line before.
 * First signals that cross take longer.
 */
static void test_early(void)
{
    const struct dtn_play_machine machine = { .ranks = 2, .per_host = 2,
        .rails = 1, .near = { .latency_ns = 100, .post_ns = 50, .byte_ns = 1 },
        .early_ns = 30, .crossed_ns = 4 };
    int turns = 2;
    const struct dtn_play_job job = { .n = 2, .emit = emit_turns,
                                      .arg = &turns };
    struct dtn_play_result result = { .ns = 0 };
    struct dtensor_error err;

    if (dtn_play(&machine, &job, 1, NULL, &result, &err) != 0)
        note("%s", err.text);
    near_to(result.ns, 50 + 100 - 30 + 4 + 50 + 100, "two signals to and fro");
}

int main(void)
{
    test_states();
    test_eager();
    test_capacity();
    test_read_again();
    test_at_once();
    test_both();
    test_places();
    test_played();
    test_early();
    return done();
}
