/* call.c - calls a module, with its hooks
 *
 * The tensors of a call pass through stages: the hooks on the inputs, the
 * forward function, the hooks on the outputs.  A hook may replace a tensor by
 * another one. A tensor that a stage made is destroyed when no later stage
 * reads it: an input that a hook made is destroyed after the forward function,
 * an output as soon as a hook has replaced it.
 */
#include "base/array.h"
#include "base/error.h"
#include "job/ctx.h"
#include "job/watcher.h"
#include "module/module.h"
#include "tensor/recorder.h"
#include "dtensor.h"

#include <string.h>

enum { TENSORS_MAX = 16 };

/* The inputs, or the outputs, of a call. */
struct tensors {
    int n;                                   /* entries of the arrays         */
    const struct dtensor *now[TENSORS_MAX];  /* what the next stage gets      */
    struct dtensor *made[TENSORS_MAX];       /* the same, or NULL: the        */
                                             /* caller's                      */
};

static void tensors_drop(struct tensors *tensors)
{
    for (int i = 0; i < tensors->n; i++)
        dtensor_destroy(tensors->made[i]);
}

/* May `made` stand in the place of `was`? */
static int made_check(const struct dtensor_module *module, const char *side,
                      int i, const struct dtensor *was,
                      const struct dtensor *made, struct dtensor_error *err)
{
    const struct dtensor_spec *a = dtensor_spec_of(was);
    const struct dtensor_spec *b = dtensor_spec_of(made);
    char old[128], new[128];

    if (dtensor_is_same_size(was, made) && a->dtype == b->dtype)
        return 0;
    dtensor_spec_format(a, old, sizeof old);
    dtensor_spec_format(b, new, sizeof new);
    return dtn_fail(err, DTENSOR_EINVAL, "module %s: a hook replaced %s %d, "
                    "%s, by %s (shape and dtype must stay)", module->type,
                    side, i, old, new);
}

/* Run one hook; on failure the tensors are as before. */
static int hook_run(struct dtensor_module *module, const struct dtn_hook *hook,
                    enum dtn_side side, struct tensors *tensors,
                    struct dtensor_error *err)
{
    struct dtensor *made[TENSORS_MAX] = { NULL };
    const struct dtensor_hook call = { module, hook->arg, tensors->n,
                                       tensors->now, made };
    struct dtensor_error none, *why = dtn_error_ready(err, &none);
    int rc = dtn_fail_program(why, hook->fn(&call, why), "module %s: a hook",
                              module->type);

    for (int i = 0; rc == 0 && i < tensors->n; i++)
        if (made[i])
            rc = made_check(module, side == DTN_SIDE_INPUT ? "input" : "output",
                            i, tensors->now[i], made[i], err);
    for (int i = 0; i < tensors->n; i++) {
        if (!made[i] || made[i] == tensors->now[i])
            continue;
        if (rc != 0) {
            dtensor_destroy(made[i]);
            continue;
        }
        dtensor_destroy(tensors->made[i]);
        tensors->now[i] = tensors->made[i] = made[i];
    }
    return rc;
}

static int hooks_run(struct dtensor_module *module, enum dtn_side side,
                     struct tensors *tensors, struct dtensor_error *err)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < module->nhooks[side]; i++)
        rc = hook_run(module, &module->hooks[side][i], side, tensors, err);
    return rc;
}

static int forward_run(struct dtensor_module *module, const struct tensors *in,
                       struct tensors *out, struct dtensor_error *err)
{
    const struct dtensor_forward call = { module, in->n, out->n, in->now,
                                          out->made };
    struct dtensor_error none, *why = dtn_error_ready(err, &none);
    int rc = dtn_fail_program(why, module->forward(&call, why),
                              "module %s: its forward function", module->type);

    for (int i = 0; i < out->n; i++) {
        out->now[i] = out->made[i];
        if (rc == 0 && !out->made[i])
            rc = dtn_fail(err, DTENSOR_EINVAL, "module %s: its forward "
                          "function has not made output %d of %d",
                          module->type, i, out->n);
    }
    return rc;
}

static int call_check(const struct dtensor_module *module, int nin,
                      const struct dtensor *const in[], int nout,
                      struct dtensor_error *err)
{
    if (nin < 0 || nin > TENSORS_MAX || nout < 0 || nout > TENSORS_MAX)
        return dtn_fail(err, DTENSOR_EINVAL, "module %s: %d inputs and %d "
                        "outputs (expected at most %d of each)", module->type,
                        nin, nout, TENSORS_MAX);
    for (int i = 0; i < nin; i++)
        if (!in[i])
            return dtn_fail(err, DTENSOR_EINVAL, "module %s: input %d is NULL",
                            module->type, i);
    return 0;
}

/* Begin the text with the path of the module that failed: the innermost, whose
 * path begins with those of the modules around it.
 */
static int call_failed(const struct dtensor_module *module, int rc,
                       struct dtensor_error *err)
{
    struct dtensor_error inner;
    char path[DTN_PATH_SIZE];
    int n = dtensor_module_path(module, path, sizeof path);

    if (!err || n == 0 || strncmp(err->text, path, strlen(path)) == 0)
        return rc;
    inner = *err;
    snprintf(err->text, sizeof err->text, "%s: %.*s", path,
             (int)(sizeof err->text - sizeof path - 3), inner.text);
    return rc;
}

static int call_run(struct dtensor_module *module, struct tensors *in,
                    struct tensors *out, struct dtensor_error *err)
{
    int rc = hooks_run(module, DTN_SIDE_INPUT, in, err);

    if (rc == 0)
        rc = forward_run(module, in, out, err);
    if (rc == 0)
        rc = hooks_run(module, DTN_SIDE_OUTPUT, out, err);
    return rc;
}

/* The same, while a tape notes it: notes get the path of the module. */
static int call_noted(struct dtensor_module *module, struct tensors *in,
                      struct tensors *out, struct dtensor_error *err)
{
    struct dtn_recorder *recorder = module->ctx->recorder;
    const char *outer = recorder->where;
    char path[DTN_PATH_SIZE];
    int rc;

    if (dtensor_module_path(module, path, sizeof path) > 0)
        recorder->where = path;
    rc = call_run(module, in, out, err);
    if (module->ctx->recorder == recorder)
        recorder->where = outer;
    return rc;
}

/* With or without a tape; reported to the watcher, if there is one. */
static int call_told(struct dtensor_module *module, struct tensors *in,
                     struct tensors *out, struct dtensor_error *err)
{
    struct dtn_watcher *watcher = module->ctx->watcher;
    char path[DTN_PATH_SIZE];
    int rc;

    if (watcher)
        watcher->begin(watcher, &(struct dtn_activity){
            .kind = DTN_WATCHED_MODULE, .type = module->type,
            .name = dtn_module_text(module, path) });
    rc = module->ctx->recorder ? call_noted(module, in, out, err)
                               : call_run(module, in, out, err);
    if (watcher)
        watcher->end(watcher);
    return rc;
}

int dtensor_module_call(struct dtensor_module *module, int nin,
                        const struct dtensor *const in[], int nout,
                        struct dtensor *out[], struct dtensor_error *err)
{
    struct tensors inputs = { .n = nin }, outputs = { .n = nout };
    int rc = call_check(module, nin, in, nout, err);

    if (rc != 0)
        return call_failed(module, rc, err);
    for (int i = 0; i < nin; i++)
        inputs.now[i] = in[i];
    rc = call_told(module, &inputs, &outputs, err);
    tensors_drop(&inputs);
    if (rc != 0) {
        tensors_drop(&outputs);
        return call_failed(module, rc, err);
    }
    for (int i = 0; i < nout; i++)
        out[i] = outputs.made[i];
    return 0;
}

int dtensor_module_apply(struct dtensor_module *module, const char *path,
                         const struct dtensor *in, struct dtensor **outp,
                         struct dtensor_error *err)
{
    struct dtensor_module *found;
    int rc = dtensor_module_find(module, path, &found, err);

    return rc != 0 ? rc : dtensor_module_call(found, 1, &in, 1, outp, err);
}

/* ---------------------------------------------------------------- hooks --- */

bool dtn_hooks_reserve(struct dtensor_module *module)
{
    for (int side = 0; side < DTN_SIDES; side++)
        if (!dtn_array_reserve(&module->hooks[side],
                               &module->hooks_capacity[side],
                               module->nhooks[side] + 1,
                               sizeof *module->hooks[side]))
            return false;
    return true;
}

void dtn_hook_put(struct dtensor_module *module, enum dtn_side side,
                  dtensor_hook_f *fn, void *arg)
{
    module->hooks[side][module->nhooks[side]++] = (struct dtn_hook){ fn, arg };
}

static int hook_add(struct dtensor_module *module, enum dtn_side side,
                    dtensor_hook_f *fn, void *arg, struct dtensor_error *err)
{
    if (!fn)
        return dtn_fail(err, DTENSOR_EINVAL, "module: no hook");
    if (!dtn_hooks_reserve(module))
        return dtn_fail_nomem(err, "module", sizeof **module->hooks);
    dtn_hook_put(module, side, fn, arg);
    return 0;
}

int dtensor_module_on_input(struct dtensor_module *module,
                            dtensor_hook_f *hook, void *arg,
                            struct dtensor_error *err)
{
    return hook_add(module, DTN_SIDE_INPUT, hook, arg, err);
}

int dtensor_module_on_output(struct dtensor_module *module,
                             dtensor_hook_f *hook, void *arg,
                             struct dtensor_error *err)
{
    return hook_add(module, DTN_SIDE_OUTPUT, hook, arg, err);
}
