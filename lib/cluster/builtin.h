/* builtin.h - the clusters that need no file */
#ifndef DTN_CLUSTER_BUILTIN_H
#define DTN_CLUSTER_BUILTIN_H

#include "dtensor.h"

/* The cluster of `nranks` ranks on this host, named `host`. */
int dtn_cluster_local(const char *host, int nranks,
                      struct dtensor_cluster **clusterp,
                      struct dtensor_error *err);

/* The cluster of `nranks` ranks with `per_host` on each host; the last host may
 * have fewer.  per_host 0: all ranks are on one host.
 */
int dtn_cluster_regular(int nranks, int per_host,
                        struct dtensor_cluster **clusterp,
                        struct dtensor_error *err);

/* The cluster of the Slurm step this process is in, from SLURM_STEP_NODELIST
 * and SLURM_STEP_TASKS_PER_NODE.
 */
int dtn_cluster_slurm_step(struct dtensor_cluster **clusterp,
                           struct dtensor_error *err);

#endif
