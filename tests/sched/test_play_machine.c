/* test_play_machine.c - topologies, noise, slow ranks and links that are down
 *
 * The times on a fat tree and a dragonfly are those that follow from the links
 * a message takes and shares; a link that is down moves its messages to another
 * or is an error; noise and slow CPUs cost what they take.  What makes no sense
 * is refused in words.
 *
 * Without this test, an oversubscribed network could look as fast as a full
 * one, and a topology that does not hold the ranks would be simulated anyway.
 */
#include "base/compiler.h"
#include "sched/play.h"
#include "sched/play/noise.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/support/comma.h"
#include "tests/support/tap.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 100000, L = 1000, O = 100, INNER = 150 };
#define G 0.01

/* Rank p < senders sends BYTES to rank p + shift. */
struct shift {
    int n, senders, shift;
};

static int shift_emit(void *arg, int me, struct dtn_sched *sched,
                      struct dtensor_error *err)
{
    const struct shift *s = arg;
    const struct dtn_span here = { me, DTN_IN, 0 };

    dtn_sched_init(sched, "shift", s->n, me, DTENSOR_U8, DTENSOR_SUM);
    if (me < s->senders)
        dtn_sched_send_eager(sched, me + s->shift, here, BYTES);
    if (me >= s->shift && me < s->shift + s->senders)
        dtn_sched_recv_eager(sched, me - s->shift, here, BYTES);
    return dtn_sched_finish(sched, err);
}

static struct dtn_play_machine machine_of(int ranks)
{
    return (struct dtn_play_machine){ .ranks = ranks, .per_host = 1,
        .rails = 1, .far = { L, O, 0, 0, G }, .near = { 100, 50, 0, 0, 0.1 } };
}

/* In ns; -1: an error, whose words are in *err. */
static double shifted(const struct dtn_play_machine *machine, int senders,
                      int shift, struct dtensor_error *err)
{
    struct shift s = { machine->ranks, senders, shift };
    const struct dtn_play_job job = { .n = s.n, .emit = shift_emit,
                                      .arg = &s };
    struct dtn_play_result result = { .ns = -1 };

    err->text[0] = '\0';
    dtn_play(machine, &job, 1, NULL, &result, err);
    return result.ns;
}

static bool is_ns(double ns, double links, double bytes)
{
    return fabs(ns - (O + L + INNER * links + bytes * G)) < 1e-6;
}

/* ----------------------------------------------------------- topologies --- */

static void test_fat_tree(void)
{
    struct dtn_play_machine m = machine_of(32);
    struct dtensor_error err;
    double full, half;

    m.topology = "fat-tree:8/8x4";
    full = shifted(&m, 8, 8, &err);
    ok(is_ns(full, 2, BYTES) && is_ns(shifted(&m, 4, 4, &err), 0, BYTES),
       "fat tree: 8 hosts of a leaf to another one, each on its own link");
    m.topology = "fat-tree:8/4x4";
    half = shifted(&m, 8, 8, &err);
    ok(is_ns(half, 2, 2 * BYTES), "2 to 1 oversubscribed: twice the bytes take "
       "a link, %.0f ns for %.0f", half, full);
    m.topology = "fat-tree:8/4x4,bandwidth=200000000,latency=0";
    ok(is_ns(shifted(&m, 1, 8, &err), 0, BYTES * 5 / G),
       "links between switches of 0.2 GB/s");
    m.topology = "fat-tree:4/4x4/2x2";
    ok(is_ns(shifted(&m, 4, 16, &err), 4, 2 * BYTES),
       "three levels: the top has 2 links for 4 messages");
}

static void test_dragonfly(void)
{
    struct dtn_play_machine m = machine_of(4 * 2 * 9);
    struct dtensor_error err;
    double one;

    m.topology = "dragonfly:2x4x9";
    ok(is_ns(shifted(&m, 2, 2, &err), 1, 2 * BYTES),
       "dragonfly: two hosts of a router share the link to the next router");
    one = shifted(&m, 8, 8, &err) - (O + L + 8 * BYTES * G);
    ok(one >= INNER - 1e-6 && one <= 3 * INNER,
       "and all hosts of a group the link to the next group");
    m.topology = "dragonfly:2x4x9/8";
    ok(is_ns(shifted(&m, 8, 8, &err), 3, BYTES),
       "with 8 links between groups each has its own");
}

static void test_failed(void)
{
    struct dtn_play_machine m = machine_of(32);
    struct dtensor_error err;

    m.topology = "fat-tree:8/8x4";
    m.failed = "up1:0";
    ok(is_ns(shifted(&m, 8, 8, &err), 2, 2 * BYTES), "a link up is down: its "
       "message shares that of another");
    m.failed = "out:3";
    ok(shifted(&m, 8, 8, &err) == -1 && strstr(err.text, "no way from rank 3")
       && err.rank == 3, "a port that is down: %s", err.text);
    m.failed = "up1:0,up1:1,up1:2,up1:3,up1:4,up1:5,up1:6,up1:7";
    ok(shifted(&m, 8, 8, &err) == -1, "no link up is left: %s", err.text);
    m = machine_of(72);
    m.topology = "dragonfly:2x4x9";
    m.failed = "global:1";
    ok(is_ns(shifted(&m, 1, 8, &err), 4, BYTES), "dragonfly: over "
       "a third group, %.0f ns", shifted(&m, 1, 8, &err));
}

/* ------------------------------------------------------- noise and CPUs --- */

static void test_slow(void)
{
    struct dtn_play_machine m = machine_of(4);
    double slow[] = { 3, 1, 1, 1 };
    struct dtensor_error err;

    m.slow = slow;
    ok(is_ns(shifted(&m, 1, 1, &err), 0, BYTES + 2 * O / G),
       "a CPU that is 3 times slower posts later");
}

static struct dtn_noise *noise_of(const char *text, struct dtensor_error *err)
{
    struct dtn_noise *noise = NULL;

    err->text[0] = '\0';
    dtn_noise_read(text, &noise, err);
    return noise;
}

/* Work of 1e9 ns with interruptions of 100 ns each 1000 ns between them. */
static void test_noise(void)
{
    struct dtensor_error err;
    struct dtn_noise *noise = noise_of("100.0/1e3", &err);
    struct dtn_noise_at at, same;
    double end = 0, wait = 0, most = 0, sum = 0;

    dtn_noise_begin(noise, 5, &at);
    same = at;
    for (int i = 0; i < 1000000; i++)
        end = dtn_noise_after(noise, &at, end, 1000);
    ok(fabs(end - 1.1e9) < 0.005 * 1.1e9, "noise of 100 ns every 1000 costs a "
       "tenth: %.3f s of work take %.3f", 1.0, end / 1e9);
    for (int i = 0; i < 1000000; i++)
        wait = dtn_noise_after(noise, &same, wait + 1000, 0);
    ok(fabs(wait - 1e9) < 0.02e9, "but not one that waits: %.3f s",
       wait / 1e9);
    for (int rank = 0; rank < 1000; rank++) {
        dtn_noise_begin(noise, rank, &at);
        end = dtn_noise_after(noise, &at, 0, 1000);
        sum += end - 1000;
        most = fmax(most, end - 1000);
    }
    ok(sum / 1000 > 80 && sum / 1000 < 120 && most > 400, "a step of 1000 "
       "ranks: %.0f ns in the mean, %.0f the slowest", sum / 1000, most);
    dtn_noise_free(noise);
}

static const char *trace_file(const char *text)
{
    static char name[40];
    FILE *file;

    snprintf(name, sizeof name, "play_noise_%d.txt", (int)getpid());
    file = fopen(name, "w");
    if (file) {
        fputs(text, file);
        fclose(file);
    }
    return name;
}

static void test_trace(void)
{
    static const char *const wrong[][2] = {
        { "10 5\n100 5\n", "cut off" }, { "10 5\nend 12\n", "ends before" },
        { "10 5\n12 1\nend 50\n", "begins before" }, { "x\n", "no two" },
        { "10 40\nend 50\n5 1\n", "after the end" },
        { "1 48\nend 50\n", "tenth" },
    };
    char path[60];
    struct dtensor_error err;
    struct dtn_noise *noise;
    struct dtn_noise_at at;
    int good = 0;

    snprintf(path, sizeof path, "file:%s",
             trace_file("# a comment of more than 127 bytes: xxxxxxxxxxxxxxxxxxxxxxxx"
                        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                        "xxxxxxxxxxxx\n99.5 50.5\n400.0 50\nend 1000.0\n"));
    comma_set();
    noise = noise_of(path, &err);
    comma_unset();
    if (noise)
        dtn_noise_begin(noise, 0, &at);
    ok(noise && dtn_noise_after(noise, &at, 0, 500) == 600.5
       && dtn_noise_after(noise, &at, 600.5, 699.5) == 1350.5,
       "a trace: rank 0 is interrupted where it says, round after round");
    ok(dtn_noise_covers(noise, 999, &err) == 0
       && dtn_noise_covers(noise, 1001, &err) == DTENSOR_EINVAL,
       "a run that is longer: %s", err.text);
    dtn_noise_free(noise);
    for (size_t i = 0; i < DTN_COUNT(wrong); i++) {
        trace_file(wrong[i][0]);
        noise = noise_of(path, &err);
        good += !noise && strstr(err.text, wrong[i][1]);
        note("%s", err.text);
        dtn_noise_free(noise);
    }
    unlink(path + 5);
    ok(good == DTN_COUNT(wrong), "%d traces that are wrong are refused", good);
    ok(!noise_of(path, &err) && err.code == DTENSOR_ESYS, "no file: %s",
       err.text);
    ok(!noise_of("file:.", &err) && err.code == DTENSOR_ESYS, "a folder: %s",
       err.text);
    ok(!noise_of("5/5", &err) && !noise_of("0/9", &err)
       && !noise_of("9", &err), "no such noise: %s", err.text);
}

/* -------------------------------------------------------------- refused --- */

static void test_refused(void)
{
    static const char *const wrong[][2] = {
        { "ring:4", "no such kind" }, { "fat-tree", "wrong sizes" },
        { "fat-tree:0x8", "wrong sizes" }, { "fat-tree:8x", "wrong sizes" },
        { "fat-tree:8/0x4", "wrong sizes" }, { "flat:3", "wrong sizes" },
        { "dragonfly:2x4", "wrong sizes" },
        { "fat-tree:8/4x4,bandwidth=0", "a bandwidth of 0" },
        { "fat-tree:8/4x4,speed=1", "expected bandwidth" },
        { "fat-tree:8/4x3", "holds 24 hosts, the cluster has 32" },
        { "dragonfly:2x4x3", "holds 24 hosts" },
        { "fat-tree:1048576x1048576", "too large" },
        { "dragonfly:1048576x1048576x4", "too large" }, { "", "no such kind" },
    };
    struct dtn_play_machine m = machine_of(32);
    struct dtensor_error err;
    int good = 0;

    for (size_t i = 0; i < DTN_COUNT(wrong); i++) {
        bool refused;

        m.topology = wrong[i][0];
        refused = shifted(&m, 1, 1, &err) == -1
               && strstr(err.text, wrong[i][1]);
        if (!refused || i % 4 == 0)
            note("%s", err.text);
        good += refused;
    }
    ok(good == DTN_COUNT(wrong), "%d topologies are refused", good);
    m.topology = "fat-tree:8/4x4";
    m.failed = "up2:0";
    ok(shifted(&m, 1, 1, &err) == -1, "%s", err.text);
    m.failed = "up1:16";
    ok(shifted(&m, 1, 1, &err) == -1, "%s", err.text);
}

int main(void)
{
    test_fat_tree();
    test_dragonfly();
    test_failed();
    test_slow();
    comma_make("noise is read where there is a decimal comma");
    test_noise();
    test_trace();
    comma_remove();
    test_refused();
    return done();
}
