/* test_stall.c - who is late is logged before the deadline, with both calls
 *
 * Four ranks.  The last one sleeps, computes, or is never in time, while the
 * others wait for it.  Their log must say so, once in each rank, with the call
 * and its number on both sides; then the calls go on.  Where the deadline
 * passes, the error says the same.  Ranks that all send first, and would wait
 * for each other until then, two or a ring, are told what to do.
 *
 * Without this test, a user would learn after op_timeout, 10 minutes, that the
 * job stands, and nothing about the rank that is late.
 */
#include "base/wait.h"
#include "dtensor.h"
#include "tests/support/job.h"
#include "tests/support/ranks.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 4, LATE = 3 };
#define FILE_TEXT "stall_after = 200ms\nheartbeat = 10ms\ndead_after = 30s\n" \
                  "op_timeout = %s\n" \
                  "[mesh \"pair\"]\ndims = x=2\nranks = 2-3\n" \
                  "[mesh \"trio\"]\ndims = x=3\nranks = 0-2\n"

struct play {
    const char *path, *log;       /* the cluster file; takes standard error   */
    const char *awaited;          /* what the late rank waits for in the log; */
                                  /* in a chain for LOST, too                 */
    bool first;                   /* there is no call before                  */
    bool computes;                /* the late rank does, or it sleeps         */
    bool chain;                   /* rank 2 waits for it in another call      */
    bool never;                   /* it never calls                           */
    bool sends;                   /* all send before they receive: in pairs,  */
    bool ring;                    /* or each to the next one                  */
    _Atomic int ended;            /* ranks whose call has failed              */
    int rc[RANKS];
    struct dtensor_error err[RANKS];
};

#define LOST "for rank 3 on localhost, which is in no call; its last is "     \
             "barrier, no. 1 over 4 ranks"

static char said[1 << 16];

static const char *log_read(const struct play *play)
{
    FILE *file = fopen(play->log, "r");
    const size_t n = file ? fread(said, 1, sizeof said - 1, file) : 0;

    if (file)
        fclose(file);
    said[n] = '\0';
    return said;
}

static bool late_ends(const struct play *play)
{
    return play->never ? atomic_load(&play->ended) == LATE
                       : strstr(log_read(play), play->awaited)
                         && (!play->chain || strstr(said, LOST));
}

/* Until the others have said that they wait, and some more. */
static void be_late(const struct play *play)
{
    const struct timespec nap = { 0, 10000000 };
    const int64_t start = dtn_now_ns();
    int64_t seen = 0;

    while (dtn_now_ns() < start + INT64_C(20000000000)
           && (seen == 0 || dtn_now_ns() < seen + INT64_C(300000000))) {
        if (seen == 0 && late_ends(play))
            seen = dtn_now_ns();
        if (!play->computes)
            nanosleep(&nap, NULL);
    }
}

static int sum(struct job *job, const char *mesh, struct dtensor_error *err)
{
    const struct dtensor_mesh *over;
    float x[4] = { 1, 1, 1, 1 };

    good(dtensor_mesh_find(job->ctx, mesh, &over, &job->err));
    return dtensor_allreduce(over, x, x, 4, DTENSOR_F32, DTENSOR_SUM, err);
}

/* Ranks 0 and 1, and 2 and 3, or a ring, send first what no signal can have. */
static int send_first(struct job *job, const struct dtensor_mesh *world,
                      bool ring, struct dtensor_error *err)
{
    static char block[1 << 20];
    const int me = dtensor_rank(job->ctx);
    const int to = ring ? (me + 1) % RANKS : me ^ 1;
    const int from = ring ? (me + RANKS - 1) % RANKS : to;
    const int rc = dtensor_send(world, to, block, sizeof block, DTENSOR_U8,
                                err);

    return rc != 0 ? rc : dtensor_recv(world, from, block, sizeof block,
                                       DTENSOR_U8, err);
}

static void rank_waits(int rank, int n, void *arg)
{
    struct play *play = arg;
    struct dtensor_error *err = &play->err[rank];
    const struct dtensor_mesh *world;
    struct job all, *job = &all;
    int rc = 0;

    if (dup2(open(play->log, O_WRONLY | O_APPEND), 2) != 2)
        _exit(1);
    job_open(job, rank, n, play->path);
    good(dtensor_mesh_find(job->ctx, "world", &world, &job->err));
    if (!play->first)
        good(dtensor_barrier(world, &job->err));
    if (play->sends)
        rc = send_first(job, world, play->ring, err);
    else if (rank == LATE)
        be_late(play);
    if (play->chain && rank >= 2)
        rc = sum(job, "pair", err);
    if (rc == 0 && !play->never && !play->sends && (!play->chain || rank < 3))
        rc = sum(job, play->chain ? "trio" : "world", err);
    if (play->never && rank != LATE)
        rc = sum(job, "world", err);
    play->rc[rank] = rc;
    if (rc != 0)
        atomic_fetch_add(&play->ended, 1);
    dtensor_fini(job->ctx);
}

/* ---------------------------------------------------------------- plays --- */

/* Lines with these words, of all ranks or of one that begins so. */
static int lines(const char *text, const char *words)
{
    int n = 0;

    for (const char *p = text; (p = strstr(p, words)); p++)
        n++;
    return n;
}

static const char *play_run(struct play *play, const char *wire,
                            const char *op_timeout)
{
    static char log[64];
    char more[400];
    int bad;

    snprintf(more, sizeof more, FILE_TEXT, op_timeout);
    play->path = ranks_file(wire, RANKS, more);
    snprintf(log, sizeof log, "stall-%d.log", (int)getpid());
    play->log = log;
    close(open(log, O_CREAT | O_TRUNC | O_WRONLY, 0600));
    bad = ranks_run(RANKS, 60, rank_waits, play, NULL);
    for (int r = 0; r < RANKS; r++)
        if (play->rc[r] != 0)
            note("rank %d: %s", r, play->err[r].text);
    log_read(play);
    remove(log);
    remove(play->path);
    if (bad > 0)
        note("%d ranks failed", bad);
    return bad == 0 ? said : "";
}

static bool all_well(const struct play *play)
{
    bool well = true;

    for (int r = 0; r < RANKS; r++)
        well = well && play->rc[r] == 0;
    return well;
}

/* It ends as the play says; `words` are in the log, once for each rank. */
static void test_late(struct play *play, const char *what, const char *wire,
                      const char *call, const char *words)
{
    const char *text = play_run(play, wire, "60s");
    bool once = true;

    for (int r = 0; r < RANKS; r++) {
        char who[64];

        snprintf(who, sizeof who, "dtensor[rank %d] stall:", r);
        once = once && lines(text, who) <= 1;
    }
    ok(strstr(text, call) && strstr(text, words) && once && all_well(play),
       "%s, over %s: the log names it and both calls, once, and all goes on",
       what, wire);
    if (!strstr(text, call) || !strstr(text, words) || !once)
        note("%s", text);
}

static void test_never(struct play *play)
{
    bool good = true;

    play->never = true;
    play_run(play, "shm", "1500ms");
    for (int r = 0; r < LATE; r++)
        good = good && play->rc[r] != 0;
    ok(good && (strstr(play->err[0].text, "and is in no call; its last is "
                       "barrier, no. 1 over 4 ranks")
                || strstr(play->err[1].text, "and is in no call; its last is "
                          "barrier, no. 1 over 4 ranks")
                || strstr(play->err[2].text, "and is in no call; its last is "
                          "barrier, no. 1 over 4 ranks")),
       "it never calls: the error at the deadline says what it does");
}

/* Some reach the deadline; the others may hear of it. */
static void test_send_first(struct play *play, bool ring, const char *wire)
{
    static const char remedy[] = ": if all send first, one has to receive "
        "first, or all use dtensor_group_begin()";
    char words[160];
    const char *text;
    bool told = false, logged = false;

    play->sends = true;
    play->ring = ring;
    text = play_run(play, wire, "1500ms");
    for (int r = 0; r < RANKS; r++) {
        snprintf(words, sizeof words, "rank %d on localhost, which waits in "
                 "send of 1048576 u8 to rank %d%s", r,
                 ring ? (r + 1) % RANKS : r ^ 1, remedy);
        told = told || strstr(play->err[r].text, remedy);
        logged = logged || strstr(text, words);
    }
    ok(strstr(text, "stall: send of 1048576 u8 to rank ") && logged && told, "all send first, %s, over %s: the log "
       "and the error say what to do", ring ? "in a ring" : "in pairs", wire);
}

#define BEGIN(play) (memset(play, 0, sizeof *(play)), (play))
#define CALL "stall: allreduce of 4 f32 sum, no. 2 over 4 ranks, has waited "

int main(void)
{
    struct play *play = mmap(NULL, sizeof *play, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (play == MAP_FAILED)
        return 99;
    setenv("DTN_LOG", "stall", 1);
    BEGIN(play)->awaited = LOST;
    test_late(play, "a rank sleeps", "shm", CALL, LOST);
    BEGIN(play)->awaited = LOST;
    play->computes = true;
    test_late(play, "a rank computes", "tcp", CALL, LOST);
    BEGIN(play)->awaited = "which is in no call and has made none";
    play->first = true;
    test_late(play, "a rank has called nothing", "shm", "stall: allreduce of 4 "
              "f32 sum, no. 1 over 4 ranks, has waited ",
              "which is in no call and has made none");
    BEGIN(play)->awaited = "for rank 2 on localhost, which waits in allreduce "
                           "of 4 f32 sum, no. 1 over 2 ranks";
    play->chain = true;
    test_late(play, "a rank waits in another call", "shm", LOST, play->awaited);
    test_never(BEGIN(play));
    test_send_first(BEGIN(play), false, "shm");
    test_send_first(BEGIN(play), false, "tcp");
    test_send_first(BEGIN(play), true, "shm");
    test_send_first(BEGIN(play), true, "tcp");
    munmap(play, sizeof *play);
    return done();
}
