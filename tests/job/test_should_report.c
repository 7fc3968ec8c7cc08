/* test_should_report.c - which of many ranks prints an error
 *
 * dtensor_should_report() returns 1 on one rank only.  Each rank that gets 1
 * sets its bit in memory that all ranks share.  Ranks ask when all have their
 * errors, and leave when all have asked.
 *
 * Without this test, an error could be printed by every rank of a job, or by
 * none.
 */
#include "base/compiler.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define N 8

static struct told {
    _Atomic unsigned reporters;   /* ranks that report: bits                  */
    _Atomic int failed;           /* ranks that have their error              */
    _Atomic int voted;            /* ranks that know whether they report      */
} *told;

struct scene {
    const char *what;
    unsigned dead;                /* ranks that are killed: bits              */
    unsigned odd;                 /* that call something else                 */
    unsigned wrong;               /* that are refused (EINVAL)                */
    int code;                     /* what the others get                      */
};

static void vote(struct dtensor_ctx *ctx, const struct dtensor_error *err,
                 int rank)
{
    if (dtensor_should_report(ctx, err))
        atomic_fetch_or(&told->reporters, 1u << rank);
    told->voted++;
}

/* Run `fn` on N ranks over `wire`: how many of them were bad, and who reported.
 */
static int run_over(const char *wire, rank_main_f *fn, void *arg, unsigned *who)
{
    const char *file = ranks_file(wire, N, NULL);
    int bad;

    memset(told, 0, sizeof *told);
    setenv("DTN_CLUSTER", file, 1);
    bad = ranks_run(N, 30, fn, arg, NULL);
    *who = told->reporters;
    unlink(file);
    unsetenv("DTN_CLUSTER");
    return bad;
}

static int popcount(unsigned bits)
{
    return __builtin_popcount(bits);
}

static void await(const _Atomic int *count, int n)
{
    while (*count < n)
        nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

/* Ranks of this scene that get an error. */
static int failing(const struct scene *scene)
{
    return popcount(scene->wrong ? scene->wrong : 0xffu & ~scene->dead);
}

static void play(int rank, int n, void *arg)
{
    const struct scene *scene = arg;
    const struct dtensor_mesh *mesh;
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err = { 0 };
    float x[2] = { 1, 1 }, from[N] = { 0 }, to[N];
    int rc = dtensor_init(NULL, &ctx, &err);

    need(rc == 0, "init: %s", err.text);
    need(dtensor_mesh_find(ctx, "world", &mesh, &err) == 0, "%s", err.text);
    for (int i = 0; i < 20 && rc == 0; i++)
        rc = dtensor_allreduce(mesh, x, x, 1, DTENSOR_F32, DTENSOR_MAX, &err);
    if (rc == 0)                           /* all are connected to all        */
        rc = dtensor_all_to_all(mesh, from, to, 1, DTENSOR_F32, &err);
    need(rc == 0, "before: %s", err.text);
    need(dtensor_should_report(ctx, &err) == 0, "no error is not reported");
    if (scene->dead >> rank & 1)
        raise(SIGKILL);
    if (scene->wrong >> rank & 1)
        rc = dtensor_allreduce(mesh, x, x, 1, DTENSOR_NDTYPES, DTENSOR_MAX,
                               &err);
    else if (scene->code != DTENSOR_EINVAL)
        while (rc == 0)
            rc = dtensor_allreduce(mesh, x, x, 1 + (scene->odd >> rank & 1),
                                   DTENSOR_F32, DTENSOR_MAX, &err);
    if (rc != 0) {                         /* else others are refused, not we */
        need(rc == scene->code, "%s: %s", dtensor_errname(rc), err.text);
        told->failed++;
        await(&told->failed, failing(scene));
        vote(ctx, &err, rank);
    }
    if (rc != DTENSOR_EINVAL)              /* who leaves may be refused, too  */
        await(&told->voted, failing(scene));
    dtensor_fini(ctx);
}

static void test_scenes(const char *wire)
{
    static const struct scene scenes[] = {
        { "rank 3 is killed", 1 << 3, 0, 0, DTENSOR_EPEER },
        { "rank 0 is killed", 1 << 0, 0, 0, DTENSOR_EPEER },
        { "rank 7 is killed", 1 << 7, 0, 0, DTENSOR_EPEER },
        { "ranks 0 and 2 are killed", 5, 0, 0, DTENSOR_EPEER },
        { "rank 5 calls something else", 0, 1 << 5, 0, DTENSOR_EMISMATCH },
        { "all are refused", 0, 0, 0xff, DTENSOR_EINVAL },
        { "rank 6 is refused", 0, 0, 1 << 6, DTENSOR_EINVAL },
    };
    char file[64];

    snprintf(file, sizeof file, "%s", ranks_file(wire, N, NULL));
    setenv("DTN_CLUSTER", file, 1);
    for (size_t i = 0; i < DTN_COUNT(scenes); i++) {
        const struct scene *s = &scenes[i];
        int bad;
        unsigned who;

        memset(told, 0, sizeof *told);
        bad = ranks_run(N, 30, play, (void *)(uintptr_t)s, NULL);
        who = told->reporters;
        ok(bad == popcount(s->dead) && popcount(who) == 1
           && !(who & s->dead), "%s, %s: one of %d ranks reports (ranks 0x%x, "
           "%d bad)", wire, s->what, N, who, bad);
        if (s->wrong == 1 << 6)
            ok(who == 1 << 6, "it is that one");
    }
    unlink(file);
}

/* Some ranks, bits of *arg, cannot read what is in a file. */
static void looks(int rank, int n, void *arg)
{
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err = { 0 };
    struct dtensor_meta meta;
    const unsigned ranks = *(unsigned *)arg;

    (void)n;
    need(dtensor_init(NULL, &ctx, &err) == 0, "%s", err.text);
    if (ranks >> rank & 1) {
        need(dtensor_file_meta("no/such.npy", &meta, &err) == DTENSOR_ESYS,
             "%s", err.text);
        vote(ctx, &err, rank);
    } else {
        await(&told->voted, popcount(ranks));
    }
    dtensor_fini(ctx);
}

static void test_meta(unsigned ranks, unsigned want)
{
    unsigned who;
    const int bad = run_over("shm", looks, &ranks, &who);

    ok(bad == 0 && who == want, "ranks 0x%x cannot look into a file: one says "
       "so (ranks 0x%x, %d bad)", ranks, who, bad);
}

/* Ranks are done and leave.  Then some, bits of *arg, are refused. */
static void refused_last(int rank, int n, void *arg)
{
    const struct dtensor_mesh *mesh;
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err = { 0 };
    const unsigned ranks = *(unsigned *)arg;
    float x = 1;

    need(dtensor_init(NULL, &ctx, &err) == 0
         && dtensor_mesh_find(ctx, "world", &mesh, &err) == 0, "%s", err.text);
    if (ranks >> rank & 1) {
        await(&told->failed, n - popcount(ranks));
        nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
        need(dtensor_allreduce(mesh, &x, &x, 1, DTENSOR_NDTYPES, DTENSOR_MAX,
                               &err) == DTENSOR_EINVAL, "%s", err.text);
        vote(ctx, &err, rank);
    }
    told->failed++;
    dtensor_fini(ctx);
}

static void test_refused_last(unsigned ranks, unsigned want)
{
    unsigned who;
    const int bad = run_over("shm", refused_last, &ranks, &who);

    ok(bad == 0 && who == want, "the others have just left, and ranks 0x%x are "
       "refused: one says so (ranks 0x%x, %d bad)", ranks, who, bad);
}

/* A signal of rank 5 fails: the others only know that rank 5 gave up. */
static void abort_all(int rank, int n, void *arg)
{
    const struct dtensor_mesh *mesh;
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err = { 0 };
    float x = 1;
    int rc;

    (void)arg;
    if (rank == 5)
        setenv("DTN_FAULT", "fail_signal=20", 1);
    need(dtensor_init(NULL, &ctx, &err) == 0
         && dtensor_mesh_find(ctx, "world", &mesh, &err) == 0, "%s", err.text);
    do
        rc = dtensor_allreduce(mesh, &x, &x, 1, DTENSOR_F32, DTENSOR_MAX, &err);
    while (rc == 0);
    need(rank == 5 ? rc != DTENSOR_EABORT : rc == DTENSOR_EABORT, "%s: %s",
         dtensor_errname(rc), err.text);
    told->failed++;
    await(&told->failed, n);
    vote(ctx, &err, rank);
    told->voted++;
    await(&told->voted, n);
    dtensor_fini(ctx);
}

static void test_cause(const char *wire)
{
    unsigned who;
    const int bad = run_over(wire, abort_all, NULL, &who);

    ok(bad == 0 && who == 1u << 5, "%s: rank 5 fails and the others have "
       "EABORT: rank 5 reports (ranks 0x%x, %d bad)", wire, who, bad);
}

/* ------------------------------------------------------- before joining --- */

static void join(int rank, int n, void *arg)
{
    struct dtensor_ctx *ctx = NULL;
    struct dtensor_error err = { 0 };
    const char *const *files = arg;
    int rc = dtensor_init(files[rank == 2], &ctx, &err);

    need(rc != 0 && ctx == NULL, "it joined");
    vote(NULL, &err, rank);
}

/* The ranks that report when four fail to join. */
static unsigned joining(const char *const files[2])
{
    unsigned who;
    int bad;

    memset(told, 0, sizeof *told);
    bad = ranks_run(4, 30, join, (void *)(uintptr_t)files, NULL);
    who = told->reporters;
    note("ranks 0x%x, %d bad", who, bad);
    return bad == 0 ? who : 0;
}

/* No rank can save: all have the error of one, which prints it. */
static void saves(int rank, int n, void *arg)
{
    const int64_t shape[] = { 8 };
    struct dtensor_spec spec;
    struct dtensor_error err;
    struct dtensor_ctx *ctx;
    struct dtensor *t;
    int rc;

    (void)n;
    (void)arg;
    need(dtensor_init(NULL, &ctx, &err) == 0
         && dtensor_spec_init(&spec, ctx, "world", "S(0)", DTENSOR_F32, 1,
                              shape, &err) == 0
         && dtensor_ones(&spec, &t, &err) == 0, "%s", err.text);
    rc = dtensor_save(t, "no/such/dir.npy", &err);
    need(rc == DTENSOR_ESYS && dtensor_should_report(ctx, &err)
         == (rank == err.rank), "rank %d: %s", rank, err.text);
    rc = dtensor_save(t, "/", &err);
    need(rc == DTENSOR_EINVAL && dtensor_should_report(ctx, &err)
         == (rank == err.rank), "rank %d: %s", rank, err.text);
    rc = dtensor_from_local_checked(&spec, dtensor_to_local(t),
                                    (const int64_t[]){ rank == 2 ? 1 : 2 }, &t,
                                    &err);
    need(rc == DTENSOR_EINVAL && err.rank == 2
         && dtensor_should_report(ctx, &err) == (rank == 2), "rank %d: %s",
         rank, err.text);
    dtensor_destroy(t);
    dtensor_fini(ctx);
}

static void test_file(void)
{
    setenv("DTN_CLUSTER", ranks_file("shm", 4, NULL), 1);
    ok(ranks_run(4, 30, saves, NULL, NULL) == 0,
       "a tensor cannot be saved: one rank of all says so");
    unlink(getenv("DTN_CLUSTER"));
    unsetenv("DTN_CLUSTER");
}

static void test_joining(void)
{
    char good[64], other[64];
    const char *files[2] = { "nowhere.ini", "nowhere.ini" };

    ok(joining(files) == 1u << 0, "no such file: the first rank of the host "
       "says so");
    snprintf(good, sizeof good, "%s", ranks_file("shm", 4, NULL));
    snprintf(other, sizeof other, "%s",
             ranks_file("shm", 4, "connect_timeout = 21s\n"));
    files[0] = good;
    files[1] = other;
    ok(joining(files) == 1u << 2, "another file on rank 2: it says so");
    unlink(good);
    unlink(other);
}

/* What can be told from the error alone. */
static void test_outside(void)
{
    static const struct { const char *rank, *local; int code, culprit, want; }
    cases[] = {
        { "3", "1", DTENSOR_ETIME, 2, 0 }, { "0", "0", DTENSOR_ETIME, 2, 1 },
        { "3", "1", DTENSOR_ETIME, 0, 1 }, { "3", "1", DTENSOR_ESYS, -1, 1 },
        { "3", "1", DTENSOR_ESYS, 3, 1 }, { "0", "0", DTENSOR_ESYS, 3, 1 },
        { "1", "1", DTENSOR_ESYS, 3, 0 }, { "3", "0", DTENSOR_ECONF, -1, 1 },
        { "3", "1", DTENSOR_ECONF, -1, 0 }, { "x", "1", DTENSOR_ECONF, -1, 1 },
        { "0", "0", DTENSOR_EMISMATCH, 3, 0 },
    };

    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        const struct dtensor_error err = { .code = cases[i].code,
                                           .rank = cases[i].culprit };

        setenv("DTN_RANK", cases[i].rank, 1);
        setenv("DTN_LOCAL_RANK", cases[i].local, 1);
        ok(dtensor_should_report(NULL, &err) == cases[i].want, "rank %s, local "
           "%s: %s of rank %d: %s", cases[i].rank, cases[i].local,
           dtensor_errname(err.code), err.rank, cases[i].want ? "reports"
           : "is silent");
    }
    unsetenv("DTN_RANK");
    unsetenv("DTN_LOCAL_RANK");
    ok(dtensor_should_report(NULL, &(struct dtensor_error){
           .code = DTENSOR_EINVAL, .rank = -1 }) == 1,
       "a lone process reports");
}

int main(void)
{
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    test_outside();
    test_joining();
    test_file();
    test_meta(0xff, 1 << 0);
    test_meta(1 << 6, 1 << 6);
    test_refused_last(1 << 6, 1 << 6);
    test_refused_last(1 << 6 | 1 << 3, 1 << 3);
    test_scenes("shm");
    test_scenes("tcp");
    test_cause("shm");
    test_cause("tcp");
    return done();
}
