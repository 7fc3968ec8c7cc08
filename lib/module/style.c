/* style.c - tensor-parallel styles, applied to modules
 *
 * lib/cluster/style.c says which placements a style gives to parameters, inputs
 * and outputs.  Here a module gets two hooks, which redistribute its inputs and
 * its outputs to these placements.  If a tensor has them already, this costs
 * nothing.
 */
#include "module/style.h"
#include "base/error.h"
#include "cluster/style.h"
#include "job/watcher.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "module/module.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <string.h>

/* ----------------------------------------------------------- reading --- */

static int layout_check(const struct dtn_style_words *words,
                        enum dtn_style_side side, const char *text,
                        const struct dtensor_mesh *mesh,
                        struct dtensor_error *err)
{
    struct dtensor_placement p;
    int rc;

    if (strcmp(text, "-") == 0 && dtn_style_takes_dash(words))
        return 0;
    rc = dtensor_placements_parse(mesh, text, DTENSOR_MAX_DIMS, &p, err);
    if (rc == 0 && side == DTN_STYLE_OUTPUT && p.kind == DTENSOR_PARTIAL &&
        !dtn_style_takes_terms(words))
        rc = dtn_fail(err, DTENSOR_EINVAL, "output=%s: the output of %s is no "
                      "term (expected R or S)", text, words->row->name);
    return rc;
}

/* The layouts that the text says, or else the row. */
static int layouts_take(const struct dtn_style_words *words,
                        enum dtn_style_side side, struct dtn_styled *styled,
                        struct dtensor_error *err)
{
    struct dtn_layouts *layouts = &styled->side[side];
    int rc = 0;

    layouts->n = words->side[side].n;
    for (int i = 0; rc == 0 && i < layouts->n; i++) {
        strcpy(layouts->text[i], words->side[side].layout[i]);
        rc = layout_check(words, side, layouts->text[i], styled->mesh, err);
    }
    if (layouts->n == 0 && styled->row->layout[side]) {
        strcpy(layouts->text[0], styled->row->layout[side]);
        layouts->n = 1;
    }
    return rc;
}

int dtn_style_read(const struct dtensor_module *module, const char *text,
                   const struct dtensor_mesh *mesh, struct dtn_styled *styled,
                   struct dtensor_error *err)
{
    struct dtn_style_words words;
    char why[DTN_WHY_SIZE];
    int rc = 0;

    if (!dtn_style_words_read(text, &words, why))
        return dtn_fail(err, DTENSOR_EINVAL, "%s", why);
    *styled = (struct dtn_styled){ .mesh = mesh };
    styled->row = dtn_style_row_for(words.row, module->type);
    if (!styled->row)
        return dtn_fail(err, DTENSOR_EINVAL, "%s is for linear and embedding, "
                        "not for \"%s\"", words.row->name, module->type);
    strcpy(styled->text, words.text);
    for (int side = 0; rc == 0 && side < DTN_STYLE_SIDES; side++)
        rc = layouts_take(&words, (enum dtn_style_side)side, styled, err);
    return rc;
}

const char *dtn_style_param(const struct dtn_styled *styled, const char *param)
{
    for (int i = 0; i < 3 && styled->row->params[i].name; i++)
        if (strcmp(styled->row->params[i].name, param) == 0)
            return styled->row->params[i].placement;
    return NULL;
}

/* ------------------------------------------------------------ asking --- */

const char *dtensor_module_style(const struct dtensor_module *module)
{
    return module->styled ? module->styled->text : NULL;
}

const char *dtensor_module_layout(const struct dtensor_module *module,
                                  int output, int i)
{
    const struct dtn_layouts *layouts;

    if (!module->styled)
        return NULL;
    layouts = &module->styled->side[output ? DTN_STYLE_OUTPUT
                                           : DTN_STYLE_INPUT];
    return i < 0 || i >= layouts->n || strcmp(layouts->text[i], "-") == 0
         ? NULL : layouts->text[i];
}

const char *dtensor_module_placement(const struct dtensor_module *module,
                                     const char *param)
{
    return module->styled ? dtn_style_param(module->styled, param) : NULL;
}

/* ----------------------------------------------------------- calling --- */

/* The placement that layout `i` is for a tensor of ndim dimensions: S(-1) of 3
 * is S(2).  It is read again only if their number has changed.
 */
static int layout_of(const struct dtn_styled *styled,
                     struct dtn_layouts *layouts, int i, int ndim,
                     struct dtensor_error *err)
{
    int rc = 0;

    if (layouts->ndim[i] == ndim + 1)
        return 0;
    rc = dtensor_placements_parse(styled->mesh, layouts->text[i], ndim,
                                  &layouts->placement[i], err);
    layouts->ndim[i] = rc == 0 ? ndim + 1 : 0;
    return rc;
}

/* Redistribute `t` to layout `i`, unless it has that layout. */
static int layout_bring(const struct dtn_styled *styled,
                        struct dtn_layouts *layouts, int i,
                        const struct dtensor *t, struct dtensor **madep,
                        struct dtensor_error *err)
{
    struct dtensor_spec spec;
    char mesh[128], other[128];
    int rc;

    if (strcmp(layouts->text[i], "-") == 0)
        return 0;
    if (t->spec.mesh != styled->mesh)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: a tensor lies on %s, the "
                        "parameters on %s (the meshes must be the same)",
                        styled->row->name,
                        dtn_mesh_format(t->spec.mesh, other, sizeof other),
                        dtn_mesh_format(styled->mesh, mesh, sizeof mesh));
    rc = layout_of(styled, layouts, i, t->spec.ndim, err);
    if (rc != 0 || dtn_placement_equal(&layouts->placement[i],
                                       &t->spec.placement[0],
                                       styled->mesh->size[0]))
        return rc;
    spec = t->spec;
    spec.placement[0] = layouts->placement[i];
    dtn_watch_cause(styled->mesh->ctx, styled->row->name, i,
                    layouts == &styled->side[DTN_STYLE_INPUT]
                    ? "the style's layout of inputs"
                    : "the style's layout of outputs");
    return dtensor_redistribute_to(t, &spec, madep, err);
}

static int layouts_bring(const struct dtensor_hook *call, enum dtn_side side,
                         struct dtensor_error *err)
{
    struct dtn_styled *styled = call->arg;
    struct dtn_layouts *layouts = &styled->side[side];
    int rc = 0;

    if (layouts->n > 0 && layouts->n != call->n)
        return dtn_fail(err, DTENSOR_EINVAL, "%s: %d %s for %d layouts",
                        styled->row->name, call->n, side == DTN_SIDE_INPUT
                        ? "inputs" : "outputs", layouts->n);
    for (int i = 0; rc == 0 && i < layouts->n; i++)
        rc = layout_bring(styled, layouts, i, call->t[i], &call->made[i], err);
    return rc;
}

int dtn_style_on_input(const struct dtensor_hook *call,
                       struct dtensor_error *err)
{
    return layouts_bring(call, DTN_SIDE_INPUT, err);
}

int dtn_style_on_output(const struct dtensor_hook *call,
                        struct dtensor_error *err)
{
    return layouts_bring(call, DTN_SIDE_OUTPUT, err);
}
