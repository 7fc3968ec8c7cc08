/* test_injected_faults.c - a fault at every step of a small job
 *
 * Three ranks join, reduce messages of every kind, redistribute a tensor and
 * meet at a barrier.  One of them is killed at its n-th signal, or its n-th
 * signal, put or connection fails, for n = 1, 2, ... until the job ends
 * first.  The others must end with an error that names that rank, long before
 * dead_after, also if it dies before anybody has met it.
 *
 * Jobs mostly wait, so several run at once.
 *
 * Without this test, a death at one particular step could hang the whole job.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 3, COUNT_MAX = 100000, TRIES_MAX = 400 };
enum { AT_ONCE = 6, CLAIMS_MAX = 48 };
#define LIMIT_NS INT64_C(8000000000)      /* dead_after is 10 s               */

/* What each rank found, in memory that the ranks of a claim share. */
static struct report {
    int rc;
    bool ended;
    int64_t joined_ns;
    int64_t at_ns;
    struct dtensor_error err;
} *reports;                       /* [RANKS]                                  */

struct fault {
    const char *key;              /* of DTN_FAULT                             */
    const char *path;             /* of the cluster file                      */
    int victim;
    int n;
    int late;                     /* rank that begins 0.1 s after the others  */
};

/* -------------------------------------------------------------- the job --- */

static int reduce_all(const struct dtensor_mesh *mesh,
                      struct dtensor_error *err)
{
    static const size_t counts[] = { 2, 100, 5000, 30000, COUNT_MAX };
    static float in[COUNT_MAX], out[COUNT_MAX];
    int rc = 0;

    for (size_t i = 0; i < DTN_COUNT(counts) && rc == 0; i++)
        rc = dtensor_allreduce(mesh, in, out, counts[i], DTENSOR_F32,
                               DTENSOR_SUM, err);
    return rc;
}

static int turn(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const int64_t shape[] = { 50, 70 };
    struct dtensor *rows = NULL, *columns = NULL;
    struct dtensor_spec spec;
    int rc = dtensor_spec_init(&spec, ctx, "world", "S(0)", DTENSOR_F32, 2,
                               shape, err);

    if (rc == 0)
        rc = dtensor_arange(&spec, &rows, err);
    if (rc == 0)
        rc = dtensor_redistribute(rows, "S(1)", &columns, err);
    dtensor_destroy(columns);
    dtensor_destroy(rows);
    return rc;
}

static int job(struct dtensor_ctx *ctx, struct dtensor_error *err)
{
    const struct dtensor_mesh *world;
    int rc = dtensor_mesh_find(ctx, "world", &world, err);

    if (rc == 0)
        rc = reduce_all(world, err);
    if (rc == 0)
        rc = turn(ctx, err);
    if (rc == 0)
        rc = dtensor_barrier(world, err);
    return rc;
}

/* The one that fails stays a while: its end must not be what tells. */
static void rank_job(int rank, int nranks, void *arg)
{
    const struct fault *fault = arg;
    struct report *report = &reports[rank];
    struct dtensor_ctx *ctx = NULL;
    const struct timespec while_ns = { 0, 20000000 };
    char text[64];

    snprintf(text, sizeof text, "%s=%d", fault->key, fault->n);
    if (rank == fault->victim)
        setenv("DTN_FAULT", text, 1);
    report->rc = dtensor_init(fault->path, &ctx, &report->err);
    report->joined_ns = dtn_now_ns();
    if (report->rc == 0)
        report->rc = job(ctx, &report->err);
    report->at_ns = dtn_now_ns();
    report->ended = true;
    for (int i = 0; i < 150 && rank == fault->victim && report->rc != 0; i++) {
        bool all = true;

        for (int r = 0; r < RANKS; r++)
            all = all && ((volatile struct report *)reports)[r].ended;
        if (all)
            break;
        nanosleep(&while_ns, NULL);
    }
    dtensor_fini(ctx);
}

/* One is gone before anybody has met it: killed, or it just leaves. */
static void rank_early(int rank, int nranks, void *arg)
{
    const struct fault *fault = arg;
    struct report *report = &reports[rank];
    struct dtensor_ctx *ctx = NULL;
    const struct timespec late_ns = { 0, 100000000 };

    report->rc = dtensor_init(fault->path, &ctx, &report->err);
    report->joined_ns = dtn_now_ns();
    if (rank == fault->late)
        nanosleep(&late_ns, NULL);
    if (rank == fault->victim && strcmp(fault->key, "killed") == 0)
        raise(SIGKILL);
    if (report->rc == 0 && rank != fault->victim)
        report->rc = job(ctx, &report->err);
    report->at_ns = dtn_now_ns();
    report->ended = true;
    dtensor_fini(ctx);
}

/* --------------------------------------------------------------- trials --- */

/* Does it say that this rank died, or failed? */
static bool names(const struct dtensor_error *err, int rank)
{
    char name[32];

    snprintf(name, sizeof name, "rank %d on ", rank);
    return (err->code == DTENSOR_EPEER || err->code == DTENSOR_EABORT) &&
           err->rank == rank && strstr(err->text, name);
}

/* How long the last survivor took after all had joined.  The fault came later
 * than that.
 */
static int64_t slowest_ns(int victim)
{
    int64_t joined = 0, ended = 0;

    for (int r = 0; r < RANKS; r++) {
        if (reports[r].joined_ns > joined)
            joined = reports[r].joined_ns;
        if (r != victim && reports[r].at_ns > ended)
            ended = reports[r].at_ns;
    }
    return ended - joined;
}

/* Run the job with that fault; *struck: did it come to it? */
static bool trial(const struct fault *fault, bool *struck)
{
    int status[RANKS] = { 0 };
    bool good = true;

    memset(reports, 0, sizeof *reports * RANKS);
    ranks_run(RANKS, 10, rank_job, (void *)(uintptr_t)fault, status);
    *struck = status[fault->victim] != 0 || reports[fault->victim].rc != 0;
    for (int r = 0; r < RANKS; r++) {
        if (r == fault->victim)
            continue;
        good = good && status[r] == 0 && reports[r].ended &&
               (reports[r].rc == 0 ||
                (*struck && names(&reports[r].err, fault->victim)));
    }
    return good;
}

static void show(const struct fault *fault)
{
    note("%s=%d on rank %d", fault->key, fault->n, fault->victim);
    for (int r = 0; r < RANKS; r++)
        note("rank %d: %s: %s %s", r, reports[r].ended ? "ended" : "did not "
             "end", dtensor_errname(reports[r].rc), reports[r].err.text);
}

/* A row of the test: it runs in a process of its own. */
static struct claim {
    const char *wire, *key;       /* the key: of DTN_FAULT; killed or away    */
    int victim;
    int late;                     /* as in struct fault                       */
    void (*test)(struct claim *claim);
    bool good;
    char text[160];
    pid_t pid;                    /* of the process; 0: it has ended          */
} *claims;                        /* [nclaims], shared                        */
static int nclaims;

static void claim_fault(struct claim *claim)
{
    struct fault fault = { claim->key, ranks_file(claim->wire, RANKS, NULL),
                           claim->victim, 1, -1 };
    bool struck = true;
    int bad = 0;

    for (; struck && bad < 3 && fault.n < TRIES_MAX; fault.n++) {
        bool good = trial(&fault, &struck);

        if (good && slowest_ns(fault.victim) > LIMIT_NS) /* a busy machine?  */
            good = trial(&fault, &struck)
                && slowest_ns(fault.victim) < LIMIT_NS;
        if (!good && bad++ < 3)
            show(&fault);
    }
    remove(fault.path);
    claim->good = bad == 0 && !struck && fault.n > 2;
    snprintf(claim->text, sizeof claim->text, "%s: %s=1..%d on rank %d: the "
             "others end in time and name it", claim->wire, claim->key,
             fault.n - 2, fault.victim);
}

static bool trial_early(const struct fault *fault)
{
    bool good = true;

    memset(reports, 0, sizeof *reports * RANKS);
    ranks_run(RANKS, 10, rank_early, (void *)(uintptr_t)fault, NULL);
    for (int r = 0; r < RANKS; r++)
        good = good && (r == fault->victim
                        || (reports[r].ended
                            && names(&reports[r].err, fault->victim)));
    return good;
}

/* A late rank may begin to connect when another has given up and left, too. */
static void claim_early(struct claim *claim)
{
    const struct fault fault = { claim->key,
                                 ranks_file(claim->wire, RANKS, NULL),
                                 claim->victim, 0, claim->late };

    claim->good = trial_early(&fault);
    if (claim->good && slowest_ns(fault.victim) > LIMIT_NS)
        claim->good = trial_early(&fault)
                   && slowest_ns(fault.victim) < LIMIT_NS;
    if (!claim->good)
        show(&fault);
    remove(fault.path);
    snprintf(claim->text, sizeof claim->text, "%s: rank %d is %s before it is "
             "met%s: the others end in time and name it", claim->wire,
             fault.victim, fault.key, fault.late < 0 ? "" : ", one is late");
}

/* --------------------------------------------------------------- claims --- */

static void claim_add(void (*test)(struct claim *claim), const char *wire,
                      const char *key, int victim, int late)
{
    claims[nclaims++] = (struct claim){ .test = test, .wire = wire, .key = key,
                                        .victim = victim, .late = late };
}

static void claims_early(const char *wire)
{
    for (int victim = 0; victim < RANKS; victim++)
        for (int late = 0; late < 2; late++) {
            const int who = late ? (victim + 2) % RANKS : -1;

            claim_add(claim_early, wire, "killed", victim, who);
            claim_add(claim_early, wire, "away", victim, who);
        }
}

static void claims_faults(const char *wire)
{
    static const char *const keys[] = {
        "kill_signal", "fail_signal", "fail_put", "fail_connect"
    };

    for (size_t k = 0; k < DTN_COUNT(keys); k++)
        for (int victim = 0; victim < RANKS; victim++)
            claim_add(claim_fault, wire, keys[k], victim, -1);
}

static void claim_start(int i)
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid != 0) {
        claims[i].pid = pid;
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    reports += i * RANKS;
    claims[i].test(&claims[i]);
    fflush(stdout);
    _exit(0);
}

static void claim_end(void)
{
    const pid_t pid = wait(NULL);

    for (int i = 0; i < nclaims; i++)
        if (claims[i].pid == pid)
            claims[i].pid = 0;
}

static void claims_run(void)
{
    int running = 0;

    for (int i = 0; i < nclaims; i++) {
        if (running == AT_ONCE)
            claim_end();
        else
            running++;
        claim_start(i);
    }
    while (running-- > 0)
        claim_end();
    for (int i = 0; i < nclaims; i++)
        ok(claims[i].good, "%s", claims[i].text);
}

static void *shared(size_t size)
{
    void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (mem == MAP_FAILED)
        exit(99);
    return mem;
}

/* With an argument, that wire only, and only what takes no time. */
int main(int argc, char **argv)
{
    static const char *const wires[] = { "shm", "tcp" };

    claims = shared(CLAIMS_MAX * sizeof *claims);
    reports = shared(CLAIMS_MAX * RANKS * sizeof *reports);
    if (argc > 1)
        claims_early(argv[1]);
    for (size_t w = 0; w < DTN_COUNT(wires) && argc == 1; w++) {
        claims_faults(wires[w]);
        claims_early(wires[w]);
    }
    claims_run();
    return done();
}
