/* test_module.c - trees of modules, and calling them
 *
 * Names, paths, ownership and printing; the types that need no forward
 * function; the order of hooks, what they may replace, and what an error says.
 *
 * Without this test, hooks could run in another order, an error could name the
 * wrong module, or a tensor that a hook has made could be freed twice.
 */
#include "dtensor.h"
#include "tests/support/job.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { WORLD = 2 };

static struct job *job;

static struct dtensor *tensor(enum dtensor_dtype dtype, int ndim,
                              const int64_t shape[], const void *full)
{
    struct dtensor_spec spec;
    struct dtensor *t = NULL;

    good(dtensor_spec_init(&spec, job->ctx, "world", "R", dtype, ndim, shape,
                           &job->err));
    good(dtensor_distribute(&spec, full, -1, &t, &job->err));
    return t;
}

static struct dtensor *vector(double a, double b)
{
    return tensor(DTENSOR_F64, 1, (const int64_t[]){ 2 },
                  (const double[]){ a, b });
}

static struct dtensor_module *module(const char *type, dtensor_forward_f *f,
                                     void *arg)
{
    struct dtensor_module *m = NULL;

    good(dtensor_module_create(job->ctx, type, f, arg, &m, &job->err));
    return m;
}

static struct dtensor_module *child(struct dtensor_module *parent,
                                    const char *name, const char *type)
{
    struct dtensor_module *m = module(type, NULL, NULL);

    good(dtensor_module_add(parent, name, m, &job->err));
    return m;
}

/* Is it refused, in these words? */
#define refused(call, words)                                                  \
    need((call) == DTENSOR_EINVAL && strstr(job->err.text, words),            \
         "%s: %s", #call, job->err.text)

/* Is the whole of `t` these numbers?  It is destroyed. */
static void is(struct dtensor *t, int n, const double want[], const char *what)
{
    double have[16];

    good(dtensor_full_tensor(t, have, (size_t)n * sizeof have[0], &job->err));
    for (int i = 0; i < n; i++)
        need(fabs(have[i] - want[i]) < 1e-12, "%s: element %d is %.17g, not "
             "%.17g", what, i, have[i], want[i]);
    dtensor_destroy(t);
}

/* ---------------------------------------------------------------- trees --- */

static int note_path(struct dtensor_module *m, void *arg,
                     struct dtensor_error *err)
{
    char path[64], *all = arg;

    dtensor_module_path(m, path, sizeof path);
    strcat(strcat(all, path), " ");
    return strcmp(path, "layers.1.up") == 0 ? 7 : 0;
}

/* Its parameter "weight" times the input; without an input nothing is made. */
static int forward_times(const struct dtensor_forward *call,
                         struct dtensor_error *err)
{
    return call->nin == 0 ? 0
         : dtensor_mul(dtensor_module_param(call->module, "weight"),
                       call->in[0], &call->out[0], err);
}

static struct dtensor_module *tree(void)
{
    struct dtensor_module *model = module("sequential", NULL, NULL);
    struct dtensor_module *layers = child(model, "layers", "sequential");

    for (int i = 0; i < 3; i++) {
        const char name[] = { (char)('0' + i), '\0' };
        struct dtensor_module *layer = child(layers, name, "sequential");
        struct dtensor_module *up = module("times", forward_times, NULL);

        good(dtensor_module_add(layer, "up", up, &job->err));
        good(dtensor_module_set(up, "weight", vector(i + 1, 2), &job->err));
        child(layer, "act", "relu");
    }
    return model;
}

static void trees(void)
{
    struct dtensor_module *model = tree(), *m = NULL, *was;
    char paths[200] = "", path[64], text[400] = "";
    FILE *stream = fmemopen(text, sizeof text, "w");
    const char *name;

    good(dtensor_module_find(model, "", &m, &job->err));
    need(m == model && !dtensor_module_parent(m) && !dtensor_module_mesh(m),
         "\"\" is not the module itself");
    good(dtensor_module_find(model, "layers.2.up", &m, &job->err));
    need(dtensor_module_path(m, path, sizeof path) == 11 &&
         strcmp(path, "layers.2.up") == 0, "path %s", path);
    need(dtensor_module_path(m, path, 6) == 11 && strcmp(path, "layer") == 0,
         "cut path %s", path);
    need(strcmp(dtensor_module_name(m), "up") == 0 &&
         strcmp(dtensor_module_type(m), "times") == 0, "name or type");
    need(dtensor_module_param_at(m, 0, &name) ==
         dtensor_module_param(m, "weight") && strcmp(name, "weight") == 0 &&
         !dtensor_module_param_at(m, 1, &name) &&
         !dtensor_module_param(m, "bias"), "parameters");
    need(dtensor_module_child(dtensor_module_parent(m), 1) != m &&
         dtensor_module_child(dtensor_module_parent(m), 0) == m &&
         !dtensor_module_child(m, 0), "children");
    need(dtensor_module_walk(model, note_path, paths, &job->err) == 7 &&
         strcmp(paths, " layers layers.0 layers.0.up layers.0.act layers.1 "
                "layers.1.up ") == 0, "walk: %s", paths);
    good(dtensor_module_find(model, "layers.2", &was, &job->err));
    dtensor_module_destroy(was);
    refused(dtensor_module_find(model, "layers.2.up", &m, &job->err),
            "layers has no child \"2\"");
    good(dtensor_module_find(model, "layers.1", &m, &job->err));
    dtensor_module_destroy(m);
    good(dtensor_module_print(model, stream, &job->err));
    fclose(stream);
    need(strcmp(text, "sequential\n    layers: sequential\n"
                "        0: sequential\n"
                "            up: times  weight f64[2](R)\n"
                "            act: relu\n") == 0, "%s", text);
    refused(dtensor_module_walk(model, NULL, NULL, &job->err), "to visit");
    dtensor_module_destroy(model);
    dtensor_module_destroy(NULL);
}

static void words(void)
{
    struct dtensor_module *model = tree(), *m = NULL, *made = NULL;
    struct dtensor *t = vector(1, 2);
    char name[40] = "";

    memset(name, 'a', 33);
    refused(dtensor_module_create(job->ctx, "linaer", NULL, NULL, &made,
                                  &job->err), "did you mean \"linear\"?");
    refused(dtensor_module_create(job->ctx, name, forward_times, NULL, &made,
                                  &job->err), "has 33 bytes");
    refused(dtensor_module_create(NULL, "x", forward_times, NULL, &made,
                                  &job->err), "no context");
    need(!made, "a module was made");
    m = module("times", forward_times, NULL);
    refused(dtensor_module_add(model, "a.b", m, &job->err), "bad name \"a.b\"");
    refused(dtensor_module_add(model, name, m, &job->err), "bad name");
    refused(dtensor_module_add(model, "", m, &job->err), "bad name \"\"");
    refused(dtensor_module_add(model, "layers", m, &job->err),
            "has a child \"layers\" already");
    refused(dtensor_module_add(model, "none", NULL, &job->err), "no child");
    refused(dtensor_module_set(m, "w t", t, &job->err), "bad name \"w t\"");
    refused(dtensor_module_set(m, "weight", NULL, &job->err), "no tensor");
    refused(dtensor_module_add(m, "self", m, &job->err), "below itself");
    good(dtensor_module_set(m, "weight", t, &job->err));
    good(dtensor_module_set(m, "weight", t, &job->err));
    good(dtensor_module_set(m, "weight", vector(3, 4), &job->err));
    good(dtensor_module_add(model, "m", m, &job->err));
    refused(dtensor_module_add(model, "n", m, &job->err), "already, as m");
    refused(dtensor_module_find(model, "layers.1.upp", &made, &job->err),
            "layers.1 has no child \"upp\" (did you mean \"up\"?)");
    refused(dtensor_module_find(model, "layers.", &made, &job->err),
            "layers has no child \"\"");
    refused(dtensor_module_find(model, "m.x", &made, &job->err),
            "m has no child \"x\" (it has no children)");
    refused(dtensor_module_on_input(m, NULL, NULL, &job->err), "no hook");
    dtensor_module_destroy(model);
}

/* ---------------------------------------------------------------- calls --- */

static void types(void)
{
    const int64_t square[] = { 2, 2 };
    struct dtensor_op_args low = { .low = 2, .high = 9 };
    struct dtensor *x = tensor(DTENSOR_F64, 2, square,
                               (const double[]){ 1, 3, -2, 2 });
    struct dtensor *index = tensor(DTENSOR_I64, 1, (const int64_t[]){ 2 },
                                   (const int64_t[]){ 1, 0 });
    struct dtensor_module *model = tree(), *m;
    struct dtensor *y = NULL, *out = NULL;

    y = vector(1, -1);
    good(dtensor_module_apply(model, "", y, &out, &job->err));
    dtensor_destroy(y);
    is(out, 2, (const double[]){ 6, 0 }, "sequential");
    m = module("linear", NULL, NULL);
    good(dtensor_module_set(m, "weight", tensor(DTENSOR_F64, 2, square,
                            (const double[]){ 1, 2, 3, 4 }), &job->err));
    good(dtensor_module_set(m, "bias", vector(10, 20), &job->err));
    good(dtensor_module_apply(m, "", x, &y, &job->err));
    is(y, 4, (const double[]){ 17, 35, 12, 22 }, "linear");
    dtensor_module_destroy(m);
    m = module("embedding", NULL, NULL);
    good(dtensor_module_set(m, "weight", x, &job->err));
    good(dtensor_module_apply(m, "", index, &y, &job->err));
    is(y, 4, (const double[]){ -2, 2, 1, 3 }, "embedding");
    dtensor_destroy(index);
    index = tensor(DTENSOR_F64, 2, square, (const double[]){ 1, 3, -2, 2 });
    dtensor_module_destroy(m);
    m = module("layer_norm", NULL, NULL);
    good(dtensor_module_set(m, "weight", vector(2, 2), &job->err));
    good(dtensor_module_set(m, "bias", vector(2, 2), &job->err));
    good(dtensor_module_apply(m, "", index, &y, &job->err));
    dtensor_destroy(y);
    y = NULL;
    dtensor_module_destroy(m);
    m = module("clamp", NULL, &low);
    need(dtensor_module_arg(m) == &low, "arg");
    good(dtensor_module_apply(m, "", index, &y, &job->err));
    is(y, 4, (const double[]){ 2, 3, 2, 2 }, "clamp with its args");
    dtensor_module_destroy(m);
    dtensor_destroy(index);
    dtensor_module_destroy(model);
}

/* A hook that adds its number to all, and notes it. */
struct adder {
    char name;
    double addend;
    char *order;                   /* names of the hooks that ran             */
};

static int hook_add(const struct dtensor_hook *call, struct dtensor_error *err)
{
    const struct adder *adder = call->arg;
    const struct dtensor_op_args args = { .value = adder->addend };

    need(call->n == 1 && !call->made[0], "%d tensors", call->n);
    strncat(adder->order, &adder->name, 1);
    return dtensor_op("shift", 1, call->t, &args, 1, call->made, err);
}

static int hook_none(const struct dtensor_hook *call, struct dtensor_error *err)
{
    return 0;
}

static int hook_sum(const struct dtensor_hook *call, struct dtensor_error *err)
{
    return dtensor_op("sum", 1, call->t, NULL, 1, call->made, err);
}

static int hook_fails(const struct dtensor_hook *call,
                      struct dtensor_error *err)
{
    int rc = dtensor_clone(call->t[0], &call->made[0], err);

    if (rc != 0)
        return rc;
    strcpy(err->text, "the hook had enough");
    return DTENSOR_EABORT;
}

static void hooks(void)
{
    char order[16] = "";
    struct adder a = { 'a', 1, order }, b = { 'b', 10, order };
    struct adder c = { 'c', 100, order }, d = { 'd', 1000, order };
    struct dtensor_module *model = tree(), *m;
    struct dtensor *x = vector(1, 2), *y = NULL;

    good(dtensor_module_find(model, "layers.1.up", &m, &job->err));
    good(dtensor_module_on_output(m, hook_add, &c, &job->err));
    good(dtensor_module_on_input(m, hook_add, &a, &job->err));
    good(dtensor_module_on_input(m, hook_none, NULL, &job->err));
    good(dtensor_module_on_input(m, hook_add, &b, &job->err));
    good(dtensor_module_on_output(m, hook_add, &d, &job->err));
    good(dtensor_module_apply(m, "", x, &y, &job->err));
    is(y, 2, (const double[]){ 2 * 12 + 1100, 2 * 13 + 1100 }, "hooks");
    need(strcmp(order, "abcd") == 0, "order %s", order);
    good(dtensor_module_on_output(m, hook_sum, NULL, &job->err));
    y = NULL;
    refused(dtensor_module_apply(model, "", x, &y, &job->err),
            "layers.1.up: module times: a hook replaced output 0, f64[2](R), by f64[](R) "
            "(shape and dtype must stay)");
    good(dtensor_module_find(model, "layers.0", &m, &job->err));
    good(dtensor_module_on_input(m, hook_fails, NULL, &job->err));
    need(dtensor_module_apply(model, "", x, &y, &job->err) == DTENSOR_EABORT &&
         strcmp(job->err.text, "layers.0: the hook had enough") == 0 && !y,
         "%s", job->err.text);
    dtensor_destroy(x);
    dtensor_module_destroy(model);
}

static int silent_hook(const struct dtensor_hook *call,
                       struct dtensor_error *err)
{
    need(call->n == 1 && err && !err->text[0], "an old text: %s", err->text);
    return DTENSOR_EABORT;
}

static int silent_forward(const struct dtensor_forward *call,
                          struct dtensor_error *err)
{
    need(call->nin == 1 && err && !err->text[0], "an old text: %s", err->text);
    return 3;
}

/* Functions of the program that fail without a word. */
static void silence(void)
{
    struct dtensor_module *m = NULL;
    struct dtensor *x = vector(1, 2), *y = NULL;

    good(dtensor_module_create(job->ctx, "quiet", silent_forward, NULL, &m,
                               &job->err));
    strcpy(job->err.text, "of an earlier call");
    refused(dtensor_module_apply(m, "", x, &y, &job->err),
            "module quiet: its forward function returned 3");
    good(dtensor_module_on_input(m, silent_hook, NULL, &job->err));
    strcpy(job->err.text, "of an earlier call");
    need(dtensor_module_apply(m, "", x, &y, &job->err) == DTENSOR_EABORT &&
         strcmp(job->err.text, "module quiet: a hook returned EABORT without a "
                "text in *err") == 0, "%s", job->err.text);
    need(dtensor_module_apply(m, "", x, &y, NULL) == DTENSOR_EABORT,
         "without err");
    dtensor_destroy(x);
    dtensor_module_destroy(m);
}

static void failures(void)
{
    const struct dtensor *none[1] = { NULL };
    struct dtensor_module *model = tree(), *m;
    struct dtensor *x = vector(1, 2), *y = NULL, *two[2] = { NULL, NULL };
    struct dtensor *wide = tensor(DTENSOR_F64, 1, (const int64_t[]){ 3 },
                                  (const double[]){ 1, 2, 3 });

    refused(dtensor_module_apply(model, "", wide, &y, &job->err),
            "layers.0.up: mul of 2 f64 R");
    refused(dtensor_module_apply(model, "layers.9", x, &y, &job->err),
            "no module \"layers.9\"");
    need(dtensor_module_apply(model, "layers.9", x, &y, NULL) ==
         DTENSOR_EINVAL, "without err");
    good(dtensor_module_find(model, "layers.0.up", &m, &job->err));
    refused(dtensor_module_call(m, 1, none, 1, &y, &job->err),
            "layers.0.up: module times: input 0 is NULL");
    refused(dtensor_module_call(m, 0, NULL, 1, &y, &job->err), "layers.0.up: "
            "module times: its forward function has not made output 0 of 1");
    refused(dtensor_module_call(m, 1, (const struct dtensor *const[]){ x }, 2,
                                two, &job->err), "output 1 of 2");
    refused(dtensor_module_call(m, 17, none, 1, &y, &job->err), "17 inputs");
    refused(dtensor_module_call(model, 1, (const struct dtensor *const[]){ x },
                                2, two, &job->err),
            "sequential: 1 children with 1 inputs and 2 outputs");
    need(!y && !two[0] && !two[1], "an output was written");
    dtensor_destroy(x);
    dtensor_destroy(wide);
    dtensor_module_destroy(model);
}

static void (*const parts[])(void) = { trees, words, types, hooks, silence,
                                       failures };

static void part(int rank, int n, void *arg)
{
    struct job the_job;

    job = &the_job;
    job_open(job, rank, n, NULL);
    parts[*(const int *)arg]();
    dtensor_fini(job->ctx);
}

int main(void)
{
    static const char *const claims[] = {
        "names, paths, walks and the printed tree are right",
        "what cannot be is refused in words", "types without a function compute",
        "hooks run in the order they were added",
        "a function that fails without a text is named",
        "failures leave nothing" };

    for (int i = 0; i < 6; i++)
        ok(ranks_run(WORLD, 60, part, &i, NULL) == 0, "%s", claims[i]);
    return done();
}
