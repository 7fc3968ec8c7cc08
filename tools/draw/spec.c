/* spec.c - the picture of a tensor: which rank holds which elements
 *
 * The last two dimensions are the rows and columns of a grid, to scale where
 * the words allow; of more dimensions the others are shown by slices.  A block
 * bears the ranks that hold it: "0-3" are four replicas.  Four ranks that each
 * hold a term of a sum are hatched, and under P(sum) stands "0 + 1 + 2 + 3".
 */
#include "tools/draw/spec.h"
#include "tools/draw/axis.h"
#include "tools/draw/ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPEC_RANKS_MAX = 4096, SPEC_SLICES_MAX = 4, SPEC_WORDS = 28,
       SPEC_TERMS_MAX = 8, SPEC_LINES = 9, SPEC_LINES_FINE = 14 };

struct spec_drawing {
    struct picture *pic;
    const struct dtensor_spec *spec;
    struct draw_runs runs;
    struct draw_room room;
    struct draw_axis rows, cols;
    struct draw_axis lead[DTENSOR_MAX_DIMS];   /* dimensions of the slices    */
    int at[DTENSOR_MAX_DIMS];                  /* band of each in this slice  */
    int *found, *term;                         /* [nranks] scratch            */
    int nterms;                                /* of a Partial; 1: none       */
    int x, y;                                  /* where to go on              */
    int width;
};

/* --------------------------------------------------------------- words --- */

/* Which term of a Partial the rank at a position has. */
static int spec_term(const struct dtensor_spec *spec, int position)
{
    int coord[DTENSOR_MAX_DIMS], term = 0;

    dtensor_mesh_coord(spec->mesh, dtensor_mesh_rank(spec->mesh, position),
                       coord);
    for (int m = 0; m < dtensor_mesh_ndim(spec->mesh); m++)
        if (spec->placement[m].kind == DTENSOR_PARTIAL)
            term = term * dtensor_mesh_dim_size(spec->mesh, m) + coord[m];
    return term;
}

static int spec_nterms(const struct dtensor_spec *spec)
{
    int n = 1;

    for (int m = 0; m < dtensor_mesh_ndim(spec->mesh); m++)
        if (spec->placement[m].kind == DTENSOR_PARTIAL)
            n *= dtensor_mesh_dim_size(spec->mesh, m);
    return n;
}

/* "P(sum)" */
static char *spec_mark(const struct dtensor_spec *spec, char buf[40])
{
    for (int m = 0; m < dtensor_mesh_ndim(spec->mesh); m++)
        if (spec->placement[m].kind == DTENSOR_PARTIAL)
            snprintf(buf, 40, "P(%s)",
                     dtensor_redop_name(spec->placement[m].op));
    return buf;
}

/* The ranks of one term among those found. */
static char *spec_one_term(struct spec_drawing *d, int n, int term, char *buf,
                           size_t size)
{
    int held = 0;

    for (int i = 0; i < n; i++)
        if (spec_term(d->spec, d->found[i]) == term)
            d->term[held++] = dtensor_mesh_rank(d->spec->mesh, d->found[i]);
    return draw_ranks(d->term, held, buf, size);
}

/* "0 + 1 + 2 + 3", of many terms the first and the last. */
static void spec_terms(struct spec_drawing *d, int n, char buf[SPEC_WORDS + 1])
{
    char one[SPEC_WORDS + 1], all[SPEC_TERMS_MAX * (SPEC_WORDS + 4)] = "";
    char last[SPEC_WORDS + 1];

    for (int t = 0; t < d->nterms && t < SPEC_TERMS_MAX; t++) {
        strcat(all, t ? " + " : "");
        strcat(all, spec_one_term(d, n, t, one, sizeof one));
    }
    if (d->nterms <= SPEC_TERMS_MAX && strlen(all) <= SPEC_WORDS) {
        strcpy(buf, all);
        return;
    }
    spec_one_term(d, n, 0, one, SPEC_WORDS / 2 - 4);
    spec_one_term(d, n, d->nterms - 1, last, SPEC_WORDS / 2 - 4);
    snprintf(buf, SPEC_WORDS + 1, "%.9s + ... + %.9s", one, last);
}

/* Who holds the block of these bands, in this slice. */
static int spec_holders(struct spec_drawing *d, int row, int col)
{
    const struct draw_axis *rows = &d->rows, *cols = &d->cols;
    int n = 0;

    for (int p = 0; p < d->runs.nranks; p++) {
        bool holds =
            (rows->dim < 0 || draw_runs_hold(&d->runs, p, rows->dim,
                                             rows->start[row])) &&
            (cols->dim < 0 || draw_runs_hold(&d->runs, p, cols->dim,
                                             cols->start[col]));

        for (int k = 0; k < d->spec->ndim - 2 && holds; k++)
            holds = draw_runs_hold(&d->runs, p, k,
                                   d->lead[k].start[d->at[k]]);
        if (holds)
            d->found[n++] = p;
    }
    return n;
}

/* The words of that block; returns the position of its first rank, or -1. */
static int spec_block(struct spec_drawing *d, int row, int col,
                      char buf[SPEC_WORDS + 1])
{
    int n = spec_holders(d, row, col);

    if (d->nterms > 1) {
        spec_terms(d, n, buf);
    } else {
        for (int i = 0; i < n; i++)
            d->term[i] = dtensor_mesh_rank(d->spec->mesh, d->found[i]);
        draw_ranks(d->term, n, buf, SPEC_WORDS);
    }
    return n > 0 ? d->found[0] : -1;
}

/* ---------------------------------------------------------------- grid --- */

static int spec_labels_width(const struct draw_axis *rows)
{
    int width = 6;                              /* "dim 0 "                   */
    char label[64];

    for (int i = 0; i < rows->n; i++) {
        int n = (int)strlen(draw_axis_label(rows, i, label, sizeof label)) + 1;

        width = n > width ? n : width;
    }
    return rows->dim < 0 ? 6 : width;
}

/* The least size of each band, then to scale. */
static void spec_fit(struct spec_drawing *d, int labels)
{
    const int lines = d->room.fine ? SPEC_LINES_FINE : SPEC_LINES;
    const int room = d->room.columns - labels;
    const int64_t *shape = d->spec->shape;
    char words[SPEC_WORDS + 1], label[64];
    double width = 4.0 * lines, height = lines;

    for (int j = 0; j < d->cols.n; j++) {
        int *cells = &d->cols.cells[j];

        *cells = 1 + (int)strlen(draw_axis_label(&d->cols, j, label,
                                                 sizeof label));
        for (int i = 0; i < d->rows.n; i++) {
            spec_block(d, i, j, words);
            if ((int)strlen(words) + 2 > *cells)
                *cells = (int)strlen(words) + 2;
        }
        if (d->nterms > 1 && *cells < 9)
            *cells = 9;
    }
    for (int i = 0; i < d->rows.n; i++)
        d->rows.cells[i] = d->nterms > 1 ? 2 : 1;
    if (d->rows.dim >= 0)
        width = 2.0 * lines * (double)shape[d->cols.dim] /
                (double)shape[d->rows.dim];
    if (width > room)
        height = lines * room / width;
    draw_axis_fit(&d->cols, width < room ? (int)width : room, room);
    draw_axis_fit(&d->rows, d->rows.dim < 0 ? 1 : (int)height, 1000);
}

static void spec_draw_block(struct spec_drawing *d, struct draw_box box,
                            int row, int col)
{
    char words[SPEC_WORDS + 1], mark[40];
    int first = spec_block(d, row, col, words);
    double y = box.y + box.h / 2.0;

    box.colour = first < 0 ? DRAW_NO_COLOUR : first;
    box.hatched = d->nterms > 1;
    picture_box(d->pic, box);
    if (box.hatched && box.h > 2) {
        y += 0.5;
        picture_words(d->pic, box.x + box.w / 2.0, y - 1, DRAW_CENTRE,
                      DRAW_STRONG, "%s", spec_mark(d->spec, mark));
    }
    picture_words(d->pic, box.x + box.w / 2.0, y, DRAW_CENTRE, DRAW_PLAIN,
                  "%s", words);
}

/* The grid at (left, d->y); moves d->y below it. */
static void spec_blocks(struct spec_drawing *d, int left)
{
    char label[64];
    int y = d->y;

    for (int i = 0; i < d->rows.n; i++) {
        int x = left, h = d->rows.cells[i] + 1;

        picture_words(d->pic, d->x, y + h / 2.0, DRAW_LEFT, DRAW_FAINT,
                      "%s", draw_axis_label(&d->rows, i, label, sizeof label));
        for (int j = 0; j < d->cols.n; j++) {
            int w = d->cols.cells[j] + 1;

            spec_draw_block(d, (struct draw_box){ .x = x, .y = y, .w = w,
                                                  .h = h }, i, j);
            x += w;
        }
        y += h;
    }
    d->y = y + 1;
}

static void spec_more(struct spec_drawing *d, const struct draw_axis *axis)
{
    if (axis->dim >= 0 && axis->end < d->spec->shape[axis->dim])
        picture_words(d->pic, d->x, d->y++, DRAW_LEFT, DRAW_FAINT,
                      "... dim %d goes on to %" PRId64, axis->dim,
                      d->spec->shape[axis->dim] - 1);
}

static void spec_grid(struct spec_drawing *d)
{
    const int ndim = d->spec->ndim;
    char label[64];
    int labels, x;

    draw_axis_init(&d->rows, &d->runs, ndim > 1 ? ndim - 2 : -1);
    draw_axis_init(&d->cols, &d->runs, ndim > 0 ? ndim - 1 : -1);
    labels = spec_labels_width(&d->rows);
    spec_fit(d, labels);
    x = d->x + labels;
    if (ndim > 0) {
        picture_words(d->pic, d->x, d->y, DRAW_LEFT, DRAW_FAINT, "dim %d",
                      ndim - 1);
        for (int j = 0; j < d->cols.n; j++) {
            picture_words(d->pic, x + (d->cols.cells[j] + 1) / 2.0, d->y,
                          DRAW_CENTRE, DRAW_FAINT, "%s",
                          draw_axis_label(&d->cols, j, label, sizeof label));
            x += d->cols.cells[j] + 1;
        }
        d->y++;
    }
    if (ndim > 1)
        picture_words(d->pic, d->x, d->y, DRAW_LEFT, DRAW_FAINT, "dim %d",
                      ndim - 2);
    if (x > d->width)
        d->width = x;
    spec_blocks(d, d->x + labels);
    spec_more(d, &d->rows);
    spec_more(d, &d->cols);
}

/* -------------------------------------------------------------- slices --- */

/* "slice [0-1, 4, :, :]" */
static void spec_slice_title(struct spec_drawing *d)
{
    char text[400] = "slice [", label[64];

    for (int k = 0; k < d->spec->ndim - 2; k++) {
        strcat(text, draw_axis_label(&d->lead[k], d->at[k], label,
                                     sizeof label));
        strcat(text, ", ");
    }
    strcat(text, ":, :]");
    d->y += picture_wrapped(d->pic, d->x, d->y, d->room.columns, DRAW_STRONG,
                            text);
}

/* The next slice; false: that was the last. */
static bool spec_next(struct spec_drawing *d)
{
    for (int k = d->spec->ndim - 3; k >= 0; k--) {
        if (++d->at[k] < d->lead[k].n)
            return true;
        d->at[k] = 0;
    }
    return false;
}

static void spec_slices(struct spec_drawing *d)
{
    int shown = 0;

    for (int k = 0; k < d->spec->ndim - 2; k++)
        draw_axis_init(&d->lead[k], &d->runs, k);
    if (d->spec->ndim > 2) {
        char text[120];

        snprintf(text, sizeof text, "%d dimensions: the last two are drawn, by "
                 "slices of the others", d->spec->ndim);
        d->y += picture_wrapped(d->pic, d->x, d->y, d->room.columns,
                                DRAW_FAINT, text);
    }
    do {
        if (shown++ == SPEC_SLICES_MAX) {
            picture_words(d->pic, d->x, d->y++, DRAW_LEFT, DRAW_FAINT,
                          "... and more slices");
            return;
        }
        if (d->spec->ndim > 2)
            spec_slice_title(d);
        spec_grid(d);
    } while (spec_next(d));
}

/* --------------------------------------------------------------- whole --- */

static void spec_empty(struct spec_drawing *d)
{
    char text[120];
    int n = 0;

    for (int p = 0; p < d->runs.nranks; p++) {
        bool empty = false;

        for (int k = 0; k < d->spec->ndim; k++)
            empty = empty || d->runs.n[p * d->spec->ndim + k] == 0;
        if (empty)
            d->term[n++] = dtensor_mesh_rank(d->spec->mesh, p);
    }
    if (n > 0)
        picture_words(d->pic, d->x, d->y++, DRAW_LEFT, DRAW_FAINT,
                      "empty: %s %s", n > 1 ? "ranks" : "rank",
                      draw_ranks(d->term, n, text,
                                 (size_t)d->room.columns - 12 < sizeof text
                                 ? (size_t)d->room.columns - 12
                                 : sizeof text));
}

static bool spec_has_elements(const struct dtensor_spec *spec)
{
    for (int k = 0; k < spec->ndim; k++)
        if (spec->shape[k] == 0)
            return false;
    return true;
}

static void spec_body(struct spec_drawing *d)
{
    char mark[40], text[120];

    if (!spec_has_elements(d->spec)) {
        picture_words(d->pic, d->x, d->y++, DRAW_LEFT, DRAW_FAINT,
                      "no elements");
        return;
    }
    spec_slices(d);
    spec_empty(d);
    if (d->nterms > 1) {
        snprintf(text, sizeof text, "hatched: %d terms; %s of them is the "
                 "value", d->nterms, spec_mark(d->spec, mark));
        d->y += picture_wrapped(d->pic, d->x, d->y, d->room.columns,
                                DRAW_FAINT, text);
    }
}

/* "f32[8192,8192]  S(0),R  on world(dp=2,tp=4)" */
static void spec_title(const struct dtensor_spec *spec, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s[",
                                   dtensor_dtype_name(spec->dtype));

    for (int k = 0; k < spec->ndim && used < size; k++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64,
                                 k ? "," : "", spec->shape[k]);
    if (used < size)
        used += (size_t)snprintf(text + used, size - used, "]  ");
    if (used < size)
        used += (size_t)dtensor_placements_format(spec->mesh, spec->placement,
                                                  text + used, size - used);
    if (used < size)
        used += (size_t)snprintf(text + used, size - used, "  on ");
    if (used < size)
        dtensor_mesh_format(spec->mesh, text + used, size - used);
}

struct draw_area draw_spec(struct picture *pic, const char *what,
                           const struct dtensor_spec *spec, int x, int y,
                           struct draw_room room)
{
    const size_t n = (size_t)dtensor_mesh_size(spec->mesh);
    struct spec_drawing d = { .pic = pic, .spec = spec, .room = room, .x = x,
                              .y = y, .width = x + room.columns / 3 };
    char text[600];

    if (what[0])
        picture_words(pic, x, d.y++, DRAW_LEFT, DRAW_STRONG, "%s", what);
    spec_title(spec, text, sizeof text);
    d.y += picture_wrapped(pic, x, d.y, room.columns, what[0] ? DRAW_PLAIN
                                                       : DRAW_STRONG, text);
    if (n > SPEC_RANKS_MAX) {
        picture_words(pic, x, d.y++, DRAW_LEFT, DRAW_FAINT, "%zu ranks: more "
                      "than %d are not drawn", n, SPEC_RANKS_MAX);
        return (struct draw_area){ room.columns, d.y - y };
    }
    d.nterms = spec_nterms(spec);
    d.found = calloc(n, sizeof *d.found);
    d.term = calloc(n, sizeof *d.term);
    if (draw_runs_init(&d.runs, spec) && d.found && d.term)
        spec_body(&d);
    else
        pic->failed = true;
    draw_runs_fini(&d.runs);
    free(d.found);
    free(d.term);
    return (struct draw_area){ d.width - x + 1, d.y - y };
}
