/* broken_device.c - what the ranks of a job say when a device fails under it
 *
 * Three ranks over rc call allreduces.  After some of them a queue pair of rank
 * 1 goes into the state of errors, as a device puts it there after a failure of
 * its own; or the device of rank 1 says that it failed altogether, as one does
 * that is removed.  All ranks must have an error soon, and name the same rank;
 * no result before may be wrong.
 *
 * Without this test, a rank whose device is gone could poll a queue that stays
 * empty, and its peers could each name another rank.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "job/ctx.h"
#include "job/wiring.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/peer.h"
#include "dtensor.h"
#include "tests/support/job.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

enum { RANKS = 3, BROKEN_AFTER = 20, COUNT = 3000, CALLS = 100000 };
#define SOON_NS INT64_C(6000000000)

/* What the ranks tell the test. */
static struct {
    _Atomic int64_t broken_ns;    /* when; 0: not yet                         */
    struct report {
        int code, rank;           /* of the error                             */
        int64_t at_ns;
        char text[500];
    } report[RANKS];
} *told;

static char path[64];

/* --------------------------------------------------------- the failures --- */

static bool fatal;                /* the next event of the device             */

int ibv_get_async_event(struct ibv_context *context,
                        struct ibv_async_event *event)
{
    int (*get)(struct ibv_context *, struct ibv_async_event *);

    *(void **)&get = dlsym(RTLD_NEXT, "ibv_get_async_event");
    if (!fatal)
        return get(context, event);
    *event = (struct ibv_async_event){ .event_type = IBV_EVENT_DEVICE_FATAL };
    fatal = false;
    return 0;
}

static void break_queue(const struct job *job)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
    const struct dtn_verbs_peer *peer =
        dtn_verbs_peer(job->ctx->wiring.inside, 0);

    need(peer && peer->nqueues > 0, "rank 0 was not met");
    need(ibv_modify_qp(peer->queue[0].qp, &attr, IBV_QP_STATE) == 0, "%m");
}

static void break_device(const struct job *job)
{
    (void)job;
    fatal = true;
}

/* ------------------------------------------------------------ the ranks --- */

static int call(struct job *job, const struct dtensor_mesh *mesh, int number)
{
    int32_t mem[COUNT];
    int rc;

    for (int i = 0; i < COUNT; i++)
        mem[i] = job->rank + number + i;
    rc = dtensor_allreduce(mesh, mem, mem, COUNT, DTENSOR_I32, DTENSOR_SUM,
                           &job->err);
    for (int i = 0; i < COUNT && rc == 0; i++)
        need(mem[i] == 3 * (number + i) + 3, "call %d: element %d is %d",
             number, i, mem[i]);
    return rc;
}

static void rank_run(int rank, int n, void *arg)
{
    void (*const *break_it)(const struct job *) = arg;
    struct report *report = &told->report[rank];
    const struct dtensor_mesh *mesh;
    struct job made, *job = &made;
    int rc = 0;

    job_open(job, rank, n, path);
    good(dtensor_mesh_find(job->ctx, "world", &mesh, &job->err));
    for (int i = 0; i < CALLS && rc == 0; i++) {
        if (i == BROKEN_AFTER && rank == 1) {
            atomic_store(&told->broken_ns, dtn_now_ns());
            (*break_it)(job);
        }
        rc = call(job, mesh, i);
    }
    report->at_ns = dtn_now_ns();
    report->code = rc;
    report->rank = job->err.rank;
    snprintf(report->text, sizeof report->text, "%s", job->err.text);
    dtensor_fini(job->ctx);
}

/* ------------------------------------------------------------- the cases -- */

static const struct {
    const char *claim;
    void (*break_it)(const struct job *job);
    int code;                     /* of rank 1                                */
    const char *words;            /* of one of the errors                     */
} cases[] = {
    { "a queue pair in error: all name one rank, soon", break_queue,
      DTENSOR_EPEER, "the queue pair was taken down" },
    { "a device that is removed: all name its rank, soon", break_device,
      DTENSOR_ENODEV, "rxe0 failed altogether" }
};

static bool alike(int i)
{
    const struct report *report = told->report;
    bool good = report[1].code == cases[i].code, said = false;

    for (int r = 0; r < RANKS; r++) {
        good = good && report[r].code != 0 && report[r].rank == report[1].rank
            && report[r].at_ns - told->broken_ns < SOON_NS;
        said = said || strstr(report[r].text, cases[i].words);
        note("rank %d: %s of rank %d after %d ms: %s", r,
             dtensor_errname(report[r].code), report[r].rank,
             (int)((report[r].at_ns - told->broken_ns) / 1000000),
             report[r].text);
    }
    return good && said;
}

int main(void)
{
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        return 99;
    for (size_t i = 0; i < DTN_COUNT(cases); i++) {
        memset(told, 0, sizeof *told);
        snprintf(path, sizeof path, "%s",
                 ranks_file("rc", RANKS, "op_timeout = 20s\n"));
        ok(ranks_run(RANKS, 60, rank_run,
                     (void *)(uintptr_t)&cases[i].break_it, NULL) == 0
           && alike((int)i), "rc: %s", cases[i].claim);
        unlink(path);
    }
    return done();
}
