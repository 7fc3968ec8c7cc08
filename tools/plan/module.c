/* module.c - what each module of a plan moves, before the job runs
 *
 * A tensor that exists only as a spec goes through the model: the style of a
 * module brings it to a layout, its operator says how it wants its inputs and
 * how the output will lie, the style brings that to a layout.  Each change is
 * planned by the library, as in a run, and nothing is sent.
 */
#include "tools/plan/model.h"

#include <inttypes.h>
#include <string.h>

/* ---------------------------------------------------------------- moves --- */

static struct plan_total *total_of(struct plan_model *model, const char *what)
{
    int i = 0;

    while (i < model->nkinds && strcmp(model->total[i].what, what) != 0)
        i++;
    if (i == model->nkinds && i < PLAN_KINDS)
        model->total[model->nkinds++].what = what;
    return &model->total[i < PLAN_KINDS ? i : PLAN_KINDS - 1];
}

/* The kind of a change along the one mesh dimension, as dtensor_debug_counts()
 * names it; NULL: each rank does it alone.
 */
static const char *change_kind(const struct dtensor_spec *from,
                               const struct dtensor_spec *to)
{
    const enum dtensor_placement_kind old = from->placement[0].kind;
    const enum dtensor_placement_kind new = to->placement[0].kind;

    if (old == DTENSOR_REPLICATE)
        return NULL;
    if (old == DTENSOR_PARTIAL)
        return new == DTENSOR_REPLICATE || new == DTENSOR_PARTIAL
             ? "allreduce" : "reduce-scatter";
    return new == DTENSOR_REPLICATE ? "all-gather" : "all-to-all";
}

/* A redistribute counts once, by what it changes: a small reduce-scatter may be
 * an allreduce, of which each rank takes its part.
 */
static void total_add(struct plan_model *model, const struct dtensor_plan *plan,
                      const struct dtensor_spec *from,
                      const struct dtensor_spec *to)
{
    const uint64_t bytes = dtensor_plan_bytes(plan, -1, -1, -1);
    const char *kind = change_kind(from, to);
    struct dtensor_plan_info info;
    struct plan_total *total;

    if (!kind || bytes == 0)
        return;
    dtensor_plan_info(plan, &info);
    total = total_of(model, kind);
    total->calls++;
    total->bytes += bytes;
    total->us += info.predicted_us;
}

/* Plan to bring a tensor from one spec to another; nothing if it lies so. */
static int move_add(struct plan_model *model, struct plan_unit *unit,
                    const char *of, const struct dtensor_spec *from,
                    const struct dtensor_spec *to, double *usp,
                    struct dtensor_error *err)
{
    struct plan_move *move = &unit->move[unit->nmoves];
    struct dtensor_plan_info info;
    int rc = dtensor_plan_create(from, to, NULL, &move->plan, err);

    if (rc != 0)
        return rc;
    dtensor_plan_info(move->plan, &info);
    *usp += info.predicted_us;
    if (info.nsteps == 0 || unit->nmoves == PLAN_MOVES - 1) {
        dtensor_plan_destroy(move->plan);
        return 0;
    }
    move->of = of;
    unit->nmoves++;
    total_add(model, move->plan, from, to);
    return 0;
}

/* Bring a tensor to the layout of a style. */
static int style_bring(struct plan_model *model,
                       const struct dtensor_module *module, int output,
                       struct dtensor_spec *spec, struct dtensor_error *err)
{
    const char *layout = dtensor_module_layout(module, output, 0);
    const struct dtensor_spec from = *spec;
    double us = 0;
    int rc;

    if (!layout)
        return 0;
    rc = dtensor_placements_parse(spec->mesh, layout, spec->ndim,
                                  spec->placement, err);
    if (rc == 0)
        rc = dtensor_spec_normalize(spec, err);
    return rc != 0 ? rc : move_add(model, dtensor_module_arg(module),
                                 output ? "output" : "input", &from, spec,
                                 &us, err);
}

/* ---------------------------------------------------------------- calls --- */

enum { OUTPUTS = 16 };            /* most that an operator has here           */

/* Run the operator of a module on the spec, which becomes its first output. */
static int unit_infer(struct plan_model *model, struct plan_unit *unit,
                      const char *type, struct dtensor_spec *spec,
                      struct dtensor_error *err)
{
    const bool last = strcmp(type, "embedding") == 0;
    struct dtensor_spec in[PLAN_PARAMS + 1], want[PLAN_PARAMS + 1];
    struct dtensor_spec out[OUTPUTS];
    const char *name[PLAN_PARAMS + 1];
    const struct dtensor_op_call call = { .op = type, .nin = unit->nparams + 1,
                                          .in = in, .args = unit->args };
    struct dtensor_op_info info;
    double us = 0;
    int rc;

    for (int i = 0; i < unit->nparams; i++) {
        in[i + !last] = unit->param[i];
        name[i + !last] = unit->param_name[i];
    }
    in[last ? unit->nparams : 0] = *spec;
    name[last ? unit->nparams : 0] = "input";
    rc = dtensor_op_infer(&call, want, OUTPUTS, out, &info, err);
    for (int i = 0; rc == 0 && i < call.nin; i++)
        rc = move_add(model, unit, name[i], &in[i], &want[i], &us, err);
    if (rc != 0)
        return rc;
    unit->reduces = info.reduces;
    if (info.reduces && info.predicted_us > us)
        unit->reduces_us = info.predicted_us - us;
    *spec = out[0];
    return 0;
}

static int module_run(struct plan_model *model, struct dtensor_module *module,
                      struct dtensor_spec *spec)
{
    struct plan_unit *unit = dtensor_module_arg(module);
    const char *type = dtensor_module_type(module);
    struct dtensor_module *child = dtensor_module_child(module, 0);
    struct dtensor_error err;

    if (style_bring(model, module, 0, spec, &err) != 0)
        return plan_model_say(unit->path, &err);
    if (!child && unit_infer(model, unit, type, spec, &err) != 0)
        return plan_model_say(unit->path, &err);
    for (int i = 0; (child = dtensor_module_child(module, i)); i++)
        if (module_run(model, child, spec) != PLAN_GOOD)
            return PLAN_BAD;
    if (style_bring(model, module, 1, spec, &err) != 0)
        return plan_model_say(unit->path, &err);
    unit->out = *spec;
    return PLAN_GOOD;
}

/* ----------------------------------------------------------------- text --- */

static int move_print(const struct plan_move *move, FILE *stream,
                      struct dtensor_error *err)
{
    char from[200], to[200];
    struct dtensor_plan_info info;
    struct dtensor_plan_step step;
    int rc = 0;

    dtensor_plan_info(move->plan, &info);
    for (int i = 0; rc == 0 && i < info.nsteps; i++) {
        rc = dtensor_plan_step(move->plan, i, &step, err);
        if (rc != 0)
            break;
        dtensor_spec_format(&step.src, from, sizeof from);
        dtensor_placements_format(step.dst.mesh, step.dst.placement, to,
                                  sizeof to);
        fprintf(stream, "    %-7s %-14s %s -> %s  %" PRIu64 " bytes  %.2f us\n",
                move->of, step.what, from, to,
                dtensor_plan_bytes(move->plan, i, -1, -1), step.predicted_us);
    }
    return rc;
}

/* "up: linear  weight f32[..](S(0))  (colwise)", and its moves. */
static int unit_print(struct dtensor_module *module, void *arg,
                      struct dtensor_error *err)
{
    const struct plan_unit *unit = dtensor_module_arg(module);
    FILE *stream = arg;
    char text[200];
    int rc = 0;

    fprintf(stream, "%s: %s", unit->path, dtensor_module_type(module));
    for (int i = 0; i < unit->nparams; i++) {
        dtensor_spec_format(&unit->param[i], text, sizeof text);
        fprintf(stream, "  %s %s", unit->param_name[i], text);
    }
    dtensor_spec_format(&unit->out, text, sizeof text);
    fprintf(stream, "  gives %s", text);
    if (unit->style[0])
        fprintf(stream, "  (%s)", unit->style);
    fputc('\n', stream);
    for (int i = 0; rc == 0 && i < unit->nmoves; i++)
        rc = move_print(&unit->move[i], stream, err);
    if (unit->reduces)
        fprintf(stream, "    reduces over the ranks by itself  %.2f us\n",
                unit->reduces_us);
    return rc;
}

static int model_print(const struct plan_model *model, FILE *stream)
{
    struct dtensor_error err;
    char mesh[200], in[200];

    dtensor_mesh_format(model->mesh, mesh, sizeof mesh);
    dtensor_spec_format(&model->in, in, sizeof in);
    fprintf(stream, "plan %s on %s, forward of %s\n", model->plan, mesh, in);
    if (dtensor_module_walk(model->top, unit_print, stream, &err) != 0)
        return plan_model_say(NULL, &err);
    for (int i = 0; i < model->nkinds; i++)
        fprintf(stream, "total %s: %d, %" PRIu64 " bytes, %.2f us\n",
                model->total[i].what, model->total[i].calls,
                model->total[i].bytes, model->total[i].us);
    if (model->nkinds == 0)
        fputs("total: no redistribute sends anything\n", stream);
    return PLAN_GOOD;
}

int plan_module(const struct plan_job *job, const struct plan_options *opt,
                FILE *stream)
{
    struct dtensor_spec spec;
    struct plan_model model;
    int status = plan_model_open(job, opt, &model);

    if (status == PLAN_GOOD) {
        spec = model.in;
        status = module_run(&model, model.top, &spec);
    }
    if (status == PLAN_GOOD)
        status = opt->json ? plan_model_json(&model, stream)
                           : model_print(&model, stream);
    plan_model_close(&model);
    return status;
}
