/* simulate.c - what a collective takes on a machine that is described
 *
 *   $ dtensor-plan allreduce --simulate --size 1M --mesh 1024 --per-host 8 \
 *         --topology fat-tree:32/16x4
 *
 * Every algorithm is played step by step, and its time printed beside that of
 * the formula by which algorithms are chosen.  With --algorithm one is played,
 * and its critical path and busiest links are shown.
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

static int simulate_one(const struct plan_job *job,
                        const struct plan_options *opt, const char *algorithm,
                        FILE *trace, struct dtensor_simulation *result)
{
    const struct dtensor_machine machine = {
        .topology = opt->topology, .noise = opt->noise, .slow = opt->slow,
        .failed = opt->failed };
    const struct dtensor_simulated call = { .mesh = job->mesh,
                                            .call = &job->call,
                                            .algorithm = algorithm };
    struct dtensor_error err;

    if (dtensor_simulate(&machine, &call, 1, trace ? plan_trace_event : NULL,
                         trace, result, &err) == 0)
        return PLAN_GOOD;
    return simulate_say(&err);
}

static void simulate_head(const struct plan_job *job,
                          const struct plan_options *opt, FILE *stream)
{
    char bytes[32];

    fprintf(stream, "%s of %s over %d ranks", plan_collectives[job->call.coll],
            draw_bytes((double)job->size, bytes, sizeof bytes),
            dtensor_mesh_size(job->mesh));
    if (job->per_host > 0)
        fprintf(stream, ", %d on each host", job->per_host);
    fprintf(stream, ", %s\n", opt->topology ? opt->topology : "flat");
}

/* ---------------------------------------------------------------- table --- */

static void table_head(const struct plan_job *job,
                       const struct plan_options *opt, FILE *stream)
{
    simulate_head(job, opt, stream);
    fprintf(stream, "  %-14s %12s %12s %8s %9s\n", "algorithm", "simulated",
            "predicted", "ratio", "played");
}

static void table_line(const struct dtensor_way *way, double ns, int ranks,
                       FILE *stream)
{
    char simulated[32], predicted[32];

    fprintf(stream, "  %-14s %12s %12s %8.2f %9d  %s\n", way->name,
            draw_time(ns / 1e3, simulated, sizeof simulated),
            draw_time(way->ns / 1e3, predicted, sizeof predicted),
            way->ns / ns, ranks, way->taken ? "taken" : "");
}

static int simulate_table(const struct plan_job *job,
                          const struct plan_options *opt, FILE *stream)
{
    const struct dtensor_way *best = NULL, *taken = NULL;
    double best_ns = 0, taken_ns = 0;

    for (int i = 0; i < job->nways; i++) {
        const struct dtensor_way *way = &job->ways[i];
        struct dtensor_simulation result;
        int status = simulate_one(job, opt, way->name, NULL, &result);

        if (status != PLAN_GOOD)
            return status;
        if (i == 0)
            table_head(job, opt, stream);
        table_line(way, result.ns, result.ranks, stream);
        if (!best || result.ns < best_ns) {
            best = way;
            best_ns = result.ns;
        }
        if (way->taken) {
            taken = way;
            taken_ns = result.ns;
        }
        dtensor_simulation_fini(&result);
    }
    if (best && taken)
        fprintf(stream, "fastest %s; taken %s, %.2f times as long\n",
                best->name, taken->name, best_ns > 0 ? taken_ns / best_ns : 1);
    return PLAN_GOOD;
}

/* -------------------------------------------------------------- details --- */

static void path_line(const struct dtensor_simulated_event *event,
                      FILE *stream)
{
    char start[32], took[32];

    draw_time(event->start_ns / 1e3, start, sizeof start);
    draw_time((event->end_ns - event->start_ns) / 1e3, took, sizeof took);
    if (event->kind == DTENSOR_STEP_SIGNAL)
        fprintf(stream, "  at %10s  rank %d step %d to rank %d, on its way "
                "%s\n", start, event->rank, event->step, event->peer, took);
    else
        fprintf(stream, "  at %10s  rank %d up to step %d, %s\n", start,
                event->rank, event->step, took);
}

static void simulate_path(const struct dtensor_simulation *result,
                          FILE *stream)
{
    const int left_out = result->npath - PATH_LINES;

    fprintf(stream, "critical path:\n");
    for (int i = 0; i < result->npath; i++)
        if (left_out <= 0 || i < PATH_LINES / 2
            || i >= PATH_LINES / 2 + left_out)
            path_line(&result->path[i], stream);
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
    simulate_path(result, stream);
    if (result->nlinks > 0)
        fprintf(stream, "busiest links:\n");
    for (int l = 0; l < result->nlinks; l++)
        fprintf(stream, "  %s:%d  %.1f %%\n", result->link[l].kind,
                result->link[l].number,
                100 * result->link[l].busy_ns / result->ns);
}

/* ---------------------------------------------------------------- whole --- */

static int simulate_traced(const struct plan_job *job,
                           const struct plan_options *opt,
                           struct dtensor_simulation *result)
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
    status = simulate_one(job, opt, opt->algorithm, trace, result);
    if (trace)
        plan_trace_end(trace);
    if (trace && fclose(trace) != 0 && status == PLAN_GOOD) {
        fprintf(stderr, "%s: cannot write %s: %s\n", plan_program, opt->trace,
                strerror(errno));
        dtensor_simulation_fini(result);
        return PLAN_BAD;
    }
    return status;
}

int plan_simulate(const struct plan_job *job, const struct plan_options *opt,
                  FILE *stream)
{
    struct dtensor_simulation result;
    int status;

    if (opt->algorithm) {
        status = simulate_traced(job, opt, &result);
        if (status != PLAN_GOOD)
            return status;
        simulate_head(job, opt, stream);
        simulate_details(&result, stream);
        dtensor_simulation_fini(&result);
        return PLAN_GOOD;
    }
    return simulate_table(job, opt, stream);
}
