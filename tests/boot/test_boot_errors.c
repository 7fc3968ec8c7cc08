/* test_boot_errors.c - all ranks get the error of a rank that cannot start
 *
 * Whatever keeps a rank from starting, all others fail with its error, long
 * before connect_timeout.  Two jobs on the same hosts and port never take each
 * other's ranks.
 *
 * Without this test, the error of one rank could reach the others only as a
 * timeout, 60 s later and without the cause.
 */
#include "base/compiler.h"
#include "boot/frame.h"
#include "dtensor.h"
#include "tests/boot/boot_job.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

/* ---------------------------------------------------------- port in use --- */

static const struct port_case {
    const char *what, *address;
    int nhosts, each, culprit;
} port_cases[] = {
    { "of rank 0, two hosts", "127.0.0.2", 2, 1, 0 },
    { "of rank 0, three hosts of two", "127.0.0.2", 3, 2, 0 },
    { "in the middle, four hosts of two", "127.0.0.3", 4, 2, 2 },
    { "in the middle, seven hosts", "127.0.0.4", 7, 1, 2 },
};

/* A rank that finds its port taken looks for those below it for 2.5 s.  Where a
 * busy machine does not run one of these for so long there is another try.
 */
static bool port_told(const struct port_case *c)
{
    struct boot_job job = job_even(c->nhosts, c->each);
    char words[160];
    bool good = false;

    job.timeout_ms = 10000;
    snprintf(words, sizeof words, "boot: rank %d on n%d failed: port %d on "
             "%s is in use (another job? set [transport] port)", c->culprit,
             c->culprit / c->each, job_port, c->address);
    for (int i = 0; i < 4 && !good; i++) {
        job_run(&job, NULL);
        good = job_failed(&job, DTENSOR_ESYS, c->culprit, words, TOLD_MS) &&
               said[0].err.sys_errno == EADDRINUSE;
    }
    note("%lld ms", (long long)job_slowest_ms(&job));
    return good;
}

static void test_port_in_use(void)
{
    struct boot_job job = job_even(1, 3);
    int fd = take_port("127.0.0.2");

    job_run(&job, NULL);
    ok(job_good(&job), "a job of one host needs no port");
    close(fd);
    for (size_t i = 0; i < DTN_COUNT(port_cases); i++) {
        const struct port_case *c = &port_cases[i];

        fd = take_port(c->address);
        ok(port_told(c), "a port in use, %s: all ranks on all hosts say so",
           c->what);
        close(fd);
    }
}

/* One machine plays two hosts: the port is the parent's. */
static void test_leaf_yields(void)
{
    struct boot_job job = job_even(2, 2);
    int fd = take_port("127.0.0.3");

    job_run(&job, NULL);
    ok(job_good(&job), "a leader without hosts below it needs no port");
    close(fd);
}

/* ------------------------------------------------------- own reasons --- */

/* All are there but the one that fails and those below it: nobody comes when
 * the others are gone.
 */
static int expected;

static void others_join(void)
{
    job_await(&seen->joined, expected);
}

static void run_last(struct boot_job *job, int culprit)
{
    job->actor[culprit].late = true;
    expected = job_others(job, culprit);
    job_run(job, others_join);
}

static void test_cannot_start(void)
{
    static const int hosts[] = { 1, 2, 4 };
    struct boot_job job;
    char words[120];

    for (size_t i = 0; i < DTN_COUNT(hosts); i++)
        for (int r = 0; r < 2 * hosts[i]; r++) {
            job = job_even(hosts[i], 2);
            job.actor[r].fails = true;
            snprintf(words, sizeof words, "init: rank %d on n%d failed: verbs: "
                     "no RDMA device (see ibv_devices)", r, r / 2);
            run_last(&job, r);
            ok(job_failed(&job, DTENSOR_ENODEV, r, words, TOLD_MS),
               "rank %d of %d cannot start: all say why (%lld ms)", r,
               2 * hosts[i], (long long)job_slowest_ms(&job));
        }
}

/* Both ranks fail, and rank 0 cannot connect to the other host.  Where a busy
 * machine takes longer there is another try.
 */
static void test_both_fail(void)
{
    struct boot_job job = job_even(2, 1);
    int fd = take_port("127.0.0.3");
    bool good = false;

    job.actor[0].fails = job.actor[1].fails = true;
    for (int i = 0; i < 4 && !good; i++) {
        job_run(&job, NULL);
        good = job_failed(&job, DTENSOR_ENODEV, 0, "init: rank 0 on n0 failed",
                          2000);
    }
    ok(good, "two ranks cannot start: the first does not wait for the other, "
       "which it has told (%lld ms)", (long long)job_slowest_ms(&job));
    close(fd);
}

static void test_refuses(void)
{
    struct boot_job job;
    char words[120];

    for (int r = 0; r < 6; r++) {
        job = job_even(3, 2);
        job.actor[r].refuses = true;
        snprintf(words, sizeof words, "init: rank %d on n%d failed: verbs: no "
                 "RDMA device", r, r / 2);
        job_run(&job, NULL);
        ok(job_failed(&job, DTENSOR_ENODEV, r, words, TOLD_MS), "rank %d of 6 "
           "cannot go on: all hear why in the next allgather", r);
    }
}

/* ----------------------------------------------------------- two jobs --- */

static int two_failed, two_named; /* jobs; of them, who named the other       */

/* Did this job come out right, or did all its ranks fail?  The other has 0.2 s
 * to say its name: on a busy machine it is not always known.
 */
static bool two_good(const struct boot_job *job, int which, bool *ran)
{
    int right = 0, failed = 0, named = 0, n = job->nactors / 2;
    char other[64];

    snprintf(other, sizeof other, "job \"test-%d.%d\"", (int)getpid(),
             3 - which);
    for (int i = 0; i < job->nactors; i++) {
        if (job->actor[i].job != which)
            continue;
        right += said[i].rc == 0 && said[i].right && said[i].leaked_fds == 0;
        named += said[i].rc != 0 && strstr(said[i].err.text, other) != NULL;
        failed += said[i].rc != 0 &&
                  (strstr(said[i].err.text, other) ||
                   strstr(said[i].err.text, " is in use (another job? "));
    }
    *ran = right == n;
    two_failed += failed == n;
    two_named += named == n;
    return right == n || failed == n;
}

static void two_start(struct boot_job *job, int nhosts, int each, int spread_ms,
                      unsigned seed)
{
    int n;

    *job = job_even(nhosts, each);
    n = job->nactors;
    for (int i = 0; i < n; i++) {
        job->actor[n + i] = job->actor[i];
        job->actor[i].job = 1;
        job->actor[n + i].job = 2;
    }
    job->nactors = 2 * n;
    for (int i = 0; i < 2 * n; i++) {
        seed = seed * 1103515245 + 12345;
        job->actor[i].delay_ms = (int)(seed >> 16) % spread_ms;
    }
}

/* One file, one port, two jobs, started within `spread` of each other. */
static void test_two_jobs(int nhosts, int each, int spread_ms, int trials)
{
    int both = 0, one = 0, none = 0, mixed = 0;
    int64_t slowest = 0;

    for (int t = 0; t < trials; t++) {
        bool first, second, good;
        struct boot_job job;

        two_start(&job, nhosts, each, spread_ms, (unsigned)t * 77 + 5);
        job_run(&job, NULL);
        good = two_good(&job, 1, &first);
        good = two_good(&job, 2, &second) && good && job_crashed == 0;
        both += first && second;
        one += first != second;
        none += !first && !second;
        if (job_slowest_ms(&job) > slowest)
            slowest = job_slowest_ms(&job);
        mixed += !good;
        if (!good)
            job_show(&job);
    }
    ok(mixed == 0 && slowest < TOLD_MS,
       "two jobs with one file on %d hosts, "
       "%d trials: each runs right, or fails and says why", nhosts, trials);
    note("both ran %d, one %d, none %d; the slowest rank took %lld ms", both,
         one, none, (long long)slowest);
}

/* Jobs are started at once until one names the other. */
static void test_two_named(void)
{
    for (int t = 0; t < 50 && two_named == 0; t++) {
        struct boot_job job;
        bool ran;

        two_start(&job, 4, 1, 20, (unsigned)t * 91 + 3);
        job_run(&job, NULL);
        two_good(&job, 1, &ran);
        two_good(&job, 2, &ran);
    }
    ok(two_named > 0, "of %d jobs that found the port taken %d could name the "
       "other", two_failed, two_named);
}

/* ----------------------------------------------------------- impostors --- */

/* A parent that takes every child and sends what no parent would: an answer to
 * round 1 that is cut, repeats a rank, or belongs to no such round.
 */
static const struct lie {
    const char *what;
    uint32_t seq;
    uint32_t entries[4][2];       /* rank, size that is claimed               */
    uint32_t size;                /* of the body                              */
} lies[] = {
    { "nothing", 1, { { 0, 0 } }, 0 },
    { "half a head", 1, { { 0, 0 } }, 4 },
    { "a rank twice", 1, { { 0, 0 }, { 0, 0 }, { 1, 0 } }, 24 },
    { "bytes that are not there", 1, { { 0, 4000 } }, 8 },
    { "a rank that is none", 1, { { 7, 0 }, { 1, 0 }, { 2, 0 } }, 24 },
};

static const struct lie *lie;

static void lie_to(int fd)
{
    unsigned char body[64] = { 0 }, rank[4] = { 0 };
    struct dtn_frame frame = { .type = DTN_FRAME_WELCOME,
                               .size = 4,
                               .body = rank };
    struct dtn_frame_stream io;
    int rounds = 0;

    dtn_frame_init(&io, fd, true);
    dtn_frame_post(&io, &frame, false);
    for (int i = 0; i < 4; i++) {
        dtn_frame_put32(body + 8 * i, lie->entries[i][0]);
        dtn_frame_put32(body + 8 * i + 4, lie->entries[i][1]);
    }
    frame = (struct dtn_frame){ .type = DTN_FRAME_ALL };
    dtn_frame_post(&io, &frame, false);           /* round 0 is over          */
    dtn_frame_flush(&io);
    io.accepts = DTN_FRAME_BIT(DTN_FRAME_HELLO)
                 | DTN_FRAME_BIT(DTN_FRAME_ENTRIES)
                 | DTN_FRAME_BIT(DTN_FRAME_FAIL);
    io.entries_max = 1 << 20;
    io.fds_max = 1;
    for (int i = 0; i < 4000; i++) {
        struct pollfd p = { fd, POLLIN, 0 };
        struct dtn_frame in;
        enum dtn_frame_got got;

        poll(&p, 1, 10);
        got = dtn_frame_recv(&io, &in);
        if (got == DTN_FRAME_READY && in.type == DTN_FRAME_ENTRIES
            && in.seq == 1 && rounds++ == 0) {
            frame = (struct dtn_frame){ .type = DTN_FRAME_ALL, .seq = lie->seq,
                                        .size = lie->size, .body = body };
            dtn_frame_post(&io, &frame, false);
            dtn_frame_flush(&io);
        } else if (got != DTN_FRAME_MORE && got != DTN_FRAME_READY) {
            break;
        }
    }
    dtn_frame_close(&io);
    _exit(0);
}

static int lie_listener;

static void impostor_comes(void)
{
    for (int i = 0; i < 2; i++) {
        int fd = accept4(lie_listener, NULL, NULL, SOCK_NONBLOCK);

        if (fork() == 0)
            lie_to(fd);
        close(fd);
    }
}

static void test_impostor(void)
{
    for (size_t i = 0; i < DTN_COUNT(lies); i++) {
        struct boot_job job = job_even(1, 3);
        struct sockaddr_un addr;
        socklen_t len = local_addr(&addr);

        job_drop(&job, 0);
        lie = &lies[i];
        lie_listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(lie_listener, (struct sockaddr *)&addr, len) != 0 ||
            listen(lie_listener, 8) != 0)
            note("no place for the impostor");
        job_run(&job, impostor_comes);
        ok(job_failed(&job, DTENSOR_EPEER, 0, "boot: rank 0 on n0 sent invalid "
                      "data", TOLD_MS), "a parent that "
           "answers with %s: no crash, its children say so", lie->what);
        close(lie_listener);
        while (waitpid(-1, NULL, 0) > 0)
            ;
    }
}

/* -------------------------------------------------------------- deaths --- */

/* Killed while it starts: who has met it says so, to all who have come.  Of a
 * rank that comes later only the code is known: its own parent may be gone by
 * then.
 */
static int victim;

static void leader_dies(void)
{
    job_await(&seen->joined, 5);
    job_kill(victim);
}

static void test_killed_early(void)
{
    int named = 0, trials = 3;
    int64_t slowest = 0;

    for (int t = 0; t < trials; t++) {
        struct boot_job job = job_even(3, 2);
        int late = (2 * t + 3) % 6;
        bool good = true;

        victim = 2 * t;
        job.actor[late].late = true;                  /* so nobody is through */
        job_run(&job, leader_dies);
        for (int i = 0; i < job.nactors; i++)
            good = good && (i == victim || (said[i].rc == DTENSOR_EPEER &&
                            (i == late || said[i].err.rank == victim)));
        named += good;
        if (!good)
            job_show(&job);
        if (job_slowest_ms(&job) > slowest)
            slowest = job_slowest_ms(&job);
    }
    ok(named == trials && slowest < TOLD_MS,
       "a leader killed while others wait: "
       "named by all who wait, at once, in %d of %d (%lld ms)", named, trials,
       (long long)slowest);
}

int main(void)
{
    job_init();
    test_port_in_use();
    test_leaf_yields();
    test_cannot_start();
    test_both_fail();
    test_refuses();
    test_two_jobs(2, 2, 20, rounds_of(12));
    test_two_jobs(4, 1, 20, rounds_of(5));
    test_two_jobs(2, 1, 200, rounds_of(4));
    test_two_named();
    test_impostor();
    test_killed_early();
    return done();
}
