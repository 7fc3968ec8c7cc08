/* test_syscall_failures.c - each system call fails once, and two ranks must
 * cope
 *
 * The linker sends every system call of the library that can fail to
 * syscalls.c.  Of each kind the n-th call of one rank fails once, for every n
 * up to the last; of a kind with over 100 calls a sample while it joins, and
 * one of the others (DTN_TEST_ROUNDS=1000: ten times as large).  Either nothing
 * is lost and the results are right, or that rank says why and the other is
 * told soon, while the first is still there.  No memory, mapping or descriptor
 * is left behind.
 *
 *     test_syscall_failures [WIRE]
 *
 * Without this test, a full table of files or an interrupted call could crash
 * or hang a job.
 */
#include "base/wait.h"
#include "dtensor.h"
#include "tests/job/held.h"
#include "tests/job/life.h"
#include "tests/job/syscalls.h"
#include "tests/support/ranks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* ------------------------------------------------------------ two ranks --- */

enum { PARALLEL = 16, POINTS_MAX = 20000, JOINING = 20, MANY = 100, FEW = 30 };
#define SOON_NS INT64_C(8000000000)

/* What two ranks find, in memory they share with the test. */
struct trial {
    int poor;                       /* the rank in which it fails            */
    int kind;
    long call;                      /* which fails; -1: none                 */
    struct report {
        int rc, step;
        struct dtensor_error err;
        int64_t at_ns;
        char wrong[64];
    } report[2];
    _Atomic bool survivor_done;
    int64_t failed_ns;              /* when the call failed; 0: it did not   */
    long joining[KINDS], made[KINDS];   /* calls of the poor                 */
    int bad;                        /* ranks that crashed or hung            */
};

struct attempt {
    struct trial *trial;
    const char *path;
};

/* How many arenas are mapped. */
static int mappings(void)
{
    FILE *file = __real_fopen("/proc/self/maps", "r");
    char line[512];
    int n = 0;

    while (file && __real_fgets(line, sizeof line, file))
        n += strstr(line, "memfd:") != NULL;
    if (file)
        __real_fclose(file);
    return n;
}

static void steps_run(int rank, struct life *life, struct trial *trial)
{
    struct report *report = &trial->report[rank];
    const char *wrong = NULL;
    int s = 0;

    while (s < NSTEPS && report->rc == 0) {
        report->rc = life_step(life, &steps[s++], &report->err, &wrong);
        if (rank == trial->poor && s == 1)
            memcpy(trial->joining, syscalls.made, sizeof trial->joining);
    }
    report->step = s - 1;
    report->at_ns = dtn_now_ns();
    if (!wrong && report->rc == 0 && !life_right(life))
        wrong = "a tensor has wrong values";
    snprintf(report->wrong, sizeof report->wrong, "%s", wrong ? wrong : "");
}

/* Where the other waits for the poor rank, that stays: that it is gone must not
 * be all that the other is told.
 */
static void survivor_wait(struct trial *trial)
{
    const struct report *report = &trial->report[trial->poor];
    const struct timespec tick = { 0, 1000000 };

    for (int i = 0; i < 8000 && report->rc != 0 &&
         steps[report->step].collective && !atomic_load(&trial->survivor_done);
         i++)
        __real_nanosleep(&tick, NULL);
}

static void rank_life(int rank, int nranks, void *arg)
{
    static struct life life;
    const struct attempt *attempt = arg;
    struct trial *trial = attempt->trial;
    struct report *report = &trial->report[rank];
    const int fds = open_fds(), maps = mappings();

    life_begin(&life, attempt->path);
    memset(syscalls.made, 0, sizeof syscalls.made);
    syscalls.kind = rank == trial->poor && trial->call >= 0 ? trial->kind : -1;
    syscalls.left = trial->call;
    steps_run(rank, &life, trial);
    if (rank == trial->poor)
        survivor_wait(trial);
    else
        atomic_store(&trial->survivor_done, true);
    life_end(&life);
    syscalls.kind = -1;
    if (rank == trial->poor) {
        trial->failed_ns = syscalls.at_ns;
        memcpy(trial->made, syscalls.made, sizeof trial->made);
    }
    if (!*report->wrong && (nlive != 0 || open_fds() != fds))
        snprintf(report->wrong, sizeof report->wrong, "%ld blocks, %d "
                 "descriptors are left behind", nlive, open_fds() - fds);
    else if (!*report->wrong && mappings() != maps)
        snprintf(report->wrong, sizeof report->wrong, "a mapping is left");
}

/* ------------------------------------------------------------- verdicts --- */

static bool soon(const struct trial *t, const struct report *report)
{
    return timeless() || report->at_ns - t->failed_ns < SOON_NS;
}

static bool trial_good(const struct trial *t)
{
    const struct report *told = &t->report[!t->poor];
    const struct report *poor = &t->report[t->poor];
    const char *name = t->poor ? "rank 1" : "rank 0";

    if (t->bad || *told->wrong || *poor->wrong)
        return false;
    if (poor->rc == 0)
        return told->rc == 0;
    return soon(t, poor) && soon(t, told) && poor->err.rank != !t->poor &&
           (told->rc == 0 ? !steps[poor->step].collective ||
                            poor->step == NSTEPS - 1
                          : told->err.rank == t->poor ||
                            strstr(told->err.text, name));
}

static void trial_show(const struct trial *t)
{
    note("%s of rank %d, call %ld: %d ranks crashed or hung",
         kind_name[t->kind], t->poor, t->call + 1, t->bad);
    for (int r = 0; r < 2; r++)
        note("rank %d, %s: %s %s%s%s, after %lld ms", r,
             steps[t->report[r].step].name, dtensor_errname(t->report[r].rc),
             t->report[r].err.text, *t->report[r].wrong ? "; " : "",
             t->report[r].wrong,
             (long long)(t->report[r].at_ns - t->failed_ns) / 1000000);
}

/* --------------------------------------------------------------- trials --- */

struct trials {
    _Atomic int next;
    int n;
    struct trial trial[POINTS_MAX];
};

/* Up to `most` of the calls first .. end - 1, evenly. */
static void points_add(struct trials *trials, const struct trial *clean,
                       int kind, long first, long end, long most)
{
    const long step = end - first > most ? (end - first + most - 1) / most : 1;

    for (long call = first; call < end && trials->n < POINTS_MAX; call += step)
        trials->trial[trials->n++] = (struct trial){ .poor = clean->poor,
                                                     .kind = kind,
                                                     .call = call };
}

/* The life in which nothing fails says which calls there are. */
static void points_find(struct trials *trials, const struct trial *clean)
{
    for (int kind = 0; kind < KINDS; kind++) {
        const bool many = clean->made[kind] > rounds_of(MANY);

        points_add(trials, clean, kind, 0, clean->joining[kind],
                   rounds_of(many ? JOINING : MANY));
        points_add(trials, clean, kind, clean->joining[kind],
                   clean->made[kind], rounds_of(many ? FEW : MANY));
    }
}

/* Most of the time is waiting: many at once. */
static void trials_run(struct trials *trials, const char *path)
{
    const int parallel = timeless() ? PARALLEL / 4 : PARALLEL;

    for (int i = 0; i < parallel; i++) {
        fflush(stdout);
        if (fork() == 0) {
            for (int p; (p = atomic_fetch_add(&trials->next, 1)) < trials->n;) {
                struct attempt attempt = { &trials->trial[p], path };

                trials->trial[p].bad = ranks_run(2, 80, rank_life, &attempt,
                                                 NULL);
            }
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
}

/* "poll 12 of 40": calls that failed, of those made when nothing fails. */
static void counts_show(const struct trials *trials, const struct trial *clean)
{
    char line[2000] = "";
    size_t used = 0;
    long failed;

    for (int kind = 0; kind < KINDS; kind++) {
        failed = 0;
        for (int p = 0; p < trials->n; p++)
            failed += trials->trial[p].kind == kind &&
                      trials->trial[p].failed_ns != 0;
        if (clean->made[kind] > 0 && used < sizeof line)
            used += (size_t)snprintf(line + used, sizeof line - used,
                                     "%s%s %ld of %ld", used ? ", " : "",
                                     kind_name[kind], failed,
                                     clean->made[kind]);
    }
    note("%s", line);
}

static void test_two(const char *wire, int poor)
{
    struct trials *trials = __real_mmap(NULL, sizeof *trials,
                                        PROT_READ | PROT_WRITE, MAP_SHARED |
                                        MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const char *path = ranks_file(wire, 2, "connect_timeout = 30s\n"
                                  "op_timeout = 30s\n"
                                  "[redistribute]\npipeline = 4K\n");
    struct trial *clean = __real_mmap(NULL, sizeof *clean, PROT_READ |
                                      PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                                      -1, 0);
    struct attempt attempt = { clean, path };
    int hit = 0, told = 0, bad = 0;

    if (trials == MAP_FAILED || clean == MAP_FAILED)
        exit(99);
    clean->poor = poor;
    clean->call = -1;
    clean->bad = ranks_run(2, 80, rank_life, &attempt, NULL);
    if (!trial_good(clean))
        trial_show(clean);
    ok(trial_good(clean) && clean->report[poor].rc == 0,
       "two ranks over %s: when "
       "nothing fails, all results are right and nothing is left behind", wire);
    points_find(trials, clean);
    trials_run(trials, path);
    remove(path);
    counts_show(trials, clean);
    for (int p = 0; p < trials->n; p++) {
        hit += trials->trial[p].failed_ns != 0;
        told += trials->trial[p].report[!poor].rc != 0;
        if (!trial_good(&trials->trial[p]) && bad++ < 8)
            trial_show(&trials->trial[p]);
    }
    ok(hit > 40 && bad == 0, "two ranks over %s: each of %d system calls of "
       "rank %d may fail; %d times both failed in words, else nobody minded",
       wire, hit, poor, told);
    munmap(trials, sizeof *trials);
    munmap(clean, sizeof *clean);
}

int main(int argc, char **argv)
{
    for (int poor = 0; poor < 2; poor++) {
        test_two(argc > 1 ? argv[1] : "shm", poor);
        if (argc == 1)
            test_two("tcp", poor);
    }
    return done();
}
