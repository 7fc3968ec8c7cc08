/* test_simulated_losses.c - losses at the moments that once were difficult
 *
 * Each case is a small job in which a rank is lost at a given time while others
 * join, wait or leave.  All others must name it, in the same way and in time;
 * where two are lost, the same of them.
 * What test_simulation finds by a seed comes here with its moment, since seeds
 * change their meaning when the library changes.
 *
 *     test_simulated_losses [CASE]
 *
 * Without this test, each of these losses could again be blamed on a rank that
 * is not lost, or be noticed at op_timeout only.
 */
#include "base/compiler.h"
#include "boot/boot.h"
#include "dtensor.h"
#include "tests/sim/job.h"
#include "tests/sim/member.h"
#include "tests/sim/sim.h"
#include "tests/support/ranks.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS INT64_C(1000000)
#define WATCHED_NS (12000 * MS)
enum { RANKS_MAX = 20, TIMEOUT_MS = 8000, OP_MS = 6000 };    /* as job.c has */

/* What a rank does, in ms of the job's time; 0: at once, or not. */
struct part {
    int opens;                    /* when it starts to join                   */
    int gathers;                  /* when it starts the exchange              */
    int watches;                  /* when it has joined                       */
    int leaves;                   /* when it is done                          */
    int doubts;                   /* when a connection to `doubted` fails     */
    int doubted;
    int needs;                    /* the only rank that it waits for          */
};

enum named { FIRST, SECOND, ANY };        /* of two losses */

static const struct plot {
    const char *claim;
    int hosts, per_host;
    enum sim_fault_kind kind;
    int victim, at_ms;
    enum dtn_loss loss;           /* after joining; NONE: while joining       */
    int by_ms;                    /* when all know                            */
    struct part part[RANKS_MAX];
    struct {                      /* a second loss; kind NONE: there is none  */
        enum sim_fault_kind kind;
        int victim;
        int after_ms;             /* the first                                */
        int heard_ms;             /* after it, by others than its host        */
        enum named named;         /* by all                                   */
    } second;
} plots[] = {
    { "rank 0 is done, and a host that only it hears is lost",
      3, 1, SIM_POWER, 2, 1000, DTN_LOSS_HOST, 2700,
      .part = { [0] = { .leaves = 300 } } },
    { "the leader of a host is done, and the one host below it is lost",
      4, 1, SIM_POWER, 3, 1000, DTN_LOSS_HOST, 2700,
      .part = { [1] = { .leaves = 300 } } },
    { "the leader of a host is done, and a rank elsewhere is stopped",
      2, 2, SIM_STOP, 1, 1000, DTN_LOSS_STOPPED, 2700,
      .part = { [2] = { .leaves = 300 } } },
    { "the leader of a host is done, and is stopped while it stays for others",
      4, 1, SIM_STOP, 1, 1000, DTN_LOSS_STOPPED, 2300,
      .part = { [1] = { .leaves = 300 } } },
    { "rank 0 is done, and is stopped while it stays for its host",
      2, 2, SIM_STOP, 0, 1000, DTN_LOSS_STOPPED, 2300,
      .part = { [0] = { .leaves = 300 } } },
    { "a leader and the one above it are done, and the lower one is stopped",
      8, 1, SIM_STOP, 3, 1000, DTN_LOSS_STOPPED, 2300,
      .part = { [1] = { .leaves = 300 }, [3] = { .leaves = 200 } } },
    { "the leader of a host is done, and dies while it stays for others",
      4, 2, SIM_KILL, 2, 1000, DTN_LOSS_DIED, 1500,
      .part = { [2] = { .leaves = 300 } } },
    { "rank 0 is done, and dies while it stays for hosts of one rank",
      3, 1, SIM_KILL, 0, 1000, DTN_LOSS_DIED, 1500,
      .part = { [0] = { .leaves = 300 } } },
    { "a leader is done, and its host goes off while it stays for others",
      4, 1, SIM_POWER, 1, 1000, DTN_LOSS_HOST, 2700,
      .part = { [1] = { .leaves = 300 } } },
    { "ranks leave before their leader, which is stopped while it stays",
      2, 3, SIM_STOP, 3, 1000, DTN_LOSS_STOPPED, 2500,
      .part = { [4] = { .leaves = 300 }, [3] = { .leaves = 400 },
                [5] = { .needs = 2 } },
      .second = { SIM_STOP, 2, 300, 0, FIRST } },
    { "the host of rank 0 is lost while the other child still joins",
      3, 1, SIM_POWER, 0, 500, DTN_LOSS_HOST, 6000,
      .part = { [2] = { .watches = 3000 } } },
    { "the same, and it is the first child",
      3, 1, SIM_POWER, 0, 500, DTN_LOSS_HOST, 6000,
      .part = { [1] = { .watches = 3000 } } },
    { "a connection to a rank fails before it is found stopped",
      3, 2, SIM_STOP, 3, 500, DTN_LOSS_STOPPED, 2000,
      .part = { [0] = { .doubts = 1000, .doubted = 3 } } },
    { "a leader is stopped after it took one child, before it took another",
      2, 3, SIM_STOP, 3, 500, DTN_LOSS_NONE, TIMEOUT_MS + 1500,
      .part = { [5] = { .opens = 1000 } } },
    { "a leader on the way is stopped before the host below has joined",
      4, 1, SIM_STOP, 1, 500, DTN_LOSS_NONE, TIMEOUT_MS + 1500,
      .part = { [3] = { .opens = 1000 } } },
    { "a leader is stopped in an exchange, before a rank below takes part",
      2, 2, SIM_STOP, 2, 500, DTN_LOSS_NONE, TIMEOUT_MS + 2500,
      .part = { [3] = { .gathers = 1000 } } },
    { "a leader dies, and a rank of its host starts when all have given up",
      2, 2, SIM_KILL, 2, 500, DTN_LOSS_NONE, TIMEOUT_MS + 3500,
      .part = { [3] = { .opens = 2000 } } },
    { "a leader joins late, and a rank of its host never does",
      2, 2, SIM_KILL, 3, 100, DTN_LOSS_NONE, TIMEOUT_MS + 1500,
      .part = { [2] = { .opens = 2000 }, [3] = { .opens = 1000 } } },
    { "a leader and a lower rank are stopped: the leader's host knows only it",
      4, 2, SIM_STOP, 3, 500, DTN_LOSS_STOPPED, 2000,
      .second = { SIM_STOP, 6, 20, 0, ANY } },
    { "a leader dies after it told of a loss, and its kernel is late to say so",
      3, 2, SIM_KILL, 5, 500, DTN_LOSS_DIED, 700,
      .second = { SIM_KILL, 2, 30, 200, ANY } },
    { "a rank needs another long after the others of its host have named one",
      2, 4, SIM_KILL, 7, 500, DTN_LOSS_DIED, 2200,
      .part = { [5] = { .needs = 4 } },
      .second = { SIM_STOP, 4, 34, 0, FIRST } },
    { "a rank waits for one that is lost long after its way to the others",
      5, 1, SIM_KILL, 0, 500, DTN_LOSS_DIED, 2000,
      .part = { [1] = { .needs = 3 }, [3] = { .needs = 4 },
                [4] = { .needs = 3 } },
      .second = { SIM_STOP, 3, 100, 0, FIRST } },
    { "the hosts of the parent and of its parent go off: those below know both",
      5, 1, SIM_POWER, 1, 500, DTN_LOSS_HOST, 2300,
      .second = { SIM_POWER, 0, 20, 0, SECOND } },
    { "a leader dies with a rank elsewhere, and its kernel is late to say so",
      3, 2, SIM_KILL, 5, 500, DTN_LOSS_DIED, 700,
      .second = { SIM_KILL, 2, 1, 200, ANY } },
    { "two leaders die at once",
      3, 2, SIM_KILL, 2, 500, DTN_LOSS_DIED, 700,
      .second = { SIM_KILL, 4, 1, 1, ANY } },
    { "rank 0 and another leader die at once",
      4, 2, SIM_KILL, 2, 500, DTN_LOSS_DIED, 700,
      .second = { SIM_KILL, 0, 1, 200, SECOND } },
    { "a parent and its parent die at once, on hosts of one rank",
      8, 1, SIM_KILL, 2, 500, DTN_LOSS_DIED, 700,
      .second = { SIM_KILL, 0, 1, 30, ANY } },
    { "the first two of a host die at once",
      2, 4, SIM_KILL, 5, 500, DTN_LOSS_DIED, 700,
      .second = { SIM_KILL, 4, 1, 200, SECOND } },
    { "a leader dies, and one below it whose kernel is late to say so",
      8, 1, SIM_KILL, 1, 500, DTN_LOSS_DIED, 1200,
      .second = { SIM_KILL, 3, 1, 290, FIRST } },
    { "a leader is stopped, and a rank dies before that is found",
      3, 3, SIM_STOP, 3, 500, DTN_LOSS_DIED, 2200,
      .second = { SIM_KILL, 1, 100, 1, SECOND } },
    { "a rank is stopped, and its leader before that is found",
      3, 4, SIM_STOP, 7, 500, DTN_LOSS_STOPPED, 3000,
      .second = { SIM_STOP, 4, 700, 0, ANY } },
    { "a rank is stopped, and its leader just before that is found",
      3, 4, SIM_STOP, 5, 500, DTN_LOSS_STOPPED, 3000,
      .second = { SIM_STOP, 4, 900, 0, ANY } },
    { "a rank is stopped, and the host of a leader is off before it is named",
      5, 2, SIM_STOP, 1, 500, DTN_LOSS_STOPPED, 3000,
      .second = { SIM_POWER, 2, 90, 0, ANY } },
    { "two die as far apart as ranks wait before they name one",
      5, 4, SIM_KILL, 18, 500, DTN_LOSS_DIED, 800,
      .part = { [0] = { .needs = 9 }, [1] = { .needs = 9 },
                [2] = { .needs = 9 }, [3] = { .needs = 9 },
                [4] = { .needs = 9 }, [5] = { .needs = 9 },
                [6] = { .needs = 9 }, [7] = { .needs = 9 },
                [8] = { .needs = 9 }, [9] = { .needs = 18 },
                [10] = { .needs = 9 }, [11] = { .needs = 9 },
                [12] = { .needs = 9 }, [13] = { .needs = 9 },
                [15] = { .needs = 9 }, [16] = { .needs = 18 },
                [17] = { .needs = 9 }, [19] = { .needs = 9 } },
      .second = { SIM_KILL, 14, 44, 1, ANY } },
};
static const struct plot *plot;

static struct outcome {
    bool ended;
    int named;                    /* the rank that is lost; -1: none          */
    enum dtn_loss loss;
    int64_t known_ns, left_ns;    /* when it knew, and when it had left       */
    char text[500];               /* of an error while joining                */
} outcomes[RANKS_MAX];

/* ------------------------------------------------------------ the ranks --- */

static void sleep_until(int ms)
{
    const struct timespec nap = { 0, 5000000 };

    while (sim_now() < ms * MS)
        nanosleep(&nap, NULL);
}

/* The loss for which it gives up; -1: none. */
static int rank_lost(const struct dtn_boot *boot, const struct part *part)
{
    return part->needs == 0 ? dtn_boot_first_loss(boot)
         : dtn_boot_peer_failure(boot, part->needs)->order > 0 ? part->needs
         : -1;
}

/* As a call that waits: it looks, its connection fails at a time, and it tells
 * why it gives up.
 */
static void rank_watch(struct dtn_boot *boot, int rank,
                       const struct part *part)
{
    const int64_t end = part->leaves ? part->leaves * MS : WATCHED_NS;
    const struct timespec nap = { 0, 5000000 };
    struct outcome *mine = &outcomes[rank];
    bool doubts = part->doubts > 0;
    int lost = -1;

    dtn_boot_watch_start(boot);
    while (lost < 0 && sim_now() < end) {
        nanosleep(&nap, NULL);
        dtn_boot_watch(boot);
        lost = rank_lost(boot, part);
        if (doubts && sim_now() >= part->doubts * MS)
            doubts = !dtn_boot_unheard(boot, part->doubted);
    }
    if (lost < 0)
        return;
    mine->named = dtn_boot_agree(boot, lost, &mine->loss);
    dtn_boot_report_failure(boot, mine->named, DTENSOR_EPEER,
                            &(struct dtn_mismatch){ .rank = 0 });
}

static void rank_run(int rank)
{
    const struct part *part = &plot->part[rank];
    struct dtensor_error err = { .rank = -1 };
    struct outcome *mine = &outcomes[rank];
    struct sim_member member;
    bool right;
    int rc;

    mine->named = -1;
    sleep_until(part->opens);
    rc = sim_member_open(&member, "", &err);
    sleep_until(part->gathers);
    if (rc == 0)
        rc = sim_member_gather(&member, &right, &err);
    sleep_until(part->watches);
    if (rc == 0)
        rank_watch(member.boot, rank, part);
    else
        mine->named = err.rank;
    mine->known_ns = sim_now();
    snprintf(mine->text, sizeof mine->text, "%s", rc == 0 ? "" : err.text);
    sim_member_close(&member);
    mine->left_ns = sim_now();
    mine->ended = true;
}

/* ----------------------------------------------------------- the checks --- */

static int bad;

/* Whom all must name. */
static int plot_names(void)
{
    const bool second = plot->second.named == ANY
                      ? outcomes[0].named == plot->second.victim
                      : plot->second.named == SECOND;

    return second ? plot->second.victim : plot->victim;
}

static void rank_check(int rank, const struct outcome *one)
{
    const bool leaves = plot->part[rank].leaves > 0;
    const int named = plot_names();
    const bool good = one->ended && one->left_ns <= plot->by_ms * MS
        && (leaves || (one->named == named && one->loss == plot->loss));

    if (!good)
        note("rank %d %s, names %d, loss %d, after %d ms, and left after %d: "
             "%s", rank, one->ended ? "ended" : "hangs", one->named,
             (int)one->loss, (int)(one->known_ns / MS),
             (int)(one->left_ns / MS), one->text);
    bad += !good;
}

static void check(const struct sim_options *options)
{
    for (int r = 0; r < options->nranks; r++)
        if (!sim_lost(r))
            rank_check(r, &outcomes[r]);
}

static void job_play(int hosts, int per_host, struct sim_options *options,
                     struct sim_result *result)
{
    memset(outcomes, 0, sizeof outcomes);
    bad = 0;
    sim_job_play(hosts, per_host, options, result);
}

static void job_run(int hosts, int per_host, void (*rank_main)(int rank),
                    const struct sim_fault *fault, struct sim_result *result)
{
    struct sim_options options = {
        .main = rank_main, .end = check, .fault = *fault,
        .second = { .kind = plot->second.kind, .rank = plot->second.victim,
                    .at_ns = plot->second.after_ms * MS,
                    .ns = plot->second.heard_ms * MS }
    };

    job_play(hosts, per_host, &options, result);
}

static void test_plot(const struct plot *of)
{
    const struct sim_fault fault = { .kind = of->kind, .rank = of->victim,
                                     .at_ns = of->at_ms * MS, .ns = MS };
    struct sim_result result;

    plot = of;
    job_run(of->hosts, of->per_host, rank_run, &fault, &result);
    ok(bad == 0 && result.lost > 0 && result.leaked == 0, "%s", of->claim);
}

/* ------------------------------------------------------------- leaving --- */

static const struct plot together = {
    .part = { { .leaves = 500 }, { .leaves = 500 }, { .leaves = 500 },
              { .leaves = 500 } },
    .by_ms = 550
}, apart = {
    .part = { { .leaves = 500 }, { .leaves = 11000 }, { .leaves = 11000 },
              { .leaves = 11000 } },
    .by_ms = 11050
};

/* Who leaves first in a job of two hosts of two. */
static void test_leaving(void)
{
    const struct sim_fault none = { .kind = SIM_NONE };
    struct sim_result result;
    int64_t last_ns = 0;

    plot = &together;
    job_run(2, 2, rank_run, &none, &result);
    for (int r = 0; r < 4; r++)
        last_ns = outcomes[r].left_ns > last_ns ? outcomes[r].left_ns : last_ns;
    ok(bad == 0, "all leave at once: the last is gone %.1f ms later",
       (double)(last_ns - 500 * MS) / 1e6);
    plot = &apart;
    job_run(2, 2, rank_run, &none, &result);
    ok(bad == 0 && outcomes[0].left_ns >= (500 + OP_MS) * MS
       && outcomes[0].left_ns <= (550 + OP_MS) * MS,
       "the others stay for long: rank 0 stays for op_timeout, %d ms",
       (int)(outcomes[0].left_ns / MS) - 500);
}

/* ------------------------------------------------------------- waiting --- */

/* Ranks 0 and 1 need rank 3, which is stopped; rank 2, which would say so, is
 * dead.
 */
static const struct plot behind = {
    .victim = 2, .loss = DTN_LOSS_DIED, .by_ms = 1900,
    .second = { .kind = SIM_STOP, .victim = 3, .after_ms = 1 }
};

static void rank_call(int rank)
{
    struct outcome *mine = &outcomes[rank];
    struct dtensor_error err = { .rank = -1 };
    const struct dtensor_mesh *mesh;
    struct dtensor_ctx *ctx = NULL;
    int32_t value;
    int rc = dtensor_init(sim_job.path, &ctx, &err);

    if (rc == 0)
        rc = dtensor_mesh_find(ctx, "world", &mesh, &err);
    sleep_until(rank < 2 ? 400 : 5000);
    if (rc == 0 && rank < 2)
        rc = dtensor_recv(mesh, 3, &value, 1, DTENSOR_I32, &err);
    mine->known_ns = sim_now();
    mine->named = err.rank;
    mine->loss = rc == DTENSOR_EPEER ? DTN_LOSS_DIED : DTN_LOSS_NONE;
    snprintf(mine->text, sizeof mine->text, "%s", err.text);
    dtensor_fini(ctx);
    mine->left_ns = sim_now();
    mine->ended = true;
}

static void test_waiting(void)
{
    const struct sim_fault fault = { .kind = SIM_KILL, .rank = behind.victim,
                                     .at_ns = 500 * MS };
    struct sim_result result;

    plot = &behind;
    job_run(2, 2, rank_call, &fault, &result);
    ok(bad == 0 && result.lost == 2 && result.leaked == 0, "a rank is stopped "
       "behind a dead leader: who waits for it knows %d ms later",
       (int)(outcomes[1].known_ns / MS) - 500);
}

int main(int argc, char **argv)
{
    if (sanitized())
        return skip_all("sanitizers do not know coroutines");
    for (size_t i = 0; i < DTN_COUNT(plots); i++)
        if (argc < 2 || (size_t)atoi(argv[1]) == i + 1)
            test_plot(&plots[i]);
    if (argc < 2) {
        test_leaving();
        test_waiting();
    }
    return done();
}
