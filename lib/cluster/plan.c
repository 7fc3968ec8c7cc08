/* plan.c - the plans of a cluster: which styles the modules of a model get
 *
 * A plan is a list of patterns and styles, sorted by pattern: what "layers.*.up"
 * is on a mesh.  It is data here.  dtensor_parallelize_plan() reads it with the
 * modules that a program has.
 */
#include "cluster/plan.h"
#include "cluster/cluster.h"
#include "cluster/style.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct dtn_plan_def *dtn_plan_find(const struct dtensor_cluster *cluster,
                                         const char *name)
{
    for (int i = 0; i < cluster->nplans; i++)
        if (strcmp(cluster->plans[i].name, name) == 0)
            return &cluster->plans[i];
    return NULL;
}

void dtn_plan_def_free(struct dtn_plan_def *plan)
{
    free(plan->style);
    free(plan->line);
    free(plan->text);
}

/* "" stands as "." in a file. */
static const char *pattern_text(const struct dtensor_style *style)
{
    return style->pattern[0] ? style->pattern : ".";
}

/* --------------------------------------------------------- for digests --- */

void dtn_plan_canonical(const struct dtensor_cluster *cluster, FILE *out)
{
    for (int i = 0; i < cluster->nplans; i++) {
        const struct dtn_plan_def *plan = &cluster->plans[i];
        const struct dtn_mesh_def *mesh = plan->mesh < 0
                                        ? NULL : &cluster->meshes[plan->mesh];

        fprintf(out, "[plan \"%s\"] mesh = %s\n[plan \"%s\"] dim = %s\n",
                plan->name, mesh ? mesh->name : "none", plan->name,
                mesh ? mesh->dim_name[plan->dim] : "none");
        for (int k = 0; k < plan->n; k++)
            fprintf(out, "[plan \"%s\"] %s = %s\n", plan->name,
                    pattern_text(&plan->style[k]), plan->style[k].style);
    }
}

/* ---------------------------------------------------------- for people --- */

/* The layout of a side that the style gives; of rowwise, "S(-1) or R". */
static void side_text(const struct dtn_style_words *words,
                      enum dtn_style_side side, char *text, size_t size)
{
    const char *last = NULL, *layout;
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < words->side[side].n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 i ? "," : "", words->side[side].layout[i]);
    if (words->side[side].n > 0)
        return;
    for (const struct dtn_style_row *row = words->row; row && used < size;
         row = dtn_style_row_next(row)) {
        layout = row->layout[side] ? row->layout[side] : "as it comes";
        if (!last || strcmp(last, layout) != 0)
            used += (size_t)snprintf(text + used, size - used, "%s%s",
                                     last ? " or " : "", layout);
        last = layout;
    }
}

/* "; linear: weight S(1), bias R; embedding: weight S(0)".  All others are R.
 */
static void params_show(const struct dtn_style_row *row, FILE *out)
{
    for (; row; row = dtn_style_row_next(row)) {
        if (!row->params[0].name)
            continue;
        fprintf(out, "; %s:", row->type);
        for (int i = 0; i < 3 && row->params[i].name; i++)
            fprintf(out, "%s %s %s", i ? "," : "", row->params[i].name,
                    row->params[i].placement);
    }
}

static void entry_show(const struct dtensor_style *style, int width, FILE *out)
{
    struct dtn_style_words words;
    char why[DTN_WHY_SIZE], input[DTN_LAYOUTS * DTN_LAYOUT_SIZE];
    char output[DTN_LAYOUTS * DTN_LAYOUT_SIZE];

    if (!dtn_style_words_read(style->style, &words, why))
        return;                       /* it was checked when it was read      */
    side_text(&words, DTN_STYLE_INPUT, input, sizeof input);
    side_text(&words, DTN_STYLE_OUTPUT, output, sizeof output);
    fprintf(out, "    %-*s  %-8s  input %s, output %s", width,
            pattern_text(style), words.row->name, input, output);
    params_show(words.row, out);
    fputc('\n', out);
}

static void plan_show(const struct dtensor_cluster *cluster,
                      const struct dtn_plan_def *plan, FILE *out)
{
    int width = 0;

    fprintf(out, "plan %s: ", plan->name);
    if (plan->mesh < 0)
        fputs("on the mesh that the program gives\n", out);
    else
        fprintf(out, "on %s of mesh %s, %d ranks\n",
                cluster->meshes[plan->mesh].dim_name[plan->dim],
                cluster->meshes[plan->mesh].name,
                cluster->meshes[plan->mesh].size[plan->dim]);
    for (int k = 0; k < plan->n; k++)
        if ((int)strlen(pattern_text(&plan->style[k])) > width)
            width = (int)strlen(pattern_text(&plan->style[k]));
    for (int k = 0; k < plan->n; k++)
        entry_show(&plan->style[k], width, out);
}

void dtn_plan_show(const struct dtensor_cluster *cluster, FILE *out)
{
    for (int i = 0; i < cluster->nplans; i++)
        plan_show(cluster, &cluster->plans[i], out);
}
