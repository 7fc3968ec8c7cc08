/* text.c - a plan for people
 *
 * What the library says of it, then who sends what to whom: a matrix for up to
 * 16 ranks, a line for each rank up to 64, and for more only the most loaded.
 */
#include "tools/plan/plan.h"

#include <inttypes.h>

static void text_matrix(const struct plan_job *job, int n, FILE *stream)
{
    fprintf(stream, "\nbytes from each rank (rows) to each rank\n%6s", "");
    for (int j = 0; j < n; j++)
        fprintf(stream, " %10d", dtensor_mesh_rank(job->mesh, j));
    fputc('\n', stream);
    for (int i = 0; i < n; i++) {
        const int from = dtensor_mesh_rank(job->mesh, i);

        fprintf(stream, "%6d", from);
        for (int j = 0; j < n; j++)
            fprintf(stream, " %10" PRIu64,
                    dtensor_plan_bytes(job->plan, -1, from,
                                       dtensor_mesh_rank(job->mesh, j)));
        fputc('\n', stream);
    }
}

static void text_ranks(const struct plan_job *job, int n, FILE *stream)
{
    fprintf(stream, "\n%6s %16s %16s %16s\n", "rank", "sends bytes", "receives",
            "at least");
    for (int i = 0; i < n; i++) {
        const int rank = dtensor_mesh_rank(job->mesh, i);

        fprintf(stream, "%6d %16" PRIu64 " %16" PRIu64 " %16" PRIu64 "\n", rank,
                dtensor_plan_bytes(job->plan, -1, rank, -1),
                dtensor_plan_bytes(job->plan, -1, -1, rank),
                dtensor_plan_bound(job->plan, rank));
    }
}

void plan_text(const struct plan_job *job, FILE *stream)
{
    const int n = dtensor_mesh_size(job->mesh);
    struct dtensor_plan_info info;
    const char *why;

    dtensor_plan_print(job->plan, stream);
    for (int i = DTENSOR_ROUTE_DIRECT; i < DTENSOR_NROUTES; i++)
        if (plan_job_cost(job, (enum dtensor_route)i, &info, &why) && why)
            fprintf(stream, "       %-9s asked for: %d steps, %.1f us\n",
                    plan_routes[i], info.nsteps, info.predicted_us);
    text_ranks(job, n < PLAN_MATRIX_JSON ? n : PLAN_MATRIX_JSON, stream);
    if (n > PLAN_MATRIX_JSON)
        fprintf(stream, "   ... and %d more ranks\n", n - PLAN_MATRIX_JSON);
    if (n <= PLAN_MATRIX_TEXT)
        text_matrix(job, n, stream);
}
