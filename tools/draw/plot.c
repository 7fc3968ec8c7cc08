/* plot.c - the picture of a measurement: bandwidth over size, with its bound
 *
 * Both scales are logarithmic: sizes from the smallest to the largest, values
 * between powers of ten.  From 8 bytes to 16 MiB a bandwidth grows by four
 * decades, of which a linear scale shows the last.  The bound of a curve is
 * dashed, in the colour of the curve.
 */
#include "tools/draw/plot.h"
#include "tools/draw/bytes.h"

#include <math.h>
#include <stdio.h>

enum { PLOT_LEFT = 9, PLOT_LINES = 24, PLOT_LINES_TEXT = 16, PLOT_TICK_X = 12 };

struct plot {
    struct picture *pic;
    int x, y, w, h;               /* of the area within the axes              */
    double low, high;             /* log2 of the sizes                        */
    double bottom, top;           /* log10 of the values                      */
};

static void plot_range(struct plot *plot, const struct plot_curve curve[],
                       int ncurves)
{
    double least = INFINITY, most = 0;

    plot->low = INFINITY;
    plot->high = -INFINITY;
    for (int c = 0; c < ncurves; c++)
        for (int i = 0; i < curve[c].n; i++) {
            const struct plot_point *point = &curve[c].point[i];

            plot->low = fmin(plot->low, log2(fmax(point->bytes, 1)));
            plot->high = fmax(plot->high, log2(fmax(point->bytes, 1)));
            most = fmax(most, fmax(point->value, point->bound));
            least = fmin(least, point->value);
        }
    if (plot->high <= plot->low) {
        plot->low -= 1;
        plot->high = plot->low + 2;
    }
    plot->bottom = floor(log10(least));
    plot->top = ceil(log10(most));
    if (plot->top <= plot->bottom)
        plot->top = plot->bottom + 1;
}

static double plot_x(const struct plot *plot, double bytes)
{
    return plot->x + plot->w * (log2(fmax(bytes, 1)) - plot->low)
                     / (plot->high - plot->low);
}

static double plot_y(const struct plot *plot, double value)
{
    return plot->y + plot->h * (plot->top - log10(value))
                     / (plot->top - plot->bottom);
}

/* "32 KiB" is "32K" here, where there is little room. */
static void plot_size(double bytes, char buf[16])
{
    static const char units[] = " KMGT";
    int unit = 0;

    for (; bytes >= 1024 && unit < 4; unit++)
        bytes /= 1024;
    snprintf(buf, 16, unit ? "%.3g%c" : "%.3g", bytes, units[unit]);
}

static void plot_axes(const struct plot *plot, const char *unit)
{
    const int ticks = plot->w / PLOT_TICK_X > 0 ? plot->w / PLOT_TICK_X : 1;
    const double span = plot->high - plot->low;
    double step = ceil(span / ticks);
    char size[16];

    picture_box(plot->pic, (struct draw_box){ plot->x, plot->y, plot->w,
                                              plot->h, DRAW_NO_COLOUR, false });
    for (double at = plot->bottom; at <= plot->top; at++) {
        const double y = plot_y(plot, pow(10, at));

        picture_words(plot->pic, plot->x - 2, y, DRAW_RIGHT, DRAW_FAINT, "%.6g",
                      pow(10, at));
        if (at > plot->bottom && at < plot->top)
            picture_line(plot->pic, (struct draw_line){
                plot->x, y, plot->x + plot->w, y, DRAW_GRID, false, false });
    }
    if (step < 1)
        step = 1;
    for (double at = ceil(plot->low); at <= plot->high; at += step) {
        plot_size(exp2(at), size);
        picture_words(plot->pic, plot_x(plot, exp2(at)),
                      plot->y + plot->h + 1, DRAW_CENTRE, DRAW_FAINT, "%s",
                      size);
    }
    picture_words(plot->pic, 0, plot->y - 1, DRAW_LEFT, DRAW_PLAIN,
                  "busbw (%s)", unit);
    picture_words(plot->pic, plot->x + plot->w, plot->y + plot->h + 2,
                  DRAW_RIGHT, DRAW_PLAIN, "message size (bytes)");
}

static void plot_curve(const struct plot *plot, const struct plot_curve *curve,
                       int colour)
{
    for (int i = 0; i + 1 < curve->n; i++) {
        const struct plot_point *a = &curve->point[i], *b = a + 1;

        picture_line(plot->pic, (struct draw_line){
            plot_x(plot, a->bytes), plot_y(plot, a->value),
            plot_x(plot, b->bytes), plot_y(plot, b->value), colour, false,
            false });
        if (a->bound > 0 && b->bound > 0)
            picture_line(plot->pic, (struct draw_line){
                plot_x(plot, a->bytes), plot_y(plot, a->bound),
                plot_x(plot, b->bytes), plot_y(plot, b->bound), colour, false,
                true });
    }
    for (int i = 0; i < curve->n; i++)          /* a mark for each            */
        picture_line(plot->pic, (struct draw_line){
            plot_x(plot, curve->point[i].bytes) - 0.3,
            plot_y(plot, curve->point[i].value),
            plot_x(plot, curve->point[i].bytes) + 0.3,
            plot_y(plot, curve->point[i].value), colour, false, false });
}

static void plot_legend(const struct plot *plot,
                        const struct plot_curve curve[], int ncurves)
{
    int y = plot->y + plot->h + 4;

    for (int c = 0; c < ncurves; c++, y++) {
        const struct plot_point *last = &curve[c].point[curve[c].n - 1];

        picture_line(plot->pic, (struct draw_line){ 1, y, 6, y, c, false,
                                                    false });
        picture_words(plot->pic, 9, y, DRAW_LEFT, DRAW_PLAIN, "%s",
                      curve[c].name);
        if (last->bound > 0)
            picture_words(plot->pic, 11 + picture_length(curve[c].name), y,
                          DRAW_LEFT, DRAW_FAINT, "%.3g of %.3g at the "
                          "largest size", last->value, last->bound);
    }
    picture_line(plot->pic, (struct draw_line){ 1, y, 6, y, DRAW_NO_COLOUR,
                                                false, true });
    picture_words(plot->pic, 9, y, DRAW_LEFT, DRAW_PLAIN, "dashed: the bound, "
                  "a plain copy of the same bytes");
}

void draw_plot(struct picture *pic, const char *title, const char *unit,
               const struct plot_curve curve[], int ncurves,
               struct draw_room room)
{
    struct plot plot = { .pic = pic, .x = PLOT_LEFT,
                         .w = room.columns - PLOT_LEFT - 4,
                         .h = room.fine ? PLOT_LINES : PLOT_LINES_TEXT };

    plot.y = picture_wrapped(pic, 0, 0, room.columns, DRAW_STRONG, title) + 2;
    plot_range(&plot, curve, ncurves);
    plot_axes(&plot, unit);
    for (int c = 0; c < ncurves; c++)
        plot_curve(&plot, &curve[c], c);
    plot_legend(&plot, curve, ncurves);
}
