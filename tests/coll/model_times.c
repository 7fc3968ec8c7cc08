/* model_times.c - predicted and simulated against measured
 *
 * `model_times N [size...]` runs every emitter that can over N ranks of this
 * host, by shared memory or as DTN_CLUSTER says, and prints for each its median
 * time, what the model and the simulator said, and of each call which emitter
 * was the fastest and which the model takes.  `make check` does not run it:
 * times are of a quiet machine or of slow links only.
 *
 * With DTN_RANK in the environment it is that rank, and N does not matter; the
 * ranks may be in network namespaces of one machine (tests/peers/links.sh).
 * They first measure the hop, the message and the byte between hosts, by two
 * barriers and a ring.  A call begins at one time of the clock on all ranks.
 */
#include "base/compiler.h"
#include "base/wait.h"
#include "coll/choose.h"
#include "coll/exec.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "sched/play.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/sched/play.h"
#include "tests/support/ranks.h"

#include <math.h>
#include <sched.h>
#include <string.h>
#include <time.h>

enum { TIMES_MAX = 401, RUNS_MIN = 5, WARM_UP = 2, BARRIERS = 9 };
#define ENOUGH_NS 2e8             /* for the runs of one algorithm            */
#define WIRE_BYTES ((size_t)4 << 20)

struct asked {
    int nsizes;
    size_t size[16];
};

static volatile unsigned sink;    /* where results are read to                */

/* Until a call begins, longer than a hop.  On one host ranks wait for it with
 * warm caches; else they sleep, since who spins takes the CPU of another.
 */
static double begin_ns = 20000;

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* What all ranks have agreed on: the largest of their numbers. */
static double largest(const struct dtensor_mesh *mesh, double mine)
{
    struct dtensor_error err;
    double most;

    need(dtensor_allreduce(mesh, &mine, &most, 1, DTENSOR_F64, DTENSOR_MAX,
                           &err) == 0, "%s", err.text);
    return most;
}

/* From a time of the clock at which all ranks begin so many calls to the end of
 * the last, in ns.  The input is written before, the output read after.
 */
static double run_ns(const struct dtensor_mesh *mesh, struct dtn_exec *exec,
                     void *in, void *out, int calls, int run)
{
    const size_t *bytes = dtn_exec_sched(exec)->bytes;
    double begin, end, rest_ns;

    memset(in, run, bytes[DTN_IN]);
    begin = largest(mesh, (double)dtn_now_ns() + begin_ns);
    rest_ns = begin - (double)dtn_now_ns();
    if (rest_ns > 1e6)
        nanosleep(&(struct timespec){ .tv_nsec = (long)rest_ns }, NULL);
    while ((double)dtn_now_ns() < begin)
        ;
    for (int i = 0; i < calls; i++)
        need(dtn_exec_run(exec, in, out, 7, NULL) == 0, "run");
    end = (double)dtn_now_ns();
    for (size_t i = 0; i < bytes[DTN_OUT]; i += 8)
        sink += ((const unsigned char *)out)[i];
    return largest(mesh, end) - begin;
}

/* Median over the runs, in ns. */
static double time_of(const struct dtensor_mesh *mesh, struct dtn_exec *exec,
                      void *in, void *out, int calls)
{
    static double times[TIMES_MAX];
    const int64_t first = dtn_now_ns();
    int runs = 0;

    for (int i = 0; i < WARM_UP; i++)
        run_ns(mesh, exec, in, out, calls, i);
    while (runs < TIMES_MAX
           && (runs < RUNS_MIN
               || largest(mesh, (double)(dtn_now_ns() - first))
                  < ENOUGH_NS)) {
        times[runs] = run_ns(mesh, exec, in, out, calls, runs);
        runs++;
    }
    qsort(times, (size_t)runs, sizeof times[0], ascending);
    return times[runs / 2];
}

static double emitter_ns(const struct dtensor_mesh *mesh,
                         const struct dtn_call *call,
                         const struct dtn_emitter *e, void *in, void *out,
                         int calls)
{
    struct dtn_sched sched;
    struct dtn_exec *exec;
    double ns;

    need(e->emit(call, &sched, NULL) == 0, "emit");
    need(dtn_exec_create(&mesh->group, &sched, &exec, NULL) == 0, "plan");
    ns = time_of(mesh, exec, in, out, calls);
    dtn_exec_destroy(exec);
    return ns;
}

/* ------------------------------------------------------------ simulated --- */

static double played_ns(const struct dtn_call *call,
                        const struct dtn_emitter *e,
                        const struct dtn_model *model)
{
    struct played played = { e, *call };
    const struct dtn_play_job job = { .n = call->n, .emit = played_emit,
        .arg = &played, .stretch = dtn_model_cache_miss_factor(
            model, (double)dtn_call_bytes(call)) };
    struct dtn_play_result result;
    struct dtn_play_machine machine;
    struct dtensor_error err;

    dtn_play_machine_of(model, &machine);
    need(dtn_play(&machine, &job, 1, NULL, &result, &err) == 0, "%s",
         err.text);
    return result.ns;
}

/* -------------------------------------------------------------- measured -- */

static const struct dtn_emitter *emitter_find(enum dtn_coll coll,
                                              const char *name)
{
    const struct dtn_emitter *e = dtn_emitters;

    while (e->coll != coll || strcmp(e->name, name) != 0)
        e++;
    return e;
}

/* A barrier among others: what the start takes does not count. */
static double barrier_ns(const struct dtensor_mesh *mesh,
                         const struct dtn_call *call, const char *name,
                         void *in, void *out)
{
    const struct dtn_emitter *e = emitter_find(DTN_COLL_BARRIER, name);
    const double one = emitter_ns(mesh, call, e, in, out, 1);

    return (emitter_ns(mesh, call, e, in, out, BARRIERS) - one)
           / (BARRIERS - 1);
}

/* A direct barrier is a hop and n - 1 messages, a tree log2 n hops and messages
 * in turn; of a ring of two sizes the difference is that of the bytes.
 */
static void wire_measure(const struct dtensor_mesh *mesh,
                         const struct dtn_call *like, void *in, void *out,
                         struct dtn_model *model)
{
    double *ns = model->ns + DTENSOR_COST_INTER_HOPS;
    struct dtn_call call = *like;
    const int n = call.n;
    double direct, tree, ring[2], levels = ceil(log2(n));

    call.coll = DTN_COLL_BARRIER;
    direct = barrier_ns(mesh, &call, "direct", in, out);
    tree = barrier_ns(mesh, &call, "tree", in, out);
    if (n > 2)
        ns[1] = fmin(fmax((levels * direct - tree) / (levels * (n - 2)), 100),
                     direct / n);
    ns[0] = direct - (n - 1) * ns[1];
    call.coll = DTN_COLL_ALLGATHER;
    for (int i = 0; i < 2; i++) {
        call.count = (WIRE_BYTES >> 2 * i) / 4 / (size_t)n;
        ring[i] = emitter_ns(mesh, &call, emitter_find(call.coll, "ring"), in,
                             out, 1);
    }
    ns[2] = (ring[0] - ring[1]) / (WIRE_BYTES * 0.75) * n / (n - 1);
    if (call.me == 0)
        printf("measured: a hop %.1f us, a message %.1f us, %.1f MB/s\n",
               ns[0] / 1e3, ns[1] / 1e3, 1e3 / ns[2]);
}

/* How far the simulator and the model are off, by all calls. */
struct offs {
    int n, simulated, predicted;  /* all, and those within 20 %               */
    double worst;                 /* simulated / measured                     */
};

static void offs_add(struct offs *offs, double measured, double predicted,
                     double simulated)
{
    offs->n++;
    offs->simulated += fabs(simulated / measured - 1) <= 0.2;
    offs->predicted += fabs(predicted / measured - 1) <= 0.2;
    if (fabs(log(simulated / measured)) > fabs(log(offs->worst)))
        offs->worst = simulated / measured;
}

static void try_call(const struct dtensor_mesh *mesh, struct dtn_call *call,
                     const struct dtn_model *model, void *in, void *out,
                     struct offs *offs)
{
    const struct dtn_emitter *best = NULL;
    double best_ns = 0, taken_ns = 0, said_ns = 0;
    struct dtn_choice pick;

    dtn_choose(call, model, &pick);
    for (const struct dtn_emitter *e = dtn_emitters; e->emit; e++) {
        double load[DTENSOR_NCOSTS], ns, told;

        if (!dtn_emitter_runs(e, call, model))
            continue;
        ns = emitter_ns(mesh, call, e, in, out, 1);
        dtn_model_load(model, call, e, load);
        told = played_ns(call, e, model);
        offs_add(offs, ns, dtn_model_ns(model, load), told);
        if (call->me == 0)
            printf("%-14s %8zu %-12s %10.2f us, predicted %10.2f, simulated "
                   "%10.2f, %.2f\n", dtn_coll_name(call->coll),
                   dtn_call_bytes(call), e->name, ns / 1e3,
                   dtn_model_ns(model, load) / 1e3, told / 1e3, told / ns);
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

/* Memory that peers reach, of that many bytes. */
static void *memory(struct dtensor_ctx *ctx, size_t bytes)
{
    struct dtensor_error err;
    void *mem;

    need(dtensor_alloc(ctx, bytes, &mem, &err) == 0, "%s", err.text);
    memset(mem, 0, bytes);
    return mem;
}

/* All collectives of that size. */
static void try_size(const struct dtensor_mesh *mesh,
                     const struct dtn_call *like, size_t bytes,
                     const struct dtn_model *model, void *in, void *out,
                     struct offs *offs)
{
    for (int c = 0; c < DTN_COLL_BARRIER; c++) {
        struct dtn_call call = *like;

        call.coll = (enum dtn_coll)c;
        call.count = bytes / 4
                   / (dtn_call_blocked(&call) ? (size_t)call.n : 1);
        if (call.count > 0)
            try_call(mesh, &call, model, in, out, offs);
    }
}

static size_t size_most(const struct asked *asked)
{
    size_t most = WIRE_BYTES;

    for (int i = 0; i < asked->nsizes; i++)
        most = asked->size[i] > most ? asked->size[i] : most;
    return most;
}

static void times(int rank, int n, void *arg)
{
    const struct asked *asked = arg;
    const struct dtensor_mesh *mesh;
    struct dtensor_ctx *ctx;
    struct dtn_model model;
    struct dtensor_error err;
    struct offs offs = { .worst = 1 };
    int *hosts = calloc((size_t)n, sizeof *hosts);
    struct dtn_call like = { .n = n, .me = rank, .hosts = hosts,
                             .dtype = DTENSOR_F32 };
    void *in, *out;
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    CPU_SET(rank % (int)sysconf(_SC_NPROCESSORS_ONLN), &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
    need(dtensor_init(getenv("DTN_CLUSTER"), &ctx, &err) == 0, "%s", err.text);
    need(dtensor_mesh_find(ctx, "world", &mesh, &err) == 0, "%s", err.text);
    need(dtn_model_make(&mesh->group, hosts, &model, &err) == 0, "%s",
         err.text);
    like.eager_bytes = model.eager_bytes;
    in = memory(ctx, size_most(asked));
    out = memory(ctx, size_most(asked));
    if (model.hosts > 1) {
        begin_ns = 2e7;
        wire_measure(mesh, &like, in, out, &model);
    }
    for (int i = 0; i < asked->nsizes; i++)
        try_size(mesh, &like, asked->size[i], &model, in, out, &offs);
    if (rank == 0)
        printf("of %d times %d are simulated within 20 %%, the worst as %.2f "
               "of it; %d are predicted within 20 %%\n", offs.n,
               offs.simulated, offs.worst, offs.predicted);
    dtensor_free(ctx, in);
    dtensor_free(ctx, out);
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
    if (getenv("DTN_RANK")) {
        times(atoi(getenv("DTN_RANK")), atoi(getenv("DTN_WORLD_SIZE")), &asked);
        return 0;
    }
    return ranks_run(atoi(argv[1]), 600, times, &asked, NULL) != 0;
}
