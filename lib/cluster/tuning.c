/* tuning.c - [tuning]: algorithms by message size, and costs
 *
 * "0-32K:direct, 32K-inf:ring" gives two entries, {0, direct} and {32768,
 * ring}.  Ranges have no gaps, so an entry needs no end.
 */
#include "base/compiler.h"
#include "base/units.h"
#include "cluster/check.h"
#include "cluster/cluster.h"
#include "cluster/file.h"
#include "cluster/findings.h"
#include "cluster/list.h"
#include "cluster/reader.h"
#include "cluster/sections.h"
#include "cluster/value.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

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

/* Read "0-32K:direct".  False: the reason is in `why`. */
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
             dtensor_advise(colon, known, NULL, advice, sizeof advice));
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

/* Append an entry, unless its algorithm is that of the last one. */
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

int dtn_file_check_tuning(struct dtn_file_check *check)
{
    const struct dtn_section *section;
    const struct dtn_entry *entry;
    char why[DTN_WHY_SIZE];
    const char *key;

    section = dtn_section_next(check->doc, DTN_KIND_TUNING, NULL);
    for (int i = 0; section && i < DTN_NTUNED; i++) {
        key = dtn_section_kinds[DTN_KIND_TUNING].keys[i].name;
        entry = dtn_section_get(check->doc, section, key);
        if (entry && !tuning_parse(entry->value, &check->cluster->tuning[i],
                                   why))
            dtn_finding(check->findings, entry->line, "%s: %s", key, why);
    }
    if (section)
        dtn_file_check_scalars(check, section, &check->cluster->costs);
    return 0;
}
