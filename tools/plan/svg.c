/* svg.c - two pictures: who holds what before, and after
 *
 * The tensor is a square of 320 by 320, its first dimension downward and its
 * second to the right; deeper dimensions are not drawn.  Each rank has a
 * colour, and every block it holds bears the numbers of all ranks that hold the
 * same. With 4 ranks and S(0) that is four bands; with R one block "0 1 2 3".
 */
#include "tools/plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 320, MARGIN = 40, HEAD = 60, LABEL_MAX = 48 };

/* What one rank holds along the two drawn dimensions. */
struct svg_part {
    struct dtensor_run *run[2];
    int64_t n[2];
};

static bool svg_same(const struct svg_part *a, const struct svg_part *b)
{
    for (int d = 0; d < 2; d++)
        if (a->n[d] != b->n[d] ||
            memcmp(a->run[d], b->run[d], (size_t)a->n[d] * sizeof *a->run[d]))
            return false;
    return true;
}

static void svg_parts_free(struct svg_part *part, int n)
{
    for (int i = 0; part && i < n; i++) {
        free(part[i].run[0]);
        free(part[i].run[1]);
    }
    free(part);
}

/* A dimension that the tensor does not have is one run of one. */
static struct svg_part *svg_parts(const struct dtensor_spec *spec, int n)
{
    struct svg_part *part = calloc((size_t)n, sizeof *part);
    bool good = part != NULL;

    for (int i = 0; good && i < n; i++)
        for (int d = 0; d < 2; d++) {
            if (d < spec->ndim) {
                part[i].run[d] = plan_runs(spec, dtensor_mesh_rank(spec->mesh,
                                                                   i), d,
                                           &part[i].n[d]);
            } else {
                part[i].run[d] = calloc(1, sizeof *part[i].run[d]);
                if (part[i].run[d])
                    part[i].run[d][0].size = part[i].n[d] = 1;
            }
            good = good && part[i].run[d];
        }
    if (good)
        return part;
    svg_parts_free(part, n);
    return NULL;
}

/* "0 4 8 ...": all that hold what rank i holds, of which it is the first. */
static void svg_label(const struct dtensor_spec *spec,
                      const struct svg_part part[], int i, int n,
                      char label[LABEL_MAX])
{
    size_t used = 0;

    for (int k = i; k < n; k++) {
        if (!svg_same(&part[i], &part[k]))
            continue;
        if (used + 12 > LABEL_MAX) {
            strcpy(label + used, " ...");
            return;
        }
        used += (size_t)snprintf(label + used, LABEL_MAX - used, "%s%d",
                                 used ? " " : "",
                                 dtensor_mesh_rank(spec->mesh, k));
    }
}

static void svg_block(const struct dtensor_spec *spec, struct dtensor_run row,
                      struct dtensor_run col, double left, int hue,
                      const char *label, FILE *stream)
{
    const double high = (double)SIDE / (double)(spec->ndim > 0 ? spec->shape[0]
                                                               : 1);
    const double wide = (double)SIDE / (double)(spec->ndim > 1 ? spec->shape[1]
                                                               : 1);
    const double x = left + (double)col.start * wide;
    const double y = HEAD + (double)row.start * high;
    const double w = (double)col.size * wide, h = (double)row.size * high;

    fprintf(stream, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
            "height=\"%.2f\" fill=\"hsl(%d,65%%,80%%)\" stroke=\"#333\"/>\n",
            x, y, w, h, hue);
    if (w > 7 && h > 9)
        fprintf(stream, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\" "
                "dominant-baseline=\"central\" textLength=\"%.0f\" "
                "lengthAdjust=\"spacingAndGlyphs\">%s</text>\n", x + w / 2,
                y + h / 2, 7.0 * (double)strlen(label) < w - 4
                           ? 7.0 * (double)strlen(label) : w - 4, label);
}

static int svg_picture(const struct dtensor_spec *spec, double left,
                       const char *title, FILE *stream)
{
    const int n = dtensor_mesh_size(spec->mesh);
    struct svg_part *part = svg_parts(spec, n);
    char placements[400], label[LABEL_MAX];

    if (!part)
        return PLAN_BAD;
    dtensor_placements_format(spec->mesh, spec->placement, placements,
                              sizeof placements);
    fprintf(stream,
            "<text x=\"%.0f\" y=\"%d\" font-size=\"15\">%s: %s</text>\n",
            left, HEAD - 12, title, placements);
    for (int i = 0; i < n; i++) {
        bool first = true;

        for (int k = 0; k < i; k++)
            first = first && !svg_same(&part[i], &part[k]);
        if (!first)
            continue;
        svg_label(spec, part, i, n, label);
        for (int64_t r = 0; r < part[i].n[0]; r++)
            for (int64_t c = 0; c < part[i].n[1]; c++)
                svg_block(spec, part[i].run[0][r], part[i].run[1][c], left,
                          (i * 137) % 360, label, stream);
    }
    svg_parts_free(part, n);
    return PLAN_GOOD;
}

int plan_svg(const struct plan_job *job, FILE *stream)
{
    const int pictures = job->plan ? 2 : 1;
    struct dtensor_plan_info info;
    int status;

    fprintf(stream, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n",
            MARGIN + pictures * (SIDE + MARGIN), HEAD + SIDE + MARGIN);
    if (job->plan) {
        dtensor_plan_info(job->plan, &info);
        fprintf(stream,
                "<text x=\"%d\" y=\"22\" font-size=\"15\">%s, %d steps, "
                "%" PRIu64 " bytes, %.1f us</text>\n", MARGIN,
                plan_routes[info.route], info.nsteps,
                dtensor_plan_bytes(job->plan, -1, -1, -1), info.predicted_us);
    }
    status = svg_picture(&job->from, MARGIN, job->plan ? "before" : "layout",
                         stream);
    if (status == PLAN_GOOD && job->plan)
        status = svg_picture(&job->to, 2 * MARGIN + SIDE, "after", stream);
    fprintf(stream, "</svg>\n");
    return status;
}
