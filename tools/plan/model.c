/* model.c - from the command line to a tree of modules
 *
 *   $ dtensor-plan module mlp up=linear:1024x4096 act=gelu \
 *         down=linear:4096x1024 --cluster pair.ini --shape 8x128x1024
 *
 * Each word is a module: its path, its kind, and what the kind needs.  They run
 * in this order; the parts of paths before the last dot are modules that run
 * their children.  The library makes, cuts and calls them, in a context that
 * only plans, so that tensors have no elements.
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

enum { PARAMS = 2 };

/* Kinds with parameters; all others but "heads" are operators without. */
static const struct kind {
    const char *name;
    int nsizes;                   /* numbers of "1024x4096"                   */
    const char *sizes;            /* for a message                            */
    struct {
        const char *name;         /* of a parameter                           */
        int ndim, size[2];        /* its dimensions are these of the sizes    */
    } param[PARAMS];
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

/* Parameter `i` of a kind, whole on all ranks. */
static int param_set(const struct plan_model *model,
                     struct dtensor_module *module, const struct kind *kind,
                     int i, const int64_t size[], enum dtensor_dtype dtype)
{
    struct dtensor_spec spec = { .dtype = dtype, .ndim = kind->param[i].ndim };
    struct dtensor *t = NULL;
    struct dtensor_error err;
    int rc = dtensor_mesh_find(model->ctx, "world", &spec.mesh, &err);

    for (int d = 0; d < spec.ndim; d++)
        spec.shape[d] = size[kind->param[i].size[d]];
    if (rc == 0)
        rc = dtensor_zeros(&spec, &t, &err);
    if (rc == 0)
        rc = dtensor_module_set(module, kind->param[i].name, t, &err);
    return rc == 0 ? PLAN_GOOD
                   : plan_model_say(dtensor_module_name(module), &err);
}

/* "1024x4096" or "1024x4096:nobias" of a kind with parameters. */
static int kind_read(const struct plan_model *model, enum dtensor_dtype dtype,
                     const struct kind *kind, const char *word,
                     const char *text, struct dtensor_module *module)
{
    const size_t n = strcspn(text, ":");
    const bool bias = text[n] == '\0';
    int64_t size[DTENSOR_MAX_DIMS];
    char sizes[200];
    int status = PLAN_GOOD;

    snprintf(sizes, sizeof sizes, "%.*s", (int)n, text);
    if (plan_numbers(sizes, size) != kind->nsizes ||
        (!bias && (strcmp(text + n, ":nobias") != 0 || !kind->param[1].name)))
        return plan_usage("\"%s\": expected PATH=%s:%s%s", word, kind->name,
                          kind->sizes,
                          kind->param[1].name ? " or ...:nobias" : "");
    for (int i = 0; status == PLAN_GOOD && i < (bias ? PARAMS : 1) &&
                    kind->param[i].name; i++)
        status = param_set(model, module, kind, i, size, dtype);
    return status;
}

/* "16" or "16:causal=1" of the kind "heads". */
static int heads_read(const char *word, const char *text,
                      struct plan_unit *unit)
{
    const size_t n = strcspn(text, ":");
    int64_t heads[DTENSOR_MAX_DIMS];
    struct dtensor_error err;
    char number[40];

    snprintf(number, sizeof number, "%.*s", (int)n, text);
    if (plan_numbers(number, heads) != 1 || heads[0] < 1 || heads[0] > 1 << 20)
        return plan_usage("\"%s\": expected PATH=heads:N@q,k,v or "
                          "...heads:N:causal=1@q,k,v", word);
    unit->heads = (int)heads[0];
    if (text[n] && dtensor_op_args_parse(text + n + 1, &unit->args, &err) != 0)
        return plan_model_say(word, &err);
    return PLAN_GOOD;
}

/* ----------------------------------------------------------------- tree --- */

static dtensor_forward_f *forward_of(const char *kind)
{
    return strcmp(kind, "sequential") == 0 ? plan_forward_wired
         : strcmp(kind, "heads") == 0 ? plan_forward_heads : NULL;
}

/* A module without a parent, whose argument is a new unit. */
static int unit_make(struct plan_model *model, const char *word,
                     const char *kind, const char *path,
                     struct dtensor_module **modulep)
{
    struct plan_unit *unit = calloc(1, sizeof *unit);
    struct dtensor_error err;

    if (!unit)
        return model_nomem();
    if (dtensor_module_create(model->ctx, kind, forward_of(kind), unit,
                              modulep, &err) != 0) {
        free(unit);
        return plan_model_say(word, &err);
    }
    snprintf(unit->path, sizeof unit->path, "%s", path);
    model->nunits++;
    return PLAN_GOOD;
}

static struct dtensor_module *child_last(const struct dtensor_module *module)
{
    struct dtensor_module *last = NULL, *child;

    for (int i = 0; (child = dtensor_module_child(module, i)); i++)
        last = child;
    return last;
}

/* `inputs`: names of modules, or NULL. */
static int child_add(struct dtensor_module *module, const char *word,
                     const char *name, const char *inputs,
                     struct dtensor_module *child)
{
    struct dtensor_error err;
    int status = plan_wire_read(module, word, inputs,
                                dtensor_module_arg(child));

    if (status == PLAN_GOOD && dtensor_module_add(module, name, child,
                                                  &err) != 0)
        status = plan_model_say(word, &err);
    if (status != PLAN_GOOD) {
        free(dtensor_module_arg(child));
        dtensor_module_destroy(child);
    }
    return status;
}

/* Go to, or make, the module that has `path`: "layers.0" for "layers.0.up".
 * A module that is there has to be the last one, since it runs where it was
 * first named.
 */
static int parent_of(struct plan_model *model, const char *word,
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
            if (unit_make(model, word, "sequential", part, &next) != PLAN_GOOD
                || child_add(*atp, word, name, NULL, next) != PLAN_GOOD)
                return PLAN_BAD;
        } else if (strcmp(dtensor_module_type(next), "sequential") != 0) {
            return plan_usage("\"%s\": %s is a %s (expected no module below "
                              "it)", word, part, dtensor_module_type(next));
        }
        *atp = next;
    }
    return PLAN_GOOD;
}

/* The parts of "layers.0.up=linear:1024x4096@norm". */
struct word {
    char path[PLAN_PATH], kind[64], more[200];
    const char *inputs;           /* or NULL                                  */
};

static bool word_cut(const char *text, struct word *word)
{
    const size_t path = strcspn(text, "="), end = strcspn(text, "@");
    size_t kind;

    if (path == 0 || path >= sizeof word->path || end <= path + 1)
        return false;
    kind = strcspn(text + path + 1, ":@");
    if (kind == 0 || kind >= sizeof word->kind ||
        end - path > sizeof word->more || (text[end] && !text[end + 1]))
        return false;
    snprintf(word->path, sizeof word->path, "%.*s", (int)path, text);
    snprintf(word->kind, sizeof word->kind, "%.*s", (int)kind,
             text + path + 1);
    kind += path + 1 + (text[path + 1 + kind] == ':');
    snprintf(word->more, sizeof word->more, "%.*s", (int)(end - kind),
             text + kind);
    word->inputs = text[end] ? text + end + 1 : NULL;
    return true;
}

static int word_read(struct plan_model *model, const char *text,
                     enum dtensor_dtype dtype)
{
    struct dtensor_module *parent = model->top, *module;
    const struct kind *kind;
    struct dtensor_error err;
    struct word word;
    const char *name;

    if (!word_cut(text, &word))
        return plan_usage("\"%s\": expected PATH=KIND, such as "
                          "up=linear:1024x4096, act=gelu or sum=add@down,in",
                          text);
    if (parent_of(model, text, word.path, &parent, &name) != PLAN_GOOD ||
        unit_make(model, text, word.kind, word.path, &module) != PLAN_GOOD ||
        child_add(parent, text, name, word.inputs, module) != PLAN_GOOD)
        return PLAN_BAD;
    kind = kind_find(word.kind);
    if (kind)
        return kind_read(model, dtype, kind, text, word.more, module);
    if (strcmp(word.kind, "heads") == 0)
        return heads_read(text, word.more, dtensor_module_arg(module));
    if (dtensor_op_args_parse(word.more, dtensor_module_arg(module),
                              &err) != 0)
        return plan_model_say(text, &err);
    return PLAN_GOOD;
}

/* ----------------------------------------------------------------- plan --- */

static void finding_say(const char *text, void *said)
{
    fprintf(stderr, "%s\n", text);
    ++*(int *)said;
}

/* Lay the plan over the tree: the library checks patterns and styles. */
static int model_lay(const struct dtensor_mesh *mesh, struct plan_model *model)
{
    struct dtensor_error err;
    int said = 0;

    dtensor_parallelize_check(model->top, mesh, model->plan, finding_say,
                              &said, &err);
    if (said > 0)
        return PLAN_BAD;
    if (dtensor_parallelize_plan(model->top, mesh, model->plan, -1, &err) != 0)
        return plan_model_say(NULL, &err);
    model->mesh = dtensor_module_mesh(model->top);
    return PLAN_GOOD;
}

/* The type of the module that runs first. */
static const char *first_type(const struct dtensor_module *module)
{
    while (dtensor_module_child(module, 0))
        module = dtensor_module_child(module, 0);
    return dtensor_module_type(module);
}

static int model_input(const struct plan_options *opt, enum dtensor_dtype dtype,
                       struct plan_model *model)
{
    int64_t shape[DTENSOR_MAX_DIMS];
    const int ndim = plan_numbers(opt->shape, shape);
    const bool index = strcmp(first_type(model->top), "embedding") == 0;
    struct dtensor_spec spec;
    struct dtensor_error err;
    int rc;

    if (ndim < 0)
        return plan_usage("--shape \"%s\": expected up to 8 sizes such as "
                          "8x128x1024", opt->shape);
    rc = dtensor_spec_on(&spec, model->mesh, opt->from ? opt->from : "R",
                         index ? DTENSOR_I64 : dtype, ndim, shape, &err);
    if (rc == 0)
        rc = dtensor_zeros(&spec, &model->in, &err);
    model->constant = opt->constant || index;
    return rc == 0 ? PLAN_GOOD : plan_model_say("the input", &err);
}

int plan_model_open(const struct plan_job *job, const struct plan_options *opt,
                    struct plan_model *model)
{
    enum dtensor_dtype dtype = DTENSOR_F32;
    struct dtensor_error err;
    int status;

    *model = (struct plan_model){ .plan = opt->module, .ctx = job->ctx };
    if (dtensor_dtype_parse(opt->dtype, &dtype, &err) != 0)
        return plan_model_say(NULL, &err);
    status = unit_make(model, "the model", "sequential", ".", &model->top);
    for (int i = 0; i < opt->ninputs && status == PLAN_GOOD; i++)
        status = word_read(model, opt->inputs[i], dtype);
    if (status == PLAN_GOOD)
        status = model_lay(job->mesh, model);
    return status == PLAN_GOOD ? model_input(opt, dtype, model) : status;
}

static int unit_free(struct dtensor_module *module, void *arg,
                     struct dtensor_error *err)
{
    (void)arg;
    (void)err;
    free(dtensor_module_arg(module));
    return 0;
}

void plan_model_close(struct plan_model *model)
{
    dtensor_tape_destroy(model->tape);
    dtensor_destroy(model->in);
    if (model->top)
        dtensor_module_walk(model->top, unit_free, NULL, NULL);
    dtensor_module_destroy(model->top);
}
