/* place.c - places the parameters of a tree, all of them or none
 *
 * First every parameter gets its new spec.  This may fail, and changes nothing.
 * Then the new tensors are made beside the old ones.  Only when all of them
 * exist do they replace the old ones.  Example: each of 2 ranks holds the whole
 * weight f32[8,4].  It becomes S(0) without a message: each rank keeps 4 of its
 * rows.
 */
#include "module/place.h"
#include "base/array.h"
#include "base/error.h"
#include "layout/spec.h"
#include "mesh/mesh.h"
#include "module/module.h"
#include "tensor/tensor.h"
#include "dtensor.h"

#include <stdlib.h>
#include <string.h>

const char dtn_placed[] = "as it is";

/* One parameter on its way. */
struct moved {
    struct dtensor_module *module; /* that has it                             */
    int param;                     /* its number there                        */
    struct dtensor_spec spec;      /* that it gets                            */
    struct dtensor *made;          /* with that spec; NULL: it stays          */
};

struct moving {
    const struct dtn_placing *placing; /* what is asked                       */
    struct moved *moved;           /* [n]                                     */
    int n, capacity;               /* entries, and room for them              */
};

/* Does this rank hold all elements, if it needs some? */
static bool is_whole(const struct dtensor *t, const struct dtensor_mesh *mesh)
{
    for (int m = 0; m < t->spec.mesh->ndim; m++)
        if (t->spec.placement[m].kind != DTENSOR_REPLICATE)
            return false;
    return t->spec.mesh->group.me >= 0 || mesh->group.me < 0;
}

static int param_failed(const struct dtensor_module *module, int i, int rc,
                        struct dtensor_error *err)
{
    struct dtensor_error inner;
    char path[DTN_PATH_SIZE];

    if (!err)
        return rc;
    inner = *err;
    snprintf(err->text, sizeof err->text, "%.200s: %s: %.*s",
             dtn_module_text(module, path), module->params[i].name,
             (int)(sizeof err->text - 200 - DTENSOR_NAME_MAX - 8), inner.text);
    return rc;
}

int dtn_place_plan(const struct dtensor_module *module, int i,
                   const struct dtn_placing *placing, const char *text,
                   struct dtensor_spec *spec, struct dtensor_error *err)
{
    const struct dtensor_mesh *mesh = placing->mesh;
    const struct dtensor *t = module->params[i].tensor;
    char have[200];
    int rc = 0;

    *spec = t->spec;
    spec->mesh = mesh;
    for (int m = 0; m < mesh->ndim; m++)
        spec->placement[m] =
            (struct dtensor_placement){ .kind = DTENSOR_REPLICATE };
    if (text)
        rc = dtensor_placements_parse(mesh, text, t->spec.ndim,
                                      spec->placement, err);
    if (rc == 0)
        rc = dtensor_spec_normalize(spec, err);
    if (rc == 0 && !is_whole(t, mesh) && !dtn_spec_equal(&t->spec, spec))
        rc = dtn_fail(err, DTENSOR_EINVAL, "it is distributed already: %s "
                      "(expected R on ranks that hold all of it)",
                      dtn_spec_format(&t->spec, have, sizeof have));
    return rc != 0 ? param_failed(module, i, rc, err) : 0;
}

static int module_plan(struct dtensor_module *module, void *arg,
                       struct dtensor_error *err)
{
    struct moving *moving = arg;
    const struct dtn_placing *placing = moving->placing;
    const char *text;
    int rc = 0;

    for (int i = 0; rc == 0 && i < module->nparams; i++) {
        text = placing->choose(module, module->params[i].name, placing->arg);
        if (text == dtn_placed)
            continue;
        if (!dtn_array_reserve(&moving->moved, &moving->capacity,
                               moving->n + 1, sizeof *moving->moved))
            return dtn_fail_nomem(err, "module", sizeof *moving->moved);
        moving->moved[moving->n] = (struct moved){ .module = module,
                                                   .param = i };
        rc = dtn_place_plan(module, i, placing, text,
                            &moving->moved[moving->n++].spec, err);
    }
    return rc;
}

/* Make the new tensor, unless the old one will do. */
static int moved_make(const struct moving *moving, struct moved *moved,
                      struct dtensor_error *err)
{
    const int root = moving->placing->root;
    const struct dtensor *t = moved->module->params[moved->param].tensor;
    bool has = root < 0 || moved->spec.mesh->group.me == root;
    int rc;

    if (dtn_spec_equal(&t->spec, &moved->spec) &&
        (root < 0 || !is_whole(t, moved->spec.mesh)))
        return 0;
    rc = dtensor_distribute(&moved->spec, has ? t->local : NULL, root,
                            &moved->made, err);
    return rc != 0 ? param_failed(moved->module, moved->param, rc, err) : 0;
}

static void moved_commit(struct moved *moved)
{
    struct dtn_param *param = &moved->module->params[moved->param];

    if (!moved->made)
        return;
    dtensor_destroy(param->tensor);
    param->tensor = moved->made;
}

static int module_placed(struct dtensor_module *module, void *arg,
                         struct dtensor_error *err)
{
    if (!module->mesh)
        module->mesh = arg;
    return 0;
}

int dtn_place(struct dtensor_module *top, const struct dtn_placing *placing,
              struct dtensor_error *err)
{
    struct moving moving = { .placing = placing };
    int rc = dtensor_module_walk(top, module_plan, &moving, err);

    for (int i = 0; rc == 0 && i < moving.n; i++)
        rc = moved_make(&moving, &moving.moved[i], err);
    for (int i = 0; i < moving.n; i++)
        if (rc == 0)
            moved_commit(&moving.moved[i]);
        else
            dtensor_destroy(moving.moved[i].made);
    if (rc == 0)
        rc = dtensor_module_walk(top, module_placed, (void *)placing->mesh,
                                 err);
    free(moving.moved);
    return rc;
}

int dtn_place_mesh(const struct dtensor_module *top,
                   const struct dtensor_mesh *mesh,
                   const struct dtensor_mesh **meshp,
                   struct dtensor_error *err)
{
    int rc = mesh ? 0 : dtensor_mesh_current(top->ctx, &mesh, err);

    if (rc == 0 && mesh->ctx != top->ctx)
        rc = dtn_fail(err, DTENSOR_EINVAL, "module: a mesh of another context");
    if (rc == 0)
        *meshp = mesh;
    return rc;
}
