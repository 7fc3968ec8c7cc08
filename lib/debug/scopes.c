/* scopes.c - the tree of scopes
 *
 * The first scope contains all others.  A scope that is entered again inside
 * the same parent is found by its name.  So a loop of 1,000 steps that all open
 * "step" has one scope, which was entered 1,000 times.
 */
#include "debug/counters.h"

#include <stdio.h>
#include <string.h>

/* The child of that name: `n` bytes of it; -1: none. */
static int child_find(const struct dtn_counters *counters, int parent,
                      const char *name, size_t n)
{
    int child = counters->scopes[parent].first;

    while (child >= 0 && (strncmp(counters->scopes[child].name, name, n) != 0 ||
                          counters->scopes[child].name[n] != '\0'))
        child = counters->scopes[child].next;
    return child;
}

static int scope_make(struct dtn_counters *counters, int parent,
                      const char *name, const char *type)
{
    const int made = counters->nscopes++;
    struct dtn_scope *scope = &counters->scopes[made];

    *scope = (struct dtn_scope){ .parent = parent, .first = -1, .last = -1,
                                 .next = -1, .line = -1, .line_last = -1 };
    snprintf(scope->name, sizeof scope->name, "%s", name);
    snprintf(scope->type, sizeof scope->type, "%s", type ? type : "");
    if (parent < 0)
        return made;
    if (counters->scopes[parent].last >= 0)
        counters->scopes[counters->scopes[parent].last].next = made;
    else
        counters->scopes[parent].first = made;
    counters->scopes[parent].last = made;
    return made;
}

int dtn_scope_enter(struct dtn_counters *counters, int parent,
                    const char *name, const char *type)
{
    const size_t n = strnlen(name, DTN_SCOPE_NAME - 1);
    const int child = parent < 0 ? -1
                    : child_find(counters, parent, name, n);

    if (child >= 0)
        return child;
    if (counters->nscopes < counters->scopes_room)
        return scope_make(counters, parent, name, type);
    counters->scopes_lost++;
    return parent;
}

int dtn_scope_find(const struct dtn_counters *counters, const char *path)
{
    int scope = 0;

    while (scope >= 0 && path && *path) {
        const size_t n = strcspn(path, "/");

        scope = child_find(counters, scope, path, n);
        path += n + (path[n] == '/');
    }
    return scope;
}

static void count_add(struct dtensor_debug_count *sum,
                      const struct dtensor_debug_count *count)
{
    sum->calls += count->calls;
    sum->predicted_bytes += count->predicted_bytes;
    sum->sent_bytes += count->sent_bytes;
    sum->time_ns += count->time_ns;
    sum->device_ns += count->device_ns;
    sum->predicted_ns += count->predicted_ns;
}

struct dtensor_debug_count dtn_scope_sum(const struct dtn_counters *counters,
                                         int scope,
                                         enum dtensor_direction direction,
                                         int kind)
{
    struct dtensor_debug_count sum = { 0 }, below;
    const struct dtn_scope *s = &counters->scopes[scope];

    for (int k = 0; k < DTENSOR_DEBUG_NKINDS; k++)
        if (kind == DTENSOR_DEBUG_ALL || k == kind)
            count_add(&sum, &s->side[direction].kind[k]);
    for (int child = s->first; child >= 0;
         child = counters->scopes[child].next) {
        below = dtn_scope_sum(counters, child, direction, kind);
        count_add(&sum, &below);
    }
    return sum;
}
