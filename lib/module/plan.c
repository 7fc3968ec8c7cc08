/* plan.c - styles from the plan of a cluster file
 *
 * [plan "mlp"] is the same list of patterns and styles that a program can give
 * as an array; it may also name the mesh, and the dimension of it along which
 * the model is cut.
 */
#include "base/error.h"
#include "cluster/cluster.h"
#include "cluster/plan.h"
#include "job/ctx.h"
#include "module/module.h"
#include "dtensor.h"

static int plan_unknown(const struct dtensor_cluster *cluster, const char *name,
                        struct dtensor_error *err)
{
    const char *known[64] = { NULL };
    char advice[200];

    for (int i = 0; i < cluster->nplans && i < 63; i++)
        known[i] = cluster->plans[i].name;
    if (!known[0])
        snprintf(advice, sizeof advice, "it has no [plan] section");
    else
        dtensor_advise(name, known, NULL, advice, sizeof advice);
    return dtn_fail(err, DTENSOR_EINVAL, "plan: %.200s has no plan \"%.40s\" "
                    "(%s)", cluster->path, name, advice);
}

/* The mesh that the plan names, cut to its dimension; the one entered last if
 * it names none.
 */
static int plan_mesh(struct dtensor_ctx *ctx, const struct dtn_plan_def *plan,
                     const struct dtensor_mesh **meshp,
                     struct dtensor_error *err)
{
    const struct dtn_mesh_def *def;
    int rc;

    if (plan->mesh < 0)
        return dtensor_mesh_current(ctx, meshp, err);
    def = &ctx->world.cluster->meshes[plan->mesh];
    rc = dtensor_mesh_find(ctx, def->name, meshp, err);
    if (rc == 0 && def->ndim > 1)
        rc = dtensor_mesh_slice(*meshp, def->dim_name[plan->dim], meshp, err);
    return rc;
}

int dtensor_parallelize_plan(struct dtensor_module *module,
                             const struct dtensor_mesh *mesh, const char *plan,
                             int root, struct dtensor_error *err)
{
    const struct dtensor_cluster *cluster = module->ctx->world.cluster;
    const struct dtn_plan_def *def;
    int rc = 0;

    if (!plan)
        return dtn_fail(err, DTENSOR_EINVAL, "plan: no name (expected that of "
                        "a [plan] section)");
    def = dtn_plan_find(cluster, plan);
    if (!def)
        return plan_unknown(cluster, plan, err);
    if (!mesh)
        rc = plan_mesh(module->ctx, def, &mesh, err);
    return rc != 0 ? rc : dtensor_parallelize(module, mesh, def->n, def->style,
                                              root, err);
}
