/* axis.c - a tensor dimension, cut where the part of a rank begins or ends
 *
 * 10 rows as S(0) on 3 ranks are the bands 0-3, 4-7 and 8-9; as C(0,2) they are
 * 0-1, 2-3, 4-5, 6-7 and 8-9, of which rank 0 holds the first and the fourth.
 * So every placement is drawn by the same rule.
 */
#include "tools/draw/axis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { RUNS_MAX = 2 * AXIS_BANDS };

/* ---------------------------------------------------------------- runs --- */

bool draw_runs_init(struct draw_runs *runs, const struct dtensor_spec *spec)
{
    const int n = dtensor_mesh_size(spec->mesh), ndim = spec->ndim;
    const size_t all = (size_t)n * (size_t)ndim + 1;

    *runs = (struct draw_runs){ .spec = spec, .nranks = n,
                                .run = calloc(all, sizeof *runs->run),
                                .n = calloc(all, sizeof *runs->n) };
    if (!runs->run || !runs->n)
        return false;
    for (int i = 0; i < n * ndim; i++) {
        int rank = dtensor_mesh_rank(spec->mesh, i / ndim);
        int64_t held = dtensor_spec_runs(spec, rank, i % ndim, NULL, 0);

        runs->n[i] = (int)(held < RUNS_MAX ? held : RUNS_MAX);
        runs->run[i] = calloc((size_t)runs->n[i] + 1, sizeof **runs->run);
        if (!runs->run[i])
            return false;
        dtensor_spec_runs(spec, rank, i % ndim, runs->run[i], runs->n[i]);
    }
    return true;
}

void draw_runs_fini(struct draw_runs *runs)
{
    for (int i = 0; runs->run && i < runs->nranks * runs->spec->ndim; i++)
        free(runs->run[i]);
    free(runs->run);
    free(runs->n);
}

bool draw_runs_hold(const struct draw_runs *runs, int position, int dim,
                    int64_t index)
{
    const int at = position * runs->spec->ndim + dim;

    for (int i = 0; i < runs->n[at]; i++) {
        const struct dtensor_run *run = &runs->run[at][i];

        if (index >= run->start && index < run->start + run->size)
            return true;
    }
    return false;
}

/* ---------------------------------------------------------------- axes --- */

/* The lowest border above `index`: where a run begins or ends. */
static int64_t axis_next(const struct draw_runs *runs, int dim, int64_t index)
{
    const int ndim = runs->spec->ndim;
    int64_t next = runs->spec->shape[dim];

    for (int at = dim; at < runs->nranks * ndim; at += ndim)
        for (int i = 0; i < runs->n[at]; i++) {
            int64_t start = runs->run[at][i].start;
            int64_t end = start + runs->run[at][i].size;

            if (start > index && start < next)
                next = start;
            if (end > index && end < next)
                next = end;
        }
    return next;
}

void draw_axis_init(struct draw_axis *axis, const struct draw_runs *runs,
                    int dim)
{
    int64_t at = 0;

    axis->dim = dim;
    axis->n = 0;
    if (dim < 0) {
        axis->start[0] = 0;
        axis->size[0] = axis->cells[0] = axis->n = 1;
        axis->end = 1;
        return;
    }
    while (axis->n < AXIS_BANDS && at < runs->spec->shape[dim]) {
        int64_t next = axis_next(runs, dim, at);

        axis->start[axis->n] = at;
        axis->cells[axis->n] = 1;
        axis->size[axis->n++] = next - at;
        at = next;
    }
    axis->end = at;
}

char *draw_axis_label(const struct draw_axis *axis, int band, char *buf,
                      size_t size)
{
    const int64_t first = axis->start[band];
    const int64_t last = first + axis->size[band] - 1;

    buf[0] = '\0';
    if (axis->dim >= 0 && first == last)
        snprintf(buf, size, "%" PRId64, first);
    else if (axis->dim >= 0)
        snprintf(buf, size, "%" PRId64 "-%" PRId64, first, last);
    return buf;
}

int draw_axis_length(const struct draw_axis *axis)
{
    int cells = 1;

    for (int i = 0; i < axis->n; i++)
        cells += axis->cells[i] + 1;
    return cells;
}

void draw_axis_fit(struct draw_axis *axis, int wanted, int room)
{
    int least[AXIS_BANDS], widest = 0;
    double all = 0;

    while (axis->n > 1 && draw_axis_length(axis) > room)
        axis->end = axis->start[--axis->n];
    for (int i = 0; i < axis->n; i++)
        all += (double)axis->size[i];
    for (int i = 0; i < axis->n; i++) {
        int share = (int)(wanted * (double)axis->size[i] / all);

        least[i] = axis->cells[i];
        if (share > axis->cells[i])
            axis->cells[i] = share;
    }
    while (draw_axis_length(axis) > room) {
        for (int i = 0; i < axis->n; i++)
            if (axis->cells[i] - least[i] >
                axis->cells[widest] - least[widest])
                widest = i;
        if (axis->cells[widest] == least[widest])
            return;
        axis->cells[widest]--;
    }
}
