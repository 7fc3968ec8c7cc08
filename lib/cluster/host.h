/* host.h - hosts by rank and by name */
#ifndef DTN_CLUSTER_HOST_H
#define DTN_CLUSTER_HOST_H

#include "dtensor.h"

#include <stdbool.h>

struct dtn_host;

/* Are they one host: the same, or one with its domain and one without? */
bool dtn_same_host(const char *a, const char *b);

/* The host that the cluster puts a rank on. */
const struct dtn_host *dtn_host_of(const struct dtensor_cluster *cluster,
                                   int rank);

#endif
