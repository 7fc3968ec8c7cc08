/* cgroup.c - what the control groups of this process allow
 *
 * Slurm and containers limit memory by control groups, and Kubernetes also
 * huge pages.  A group has no more than the groups around it: if the step in
 * "/job/step" may use all, and the job 100 GiB, the limit is 100 GiB.
 */
#include "transport/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define CGROUP_PATH_MAX 4096
#define CGROUP_MOST_BYTES (UINT64_C(1) << 62)   /* from here on: no limit     */

/* Where a limit stands. */
static const struct {
    const char *controller;       /* its name in version 1                    */
    const char *v1, *v2;          /* the file with the limit                  */
} limits[] = {
    [DTN_CGROUP_MEMORY] = { "memory", "memory.limit_in_bytes", "memory.max" },
    [DTN_CGROUP_HUGE] = { "hugetlb", "hugetlb.2MB.limit_in_bytes",
                          "hugetlb.2MB.max" }
};

/* The number at the start of a file; UINT64_MAX: no file, or no limit. */
static uint64_t cgroup_number(const char *path)
{
    unsigned long long value;
    FILE *file = fopen(path, "re");
    bool good;

    if (!file)
        return UINT64_MAX;
    good = fscanf(file, "%llu", &value) == 1;
    fclose(file);
    return good && value < CGROUP_MOST_BYTES ? value : UINT64_MAX;
}

/* The smallest limit of a control group and its parents: for "/a/b" the files
 * ROOT/a/b/NAME, ROOT/a/NAME and ROOT/NAME.  In a container only the last may
 * exist; it is the limit of the container.
 */
static uint64_t cgroup_least(const char *root, char *group, const char *name)
{
    char path[CGROUP_PATH_MAX + 320];
    uint64_t least = UINT64_MAX, limit;
    char *slash;

    do {
        snprintf(path, sizeof path, "%s%s/%s", root, group, name);
        limit = cgroup_number(path);
        least = limit < least ? limit : least;
        slash = strrchr(group, '/');
        if (slash)
            *slash = '\0';
    } while (slash);
    return least;
}

uint64_t dtn_cgroup_bytes_at(enum dtn_cgroup what, const char *proc,
                             const char *mount)
{
    char line[CGROUP_PATH_MAX], root[256], controller[32];
    uint64_t least = UINT64_MAX, limit = UINT64_MAX;
    FILE *file = fopen(proc, "re");
    char *group;

    snprintf(root, sizeof root, "%s/%s", mount, limits[what].controller);
    snprintf(controller, sizeof controller, ":%s:", limits[what].controller);
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        group = strchr(line, ':') ? strchr(strchr(line, ':') + 1, ':') : NULL;
        if (!group)
            continue;
        if (strncmp(line, "0::", 3) == 0)                     /* version 2    */
            limit = cgroup_least(mount, group + 1, limits[what].v2);
        else if (strstr(line, controller))                    /* version 1    */
            limit = cgroup_least(root, group + 1, limits[what].v1);
        least = limit < least ? limit : least;
    }
    if (file)
        fclose(file);
    return least;
}

uint64_t dtn_cgroup_bytes(enum dtn_cgroup what)
{
    return dtn_cgroup_bytes_at(what, "/proc/self/cgroup", "/sys/fs/cgroup");
}
