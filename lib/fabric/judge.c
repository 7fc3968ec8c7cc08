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

void dtn_fabric_usual(const struct dtn_fabric_facts facts[], int n,
                      struct dtn_fabric_usual *usual)
{
    int *value = calloc((size_t)n + 1, sizeof *value);
    int count = 0;

    *usual = (struct dtn_fabric_usual){ .ndevices = 0 };
    if (!value)
        return;                   /* no memory: mark no rank                  */
    for (int pass = 0; pass < 3; pass++) {
        count = 0;
        for (int r = 0; r < n; r++)
            if (facts[r].device[0])
                value[count++] = pass == 0 ? facts[r].ethernet
                    : pass == 1 ? facts[r].mtu : facts[r].rate_mbps;
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

unsigned dtn_fabric_marks(const struct dtn_fabric_facts *facts,
                          const struct dtn_fabric_usual *usual)
{
    bool compared = facts->device[0] && usual->ndevices > 0;
    unsigned marks = 0;

    if (facts->code != 0)
        marks |= FABRIC_DEVICE;
    if (facts->device[0] && facts->state != 4)
        marks |= FABRIC_STATE;
    if (facts->memlock < facts->need)
        marks |= FABRIC_MEMLOCK;
    if (facts->code == 0 && facts->doubtful)
        marks |= FABRIC_GID;
    if (compared && facts->ethernet != usual->ethernet)
        marks |= FABRIC_LINK;
    if (compared && facts->mtu != usual->mtu)
        marks |= FABRIC_MTU;
    if (compared && facts->rate_mbps != usual->rate_mbps)
        marks |= FABRIC_RATE;
    return marks;
}

int dtn_fabric_unfit(const struct dtensor_cluster *cluster,
                     const struct dtn_fabric_facts facts[],
                     const struct dtn_fabric_usual *usual)
{
    int nrails = dtn_fabric_rails(cluster), unfit = 0;

    for (int r = 0; r < cluster->world_size; r++) {
        unsigned marks = 0;

        for (int k = 0; k < nrails; k++)
            marks |= dtn_fabric_marks(&facts[r * nrails + k], usual);
        unfit += (marks & FABRIC_UNFIT) != 0;
    }
    return unfit;
}
