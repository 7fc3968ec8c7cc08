/* malformed.c - a good cluster file, and rows of mistakes made in it */
#include "base/compiler.h"
#include "dtensor.h"
#include "tests/cluster/cluster_files.h"
#include "tests/cluster/malformed.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const good[] = {
    "[cluster]",                                            /*  1 */
    "version = 1",
    "name = t",
    "[nodes \"a\"]",                                        /*  4 */
    "hosts = n[1-2]",
    "ranks = 4",
    "; the devices",
    "hca = mlx5_0:1",
    "[transport]",                                          /*  9 */
    "inter_node = rc",
    "mtu = 4096",
    "register_limit = 512K",
    "heartbeat = 1s",
    "dead_after = 10s",
    "[mesh \"world\"]",                                     /* 15 */
    "dims = dp=2, tp=4",
    "[seed]",                                               /* 17 */
    "base = 7",
    "mesh = world",
    "distinct = dp",
    "[tuning]",                                             /* 21 */
    "allreduce = 0-32K:direct, 32K-inf:ring",
    "[redistribute]",                                       /* 23 */
    "max_scratch = 1G",
    "pipeline = 8M",
    "planner = auto"
};

/* The good file with a row's edits. */
static void edit(const char *edits, char *out, size_t size)
{
    FILE *stream = fmemopen(out, size, "w");
    char op;
    int line, used;

    for (int n = 1; n <= (int)DTN_COUNT(good) + 1; n++) {
        bool keep = n <= (int)DTN_COUNT(good);

        for (const char *p = edits; p && *p; p = strchr(p, '\n')) {
            p += *p == '\n';
            if (sscanf(p, "%c%d%n", &op, &line, &used) != 2 || line != n)
                continue;
            if (op != '+')
                keep = false;
            if (op != '-')
                fprintf(stream, "%.*s\n", (int)strcspn(p + used + 1, "\n"),
                        p + used + 1);
        }
        if (keep)
            fprintf(stream, "%s\n", good[n - 1]);
    }
    fclose(stream);
}

void malformed_rows(const struct malformed rows[], size_t n)
{
    struct dtensor_cluster *cluster;
    static struct report report;
    struct dtensor_error err;
    char text[4096], expected[1024];
    bool bad;
    int rc;

    for (size_t i = 0; i < n; i++) {
        edit(rows[i].edits, text, sizeof text);
        cluster = NULL;
        rc = read_text(text, &cluster, &report, &err);
        bad = strstr(rows[i].expected, "error: ") != NULL;
        snprintf(expected, sizeof expected, "%s%s", rows[i].expected,
                 *rows[i].expected ? "\n" : "");
        if (!ok(rc == (bad ? DTENSOR_ECONF : 0) && !cluster == bad &&
                strcmp(report.text, expected) == 0, "%s", rows[i].what)) {
            note("expected: %s", rows[i].expected);
            note("reported: %s", report.text);
        }
        dtensor_cluster_destroy(cluster);
    }
}

void malformed_good(void)
{
    struct dtensor_cluster *cluster = NULL;
    static struct report report;
    struct dtensor_error err;
    char text[4096];

    edit("", text, sizeof text);
    ok(read_text(text, &cluster, &report, &err) == 0 && !*report.text,
       "the file the rows edit is good");
    dtensor_cluster_destroy(cluster);
}
