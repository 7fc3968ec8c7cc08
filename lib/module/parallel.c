/* parallel.c - applies styles to the modules that patterns name
 *
 * A pattern is matched token by token: in "layers.*.up" the first token names a
 * child of the top, "*" all children of that, and "up" one child of each of
 * these. First all patterns find their modules and all styles are read.  Then
 * the parameters are placed.  After that nothing can fail, and the modules get
 * their hooks.
 */
#include "base/array.h"
#include "base/error.h"
#include "mesh/mesh.h"
#include "module/module.h"
#include "module/parallel.h"
#include "module/place.h"
#include "module/style.h"
#include "dtensor.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* What is done with one entry of the plan after another. */
struct planning {
    const struct dtensor_mesh *mesh;  /* of one dimension                     */
    const struct dtensor_style *style; /* the entry                           */
    int found;                     /* modules that it matches                 */
    int depth;                     /* of the token that matched no child      */
    const struct dtensor_module *lacks; /* the module without such a child    */
    char token[DTENSOR_NAME_MAX + 2]; /* that token                           */
};

static int entry_failed(const struct dtensor_style *style, int rc,
                        struct dtensor_error *err)
{
    struct dtensor_error inner;

    if (!err)
        return rc;
    inner = *err;
    snprintf(err->text, sizeof err->text, "plan: \"%.100s\": %.*s",
             style->pattern ? style->pattern : "",
             (int)(sizeof err->text - 120), inner.text);
    return rc;
}

/* Read the style for a module that the pattern matches; it waits there. */
static int module_style(struct planning *planning,
                        struct dtensor_module *module,
                        struct dtensor_error *err)
{
    struct dtn_styled *styled;
    char path[DTN_PATH_SIZE];
    int rc;

    planning->found++;
    if (module->styled)
        return dtn_fail(err, DTENSOR_EINVAL, "%.150s has a style already: "
                        "\"%.60s\"%s%.60s (expected one for each module)",
                        dtn_module_text(module, path), module->styled->text,
                        module->styled->pattern ? " by " : "",
                        module->styled->pattern ? module->styled->pattern : "");
    if (!dtn_hooks_reserve(module))
        return dtn_fail_nomem(err, "module", sizeof *styled);
    styled = calloc(1, sizeof *styled);
    if (!styled)
        return dtn_fail_nomem(err, "module", sizeof *styled);
    rc = dtn_style_read(module, planning->style->style, planning->mesh, styled,
                        err);
    if (rc != 0) {
        free(styled);
        return rc;
    }
    styled->pattern = planning->style->pattern;
    module->styled = styled;
    return 0;
}

static void token_lacks(struct planning *planning, int depth,
                        const struct dtensor_module *module, const char *token)
{
    if (planning->lacks && depth <= planning->depth)
        return;
    planning->depth = depth;
    planning->lacks = module;
    strcpy(planning->token, token);
}

static int module_match(struct planning *planning, int depth,
                        struct dtensor_module *module, const char *pattern,
                        struct dtensor_error *err)
{
    const size_t n = strcspn(pattern, ".");
    char token[DTENSOR_NAME_MAX + 2];
    int rc = 0, matched = 0;

    if (!*pattern)
        return module_style(planning, module, err);
    if (n == 0 || n >= sizeof token || (pattern[n] && !pattern[n + 1]))
        return dtn_fail(err, DTENSOR_EINVAL, "bad pattern (expected names or "
                        "wildcards of 1 to %d bytes joined by \".\")",
                        DTENSOR_NAME_MAX + 1);
    memcpy(token, pattern, n);
    token[n] = '\0';
    for (int i = 0; rc == 0 && i < module->nchildren; i++) {
        if (fnmatch(token, module->children[i]->name, 0) != 0)
            continue;
        matched++;
        rc = module_match(planning, depth + 1, module->children[i],
                          pattern + n + (pattern[n] == '.'), err);
    }
    if (matched == 0)
        token_lacks(planning, depth, module, token);
    return rc;
}

static int nothing_matches(const struct planning *planning,
                           struct dtensor_error *err)
{
    const struct dtensor_module *lacks = planning->lacks;
    const char *known[64] = { NULL };
    char path[DTN_PATH_SIZE], advice[200];

    for (int i = 0; i < lacks->nchildren && i < 63; i++)
        known[i] = lacks->children[i]->name;
    if (!known[0])
        strcpy(advice, "it has no children");
    else
        dtensor_advise(planning->token, known, NULL, advice, sizeof advice);
    return dtn_fail(err, DTENSOR_EINVAL, "matches no module: %.150s has no "
                    "child \"%s\" (%s)", dtn_module_text(lacks, path),
                    planning->token, advice);
}

int dtn_entry_match(struct dtensor_module *top,
                    const struct dtensor_style *style,
                    const struct dtensor_mesh *mesh, struct dtensor_error *err)
{
    struct planning planning = { .mesh = mesh, .style = style };
    int rc = style->pattern ? module_match(&planning, 0, top, style->pattern,
                                           err)
           : dtn_fail(err, DTENSOR_EINVAL, "no pattern");

    return rc == 0 && planning.found == 0 ? nothing_matches(&planning, err)
                                          : rc;
}

/* -------------------------------------------------------------- placing --- */

/* Modules of an earlier plan stay as they are. */
const char *dtn_style_choose(const struct dtensor_module *module,
                             const char *param, void *arg)
{
    if (module->styled && module->styled->pattern)
        return dtn_style_param(module->styled, param);
    return module->mesh ? dtn_placed : NULL;
}

int dtn_style_lacks(const struct dtensor_module *module,
                    struct dtensor_error *err)
{
    char path[DTN_PATH_SIZE];

    if (!module->styled || !module->styled->pattern ||
        !module->styled->row->params[0].name ||
        dtensor_module_param(module, "weight"))
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "%.150s has no parameter \"weight\"",
                    dtn_module_text(module, path));
}

static int params_check(struct dtensor_module *module, void *arg,
                        struct dtensor_error *err)
{
    int rc = dtn_style_lacks(module, err);

    return rc == 0 ? 0 : entry_failed(&(struct dtensor_style){
        .pattern = module->styled->pattern }, rc, err);
}

int dtn_style_take_back(struct dtensor_module *module, void *arg,
                        struct dtensor_error *err)
{
    if (module->styled && module->styled->pattern) {
        free(module->styled);
        module->styled = NULL;
    }
    return 0;
}

/* Room for the hooks was made before. */
static int style_commit(struct dtensor_module *module, void *arg,
                        struct dtensor_error *err)
{
    struct dtn_styled *styled = module->styled;

    if (!styled || !styled->pattern)
        return 0;
    styled->pattern = NULL;
    if (styled->side[DTN_SIDE_INPUT].n > 0)
        dtn_hook_put(module, DTN_SIDE_INPUT, dtn_style_on_input, styled);
    if (styled->side[DTN_SIDE_OUTPUT].n > 0)
        dtn_hook_put(module, DTN_SIDE_OUTPUT, dtn_style_on_output, styled);
    return 0;
}

int dtn_parallel_mesh(const struct dtensor_mesh *mesh,
                      struct dtensor_error *err)
{
    char text[128];

    if (mesh->ndim == 1)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "plan: %s has %d dimensions (expected "
                    "1: take one with dtensor_mesh_slice())",
                    dtn_mesh_format(mesh, text, sizeof text), mesh->ndim);
}

int dtensor_parallelize(struct dtensor_module *module,
                        const struct dtensor_mesh *mesh, int n,
                        const struct dtensor_style plan[], int root,
                        struct dtensor_error *err)
{
    struct dtn_placing placing = { .root = root, .choose = dtn_style_choose };
    int rc;

    if (n < 0 || (n > 0 && !plan))
        return dtn_fail(err, DTENSOR_EINVAL, n < 0
                        ? "plan: %d entries (expected 0 or more)"
                        : "plan: %d entries, but plan is NULL", n);
    rc = dtn_place_mesh(module, mesh, &placing.mesh, err);
    if (rc == 0)
        rc = dtn_parallel_mesh(placing.mesh, err);
    for (int i = 0; rc == 0 && i < n; i++) {
        rc = dtn_entry_match(module, &plan[i], placing.mesh, err);
        rc = rc != 0 ? entry_failed(&plan[i], rc, err) : 0;
    }
    if (rc == 0)
        rc = dtensor_module_walk(module, params_check, NULL, err);
    if (rc == 0)
        rc = dtn_place(module, &placing, err);
    dtensor_module_walk(module, rc == 0 ? style_commit : dtn_style_take_back,
                        NULL, NULL);
    return rc;
}
