/* report.c - the report of one rank on its RDMA device
 *
 * The rank examines its ports and makes the choice that it would make in
 * dtensor_init().  A rank with two rails makes two reports.
 */
#include "cluster/cluster.h"
#include "fabric/fabric.h"
#include "transport/device.h"
#include "transport/memlock.h"
#include "dtensor.h"

#include <stdbool.h>
#include <string.h>

bool dtn_fabric_wanted(const struct dtensor_cluster *cluster)
{
    bool shared = false;

    for (int h = 0; h < cluster->nhosts; h++)
        shared |= cluster->hosts[h].nranks > 1;
    return (shared && cluster->transport.intra_node == DTN_WIRE_RC)
        || (cluster->nhosts > 1
            && cluster->transport.inter_node != DTN_WIRE_TCP);
}

int dtn_fabric_rails(const struct dtensor_cluster *cluster)
{
    return cluster->nnodes > 0 ? cluster->nodes[0].nrails : 1;
}

static void facts_port(const struct dtn_port *port,
                       struct dtn_fabric_report *report)
{
    snprintf(report->device, sizeof report->device, "%s", port->device);
    report->port = port->port;
    report->state = port->state;
    report->physical = port->physical;
    report->ethernet = port->ethernet;
    report->lid = port->lid;
    report->mtu = port->mtu;
    report->rate_mbps = port->rate_mbps;
    report->ngids = port->ngids;
    for (int i = 0; i < port->ngids && i < DTN_FABRIC_GIDS; i++)
        report->gid[i] = port->gid[i];
}

int dtn_fabric_report_make(const struct dtn_device_want *want, int nranks,
                           int nrails, struct dtn_fabric_report *report,
                           struct dtensor_error *err)
{
    struct dtn_device_choice choice;
    struct dtensor_error why = { 0 };
    const struct dtn_port *port;
    struct dtn_devices devices;
    int rc = dtn_devices_look(&devices, err);

    if (rc != 0)
        return rc;
    *report = (struct dtn_fabric_report){
        .built = devices.built, .ndevices = devices.ndevices, .gid_index = -1,
        .memlock = dtn_memlock_bytes(),
        .need = dtn_memlock_need(nranks, nrails)
    };
    port = dtn_device_meant(&devices, want);
    report->code = dtn_device_choose(&devices, want, &choice, &why);
    snprintf(report->why, sizeof report->why, "%s", why.text);
    if (report->code == 0) {
        port = choice.port;
        report->gid_index = choice.gid ? choice.gid->index : -1;
        report->doubtful = choice.doubtful;
        snprintf(report->why, sizeof report->why, "%s%s%s", choice.why_port,
                 choice.gid ? "; GID: " : "", choice.why_gid);
    }
    if (port)
        facts_port(port, report);
    dtn_devices_fini(&devices);
    return 0;
}
