/* facts.c - the report of one rank on its RDMA device
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
                       struct dtn_fabric_facts *facts)
{
    snprintf(facts->device, sizeof facts->device, "%s", port->device);
    facts->port = port->port;
    facts->state = port->state;
    facts->physical = port->physical;
    facts->ethernet = port->ethernet;
    facts->lid = port->lid;
    facts->mtu = port->mtu;
    facts->rate_mbps = port->rate_mbps;
    facts->ngids = port->ngids;
    for (int i = 0; i < port->ngids && i < FABRIC_GIDS; i++)
        facts->gid[i] = port->gid[i];
}

int dtn_fabric_facts_make(const struct dtn_device_want *want, int nranks,
                          int nrails, struct dtn_fabric_facts *facts,
                          struct dtensor_error *err)
{
    struct dtn_device_choice choice;
    struct dtensor_error why = { 0 };
    const struct dtn_port *port;
    struct dtn_devices devices;
    int rc = dtn_devices_look(&devices, err);

    if (rc != 0)
        return rc;
    *facts = (struct dtn_fabric_facts){
        .built = devices.built, .ndevices = devices.ndevices, .gid_index = -1,
        .memlock = dtn_memlock_bytes(),
        .need = dtn_memlock_need(nranks, nrails)
    };
    port = dtn_device_meant(&devices, want);
    facts->code = dtn_device_choose(&devices, want, &choice, &why);
    snprintf(facts->why, sizeof facts->why, "%s", why.text);
    if (facts->code == 0) {
        port = choice.port;
        facts->gid_index = choice.gid ? choice.gid->index : -1;
        facts->doubtful = choice.doubtful;
        snprintf(facts->why, sizeof facts->why, "%s%s%s", choice.why_port,
                 choice.gid ? "; GID: " : "", choice.why_gid);
    }
    if (port)
        facts_port(port, facts);
    dtn_devices_fini(&devices);
    return 0;
}
