/* layout.c - which rank holds what
 *
 * A line for each rank of the mesh: its coordinate, the shape of its part, the
 * global index of the first element, and, along dimensions that it does not
 * hold in one run, the ranges: S(0) of 8 rows on 4 ranks is "2-3" for rank 1,
 * C(0,1) is "1,5".
 */
#include "tools/plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>

struct dtensor_run *plan_runs(const struct dtensor_spec *spec, int rank,
                              int dim, int64_t *np)
{
    int64_t n = dtensor_spec_runs(spec, rank, dim, NULL, 0);
    struct dtensor_run *run = calloc((size_t)n + 1, sizeof *run);

    if (run)
        *np = dtensor_spec_runs(spec, rank, dim, run, n);
    return run;
}

static void layout_list(const int64_t number[], int n, const char *between,
                        char *buf, size_t size)
{
    size_t used = 0;

    snprintf(buf, size, "-");
    for (int i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%" PRId64,
                                 i ? between : "", number[i]);
}

static void layout_ranges(const struct dtensor_spec *spec, int rank,
                          FILE *stream)
{
    struct dtensor_run *run;
    int64_t n = 0;

    for (int d = 0; d < spec->ndim; d++) {
        run = plan_runs(spec, rank, d, &n);
        if (!run)
            return;
        fprintf(stream, "%s", d ? "  " : "");
        for (int64_t i = 0; i < n; i++) {
            fprintf(stream, "%s%" PRId64, i ? "," : "", run[i].start);
            if (run[i].size > 1)
                fprintf(stream, "-%" PRId64, run[i].start + run[i].size - 1);
        }
        if (n == 0)
            fputs("none", stream);
        free(run);
    }
    fputc('\n', stream);
}

void plan_layout(const struct dtensor_spec *spec, FILE *stream)
{
    const int ndim = dtensor_mesh_ndim(spec->mesh);
    char placements[400], text[3][120];

    dtensor_placements_format(spec->mesh, spec->placement, placements,
                              sizeof placements);
    fprintf(stream, "%s\n%6s  %-12s  %-18s  %-18s  %s\n", placements, "rank",
            "coordinate", "shape", "offset", "indices");
    for (int i = 0; i < dtensor_mesh_size(spec->mesh); i++) {
        int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];
        int64_t at[DTENSOR_MAX_DIMS];
        int rank = dtensor_mesh_rank(spec->mesh, i), coord[DTENSOR_MAX_DIMS];

        dtensor_mesh_coord(spec->mesh, rank, coord);
        for (int m = 0; m < ndim; m++)
            at[m] = coord[m];
        dtensor_spec_local(spec, rank, shape, offset);
        layout_list(at, ndim, ",", text[0], sizeof text[0]);
        layout_list(shape, spec->ndim, "x", text[1], sizeof text[1]);
        layout_list(offset, spec->ndim, ",", text[2], sizeof text[2]);
        fprintf(stream, "%6d  %-12s  %-18s  %-18s  ", rank, text[0], text[1],
                text[2]);
        layout_ranges(spec, rank, stream);
    }
}
