/* world.h - the job, and this process in it */
#ifndef DTN_CLUSTER_WORLD_H
#define DTN_CLUSTER_WORLD_H

#include "cluster/cluster.h"
#include "dtensor.h"

#include <stdbool.h>
#include <stddef.h>

struct dtn_log;
struct dtn_nodes;

/* The job and the place of this process in it.  They do not change. */
struct dtn_world {
    struct dtensor_cluster *cluster;   /* owned by the context                */
    int rank;                     /* of this process, from 0                  */
    int size;                     /* ranks of the job                         */
    int local_rank;               /* among the ranks of this host, from 0     */
    char host_name[DTN_HOST_MAX]; /* of this rank's host, as in the cluster   */
    char job[80];                 /* tells this job from others on the host   */
    char launcher[80];           /* how rank and cluster were found, for logs */
};

/* Find the cluster and the place of this process in it.  `path` is as in
 * dtensor_init().  The methods are tried in this order: dtensor-run, Slurm
 * step, hosts in the file, single process.  A method that does not apply leaves
 * a note, which is logged at debug level.  If none applies, the error has all
 * notes.
 *
 * Owns: world->cluster is the caller's.
 */
int dtn_whoami(const char *path, struct dtn_log *log, struct dtn_world *world,
               struct dtensor_error *err);

/* After dtn_whoami() has failed: find the rank of this process, and a cluster
 * with the addresses to which it sends its error.
 *
 * Errors: ECONF  they are not known, or all other ranks find the error too
 */
int dtn_whoami_claim(const char *path, struct dtn_world *world);

/* Index in cluster->hosts of the host of a rank. */
int dtn_world_host(const struct dtn_world *world, int rank);

/* "rank 3 on n1": for messages. */
char *dtn_world_rank_name(const struct dtn_world *world, int rank, char *buf,
                          size_t size);

/* The [nodes] section of this rank's host; and this rank's device, or NULL. */
const struct dtn_nodes *dtn_world_nodes(const struct dtn_world *world);
const char *dtn_world_device(const struct dtn_world *world);

/* Does a mesh of the file that has this rank keep its tensors on a GPU? */
bool dtn_world_wants_gpu(const struct dtn_world *world);

#endif
