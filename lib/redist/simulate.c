/* simulate.c - calls and plans on machines that are only described
 *
 * This is for dtensor_simulate(): the schedules of all ranks are made and
 * played (sched/play.h) with the costs of the cluster and the hosts of its
 * ranks.  A ring of 65,536 ranks is played on one host, since each host does
 * the same; a tree is played whole.
 */
#include "base/error.h"
#include "base/ranks.h"
#include "base/units.h"
#include "cluster/world.h"
#include "coll/ask.h"
#include "coll/choose.h"
#include "job/ctx.h"
#include "job/group.h"
#include "layout/layout.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "redist/plan.h"
#include "redist/schedule.h"
#include "sched/call.h"
#include "sched/model.h"
#include "sched/play.h"
#include "sched/play/noise.h"
#include "dtensor.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* A call that is simulated, or a plan. */
struct simulated {
    struct dtn_schedules *schedules;   /* of a plan; NULL: the call           */
    struct dtn_call call;
    const struct dtn_emitter *emitter;
    const struct dtn_model *model;
};

static int simulated_emit(void *arg, int position, struct dtn_sched *sched,
                          struct dtensor_error *err)
{
    const struct simulated *simulated = arg;
    struct dtn_call call = simulated->call;

    if (simulated->schedules)
        return dtn_schedules_emit(simulated->schedules, position, sched, err);
    call.me = position;
    return dtn_emitter_emit(simulated->emitter, &call, simulated->model, sched,
                            err);
}

/* One job from a plan. */
static int job_of_plan(const struct dtensor_plan *plan, double start_ns,
                       struct simulated *simulated, struct dtn_play_job *job,
                       struct dtensor_error *err)
{
    const struct dtn_group *group = &plan->all->group;
    const double elem = (double)dtensor_dtype_size(plan->dst.dtype);
    int rc = dtn_model_of(group, &simulated->model, err);

    if (rc == 0)
        rc = dtn_schedules_create(plan, &simulated->schedules, err);
    if (rc != 0)
        return rc;
    *job = (struct dtn_play_job){
        .n = group->n, .ranks = group->ranks, .start_ns = start_ns,
        .stretch = dtn_model_cache_miss_factor(simulated->model,
            elem * fmax((double)dtn_local_numel(&plan->src, 0),
                        (double)dtn_local_numel(&plan->dst, 0))),
        .emit = simulated_emit, .arg = simulated };
    return 0;
}

/* One job from a call. */
static int job_of_call(const struct dtensor_simulated *asked,
                    struct simulated *simulated, struct dtn_play_job *job,
                    struct dtensor_error *err)
{
    int rc = dtn_ask(asked->mesh, asked->call, &simulated->call,
                     &simulated->model, err);

    if (rc != 0)
        return rc;
    if (dtn_call_private(&simulated->call))
        return dtn_fail(err, DTENSOR_EINVAL, "simulate: an all-to-all with "
                        "counts, of which each rank knows its own only (leave "
                        "counts out)");
    simulated->emitter = dtn_emitter_named(&simulated->call, simulated->model,
                                           asked->algorithm);
    if (!simulated->emitter)
        return dtn_fail(err, DTENSOR_EINVAL, "simulate: no algorithm \"%s\" "
                        "runs this %s (dtensor_call_ways() lists those that "
                        "do)", asked->algorithm,
                        dtn_coll_name(simulated->call.coll));
    *job = (struct dtn_play_job){
        .n = asked->mesh->group.n, .ranks = asked->mesh->group.ranks,
        .start_ns = asked->start_ns,
        .stretch = dtn_model_cache_miss_factor(
            simulated->model, (double)dtn_call_bytes(&simulated->call)),
        .emit = simulated_emit, .arg = simulated };
    return 0;
}

static int job_make(const struct dtensor_simulated *asked, int number,
                    struct simulated *simulated, struct dtn_play_job *job,
                    struct dtensor_error *err)
{
    if (asked->plan && !asked->mesh && !asked->call)
        return job_of_plan(asked->plan, asked->start_ns, simulated, job, err);
    if (!asked->plan && asked->mesh && asked->call)
        return job_of_call(asked, simulated, job, err);
    return dtn_fail(err, DTENSOR_EINVAL, "simulate: entry %d has %s (give a "
                    "mesh and a call, or a plan)", number, asked->plan
                    ? "a plan and a call" : "neither a plan nor a call");
}

static const struct dtensor_ctx *asked_ctx(
    const struct dtensor_simulated *asked)
{
    return asked->plan ? asked->plan->all->ctx : asked->mesh->ctx;
}

/* ---------------------------------------------------------- the machine --- */

/* "5:1.5,9:3": ranks whose CPUs take longer. */
static int slow_read(const char *text, int ranks, double slow[],
                     struct dtensor_error *err)
{
    const char *at = text;
    char *end = NULL;

    for (int r = 0; r < ranks; r++)
        slow[r] = 1;
    do {
        long rank = strtol(at, &end, 10);
        double factor = end != at && *end == ':'
                      ? dtn_parse_real(end + 1, &end) : 0;

        if (rank < 0 || rank >= ranks || !(factor >= 1 && factor <= 1e6) ||
            (*end != '\0' && *end != ','))
            return dtn_fail(err, DTENSOR_EINVAL, "slow \"%s\": expected "
                            "RANK:FACTOR,... with ranks from 0 to %d and "
                            "factors of 1 to 1000000", text, ranks - 1);
        slow[rank] = factor;
        at = end + 1;
    } while (*end == ',');
    return 0;
}

/* What dtn_play_machine owns here. */
struct parts {
    int *host;                    /* [world] host of each rank                */
    double *slow;                 /* [world] or NULL                          */
    struct dtn_noise *noise;      /* or NULL                                  */
};

static int machine_make(const struct dtensor_machine *asked,
                        const struct dtensor_ctx *ctx,
                        const struct dtn_model *model, struct parts *parts,
                        struct dtn_play_machine *machine,
                        struct dtensor_error *err)
{
    const size_t n = (size_t)ctx->world.size;
    int rc = 0;

    dtn_play_machine_of(model, machine);
    parts->host = malloc(n * sizeof *parts->host);
    parts->slow = asked->slow ? malloc(n * sizeof *parts->slow) : NULL;
    if (!parts->host || (asked->slow && !parts->slow))
        return dtn_fail_nomem(err, "simulate", n * sizeof *parts->slow);
    for (int r = 0; r < ctx->world.size; r++)
        parts->host[r] = dtn_world_host(&ctx->world, r);
    if (asked->slow)
        rc = slow_read(asked->slow, ctx->world.size, parts->slow, err);
    if (rc == 0 && asked->noise)
        rc = dtn_noise_read(asked->noise, &parts->noise, err);
    if (rc == 0 && !(machine->far.byte_ns > 0 && machine->near.byte_ns > 0))
        rc = dtn_fail(err, DTENSOR_EINVAL, "simulate: a bandwidth of 0 in the "
                      "cluster file");
    machine->ranks = ctx->world.size;
    machine->rails = dtn_model_devices(ctx->world.cluster, parts->host[0]);
    machine->host = parts->host;
    machine->slow = parts->slow;
    machine->noise = parts->noise;
    machine->topology = asked->topology;
    machine->failed = asked->failed;
    machine->far.gap_ns = asked->gap_ns;
    machine->far.notice_ns = machine->near.notice_ns = asked->notice_ns;
    return rc;
}

static void parts_free(struct parts *parts)
{
    free(parts->host);
    free(parts->slow);
    dtn_noise_free(parts->noise);
}

/* ---------------------------------------------------------------- whole --- */

/* Play one host, or one group of hosts, if a call of the world repeats. */
static int job_fold(const struct dtn_play_machine *machine,
                    struct dtn_play_job *job, struct dtensor_error *err)
{
    const struct dtn_ranks world = dtn_ranks_all(machine->ranks);
    bool repeats = dtn_ranks_equal(job->ranks, &world);
    int unit = 0, rc = dtn_play_unit(machine, &unit, err);

    if (rc != 0 || unit == 0 || !repeats || job->n % unit != 0)
        return rc;
    rc = dtn_play_repeats(job, unit, &repeats, err);
    if (rc == 0 && repeats)
        job->period = unit;
    return rc;
}

static int simulate(const struct dtn_play_machine *machine,
                    struct dtn_play_job jobs[], int njobs,
                    const struct dtn_play_watch *watch,
                    struct dtensor_simulation *result,
                    struct dtensor_error *err)
{
    struct dtn_play_result played;
    int rc = njobs == 1 && !watch->visit ? job_fold(machine, jobs, err) : 0;

    if (rc == 0)
        rc = dtn_play(machine, jobs, njobs, watch, &played, err);
    if (rc != 0)
        return rc;
    *result = (struct dtensor_simulation){
        .ns = played.ns, .ranks = played.ranks, .steps = played.steps,
        .messages = played.messages, .nlinks = played.nlinks,
        .npath = played.npath, .path = played.path, .ncalls = njobs,
        .call_ns = played.job_ns };
    for (int l = 0; l < played.nlinks; l++)
        result->link[l] = played.link[l];
    return 0;
}

int dtensor_simulate(const struct dtensor_machine *machine,
                     const struct dtensor_simulated calls[], int ncalls,
                     dtensor_simulated_f *visit, void *arg,
                     struct dtensor_simulation *result,
                     struct dtensor_error *err)
{
    const struct dtensor_machine plain = { .topology = NULL };
    const struct dtn_play_watch watch = { visit, arg, true, true };
    const size_t n = ncalls > 0 ? (size_t)ncalls : 0;
    struct simulated *simulated = calloc(n + 1, sizeof *simulated);
    struct dtn_play_job *jobs = calloc(n + 1, sizeof *jobs);
    struct dtn_play_machine played;
    struct parts parts = { .host = NULL };
    int rc = 0;

    if (ncalls < 1)
        rc = dtn_fail(err, DTENSOR_EINVAL, "simulate: %d calls (expected 1 or "
                      "more)", ncalls);
    else if (!simulated || !jobs)
        rc = dtn_fail_nomem(err, "simulate", n * sizeof *simulated);
    for (int i = 0; rc == 0 && i < ncalls; i++) {
        rc = job_make(&calls[i], i, &simulated[i], &jobs[i], err);
        if (rc == 0 && asked_ctx(&calls[i]) != asked_ctx(&calls[0]))
            rc = dtn_fail(err, DTENSOR_EINVAL, "simulate: call %d is of "
                          "another context", i);
    }
    if (rc == 0)
        rc = machine_make(machine ? machine : &plain, asked_ctx(calls),
                          simulated[0].model, &parts, &played, err);
    if (rc == 0)
        rc = simulate(&played, jobs, ncalls, &watch, result, err);
    if (rc < 0 && err)
        err->rank = -1;            /* a rank of the simulation is no culprit  */
    parts_free(&parts);
    for (size_t i = 0; simulated && i < n; i++)
        dtn_schedules_destroy(simulated[i].schedules);
    free(simulated);
    free(jobs);
    return rc;
}

void dtensor_simulation_fini(struct dtensor_simulation *result)
{
    if (!result)
        return;
    free(result->path);
    free(result->call_ns);
}
