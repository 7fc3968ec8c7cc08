/* styles.c - what a plan of a cluster file does to the modules of a model
 *
 * The library says it in words, with dtensor_cluster_show(), a line for each
 * pattern:
 *
 *   plan mlp: on tp of mesh world, 2 ranks
 *       up  colwise   input R, output S(-1); linear: weight S(0), bias S(0);
 *                     embedding: weight S(1)
 *
 * These lines are read here, so that the tool has no table of styles of its
 * own.  Whether pattern and module fit the library has checked before.
 */
#include "tools/plan/model.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* All plans of the file. */
static char *styles_show(const char *path)
{
    struct dtensor_cluster *cluster = NULL;
    struct dtensor_error err;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    int rc;

    if (!stream) {
        fprintf(stderr, "%s: out of memory\n", plan_program);
        return NULL;
    }
    rc = dtensor_cluster_read(path, NULL, NULL, &cluster, &err);
    if (rc == 0)
        rc = dtensor_cluster_show(cluster, DTENSOR_SHOW_PLAN, -1, stream, &err);
    dtensor_cluster_destroy(cluster);
    fclose(stream);
    if (rc == 0)
        return text;
    plan_model_say(NULL, &err);
    free(text);
    return NULL;
}

char *plan_styles_read(const char *cluster, const char *plan)
{
    char *text = styles_show(cluster), *from, *to;
    char head[200];

    if (!text)
        return NULL;
    snprintf(head, sizeof head, "plan %s: ", plan);
    for (from = text; from && strncmp(from, head, strlen(head)) != 0;) {
        from = strchr(from, '\n');
        from = from ? from + 1 : NULL;
    }
    if (!from) {
        text[0] = '\0';               /* the library will say it              */
        return text;
    }
    memmove(text, from, strlen(from) + 1);
    to = strstr(text, "\nplan ");
    if (to)
        to[1] = '\0';
    return text;
}

/* Does "layers.*.up" name "layers.0.up"? */
static bool pattern_is(const char *pattern, const char *path)
{
    char token[PLAN_PATH], name[PLAN_PATH];

    if (strcmp(pattern, ".") == 0 || strcmp(path, ".") == 0)
        return strcmp(pattern, path) == 0;
    for (;;) {
        const size_t n = strcspn(pattern, "."), k = strcspn(path, ".");

        snprintf(token, sizeof token, "%.*s", (int)n, pattern);
        snprintf(name, sizeof name, "%.*s", (int)k, path);
        if (fnmatch(token, name, 0) != 0)
            return false;
        if (!pattern[n] || !path[k])
            return pattern[n] == path[k];
        pattern += n + 1;
        path += k + 1;
    }
}

/* Cut "up  colwise  input R, output S(-1); linear: ..." into its pieces. */
static bool style_cut(struct plan_style *style, const char **patternp)
{
    char *save = NULL, *output, *params, *input;

    *patternp = strtok_r(style->line, " ", &save);
    style->name = strtok_r(NULL, " ", &save);
    input = save ? strstr(save, "input ") : NULL;
    output = input ? strstr(input, ", output ") : NULL;
    if (!*patternp || !style->name || !output)
        return false;
    style->input = input + strlen("input ");
    *output = '\0';
    style->output = output + strlen(", output ");
    params = strstr(output + 1, "; ");
    style->params = params ? params + 2 : "";
    if (params)
        *params = '\0';
    return true;
}

void plan_style_find(const char *text, const char *path,
                     struct plan_style *style)
{
    const char *pattern;

    for (text = strchr(text, '\n'); text && text[1];
         text = strchr(text + 1, '\n')) {
        snprintf(style->line, sizeof style->line, "%.*s",
                 (int)strcspn(text + 1, "\n"), text + 1);
        if (style_cut(style, &pattern) && pattern_is(pattern, path))
            return;
    }
    style->name = NULL;
}

/* The entry of a type in "linear: ...; embedding: ...", and its number. */
static const char *params_of(const struct plan_style *style, const char *type,
                             int *numberp)
{
    const size_t n = strlen(type);
    const char *at = style->params;

    for (*numberp = 0; *at; ++*numberp) {
        if (strncmp(at, type, n) == 0 && at[n] == ':')
            return at + n + 1;
        at += strcspn(at, ";");
        at += *at ? 2 : 0;
    }
    return NULL;
}

const char *plan_style_layout(const struct plan_style *style,
                              const char *layouts, const char *type,
                              char word[80])
{
    const char *other = strstr(layouts, " or ");
    int number;

    if (!other) {
        snprintf(word, 80, "%s", layouts);
    } else {
        params_of(style, type, &number);
        if (number == 0)
            snprintf(word, 80, "%.*s", (int)(other - layouts), layouts);
        else
            snprintf(word, 80, "%s", other + 4);
    }
    return word;
}

const char *plan_style_param(const struct plan_style *style, const char *type,
                             const char *param, char word[80])
{
    const size_t n = strlen(param);
    int number;
    const char *at = style->name ? params_of(style, type, &number) : NULL;

    snprintf(word, 80, "R");
    while (at && *at == ' ') {
        if (strncmp(at + 1, param, n) == 0 && at[n + 1] == ' ')
            snprintf(word, 80, "%.*s", (int)strcspn(at + n + 2, ",;"),
                     at + n + 2);
        at += strcspn(at, ",;");
        at += *at == ',';
    }
    return word;
}
