/* defaults.c - the defaults of a cluster file
 *
 * All defaults of keys are in this file.  For example, op_timeout is 10 minutes
 * for a file without [transport] and for a cluster without a file.  -1 leaves
 * the choice to the transport, or of the port to the job.
 */
#include "cluster/defaults.h"
#include "cluster/cluster.h"
#include "dtensor.h"

void dtn_transport_defaults(struct dtn_transport_conf *conf)
{
    *conf = (struct dtn_transport_conf){
        .intra_node = DTN_WIRE_SHM,
        .inter_node = DTN_WIRE_TCP,
        .port = -1,
        .mtu = -1,
        .traffic_class = -1,
        .service_level = -1,
        .pkey = -1,
        .qp_per_peer = -1,
        .retry_count = 6,
        .rnr_retry = -1,
        .timeout = -1,
        .connect_timeout_ns = 60 * INT64_C(1000000000),
        .op_timeout_ns = 10 * 60 * INT64_C(1000000000),
        .stall_after_ns = 5 * INT64_C(1000000000),
        .heartbeat_ns = INT64_C(100000000),
        .dead_after_ns = 10 * INT64_C(1000000000),
        .register_limit_bytes = UINT64_C(64) << 30,
        .arena = { .percent = 100 },
    };
}

void dtn_cluster_defaults(struct dtensor_cluster *cluster)
{
    dtn_transport_defaults(&cluster->transport);
    cluster->seed = (struct dtn_seed_conf){
        .stride = 1, .mesh = -1, .tracker = DTENSOR_TRACKER_GLOBAL,
        .fill = DTENSOR_FILL_SEQUENTIAL, .sms = DTN_DEFAULT_SMS,
        .threads_per_sm = DTN_DEFAULT_THREADS_PER_SM
    };
    cluster->redistribute = (struct dtn_redistribute_conf){
        .max_scratch_bytes = 256 << 20, .pipeline_bytes = 4 << 20
    };
}
