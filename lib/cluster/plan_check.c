/* plan_check.c - [plan "NAME"], read and checked
 *
 * Besides the keys mesh and dim, each key is a pattern of the paths of modules
 * and each value a style.  Modules are known to the program only; what is wrong
 * for every model is found here: `layers.*.up = columns` names no style, and
 * `layers.0.up` with `layers.*.up` gives one module two.
 */
#include "base/array.h"
#include "base/error.h"
#include "base/units.h"
#include "cluster/check.h"
#include "cluster/cluster.h"
#include "cluster/file.h"
#include "cluster/findings.h"
#include "cluster/plan.h"
#include "cluster/plan_layout.h"
#include "cluster/reader.h"
#include "cluster/sections.h"
#include "cluster/style.h"
#include "dtensor.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES_MAX = 1024 };

/* Is it a key of its own, and no pattern? */
static bool is_key(const struct dtn_entry *entry)
{
    return dtn_key_find(&dtn_section_kinds[DTN_KIND_PLAN], entry->key) != NULL;
}

/* ------------------------------------------------------------- patterns --- */

/* Is every token of the pattern one that fnmatch(3) and names can match? */
static bool pattern_ok(const char *pattern)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_.*?[]!";
    size_t n, depth = 0;

    if (strcmp(pattern, ".") == 0)
        return true;
    if (pattern[strspn(pattern, letters)])
        return false;
    for (const char *p = pattern; *p; p++) {
        depth += (*p == '[') - (*p == ']');
        if (depth > 1 || (depth == 1 && (*p == '.' || !p[1])))
            return false;
    }
    for (const char *p = pattern;; p += n + 1) {
        n = strcspn(p, ".");
        if (n == 0 || n > DTENSOR_NAME_MAX + 1)
            return false;
        if (!p[n])
            return true;
    }
}

/* Does `wide` match every name that the token `token` matches, as far as it can
 * be told without names?
 */
static bool token_covers(const char *wide, const char *token)
{
    if (strcmp(wide, "*") == 0 || strcmp(wide, token) == 0)
        return true;
    return !token[strcspn(token, "*?[")] && fnmatch(wide, token, 0) == 0;
}

/* The token at *cursor, which moves on; false: there is none. */
static bool token_next(const char **cursor, char token[DTN_ITEM_SIZE])
{
    const char *p = *cursor;
    size_t n = strcspn(p, ".");

    if (!*p)
        return false;
    snprintf(token, DTN_ITEM_SIZE, "%.*s", (int)n, p);
    *cursor = p + n + (p[n] == '.');
    return true;
}

/* Does every module that `narrow` matches match `wide` as well? */
static bool pattern_covers(const char *wide, const char *narrow)
{
    char a[DTN_ITEM_SIZE], b[DTN_ITEM_SIZE];
    bool more, other;

    if (strcmp(wide, ".") == 0 || strcmp(narrow, ".") == 0)
        return strcmp(wide, narrow) == 0;
    do {
        more = token_next(&wide, a);
        other = token_next(&narrow, b);
        if (more && other && !token_covers(a, b))
            return false;
    } while (more && other);
    return more == other;
}

/* Each entry matches a module or is an error; so modules of a pattern that
 * another one covers have two styles.
 */
static void twice_check(struct dtn_file_check *check,
                        const struct dtn_section *section, int i)
{
    const struct dtn_entry *entry = check->doc->entries + section->first;

    for (int k = 0; k < i; k++) {
        if (is_key(&entry[k]) || (!pattern_covers(entry[k].key, entry[i].key) &&
                                  !pattern_covers(entry[i].key, entry[k].key)))
            continue;
        dtn_finding(check->findings, entry[i].line, "%s: its modules have a "
                    "style by \"%s\" on line %d; expected one style for each "
                    "module", entry[i].key, entry[k].key, entry[k].line);
        return;
    }
}

/* -------------------------------------------------------------- entries --- */

static void layouts_check(struct dtn_file_check *check,
                          const struct dtn_entry *entry,
                          const struct dtn_style_words *words,
                          enum dtn_style_side side)
{
    char why[DTN_WHY_SIZE];

    for (int i = 0; i < words->side[side].n; i++) {
        const char *layout = words->side[side].layout[i];

        if (strcmp(layout, "-") == 0 && dtn_style_takes_dash(words))
            continue;
        if (!dtn_plan_layout_ok(layout, why))
            dtn_finding(check->findings, entry->line, "%s: %s", entry->key,
                        why);
        else if (side == DTN_STYLE_OUTPUT && layout[0] == 'P' &&
                 !dtn_style_takes_terms(words))
            dtn_finding(check->findings, entry->line, "%s: output=%s: the "
                        "output of %s is no term; expected R or S", entry->key,
                        layout, words->row->name);
    }
}

/* Check entry i of the section.  True: *words is its style. */
static bool entry_check(struct dtn_file_check *check,
                        const struct dtn_section *section, int i,
                        struct dtn_style_words *words)
{
    const struct dtn_entry *entry = check->doc->entries + section->first + i;
    const int before = check->findings->nerrors;
    char why[DTN_WHY_SIZE];

    if (!pattern_ok(entry->key))
        dtn_finding(check->findings, entry->line, "bad pattern \"%s\"; "
                    "expected names or wildcards (* ? [0-3]) of 1 to %d bytes "
                    "joined by \".\", or \".\" for the model itself",
                    entry->key, DTENSOR_NAME_MAX + 1);
    else
        twice_check(check, section, i);
    if (!dtn_style_words_read(entry->value, words, why)) {
        dtn_finding(check->findings, entry->line, "%s: %s", entry->key, why);
        return false;
    }
    layouts_check(check, entry, words, DTN_STYLE_INPUT);
    layouts_check(check, entry, words, DTN_STYLE_OUTPUT);
    return check->findings->nerrors == before;
}

/* Copy a string to the plan's text. */
static const char *text_keep(struct dtn_plan_def *plan, size_t *used,
                             const char *text)
{
    char *kept = plan->text + *used;

    *used += strlen(text) + 1;
    return strcpy(kept, text);
}

static int by_pattern(const void *a, const void *b)
{
    const struct dtensor_style *x = a, *y = b;

    return strcmp(x->pattern, y->pattern);
}

/* The lines of entries that have been sorted. */
static void lines_find(const struct dtn_file_check *check,
                       const struct dtn_section *section,
                       struct dtn_plan_def *plan)
{
    const struct dtn_entry *entry = check->doc->entries + section->first;

    for (int k = 0; k < plan->n; k++)
        for (int i = 0; i < section->n; i++) {
            const char *key = strcmp(entry[i].key, ".") == 0 ? ""
                                                             : entry[i].key;

            if (!is_key(&entry[i]) && strcmp(key, plan->style[k].pattern) == 0)
                plan->line[k] = entry[i].line;
        }
}

static int entries_read(struct dtn_file_check *check,
                        const struct dtn_section *section,
                        struct dtn_plan_def *plan)
{
    const struct dtn_entry *entry = check->doc->entries + section->first;
    struct dtn_style_words words;
    size_t size = 1, used = 0;

    for (int i = 0; i < section->n; i++)
        size += strlen(entry[i].key) + DTN_LAYOUT_SIZE + 1;
    plan->style = calloc((size_t)section->n + 1, sizeof *plan->style);
    plan->line = calloc((size_t)section->n + 1, sizeof *plan->line);
    plan->text = malloc(size);
    if (!plan->style || !plan->line || !plan->text)
        return dtn_fail_nomem(check->err, "plan", size);
    for (int i = 0; i < section->n; i++) {
        if (is_key(&entry[i]) || !entry_check(check, section, i, &words))
            continue;
        plan->style[plan->n].pattern =
            text_keep(plan, &used, strcmp(entry[i].key, ".") == 0
                                   ? "" : entry[i].key);
        plan->style[plan->n++].style = text_keep(plan, &used, words.text);
    }
    qsort(plan->style, (size_t)plan->n, sizeof *plan->style, by_pattern);
    lines_find(check, section, plan);
    return 0;
}

/* ------------------------------------------------------------- sections --- */

/* The keys mesh and dim. */
static void mesh_check(struct dtn_file_check *check,
                       const struct dtn_section *section,
                       struct dtn_plan_def *plan)
{
    const struct dtn_entry *mesh = dtn_section_get(check->doc, section, "mesh");
    const struct dtn_entry *dim = dtn_section_get(check->doc, section, "dim");
    const struct dtn_mesh_def *def;

    plan->mesh = mesh ? dtn_file_check_mesh_name(check, mesh) : -1;
    if (dim && !mesh)
        dtn_finding(check->findings, dim->line, "dim: of no mesh; expected "
                    "mesh = the name of a mesh");
    if (plan->mesh < 0)
        return;
    def = &check->cluster->meshes[plan->mesh];
    if (dim)
        plan->dim = dtn_file_check_dim_name(check, dim, def, dim->value);
    else if (def->ndim > 1)
        dtn_finding(check->findings, mesh->line, "mesh: \"%s\" has %d dims; "
                    "expected dim = one of them", def->name, def->ndim);
}

/* The number of entries that are patterns. */
static int patterns(const struct dtn_file_check *check,
                    const struct dtn_section *section)
{
    int n = 0;

    for (int i = 0; i < section->n; i++)
        n += !is_key(check->doc->entries + section->first + i);
    return n;
}

static int plan_read(struct dtn_file_check *check,
                     const struct dtn_section *section,
                     struct dtn_plan_def *plan)
{
    const int n = patterns(check, section);

    strcpy(plan->name, section->name);
    mesh_check(check, section, plan);
    if (n > 0 && n <= ENTRIES_MAX)
        return entries_read(check, section, plan);
    dtn_finding(check->findings, section->line, "[plan \"%s\"] has %d entries; "
                "expected 1 to %d of PATTERN = STYLE, such as layers.*.up = "
                "colwise", section->name, n, ENTRIES_MAX);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct dtn_plan_def *x = a, *y = b;

    return strcmp(x->name, y->name);
}

int dtn_file_check_plans(struct dtn_file_check *check)
{
    struct dtensor_cluster *cluster = check->cluster;
    const struct dtn_section *section = NULL;
    int capacity = 0, rc = 0;

    while (rc == 0 && (section = dtn_section_next(check->doc, DTN_KIND_PLAN,
                                                  section))) {
        if (!dtn_array_reserve(&cluster->plans, &capacity, cluster->nplans + 1,
                               sizeof *cluster->plans))
            return dtn_fail_nomem(check->err, "plan", sizeof *cluster->plans);
        cluster->plans[cluster->nplans] = (struct dtn_plan_def){ .mesh = -1 };
        rc = plan_read(check, section, &cluster->plans[cluster->nplans++]);
    }
    if (cluster->nplans > 1)
        qsort(cluster->plans, (size_t)cluster->nplans, sizeof *cluster->plans,
              by_name);
    return rc;
}
