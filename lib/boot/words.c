/* words.c - parts of messages: ranks, lists of ranks, limits
 *
 * A list of ranks names hosts: "ranks 2-3 on n1, 6 on n3 and 40 more".
 */
#include "boot/words.h"
#include "base/error.h"
#include "base/units.h"
#include "boot/boot.h"
#include "boot/state.h"
#include "boot/tree.h"
#include "cluster/cluster.h"
#include "dtensor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

char *dtn_boot_rank_name(const struct dtn_boot *boot, int rank, char *buf,
                         size_t size)
{
    snprintf(buf, size, "rank %d on %s", rank,
             boot->hosts[dtn_boot_tree_host(boot, rank)]->name);
    return buf;
}

/* "ranks 2-3 on n1, 6 on n3 and 40 more"; `ranks` ascend. */
char *dtn_boot_ranks_text(const struct dtn_boot *boot, const int ranks[],
                          int n, char *buf, size_t size)
{
    size_t used = (size_t)snprintf(buf, size, n == 1 ? "rank " : "ranks ");
    int first = 0, last;
    char list[64];

    for (int hosts = 0; first < n; first = last, hosts++) {
        int h = dtn_boot_tree_host(boot, ranks[first]);
        const char *name = boot->hosts[h]->name;

        for (last = first;
             last < n && dtn_boot_tree_host(boot, ranks[last]) == h;)
            last++;
        if (hosts == 6 || used + sizeof list + strlen(name) + 32 > size)
            break;
        dtn_format_ranks(ranks + first, last - first, list, sizeof list);
        used += (size_t)snprintf(buf + used, size - used, "%s%s on %s",
                                 first ? ", " : "", list, name);
    }
    if (first < n && used < size)
        snprintf(buf + used, size - used, " and %d more", n - first);
    return buf;
}

static const char *words_host(const struct dtn_boot *boot, int rank)
{
    return boot->hosts[dtn_boot_tree_host(boot, rank)]->name;
}

char *dtn_boot_loss_words(const struct dtn_boot *boot, enum dtn_loss loss,
                          char *buf, size_t size)
{
    char time[32];
    int ends[2];

    dtn_format_time(boot->cluster->transport.dead_after_ns, time, sizeof time);
    snprintf(buf, size, loss == DTN_LOSS_STOPPED
             ? "is stopped, for its process exists and has not run for %s"
             : loss == DTN_LOSS_HOST
             ? "is out of reach: its host, silent for %s, is dead or cut off"
             : loss == DTN_LOSS_CUT
             ? "is cut off: its host has heard no other for %s"
             : "died or left", time);
    if (loss == DTN_LOSS_LINK && dtn_boot_lost_link(boot, ends))
        snprintf(buf, size, "is out of reach: the link between %s and %s is "
                 "lost, and both hosts run", words_host(boot, ends[0]),
                 words_host(boot, ends[1]));
    return buf;
}

/* No descriptor is left.  The library does not change the limit; it reports it.
 */
int dtn_boot_fd_limit(const struct dtn_boot *boot,
                      struct dtensor_error *err)
{
    char name[DTN_HOST_MAX + 32];
    struct rlimit limit = { 0, 0 };
    int rc;

    getrlimit(RLIMIT_NOFILE, &limit);
    rc = dtn_fail_sys(
        err, EMFILE,
        "boot: %s has no file descriptor left: the "
        "limit is %llu (raise ulimit -n, the hard limit is %llu)",
        dtn_boot_rank_name(boot, boot->rank, name, sizeof name),
        (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
    if (err)
        err->rank = boot->rank;
    return rc;
}
