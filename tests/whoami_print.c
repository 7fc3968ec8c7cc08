/* whoami_print.c - one line: rank, world size, local rank, host, launcher
 *
 * The program that slurm.sh starts; on failure the library's words and exit 2,
 * as any program of a user would.
 */
#include "cluster/cluster.h"

#include <errno.h>

int main(int argc, char **argv)
{
    struct dtensor_cluster *cluster;
    struct dtensor_error err;
    struct dtn_self self;
    struct dtn_log log;

    dtn_log_init(&log);
    if (dtn_whoami(argv[1], &log, &cluster, &self, &err) != 0) {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, err.text);
        return 2;
    }
    printf("%d %d %d %s %s\n", self.rank, self.world_size, self.local_rank,
           self.host, self.launcher);
    dtensor_cluster_destroy(cluster);
    return 0;
}
