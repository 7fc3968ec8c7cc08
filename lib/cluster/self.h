/* self.h - this process in its job */
#ifndef DTN_CLUSTER_SELF_H
#define DTN_CLUSTER_SELF_H

#include "cluster/cluster.h"
#include "dtensor.h"

struct dtn_log;

/* This process in its job. */
struct dtn_self {
    int rank;
    int world_size;
    int local_rank;
    char host[DTN_HOST_MAX];      /* as the cluster names it                   */
    char job[80];                 /* tells this job from others on the host    */
    char launcher[80];            /* how it was found, for people              */
};

/* Find the cluster and this process in it.  `path` as in dtensor_init().  The
 * methods are a table, tried in order: dtensor-run, Slurm step, the hosts in
 * the file, single; each passes with a note, logged at debug level, and all
 * notes are in the error when none applies.
 */
int dtn_whoami(const char *path, struct dtn_log *log,
               struct dtensor_cluster **clusterp, struct dtn_self *self,
               struct dtensor_error *err);

/* The rank of a process that dtn_whoami() has refused, and a cluster through
 * which it can send its error to the other ranks.
 *
 * Errors: ECONF, these are not known; or all other ranks refuse by themselves
 */
int dtn_whoami_claim(const char *path, struct dtensor_cluster **clusterp,
                     struct dtn_self *self);

#endif
