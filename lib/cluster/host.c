/* host.c - hosts by rank and by name
 *
 * Ranks are numbered host by host: with 4 ranks per host, rank 6 belongs to the
 * second host, ranks 4-7.  So a binary search finds the host of a rank, in ten
 * steps among 1024 hosts.  Two names are the same host if one is the other
 * with a domain: node1 and node1.example.org.
 */
#include "cluster/host.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdbool.h>

bool dtn_same_host(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return (*a == '\0' && (*b == '\0' || *b == '.')) ||
           (*a == '.' && *b == '\0');
}

const struct dtn_host *dtn_host_of(const struct dtensor_cluster *cluster,
                                   int rank)
{
    const struct dtn_host *hosts = cluster->hosts;
    int low = 0, high = cluster->nhosts - 1, middle;

    while (low < high) {
        middle = (low + high + 1) / 2;
        if (hosts[middle].first_rank <= rank)
            low = middle;
        else
            high = middle - 1;
    }
    return &hosts[low];
}
