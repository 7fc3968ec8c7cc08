/* judge.c - find ranks that differ or that rc cannot use
 *
 * On a healthy cluster all ranks have the same values.  So the value of most
 * ranks counts as right, and ranks with another value are marked: if eight of
 * 1024 ranks have MTU 1024 and the others 4096, the eight are marked.
 */
#include "cluster/cluster.h"
#include "fabric/fabric.h"

#include <stdbool.h>
#include <stdlib.h>

static int judge_compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

/* The most frequent of n values; the largest of those equally frequent. */
static int judge_most(int value[], int n)
{
    int best = 0, most = 0, run = 0;

    qsort(value, (size_t)n, sizeof value[0], judge_compare);
    for (int i = 0; i < n; i++) {
        run = i > 0 && value[i] == value[i - 1] ? run + 1 : 1;
        if (run >= best) {
            best = run;
            most = value[i];
        }
    }
    return most;
}

void dtn_fabric_majority(const struct dtn_fabric_report report[], int n,
                         struct dtn_fabric_majority *usual)
{
    int *value = calloc((size_t)n + 1, sizeof *value);
    int count = 0;

    *usual = (struct dtn_fabric_majority){ .ndevices = 0 };
    if (!value)
        return;                   /* no memory: mark no rank                  */
    for (int pass = 0; pass < 3; pass++) {
        count = 0;
        for (int r = 0; r < n; r++)
            if (report[r].device[0])
                value[count++] = pass == 0 ? report[r].ethernet
                    : pass == 1 ? report[r].mtu : report[r].rate_mbps;
        if (pass == 0)
            usual->ethernet = judge_most(value, count);
        else if (pass == 1)
            usual->mtu = judge_most(value, count);
        else
            usual->rate_mbps = judge_most(value, count);
    }
    usual->ndevices = count;
    free(value);
}

unsigned dtn_fabric_marks(const struct dtn_fabric_report *report,
                          const struct dtn_fabric_majority *usual)
{
    bool compared = report->device[0] && usual->ndevices > 0;
    unsigned marks = 0;

    if (report->code != 0)
        marks |= DTN_FABRIC_DEVICE;
    if (report->device[0] && report->state != 4)
        marks |= DTN_FABRIC_STATE;
    if (report->memlock < report->need)
        marks |= DTN_FABRIC_MEMLOCK;
    if (report->code == 0 && report->doubtful)
        marks |= DTN_FABRIC_GID;
    if (compared && report->ethernet != usual->ethernet)
        marks |= DTN_FABRIC_LINK;
    if (compared && report->mtu != usual->mtu)
        marks |= DTN_FABRIC_MTU;
    if (compared && report->rate_mbps != usual->rate_mbps)
        marks |= DTN_FABRIC_RATE;
    return marks;
}

int dtn_fabric_unfit(const struct dtensor_cluster *cluster,
                     const struct dtn_fabric_report report[],
                     const struct dtn_fabric_majority *usual)
{
    int nrails = dtn_fabric_rails(cluster), unfit = 0;

    for (int r = 0; r < cluster->world_size; r++) {
        unsigned marks = 0;

        for (int k = 0; k < nrails; k++)
            marks |= dtn_fabric_marks(&report[r * nrails + k], usual);
        unfit += (marks & DTN_FABRIC_UNFIT) != 0;
    }
    return unfit;
}
