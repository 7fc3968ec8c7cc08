/* module.c - what each module of a plan moves, before the job runs
 *
 * The model is called, and differentiated, while the library counts: its
 * tensors have no elements, so nothing is computed or sent, but each
 * redistribute is planned and counted as in a run.
 */
#include "tools/plan/model.h"

#include <inttypes.h>
#include <string.h>

/* ------------------------------------------------------------------ run --- */

static int watch(struct dtensor_module *module, void *tape,
                 struct dtensor_error *err)
{
    struct dtensor *t;
    const char *name;
    int rc = 0;

    for (int i = 0; rc == 0 && (t = dtensor_module_param_at(module, i, &name));
         i++)
        rc = dtensor_tape_watch(tape, t, err);
    return rc;
}

static int model_watch(struct plan_model *model, struct dtensor_error *err)
{
    int rc = dtensor_tape_create(model->ctx, &model->tape, err);

    if (rc == 0)
        rc = dtensor_module_walk(model->top, watch, model->tape, err);
    if (rc == 0 && !model->constant)
        rc = dtensor_tape_watch(model->tape, model->in, err);
    return rc == 0 ? dtensor_tape_begin(model->tape, err) : rc;
}

/* The backward, of a gradient that lies as the output. */
static int model_back(struct plan_model *model, const struct dtensor *out,
                      struct dtensor_error *err)
{
    struct dtensor_spec spec = *dtensor_spec_of(out);
    struct dtensor *grad = NULL;
    int rc;

    for (int m = 0; m < dtensor_mesh_ndim(spec.mesh); m++)
        if (spec.placement[m].kind == DTENSOR_PARTIAL)
            spec.placement[m].kind = DTENSOR_REPLICATE;
    rc = dtensor_zeros(&spec, &grad, err);
    if (rc == 0)
        rc = dtensor_tape_backward(model->tape, out, grad, err);
    dtensor_destroy(grad);
    return rc;
}

/* What the backward of a module needs, before it is let go of. */
static int unit_keep(struct dtensor_module *module, void *tape,
                     struct dtensor_error *err)
{
    struct plan_unit *unit = dtensor_module_arg(module);
    const bool top = !dtensor_module_parent(module);

    return dtensor_tape_bytes(tape, top ? NULL : unit->path, &unit->kept, err);
}

/* Call it and differentiate it, with counters. */
static int model_run(struct plan_model *model)
{
    const struct dtensor_debug_options room = {
        .scopes = model->nunits + 16, .lines = 64 * model->nunits + 64,
        .events = -1 };
    struct plan_unit *top = dtensor_module_arg(model->top);
    struct dtensor *out = NULL;
    struct dtensor_error err;
    int rc = model_watch(model, &err);

    if (rc == 0)
        rc = dtensor_debug_begin(model->ctx, &room, &err);
    if (rc == 0)
        rc = dtensor_module_apply(model->top, "", model->in, &out, &err);
    if (rc == 0) {
        top->out = *dtensor_spec_of(out);
        rc = dtensor_module_walk(model->top, unit_keep, model->tape, &err);
    }
    if (rc == 0 && (!model->constant || plan_param_bytes(model) > 0))
        rc = model_back(model, out, &err);
    dtensor_destroy(out);
    return rc == 0 ? PLAN_GOOD : plan_model_say(NULL, &err);
}

/* ----------------------------------------------------------------- text --- */

/* "    forward  all-gather  f32[8,4](S(0)) -> f32[8,4](R)  512 bytes  9 us" */
static void moves_print(const struct plan_model *model, const char *scope,
                        const char *head, FILE *stream)
{
    struct dtensor_debug_line line;

    for (int i = 0; plan_move_next(model, scope, &i, &line); head = "")
        fprintf(stream, "%s    %-8s %-14s %s%s%" PRIu64 " bytes  %.2f us  "
                "%s\n", head, plan_direction_name(line.direction),
                plan_kind_name(line.kind),
                line.tensors, line.tensors[0] ? "  " : "",
                line.count.predicted_bytes, line.count.predicted_ns / 1000,
                line.why ? line.why : "the operator reduces");
}

struct printing {
    const struct plan_model *model;
    FILE *stream;
};

/* "up: linear  weight f32[..](S(0))  (colwise)", and its moves. */
static int unit_print(struct dtensor_module *module, void *arg,
                      struct dtensor_error *err)
{
    const struct plan_unit *unit = dtensor_module_arg(module);
    const char *style = dtensor_module_style(module), *name;
    const struct printing *to = arg;
    const struct dtensor *t;
    char text[200];

    (void)err;
    fprintf(to->stream, "%s: %s", unit->path, dtensor_module_type(module));
    for (int i = 0; (t = dtensor_module_param_at(module, i, &name)); i++) {
        dtensor_spec_format(dtensor_spec_of(t), text, sizeof text);
        fprintf(to->stream, "  %s %s", name, text);
    }
    dtensor_spec_format(&unit->out, text, sizeof text);
    fprintf(to->stream, "  gives %s", text);
    if (style)
        fprintf(to->stream, "  (%.*s)", (int)strcspn(style, " "), style);
    fputc('\n', to->stream);
    if (unit->kept > 0 && dtensor_module_parent(module))
        fprintf(to->stream, "    keeps    %" PRIu64 " bytes\n", unit->kept);
    moves_print(to->model, plan_scope_of(module), "", to->stream);
    return 0;
}

static void totals_print(const struct plan_model *model, FILE *stream)
{
    struct dtensor_debug_count count;
    int some = 0;

    for (int d = 0; d < DTENSOR_NDIRECTIONS; d++)
        for (int k = 0; k < DTENSOR_DEBUG_NKINDS; k++) {
            if (dtensor_debug_counts(model->ctx, NULL,
                                     (enum dtensor_direction)d, k, &count,
                                     NULL) != 0 || count.calls == 0)
                continue;
            some++;
            fprintf(stream, "total %s %s: %" PRIu64 ", %" PRIu64 " bytes, "
                    "%.2f us\n", plan_direction_name(
                    (enum dtensor_direction)d), plan_kind_name(k), count.calls,
                    count.predicted_bytes, count.predicted_ns / 1000);
        }
    if (some == 0)
        fputs("total: nothing is sent\n", stream);
}

static int model_print(const struct plan_model *model, FILE *stream)
{
    const struct plan_unit *top = dtensor_module_arg(model->top);
    struct printing to = { model, stream };
    char mesh[200], in[200];

    dtensor_mesh_format(model->mesh, mesh, sizeof mesh);
    dtensor_spec_format(dtensor_spec_of(model->in), in, sizeof in);
    fprintf(stream, "plan %s on %s, input %s%s\n", model->plan, mesh, in,
            model->constant ? " without a gradient" : "");
    dtensor_module_walk(model->top, unit_print, &to, NULL);
    moves_print(model, "all", "gradients of parameters\n", stream);
    totals_print(model, stream);
    fprintf(stream, "memory of a rank: %" PRIu64 " bytes of parameters, %"
            PRIu64 " bytes kept for the backward\n", plan_param_bytes(model),
            top->kept);
    return PLAN_GOOD;
}

int plan_module(const struct plan_job *job, const struct plan_options *opt,
                FILE *stream)
{
    struct plan_model model;
    int status = plan_model_open(job, opt, &model);

    if (status == PLAN_GOOD)
        status = model_run(&model);
    if (status == PLAN_GOOD)
        status = opt->json ? plan_model_json(&model, stream)
                           : model_print(&model, stream);
    plan_model_close(&model);
    return status;
}
