/* test_play.c - the simulator keeps LogGP: times that can be worked out by hand
 *
 * Binomial tree, recursive doubling and ring have closed forms in L, o, g and
 * G, with the steps of our schedules; ranks that share a port, and senders that
 * share a receiver, take turns.  The simulated times must equal them.  Other
 * schedules must take as long as SimGrid and LogGOPSim say (tests/golden).
 * Where a schedule repeats, playing one host must give the time of playing all.
 *
 * Without this test, a simulator that is a little wrong would say which
 * algorithm wins at 100,000 ranks.
 */
#include "base/compiler.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/play.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/sched/play.h"
#include "tests/support/golden.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* L, o, o of the receiver, g, G; then g or G of more than o. */
static const struct dtn_play_wire wires[] = {
    { 1000, 100, 60, 0, 0.01 }, { 1300, 70, 10, 150, 0.02 },
    { 500, 5, 0, 20, 2 },
};

static struct dtn_play_machine machine_of(const struct dtn_play_wire *far,
                                          int ranks, int per_host)
{
    return (struct dtn_play_machine){ .ranks = ranks, .per_host = per_host,
        .rails = 1, .far = *far, .near = { 140, 50, 0, 0, 0.08 },
        .folded_ns = 0.015, .copied_ns = 0.03 };
}

static struct played asked_of(enum dtn_coll coll, const char *name, int n,
                             size_t bytes)
{
    struct played asked = { dtn_emitters, { .coll = coll, .n = n,
                           .dtype = DTENSOR_U8, .count = bytes } };

    while (asked.emitter->coll != coll
           || strcmp(asked.emitter->name, name) != 0)
        asked.emitter++;
    return asked;
}

/* The time of a call over hosts of one rank; -1: an error. */
static double played(enum dtn_coll coll, const char *name, int n, size_t bytes,
                     const struct dtn_play_machine *machine)
{
    struct played asked = asked_of(coll, name, n, bytes);
    const struct dtn_play_job job = { .n = n, .emit = played_emit,
                                      .arg = &asked };
    struct dtn_play_result result = { .ns = -1 };
    struct dtensor_error err;

    if (dtn_play(machine, &job, 1, NULL, &result, &err) != 0)
        note("%s", err.text);
    return result.ns;
}

static bool near_to(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

/* --------------------------------------------------------- closed forms --- */

/* One message with its data: what LogGP says. */
static double one_way(const struct dtn_play_wire *w, size_t bytes)
{
    return w->post_ns + w->latency_ns + w->byte_ns * (double)bytes
         + w->notice_ns;
}

/* Down a tree of k levels, each level one message: the largest subtree comes
 * first, so its messages are the last to arrive.
 */
static void test_binomial(const struct dtn_play_wire *w, size_t bytes)
{
    bool good = true;

    for (int k = 1; k <= 12; k++) {
        struct dtn_play_machine machine = machine_of(w, 1 << k, 1);
        double ns = played(DTN_COLL_BROADCAST, "tree", 1 << k, bytes, &machine);
        double form = k * (one_way(w, bytes)
                           + machine.copied_ns * (double)bytes);

        good = good && near_to(ns, form);
        if (!near_to(ns, form))
            note("2^%d ranks: %.3f ns, by hand %.3f", k, ns, form);
    }
    ok(good, "broadcast of %zu bytes by a binomial tree over 2 to 4096 ranks: "
       "log2 n (o + L + bG + o)", bytes);
}

/* In each round a message, its copy, and a sum of two terms; the term is copied
 * before.
 */
static void test_doubling(const struct dtn_play_wire *w, size_t bytes)
{
    bool good = true;

    for (int k = 1; k <= 12; k++) {
        struct dtn_play_machine machine = machine_of(w, 1 << k, 1);
        double b = (double)bytes;
        double ns = played(DTN_COLL_ALLREDUCE, "doubling", 1 << k, bytes,
                           &machine);
        double form = machine.copied_ns * b
                    + k * (one_way(w, bytes) + machine.copied_ns * b
                           + machine.folded_ns * 2 * b);

        good = good && near_to(ns, form);
        if (!near_to(ns, form))
            note("2^%d ranks: %.3f ns, by hand %.3f", k, ns, form);
    }
    ok(good, "allreduce of %zu bytes by recursive doubling over 2 to 4096 "
       "ranks", bytes);
}

/* READY from the right; then n - 1 times a put and its signal, which leaves
 * when the put has.
 */
static void test_ring(const struct dtn_play_wire *w, size_t block)
{
    bool good = true;

    for (int n = 2; n <= 40; n++) {
        struct dtn_play_machine machine = machine_of(w, n, 1);
        double port = fmax(w->gap_ns, w->byte_ns * (double)block);
        double step = fmax(2 * w->post_ns, w->post_ns + port)
                    + w->latency_ns + w->notice_ns;
        double first = fmax(w->latency_ns,
                            machine.copied_ns * (double)block);
        double ns = played(DTN_COLL_ALLGATHER, "ring", n, block, &machine);
        double form = w->post_ns + first + w->notice_ns + (n - 1) * step;

        good = good && near_to(ns, form);
        if (!near_to(ns, form))
            note("%d ranks: %.3f ns, by hand %.3f", n, ns, form);
    }
    ok(good, "all-gather of blocks of %zu bytes by the ring over 2 to 40 ranks",
       block);
}

/* -------------------------------------------------------------- sharing --- */

/* Rank p < n / 2 sends one message of `bytes` to p + n / 2, or to rank 0. */
struct pairs {
    int n;
    size_t bytes;
    bool incast;
};

static int pairs_emit(void *arg, int position, struct dtn_sched *sched,
                      struct dtensor_error *err)
{
    const struct pairs *pairs = arg;
    const int half = pairs->n / 2, n = pairs->n;
    const struct dtn_span here = { position, DTN_IN, 0 };

    dtn_sched_init(sched, "pairs", n, position, DTENSOR_U8, DTENSOR_SUM);
    if (pairs->incast && position > 0)
        dtn_sched_send_eager(sched, 0, here, pairs->bytes);
    else if (pairs->incast)
        for (int from = 1; from < n; from++)
            dtn_sched_recv_eager(sched, from, here, pairs->bytes);
    else if (position < half)
        dtn_sched_send_eager(sched, position + half, here, pairs->bytes);
    else
        dtn_sched_recv_eager(sched, position - half, here, pairs->bytes);
    return dtn_sched_finish(sched, err);
}

static double pairs_played(struct pairs pairs,
                           const struct dtn_play_machine *machine)
{
    const struct dtn_play_job job = { .n = pairs.n, .emit = pairs_emit,
                                      .arg = &pairs };
    struct dtn_play_result result = { .ns = -1 };
    struct dtensor_error err;

    if (dtn_play(machine, &job, 1, NULL, &result, &err) != 0)
        note("%s", err.text);
    return result.ns;
}

/* -------------------------------------------- what other simulators say --- */

/* A line of a table of tests/golden: a call, its machine, and the time. */
struct other {
    char coll[24], name[24], topology[64];
    int n, per_host;
    size_t bytes;
    struct dtn_play_wire wire;
    double us;
};
typedef bool other_read_f(const char *line, struct other *other);

/* SMPI of SimGrid: an MPI program that sends the same messages, with L 1 us,
 * o 0.1 us and 10 GB/s.
 */
static bool simgrid_read(const char *line, struct other *other)
{
    other->wire = (struct dtn_play_wire){ 1000, 100, 0, 0, 0.1 };
    return sscanf(line, "%23s %23s %d %d %zu %63s %lf", other->coll,
                  other->name, &other->n, &other->per_host, &other->bytes,
                  other->topology, &other->us) == 7;
}

/* LogGOPSim: a schedule with the same messages. */
static bool loggopsim_read(const char *line, struct other *other)
{
    struct dtn_play_wire *wire = &other->wire;
    bool good = sscanf(line, "%23s %23s %d %zu %lf %lf %lf %lf %lf",
                       other->coll, other->name, &other->n, &other->bytes,
                       &wire->latency_ns, &wire->post_ns, &wire->gap_ns,
                       &wire->byte_ns, &other->us) == 9;

    wire->notice_ns = wire->post_ns;
    other->per_host = 1;
    strcpy(other->topology, "flat");
    return good;
}

static double other_played(const struct other *other)
{
    struct dtn_play_machine machine = machine_of(&other->wire, other->n,
                                                 other->per_host);
    int coll = 0;

    while (strcmp(dtn_coll_name((enum dtn_coll)coll), other->coll) != 0)
        coll++;
    machine.folded_ns = machine.copied_ns = 0;
    machine.near = (struct dtn_play_wire){ .latency_ns = 140 };
    machine.topology = other->topology;
    return played((enum dtn_coll)coll, other->name, other->n, other->bytes,
                  &machine) / 1e3;
}

static void test_other(const char *who, const char *file, other_read_f *read,
                       int least)
{
    struct other other = { .n = 0 };
    struct golden table;
    double worst = 0, us;
    int rows = 0;

    if (!golden_open(&table, file)) {
        ok(false, "no tests/golden/%s", file);
        return;
    }
    while (golden_next(&table) && read(table.line, &other)) {
        us = other_played(&other);
        worst = fmax(worst, fabs(us / other.us - 1));
        note("%s %s of %zu bytes, %d ranks, %d on a host, %s: %.2f us, %s "
             "%.2f, %+.1f %%", other.coll, other.name, other.bytes, other.n,
             other.per_host, other.topology, us, who, other.us,
             100 * (us / other.us - 1));
        rows++;
    }
    golden_close(&table);
    ok(rows >= least && worst < 0.05, "%d times are within %.1f %% of what %s "
       "says", rows, 100 * worst, who);
}

static void test_sharing(void)
{
    const struct dtn_play_wire *w = &wires[0];
    struct dtn_play_machine machine = machine_of(w, 16, 8);
    const struct pairs pairs = { 16, 100000, false };
    const double b = 100000;
    double one, two;

    machine.copied_ns = 0;
    one = pairs_played(pairs, &machine);
    machine.rails = 2;
    two = pairs_played(pairs, &machine);
    ok(near_to(one, one_way(w, 8 * 100000))
       && near_to(two, one_way(w, 4 * 100000)),
       "8 ranks of a host share its port: %.0f ns; with two ports %.0f", one,
       two);
    machine = machine_of(w, 16, 1);
    machine.copied_ns = 0;
    one = pairs_played(pairs, &machine);
    two = pairs_played((struct pairs){ 16, 100000, true }, &machine);
    ok(near_to(one, one_way(w, 100000))
       && near_to(two, one + 14 * b * w->byte_ns),
       "incast: 15 senders take turns at the receiver's port: %.0f ns, one "
       "%.0f", two, one);
}

/* Rank 0 puts to rank 2, and rank 1 a sixteenth of that to rank 3. */
static int unequal_emit(void *arg, int position, struct dtn_sched *sched,
                        struct dtensor_error *err)
{
    const size_t *bytes = arg;
    const int to = position + 2;
    const struct dtn_span in = { position, DTN_IN, 0 };
    const struct dtn_span out = { to, DTN_OUT, 0 };

    dtn_sched_init(sched, "unequal", 4, position, DTENSOR_U8, DTENSOR_SUM);
    if (position < 2)
        dtn_sched_put(sched, to, out, in, *bytes >> 4 * position);
    return dtn_sched_finish(sched, err);
}

static void arrival_note(const struct dtensor_simulated_event *event, void *arg)
{
    double *end_ns = arg;

    if (event->kind == DTENSOR_STEP_PUT)
        end_ns[event->rank] = event->end_ns;
}

/* In two turns of 1 MiB a port has sent one of the long message, and all of the
 * short one.
 */
static void test_turns(void)
{
    const struct dtn_play_wire *w = &wires[0];
    const struct dtn_play_machine machine = machine_of(w, 4, 2);
    size_t bytes = 16 << 20;
    const struct dtn_play_job job = { .n = 4, .emit = unequal_emit,
                                      .arg = &bytes };
    double end_ns[2] = { 0, 0 }, turn = w->byte_ns * (double)(bytes / 16);
    const struct dtn_play_watch watch = { .visit = arrival_note,
                                          .arg = end_ns };
    const double before = w->post_ns + w->latency_ns;
    struct dtn_play_result result = { .ns = -1 };
    struct dtensor_error err = { .text = "" };
    const int rc = dtn_play(&machine, &job, 1, &watch, &result, &err);

    ok(rc == 0 && near_to(end_ns[1], before + 2 * turn)
       && near_to(end_ns[0], before + 17 * turn), "a port gives two peers as "
       "many bytes in a turn: 1 MiB takes %.0f ns, 16 MiB beside it %.0f %s",
       end_ns[1], end_ns[0], err.text);
}

/* Of 64 MiB along trees of 4 hosts, with so many ranks on each. */
static double trees_played(int per_host)
{
    const int n = 4 * per_host;
    const struct dtn_play_machine machine = machine_of(&wires[2], n, per_host);
    struct played asked = asked_of(DTN_COLL_BROADCAST, "rail-twotree", n,
                                   64 << 20);
    const struct dtn_play_job job = { .n = n, .emit = played_emit,
                                      .arg = &asked };
    struct dtn_play_result result = { .ns = -1 };
    struct dtensor_error err;
    int host[64];

    for (int r = 0; r < n; r++)
        host[r] = r / per_host;
    asked.call.hosts = host;
    if (dtn_play(&machine, &job, 1, NULL, &result, &err) != 0)
        note("%s", err.text);
    return result.ns;
}

/* Chunks of hosts of six differ by a cache line, those of eight do not. */
static void test_equal_chunks(void)
{
    const double six = trees_played(6), eight = trees_played(8);

    ok(six > 0 && six < 1.05 * eight, "chunks that differ by a cache line have "
       "as many pieces: %.0f us, equal ones %.0f", six / 1e3, eight / 1e3);
}

/* -------------------------------------------------------------- periods --- */

/* All emitters that put: the same time by one host as by all. */
static void test_periods(int per_host)
{
    int repeats = 0, wrong = 0, all = 0;

    for (const struct dtn_emitter *e = dtn_emitters; e->emit; e++) {
        const int n = 32;
        struct played asked = { e, { .coll = e->coll, .n = n,
            .dtype = DTENSOR_U8, .count = e->max_bytes < 5000 ? 64 : 5000 } };
        struct dtn_play_job job = { .n = n, .emit = played_emit,
                                    .arg = &asked };
        struct dtn_play_machine machine = machine_of(&wires[1], n, per_host);
        struct dtn_play_result whole, folded;
        struct dtensor_error err = { .text = "" };
        bool same = false;

        if (e->needs != DTN_REACH_PUT || e->coll == DTN_COLL_PAIRS
            || e->coll == DTN_COLL_EXCHANGE)
            continue;
        all++;
        if (dtn_play_repeats(&job, per_host, &same, &err) != 0
            || dtn_play(&machine, &job, 1, NULL, &whole, &err) != 0)
            wrong++;
        if (!same)
            continue;
        repeats++;
        job.period = per_host;
        if (dtn_play(&machine, &job, 1, NULL, &folded, &err) != 0
            || !near_to(whole.ns, folded.ns)
            || folded.steps * (uint64_t)(n / per_host) != whole.steps) {
            note("%s %s: %.3f ns by one host, %.3f by all %s",
                 dtn_coll_name(e->coll), e->name, folded.ns, whole.ns,
                 err.text);
            wrong++;
        }
    }
    ok(repeats >= 8 && wrong == 0, "of %d emitters over hosts of %d ranks %d "
       "repeat: one host takes as long as all", all, per_host, repeats);
}

/* --------------------------------------------------------------- errors --- */

static int stuck_emit(void *arg, int position, struct dtn_sched *sched,
                      struct dtensor_error *err)
{
    (void)arg;
    dtn_sched_init(sched, "stuck", 2, position, DTENSOR_U8, DTENSOR_SUM);
    if (position == 1)
        dtn_sched_signal(sched, 0, DTN_TAG_READY);
    dtn_sched_wait(sched, 1 - position, DTN_TAG_DATA);
    return dtn_sched_finish(sched, err);
}

static void test_errors(void)
{
    const struct dtn_play_machine machine = machine_of(&wires[0], 2, 1);
    struct dtn_play_job job = { .n = 2, .emit = stuck_emit };
    struct dtn_play_result result = { .ns = 7 };
    struct dtensor_error err = { .text = "" };

    ok(dtn_play(&machine, &job, 1, NULL, &result, &err) == DTENSOR_EINVAL
       && err.rank == 1 && strstr(err.text, "step 1") && result.ns == 7,
       "a rank that waits for ever is named: %s", err.text);
    job.period = 3;
    ok(dtn_play(&machine, &job, 1, NULL, &result, &err) == DTENSOR_EINVAL,
       "a period must divide: %s", err.text);
}

/* ---------------------------------------------------------------- speed --- */

/* Of what LogGOPSim, built on such a machine, needs 3.2 s for. */
static void test_speed(void)
{
    const int n = 65536;
    const struct dtn_play_machine machine = machine_of(&wires[0], n, 1);
    const clock_t begin = clock();
    double ns = played(DTN_COLL_BROADCAST, "tree", n, 8192, &machine);
    double s = (double)(clock() - begin) / CLOCKS_PER_SEC;

    ok(ns > 0 && s < 3.2, "65,536 ranks, a binomial tree of 8 KiB: simulated "
       "in %.2f s of a CPU", s);
}

int main(void)
{
    for (size_t w = 0; w < DTN_COUNT(wires); w++) {
        test_binomial(&wires[w], w < 2 ? 8 : 2000);
        test_doubling(&wires[w], 8);
        test_ring(&wires[w], 1000);
    }
    test_sharing();
    test_turns();
    test_equal_chunks();
    test_other("SMPI", "simgrid.txt", simgrid_read, 20);
    test_other("LogGOPSim", "loggopsim.txt", loggopsim_read, 50);
    test_periods(1);
    test_periods(4);
    test_errors();
    test_speed();
    return done();
}
