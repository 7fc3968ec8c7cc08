/* host.h - hosts by rank and by name */
#ifndef DTN_CLUSTER_HOST_H
#define DTN_CLUSTER_HOST_H

#include "dtensor.h"

#include <stdbool.h>

struct dtn_host;

/* Are they names of the same host: equal, or equal but for the domain? */
bool dtn_same_host(const char *a, const char *b);

/* The host that the cluster puts a rank on. */
const struct dtn_host *dtn_host_of(const struct dtensor_cluster *cluster,
                                   int rank);

#endif
