/* plot.h - the picture of a measurement: bandwidth over size, with its bound */
#ifndef DRAW_PLOT_H
#define DRAW_PLOT_H

#include "tools/draw/picture.h"

struct plot_point { double bytes, value, bound; };   /* bound 0: unknown      */

struct plot_curve {
    const char *name;             /* for the legend                           */
    struct plot_point *point;     /* by growing bytes                         */
    int n;                        /* number of points                         */
};

/* `unit` is that of values, "GB/s". */
void draw_plot(struct picture *pic, const char *title, const char *unit,
               const struct plot_curve curve[], int ncurves,
               struct draw_room room);

#endif
