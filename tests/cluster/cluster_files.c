/* cluster_files.c - cluster files made for a test, and what reading them says
 */
#include "tests/cluster/cluster_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static dtensor_report_f report_line;
static void report_line(const char *line, void *arg)
{
    struct report *report = arg;
    size_t n = strlen(report->path), used = strlen(report->text);

    if (strncmp(line, report->path, n) == 0)
        snprintf(report->text + used, sizeof report->text - used, "F%s\n",
                 line + n);
    else
        snprintf(report->text + used, sizeof report->text - used,
                 "?? %s\n", line);
}

int read_path(const char *path, struct dtensor_cluster **clusterp,
              struct report *report, struct dtensor_error *err)
{
    report->path = path;
    report->text[0] = '\0';
    return dtensor_cluster_read(path, report_line, report, clusterp, err);
}

int read_bytes(const void *bytes, size_t n, struct dtensor_cluster **clusterp,
               struct report *report, struct dtensor_error *err)
{
    char path[64];
    int fd = memfd_create("cluster", MFD_CLOEXEC), rc;

    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n || fchmod(fd, 0600) != 0)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    rc = read_path(path, clusterp, report, err);
    report->path = NULL;
    close(fd);
    return rc;
}

int read_text(const char *text, struct dtensor_cluster **clusterp,
              struct report *report, struct dtensor_error *err)
{
    return read_bytes(text, strlen(text), clusterp, report, err);
}
