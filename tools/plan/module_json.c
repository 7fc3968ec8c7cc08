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

static json_t *json_moves(const struct plan_model *model, const char *scope)
{
    json_t *list = json_array();
    struct dtensor_debug_line line;

    for (int i = 0; plan_move_next(model, scope, &i, &line);)
        json_array_append_new(list, json_pack("{ss ss ss ss si ss sI sI sf}",
            "direction", plan_direction_name(line.direction),
            "what", plan_kind_name(line.kind), "tensors", line.tensors,
            "for", line.op, "operand", line.operand,
            "why", line.why ? line.why : "the operator reduces",
            "calls", (json_int_t)line.count.calls,
            "bytes", (json_int_t)line.count.predicted_bytes,
            "predicted_us", line.count.predicted_ns / 1000));
    return list;
}

struct listing {
    const struct plan_model *model;
    json_t *modules;
};

static int json_unit(struct dtensor_module *module, void *arg,
                     struct dtensor_error *err)
{
    const struct plan_unit *unit = dtensor_module_arg(module);
    const char *style = dtensor_module_style(module), *name;
    json_t *params = json_object(), *one;
    struct listing *listing = arg;
    const struct dtensor *t;

    (void)err;
    for (int i = 0; (t = dtensor_module_param_at(module, i, &name)); i++)
        json_object_set_new(params, name, json_spec(dtensor_spec_of(t)));
    one = json_pack("{ss ss so so so sI}", "path", unit->path,
                    "type", dtensor_module_type(module), "parameters", params,
                    "output", json_spec(&unit->out), "moves",
                    json_moves(listing->model, plan_scope_of(module)),
                    "kept_bytes", (json_int_t)unit->kept);
    json_object_set_new(one, "style", style ? json_string(style)
                                            : json_null());
    json_array_append_new(listing->modules, one);
    return 0;
}

static json_t *json_totals(const struct plan_model *model)
{
    json_t *totals = json_array();
    struct dtensor_debug_count count;

    for (int d = 0; d < DTENSOR_NDIRECTIONS; d++)
        for (int k = 0; k < DTENSOR_DEBUG_NKINDS; k++) {
            if (dtensor_debug_counts(model->ctx, NULL,
                                     (enum dtensor_direction)d, k, &count,
                                     NULL) != 0 || count.calls == 0)
                continue;
            json_array_append_new(totals, json_pack("{ss ss sI sI sf}",
                "direction", plan_direction_name((enum dtensor_direction)d),
                "what", plan_kind_name(k), "calls", (json_int_t)count.calls,
                "bytes", (json_int_t)count.predicted_bytes,
                "predicted_us", count.predicted_ns / 1000));
        }
    return totals;
}

int plan_model_json(const struct plan_model *model, FILE *stream)
{
    struct listing listing = { model, json_array() };
    const struct plan_unit *top = dtensor_module_arg(model->top);
    json_t *root;
    int failed;

    dtensor_module_walk(model->top, json_unit, &listing, NULL);
    root = json_pack("{si ss ss si so sb so so so sI sI}", "schema", 2,
                     "version", dtensor_version(), "plan", model->plan,
                     "ranks", dtensor_mesh_size(model->mesh),
                     "input", json_spec(dtensor_spec_of(model->in)),
                     "input_gradient", !model->constant,
                     "modules", listing.modules,
                     "gradients", json_moves(model, "all"),
                     "totals", json_totals(model),
                     "parameter_bytes", (json_int_t)plan_param_bytes(model),
                     "kept_bytes", (json_int_t)top->kept);
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
