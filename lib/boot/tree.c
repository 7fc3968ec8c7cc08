/* tree.c - the tree of ranks
 *
 * The first rank of a host is its leader and the parent of its other ranks.
 * The leaders form a binary tree: the parent of host h is host (h - 1) / 2.
 * With four hosts of two ranks,
 *
 *     rank 0 --- 1, 2 (host 1), 4 (host 2)     2 --- 3, 6 (host 3)
 *
 * So a leader has at most two child hosts, and the last of 1024 hosts is ten
 * hops from rank 0.  Hosts without ranks do not count.
 */
#include "boot/tree.h"
#include "base/error.h"
#include "boot/state.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

int dtn_boot_tree_init(struct dtn_boot *boot, struct dtensor_error *err)
{
    const struct dtensor_cluster *cluster = boot->cluster;
    size_t size = (size_t)cluster->nhosts * sizeof *boot->hosts;

    boot->hosts = malloc(size + 1);
    if (!boot->hosts)
        return dtn_fail_nomem(err, "boot", size);
    for (int h = 0; h < cluster->nhosts; h++)
        if (cluster->hosts[h].nranks > 0)
            boot->hosts[boot->nhosts++] = &cluster->hosts[h];
    boot->host = dtn_boot_tree_host(boot, boot->rank);
    for (int r = boot->rank; r > 0; r = dtn_boot_tree_parent(boot, r))
        boot->depth++;
    return 0;
}

int dtn_boot_tree_host(const struct dtn_boot *boot, int rank)
{
    int low = 0, high = boot->nhosts - 1;

    while (low < high) {
        int middle = (low + high + 1) / 2;

        if (boot->hosts[middle]->first_rank <= rank)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

int dtn_boot_tree_leader(const struct dtn_boot *boot, int rank)
{
    return boot->hosts[dtn_boot_tree_host(boot, rank)]->first_rank;
}

int dtn_boot_tree_parent(const struct dtn_boot *boot, int rank)
{
    int h = dtn_boot_tree_host(boot, rank);

    if (rank != boot->hosts[h]->first_rank)
        return boot->hosts[h]->first_rank;
    return h > 0 ? boot->hosts[(h - 1) / 2]->first_rank : -1;
}

int dtn_boot_tree_grandparent(const struct dtn_boot *boot, int rank)
{
    int parent = dtn_boot_tree_parent(boot, rank);

    return parent < 0 ? -1 : dtn_boot_tree_parent(boot, parent);
}

bool dtn_boot_tree_same_host(const struct dtn_boot *boot, int a, int b)
{
    return dtn_boot_tree_host(boot, a) == dtn_boot_tree_host(boot, b);
}

/* Is `rank` this leader, or behind it, as seen from rank 0? */
static bool tree_passes(const struct dtn_boot *boot, int rank, int leader)
{
    while (rank > leader)
        rank = dtn_boot_tree_parent(boot, rank);
    return rank == leader;
}

int dtn_boot_tree_child(const struct dtn_boot *boot, int i)
{
    return boot->hosts[2 * boot->host + 1 + i]->first_rank;
}

int dtn_boot_tree_child_hosts(const struct dtn_boot *boot)
{
    int first = 2 * boot->host + 1;

    if (first >= boot->nhosts)
        return 0;
    return first + 1 < boot->nhosts ? 2 : 1;
}

int dtn_boot_tree_below(const struct dtn_boot *boot, int leader, int i)
{
    const int h = 2 * dtn_boot_tree_host(boot, leader) + 1 + i;

    return h < boot->nhosts ? boot->hosts[h]->first_rank : -1;
}

int dtn_boot_tree_other(const struct dtn_boot *boot, int rank)
{
    const int me = dtn_boot_tree_leader(boot, rank);
    const int up = dtn_boot_tree_parent(boot, me);

    return up > 0 ? dtn_boot_tree_parent(boot, up)
         : dtn_boot_tree_below(boot, 0, me == dtn_boot_tree_below(boot, 0, 0));
}

int dtn_boot_tree_witness(const struct dtn_boot *boot, int i)
{
    const int up = dtn_boot_tree_parent(boot, boot->rank);
    const int other = dtn_boot_tree_other(boot, boot->rank);

    for (int h = 0; h < boot->nhosts; h++) {
        const int leader = boot->hosts[h]->first_rank;

        if (leader != up && leader != other
            && !tree_passes(boot, leader, boot->rank) && i-- == 0)
            return leader;
    }
    return -1;
}
