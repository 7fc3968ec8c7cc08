/* style.c - tensor-parallel styles, as a table
 *
 * A style says how the parameters of a module lie on a mesh of one dimension,
 * and how its inputs and outputs do.  Of a linear layer f32[16,8] on 4 ranks,
 * colwise gives each rank 4 of the 16 outputs: the weight is cut along
 * dimension 0, and so is the bias; the input is whole on each rank, the output
 * is S(-1).  The layer after it, rowwise, takes that as it is, and its products
 * are terms, which the output layout R sums.  Placements that an input has
 * already cost nothing.
 */
#include "module/style.h"
#include "base/error.h"
#include "layout/placement.h"
#include "mesh/mesh.h"
#include "module/module.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <string.h>

static const struct dtn_style_row rows[] = {
    { "colwise", "linear", { { "weight", "S(0)" }, { "bias", "S(0)" } },
      "R", "S(-1)" },
    { "colwise", "embedding", { { "weight", "S(1)" } }, "R", "S(-1)" },
    { "rowwise", "linear", { { "weight", "S(1)" }, { "bias", "R" } },
      "S(-1)", "R" },
    { "rowwise", "embedding", { { "weight", "S(0)" } }, "R", "R" },
    { "sequence", NULL, { { NULL, NULL } }, "S(1)", NULL },
    { "prepare", NULL, { { NULL, NULL } }, NULL, NULL }
};

enum { NROWS = (int)(sizeof rows / sizeof rows[0]) };

static bool is_style(const struct dtn_style_row *row, const char *name)
{
    return strcmp(row->name, name) == 0;
}

/* ----------------------------------------------------------- reading --- */

static int style_unknown(const char *name, struct dtensor_error *err)
{
    static const char *const known[] = { "colwise", "rowwise", "sequence",
                                         "prepare", NULL };
    char advice[200];

    return dtn_fail(err, DTENSOR_EINVAL, "no style \"%.40s\"; %s", name,
                    dtensor_advise(name, known, NULL, advice, sizeof advice));
}

static int row_find(const char *name, const char *type,
                    const struct dtn_style_row **rowp,
                    struct dtensor_error *err)
{
    bool known = false;

    for (int i = 0; i < NROWS; i++) {
        if (!is_style(&rows[i], name))
            continue;
        known = true;
        if (rows[i].type && strcmp(rows[i].type, type) != 0)
            continue;
        *rowp = &rows[i];
        return 0;
    }
    if (!known)
        return style_unknown(name, err);
    return dtn_fail(err, DTENSOR_EINVAL, "%s is for linear and embedding, not "
                    "for \"%s\"", name, type);
}

/* The length of the layout at `text`: up to a comma outside parentheses. */
static size_t layout_length(const char *text)
{
    size_t n = 0;

    for (int depth = 0; text[n] && (text[n] != ',' || depth > 0); n++)
        depth += (text[n] == '(') - (text[n] == ')');
    return n;
}

static int layout_check(const struct dtn_styled *styled, enum dtn_side side,
                        const char *text, struct dtensor_error *err)
{
    struct dtensor_placement p;
    int rc;

    if (strcmp(text, "-") == 0 && is_style(styled->row, "prepare"))
        return 0;
    rc = dtensor_placements_parse(styled->mesh, text, DTENSOR_MAX_DIMS, &p,
                                  err);
    if (rc == 0 && side == DTN_SIDE_OUTPUT && p.kind == DTENSOR_PARTIAL &&
        is_style(styled->row, "colwise"))
        rc = dtn_fail(err, DTENSOR_EINVAL, "output=%s: the output of colwise "
                      "is no term (expected R or S)", text);
    return rc;
}

static int layouts_read(struct dtn_styled *styled, enum dtn_side side,
                        const char *text, struct dtensor_error *err)
{
    const bool several = is_style(styled->row, "prepare");
    struct dtn_layouts *layouts = &styled->side[side];
    int rc = 0;

    layouts->n = 0;
    for (size_t n; rc == 0; text += n + 1) {
        n = layout_length(text);
        if (layouts->n == (several ? DTN_LAYOUTS : 1) || n >= DTN_LAYOUT_SIZE)
            return dtn_fail(err, DTENSOR_EINVAL, "\"%.60s\": too many or too "
                            "long layouts (expected at most %d)", text,
                            several ? DTN_LAYOUTS : 1);
        memcpy(layouts->text[layouts->n], text, n);
        layouts->text[layouts->n][n] = '\0';
        rc = layout_check(styled, side, layouts->text[layouts->n++], err);
        if (!text[n])
            break;
    }
    return rc;
}

/* dim=N of sequence: the input layout is S(N). */
static int dim_read(struct dtn_styled *styled, const char *text,
                    struct dtensor_error *err)
{
    const char *digits = text + (text[0] == '-');

    if (strlen(digits) != 1 || digits[0] < '0' || digits[0] > '7' ||
        strcmp(text, "-0") == 0)
        return dtn_fail(err, DTENSOR_EINVAL, "dim=%.20s: not a dimension "
                        "(expected 0 to 7, or -1 to -7)", text);
    snprintf(styled->side[DTN_SIDE_INPUT].text[0], DTN_LAYOUT_SIZE, "S(%s)",
             text);
    return 0;
}

static int option_read(struct dtn_styled *styled, const char *word,
                       struct dtensor_error *err)
{
    const char *name = styled->row->name;
    const bool prepare = strcmp(name, "prepare") == 0;
    const bool sequence = strcmp(name, "sequence") == 0;

    if (prepare && strncmp(word, "input=", 6) == 0)
        return layouts_read(styled, DTN_SIDE_INPUT, word + 6, err);
    if (!sequence && strncmp(word, "output=", 7) == 0)
        return layouts_read(styled, DTN_SIDE_OUTPUT, word + 7, err);
    if (sequence && strncmp(word, "dim=", 4) == 0)
        return dim_read(styled, word + 4, err);
    return dtn_fail(err, DTENSOR_EINVAL, "%s has no option \"%.40s\" (expected "
                    "%s)", name, word, prepare ? "input=LAYOUTS or "
                    "output=LAYOUTS" : sequence ? "dim=N" : "output=LAYOUT");
}

/* The layouts that the row says. */
static void styled_begin(struct dtn_styled *styled)
{
    const char *const layout[] = { styled->row->input, styled->row->output };

    for (int side = 0; side < DTN_SIDES; side++) {
        if (!layout[side])
            continue;
        strcpy(styled->side[side].text[0], layout[side]);
        styled->side[side].n = 1;
    }
}

int dtn_style_read(const struct dtensor_module *module, const char *text,
                   const struct dtensor_mesh *mesh, struct dtn_styled *styled,
                   struct dtensor_error *err)
{
    char words[DTN_LAYOUT_SIZE], *rest, *word;
    int rc;

    if (!text || strlen(text) >= sizeof words)
        return dtn_fail(err, DTENSOR_EINVAL, "%s (expected at most %d bytes)",
                        text ? "the style is too long" : "no style",
                        DTN_LAYOUT_SIZE - 1);
    *styled = (struct dtn_styled){ .mesh = mesh };
    strcpy(styled->text, text);
    strcpy(words, text);
    word = strtok_r(words, " \t", &rest);
    rc = row_find(word ? word : "", module->type, &styled->row, err);
    if (rc == 0)
        styled_begin(styled);
    while (rc == 0 && (word = strtok_r(NULL, " \t", &rest)))
        rc = option_read(styled, word, err);
    if (rc == 0 && is_style(styled->row, "prepare") &&
        styled->side[DTN_SIDE_INPUT].n + styled->side[DTN_SIDE_OUTPUT].n == 0)
        rc = dtn_fail(err, DTENSOR_EINVAL, "prepare without input=LAYOUTS or "
                      "output=LAYOUTS");
    return rc;
}

const char *dtn_style_param(const struct dtn_styled *styled, const char *param)
{
    for (int i = 0; i < 3 && styled->row->params[i].name; i++)
        if (strcmp(styled->row->params[i].name, param) == 0)
            return styled->row->params[i].placement;
    return NULL;
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

/* Bring `t` to layout `i`; nothing if it lies so. */
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
