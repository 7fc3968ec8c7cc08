/* whoami_claim.c - the rank of a process that was refused
 *
 * A rank that cannot join must tell the other ranks, or they wait for it.
 * Example: in a job of 8 ranks a process on n1 finds that its cluster file is
 * incomplete.  The launcher's variables say that it is rank 4.  It takes the
 * addresses of the other ranks from the file, if that can be read.  Otherwise
 * it uses the node names of Slurm's variables and the default port.
 */
#include "cluster/cluster.h"
#include "cluster/world.h"
#include "cluster/whoami.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stdlib.h>

int dtn_whoami_claim(const char *path, struct dtn_world *worldp)
{
    struct dtensor_error ignored;
    struct dtn_world world = { 0 };
    struct dtn_whoami_search search;
    bool run = getenv("DTN_RANK") != NULL, known;

    dtn_whoami_search_init(&search, path, &ignored);
    known = run ? dtn_claim_run(&search, &world)
                : getenv("SLURM_JOB_ID") && dtn_claim_slurm(&search, &world);
    if (!known || world.size != search.cluster->world_size) {
        dtensor_cluster_destroy(search.cluster);
        return DTENSOR_ECONF;
    }
    world.cluster = search.cluster;
    *worldp = world;
    return 0;
}
