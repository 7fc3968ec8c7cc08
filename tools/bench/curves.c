/* curves.c - busbw over size as SVG, with the bound
 *
 * There is a curve for each test, type and reduction, in the order of the rows.
 * A test that moves no bytes, such as a barrier, has no bandwidth and no curve.
 */
#include "tools/bench/job.h"
#include "tools/bench/measure.h"
#include "tools/bench/options.h"
#include "tools/bench/pattern.h"
#include "tools/bench/report.h"
#include "tools/bench/session.h"
#include "tools/bench/tests.h"
#include "tools/draw/picture.h"
#include "tools/draw/plot.h"
#include "tools/draw/write.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

enum { CURVES_MAX = 24, CURVE_POINTS = 256, CURVE_NAME = 64 };

struct curves {
    FILE *stream;
    char title[300];
    int n;
    struct plot_curve curve[CURVES_MAX];
    char name[CURVES_MAX][CURVE_NAME];
    struct plot_point point[CURVES_MAX][CURVE_POINTS];
};

static void *curves_open(FILE *stream, const struct facts *facts,
                         const struct bench *b)
{
    struct curves *curves = calloc(1, sizeof *curves);

    if (!curves)
        return NULL;
    curves->stream = stream;
    snprintf(curves->title, sizeof curves->title, "dtensor-bench: cluster %s, "
             "%d ranks on %d host%s, mesh %s, %s", facts->cluster,
             facts->nranks, facts->nhosts, facts->nhosts == 1 ? "" : "s",
             b->dim, facts->date);
    return curves;
}

/* The curve of that name, a new one if need be; NULL: there is no room. */
static struct plot_curve *curves_find(struct curves *curves, const char *name)
{
    struct plot_curve *curve = curves->curve;

    for (int i = 0; i < curves->n; i++)
        if (strcmp(curve[i].name, name) == 0)
            return &curve[i];
    if (curves->n == CURVES_MAX)
        return NULL;
    snprintf(curves->name[curves->n], CURVE_NAME, "%s", name);
    curve += curves->n;
    curve->name = curves->name[curves->n];
    curve->point = curves->point[curves->n++];
    return curve;
}

static void curves_row(void *state, const struct bench_result *result)
{
    const struct bench_case *c = result->c;
    struct plot_curve *curve;
    char name[CURVE_NAME];

    if (result->busbw <= 0)
        return;
    snprintf(name, sizeof name, "%s %s%s%s%s", c->test->name,
             dtensor_dtype_name(c->dtype), c->redop == PATTERN_NO_OP ? "" : " ",
             c->redop == PATTERN_NO_OP ? "" : dtensor_redop_name(c->redop),
             c->repro ? " repro" : "");
    curve = curves_find(state, name);
    if (curve && curve->n < CURVE_POINTS)
        curve->point[curve->n++] = (struct plot_point){
            (double)c->bytes, result->busbw, result->bound };
}

static int curves_close(void *state, const struct summary *summary)
{
    const struct draw_room room = { .columns = 100, .fine = true };
    struct curves *curves = state;
    struct picture pic;
    int failed;

    picture_init(&pic);
    if (curves->n > 0)
        draw_plot(&pic, curves->title, "GB/s", curves->curve, curves->n, room);
    else
        picture_words(&pic, 0, 0, DRAW_LEFT, DRAW_STRONG, "%s",
                      summary->error ? "no results" : "no test moved bytes");
    failed = draw_write(&pic, true, curves->title, "", curves->stream);
    picture_fini(&pic);
    free(curves);
    return failed;
}

const struct report_form report_svg = {
    "svg", curves_open, curves_row, NULL, curves_close
};
