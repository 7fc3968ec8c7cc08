/* distribute.c - distributes a tree by a function that chooses placements
 *
 * The function is called for each parameter.  If it chooses no placements for a
 * parameter, each rank of the mesh holds the whole parameter.
 */
#include "base/error.h"
#include "mesh/mesh.h"
#include "module/module.h"
#include "module/place.h"
#include "dtensor.h"

static const char *partition_choose(const struct dtensor_module *module,
                                    const char *param, void *arg)
{
    const struct dtensor_distribution *how = arg;

    return how->partition ? how->partition(module, param, how->arg) : NULL;
}

static int not_distributed(struct dtensor_module *module, void *arg,
                           struct dtensor_error *err)
{
    char path[DTN_PATH_SIZE], mesh[128];

    if (!module->mesh)
        return 0;
    return dtn_fail(err, DTENSOR_EINVAL, "module: %.200s is distributed "
                    "already, over %s (distribute a tree once)",
                    dtn_module_text(module, path),
                    dtn_mesh_format(module->mesh, mesh, sizeof mesh));
}

/* Add the hooks; nothing can fail after the parameters have their places. */
static int hooks_add(struct dtensor_module *module,
                     const struct dtensor_distribution *how,
                     struct dtensor_error *err)
{
    int rc = 0;

    if (how->input)
        rc = dtensor_module_on_input(module, how->input, how->arg, err);
    if (rc == 0 && how->output) {
        rc = dtensor_module_on_output(module, how->output, how->arg, err);
        if (rc != 0 && how->input)
            module->nhooks[DTN_SIDE_INPUT]--;
    }
    return rc;
}

static void hooks_remove(struct dtensor_module *module,
                         const struct dtensor_distribution *how)
{
    module->nhooks[DTN_SIDE_INPUT] -= how->input ? 1 : 0;
    module->nhooks[DTN_SIDE_OUTPUT] -= how->output ? 1 : 0;
}

int dtensor_distribute_module(struct dtensor_module *module,
                              const struct dtensor_mesh *mesh,
                              const struct dtensor_distribution *how,
                              struct dtensor_error *err)
{
    static const struct dtensor_distribution none = { .root = -1 };
    struct dtn_placing placing = { .choose = partition_choose };
    int rc = dtn_place_mesh(module, mesh, &placing.mesh, err);

    how = how ? how : &none;
    placing.root = how->root;
    placing.arg = (void *)how;
    if (rc == 0)
        rc = dtensor_module_walk(module, not_distributed, NULL, err);
    if (rc == 0)
        rc = hooks_add(module, how, err);
    if (rc != 0)
        return rc;
    rc = dtn_place(module, &placing, err);
    if (rc != 0)
        hooks_remove(module, how);
    return rc;
}
