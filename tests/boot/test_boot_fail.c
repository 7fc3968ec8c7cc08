/* test_boot_fail.c - joining when something goes wrong: who reports what, and
 * when
 *
 * Files that differ, ranks that die or run out of descriptors, ports that are
 * taken.  Ranks that do not come, or do not answer, are in
 * test_boot_missing.c.
 *
 * Without this test, a job that cannot start could hang, or ranks could report
 * different causes.
 */
#include "base/compiler.h"
#include "boot/frame.h"
#include "boot/fail.h"
#include "boot/state.h"
#include "dtensor.h"
#include "tests/boot/boot_job.h"

#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ------------------------------------------------------------ different --- */

static const struct {
    const char *what;
    int nhosts, each;
    int odd;                      /* has another [redistribute] pipeline      */
    const char *words;
} odds[] = {
    { "a leaf", 2, 2, 3, "boot: rank 3 on n1 was started with other "
      "settings: [redistribute] pipeline is 1024K there, 512K "
      "here (give every rank the same cluster file)" },
    { "a leader", 3, 2, 2, "boot: rank 2 on n1 was started with other "
      "settings: [redistribute] pipeline is 1024K there, 512K "
      "here" },
    { "rank 0", 3, 1, 0, "boot: rank 0 on n0 was started with other "
      "settings: [redistribute] pipeline is 1024K there, 512K "
      "here" },
    { "a leaf far away", 5, 2, 9, "boot: rank 9 on n4 was started with "
      "other settings: [redistribute] pipeline is 1024K there, "
      "512K here" },
    { "one of two", 1, 2, 1, "boot: rank 1 on n0 was started with other "
      "settings: [redistribute] pipeline is 1024K there, 512K "
      "here" },
};

/* The ranks that join, and the one that is asked for its file, have half a
 * second each.  Where a busy machine takes longer the line that differs is not
 * known, or who has the right file; then there is another try.
 */
static bool differs(const struct boot_job *job, int odd, const char *words)
{
    bool good = false;

    for (int i = 0; i < 20 && !good; i++) {
        job_run(job, NULL);
        good = job_failed(job, DTENSOR_EMISMATCH, odd, words, TOLD_MS);
    }
    return good;
}

static void test_different(void)
{
    struct boot_job job;

    for (size_t i = 0; i < DTN_COUNT(odds); i++) {
        job = job_even(odds[i].nhosts, odds[i].each);
        job.actor[odds[i].odd].pipeline = 1024;
        ok(differs(&job, odds[i].odd, odds[i].words), "%s with another file: "
           "all say which, and the line (%lld ms)", odds[i].what,
           (long long)job_slowest_ms(&job));
    }
    job = job_even(3, 2);
    job.actor[2].pipeline = job.actor[3].pipeline = 1024;
    job_run(&job, NULL);
    ok(job_failed(&job, DTENSOR_EMISMATCH, 2, "boot: ranks 2-3 on n1 were "
                  "started with other settings", TOLD_MS),
       "a host with another file: all its ranks are named");
    job = job_even(2, 2);
    job.actor[1].pipeline = 1024;
    job_drop(&job, 3);
    job_run(&job, NULL);
    ok(job_failed(&job, DTENSOR_EMISMATCH, 1, "rank 1 on n0", TOLD_MS),
       "a different rank is told without waiting for a missing one");
}

/* ------------------------------------------------- ranks that cannot be --- */

static int expected;              /* ranks that join, and wait for others     */

static void all_join(void)
{
    job_await(&seen->joined, expected);
}

/* The second process comes when all but one are there and wait for that one. */
static void test_twice(void)
{
    static const int ranks[] = { 0, 1, 2, 3 };
    char words[200], pids[64];

    expected = 3;
    for (size_t i = 0; i < DTN_COUNT(ranks); i++) {
        struct boot_job job = job_even(2, 2);
        int r = ranks[i], first, a, b;

        job_drop(&job, r == 3 ? 1 : 3);
        for (first = 0; job.actor[first].rank != r; first++)
            ;
        job.actor[job.nactors++] = (struct actor){ .rank = r, .late = true };
        job_run(&job, all_join);
        a = (int)said[first].pid;
        b = (int)said[3].pid;
        snprintf(pids, sizeof pids, "%d and %d", a < b ? a : b, a < b ? b : a);
        snprintf(words, sizeof words, "boot: rank %d on n%d was started twice, "
                 "as processes %s", r, r / 2, pids);
        ok(job_failed(&job, DTENSOR_EMISMATCH, r, words, TOLD_MS),
           "rank %d started twice: all name it and both processes", r);
    }
}

static void test_outside(void)
{
    struct boot_job job = job_even(2, 2);
    bool good = true;

    job.actor[3] = (struct actor){ .rank = 4, .more_hosts = 1, .late = true };
    expected = 3;
    job_run(&job, all_join);
    for (int i = 0; i < 4; i++)
        good = good && said[i].rc == DTENSOR_EMISMATCH &&
               strstr(said[i].err.text, "boot: rank 4 on n2 was started for a "
                      "world of 5 ranks, rank 0 on n0 for one of 4");
    ok(good, "a rank outside of the world is named to all, itself too");
    if (!good)
        job_show(&job);
    job = job_even(1, 2);
    job.actor[1].rank = 7;
    job.timeout_ms = 300;
    job_run(&job, NULL);
    ok(said[1].rc == DTENSOR_EINVAL, "a rank outside of its own cluster is "
       "refused on the spot: %s", said[1].err.text);
}

/* A process that says HELLO as rank 1 in a version of the protocol, and what it
 * hears.
 */
static unsigned hello_version;
static const char *hello_then;    /* sent after WELCOME                       */
static size_t hello_then_bytes;
static int hello_parent;          /* process in the name of the job           */
static struct dtensor_error hello_heard;
static bool hello_answered;       /* it got an answer                         */

static void hello_comes(void)
{
    unsigned char body[DTN_FRAME_HELLO_BYTES + 64] = { 1, 0, 0, 0, 3,
                                                       0, 0, 0, 77 };
    unsigned char wire[DTN_FRAME_HEAD_BYTES] = "DTNB";
    struct dtn_frame_stream s;
    struct dtn_frame in;
    enum dtn_frame_got got;
    size_t size = DTN_FRAME_HELLO_BYTES + 3;

    all_join();
    memcpy(body + DTN_FRAME_HELLO_BYTES, "n0", 2);
    size += (size_t)snprintf((char *)body + size, sizeof body - size, "test-%d",
                             hello_parent);
    dtn_frame_put32(wire + 4, hello_version | (uint32_t)DTN_FRAME_HELLO << 16);
    dtn_frame_put32(wire + 16, (uint32_t)size);
    dtn_frame_init(&s, knock_local(), true);
    if (s.fd < 0)
        exit(99);
    s.accepts =
        DTN_FRAME_BIT(DTN_FRAME_WELCOME) | DTN_FRAME_BIT(DTN_FRAME_FAIL);
    send(s.fd, wire, sizeof wire, MSG_NOSIGNAL);
    send(s.fd, body, size, MSG_NOSIGNAL);
    while ((got = dtn_frame_recv(&s, &in)) == DTN_FRAME_MORE)
        usleep(1000);
    if (got == DTN_FRAME_READY && in.type == DTN_FRAME_FAIL)
        dtn_boot_fail_parse(&in, &hello_heard);
    if (got == DTN_FRAME_READY && in.type == DTN_FRAME_WELCOME)
        send(s.fd, hello_then, hello_then_bytes, MSG_NOSIGNAL);
    hello_answered = got == DTN_FRAME_READY;
    dtn_frame_close(&s);
}

static void test_hello(void)
{
    struct boot_job job = job_even(1, 3);
    static const char words[] = "boot: rank 1 on n0 speaks version 99 of the "
        "bootstrap, rank 0 on n0 version 10 (install the same libdtensor";

    job_drop(&job, 1);
    expected = 2;
    hello_version = 99;
    job_run(&job, hello_comes);
    ok(job_failed(&job, DTENSOR_EMISMATCH, 1, words, TOLD_MS),
       "another version of the protocol: all name the rank");
    ok(hello_heard.code == DTENSOR_EMISMATCH && hello_heard.rank == 1 &&
       strstr(hello_heard.text, words), "... and it hears so as well");
    hello_version = DTN_FRAME_VERSION;
    hello_then = "this is not the protocol";
    hello_then_bytes = 24;
    job_run(&job, hello_comes);
    ok(job_failed(&job, DTENSOR_EPEER, 1, "boot: rank 1 on n0 sent invalid "
                  "data", TOLD_MS),
       "a rank that sends noise is named to all");
    hello_then = "DTNB\3\0\5\0\0\0\0\0\0\0\0\0\0\0\20\0";
    hello_then_bytes = DTN_FRAME_HEAD_BYTES;
    job = job_even(1, 4);            /* while one is missing, none is asked   */
    job_drop(&job, 1);
    job_drop(&job, 3);
    job_run(&job, hello_comes);
    ok(job_failed(&job, DTENSOR_EPEER, 1, "boot: rank 1 on n0 sent invalid "
                  "data", TOLD_MS),
       "a rank that sends its identity, of 1 MiB, unasked: so is it");
}

/* Another user's process says HELLO, with all that a rank has to say. */
static void intruder_comes(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (setuid(12345) != 0)
            _exit(1);
        hello_comes();
        _exit(hello_answered ? 2 : 0);
    }
    waitpid(pid, &status, 0);
    ok(status == 0, "a process of another user is not answered");
}

static void test_intruder(void)
{
    struct boot_job job = job_even(1, 2);

    if (geteuid() != 0) {
        skip("a process of another user is not answered", "needs root");
        return;
    }
    job.actor[1].late = true;
    expected = 1;
    job_run(&job, intruder_comes);
    ok(job_good(&job), "... and is no rank of the job");
}

/* ------------------------------------------------------------ resources --- */

static void test_foreign_address(void)
{
    struct boot_job job = job_even(2, 2);

    job.foreign = true;
    job_drop(&job, 3);
    job_drop(&job, 2);
    job_run(&job, NULL);
    ok(job_failed(&job, DTENSOR_ESYS, 0, "boot: 203.0.113.1, the address of "
                  "host n0, is not an address of the machine that rank 0 runs "
                  "on", TOLD_MS), "an address of another machine: all ranks "
       "of the host say so");
}

static void test_fd_limit(void)
{
    struct boot_job job = job_even(1, 8);

    job.actor[0].fds_left = 10;       /* for all but the last                 */
    job.actor[7].late = true;
    expected = 7;
    job_run(&job, all_join);
    ok(job_failed(&job, DTENSOR_ESYS, 0, "boot: rank 0 on n0 has no file "
                  "descriptor left: the limit is ", TOLD_MS),
       "no descriptors left for connections: all say where");
    note("%s", said[1].err.text);
    job = job_even(1, 8);
    job.actor[3].fds_left = 6;
    job.rounds = 2;                  /* the others hear of it in the next    */
    job_run(&job, NULL);
    ok(job_failed(&job, DTENSOR_ESYS, 3, "boot: rank 3 on n0 has no file "
                  "descriptor left", TOLD_MS),
       "no descriptors left for those of peers: all say where");
}

/* --------------------------------------------------------------- deaths --- */

static int victim;

static void victim_dies(void)
{
    all_join();
    job_kill(victim);
}

static void test_killed(void)
{
    static const int victims[] = { 0, 1, 2, 3 };
    char words[64];

    for (size_t i = 0; i < DTN_COUNT(victims); i++) {
        struct boot_job job = job_even(3, 2);
        int v = victims[i];

        victim = v;
        expected = 5;
        job_drop(&job, 5);           /* so that nobody gets through          */
        snprintf(words, sizeof words, "boot: rank %d on n%d closed its "
                 "connection", v, v / 2);
        job_run(&job, victim_dies);
        ok(job_failed(&job, DTENSOR_EPEER, v, words, TOLD_MS), "rank %d killed "
           "while opening: EPEER at once, naming it (%lld ms)", v,
           (long long)job_slowest_ms(&job));
    }
}

static void test_gone(void)
{
    struct boot_job job = job_even(3, 2);
    bool good = true;

    job.actor[3].skips = EXITS;
    job_run(&job, NULL);
    for (int i = 0; i < job.nactors; i++)
        good = good && (i == 3 || (said[i].rc == DTENSOR_EPEER &&
                                   said[i].err.rank == 3 &&
                                   said[i].leaked_fds == 0));
    ok(good && job_slowest_ms(&job) < TOLD_MS, "a rank that leaves before an "
       "allgather: EPEER at once everywhere");
    if (!good)
        job_show(&job);
}

int main(void)
{
    job_init();
    hello_parent = (int)getpid();
    test_different();
    test_twice();
    test_outside();
    test_hello();
    test_intruder();
    test_foreign_address();
    test_fd_limit();
    test_killed();
    test_gone();
    return done();
}
