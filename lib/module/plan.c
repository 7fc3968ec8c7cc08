/* plan.c - applies the styles of a plan in the cluster file
 *
 * [plan "mlp"] is the same list of patterns and styles that a program can pass
 * as an array.  It may also name the mesh, and the mesh dimension along which
 * the model is parallelized.
 */
#include "base/error.h"
#include "cluster/cluster.h"
#include "cluster/plan.h"
#include "job/ctx.h"
#include "module/module.h"
#include "module/parallel.h"
#include "module/place.h"
#include "module/style.h"
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

    if (plan->mesh < 0 && dtensor_mesh_current(ctx, meshp, NULL) < 0)
        return dtn_fail(err, DTENSOR_EINVAL, "plan %s: it names no mesh, and "
                        "none was given (choose one, or set mesh = NAME in "
                        "%.200s)", plan->name, ctx->world.cluster->path);
    if (plan->mesh < 0)
        return 0;
    def = &ctx->world.cluster->meshes[plan->mesh];
    rc = dtensor_mesh_find(ctx, def->name, meshp, err);
    if (rc == 0 && def->ndim > 1)
        rc = dtensor_mesh_slice(*meshp, def->dim_name[plan->dim], meshp, err);
    return rc;
}

/* The plan of that name, and the mesh if the program gives none. */
static int plan_find(const struct dtensor_module *module, const char *plan,
                     const struct dtn_plan_def **defp,
                     const struct dtensor_mesh **meshp,
                     struct dtensor_error *err)
{
    const struct dtensor_cluster *cluster = module->ctx->world.cluster;

    if (!plan)
        return dtn_fail(err, DTENSOR_EINVAL, "plan: no name (expected that of "
                        "a [plan] section)");
    *defp = dtn_plan_find(cluster, plan);
    if (!*defp)
        return plan_unknown(cluster, plan, err);
    return *meshp ? 0 : plan_mesh(module->ctx, *defp, meshp, err);
}

int dtensor_parallelize_plan(struct dtensor_module *module,
                             const struct dtensor_mesh *mesh, const char *plan,
                             int root, struct dtensor_error *err)
{
    const struct dtn_plan_def *def = NULL;
    int rc = plan_find(module, plan, &def, &mesh, err);

    return rc != 0 ? rc : dtensor_parallelize(module, mesh, def->n, def->style,
                                              root, err);
}

/* ---------------------------------------------------------------- check --- */

struct checking {
    const struct dtensor_cluster *cluster;
    const struct dtn_plan_def *def;   /* that is checked                      */
    struct dtn_placing placing;       /* of parameters                        */
    int entry;                        /* of the plan                          */
    dtensor_report_f *report;         /* the program's, or NULL               */
    void *arg;                        /* its argument                         */
    struct dtensor_error first;       /* what was told first; code 0: nothing */
};

/* The entry does not fit: tell. */
static void entry_tell(struct checking *checking,
                       const struct dtensor_error *why)
{
    const char *pattern = checking->def->style[checking->entry].pattern;
    struct dtensor_error told;

    dtn_fail(&told, why->code, "%.200s:%d: error: %.60s: %.220s",
             checking->cluster->path, checking->def->line[checking->entry],
             *pattern ? pattern : ".", why->text);
    if (checking->first.code == 0)
        checking->first = told;
    if (checking->report)
        checking->report(told.text, checking->arg);
}

/* Can the parameters of the module have the placements of its style? */
static int params_check(struct dtensor_module *module, void *arg,
                        struct dtensor_error *why)
{
    const struct checking *checking = arg;
    struct dtensor_spec spec;
    const char *text;
    int rc;

    if (!module->styled || module->styled->pattern !=
                           checking->def->style[checking->entry].pattern)
        return 0;
    rc = dtn_style_lacks(module, why);
    for (int i = 0; rc == 0 && i < module->nparams; i++) {
        text = dtn_style_choose(module, module->params[i].name, NULL);
        rc = dtn_place_plan(module, i, &checking->placing, text, &spec, why);
    }
    return rc;
}

static void entry_check(struct checking *checking, struct dtensor_module *top)
{
    struct dtensor_error why;
    int rc = dtn_entry_match(top, &checking->def->style[checking->entry],
                             checking->placing.mesh, &why);

    if (rc == 0)
        rc = dtensor_module_walk(top, params_check, checking, &why);
    if (rc != 0)
        entry_tell(checking, &why);
}

/* The entry that follows that of `line` in the file; -1: none.  Entries are
 * sorted by their patterns.
 */
static int entry_behind(const struct dtn_plan_def *def, int line)
{
    int found = -1;

    for (int i = 0; i < def->n; i++)
        if (def->line[i] > line &&
            (found < 0 || def->line[i] < def->line[found]))
            found = i;
    return found;
}

int dtensor_parallelize_check(struct dtensor_module *module,
                              const struct dtensor_mesh *mesh,
                              const char *plan, dtensor_report_f *report,
                              void *arg, struct dtensor_error *err)
{
    struct checking checking = { .cluster = module->ctx->world.cluster,
                                 .report = report, .arg = arg };
    int rc = plan_find(module, plan, &checking.def, &mesh, err);

    if (rc == 0)
        rc = dtn_parallel_mesh(mesh, err);
    if (rc != 0)
        return rc;
    checking.placing.mesh = mesh;
    checking.entry = entry_behind(checking.def, 0);
    while (checking.entry >= 0) {
        entry_check(&checking, module);
        checking.entry = entry_behind(checking.def,
                                      checking.def->line[checking.entry]);
    }
    dtensor_module_walk(module, dtn_style_take_back, NULL, NULL);
    if (checking.first.code != 0 && err)
        *err = checking.first;
    return checking.first.code;
}
