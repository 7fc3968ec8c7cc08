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
#include "sched/caches.h"
#include "sched/call.h"
#include "sched/emitters.h"
#include "sched/model.h"
#include "sched/play.h"
#include "sched/sched.h"
#include "dtensor.h"
#include "tests/coll/host_costs.h"
#include "tests/coll/timing.h"
#include "tests/sched/play.h"
#include "tests/support/ranks.h"

#include <math.h>
#include <sched.h>
#include <string.h>
#include <time.h>

enum { BARRIERS = 9, TRIES = 5 };
#define ENOUGH_NS 1e8             /* for the runs of one algorithm            */
#define WIRE_BYTES ((size_t)4 << 20)

struct asked {
    int nsizes;
    size_t size[16];
};

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
    ns = timing_exec(mesh, exec, in, out, calls, ENOUGH_NS);
    dtn_exec_destroy(exec);
    return ns;
}

/* ------------------------------------------------------------ simulated --- */

/* All ranks write their inputs and read their outputs, as before each call. */
static void played_touch(const struct played *played, struct dtn_caches *caches)
{
    for (int r = 0; r < played->call.n; r++) {
        struct dtn_sched sched;

        need(played_emit((void *)(uintptr_t)played, r, &sched, NULL) == 0,
             "emit");
        dtn_caches_touch(caches, r, DTN_OUT, sched.bytes[DTN_OUT], false);
        dtn_caches_touch(caches, r, DTN_IN, sched.bytes[DTN_IN], true);
        dtn_sched_fini(&sched);
    }
}

/* The second of two calls, if the caches are known: they begin empty. */
static double played_ns(const struct dtn_call *call,
                        const struct dtn_emitter *e,
                        const struct dtn_model *model,
                        const struct host_costs *costs)
{
    struct played played = { e, *call };
    struct dtn_play_job job = { .n = call->n, .emit = played_emit,
        .arg = &played, .stretch = dtn_model_cache_miss_factor(
            model, (double)dtn_call_bytes(call)) };
    struct dtn_play_result result;
    struct dtn_play_machine machine;
    struct dtensor_error err;

    dtn_play_machine_of(model, &machine);
    if (costs) {
        need(dtn_caches_create(&costs->caches, call->n, &machine.caches, &err)
             == 0, "%s", err.text);
        machine.near.post_ns = costs->post_ns;
        machine.near.latency_ns = costs->latency_ns;
        machine.early_ns = host_costs_early(costs, dtn_call_bytes(call));
        machine.crossed_ns = costs->crossed_ns;
        job.start_ns = costs->start_ns;
    }
    for (int calls = 0; calls <= (costs != NULL); calls++) {
        if (costs)
            played_touch(&played, machine.caches);
        need(dtn_play(&machine, &job, 1, NULL, &result, &err) == 0, "%s",
             err.text);
    }
    dtn_caches_destroy(machine.caches);
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

/* Its time, between two looks at the machine that find the same. */
static double settled_ns(const struct dtensor_mesh *mesh,
                         const struct dtn_call *call,
                         const struct dtn_emitter *e, void *in, void *out,
                         struct host_costs *costs)
{
    double ns = emitter_ns(mesh, call, e, in, out, 1);

    for (int i = 0; costs && i < TRIES && !host_costs_hold(costs); i++) {
        host_costs_measure(costs);
        if (call->me == 0)
            printf("- a signal takes %.0f ns now\n",
                   costs->post_ns + costs->latency_ns);
        ns = emitter_ns(mesh, call, e, in, out, 1);
    }
    return ns;
}

static void try_call(const struct dtensor_mesh *mesh, struct dtn_call *call,
                     const struct dtn_model *model,
                     struct host_costs *costs, void *in, void *out,
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
        ns = settled_ns(mesh, call, e, in, out, costs);
        dtn_model_load(model, call, e, load);
        told = played_ns(call, e, model, costs);
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
                     const struct dtn_model *model,
                     struct host_costs *costs, void *in, void *out,
                     struct offs *offs)
{
    for (int c = 0; c < DTN_COLL_BARRIER; c++) {
        struct dtn_call call = *like;

        call.coll = (enum dtn_coll)c;
        call.count = bytes / 4
                   / (dtn_call_blocked(&call) ? (size_t)call.n : 1);
        if (call.count > 0)
            try_call(mesh, &call, model, costs, in, out, offs);
    }
}

static size_t size_most(const struct asked *asked)
{
    size_t most = WIRE_BYTES;

    for (int i = 0; i < asked->nsizes; i++)
        most = asked->size[i] > most ? asked->size[i] : most;
    return most;
}

static void costs_print(const struct host_costs *costs)
{
    const struct dtn_cache_costs *caches = &costs->caches;

    printf("measured: a call %.0f ns, a signal %.0f ns to post, %.0f ns later "
           "there, %.0f more if two cross, READY %.0f, %.0f or %.0f more; "
           "capacity %.0f, beyond it %.4f ns a byte\n",
           costs->start_ns, costs->post_ns, costs->latency_ns,
           costs->crossed_ns, caches->ready_ns[0], caches->ready_ns[1],
           caches->ready_ns[2], caches->capacity, caches->beyond_ns);
    printf("%8s %8s %8s %8s, more for loads there, read, away, by both, and "
           "stores\n", "bytes", "early ns", "copy ns", "fold ns");
    for (int i = 0; i < DTN_CACHE_SIZES; i++) {
        printf("%8zu %8.0f %8.0f %8.0f", dtn_cache_size(i), costs->early_ns[i],
               caches->copy[i], caches->fold[i]);
        for (int s = DTN_LINES_THERE; s < DTN_NLINES_STATES; s++)
            printf(" %6.0f", caches->load[s][i]);
        printf(" %6.0f", caches->both_load[i]);
        for (int s = DTN_LINES_THERE; s < DTN_NLINES_STATES; s++)
            printf(" %6.0f", caches->store[s][i]);
        printf(" %6.0f\n", caches->both_store[i]);
    }
}

static void times(int rank, int n, void *arg)
{
    const struct asked *asked = arg;
    const struct dtensor_mesh *mesh;
    struct dtensor_ctx *ctx;
    struct dtn_model model;
    struct dtensor_error err;
    struct host_costs costs;
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
        timing_begin_after(2e7);
        wire_measure(mesh, &like, in, out, &model);
    } else if (n == 2) {
        host_costs_begin(mesh, ctx, in, out, &costs);
        host_costs_measure(&costs);
        if (rank == 0)
            costs_print(&costs);
    }
    for (int i = 0; i < asked->nsizes; i++)
        try_size(mesh, &like, asked->size[i], &model,
                 model.hosts == 1 && n == 2 ? &costs : NULL, in, out, &offs);
    if (rank == 0)
        printf("of %d times %d are simulated within 20 %%, the worst as %.2f "
               "of it; %d are predicted within 20 %%\n", offs.n,
               offs.simulated, offs.worst, offs.predicted);
    if (model.hosts == 1 && n == 2)
        host_costs_end(ctx, &costs);
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
