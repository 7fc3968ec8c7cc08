/* defaults.h - the defaults of a cluster file */
#ifndef DTN_CLUSTER_DEFAULTS_H
#define DTN_CLUSTER_DEFAULTS_H

struct dtensor_cluster;
struct dtn_transport_conf;

/* The GPU whose grid the fill `cuda` imitates, unless [seed] names another. */
#define DTN_DEFAULT_SMS 132               /* multiprocessors of an H200       */
#define DTN_DEFAULT_THREADS_PER_SM 2048   /* resident threads of each         */

/* Defaults of the sections [transport], [seed] and [redistribute].  All other
 * defaults of a cluster are zero.
 */
void dtn_cluster_defaults(struct dtensor_cluster *cluster);
void dtn_transport_defaults(struct dtn_transport_conf *conf);

#endif
