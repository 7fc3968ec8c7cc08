/* module_json.c - what each module of a plan moves, for programs */
#include "config.h"
#include "tools/plan/model.h"

#ifdef HAVE_JANSSON
#include <jansson.h>

static json_t *json_spec(const struct dtensor_spec *spec)
{
    json_t *shape = json_array();
    char text[400];

    for (int d = 0; d < spec->ndim; d++)
        json_array_append_new(shape, json_integer((json_int_t)spec->shape[d]));
    dtensor_placements_format(spec->mesh, spec->placement, text, sizeof text);
    return json_pack("{so ss ss}", "shape", shape, "dtype",
                     dtensor_dtype_name(spec->dtype), "placements", text);
}

static void json_move(const struct plan_move *move, json_t *list)
{
    struct dtensor_plan_info info;
    struct dtensor_plan_step step;

    dtensor_plan_info(move->plan, &info);
    for (int i = 0; i < info.nsteps; i++)
        if (dtensor_plan_step(move->plan, i, &step, NULL) == 0)
            json_array_append_new(list, json_pack("{ss ss so so sI sf}",
                "of", move->of, "what", step.what,
                "from", json_spec(&step.src), "to", json_spec(&step.dst),
                "bytes", (json_int_t)dtensor_plan_bytes(move->plan, i, -1, -1),
                "predicted_us", step.predicted_us));
}

static int json_unit(struct dtensor_module *module, void *arg,
                     struct dtensor_error *err)
{
    const struct plan_unit *unit = dtensor_module_arg(module);
    json_t *moves = json_array(), *params = json_object(), *one;

    (void)err;
    for (int i = 0; i < unit->nparams; i++)
        json_object_set_new(params, unit->param_name[i],
                            json_spec(&unit->param[i]));
    for (int i = 0; i < unit->nmoves; i++)
        json_move(&unit->move[i], moves);
    one = json_pack("{ss ss so so so sb sf}", "path", unit->path,
                    "type", dtensor_module_type(module), "parameters", params,
                    "output", json_spec(&unit->out), "moves", moves,
                    "reduces", unit->reduces != 0,
                    "reduces_us", unit->reduces_us);
    json_object_set_new(one, "style", unit->style[0]
                        ? json_string(unit->style) : json_null());
    json_array_append_new(arg, one);
    return 0;
}

int plan_model_json(const struct plan_model *model, FILE *stream)
{
    json_t *modules = json_array(), *totals = json_array(), *root;
    int failed;

    dtensor_module_walk(model->top, json_unit, modules, NULL);
    for (int i = 0; i < model->nkinds; i++)
        json_array_append_new(totals, json_pack("{ss si sI sf}",
            "what", model->total[i].what, "calls", model->total[i].calls,
            "bytes", (json_int_t)model->total[i].bytes,
            "predicted_us", model->total[i].us));
    root = json_pack("{si ss ss si so so so}", "schema", 1,
                     "version", dtensor_version(), "plan", model->plan,
                     "ranks", dtensor_mesh_size(model->mesh),
                     "input", json_spec(&model->in), "modules", modules,
                     "totals", totals);
    failed = json_dumpf(root, stream, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    fputc('\n', stream);
    json_decref(root);
    return failed ? PLAN_BAD : PLAN_GOOD;
}

#else

int plan_model_json(const struct plan_model *model, FILE *stream)
{
    (void)model;
    (void)stream;
    return PLAN_BAD;                 /* options.c has refused --json before */
}
#endif
