/* cluster.c - any bytes as a cluster file
 *
 * Reading must end with a cluster or with findings of the form FILE[:LINE]:
 * error|warning.
 */
#include "cluster/canonical.h"
#include "cluster/cluster.h"
#include "dtensor.h"
#include "tests/cluster/cluster_files.h"
#include "tests/fuzz/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_report(const char *text)
{
    for (const char *p = text; *p; p = strchr(p, '\n') + 1)
        if (p[0] != 'F' || p[1] != ':' || !strchr(p, '\n')
            || (!strstr(p, ": error: ") && !strstr(p, ": warning: ")))
            abort();
}

/* A good one has views, a text of its own, and no rank without a host. */
static void check_cluster(const struct dtensor_cluster *cluster)
{
    static FILE *null;
    char *text;

    if (!null)
        null = fopen("/dev/null", "w");
    if (cluster->world_size < 1 || cluster->nmeshes < 1)
        abort();
    if (cluster->world_size > 4096)
        return;
    for (int view = 0; view < DTENSOR_NSHOWS; view++)
        if (dtensor_cluster_show(cluster, (enum dtensor_show)view, -1, null,
                                 NULL) != 0 && view != DTENSOR_SHOW_SEEDS
            && view != DTENSOR_SHOW_PLAN)
            abort();
    if (dtn_cluster_canonical(cluster, &text, NULL) != 0)
        abort();
    free(text);
}

void fuzz_cluster(const uint8_t *data, size_t size)
{
    struct dtensor_cluster *cluster = NULL;
    static struct report report;
    struct dtensor_error err;
    int rc = read_bytes(data, size, &cluster, &report, &err);

    check_report(report.text);
    if (rc == 0)
        check_cluster(cluster);
    else if (rc != DTENSOR_ECONF || cluster || !*report.text)
        abort();
    dtensor_cluster_destroy(cluster);
}
