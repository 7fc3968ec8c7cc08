/* plan.c - [seed], [tuning] and [plan "P"]
 *
 * Seeds: rank r draws from base + stride * index, where index numbers its
 * coordinates in the `distinct` dims, the first listed fastest.  With base = 7,
 * stride = 100, distinct = pp, a rank at pp=3 has seed 307.
 *
 * Tuning: "0-32K:direct, 32K-inf:ring" is two entries, {0, direct} and
 * {32768, ring}: ranges without a gap need no ends.
 */
#include "cluster/file.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- seed --- */

static void seed_distinct(struct dtn_check *check,
                          const struct dtn_entry *entry,
                          const struct dtn_mesh_def *mesh,
                          struct dtn_seed_conf *seed)
{
    char item[DTN_ITEM_SIZE];
    int dim;

    for (const char *cursor = entry->value;
         dtn_list_next(&cursor, ',', item);) {
        dim = dtn_check_dim_name(check, entry, mesh, item);
        if (dim < 0)
            return;
        for (int i = 0; i < seed->ndistinct; i++) {
            if (seed->distinct[i] != dim)
                continue;
            dtn_finding(check->findings, entry->line, "distinct: dim \"%s\" is "
                        "listed twice", item);
            return;
        }
        seed->distinct[seed->ndistinct++] = dim;
    }
}

void dtn_seed_defaults(struct dtn_seed_conf *seed)
{
    *seed = (struct dtn_seed_conf){
        .stride = 1, .mesh = -1, .tracker = DTENSOR_TRACKER_GLOBAL,
        .fill = DTENSOR_FILL_SEQUENTIAL, .sms = 132, .threads_per_sm = 2048
    };
}

int dtn_check_seed(struct dtn_check *check)
{
    struct dtn_seed_conf *seed = &check->cluster->seed;
    const struct dtn_section *section;
    const struct dtn_entry *mesh, *distinct;

    dtn_seed_defaults(seed);
    section = dtn_section_next(check->doc, DTN_KIND_SEED, NULL);
    if (!section)
        return 0;
    seed->given = true;
    dtn_check_scalars(check, section, seed);
    mesh = dtn_section_get(check->doc, section, "mesh");
    distinct = dtn_section_get(check->doc, section, "distinct");
    if (distinct && strcmp(distinct->value, "none") == 0)
        distinct = NULL;
    if (mesh)
        seed->mesh = dtn_check_mesh_name(check, mesh);
    if (distinct && !mesh)
        dtn_finding(check->findings, distinct->line, "distinct: dims of no "
                    "mesh; expected mesh = the name of a mesh");
    else if (distinct && seed->stride == 0)
        dtn_finding(check->findings, distinct->line, "distinct: stride = 0 "
                    "gives all of them the same seed; expected a stride of 1 "
                    "or more, or no distinct");
    else if (distinct && seed->mesh >= 0)
        seed_distinct(check, distinct, &check->cluster->meshes[seed->mesh],
                      seed);
    return 0;
}

/* Position of world rank `rank` in the mesh, or -1; at once where it is in
 * order.
 */
static int seed_position(const struct dtn_mesh_def *mesh, int rank)
{
    if (rank < mesh->nranks && mesh->ranks[rank] == rank)
        return rank;
    for (int i = 0; i < mesh->nranks; i++)
        if (mesh->ranks[i] == rank)
            return i;
    return -1;
}

uint64_t dtn_seed_of(const struct dtensor_cluster *cluster, int rank)
{
    const struct dtn_seed_conf *seed = &cluster->seed;
    const struct dtn_mesh_def *mesh;
    int position, coord[DTENSOR_MAX_DIMS];
    uint64_t index = 0, weight = 1;

    if (seed->mesh < 0)
        return seed->base;
    mesh = &cluster->meshes[seed->mesh];
    position = seed_position(mesh, rank);
    if (position < 0)
        return seed->base;
    for (int d = mesh->ndim - 1; d >= 0; d--) {
        coord[d] = position % mesh->size[d];
        position /= mesh->size[d];
    }
    for (int i = 0; i < seed->ndistinct; i++) {
        index += (uint64_t)coord[seed->distinct[i]] * weight;
        weight *= (uint64_t)mesh->size[seed->distinct[i]];
    }
    return seed->base + seed->stride * index;             /* modulo 2^64      */
}

/* -------------------------------------------------------------- tuning --- */

#define TUNING_INF UINT64_MAX

struct tuning_range {
    uint64_t from, to;
    int algorithm;
};

static bool tuning_size(const char *text, uint64_t *bytes)
{
    *bytes = TUNING_INF;
    return strcmp(text, "inf") == 0 || dtn_parse_size(text, bytes);
}

/* "0-32K:direct"; false: *why. */
static bool tuning_range_parse(const char *item, struct tuning_range *range,
                               char why[DTN_WHY_SIZE])
{
    const char *known[16] = { NULL };
    char text[DTN_ITEM_SIZE], advice[DTN_WHY_SIZE / 2], *dash, *colon;

    strcpy(text, item);
    dash = strchr(text, '-');
    colon = dash ? strchr(dash, ':') : NULL;
    if (colon) {
        *dash++ = '\0';
        *colon++ = '\0';
    }
    if (!colon || !dtn_parse_size(text, &range->from) ||
        !tuning_size(dash, &range->to)) {
        snprintf(why, DTN_WHY_SIZE, "bad entry \"%s\"; expected "
                 "from-to:algorithm, such as 0-64K:direct, 64K-inf:ring", item);
        return false;
    }
    for (int i = 0; dtn_algorithm_words[i].text; i++) {
        known[i] = dtn_algorithm_words[i].text;
        range->algorithm = dtn_algorithm_words[i].number;
        if (strcmp(colon, known[i]) == 0)
            return true;
    }
    snprintf(why, DTN_WHY_SIZE, "no algorithm \"%s\"; %s", colon,
             dtensor_advise(colon, known, "direct, ring, tree, twotree, "
                            "doubling, halving, bruck, pairwise or "
                            "hierarchical", advice, sizeof advice));
    return false;
}

/* Does the range begin where the last one ended? */
static bool tuning_range_check(const struct tuning_range *range, uint64_t at,
                               char why[DTN_WHY_SIZE])
{
    char from[32], to[32], last[32];

    dtn_exact_size(range->from, from, sizeof from);
    dtn_exact_size(range->to, to, sizeof to);
    dtn_exact_size(at, last, sizeof last);
    if (at == TUNING_INF)
        snprintf(why, DTN_WHY_SIZE, "a range follows the one to inf; expected "
                 "inf last");
    else if (range->from != at && at == 0)
        snprintf(why, DTN_WHY_SIZE, "begins at %s; expected 0", from);
    else if (range->from != at)
        snprintf(why, DTN_WHY_SIZE, "a range ends at %s and the next begins at "
                 "%s; expected no gap or overlap", last, from);
    else if (range->to <= range->from)
        snprintf(why, DTN_WHY_SIZE, "range %s-%s is empty; expected a larger "
                 "second number", from, to);
    else
        return true;
    return false;
}

/* Append the entry; one that goes on with the same algorithm adds nothing. */
static bool tuning_add(struct dtn_tuning *tuning,
                       const struct tuning_range *range,
                       char why[DTN_WHY_SIZE])
{
    int n = tuning->n;

    if (n > 0 && (int)tuning->entry[n - 1].algorithm == range->algorithm)
        return true;
    if (n == (int)DTN_COUNT(tuning->entry)) {
        snprintf(why, DTN_WHY_SIZE, "too many ranges; expected at most %d", n);
        return false;
    }
    tuning->entry[n].from_bytes = range->from;
    tuning->entry[n].algorithm = (enum dtn_algorithm)range->algorithm;
    tuning->n++;
    return true;
}

static bool tuning_parse(const char *text, struct dtn_tuning *tuning,
                         char why[DTN_WHY_SIZE])
{
    char item[DTN_ITEM_SIZE], last[32];
    struct tuning_range range;
    uint64_t at = 0;

    for (const char *cursor = text; dtn_list_next(&cursor, ',', item);) {
        if (!tuning_range_parse(item, &range, why) ||
            !tuning_range_check(&range, at, why) ||
            !tuning_add(tuning, &range, why))
            return false;
        at = range.to;
    }
    if (at == TUNING_INF)
        return true;
    snprintf(why, DTN_WHY_SIZE, "ends at %s; expected inf",
             dtn_exact_size(at, last, sizeof last));
    return false;
}

int dtn_check_tuning(struct dtn_check *check)
{
    const struct dtn_section *section;
    const struct dtn_entry *entry;
    char why[DTN_WHY_SIZE];
    const char *key;

    section = dtn_section_next(check->doc, DTN_KIND_TUNING, NULL);
    for (int i = 0; section && i < DTN_NTUNED; i++) {
        key = dtn_kinds[DTN_KIND_TUNING].keys[i].name;
        entry = dtn_section_get(check->doc, section, key);
        if (entry && !tuning_parse(entry->value, &check->cluster->tuning[i],
                                   why))
            dtn_finding(check->findings, entry->line, "%s: %s", key, why);
    }
    if (section)
        dtn_check_scalars(check, section, &check->cluster->costs);
    return 0;
}

/* ---------------------------------------------------------------- plan --- */

/* A dotted name whose components may have wildcards: "layers.*.up". */
static bool plan_pattern_ok(const char *text)
{
    size_t n = strlen(text);

    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789_-.*?[]!") == n &&
           text[0] != '.' && text[n - 1] != '.' && !strstr(text, "..");
}

static bool plan_style(const char *text, enum dtn_style *style, int *shard_dim)
{
    for (const struct dtn_word *word = dtn_style_words; word->text; word++) {
        if (strcmp(word->text, text) != 0)
            continue;
        *style = (enum dtn_style)word->number;
        return true;
    }
    if (strncmp(text, "shard(", 6) != 0 || text[6] < '0' || text[6] > '7' ||
        strcmp(text + 7, ")") != 0)
        return false;
    *style = DTN_STYLE_SHARD;
    *shard_dim = text[6] - '0';
    return true;
}

static int plan_rule(struct dtn_check *check, const struct dtn_entry *entry,
                     struct dtn_plan_conf *plan)
{
    enum dtn_style style = DTN_STYLE_REPLICATE;
    int shard_dim = 0, rc;

    if (!plan_pattern_ok(entry->key)) {
        dtn_finding(check->findings, entry->line, "bad pattern \"%s\"; "
                    "expected a dotted name such as layers.*.up.weight",
                    entry->key);
        return 0;
    }
    if (!plan_style(entry->value, &style, &shard_dim)) {
        dtn_finding(check->findings, entry->line, "%s: \"%s\"; expected "
                    "column, row, replicate or shard(0) to shard(7)",
                    entry->key, entry->value);
        return 0;
    }
    rc = dtn_array_grow(&plan->rule, plan->nrules, sizeof *plan->rule,
                        check->err);
    if (rc < 0)
        return rc;
    plan->rule[plan->nrules].style = style;
    plan->rule[plan->nrules].shard_dim = shard_dim;
    plan->rule[plan->nrules].pattern = strdup(entry->key);
    if (!plan->rule[plan->nrules].pattern)
        return dtn_fail_nomem(check->err, "plan", strlen(entry->key));
    plan->nrules++;
    return 0;
}

static void plan_place(struct dtn_check *check,
                       const struct dtn_section *section,
                       struct dtn_plan_conf *plan)
{
    const struct dtn_entry *mesh, *dim;

    mesh = dtn_section_get(check->doc, section, "mesh");
    dim = dtn_section_get(check->doc, section, "dim");
    plan->mesh = mesh ? dtn_check_mesh_name(check, mesh) : -1;
    if (plan->mesh >= 0 && dim)
        plan->dim = dtn_check_dim_name(check, dim,
                                       &check->cluster->meshes[plan->mesh],
                                       dim->value);
}

static int plan_section(struct dtn_check *check,
                        const struct dtn_section *section)
{
    struct dtensor_cluster *cluster = check->cluster;
    const struct dtn_entry *entry = check->doc->entries + section->first;
    struct dtn_plan_conf *plan;
    int rc;

    rc = dtn_array_grow(&cluster->plans, cluster->nplans,
                        sizeof *cluster->plans, check->err);
    if (rc < 0)
        return rc;
    plan = &cluster->plans[cluster->nplans++];
    strcpy(plan->name, section->name);
    dtn_check_scalars(check, section, plan);
    plan_place(check, section, plan);
    for (int i = 0; i < section->n && rc == 0; i++)
        if (!dtn_key_find(section->kind, entry[i].key))
            rc = plan_rule(check, &entry[i], plan);
    return rc;
}

int dtn_check_plans(struct dtn_check *check)
{
    const struct dtn_section *section = NULL;
    int rc = 0;

    while (rc == 0 && (section = dtn_section_next(check->doc, DTN_KIND_PLAN,
                                                  section)) != NULL)
        rc = plan_section(check, section);
    return rc;
}
