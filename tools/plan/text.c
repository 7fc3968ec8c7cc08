/* text.c - a redistribute for people
 *
 *   An all-gather moves 256 MiB between 8 ranks in about 4.02 ms: route direct;
 *   merged would take 4.69 ms.
 *
 * One sentence says what will happen, how long it takes and why; then come the
 * steps, the routes, and what each rank sends.  Who sends how much to whom is a
 * matrix for up to 8 ranks, and for more if --matrix asks for it.
 */
#include "tools/draw/bytes.h"
#include "tools/plan/plan.h"

#include <inttypes.h>
#include <string.h>

enum { TEXT_STEPS = 16, TEXT_RANKS = 8 };

/* ------------------------------------------------------------- sentence --- */

/* "An all-gather", "a reduce-scatter" */
static void text_article(const char *what, bool first, FILE *stream)
{
    const bool vowel = strchr("aeiou", what[0]) != NULL;

    fprintf(stream, "%s%s %s", first ? "A" : "a", vowel ? "n" : "", what);
}

static void text_what(const struct plan_job *job, int nsteps, FILE *stream)
{
    struct dtensor_plan_step step;
    char bytes[32];

    for (int i = 0; i < nsteps && i < TEXT_STEPS; i++) {
        if (dtensor_plan_step(job->plan, i, &step, NULL) != 0)
            continue;
        if (i > 0)
            fputs(i + 1 == nsteps ? " and " : ", ", stream);
        text_article(strcmp(step.what, "local") == 0 ? "local step"
                                                     : step.what, i == 0,
                     stream);
    }
    fprintf(stream, " %s %s between %d ranks", nsteps == 1 ? "moves" : "move",
            draw_bytes((double)dtensor_plan_bytes(job->plan, -1, -1, -1),
                       bytes, sizeof bytes), dtensor_mesh_size(job->mesh));
}

/* The fastest route that is another, or DTENSOR_NROUTES. */
static int text_rival(const struct plan_job *job, enum dtensor_route taken,
                      struct dtensor_plan_choice *rival)
{
    struct dtensor_plan_choice choice;
    int best = DTENSOR_NROUTES;

    for (int i = DTENSOR_ROUTE_DIRECT; i < DTENSOR_NROUTES; i++) {
        if (i == (int)taken ||
            dtensor_plan_choice(job->plan, (enum dtensor_route)i, &choice,
                                NULL) != 0 || choice.refused)
            continue;
        if (best == DTENSOR_NROUTES ||
            choice.predicted_us < rival->predicted_us) {
            *rival = choice;
            best = i;
        }
    }
    return best;
}

static void text_why(const struct plan_job *job,
                     const struct dtensor_plan_info *info, FILE *stream)
{
    struct dtensor_plan_choice rival = { .nsteps = 0 };
    const int other = text_rival(job, info->route, &rival);
    const bool asked = strstr(info->why, "asked") != NULL;
    char time[32];

    fprintf(stream, ": route %s", plan_routes[info->route]);
    if (asked)
        fputs(", which was asked for", stream);
    if (other == DTENSOR_NROUTES)
        fputs("; there is no other", stream);
    else if (rival.predicted_us > 0.995 * info->predicted_us &&
             rival.predicted_us < 1.005 * info->predicted_us)
        fputs("; no other is faster", stream);
    else
        fprintf(stream, "; %s would take %s", plan_routes[other],
                draw_time(rival.predicted_us, time, sizeof time));
    fputs(".\n", stream);
}

static void text_sentence(const struct plan_job *job,
                          const struct dtensor_plan_info *info, FILE *stream)
{
    char time[32];

    if (dtensor_plan_bytes(job->plan, -1, -1, -1) == 0) {
        fprintf(stream, "Nothing moves between ranks: %s.\n", info->nsteps
                ? "each holds what it needs, and keeps or computes it"
                : "nothing changes");
        return;
    }
    text_what(job, info->nsteps, stream);
    fprintf(stream, " in about %s", draw_time(info->predicted_us, time,
                                              sizeof time));
    text_why(job, info, stream);
}

/* --------------------------------------------------------------- tables --- */

static void text_spec(const char *word, const struct dtensor_spec *spec,
                      FILE *stream)
{
    char text[600];

    fprintf(stream, "%-6s %s[", word, dtensor_dtype_name(spec->dtype));
    for (int k = 0; k < spec->ndim; k++)
        fprintf(stream, "%s%" PRId64, k ? "," : "", spec->shape[k]);
    dtensor_placements_format(spec->mesh, spec->placement, text, sizeof text);
    fprintf(stream, "]  %s", text);
    dtensor_mesh_format(spec->mesh, text, sizeof text);
    fprintf(stream, "  on %s\n", text);
}

static void text_steps(const struct plan_job *job, int nsteps, FILE *stream)
{
    struct dtensor_plan_step step;
    char to[400], bytes[32], time[32];

    if (nsteps > 0)
        fprintf(stream, "\n%-5s %-14s %10s %6s %10s  %s\n", "step", "what",
                "bytes", "ranks", "time", "to");
    for (int i = 0; i < nsteps; i++) {
        if (dtensor_plan_step(job->plan, i, &step, NULL) != 0)
            continue;
        dtensor_placements_format(step.dst.mesh, step.dst.placement, to,
                                  sizeof to);
        fprintf(stream, "%-5d %-14s %10s %6d %10s  %s", i + 1, step.what,
                draw_bytes((double)dtensor_plan_bytes(job->plan, i, -1, -1),
                           bytes, sizeof bytes), step.ranks,
                draw_time(step.predicted_us, time, sizeof time), to);
        if (step.rounds > 1)
            fprintf(stream, ", in %d rounds of %s", step.rounds,
                    draw_bytes((double)step.scratch_bytes, bytes,
                               sizeof bytes));
        fputc('\n', stream);
    }
}

static void text_route(const struct plan_job *job, enum dtensor_route route,
                       enum dtensor_route taken, FILE *stream)
{
    struct dtensor_plan_choice choice;
    struct dtensor_plan_info info;
    const char *refused;
    char time[32];

    if (dtensor_plan_choice(job->plan, route, &choice, NULL) != 0)
        return;
    refused = choice.refused;
    if (refused && !plan_job_cost(job, route, &info, &refused)) {
        fprintf(stream, "%-9s %5s %10s  no: %s\n", plan_routes[route], "-", "-",
                choice.refused);
        return;
    }
    fprintf(stream, "%-9s %5d %10s%s", plan_routes[route],
            refused ? info.nsteps : choice.nsteps,
            draw_time(refused ? info.predicted_us : choice.predicted_us, time,
                      sizeof time), route == taken ? "  taken" : "");
    if (refused && route != taken)
        fprintf(stream, "  only if asked for: %s", refused);
    fputc('\n', stream);
}

/* -------------------------------------------------------------- amounts --- */

/* What is moved, against the least that any plan moves. */
static void text_bound(const struct plan_job *job, FILE *stream)
{
    const uint64_t moved = dtensor_plan_bytes(job->plan, -1, -1, -1);
    const uint64_t least = dtensor_plan_bound(job->plan, -1);
    char bytes[32], bound[32];

    if (moved == 0)
        return;
    fprintf(stream, "\nmoves %s", draw_bytes((double)moved, bytes,
                                              sizeof bytes));
    if (moved == least)
        fputs(", the least that is possible\n", stream);
    else if (least > 0)
        fprintf(stream, "; the least that is possible is %s\n",
                draw_bytes((double)least, bound, sizeof bound));
    else
        fputc('\n', stream);
}

/* The ranks that send least and most: "each rank sends 32.0 MiB". */
static void text_summary(const struct plan_job *job, bool sends, FILE *stream)
{
    uint64_t least = UINT64_MAX, most = 0;
    int busiest = -1;
    char low[32], high[32];

    for (int i = 0; i < dtensor_mesh_size(job->mesh); i++) {
        const int rank = dtensor_mesh_rank(job->mesh, i);
        const uint64_t bytes = sends
            ? dtensor_plan_bytes(job->plan, -1, rank, -1)
            : dtensor_plan_bytes(job->plan, -1, -1, rank);

        if (bytes < least)
            least = bytes;
        if (busiest < 0 || bytes > most) {
            most = bytes;
            busiest = rank;
        }
    }
    draw_bytes((double)least, low, sizeof low);
    if (least == most)
        fprintf(stream, "each rank %s %s\n", sends ? "sends" : "gets", low);
    else
        fprintf(stream, "a rank %s %s to %s, rank %d most\n",
                sends ? "sends" : "gets", low,
                draw_bytes((double)most, high, sizeof high), busiest);
}

static void text_matrix(const struct plan_job *job, int n, FILE *stream)
{
    char bytes[32];

    fprintf(stream, "\nfrom each rank (rows) to each rank\n%6s", "");
    for (int j = 0; j < n; j++)
        fprintf(stream, " %8d", dtensor_mesh_rank(job->mesh, j));
    for (int i = 0; i < n; i++) {
        const int from = dtensor_mesh_rank(job->mesh, i);

        fprintf(stream, "\n%6d", from);
        for (int j = 0; j < n; j++) {
            const uint64_t moved =
                dtensor_plan_bytes(job->plan, -1, from,
                                   dtensor_mesh_rank(job->mesh, j));

            fprintf(stream, " %8s", moved ? draw_bytes((double)moved, bytes,
                                                       sizeof bytes) : "-");
        }
    }
    fputc('\n', stream);
}

void plan_text(const struct plan_job *job, bool matrix, FILE *stream)
{
    const int n = dtensor_mesh_size(job->mesh);
    struct dtensor_plan_info info;

    dtensor_plan_info(job->plan, &info);
    text_sentence(job, &info, stream);
    fputc('\n', stream);
    text_spec("from", &job->from, stream);
    text_spec("to", &job->to, stream);
    text_steps(job, info.nsteps, stream);
    if (info.nsteps > 0) {
        fprintf(stream, "\n%-9s %5s %10s\n", "route", "steps", "time");
        for (int i = DTENSOR_ROUTE_DIRECT; i < DTENSOR_NROUTES; i++)
            text_route(job, (enum dtensor_route)i, info.route, stream);
    }
    dtensor_mesh_path(job->mesh, stream);
    text_bound(job, stream);
    if (dtensor_plan_bytes(job->plan, -1, -1, -1) == 0)
        return;
    text_summary(job, true, stream);
    text_summary(job, false, stream);
    if (matrix || n <= TEXT_RANKS)
        text_matrix(job, n, stream);
}
