/* test_simulated_joining.c - thousands of ranks join, and one is lost or odd
 *
 * The joining and watching of lib/boot, for so many ranks that whole contexts
 * would not fit into one process: each joins, gathers a blob of every rank, and
 * watches.  Then one dies, and all others must name it soon.  What each sends
 * is held against a model, which also says it for more ranks than fit here.
 * In other jobs the rank ODD is never started, starts late or too late, has
 * other settings, is of another job, or says that it is the next rank.
 *
 *     test_simulated_joining [RANKS [PER_HOST [SEED [ODD]]]]
 *
 * Without this test, a tree of 64 hosts would be tried for the first time by
 * who owns 64 hosts.
 */
#include "base/compiler.h"
#include "boot/boot.h"
#include "dtensor.h"
#include "tests/sim/job.h"
#include "tests/sim/member.h"
#include "tests/sim/sim.h"
#include "tests/support/ranks.h"
#include "tests/support/tap.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 512, PER_HOST = 32, RANKS_MAX = 4096 };
#define MS INT64_C(1000000)
#define HEARD_NS (100 * MS)       /* after which a connection is known closed */
#define SOON_NS (1500 * MS)

static struct outcome {
    int64_t joined_ns, named_ns;  /* when                                     */
    int named;                    /* the rank that is lost; -1: none          */
    bool right;                   /* what it gathered                         */
    int rc, culprit;              /* of an error                              */
    struct sim_use use;           /* until it had joined                      */
    char text[500];               /* of an error                              */
} outcomes[RANKS_MAX];
static int victim;                /* the rank that dies, or is odd            */
static const struct odd {
    const char *claim;
    int64_t late_ns;              /* it opens so late; -1: never              */
    const char *identity;         /* its settings                             */
    int rc;                       /* what the others return                   */
    const char *words;            /* in their errors                          */
    int64_t within_ns;            /* from the start until all know            */
    const char *job;              /* DTN_JOB; NULL: that of all               */
    int poses;                    /* added to its rank                        */
} odds[] = {
    { .claim = "one is never started", .late_ns = -1, .identity = "",
      .rc = DTENSOR_ETIME, .within_ns = 8000 * MS + SOON_NS,
      .words = "did not join within 8.0 s (is it started?" },
    { .claim = "one is 3 s late", .late_ns = 3000 * MS, .identity = "",
      .within_ns = 3000 * MS + SOON_NS, .words = "" },
    { .claim = "one is 12 s late, for which nobody waits", .identity = "",
      .late_ns = 12000 * MS, .rc = DTENSOR_ETIME,
      .within_ns = 8000 * MS + SOON_NS, .words = "did not join within 8.0 s" },
    { .claim = "one has other settings", .rc = DTENSOR_EMISMATCH,
      .identity = "[cluster] name = \"other\"\n", .within_ns = SOON_NS,
      .words = "started with other settings: " },
    { .claim = "one is of another job", .identity = "", .rc = DTENSOR_ETIME,
      .within_ns = 8000 * MS + SOON_NS, .words = "did not join within 8.0 s",
      .job = "another" },
    { .claim = "one says that it is the next one", .identity = "",
      .rc = DTENSOR_EMISMATCH, .within_ns = SOON_NS, .poses = 1,
      .words = "was started twice" },
};
static const struct odd *odd;     /* of the victim; NULL: it dies             */
static int64_t died_ns;

static const char *rank_env(int rank, const char *name)
{
    const bool is_odd = odd && rank == victim;

    if (is_odd && odd->job && strcmp(name, "DTN_JOB") == 0)
        return odd->job;
    return sim_job_env(is_odd ? rank + odd->poses : rank, name);
}

static void rank_watch(struct dtn_boot *boot, int rank)
{
    const struct timespec nap = { 0, 20000000 };
    const int64_t end = sim_now() + 10000 * MS;

    dtn_boot_watch_start(boot);
    outcomes[rank].joined_ns = sim_now();
    outcomes[rank].use = sim_used(rank);
    sim_mark();
    while (outcomes[rank].named < 0 && sim_now() < end) {
        nanosleep(&nap, NULL);
        dtn_boot_watch(boot);
        outcomes[rank].named = dtn_boot_first_failure(boot);
        if (!sim_lost(victim))
            died_ns = sim_now();
    }
    outcomes[rank].named_ns = sim_now();
    for (int i = 0; i < 100; i++) {           /* others hear it through here  */
        nanosleep(&nap, NULL);
        dtn_boot_watch(boot);
    }
}

static void rank_run(int rank)
{
    struct dtensor_error err = { .rank = -1 };
    const bool is_odd = odd && rank == victim;
    struct sim_member member;
    int rc;

    outcomes[rank].named = -1;
    if (is_odd && odd->late_ns < 0)
        return;
    if (is_odd && odd->late_ns > 0)
        nanosleep(&(struct timespec){ .tv_sec = odd->late_ns / (1000 * MS) },
                  NULL);
    rc = sim_member_open(&member, is_odd ? odd->identity : "", &err);
    if (rc == 0)
        rc = sim_member_gather(&member, &outcomes[rank].right, &err);
    if (rc == 0 && !odd)
        rank_watch(member.boot, rank);
    else
        outcomes[rank].named_ns = sim_now();
    outcomes[rank].rc = rc;
    outcomes[rank].culprit = err.rank;
    snprintf(outcomes[rank].text, sizeof outcomes[rank].text, "%s",
             rc == 0 ? "" : err.text);
    sim_member_close(&member);
}

static int wrong, failed;
static int64_t joined_ns, named_ns;

static void check(const struct sim_options *options)
{
    for (int r = 0; r < options->nranks; r++) {
        const struct outcome *one = &outcomes[r];

        if (r == victim)
            continue;
        failed += !one->right;
        wrong += one->named != victim;
        joined_ns = one->joined_ns > joined_ns ? one->joined_ns : joined_ns;
        named_ns = one->named_ns > named_ns ? one->named_ns : named_ns;
        if ((!one->right || one->named != victim) && failed + wrong < 8)
            note("rank %d names %d; %s", r, one->named, one->text);
    }
}

/* All others return the same, in time, and name the odd rank. */
static void check_odd(const struct sim_options *options)
{
    const int named = victim + odd->poses;
    char name[32];

    snprintf(name, sizeof name, "rank %d ", named);
    for (int r = 0; r < options->nranks; r++) {
        const struct outcome *one = &outcomes[r];
        const bool right = one->rc == odd->rc && strstr(one->text, odd->words)
            && (odd->rc == 0 ? one->right : one->culprit == named
                                            && strstr(one->text, name));

        if (r == victim)
            continue;
        wrong += !right;
        named_ns = one->named_ns > named_ns ? one->named_ns : named_ns;
        if (!right && wrong < 8)
            note("rank %d returns %d, %d: %s", r, one->rc, one->culprit,
                 one->text);
    }
}

/* The most that any rank of a kind took: one that leads a host, or not. */
static struct sim_use most_of(bool leads)
{
    struct sim_use most = { 0 };

    for (int r = 0; r < sim_job.n; r++) {
        const struct sim_use *use = &outcomes[r].use;

        if ((r % sim_job.per_host == 0) != leads || r == victim)
            continue;
        most.sends = use->sends > most.sends ? use->sends : most.sends;
        most.bytes = use->bytes > most.bytes ? use->bytes : most.bytes;
        most.most = use->most > most.most ? use->most : most.most;
    }
    return most;
}

/* A rank that leads no host sends who it is and its blob, whatever the size of
 * the world.  A leader passes the table to two child hosts, 12 bytes for each
 * rank with a blob of 4, and the child of rank 0 half as many up, with the 20
 * of round 0: 40 bytes a rank.  Entries go up as they come, in frames with 20
 * bytes more: for each level of the tree about as many as a host has ranks, and
 * 32.  For 131,072 ranks of 4,096 hosts that makes 832 sends and 5 MiB of the
 * busiest leader.
 */
static void test_use(void)
{
    const struct sim_use led = most_of(false), leader = most_of(true);
    const uint64_t n = (uint64_t)sim_job.n;
    uint64_t sends = 32 + (uint64_t)sim_job.per_host, bytes;

    for (int hosts = sim_job.hosts; hosts > 1; hosts /= 2)
        sends += 32 + (uint64_t)sim_job.per_host;
    bytes = 40 * n + 20 * sends;
    note("memory at a time: %zu bytes of a rank that leads no host, %zu of a "
         "leader", led.most, leader.most);
    ok(led.sends <= 4 && led.bytes <= 128, "a rank that leads no host sends "
       "%" PRIu64 " times, %" PRIu64 " bytes", led.sends, led.bytes);
    ok(leader.sends <= sends && leader.bytes >= 30 * n && leader.bytes <= bytes,
       "a leader at most %" PRIu64 " times, %" PRIu64 " bytes; the model says "
       "%" PRIu64 " and %" PRIu64, leader.sends, leader.bytes, sends, bytes);
}

/* What is done with a rank that dies is done: now one is odd instead. */
static void test_odd(struct sim_options options)
{
    struct sim_result result;

    options.fault = (struct sim_fault){ .kind = SIM_NONE };
    options.end = check_odd;
    for (odd = odds; odd < odds + DTN_COUNT(odds); odd++) {
        if (odd->poses && victim % sim_job.per_host == 0)
            continue;                       /* its host lacks a leader        */
        memset(outcomes, 0, sizeof outcomes);
        wrong = 0;
        named_ns = 0;
        sim_run(&options, &result);
        ok(wrong == 0 && result.hung == 0 && result.leaked == 0
           && named_ns < odd->within_ns, "%s: the others return %d after %.1f "
           "ms, %s", odd->claim, odd->rc, (double)named_ns / 1e6,
           outcomes[0].text);
    }
}

int main(int argc, char **argv)
{
    struct sim_options options = {
        .seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1,
        .latency_ns = 100000, .limit_ns = 60000 * MS,
        .main = rank_run,
        .env = rank_env, .end = check,
    };
    struct sim_result result;

    if (sanitized())
        return skip_all("sanitizers do not know coroutines");
    sim_job.n = argc > 1 ? atoi(argv[1]) : RANKS;
    sim_job.per_host = argc > 2 ? atoi(argv[2]) : PER_HOST;
    sim_job.hosts = sim_job.n / sim_job.per_host;
    sim_job_write();
    victim = argc > 4 ? atoi(argv[4]) : sim_job.n / 2 + 1;
    options.nranks = sim_job.n;
    options.ranks_per_host = sim_job.per_host;
    options.fault = (struct sim_fault){ .kind = SIM_KILL, .rank = victim,
                                        .later = true, .call = 100,
                                        .ns = HEARD_NS };
    sim_run(&options, &result);
    ok(failed == 0 && result.hung == 0, "%d ranks on %d hosts have joined and "
       "gathered after %.1f ms, %d of them wrongly", sim_job.n, sim_job.hosts,
       (double)joined_ns / 1e6, failed);
    ok(wrong == 0 && named_ns - died_ns < SOON_NS, "one dies, and all others "
       "name it, the last %.1f ms later", (double)(named_ns - died_ns) / 1e6);
    ok(result.leaked == 0, "nothing is left");
    test_use();
    test_odd(options);
    unlink(sim_job.path);
    return done();
}
