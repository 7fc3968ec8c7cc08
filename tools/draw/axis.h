/* axis.h - a tensor dimension, cut where the part of a rank begins or ends */
#ifndef DRAW_AXIS_H
#define DRAW_AXIS_H

#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

enum { AXIS_BANDS = 24 };

/* What the ranks hold along each dimension, asked for once. */
struct draw_runs {
    const struct dtensor_spec *spec;           /* whose                       */
    int nranks;                   /* positions in the mesh                    */
    struct dtensor_run **run;     /* [nranks * ndim]                          */
    int *n;                       /* [nranks * ndim]                          */
};

/* false: out of memory.  draw_runs_fini() in any case. */
bool draw_runs_init(struct draw_runs *runs, const struct dtensor_spec *spec);
void draw_runs_fini(struct draw_runs *runs);

/* Does the rank at `position` hold `index` of dimension `dim`? */
bool draw_runs_hold(const struct draw_runs *runs, int position, int dim,
                    int64_t index);

struct draw_axis {
    int dim;                      /* -1: there is none, and one band          */
    int n;                        /* bands                                    */
    int64_t start[AXIS_BANDS];    /* first index of each                      */
    int64_t size[AXIS_BANDS];     /* indices in it                            */
    int cells[AXIS_BANDS];        /* of a band in the picture                 */
    int64_t end;                  /* index after the last band                */
};

/* The first bands of dimension `dim`, of one cell each. */
void draw_axis_init(struct draw_axis *axis, const struct draw_runs *runs,
                    int dim);

/* "0-4095", "7", or "" without a dimension. */
char *draw_axis_label(const struct draw_axis *axis, int band, char *buf,
                      size_t size);

/* Drop bands that do not fit into `room` cells with one between them; then make
 * those that are left about `wanted` in all, to scale, none smaller than it is.
 */
void draw_axis_fit(struct draw_axis *axis, int wanted, int room);

/* Cells of all bands and the borders around them. */
int draw_axis_length(const struct draw_axis *axis);

#endif
