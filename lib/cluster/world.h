/* world.h - what all rooms know of the job */
#ifndef DTN_CLUSTER_WORLD_H
#define DTN_CLUSTER_WORLD_H

#include "cluster/cluster.h"
#include "dtensor.h"

#include <stddef.h>

struct dtn_log;
struct dtn_nodes;

/* The job and the place of this process in it, fixed when it has started. */
struct dtn_world {
    struct dtensor_cluster *cluster;   /* owned by the context                 */
    int rank;                     /* of this process, from 0                   */
    int size;                     /* ranks of the job                          */
    int local_rank;               /* among the ranks of this host, from 0      */
    char host_name[DTN_HOST_MAX]; /* of this rank's host, as in the cluster    */
    char job[80];                 /* tells this job from others on the host    */
    char launcher[80];            /* how rank and cluster were found, for logs */
};

/* Find the cluster and this process in it.  `path` as in dtensor_init().  The
 * methods are a table, tried in order: dtensor-run, Slurm step, the hosts in
 * the file, single process; each that does not apply leaves a note, logged at
 * debug level, and all notes are in the error when none applies.
 *
 * Owns: world->cluster is the caller's.
 */
int dtn_whoami(const char *path, struct dtn_log *log, struct dtn_world *world,
               struct dtensor_error *err);

/* The rank of a process that dtn_whoami() has refused, and a cluster through
 * which it can send its error to the other ranks.
 *
 * Errors: ECONF, these are not known; or all other ranks refuse by themselves
 */
int dtn_whoami_claim(const char *path, struct dtn_world *world);

/* Index in cluster->hosts of the host of a rank. */
int dtn_world_host(const struct dtn_world *world, int rank);

/* "rank 3 on n1": for messages. */
char *dtn_world_rank_name(const struct dtn_world *world, int rank, char *buf,
                          size_t size);

/* What the cluster file says of this rank's host; its device, or NULL. */
const struct dtn_nodes *dtn_world_nodes(const struct dtn_world *world);
const char *dtn_world_device(const struct dtn_world *world);

#endif
