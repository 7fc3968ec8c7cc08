/* model.c - from the command line to a tree of modules
 *
 *   $ dtensor-plan module mlp up=linear:1024x4096 act=gelu \
 *         down=linear:4096x1024 --cluster pair.ini --shape 8x128x1024
 *
 * Each word is a module: its path, its kind, and what the kind needs.  They run
 * in this order; the parts of paths before the last dot are modules that run
 * their children one after another.
 */
#include "tools/plan/model.h"

#include <stdlib.h>
#include <string.h>

int plan_model_say(const char *path, const struct dtensor_error *err)
{
    fprintf(stderr, "%s: %s%s%s\n", plan_program, path ? path : "",
            path ? ": " : "", err->text);
    return PLAN_BAD;
}

static int model_nomem(void)
{
    fprintf(stderr, "%s: out of memory\n", plan_program);
    return PLAN_BAD;
}

/* ---------------------------------------------------------------- kinds --- */

/* Kinds with parameters; all others are operators without. */
static const struct kind {
    const char *name;
    int nsizes;                   /* numbers of "1024x4096"                   */
    const char *sizes;            /* for a message                            */
    struct {
        const char *name;         /* of a parameter                           */
        int ndim, size[2];        /* its dimensions are these of the sizes    */
    } param[PLAN_PARAMS];
} kinds[] = {
    { "linear", 2, "INxOUT", { { "weight", 2, { 1, 0 } },
                               { "bias", 1, { 1 } } } },
    { "embedding", 2, "ROWSxSIZE", { { "weight", 2, { 0, 1 } } } },
    { "layer_norm", 1, "SIZE", { { "weight", 1, { 0 } },
                                 { "bias", 1, { 0 } } } },
    { "rms_norm", 1, "SIZE", { { "weight", 1, { 0 } } } }
};

static const struct kind *kind_find(const char *name)
{
    for (size_t i = 0; i < PLAN_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

/* "1024x4096" or "1024x4096:nobias" of a kind with parameters. */
static int kind_read(const struct kind *kind, const char *word,
                     const char *text, struct plan_unit *unit)
{
    const size_t n = strcspn(text, ":");
    const bool bias = text[n] == '\0';
    int64_t size[DTENSOR_MAX_DIMS];
    char sizes[200];

    snprintf(sizes, sizeof sizes, "%.*s", (int)n, text);
    if (plan_numbers(sizes, size) != kind->nsizes ||
        (!bias && (strcmp(text + n, ":nobias") != 0 || !kind->param[1].name)))
        return plan_usage("\"%s\": expected PATH=%s:%s%s", word, kind->name,
                          kind->sizes,
                          kind->param[1].name ? " or ...:nobias" : "");
    for (int i = 0; i < (bias ? PLAN_PARAMS : 1) && kind->param[i].name; i++) {
        struct dtensor_spec *spec = &unit->param[unit->nparams];

        unit->param_name[unit->nparams++] = kind->param[i].name;
        spec->ndim = kind->param[i].ndim;
        for (int d = 0; d < spec->ndim; d++)
            spec->shape[d] = size[kind->param[i].size[d]];
    }
    unit->args.count = kind->nsizes == 1;    /* norms: over one dimension     */
    return PLAN_GOOD;
}

/* ----------------------------------------------------------------- tree --- */

/* A module without a parent, whose argument is a new unit. */
static int unit_make(const struct plan_job *job, const char *word,
                     const char *kind, const char *path,
                     struct dtensor_module **modulep)
{
    struct plan_unit *unit = calloc(1, sizeof *unit);
    struct dtensor_error err;

    if (!unit)
        return model_nomem();
    if (dtensor_module_create(job->ctx, kind, NULL, unit, modulep, &err) != 0) {
        free(unit);
        return plan_model_say(word, &err);
    }
    snprintf(unit->path, sizeof unit->path, "%s", path);
    return PLAN_GOOD;
}

static struct dtensor_module *child_last(const struct dtensor_module *module)
{
    struct dtensor_module *last = NULL, *child;

    for (int i = 0; (child = dtensor_module_child(module, i)); i++)
        last = child;
    return last;
}

static int child_add(struct dtensor_module *module, const char *word,
                     const char *name, struct dtensor_module *child)
{
    struct dtensor_error err;

    if (dtensor_module_add(module, name, child, &err) == 0)
        return PLAN_GOOD;
    free(dtensor_module_arg(child));
    dtensor_module_destroy(child);
    return plan_model_say(word, &err);
}

/* Go to, or make, the module that has `path`: "layers.0" for "layers.0.up".
 * A module that is there has to be the last one, since it runs where it was
 * first named.
 */
static int parent_of(const struct plan_job *job, const char *word,
                     const char *path, struct dtensor_module **atp,
                     const char **namep)
{
    char part[PLAN_PATH], name[PLAN_PATH];
    struct dtensor_module *next;

    for (*namep = path; strchr(*namep, '.'); *namep = strchr(*namep, '.') + 1) {
        const size_t n = strcspn(*namep, ".");

        snprintf(name, sizeof name, "%.*s", (int)n, *namep);
        snprintf(part, sizeof part, "%.*s", (int)(*namep - path + (int)n),
                 path);
        next = child_last(*atp);
        if (!next || strcmp(dtensor_module_name(next), name) != 0) {
            if (unit_make(job, word, "sequential", part, &next) != PLAN_GOOD ||
                child_add(*atp, word, name, next) != PLAN_GOOD)
                return PLAN_BAD;
        } else if (strcmp(dtensor_module_type(next), "sequential") != 0) {
            return plan_usage("\"%s\": %s is a %s (expected no module below "
                              "it)", word, part, dtensor_module_type(next));
        }
        *atp = next;
    }
    return PLAN_GOOD;
}

/* "layers.0.up=linear:1024x4096" */
static int word_read(const struct plan_job *job, const char *word,
                     struct dtensor_module *top)
{
    const size_t n = strcspn(word, "="), k = strcspn(word, ":");
    const char *more = word[k] ? word + k + 1 : "", *name;
    char path[PLAN_PATH], type[PLAN_PATH];
    struct dtensor_module *module;
    const struct kind *kind;
    struct dtensor_error err;

    if (n == 0 || n >= sizeof path || !word[n] || k <= n + 1 ||
        k - n > sizeof type)
        return plan_usage("\"%s\": expected PATH=KIND, such as "
                          "up=linear:1024x4096 or act=gelu", word);
    snprintf(path, sizeof path, "%.*s", (int)n, word);
    snprintf(type, sizeof type, "%.*s", (int)(k - n - 1), word + n + 1);
    if (strcmp(type, "sequential") == 0)
        return plan_usage("\"%s\": name only its parts, %s.NAME=KIND", word,
                          path);
    if (parent_of(job, word, path, &top, &name) != PLAN_GOOD ||
        unit_make(job, word, type, path, &module) != PLAN_GOOD ||
        child_add(top, word, name, module) != PLAN_GOOD)
        return PLAN_BAD;
    kind = kind_find(type);
    if (kind)
        return kind_read(kind, word, more, dtensor_module_arg(module));
    if (dtensor_op_args_parse(more, dtensor_module_arg(module), &err) != 0)
        return plan_model_say(word, &err);
    return PLAN_GOOD;
}

/* ----------------------------------------------------------------- plan --- */

/* Note the style of a module, and give its parameters their places. */
static int unit_place(struct dtensor_module *module, void *arg,
                      struct dtensor_error *err)
{
    struct plan_unit *unit = dtensor_module_arg(module);
    const struct plan_model *model = arg;
    const char *style = dtensor_module_style(module), *placement;
    int rc = 0;

    if (style)
        snprintf(unit->style, sizeof unit->style, "%.*s",
                 (int)strcspn(style, " "), style);
    for (int i = 0; rc == 0 && i < unit->nparams; i++) {
        const struct dtensor_spec shape = unit->param[i];

        placement = dtensor_module_placement(module, unit->param_name[i]);
        rc = dtensor_spec_on(&unit->param[i], model->mesh,
                             placement ? placement : "R", model->in.dtype,
                             shape.ndim, shape.shape, err);
    }
    return rc;
}

/* Was no mesh found, as there is none that was entered? */
static bool mesh_lacks(const struct plan_job *job,
                       const struct dtensor_error *err)
{
    const struct dtensor_mesh *mesh;
    struct dtensor_error none;

    return dtensor_mesh_current(job->ctx, &mesh, &none) != 0 &&
           strcmp(err->text, none.text) == 0;
}

/* Lay the plan over the tree: the library checks patterns and styles. */
static int model_lay(const struct plan_job *job, const struct plan_options *opt,
                     struct plan_model *model)
{
    struct dtensor_error err;

    if (dtensor_parallelize_plan(model->top, job->mesh, opt->module, -1,
                                 &err) != 0)
        return mesh_lacks(job, &err)
             ? plan_usage("--mesh is missing, since plan %s names none",
                          opt->module) : plan_model_say(NULL, &err);
    if (dtensor_dtype_parse(opt->dtype, &model->in.dtype, &err) != 0)
        return plan_model_say(NULL, &err);
    model->mesh = dtensor_module_mesh(model->top);
    if (dtensor_module_walk(model->top, unit_place, model, &err) != 0)
        return plan_model_say(NULL, &err);
    return PLAN_GOOD;
}

/* The type of the module that runs first. */
static const char *first_type(const struct dtensor_module *module)
{
    while (dtensor_module_child(module, 0))
        module = dtensor_module_child(module, 0);
    return dtensor_module_type(module);
}

static int model_input(const struct plan_options *opt, struct plan_model *model)
{
    const enum dtensor_dtype dtype =
        strcmp(first_type(model->top), "embedding") == 0 ? DTENSOR_I64
                                                         : model->in.dtype;
    int64_t shape[DTENSOR_MAX_DIMS];
    const int ndim = plan_numbers(opt->shape, shape);
    struct dtensor_error err;

    if (ndim < 0)
        return plan_usage("--shape \"%s\": expected up to 8 sizes such as "
                          "8x128x1024", opt->shape);
    if (dtensor_spec_on(&model->in, model->mesh, opt->from ? opt->from : "R",
                        dtype, ndim, shape, &err) != 0)
        return plan_model_say("the input", &err);
    return PLAN_GOOD;
}

int plan_model_open(const struct plan_job *job, const struct plan_options *opt,
                    struct plan_model *model)
{
    int status;

    *model = (struct plan_model){ .plan = opt->module };
    status = unit_make(job, "the model", "sequential", ".", &model->top);
    for (int i = 0; i < opt->ninputs && status == PLAN_GOOD; i++)
        status = word_read(job, opt->inputs[i], model->top);
    if (status == PLAN_GOOD)
        status = model_lay(job, opt, model);
    return status == PLAN_GOOD ? model_input(opt, model) : status;
}

static int unit_free(struct dtensor_module *module, void *arg,
                     struct dtensor_error *err)
{
    struct plan_unit *unit = dtensor_module_arg(module);

    (void)arg;
    (void)err;
    for (int i = 0; i < unit->nmoves; i++)
        dtensor_plan_destroy(unit->move[i].plan);
    free(unit);
    return 0;
}

void plan_model_close(struct plan_model *model)
{
    if (model->top)
        dtensor_module_walk(model->top, unit_free, NULL, NULL);
    dtensor_module_destroy(model->top);
}
