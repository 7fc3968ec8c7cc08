/* path.c - names and paths of modules: how they are found and visited
 *
 * A path is the names from one module down to another, joined by dots.  If a
 * model has the child "layers", which has the children "0" and "1", the path
 * "layers.1" is found in two steps.  "layers.2" does not exist, and the error
 * names the children that do.
 */
#include "base/error.h"
#include "module/module.h"
#include "dtensor.h"

#include <string.h>

bool dtn_module_name_ok(const char *name)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t n = name ? strlen(name) : 0;

    return n > 0 && n <= DTENSOR_NAME_MAX && strspn(name, good) == n;
}

const char *dtensor_module_name(const struct dtensor_module *module)
{
    return module->name;
}

int dtensor_module_path(const struct dtensor_module *module, char *text,
                        size_t size)
{
    const struct dtensor_module *m = module;
    size_t need = 0, at;

    for (; m->parent; m = m->parent)
        need += strlen(m->name) + (m->parent->parent ? 1 : 0);
    if (size == 0)
        return (int)need;
    text[need < size ? need : size - 1] = '\0';
    at = need;
    for (m = module; m->parent; m = m->parent) {
        for (size_t k = strlen(m->name); k > 0; k--)
            if (--at < size - 1)
                text[at] = m->name[k - 1];
        if (at > 0 && --at < size - 1)
            text[at] = '.';
    }
    return (int)need;
}

char *dtn_module_text(const struct dtensor_module *module,
                      char text[DTN_PATH_SIZE])
{
    if (dtensor_module_path(module, text, DTN_PATH_SIZE) == 0)
        strcpy(text, "the module");
    return text;
}

/* The child whose name is the `n` bytes at `name`, or NULL. */
static struct dtensor_module *child_named(const struct dtensor_module *module,
                                          const char *name, size_t n)
{
    for (int i = 0; i < module->nchildren; i++)
        if (strncmp(module->children[i]->name, name, n) == 0 &&
            module->children[i]->name[n] == '\0')
            return module->children[i];
    return NULL;
}

static int child_missing(const struct dtensor_module *module, const char *path,
                         const char *name, size_t n, struct dtensor_error *err)
{
    const char *known[64] = { NULL };
    char text[DTN_PATH_SIZE], word[40], advice[200];

    for (int i = 0; i < module->nchildren && i < 63; i++)
        known[i] = module->children[i]->name;
    snprintf(word, sizeof word, "%.*s", (int)(n < 33 ? n : 33), name);
    if (!known[0])
        strcpy(advice, "it has no children");
    else
        dtensor_advise(word, known, NULL, advice, sizeof advice);
    return dtn_fail(err, DTENSOR_EINVAL, "module: no module \"%.100s\": "
                    "%.150s has no child \"%s\" (%s)", path,
                    dtn_module_text(module, text), word, advice);
}

int dtensor_module_find(struct dtensor_module *module, const char *path,
                        struct dtensor_module **foundp,
                        struct dtensor_error *err)
{
    const char *name = path;

    while (*path) {
        size_t n = strcspn(name, ".");
        struct dtensor_module *child = child_named(module, name, n);

        if (!child)
            return child_missing(module, path, name, n, err);
        module = child;
        if (!name[n])
            break;
        name += n + 1;
    }
    *foundp = module;
    return 0;
}

int dtensor_module_walk(struct dtensor_module *module, dtensor_visit_f *visit,
                        void *arg, struct dtensor_error *err)
{
    int rc;

    if (!visit)
        return dtn_fail(err, DTENSOR_EINVAL, "module: no function to visit");
    rc = visit(module, arg, err);
    for (int i = 0; rc == 0 && i < module->nchildren; i++)
        rc = dtensor_module_walk(module->children[i], visit, arg, err);
    return rc;
}
