/* model_times.c - predicted against measured
 *
 * `model_times N [size...]` runs every emitter that can over N ranks of this
 * host, by shared memory or as DTN_CLUSTER says, and prints for each its median
 * time, what the model said, and of each call which emitter was the fastest and
 * which the model takes.  `make check` does not run it: times are of a quiet
 * machine only.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "coll/choose.h"
#include "coll/exec.h"
#include "coll/exec/exec.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/support/ranks.h"

#include <sched.h>
#include <string.h>

enum { TIMES_MAX = 401 };

struct asked {
    int nsizes;
    size_t size[16];
};

static volatile unsigned sink;    /* where results are read to                */

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Median over the runs of the slowest rank, in ns; the input is written before
 * each, the output read after.
 */
static double time_of(const struct dtensor_mesh *mesh, struct dtn_exec *exec,
                      void *in, void *out)
{
    const size_t *bytes = dtn_exec_sched(exec)->bytes;
    static double times[TIMES_MAX];
    double mine, slowest;
    int runs = 0;
    int64_t first = dtn_now_ns(), begin;

    for (int i = 0; i < 20; i++)
        need(dtn_exec_run(exec, in, out, 7, NULL) == 0, "run");
    for (; runs < TIMES_MAX; runs++) {
        struct dtensor_error err;
        double late = dtn_now_ns() - first > 200000000;

        need(dtensor_allreduce(mesh, &late, &slowest, 1, DTENSOR_F64,
                               DTENSOR_MAX, &err) == 0, "%s", err.text);
        if (slowest > 0 && runs > 10)
            break;
        memset(in, runs, bytes[DTN_IN]);
        dtensor_barrier(mesh, NULL);
        begin = dtn_now_ns();
        need(dtn_exec_run(exec, in, out, 7, NULL) == 0, "run");
        mine = (double)(dtn_now_ns() - begin);
        for (size_t i = 0; i < bytes[DTN_OUT]; i += 8)
            sink += ((const unsigned char *)out)[i];
        need(dtensor_allreduce(mesh, &mine, &slowest, 1, DTENSOR_F64,
                               DTENSOR_MAX, &err) == 0, "%s", err.text);
        times[runs] = slowest;
    }
    qsort(times, (size_t)runs, sizeof times[0], ascending);
    return times[runs / 2];
}

static void try_call(const struct dtensor_mesh *mesh, struct dtn_call *call,
                     const struct dtn_model *model, void *in, void *out)
{
    const struct dtn_emitter *best = NULL;
    double best_ns = 0, taken_ns = 0, said_ns = 0;
    struct dtn_choice pick;

    dtn_choose(call, model, &pick);
    for (const struct dtn_emitter *e = dtn_emitters; e->emit; e++) {
        double load[DTENSOR_NCOSTS], ns;
        struct dtn_sched sched;
        struct dtn_exec *exec;

        if (!dtn_emitter_runs(e, call, model))
            continue;
        need(e->emit(call, &sched, NULL) == 0, "emit");
        need(dtn_exec_create(&mesh->group, &sched, &exec, NULL) == 0, "plan");
        ns = time_of(mesh, exec, in, out);
        dtn_exec_destroy(exec);
        dtn_model_load(model, call, e, load);
        if (call->me == 0)
            printf("%-14s %8zu %-12s %10.2f us, predicted %10.2f\n",
                   dtn_coll_name(call->coll), dtn_call_bytes(call), e->name,
                   ns / 1e3, dtn_model_ns(model, load) / 1e3);
        if (!best || ns < best_ns) {
            best = e;
            best_ns = ns;
        }
        if (e == pick.emitter) {
            taken_ns = ns;
            said_ns = dtn_model_ns(model, load);
        }
    }
    if (call->me == 0)
        printf("= %-14s %8zu takes %-10s predicted %9.2f, %9.2f us; "
               "fastest %-10s %9.2f us, %.2f\n\n", dtn_coll_name(call->coll),
               dtn_call_bytes(call), pick.emitter->name, said_ns / 1e3,
               taken_ns / 1e3, best->name, best_ns / 1e3, taken_ns / best_ns);
    fflush(stdout);
}

static void times(int rank, int n, void *arg)
{
    const struct asked *asked = arg;
    const struct dtensor_mesh *mesh;
    struct dtensor_ctx *ctx;
    struct dtn_model model;
    struct dtensor_error err;
    int *hosts = calloc((size_t)n, sizeof *hosts);
    void *in, *out;
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    CPU_SET(rank % (int)sysconf(_SC_NPROCESSORS_ONLN), &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
    need(dtensor_init(getenv("DTN_CLUSTER"), &ctx, &err) == 0, "%s", err.text);
    need(dtensor_mesh_find(ctx, "world", &mesh, &err) == 0, "%s", err.text);
    need(dtn_model_make(&mesh->group, hosts, &model, &err) == 0, "%s",
         err.text);
    for (int i = 0; i < asked->nsizes; i++) {
        need(dtensor_alloc(ctx, asked->size[i], &in, &err) == 0, "%s",
             err.text);
        need(dtensor_alloc(ctx, asked->size[i], &out, &err) == 0, "%s",
             err.text);
        memset(in, 0, asked->size[i]);
        memset(out, 0, asked->size[i]);
        for (int c = 0; c < DTN_COLL_BARRIER; c++) {
            struct dtn_call call = { .coll = (enum dtn_coll)c, .n = n,
                                     .me = rank, .dtype = DTENSOR_F32,
                                     .hosts = hosts };

            call.count = asked->size[i] / 4
                       / (dtn_call_blocked(&call) ? (size_t)n : 1);
            if (call.count > 0)
                try_call(mesh, &call, &model, in, out);
        }
        dtensor_free(ctx, in);
        dtensor_free(ctx, out);
    }
    dtensor_fini(ctx);
    free(hosts);
}

int main(int argc, char **argv)
{
    struct asked asked = { .nsizes = 0 };

    if (argc < 2) {
        fprintf(stderr, "usage: model_times RANKS [SIZE...]\n");
        return 2;
    }
    for (int i = 2; i < argc && asked.nsizes < (int)DTN_COUNT(asked.size); i++)
        asked.size[asked.nsizes++] = (size_t)atol(argv[i]);
    return ranks_run(atoi(argv[1]), 600, times, &asked, NULL) != 0;
}
