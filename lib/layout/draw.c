/* draw.c - the sharding picture
 *
 * The shards along one tensor dimension do not depend on the other dimensions.
 * So a matrix is drawn as a grid: the row shards cut its rows, the column
 * shards cut its columns, and each cell shows the ranks that hold it.
 * f32[10,4] as S(0),R on a 3 x 2 mesh is three boxes of 4, 4 and 2 rows, with
 * ranks 0-1, 2-3 and 4-5.  The boxes are to scale as far as 80 columns, 24
 * lines and their text allow.  Terms of a Partial are not drawn like replicas,
 * but as "P(sum) 0 + 1".  Tensors of more than two dimensions, and parts that
 * are not boxes, are printed as a table.
 */
#include "base/compiler.h"
#include "base/units.h"
#include "layout/layout.h"
#include "layout/placement.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DRAW_COLUMNS 80
#define DRAW_ROWS_MAX 10               /* 24 lines hold no more boxes         */
#define DRAW_SHARDS_MAX 40             /* nor 80 columns more than these      */
#define DRAW_LINES_MAX 32              /* of a table                          */
#define DRAW_HEIGHT 8                  /* of a square, without its borders    */
#define DRAW_TEXT_MAX 20               /* ranks in one box                    */

/* The non-empty shards of one tensor dimension, in order. */
struct draw_axis {
    int dim;                           /* -1: a single one, without label     */
    const char *label;                 /* "Row ", "Col " or ""                */
    int total;
    int n;                             /* of which these are drawn            */
    int64_t start[DRAW_SHARDS_MAX];
    int64_t size[DRAW_SHARDS_MAX];
    int chars[DRAW_SHARDS_MAX];        /* width or height of the boxes        */
};

struct draw {
    const struct dtensor_spec *spec;
    FILE *stream;
    const char *const *glyph;
    struct draw_axis rows;
    struct draw_axis cols;
    int indent;                        /* columns of the row labels           */
    int *ranks;                        /* room for all ranks of the mesh,     */
                                       /* twice                               */
};

/* --------------------------------------------------------------- glyphs --- */

enum draw_glyph { LINE, BAR, TOP_LEFT, TOP, TOP_RIGHT, LEFT, CROSS, RIGHT,
                  BOTTOM_LEFT, BOTTOM, BOTTOM_RIGHT };

static const char *const draw_utf8[] = {
    "─", "│", "┌", "┬", "┐", "├", "┼", "┤", "└", "┴", "┘"
};
static const char *const draw_ascii[] = {
    "-", "|", "+", "+", "+", "+", "+", "+", "+", "+", "+"
};

/* Does the environment say that the terminal accepts UTF-8?  The first of these
 * variables that is set decides, as in setlocale(3).  Only the program itself
 * may call setlocale().
 */
static bool draw_wants_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char *value;

    for (size_t i = 0; i < DTN_COUNT(names); i++) {
        value = getenv(names[i]);
        if (value && *value)
            return strstr(value, "UTF-8") || strstr(value, "utf8")
                || strstr(value, "UTF8") || strstr(value, "utf-8");
    }
    return false;
}

/* ----------------------------------------------------------------- axes --- */

/* Position k along the mesh dimensions that shard dimension `dim`; all other
 * coordinates are 0.  k = 0, 1, ... are the shards in order.
 */
static int draw_position(const struct dtensor_spec *spec, int dim, int k)
{
    int index = 0, stride = 1;

    for (int m = spec->mesh->ndim - 1; m >= 0; m--) {
        if (dtn_placement_class(&spec->placement[m]) == DTENSOR_SHARD &&
            spec->placement[m].dim == dim) {
            index += k % spec->mesh->size[m] * stride;
            k /= spec->mesh->size[m];
        }
        stride *= spec->mesh->size[m];
    }
    return k == 0 ? index : -1;
}

static void draw_axis_init(struct draw_axis *axis,
                           const struct dtensor_spec *spec, int dim, int max)
{
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];
    int index;

    axis->dim = dim;
    axis->total = axis->n = 0;
    for (int k = 0; (index = draw_position(spec, dim, k)) >= 0; k++) {
        dtn_layout(spec, index, shape, offset);
        if (dim >= 0 && shape[dim] == 0)
            continue;
        axis->total++;
        if (axis->n == max)
            continue;
        axis->start[axis->n] = dim >= 0 ? offset[dim] : 0;
        axis->size[axis->n++] = dim >= 0 ? shape[dim] : 1;
    }
}

/* "Row 0-2047", "Col 7" */
static char *draw_range(const char *label, int64_t start, int64_t count,
                        char *buf, size_t size)
{
    long long first = start, last = start + count - 1;

    if (first == last)
        snprintf(buf, size, "%s%lld", label, first);
    else
        snprintf(buf, size, "%s%lld-%lld", label, first, last);
    return buf;
}

static char *draw_label(const struct draw_axis *axis, int i, char *buf,
                        size_t size)
{
    buf[0] = '\0';
    return axis->dim < 0 ? buf : draw_range(axis->label, axis->start[i],
                                            axis->size[i], buf, size);
}

static int draw_sum(const int chars[], int n)
{
    int sum = 0;

    for (int i = 0; i < n; i++)
        sum += chars[i];
    return sum;
}

/* Distribute `wanted` characters by size.  If that gives a shard less than its
 * current minimum, use up to `room` characters to keep the scale.  Then shrink
 * the widest shards until at most `room` characters are used.
 */
static void draw_scale(struct draw_axis *axis, int wanted, int room)
{
    int least[DRAW_SHARDS_MAX], widest;
    double whole = 0, scale = wanted;

    for (int i = 0; i < axis->n; i++)
        whole += (double)axis->size[i];
    for (int i = 0; i < axis->n; i++) {
        double needed = axis->chars[i] * whole / (double)axis->size[i];

        if (needed > scale)
            scale = needed < room ? needed : room;
    }
    for (int i = 0; i < axis->n; i++) {
        int share = (int)(scale * (double)axis->size[i] / whole);

        least[i] = axis->chars[i];
        if (share > axis->chars[i])
            axis->chars[i] = share;
    }
    while (draw_sum(axis->chars, axis->n) > room) {
        widest = 0;
        for (int i = 1; i < axis->n; i++)
            if (axis->chars[i] - least[i] > axis->chars[widest] - least[widest])
                widest = i;
        if (axis->chars[widest] == least[widest])
            break;
        axis->chars[widest]--;
    }
}

/* ---------------------------------------------------------------- boxes --- */

static bool draw_holds(const struct draw_axis *axis, int i,
                       const int64_t shape[], const int64_t offset[])
{
    return axis->dim < 0 || (shape[axis->dim] > 0 &&
                             offset[axis->dim] == axis->start[i]);
}

/* Which term of a Partial the rank at an index of the mesh holds. */
static int draw_term(const struct dtensor_spec *spec, int index)
{
    int coord[DTENSOR_MAX_DIMS], term = 0;

    dtn_mesh_coord_of(spec->mesh, index, coord);
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (spec->placement[m].kind == DTENSOR_PARTIAL)
            term = term * spec->mesh->size[m] + coord[m];
    return term;
}

/* The reduction of a Partial, and its number of terms; 1: there is none. */
static int draw_terms(const struct dtensor_spec *spec, enum dtensor_redop *op)
{
    int n = 1;

    for (int m = 0; m < spec->mesh->ndim; m++)
        if (spec->placement[m].kind == DTENSOR_PARTIAL) {
            *op = spec->placement[m].op;
            n *= spec->mesh->size[m];
        }
    return n;
}

/* "P(sum) 0 + 1": n ranks of which each holds a term; of many, their number. */
static char *draw_partial(const struct draw *draw, int n, enum dtensor_redop op,
                          char buf[DRAW_TEXT_MAX + 64])
{
    const int nterms = draw_terms(draw->spec, &op);
    const struct dtensor_mesh *mesh = draw->spec->mesh;
    size_t used = (size_t)snprintf(buf, DRAW_TEXT_MAX + 64, "P(%s) ",
                                   dtensor_redop_name(op));
    const size_t start = used;

    for (int t = 0; t < nterms; t++) {
        int *term = draw->ranks + mesh->group.n, held = 0;

        for (int i = 0; i < n; i++)
            if (draw_term(draw->spec, draw->ranks[i]) == t)
                term[held++] = dtensor_mesh_rank(mesh, draw->ranks[i]);
        used += (size_t)snprintf(buf + used, 4, "%s", t ? " + " : "");
        dtn_format_ranks(term, held, buf + used, 32);
        used += strlen(buf + used);
        if (used > DRAW_TEXT_MAX) {
            snprintf(buf + start, 32, "%d terms", nterms);
            break;
        }
    }
    return buf;
}

/* "0-3,8": the ranks in a box; long lists end in "...". */
static char *draw_ranks(const struct draw *draw, int row, int col,
                        char buf[DRAW_TEXT_MAX + 64])
{
    enum dtensor_redop op = DTENSOR_SUM;
    const struct dtensor_mesh *mesh = draw->spec->mesh;
    int64_t shape[DTENSOR_MAX_DIMS], offset[DTENSOR_MAX_DIMS];
    int n = 0;

    for (int i = 0; i < mesh->group.n; i++) {
        dtn_layout(draw->spec, i, shape, offset);
        if (draw_holds(&draw->rows, row, shape, offset) &&
            draw_holds(&draw->cols, col, shape, offset))
            draw->ranks[n++] = i;
    }
    if (draw_terms(draw->spec, &op) > 1)
        return draw_partial(draw, n, op, buf);
    for (int i = 0; i < n; i++)
        draw->ranks[i] = dtensor_mesh_rank(mesh, draw->ranks[i]);
    dtn_format_ranks(draw->ranks, n, buf, DRAW_TEXT_MAX + 64);
    if (strlen(buf) > DRAW_TEXT_MAX)
        strcpy(buf + DRAW_TEXT_MAX - 3, "...");
    return buf;
}

/* Give every column the width of its text, drop columns for which there is no
 * room, then distribute the rest.
 */
static void draw_fit(struct draw *draw)
{
    char text[DRAW_TEXT_MAX + 64];
    int room, used = 1, length;

    for (int i = 0; i < draw->rows.n; i++) {
        length = (int)strlen(draw_label(&draw->rows, i, text, sizeof text));
        draw->rows.chars[i] = 1;
        if (length + 1 > draw->indent)
            draw->indent = length + (length > 0);
    }
    room = DRAW_COLUMNS - draw->indent - 4;        /* 4: " ..." at the end   */
    for (int j = 0; j < draw->cols.n; j++) {
        int *chars = &draw->cols.chars[j];

        *chars = 1 + (int)strlen(draw_label(&draw->cols, j, text, sizeof text));
        for (int i = 0; i < draw->rows.n; i++) {
            length = 2 + (int)strlen(draw_ranks(draw, i, j, text));
            if (length > *chars)
                *chars = length;
        }
        used += *chars + 1;
        if (used > room && j > 0)
            draw->cols.n = j;
    }
    room -= draw->cols.n + 1;
    if (draw->rows.dim < 0) {
        draw_scale(&draw->cols, draw->cols.dim < 0 ? 0 : room, room);
    } else {
        const int64_t *shape = draw->spec->shape;
        double width = 2.0 * DRAW_HEIGHT * (double)shape[1] / (double)shape[0];
        double height = width > room ? DRAW_HEIGHT * room / width : DRAW_HEIGHT;

        draw_scale(&draw->cols, width > room ? room : (int)width, room);
        draw_scale(&draw->rows, (int)height, DRAW_HEIGHT);
    }
}

static void draw_repeat(const struct draw *draw, const char *what, int n)
{
    while (n-- > 0)
        fputs(what, draw->stream);
}

/* Write `text` centred in `chars` columns. */
static void draw_centred(const struct draw *draw, const char *text, int chars)
{
    int left = (chars - (int)strlen(text)) / 2;

    fprintf(draw->stream, "%*s%-*s", left, "", chars - left, text);
}

static void draw_rule(const struct draw *draw, enum draw_glyph left,
                      enum draw_glyph middle, enum draw_glyph right)
{
    fprintf(draw->stream, "%*s", draw->indent, "");
    for (int j = 0; j < draw->cols.n; j++) {
        fputs(draw->glyph[j ? middle : left], draw->stream);
        draw_repeat(draw, draw->glyph[LINE], draw->cols.chars[j]);
    }
    fprintf(draw->stream, "%s\n", draw->glyph[right]);
}

static void draw_row(const struct draw *draw, int row)
{
    int height = draw->rows.chars[row], middle = (height - 1) / 2;
    char text[DRAW_TEXT_MAX + 64];

    for (int line = 0; line < height; line++) {
        fprintf(draw->stream, "%-*s", draw->indent, line != middle ? "" :
                draw_label(&draw->rows, row, text, sizeof text));
        for (int j = 0; j < draw->cols.n; j++) {
            fputs(draw->glyph[BAR], draw->stream);
            draw_centred(draw, line != middle ? "" :
                         draw_ranks(draw, row, j, text), draw->cols.chars[j]);
        }
        fprintf(draw->stream, "%s%s\n", draw->glyph[BAR],
                line == middle && draw->cols.n < draw->cols.total ? " ..." : "");
    }
}

static void draw_column_labels(const struct draw *draw)
{
    char text[DRAW_TEXT_MAX + 64];
    int at = draw->indent + 1;

    if (draw->cols.dim < 0)
        return;
    fprintf(draw->stream, "%*s", at, "");
    for (int j = 0; j < draw->cols.n; j++)
        fprintf(draw->stream, "%-*s", j + 1 < draw->cols.n ?
                draw->cols.chars[j] + 1 : 0,
                draw_label(&draw->cols, j, text, sizeof text));
    fputc('\n', draw->stream);
}

static void draw_grid(struct draw *draw)
{
    int ndim = draw->spec->ndim;

    draw->rows.label = "Row ";
    draw->cols.label = ndim == 2 ? "Col " : "";
    draw_axis_init(&draw->rows, draw->spec, ndim == 2 ? 0 : -1, DRAW_ROWS_MAX);
    draw_axis_init(&draw->cols, draw->spec, ndim - 1, DRAW_SHARDS_MAX);
    if (draw->rows.n == 0 || draw->cols.n == 0)
        return;
    draw_fit(draw);
    draw_column_labels(draw);
    draw_rule(draw, TOP_LEFT, TOP, TOP_RIGHT);
    for (int i = 0; i < draw->rows.n; i++) {
        if (i > 0)
            draw_rule(draw, LEFT, CROSS, RIGHT);
        draw_row(draw, i);
    }
    draw_rule(draw, BOTTOM_LEFT, BOTTOM, BOTTOM_RIGHT);
    if (draw->rows.n < draw->rows.total)
        fprintf(draw->stream, "... and %d more rows of boxes\n",
                draw->rows.total - draw->rows.n);
}

/* ---------------------------------------------------------------- table --- */

/* "0-1 5-6", at most three runs and "..." */
static char *draw_runs(const struct dtensor_spec *spec, int rank, int dim,
                       char buf[160])
{
    struct dtensor_run run[3];
    int64_t n = dtensor_spec_runs(spec, rank, dim, run, 3);
    char one[48];

    strcpy(buf, n > 0 ? "" : "none");
    for (int i = 0; i < n && i < 3; i++) {
        strcat(buf, i ? " " : "");
        strcat(buf, draw_range("", run[i].start, run[i].size, one,
                               sizeof one));
    }
    return n > 3 ? strcat(buf, " ...") : buf;
}

static void draw_table(const struct draw *draw)
{
    const struct dtensor_spec *spec = draw->spec;
    int n = spec->mesh->group.n;
    char text[160];

    for (int i = 0; i < n && i < DRAW_LINES_MAX; i++) {
        fprintf(draw->stream, "rank %-5d", dtensor_mesh_rank(spec->mesh, i));
        for (int d = 0; d < spec->ndim; d++)
            fprintf(draw->stream, d + 1 < spec->ndim ? " %-11s" : " %s",
                    draw_runs(spec, dtensor_mesh_rank(spec->mesh, i), d, text));
        fputc('\n', draw->stream);
    }
    if (n > DRAW_LINES_MAX)
        fprintf(draw->stream, "... and %d more ranks\n", n - DRAW_LINES_MAX);
}

/* ------------------------------------------------------------- the rest --- */

static void draw_empty(const struct draw *draw)
{
    const struct dtensor_mesh *mesh = draw->spec->mesh;
    char text[DRAW_COLUMNS];
    int n = 0;

    for (int i = 0; i < mesh->group.n; i++)
        if (dtn_local_numel(draw->spec, i) == 0)
            draw->ranks[n++] = dtensor_mesh_rank(mesh, i);
    if (n > 0)
        fprintf(draw->stream, "empty: %s %s\n", n > 1 ? "ranks" : "rank",
                dtn_format_ranks(draw->ranks, n, text, sizeof text));
}

/* Is every part one box? */
static bool draw_boxes(const struct dtensor_spec *spec)
{
    for (int m = 0; m < spec->mesh->ndim; m++)
        if (dtn_placement_class(&spec->placement[m]) == DTENSOR_SHARD &&
            spec->placement[m].kind != DTENSOR_SHARD)
            return false;
    return spec->ndim <= 2;
}

void dtensor_spec_draw(const struct dtensor_spec *spec, FILE *stream)
{
    struct draw draw = {
        .spec = spec, .stream = stream,
        .glyph = draw_wants_utf8() ? draw_utf8 : draw_ascii,
        .ranks = calloc(2 * (size_t)spec->mesh->group.n, sizeof(int))
    };
    char text[400];

    fprintf(stream, "%s\n", dtn_spec_format(spec, text, sizeof text));
    if (!draw.ranks) {
        fputs("(no memory to draw it)\n", stream);
        return;
    }
    if (draw_boxes(spec))
        draw_grid(&draw);
    else
        draw_table(&draw);
    draw_empty(&draw);
    free(draw.ranks);
}
