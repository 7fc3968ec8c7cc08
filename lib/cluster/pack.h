/* pack.h - names of hosts in one piece of memory; for this room only */
#ifndef DTN_CLUSTER_PACK_H
#define DTN_CLUSTER_PACK_H

#include "dtensor.h"

#include <stdbool.h>

/* Move the names and addresses of all hosts to cluster->names.  false: not
 * enough memory, and they stay where they are.
 */
bool dtn_cluster_pack(struct dtensor_cluster *cluster);

#endif
