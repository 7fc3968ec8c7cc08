/* simulate.c - what a collective or a redistribute takes on a machine that is
 * described
 *
 *   $ dtensor-plan allreduce --simulate --size 1M --mesh 1024 --per-host 8 \
 *         --topology fat-tree:32/16x4
 *
 * Every algorithm is played step by step, and its time printed beside that of
 * the formula by which algorithms are chosen.  With --algorithm one is played,
 * and its critical path and busiest links are shown.  Of a redistribute every
 * route is played, or the one that --route names.
 */
#include "tools/draw/bytes.h"
#include "tools/plan/plan.h"

#include <errno.h>
#include <string.h>

enum { PATH_LINES = 24 };

static int simulate_say(const struct dtensor_error *err)
{
    fprintf(stderr, "%s: %s\n", plan_program, err->text);
    return PLAN_BAD;
}

/* ----------------------------------------------------------------- ways --- */

/* Together with what is beside it. */
static int play(const struct plan_job *job, const struct plan_options *opt,
                const struct dtensor_simulated *asked, FILE *trace,
                struct plan_simulated *way)
{
    struct dtensor_simulated all[1 + PLAN_BESIDE_MAX] = { *asked };
    const struct dtensor_machine machine = {
        .topology = opt->topology, .noise = opt->noise, .slow = opt->slow,
        .failed = opt->failed };
    struct dtensor_error err;

    for (int i = 0; i < job->nbeside; i++)
        all[1 + i] = job->beside[i].asked;
    if (dtensor_simulate(&machine, all, 1 + job->nbeside,
                         trace ? plan_trace_event : NULL, trace, &way->result,
                         &err) == 0)
        return PLAN_GOOD;
    return simulate_say(&err);
}

static int play_plan(const struct plan_job *job,
                     const struct plan_options *opt,
                     const struct dtensor_plan *plan, FILE *trace,
                     struct plan_simulated *way)
{
    struct dtensor_plan_info info;

    dtensor_plan_info(plan, &info);
    way->name = plan_routes[info.route];
    way->predicted_ns = info.predicted_us * 1e3;
    return play(job, opt, &(struct dtensor_simulated){ .plan = plan }, trace,
                way);
}

static int play_call(const struct plan_job *job,
                     const struct plan_options *opt, const char *algorithm,
                     FILE *trace, struct plan_simulated *way)
{
    const struct dtensor_simulated asked = { .mesh = job->mesh,
                                             .call = &job->call,
                                             .algorithm = algorithm };

    way->name = algorithm;
    for (int i = 0; i < job->nways; i++)
        if (strcmp(job->ways[i].name, algorithm) == 0) {
            way->predicted_ns = job->ways[i].ns;
            way->taken = job->ways[i].taken != 0;
        }
    return play(job, opt, &asked, trace, way);
}

/* Every algorithm of the call. */
static int play_calls(const struct plan_job *job,
                      const struct plan_options *opt,
                      struct plan_simulated ways[], int *np)
{
    int status = PLAN_GOOD;

    for (int i = 0; i < job->nways && status == PLAN_GOOD; i++) {
        status = play_call(job, opt, job->ways[i].name, NULL, &ways[*np]);
        *np += status == PLAN_GOOD;
    }
    return status;
}

/* Every route that there is. */
static int play_routes(const struct plan_job *job,
                       const struct plan_options *opt,
                       struct plan_simulated ways[], int *np)
{
    struct dtensor_plan_info taken;
    int status = PLAN_GOOD;

    dtensor_plan_info(job->plan, &taken);
    for (int i = DTENSOR_ROUTE_AUTO + 1;
         i < DTENSOR_NROUTES && status == PLAN_GOOD; i++) {
        const struct dtensor_plan_options options = {
            .route = (enum dtensor_route)i };
        struct dtensor_plan *plan;

        if (dtensor_plan_create(&job->from, &job->to, &options, &plan, NULL))
            continue;
        status = play_plan(job, opt, plan, NULL, &ways[*np]);
        ways[*np].taken = taken.route == options.route;
        *np += status == PLAN_GOOD;
        dtensor_plan_destroy(plan);
    }
    return status;
}

/* ---------------------------------------------------------------- table --- */

static void simulate_head(const struct plan_job *job,
                          const struct plan_options *opt, FILE *stream)
{
    char bytes[32];

    if (job->plan)
        fprintf(stream, "%s to %s of %s", opt->from, opt->to, opt->shape);
    else
        fprintf(stream, "%s of %s", plan_collectives[job->call.coll],
                draw_bytes((double)job->size, bytes, sizeof bytes));
    fprintf(stream, " over %d ranks", dtensor_mesh_size(job->mesh));
    if (job->per_host > 0)
        fprintf(stream, ", %d on each host", job->per_host);
    fprintf(stream, ", %s\n", opt->topology ? opt->topology : "flat");
    if (opt->beside)
        fprintf(stream, "beside %s\n", opt->beside);
}

static void table_line(const struct plan_simulated *way, FILE *stream)
{
    const double ns = way->result.call_ns[0];
    char simulated[32], predicted[32];

    fprintf(stream, "  %-14s %12s %12s %8.2f %9d  %s\n", way->name,
            draw_time(ns / 1e3, simulated, sizeof simulated),
            draw_time(way->predicted_ns / 1e3, predicted, sizeof predicted),
            ns > 0 ? way->predicted_ns / ns : 1, way->result.ranks,
            way->taken ? "taken" : "");
}

static void simulate_table(const struct plan_job *job,
                           const struct plan_simulated ways[], int n,
                           FILE *stream)
{
    const struct plan_simulated *best = NULL, *taken = NULL;

    fprintf(stream, "  %-14s %12s %12s %8s %9s\n",
            job->plan ? "route" : "algorithm", "simulated", "predicted",
            "ratio", "played");
    for (int i = 0; i < n; i++) {
        table_line(&ways[i], stream);
        if (!best || ways[i].result.call_ns[0] < best->result.call_ns[0])
            best = &ways[i];
        if (ways[i].taken)
            taken = &ways[i];
    }
    if (best && taken)
        fprintf(stream, "fastest %s; taken %s, %.2f times as long\n",
                best->name, taken->name, best->result.call_ns[0] > 0
                ? taken->result.call_ns[0] / best->result.call_ns[0] : 1);
}

/* -------------------------------------------------------------- details --- */

/* Several run: which one. */
static void path_line(const struct dtensor_simulated_event *event, bool several,
                      FILE *stream)
{
    char start[32], took[32], call[32] = "";

    if (several)
        snprintf(call, sizeof call, "call %d ", event->call);
    draw_time(event->start_ns / 1e3, start, sizeof start);
    draw_time((event->end_ns - event->start_ns) / 1e3, took, sizeof took);
    if (event->kind == DTENSOR_STEP_SIGNAL)
        fprintf(stream, "  at %10s  %srank %d step %d to rank %d, on its way "
                "%s\n", start, call, event->rank, event->step, event->peer,
                took);
    else
        fprintf(stream, "  at %10s  %srank %d up to step %d, %s\n", start,
                call, event->rank, event->step, took);
}

static void simulate_path(const struct dtensor_simulation *result,
                          FILE *stream)
{
    const int left_out = result->npath - PATH_LINES;

    fprintf(stream, "critical path:\n");
    for (int i = 0; i < result->npath; i++)
        if (left_out <= 0 || i < PATH_LINES / 2
            || i >= PATH_LINES / 2 + left_out)
            path_line(&result->path[i], result->ncalls > 1, stream);
        else if (i == PATH_LINES / 2)
            fprintf(stream, "  ... %d more ...\n", left_out);
}

static void simulate_details(const struct dtensor_simulation *result,
                             FILE *stream)
{
    char time[32];

    fprintf(stream, "%s, %d ranks played, %llu steps, %llu messages\n",
            draw_time(result->ns / 1e3, time, sizeof time), result->ranks,
            (unsigned long long)result->steps,
            (unsigned long long)result->messages);
    for (int i = 0; i < result->ncalls && result->ncalls > 1; i++)
        fprintf(stream, "  call %d done at %s\n", i,
                draw_time(result->call_ns[i] / 1e3, time, sizeof time));
    simulate_path(result, stream);
    if (result->nlinks > 0)
        fprintf(stream, "busiest links:\n");
    for (int l = 0; l < result->nlinks; l++)
        fprintf(stream, "  %s:%d  %.1f %%\n", result->link[l].kind,
                result->link[l].number,
                100 * result->link[l].busy_ns / result->ns);
}

/* ---------------------------------------------------------------- whole --- */

/* Play one way, with a trace of it if that is asked for. */
static int simulate_one(const struct plan_job *job,
                        const struct plan_options *opt,
                        struct plan_simulated *way)
{
    FILE *trace = opt->trace ? fopen(opt->trace, "we") : NULL;
    int status;

    if (opt->trace && !trace) {
        fprintf(stderr, "%s: cannot write %s: %s\n", plan_program, opt->trace,
                strerror(errno));
        return PLAN_BAD;
    }
    if (trace)
        plan_trace_begin(trace);
    status = job->plan ? play_plan(job, opt, job->plan, trace, way)
                       : play_call(job, opt, opt->algorithm, trace, way);
    if (trace)
        plan_trace_end(trace);
    if (trace && fclose(trace) != 0 && status == PLAN_GOOD) {
        fprintf(stderr, "%s: cannot write %s: %s\n", plan_program, opt->trace,
                strerror(errno));
        dtensor_simulation_fini(&way->result);
        return PLAN_BAD;
    }
    return status;
}

int plan_simulate(const struct plan_job *job, const struct plan_options *opt,
                  FILE *stream)
{
    static struct plan_simulated ways[PLAN_WAYS_MAX];
    const bool one = plan_simulates_one(opt);
    int n = 0, status;

    if (one)
        n = (status = simulate_one(job, opt, &ways[0])) == PLAN_GOOD;
    else if (job->plan)
        status = play_routes(job, opt, ways, &n);
    else
        status = play_calls(job, opt, ways, &n);
    if (status == PLAN_GOOD && opt->json) {
        status = plan_simulate_json(job, opt, ways, n, stream);
    } else if (status == PLAN_GOOD) {
        simulate_head(job, opt, stream);
        if (one)
            simulate_details(&ways[0].result, stream);
        else
            simulate_table(job, ways, n, stream);
    }
    for (int i = 0; i < n; i++)
        dtensor_simulation_fini(&ways[i].result);
    return status;
}
