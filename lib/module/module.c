/* module.c - makes trees, and the parts of a module
 *
 * A module owns its children and parameters, so one call frees a whole model.
 * A module cannot become a child of itself or of a module below it, because the
 * tree would have a cycle.
 */
#include "module/module.h"
#include "base/array.h"
#include "base/error.h"
#include "job/ctx.h"
#include "mesh/mesh.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

static int type_unknown(const char *type, struct dtensor_error *err)
{
    const char *known[256] = { "sequential", "embedding" };
    char advice[300];

    for (int i = 0, n = 2; n < 255 && dtensor_op_name(i); i++)
        known[n++] = dtensor_op_name(i);
    return dtn_fail(err, DTENSOR_EINVAL, "module: no forward function, and "
                    "\"%.40s\" is no operator; %s", type,
                    dtensor_advise(type, known, "sequential, linear, "
                                   "embedding, layer_norm ...", advice,
                                   sizeof advice));
}

int dtensor_module_create(struct dtensor_ctx *ctx, const char *type,
                          dtensor_forward_f *forward, void *arg,
                          struct dtensor_module **modulep,
                          struct dtensor_error *err)
{
    struct dtensor_module *module;

    if (!ctx || !type)
        return dtn_fail(err, DTENSOR_EINVAL, "module: no %s", ctx ? "type"
                        : "context");
    if (!*type || strlen(type) > DTENSOR_NAME_MAX)
        return dtn_fail(err, DTENSOR_EINVAL, "module: type \"%.40s\" has %zu "
                        "bytes (expected 1 to %d)", type, strlen(type),
                        DTENSOR_NAME_MAX);
    if (!forward)
        forward = dtn_forward_of(type);
    if (!forward)
        return type_unknown(type, err);
    module = calloc(1, sizeof *module);
    if (!module)
        return dtn_fail_nomem(err, "module", sizeof *module);
    *module = (struct dtensor_module){ .ctx = ctx, .forward = forward,
                                       .arg = arg };
    strcpy(module->type, type);
    dtn_ctx_hold(ctx);
    *modulep = module;
    return 0;
}

static void module_leave(struct dtensor_module *module)
{
    struct dtensor_module *parent = module->parent;
    int i = 0;

    if (!parent)
        return;
    while (parent->children[i] != module)
        i++;
    parent->nchildren--;
    memmove(parent->children + i, parent->children + i + 1,
            (size_t)(parent->nchildren - i) * sizeof *parent->children);
}

void dtensor_module_destroy(struct dtensor_module *module)
{
    struct dtensor_ctx *ctx;

    if (!module)
        return;
    while (module->nchildren > 0)
        dtensor_module_destroy(module->children[module->nchildren - 1]);
    for (int i = 0; i < module->nparams; i++)
        dtensor_destroy(module->params[i].tensor);
    module_leave(module);
    ctx = module->ctx;
    for (int side = 0; side < DTN_SIDES; side++)
        free(module->hooks[side]);
    free(module->styled);
    free(module->children);
    free(module->params);
    free(module);
    dtn_ctx_release(ctx);
}

static int name_bad(const char *name, struct dtensor_error *err)
{
    return dtn_fail(err, DTENSOR_EINVAL, "module: bad name \"%.40s\" "
                    "(expected 1 to %d letters, digits, \"-\" or \"_\")",
                    name ? name : "", DTENSOR_NAME_MAX);
}

/* May `child` stand below `module`? */
static int child_check(const struct dtensor_module *module, const char *name,
                       const struct dtensor_module *child,
                       struct dtensor_error *err)
{
    char text[DTN_PATH_SIZE];

    if (!dtn_module_name_ok(name))
        return name_bad(name, err);
    if (!child || child->ctx != module->ctx)
        return dtn_fail(err, DTENSOR_EINVAL, "module: %s: %s", name,
                        child ? "a child of another context" : "no child");
    if (child->parent)
        return dtn_fail(err, DTENSOR_EINVAL, "module: %s is in the tree "
                        "already, as %.200s", name,
                        dtn_module_text(child, text));
    for (int i = 0; i < module->nchildren; i++)
        if (strcmp(module->children[i]->name, name) == 0)
            return dtn_fail(err, DTENSOR_EINVAL, "module: %.200s has a child "
                            "\"%s\" already", dtn_module_text(module, text),
                            name);
    for (const struct dtensor_module *m = module; m; m = m->parent)
        if (m == child)
            return dtn_fail(err, DTENSOR_EINVAL, "module: %s: a module cannot "
                            "stand below itself", name);
    return 0;
}

int dtensor_module_add(struct dtensor_module *module, const char *name,
                       struct dtensor_module *child, struct dtensor_error *err)
{
    int rc = child_check(module, name, child, err);

    if (rc != 0)
        return rc;
    if (!dtn_array_reserve(&module->children, &module->children_capacity,
                           module->nchildren + 1, sizeof child))
        return dtn_fail_nomem(err, "module", sizeof child);
    module->children[module->nchildren++] = child;
    child->parent = module;
    strcpy(child->name, name);
    return 0;
}

int dtensor_module_set(struct dtensor_module *module, const char *name,
                       struct dtensor *t, struct dtensor_error *err)
{
    struct dtn_param *param;

    if (!dtn_module_name_ok(name))
        return name_bad(name, err);
    if (!t || t->spec.mesh->ctx != module->ctx)
        return dtn_fail(err, DTENSOR_EINVAL, "module: %s: %s", name,
                        t ? "a tensor of another context" : "no tensor");
    for (int i = 0; i < module->nparams; i++) {
        param = &module->params[i];
        if (strcmp(param->name, name) != 0)
            continue;
        if (param->tensor != t)
            dtensor_destroy(param->tensor);
        param->tensor = t;
        return 0;
    }
    if (!dtn_array_reserve(&module->params, &module->params_capacity,
                           module->nparams + 1, sizeof *param))
        return dtn_fail_nomem(err, "module", sizeof *param);
    param = &module->params[module->nparams++];
    strcpy(param->name, name);
    param->tensor = t;
    return 0;
}

struct dtensor *dtensor_module_param(const struct dtensor_module *module,
                                     const char *name)
{
    for (int i = 0; i < module->nparams; i++)
        if (strcmp(module->params[i].name, name) == 0)
            return module->params[i].tensor;
    return NULL;
}

struct dtensor *dtensor_module_param_at(const struct dtensor_module *module,
                                        int i, const char **namep)
{
    if (i < 0 || i >= module->nparams)
        return NULL;
    *namep = module->params[i].name;
    return module->params[i].tensor;
}

struct dtensor_module *dtensor_module_child(const struct dtensor_module *module,
                                            int i)
{
    return i < 0 || i >= module->nchildren ? NULL : module->children[i];
}

struct dtensor_module *dtensor_module_parent(const struct dtensor_module *m)
{
    return m->parent;
}

const char *dtensor_module_type(const struct dtensor_module *module)
{
    return module->type;
}

void *dtensor_module_arg(const struct dtensor_module *module)
{
    return module->arg;
}

const struct dtensor_mesh *dtensor_module_mesh(const struct dtensor_module *m)
{
    return m->mesh;
}
