/* list.c - values that are lists
 *
 * "0-3,8-14:2" is the numbers 0 1 2 3 8 10 12 14.  "mlx5_[0-1]:1" for four
 * ranks is the devices mlx5_0:1 mlx5_0:1 mlx5_1:1 mlx5_1:1, because local rank
 * i of n gets entry i*2/n.  "mlx5_0+mlx5_1" gives each rank two devices.
 * "0-7,16-23 | 8-15" gives each of two ranks a CPU set.
 */
#include "cluster/list.h"
#include "base/array.h"
#include "base/ranks.h"
#include "base/units.h"
#include "cluster/cluster.h"
#include "cluster/file.h"
#include "cluster/hostlist.h"
#include "cluster/value.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WHY(...) (snprintf(why, DTN_WHY_SIZE, __VA_ARGS__), DTENSOR_ECONF)

bool dtn_list_next(const char **cursor, char separator,
                   char item[DTN_ITEM_SIZE])
{
    const char *start = *cursor, *p = start;
    int depth = 0;
    size_t n;

    if (!start)
        return false;
    for (; *p && (*p != separator || depth > 0); p++)
        depth += (*p == '[') - (*p == ']' && depth > 0);
    *cursor = *p ? p + 1 : NULL;
    start += strspn(start, " \t");
    n = p > start ? (size_t)(p - start) : 0;
    while (n > 0 && strchr(" \t", start[n - 1]))
        n--;
    if (n >= DTN_ITEM_SIZE)
        n = DTN_ITEM_SIZE - 1;
    memcpy(item, start, n);
    item[n] = '\0';
    return true;
}

bool dtn_list_assignment(char item[DTN_ITEM_SIZE], char **valuep)
{
    char *equals = strchr(item, '='), *end = equals;

    if (!equals)
        return false;
    while (end > item && strchr(" \t", end[-1]))
        end--;
    *end = '\0';
    *valuep = equals + 1 + strspn(equals + 1, " \t");
    return dtn_name_ok(item);
}

/* ------------------------------------------------------------- numbers --- */

struct number_range {
    uint64_t first, last, step;
};

/* "A", "A-B" or "A-B:STEP". */
static bool range_parse(const char *item, struct number_range *range)
{
    char text[DTN_ITEM_SIZE], *dash, *colon;

    strcpy(text, item);
    dash = strchr(text, '-');
    colon = dash ? strchr(dash, ':') : NULL;
    if (colon)
        *colon = '\0';
    if (dash)
        *dash = '\0';
    range->step = 1;
    return dtn_parse_u64(text, false, INT32_MAX, &range->first) &&
           dtn_parse_u64(dash ? dash + 1 : text, false, INT32_MAX,
                         &range->last) &&
           (!colon || dtn_parse_u64(colon + 1, false, INT32_MAX, &range->step));
}

static int range_check(const char *item, const char *what, int max,
                       struct number_range *range, char why[DTN_WHY_SIZE])
{
    if (!range_parse(item, range) || range->step == 0)
        return WHY("\"%s\" is not a %s or a range of them; expected a list "
                   "such as 0-3,8", item, what);
    if (range->first > range->last)
        return WHY("range \"%s\" runs backwards; expected %d-%d", item,
                   (int)range->last, (int)range->first);
    if (range->last > (uint64_t)max)
        return WHY("%s %d does not exist; expected 0 to %d", what,
                   range->first > (uint64_t)max ? (int)range->first : max + 1,
                   max);
    return 0;
}

int dtn_list_numbers(const char *text, const char *what, int max,
                     int **valuesp, int *np, char why[DTN_WHY_SIZE])
{
    char item[DTN_ITEM_SIZE];
    struct number_range range;
    uint64_t count, n = 0;
    int *values = NULL, capacity = 0, rc = 0;

    for (const char *cursor = text; dtn_list_next(&cursor, ',', item);) {
        rc = range_check(item, what, max, &range, why);
        if (rc < 0)
            break;
        count = (range.last - range.first) / range.step + 1;
        if (n + count > DTN_MAX_WORLD) {
            rc = WHY("more than %d numbers", DTN_MAX_WORLD);
            break;
        }
        if (!dtn_array_reserve(&values, &capacity, (int)(n + count),
                               sizeof *values)) {
            rc = DTENSOR_ENOMEM;
            break;
        }
        for (uint64_t i = 0; i < count; i++)
            values[n++] = (int)(range.first + i * range.step);
    }
    if (rc < 0) {
        free(values);
        return rc;
    }
    *valuesp = values;
    *np = (int)n;
    return 0;
}

void dtn_list_print(const struct dtn_ranks *numbers, FILE *stream)
{
    int first, last, from, to;

    for (first = 0; first < numbers->n; first = last + 1) {
        from = to = dtn_ranks_at(numbers, first);
        for (last = first; last + 1 < numbers->n &&
                           dtn_ranks_at(numbers, last + 1) == to + 1; to++)
            last++;
        fprintf(stream, first == last ? "%s%d" : "%s%d-%d", first ? "," : "",
                from, to);
    }
}

/* ------------------------------------------------------------- strings --- */

/* A growing list of strings, each its own block. */
struct strings {
    char **text;
    int n, capacity;
};

static int strings_add(struct strings *list, const char *text)
{
    if (!dtn_array_reserve(&list->text, &list->capacity, list->n + 1,
                           sizeof *list->text))
        return DTENSOR_ENOMEM;
    list->text[list->n] = strdup(text);
    if (!list->text[list->n])
        return DTENSOR_ENOMEM;
    list->n++;
    return 0;
}

/* ----------------------------------------------------------------- hca --- */

/* The devices of "mlx5_[0-1]:1", port 1 unless given. */
static int hca_devices(const char *item, struct strings *list,
                       char why[DTN_WHY_SIZE])
{
    char device[DTN_ITEM_SIZE], full[DTN_HOST_MAX + 8], *colon, **names;
    char reason[DTN_WHY_SIZE / 2];
    uint64_t port = 1;
    int n, rc;

    strcpy(device, item);
    colon = strrchr(device, ':');
    if (colon) {
        *colon = '\0';
        if (!dtn_parse_u64(colon + 1, false, 254, &port) || port == 0)
            return WHY("bad port \"%s\" in \"%s\"; expected 1 to 254",
                       colon + 1, item);
    }
    rc = dtn_hostlist_expand(device, &names, &n, reason, sizeof reason);
    if (rc == DTENSOR_ENOMEM)
        return rc;
    if (rc < 0)
        return WHY("%s", reason);
    for (int i = 0; i < n && rc == 0; i++) {
        snprintf(full, sizeof full, "%s:%d", names[i], (int)port);
        rc = strings_add(list, full);
    }
    dtn_hostlist_free(names, n);
    return rc;
}

/* Is the device one of "mlx5_0:1+mlx5_1:1"? */
static bool hca_among(const char *device, const char *rails)
{
    size_t n = strlen(device);

    for (const char *p = rails; p; p = strchr(p, '+')) {
        p += *p == '+';
        if (strncmp(p, device, n) == 0 && (p[n] == '+' || !p[n]))
            return true;
    }
    return false;
}

/* Add one more device to each of `rails`: mlx5_0 and mlx5_1 with mlx5_2 and
 * mlx5_3 become mlx5_0+mlx5_2 and mlx5_1+mlx5_3.
 */
static int hca_join(struct strings *rails, const struct strings *more,
                    const char *item, char why[DTN_WHY_SIZE])
{
    char *both;

    if (rails->n != more->n)
        return WHY("\"%s\" joins %d device%s and %d; expected as many on each "
                   "side of a \"+\"", item, rails->n, rails->n == 1 ? "" : "s",
                   more->n);
    for (int i = 0; i < more->n; i++) {
        if (hca_among(more->text[i], rails->text[i]))
            return WHY("\"%s\" is twice in \"%s\"; expected another device for "
                       "each rail", more->text[i], item);
        if (asprintf(&both, "%s+%s", rails->text[i], more->text[i]) < 0)
            return DTENSOR_ENOMEM;
        free(rails->text[i]);
        rails->text[i] = both;
    }
    return 0;
}

/* Read "mlx5_0+mlx5_1": one device for each of *nrailsp rails. */
static int hca_rails(const char *item, struct strings *rails, int *nrailsp,
                     char why[DTN_WHY_SIZE])
{
    struct strings more;
    char part[DTN_ITEM_SIZE];
    int n = 0, rc = 0;

    for (const char *cursor = item;
         rc == 0 && dtn_list_next(&cursor, '+', part); n++) {
        more = (struct strings){ .n = 0 };
        rc = !*part ? WHY("nothing beside a \"+\" in \"%s\"; expected a device",
                          item)
           : hca_devices(part, n == 0 ? rails : &more, why);
        if (rc == 0 && n > 0)
            rc = hca_join(rails, &more, item, why);
        dtn_hostlist_free(more.text, more.n);
    }
    if (rc == 0 && n > DTN_MAX_RAILS)
        rc = WHY("%d rails in \"%s\"; expected at most %d", n, item,
                 DTN_MAX_RAILS);
    *nrailsp = n;
    return rc;
}

/* Add the entries of one item.  It must have as many rails as those before. */
static int hca_entry(struct strings *list, const char *item, int *nrailsp,
                     char why[DTN_WHY_SIZE])
{
    struct strings rails = { .n = 0 };
    int n, rc = hca_rails(item, &rails, &n, why);

    if (rc == 0 && list->n > 0 && n != *nrailsp)
        rc = WHY("\"%s\" has %d rail%s, those before it %d; expected as many "
                 "for every rank", item, n, n == 1 ? "" : "s", *nrailsp);
    *nrailsp = n;
    for (int i = 0; i < rails.n && rc == 0; i++)
        rc = strings_add(list, rails.text[i]);
    dtn_hostlist_free(rails.text, rails.n);
    return rc;
}

/* Give each rank its entry: rank i of nranks gets entry i*n/nranks. */
static int hca_spread(const struct strings *devices, int nranks,
                      struct strings *list, char why[DTN_WHY_SIZE])
{
    int rc = 0;

    if (nranks % devices->n != 0)
        return WHY("%d devices for %d ranks on each node; expected a number of "
                   "devices that divides %d", devices->n, nranks, nranks);
    for (int i = 0; i < nranks && rc == 0; i++)
        rc = strings_add(list, devices->text[(int64_t)i * devices->n / nranks]);
    return rc;
}

int dtn_hca_parse(const char *text, int nranks, char ***hcap, int *nrailsp,
                  char why[DTN_WHY_SIZE])
{
    struct strings devices = { .n = 0 }, list = { .n = 0 };
    char item[DTN_ITEM_SIZE];
    int nrails = 0, rc = 0;

    for (const char *cursor = text;
         rc == 0 && dtn_list_next(&cursor, ',', item);)
        rc = hca_entry(&devices, item, &nrails, why);
    if (rc == 0)
        rc = hca_spread(&devices, nranks, &list, why);
    dtn_hostlist_free(devices.text, devices.n);
    if (rc < 0) {
        dtn_hostlist_free(list.text, list.n);
        return rc;
    }
    *hcap = list.text;
    *nrailsp = nrails;
    return 0;
}

/* ---------------------------------------------------------------- cpus --- */

#define CPUS_MAX 8192              /* the most that Linux can be built for    */

/* Append numbers[] as a string.  They are ascending and have no repeats. */
static int cpus_add(struct strings *list, const int numbers[], int n)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    int rc = DTENSOR_ENOMEM;

    if (!stream)
        return rc;
    dtn_list_print(&(struct dtn_ranks){ .n = n, .list = numbers }, stream);
    if (fclose(stream) == 0)
        rc = strings_add(list, text);
    free(text);
    return rc;
}

/* One set, in one form: "3,0-1,2" is "0-3". */
static int cpus_set(struct strings *list, const char *item,
                    char why[DTN_WHY_SIZE])
{
    bool in_set[CPUS_MAX] = { false };
    int *numbers, n, kept = 0, rc;

    rc = dtn_list_numbers(item, "CPU", CPUS_MAX - 1, &numbers, &n, why);
    if (rc < 0)
        return rc;
    for (int i = 0; i < n; i++)
        in_set[numbers[i]] = true;
    for (int cpu = 0; cpu < CPUS_MAX; cpu++)
        if (in_set[cpu])
            numbers[kept++] = cpu;
    rc = cpus_add(list, numbers, kept);
    free(numbers);
    return rc;
}

int dtn_cpus_parse(const char *text, int nranks, char ***cpusp,
                   char why[DTN_WHY_SIZE])
{
    struct strings list = { .n = 0 };
    char item[DTN_ITEM_SIZE];
    int rc = 0;

    for (const char *cursor = text;
         rc == 0 && dtn_list_next(&cursor, '|', item);)
        rc = cpus_set(&list, item, why);
    if (rc == 0 && list.n != nranks)
        rc = WHY("%d CPU sets for %d ranks on each node; expected none, numa, "
                 "or one set for each rank, separated by \"|\"", list.n,
                 nranks);
    if (rc < 0) {
        dtn_hostlist_free(list.text, list.n);
        return rc;
    }
    *cpusp = list.text;
    return 0;
}
